"""Every kind of mutant, found where it should be and nowhere else."""

import ast
from textwrap import dedent

import pytest

from .kinds import Mutant, find_mutants
from .sample import choose

CLASS = '''
"""A module."""

QUEUE_MAX = 1 << 4


class Layer:
    """A class."""

    name = "layer"

    def __init__(self, delay: float = 0.5) -> None:
        self.delay = delay
        self._held = {}

    def view(self, view) -> None:
        self._held = {}
        self._last = 0

    def gone(self, member: int) -> None:
        """Somebody left."""
        self._held.pop(member, None)
        self._rearm()

    def put(self, item, now: float) -> bool:
        if len(self._held) >= QUEUE_MAX:
            return False
        assert now >= 0
        self._held[item] = now
        self._wake_at = now + min(self.delay * 2, 8)
        self.sender.send(item, urgent=True)
        return True

    def find(self, first: int, *, urgent: bool = False) -> list[int]:
        for item in self._held:
            if item < first or urgent and item:
                continue
            self._count += 1
            if self._count > 3:
                raise ValueError(f"{self._count + 1} are too many")
        return sorted(self._held)[first - 1 :]
'''


def changes(kind: str, source: str = CLASS) -> list[tuple[str, str, str]]:
    found = find_mutants({"layers/layer.py": dedent(source).encode()})
    return [(mutant.function, mutant.before, mutant.after) for mutant in found if mutant.kind == kind]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "timer",
            {
                ("Layer.gone", "self._rearm()", "pass"),
                ("Layer.put", "self._wake_at = now + min(self.delay * 2, 8)", "pass"),
            },
        ),
        ("release", {("Layer.gone", "self._held.pop(member, None)", "pass")}),
        (
            "state",
            {
                (
                    "Layer.view",
                    "self._held = {}",
                    "pass",
                ),  # `_last` is declared there: nothing would work without
                ("Layer.put", "self._held[item] = now", "pass"),
                ("Layer.find", "self._count += 1", "pass"),
            },
        ),
        ("call", {("Layer.put", "self.sender.send(item, urgent=True)", "pass")}),
        (
            "hook",
            {
                ("Layer.view", "self._held = {}", "return\nself._held = {}"),
                ("Layer.gone", "self._held.pop(member, None)", "return\nself._held.pop(member, None)"),
            },
        ),
        (
            "exit",
            {
                ("Layer.put", "return False", "pass"),
                ("Layer.find", "continue", "pass"),
                ("Layer.find", 'raise ValueError(f"{self._count + 1} are too many")', "pass"),
            },
        ),
        (
            "condition",
            {
                ("Layer.put", "if len(self._held) >= QUEUE_MAX:", "if not (len(self._held) >= QUEUE_MAX):"),
                ("Layer.put", "if len(self._held) >= QUEUE_MAX:", "if True:"),
                ("Layer.put", "if len(self._held) >= QUEUE_MAX:", "if False:"),
                (
                    "Layer.find",
                    "if item < first or urgent and item:",
                    "if not (item < first or urgent and item):",
                ),
                ("Layer.find", "if item < first or urgent and item:", "if True:"),
                ("Layer.find", "if item < first or urgent and item:", "if False:"),
                ("Layer.find", "if self._count > 3:", "if not (self._count > 3):"),
                ("Layer.find", "if self._count > 3:", "if True:"),
                ("Layer.find", "if self._count > 3:", "if False:"),
            },
        ),
        (
            "logic",
            {
                ("Layer.find", "if item < first or urgent and item:", f"if {after}:")
                for after in (
                    "False or urgent and item",
                    "item < first or False",
                    "item < first and urgent and item",
                    "item < first or True and item",
                    "item < first or urgent and True",
                    "item < first or urgent or item",
                )
            },
        ),
        (
            "boundary",
            {
                ("Layer.put", "if len(self._held) >= QUEUE_MAX:", "if len(self._held) > QUEUE_MAX:"),
                (
                    "Layer.find",
                    "if item < first or urgent and item:",
                    "if item <= first or urgent and item:",
                ),
                ("Layer.find", "if self._count > 3:", "if self._count >= 3:"),
            },
        ),
        (
            "extreme",
            {
                (
                    "Layer.put",
                    "self._wake_at = now + min(self.delay * 2, 8)",
                    "self._wake_at = now + max(self.delay * 2, 8)",
                )
            },
        ),
        (
            "offset",
            {
                (
                    "Layer.find",
                    "return sorted(self._held)[first - 1 :]",
                    "return sorted(self._held)[first - 0 :]",
                )
            },
        ),
        (
            "factor",
            {
                (
                    "Layer.put",
                    "self._wake_at = now + min(self.delay * 2, 8)",
                    "self._wake_at = now + min(self.delay * 1, 8)",
                )
            },
        ),
        (
            "bound",
            {
                ("", "QUEUE_MAX = 1 << 4", "QUEUE_MAX = 0"),
                ("", "QUEUE_MAX = 1 << 4", "QUEUE_MAX = (1 << 4) * 1000"),
                (
                    "Layer.__init__",
                    "def __init__(self, delay: float = 0.5) -> None:",
                    "def __init__(self, delay: float = 0) -> None:",
                ),
                (
                    "Layer.__init__",
                    "def __init__(self, delay: float = 0.5) -> None:",
                    "def __init__(self, delay: float = 0.5 * 1000) -> None:",
                ),
            },
        ),
        (
            "return",
            {
                ("Layer.put", "return False", "return True"),
                ("Layer.put", "return True", "return False"),
                ("Layer.find", "return sorted(self._held)[first - 1 :]", "return []"),
            },
        ),
        (
            "argument",
            {
                ("Layer.gone", "self._held.pop(member, None)", "self._held.pop(member)"),
                ("Layer.put", "self.sender.send(item, urgent=True)", "self.sender.send(item)"),
            },
        ),
    ],
)
def test_a_kind(kind: str, expected: set[tuple[str, str, str]]) -> None:
    assert set(changes(kind)) == expected


def test_no_kind_is_left_out_above() -> None:
    tried = next(mark for mark in test_a_kind.pytestmark if mark.name == "parametrize").args[1]  # type: ignore[attr-defined]
    found = find_mutants({"layers/layer.py": CLASS.encode()})
    assert {mutant.kind for mutant in found} == {kind for kind, _ in tried}


@pytest.mark.parametrize(
    "body",
    [
        "if ready:\n        return\n",  # nothing follows
        "for item in items:\n        if item:\n            continue\n",
    ],
)
def test_leaving_where_all_ends_anyway_is_no_mutant(body: str) -> None:
    assert not changes("exit", f"def step(ready, items):\n    {body}")


def test_a_return_out_of_a_loop_is_early_wherever_it_stands() -> None:
    assert changes("exit", "def step(items):\n    for item in items:\n        return\n")


def test_letters_of_several_bytes_move_nothing() -> None:
    assert changes("boundary", "def step(é, a):\n    return 'ü' + str(é < a)\n") == [
        ("step", "return 'ü' + str(é < a)", "return 'ü' + str(é <= a)")
    ]


def test_a_constant_is_noticed_where_it_is_used() -> None:
    found = find_mutants(
        {
            "wire/limits.py": b"SIZE_MAX = 8\n",
            "layers/cut.py": b"from wire.limits import SIZE_MAX\n\ndef cut(text):\n    text = text.strip()\n    return text[:SIZE_MAX]\n",
        }
    )
    assert [mutant.watched for mutant in found if mutant.kind == "bound"] == [{"layers/cut.py": {5}}] * 2


# The sample


def mutants() -> tuple[dict[str, bytes], list[Mutant]]:
    sources = {
        "layers/layer.py": CLASS.encode(),
        "layers/other.py": CLASS.encode(),
        "wire/layer.py": CLASS.encode(),
    }
    return sources, find_mutants(sources)


def test_a_sample_is_fixed_by_its_seed_and_sees_all_rooms_and_kinds() -> None:
    sources, found = mutants()
    one = choose(found, sources, count=30, seed=1)
    assert one == choose(list(reversed(found)), sources, count=30, seed=1)
    assert one != choose(found, sources, count=30, seed=2)
    assert len(one) == len(set(one)) == 30
    rooms = [mutant.room for mutant in one]
    assert rooms.count("layers") == 18  # twice as many mutants, so the root of 2 as many places
    assert len({mutant.kind for mutant in one if mutant.room == "layers"}) == 15


def test_an_edit_elsewhere_does_not_change_the_sample() -> None:
    sources, found = mutants()
    before = {mutant.change for mutant in choose(found, sources, count=30, seed=1)}
    sources = {file: b"# A line more.\n" + source for file, source in sources.items()}
    assert {m.change for m in choose(find_mutants(sources), sources, count=30, seed=1)} == before


def test_every_mutant_of_a_sample_is_python() -> None:
    sources = {"layers/call.py": b"def send(item, urgent=False):\n    send((item), urgent=True)\n"}
    found = find_mutants(sources)
    assert "argument" in {mutant.kind for mutant in found}  # and leaves a parenthesis behind
    for mutant in choose(found, sources, count=100, seed=1):
        ast.parse(mutant.plant(sources[mutant.file]))
        assert mutant.kind != "argument"
