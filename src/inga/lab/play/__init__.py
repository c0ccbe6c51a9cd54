"""Schedules in a browser: the stacks themselves play them move by move, and again after each change of the schedule."""
