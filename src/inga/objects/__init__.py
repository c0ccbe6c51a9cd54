"""Invocations of objects ordered by their conflicts (OBG)."""
