"""The judge: explicit sets of known messages, never stamps.

It is told which messages each application sent and took, in the order in which that site did it. This
alone determines causes: a message is caused by all that its site had sent or taken before, and by all causes of these.

    integrity  each message is taken where it was addressed, once, and only if it was sent
    complete   each message is taken everywhere it was addressed
    fifo       messages of one sender are taken in the order they were sent
    causal     no message is taken before one that caused it and is addressed here
    object     two messages of one key are taken in the same order wherever both are taken
    total      the same for any two messages, among sites that go on to the next view together; a site that goes no
               further took the messages of its last view in their order, too, if the first member of that view goes on with them

A late message is counted once at each site, where it is taken, so causal contains fifo.

A group may change its order while it runs. A message then belongs to the *epoch* in which it was sent, the time
between two such changes, and `broken` counts only violations of what was promised in it. Two more guarantees about
changes hold under every order:

    views      no message of an epoch is taken after one of a later epoch
    survivors  sites that go on to the same view have taken the same messages, also those of senders that do not go on with them

Sets are bit sets in plain integers, one bit for each message, numbered in the order of `send`. The oldest messages, once
they are taken everywhere they were addressed and known to all sites, are in every set that matters. They are
forgotten, so the sets grow with the messages in flight, not with the length of the run.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from inga.model.compiled import mypyc_attr

WITNESSES_MAX = 20
ACCUSATIONS_MAX = 5
"""The most violations described in words; all are counted. Of each guarantee that is broken, at most `ACCUSATIONS_MAX`."""

KeyOfNumber = Callable[[int], Hashable]
"""From the number of a message to its key: messages of one key must be taken in one order. None: it need not be ordered."""

FORGET_EVERY = 1024
"""How many messages are sent between two attempts to forget the oldest."""


class SeenView(NamedTuple):
    """A view that a site was in: its unique name, and its members."""

    name: str
    members: frozenset[int]
    left: frozenset[int]  # members of the previous view that said goodbye, when all had what they sent
    first: int  # the first member, which under `total` determines the order of messages


@mypyc_attr(allow_interpreted_subclasses=True)
class Oracle:
    """Watches one run of `members` sites."""

    def __init__(self, members: int, agreed: "Mapping[str, KeyOfNumber] | None" = None) -> None:
        """`agreed`: by guarantee, the function from messages to keys: messages of equal keys must be taken in one order
        everywhere. Without it no agreement on orders is judged, and nothing is recorded for it."""
        self.members = members
        self._agreed = agreed or {}
        self._sequences: list[list[int]] = [[] for _ in range(members)]  # in the order taken, if it is judged
        self.violations: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()  # the violations of guarantees that were promised
        self.promises: dict[int, Collection[str]] = {}  # by epoch; in others all are promised
        self.open_epochs: set[int] = set()  # where a message may be taken whose cause was lost with a member
        self.witnesses: list[str] = []
        self.accusations: dict[str, list[str]] = {}  # of `broken`, the first few of each guarantee in words
        self.sent = 0
        self.taken = 0
        self.expected = 0
        self.related = 0  # pairs of messages of which one caused the other
        self._forgotten = 0  # how many messages, the oldest, are forgotten
        self._place: dict[int, int] = {}  # of each message: how many were sent before it
        self._messages: list[int] = []  # by place, those not forgotten
        self._senders: list[int] = []
        self._epochs: list[int] = []  # by place, of all messages
        self._missing: list[int] = []  # how many sites have yet to take the message
        self._causes: list[int] = []  # all causes of the message
        self._known = [0] * members  # by site: messages sent or taken there, and all their causes
        self._addressed = [0] * members  # messages that the site should take
        self._taken = [0] * members
        self._loose = [0] * members  # messages taken that came through an open gate
        self._latest = [0] * members  # the newest epoch of which the site took a message
        self._own = [0] * members  # messages sent by the site
        self._needed = [0] * members  # causes of all messages taken at the site
        self._followed = [[0] * members for _ in range(members)]  # the same, by sender of the message taken
        self._gone: set[int] = set()  # sites that crashed or left
        self._skips: dict[
            int, int
        ] = {}  # sites that took a state: the epoch from which on they take messages
        self._lost: set[int] = set()  # sites that crashed, so that their last messages may be lost
        self._views: list[list[SeenView]] = [[] for _ in range(members)]  # all views of the site, in order
        self._sent_in: list[str] = []  # by place, the view in which a message was sent
        self._granted = [0] * members  # messages that belonged to the past when the site joined
        self._base = [0]  # messages that members had sent when they admitted the next newcomer
        self._of_epoch: dict[int, int] = {}  # messages sent in each epoch
        self._whole = [0]  # messages sent to all members

    def send(
        self, site: int, message: int, dst: int | None = None, *, epoch: int = 0, whole: bool = True
    ) -> None:
        """`site` sent a new message, to all others or to those in the bit set; `whole`: these are all members."""
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
        """Add sites up to the number `newcomer`, unless they exist."""
        while newcomer >= self.members:
            self.members += 1
            for sets in (*self._sets(), self._latest):
                sets.append(0)
            self._views.append([])
            self._followed.append([0] * self.members)
            self._sequences.append([])
            self._base[0] = 0

    def let_in(self, site: int) -> None:
        """`site` admits the latest newcomer: for it, all that `site` has sent so far belongs to the past."""
        self._base[0] |= self._own[site]

    def enter(self, site: int, name: str, members: Iterable[int], left: Iterable[int] = ()) -> None:
        """A site enters another view; `left` are the members of its previous view that said goodbye."""
        members = tuple(members)
        self._views[site].append(SeenView(name, frozenset(members), frozenset(left) - self._lost, members[0]))

    def skip(self, site: int, epoch: int) -> None:
        """Messages sent to a site before that epoch are part of a state that it received, so it need not take them."""
        self._skips[site] = epoch

    def crash(self, site: int) -> None:
        """A site crashed: it need not take any more messages, and its last messages may be lost."""
        self._gone.add(site)
        self._lost.add(site)

    def leave(self, site: int) -> None:
        """A site left, when all others had all it sent: it need not take any more messages."""
        self._gone.add(site)

    def join(self, newcomer: int) -> None:
        """All members have admitted the newcomer. What they had sent before belongs to its past, so it knows these messages."""
        self._known[newcomer] |= self._base[0]
        self._granted[newcomer] = self._base[0]

    def agree(self, orders: "Mapping[str, KeyOfNumber]") -> None:
        """From now on, judge these orders as well."""
        self._agreed = {**self._agreed, **orders}

    def take(self, site: int, message: int, *, loose: bool = False) -> bool:
        """The application at `site` took a message. Return whether it is concurrent with a message known there.

        `loose`: it was released through an open gate, so it was not promised that its causes came first.
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
        # A message that is known only as a cause of others was never seen here.
        seen = self._known[site] & (self._taken[site] | self._own[site] | self._granted[site]) & ~bit
        seen &= self._of_epoch[self._epochs[place]]  # all earlier epochs belong to the past
        self._taken[site] |= bit
        if site == sender:
            # Messages of others may have come to the sender through an open gate, before their own causes.
            causes &= self._own[site]
        if loose:
            self._loose[site] |= bit
        else:
            self._needed[site] |= causes
            self._followed[site][sender] |= causes
        self._known[site] |= bit | causes
        return site != sender and bool(seen & ~causes)

    def finish(self) -> None:
        """The run is over: judge messages that were never taken, and compare sites with each other."""
        for site, message, promised in self.missing():
            self.blame("complete", f"site {site} never took message {message}", promised=promised)
        self._compare_orders()
        self._compare_survivors()

    def count(self, guarantees: Iterable[str]) -> int:
        """How many violations of these guarantees there are."""
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
        """The sites that have yet to take a message, the message, and whether it was promised to them. A site must get it if it
        goes on to the next view with the sender, or if it stays in the view in which the message was sent; with exceptions for
        senders that failed, or left."""
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
        """The sites that neither crashed nor left, and the indices of messages for them that they have not taken. A site that was
        admitted to a view and did not enter it, because it never learned of that or was admitted to another one at the same
        time, need not take messages sent in that view."""
        for site in range(self.members):
            if site not in self._gone:
                first, names = self._skips.get(site, 0), {"", *(view.name for view in self._views[site])}
                for index in _members(self._addressed[site] & ~self._taken[site]):
                    at = index + self._forgotten
                    if self._sent_in[at] in names and self._epochs[at] >= first:
                        yield site, index

    def _view_after(self, site: int, index: int) -> "SeenView | None":
        """The view that a site entered after the one in which a message was sent; None if it entered none."""
        return self._after(site, self._sent_in[index + self._forgotten])

    def _after(self, site: int, name: str) -> "SeenView | None":
        """The view that a site entered after the one of that name; None if it entered none."""
        views = self._views[site]
        at = next((at for at, view in enumerate(views) if view.name == name), len(views))
        return views[at + 1] if at + 1 < len(views) else None

    def _judge(self, site: int, index: int, sender: int) -> None:
        """Find violations in the order in which the site took this message and those before."""
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
        """Compare the orders of every two sites, for messages of one key."""
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
        """The camp of each site that was in a view: sites of one camp must take the messages of that view in one order. Sites
        that went on to the same view agree. A site that goes no further followed the first member, so it agrees with the sites
        with which that member went on. If the first member went on with none, a site may have its last decisions, which no
        other site has, so it is a camp of its own. If no site went on, the view has not ended and has one order."""
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
        """Check that sites that go on to the same view have taken the same messages: a message of a sender that does not go on
        with them was taken by all of them to which it was addressed, or by none. And a site that did not get it took no
        message that it caused, if it was addressed to all members."""
        for site, index in self._untaken():
            message, sender, then = self._messages[index], self._senders[index], self._view_after(site, index)
            if then is None or sender in then.members | then.left:
                continue  # `missing` has judged this
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
        """The sites that went on to that view and have taken a message, not through an open gate."""
        return [
            other
            for other in range(self.members)
            if other not in self._gone
            and (self._taken[other] & ~self._loose[other]) >> index & 1
            and (after := self._view_after(other, index)) is not None
            and after.name == then.name
        ]

    def _hangs_on_lost(self, site: int, index: int, then: SeenView) -> bool:
        """Whether a message follows one that the site never took, from a sender that failed in the same view. The sender of the
        message has left, and perhaps no other member had that cause and can send it again; without it the message must not be
        taken. Under a total order, any message that was sent earlier may precede it."""
        view, before = self._sent_in[index + self._forgotten], self._causes[index]
        if "total" in self._agreed and self._promised("total", self._epochs[index + self._forgotten]):
            before |= (1 << index) - 1
        return any(
            self._senders[other] not in then.members | then.left
            and self._sent_in[other + self._forgotten] == view
            for other in _members(before & ~self._taken[site])
        )

    def _slipped_by(self, cause: int) -> bool:
        """Whether that message, or an effect of it, came to a site through an open gate. What that site sends afterwards has the
        message as a cause, too. If the others do not get the message they cannot wait for it, and in the next view no member
        knows of it."""
        return any(
            loose >> cause & 1 or any(self._causes[index] >> cause & 1 for index in _members(loose))
            for loose in self._loose
        )

    def epoch_of(self, message: int) -> int:
        """The epoch in which a message was sent."""
        return self._epochs[self._place[message]]

    def _effect(self, guarantee: str, cause: int, among: int) -> tuple[int, bool]:
        """A message among these that `cause` caused, and whether it was promised to be taken later than `cause`; if any was
        promised, one of those. Between messages of different epochs the order is always promised."""
        found = []
        mine = self._epochs[cause + self._forgotten]
        for index in _members(among):
            if self._causes[index] >> cause & 1:
                epoch = self._epochs[index + self._forgotten]
                found.append((epoch == mine and not self._promised(guarantee, epoch), index))
        missing, index = min(found)
        return self._messages[index], not missing

    def _sets(self) -> list[list[int]]:
        """All sets of messages that are kept for each site."""
        columns = [self._known, self._addressed, self._taken, self._own, self._needed, self._granted]
        return [*columns, self._loose, *self._followed]

    def _forget(self) -> None:
        """Drop the oldest messages that are taken everywhere and known to all."""
        known = -1
        for each in self._known:
            known &= each
        # A message that some site has yet to take may be concurrent with messages that all sites know by now.
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
    """The orders to judge in a run with these guarantees. If messages are ordered only by key, `total` is judged, too: it is not
    promised, but the result reports its violations."""
    if "object" in guarantees:
        return {"object": key, "total": _same}
    return {"total": _same} if "total" in guarantees else {}


def _same(message: int) -> int:
    return 0


def _inversions(sequence: list[int], places: dict[int, int], key: KeyOfNumber) -> Iterator[tuple[int, int]]:
    """Pairs of messages of one key that are in this order here and, by `places`, in the opposite order elsewhere; for each
    message at most one."""
    last: dict[Hashable, int] = {}  # by key, of the messages so far: the one that came last elsewhere
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
