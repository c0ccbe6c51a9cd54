"""Logs as ShiViz reads them: any text in which a regular expression finds host, clock and event.

The expression may be that of ShiViz, in JavaScript's syntax, or Python's. Without one, ShiViz's default is taken. The
first line of a file may be an expression, as ShiViz's own examples and GoVector have it, and the second the delimiter
of executions. Unless it is the default it is taken only if the caller trusts the file: an expression that somebody
chose can search forty characters for hours.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from inga.model.errors import TraceError, UsageError
from inga.trace.importers.record import BadLines, Log, Record, Skipped, parse_clock
from inga.trace.importers.source import LogText
from inga.trace.importers.text import compile_pattern, find_records, open_text

DEFAULT = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
LINEAR = r"^(?:\S*+(?! \{)[^\S\n])*+(?P<host>\S*+) (?P<clock>\{.*\})\n(?P<event>.*)"
"""The default, searched in time that grows with the text and no faster: it finds the first ` {` of a line, while the
default would begin again at every character. What comes before the host belongs to the match."""

GROUPS = ("host", "clock", "event")
ROLES = ("send", "deliver", "crash")


@dataclass(frozen=True, slots=True)
class Roles:
    """Which events are sends, deliveries and crashes: expressions over their text."""

    send: str | None = None
    deliver: str | None = None
    crash: str | None = None

    def compile(self) -> dict[str, re.Pattern[str]]:
        if (self.send is None) != (self.deliver is None):
            raise UsageError("--send and --deliver go together: what is sent must be delivered somewhere")
        found = {}
        for role in ROLES:
            text = getattr(self, role)
            if text is not None:
                groups = () if role == "crash" else ("message",)
                found[role] = compile_pattern(text, f"--{role}", groups)
        return found


NO_ROLES = Roles()


def open_log(
    log: LogText,
    *,
    encoding: str,
    regex: str | None = None,
    executions: str | None = None,
    trust: bool = False,
    roles: Roles = NO_ROLES,
    source: str = "shiviz",
) -> Log:
    """A log in ShiViz's manner. Its clocks are claimed to be right; deliveries, to be of what was sent."""
    said, divided, first = _header(log, encoding)
    if regex is None:
        if not trust and (said != DEFAULT or (divided and not executions)):
            raise UsageError(
                f"{log.said} begins with a regular expression of its own, and one that is made for it can run for "
                "hours: read it and give it as --regex (and --executions), or say --trust-header"
            )
        regex, executions = said, executions or divided
    pattern = compile_pattern(LINEAR if regex == DEFAULT else regex, "--regex", GROUPS)
    delimiter = None if executions is None else compile_pattern(executions, "--executions")
    headings = frozenset(each.strip() for each in (said, divided) if each)
    wanted, skipped, bad = roles.compile(), Skipped(tuple(at for at, _ in log.parts), headings), BadLines()

    def records() -> Iterator[Record]:
        skipped.begin()
        bad.begin()
        execution, label, is_used = 0, "", False
        for found in find_records(log, encoding, pattern, delimiter, skipped, first):
            if not found.is_record:
                execution, is_used = execution + is_used, False
                label = next((each for each in found.match.groups() if each), "")
                continue
            host, text = found.match["host"] or "", (found.match["event"] or "").strip()
            try:
                clock = parse_clock(found.match["clock"] or "", host, log, found.line)
            except TraceError as error:
                bad.add(error)
                continue
            is_used = True
            role, message = _role(wanted, text)
            yield Record(host, clock, text, found.line, role, message, execution, label)

    claims = ["clocks", "integrity"] if "send" in wanted else ["clocks"]
    options = {"regex": regex, "executions": executions}
    options |= {role: found.pattern for role, found in wanted.items()}
    return Log(log, records, source, claims, options, skipped, bad)


def _header(log: LogText, encoding: str) -> tuple[str, str | None, int]:
    """The expression, the delimiter, and the line after them."""
    with open_text(log, encoding) as file:
        try:
            lines = [file.readline(1 << 16).rstrip("\n") for _ in range(2)]
        except UnicodeDecodeError:
            return DEFAULT, None, 1  # reading the records will say where
    if not all(re.search(rf"\(\?P?<{group}>", lines[0]) for group in GROUPS):
        return DEFAULT, None, 1
    return lines[0], lines[1] if lines[1].strip() else None, 3


def _role(wanted: dict[str, re.Pattern[str]], text: str) -> tuple[str | None, str]:
    for role, pattern in wanted.items():
        match = pattern.search(text)
        if match is not None:
            return role, "" if role == "crash" else match["message"] or ""
    return None, ""
