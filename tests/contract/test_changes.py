"""Views follow each other: every one counts anew, and nothing of the old ones is kept."""

import pytest

from inga.model.view import View
from inga.recipes import Options

from ..session.town import Town
from ..stack.harness import NAMES
from .group import KEPT, TABLES, weigh

ORDERS = ["none", "fifo", "vector", "relay", "co", "sco", "object", "total"]
FOUNDERS = NAMES[:3]

CARRIED = ["remiop", "remiop+co", "remiop+total"]
"""The same over MIOP, where views change if failures are detected."""

PAIRS = [(order, other) for order in ("vector", "co", "sco", "total") for other in ORDERS if other != order]
PAIRS += [("remiop+vector", "remiop+total"), ("remiop+co", "remiop")]


def town_of(order: str, *, takes: bool = True) -> Town:
    options = Options(matrix=order == "matrix", detect=5.0 if order.startswith("remiop") else None)
    return Town(3, "vector" if order == "matrix" else order, options=options, takes=takes)


def another(order: str, first: str, second: str) -> str:
    """One of these, on the same wire."""
    carries = "remiop+" if order.startswith("remiop") else ""
    return carries + (second if order == carries + first else first)


def talk(town: Town, rounds: int, loss: float = 0.0) -> None:
    """Everybody says something, over and over; the network loses some of it."""
    for k in range(rounds):
        for name in town.members:
            if town.member(name).writable:
                town.send(name, f"{name} says {len(town.log)} and {k}".encode())
        town.wait(0.02, lambda copy: town.rng.random() < loss)
    town.quiet()


def change(town: Town, order: str, asker: str = "bob") -> None:
    outcome = town.use(asker, order)
    town.quiet()
    assert outcome == [None]
    for name in town.members:
        stack = town.member(name)
        assert stack.view.recipe == order
        assert not any(stack.chain.order.sent()), "counts begin anew"


def check_memory(town: Town, twin: Town) -> None:
    """Nobody keeps more than in a town with the same views in which hardly anything was said."""
    for name in town.members:
        kept, usual = weigh(town.member(name)), weigh(twin.member(name))
        pairs = len(town.members) ** 2
        for path, count in kept.items():
            if path.rsplit(".", 1)[-1].rstrip("[]") in KEPT:
                continue  # up to a bound of its own
            few = pairs * 2 if path.rsplit(".", 1)[-1].rstrip("[]") in {*TABLES, "_changed"} else 0
            assert count <= max(usual[path], few), f"{name} keeps {count} in {path}"


def check(town: Town, order: str, *names: str) -> None:
    for name in names:
        town.send(name, f"the end, says {name}".encode())
    town.quiet()
    for name in names:
        stack = town.member(name)
        assert (stack.view.names, stack.view.recipe) == (names, order)
        assert stack.writable and stack.settled and not stack.closing
        listens = {"session"} if order.startswith("remiop") else set()
        assert {layer.name for layer in stack.layers if layer.wake is not None} == listens


@pytest.mark.parametrize("loss", [0.0, 0.25])
@pytest.mark.parametrize(("order", "other"), PAIRS)
def test_to_another_order_and_back(order: str, other: str, loss: float) -> None:
    def through_three_views(rounds: int, loss: float) -> Town:
        town = town_of(order)
        talk(town, rounds, loss)
        change(town, other)
        talk(town, rounds, loss)
        change(town, order, "cathy")
        talk(town, rounds, loss)
        check(town, order, *FOUNDERS)
        return town

    town = through_three_views(8, loss)
    for name in FOUNDERS:
        views = [item.recipe for item in town.items[name] if isinstance(item, View)]
        assert views == [other, order]
    check_memory(town, through_three_views(1, 0.0))


@pytest.mark.parametrize("loss", [0.0, 0.25])
@pytest.mark.parametrize("order", ["matrix", *ORDERS, *CARRIED])
def test_newcomers_after_a_change_and_after_a_newcomer(order: str, loss: float) -> None:
    recipe = "vector" if order == "matrix" else order

    def through_five_views(rounds: int, loss: float) -> Town:
        town = town_of(order)
        talk(town, rounds, loss)
        for name in ("dave", "erin"):
            town.knock(name)
            talk(town, rounds, loss)
            assert town.member(name).view.names[-1] == name
        change(town, another(recipe, "co", "vector"))
        talk(town, rounds, loss)
        change(town, recipe)
        talk(town, rounds, loss)
        town.knock("frank")
        talk(town, rounds, loss)
        check(town, recipe, *NAMES[:6])
        return town

    town = through_five_views(6, loss)
    for name in NAMES[:6]:
        heard = {*town.texts(name)}
        assert {*town.sent[name]} <= heard and len(heard) == len(town.texts(name))
    check_memory(town, through_five_views(1, 0.0))


@pytest.mark.parametrize("order", [*ORDERS, "remiop", "remiop+object"])
def test_a_change_while_much_is_on_its_way(order: str) -> None:
    """What was sent before is delivered in its view, everywhere; a second change waits for nothing of the first."""
    town = town_of(order)
    other = "remiop+vector" if order.startswith("remiop") else another(order, "fifo", "vector")
    for attempt in range(2):
        for k in range(20):
            for name in town.members:
                if town.member(name).writable:
                    town.send(name, f"{name} before {attempt} {k}".encode())
        town.wait(0.01, lambda copy: copy.target == "cathy" and copy.source == "alice")
        change(town, other if attempt == 0 else order, "alice")
    check(town, order, *FOUNDERS)
    if not order.endswith(("object", "total")):
        assert all(sorted(town.texts(name)) == sorted(town.sent[name]) for name in FOUNDERS)


@pytest.mark.parametrize("order", [*ORDERS, "remiop+vector"])
def test_what_is_unread_at_a_change_keeps_its_layers_until_it_is_taken(order: str) -> None:
    other = "remiop" if order.startswith("remiop") else another(order, "fifo", "vector")
    town = town_of(order, takes=False)
    for view in range(3):
        for name in town.members:
            town.send(name, f"{name} in view {view}".encode())
        town.quiet()
        change(town, (other, order)[view % 2])
    assert weigh(town.member("bob"))["views.retired"] == 3
    for name in town.members:
        town.take(name)
        town.turn(name)
    town.quiet()
    for name in town.members:
        assert weigh(town.member(name))["views.retired"] == 0
        assert not town.member(name).queued and not town.member(name).views.untaken


def test_views_in_which_nothing_was_delivered_leave_no_layers_behind() -> None:
    """One message is unread, and the order changes again and again: only the layers that delivered it are kept for it."""
    town = Town(3, takes=False)
    town.quiet()
    town.send("alice", b"unread")
    town.wait(1.0)
    for number in range(20):
        town.use("alice", "fifo" if number % 2 == 0 else "vector")
        town.wait(1.0)
    bob = town.member("bob")
    assert bob.view.number == 21 and bob.views.untaken == 1
    assert [number for number, _ in bob.views.retired] == [1]
    town.take("bob")
    town.turn("bob")
    assert bob.views.retired == [] and bob.views.untaken == 0
