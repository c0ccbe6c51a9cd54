"""What the worked examples of OBG have in common, and the one that needs time; step by step they are in
tests/scenarios/obg."""

import json
from pathlib import Path

import pytest

from inga.model.invocation import Heartbeat
from inga.objects.engine import Engine
from inga.objects.options import EngineOptions
from inga.objects.order import precedes
from inga.objects.roster import Pairs, Place, Roster

from ..scenarios.play_obg import ObgScript
from .world import World

SCENARIOS = Path(__file__).parents[1] / "scenarios" / "obg"
BEHIND = json.loads((Path(__file__).parent / "vectors" / "behind.json").read_text())


def played(name: str) -> ObgScript:
    script = ObgScript()
    script.replay((SCENARIOS / f"{name}.txt").read_text())
    return script


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.txt")))
def test_counters_know_no_less_than_there_is(name: str) -> None:
    """And what they say beyond it was sent before, at least; so the order of keys is never against precedence."""
    script = played(name)
    for one, first in script.messages.items():
        for other, second in script.messages.items():
            assert one not in script.before[other] or precedes(first, second), (one, other)
            assert not precedes(first, second) or first.ts < second.ts, (one, other)
            assert not precedes(first, second) or first.key < second.key, (one, other)


def test_abort_leaves_what_conflicts_without_a_past() -> None:
    assert played("abort-leaves-V").orders[1].past == {}


def test_whoever_holds_a_response_asks_the_others_how_far_they_are() -> None:
    """Also in a quiet group, in which nobody owes anybody anything."""
    held = played("ce-response-t1").messages["r2"]
    roster = Roster(
        [Place(at, name) for at, name in enumerate("djk")],
        {"j": Pairs([("x", "y")]), "k": Pairs([("u", "v")])},
    )
    engine = Engine(0, roster, EngineOptions(quiet=True))
    root = engine.begin(0.0, 0)
    for member, op in ((1, "x"), (2, "u")):
        engine.calls.call(root, "a", (member,), op)
    engine.actions(0.0)
    engine.receive(1.0, held)
    for member in (1, 2):
        engine.receive(1.0, Heartbeat(member, 1, int(member == held.src), 1, (0,), 0))
    assert engine.calls.holding
    for _ in range(3):
        assert engine.wake is not None
        asked = {to for to, said in engine.tick(engine.wake) if isinstance(said, Heartbeat) and said.wanted}
    assert asked == {(1,), (2,)}


def test_a_response_passes_a_request_that_precedes_it() -> None:
    """The scenario of section 8.3: it ends, and everything is in its place."""
    world = World.of_vector(BEHIND)
    world.run(400.0)
    assert [root.error for root in world.roots] == [None, None]
    for name, order in BEHIND["expect"]["start_order"].items():
        assert world.started_ops(name) == order
    (late,) = [message for message in world.log.requests() if message.op == "w"]
    (answer,) = [message for message in world.log.responses() if message.op == "X"]
    assert precedes(late, answer)
    ended = world.log.index("commit", op="I")
    assert world.log.index("start", op="w") > ended
