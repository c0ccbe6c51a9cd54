"""Members that are gone: their last messages are handed round, then the others go on without them.

    suspect     ignore a member from now on; send all others the messages of it that went to several members
    install     once all members that are left have done so, no message of it can still come: do not wait for its clock
    bury        end the instances that depended on it; other copies of its objects send what it still had to send

Two members that leave may be removed together here, and one after the other elsewhere. So every later message says how
many members are gone, and waits at receivers that have removed fewer.
"""

from collections.abc import Callable, Iterable, Set

from inga.model.compiled import mypyc_attr
from inga.model.invocation import ORPHAN, Flush, Message
from inga.objects.calls import Calls
from inga.objects.early import Early
from inga.objects.endings import Endings
from inga.objects.hosted import Stage
from inga.objects.incoming import Incoming
from inga.objects.instance import RUNNING, Instance
from inga.objects.local import Local
from inga.objects.speech import Speech

AHEAD_MAX = 1 << 16
"""Messages kept from members that have removed more members than we have."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Failures:
    """The members that are gone or suspected, as one member sees it."""

    def __init__(
        self,
        local: Local,
        speech: Speech,
        early: Early,
        calls: Calls,
        endings: Endings,
        incoming: Incoming,
        *,
        hear: Callable[[int, Message], None],
        settle: Callable[[], None],
    ) -> None:
        """`hear` takes a message as if it had come from that member; `settle` lets everything happen that can."""
        self._local = local
        self._speech = speech
        self._early = early
        self._calls = calls
        self._endings = endings
        self._incoming = incoming
        self._hear = hear
        self._settle = settle
        self.suspects: set[int] = set()
        self._ahead: list[Message] = []  # from members that have removed more members than we have
        self._flushed: dict[int, set[int]] = {}  # by member: the suspects whose messages it has handed round

    def suspect(self, members: Iterable[int]) -> None:
        """These members are taken for dead: ignore them from now on, and hand round their messages."""
        local = self._local
        fresh = {member for member in members if member in local.links.peers} - self.suspects
        if not fresh:
            return
        self.suspects |= fresh
        suspects = tuple(sorted(self.suspects))
        held = tuple(message for suspect in suspects for message in local.links.peers[suspect].kept)
        flush = Flush(local.me, local.clock.next(), local.links.number(self._others), suspects, held)
        local.links.transmit(local.now, flush)
        self._try_install()

    def is_ahead(self, message: Message) -> bool:
        """Whether a message may depend on messages that are still to be handed round; then it is kept until those are here.
        Beyond the bound it is dropped, and repaired later."""
        if message.view <= self._local.gone:
            return False
        if len(self._ahead) < AHEAD_MAX:
            self._ahead.append(message)
        return True

    def take_flush(self, flush: Flush) -> None:
        """A member forwards the messages of the suspects that it has."""
        local = self._local
        self._flushed.setdefault(flush.member, set()).update(flush.suspects)
        for message in flush.messages:
            member = local.roster.member_of[message.src]
            is_ours = any(to == local.me for to, _ in message.sq)
            if member in flush.suspects and member in local.links.peers and is_ours:
                self._hear(member, message)
        self._try_install()

    def clear(self) -> None:
        self._ahead.clear()
        self.suspects.clear()

    @property
    def _others(self) -> list[int]:
        """The members that are left, without ourselves."""
        return [member for member in self._local.links.peers if member not in self.suspects]

    def _try_install(self) -> None:
        """Once everybody left has flushed, nothing of the suspects can still come."""
        local, gone = self._local, self.suspects
        if not gone or not all(gone <= self._flushed.get(member, set()) for member in self._others):
            return
        self.suspects = set()
        self._flushed = {
            m: rest for m, said in self._flushed.items() if m not in gone and (rest := said - gone)
        }
        local.gone += len(gone)
        ahead, self._ahead = self._ahead, []
        self._hear_again(ahead, gone)  # a member that is gone now may have removed another one before us
        self._settle()  # messages that were handed round count as received before their senders left
        for member in sorted(gone):
            local.links.remove(member)
            local.alive.discard(member)
        self._bury()
        self._hear_again(ahead, local.links.peers.keys() - self.suspects)

    def _hear_again(self, messages: list[Message], members: Set[int]) -> None:
        """Take the messages of these members that were kept because they had removed more members than we had."""
        for message in messages:
            member = self._local.roster.member_of[message.src]
            if member in members:
                self._hear(member, message)

    def _bury(self) -> None:
        """End instances that depend on members that are gone, and send what their copies of objects had to send."""
        local = self._local
        for instance in list(self._calls.holding):
            self._calls.take_held(instance)
        for hosted in local.hosted.values():
            for entry in list(hosted.queue):
                if entry.undoes is None and not entry.out and local.is_orphan(entry.message):
                    self._incoming.give_up(hosted, entry)
        for instance in list(local.running):
            if instance.status == RUNNING:
                self._mourn(instance)
        for hosted in local.hosted.values():
            for asked in [each for each in hosted.asked.values() if each.stage is Stage.DONE]:
                # The invoker is gone and has not said that it committed; other copies of the object may not have run
                # this instance. No message gives the undoing a place in the order, so it goes before all that waits.
                request = asked.run.request
                assert request is not None
                if not local.has_invoker(request):
                    self._incoming.undo(hosted, asked, request)
            self._early.take_over(hosted)
            self._speech.take_over(hosted)

    def _mourn(self, instance: Instance) -> None:
        """End an instance whose invoker is gone, or that has called an object of which no copy is left."""
        request = instance.request
        if request is not None and instance.undoes is None and self._local.is_orphan(request):
            respond = self._local.has_invoker(request)
            self._endings.abort(instance, ORPHAN, "a member that called it is gone", respond=respond)
        else:
            self._calls.mourn(instance)
