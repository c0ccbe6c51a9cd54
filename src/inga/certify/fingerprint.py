"""Compare sends and deliveries without a join: sums of keyed hashes.

Every message is hashed with its number and vector. If, for a sender and a destination, the hashes of sends
and of deliveries have the same sum and the same count, they are the same messages with the same vectors. Two
different collections have equal sums once in 2^64 times; the keys are drawn afresh for every check, so not even
a forger can aim at a collision.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inga.certify.chunk import Chunk

Words = NDArray[np.uint64]

MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of SplitMix64's finaliser."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Random odd factors: one for the number of a message, one per entry of its vector, one for no vector."""

    seq: int
    deps: Words
    unstamped: int

    @classmethod
    def draw(cls, n: int, seed: int | None = None) -> "Keys":
        """From the operating system's entropy unless a seed is given."""
        random = np.random.default_rng(seed)
        words = random.integers(0, 2**64, n + 2, dtype=np.uint64) | np.uint64(1)
        return cls(int(words[0]), words[2:], int(words[1]))


def hashes(chunk: Chunk, keys: Keys) -> Words:
    """A word for every row of a chunk."""
    words = chunk.seq.astype(np.uint64) * np.uint64(keys.seq)
    if len(chunk) < chunk.n:  # fewer rows than entries: a loop over rows is shorter
        products = (vector.astype(np.uint64) @ keys.deps for vector in chunk.deps)
        words += np.fromiter(products, np.uint64, len(chunk))
    else:
        for entry, key in enumerate(keys.deps):
            words += chunk.deps[:, entry].astype(np.uint64) * key
    if not chunk.stamped.all():
        words[~chunk.stamped] += np.uint64(keys.unstamped)
    return mix(words)


def mix(words: Words) -> Words:
    """SplitMix64's finaliser: without it, sums of hashes would be hashes of sums."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(MIX_1)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(MIX_2)
    return words ^ (words >> np.uint64(31))
