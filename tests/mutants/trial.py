"""Tests run in this process, with a mutant in the place of a module, or with a record of the lines they execute.

Nothing of the package may be loaded before: children are forked for it from a process that never imports it.
"""

import ast
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from time import process_time
from types import CodeType, ModuleType
from typing import Any

import hypothesis
import hypothesis.stateful  # both so that children need not load it
import pytest

from .children import Tell, limit
from .kinds import Mutant
from .probes import NAME, Probed

PACKAGE = "inga"
MARKS = "not (hunt or spark or network or browser or interop)"
"""Quick tests only, and none that could fail for a reason outside: a mutant is seen by pure tests or not at all."""

SLOWER = 20
"""A mutant may make a test this much slower before it counts as noticed, beside some seconds in any case."""

QUICK_SECONDS = 0.1

FRESH = str(1 << 32)
"""Where fresh seeds begin: the same in every run, so that a mutant is noticed always or never."""

WALL_SECONDS = 120.0
"""For a test that waits for ever without computing, and for tests that are loaded for ever."""

Replacement = tuple[bytes | ast.Module, dict[str, Any]]
"""The code of a module, and globals it finds when it starts."""


@dataclass(frozen=True)
class Place:
    """Where sources and tests are."""

    root: Path

    @property
    def package(self) -> Path:
        return self.root / "src" / PACKAGE

    @property
    def tests(self) -> Path:
        return self.root / "tests"


@dataclass
class Trial:
    """A mutant, and the tests that could notice it: seconds of CPU by name."""

    mutant: Mutant
    tests: dict[str, float] = field(repr=False)


# Jobs of children


def measure(place: Place, probed: Mapping[str, Probed], file: str, tell: Tell, scratch: Path) -> None:
    """Tell of every test in a file how it ended, how long it took, and which lines of the package it executed."""
    enter(place, scratch, {name: (each.tree, {NAME: each.hits}) for name, each in probed.items()})
    watch = Watch(probed, tell)
    if run_pytest(place, [file], scratch, [watch]) == pytest.ExitCode.INTERRUPTED:  # it cannot even be loaded
        tell({"name": file, "passed": False, "seconds": 0.0, "lines": {}})


def try_mutant(place: Place, patience: float, trial: Trial, tell: Tell, scratch: Path) -> None:
    """Tell each test before it starts, and whether one failed. Quick tests of the mutant's own room come first: they
    are likely to notice, and loading them alone takes less time than loading all."""
    mutant = trial.mutant
    source = mutant.plant((place.package / mutant.file).read_bytes())
    enter(place, scratch, {mutant.file: (source, {})})
    near = {
        test: seconds
        for test, seconds in trial.tests.items()
        if seconds < QUICK_SECONDS and test.startswith(f"tests/{mutant.room}/")
    }
    far = {test: seconds for test, seconds in trial.tests.items() if test not in near}
    for tests in filter(None, (near, far)):
        limit(cpu=WALL_SECONDS, wall=WALL_SECONDS)  # to load them
        files = sorted({test.partition("::")[0] for test in tests})
        code = run_pytest(place, files, scratch, [Hurry(tests, patience, tell)])
        if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            tell({"failed": True})
            return


def enter(place: Place, scratch: Path, replaced: Mapping[str, Replacement]) -> None:
    """Make this process one in which the tests of that place can run, with other code in some files."""
    assert PACKAGE not in sys.modules
    os.chdir(place.root)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(scratch / "hypothesis")
    os.environ["INGA_SEED"] = FRESH
    os.environ["PYTHONPATH"] = str(place.package.parent)
    sys.path.insert(0, str(place.package.parent))
    sys.meta_path.insert(0, Finder(place, replaced))


def run_pytest(place: Place, files: Iterable[str], scratch: Path, plugins: list[object]) -> int:
    options = "-q --tb=short -p no:cacheprovider -o faulthandler_timeout=0".split()
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins are loaded already, on purpose
    folders = [f"--rootdir={place.root}", f"--basetemp={scratch / 'tmp'}"]
    code = pytest.main([*options, *folders, "-m", MARKS, *files], plugins=[Calm(), *plugins])
    assert code != pytest.ExitCode.USAGE_ERROR
    return code


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that have other code here."""

    def __init__(self, place: Place, replaced: Mapping[str, Replacement]) -> None:
        self._modules = {
            ".".join((PACKAGE, *Path(file).with_suffix("").parts)).removesuffix(".__init__"): (
                place.package / file,
                new,
            )
            for file, new in replaced.items()
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._modules:
            return None
        file, replacement = self._modules[fullname]
        loader = Loader(fullname, file, replacement)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


class Loader(SourceFileLoader):
    """Loads a module as if that had been in its file."""

    def __init__(self, name: str, path: Path, replacement: Replacement) -> None:
        super().__init__(name, str(path))
        self._code, self._globals = replacement

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._code, self.path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._globals)
        super().exec_module(module)


# Plugins of pytest


class Calm:
    """Hypothesis tries the same examples in every run, and does not look for smaller ones once it has failed."""

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if isinstance(collector, pytest.Module):  # the profile its conftest.py has chosen is in force by now
            settings, phase = hypothesis.settings, hypothesis.Phase
            settings.register_profile(
                "mutants",
                settings(),
                derandomize=True,
                database=None,
                phases=[phase.explicit, phase.generate],
            )
            settings.load_profile("mutants")


class Watch:
    """Tells which test executed which lines, for how long, and whether it failed."""

    def __init__(self, probed: Mapping[str, Probed], tell: Tell) -> None:
        self.probed = probed
        self.tell = tell
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for each in self.probed.values():
            each.reset()
        started = process_time()
        result = yield
        lines = {file: f"{bits:x}" for file, each in self.probed.items() if (bits := each.executed)}
        passed = item.nodeid not in self.failed
        self.tell(
            {"name": item.nodeid, "passed": passed, "seconds": process_time() - started, "lines": lines}
        )
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


class Hurry:
    """Runs some tests, the quickest first, each for a limited time, until one fails."""

    def __init__(self, tests: Mapping[str, float], patience: float, tell: Tell) -> None:
        self.tests = tests
        self.patience = patience
        self.tell = tell

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        session.config.option.maxfail = 1
        items[:] = sorted(
            (item for item in items if item.nodeid in self.tests), key=lambda item: self.tests[item.nodeid]
        )

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.tell({"test": nodeid})
        slower = SLOWER * self.tests[nodeid]
        limit(cpu=self.patience + slower, wall=WALL_SECONDS + slower)
