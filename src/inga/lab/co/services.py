"""The paper's three services side by side: by sender (LO), causal (CO), and one order for all (TO).

Four members send at random over links that are FIFO and lose nothing; now and then a member answers a message that was just
delivered to it. True precedence is kept as plain sets. The services are the smallest protocols that guarantee no more than their
name says:

    LO              deliver each message on arrival
    CO              deliver it when all messages that its vector names were delivered
    TO              the destinations agree on a place: each proposes one after all that it knows, the sender chooses the last of these
                    and announces it; a message is delivered when all before it were
    TO, own placed  the same, with the sender as a destination of its own messages

In TO all members may see an answer before its question, although the question was delivered at the answering member, no member
fails and nothing is lost: a member that is not a destination of its own messages proposes no place for its answer, so the answer
may get a place before the question, if that member alone proposed such a late place for the question. If members also deliver
their own messages at their places, this is impossible: the answer comes after the question at the member that gave it, and so
everywhere.
"""

from collections.abc import Iterable
from itertools import permutations
from random import Random
from typing import ClassVar

from inga.lab.experiments import Table

MEMBERS, SPONTANEOUS, SENT_MAX = 4, 15, 30
SENDS, ANSWERS = 0.3, 0.1
"""The probabilities that a move is a send, and that a delivery is answered."""

TalkId = tuple[int, int]
"""A message: its sender, and its number among the sender's messages."""


class ServiceWorld:
    """Members that send, and the messages delivered at each. A subclass is a service."""

    name: ClassVar[str]

    def __init__(self, seed: int = 0) -> None:
        self.delivered: list[list[TalkId]] = [[] for _ in range(MEMBERS)]
        self.past: dict[TalkId, frozenset[TalkId]] = {}  # by message: the messages that truly precede it
        self._known: list[set[TalkId]] = [set() for _ in range(MEMBERS)]
        self._rng = Random(seed)
        self._links: dict[tuple[int, int], list[tuple[str, TalkId, int]]] = {
            (a, b): [] for a in range(MEMBERS) for b in range(MEMBERS)
        }
        self._answers = ANSWERS

    def run(self) -> None:
        """Send some messages and their answers, until everything has arrived."""
        left = SPONTANEOUS
        while True:
            busy = [link for link, waiting in self._links.items() if waiting]
            if left and (not busy or self._rng.random() < SENDS):
                self.send(self._rng.randrange(MEMBERS))
                left -= 1
            elif busy:
                self.arrive(*self._rng.choice(busy))
            else:
                return

    def send(self, me: int) -> TalkId:
        """Let this member send a message to all others."""
        message = (me, 1 + sum(src == me for src, _ in self.past))
        self.past[message] = frozenset(self._known[me])
        self._known[me].add(message)
        self._give(me, message)
        return message

    def arrive(self, source: int, target: int) -> None:
        """Let the first packet on this link arrive."""
        kind, message, number = self._links[source, target].pop(0)
        self._take(target, kind, message, number)

    def _put(self, me: int, to: Iterable[int], kind: str, message: TalkId, number: int = 0) -> None:
        for other in to:
            self._links[me, other].append((kind, message, number))

    def _deliver(self, me: int, message: TalkId) -> None:
        self.delivered[me].append(message)
        self._known[me] |= self.past[message] | {message}
        if message[0] != me and len(self.past) < SENT_MAX and self._rng.random() < self._answers:
            self.send(me)

    def _others(self, me: int) -> list[int]:
        return [member for member in range(MEMBERS) if member != me]

    def _give(self, me: int, message: TalkId) -> None:
        self._put(me, self._others(me), "data", message)

    def _take(self, me: int, kind: str, message: TalkId, number: int) -> None:
        raise NotImplementedError


class InSenderOrder(ServiceWorld):
    """Links keep the order of each sender, and nothing else orders messages."""

    name = "LO"

    def _take(self, me: int, kind: str, message: TalkId, number: int) -> None:
        self._deliver(me, message)


class InCausalOrder(ServiceWorld):
    """A message waits for all that precede it; its past stands for the vector that would name them."""

    name = "CO"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._early: list[list[TalkId]] = [[] for _ in range(MEMBERS)]

    def _take(self, me: int, kind: str, message: TalkId, number: int) -> None:
        self._early[me].append(message)
        while (
            ready := next((each for each in self._early[me] if self._may_come(me, each)), None)
        ) is not None:
            self._early[me].remove(ready)
            self._deliver(me, ready)

    def _may_come(self, me: int, message: TalkId) -> bool:
        return self.past[message] <= self._known[me]


class InAgreedOrder(ServiceWorld):
    """Destinations agree on places in two rounds: ABCAST of ISIS, without the sender among the destinations."""

    name = "TO"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._clock = [0] * MEMBERS  # the last place that each member knows of
        self._places: list[dict[TalkId, tuple[int, bool]]] = [
            {} for _ in range(MEMBERS)
        ]  # (place, whether it is final)
        self._proposed: dict[TalkId, list[int]] = {}

    def _destinations(self, me: int) -> list[int]:
        return self._others(me)

    def _give(self, me: int, message: TalkId) -> None:
        self._proposed[message] = []
        self._put(me, self._destinations(me), "data", message)

    def _take(self, me: int, kind: str, message: TalkId, number: int) -> None:
        if kind == "data":
            self._clock[me] += 1
            self._places[me][message] = self._clock[me], False
            self._put(me, [message[0]], "proposal", message, self._clock[me])
        elif kind == "proposal":
            proposed = self._proposed[message]
            proposed.append(number)
            if len(proposed) == len(self._destinations(me)):
                self._put(me, self._destinations(me), "place", message, max(proposed))
        else:
            self._clock[me] = max(self._clock[me], number)
            self._places[me][message] = number, True
            self._deliver_placed(me)

    def _deliver_placed(self, me: int) -> None:
        places = self._places[me]
        while places:
            message = min(places, key=lambda each: (places[each][0], each))
            if not places[message][1]:
                return
            del places[message]
            self._deliver(me, message)


class OwnPlaced(InAgreedOrder):
    """Members deliver their own messages at their places, like those of others."""

    name = "TO, own placed"

    def _destinations(self, me: int) -> list[int]:
        return list(range(MEMBERS))


SERVICES: tuple[type[ServiceWorld], ...] = (InSenderOrder, InCausalOrder, InAgreedOrder, OwnPlaced)


def services(seeds: Iterable[int], worlds: Iterable[type[ServiceWorld]] = SERVICES) -> Table:
    """Return, for each service: runs; those in which a sender's order, the one order, or causality is broken somewhere; and those
    in which an answer came before its question at all common destinations, at least two."""
    seeds = list(seeds)
    rows = []
    for world in worlds:
        broken = [0, 0, 0, 0]
        for seed in seeds:
            run = world(seed)
            run.run()
            broken = [before + (found > 0) for before, found in zip(broken, judged(run), strict=True)]
        rows.append([world.name, len(seeds), *broken])
    return Table(["service", "runs", "by_sender", "one_order", "causal", "answer_first"], rows)


def judged(run: ServiceWorld) -> tuple[int, int, int, int]:
    """Count the pairs of messages that break each order, and those whose answer came first everywhere."""
    places = [{message: at for at, message in enumerate(log)} for log in run.delivered]
    by_sender = one_order = causal = answer_first = 0
    for p, q in permutations(run.past, 2):
        late = [at[q] < at[p] for at in places if p in at and q in at]
        if p in run.past[q]:
            causal += any(late)
            by_sender += p[0] == q[0] and any(late)
            answer_first += p[0] != q[0] and len(late) > 1 and all(late)
        one_order += p < q and len(set(late)) > 1
    return by_sender, one_order, causal, answer_first
