"""The worked examples and counterexamples of OBG, step by step: identifiers, vectors, precedence, delivery."""

import json
from pathlib import Path
from typing import Any

import pytest

from inga.model.invocation import REQUESTS, Heartbeat, Message, Nack, SendId, StartId
from inga.objects.actions import Run, Transmit
from inga.objects.engine import Engine
from inga.objects.instance import Instance
from inga.objects.options import EngineOptions
from inga.objects.order import Clock, Precedence, call_of, precedes
from inga.objects.roster import Pairs, Place, Roster

from .printed import NOTHING, Printed, id_of
from .world import World

VECTORS = Path(__file__).parent / "vectors"


def read(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


PRECEDENCE = read("precedence")
DELIVERY = read("delivery")
BEHIND = read("behind")


class Table:
    """Objects without a network: steps are played one by one."""

    def __init__(self, vector: dict[str, Any]) -> None:
        self.names: list[str] = vector["objects"]
        self.pairs: dict[str, Any] = vector["conflicts"]
        self.relations = [Pairs(vector["conflicts"].get(name, [])) for name in self.names]
        n = len(self.names)
        self.orders = [Precedence(i, n, self.relations[i], Clock()) for i in range(n)]
        self.printed = Printed(n)
        self.instances: dict[str, Instance] = {}
        self.ops: dict[str, str] = {}
        self.messages: dict[str, Message] = {}
        self.sent: dict[str, list[str]] = {}
        self.past: dict[str, set[str]] = {}  # of instances, then of messages: exactly what precedes them
        self.before: dict[str, set[str]] = {}
        self.committed: list[tuple[int, str, set[str]]] = []
        for step in vector["steps"]:
            getattr(self, f"do_{step['do']}")(step)

    def do_start(self, step: dict[str, Any]) -> None:
        place = self.names.index(step["obj"])
        self.begun(step, place, self.orders[place].root(op=step["op"]), step["op"])

    def do_deliver(self, step: dict[str, Any]) -> None:
        place = self.names.index(step["obj"])
        message = self.messages[step["msg"]]
        order = self.orders[place]
        order.clock.see(message.ts)
        self.begun(step, place, order.start(message, message.op, (), ()), message.op)
        self.printed.deliver(step["inst"], message)
        self.past[step["inst"]] |= self.before[step["msg"]] | {step["msg"]}

    def begun(self, step: dict[str, Any], place: int, instance: Instance, op: str) -> None:
        self.instances[step["inst"]], self.ops[step["inst"]] = instance, op
        self.sent[step["inst"]] = []
        rivals = self.relations[place].of(op)
        self.past[step["inst"]] = set().union(
            *(past for where, done, past in self.committed if where == place and done in rivals)
        )
        self.printed.start(step["inst"], place)

    def do_send(self, step: dict[str, Any]) -> None:
        instance = self.instances[step["inst"]]
        dst = tuple(self.names.index(name) for name in step["dst"])
        if "re" in step:
            call = self.messages[step["re"]].call
        else:
            calls = self.sent[step["inst"]]
            call = (*instance.start, len(calls))
            calls.append(step["msg"])
        sq = tuple((place, 1) for place in dst)
        order = self.orders[instance.place]
        message = order.send(instance, step["typ"], dst, sq, op=step["op"], call=call)
        self.messages[step["msg"]] = message
        self.before[step["msg"]] = set(self.past[step["inst"]])
        self.past[step["inst"]].add(step["msg"])
        self.printed.send(step["inst"], message)

    def do_receive(self, step: dict[str, Any]) -> None:
        instance, message = self.instances[step["inst"]], self.messages[step["msg"]]
        order = self.orders[instance.place]
        order.clock.see(message.ts)
        order.deliver(instance, message)
        self.printed.deliver(step["inst"], message)
        self.past[step["inst"]] |= self.before[step["msg"]] | {step["msg"]}

    def do_commit(self, step: dict[str, Any]) -> None:
        instance = self.instances[step["inst"]]
        self.orders[instance.place].commit(instance, self.ops[step["inst"]])
        self.printed.commit(step["inst"], instance.place)
        self.committed.append((instance.place, self.ops[step["inst"]], self.past[step["inst"]]))

    def do_abort(self, step: dict[str, Any]) -> None:
        self.orders[self.instances[step["inst"]].place].abort()

    def known(self, message: Message) -> list[str]:
        """What the counters of a message say, as the paper says it: the largest identifier of a request that is counted,
        of each object."""
        counted = [
            each
            for each in self.messages.values()
            if each.kind in REQUESTS and each.ev <= message.vector[each.src]
        ]
        return [
            self.written(max((id_of(each.id) for each in counted if each.src == place), default=NOTHING))
            for place in range(len(self.names))
        ]

    def started(self, name: str) -> list[str]:
        """The order in which an object starts the messages for it, if they come in the opposite one."""
        place = self.names.index(name)
        engine = Engine(place, roster_of(self.names, self.pairs), EngineOptions(delta=10.0))
        sent = dict.fromkeys(range(len(self.names)), 0)
        packets: list[Message | Heartbeat] = []
        for message in self.messages.values():
            if place in message.dst:
                sent[message.src] += 1
                packets.insert(0, message._replace(sq=((place, sent[message.src]),)))
        packets += [Heartbeat(src, 100, sent[src], 0, (100,), 0) for src in sent if src != place]
        started: list[SendId] = []
        for packet in packets:
            actions = engine.receive(1.0, packet)
            while actions:
                for action in actions:
                    if isinstance(action, Run):
                        assert action.instance.request is not None
                        started.append(action.instance.request.id)
                        engine.endings.finish(action.instance, None)
                actions = engine.actions(1.0)
        names = {message.id: each for each, message in self.messages.items()}
        return [names[id] for id in started]

    def written(self, id: tuple[int, ...]) -> str:
        """As the paper writes identifiers."""
        return "0" if not id[0] else f"{id[0]}{self.names[id[1]]}{''.join(map(str, id[2:]))}"


BEYOND = {("abort-leaves-V", "m1", "m3")}
"""Pairs of which counters say more than there is. An object has sent m1 and m2; m2 precedes m3, and whoever counts m2
counts m1, though what m1 started has aborted."""


@pytest.mark.parametrize("vector", PRECEDENCE, ids=lambda vector: vector["name"])
def test_identifiers_and_precedence(vector: dict[str, Any]) -> None:
    table = Table(vector)
    expect = vector["expect"]
    for name, fields in expect.get("messages", {}).items():
        message = table.messages[name]
        found = {
            "id": table.written(id_of(message.id)),
            "cid": table.written(tuple(message.cohort)),
            "ts": message.ts,
            "V_counter": list(message.vector),
            "V": table.known(message),
        }
        assert {key: found[key] for key in fields} == fields, name
        as_printed = [table.written(id) for id in table.printed.messages[message.id]]
        assert as_printed == fields.get("V", as_printed)
    for name, sid in expect.get("sid", {}).items():
        assert table.written(tuple(table.instances[name].start)) == sid
    for name, ids in expect.get("object_V", {}).items():
        assert [table.written(id) for id in table.printed.objects[table.names.index(name)]] == ids
    for one, other, answer in expect.get("precedes", []):
        assert (one in table.before[other]) is answer, (one, other)
        told = precedes(table.messages[one], table.messages[other])
        assert told is (answer or (vector["name"], one, other) in BEYOND), (one, other)
    for one, first in table.messages.items():
        for other, second in table.messages.items():
            # Counters know no less than there is; what they say beyond it was sent before, at least.
            assert one not in table.before[other] or precedes(first, second), (one, other)
            assert not precedes(first, second) or first.ts < second.ts, (one, other)
    order = expect.get("key_order", [])
    keys = [table.messages[name].key for name in order]
    assert keys == sorted(keys)
    for place in table.messages[order[0]].dst if order else ():
        assert table.started(table.names[place]) == order
    for name, one, other, answer in expect.get("relevant", []):
        first, second = (call_of(table.messages[each]) for each in (one, other))
        assert table.relations[table.names.index(name)].between(first, second) is answer
    for rule, repaired in (("printed", False), ("printed_with_C7", True)):
        for one, other, answer in expect.get(rule, []):
            first, second = table.messages[one], table.messages[other]
            relation = table.relations[(set(first.dst) & set(second.dst)).pop()]
            found = table.printed.precedes(first, second, relation, repaired=repaired)
            assert found is answer, (rule, one, other)


def test_abort_leaves_what_conflicts_without_a_past() -> None:
    table = Table(next(each for each in PRECEDENCE if each["name"] == "abort-leaves-V"))
    assert table.orders[1].past == {}


class Takes:
    """Notes what is taken."""

    def __init__(self) -> None:
        self.taken: list[Message] = []

    def note(self, step: str, now: float, place: int, message: Any, instance: Any) -> None:
        if step == "take":
            self.taken.append(message)


def roster_of(names: list[str], conflicts: dict[str, Any]) -> Roster:
    places = [Place(at, name) for at, name in enumerate(names)]
    return Roster(places, {name: Pairs(pairs) for name, pairs in conflicts.items()})


def test_a_response_waits_for_one_that_precedes_it() -> None:
    vector = next(each for each in PRECEDENCE if each["name"] == "ce-response-t1")
    table = Table(vector)
    expected = vector["expect"]["hold_at_receiver"]
    takes = Takes()
    engine = Engine(0, roster_of(vector["objects"], vector["conflicts"]), observer=takes)
    root = engine.begin(0.0, 0)
    engine.calls.call(root, "a", (1,), "x")
    engine.calls.call(root, "a", (2,), "u")
    engine.actions(0.0)
    first = expected["receive_first"]
    for name in (first, *(each for each in expected["delivered"] if each != first)):
        engine.receive(1.0, table.messages[name])
    names = {message.id: name for name, message in table.messages.items()}
    assert [names[message.id] for message in takes.taken] == expected["delivered"]
    assert engine.counts["held"] == 1


@pytest.mark.parametrize("vector", DELIVERY, ids=lambda vector: vector["name"])
def test_delivery_at_one_object(vector: dict[str, Any]) -> None:
    names: list[str] = vector["objects"]
    me = names.index(vector["at"])
    engine = Engine(me, roster_of(names, {vector["at"]: vector["conflicts"]}), EngineOptions(delta=10.0))
    delivered: list[str] = []
    sent = dict.fromkeys(range(len(names)), 0)

    def act(actions: list[Any]) -> dict[str, list[int]]:
        nacks: dict[str, list[int]] = {}
        while actions:
            for action in actions:
                if isinstance(action, Run):
                    request = action.instance.request
                    assert request is not None
                    delivered.append(request.args[0])
                    engine.endings.finish(action.instance, None)
                elif isinstance(action, Transmit) and isinstance(action.packet, Nack):
                    nacks[names[action.members[0]]] = list(action.packet.numbers)
            actions = engine.actions(1.0)
        return nacks

    for step in vector["steps"]:
        if "recv" in step:
            said = step["recv"]
            src = names.index(said["src"])
            sent[src] += 1
            start = StartId(sent[src], src)
            zero = (0,) * len(names)
            call = (*start, 0)
            message = Message(
                "o", src, (me,), SendId(start, 0), said["ts"], said["sq"], zero, ((me, said["sq"]),), start, call,
                said["op"], (said["msg"],), path=(call,),
            )  # fmt: skip
            nacks = act(engine.receive(1.0, message))
        else:
            said = step["heartbeat"]
            beat = Heartbeat(names.index(said["src"]), said["ts"], said["sent"], 0, (said["sent"],), 0)
            nacks = act(engine.receive(1.0, beat))
        assert delivered == step["delivered"], step
        assert nacks == step.get("nack", {}), step


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
