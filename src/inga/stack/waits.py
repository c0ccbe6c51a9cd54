"""Times to wait for: the earlier of two, and the backoff that is the same for everything that is sent repeatedly."""

BACK_OFF = 2.0
"""The factor by which the wait grows each time a repeated question brings no progress."""


def grown(wait: float, most: float) -> float:
    """The wait that follows a wait of that length, up to a limit."""
    return min(BACK_OFF * wait, most)


def earlier(one: float | None, other: float | None) -> float | None:
    """The earlier of two times; None is a time that never comes."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
