"""Datagrams of every kind from a real run, and ways to spoil them."""

from functools import cache
from random import Random

from inga.model.packet import Packet
from inga.model.stamp import Stamp
from inga.recipes import Options
from inga.wire.packet import OUTSIDE, decode, encode
from inga.wire.told import said

from .harness import FLOW, RELIABLE, Flight, Net, in_any_view, resealed

MEMBERS = 3
GROUP = "lunch"
KINDS = {"data", "fragment", "subset", "bare", "ack on data", "ack", "nack", "heartbeat", "probe"}

GOODBYE = said("goodbye", name="alice", incarnation=1, group="00000000", view=1, itself=True)

HUGE = (2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)


def busy_net(order: str, seed: int = 0, **more: object) -> Net:
    """A group that makes datagrams of every kind: its window and its datagrams are small."""
    return Net(
        MEMBERS,
        order,
        options=Options(flow={"window": 6000}),
        group=GROUP,
        datagram_max=600,
        seed=seed,
        **more,  # type: ignore[arg-type]
    )


def talk(net: Net, rng: Random, text: bytes) -> None:
    """One member says something, to some or to all."""
    member = rng.randrange(MEMBERS)
    if net.stacks[member].writable:
        others = [m for m in range(MEMBERS) if m != member]
        to = rng.choice((None, None, None, 1 << rng.choice(others)))
        size = rng.choice((0, 0, 10, 100, 700, 1800))
        net.send(member, text + b"." * size, to=to)


def label(flight: Flight, group: int) -> set[str]:
    packet = flight.packet(MEMBERS)
    if packet.kind == FLOW:
        return {"probe"}
    if packet.kind == RELIABLE:
        return {"nack" if packet.runs else "heartbeat" if packet.asks else "ack"}
    labels = {"data"}
    labels |= {"fragment"} if packet.frag else set()
    labels |= {"ack on data"} if packet.ack else set()
    labels |= {"bare"} if packet.bare else {"subset"} if packet.dst is not None else set()
    return labels


@cache
def captured(order: str) -> tuple[Flight, ...]:
    """All datagrams of a lossy run."""
    net, rng = busy_net(order, seed=5), Random(5)
    for number in range(150):
        talk(net, rng, b"%d" % number)
        answered = net.to(number % MEMBERS, 0)
        if answered and net.stacks[number % MEMBERS].writable:  # in the turn in which it comes
            net.stacks[number % MEMBERS].receive([(answered[-1].data, None)], now=net.now)
            net.send(number % MEMBERS, b"to answer")
        net.lose(lambda flight: rng.random() < 0.15)
        for flight in rng.sample(net.under_way, len(net.under_way) * 2 // 3):
            net.arrive(flight)
        net.wait(0.03 * rng.random(), lose=lambda flight: rng.random() < 0.3)
    net.quiet()
    group = net.stacks[0].group
    labels = set().union(*(label(flight, group) for flight in net.log))
    assert labels == KINDS, f"the run made no {KINDS - labels}"
    return tuple(net.log)


def spoiled(rng: Random, flights: tuple[Flight, ...]) -> bytes:
    """A datagram with bytes changed, cut, added, or mixed with another; mostly with a check that fits it."""
    data = bytearray(rng.choice(flights).data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(data) or 1)
        match rng.randrange(7):
            case 0:
                del data[at:]
            case 1:
                data[at:at] = rng.randbytes(rng.randrange(1, 12))
            case 2:
                del data[at : at + rng.randrange(1, 5)]
            case 3:
                data = data[:at] + rng.choice(flights).data[at:]
            case _:
                if data:
                    data[rng.choice((at, at % 12))] = rng.randrange(256)
    return resealed(data) if rng.random() < 0.8 else bytes(data)


def forged(rng: Random, flights: tuple[Flight, ...], group: int) -> bytes:
    """A well-formed datagram that says something else than the one it was made from."""
    flight = rng.choice(flights)
    packet = flight.packet(MEMBERS)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _forge(rng, packet)
    data = encode(packet, group, bare=packet.bare)
    return b"".join(data) if isinstance(data, list) else bytes(data)


def _number(rng: Random, near: int) -> int:
    return max(
        0,
        rng.choice(
            (0, 1, near - 1, near + 1, near + 2, rng.randrange(20), 8192, *HUGE[-2:], rng.choice(HUGE))
        ),
    )


def _vector(rng: Random) -> tuple[int, ...] | None:
    if rng.random() < 0.2:
        return None
    return tuple(_number(rng, 5) if rng.random() < 0.4 else rng.randrange(10) for _ in range(MEMBERS))


def _forge(rng: Random, packet: Packet) -> None:
    match rng.randrange(15):
        case 0:
            packet.seq = _number(rng, packet.seq)
        case 1:
            packet.lsn = _number(rng, packet.lsn)
        case 2:
            named = sorted(rng.sample(range(MEMBERS), rng.randrange(MEMBERS)))
            packet.stamp = Stamp(tuple((k, _number(rng, 3)) for k in named), _number(rng, 9))
        case 3:
            packet.stamp = None
        case 4:
            packet.ack = _vector(rng)
        case 5:
            packet.room = _vector(rng)
        case 6:
            packet.trace = _vector(rng)
        case 7:
            low = _number(rng, 1)
            packet.runs = ((low, low + 1 + _number(rng, 1)),)
        case 8:
            count = rng.choice((2, 3, 4, 100, 1 << 20))
            packet.frag = rng.choice((None, (rng.randrange(count), count), (count - 1, count)))
        case 9:
            packet.dst = rng.choice((None, rng.randrange(1 << MEMBERS), 255))
        case 10:
            packet.urgent, packet.partial = rng.random() < 0.5, rng.random() < 0.5
        case 11:
            packet.bare = not packet.bare
        case 12:
            packet.body = rng.choice((b"", b"\0", rng.randbytes(rng.randrange(30)), bytes(packet.body)[1:]))
        case 13:
            packet.kind = rng.choice((0, 0, 1, 1, 2, 2, 3, 255))
        case _:
            packet.src = rng.choice((0, 1, 2, 3))
            packet.ext = rng.choice((None, b"", b"ext", GOODBYE))


def garbage(rng: Random, flights: tuple[Flight, ...], net: Net, target: int) -> tuple[str, bytes]:
    """Something that no member of the group said to this one, at least not just now."""
    mine = [flight.data for flight in net.log[-300:] if flight.target == target]
    some = bytearray(rng.choice(flights).data)
    what = rng.choice("empty random cut flipped foreign version group view stranger own replay".split())
    match what:
        case "empty":
            some.clear()
        case "random":
            some[:] = rng.randbytes(rng.randrange(120))
        case "cut":
            del some[rng.randrange(len(some)) :]
        case "flipped":
            some[rng.randrange(len(some))] ^= 1 << rng.randrange(8)
        case "foreign":
            some[rng.randrange(2)] ^= 1 << rng.randrange(8)
        case "version":
            some[2] ^= 1 << rng.randrange(8)
        case "group":
            some[4 + rng.randrange(4)] ^= 1 << rng.randrange(8)
            some[:] = resealed(some)
        case "view":
            some[10:12] = ((target + 1) % MEMBERS).to_bytes(2, "big")
            some[12 + rng.randrange(4)] ^= 1 << rng.randrange(8)
            some[:] = resealed(some)
        case "stranger":
            some[10:12] = rng.randrange(MEMBERS, 2**16).to_bytes(2, "big")
            some[:] = resealed(some)
        case "own":
            some[10:12] = target.to_bytes(2, "big")
            some[:] = resealed(some)
        case "replay":
            some[:] = rng.choice(mine) if mine else b""
    return what, bytes(some)


def readable(data: bytes, net: Net, member: int) -> bool:
    """Whether a stack would look at it, by the decoder alone."""
    packet = decode(data, net.stacks[member].group, in_any_view(MEMBERS), member)
    if packet is None:
        return False
    # What belongs to no view and is for another is passed over, as on any address that is shared.
    passed_over = packet.view == OUTSIDE and packet.is_for_others(member)
    return packet.view == net.view.number or passed_over
