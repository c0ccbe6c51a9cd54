"""Exhaustive exploration: every schedule within a bound, but only one of equivalent ones.

Sites are deterministic machines, so the state of a site after some local events depends on those events
alone: its pickled stack is computed once for each local history, however many schedules share it. Two
schedules that give every site the same history are the same for every judge, so the search branches only
where the set of histories (with the copies in flight and the true causes) is new.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from inga.model.delivery import Batch
from inga.model.view import View
from inga.sim.board import Build, Still, sees_concurrency
from inga.sim.schedule import Arrive, Event, Schedule, Send, Take, letter
from inga.stack.stack import Stack, joined
from inga.trial.workload import HEADER, number_of


@dataclass(slots=True)
class Report:
    """The result of an exploration."""

    states: int = 0
    schedules: int = 0  # complete ones, up to equivalence
    violations: int = 0
    first: Schedule | None = None  # a shortest violating one
    why: str = ""


class _Node(NamedTuple):
    """A site after some local history."""

    frozen: bytes
    out: tuple[tuple[int, bytes], ...]  # copies sent in its last event: (member, datagram)
    taken: tuple[tuple[int, bool], ...]  # messages taken in its last event, with their flags of concurrency
    queue: tuple[int, ...]  # messages released and not taken


class _State(NamedTuple):
    """A point of the search. `known` and `causes` are bit sets of messages, kept independently of the stacks."""

    nodes: tuple[int, ...]
    under_way: frozenset[tuple[int, int, bytes]]  # (message, member, datagram)
    sent: int
    known: tuple[int, ...]
    seen: tuple[int, ...]  # sent or taken at each site
    causes: tuple[int, ...]  # of each message, from 1


@dataclass(slots=True)
class Explorer:
    """Enumerates all schedules of `messages` broadcasts among `sites`."""

    sites: int
    messages: int
    build: Build
    queues: bool = False  # takes are moves of their own
    report: Report = field(default_factory=Report)
    _flags: bool = False  # whether the order says what is concurrent
    _nodes: list[_Node] = field(default_factory=list)
    _children: dict[tuple[int, object], int] = field(default_factory=dict)

    def run(self, *, stop_at_first: bool = True) -> Report:
        """Breadth first, so that the first violation is a shortest one."""
        start = _State(
            tuple(self._root(site) for site in range(self.sites)),
            frozenset(),
            0,
            (0,) * self.sites,
            (0,) * self.sites,
            (0,),
        )
        frontier: dict[_State, tuple[Event, ...]] = {start: ()}
        while frontier:
            following: dict[_State, tuple[Event, ...]] = {}
            for state, path in frontier.items():
                self.report.states += 1
                moves = list(self._moves(state))
                if not moves:
                    self._judge_end(state, path)
                for event, after, why in moves:
                    if why:
                        self._blame((*path, event), why)
                    elif after not in following:
                        following[after] = (*path, event)
                if stop_at_first and self.report.violations:
                    return self.report
            frontier = following
        return self.report

    # Moves

    def _moves(self, state: _State) -> Iterator[tuple[Event, _State, str]]:
        if state.sent < self.messages:
            for site in range(self.sites):
                yield self._send(state, site)
        for copy in sorted(state.under_way):  # independent of Python's hash seed
            yield self._arrive(state, copy)
        if self.queues:
            for site in range(self.sites):
                if self._nodes[state.nodes[site]].queue:
                    yield self._take(state, site)

    def _send(self, state: _State, site: int) -> tuple[Event, _State, str]:
        message = state.sent + 1
        index = self._step(site, state.nodes[site], ("send", message))
        bit = 1 << message
        after = _State(
            _put(state.nodes, site, index),
            state.under_way | {(message, member, data) for member, data in self._nodes[index].out},
            message,
            _put(state.known, site, state.known[site] | bit),
            _put(state.seen, site, state.seen[site] | bit),
            (*state.causes, state.known[site]),
        )
        return Send(site, message, None), after, ""

    def _arrive(self, state: _State, copy: tuple[int, int, bytes]) -> tuple[Event, _State, str]:
        message, site, data = copy
        index = self._step(site, state.nodes[site], ("arrive", data))
        state = state._replace(nodes=_put(state.nodes, site, index), under_way=state.under_way - {copy})
        return (Arrive(message, site, False), *self._judge(state, site, self._nodes[index].taken))

    def _take(self, state: _State, site: int) -> tuple[Event, _State, str]:
        message = self._nodes[state.nodes[site]].queue[0]
        index = self._step(site, state.nodes[site], ("take", message))
        state = state._replace(nodes=_put(state.nodes, site, index))
        return (Take(site, message), *self._judge(state, site, self._nodes[index].taken))

    # The machine at one site, computed once per local history

    def _root(self, site: int) -> int:
        view = View.of(*map(letter, range(self.sites)))
        stack = Stack(self.build(), site, view, rng=Still(), beneath=("reliable",))
        self._flags = sees_concurrency(stack)
        return self._add(stack, [], (), [])

    def _step(self, site: int, node: int, event: tuple[str, int | bytes]) -> int:
        key = (node, (site, event))
        known = self._children.get(key)
        if known is None:
            known = self._children[key] = self._compute(self._nodes[node], event)
        return known

    def _compute(self, node: _Node, event: tuple[str, int | bytes]) -> int:
        stack, queue = pickle.loads(node.frozen)
        taken: list[tuple[int, bool]] = []
        match event:
            case ("send", int(message)):
                stack.send(message.to_bytes(HEADER, "big"), now=0.0)
            case ("arrive", bytes(data)):
                stack.receive([(data, None)], now=0.0)
            case ("take", _):
                taken.append(_begin(stack, queue))
        ready = stack.ready()
        queue.extend(ready.deliver)
        if not self.queues:
            while queue:
                taken.append(_begin(stack, queue))
        out = []
        for address, datagram in ready.send:
            data = joined(datagram)
            out += [(member, data) for member in (stack.others if address is None else (address,))]
        return self._add(stack, queue, tuple(out), taken)

    def _add(
        self,
        stack: Stack,
        queue: list[Batch],
        out: tuple[tuple[int, bytes], ...],
        taken: list[tuple[int, bool]],
    ) -> int:
        waiting = tuple(number_of(batch.payloads[0]) for batch in queue)
        self._nodes.append(_Node(pickle.dumps((stack, queue)), out, tuple(taken), waiting))
        return len(self._nodes) - 1

    # The judge, by explicit sets

    def _judge(self, state: _State, site: int, taken: tuple[tuple[int, bool], ...]) -> tuple[_State, str]:
        known, seen = state.known[site], state.seen[site]
        for message, flag in taken:
            bit, causes = 1 << message, state.causes[message]
            if seen & bit:
                return state, f"{letter(site)} took {message} twice"
            if causes & ~seen:
                return state, f"{letter(site)} took {message} before its cause"
            if self._flags and bool(seen & ~causes) != flag:
                return state, f"{letter(site)} took {message} with flag {flag}"
            known |= bit | causes
            seen |= bit
        after = state._replace(known=_put(state.known, site, known), seen=_put(state.seen, site, seen))
        return after, ""

    def _judge_end(self, state: _State, path: tuple[Event, ...]) -> None:
        self.report.schedules += 1
        everything = (2 << self.messages) - 2
        for site in range(self.sites):
            if state.seen[site] != everything:
                self._blame(path, f"{letter(site)} holds something for ever")

    def _blame(self, path: tuple[Event, ...], why: str) -> None:
        self.report.violations += 1
        if self.report.first is None:
            self.report.first = Schedule(path)
            self.report.why = why


def _begin(stack: Stack, queue: list[Batch]) -> tuple[int, bool]:
    batch = queue.pop(0)
    stack.taken([batch.packet], now=0.0)
    return number_of(batch.payloads[0]), batch.concurrent


def _put(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])
