"""The kernels against plain sets, on whatever chance and a few acts of sabotage bring about."""

from dataclasses import fields
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.certify import scan as scanning
from inga.certify.certificate import certify
from inga.certify.checks import CHECKS
from inga.certify.fingerprint import Keys
from inga.certify.scan import Carry, Tally, scan_numpy
from inga.trace import Row

from .world import chunks, judge, renumbered, sabotage, source, wander

compiled = pytest.importorskip("inga.certify.compiled", reason="numba is not installed")


CHECKED = [check for check in CHECKS if check not in ("views", "object", "clocks")]
"""What needs neither views nor methods; test_orders.py has those."""

NEEDED = {
    **{check: {"deliver"} for check in ("integrity", "fifo", "causal", "total")},
    **{check: {"send"} for check in ("complete", "stamps")},
    "atomic": {"deliver", "confirm"},
    "quiet": {"send", "deliver"},
    "time": {"send", "deliver", "take", "accept", "confirm", "control"},
}
"""Steps without which a check has nothing to judge."""

worlds = st.fixed_dictionaries(
    {
        "n": st.integers(2, 5),
        "messages": st.integers(0, 25),
        "receipt": st.sampled_from(["deliver", "take", "accept"]),
        "order": st.sampled_from(["none", "fifo", "causal"]),
        "subsets": st.booleans(),
        "echo": st.booleans(),
    }
)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), world=worlds, broken=st.booleans())
def test_counts_are_those_of_the_statements(seed: int, world: dict[str, object], broken: bool) -> None:
    random = Random(seed)
    trace = wander(random, **world)  # type: ignore[arg-type]
    if broken:
        sabotage(random, trace)
    receipt = str(world["receipt"])
    expected = judge(trace, receipt)

    certificate = certify(source(random, trace, receipt), CHECKED, seed=seed)

    assert {check.name: check.violations for check in certificate.checks} == {
        name: expected[name] for name in CHECKED
    }
    steps = {row.step for rows in trace for row in rows}
    for check in certificate.checks:
        wanted = "fail" if expected[check.name] else "pass" if steps & NEEDED[check.name] else "unknown"
        assert check.verdict == wanted
        assert bool(check.witnesses) == bool(expected[check.name])


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), world=worlds, carried=st.booleans())
def test_numba_and_numpy_agree(seed: int, world: dict[str, object], carried: bool) -> None:
    random = Random(seed)
    trace = wander(random, **world, unstamped=0.2)  # type: ignore[arg-type]
    sabotage(random, trace)
    n = len(trace)
    keys = Keys.draw(n, seed)
    carry = Carry(*(np.array([random.randrange(5) for _ in range(n)]) for _ in range(3))) if carried else None
    for chunk in chunks(random, trace, str(world["receipt"])):
        assert_same(scan_numpy(chunk, keys, carry), compiled.scan(chunk, keys, carry))


def assert_same(one: object, two: object) -> None:
    if isinstance(one, tuple):
        for a, b in zip(one, two, strict=True):  # type: ignore[call-overload]
            assert_same(a, b)
    elif isinstance(one, dict):
        assert isinstance(two, dict) and one.keys() == two.keys()
        for key in one:
            assert_same(one[key], two[key])
    elif isinstance(one, scanning.Summary | scanning.Flags | Tally):
        for each in fields(one):
            assert_same(getattr(one, each.name), getattr(two, each.name))
    else:
        np.testing.assert_array_equal(one, two)  # type: ignore[arg-type]


def test_blocks_of_running_maxima_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(5)
    trace = wander(random, 4, 60)
    keys = Keys.draw(4, 1)
    (chunk, *_) = chunks(Random(1), trace, cuts=0)
    whole = scan_numpy(chunk, keys)
    monkeypatch.setattr(scanning, "BLOCK_ROWS", 7)
    assert_same(whole, scan_numpy(chunk, keys))


def test_large_chunks_are_scanned_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    (chunk, *_) = chunks(Random(1), wander(Random(1), 3, 9), cuts=0)
    keys = Keys.draw(3, 1)
    monkeypatch.setattr(scanning, "COMPILED_COUNTS_MIN", 0)
    monkeypatch.setattr(compiled, "scan", lambda *given: "compiled")
    assert scanning.scan(chunk, keys) == "compiled"


def test_without_numba_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (chunk, *_) = chunks(Random(1), wander(Random(1), 3, 9), cuts=0)
    keys = Keys.draw(3, 1)
    monkeypatch.setattr(scanning, "COMPILED_COUNTS_MIN", 0)
    monkeypatch.setattr(scanning, "_compiled", lambda: None)
    assert_same(scanning.scan(chunk, keys), scan_numpy(chunk, keys))


def test_a_sum_of_hashes_is_no_hash_of_sums() -> None:
    """Two messages whose vectors were exchanged have the same sums of entries, but other hashes."""
    keys = Keys.draw(2, 3)
    rows = [
        Row(0, 1, 0, "deliver", 1, 1, 1, None, (1, 0), 2),
        Row(0, 2, 0, "deliver", 1, 1, 2, None, (2, 1), 4),
    ]
    swapped = [rows[0]._replace(deps=(2, 1)), rows[1]._replace(deps=(1, 0))]
    sums = []
    for each in (rows, swapped):
        (chunk, *_) = chunks(Random(1), [each, []], cuts=0)
        summary, _ = scan_numpy(chunk, keys)
        sums.append(int(summary.tallies[1].delivered_sum[1]))
    assert sums[0] != sums[1]


def test_a_number_that_cannot_be_does_not_keep_the_checks() -> None:
    """Rows are looked for where there are any, not in all of the billions of numbers below one that is wrong."""
    trace = wander(Random(1), 3, 20)
    place = next(at for at, row in enumerate(trace[1]) if row.step == "send")
    wrong = trace[1][place]
    trace[1][place] = wrong._replace(seq=2**34)
    made = source(Random(1), [renumbered([Row(at, 0, 0, "view", 1), *rows]) for at, rows in enumerate(trace)])
    asked: list[str] = []
    plain_map = made.map

    def counting(what: str, function: Any, questions: Any) -> list[tuple[int, Any]]:
        asked.append(what)
        assert len(asked) < 100, "it goes through them all"
        return plain_map(what, function, questions)

    made.map = counting  # type: ignore[method-assign]
    certificate = certify(made, ["integrity", "complete", "atomic", "views"], seed=1)
    found = {
        check.name: {(each.process, each.message) for each in check.witnesses} for check in certificate.checks
    }
    assert found["integrity"] == {(0, (1, wrong.seq)), (2, (1, wrong.seq))}
    assert found["complete"] == {(0, (1, 2**34)), (2, (1, 2**34))}
