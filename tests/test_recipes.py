"""What can be asked of a recipe: levels and options of its own, with errors that say what there is."""

import asyncio
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import pytest

import inga
from inga import recipes
from inga.cli.sim import named_value
from inga.corba.multicast import acks, remiop
from inga.corba.multicast import fragments as miop
from inga.corba.multicast.acks import Acknowledged
from inga.corba.multicast.fragments import MiopFragments, Strategy
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.transport import Miop
from inga.layers import flow, reliable
from inga.layers.bundle import Bundle
from inga.layers.co import parts as co
from inga.layers.co.layer import Co
from inga.layers.flow import Flow
from inga.layers.matrix import Matrix
from inga.layers.reliable import Reliable
from inga.layers.sco import parts as sco
from inga.layers.sco.layer import Sco
from inga.layers.shape import Unshaped
from inga.model.compiled import state_of
from inga.model.errors import UsageError
from inga.objects import options as objects
from inga.objects.layer import ObjectOrder
from inga.recipes import PLACED, Options, Recipe, compose, find, ladder, names, register, tuned
from inga.recipes import recipe as registry
from inga.sim import Sim
from inga.sim.trials import simulate_trial
from inga.stack.layer import Layer
from inga.trial.trial import Trial

ORDERS = [name for name in names() if name not in recipes.ALIASES]


@dataclass(frozen=True)
class Settings:
    window: int = 4
    pace: float = 0.1


class Tunable(Layer):
    settings = Settings

    def __init__(self, *, deliver: str, **said: Any) -> None:
        self.deliver = deliver
        self.made = Settings(**said)


def build(options: Options) -> list[Layer]:
    deliver = options.deliver or "causal"
    return [Bundle(), tuned(Tunable, "tunable", options.protocol, deliver=deliver), Unshaped()]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a registry of its own."""
    for order in (*names(), *ladder()):
        find(order)  # whoever brings it registers it once
    monkeypatch.setattr(registry, "_recipes", dict(registry._recipes))


@pytest.fixture
def recipe() -> Iterator[Recipe]:
    yield register("tunable", build, level="confirmed", levels=("causal", "confirmed"))


def test_a_recipe_knows_its_levels(recipe: Recipe) -> None:
    assert recipe.level_of(None) == "confirmed"
    assert recipe.level_of("causal") == "causal"
    with pytest.raises(
        UsageError, match=r"'tunable' delivers at level 'causal' or 'confirmed', not 'received'"
    ):
        recipe.level_of("received")
    with pytest.raises(UsageError, match="deliver is one of received, accepted, causal, confirmed"):
        recipe.level_of("soon")


def test_a_level_outside_the_levels_is_refused() -> None:
    with pytest.raises(UsageError, match="not among its levels"):
        register("odd", build, level="received", levels=("causal",))


# Options of the protocol


def test_options_of_a_protocol_reach_its_layer(recipe: Recipe) -> None:
    layer = recipe.build(Options(protocol={"window": 9}))[1]
    assert isinstance(layer, Tunable)
    assert (layer.deliver, layer.made) == ("causal", Settings(9, 0.1))


def test_an_option_that_is_not_for_the_user_to_say_is_none(recipe: Recipe) -> None:
    with pytest.raises(UsageError, match=r"'tunable' has no option 'deliver'; there are window, pace$"):
        recipe.build(Options(protocol={"deliver": 1}))


def test_an_unknown_option_is_named_with_those_there_are_and_the_one_meant() -> None:
    with pytest.raises(UsageError, match=r"'co' has no option 'widow'; did you mean 'window'"):
        find("co").build(Options(protocol={"widow": 1}))
    with pytest.raises(UsageError, match=r"'co' has no option 'xyzzy'; there are window, .*"):
        find("co").build(Options(protocol={"xyzzy": 1}))


@pytest.mark.parametrize("order", ["none", "fifo", "causal"])
def test_an_option_of_other_orders_is_refused_with_them(order: str) -> None:
    with pytest.raises(
        UsageError,
        match=r"has no option 'quota'; it has none of its own; it is one of order sco$",
    ):
        find(order).build(Options(protocol={"quota": 1}))


@pytest.mark.parametrize("order", ORDERS)
def test_tunings_are_options_with_values_that_are_accepted(order: str) -> None:
    recipe = find(order)
    assert recipe.own is not None and set(recipe.tunings) <= set(recipe.own)
    firsts = {name: tried[0] for name, tried in recipe.tunings.items()}
    for name, tried in recipe.tunings.items():
        for value in tried:
            recipe.build(Options(protocol={**firsts, name: value}))


@pytest.mark.parametrize("order", [*ORDERS, *ladder()])
def test_every_recipe_has_a_session_where_the_members_meet(order: str) -> None:
    kinds = [layer.name for layer in find(order).build(Options(greet=True))]
    assert kinds[0] == "bundle" and kinds.count("session") == 1
    assert kinds[kinds.index("session") + 1] == ("shape" if find(order).wire == "inga" else "envelope")
    assert "session" not in [layer.name for layer in find(order).build(Options(lossless=True))]


def test_an_order_stands_over_a_transport_of_ones_own() -> None:
    class Twice(Strategy):
        name = "twice"
        provides = frozenset({"reliable"})

    made = compose("twice", recipes.VECTOR, Miop(Twice), level="causal")
    layers = made.build(Options(matrix=True, protocol={"datagram": 300}, start=7))
    assert [layer.name for layer in layers][-4:] == ["fragments", "twice", "shape", "miop"]
    assert (made.wire, made.takes) == ("miop", ("coarse", "on_concurrent", "matrix"))
    with pytest.raises(UsageError, match="'twice' has no option 'tnack'"):
        made.build(Options(protocol={"tnack": 1}))


# Options that only some orders have a place for

SAID: dict[str, Any] = {"on_concurrent": "error", "matrix": True, "coarse": True, "objects": {"a": object}}

HAVING = {
    "on_concurrent": {"vector", "remiop+vector"},
    "matrix": {"vector"},
    "coarse": {name for name in ORDERS if name not in ("co", "sco", "remiop+co")},
    "objects": {"object", "total", "remiop+object", "remiop+total"},
}


def test_all_such_options_are_tried() -> None:
    assert SAID.keys() == HAVING.keys() == set(PLACED)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PLACED)
def test_an_option_without_a_place_is_refused_with_the_orders_that_have_one(order: str, name: str) -> None:
    options = Options(**{name: SAID[name]})
    if order in HAVING[name]:
        find(order).build(options)
        assert getattr(find(order).keep(options, "other"), name) == SAID[name]
        return
    kept = find(order).keep(options, "other")
    assert kept == Options(said=(options, "other")), "it waits until the group changes back"
    with pytest.raises(UsageError) as refused:
        find(order).build(options)
    text = str(refused.value)
    assert text.startswith(f"{name} is an option of order ") and text.endswith(f"order {order!r} has none")
    listed = text.removeprefix(f"{name} is an option of order ").partition(";")[0]
    assert set(listed.replace(" or ", ", ").split(", ")) == HAVING[name]


def test_who_joins_is_told() -> None:
    async def join() -> None:
        async with inga.join("g", "a", members=["a", "b"], order="fifo", on_concurrent="error"):
            raise AssertionError("it joined")

    with pytest.raises(UsageError, match="on_concurrent is an option of order vector or remiop"):
        asyncio.run(join())


COUNTS_PACKETS = {"miop", "miop+acks", "remiop", "remiop+vector"}


@pytest.mark.parametrize("order", ORDERS)
def test_a_window_in_bytes_is_refused_where_packets_are_counted(order: str) -> None:
    recipe = find(order)
    recipe.check_window(None)
    if order not in COUNTS_PACKETS:
        recipe.check_window(1)
        small, large = (recipe.build(Options(flow={"window": window})) for window in (1, 1 << 20))
        assert set(windows(small)) == {1} and set(windows(large)) == {1 << 20}
        return
    with pytest.raises(UsageError, match=f"^window is an option of order .*; order '{re.escape(order)}' has"):
        recipe.check_window(1)


def windows(layers: list[Layer]) -> list[int]:
    """In bytes, as far as layers have one."""
    found = []
    for layer in layers:
        if isinstance(layer, Flow):
            found.append(layer.window)
        elif isinstance(layer, Co | Sco):
            found.append(layer._settings.window_bytes or 0)
        elif isinstance(layer, ObjectOrder):
            found.append(layer._options.window)
    return found


def test_who_joins_or_simulates_is_told_that_a_window_means_nothing() -> None:
    async def join() -> None:
        async with inga.join("g", "a", members=["a", "b"], order="remiop", window=1 << 20):
            raise AssertionError("it joined")

    for attempt in (lambda: asyncio.run(join()), lambda: simulate_trial(Trial(order="remiop", window=1000))):
        with pytest.raises(UsageError, match="window is an option of order none, fifo, "):
            attempt()


def test_a_simulation_is_told() -> None:
    with pytest.raises(UsageError, match="on_concurrent is an option of order vector or remiop"):
        Sim("a", "b", order="fifo", options=Options(on_concurrent="error"))


def test_what_was_said_about_one_order_waits_while_the_group_has_another() -> None:
    sim = Sim("a", "b", order="vector", options=Options(matrix=True, on_concurrent="error"), record=False)
    for order in ("fifo", "vector"):
        sim.sites[0].use(order)
        sim.run()
    assert sim.outcomes == [None, None]
    layer = next(layer for layer in sim.sites[1].stack.layers if isinstance(layer, Matrix))
    assert layer.on_concurrent == "error"


# Gates

HOLD_NOTHING = {"none", "miop", "miop+acks", "remiop"}
WITH_A_GATE = {"fifo", "vector", "relay", "remiop+vector"}


@pytest.mark.parametrize("order", [*ORDERS, "strict", "realtime"])
def test_an_order_without_a_gate_says_why(order: str) -> None:
    sim = Sim("a", "b", order=order, record=False)
    if order in WITH_A_GATE:
        sim.sites[1].gate("open")
        return
    with pytest.raises(UsageError) as refused:
        sim.sites[1].gate("open")
    assert str(refused.value).startswith(f"order {order!r} has no gate: ")
    assert ("it holds nothing" in str(refused.value)) == (order in HOLD_NOTHING)


# Settings of layers

BAD: list[tuple[type[Any], Callable[..., Layer], dict[str, Any]]] = [
    (
        reliable.ReliableSettings,
        Reliable,
        {
            "nack_delay": -1,
            "nack_again": 0,
            "nack_again_max": "soon",
            "heartbeat": 0,
            "heartbeat_max": None,
            "report_delay": -0.1,
            "repairs_max": 0,
            "patience": 0,
        },
    ),
    (flow.FlowSettings, Flow, {"window": 0, "queue_max": 0.5, "probe": 0, "probe_max": -1}),
    (
        miop.MiopFragmentsSettings,
        MiopFragments,
        {"datagram": 1, "collect": 0, "collections_max": 0, "octets_max": "1", "polyorb": 2},
    ),
    (
        acks.AcknowledgedSettings,
        Acknowledged,
        {"size": 0, "wait": 0, "resend": 0, "resend_max": 0, "ack_delay": -1, "burst": 0},
    ),
    (
        remiop.ReMiopSettings,
        ReMiop,
        {
            "size": True,
            "wait": 7,
            "rmin": 0,
            "rmax": "fast",
            "tnack": -1,
            "trepair": "x",
            "od": -1,
            "state_interval": 0,
            "state_every": -1,
            "one_nack": 3,
            "repeats": 1001,
            "tail": "no",
            "baseline": "middle",
            "spare": -1,
            "burst": 0,
            "slack": -1,
            "on_gap": "cry",
        },
    ),
    (
        co.CoSettings,
        Co,
        {
            "window": 0,
            "window_bytes": 0,
            "capacity": 0,
            "units": 0,
            "confirm_delay": 0,
            "confirm_every": -1,
            "nack_delay": -1,
            "nack_again": 0,
            "resend": 0,
            "poll": 0,
            "patience": 0,
        },
    ),
    (
        sco.ScoSettings,
        Sco,
        {
            "ack_level": "soon",
            "window": 0,
            "window_bytes": 0,
            "quota": 0,
            "buffers_per_message": 0,
            "throttle": 2,
            "confirm_delay": -1,
            "confirm_every": -1,
            "nack_delay": -1,
            "nack_again": 0,
            "resend_after": 0,
            "poll_after": 0,
            "probe_after": -1,
            "patience": 0,
            "resends_max": 0,
            "noted_max": -1,
            "multicast_from": -1,
        },
    ),
    (
        objects.ObjectSettings,
        ObjectOrder,
        {
            "delta": 0,
            "grace": -1.0,
            "announce": 2,
            "window": 0,
            "key": 7,
            "keys": 0,
            "members_invoking": {"till": "alice"},
        },
    ),
]


@pytest.mark.parametrize(("kind", "layer", "bad"), BAD)
def test_every_setting_is_checked_by_name(
    kind: type[Any], layer: Callable[..., Layer], bad: dict[str, Any]
) -> None:
    assert {each.name for each in fields(kind)} == bad.keys()
    for name, value in bad.items():
        with pytest.raises(UsageError, match=rf"\b{name}\b"):
            layer(**{name: value})
    with pytest.raises(UsageError, match=r"has no setting 'windw'"):
        layer(windw=1)


REPORTED = {"size": 512, "wait": True}
USUAL: list[tuple[type[Any], dict[str, Any]]] = [
    (
        reliable.ReliableSettings,
        {
            "nack_delay": 0.001,
            "nack_again": 0.01,
            "nack_again_max": 0.5,
            "heartbeat": 0.02,
            "heartbeat_max": 1.0,
            "report_delay": 0.005,
            "repairs_max": 64,
            "patience": 60.0,
        },
    ),
    (flow.FlowSettings, {"window": 1 << 20, "queue_max": 16 << 20, "probe": 0.05, "probe_max": 1.0}),
    (
        miop.MiopFragmentsSettings,
        {"datagram": 1472, "collect": 1.0, "collections_max": 64, "octets_max": 16 << 20, "polyorb": False},
    ),
    (
        acks.AcknowledgedSettings,
        {**REPORTED, "resend": 0.05, "resend_max": 1.0, "ack_delay": 0.005, "burst": 64},
    ),
    (
        remiop.ReMiopSettings,
        {
            **REPORTED,
            "rmin": 10_000_000,
            "rmax": 1_000_000_000,
            "tnack": 0.05,
            "trepair": 0.05,
            "od": None,
            "state_interval": 0.5,
            "state_every": None,
            "one_nack": True,
            "repeats": 16,
            "tail": True,
            "baseline": "collection",
            "spare": None,
            "burst": 4,
            "slack": 0.001,
            "on_gap": "fail",
        },
    ),
    (
        co.CoSettings,
        {
            "window": 32,
            "window_bytes": None,
            "capacity": None,
            "units": 1,
            "confirm_delay": 0.005,
            "confirm_every": None,
            "nack_delay": 0.001,
            "nack_again": 0.02,
            "resend": 0.05,
            "poll": 0.05,
            "patience": 60.0,
        },
    ),
    (
        sco.ScoSettings,
        {
            "ack_level": "causal",
            "window": 256,
            "window_bytes": None,
            "quota": 256,
            "buffers_per_message": 1,
            "throttle": True,
            "confirm_delay": 0.005,
            "confirm_every": None,
            "nack_delay": 0.001,
            "nack_again": 0.01,
            "resend_after": 0.05,
            "poll_after": 0.05,
            "probe_after": 0.005,
            "patience": 60.0,
            "resends_max": 16,
            "noted_max": 256,
            "multicast_from": 0,
        },
    ),
    (
        objects.ObjectSettings,
        {
            "delta": 0.05,
            "grace": None,
            "announce": True,
            "window": 1 << 20,
            "key": None,
            "keys": None,
            "members_invoking": None,
        },
    ),
]
"""What people have who say nothing: other numbers are for the changelog."""


@pytest.mark.parametrize(("kind", "usual"), USUAL)
def test_what_a_setting_is_unless_it_is_said(kind: type[Any], usual: dict[str, Any]) -> None:
    made = kind()
    assert {each.name: getattr(made, each.name) for each in fields(kind)} == usual


@pytest.mark.parametrize("kind", [Flow, ReMiop, Acknowledged, Co, Sco, ObjectOrder])
def test_an_application_may_be_as_far_behind_under_every_order(kind: Callable[[], Layer]) -> None:
    layer = kind()
    limits = [getattr(each, "limit", None) for each in state_of(layer).values()]
    assert 16 << 20 in [*limits, getattr(layer, "queue_max", None)]


def test_values_on_the_command_line_are_numbers_where_they_can_be() -> None:
    assert [named_value(text) for text in ("window=8", "pace=0.5", "mode=eager")] == [
        ("window", 8),
        ("pace", 0.5),
        ("mode", "eager"),
    ]


@pytest.mark.parametrize("module", registry.BROUGHT)
def test_a_module_brings_what_the_table_says(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(names())
    for order in registry.BROUGHT[module]:
        del registry._recipes[order]
    monkeypatch.delitem(sys.modules, module)
    left = set(registry._recipes)
    assert set(names()) == before, "they are known by name before anybody has registered them"
    importlib.import_module(module)
    assert set(registry._recipes) - left == set(registry.BROUGHT[module])


def test_a_name_that_is_brought_is_taken() -> None:
    """Also as long as nobody has asked for it."""
    program = "from inga.recipes import register; register('remiop', list)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "there is a recipe 'remiop' already" in ended.stderr
