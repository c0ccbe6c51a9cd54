"""After a fatal error a stack hands over what it has, says goodbye, and does nothing more."""

import json

import pytest

from inga.layers.bundle import Bundle
from inga.model.errors import Gap, UsageError

from .harness import RELIABLE, SESSION, Flight, Net


def failed() -> Net:
    """Bob has one message delivered and unread, lacks one, has one unsent; then his stack fails."""
    net = Net(2, takes=False)
    net.send(0, b"one")
    net.settle()
    net.send(0, b"two")
    net.lose(lambda flight: flight.kind == 0)
    assert net.wake[0] is not None
    net.now = net.wake[0]
    net.tick(0)
    net.arrive(*net.to(1, RELIABLE))  # a heartbeat: he knows what he lacks
    assert net.wake[1] is not None
    net.under_way.clear()
    net.stacks[1].send(b"unsent", now=net.now)
    net.stacks[1].fail(Gap("first"))
    net.stacks[1].fail(Gap("second"))
    net.turn(1)
    return net


def test_the_first_error_is_the_one() -> None:
    net = failed()
    assert isinstance(net.errors[1], Gap)
    assert str(net.errors[1]) == "first"
    net.turn(1)
    assert str(net.errors[1]) == "first"


def test_what_was_delivered_before_is_handed_over() -> None:
    net = Net(2, takes=False)
    net.send(0, b"one")
    net.stacks[1].receive([(net.under_way[0].data, None)], now=net.now)
    net.stacks[1].fail(Gap("too late"))
    net.turn(1)
    assert net.texts(1) == ["one"]
    assert net.errors[1] is not None


def test_nothing_can_be_sent() -> None:
    net = failed()
    with pytest.raises(UsageError, match="failed: first"):
        net.stacks[1].send(b"more", now=net.now)
    with pytest.raises(UsageError, match="failed: first"):
        net.stacks[1].views.replace("bundle", Bundle())


def said(net: Net, flights: list[Flight]) -> set[str]:
    """What session packets say in words; there must be no others."""
    assert {flight.kind for flight in flights} <= {SESSION}
    return {json.loads(packet.ext or b"")["do"] for packet in net.packets(flights)}


def test_nothing_but_the_goodbye_has_an_effect_any_more() -> None:
    net = failed()
    assert said(net, net.under_way) == {"goodbye"}
    net.under_way.clear()
    batch = net.batches[1][0]
    data = [flight.data for flight in net.log if flight.source == 0]
    net.now += 100.0
    net.stacks[1].receive([(each, None) for each in data], now=net.now)
    net.stacks[1].tick(net.now)
    net.stacks[1].taken([batch.packet], now=net.now)
    net.turn(1)
    assert said(net, net.under_way) == {"goodbye"}, "which is repeated, since nobody has answered"
    assert net.texts(1) == ["one"]


def test_the_others_do_not_wait_for_one_that_failed() -> None:
    net = failed()
    net.wait(1.0)
    assert net.names(0) == ("alice",) and net.stacks[0].settled and net.stacks[1].has_left
    assert net.wake == [None, None]


def test_nothing_is_waited_for_without_end() -> None:
    """A timer that is due but never served would keep a driver busy for ever."""
    net = failed()
    before = len(net.log)
    net.wait(1e3, lose=lambda flight: True)
    assert net.wake[1] is None
    assert said(net, [flight for flight in net.log[before:] if flight.source == 1]) == {"goodbye"}
