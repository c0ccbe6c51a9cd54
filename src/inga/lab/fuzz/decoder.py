"""What a decoder promises, and whether it keeps that for given octets.

errors    whatever the octets are, it raises nothing but the errors that it documents
time      of one decoding grows with the octets, and no faster; measured in time of the processor, and again before it
          counts, so that a busy machine accuses nobody
memory    the same; measured for a few, and bounded for all
stable    what it accepts can be encoded, and decoding that gives the same
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
"""What any decoding may take: many times of what a pause of the garbage collection does."""

OCTET_SECONDS = 3e-6
"""And for each octet more, where the table says nothing else."""

MEMORY = 1 << 18
"""Bytes that any decoding may use at the same time."""

OCTET_MEMORY = 256
"""And for each octet more: an empty list of two octets is an object of 72 bytes."""

REPEATS = 3
"""How often something has to be slow."""

WEIGHT = 1000


class BrokenPromise(NamedTuple):
    """A promise that is broken. Two of the same kind are taken for the same fault."""

    kind: str
    text: str


class DecoderOutcome(NamedTuple):
    """What became of some octets."""

    is_accepted: bool
    finding: BrokenPromise | None = None


@dataclass(frozen=True)
class FuzzedDecoder:
    """One decoder, the samples that it begins with, and what it promises."""

    name: str  # FAMILY or FAMILY/PART
    make: Callable[[], Sequence[FuzzSample]]  # of the product's own encoders
    decode: Callable[[bytes], Any]
    errors: tuple[type[Exception], ...] = (WireError,)  # documented
    again: Callable[[Any], Any] | None = (
        None  # encode a result and decode that: where it is promised to be the same
    )
    same: Callable[[Any], Any] = lambda result: result  # by what results are compared
    mend: Mend | None = None
    weight: int = WEIGHT  # share of all runs: less for what is slow
    seconds: float = SECONDS
    octet_seconds: float = OCTET_SECONDS
    memory: int | None = (
        MEMORY  # None: it is not Python's own, and threads of others use it, so that it is not measured
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
        """Decode, and say what is wrong with how that went; with its memory `measured`, which takes long."""
        before = thread_time()
        is_accepted = True
        try:
            result = self.decode(octets)
        except self.errors:
            is_accepted, result = False, None
        except Exception as error:  # whatever else is raised is a find
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
        except Exception as error:  # also one that is documented: of what was accepted nothing may be refused
            kind, text = _raised(error)
            return BrokenPromise(f"unstable: {kind}", text)
        if self.same(other) != self.same(result):
            return BrokenPromise("unstable", f"{result!r:.300} becomes {other!r:.300}")
        return None


def _raised(error: Exception) -> BrokenPromise:
    where = extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} in {where.name}"
    return BrokenPromise(kind, f"{kind}, line {where.lineno} of {where.filename}: {str(error)[:300]}")
