"""The judge: explicit sets of known messages, never stamps.

It is told what each application sent and took, in the order in which that site did it. From this
alone follows what caused what: whatever a site had sent or taken, with all its causes, when it sent.

    integrity  each message is taken where it was addressed, once, and only if it was sent
    complete   each message is taken everywhere it was addressed
    fifo       messages of one sender are taken in the order they were sent
    causal     no message is taken before one that caused it and is addressed here
    object     two messages of one key are taken in the same order wherever both are taken
    total      the same for any two messages, among those who go on together; who goes no further has taken those of
               its last view in that order, too, if the first member of that view goes on with them

A late message counts where it is taken, once, so causal contains fifo.

A group may change its order while it runs. A message then belongs to the *epoch* in which it was sent, the time
between two such changes, and `broken` counts only what was promised in it. Whatever the orders, one more thing
is promised of a change:

    views      nothing of an epoch is taken after something of a later one
    survivors  who goes on to the same view has taken the same, also of what one sent that does not go on with them

Sets are bit sets in plain
integers, one bit a message, numbered as it was told of them. The oldest messages, once taken
wherever they were addressed and known to everybody, are in every set that matters: they are
forgotten, so that a run of any length is judged in the memory of what is under way.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from inga.model.compiled import mypyc_attr

WITNESSES_MAX = 20
ACCUSATIONS_MAX = 5
"""Violations described in words; all are counted."""

KeyOfNumber = Callable[[int], Hashable]
"""Of a message, by its number; None: it is in nobody's way."""

FORGET_EVERY = 1024
"""Messages after which it is worth looking for what can be forgotten."""


class SeenView(NamedTuple):
    """A view that a site was in: what tells it from others, and who was in it."""

    name: str
    members: frozenset[int]
    left: frozenset[int]  # who was in the one before and said that it leaves, when everybody had all it sent
    first: int  # of its members, who says in which order they take what is sent in it


@mypyc_attr(allow_interpreted_subclasses=True)
class Oracle:
    """Watches one run of `members` sites."""

    def __init__(self, members: int, agreed: "Mapping[str, KeyOfNumber] | None" = None) -> None:
        """`agreed`: by guarantee, which messages are to be taken in one order everywhere: those of equal
        keys. Without it nothing of that kind is judged, and nothing is kept for it."""
        self.members = members
        self._agreed = agreed or {}
        self._sequences: list[list[int]] = [[] for _ in range(members)]  # taken at the site, if judged
        self.violations: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()  # of these, what was promised where it happened
        self.promises: dict[int, Collection[str]] = {}  # by epoch; of others everything is
        self.open_epochs: set[int] = set()  # in which effects may be taken whose causes were lost with others
        self.witnesses: list[str] = []
        self.accusations: dict[str, list[str]] = {}  # of `broken`, the first few of each guarantee in words
        self.sent = 0
        self.taken = 0
        self.expected = 0
        self.related = 0  # pairs of which one caused the other
        self._forgotten = 0  # messages, the oldest
        self._place: dict[int, int] = {}  # of each message: how many were sent before it
        self._messages: list[int] = []  # by place, those not forgotten
        self._senders: list[int] = []
        self._epochs: list[int] = []  # by place, of all
        self._missing: list[int] = []  # how many sites have yet to take it
        self._causes: list[int] = []  # all that caused it
        self._known = [0] * members  # sent or taken at the site, and all that caused that
        self._addressed = [0] * members  # what the site should take
        self._taken = [0] * members
        self._loose = [0] * members  # of these, what came through an open gate
        self._latest = [0] * members  # the newest epoch of which the site took something
        self._own = [0] * members  # sent by the site
        self._needed = [0] * members  # what caused anything taken at the site
        self._followed = [[0] * members for _ in range(members)]  # the same, by sender of the taken
        self._gone: set[int] = set()  # sites that crashed or left
        self._skips: dict[
            int, int
        ] = {}  # sites that took a state: the epoch from which on they take messages
        self._lost: set[int] = set()  # sites that crashed, so that what they sent last may be lost
        self._views: list[list[SeenView]] = [[] for _ in range(members)]  # that the site has gone through
        self._sent_in: list[str] = []  # by place, the view in which a message was sent
        self._granted = [0] * members  # what was past when the site joined
        self._base = [0]  # what members had sent when they let the next newcomer in
        self._of_epoch: dict[int, int] = {}  # what was sent in it
        self._whole = [0]  # what was sent to everybody

    def send(
        self, site: int, message: int, dst: int | None = None, *, epoch: int = 0, whole: bool = True
    ) -> None:
        """`site` sent a new message, to all others or to those in the bit set; `whole`: that is everybody there is."""
        assert message not in self._place, f"message {message} sent twice"
        if self.sent % FORGET_EVERY == 0:
            self._forget()
        bit = 1 << len(self._messages)
        if dst is None:
            audience = [member for member in range(self.members) if member != site]
        else:
            audience = [member for member in range(dst.bit_length()) if dst >> member & 1]
        self._place[message] = self.sent
        self._messages.append(message)
        self._senders.append(site)
        self._epochs.append(epoch)
        self._sent_in.append(self._views[site][-1].name if self._views[site] else "")
        self._missing.append(len(audience))
        self._causes.append(self._known[site])
        self.related += self._known[site].bit_count() + self._forgotten
        self.sent += 1
        self.expected += len(audience)
        self._known[site] |= bit
        self._own[site] |= bit
        self._of_epoch[epoch] = self._of_epoch.get(epoch, 0) | bit
        if whole:
            self._whole[0] |= bit
        for member in audience:
            self._addressed[member] |= bit

    def admit(self, newcomer: int) -> None:
        """There is a site of that number, from now on if not before."""
        while newcomer >= self.members:
            self.members += 1
            for sets in (*self._sets(), self._latest):
                sets.append(0)
            self._views.append([])
            self._followed.append([0] * self.members)
            self._sequences.append([])
            self._base[0] = 0

    def let_in(self, site: int) -> None:
        """`site` lets the newcomer in that came last: what it sent before is past for that one."""
        self._base[0] |= self._own[site]

    def enter(self, site: int, name: str, members: Iterable[int], left: Iterable[int] = ()) -> None:
        """A site goes on to another view; `left` are those of the last one who took their leave."""
        members = tuple(members)
        self._views[site].append(SeenView(name, frozenset(members), frozenset(left) - self._lost, members[0]))

    def skip(self, site: int, epoch: int) -> None:
        """What was sent to a site before that epoch is part of a state that it took, and is not to be taken any more."""
        self._skips[site] = epoch

    def crash(self, site: int) -> None:
        """Nothing is expected of it any more, and what it sent last may be lost."""
        self._gone.add(site)
        self._lost.add(site)

    def leave(self, site: int) -> None:
        """It left when everybody had all it sent: nothing is expected of it any more."""
        self._gone.add(site)

    def join(self, newcomer: int) -> None:
        """All have let it in. What they had sent before is past, and known to be."""
        self._known[newcomer] |= self._base[0]
        self._granted[newcomer] = self._base[0]

    def agree(self, orders: "Mapping[str, KeyOfNumber]") -> None:
        """From now on, judge these as well."""
        self._agreed = {**self._agreed, **orders}

    def take(self, site: int, message: int, *, loose: bool = False) -> bool:
        """The application at `site` got it. Returns whether it is concurrent with something known.

        `loose`: nothing was held there when it was released, so nobody promised that its causes are.
        """
        place = self._place.get(message)
        if place is None:
            self.blame("integrity", f"site {site} took message {message}, which nobody sent")
            return False
        self.taken += 1
        index = place - self._forgotten
        if index < 0 or self._taken[site] >> index & 1:
            self.blame("integrity", f"site {site} took message {message} twice")
            return False
        if self._agreed:
            self._sequences[site].append(message)
        bit, sender, causes = 1 << index, self._senders[index], self._causes[index]
        if self._addressed[site] & bit:
            self._missing[index] -= 1
        else:
            self.blame("integrity", f"site {site} took message {message}, which is not for it")
        self._judge(site, index, sender)
        # What is known only as a cause of something was never seen here.
        seen = self._known[site] & (self._taken[site] | self._own[site] | self._granted[site]) & ~bit
        seen &= self._of_epoch[self._epochs[place]]  # before that all is past
        self._taken[site] |= bit
        if site == sender:
            # Of others it may have come through an open gate, before its own causes.
            causes &= self._own[site]
        if loose:
            self._loose[site] |= bit
        else:
            self._needed[site] |= causes
            self._followed[site][sender] |= causes
        self._known[site] |= bit | causes
        return site != sender and bool(seen & ~causes)

    def finish(self) -> None:
        """Nothing will be taken any more: whatever is missing is lost."""
        for site, message, promised in self.missing():
            self.blame("complete", f"site {site} never took message {message}", promised=promised)
        self._compare_orders()
        self._compare_survivors()

    def count(self, guarantees: Iterable[str]) -> int:
        """Violations of these."""
        return sum(self.violations[name] for name in guarantees)

    def blame(self, guarantee: str, witness: str, *, promised: bool = True) -> None:
        """Count a violation, and remember the first few in words."""
        self.violations[guarantee] += 1
        if promised:
            self.broken[guarantee] += 1
            accusations = self.accusations.setdefault(guarantee, [])
            if len(accusations) < ACCUSATIONS_MAX:
                accusations.append(f"{guarantee}: {witness}")
        if len(self.witnesses) < WITNESSES_MAX:
            self.witnesses.append(f"{guarantee}: {witness}")

    def missing(self) -> Iterator[tuple[int, int, bool]]:
        """Who has yet to take which message, and whether it was promised: to all who go on with its sender, and to all
        who stay in the view in which it was sent."""
        for site, index in self._untaken():
            sender, then = self._senders[index], self._view_after(site, index)
            if then is None:
                is_lost = sender in self._lost
            elif sender in then.left:
                is_lost = self._hangs_on_lost(site, index, then) and not self._having(index, then)
            else:
                is_lost = sender not in then.members
            if not is_lost:
                message = self._messages[index]
                yield site, message, self._promised("complete", self.epoch_of(message))

    def _untaken(self) -> Iterator[tuple[int, int]]:
        """Sites that are left, and the places of messages for them that they have not taken. One that was let into a view
        and never heard of that, or was let into another at the same time, gets nothing that was sent there."""
        for site in range(self.members):
            if site not in self._gone:
                first, names = self._skips.get(site, 0), {"", *(view.name for view in self._views[site])}
                for index in _members(self._addressed[site] & ~self._taken[site]):
                    at = index + self._forgotten
                    if self._sent_in[at] in names and self._epochs[at] >= first:
                        yield site, index

    def _view_after(self, site: int, index: int) -> "SeenView | None":
        """The view to which a site went on from that in which a message was sent."""
        return self._after(site, self._sent_in[index + self._forgotten])

    def _after(self, site: int, name: str) -> "SeenView | None":
        """The view to which a site went on from that of a name."""
        views = self._views[site]
        at = next((at for at, view in enumerate(views) if view.name == name), len(views))
        return views[at + 1] if at + 1 < len(views) else None

    def _judge(self, site: int, index: int, sender: int) -> None:
        """What is wrong with taking this one now, after what was taken here before."""
        message, bit, epoch = self._messages[index], 1 << index, self._epochs[index + self._forgotten]
        if epoch > self._latest[site]:
            self._latest[site] = epoch
        elif epoch < self._latest[site]:
            self.blame("views", f"site {site} took message {message} after one of a later order")
        if self._needed[site] & bit:
            effect, promised = self._effect("causal", index, self._taken[site] & ~self._loose[site])
            text = f"site {site} took message {effect} before its cause {message}"
            self.blame("causal", text, promised=promised)
        if self._followed[site][sender] & bit:
            among = self._taken[site] & self._own[sender] & ~self._loose[site]
            later, promised = self._effect("fifo", index, among)
            text = f"site {site} took {later} before {message} of the same sender"
            self.blame("fifo", text, promised=promised)

    def _promised(self, guarantee: str, epoch: int) -> bool:
        return epoch not in self.promises or guarantee in self.promises[epoch]

    def _compare_orders(self) -> None:
        """Every site against all before it, by key."""
        places = [{message: at for at, message in enumerate(sequence)} for sequence in self._sequences]
        camps = {name: self._camps(name) for name in {view.name for views in self._views for view in views}}

        def is_agreed(message: int, site: int, other: int) -> bool:
            camp_of = camps.get(self._sent_in[self._place[message]], {})
            return camp_of.get(site) == camp_of.get(other)

        for guarantee, key in self._agreed.items():
            for site, sequence in enumerate(self._sequences):
                for other in range(site):
                    compared = sequence
                    if guarantee == "total":
                        compared = [message for message in sequence if is_agreed(message, site, other)]
                    for before, message in _inversions(compared, places[other], key):
                        text = f"site {site} took message {before} before {message}, site {other} after it"
                        self.blame(
                            guarantee, text, promised=self._promised(guarantee, self.epoch_of(message))
                        )

    def _camps(self, name: str) -> "dict[int, Hashable]":
        """By site that was in a view: equal where what was sent in it is taken in one order. Those who went on to the same
        view agree. Who goes no further has followed the first member, and agrees with those with whom that one went on; if it
        did with nobody, some may have heard of it last what nobody else has. A view that goes on has one order."""
        seen = {site: view for site, views in enumerate(self._views) for view in views if view.name == name}
        after = {site: self._after(site, name) for site in seen}
        parts = {then.name: then for then in after.values() if then is not None}
        first = next(view.first for view in seen.values())
        with_first = [then.name for then in parts.values() if first in then.members | then.left]
        camps: dict[int, Hashable] = {}
        for site, then in after.items():
            if then is not None:
                camps[site] = then.name
            elif parts:
                camps[site] = with_first[0] if len(with_first) == 1 else site
            else:
                camps[site] = ""
        return camps

    def _compare_survivors(self) -> None:
        """Who goes on to the same view has taken the same: what one sent that does not go on with them has come to all of
        them that it was for, or to none. And who did not get it got nothing that it caused, if it was for everybody."""
        for site, index in self._untaken():
            message, sender, then = self._messages[index], self._senders[index], self._view_after(site, index)
            if then is None or sender in then.members | then.left:
                continue  # which was said before
            if having := self._having(index, then):
                text = f"site {site} never took message {message} of site {sender}, site {having[0]} did"
                promised = self._promised("complete", self.epoch_of(message))
                self.blame("survivors", text, promised=promised)
            elif self.epoch_of(message) in self.open_epochs or self._slipped_by(index):
                continue
            elif self._needed[site] >> index & 1 and self._whole[0] >> index & 1:
                effect, promised = self._effect("causal", index, self._taken[site] & ~self._loose[site])
                promised = promised and self._promised("causal", self.epoch_of(message))
                text = f"site {site} took message {effect} without its cause {message}, which nobody has"
                self.blame("causal", text, promised=promised)

    def _having(self, index: int, then: SeenView) -> list[int]:
        """Of those who went on to that view, who has taken a message as it was to be taken."""
        return [
            other
            for other in range(self.members)
            if other not in self._gone
            and (self._taken[other] & ~self._loose[other]) >> index & 1
            and (after := self._view_after(other, index)) is not None
            and after.name == then.name
        ]

    def _hangs_on_lost(self, site: int, index: int, then: SeenView) -> bool:
        """Whether a message comes after one that the site never took, of a sender that failed in the same view. If who sent the
        first has left with all it had, nobody can hand round the other, and nothing may be taken without its cause. Where
        there is one order of all messages, whatever was sent before may stand before it."""
        view, before = self._sent_in[index + self._forgotten], self._causes[index]
        if "total" in self._agreed and self._promised("total", self._epochs[index + self._forgotten]):
            before |= (1 << index) - 1
        return any(
            self._senders[other] not in then.members | then.left
            and self._sent_in[other + self._forgotten] == view
            for other in _members(before & ~self._taken[site])
        )

    def _slipped_by(self, cause: int) -> bool:
        """Whether that message, or an effect of it, came to somebody through an open gate. What it says afterwards has the
        message as a cause, too; if the others do not get that, they cannot wait for it, and in the next view nobody knows of it."""
        return any(
            loose >> cause & 1 or any(self._causes[index] >> cause & 1 for index in _members(loose))
            for loose in self._loose
        )

    def epoch_of(self, message: int) -> int:
        """When it was sent."""
        return self._epochs[self._place[message]]

    def _effect(self, guarantee: str, cause: int, among: int) -> tuple[int, bool]:
        """A message caused by that one, and whether it was promised to be taken later: one of which it was, if any.
        Of different epochs it always is."""
        found = []
        mine = self._epochs[cause + self._forgotten]
        for index in _members(among):
            if self._causes[index] >> cause & 1:
                epoch = self._epochs[index + self._forgotten]
                found.append((epoch == mine and not self._promised(guarantee, epoch), index))
        missing, index = min(found)
        return self._messages[index], not missing

    def _sets(self) -> list[list[int]]:
        """What is known of each site, as sets of messages."""
        columns = [self._known, self._addressed, self._taken, self._own, self._needed, self._granted]
        return [*columns, self._loose, *self._followed]

    def _forget(self) -> None:
        """Drop the oldest messages that are taken everywhere and known to all."""
        known = -1
        for each in self._known:
            known &= each
        # What is still to be taken somewhere may be concurrent with what everybody knows by now.
        for causes, missing in zip(self._causes, self._missing, strict=True):
            if missing:
                known &= causes
        count = 0
        while count < len(self._messages) and known >> count & 1 and not self._missing[count]:
            count += 1
        if count < FORGET_EVERY // 2:
            return
        self._forgotten += count
        for column in (self._messages, self._senders, self._missing, self._causes):
            del column[:count]
        self._causes = [causes >> count for causes in self._causes]
        for sets in (*self._sets(), self._base, self._whole):
            sets[:] = [each >> count for each in sets]
        self._of_epoch = {epoch: each >> count for epoch, each in self._of_epoch.items() if each >> count}


def agreed_orders(guarantees: Iterable[str], key: KeyOfNumber) -> dict[str, KeyOfNumber]:
    """What to judge of a run that makes these promises. One that orders by keys is told what it does not order."""
    if "object" in guarantees:
        return {"object": key, "total": _same}
    return {"total": _same} if "total" in guarantees else {}


def _same(message: int) -> int:
    return 0


def _inversions(sequence: list[int], places: dict[int, int], key: KeyOfNumber) -> Iterator[tuple[int, int]]:
    """A message is late if one of its key came before it here and, by `places`, after it elsewhere."""
    last: dict[Hashable, int] = {}  # by key, of those so far: the one that came last elsewhere
    for message in sequence:
        mine, there = key(message), places.get(message)
        if mine is None or there is None:
            continue
        before = last.get(mine)
        if before is not None and places[before] > there:
            yield before, message
        else:
            last[mine] = message


def _members(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
