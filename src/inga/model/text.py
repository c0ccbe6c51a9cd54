"""Text of others, such as names: what may be written to a log or a terminal."""


def printable(text: str) -> str:
    """The text on one line, with an escape for every character that would steer a terminal, end the line, turn it
    around or hide."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )
