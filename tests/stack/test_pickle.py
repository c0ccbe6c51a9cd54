"""A stack is a value: pickled at any moment and taken up again, it goes on as if nothing had happened."""

import pickle
from random import Random

import pytest

from inga.recipes import Options
from inga.stack.stack import Stack

from .harness import Net


def drive(net: Net, rng: Random, turns: int) -> None:
    """Random sends, losses and arrivals, and time that passes."""
    for turn in range(turns):
        member = rng.randrange(len(net.stacks))
        if net.stacks[member].writable:
            size = rng.choice((3, 40, 5000))
            to = rng.choice((None, None, 1 << (member + 1) % len(net.stacks)))
            net.send(member, b"%03d" % turn + b"." * size, to=to)
        for flight in rng.sample(net.under_way, len(net.under_way) // 2):
            net.arrive(flight)
        net.lose(lambda flight: rng.random() < 0.2)
        net.now += 0.01 * rng.random()
        for member in range(len(net.stacks)):
            net.tick(member)


def revive(net: Net) -> None:
    """Everybody at once, so that they still share the one source of chance."""
    net.stacks, net.rng = pickle.loads(pickle.dumps((net.stacks, net.rng)))


@pytest.mark.parametrize("order", ["none", "fifo", "vector", "matrix", "relay", "remiop+vector", "miop+acks"])
@pytest.mark.parametrize("seed", range(3))
def test_a_run_through_pickles_is_the_same_run(order: str, seed: int) -> None:
    results = []
    for pickled in (False, True):
        recipe = "vector" if order == "matrix" else order
        options = Options(matrix=order == "matrix")
        net = Net(3, recipe, options=options, datagram_max=1472, seed=seed)
        rng = Random(seed)
        for _ in range(10):
            drive(net, rng, 6)
            if pickled:
                revive(net)
        net.quiet()
        results.append((net.log, [net.texts(member) for member in range(3)], net.now))
    assert results[0] == results[1]
    assert sum(map(len, results[0][1])) > 60


def test_a_pickled_stack_forgets_trace_and_application_only() -> None:
    class Rows:
        full = True

        def row(self, *cells: object, **more: object) -> None: ...

    net = Net(2, traces=[Rows(), Rows()])
    net.send(0, b"one")
    copy: Stack = pickle.loads(pickle.dumps(net.stacks[0]))
    assert copy.trace is None
    assert [layer.name for layer in copy.layers] == [layer.name for layer in net.stacks[0].layers]
    assert copy.counts == net.stacks[0].counts
    assert copy.layers[0].below == copy.layers[1].down, "routes are those of the copy"
    layer = pickle.dumps(net.stacks[0].layers[0])
    assert b"Stack" not in layer and b"Causal" not in layer, "a layer is put away without its neighbours"


def test_in_the_middle_of_a_turn_too() -> None:
    """Effects that nobody has fetched yet are part of the stack; large ones are borrowed memory."""
    net = Net(2, options=Options(echo=True))
    large = b"x" * 100_000
    net.stacks[0].send(large, now=0.0)
    net.stacks[0].send(b"small", now=0.0)  # closes the large one
    assert net.stacks[0].to_send and net.stacks[0].to_deliver
    revive(net)
    net.turn(0)
    net.quiet()
    assert net.texts(0) == net.texts(1) == [large.decode(), "small"]


def test_an_unread_large_message_can_be_pickled() -> None:
    net = Net(2, takes=False)
    net.send(0, b"x" * 20_000)
    net.settle()
    (batch,) = net.batches[1]
    assert isinstance(batch.payloads[0], memoryview)
    copy = pickle.loads(pickle.dumps(batch))
    assert (copy.sender, copy.seq, copy.payloads) == ("alice", 1, [b"x" * 20_000])
    assert copy.payloads is copy.packet.payloads
