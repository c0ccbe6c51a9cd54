"""The CO paper's Theorems 1 and 2 on random runs, with acceptance as printed and as corrected.

Theorem 1 says that numbers determine precedence; Theorem 2 that vectors rise along precedence as long as no member lacks a message, so
that a message is lost if they do not. As printed, a member accepts a message as the next of its sender, whatever other messages
it names; as corrected, the message waits for these. Members send and receive in any order over links that lose copies, which
are sent again later. True precedence is kept as plain sets beside the numbers.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations
from random import Random
from typing import NamedTuple

from inga.lab.experiments import Table

MEMBERS, LOSS = 4, 0.25


class PaperMessage(NamedTuple):
    """A message as in the paper, and the truth that its numbers may not show."""

    src: int
    seq: int
    ack: tuple[int, ...]
    past: frozenset[tuple[int, int]]  # all messages that truly precede it
    lacked: bool  # whether its sender lacked one of these


def precedes(p: PaperMessage, q: PaperMessage) -> bool:
    """Whether p precedes q according to Theorem 1, by numbers alone."""
    return p.seq < q.seq if p.src == q.src else p.seq < q.ack[p.src]


def reveals_loss(p: PaperMessage, q: PaperMessage) -> bool:
    """Theorem 2, reversed: whether p precedes q, and their vectors show that the sender of q lacked a message."""
    rises = all(a <= b for a, b in zip(p.ack, q.ack, strict=True))
    return precedes(p, q) and not (rises and (p.src == q.src or p.ack[p.src] < q.ack[p.src]))


class LossyWorld:
    """Members that send at random over links that lose copies."""

    def __init__(self, seed: int, *, waits: bool, first: Sequence[int] = (1,) * MEMBERS) -> None:
        """`waits`: acceptance waits for the messages that a message names. `first` are the numbers with which members begin."""
        self.sent: list[PaperMessage] = []
        self._waits = waits
        self._rng = Random(seed)
        self._expected = [list(first) for _ in range(MEMBERS)]
        self._known: list[set[tuple[int, int]]] = [
            set() for _ in range(MEMBERS)
        ]  # accepted, or in the past of accepted messages
        self._has: list[set[tuple[int, int]]] = [set() for _ in range(MEMBERS)]  # accepted
        self._early: list[list[PaperMessage]] = [[] for _ in range(MEMBERS)]
        self._under_way: list[tuple[int, PaperMessage]] = []

    def run(self, moves: int) -> list[PaperMessage]:
        """Make so many random moves, and return the messages that were sent."""
        for _ in range(moves):
            if not self._under_way or self._rng.random() < 0.25:
                self._send(self._rng.randrange(MEMBERS))
            else:
                member, message = self._under_way.pop(self._rng.randrange(len(self._under_way)))
                if self._rng.random() < LOSS:
                    self._under_way.append((member, message))
                else:
                    self._early[member].append(message)
                    self._accept(member)
        return self.sent

    def _send(self, me: int) -> None:
        expected = self._expected[me]
        past = frozenset(self._known[me])
        message = PaperMessage(me, expected[me], tuple(expected), past, bool(past - self._has[me]))
        self.sent.append(message)
        self._take(me, message)
        self._under_way += [(member, message) for member in range(MEMBERS) if member != me]

    def _accept(self, me: int) -> None:
        while (
            ready := next((each for each in self._early[me] if self._is_next(me, each)), None)
        ) is not None:
            self._early[me].remove(ready)
            self._take(me, ready)

    def _is_next(self, me: int, message: PaperMessage) -> bool:
        expected = self._expected[me]
        if message.seq != expected[message.src]:
            return False
        return not self._waits or all(a <= e for a, e in zip(message.ack, expected, strict=True))

    def _take(self, me: int, message: PaperMessage) -> None:
        self._expected[me][message.src] = message.seq + 1
        self._has[me].add((message.src, message.seq))
        self._known[me] |= message.past | {(message.src, message.seq)}


def theorems(seeds: Iterable[int], moves: int = 120) -> Table:
    """Return, for each rule of acceptance: pairs; those whose precedence Theorem 1 gets wrong; those in which Theorem 2 reveals a
    loss, and those of them in which there was none; messages whose sender lacked another."""
    seeds = list(seeds)
    rows = []
    for rule, waits in (("printed", False), ("corrected", True)):
        pairs = mistaken = revealed = wrongly = lacked = 0
        for seed in seeds:
            sent = LossyWorld(seed, waits=waits).run(moves)
            lacked += sum(message.lacked for message in sent)
            for p, q in permutations(sent, 2):
                pairs += 1
                mistaken += precedes(p, q) != ((p.src, p.seq) in q.past)
                revealed += reveals_loss(p, q)
                wrongly += reveals_loss(p, q) and not q.lacked
        rows.append([rule, pairs, mistaken, revealed, wrongly, lacked])
    return Table(["acceptance", "pairs", "mistaken", "revealed", "wrongly", "lacked"], rows)
