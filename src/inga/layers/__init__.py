"""The protocols: one file or folder for each, each a state machine."""
