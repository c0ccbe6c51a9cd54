"""The protocols: one state machine a file."""
