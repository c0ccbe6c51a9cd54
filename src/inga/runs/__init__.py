"""Live runs on this machine: a process for every member, and a launcher that starts, supervises, judges and ends them."""
