"""The metadata of a trace: the manifest of the run and one small file per process.

Both are JSON objects. They are replaced as a whole, by renaming, so no reader sees half of one; unknown keys
are kept, since a newer writer or a person may have added them.
"""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from inga.certify.checks import CHECKS
from inga.model.errors import TraceError
from inga.trace.directory import whole_file
from inga.trace.schema import RECEIPTS

FORMAT = 1
MANIFEST = "manifest.json"
CLOCKS = ("virtual", "wall")
RECEIVERS = "receivers"
"""The value of the option `destinations` in a trace made from a log that does not name destinations: `dst` of a send lists the
processes that received it."""
LINES = "lines"
"""The value of the option `times` in a trace made from a log without times: `time` only counts its lines."""


@dataclass
class Manifest:
    """The description of a run. The program that starts a run writes it, and writes it again at the end if it knows the end."""

    group: str
    processes: list[str]  # names; a process is known by its position here
    source: str  # live, sim, import:shiviz, ...
    order: str  # name of the recipe
    receipt: str  # the step that makes a message a cause at its receiver
    clock: str
    guarantees: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    conflicts: dict[str, list[list[str]]] | None = None  # object runs: per process, pairs of methods
    undecided: dict[str, list[list[str]]] | None = None  # the same, where arguments decide on the conflict
    complete: bool = False
    run: str = field(default_factory=lambda: str(uuid4()))
    format: int = FORMAT
    extra: dict[str, Any] = field(default_factory=dict)  # keys unknown here

    @property
    def is_import(self) -> bool:
        """Whether the trace was made from another system's log; then `ref` of its rows names lines of that log."""
        return self.source.startswith("import:")

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {key: getattr(self, key) for key in _MANIFEST_RULES} | self.extra

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Write the manifest into a trace's directory, or raise the `TraceError` that reading it would raise."""
        path = Path(directory) / MANIFEST
        content = self.to_json()
        _check_manifest(content, str(path))
        write_json(path, content)

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> Self:
        """Read and check a manifest; `where` names it in errors."""
        content = load_json(text, where)
        # The format is checked first: another format may have other keys.
        _check(content, {"format": _MANIFEST_RULES["format"]}, where)
        _check_manifest(content, where)
        return cls(**_split(content, _MANIFEST_RULES))


@dataclass
class ProcessFile:
    """What is known about the rows of one process. `complete` and `crashed` are independent of each other:
    a simulated crash loses no row, a killed member loses its open segment."""

    process: int
    name: str
    first_view: int | None = None  # None before the first finished segment
    last_pos: int = 0  # position of the last row in a finished segment
    complete: bool = False  # no row is missing after `last_pos`
    crashed: bool = False
    disclaims: list[str] = field(default_factory=list)  # guarantees that this process gave up for the run
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {key: getattr(self, key) for key in _PROCESS_RULES} | self.extra

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Write the process file into a trace's directory."""
        write_json(process_path(directory, self.process), self.to_json())

    @property
    def has_begun(self) -> bool:
        """Whether the process has begun, so that it may have rows. False if its number was only claimed."""
        return not (self.complete and self.crashed) or self.last_pos > 0

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> Self:
        """Read and check a process file; `where` names it in errors."""
        content = load_json(text, where)
        _check(content, _PROCESS_RULES, where)
        return cls(**_split(content, _PROCESS_RULES))


def process_path(directory: str | os.PathLike[str], process: int) -> Path:
    return Path(directory) / "processes" / f"{process}.json"


def mark_crashed(directory: str | os.PathLike[str], process: int, name: str) -> None:
    """Record that a process was killed. For the launcher that killed it, once the process has ended."""
    path = process_path(directory, process)
    try:
        known = ProcessFile.parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        known = ProcessFile(process, name)
    known.crashed = True
    known.write(directory)


def claim(directory: str | os.PathLike[str], process: int) -> bool:
    """Reserve a number for a process that has not begun; False if the number is taken.

    Until the process begins, and writes its own file, the file says that it has crashed and is complete: a process that
    never begins lacks no rows, so that it leaves no check undecided.
    """
    unborn = ProcessFile(process, f"process {process}", complete=True, crashed=True)
    return write_json(process_path(directory, process), unborn.to_json(), anew=True)


def write_json(path: Path, content: dict[str, Any], *, anew: bool = False) -> bool:
    """Replace a file as a whole; with `anew` only if it does not exist. Return whether it was written."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    try:
        with whole_file(path, anew=anew) as hidden:
            hidden.write_text(text, encoding="utf-8")
    except OSError as error:
        if anew and isinstance(error, FileExistsError) and path.exists():
            return False
        raise TraceError(f"{path} cannot be written: {error.strerror}.") from error
    return True


DEPTH_MAX = 100
"""The deepest nesting of JSON lists and objects that is read: more than any trace has."""


def load_json(text: str | bytes, where: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also for bytes that are not UTF-8
        raise TraceError(f"{where} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise TraceError(f"{where} must hold a JSON object, not {shown(content)}.")
    if _is_deep(content):
        raise TraceError(f"{where} is nested more than {DEPTH_MAX} times.")
    return content


def _is_deep(content: Any) -> bool:
    """Whether lists and objects are nested deeper than DEPTH_MAX. The limit is our own, since the depth that Python can read and
    write depends on how deep the caller's stack is."""
    level = [content]
    for _ in range(DEPTH_MAX):
        values = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [inner for each in values for inner in each if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _split(content: dict[str, Any], rules: "dict[str, Rule]") -> dict[str, Any]:
    """The arguments for the dataclass: the keys that `rules` knows, and `extra` with all others."""
    return {
        **{key: value for key, value in content.items() if key in rules},
        "extra": {key: value for key, value in content.items() if key not in rules},
    }


# ---- what each key must be: (whether it is required, the test, the test in words)

Rule = tuple[bool, Callable[[Any], bool], str]


def _is_int(value: Any) -> bool:
    return type(value) is int


def _is_count(value: Any) -> bool:
    return _is_int(value) and value >= 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_checks(value: Any) -> bool:
    return isinstance(value, list) and all(_is_name(each) and each in CHECKS for each in value)


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(map(_is_name, pair)) for pair in value
    )


_PAIRS: Rule = (
    False,
    lambda value: value is None or (isinstance(value, dict) and all(map(_is_pairs, value.values()))),
    "null or an object: for each process a list of pairs of methods",
)

_MANIFEST_RULES: dict[str, Rule] = {
    "format": (True, lambda value: _is_int(value) and value == FORMAT, f"{FORMAT}, the only one known here"),
    "run": (True, _is_name, "a text"),
    "group": (True, _is_name, "a text"),
    "processes": (
        True,
        lambda value: isinstance(value, list) and value != [] and all(map(_is_name, value)),
        "a list of at least one name",
    ),
    "source": (True, _is_name, "a text"),
    "order": (True, _is_name, "a text"),
    "guarantees": (True, _is_checks, "a list of " + ", ".join(CHECKS)),
    "receipt": (True, lambda value: value in RECEIPTS, "one of " + ", ".join(RECEIPTS)),
    "options": (False, lambda value: isinstance(value, dict), "an object"),
    "seed": (False, lambda value: value is None or _is_int(value), "a whole number or null"),
    "clock": (True, lambda value: value in CLOCKS, "one of " + ", ".join(CLOCKS)),
    "conflicts": _PAIRS,
    "undecided": _PAIRS,
    "complete": (False, _is_bool, "true or false"),
}

_PROCESS_RULES: dict[str, Rule] = {
    "process": (True, _is_count, "an index"),
    "name": (True, _is_name, "a text"),
    "first_view": (False, lambda value: value is None or _is_count(value), "the number of a view or null"),
    "last_pos": (True, _is_count, "a position or 0"),
    "complete": (True, _is_bool, "true or false"),
    "crashed": (False, _is_bool, "true or false"),
    "disclaims": (False, _is_checks, "a list of " + ", ".join(CHECKS)),
}


def _check_manifest(content: dict[str, Any], where: str) -> None:
    """Check all keys, and that process names are unique: conflicts are declared by name, and witnesses refer to processes by it."""
    _check(content, _MANIFEST_RULES, where)
    name, count = Counter(content["processes"]).most_common(1)[0]
    if count > 1:
        raise TraceError(f'{where}: {count} of "processes" are called {shown(name)}.')


def _check(content: dict[str, Any], rules: dict[str, Rule], where: str) -> None:
    for key, (required, is_right, words) in rules.items():
        if key not in content:
            if required:
                raise TraceError(f'{where} has no "{key}".')
        elif not is_right(content[key]):
            raise TraceError(f'{where}: "{key}" must be {words}, not {shown(content[key])}.')


def whole(value: Any) -> str:
    """A JSON value as a text that differs for different values."""
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except RecursionError:  # when it was read, the stack was a little less deep
        return "something nested too deeply"


def shown(value: Any) -> str:
    """A JSON value as it is shown in a message, shortened."""
    text = whole(value)
    return text if len(text) <= 60 else text[:57] + "..."
