"""The checks, one record each. Commands, manifests, reports and pages all list them from here.

Judges compute with numpy, and are imported when one is called, so that a member that only records which checks it
claims starts without numpy. docs/extending.md says how to add a check.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inga.model.errors import UsageError
from inga.model.text import suggest

if TYPE_CHECKING:
    from inga.certify.evidence import Evidence
    from inga.certify.roots import Bad

Judge = Callable[["Evidence"], "Iterable[Bad]"]
"""Finds all violations, and says in `Evidence.leave_open` why something could not be decided."""


class Needs(Enum):
    """The rows without which a check has nothing to judge. The value says why the check then stays undecided."""

    MESSAGES = "no message was sent or delivered"
    SENDS = "no message was sent"
    DELIVERIES = "no message was delivered"
    OUTCOMES = "no message was delivered or confirmed"
    REQUESTS = "no object began with a request"
    EVENTS = "there are no events of an imported log"
    VIEWS = "no row tells of a view"
    ROWS = "there are no rows"


class WhileGrowing(Enum):
    """When a check is judged while its trace is still being written."""

    EVERY_LOOK = "at every look"  # later rows cannot undo a violation
    NOW_AND_THEN = (
        "when nothing new has come, and when the trace has grown by half"  # the same, but it costs more
    )
    AT_THE_END = "at the end"  # missing rows may still be written


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about a trace, and the judge that decides whether it holds."""

    name: str
    statement: str
    counted: str  # what `violations` counts
    judge: Judge
    needs: Needs = Needs.MESSAGES
    columns: tuple[str, ...] = ()  # of a trace, besides those that every check reads
    growing: WhileGrowing = WhileGrowing.AT_THE_END


def _in(module: str, name: str) -> Judge:
    """A judge in a module of this package that is imported when the judge is called."""

    def judge(evidence: "Evidence") -> "Iterable[Bad]":
        found: Iterable[Any] = getattr(import_module(f"inga.certify.{module}"), name)(evidence)
        return found

    return judge


_ALL = [
    Check(
        "integrity",
        "every delivered message was sent to this process, is delivered once, and has the vector it was sent with",
        "bad deliveries",
        _in("pairs", "integrity"),
        needs=Needs.DELIVERIES,
        growing=WhileGrowing.NOW_AND_THEN,
    ),
    Check(
        "complete",
        "every message is delivered at all its destinations, except those that left or crashed before",
        "missing (message, destination) pairs",
        _in("pairs", "complete"),
        needs=Needs.SENDS,
    ),
    Check(
        "fifo",
        "messages of one sender are delivered in the order of their numbers",
        "late deliveries",
        _in("late", "fifo"),
        needs=Needs.DELIVERIES,
        growing=WhileGrowing.EVERY_LOOK,
    ),
    Check(
        "stamps",
        "the vector of a send is the join of the vectors of all that its process had sent and received",
        "sends with a wrong vector",
        _in("late", "stamps"),
        needs=Needs.SENDS,
        growing=WhileGrowing.EVERY_LOOK,
    ),
    Check(
        "causal",
        "no message is delivered before a message that causally precedes it",
        "late deliveries",
        _in("late", "causal"),
        needs=Needs.DELIVERIES,
        growing=WhileGrowing.EVERY_LOOK,
    ),
    Check(
        "atomic",
        "a message that one surviving destination delivered, all of them deliver; a confirmed message, all destinations accepted",
        "(message, destination) pairs that lack it",
        _in("atomic", "atomic"),
        needs=Needs.OUTCOMES,
    ),
    Check(
        "object",
        "conflicting requests begin in the same order wherever they conflict, and after requests that precede them",
        "requests that begin too late, against another process or against precedence",
        _in("orders", "objects"),
        needs=Needs.REQUESTS,
        columns=("op",),
    ),
    Check(
        "total",
        "any two messages are delivered in the same order wherever both are delivered, among members that go on together",
        "deliveries after something that a process listed earlier has the other way round",
        _in("orders", "total"),
        needs=Needs.DELIVERIES,
    ),
    Check(
        "views",
        "members agree on the members of a view, and on the view before; a message sent in a view is delivered in it, by all "
        "members that go on together or by none",
        "rows of views, and (message, process, view), that disagree",
        _in("views", "views"),
        needs=Needs.VIEWS,
    ),
    Check(
        "clocks",
        "imported events: own entries are 1, 2, 3, ...; no clock goes back; every event that a clock names exists, and the "
        "clock is at least that event's clock",
        "repeated numbers, and (event, named event) pairs",
        _in("clocks", "clocks"),
        needs=Needs.EVENTS,
    ),
    Check(
        "quiet",
        "control traffic ends within a second of the last progress of a message",
        "control rows after that",
        _in("quiet", "quiet"),
        columns=("time",),
    ),
    Check(
        "time",
        "the timestamps of a process never decrease",
        "rows with an earlier time than one before them",
        _in("backwards", "time"),
        needs=Needs.ROWS,
        columns=("time",),
        growing=WhileGrowing.EVERY_LOOK,
    ),
]

CHECKS = {check.name: check for check in _ALL}
"""By name, in the order in which they are listed."""


def check_names(names: Iterable[str], besides: str = "") -> None:
    """Raise `UsageError` for a name that no check has; one word, `besides`, may mean something else."""
    for name in names:
        if name not in CHECKS and name != besides:
            known = [*CHECKS, besides] if besides else list(CHECKS)
            raise UsageError(f"no check {name!r}{suggest(name, known)}")
