"""Which test executes which line: measured once, kept until a source or a test changes."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from .children import each_in_a_child
from .kinds import Lines
from .probes import Probed
from .trial import Place, measure


class Test(NamedTuple):
    """One test, as it runs without any mutant."""

    name: str
    seconds: float
    passed: bool
    lines: dict[str, int]  # by file, as bits

    def executes(self, watched: dict[str, int]) -> bool:
        return any(self.lines.get(file, 0) & mask for file, mask in watched.items())


class Measured:
    """All tests, and what they execute."""

    def __init__(self, tests: Iterable[Test], digest: str) -> None:
        self.tests = list(tests)
        self.digest = digest  # of sources and tests

    @property
    def red(self) -> list[str]:
        """Tests that fail without a mutant, so can tell nothing about one."""
        return [test.name for test in self.tests if not test.passed]

    def quick(self, seconds: float) -> "Measured":
        """Without the tests that take longer: for a first look, since a survivor costs the time of all of them."""
        tests = (test for test in self.tests if test.seconds <= seconds)
        return Measured(tests, f"{self.digest} {seconds:g}")

    def noticing(self, lines: Lines, files: Collection[str] = ()) -> dict[str, float]:
        """The tests that execute one of these lines, or are in one of these files, with their seconds."""
        watched = {file: sum(1 << line for line in numbers) for file, numbers in lines.items()}
        return {
            test.name: test.seconds
            for test in self.tests
            if test.passed and (test.executes(watched) or test.name.partition("::")[0] in files)
        }


def test_files(place: Place, folders: Iterable[str]) -> list[str]:
    """The files with tests in those folders (or that are named), as pytest calls them."""
    found: list[Path] = []
    for name in folders:
        path = place.tests / name
        found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path] * path.exists()
    return [file.relative_to(place.root).as_posix() for file in found]


def measured(
    place: Place,
    sources: Mapping[str, bytes],
    files: list[str],
    kept: Path,
    workers: int,
    say: Callable[[str], None],
) -> Measured:
    """Read what is kept; measure the rest."""
    common = _digest(_helpers(place))
    caches = {file: kept / f"{_digest([place.root / file], common)}.json" for file in files}
    if kept.is_dir():
        for old in set(kept.iterdir()) - set(caches.values()):
            old.unlink()
    kept.mkdir(parents=True, exist_ok=True)
    missing = [file for file in files if not caches[file].exists()]
    probed = {file: Probed(source) for file, source in sources.items()}
    for done, (file, ended) in enumerate(
        each_in_a_child(partial(measure, place, probed), missing, workers), 1
    ):
        if ended.status:
            raise RuntimeError(f"{file} could not be measured:\n{ended.output}")
        caches[file].write_text(json.dumps(ended.told))
        say(f"measured {done} of {len(missing)} test files")
    tests = (_test(row) for file in files for row in json.loads(caches[file].read_text()))
    return Measured(tests, _digest([], "".join(cache.name for cache in caches.values())))


def _test(row: dict[str, Any]) -> Test:
    lines = {file: int(mask, 16) for file, mask in row["lines"].items()}
    return Test(row["name"], row["seconds"], row["passed"], lines)


def _digest(paths: Iterable[Path], seed: str = "") -> str:
    hashed = sha256(seed.encode())
    for path in paths:
        hashed.update(str(path).encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()


def _helpers(place: Place) -> Iterator[Path]:
    """What every test may depend on: the package, and all in `tests` that is neither a test nor of this tool."""
    for folder in (place.package, place.tests):
        for path in sorted(folder.rglob("*")):
            is_ours = path.is_relative_to(place.tests / "mutants") or path.name.startswith("test_")
            if path.is_file() and path.parent.name != "__pycache__" and not is_ours:
                yield path
