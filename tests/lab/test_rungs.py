"""The rungs as layers: their stamps, their tests, what they do with bytes that make no sense."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga import recipes
from inga.lab.rungs import BENT, RUNGS, Rung, history
from inga.lab.rungs.counters import Pairwise
from inga.lab.rungs.rung import Waiting
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.layer import Layer
from inga.stack.stack import Stack
from inga.trace.memory import MemoryTrace
from inga.wire import varint

from ..stack.harness import Net

NAMES = [rung.name for rung in RUNGS]
LOSSLESS = Options(lossless=True)


def net(order: str, members: int = 3, **more: Any) -> Net:
    return Net(members, order, options=LOSSLESS, **more)


def rung(stack: Stack) -> Rung[Any]:
    return next(layer for layer in stack.layers if isinstance(layer, Rung))


def carry(group: Net, *flights: int) -> None:
    """Bring these of the copies under way, by place, and forget the rest."""
    chosen = [group.under_way[at] for at in flights]
    for flight in chosen:
        group.under_way.remove(flight)
        group.stacks[flight.target].receive([(flight.data, None)], now=group.now)
        group.turn(flight.target)


def said(group: Net, member: int) -> list[bytes]:
    return [bytes(payload) for batch in group.batches[member] for payload in batch.payloads]


def to(group: Net, target: int) -> list[int]:
    """Places of the copies to one member, in the order they were sent."""
    return [at for at, flight in enumerate(group.under_way) if flight.target == target]


# What is there


def test_every_rung_is_a_recipe_marked_unsafe() -> None:
    assert recipes.ladder() == [*NAMES, *(layer.name for layer in BENT)]
    for name in recipes.ladder():
        recipe = find(name)
        assert recipe.unsafe
        assert name not in recipes.names(), "nobody is offered one by accident"
    assert not any(find(name).unsafe for name in recipes.names())


def test_the_names_of_the_design_are_there() -> None:
    assert set("realtime history scalar last-sender strict tree".split()) <= set(NAMES)


def test_all_but_pairwise_claim_causal_order() -> None:
    claims = {name: "causal" in find(name).guarantees for name in recipes.ladder()}
    assert [name for name, claimed in claims.items() if not claimed] == ["pairwise"]


def test_an_unknown_order_says_which_was_meant_and_where_the_others_are() -> None:
    with pytest.raises(UsageError, match=r"no order 'stirct'; did you mean 'strict'\?"):
        find("stirct")


# All of them, in the same way


@pytest.mark.parametrize("order", recipes.ladder())
def test_a_lone_speaker_is_heard(order: str) -> None:
    group = net(order)
    for word in (b"one", b"two", b"three"):
        group.send(0, word)
    while group.under_way:
        carry(group, 0)
    group.now = 1.0
    for member in (1, 2):
        group.stacks[member].tick(group.now)
        group.turn(member)
        assert said(group, member) == [b"one", b"two", b"three"]
        assert group.stacks[member].held == 0


@pytest.mark.parametrize("order", recipes.ladder())
def test_echo_and_naming_oneself(order: str) -> None:
    group = Net(2, order, options=Options(lossless=True, echo=True))
    group.send(0, b"me too")
    assert said(group, 0) == [b"me too"]
    plain = net(order)
    plain.send(0, b"both", to=0b011)
    assert said(plain, 0) == [b"both"]


@pytest.mark.parametrize("order", NAMES)
def test_a_traced_run_says_what_truly_caused_what(order: str) -> None:
    """Whatever the scheme stamps, the rows have the whole past, as `fifo` has it."""
    rows: list[Any] = []
    traces = [MemoryTrace(member, 2, rows) for member in range(2)]
    group = net(order, 2, traces=traces, traced=True)
    group.send(0, b"question")
    carry(group, 0)
    group.now = 1.0
    group.stacks[1].tick(group.now)
    group.turn(1)
    group.send(1, b"answer")
    sends = [(row.src, row.seq, row.deps) for row in rows if row.step == "send"]
    assert sends == [(0, 1, (0, 0)), (1, 1, (1, 0))]
    assert next(row.step for row in rows if row.process == 1) == "receive"


@pytest.mark.parametrize("order", NAMES)
@settings(max_examples=20)
@given(data=st.data())
def test_no_stamp_can_crash_a_member(order: str, data: st.DataObject) -> None:
    """Anything in the place of a stamp is taken for a stamp, or rejected and counted."""
    group = net(order)
    group.send(0, b"x", to=data.draw(st.sampled_from([None, 0b010, 0b110])))
    flight = group.under_way[to(group, 1)[0]]
    stack = group.stacks[1]
    packet = flight.packet(3)
    numbers = st.lists(st.integers(0, 2**63) | st.integers(0, 3), max_size=8).map(varint.pack)
    packet.ext = data.draw(st.none() | st.binary(max_size=12) | numbers)
    rung(stack).up([packet])
    ready = stack.ready()
    assert len(ready.deliver) + (stack.held > 0) + stack.rejected.total() == 1
    assert ready.error is None


@pytest.mark.parametrize("order", NAMES)
def test_a_stamp_that_is_cut_is_rejected_and_the_repair_is_not(order: str) -> None:
    group = net(order)
    group.send(0, b"x")
    flight = group.under_way[to(group, 1)[0]]
    stack = group.stacks[1]
    bad = flight.packet(3)
    bad.ext = b"\x80"
    rung(stack).up([bad])
    assert stack.rejected == {"truncated": 1}
    carry(group, to(group, 1)[0])
    group.stacks[1].tick(1.0)
    group.turn(1)
    assert said(group, 1) == [b"x"]


@pytest.mark.parametrize("order", NAMES)
def test_what_is_held_can_be_handed_over(order: str) -> None:
    """`drain` gives up the buffer, and the bytes with it."""
    group = net(order)
    group.send(0, b"one")
    group.send(0, b"two")
    carry(group, to(group, 1)[1])
    stack = group.stacks[1]
    held = rung(stack).drain()
    assert stack.held == 0
    assert len(held) + len(said(group, 1)) == 1, "some of them let it through"
    assert rung(stack).drain() == []


@pytest.mark.parametrize("order", NAMES)
def test_headers_for_others_are_nothing(order: str) -> None:
    group = net(order)
    group.send(0, b"for bob", to=0b010)
    carry(group, to(group, 2)[0])
    assert said(group, 2) == []
    assert group.stacks[2].held == 0
    assert group.stacks[2].rejected.total() == 0


# Unicast: pairwise numbers


def pairwise(rung: type[Pairwise], members: int = 3) -> Net:
    """A group of that rung."""

    def build() -> list[Layer]:
        layers = find("pairwise").build(LOSSLESS)
        return [rung() if isinstance(layer, Pairwise) else layer for layer in layers]

    return net("pairwise", members, build=build)


def test_two_parties_talk_in_order(of: type[Pairwise] = Pairwise) -> None:
    group = pairwise(of, 2)
    for word in (b"1", b"2", b"3"):
        group.send(0, word)
    carry(group, 2)
    assert said(group, 1) == []
    carry(group, 1)
    assert said(group, 1) == []
    group.send(1, b"hello?")
    assert rung(group.stacks[1]).state_text() == "has 0 from alice"
    carry(group, 0)
    assert said(group, 1) == [b"1", b"2", b"3"]
    carry(group, 0)
    assert said(group, 0) == [b"hello?"]
    assert rung(group.stacks[1]).state_text() == "has 3 from alice"


def test_each_pair_has_numbers_of_its_own(of: type[Pairwise] = Pairwise) -> None:
    """Alice's third message is the second to each: nobody waits for what went to others."""
    group = pairwise(of)
    group.send(0, b"b1", to=0b010)
    group.send(0, b"c1", to=0b100)
    group.send(0, b"all")
    numbers = {}
    for flight in group.under_way:
        packet = flight.packet(3)
        if not packet.bare:
            text = rung(group.stacks[flight.target]).stamp_text(packet)
            numbers.setdefault(flight.target, []).append(text)
    assert numbers == {1: ["no. 1", "no. 2"], 2: ["no. 1", "no. 2"]}
    carry(group, to(group, 1)[-1])
    assert said(group, 1) == []
    carry(group, to(group, 1)[0])
    assert said(group, 1) == [b"b1", b"all"]


def test_numbers_begin_at_one() -> None:
    group = net("pairwise", 2)
    group.send(0, b"x")
    packet = group.under_way[0].packet(2)
    assert packet.ext == varint.pack([1])


class WithoutBuffer(Pairwise):
    """What comes is processed at once."""

    def _admit(self, waiting: Waiting[int], out: list[Packet]) -> None:
        self._pass_on(waiting, out)


class OneNumberForAll(Pairwise):
    """A sender counts its messages, whoever they are for."""

    def _stamp(self, packet: Packet) -> list[int]:
        self._local = [max(self._local)] * len(self._local)
        return super()._stamp(packet)


def test_a_pair_without_a_buffer_is_noticed() -> None:
    with pytest.raises(AssertionError):
        test_two_parties_talk_in_order(WithoutBuffer)


def test_pairs_that_share_their_numbers_are_noticed() -> None:
    with pytest.raises(AssertionError):
        test_each_pair_has_numbers_of_its_own(OneNumberForAll)


# Real time


def real_time(members: int = 2, **options: Any) -> Net:
    return Net(members, "realtime", options=Options(lossless=True, protocol=options))


def test_a_message_waits_for_older_ones() -> None:
    group = real_time(wait=0.5)
    group.now = 1.0
    group.send(0, b"older")
    group.now = 2.0
    group.send(0, b"newer")
    carry(group, 1)
    assert group.wake[1] == 2.5
    group.now = 2.4
    carry(group, 0)
    assert said(group, 1) == []
    group.now = 2.5
    group.stacks[1].tick(2.5)
    group.turn(1)
    assert said(group, 1) == [b"older", b"newer"], (
        "the older one leaves with the newer, though it waited less"
    )
    assert group.wake[1] == 2.9
    group.stacks[1].tick(2.9)
    group.turn(1)
    assert group.wake[1] is None and group.stacks[1].held == 0


def test_clocks_can_be_set() -> None:
    group = real_time(skew=(10.0, 0.0))
    group.now = 1.0
    group.send(0, b"x")
    packet = group.under_way[0].packet(2)
    assert rung(group.stacks[1]).stamp_text(packet) == "11 s"


def test_a_later_time_is_no_effect() -> None:
    """Bob knows nothing of alice's message. What is sorted by time waits for it all the same."""
    heard = {}
    for order in ("realtime", "vector"):
        group = net(order)
        for member, word in ((0, b"alice's"), (1, b"bob's")):
            group.now += 0.001
            group.send(member, word)
        first, second = to(group, 2)
        carry(group, second, first)
        group.now = 1.0
        group.stacks[2].tick(group.now)
        group.turn(2)
        heard[order] = said(group, 2)
    assert heard == {"realtime": [b"alice's", b"bob's"], "vector": [b"bob's", b"alice's"]}


@pytest.mark.parametrize(
    ("options", "words"),
    [({"wait": -0.1}, "wait is a number of seconds"), ({"skew": (1.0,)}, "name each one's skew")],
)
def test_clocks_that_cannot_be_meant(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        real_time(**options)


# History


def test_a_history_grows_with_every_message() -> None:
    group = net("history", 2)
    sizes = []
    for _ in range(40):
        group.send(0, b"x")
        packet = group.under_way.pop().packet(2)
        sizes.append(len(packet.ext or b""))
    assert sizes == [3 * before for before in range(40)]


def test_a_history_that_is_too_long_ends_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "HISTORY_MAX", 5)
    group = net("history", 2)
    for _ in range(6):
        group.send(0, b"x")
    assert isinstance(group.errors[0], UsageError)
    assert "use order='causal'" in str(group.errors[0])


def test_a_history_larger_than_a_datagram_is_cut_and_joined() -> None:
    group = Net(2, "history", options=Options(lossless=True), datagram_max=256)
    for number in range(120):
        group.send(0, b"%d" % number)
    assert max(len(flight.data) for flight in group.under_way) <= 256
    while group.under_way:
        carry(group, len(group.under_way) - 1)  # the last first
    assert said(group, 1) == [b"%d" % number for number in range(120)]


def test_unread_messages_are_not_in_the_history() -> None:
    group = net("history", 2, takes=False)
    group.send(0, b"x")
    carry(group, 0)
    group.send(1, b"y")
    packet = group.under_way[0].packet(2)
    assert rung(group.stacks[0]).stamp_text(packet) == "after –"


# Vectors


def test_an_attached_vector_lives_until_it_leaves() -> None:
    stack = Stack(
        find("live-vector").build(LOSSLESS), 0, View.of("a", "b"), rng=Net(2).rng, beneath=("reliable",)
    )
    layer = rung(stack)
    packets = [Packet(0, 1, b"\0x"), Packet(0, 1, b"\0y")]
    for packet in packets:
        layer.down([packet])
    assert [varint.unpack(packet.ext or b"") for packet in packets] == [[2, 0], [2, 0]]


@pytest.mark.parametrize("order", ["at-once-replace", "at-once-keep", "at-once-count", "tree"])
def test_what_is_delivered_at_once_is_called_concurrent(order: str) -> None:
    group = net(order, 2)
    group.send(0, b"x")
    group.send(1, b"y")
    carry(group, 0)
    (batch,) = group.batches[1]
    assert batch.concurrent
