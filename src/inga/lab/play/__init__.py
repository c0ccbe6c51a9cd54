"""Schedules in a browser: played move by move by the stacks themselves, and played again when one is changed."""
