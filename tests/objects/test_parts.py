"""The parts of an engine on their own: queues, links, states, rosters; and packets that nobody should send."""

from random import Random
from typing import Any

import pytest

from inga.model.errors import UsageError, WireError
from inga.model.invocation import (
    ABORT,
    ONE_WAY,
    ORPHAN,
    RESPONSE,
    SYNCHRONOUS,
    Flush,
    Heartbeat,
    Message,
    Nack,
    SendId,
    StartId,
)
from inga.objects.actions import Run, Transmit
from inga.objects.declare import Call
from inga.objects.engine import Engine
from inga.objects.hosted import Hosted, base_of
from inga.objects.incoming import _doomed
from inga.objects.instance import Instance, Pending
from inga.objects.links import REPAIRS_MAX, Links
from inga.objects.options import EngineOptions
from inga.objects.order import Clock, Precedence
from inga.objects.queue import Queue, QueueEntry
from inga.objects.roster import Everything, Pairs, Place, Roster
from inga.objects.state import State
from inga.objects.window import SCALAR, weight
from inga.wire.invocation import decode, encode

from .generate import Generator, Replicated
from .world import World

CLEAR = (1 << 60, 0)


def message(ts: int, src: int = 0, op: str = "f", **rest: Any) -> Message:
    start = StartId(ts, src)
    return Message(
        "o", src, (1,), SendId(start, 0), ts, ts, (0, 0), ((1, ts),), start, (*start, 0), op, **rest
    )


def entry(ts: int, op: str = "f", src: int = 0, args: tuple[Any, ...] = ()) -> QueueEntry:
    return QueueEntry(message(ts, src, op), Call(op, args), ((ts, src, 0),), 0.0)


def instance(of: QueueEntry) -> Instance:
    made = Instance(1, StartId(of.key[0], 1), (*of.path, 0), (), of.message)
    made.call = of.call
    return made


class Asked(Pairs):
    """A relation that counts how often it is asked."""

    def __init__(self, pairs: Any) -> None:
        super().__init__(pairs)
        self.count = 0

    def between(self, one: Call, other: Call) -> bool:
        self.count += 1
        return super().between(one, other)


@pytest.mark.parametrize("seed", range(30))
def test_a_queue_starts_what_a_plain_list_would(seed: int) -> None:
    """Against the rules read literally: clear, first among those that conflict, nothing in conflict running."""
    rng = Random(seed)
    ops = "abcd"
    pairs = [(x, y) for x in ops for y in ops if x <= y and rng.random() < 0.4]
    relation = Pairs(pairs)
    queue, waiting, running = Queue(relation), [], []
    clock = 0
    for ts in range(1, 80):
        if rng.random() < 0.6:
            clock += rng.randint(1, 2)
            made = entry(clock + rng.choice([0, 0, 3]), rng.choice(ops), src=ts)
            if relation.of(made.call.op):
                queue.add(made)
                waiting.append(made)
        if waiting and rng.random() < 0.1:
            gone = rng.choice(waiting)
            waiting.remove(gone)
            queue.remove(gone)
        if running and rng.random() < 0.5:
            queue.ended(running.pop(rng.randrange(len(running))))
        frontier = (clock, 0)
        while True:
            allowed = {
                each
                for each in waiting
                if each.key < frontier
                and not any(o.key < each.key and o.call.op in relation.of(each.call.op) for o in waiting)
                and not any(i.call.op in relation.of(each.call.op) for i in running)
            }
            found = queue.next_startable(frontier)
            assert (found is None) == (not allowed)
            if found is None:
                break
            assert found in allowed
            waiting.remove(found)
            running.append(instance(found))
            queue.started(running[-1], found)
        assert len(queue) == len(waiting)


def test_what_becomes_of_a_request_does_not_depend_on_how_many_wait() -> None:
    relation = Asked([("f", "f")])
    queue = Queue(relation)
    for ts in range(1, 2001):
        queue.add(entry(ts))
    started = 0
    while (found := queue.next_startable(CLEAR)) is not None:
        started += 1
        runs = instance(found)
        queue.started(runs, found)
        assert queue.next_startable(CLEAR) is None
        queue.ended(runs)
    assert started == 2000 and not queue._behind, "nothing is kept of instances that have ended"
    assert relation.count < 5 * 2000


class SameFirst(Pairs):
    """Calls conflict only if their first arguments are equal."""

    def between(self, one: Call, other: Call) -> bool:
        return super().between(one, other) and one.args[:1] == other.args[:1]


def test_arguments_decide_what_a_request_waits_for() -> None:
    """Behind what runs, and behind what waits."""
    queue = Queue(SameFirst([("f", "f")]))
    first, again, other, last = (entry(ts, args=(key,)) for ts, key in enumerate("aabc", 1))
    queue.add(first)
    assert queue.next_startable(CLEAR) is first
    runs = instance(first)
    queue.started(runs, first)
    queue.add(again)
    queue.add(other)
    queue.add(last)
    assert {queue.next_startable(CLEAR), queue.next_startable(CLEAR)} == {other, last}
    assert queue.next_startable(CLEAR) is None
    queue.ended(runs)
    assert queue.next_startable(CLEAR) is again


def test_the_oldest_that_waits_for_somebody_is_known() -> None:
    queue = Queue(Pairs([("f", "f"), ("g", "g")]))
    runs = [instance(entry(ts, op)) for ts, op in ((1, "f"), (3, "g"), (2, "f"))]
    for each in runs:
        queue.started(each, None)
    assert queue.oldest() is None
    for each in runs[1:]:
        each.calls[()] = Pending((), SYNCHRONOUS, (2,), False)
    assert queue.oldest() == runs[2].path


def test_relations() -> None:
    assert Pairs([("a", "b")]).of("b") == {"a"} and not Pairs().of("a")
    assert Everything("a").of("x") == {"a", "x"} and Everything().between(Call("x"), Call("y"))
    with pytest.raises(UsageError, match="twice"):
        Roster([Place(0, "x"), Place(0, "x")], {})
    roster = Roster.of(2, {"x": (Pairs(), [0, 1])})
    assert [roster.name(place, ["ann", "bob"]) for place in range(4)] == ["ann", "ann/x", "bob", "bob/x"]
    assert roster.find("x") == (1, 3) and roster.client(1) == 2


# States


def test_undoing_equals_never_having_been() -> None:
    rng = Random(7)
    for _ in range(200):
        state, kept = State(0), []
        names = list(range(8))
        for name in names:
            k = rng.randint(1, 9)
            effect = rng.choice([lambda s, k=k: s + k, lambda s, k=k: s * k, lambda s, k=k: k])
            awaited = rng.random() < 0.8
            state.apply(state.after([effect]), [effect], name if awaited else None)
            kept.append((name if awaited else None, effect))
        for name in rng.sample(names, 8):
            if rng.random() < 0.5:
                state.final(name)
            else:
                state.undo(name)
                kept = [each for each in kept if each[0] != name]
        expected = 0
        for _, effect in kept:
            expected = effect(expected)
        assert state.value == expected
        assert not state.pending and not state._log


def test_an_effect_that_was_only_possible_before_is_skipped() -> None:
    state = State({})
    put, remove = [lambda s: {**s, "a": 1}], [lambda s: {key: s[key] for key in s if s["a"]}]
    state.apply(state.after(put), put, "put")
    state.apply(state.after(remove), remove)
    state.undo("put")
    assert state.skipped == 0 and state.value == {}
    state = State({"a": 1})
    drop = [lambda s: {key: s[key] for key in s if key != "a"}]
    use = [lambda s: {**s, "b": 1 // len(s)}]
    state.apply(state.after(put), put, "put")
    state.apply(state.after(use), use)
    state.apply(state.after(drop), drop)
    state.undo("put")
    assert state.value == {"b": 1}


def test_a_request_gives_way_only_to_what_waits_itself() -> None:
    """Something older that is at work will end; something that waits for an answer may not."""
    hosted = Hosted(0, Roster([Place(0, "x")], {"x": Pairs([("f", "f"), ("g", "g")])}), Clock(), None)
    for ts, op in ((1, "f"), (2, "g")):
        hosted.queue.started(instance(entry(ts, op)), None)
    waits = next(iter(hosted.queue._running["g"]))
    waits.calls[()] = Pending((), SYNCHRONOUS, (2,), False)
    behind_work, behind_wait = entry(3, "f"), entry(4, "g")
    hosted.queue.add(behind_work)
    hosted.queue.add(behind_wait)
    assert _doomed(hosted, {behind_work, behind_wait}) is behind_wait
    assert _doomed(hosted, {behind_work}) is None


# Precedence


def test_only_instances_that_conflict_precede_each_other() -> None:
    """A counter: increments and decrements change places, and neither does with a look at it."""
    order = Precedence(0, 2, Pairs([("inc", "show"), ("dec", "show")]), Clock())
    inc = order.root(op="inc")
    order.send(inc, ONE_WAY, (1,), call=(), op="log")
    order.commit(inc, "inc")
    dec = order.root(op="dec")
    assert dec.vector == [0, 0]
    order.commit(dec, "dec")
    assert order.root(op="show").vector == [1, 0]


# Links


class Wire:
    """One of several ends, whose packets are looked at one by one."""

    def __init__(self, members: int = 3, **options: Any) -> None:
        self.out: list[tuple[tuple[int, ...], Any]] = []
        roster = Roster([Place(member, f"x{member}") for member in range(members)], {})
        self.clock = Clock()
        made = EngineOptions(**{"delta": 10.0, **options})
        self.links = Links(1, roster, self.clock, made, lambda *send: self.out.append(send), lambda: (0,))

    def sent(self) -> list[Any]:
        out, self.out = [packet for _, packet in self.out], []
        return out


def numbered(ts: int, number: int) -> Message:
    return message(ts)._replace(sq=((1, number),))


def test_a_gap_is_asked_for_once_in_delta() -> None:
    wire = Wire()
    links = wire.links
    assert links.take(0.0, 0, numbered(3, 3))
    assert wire.sent() == [Nack(1, (1, 2))]
    assert not links.take(1.0, 0, numbered(3, 3))
    assert links.take(1.0, 0, numbered(4, 4))
    assert wire.sent() == []
    links.tick(10.0, ())
    assert Nack(1, (1, 2)) in wire.sent()
    assert links.peers[0].ts == 0
    links.take(11.0, 0, numbered(1, 1))
    links.take(11.0, 0, numbered(2, 2))
    assert links.peers[0].ts == 4 and links.received[0] == 4 and links.peers[0].expected == 5


def test_a_tick_within_delta_asks_for_nothing_again() -> None:
    wire = Wire()
    wire.links.take(0.0, 0, numbered(2, 2))
    assert wire.sent() == [Nack(1, (1,))]
    wire.links.tick(9.0, ())
    assert not [each for each in wire.sent() if isinstance(each, Nack)]


def test_news_make_nobody_ask_for_more_than_is_new() -> None:
    """What was asked for before is asked for again when it is time to."""
    wire = Wire()
    wire.links.hear(0.0, Heartbeat(0, 9, 2, 0, (2,), 0))
    wire.links.hear(15.0, Heartbeat(0, 10, 3, 0, (3,), 0))
    assert wire.sent() == [Nack(1, (1, 2)), Nack(1, (3,))]


def test_a_heartbeat_counts_once_nothing_is_missing() -> None:
    wire = Wire()
    links = wire.links
    links.hear(0.0, Heartbeat(0, 9, 2, 0, (2,), 0))
    assert wire.sent() == [Nack(1, (1, 2))] and links.peers[0].ts == 0
    links.take(1.0, 0, numbered(1, 1))
    assert links.peers[0].ts == 1
    links.take(1.0, 0, numbered(2, 2))
    assert links.peers[0].ts == 9
    assert links.frontier == (1, 2)  # member 2 has shown nothing


def test_a_heartbeat_that_was_overtaken_does_not_replace_a_newer_one() -> None:
    links = Wire().links
    links.hear(0.0, Heartbeat(0, 9, 2, 0, (2,), 0))
    links.hear(1.0, Heartbeat(0, 5, 1, 0, (1,), 0))
    links.take(2.0, 0, numbered(1, 1))
    links.take(2.0, 0, numbered(2, 2))
    assert links.peers[0].ts == 9


def test_a_heartbeat_tells_which_messages_went_to_others() -> None:
    wire = Wire()
    wire.links.take(0.0, 0, numbered(1, 1))
    for evs, received in (((5,), 5), ((4,), 5)):
        wire.links.hear(1.0, Heartbeat(0, 9, 1, 0, evs, 0))
        assert wire.links.received[0] == received


def test_copies_are_kept_until_they_are_acknowledged() -> None:
    wire = Wire()
    links = wire.links
    sent = message(1)._replace(sq=links.number([0, 2]))
    links.transmit(0.0, sent)
    assert wire.sent() == [sent] and links.unacknowledged == 2
    links.tick(10.0, ())
    assert sent not in wire.sent()
    links.tick(20.0, ())
    assert wire.sent().count(sent) == 2
    links.hear(21.0, Heartbeat(0, 1, 0, 1, (0,), 0))
    links.asked(22.0, Nack(2, (1, 7)))
    assert wire.sent() == [sent] and links.unacknowledged == 1
    links.hear(23.0, Heartbeat(2, 1, 0, 1, (0,), 0))
    assert links.unacknowledged == 0
    assert links._settled() == 1


def test_what_is_repeated_to_a_silent_member_is_repeated_more_and_more_rarely() -> None:
    wire = Wire(quiet=True)
    links = wire.links
    for number in range(1, REPAIRS_MAX + 9):
        links.transmit(0.0, message(number)._replace(sq=links.number([0])))
    wire.sent()

    def times(first: int, last: int) -> list[int]:
        found = []
        for at in range(first, last, 10):
            links.tick(float(at), ())
            repeated = [packet for packet in wire.sent() if isinstance(packet, Message)]
            assert len(repeated) <= REPAIRS_MAX
            if repeated:
                found.append(at)
        return found

    assert times(10, 500) == [20, 40, 80, 160, 240, 320, 400, 480]
    assert links.next_tick(480.0) == 560.0
    links.hear(500.0, Heartbeat(0, 1, 0, 1, (0,), 0))
    assert times(500, 600) == [500, 510, 530, 570], "something came of it: from the beginning"
    assert links.next_tick(600.0) == 650.0


def test_a_tick_is_wanted_for_what_is_to_come() -> None:
    links = Wire().links
    links.peers[0].again, links.peers[2].again = 50.0, 100.0
    assert [links.next_tick(now) for now in (20.0, 50.0, 95.0, 100.0)] == [50.0, 100.0, 105.0, 110.0]


def test_who_is_silent_is_not_asked_as_often_as_who_answers() -> None:
    wire = Wire(quiet=True)
    links = wire.links
    asked = 0
    for at in range(0, 1000, 10):
        links.tick(float(at), (2,))
        asked += sum(isinstance(packet, Heartbeat) and packet.wanted for packet in wire.sent())
    assert asked == 15


def test_a_message_weighs_what_it_carries() -> None:
    bare = weight(message(1))
    assert (
        weight(message(1, args=(b"abc", "de", ["f", 1], {"g": (2, b"hi")}), value="j"))
        == bare + 10 + 2 * SCALAR
    )


def test_as_much_is_sent_again_for_one_question_as_may_be() -> None:
    wire = Wire()
    for number in range(1, REPAIRS_MAX + 9):
        wire.links.transmit(0.0, message(number)._replace(sq=wire.links.number([0])))
    wire.sent()
    wire.links.asked(1.0, Nack(0, tuple(range(1, REPAIRS_MAX + 9))))
    assert [packet.ts for packet in wire.sent()] == [*range(1, REPAIRS_MAX + 1)], "the oldest"


def test_how_much_waits_there_is_asked_for_each_quarter_of_a_window() -> None:
    size = weight(message(1))
    wire = Wire(quiet=True, window=16 * size)
    for number in range(1, 13):
        wire.links.transmit(0.0, message(number)._replace(sq=wire.links.number([0])))
    beats = [packet for packet in wire.sent() if isinstance(packet, Heartbeat) and packet.wanted]
    assert len(beats) == 3


def test_a_window_counts_what_is_on_its_way_and_what_waits_there() -> None:
    wire = Wire(quiet=True, window=400)
    links = wire.links
    size = weight(message(1))
    for number in range(1, 4):
        links.transmit(0.0, message(number)._replace(sq=links.number([0, 2])))
    assert links.outstanding == 3 * size and not links.full
    assert any(isinstance(packet, Heartbeat) and packet.wanted for packet in wire.sent()), "a quarter is used"
    links.hear(1.0, Heartbeat(0, 9, 0, 3, (0,), 0, waits=500))
    assert links.full == [0] and links.outstanding == 500
    links.hear(1.0, Heartbeat(0, 9, 0, 2, (0,), 0, waits=100))
    links.hear(1.0, Heartbeat(0, 9, 0, 3, (0,), 0, waits=600))
    assert links.outstanding == 500, "words that were overtaken"
    links.hear(2.0, Heartbeat(2, 9, 0, 3, (0,), 0))
    links.tick(10.0, ())
    wanted = [packet for packet in wire.sent() if isinstance(packet, Heartbeat) and packet.wanted]
    assert len(wanted) == 1, "whoever has no room is asked again"
    links.hear(11.0, Heartbeat(0, 9, 0, 3, (0,), 0, waits=0))
    assert not links.full and links.outstanding == 0
    assert not any(peer.charges for peer in links.peers.values())


def test_those_whose_messages_wait_here_are_told_when_there_is_room_again() -> None:
    wire = Wire(quiet=True, window=400)
    links = wire.links
    links.take(0.0, 0, numbered(1, 1))
    links.wait(0, 300)
    links.wait(1, 50)
    links.beat(0)
    links.beat(2)
    assert [packet.waits for packet in wire.sent()] == [300, 0]
    links.wait(0, -50)
    assert not wire.sent() and links.is_busy
    links.wait(0, -50)
    assert [packet.waits for packet in wire.sent()] == [200] and (links.held, links.own) == (250, 50)
    links.read(1000)
    links.beat(2)
    links.read(0)
    assert [packet.waits for packet in wire.sent()] == [1000, 0], "our application has read, too"
    links.remove(0)
    links.wait(0, -200)
    assert links.held == 50


def test_whoever_sends_something_is_told_that_it_came_in_a_quiet_group_too() -> None:
    wire = Wire(quiet=True)
    wire.links.take(0.0, 0, numbered(1, 1))
    wire.links.tick(10.0, ())
    assert [(to, beat.ack) for to, beat in wire.out] == [((0,), 1)]


def test_nobody_is_told_what_is_of_no_use_there() -> None:
    """Our clock, if it was shown; that something is everywhere, if nothing of ours is kept there."""
    wire = Wire(members=4, quiet=True)
    links = wire.links
    sent = message(wire.clock.next())._replace(sq=links.number([0, 2]))
    links.transmit(0.0, sent)
    links.show(sent.ts, [0, 2])
    assert wire.sent() == [sent]
    for member in (0, 2):
        links.hear(1.0, Heartbeat(member, 1, 0, 1, (0,), 0))
    links.tick(10.0, ())
    assert wire.out == [((member,), Heartbeat(1, wire.clock.value, 1, 0, (0,), sent.ts)) for member in (0, 2)]
    links.show(wire.clock.value, [0])
    links.show(wire.clock.value + 1, [0])
    assert len(wire.out) == 3 and not links.is_busy


def test_only_what_others_were_told_too_is_kept_for_them() -> None:
    links = Wire().links
    links.take(0.0, 0, numbered(1, 1))
    links.take(0.0, 0, message(2)._replace(sq=((1, 2), (2, 1))))
    assert [kept.ts for kept in links.peers[0].kept] == [2]
    assert links.laggards((3, 0)) == [0, 2] and links.laggards((2, 9)) == [2]
    links.hear(1.0, Heartbeat(0, 2, 2, 0, (2,), settled=1))
    assert links.peers[0].kept
    links.hear(1.0, Heartbeat(0, 2, 2, 0, (2,), settled=2))
    assert not links.peers[0].kept and not links.peers[0].kept_size


def test_a_request_waits_for_a_few_heartbeats_before_it_gives_way() -> None:
    assert EngineOptions(delta=2.0).patience == 6.0
    assert EngineOptions(delta=2.0, grace=1.0).patience == 1.0


def test_over_something_reliable_nothing_is_kept_or_asked_for() -> None:
    wire = Wire(reliable=True)
    links = wire.links
    links.transmit(0.0, message(1)._replace(sq=links.number([0])))
    links.take(0.0, 0, numbered(3, 3))
    links.tick(30.0, ())
    assert links.unacknowledged == 0
    assert not any(isinstance(packet, Nack) for packet in wire.sent())


def test_what_is_said_after_a_crash_waits_for_what_was_said_before() -> None:
    """The next speaker's request comes before the flush that brings the last one's."""
    roster = Roster([Place(0, "x"), Place(1, "y"), Place(2, "x")], {"y": Pairs()})
    engine = Engine(1, roster, EngineOptions(delta=10.0))
    started: list[Any] = []

    def run(actions: list[Any]) -> None:
        started.extend(action.instance.request.ts for action in actions if isinstance(action, Run))

    def said(src: int, ts: int, number: int, view: int, call: int = 0) -> Message:
        start = StartId(ts, src)
        name = (9, 1, 0, 0, call)  # the same, whichever copy makes it
        numbers = ((1, number), (2, number)) if src == 0 else ((1, number),)
        zero = (0, 0, 0)
        return Message(
            "o", src, (1,), SendId(start, 0), ts, ts, zero, numbers, start, name, "f", path=(name,), view=view
        )

    run(engine.suspect(1.0, 0))
    run(engine.receive(2.0, said(2, 8, 2, view=1)))
    run(engine.receive(2.0, said(2, 9, 3, view=1, call=1)))
    assert started == []
    flush = Flush(2, 7, ((1, 1),), (0,), (said(0, 5, 1, view=0),))
    run(engine.receive(3.0, flush))
    assert started == [5, 9]
    assert engine.local.gone == 1 and engine.local.alive == {1, 2}


def test_nothing_is_heard_of_a_suspect_any_more_but_through_others() -> None:
    """What the suspect itself still says may not reach those who have handed round what they had of it."""
    engine = Engine(1, Roster([Place(0, "x"), Place(1, "y"), Place(2, "z")], {}), EngineOptions(delta=10.0))
    said = message(5)._replace(vector=(0, 0, 0), sq=((1, 1), (2, 1)))
    engine.suspect(1.0, 0)
    assert not [action for action in engine.receive(2.0, said) if isinstance(action, Run)]
    assert engine.counts["ignored"] == 1
    assert [
        action.instance.request.ts
        for action in engine.receive(3.0, Flush(2, 7, ((1, 1),), (0,), (said,)))
        if isinstance(action, Run)
    ] == [5]


def test_a_request_whose_root_is_gone_is_refused_and_its_invoker_told() -> None:
    """Member 0 began it, member 2 passed it on; it comes when everybody has agreed that member 0 is gone."""
    engine = Engine(1, Roster([Place(0, "x"), Place(1, "y"), Place(2, "z")], {}), EngineOptions(delta=10.0))
    engine.suspect(1.0, 0)
    engine.receive(2.0, Flush(2, 7, ((1, 1),), (0,), ()))
    start = StartId(8, 2)
    place = (2, (1,), SendId(start, 0), 8, 8, (0, 0, 0), ((1, 2),), start)
    asked = Message(SYNCHRONOUS, *place, call=(8, 2, 0, 2, 0), op="f", hosts=((0,), (2,)), view=1)
    actions = engine.receive(3.0, asked)
    assert not [action for action in actions if isinstance(action, Run)]
    sent = [action.packet for action in actions if isinstance(action, Transmit)]
    assert [(each.dst, each.reason) for each in sent if isinstance(each, Message)] == [((2,), ORPHAN)]


def test_a_second_failure_begins_the_flush_anew() -> None:
    roster = Roster([Place(member, f"x{member}") for member in range(4)], {})
    engine = Engine(1, roster, EngineOptions(delta=10.0))
    for suspects in ((0,), (0, 3)):
        sent = [each.packet for each in engine.suspect(1.0, suspects[-1]) if isinstance(each, Transmit)]
        assert [each.suspects for each in sent if isinstance(each, Flush)] == [suspects]


def test_what_nobody_has_of_a_member_that_is_gone_is_not_missing() -> None:
    links = Wire().links
    links.take(0.0, 0, numbered(2, 2))
    assert links.received[0] == 0
    links.remove(0)
    assert links.received[0] > 2 and 0 not in links.peers


@pytest.mark.parametrize("is_held", [False, True])
def test_a_place_answers_a_call_once(is_held: bool) -> None:
    """Also while the answer is held, here for something that member 2 said before."""
    engine = Engine(1, Roster([Place(0, "x"), Place(1, ""), Place(2, "y")], {}), EngineOptions(delta=10.0))
    instance = engine.begin(0.0, 1)
    call = engine.calls.call(instance, SYNCHRONOUS, (0, 2), "f")
    for number, value in enumerate(("first", "second"), 1):
        start = StartId(number, 0)
        place = (0, (1,), SendId(start, 0), number, number, (0, 0, int(is_held)), ((1, number),), start)
        engine.receive(1.0, Message(RESPONSE, *place, call=call.id, value=value))
    assert [each.value for each in instance.held] == ["first"] * is_held
    assert (call.answers, call.missing) == (({}, {0, 2}) if is_held else ({0: "first"}, {2}))


class Copy:
    """The second of two copies of an object, whose group is in the hands of a test. It calls an object of two copies."""

    OTHER, ME, CLIENT, INVOKER, CALLED, TWIN = range(6)

    def __init__(self) -> None:
        objects = ("x", "x", "y", "z", "w", "w")
        roster = Roster([Place(*each) for each in enumerate(objects)], {"x": Everything()})
        self.engine = Engine(self.ME, roster, EngineOptions(delta=10.0))
        self.numbers = dict.fromkeys(range(6), 0)
        self.request = self.said(
            SYNCHRONOUS,
            self.INVOKER,
            5,
            call=(1, self.CLIENT, 0, 0, 0),
            op="f",
            hosts=((self.CLIENT,), (self.INVOKER,)),
        )

    def said(self, kind: str, src: int, ts: int, **rest: Any) -> Message:
        """To both copies."""
        start, number, zero = StartId(ts, src), self._number(src), (0,) * 6
        return Message(kind, src, (0, 1), SendId(start, 0), ts, ts, zero, number, start, **rest)

    def answer(self, src: int = CALLED) -> Message:
        """To the first call that the instance makes."""
        return self.said(RESPONSE, src, 7, call=(*base_of(self.request, 0), 0), op="g")

    def gone(self, member: int) -> list[Any]:
        """All who are left agree; whom it is told that a call has come to nothing, and which."""
        actions = self.engine.suspect(1.0, member)
        for peer in set(self.engine.links.peers) - {member}:
            actions += self.engine.receive(1.0, Flush(peer, 1, self._number(peer), (member,), ()))
        sent = [action.packet for action in actions if isinstance(action, Transmit)]
        return [(each.dst, each.call) for each in sent if isinstance(each, Message) and each.kind == ABORT]

    def _number(self, src: int) -> tuple[tuple[int, int]]:
        self.numbers[src] += 1
        return ((self.ME, self.numbers[src]),)


def test_what_was_done_for_a_copy_that_is_gone_is_taken_back_once() -> None:
    """Its call is answered before we have begun; we refuse to begin, as an ancestor is gone; it had not got as far."""
    copy = Copy()
    answer = copy.answer()
    copy.engine.receive(0.0, answer)
    copy.engine.receive(0.0, copy.request)
    assert copy.engine.queued == 1
    assert copy.gone(copy.CLIENT) == [] and copy.engine.queued == 0
    assert copy.gone(copy.OTHER) == [((copy.CALLED, copy.TWIN), answer.call)]
    assert copy.gone(copy.INVOKER) == []


def test_what_was_done_for_a_copy_that_is_gone_is_taken_back_if_its_invoker_stops_us() -> None:
    copy = Copy()
    answer = copy.answer()
    copy.engine.receive(0.0, answer)
    copy.engine.receive(0.0, copy.request)
    copy.engine.receive(0.0, copy.said(ABORT, copy.INVOKER, 6, call=copy.request.call))
    assert copy.engine.queued == 0
    assert copy.gone(copy.OTHER) == [((copy.CALLED, copy.TWIN), answer.call)]


@pytest.mark.parametrize(
    ("answering", "gone", "told"),
    [
        ((Copy.CALLED,), (), (Copy.CALLED, Copy.TWIN)),
        ((Copy.CALLED, Copy.TWIN), (), (Copy.CALLED, Copy.TWIN)),
        ((Copy.CALLED,), (Copy.CALLED,), (Copy.TWIN,)),
    ],
    ids=["one has answered", "both have answered", "the one that has answered is gone"],
)
@pytest.mark.parametrize("is_stopped_first", [False, True])
def test_what_was_done_for_a_copy_that_is_gone_is_taken_back_at_all_copies_with_one_message(
    answering: tuple[int, ...], gone: tuple[int, ...], told: tuple[int, ...], is_stopped_first: bool
) -> None:
    """A copy that has not answered may wait for calls that the one which has would have had to make."""
    copy = Copy()
    heard = [copy.request, *map(copy.answer, answering)]
    heard.insert(1 if is_stopped_first else 3, copy.said(ABORT, copy.INVOKER, 6, call=copy.request.call))
    for message in heard:
        copy.engine.receive(0.0, message)
    for member in gone:
        assert copy.gone(member) == []
    assert copy.gone(copy.OTHER) == [(told, copy.answer().call)]


def test_a_call_that_was_taken_back_before_it_came_may_be_taken_back_again() -> None:
    """By the next copy of its invoker, which cannot know how far the first one got."""
    roster = Roster([Place(0, "x"), Place(1, "y"), Place(2, "x")], {"y": Everything()})
    engine = Engine(1, roster, EngineOptions(delta=10.0))
    start = StartId(1, 0)
    for number, kind in enumerate((ABORT, SYNCHRONOUS, ABORT), 1):
        place = (0, (1,), SendId(start, number), number, number, (0, 0, 0), ((1, number),), start)
        engine.receive(1.0, Message(kind, *place, call=(1, 0, 0, 0, 0), op="f", hosts=((0, 2),)))
        assert engine.undoable == (number == 1)
    assert engine.queued == 0


def test_a_call_that_was_taken_back_before_it_came_is_answered_to_the_copy_that_repeats_it() -> None:
    """The first copy of the invoker has taken it back and is gone, its request lost; the next one waits for it still."""
    roster = Roster([Place(0, "x"), Place(1, "y"), Place(2, "x")], {"y": Everything()})
    engine = Engine(1, roster, EngineOptions(delta=10.0))

    def said(kind: str, src: int, number: int, view: int) -> Message:
        start = StartId(number, src)
        place = (src, (1,), SendId(start, 0), number, number, (0, 0, 0), ((1, number),), start)
        return Message(kind, *place, call=(9, 1, 0, 0, 0), op="f", hosts=((0, 2),), view=view)

    engine.receive(1.0, said(ABORT, 0, 2, view=0))
    engine.suspect(2.0, 0)
    engine.receive(2.0, Flush(2, 5, ((1, 1),), (0,), ()))
    actions = engine.receive(3.0, said(SYNCHRONOUS, 2, 2, view=1))
    sent = [action.packet for action in actions if isinstance(action, Transmit)]
    assert [(each.dst, each.reason) for each in sent if isinstance(each, Message)] == [((2,), ORPHAN)]
    engine.receive(4.0, said(ABORT, 2, 3, view=1))
    assert (engine.queued, len(engine.hosted[1].cancelled)) == (0, 0)


def test_what_was_done_for_a_copy_that_is_gone_stays_if_ours_has_committed() -> None:
    """An answer comes a second time, after the end."""
    copy = Copy()
    copy.engine.receive(0.0, copy.request)
    started = []
    for member in (copy.OTHER, copy.CLIENT, copy.INVOKER, copy.CALLED, copy.TWIN):
        started += copy.engine.receive(0.0, Heartbeat(member, 9, copy.numbers[member], 0, (0,), 0))
    (instance,) = [action.instance for action in started if isinstance(action, Run)]
    copy.engine.endings.finish(instance, "done")
    copy.engine.receive(0.0, copy.answer())
    assert not copy.engine.hosted[copy.ME].early
    assert copy.gone(copy.OTHER) == []


# Whatever comes


@pytest.mark.parametrize("generator", [Generator, Replicated])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_comes_nothing_is_raised(seed: int, generator: type[Generator]) -> None:
    """Packets of a run with octets changed that still can be read."""
    rng = Random(seed)
    made = generator(seed)
    world = World(made.plan(), made.network())
    bad = 0
    for _ in range(400):
        if world.idle or world.now > 300:
            break
        upcoming = world.upcoming
        if upcoming is not None and upcoming[0] in world.hosts and rng.random() < 0.3:
            member, packet = upcoming
            data = bytearray(encode(packet))
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 3, rng.randrange(256)])
            try:
                changed = decode(bytes(data), world.roster)
            except WireError:
                changed = None
            if changed is not None:
                bad += 1
                world.log.watch.clear()
                world._learn = lambda member, packet: None  # type: ignore[method-assign]
                world._transmit(member, world.hosts[member].receive(world.now, [changed]))
        world.step()
    assert bad
