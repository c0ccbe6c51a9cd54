"""The search: thousands of mutations, each another seed, the faults that they find, and the shortest octets that show these."""

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from random import Random
from resource import RLIMIT_AS, getrlimit, setrlimit
from typing import NamedTuple

from inga.lab.fuzz.decoder import BrokenPromise
from inga.lab.fuzz.mutate import shrunk
from inga.lab.fuzz.table import DECODERS, Shares, chosen
from inga.model.errors import UsageError
from inga.sim.workers import workers

CHUNK = 2000
"""Seeds that a worker gets at a time."""

MEASURED_ONE_IN = 1000
"""Memory is measured for one seed in this many, since that takes as long as many decodings."""

FAULTS_MAX = 20
"""The number of different faults after which a search ends."""

MEMORY_MAX = 2 << 30
"""Bytes of address space that a search may use beyond those at its start: a decoder that allocates more gets a MemoryError, which
no decoder documents."""


class DecoderFault(NamedTuple):
    """Octets with which a decoder breaks a promise."""

    seed: int
    decoder: str
    finding: BrokenPromise
    octets: bytes

    @property
    def command(self) -> str:
        """The command that shows the fault again."""
        return f"inga fuzz --replay {self.decoder}:{self.octets.hex()}"


@dataclass(slots=True)
class FuzzResult:
    """The result of a search: counts by decoder, and the faults."""

    runs: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    faults: list[DecoderFault] = field(default_factory=list)

    def add(self, other: "FuzzResult") -> None:
        self.runs += other.runs
        self.accepted += other.accepted
        known = {(each.decoder, each.finding.kind) for each in self.faults}
        self.faults += [each for each in other.faults if (each.decoder, each.finding.kind) not in known]

    @property
    def total(self) -> int:
        return self.runs.total()


def octets_of(name: str, seed: int) -> bytes:
    """Return the mutation that a seed stands for, for one decoder."""
    return DECODERS[name].mutator.mutate(Random(seed))


def replay(text: str) -> BrokenPromise | None:
    """Decode octets given as DECODER:HEX, as a search prints them, and return what is wrong."""
    name, _, digits = text.partition(":")
    try:
        octets = bytes.fromhex(digits)
    except ValueError:
        raise UsageError("--replay takes DECODER:HEX, as a search has printed it") from None
    chosen([name])
    if name not in DECODERS:
        raise UsageError(f"{name} is a family; name one of its decoders")
    with watched():
        return DECODERS[name].judge(octets, measured=True).finding


def try_seeds(names: Sequence[str], first: int, count: int) -> FuzzResult:
    """Try the seeds from `first` on; keep the first fault of each kind."""
    decoders = chosen(names)
    shares, found = Shares(decoders), FuzzResult()
    rng = Random()
    known: set[tuple[str, str]] = set()
    with watched():
        for seed in range(first, first + count):
            decoder = shares.decoder(seed)
            rng.seed(seed)
            octets = decoder.mutator.mutate(rng)
            is_accepted, finding = decoder.judge(octets, measured=seed % MEASURED_ONE_IN == 0)
            found.runs[decoder.name] += 1
            found.accepted[decoder.name] += is_accepted
            if finding is not None and (decoder.name, finding.kind) not in known:
                known.add((decoder.name, finding.kind))
                found.faults.append(DecoderFault(seed, decoder.name, finding, octets))
    return found


def _shrunk(fault: DecoderFault) -> DecoderFault:
    """Return the fault with the shortest octets found that show the same kind of fault."""
    decoder, kind = DECODERS[fault.decoder], fault.finding.kind
    measured = kind == "memory"

    def fails(octets: bytes) -> bool:
        finding = decoder.judge(octets, measured=measured).finding
        return finding is not None and finding.kind == kind

    small = shrunk(fault.octets, fails, tries=300 if kind in ("slow", "memory") else 3000)
    return fault._replace(
        octets=small, finding=decoder.judge(small, measured=measured).finding or fault.finding
    )


@contextmanager
def watched() -> Iterator[None]:
    """Within this block, limit the memory of this process to `MEMORY_MAX` more than it uses now, and treat warnings as errors."""
    before = getrlimit(RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * 4096
    limits = [each for each in (*before, used + MEMORY_MAX) if each >= 0]
    setrlimit(RLIMIT_AS, (min(limits), before[1]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        setrlimit(RLIMIT_AS, before)


def prepare(names: Sequence[str]) -> None:
    """Make all samples, once for all processes, and exclude them from garbage collection."""
    for decoder in chosen(names):
        decoder.mutator.mutate(Random(0))
    gc.collect()
    gc.freeze()


def search(
    names: Sequence[str],
    runs: int,
    seed: int = 0,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> FuzzResult:
    """Try `runs` seeds from `seed` on, or until there are many different faults. An interrupt raises `Interrupted` with what was
    done so far."""
    found = FuzzResult()
    chunks = _chunks(runs, seed)
    try:
        prepare(names)
        results = _here(names, chunks) if jobs == 1 else _in_processes(names, chunks, jobs)
        with closing(results):
            for result in results:
                found.add(result)
                progress(found.total)
                if len(found.faults) >= FAULTS_MAX:
                    break
    except KeyboardInterrupt:
        raise Interrupted(found) from None
    with watched():
        found.faults = [_shrunk(each) for each in found.faults]
    return found


class Interrupted(KeyboardInterrupt):
    """Raised when a search is interrupted; `found` is its result until then."""

    def __init__(self, found: FuzzResult) -> None:
        super().__init__()
        self.found = found


def _here(names: Sequence[str], chunks: Iterator[tuple[int, int]]) -> Generator[FuzzResult, None, None]:
    for first, count in chunks:
        yield try_seeds(names, first, count)


def _in_processes(
    names: Sequence[str], chunks: Iterator[tuple[int, int]], jobs: int
) -> Generator[FuzzResult, None, None]:
    pending: dict[Future[FuzzResult], tuple[int, int]] = {}
    with workers(jobs) as pool:
        while True:
            for chunk in chunks:
                pending[pool.submit(try_seeds, names, *chunk)] = chunk
                if len(pending) >= 2 * jobs:
                    break
            if not pending:
                return
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                under_way = sorted(pending.values())
                del pending[future]
                try:
                    yield future.result()
                except BrokenProcessPool:
                    first = ", ".join(str(each) for each, _ in under_way)
                    raise UsageError(
                        f"a process died, which no octets may bring about: in the {CHUNK} seeds from one of {first}; "
                        "try these with --jobs 1"
                    ) from None


def _chunks(runs: int, seed: int) -> Iterator[tuple[int, int]]:
    for first in range(seed, seed + runs, CHUNK):
        yield first, min(CHUNK, seed + runs - first)
