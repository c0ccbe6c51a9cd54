"""Members that are gone: the others exchange their last messages, then go on without them.

    suspect     ignore a member from now on; flush: send all others the messages of it that went to several members
    install     once all remaining members have done so, no message of it can still arrive: do not wait for its clock
    bury        end the instances that depended on it; other copies of its objects send what it still had to send

Two members that leave may be removed together at one member, and one after the other at another. So every later message
has the number of members that are gone, and waits at receivers that have removed fewer.
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
"""The most messages that are kept from members that have removed more members than we have. Any further one is dropped; it is not
acknowledged, so its sender sends it again. Over a layer that repairs, the message was acknowledged below, and all are kept."""


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
        """`hear` handles a message as if it had arrived from that member; `settle` makes all progress that is possible."""
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
        self._flushed: dict[int, set[int]] = {}  # by member: the suspects whose messages it has flushed

    def suspect(self, members: Iterable[int]) -> None:
        """Suspect these members: ignore them from now on, and flush their messages to the others."""
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
        """Whether a message may depend on messages of suspects that have not been flushed yet. It is kept until these are here."""
        local = self._local
        if message.view <= local.gone:
            return False
        if local.options.reliable or len(self._ahead) < AHEAD_MAX:
            self._ahead.append(message)
        return True

    def take_flush(self, flush: Flush) -> None:
        """Handle a flush: a member forwards the messages of the suspects that it has."""
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
        """The other members that are not suspected."""
        return [member for member in self._local.links.peers if member not in self.suspects]

    def _try_install(self) -> None:
        """Remove the suspects once all remaining members have flushed: then no message of a suspect can still arrive."""
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
        self._settle()  # flushed messages count as received before their senders left
        for member in sorted(gone):
            local.links.remove(member)
            local.alive.discard(member)
        self._bury()
        self._hear_again(ahead, local.links.peers.keys() - self.suspects)

    def _hear_again(self, messages: list[Message], members: Set[int]) -> None:
        """Handle the messages of these members that were kept because they had removed more members than we had."""
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
                # The invoker is gone without a commit that any survivor has; other copies of the object may not have run
                # this instance. No abort gives the undo a place in the order: it takes that of the request, before all
                # conflicting requests that wait.
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
