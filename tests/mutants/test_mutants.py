"""The tool as a whole, on a package of one module that is wrong to trust its tests."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .kinds import find_mutants
from .measured import Measured
from .measured import Test as Timed
from .probes import NAME, Probed
from .report import Result, block, killed_share, read_equivalents, survivors

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """
def total(items: list[int], bonus: bool = False) -> int:
    result = [0]
    while items:
        result[0] += items.pop()
        if bonus and result[0] > 10:
            result[0] += 1
    return result[0]


def unused(value: int) -> int:
    return value + 1
"""

TESTS = """
from inga.wire.sums import total


def test_total() -> None:
    assert total([1, 2]) == 3
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for file, text in {
        "src/inga/__init__.py": "",
        "src/inga/wire/__init__.py": "",
        "src/inga/wire/sums.py": SOURCE,
        "tests/wire/test_sums.py": TESTS,
        "pyproject.toml": (ROOT / "pyproject.toml").read_text(),
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def plant(tree: Path, *options: str) -> tuple[int, str, dict[tuple[str, str], str]]:
    """Exit code, what was printed, and outcomes by change."""
    command = [sys.executable, "-m", "tests.mutants", "--root", str(tree), "--patience", "0.5", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not ended.stderr, ended.stderr
    rows = json.loads((tree / "build/mutants/results.json").read_text())["results"]
    return ended.returncode, ended.stdout, {(row["before"], row["after"]): row["outcome"] for row in rows}


def test_what_tests_notice_is_killed_and_the_rest_is_listed(tree: Path) -> None:
    code, printed, outcomes = plant(tree, "--count", "1000")

    assert code == 1
    assert outcomes["while items:", "while False:"] == "failed"
    assert outcomes["result[0] += items.pop()", "pass"] == "timeout"  # for ever
    assert outcomes["if bonus and result[0] > 10:", "if bonus and result[0] >= 10:"] == "survived"
    assert outcomes["result[0] += 1", "pass"] == "unexecuted"
    assert outcomes["return value + 1", "return value + 0"] == "unexecuted"
    listed = (tree / "build/mutants/survivors.txt").read_text()
    assert "wire/sums.py:6 total [boundary]\n  - if bonus and result[0] > 10:\n  + if bonus" in listed
    assert listed.count("\n  - ") == sum(each in {"survived", "unexecuted"} for each in outcomes.values())
    assert f"of {len(outcomes)}; at least 85% are wanted" in printed


def test_survivors_are_tried_again_until_a_test_or_a_reason_answers_them(tree: Path) -> None:
    _, _, before = plant(tree, "--count", "1000")
    tests = tree / "tests/wire/test_sums.py"
    tests.write_text(
        TESTS + "    assert total([5, 5], bonus=True) == 10\n    assert total([9, 9], bonus=True) == 19\n"
    )
    named = tree / "tests/mutants/equivalent.txt"
    named.parent.mkdir()
    named.write_text(
        "# Why not.\n\nwire/sums.py unused\n  - return value + 1\n  + return value + 0\n  Nobody calls it.\n"
    )

    code, printed, after = plant(tree, "--survivors")

    assert code == 1  # some of `unused` are neither
    assert set(after) == {
        change for change, outcome in before.items() if outcome in {"survived", "unexecuted"}
    }
    assert after["if bonus and result[0] > 10:", "if bonus and result[0] >= 10:"] == "failed"
    assert after["return value + 1", "return value + 0"] == "equivalent"
    assert "1 equivalent" in printed


def test_a_test_that_is_red_anyway_tells_nothing(tree: Path) -> None:
    (tree / "tests/wire/test_red.py").write_text(TESTS.replace("== 3", "== 4"))
    (tree / "tests/wire/test_broken.py").write_text("import inga.missing\n")
    _, printed, outcomes = plant(tree, "--count", "1000")
    assert "not used, because it fails without any mutant: tests/wire/test_red.py::test_total" in printed
    assert "not used, because it fails without any mutant: tests/wire/test_broken.py" in printed
    assert outcomes["if bonus and result[0] > 10:", "if bonus and result[0] >= 10:"] == "survived"


# Parts


def test_probes_mark_the_lines_that_ran() -> None:
    probed = Probed(SOURCE.encode())
    space = {NAME: probed.hits}
    exec(compile(probed.tree, "sums.py", "exec"), space)

    def lines() -> set[int]:
        return {line for line in range(1, 20) if probed.executed >> line & 1}

    assert space["total"]([1]) == 1  # type: ignore[operator]
    assert lines() == {3, 4, 5, 6, 8}
    assert space["total"]([11], bonus=True) == 12  # type: ignore[operator]
    assert lines() == {3, 4, 5, 6, 7, 8}
    probed.reset()
    assert space["unused"](1) == 2  # type: ignore[operator]
    assert lines() == {12}


def test_a_first_look_leaves_out_slow_tests_and_its_results_are_its_own() -> None:
    everything = Measured(
        [Timed("quick", 0.5, True, {"a.py": 2}), Timed("slow", 1.5, True, {"a.py": 2})], "d"
    )
    assert everything.noticing({"a.py": {1}}) == {"quick": 0.5, "slow": 1.5}
    assert everything.quick(1.0).noticing({"a.py": {1}}) == {"quick": 0.5}
    assert everything.quick(1.0).digest != everything.digest


def test_a_constant_is_noticed_by_those_who_name_it() -> None:
    everything = Measured([Timed("tests/test_a.py::test", 0.5, True, {})], "d")
    assert everything.noticing({"a.py": {1}}) == {}
    assert everything.noticing({"a.py": {1}}, {"tests/test_a.py"}) == {"tests/test_a.py::test": 0.5}
    found = find_mutants({"a.py": b"LIMIT_MAX = 3\n\nclass A:\n    wait_max = 4\n"})
    assert {(mutant.before, mutant.constant) for mutant in found} == {
        ("LIMIT_MAX = 3", "LIMIT_MAX"),
        ("wait_max = 4", ""),
    }


def test_a_survivor_with_a_reason_is_an_equivalent_wherever_its_line_moves() -> None:
    found = find_mutants({"wire/sums.py": SOURCE.encode()})
    listed = survivors(Result(mutant, "survived", "", 3, 0.1) for mutant in found)
    moved = find_mutants({"wire/sums.py": b"\n\n" + SOURCE.encode()})
    assert set(read_equivalents(listed)) == {mutant.change for mutant in moved}


def test_an_equivalent_needs_a_reason() -> None:
    mutant = find_mutants({"wire/sums.py": SOURCE.encode()})[0]
    with pytest.raises(ValueError, match=r"needs its change and a reason: wire/sums\.py"):
        read_equivalents(block(mutant))


def test_equivalents_count_as_not_killed() -> None:
    mutant = find_mutants({"wire/sums.py": SOURCE.encode()})[0]
    outcomes = "failed timeout died survived equivalent".split()
    assert killed_share(Result(mutant, outcome, "", 1, 0.1) for outcome in outcomes) == 3 / 5
