"""MIOP and ReMIOP over real multicast: everything recovered, by whoever has it; and what others can read of it."""

import asyncio
import socket
import struct
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.corba.multicast.remiop import ReMiop
from inga.corba.wire import miop
from inga.corba.wire.group_request import decode_request, read_octets
from inga.runs.live import run as run_live
from inga.trace.reader import rows
from inga.trial.trial import Trial
from inga.trial.workload import Workload

from .helpers import CARRIERS, FreePort, Party, Place, Run, texts, until
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network

QUICK = {"tnack": 0.01, "trepair": 0.01, "state_interval": 0.05}
"""Options for members that are all here."""


@pytest.mark.parametrize("via", CARRIERS)
@pytest.mark.parametrize("order", ["remiop", "remiop+vector", "remiop+co"])
def test_a_rough_network(run: Run, party: Party, via: str, order: str) -> None:
    workload = Workload(3, 60, 300)

    async def main() -> None:
        async with party(3, via, order=order, protocol=QUICK, faults=ROUGH, seed=3) as groups:
            diaries = await play(groups, workload)
            broken = judged(diaries, workload)
            if order == "remiop":
                broken = {name: count for name, count in broken.items() if name in ("integrity", "complete")}
            assert broken == {}

    run(main())


@pytest.mark.parametrize("order", ["miop", "miop+acks", "remiop"])
def test_large_messages_and_subsets(run: Run, party: Party, order: str) -> None:
    large = bytes(range(256)) * 1024

    async def main() -> None:
        async with party(3, order=order) as (alice, bob, cathy):
            await alice.send(large)
            assert bytes((await anext(aiter(bob))).data) == large
            await alice.send(b"psst", to="bob")
            await alice.send(b"all")
            assert sorted(await texts(bob, 2)) == ["all", "psst"]
            assert bytes((await anext(aiter(cathy))).data) == large
            assert await texts(cathy, 1) == ["all"]

    run(main())


def test_receipts_are_confirmed(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="remiop", protocol=QUICK) as (alice, bob, _cathy):
            receipt = await alice.send(b"x")
            await receipt.reached("confirmed")
            assert await texts(bob, 1) == ["x"]
        async with party(3, order="remiop+co", protocol=QUICK) as (alice, _bob, _cathy):
            receipt = await alice.send(b"x")
            await receipt.reached("acknowledged")

    run(main())


def test_numbers_begin_where_no_earlier_life_can_have_been(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, order="remiop") as (alice, bob):
            for group in (alice, bob):
                layer = group.stack.layer("remiop")
                assert isinstance(layer, ReMiop)
                assert layer.first % (1 << 16) == 0 and layer.first > 1 << 46
                assert layer._streams[layer.miop.senders[1 - group.stack.me]].baseline == layer.first

    run(main())


def test_what_was_sent_before_others_came_is_recovered(run: Run, party: Party, free_port: FreePort) -> None:
    """Alice speaks before bob listens: he learns where her numbers begin, and asks for them."""
    where = {"via": f"udp://239.7.7.7:{free_port()}", "interface": "lo", "members": ["alice", "bob"]}
    more = {"order": "remiop", "protocol": QUICK}

    async def main() -> None:
        async with inga.join("early", "alice", **where, **more) as alice:
            for number in range(20):
                await alice.send(b"%d" % number)
                await asyncio.sleep(0)
            async with inga.join("early", "bob", **where, **more) as bob:
                assert sorted(map(int, await texts(bob, 20))) == list(range(20))

    run(main())


@pytest.mark.parametrize("order", ["miop+acks", "remiop", "remiop+vector", "remiop+co", "remiop+total"])
def test_a_founder_that_starts_when_the_windows_are_full(run: Run, place: Place, order: str) -> None:
    where = place(members=3)
    quick = {"size": 8} | ({} if order == "miop+acks" else QUICK)
    large = 3000

    async def main() -> None:
        async with AsyncExitStack() as stack:

            async def come(name: str) -> inga.Group:
                group = inga.join("late", name, **where, order=order, protocol=quick, echo=False)
                return await stack.enter_async_context(group)

            alice, bob = await come("alice"), await come("bob")
            await asyncio.gather(alice.ready(at_least=2), bob.ready(at_least=2))
            sent = []
            for group in (alice, bob):
                while group.stack.writable:
                    sent.append(f"{group.me} {len(sent)}".ljust(large))
                    group.post(sent[-1].encode())
                    await asyncio.sleep(0)
            cathy = await come("cathy")
            await asyncio.gather(*(group.send(b"at last") for group in (alice, bob)))
            assert sorted(await texts(cathy, len(sent) + 2)) == sorted([*sent, "at last", "at last"])
            await cathy.send(b"thanks")
            for group in (alice, bob):
                others = [text for text in sent if not text.startswith(group.me)]
                assert sorted(await texts(group, len(others) + 2)) == sorted([*others, "at last", "thanks"])

    run(main())


@pytest.mark.parametrize("other", ["remiop+vector", "vector"])
def test_members_of_another_order_are_told(
    run: Run, place: Place, group_name: str, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    """On another wire as well: neither can read the other's messages, but both read greetings."""
    where = place(members=2)

    async def main() -> None:
        async with (
            inga.join(group_name, "alice", order="remiop", **where) as alice,
            inga.join(group_name, "bob", order=other, **where) as bob,
        ):
            await until(lambda: len(caplog.records) >= 2)
            told = sorted(record.getMessage().partition(": ")[2] for record in caplog.records)
            assert told[0].startswith(
                f"alice is in a group of this name, but with order 'remiop', here it is '{other}'"
            )
            assert told[1].startswith(
                f"bob is in a group of this name, but with order '{other}', here it is 'remiop'"
            )
            assert alice.here == ("alice",) and bob.here == ("bob",)

    run(main())


def test_leaving_is_noticed_and_nobody_waits(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="remiop+vector", protocol={**QUICK, "size": 8}) as (alice, bob, cathy):
            left: list[str] = []
            alice.on_leave(left.append)
            await alice.send(b"before")
            assert await texts(cathy, 1) == ["before"]
            await cathy.close()
            await until(lambda: left == ["cathy"])
            for number in range(20):
                receipt = await alice.send(b"%d" % number)
            await receipt.reached("confirmed")
            assert (await texts(bob, 21))[-1] == "19"

    run(main())


def test_a_delay_for_one_is_kept_for_that_one(run: Run, party: Party) -> None:
    """The lecture's case, on this wire too: bob's answer overtakes alice's question, and waits for it."""

    async def main() -> None:
        async with party(3, order="remiop+vector", protocol=QUICK) as (alice, bob, cathy):
            alice.delay("cathy", 0.2)
            await alice.send(b"lunch?")
            assert await texts(bob, 1) == ["lunch?"]
            await bob.send(b"yes")
            assert await texts(cathy, 2) == ["lunch?", "yes"]

    run(main())


def test_a_fixed_group(run: Run, party: Party, free_port: FreePort) -> None:
    where = {"via": f"udp://239.7.7.7:{free_port()}", "interface": "lo", "members": ["alice", "bob"]}

    async def main() -> None:
        with pytest.raises(inga.UsageError, match="nobody can join a group of order 'remiop' later"):
            async with inga.join("g", "zoe", late=True, order="remiop", detect=None, **where):
                pass
        async with party(2, order="remiop") as (alice, _bob):
            with pytest.raises(inga.UsageError, match="cannot change to the order 'fifo'"):
                await alice.use("fifo")
        async with party(2, order="fifo") as (alice, _bob):
            with pytest.raises(inga.UsageError, match="cannot change to the order 'remiop'"):
                await alice.use("remiop")

    run(main())


def test_groups_on_one_address_do_not_meet(run: Run, free_port: FreePort) -> None:
    where = {"via": f"udp://239.7.7.7:{free_port()}", "interface": "lo", "members": ["alice", "bob"]}

    async def main() -> None:
        async with (
            inga.join("one", "alice", order="remiop", **where) as alice,
            inga.join("one", "bob", order="remiop", **where) as bob,
            inga.join("two", "alice", order="remiop", **where) as other,
            inga.join("two", "bob", order="remiop", **where) as another,
        ):
            await asyncio.gather(*(group.ready() for group in (alice, bob, other, another)))
            await alice.send(b"one")
            await other.send(b"two")
            assert await texts(bob, 1) == ["one"] and await texts(another, 1) == ["two"]
            assert bob.stack.rejected.keys() <= {"no_such_group"}
            assert not bob.stack.counts["nack"]

    run(main())


# Another program


class Listener:
    """A program that knows nothing of us: a socket in the multicast group, and two decoders."""

    def __init__(self, address: str, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        member = socket.inet_aton(address) + socket.inet_aton("127.0.0.1")
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self.socket.settimeout(0.2)

    def heard(self) -> list[bytes]:
        datagrams = []
        try:
            while True:
                datagrams.append(self.socket.recv(65536))
        except TimeoutError:
            self.socket.close()
        return datagrams


@pytest.mark.parametrize("order", ["miop", "remiop+vector"])
def test_any_miop_receiver_can_read_the_requests(run: Run, free_port: FreePort, order: str) -> None:
    port = free_port()
    where = {"via": f"udp://239.7.7.7:{port}", "interface": "lo", "members": ["alice", "bob"]}
    sent = [b"%d" % number * 700 for number in range(10)]

    async def main() -> None:
        async with (
            inga.join("g", "alice", order=order, **where) as alice,
            inga.join("g", "bob", order=order, **where) as bob,
        ):
            await asyncio.gather(alice.ready(), bob.ready())
            for message in sent:
                await alice.send(message)
            await texts(bob, len(sent))

    listener = Listener("239.7.7.7", port)
    run(main())
    parts: dict[bytes, dict[int, bytes]] = {}
    counts: dict[bytes, int] = {}
    for datagram in listener.heard():
        fragment = miop.decode(datagram)  # whatever is on the wire is MIOP
        if fragment.is_control:
            assert order != "miop" and miop.decode_control(fragment).sender >> 24 == 127
            continue
        parts.setdefault(fragment.unique_id, {})[fragment.number] = bytes(fragment.payload)
        counts[fragment.unique_id] = fragment.count
    assert max(counts.values()) > 1
    carried = b""
    for unique_id, pieces in parts.items():
        assert len(pieces) == counts[unique_id]
        request = decode_request(b"".join(pieces[number] for number in sorted(pieces)))
        assert request.operation == "inga" and request.group.domain == "inga"
        carried += read_octets(request.arguments)
    for message in sent:
        assert message in carried


def test_datagrams_that_are_none_of_ours_are_counted(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, order="remiop", protocol=QUICK) as (alice, bob):
            port = alice.carrier._target[1]  # type: ignore[attr-defined]
            stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            stranger.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            good = miop.encode(bytes(12), 0, 1, b"GIOP" + bytes(20), flags=miop.STOP)
            for datagram in (b"", b"short", b"in" * 20, good[:40], good, struct.pack("4sB", b"MIOP", 9) * 9):
                stranger.sendto(datagram, ("239.7.7.7", port))
            stranger.close()
            await alice.send(b"still here")
            assert await texts(bob, 1) == ["still here"]
            await until(lambda: len(bob.stack.rejected) >= 5)
            assert set(bob.stack.rejected) == {"short", "bad_magic", "bad_length", "bad_version", "bad_giop"}

    run(main())


# Loss


def test_a_fifth_is_lost_and_everything_recovered(tmp_path: Path) -> None:
    """Six processes, real multicast: fewer requests than losses, and repairs by others than the sender."""
    trace = tmp_path / "trace"
    result = run_live(
        Trial("remiop", members=6, messages=40, size=400, loss=0.2, option=tuple(QUICK.items())), trace
    )
    assert (result.violations, result.delivered) == (0, 1200)
    found = result.recovery
    assert found["lost"] > 100
    assert found["nack"] < found["lost"], "several packets to a request, one request for several members"
    assert found["nack_suppressed"] > 0 and found["repair_suppressed"] > 0, "what others ask for or repair"
    repairs = [row for row in rows(str(trace)) if row.step == "repair"]
    assert any(row.peer != row.process for row in repairs)
    assert any(row.peer == row.process for row in repairs)
    assert not found["unrecoverable"]


def test_plain_miop_ends_when_nothing_comes_any_more() -> None:
    result = run_live(Trial("miop", members=3, messages=50, size=100, loss=0.3, seed=2))
    assert result.violations == 0
    assert 0 < result.unpromised["complete"] < result.expected


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_live_run_is_certified(spark: Any, tmp_path: Path) -> None:
    from inga.pipeline.jobs import check_trace

    trace = tmp_path / "trace"
    quick = tuple(QUICK.items())
    trial = Trial("remiop+vector", members=3, messages=60, size=200, loss=0.1, option=quick)
    assert run_live(trial, trace).violations == 0
    _, certificate = check_trace(str(trace), session=spark)
    assert {each.name: each.verdict for each in certificate.checks} == dict.fromkeys(
        "integrity complete fifo stamps causal".split(), "pass"
    )
