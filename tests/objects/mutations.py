"""The rules of OBG, each broken on purpose: what the judge must notice."""

from bisect import insort
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple

import pytest

from inga.lab.obg.printed import PrintedIncoming, PrintedQueue, id_of, is_heard
from inga.model.invocation import Message
from inga.objects.calls import Calls
from inga.objects.early import Early
from inga.objects.endings import Endings
from inga.objects.engine import Engine
from inga.objects.failures import Failures
from inga.objects.incoming import Incoming
from inga.objects.instance import Instance
from inga.objects.links import BELOW_NOTHING, Links
from inga.objects.order import Precedence, precedes
from inga.objects.queue import Queue, QueueEntry
from inga.objects.speech import Speech
from inga.objects.state import State

from .generate import Generator, Replicated, played

Patch = pytest.MonkeyPatch

LIMIT = 800.0
"""Units of virtual time; unchanged, all runs end within it, those of replicated objects within four times as much."""


def answers_wait_for_nothing(patch: Patch) -> None:
    patch.setattr(Calls, "_is_next", lambda self, instance, response: True)


def nothing_is_unclear(patch: Patch) -> None:
    patch.setattr(Links, "frontier_of", lambda self, members: BELOW_NOTHING)


def only_the_sender_makes_clear(patch: Patch) -> None:
    """As printed, but without a gap."""

    def start_one(self: Incoming) -> bool:
        for hosted in self._local.hosted.values():
            _release(hosted.queue, lambda entry: is_heard(self._local, entry))
            entry = hosted.queue.next_startable((0, 0))
            if entry is not None:
                self._dequeued(entry)
                self._start(hosted, entry)
                return True
        return False

    patch.setattr(Incoming, "start_one", start_one)


def nobody_dies(patch: Patch) -> None:
    patch.setattr(Incoming, "let_die", lambda self: None)


def ancestors_block(patch: Patch) -> None:
    """A call back into the object of an ancestor waits for it. It does not die of it either: nothing older waits."""

    def runs(self: Queue, entry: QueueEntry) -> Instance | None:
        for op in self.relation.of(entry.call.op):
            for instance in self._running.get(op, ()):
                return instance
        return None

    patch.setattr(Queue, "_runs", runs)


def identifiers_are_keys(patch: Patch) -> None:
    """Requests are first by the identifier of their send; what is clear is still decided by stamps."""

    def add(self: Queue, entry: QueueEntry) -> None:
        stamp, entry.key = entry.key, id_of(entry.message.id)  # type: ignore[assignment]
        entry.out = False
        self._size += 1
        insort(self._waiting.setdefault(entry.call.op, []), entry)
        heappush(self._unclear, (stamp, entry))

    patch.setattr(Queue, "add", add)


def as_printed(patch: Patch) -> None:
    """Only the top of the queue is looked at; it is stable once its sender has shown something later."""
    patch.setattr("inga.objects.hosted.Queue", PrintedQueue)
    patch.setattr(Incoming, "start_one", PrintedIncoming.start_one)


def as_printed_and_nobody_dies(patch: Patch) -> None:
    as_printed(patch)
    nobody_dies(patch)


def answers_wait_for_requests(patch: Patch) -> None:
    """The order of OBO taken literally: a response comes after every request that precedes it."""
    is_next = Calls._is_next

    def literal(self: Calls, instance: Instance, response: Message) -> bool:
        queue = self._local.hosted[instance.place].queue
        waits = any(entry.undoes is None and precedes(entry.message, response) for entry in queue)
        return not waits and is_next(self, instance, response)

    def settle(self: Engine) -> None:
        self.links.moved = True
        original(self)

    original = Engine._settle
    patch.setattr(Calls, "_is_next", literal)
    patch.setattr(Engine, "_settle", settle)


def aborts_leave_a_past(patch: Patch) -> None:
    def abort(self: Precedence) -> None:
        self.running -= 1
        for past in self.past.values():
            past[self.place] = self.ev

    patch.setattr(Precedence, "abort", abort)


def nothing_is_merged(patch: Patch) -> None:
    """What an instance gets leaves no trace in its vector."""
    patch.setattr(Precedence, "deliver", lambda self, instance, message: None)


def vectors_run_ahead(patch: Patch) -> None:
    """A vector counts a message that has not been sent."""
    right = Precedence.deliver

    def deliver(self: Precedence, instance: Instance, message: Message) -> None:
        right(self, instance, message)
        instance.vector[message.src] += 1

    patch.setattr(Precedence, "deliver", deliver)


def commits_leave_no_past(patch: Patch) -> None:
    """What follows an instance that it conflicts with does not come after it."""

    def commit(self: Precedence, instance: Instance, op: str) -> None:
        self.running -= 1

    patch.setattr(Precedence, "commit", commit)


def failures_commit(patch: Patch) -> None:
    """A method whose call was aborted, and which fails by that, commits all the same."""
    patch.setattr(Endings, "fail", lambda self, instance, *_: self.finish(instance, None))


def nothing_is_handed_round(patch: Patch) -> None:
    """A crash without a flush: what a member held of the one that is gone stays there."""
    patch.setattr(Failures, "take_flush", _take_flush_without_messages)


def _take_flush_without_messages(self: Failures, flush: Any) -> None:
    self._flushed.setdefault(flush.member, set()).update(flush.suspects)
    self._try_install()


def _release(queue: Queue, is_clear: Callable[[QueueEntry], bool]) -> None:
    """Look at those that are clear by another rule."""
    rest = []
    while queue._unclear:
        key, entry = heappop(queue._unclear)
        if is_clear(entry):
            queue._look.append(entry)
        else:
            rest.append((key, entry))
    for each in rest:
        heappush(queue._unclear, each)


def every_copy_speaks(patch: Patch) -> None:
    patch.setattr(Speech, "_speaks", lambda self, instance: True)


def nothing_comes_early(patch: Patch) -> None:
    """As if a copy that is behind had no use for the answer."""
    patch.setattr(Early, "keep", lambda self, hosted, response: None)


def copies_take_the_first(patch: Patch) -> None:
    """Of alternatives, each copy goes on with the one it hears of first."""

    def winner(self: Calls, instance: Instance, alternatives: Any) -> Any:
        left = (call for call in alternatives.calls if not call.dropped)
        return next((call for call in left if not call.missing), None)

    patch.setattr(Calls, "_winner", winner)


def nobody_takes_over(patch: Patch) -> None:
    """When the speaker is gone, nobody says what it had not said."""
    patch.setattr(Speech, "_speak_up", lambda self, said: None)


def nothing_is_repeated(patch: Patch) -> None:
    """What is lost stays lost: nobody asks for it, and nobody sends it again."""
    patch.setattr(Links, "_ask", lambda self, *given: None)
    patch.setattr(Links, "_repair", lambda self, *given: None)


def aborts_undo_nothing(patch: Patch) -> None:
    """What was called by somebody that aborts keeps its effect."""
    patch.setattr(State, "undo", State.final)


class Mutation(NamedTuple):
    """A change of the rules, and where it shows."""

    change: Callable[[Patch], None]
    broken: tuple[str, ...]
    crash: bool = False
    generator: type[Generator] = Generator

    def faults(self, seed: int) -> set[str]:
        """The invariants that a run breaks."""
        limit = LIMIT if self.generator is Generator else 4 * LIMIT
        faults = played(seed, crash=self.crash, limit=limit, generator=self.generator)[1]
        return {fault[0] for fault in faults}


MUTATIONS = {
    "P2 removed": Mutation(answers_wait_for_nothing, ("I4",)),
    "D2 removed": Mutation(nothing_is_unclear, ("I1", "I2", "I3")),
    "D2 only for the sender": Mutation(only_the_sender_makes_clear, ("I1", "I2", "I3")),
    "X3 removed": Mutation(nobody_dies, ("I8",)),
    "X1 removed": Mutation(ancestors_block, ("I8",)),
    "key = printed id": Mutation(identifiers_are_keys, ("I1", "I2", "I3")),
    "as printed": Mutation(as_printed, ("I1", "I2", "I3", "I8")),
    "as printed, nobody dies": Mutation(as_printed_and_nobody_dies, ("I1", "I2", "I3", "I8")),
    "responses wait for requests": Mutation(answers_wait_for_requests, ("I8",)),
    "V6 also at abort": Mutation(aborts_leave_a_past, ("I13",)),
    "V5 removed": Mutation(nothing_is_merged, ("I6",)),
    "V6 removed": Mutation(commits_leave_no_past, ("I6",)),
    "vectors run ahead": Mutation(vectors_run_ahead, ("I6",)),
    "failures commit": Mutation(failures_commit, ("I9",)),
    "nothing is repeated": Mutation(nothing_is_repeated, ("I8",)),
    "aborts undo nothing": Mutation(aborts_undo_nothing, ("I9", "I10")),
    "F2 removed": Mutation(nothing_is_handed_round, ("I12",), crash=True),
    "every copy speaks": Mutation(every_copy_speaks, ("copies", "I8"), generator=Replicated),
    "nothing comes early": Mutation(nothing_comes_early, ("I8",), generator=Replicated),
    "copies take the first": Mutation(copies_take_the_first, ("copies", "I8", "I9"), generator=Replicated),
    "nobody takes over": Mutation(nobody_takes_over, ("copies", "I8"), True, Replicated),
}
"""By name: the rows of the specification's table, then our own rules."""
