"""All decoders by name, and the assignment of seeds to them."""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from inga.lab.fuzz import broker, files, native, secured
from inga.lab.fuzz.decoder import FuzzedDecoder
from inga.model.errors import UsageError

DECODERS: dict[str, FuzzedDecoder] = {
    each.name: each for each in (*native.DECODERS, *secured.DECODERS, *broker.DECODERS, *files.DECODERS)
}

FAMILIES = tuple(dict.fromkeys(each.family for each in DECODERS.values()))


def chosen(names: Sequence[str]) -> list[FuzzedDecoder]:
    """Return the decoders with these names or of these families; all if no names are given."""
    for name in names:
        if name not in DECODERS and name not in FAMILIES:
            raise UsageError(
                f"no decoder {name!r}; there are {', '.join(FAMILIES)}, and of these {', '.join(DECODERS)}"
            )
    return [each for each in DECODERS.values() if not names or {each.name, each.family} & set(names)]


class Shares:
    """Assigns each seed to a decoder: always to the same one, and to each in proportion to its weight."""

    MIXER = 0x9E3779B97F4A7C15  # odd, so that multiplication merges no two seeds; the high bits of products look random

    def __init__(self, decoders: Sequence[FuzzedDecoder]) -> None:
        self._decoders = decoders
        self._borders = list(accumulate(each.weight for each in decoders))

    def decoder(self, seed: int) -> FuzzedDecoder:
        if len(self._decoders) == 1:
            return self._decoders[0]
        mixed = (seed + 1) * self.MIXER % (1 << 64) >> 32
        return self._decoders[bisect(self._borders, mixed * self._borders[-1] >> 32)]
