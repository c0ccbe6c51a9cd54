"""What simulated and live runs share: the description of a trial, its faults and workload, and the oracle that judges it."""
