"""Each rule, left out or changed, is missed: runs that are right with it go wrong without."""

import pytest

from .generate import played
from .mutations import MUTATIONS

LIMIT = 800.0

SEEDS: dict[str, tuple[int, ...]] = {
    "P2 removed": (140, 100),
    "D2 removed": (91, 67, 123),
    "D2 only for the sender": (91, 113, 14),
    "X3 removed": (67, 14),
    "X1 removed": (123, 113),
    "key = printed id": (69, 14, 117),
    "as printed": (91, 67, 123),
    "as printed, nobody dies": (113, 123),
    "responses wait for requests": (46, 113),
    "V6 also at abort": (46, 43),
    "F2 removed": (23, 16),
}
"""Small runs in which each change is known to show."""


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, broken, crash = MUTATIONS[name]
    for seed in SEEDS[name]:
        assert not played(seed, crash=crash, limit=LIMIT)[1], seed
    change(monkeypatch)
    seen = {fault[0] for seed in SEEDS[name] for fault in played(seed, crash=crash, limit=LIMIT)[1]}
    assert seen & set(broken), seen
    assert seen <= {*broken, *ALSO.get(name, ())}, seen


ALSO = {"responses wait for requests": (), "D2 removed": ("I9",)}
"""What else may come of it."""


@pytest.mark.hunt
@pytest.mark.parametrize("name", MUTATIONS)
def test_hunt_how_often_a_changed_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, broken, crash = MUTATIONS[name]
    change(monkeypatch)
    failing = 0
    for seed in range(300):
        faults = played(seed, crash=crash, limit=LIMIT)[1]
        failing += bool({fault[0] for fault in faults} & set(broken))
    print(f"{name}: {failing} of 300")
    assert failing >= 3
