"""Logs as ShiViz reads them: any text in which a regular expression finds host, clock and event.

The expression may be in JavaScript's syntax, as ShiViz's own, or in Python's. Without one, ShiViz's default is used. The
first line of a file may be an expression, as in ShiViz's own examples and in GoVector's logs, and the second the delimiter
of executions. Unless it is the default it is used only if the caller trusts the file: a maliciously chosen expression
can search forty characters for hours.
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
"""The default expression, rewritten so that the search takes linear time: it finds the first ` {` of a line, while the
default would begin again at every character. Text before the host belongs to the match."""

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
    """Open a log in the form of ShiViz. The trace will claim that its clocks are right (`clocks`) and, if sends and deliveries are
    marked, that every delivered message was sent (`integrity`)."""
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
    """The expression and the delimiter of the file's header, and the number of the line after it; without a header, ShiViz's
    default, None and 1."""
    with open_text(log, encoding) as file:
        try:
            lines = [file.readline(1 << 16).rstrip("\n") for _ in range(2)]
        except UnicodeDecodeError:
            return DEFAULT, None, 1  # reading the records will report the place of the error
    if not all(re.search(rf"\(\?P?<{group}>", lines[0]) for group in GROUPS):
        return DEFAULT, None, 1
    return lines[0], lines[1] if lines[1].strip() else None, 3


def _role(wanted: dict[str, re.Pattern[str]], text: str) -> tuple[str | None, str]:
    for role, pattern in wanted.items():
        match = pattern.search(text)
        if match is not None:
            return role, "" if role == "crash" else match["message"] or ""
    return None, ""
