"""Members that are gone: what they said is handed round, then everybody goes on without them.

    suspect     nothing is heard of a member any more; everybody sends everybody else what it said to several
    install     once all who are left have done so, nothing of it can still come: nobody waits for its clock
    bury        what depended on it ends, what its copies of objects had to say is said by others

Members that leave together may be agreed upon together here, and one after the other elsewhere; so what is said
afterwards is marked by how many are gone, and waits at members that are not as far.
"""

from collections.abc import Callable, Iterable, Set

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
"""Messages of members that know of more who are gone than we do."""


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
        self._ahead: list[Message] = []  # of members that know of more who are gone
        self._flushed: dict[int, set[int]] = {}  # by member: those whose words it has handed round

    def suspect(self, members: Iterable[int]) -> None:
        """These are taken for dead: hear nothing of them any more, and hand round what they said."""
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
        """Whether it may build on what is still to be handed round; then it is kept until that is here. What is too
        much is repaired, or never was."""
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
        self._hear_again(ahead, gone)  # the last words of one may have come after another was gone for it
        self._settle()  # what was handed round counts as received before they left
        for member in sorted(gone):
            local.links.remove(member)
            local.alive.discard(member)
        self._bury()
        self._hear_again(ahead, local.links.peers.keys() - self.suspects)

    def _hear_again(self, messages: list[Message], members: Set[int]) -> None:
        """Take what these members said when they knew of more who are gone than we did."""
        for message in messages:
            member = self._local.roster.member_of[message.src]
            if member in members:
                self._hear(member, message)

    def _bury(self) -> None:
        """End what depends on members that are gone, and say what their copies of objects had to say."""
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
                # Whoever invoked it is gone without a word that it has committed, and other copies of the object may
                # not have got as far. There is no message to say where it is undone: before all that waits.
                request = asked.run.request
                assert request is not None
                if not local.has_invoker(request):
                    self._incoming.undo(hosted, asked, request)
            self._early.take_over(hosted)
            self._speech.take_over(hosted)

    def _mourn(self, instance: Instance) -> None:
        """End an instance whose invoker is gone, or somebody it called of whom no copy is left."""
        request = instance.request
        if request is not None and instance.undoes is None and self._local.is_orphan(request):
            respond = self._local.has_invoker(request)
            self._endings.abort(instance, ORPHAN, "a member that called it is gone", respond=respond)
        else:
            self._calls.mourn(instance)
