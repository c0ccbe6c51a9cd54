"""Errors teach: every `UsageError` says what is wrong, with what value, and what to do; and so do those that new users meet first."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import inga

SOURCE = Path(inga.__file__).parent

LEADS_ON = re.compile(
    r"[:;]|\b(or|not|use|pass|give|take|say|name|leave|put|ask|so|goes|go|instead|needs?)\b", re.IGNORECASE
)
"""A text without any value has to be more than a verdict: it goes on to a reason or to what is right."""

BOUND = re.compile(r"\b(is|are|be) (at (least|most)|above|below|not negative|between|a number)\b")
"""Who is told a bound is told, too, which value is beyond it."""

WORDS_MIN = 4


def refusals() -> Iterator[tuple[str, ast.expr]]:
    """Where a UsageError is made, and its text."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "UsageError":
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node.args[0]


def words(text: ast.expr) -> str:
    """What is written down of it; a value is `{}`."""
    if isinstance(text, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else "{}" for each in text.values)  # type: ignore[misc]
    return str(text.value) if isinstance(text, ast.Constant) else ""


def is_made_elsewhere(text: ast.expr) -> bool:
    return not isinstance(text, (ast.JoinedStr, ast.Constant))


def test_every_refusal_says_what_is_wrong_and_what_to_do() -> None:
    found = list(refusals())
    assert len(found) > 400
    silent = []
    for where, text in found:
        said = words(text)
        if is_made_elsewhere(text):
            continue
        is_short = len(said.split()) < WORDS_MIN and said.count("{}") < 2  # the second is the reason
        is_bare = "{}" not in said and not LEADS_ON.search(said)
        is_beyond = "{}" not in said and bool(BOUND.search(said))
        if is_short or is_bare or is_beyond:
            silent.append(f"{where}: {said}")
    assert silent == []
