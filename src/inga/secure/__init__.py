"""Secured groups: only processes with a key of the group can read, disturb or join it."""
