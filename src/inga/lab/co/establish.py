"""Establishment of a group: afterwards all members know each other's first number and buffers, and the group has an identifier.

The paper assumes it, and cites a procedure that it does not print. This is the smallest procedure that has the properties which
the paper names, by the paper's own means: a member repeats an opening message with its first number (SEQ), its free buffers
(BUF), a proposal for the identifier, and the members whose openings it has received. It *knows* the group when it has openings of
all; the largest proposal is the identifier (CID). It may send data when it knows that all know the group:

    established   two rounds: all have announced that they have the openings of all
    heard         one round, for comparison: a member sends data as soon as it has the openings of all. Some receivers of its data do not
                  know its first number yet

Openings and data are lost at random; openings are repeated until all members may send. Data of an earlier group of the same
members, whose numbers may be just the expected ones, arrives as well: the identifier distinguishes it from data of this group. A
run of `theorems` then begins with these first numbers instead of ones.

The product does otherwise: greetings settle which members are present, numbers begin at 1 in every view, and buffers are equal by
agreed options.
"""

from collections.abc import Callable, Iterable
from itertools import permutations
from random import Random
from statistics import fmean
from typing import ClassVar, NamedTuple

from inga.lab.co.theorems import MEMBERS, LossyWorld, precedes
from inga.lab.experiments import Table
from inga.trial.world import Agenda

LOSS = 0.3
AGAIN = 2.5
"""Units of R after which an opening is repeated: longer than an answer takes."""
FIRST_MAX = 4
"""The highest first number: small, so that data of an earlier group often has an expected number."""


class Opening(NamedTuple):
    """An opening message: the data of a member, and the members whose openings it has received."""

    src: int
    seq: int
    buf: int
    proposal: int
    heard: frozenset[int]


class FirstData(NamedTuple):
    """A data message, as far as it matters here."""

    src: int
    cid: int
    seq: int


class EstablishedGroup(Agenda):
    """Members that open a group, and each send one message as soon as they may. Time is in units of R."""

    name: ClassVar[str] = "established"
    everybody = frozenset(range(MEMBERS))

    def __init__(self, seed: int, loss: float) -> None:
        super().__init__()
        self._rng = Random(f"establish/{seed}")
        self._loss = loss
        self._old = self._rng.randrange(100)  # the identifier of the earlier group
        self.said = [
            Opening(me, *self._first(), self._rng.randrange(100, 1000), frozenset()) for me in range(MEMBERS)
        ]
        self.known: list[dict[int, Opening]] = [{me: self.said[me]} for me in range(MEMBERS)]
        self.began = [-1.0] * MEMBERS  # when each could send
        self.openings = 0
        self.early = 0  # data that reached a member which did not know all first numbers yet
        self.stale = 0  # data of the earlier group that was accepted

    def run(self) -> None:
        for me in self.everybody:
            self.at(0.0, self._open, me)
            old = FirstData((me + 1) % MEMBERS, self._old, self._rng.randint(1, FIRST_MAX))
            self.at(self._rng.uniform(0.0, 6.0), self._hear_data, me, old)
        self.play()

    def cid(self, me: int) -> int | None:
        """Return the identifier of the group, once this member knows the group."""
        known = self.known[me]
        return max(each.proposal for each in known.values()) if len(known) == MEMBERS else None

    def is_right(self) -> bool:
        """Whether all members know the same, and it is what each has announced of itself."""
        truth = {me: each[1:4] for me, each in enumerate(self.said)}
        tables = [{src: each[1:4] for src, each in known.items()} for known in self.known]
        return tables == [truth] * MEMBERS and len({self.cid(me) for me in self.everybody}) == 1

    def _first(self) -> tuple[int, int]:
        return self._rng.randint(1, FIRST_MAX), self._rng.randint(8, 64)

    def _open(self, me: int) -> None:
        """Send the opening, and repeat it until all members may send."""
        if -1.0 in self.began:
            self._say(me)
            self.at(self.now + AGAIN, self._open, me)

    def _say(self, me: int) -> None:
        self.openings += 1
        opening = self.said[me]._replace(heard=frozenset(self.known[me]))
        self._broadcast(me, self._hear, opening)

    def _broadcast(self, me: int, hear: Callable[..., None], what: Opening | FirstData) -> None:
        for other in self.everybody - {me}:
            if self._rng.random() >= self._loss:
                self.at(self.now + 1.0, hear, other, what)

    def _hear(self, me: int, opening: Opening) -> None:
        before = len(self.known[me])
        self.known[me][opening.src] = opening
        if before < MEMBERS == len(self.known[me]):
            self._say(me)  # announces that we know the group
        if self.began[me] < 0 and self._may_send(me):
            self.began[me] = self.now
            cid = self.cid(me)
            assert cid is not None
            self._broadcast(me, self._hear_data, FirstData(me, cid, self.said[me].seq))

    def _may_send(self, me: int) -> bool:
        known = self.known[me]
        others = (each for src, each in known.items() if src != me)
        return len(known) == MEMBERS and all(each.heard == self.everybody for each in others)

    def _hear_data(self, me: int, data: FirstData) -> None:
        of_this = data.cid != self._old
        sender = self.known[me].get(data.src)
        if of_this:
            self.early += self.cid(me) is None
        elif sender is not None and data.seq == sender.seq and self._takes(me, data):
            self.stale += 1

    def _takes(self, me: int, data: FirstData) -> bool:
        return data.cid == self.cid(me)


class HeardGroup(EstablishedGroup):
    """One round: a member that knows the group begins."""

    name = "heard"

    def _may_send(self, me: int) -> bool:
        return len(self.known[me]) == MEMBERS


def establishment(
    seeds: Iterable[int], rules: Iterable[type[EstablishedGroup]] = (EstablishedGroup, HeardGroup)
) -> Table:
    """Return, for each rule of when members begin: runs under loss; those with wrong tables; first messages that came too early;
    data of the earlier group that was accepted; openings per member, and units of R until the last member may send; the same
    without loss; pairs that numbers order wrongly from there on."""
    seeds = list(seeds)
    rows = []
    for rule in rules:
        runs = [_played(rule, seed, LOSS) for seed in seeds]
        calm = _played(rule, 0, 0.0)
        rows.append(
            [
                rule.name,
                len(runs),
                sum(not each.is_right() for each in runs),
                sum(each.early for each in runs),
                sum(each.stale for each in runs),
                round(fmean(each.openings / MEMBERS for each in runs), 2),
                round(fmean(max(each.began) for each in runs), 2),
                calm.openings / MEMBERS,
                max(calm.began),
                sum(_mistaken(seed, [each.seq for each in run.said]) for seed, run in enumerate(runs[:5])),
            ]
        )
    columns = "begins runs wrong early stale openings R openings_calm R_calm mistaken"
    return Table(columns.split(), rows)


def _played(rule: type[EstablishedGroup], seed: int, loss: float) -> EstablishedGroup:
    group = rule(seed, loss)
    group.run()
    return group


def _mistaken(seed: int, first: list[int]) -> int:
    """Return how many pairs the numbers order wrongly in a group that begins with these first numbers."""
    sent = LossyWorld(seed, waits=True, first=first).run(60)
    return sum(precedes(p, q) != ((p.src, p.seq) in q.past) for p, q in permutations(sent, 2))
