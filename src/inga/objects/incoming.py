"""The requests to the places of one member, until no further message about them can arrive.

A request whose invoker waits for the answer has a record, `HostedCall`, which is in one of these states:

    waiting     in the queue           start -> running      refused -> refused      abort -> gone
    running     an instance of ours    commit -> done        abort of its own -> refused      abort -> gone
    done        has committed          abort -> undoing      commit -> gone
    undoing     its undo waits or runs, and cannot fail: then it is gone
    refused     was answered with an abort; its invoker has not aborted it yet       abort -> gone

where `commit` and `abort` are messages of the invoker, and *gone* means that there is no record any more. One-way
requests wait and run without a record.

A request waits until it is clear, first and ready, or starts at once if it conflicts with nothing. One that could
wait for ever *dies*: of two that wait for each other the younger gives way.
"""

from inga.model.compiled import mypyc_attr
from inga.model.invocation import (
    ASYNCHRONOUS,
    CHILD,
    DEADLOCK,
    ONE_WAY,
    ORPHAN,
    SYNCHRONOUS,
    Message,
)
from inga.objects.actions import Run
from inga.objects.early import Early
from inga.objects.endings import Endings
from inga.objects.hosted import Hosted, HostedCall, Stage, base_of, remember
from inga.objects.local import Local
from inga.objects.order import call_of
from inga.objects.queue import QueueEntry
from inga.objects.speech import Speech
from inga.objects.window import weight


@mypyc_attr(allow_interpreted_subclasses=True)
class Incoming:
    """All requests to one member's places."""

    def __init__(self, local: Local, speech: Speech, early: Early, endings: Endings) -> None:
        self._local = local
        self._speech = speech
        self._early = early
        self._endings = endings
        self.queues: dict[Hosted, None] = {}  # places where requests wait

    # Requests

    def take(self, hosted: Hosted, request: Message) -> None:
        """Handle an arriving request."""
        local = self._local
        if request.call in hosted.cancelled:
            canceller = hosted.cancelled.pop(request.call)
            self._remember(hosted, request)
            self._early.forget(hosted, base_of(request, hosted.object))
            local.note_at("cancel", hosted.place, request)
            if request.src != canceller:
                self._answer_again(hosted, request)
            return
        if request.call in hosted.asked:
            return  # another speaker has sent the same request; the answer goes to all copies
        if request.call in hosted.seen:
            self._answer_again(hosted, request)
            return
        self._remember(hosted, request)
        local.note_at("receive", hosted.place, request)
        entry = QueueEntry(request, call_of(request), request.path, local.now)
        if local.is_orphan(request):
            self.give_up(hosted, entry)
        elif hosted.order.relation.of(request.op):
            self._enqueue(hosted, entry)
            if request.kind != ONE_WAY:
                hosted.asked[request.call] = HostedCall(Stage.WAITING, entry=entry)
        else:
            self._start(hosted, entry)

    def _remember(self, hosted: Hosted, request: Message) -> None:
        """Remember the call of a replicated invoker: another copy of it may repeat the request, or the abort of it."""
        if self._local.roster.is_replicated[request.src]:
            remember(hosted.seen, request.call)

    def give_up(self, hosted: Hosted, entry: QueueEntry) -> None:
        """Some caller in its lineage has no copy left: refuse the request if the invoker itself has one, else drop it."""
        if self._local.has_invoker(entry.message):
            self._refuse(hosted, entry, ORPHAN, "a member that called it is gone")
        else:
            self._cancel(hosted, entry)

    def _answer_again(self, hosted: Hosted, request: Message) -> None:
        """Answer a call again: a copy of the invoker repeats it, after it has ended here, or was aborted before it arrived."""
        if request.kind == ONE_WAY:
            return
        done = hosted.seen.get(request.call)
        if done is None:
            self._speech.answer_for(hosted, request, reason=ORPHAN, text="another copy has taken it back")
        else:
            self._speech.answer_for(hosted, request, value=done.result)

    def _refuse(self, hosted: Hosted, entry: QueueEntry, reason: str, text: str) -> None:
        """Answer a request with an abort, without running it."""
        request = entry.message
        hosted.queue.remove(entry)
        self._dequeued(entry)
        hosted.asked[request.call] = HostedCall(Stage.REFUSED)
        self._early.forget(hosted, base_of(request, hosted.object))
        self._local.note_at("die", hosted.place, request)
        self._speech.answer_for(hosted, request, reason=reason, text=text)

    def _cancel(self, hosted: Hosted, entry: QueueEntry) -> None:
        """Drop a request without an answer."""
        hosted.queue.remove(entry)
        self._dequeued(entry)
        hosted.asked.pop(entry.message.call, None)
        self._early.forget(hosted, base_of(entry.message, hosted.object))
        self._local.note_at("cancel", hosted.place, entry.message)

    # Messages of the invoker

    def told_to_commit(self, hosted: Hosted, message: Message) -> None:
        for number in message.args:
            asked = hosted.asked.get((*message.call, number))
            if asked is not None and asked.stage is Stage.DONE:
                self._endings.final(hosted, asked.run)

    def told_to_abort(self, hosted: Hosted, message: Message) -> None:
        asked = hosted.asked.get(message.call)
        if asked is None:
            if message.call not in hosted.seen:
                remember(hosted.cancelled, message.call, message.src)
            return
        match asked.stage:
            case Stage.WAITING:
                self._cancel(hosted, asked.entry)
            case Stage.RUNNING:
                self._endings.abort(asked.run, CHILD, "its invoker has aborted", respond=False)
            case Stage.DONE:
                self.undo(hosted, asked, message)
            case Stage.REFUSED:
                del hosted.asked[message.call]

    def undo(self, hosted: Hosted, asked: HostedCall, message: Message) -> None:
        """Undo a committed instance, at the place that the abort message has in the order."""
        asked.stage = Stage.UNDOING
        instance = asked.run
        entry = QueueEntry(message, instance.call, instance.path, self._local.now, undoes=instance)
        if hosted.order.relation.of(instance.call.op):
            self._enqueue(hosted, entry)
        else:
            self._start(hosted, entry)

    # Starting instances

    def start_one(self) -> bool:
        """Start one of the waiting requests, if any may start."""
        frontier_of = self._local.links.frontier_of
        for hosted in list(self.queues):
            entry = hosted.queue.next_startable(frontier_of(hosted.invoking))
            if not len(hosted.queue):
                del self.queues[hosted]
            if entry is not None:
                self._dequeued(entry)
                self._start(hosted, entry)
                return True
        return False

    def unclear(self) -> set[int]:
        """The members for whose clocks requests here wait."""
        members: set[int] = set()
        for hosted in self.queues:
            key = hosted.queue.unclear
            if key is not None:
                members.update(self._local.links.laggards(key))
        return members

    def _start(self, hosted: Hosted, entry: QueueEntry) -> None:
        local, request = self._local, entry.message
        base = base_of(request, hosted.object)
        path = (*entry.path, hosted.object) if entry.undoes is None else entry.path
        instance = hosted.order.start(request, entry.call.op, path, base)
        instance.call = entry.call
        local.running[instance] = None
        hosted.queue.started(instance, entry)
        if entry.undoes is not None:
            instance.undoes = entry.undoes
            local.counts["undone"] += 1
            local.note("undo", instance, request)
        else:
            # The places that run the same instance are those of the same object.
            object_of = local.roster.object_of
            instance.copies = tuple(place for place in request.dst if object_of[place] == hosted.object)
            instance.hosts = (*request.hosts, instance.copies)
            instance.holds = request.holds or bool(hosted.order.relation.of(request.op))
            if len(instance.copies) > 1:
                hosted.bases[base] = instance
            if request.kind != ONE_WAY:
                hosted.asked[request.call] = HostedCall(Stage.RUNNING, instance=instance)
            local.counts["started"] += 1
            local.note("start", instance, request)
        local.out.append(Run(instance))

    def _enqueue(self, hosted: Hosted, entry: QueueEntry) -> None:
        hosted.queue.add(entry)
        self.queues[hosted] = None
        entry.size = weight(entry.message)
        self._local.links.wait(self._local.roster.member_of[entry.message.src], entry.size)

    def _dequeued(self, entry: QueueEntry) -> None:
        """The bytes of the request no longer count as waiting, if they did."""
        self._local.links.wait(self._local.roster.member_of[entry.message.src], -entry.size)
        entry.size = 0

    # Deadlock

    def let_die(self) -> None:
        """Give up requests that have waited long enough for an older instance that waits for an answer itself."""
        for hosted in list(self.queues):
            oldest = hosted.queue.oldest()
            if oldest is None:
                continue
            mortal = {entry for entry in hosted.queue if oldest < entry.path and self._is_mortal(entry)}
            while (entry := _doomed(hosted, mortal)) is not None:
                mortal.discard(entry)
                self._local.counts["died"] += 1
                text = f"{entry.call.op} gave way to something older, to avoid a deadlock"
                self._refuse(hosted, entry, DEADLOCK, text)

    def _is_mortal(self, entry: QueueEntry) -> bool:
        """Whether the request may be given up: an instance in its lineage can block others, and it has waited long enough."""
        return (
            entry.message.holds
            and entry.undoes is None
            and entry.message.kind in (SYNCHRONOUS, ASYNCHRONOUS)
            and self._local.now - entry.entered >= self._local.options.patience
        )


def _doomed(hosted: Hosted, mortal: set[QueueEntry]) -> QueueEntry | None:
    """One of these requests that waits for an older instance which itself waits for an answer, if there is any."""
    if mortal:
        for entry, blockers in hosted.queue.blockers().items():
            if entry in mortal and any(each.unanswered and each.path < entry.path for each in blockers):
                return entry
    return None
