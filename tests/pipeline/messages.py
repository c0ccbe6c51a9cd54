"""Random messages whose past is known as explicit sets, for restoring their order."""

from collections.abc import Sequence
from random import Random
from typing import Any

Id = tuple[int, int]


class Talk:
    """What some members said, and what each message knew."""

    def __init__(self, seed: int, members: int = 4, count: int = 40, room: str = "a") -> None:
        rng = Random(seed)
        self.members, self.room = members, room
        self.past: dict[Id, frozenset[Id]] = {}
        knows: list[set[Id]] = [set() for _ in range(members)]
        for _ in range(count):
            src = rng.randrange(members)
            for other in rng.sample(sorted(self.past), min(len(self.past), rng.randrange(3))):
                knows[src] |= {other, *self.past[other]}
            id_ = (src, 1 + max((seq for who, seq in self.past if who == src), default=0))
            self.past[id_] = frozenset(knows[src])
            knows[src].add(id_)
        self.ids = sorted(self.past)
        rng.shuffle(self.ids)

    def deps(self, id_: Id) -> list[int]:
        return [max((seq for who, seq in self.past[id_] if who == k), default=0) for k in range(self.members)]

    def row(self, id_: Id) -> dict[str, Any]:
        return {
            "room": self.room,
            "src": id_[0],
            "seq": id_[1],
            "deps": self.deps(id_),
            "text": f"{id_[0]} says {id_[1]}",
            "mood": None if id_[1] % 3 else id_[1],
        }

    def rows(self) -> list[dict[str, Any]]:
        """In a random order."""
        return [self.row(id_) for id_ in self.ids]

    def judge(self, order: Sequence[Id]) -> list[tuple[bool, bool]]:
        """(concurrent, gap) of each, from the sets."""
        marks = []
        for at, id_ in enumerate(order):
            before = set(order[:at])
            senders = {k for k, _ in self.past[id_]}
            tops = {max(each for each in self.past[id_] if each[0] == k) for k in senders}
            is_late = any(who == id_[0] and seq > id_[1] for who, seq in before)
            lacks = any(all(each != top and not _after(each, top) for each in before) for top in tops)
            marks.append(
                (any(each not in self.past[id_] for each in before if each[0] != id_[0]), lacks or is_late)
            )
        return marks

    def misplaced(self, order: Sequence[Id]) -> list[Id]:
        at = {id_: place for place, id_ in enumerate(order)}
        return [id_ for id_ in order if any(at[each] > at[id_] for each in self.past[id_] if each in at)]


def _after(each: Id, top: Id) -> bool:
    return each[0] == top[0] and each[1] > top[1]
