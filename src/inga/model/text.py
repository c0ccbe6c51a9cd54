"""Text of others, such as names: what may be written to a log or a terminal."""

import json
from collections.abc import Iterable
from typing import Any


def suggest(name: object, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the known one that it resembles, or else all of them."""
    from difflib import get_close_matches  # only those who misspell something pay for it

    choices = list(known)
    close = get_close_matches(str(name), choices, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(choices) or 'none'}"


def printable(text: str) -> str:
    """The text on one line, with an escape for every character that would steer a terminal, end the line, turn it
    around or hide."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )


def json_line(content: Any) -> str:
    """JSON on one line; all in ASCII if something in it would steer a terminal, since JSON escapes not all of that."""
    text = json.dumps(content, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(content)
