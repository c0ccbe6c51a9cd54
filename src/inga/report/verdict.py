"""Verdicts in words, for readers who do not know the checks, and in one colour each.

kept      promised, and the check passed
broken    promised, and the check failed: the only verdict in red
amber     not promised, and the check failed; or undecided, because rows are missing or the check was not requested
"""

import re
from html import escape
from typing import Any, NamedTuple

from inga.certify.checks import CHECKS
from inga.report.section import Section

LETTERS_MAX = 1000  # characters of one text from a trace


class Wording(NamedTuple):
    """The meaning of a check in words, if it passes and if it fails."""

    kept: str
    broken: str  # follows a number
    broken_once: str


_WORDS = {
    "total": Wording(
        "all members saw the messages in the same order",
        "deliveries came in another order than elsewhere",
        "delivery came in another order than elsewhere",
    ),
    "object": Wording(
        "calls that conflict were carried out in the same order everywhere",
        "calls began in another order than elsewhere",
        "call began in another order than elsewhere",
    ),
    "causal": Wording(
        "no message was delivered before one that caused it",
        "deliveries came after something that they had caused",
        "delivery came after something that it had caused",
    ),
    "fifo": Wording(
        "the messages of each sender were delivered in the order in which they were sent",
        "deliveries came after a later message of the same sender",
        "delivery came after a later message of the same sender",
    ),
    "complete": Wording(
        "every message arrived", "copies of messages never arrived", "copy of a message never arrived"
    ),
    "views": Wording(
        "members agreed on who was in the group, and on what was said in it",
        "disagreements about who was in the group, or what was said in it",
        "disagreement about who was in the group, or what was said in it",
    ),
    "atomic": Wording(
        "what one member delivered, all delivered",
        "copies are missing that others delivered",
        "copy is missing that others delivered",
    ),
    "integrity": Wording(
        "everything that was delivered had been sent, and was delivered once",
        "deliveries were wrong: twice, to the wrong member, or of something that nobody sent",
        "delivery was wrong: a second one, to the wrong member, or of something that nobody sent",
    ),
    "stamps": Wording(
        "every message was stamped with exactly what its sender knew",
        "messages carry a wrong stamp",
        "message carries a wrong stamp",
    ),
    "clocks": Wording(
        "the clocks in the log agree with each other",
        "entries of clocks are wrong",
        "entry of a clock is wrong",
    ),
    "time": Wording(
        "no member's clock went back",
        "times are earlier than the one before",
        "time is earlier than the one before",
    ),
    "quiet": Wording(
        "the group fell silent when there was nothing left to do",
        "control packets were sent long after the last message",
        "control packet was sent long after the last message",
    ),
}
"""By check, the strongest guarantee first: the sentence about a run names the first that was kept."""


class VerdictText(NamedTuple):
    """A verdict: its colour, a sentence, and a few words for a table."""

    tone: str  # pass, fail or unknown: the names of the colours in the page
    text: str
    word: str


def judge(section: Section) -> VerdictText:
    """The verdict on a trace, which a reader should see first."""
    checks = sorted(section.certificate["checks"], key=_weight)
    promised = [check for check in checks if section.is_promised(check["name"])]
    broken = [check for check in promised if check["verdict"] == "fail"]
    if broken:
        many = f"{len(broken)} promises were broken: " if len(broken) > 1 else "A promise was broken: "
        return VerdictText("fail", many + "; ".join(map(_failed, broken)) + ".", "promise broken")
    unpromised = [check for check in checks if check not in promised and check["verdict"] == "fail"]
    unchecked = sorted((section.promised or frozenset()) - {check["name"] for check in checks})
    also = f" Not promised, and not so: {'; '.join(map(_failed, unpromised))}." if unpromised else ""
    if unchecked:
        also = f" Promised, but not checked: {', '.join(unchecked)}.{also}"
    undecided = [check for check in promised if check["verdict"] == "unknown"]
    if undecided:
        names = ", ".join(check["name"] for check in undecided)
        known = "Nothing that was promised is known to be broken"
        text = f"{known}, but {names} could not be decided: {_reason(undecided[0])}.{also}"
        return VerdictText("unknown", text, "undecided")
    if not promised:
        if unchecked or section.promised is None:
            return VerdictText("unknown", "Nothing that was promised was checked." + also, "not checked")
        return VerdictText("unknown", "Nothing was promised." + also, "nothing promised")
    best = next((check["name"] for check in promised if check["name"] in _WORDS), None)
    told = f": {_WORDS[best].kept}" if best else ""
    deliveries = section.certificate["deliveries"]
    among = f", in {deliveries:,} deliveries" if told and deliveries else ""
    if unchecked:
        text = f"Everything that was checked of what was promised was kept{told}{among}.{also}"
        return VerdictText("unknown", text, "not all checked")
    tone, word = ("unknown", "kept what it promised") if unpromised else ("pass", "promises kept")
    return VerdictText(tone, f"Every promise was kept{told}{among}.{also}", word)


def _weight(check: dict[str, Any]) -> int:
    names = list(_WORDS)
    return names.index(check["name"]) if check["name"] in names else len(names)


def _failed(check: dict[str, Any]) -> str:
    count, words = check["violations"], _WORDS.get(check["name"])
    if words is None:
        return f"{check['name']} fails {count:,} times"
    return f"{count:,} {words.broken_once if count == 1 else words.broken}"


def _reason(check: dict[str, Any]) -> str:
    return str(check["reason"]).rstrip(".") or "part of the record is missing"


def badge(check: dict[str, Any] | None, promised: bool) -> str:
    """The verdict of one check in the table, with its violations, its reason or its warnings."""
    if check is None:
        return '<span class="muted">not asked</span>'
    tone, word = _tone(check["verdict"], promised)
    detail = ""
    if check["violations"]:
        detail = f"<b>{check['violations']:,}</b> violation{'s' if check['violations'] != 1 else ''}"
    elif check["reason"]:
        detail = text(check["reason"])
    elif check.get("warnings"):
        detail = text("; ".join(check["warnings"]))
    if not promised:
        detail += (", " if detail else "") + "not promised by this order"
    return mark(tone, word) + (f' <span class="detail">{detail}</span>' if detail else "")


def _tone(verdict: str, promised: bool) -> tuple[str, str]:
    if verdict == "fail":
        return ("fail", "broken") if promised else ("unknown", "does not hold")
    if verdict == "unknown":
        return "unknown", "undecided"
    return ("pass", "holds") if promised else ("plain", "holds")


_SIGNS = {"pass": "✓", "fail": "✗", "unknown": "!", "plain": "✓"}


def mark(tone: str, word: str) -> str:
    return f'<span class="mark {tone}"><i aria-hidden="true">{_SIGNS[tone]}</i> {escape(word)}</span>'


def statement(name: str) -> str:
    return CHECKS[name].statement


def text(value: object) -> str:
    """A text from a trace as HTML: escaped, cut if very long, and isolated, so that right-to-left characters in it cannot reorder
    the text around it."""
    return f"<bdi>{escape(short(value))}</bdi>"


def short(value: object) -> str:
    words = str(value)
    return words if len(words) <= LETTERS_MAX else words[: LETTERS_MAX - 1] + "…"


def packets(sentence: str, section: Section) -> str:
    """A sentence of a check with `message` replaced by `packet`, if the run has bundles: checks call packets messages, and
    where packets carry several messages the two have different numbers."""
    certificate = section.certificate
    if certificate["messages"] == certificate["payloads"]:
        return sentence
    return re.sub(r"\bmessage (\d+) of ", r"packet \1 of ", sentence)
