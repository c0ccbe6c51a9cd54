"""The promises of a decoder, and the judge of whether it keeps them for given octets.

errors    for any octets it raises only the errors that it documents
time      of one decoding is at most linear in the number of octets; measured in processor time, and repeated before it
          counts, so that a busy machine causes no false findings
memory    likewise; measured for a few seeds, and bounded for all
stable    what it accepts can be encoded, and decoding that gives an equal result
"""

import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from time import thread_time
from traceback import extract_tb
from typing import Any, NamedTuple

from inga.lab.fuzz.mutate import FuzzSample, Mend, Mutator
from inga.model.errors import WireError

SECONDS = 0.03
"""Seconds that any decoding may take: many times a pause of garbage collection."""

OCTET_SECONDS = 3e-6
"""Seconds that it may take in addition for each octet, unless `DECODERS` has another value."""

MEMORY = 1 << 18
"""Bytes that any decoding may use at the same time."""

OCTET_MEMORY = 256
"""Bytes that it may use in addition for each octet: an empty list, encoded in two octets, is an object of 72 bytes."""

REPEATS = 3
"""The number of repetitions that must all be slow before slowness counts."""

WEIGHT = 1000
"""The weight of most decoders."""


class BrokenPromise(NamedTuple):
    """A promise that is broken. Two of the same kind count as the same fault."""

    kind: str
    text: str


class DecoderOutcome(NamedTuple):
    """The outcome of decoding some octets."""

    is_accepted: bool
    finding: BrokenPromise | None = None


@dataclass(frozen=True)
class FuzzedDecoder:
    """One decoder, the samples to mutate, and its promises."""

    name: str  # FAMILY or FAMILY/PART
    make: Callable[[], Sequence[FuzzSample]]  # makes the samples, by inga's own encoders
    decode: Callable[[bytes], Any]
    errors: tuple[type[Exception], ...] = (WireError,)  # those that it documents
    again: Callable[[Any], Any] | None = (
        None  # encodes a result and decodes that, if the decoder promises an equal result
    )
    same: Callable[[Any], Any] = lambda result: result  # converts results for comparison
    mend: Mend | None = None
    weight: int = WEIGHT  # share of all runs: less for slow decoders
    seconds: float = SECONDS
    octet_seconds: float = OCTET_SECONDS
    memory: int | None = (
        MEMORY  # None: not measured, since a library allocates memory outside of Python, in threads of its own
    )

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]

    @cached_property
    def samples(self) -> Sequence[FuzzSample]:
        return self.make()

    @cached_property
    def mutator(self) -> Mutator:
        return Mutator(self.samples, self.mend)

    def seconds_max(self, octets: bytes) -> float:
        return self.seconds + self.octet_seconds * len(octets)

    def judge(self, octets: bytes, *, measured: bool = False) -> DecoderOutcome:
        """Decode octets, and judge that. `measured`: measure memory, too, which takes long."""
        before = thread_time()
        is_accepted = True
        try:
            result = self.decode(octets)
        except self.errors:
            is_accepted, result = False, None
        except Exception as error:  # any other exception is a finding
            return DecoderOutcome(False, _raised(error))
        seconds = thread_time() - before
        if seconds > self.seconds_max(octets) and (finding := self._slow(octets)):
            return DecoderOutcome(is_accepted, finding)
        if measured and (finding := self._large(octets)):
            return DecoderOutcome(is_accepted, finding)
        if is_accepted and self.again is not None:
            return DecoderOutcome(True, self._unstable(result))
        return DecoderOutcome(is_accepted)

    def _slow(self, octets: bytes) -> BrokenPromise | None:
        least = min(self._seconds(octets) for _ in range(REPEATS))
        if least <= self.seconds_max(octets):
            return None
        return BrokenPromise("slow", f"{least:.3f} s for {len(octets)} octets")

    def _seconds(self, octets: bytes) -> float:
        before = thread_time()
        self._attempt(octets)
        return thread_time() - before

    def _attempt(self, octets: bytes) -> None:
        with suppress(*self.errors):
            self.decode(octets)

    def _large(self, octets: bytes) -> BrokenPromise | None:
        if self.memory is None:
            return None
        tracemalloc.start(1)
        try:
            before = tracemalloc.get_traced_memory()[0]
            self._attempt(octets)
            most = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
        if most <= self.memory + OCTET_MEMORY * len(octets):
            return None
        return BrokenPromise("memory", f"{most:,} bytes for {len(octets)} octets")

    def _unstable(self, result: Any) -> BrokenPromise | None:
        assert self.again is not None
        try:
            other = self.again(result)
        except Exception as error:  # also one that is documented: what was accepted must be accepted again
            kind, text = _raised(error)
            return BrokenPromise(f"unstable: {kind}", text)
        if self.same(other) != self.same(result):
            return BrokenPromise("unstable", f"{result!r:.300} becomes {other!r:.300}")
        return None


def _raised(error: Exception) -> BrokenPromise:
    where = extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} in {where.name}"
    return BrokenPromise(kind, f"{kind}, line {where.lineno} of {where.filename}: {str(error)[:300]}")
