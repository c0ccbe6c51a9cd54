"""How waits grow while nothing comes of them: the same wherever something is said again."""

BACK_OFF = 2.0
"""A question that brings no progress is repeated after so many times the last wait."""


def grown(wait: float, most: float) -> float:
    """The wait after that one, up to a limit."""
    return min(BACK_OFF * wait, most)
