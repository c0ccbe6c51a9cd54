"""Bytes to values and back, without state."""
