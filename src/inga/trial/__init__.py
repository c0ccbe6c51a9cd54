"""What simulated and live runs share: the workload, and the oracle that judges them."""
