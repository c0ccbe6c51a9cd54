"""Distributions of times: however values are shared out, what is added up is the same, and as exact as promised."""

import numpy as np
import pytest

from inga.pipeline.spread import COARSE, FINE, Resolution, Spread, rounded_down

RARE, LINES = 9, 4


def values(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines, one of them with few values, and values of all sizes and both signs."""
    random = np.random.default_rng(seed)
    line = random.integers(0, LINES, count)
    line[:15] = RARE
    sign = random.choice([1, 1, 1, -1], count)
    return line, random.lognormal(14, 3, count).astype(np.int64) * sign


@pytest.mark.parametrize("resolution", [Resolution(20, 5), FINE, COARSE])
def test_parts_add_up_to_the_whole_and_percentiles_are_as_exact_as_promised(resolution: Resolution) -> None:
    line, value = values(1, 30_000)
    whole = Spread.of(resolution, line, value)
    part = np.random.default_rng(2).integers(0, 7, len(line))
    parts = [Spread.of(resolution, line[part == each], value[part == each]) for each in range(7)]
    together = Spread.sum([Spread.sum(parts[4:]), *parts[:4]])
    for name in ("line", "rounded", "count", "low", "high", "begins", "value", "weight"):
        assert np.array_equal(getattr(together, name), getattr(whole, name)), name
    assert whole.line.tolist() == [0, 1, 2, 3, RARE]
    assert whole.rounded.tolist() == [True] * LINES + [False]
    for at, name in enumerate(whole.line.tolist()):
        mine = np.sort(value[line == name])
        assert (whole.count[at], whole.low[at], whole.high[at]) == (len(mine), mine[0], mine[-1])
        assert whole.total[at] == pytest.approx(float(mine.sum()))
        for share in (0.5, 0.9, 0.99):
            exact = mine[int(np.ceil(share * len(mine))) - 1]
            off = 0 if name == RARE else abs(exact) / 2**resolution.bits
            assert abs(whole.percentile(share)[at] - exact) <= off


def test_lines_of_one_name_become_one() -> None:
    line, value = values(3, 20_000)
    found = Spread.of(FINE, line, value)
    renamed, expected = found.renamed(found.line % 2), Spread.of(FINE, line % 2, value)
    for name in ("line", "rounded", "count", "low", "high", "begins", "value", "weight"):
        assert np.array_equal(getattr(renamed, name), getattr(expected, name)), name


def test_what_is_rounded_stays_as_it_is_and_in_order() -> None:
    value = np.sort(np.concatenate([values(4, 50_000)[1], [0, 1, -1, 2**62, -(2**62)]]))
    once = rounded_down(value, 7)
    assert np.array_equal(rounded_down(once, 7), once) and (np.diff(once) >= 0).all()
    assert len(np.unique(once)) < len(np.unique(value)) / 4


def test_numbers_too_far_apart_for_one_key() -> None:
    line = np.array([1 << 60, 0, 1 << 60, 0])
    found = Spread.of(COARSE, line, np.array([5, 1 << 40, 3, 5]))
    assert found.line.tolist() == [0, 1 << 60] and found.percentile(0.5).tolist() == [5, 3]


def test_nothing_at_all() -> None:
    none = Spread.of(FINE, np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert len(none.line) == 0 and len(none.percentile(0.5)) == 0
    assert Spread.sum([none, Spread.of(FINE, np.array([3]), np.array([7]))]).percentile(0.5).tolist() == [7]
