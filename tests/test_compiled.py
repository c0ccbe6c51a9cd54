"""Compiled, inga is the same to whoever uses it: derives from it, puts it away, reads its errors. Interpreted, the other
tests say all that."""

import copy
import os
import pickle
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

import inga
from inga.causality.inbox import Inbox
from inga.layers.causal import Causal
from inga.layers.flow import Flow
from inga.layers.reliable import Reliable
from inga.model.compiled import compiled
from inga.model.errors import UsageError, WireError
from inga.model.packet import Packet
from inga.recipes import Options, find
from inga.stack.layer import Layer
from inga.wire import varint
from inga.wire.packet import decode

from .stack.harness import Net

pytestmark = pytest.mark.skipif(not compiled, reason="inga is not compiled")

TOP = Path(__file__).resolve().parents[1]


def test_the_rooms_are_compiled() -> None:
    """Each module of them, but those that are left out by name."""
    script = run_path(str(TOP / "requirements" / "compile.py"))
    package = Path(inga.__file__).parent
    for room in script["ROOMS"]:
        for path in (package / room).rglob("*.py"):
            name = path.relative_to(package).with_suffix("")
            loaded = str(import_module(f"inga.{'.'.join(name.parts)}").__file__)
            is_left_out = str(name) in script["INTERPRETED"] or path.name == "__init__.py"
            assert loaded.endswith(".py") is is_left_out, loaded
    for name in script["BESIDES"]:
        assert not str(import_module(f"inga.{name.replace('/', '.')}").__file__).endswith(".py")


def test_what_runs_is_what_is_in_the_sources() -> None:
    package, source = Path(inga.__file__).parent, TOP / "src" / "inga"
    for path in source.rglob("*.py"):
        assert (package / path.relative_to(source)).read_bytes() == path.read_bytes()


def test_the_command_says_so() -> None:
    done = subprocess.run([sys.executable, "-m", "inga", "--version"], capture_output=True, text=True)
    assert done.stdout == "inga 0.1.0, compiled\n"
    assert inga.compiled is True


def test_a_seed_is_the_same_run() -> None:
    command = "-m inga sim --order total --members 4 --messages 20 --loss 0.2 --seed 7".split()
    said = [
        subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True).stdout
        for environment in (os.environ, {**os.environ, "PYTHONPATH": str(TOP / "src")})
    ]
    assert said[0] == said[1] and "all promises kept" in said[0]


class Counting(Layer):
    """A layer of somebody else."""

    name = "counting"

    def __init__(self) -> None:
        self.counts = {"down": 0, "up": 0}

    def down(self, batch: list[Packet]) -> None:
        self.counts["down"] += len(batch)
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        self.counts["up"] += len(batch)
        self.above(batch)


class Late(Causal):
    """An order of somebody else, which asks the one that it derives from."""

    def overhead(self, members: int) -> int:
        return super().overhead(members) + 1


def counted(net: Net, member: int) -> dict[str, int]:
    return next(layer.counts for layer in net.stacks[member].layers if isinstance(layer, Counting))


def own_layers() -> list[Layer]:
    layers: list[Layer] = []
    for layer in find("vector").build(Options()):
        layers += [Late(), Counting()] if layer.name == "causal" else [layer]
    return layers


def test_somebodys_layer_and_order_take_part() -> None:
    net = Net(2, build=own_layers)
    net.send(0, b"one", b"two")
    net.quiet()
    net.send(1, b"three")
    net.quiet()
    assert [net.texts(member) for member in (0, 1)] == [["three"], ["one", "two"]]
    assert counted(net, 0) == counted(net, 1) == {"down": 1, "up": 1}


def test_an_attribute_that_nobody_declared_is_one_of_the_derived_class_alone() -> None:
    mine: Any = Counting()
    mine.remark = "mine"
    assert mine.remark == "mine"
    plain: Any = Flow()
    with pytest.raises(AttributeError):
        plain.remark = "nobody's"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
@pytest.mark.parametrize("order", ["fifo", "vector", "relay", "co", "sco", "total", "remiop"])
def test_a_stack_that_was_put_away_goes_on(order: str, again: Any) -> None:
    """In the middle of a run in which something was lost."""
    net = Net(3, order)
    for word in (b"one", b"two", b"three"):
        net.send(0, word)
    net.wait(0.001, lose=lambda flight: flight.target == 1)
    net.stacks = [again(stack) for stack in net.stacks]
    net.send(2, b"four")
    net.wait(5.0)
    assert sorted(net.texts(1)) == ["four", "one", "three", "two"]


def test_a_hold_queue_travels() -> None:
    inbox: Inbox[str] = Inbox(0, 3)
    again: Inbox[str] = Inbox.loads(inbox.dumps())
    assert again.vector == inbox.vector == [0, 0, 0]


def test_errors_are_those_of_inga_and_travel() -> None:
    with pytest.raises(UsageError, match="nack_delay is a number of seconds above 0, not 'soon'"):
        Reliable(nack_delay="soon")
    with pytest.raises(WireError, match="truncated: 2 bytes") as caught:
        decode(b"xx", 0, {}, 1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.reason) == (WireError, str(caught.value), "truncated")


def test_a_wrong_type_is_an_error_and_no_crash() -> None:
    with pytest.raises(TypeError):
        varint.pack(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int"):
        Packet("alice", 1, b"")  # type: ignore[arg-type]


def test_a_traceback_names_file_line_and_function() -> None:
    class Failing(Flow):
        def turn(self) -> None:
            varint.get(b"\xff" * 12, 0)

    net = Net(2)
    net.stacks[0].bind([Failing() if layer.name == "flow" else layer for layer in net.stacks[0].layers])
    with pytest.raises(WireError) as caught:
        net.stacks[0].ready(now=0.0)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in frames][-2:] == ["turn", "get"]
    assert "ready" in [frame.name for frame in frames]
    source = (TOP / "src" / frames[-1].filename).read_text().splitlines()
    assert "raise WireError" in source[(frames[-1].lineno or 0) - 1]
