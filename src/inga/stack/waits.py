"""Times to wait for: the earlier of two, and how waits grow while nothing comes of them, the same wherever something is said again."""

BACK_OFF = 2.0
"""A question that brings no progress is repeated after so many times the last wait."""


def grown(wait: float, most: float) -> float:
    """The wait after that one, up to a limit."""
    return min(BACK_OFF * wait, most)


def earlier(one: float | None, other: float | None) -> float | None:
    """The earlier of two times; None is a time that does not come."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
