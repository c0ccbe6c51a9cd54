"""The states of applications: each is the state that the application was given, and the messages to all members that it took since.

At the place of a view among the deliveries, all members that go on to it have the same messages, and so has a newcomer that is given
the state of that cut. So the judge need not know how a state is transferred: it compares all applications at each view, and at the end.

Some applications are reluctant: they raise while their state is drawn, or pause. Then another member gives its state; only if
no member can may a newcomer fail, or begin without a state.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from inga.model.errors import IngaError
from inga.model.view import View
from inga.session.history import EACH, HISTORY_MAX
from inga.session.pieces import piece_size
from inga.session.transfer import NO_STATE
from inga.sim.site import Site
from inga.trial.workload import number_of

if TYPE_CHECKING:
    from inga.sim.simulator import Sim

NUMBER = 4
"""Octets of each number in a state."""

SHOWN = 6
"""The most messages that a finding names."""

PAUSE, PAUSES_MAX = 0.3, 3
"""Seconds for which a reluctant application pauses between two chunks, and the most pauses for one state."""

CUT_OFF = -1
"""The lineage of applications that got the last messages only, so that their states are not compared with others."""

_Found = tuple[str, str]
"""A finding: its kind, and a description."""


class StatePlan(NamedTuple):
    """The size of states: a number of pieces of the wire plus a number of octets, drawn in chunks of so many octets. A state is
    larger if the messages of the application need more room."""

    pieces: int
    more: int
    chunk: int


class Reluctance(NamedTuple):
    """What an application does while its state is drawn: it raises after so many chunks, `once` or `always`, or `pauses`
    each time after so many."""

    do: str
    chunks: int


class _Held:
    """The state of one application, but for the messages that it sent itself and that were not delivered to itself."""

    def __init__(self) -> None:
        self.line = 0  # its lineage of states: an application that begins without a state starts a new one
        self.given: list[int] = []  # messages in the state that it was given
        self.start = 0  # the index in `Site.taken` from which on messages count besides
        self.mark = 0  # the length of `Site.taken` when it passed the last view
        self.since = 0  # the epoch from which on its own messages count besides
        self.came_in = -1  # the number of the view in force when it was given a state, or began without one


class _Seen(NamedTuple):
    """The messages that one application had at the place of a view, in the order in which it got them."""

    name: str
    line: int
    messages: tuple[int, ...]


class Belongings:
    """Keeps the states of all applications of a run, and judges them."""

    def __init__(
        self,
        state: StatePlan | None,
        history: int | float | None,
        reluctant: Mapping[str, Reluctance] | None = None,
    ) -> None:
        """`reluctant`: applications that raise or pause while their states are drawn, by member's name."""
        self._reluctant = reluctant or {}
        self._refused: set[str] = set()  # names of members whose applications have raised
        self._state = state
        self._history = history
        self._held: dict[int, _Held] = {}  # by site
        self._seen: dict[str, list[_Seen]] = {}  # by view
        # Newcomers that began without a state, at which view, and the members of it that were still present then.
        self._without: list[tuple[str, View, set[str]]] = []
        self._told: list[tuple[View, _Seen, float]] = []  # last messages: at which view, which, when
        self._lines = count(1)
        self._faults: list[_Found] = []

    def watch(self, sim: "Sim") -> None:
        """Judge the applications of this run from now on."""
        self._sim = sim
        sim.onlookers.append(self)
        sim.passed = self.passed
        sim.may_fail = self.may_fail

    # The application

    def give(self, site: Site) -> Iterator[bytes]:
        """Yield the state of a site whose application is at the place of a view, in chunks."""
        assert self._state is not None
        cut = site.queue[0][1]
        assert isinstance(cut, View)
        mine = [self._of(site).line, *self._has(site, cut)]
        size = self._state.pieces * piece_size(site.stack) + self._state.more
        body = b"".join(each.to_bytes(NUMBER, "big") for each in (max(0, size), len(mine), *mine))
        body += _filling(size - len(body))
        how, pauses = self._reluctant.get(site.name), 0
        for chunks, at in enumerate(range(0, len(body), self._state.chunk)):
            if how is not None and how.do == "pauses" and chunks % (how.chunks + 1) == how.chunks:
                pauses += 1
                site.stop_reading(PAUSE if pauses <= PAUSES_MAX else 0.0)
            elif how is not None and chunks == how.chunks:
                self._raise(site, how)
            yield body[at : at + self._state.chunk]
        if how is not None and how.chunks * self._state.chunk >= len(body):
            self._raise(site, how)

    def _raise(self, site: Site, how: Reluctance) -> None:
        if how.do == "always" or (how.do == "once" and site.name not in self._refused):
            self._refused.add(site.name)
            raise ValueError("this state is not given")

    def may_fail(self, site: Site, error: IngaError) -> bool:
        """Whether a newcomer may fail because no member gives it a state: all members that had one when its view began have raised.
        A member that was given its state in the previous view may not have had it by then, so it does not count."""
        view = site.stack.view
        there = {
            each.name
            for each in self._sim.sites
            if each.is_member and each is not site and _has(each) and self._of(each).came_in < view.number - 1
        }
        able = there & {*view.names} - {*view.joined} - self._refused
        return str(error).startswith(NO_STATE) and not able

    def take(self, site: Site, state: bytes) -> None:
        """Let a site take a state."""
        size, entries = (int.from_bytes(state[at : at + NUMBER], "big") for at in (0, NUMBER))
        end = NUMBER * (2 + entries)
        if end > len(state) or state[end:] != _filling(size - end):
            self._faults.append(
                ("state: torn", f"{site.name} was given {len(state)} octets that nobody gave")
            )
            return
        mine = [int.from_bytes(state[at : at + NUMBER], "big") for at in range(2 * NUMBER, end, NUMBER)]
        held = self._of(site)
        held.line, *held.given = mine
        held.start, held.came_in = len(site.taken), site.stack.view.number

    def passed(self, site: Site, view: View, how: str) -> None:
        """Note that an application goes on from the place of a view. `how`: it `went` there by its deliveries, `took` a state, or
        goes on `without` one."""
        held, mark = self._of(site), len(site.taken)
        if how != "went":
            held.since = self._sim.ledger.roll.epoch_of(view)
        if how == "without":
            held.line, held.given, held.start = next(self._lines), [], mark
            held.came_in = site.stack.view.number
            assert site.states is not None and site.states.transfer.incoming is not None
            cut = site.states.transfer.incoming.cut
            present = {each.name for each in site.stack.view.members if cut.index(each) is not None}
            self._without.append((site.name, cut, present))
        elif how == "took" and self._history is not None:
            replayed = site.taken[held.mark :]
            while replayed and not replayed[0].replayed:
                replayed.pop(0)
            came = tuple(number_of(each.batch.payloads[0]) for each in replayed)
            held.line, held.start = CUT_OFF, mark
            held.given = [each for each in came if each in self._sim.ledger.whole]
            self._told.append((view, _Seen(site.name, CUT_OFF, came), self._sim.now))
        held.mark = mark
        seen = _Seen(site.name, held.line, tuple(self._has(site, view)))
        self._seen.setdefault(view.text, []).append(seen)

    # Findings

    def waits(self) -> Iterator[_Found]:
        """Yield the members that wait for a state, or still keep one for another."""
        for site in self._sim.sites:
            if not site.is_member or site.states is None:
                continue
            transfer = site.states.transfer
            if transfer.lacks or transfer.stop_at is not None:
                yield "stuck: state", f"{site.name} waits for a state"
            elif transfer.outgoing and site.queue:
                yield "stuck: state", f"the application of {site.name} waits for who gets its state"
            for name, _ in transfer.outgoing:
                yield "stuck: state", f"{site.name} still has a state for {name}"

    def faults(self) -> Iterator[_Found]:
        """Yield the differences between states, duplicates in them, and states and last messages that newcomers should have got."""
        yield from self._faults
        if self._sim.ledger.has_slipped:
            return  # messages that passed an open gate may have reached one member alone
        members = [site for site in self._sim.sites if site.is_member]
        last = [_Seen(site.name, self._of(site).line, tuple(self._has(site))) for site in members]
        for where, seen in [*self._seen.items(), ("the end", last)]:
            for each in seen:
                if len(set(each.messages)) < len(each.messages):
                    twice = {message for message in each.messages if each.messages.count(message) > 1}
                    yield "state: twice", f"{each.name} has {_some(twice)} twice, at {where}"
            yield from self._compared(where, seen)
        for told in self._told:
            yield from self._untold(*told)
        for name, view, present in self._without:
            for each in self._seen.get(view.text, []):
                if each.line == 0 and each.name in present - self._refused:
                    yield "state: missing", f"{name} began without the state that {each.name} had"

    def _compared(self, where: str, seen: list[_Seen]) -> Iterator[_Found]:
        first: dict[int, _Seen] = {}
        for each in seen:
            if each.line == CUT_OFF:
                continue
            other = first.setdefault(each.line, each)
            one, two = self._promised(each, "complete"), self._promised(other, "complete")
            if differing := set(one) ^ set(two):
                yield "state", f"of {_some(differing)} {each.name} has not what {other.name} has, at {where}"
            elif self._promised(each, "total") != self._promised(other, "total"):
                yield "state: order", f"{each.name} has another order than {other.name}, at {where}"

    def _promised(self, seen: _Seen, guarantee: str) -> list[int]:
        """Return the messages that a guarantee covers, in their order. For `total`, leave out those that are not delivered to
        their own sender."""
        ledger = self._sim.ledger
        silent = {message for own in ledger.silent.values() for _, message in own}
        return [
            message
            for message in seen.messages
            if guarantee in ledger.oracle.promises[ledger.whole[message]]
            and not (guarantee == "total" and message in silent)
        ]

    def _untold(self, view: View, told: _Seen, now: float) -> Iterator[_Found]:
        """Judge the last messages that a newcomer got: none that the others lacked at that view, and not too few."""
        ledger, last, came = self._sim.ledger, self._history, set(told.messages)
        assert last is not None
        size = sum(len(ledger.sends[message][1]) + 2 * EACH for message in ledger.whole)
        for other in self._seen[view.text]:
            if other.line:
                continue
            had = set(other.messages)
            told_of = told._replace(messages=tuple(each for each in told.messages if each in ledger.whole))
            if new := set(self._promised(told_of, "complete")) - had:
                yield "history", f"{told.name} was told {_some(new)}, {other.name} had them not by then"
            owed = set(self._promised(other, "complete"))  # without messages that may be lost with a relay
            if type(last) is int:
                is_short = len(came) < min(last, len(owed))
            else:
                is_short = any(ledger.said_at[each] >= now - last for each in owed - came)
            if len(came) < len(told.messages) or (is_short and size < HISTORY_MAX):
                text = f"{told.name} was told {len(told.messages)} messages; {other.name} had {len(owed)} by then"
                yield "history", text

    # Their states

    def _of(self, site: Site) -> _Held:
        return self._held.setdefault(site.index, _Held())

    def _has(self, site: Site, before: View | None = None) -> list[int]:
        """Return the messages that an application has; of its own that are not delivered to itself, those sent before that view."""
        ledger, held = self._sim.ledger, self._of(site)
        until = inf if before is None else ledger.roll.epoch_of(before)
        taken = [number_of(each.batch.payloads[each.index]) for each in site.taken[held.start :]]
        said = ledger.silent.get(site.index, [])
        own = [message for epoch, message in said if held.since <= epoch < until]
        return [*held.given, *(message for message in taken if message in ledger.whole), *own]


def _has(site: Site) -> bool:
    """Whether an application lacks no state."""
    return site.states is None or (not site.states.transfer.lacks and site.states.transfer.stop_at is None)


def _filling(size: int) -> bytes:
    """Return so many octets in which neighbours differ."""
    return bytes(range(251)) * (size // 251) + bytes(range(size % 251)) if size > 0 else b""


def _some(messages: set[int]) -> str:
    some = ", ".join(map(str, sorted(messages)[:SHOWN]))
    return f"messages {some}" + (" and others" if len(messages) > SHOWN else "")
