"""Plain messages under `object` and `total`, as a whole stack in virtual time."""

from random import Random
from typing import Any

import pytest

from inga.model.delivery import Batch
from inga.model.errors import UsageError
from inga.model.invocation import ASYNCHRONOUS, SYNCHRONOUS, Heartbeat, Message
from inga.model.packet import Packet
from inga.model.view import View
from inga.objects.calling import AnswerShape, Invocation
from inga.objects.declare import Abort, Call
from inga.objects.hosting import Keyed, key_label
from inga.objects.layer import CLOSES_WITHIN, HELD_MAX, KEY_MAX, SHARED_MAX, ObjectOrder
from inga.recipes import OVER, Options, find
from inga.session.pressure import QUEUE_MIN, Unread
from inga.sim.hunt import case, try_seed
from inga.sim.simulator import Sim
from inga.sim.trials import simulate_trial
from inga.stack.stack import Stack
from inga.trace.memory import MemoryTrace
from inga.trial.trial import Trial
from inga.wire import bundle
from inga.wire.invocation import decode, enclosed
from inga.wire.packet import encode, group_id

from ..stack.harness import Net
from .classes import Counter

NAMES = ("alice", "bob", "cathy")


def played(order: str, over: str, seed: int = 1, **protocol: Any) -> Sim:
    sim = Sim(*NAMES, order=order, seed=seed, options=Options(protocol={"over": over, **protocol}))
    for number in range(4):
        for name in NAMES:
            sim[name].send(f"{name} {number}".encode())
    sim.run()
    sim.check()
    return sim


@pytest.mark.parametrize("over", OVER)
def test_everybody_takes_everything_in_one_order_the_own_too(over: str) -> None:
    alice, bob, cathy = (site.texts for site in played("object", over).sites)
    assert alice == bob == cathy and len(alice) == 12


@pytest.mark.parametrize(("order", "conflict"), [("object", False), ("total", True)])
def test_calls_that_commute_are_ordered_where_everything_is(order: str, conflict: bool) -> None:
    layers = find(order).build(Options(objects={"counter": Counter}))
    layer = Stack(layers, 0, View.of(*NAMES), rng=Random(0)).layer("object")
    assert isinstance(layer, ObjectOrder)
    relation = layer.roster.relations[layer.roster.find("counter")[0]]
    assert relation.between(Call("inc"), Call("dec")) == conflict


@pytest.mark.parametrize("over", OVER)
def test_own_messages_stay_away_if_not_wanted(over: str) -> None:
    options = Options(echo=False, protocol={"over": over})
    sim = Sim(*NAMES, order="object", seed=2, options=options)
    sim["alice"].send(b"one")
    sim["bob"].send(b"two", to=["alice", "bob"])
    sim.run()
    sim.check()
    assert [site.texts for site in sim.sites] == [["two"], ["one", "two"], ["one"]]


@pytest.mark.parametrize("over", OVER)
def test_what_is_in_nobodys_way_comes_at_once(over: str) -> None:
    """Alice is far away, so nothing that has an order is clear before she was heard."""
    sim = Sim(*NAMES, order="object", seed=1, options=Options(protocol={"over": over, "key": first_word}))
    for name in ("bob", "cathy"):
        sim.link(name, "alice").delay = sim.link("alice", name).delay = 5.0
    sim["bob"].send(b"stock 1")
    sim["bob"].send(b"free as a bird")
    sim.run(until=1.0)
    assert sim["cathy"].texts == ["free as a bird"]
    sim.run()
    sim.check()
    assert sim["cathy"].texts == ["free as a bird", "stock 1"]


def first_word(payload: bytes) -> Any:
    word = payload[4:].split(b" ")[0]  # behind the number that the simulator puts in front
    return None if word == b"free" else word.decode()


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize(
    ("key", "says"),
    [
        (lambda payload: object(), "UsageError: .* not object"),
        (lambda payload: [1], "TypeError: unhashable"),
        (lambda payload: {1}, "not set"),
        (lambda payload: payload[100], "IndexError: index out of range"),
        (lambda payload: b"x" * KEY_MAX, f"key of {KEY_MAX + 3} bytes; there is room for {KEY_MAX}"),
    ],
)
def test_a_key_of_no_use_is_an_error_of_whoever_sends(over: str, key: Any, says: str) -> None:
    """Nothing of what was sent with it leaves, and what is sent next does: here at once, since it is in nobody's way."""

    def odd_or_free(payload: bytes) -> Any:
        return key(payload) if payload == b"odd" else 1 if payload == b"ordered" else None

    layers = find("object").build(Options(protocol={"over": over, "key": odd_or_free}))
    sender = Stack(layers, 0, View.of(*NAMES), rng=Random(1))
    with pytest.raises(UsageError, match=f"the function key gives .*{says}"):
        sender.send_many([b"even", b"ordered", b"odd"], now=0.0)
    sender.send(b"next", now=0.0)
    sent = [item.payloads for item in sender.ready().deliver if isinstance(item, Batch)]
    assert sent == [[b"next"]]


@pytest.mark.parametrize("over", OVER)
def test_messages_of_one_key_are_in_one_order_and_others_need_not_be(over: str) -> None:
    differ = False
    for seed in range(6):
        sim = played("object", over, seed, keys=3)
        sequences = [site.texts for site in sim.sites]
        differ = differ or len({tuple(each) for each in sequences}) > 1
    assert differ, "or keys would make no difference"


def test_a_row_names_the_key_by_which_a_message_has_its_place() -> None:
    traces = [MemoryTrace(member, 2) for member in range(2)]
    options = Options(protocol={"key": lambda payload: payload.decode()})
    net = Net(2, "object", options=options, traces=traces)
    net.send(0, b"red")
    net.send(0, b"green")
    net.wait(1.0)
    starts = [row.op for row in traces[1].rows if row.step == "start"]
    assert starts == [key_label("red"), key_label("green")]


@pytest.mark.parametrize("over", OVER)
def test_large_messages(over: str) -> None:
    sim = Sim(*NAMES, order="object", seed=3, options=Options(protocol={"over": over}), datagram_max=600)
    sim["alice"].send(b"a" * 5000)
    sim["bob"].send(b"small")
    sim["bob"].send(b"b" * 3000, to="cathy")
    sim.run()
    sim.check()
    assert sorted(map(len, sim["cathy"].texts)) == [5, 3000, 5000]


def test_a_group_changes_to_total_order_and_back() -> None:
    sim = Sim(*NAMES, order="vector", seed=5, record=False)
    sim["alice"].send(b"before")
    sim.run()
    for order in ("total", "fifo", "object"):
        sim["bob"].use(order)
        sim.run()
        for name in NAMES:
            sim[name].send(f"{order} {name}".encode())
        sim.run()
    assert sim.outcomes == [None, None, None]
    sim.check()
    texts = [[text for text in site.texts if text.startswith("total")] for site in sim.sites]
    assert texts[0] == texts[1] == texts[2] and len(texts[0]) == 3, "its own too, as this order prefers"


def test_one_who_leaves_is_not_waited_for() -> None:
    sim = Sim(*NAMES, order="total", seed=6, record=False)
    sim["alice"].send(b"first")
    sim.run()
    cathy = sim["cathy"].stack
    cathy.goodbye(now=sim.now)
    sim["cathy"].pump()
    sim.run()
    sim["alice"].send(b"second", to="bob")
    sim.run()
    assert sim["bob"].texts == ["first", "second"]


@pytest.mark.parametrize("order", ["object", "total"])
@pytest.mark.parametrize("seed", range(100, 110))
def test_groups_with_all_that_can_go_wrong(order: str, seed: int) -> None:
    assert try_seed(order, seed) is None


@pytest.mark.parametrize("seed", range(3))
def test_over_remiop_what_is_for_one_reaches_all_and_only_that_one_takes_it(seed: int) -> None:
    assert try_seed("remiop+object", 100 + seed) is None
    trial = Trial(order="remiop+object", members=3, messages=6, loss=0.05, seed=seed, objects=1)
    result = simulate_trial(trial)
    assert not result.violations, result.witnesses


@pytest.mark.hunt
@pytest.mark.parametrize("order", ["object", "total", "remiop+object"])
def test_many_groups_with_all_that_can_go_wrong(order: str) -> None:
    for seed in range(2000, 3000):
        assert try_seed(order, seed) is None, seed


# What the tests above would not see is worth nothing: break a rule, and they do


def seeds_that_fail(order: str) -> list[int]:
    return [seed for seed in range(200, 206) if try_seed(order, seed) is not None]


def test_a_relation_in_which_nothing_conflicts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keyed, "of", lambda self, op: frozenset())
    assert seeds_that_fail("remiop+total") and seeds_that_fail("object")


def test_keys_that_members_see_differently_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    between = Keyed.between
    monkeypatch.setattr(
        Keyed, "between", lambda self, one, other: between(self, one, other) and one.args[1] == other.args[1]
    )
    assert seeds_that_fail("object"), "messages of equal numbers alone are kept in order"


@pytest.mark.interpreted
def test_a_message_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    deliver = ObjectOrder._deliver

    def forgetful(self: ObjectOrder, request: Message) -> None:
        if (self.roster.member_of[request.src], request.args[1], self.stack.me) != (0, 1, 1):
            deliver(self, request)

    monkeypatch.setattr(ObjectOrder, "_deliver", forgetful)
    assert seeds_that_fail("object")


# What comes from the network


@pytest.mark.parametrize(
    "args",
    [
        (),
        (0, 1, 1, (), (), "text"),
        (0, 1, "1", (), (), b"text"),
        (0, 1, 1, (1, 2), (), b"text"),
        (0, 1, 1, (1, 2, "3"), (), b"text"),
        (0, 1, 1, (), (1,), b"text"),
        (0, 1, 1, (), (), b"text", 1),
    ],
)
def test_what_is_no_plain_message_is_counted(args: tuple[Any, ...]) -> None:
    receiver = stack("object")
    order = receiver.layer("object")
    assert isinstance(order, ObjectOrder)
    (place,) = order.roster.find("@0")
    order.host.tell(0.0, (place,), "free", *args)
    order.host.sends(0.0)
    assert receiver.rejected == {"malformed": 1} and not receiver.queued


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("kind", [SYNCHRONOUS, ASYNCHRONOUS])
@pytest.mark.parametrize("op", ["message", "free", "fly"])
@pytest.mark.parametrize("aborts", [True, False])
def test_a_call_to_a_mailbox_is_counted_and_does_no_harm(over: str, kind: str, op: str, aborts: bool) -> None:
    """Alice makes one up that looks like a message, wants an answer, and takes it back or not."""
    sim = Sim(*NAMES, order="object", seed=1, options=Options(protocol={"over": over}))
    (place,) = sim["alice"].objects.roster.find("@1")
    said = (0, 1, 1, (), (), bundle.join([b"\0\0\0\1made up"]))
    forged = Invocation(kind, (place,), op, said, {}, False, AnswerShape(((place,),), False, False))

    async def body(ctx: Any) -> None:
        await ctx.make(forged)
        if aborts:
            raise Abort("it was a joke")

    sim["bob"].send(b"before")
    root = sim["alice"].begin(body)
    sim.run()
    for name in NAMES:
        sim[name].send(f"{name} after".encode())
    sim.run()
    sim.check()
    assert root.done and isinstance(root.error, Abort) is aborts
    assert len({tuple(site.texts) for site in sim.sites}) == 1 and len(sim["bob"].texts) == 4
    assert set(sim["bob"].stack.rejected) == {"malformed"}
    engine = sim["bob"].objects.host.engine
    assert engine.idle and not engine.undoable


def stack(order: str = "object", over: str = "reliable", me: int = 0) -> Stack:
    layers = find(order).build(Options(protocol={"over": over}))
    return Stack(layers, me, View.of(*NAMES), rng=Random(1))


@pytest.mark.parametrize("over", OVER)
def test_whatever_comes_nothing_is_raised(over: str) -> None:
    rng = Random(7)
    receiver = stack(over=over)
    for number in range(400):
        packet = Packet(1 + number % 2, 1, rng.randbytes(rng.randrange(60)), kind=6 if number % 3 else 0)
        packet.lsn, packet.seq = number + 1, number + 1
        receiver.receive([(encode(packet, group_id("")), None)], now=0.0)
        assert not receiver.ready().deliver
    assert receiver.rejected.total() >= 200


def test_what_waits_for_others_keeps_nobody_behind_who_has_read_everything() -> None:
    sender = stack(me=2)
    sender.send(bytes(2 * QUEUE_MIN), now=0.0)
    sender.ready()
    unread = Unread(QUEUE_MIN)
    assert unread.is_behind(QUEUE_MIN)
    assert sender.held == HELD_MAX and not unread.is_behind(sender.held)


def test_nobody_speaks_for_another() -> None:
    sender = Stack(find("object").build(Options()), 1, View.of(*NAMES), rng=Random(1))
    sender.send(b"hello", now=0.0)
    bodies = [layer for layer in sender.layers if isinstance(layer, ObjectOrder)]
    assert bodies
    sent: list[Packet] = []
    bodies[0].below = sent.extend
    sender.send(b"hello again", now=0.0)
    sender.ready()
    receiver = stack()
    layer = receiver.layer("object")
    assert isinstance(layer, ObjectOrder) and sent
    sent[0].src = 2
    layer.up(sent[:1])
    assert receiver.rejected["forged"] == 1
    assert not receiver.held and not receiver.met


class Peers:
    """Three members with a counter each, and what the object layer of one passes down."""

    def __init__(self, me: int = 0) -> None:
        objects = {"counter": Counter, "hers": (Counter, "bob")}
        layers = find("object").build(Options(objects=objects, greet=False))
        self.stack = Stack(layers, me, View.of(*NAMES), rng=Random(1))
        found = self.stack.layer("object")
        assert isinstance(found, ObjectOrder)
        self.order, self.passed, self.emitted = found, list[Packet](), list[Packet]()
        found.below = self.passed.extend
        self.stack.emit = self.emitted.extend

    def call(self, op: str, *args: Any) -> None:
        async def body(ctx: Any) -> None:
            await ctx.call("counter", op, *args)

        self.order.begin(body)

    def hear(self, packets: list[Packet]) -> None:
        self.order.up(packets)


def test_a_state_of_something_else_is_none_of_its_concern() -> None:
    """Layers are told of every state that comes, whichever of them lacked it."""
    alice = Peers()
    alice.order.take_over("of another layer", b"")
    assert alice.stack.ready().error is None and alice.order.may_begin


def test_what_is_said_in_one_turn_is_one_packet() -> None:
    alice, bob = Peers(), Peers(1)
    for amount in range(3):
        alice.call("inc", amount)
    assert not alice.passed and alice.stack.chain.waiting == 3 and not alice.stack.settled
    alice.order.turn()
    (asked,) = alice.passed
    assert asked.dst is None and not alice.stack.chain.waiting
    cathy = Peers(2)
    cathy.hear([asked])
    cathy.order.turn()
    bob.hear([asked])
    bob.order.control(cathy.emitted[0])
    bob.order.turn()
    (answered,) = bob.passed  # three answers, which are for alice alone, and all may see
    assert answered.dst is None
    assert len(enclosed(answered.body, 0)) == 3 and not enclosed(answered.body, 2)


def test_who_has_something_to_say_in_this_turn_has_not_said_all() -> None:
    async def body(ctx: Any) -> None:
        ctx.oneway("hers", "inc")

    alice = Peers()
    alice.order.begin(body)
    assert alice.order.host.engine.settled and not alice.order.settled
    alice.order.turn()
    assert alice.order.settled


def test_what_is_long_is_seen_by_those_whom_it_is_for() -> None:
    """An argument that is no number makes the method fail, and the answer say so at length."""
    alice, bob = Peers(), Peers(1)
    alice.call("inc", "x" * SHARED_MAX)
    alice.call("inc", 1)
    alice.order.turn()
    for packet in alice.passed:
        bob.hear([packet])
    bob.order.turn()
    assert [packet.dst for packet in bob.passed] == [None]
    alice.call("no such method " + "x" * SHARED_MAX)
    alice.order.turn()
    bob.hear(alice.passed[-1:])
    bob.order.turn()
    assert [packet.dst for packet in bob.passed] == [None, 1]


def test_what_fills_more_than_a_datagram_is_more_than_one_packet() -> None:
    alice = Peers()
    room = alice.stack.wire.body_max
    for _ in range(5):
        alice.call("inc", "x" * (room // 3))
    alice.order.turn()
    assert len(alice.passed) == 3 and all(len(packet.body) <= room for packet in alice.passed)


def test_clocks_that_all_are_to_see_are_one_datagram() -> None:
    """Of several heartbeats of a turn the newest counts."""
    alice, bob = Peers(), Peers(1)
    for _ in range(2):
        alice.call("show")
        alice.order.turn()
    bob.hear(alice.passed)
    assert not bob.emitted
    bob.order.turn()
    (shown,) = bob.emitted
    assert shown.to is None and shown.dst is None
    for member in (0, 2):
        (part,) = enclosed(shown.body, member)
        beat = decode(part, bob.order.roster)
        assert isinstance(beat, Heartbeat) and beat.ts == bob.order.host.engine.local.clock.value


def test_a_heartbeat_that_wants_an_answer_wants_it_whatever_follows() -> None:
    bob = Peers(1)
    links = bob.order.host.engine.links
    links.beat(0, wanted=True)
    links.beat(0)
    bob.order.turn()
    (shown,) = bob.emitted
    beat = decode(enclosed(shown.body, 0)[0], bob.order.roster)
    assert isinstance(beat, Heartbeat) and beat.wanted and shown.to == 0


def test_calls_are_ended_once_when_a_view_takes_long_to_close() -> None:
    """The alarm for that is over then: a driver that is woken for it again and again does nothing else."""
    alice = stack()
    order = alice.layer("object")
    assert isinstance(order, ObjectOrder)
    alice.views.close()
    closes_at = alice.now + CLOSES_WITHIN
    assert order.wake == closes_at
    alice.tick(closes_at)
    assert order.wake is None or order.wake > closes_at


def test_runs_are_the_same_whenever_they_are_made() -> None:
    one, other = (simulate_trial(case("object", 104)) for _ in range(2))
    assert one.pdus == other.pdus and one.seconds == other.seconds
    assert simulate_trial(Trial(order="total", messages=5, seed=3)).violations == 0
