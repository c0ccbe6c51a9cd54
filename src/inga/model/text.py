"""Foreign text, such as names of others: made safe for a log or a terminal."""

import json
from collections.abc import Iterable
from typing import Any


def suggest(name: object, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the known name that it resembles, or else all known names."""
    from difflib import get_close_matches  # imported here, since it is needed only after a misspelling

    choices = list(known)
    close = get_close_matches(str(name), choices, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(choices) or 'none'}"


def printable(text: str) -> str:
    """The text on one line, with an escape for every character that would control a terminal, end the line, reverse its
    direction or be invisible."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )


def json_line(content: Any) -> str:
    """JSON on one line; in ASCII only, if a character in it would control a terminal, since JSON does not escape all of these."""
    text = json.dumps(content, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(content)
