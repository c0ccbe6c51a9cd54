"""All decoders by name, and which of them a seed is for."""

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
    """Decoders by their own names or those of their families; without any, all."""
    for name in names:
        if name not in DECODERS and name not in FAMILIES:
            raise UsageError(
                f"no decoder {name!r}; there are {', '.join(FAMILIES)}, and of these {', '.join(DECODERS)}"
            )
    return [each for each in DECODERS.values() if not names or {each.name, each.family} & set(names)]


class Shares:
    """Which decoder a seed is for: the same one always, and each as often as its weight says."""

    MIXER = 0x9E3779B97F4A7C15  # odd, so that no two seeds fall together; its high bits look like chance

    def __init__(self, decoders: Sequence[FuzzedDecoder]) -> None:
        self._decoders = decoders
        self._borders = list(accumulate(each.weight for each in decoders))

    def decoder(self, seed: int) -> FuzzedDecoder:
        if len(self._decoders) == 1:
            return self._decoders[0]
        mixed = (seed + 1) * self.MIXER % (1 << 64) >> 32
        return self._decoders[bisect(self._borders, mixed * self._borders[-1] >> 32)]
