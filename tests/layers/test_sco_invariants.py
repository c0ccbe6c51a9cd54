"""The invariants of SCO over random schedules, against explicit sets."""

import pytest

from .sco_world import run_seed

SAMPLE = 400
CHUNK = 1000


@pytest.mark.parametrize("first", range(0, SAMPLE, 100))
def test_random_schedules(first: int) -> None:
    for seed in range(first, first + 100):
        run_seed(seed)


@pytest.mark.hunt
@pytest.mark.parametrize("first", range(0, 20_000, CHUNK))
def test_many_random_schedules(first: int) -> None:
    for seed in range(first, first + CHUNK):
        run_seed(seed)
