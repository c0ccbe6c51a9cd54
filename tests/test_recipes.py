"""What can be asked of a recipe: levels and options of its own, with errors that say what there is."""

from collections.abc import Iterator

import pytest

from inga import recipes
from inga.cli.sim import named_value
from inga.layers.bundle import Bundle
from inga.layers.shape import Unshaped
from inga.model.errors import UsageError
from inga.recipes import Options, Recipe, find, register, tuned
from inga.stack.layer import Layer


class Tunable(Layer):
    def __init__(self, *, deliver: str, window: int = 4, pace: float = 0.1) -> None:
        self.settings = (deliver, window, pace)


def build(options: Options) -> list[Layer]:
    deliver = options.deliver or "causal"
    return [Bundle(), tuned(Tunable, "tunable", options.protocol, deliver=deliver), Unshaped()]


@pytest.fixture
def recipe() -> Iterator[Recipe]:
    yield register("tunable", build, level="confirmed", levels=("causal", "confirmed"))
    del recipes._recipes["tunable"]


def test_a_recipe_knows_its_levels(recipe: Recipe) -> None:
    assert recipe.level_of(None) == "confirmed"
    assert recipe.level_of("causal") == "causal"
    with pytest.raises(
        UsageError, match="'tunable' delivers at level 'causal' or 'confirmed', not 'received'"
    ):
        recipe.level_of("received")
    with pytest.raises(UsageError, match="deliver is one of received, accepted, causal, confirmed"):
        recipe.level_of("soon")


def test_a_level_outside_the_levels_is_refused() -> None:
    with pytest.raises(UsageError, match="not among its levels"):
        register("odd", build, level="received", levels=("causal",))


def test_options_of_a_protocol_reach_its_layer(recipe: Recipe) -> None:
    layer = recipe.build(Options(protocol={"window": 9}))[1]
    assert isinstance(layer, Tunable)
    assert layer.settings == ("causal", 9, 0.1)


@pytest.mark.parametrize("name", ["widow", "deliver"])
def test_an_unknown_option_is_named_with_those_there_are(recipe: Recipe, name: str) -> None:
    with pytest.raises(UsageError, match=f"'tunable' has no option '{name}'; there are window, pace"):
        recipe.build(Options(protocol={name: 1}))


@pytest.mark.parametrize("order", ["none", "fifo", "causal"])
def test_orders_without_options_say_so(order: str) -> None:
    with pytest.raises(UsageError, match="has no options of its own, so not window"):
        find(order).build(Options(protocol={"window": 1}))


def test_values_on_the_command_line_are_numbers_where_they_can_be() -> None:
    assert [named_value(text) for text in ("window=8", "pace=0.5", "mode=eager")] == [
        ("window", 8),
        ("pace", 0.5),
        ("mode", "eager"),
    ]
