"""Everything one member does for the objects it has: order, invocation, commit and abort, members that fail.

Time and packets go in, actions come out: `Send` these, `Run` that instance, `Resume` another one. Bodies are not
run here; `inga.objects.invoke.Host` does that, and is what drivers use.

    request     waits until it is clear, first and ready, or starts at once if it conflicts with nothing
    response    is taken by the instance that waits for it, after those that precede it
    commit      the effects are there now; whoever invoked it may still undo it, until the root commits
    abort       no effects, nor of anything it called: what has committed is undone, in its own place in the order
    die         a request that could wait for ever ends with an abort: the younger of two gives way

Copies of a replicated object that run the same instance make the same calls. The first of them that is alive, the
*speaker*, sends them; the answers go to all. See docs/protocols/obg.md, which has all the rules.
"""

from collections.abc import Iterable

from inga.model.invocation import (
    ABORT,
    ASYNCHRONOUS,
    COMMIT,
    DEADLOCK,
    GONE,
    ONE_WAY,
    ORPHAN,
    REQUESTS,
    RESPONSE,
    SYNCHRONOUS,
    Announce,
    Flush,
    Heartbeat,
    Message,
    Nack,
    Spoken,
)
from inga.objects.actions import Action, Ended, Observer, Resume, Run, Send
from inga.objects.hosted import ENDED, Hosted, Record, Unspoken, base_of, remember
from inga.objects.instance import ABORTED, RUNNING, Instance
from inga.objects.links import members_of
from inga.objects.options import Options
from inga.objects.order import call_of, precedes
from inga.objects.queue import Entry, Queue
from inga.objects.work import Work

__all__ = ["Action", "Ended", "Engine", "Observer", "Options", "Resume", "Run", "Send"]

AHEAD_MAX = 1 << 16
"""Messages of a view that is not installed here yet."""


class Engine(Work):
    """One member's part in the objects of its group."""

    # From the network and the clock

    def receive(self, now: float, packet: Spoken) -> list[Action]:
        """Something came; whatever it is, nothing is raised."""
        self.now = now
        self._hear(packet)
        return self.actions(now)

    def tick(self, now: float) -> list[Action]:
        """Time has passed: heartbeats, repair, deaths."""
        self.now = now
        if now >= self._tick_at:
            self.links.tick(now, self.awaited() if self.options.quiet else ())
            self._let_die()
            is_patient = self.options.quiet and all(each.queue.oldest() is None for each in self._queues)
            self._tick_at = self.links.next_tick(now) if is_patient else now + self.options.delta
        return self.actions(now)

    def suspect(self, now: float, member: int) -> list[Action]:
        """A member is taken for dead: hear nothing of it any more, and hand round what it said."""
        self.now = now
        if member in self.links.peers and member not in self._suspects:
            self._suspects.add(member)
            self._flush()
        return self.actions(now)

    def view(self, now: float, members: Iterable[int]) -> list[Action]:
        """Only these are left, says whoever agrees on it."""
        self.now = now
        gone = set(self.links.peers) - set(members) - self._suspects
        if gone:
            self._suspects |= gone
            self._flush()
        return self.actions(now)

    def close(self) -> list[Instance]:
        """Nothing goes on: forget what waits and what is on its way. Gives what ran."""
        running = list(self._running)
        for instance in running:
            instance.status = ABORTED
        for hosted in self.hosted.values():
            hosted.queue = Queue(hosted.order.relation)
        for each in (self._running, self._holding, self._queues, self._awaiting, self.links.peers):
            each.clear()
        for left in (self._inbox, self._answered, self._lost, self._out, self._ahead):
            left.clear()
        self._suspects.clear()
        self.links.held = self.links.own = 0
        self._rearm()
        return running

    def actions(self, now: float) -> list[Action]:
        """What is to be done since the last time."""
        self.now = now
        self._settle()
        self._rearm()
        out, self._out = self._out, []
        return out

    @property
    def wake(self) -> float | None:
        """When `tick` is wanted."""
        return self._tick_at if self._is_awake else None

    # Questions

    def precedes(self, one: Message, other: Message) -> bool:
        """Whether `one` may precede `other` significantly: no is certain."""
        return precedes(one, other)

    def blocked(self) -> list[tuple[int, Message, list[Instance]]]:
        """Requests that wait, where, and the running instances they wait for."""
        return [
            (hosted.place, entry.message, sorted(blockers, key=lambda each: each.start))
            for hosted in self.hosted.values()
            for entry, blockers in hosted.queue.blockers().items()
        ]

    @property
    def settled(self) -> bool:
        """Whether nothing runs here, and nothing of ours waits or is on its way. There may always be more of others'
        that waits."""
        return not (self._running or self._inbox or self.links.unacknowledged or self.links.own)

    @property
    def idle(self) -> bool:
        """Whether nothing at all is under way here."""
        return self.settled and not (self._holding or self.queued)

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return sum(len(hosted.queue) for hosted in self._queues)

    @property
    def undoable(self) -> int:
        """Committed instances that somebody may still undo."""
        return sum(len(hosted.known) + len(hosted.cancelled) for hosted in self.hosted.values())

    # Receipt

    def _hear(self, packet: Spoken) -> None:
        member = self.roster.member_of[packet.src] if isinstance(packet, Message) else packet.member
        if member not in self.links.peers or member in self._suspects:
            self.counts["ignored"] += 1
            return
        self._take_from(member, packet)

    def _take_from(self, member: int, packet: Spoken) -> None:
        match packet:
            case Message() if packet.view > self.gone:
                # It may build on what is still to be handed round. What is too much is repaired, or never was.
                if len(self._ahead) < AHEAD_MAX:
                    self._ahead.append(packet)
            case Message():
                self.clock.see(packet.ts)
                if self.links.take(self.now, member, packet):
                    self._dispatch(packet)
            case Heartbeat():
                self.clock.see(packet.ts)
                self.links.hear(self.now, packet)
            case Announce():
                self.clock.see(packet.ts)
                self.links.show(packet.ts, packet.dst)
            case Nack():
                self.links.asked(self.now, packet)
            case Flush():
                self.clock.see(packet.ts)
                if self.links.take(self.now, member, packet):
                    self._take_flush(packet)

    def _dispatch(self, message: Message) -> None:
        """Hand a message to each place of ours that it is for."""
        if self.options.announce and message.kind not in (RESPONSE, COMMIT) and self._is_ordered(message):
            self.links.show(message.ts, members_of(self.roster, message.dst))
        for place in message.dst:
            hosted = self.hosted.get(place)
            if hosted is None:
                continue
            if message.kind in REQUESTS:
                self._requested(hosted, message)
            elif message.kind == RESPONSE:
                self._answer(place, message)
            elif message.kind == ABORT:
                self._told_to_abort(hosted, message)
            else:
                self._told_to_commit(hosted, message)

    def _requested(self, hosted: Hosted, request: Message) -> None:
        if request.call in hosted.cancelled:
            del hosted.cancelled[request.call]
            self._forget_early(hosted, base_of(request, hosted.object))
            self._note_at("cancel", hosted.place, request)
            return
        if request.call in hosted.known:
            return  # another speaker has said the same; all copies will be answered
        if request.call in hosted.seen:
            self._answer_again(hosted, request)
            return
        if self.roster.is_replicated[request.src]:
            remember(hosted.seen, request.call)
        self._note_at("receive", hosted.place, request)
        entry = Entry(request, call_of(request), request.path, self.now)
        if self._is_orphan(request):
            self._give_up_entry(hosted, entry)
        elif hosted.order.relation.of(request.op):
            self._enqueue(hosted, entry)
            if request.kind != ONE_WAY:
                hosted.known[request.call] = entry
        else:
            self._start(hosted, entry)

    def _answer_again(self, hosted: Hosted, request: Message) -> None:
        """A copy asks what another has asked before it, and is not aware that this has been told the end of it."""
        if request.kind == ONE_WAY:
            return
        done = hosted.seen[request.call]
        if done is None:
            self._answer_for(hosted, request, reason=ORPHAN, text="another copy has taken it back")
        else:
            self._answer_for(hosted, request, value=done.result)

    # Progress

    def _settle(self) -> None:
        """Let everything happen that can."""
        while True:
            while self._inbox:
                self._dispatch(self._inbox.popleft())
            while self._answered:
                self._answer(*self._answered.popleft())
            while self._lost:
                instance, call = self._lost.popleft()
                if instance.status == RUNNING and not call.dropped:
                    text = f"{call.request[0]}: nobody is left who could do it"
                    self._branch_failed(instance, call, GONE, text)
            if self._holding and self.links.moved:
                self.links.moved = False
                for instance in list(self._holding):
                    self._take_held(instance)
                continue
            if not self._start_one() and not self._inbox:
                return

    def _start_one(self) -> bool:
        for hosted in list(self._queues):
            entry = hosted.queue.next_startable(self.links.frontier_of(hosted.invoking))
            if not len(hosted.queue):
                del self._queues[hosted]
            if entry is not None:
                self._dequeued(entry)
                self._start(hosted, entry)
                return True
        return False

    def _rearm(self) -> None:
        """A quiet group sleeps while nothing is under way; what wakes it has a delta to be done with."""
        was_awake = self._is_awake
        self._is_awake = not self.options.quiet or self.links.is_busy or self._is_waiting
        if self._is_awake and not was_awake:
            self._tick_at = self.now + self.options.delta
        elif self.links.stirred:
            self._tick_at = min(self._tick_at, self.now + self.options.delta)
        self.links.stirred = False

    @property
    def _is_waiting(self) -> bool:
        """Whether something here waits for others' clocks or for its death."""
        return bool(self._holding or self._suspects or self._queues)

    def awaited(self) -> set[int]:
        """Members whose clocks or messages something here waits for."""
        members: set[int] = set()
        for hosted in self._queues:
            key = hosted.queue.unclear
            if key is not None:
                members.update(self.links.laggards(key))
        if self._holding:
            members.update(self.links.peers)
        return members

    # Deadlock

    def _let_die(self) -> None:
        """Requests that have waited long enough for something older that waits itself give way."""
        for hosted in list(self._queues):
            oldest = hosted.queue.oldest()
            if oldest is None:
                continue
            mortal = {
                entry
                for entry in hosted.queue
                if entry.message.holds
                and entry.record is None
                and entry.message.kind in (SYNCHRONOUS, ASYNCHRONOUS)
                and self.now - entry.entered >= self.options.patience
                and oldest < entry.path
            }
            while (entry := self._doomed(hosted, mortal)) is not None:
                mortal.discard(entry)
                self._die(hosted, entry)

    def _doomed(self, hosted: Hosted, mortal: set[Entry]) -> Entry | None:
        """One of these that waits for something older that waits itself."""
        if mortal:
            for entry, blockers in hosted.queue.blockers().items():
                if entry in mortal and any(each.unanswered and each.path < entry.path for each in blockers):
                    return entry
        return None

    def _die(self, hosted: Hosted, entry: Entry) -> None:
        self.counts["died"] += 1
        self._refuse(
            hosted, entry, DEADLOCK, f"{entry.call.op} gave way to something older, to avoid a deadlock"
        )

    def _refuse(self, hosted: Hosted, entry: Entry, reason: str, text: str) -> None:
        """Answer a request without running it."""
        request = entry.message
        hosted.queue.remove(entry)
        self._dequeued(entry)
        hosted.known[request.call] = ENDED
        self._forget_early(hosted, base_of(request, hosted.object))
        self._note_at("die", hosted.place, request)
        self._answer_for(hosted, request, reason=reason, text=text)

    # Members that are gone

    def _flush(self) -> None:
        """Hand round what the suspects said to more than one."""
        suspects = tuple(sorted(self._suspects))
        others = [member for member in self.links.peers if member not in self._suspects]
        held = tuple(message for suspect in suspects for message in self.links.peers[suspect].kept)
        flush = Flush(self.me, self.clock.next(), self.links.number(others), suspects, held)
        self.links.transmit(self.now, flush)
        self._try_install()

    def _take_flush(self, flush: Flush) -> None:
        self._flushed.setdefault(flush.member, set()).update(flush.suspects)
        for message in flush.messages:
            member = self.roster.member_of[message.src]
            if (
                member in flush.suspects
                and any(to == self.me for to, _ in message.sq)
                and member in self.links.peers
            ):
                self._take_from(member, message)
        self._try_install()

    def _try_install(self) -> None:
        """Once everybody left has flushed, nothing of the suspects can still come."""
        suspects = self._suspects
        others = [member for member in self.links.peers if member not in suspects]
        # Members that leave together may be handed round one by one elsewhere.
        if not suspects or not all(suspects <= self._flushed.get(member, set()) for member in others):
            return
        gone, self._suspects = self._suspects, set()
        self._flushed = {
            m: rest for m, said in self._flushed.items() if m not in gone and (rest := said - gone)
        }
        self._settle()  # what was handed round counts as received before they left
        for member in sorted(gone):
            self.links.remove(member)
            self.alive.discard(member)
        self.gone += len(gone)
        self._bury()
        ahead, self._ahead = self._ahead, []
        for message in ahead:
            self._hear(message)

    def _bury(self) -> None:
        """End what depends on members that are gone, and say what their copies of objects had to say."""
        for instance in list(self._holding):
            self._take_held(instance)
        for hosted in self.hosted.values():
            for entry in list(hosted.queue):
                if entry.record is None and not entry.out and self._is_orphan(entry.message):
                    self._give_up_entry(hosted, entry)
        for instance in list(self._running):
            if instance.status == RUNNING:
                self._mourn(instance)
        for hosted in self.hosted.values():
            for record in [each for each in hosted.known.values() if isinstance(each, Record)]:
                self._inherit(hosted, record)
            self._take_over(hosted)

    def _take_over(self, hosted: Hosted) -> None:
        """Do what other copies of our object leave undone; where it is not for us, it is remembered again."""
        unborn = [base for base in hosted.early if base not in hosted.bases and self._is_lost(hosted, base)]
        answers = [response for base in unborn for response in hosted.early.pop(base)]
        answers += hosted.disowned.values()
        hosted.disowned.clear()
        for response in answers:
            self._disown(hosted, response)
        unspoken = list(hosted.unspoken)
        hosted.unspoken.clear()
        for said in unspoken:
            self._speak_up(said)

    def _mourn(self, instance: Instance) -> None:
        """End an instance whose invoker is gone, or somebody it called of whom no copy is left."""
        request = instance.request
        if request is not None and instance.undoes is None and self._is_orphan(request):
            respond = self._has_invoker(request)
            self._abort(instance, ORPHAN, "a member that called it is gone", respond=respond)
            return
        for call in list(instance.calls.values()):
            if instance.status != RUNNING:
                return
            alive = self._alive_of(call.dst)
            if call.dropped or not call.missing.difference(alive):
                continue
            if self._objects(alive) != self._objects(call.dst):
                self._branch_failed(
                    instance, call, GONE, f"{call.request[0]}: a member that it called is gone"
                )
            else:
                call.missing.intersection_update(alive)
        if instance.status == RUNNING:
            self._look_at_wait(instance)
            self._take_held(instance)
            self._try_commit(instance)

    def _speak_up(self, said: Unspoken) -> None:
        """Say what was left to a copy that is gone; whoever has heard it already passes over it."""
        instance, kind, dst, rest = said
        if kind in (SYNCHRONOUS, ASYNCHRONOUS):
            call = instance.calls[rest["call"]]
            if instance.status != RUNNING or call.dropped or not call.missing:
                return
        self._say_once(instance, kind, dst, **rest)

    def _give_up_entry(self, hosted: Hosted, entry: Entry) -> None:
        if self._has_invoker(entry.message):
            self._refuse(hosted, entry, ORPHAN, "a member that called it is gone")
        else:
            self._cancel(hosted, entry)

    def _inherit(self, hosted: Hosted, record: Record) -> None:
        """A committed instance whose invoker is gone, without a word that it has committed, is undone: other copies
        of the object may not have got as far. There is no message to say where, so it comes before all that waits."""
        request = record.instance.request
        assert request is not None
        if not record.undoing and not self._has_invoker(request):
            self._undo(hosted, record, request)

    def _is_orphan(self, request: Message) -> bool:
        """Whether some instance in its lineage has no copy left."""
        return len(self.alive) < len(self.roster.members) and not all(map(self._alive_of, request.hosts))

    def _has_invoker(self, request: Message) -> bool:
        return bool(request.hosts) and bool(self._alive_of(request.hosts[-1]))
