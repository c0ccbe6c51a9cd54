"""What objects are made of, however their classes keep it; and that layers can be put away with it."""

import pickle
from typing import Any

import pytest

import inga
from inga.cli.main import main
from inga.layers.flow import Flow
from inga.layers.reliable import Reliable
from inga.model.compiled import compiled, restore, state_of
from inga.model.packet import Packet


def test_the_version_says_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip().endswith("compiled" if compiled else "interpreted")
    assert inga.compiled is compiled


class Slotted:
    __slots__ = ("first", "unset")

    def __init__(self) -> None:
        self.first = 1


class Mixed(Slotted):
    __slots__ = ("__dict__", "third")

    def __init__(self) -> None:
        super().__init__()
        self.second, self.third = 2, 3


def test_slots_and_dictionaries_are_found_alike() -> None:
    assert state_of(Slotted()) == {"first": 1}
    found = state_of(Mixed())
    assert {name: found[name] for name in ("first", "second", "third")} == {
        "first": 1,
        "second": 2,
        "third": 3,
    }


def test_what_was_found_makes_the_same_again() -> None:
    again = Slotted()
    restore(again, {"first": 5, "unset": 6})
    assert state_of(again) == {"first": 5, "unset": 6}


def test_a_packet_says_all_it_has() -> None:
    packet = Packet(1, 2, b"body")
    assert state_of(packet)["body"] == b"body"
    assert state_of(packet).keys() == packet.__getstate__().keys()


class Keeping(Flow):
    """A layer of somebody else, with a state of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.mine = ["kept"]


def test_a_layer_is_put_away_without_its_neighbours() -> None:
    layer = Keeping()
    layer.wake = 4.0
    layer.above = layer.below = lambda batch: None
    state = state_of(again := pickle.loads(pickle.dumps(layer)))
    assert (again.wake, again.mine) == (4.0, ["kept"])
    assert not {"stack", "above", "below"} & state.keys()


def test_a_time_that_is_computed_is_not_put_away() -> None:
    state: dict[str, Any] = Reliable().__getstate__()
    assert "wake" not in state
