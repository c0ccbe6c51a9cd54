"""Which mutants are planted: few of many, the same for the same seed, from all rooms and of all kinds."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice, zip_longest
from math import sqrt

from .kinds import Mutant


def choose(mutants: Iterable[Mutant], sources: Mapping[str, bytes], *, count: int, seed: int) -> list[Mutant]:
    """A room's share grows with the root of what it offers, so that small rooms are seen; kinds take turns."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        rooms[mutant.room].append(mutant)
    weights = {room: sqrt(len(rooms[room])) for room in sorted(rooms)}
    chosen: list[Mutant] = []
    for room, weight in weights.items():
        share = round(count * weight / sum(weights.values()))
        valid = (each for each in _in_turns(rooms[room], seed) if _is_valid(each, sources[each.file]))
        chosen += islice(valid, share)
    return sorted(chosen, key=lambda mutant: _lot(mutant, seed))


def _in_turns(mutants: list[Mutant], seed: int) -> Iterator[Mutant]:
    """One of each kind, then a second of each, and so on."""
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(mutants, key=lambda mutant: _lot(mutant, seed)):
        kinds[mutant.kind].append(mutant)
    for turn in zip_longest(*(kinds[kind] for kind in sorted(kinds))):
        yield from (mutant for mutant in turn if mutant is not None)


def _lot(mutant: Mutant, seed: int) -> bytes:
    """By what it changes, not by where: an edit somewhere else hardly changes the sample."""
    return sha256(repr((seed, mutant.change)).encode()).digest()


def _is_valid(mutant: Mutant, source: bytes) -> bool:
    """Whether it is Python at all: text that is cut out may leave a parenthesis behind."""
    try:
        ast.parse(mutant.plant(source))
    except SyntaxError:
        return False
    return True
