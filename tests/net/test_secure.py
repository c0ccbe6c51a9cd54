"""Secured groups over real sockets: members understand each other, and nobody else does."""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.keys.authority import Authority
from inga.keys.identity import Identity
from inga.keys.secret import Secret
from inga.lab.hostile import Stranger
from inga.model.errors import KeysError
from inga.net import flood
from inga.net.carrier import MulticastCarrier, UdpCarrier
from inga.net.guarding import warn_plain
from inga.net.sieve import LARGE

from .helpers import CARRIERS, FreePort, Party, Place, Run, texts, until

pytestmark = pytest.mark.network

needs_filters = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is filtered")

SECRET, OTHER = Secret(bytes(range(32))), Secret(bytes(range(1, 33)))


@pytest.fixture
def anywhere(free_port: FreePort) -> dict[str, Any]:
    """A place where nobody is named."""
    return {"via": f"udp://239.7.7.7:{free_port()}", "interface": "lo"}


def certified(*names: str) -> dict[str, Identity]:
    authority = Authority.make("the office")
    return {name: authority.issue(name) for name in names}


@pytest.mark.parametrize("via", CARRIERS)
@pytest.mark.parametrize("order", ["causal", "total"])
def test_who_knows_the_secret_talks(run: Run, party: Party, via: str, order: str) -> None:
    async def talk() -> None:
        async with party(via=via, order=order, secret=SECRET) as (alice, bob, cathy):
            await alice.send(b"lunch?")
            assert await texts(bob, 1) == ["lunch?"]
            await bob.send(b"yes")
            assert await texts(cathy, 2) == ["lunch?", "yes"]
            assert alice.rejected == bob.rejected == cathy.rejected == {}

    run(talk())


def test_who_has_a_certificate_talks_and_comes_late(
    run: Run, group_name: str, anywhere: dict[str, Any]
) -> None:
    people = certified("alice", "bob")

    async def talk() -> None:
        async with (
            inga.join(group_name, "alice", identity=people["alice"], **anywhere) as alice,
            inga.join(group_name, "bob", identity=people["bob"], **anywhere) as bob,
        ):
            await asyncio.gather(alice.ready(2), bob.ready(2))
            await bob.send(b"here I am")
            assert await texts(alice, 1) == ["here I am"]

    run(talk())


@pytest.mark.parametrize("bad", ["another secret", "no secret", "a certificate"])
def test_who_does_not_know_the_secret_is_told(
    run: Run, group_name: str, anywhere: dict[str, Any], bad: str
) -> None:
    options: dict[str, Any] = {
        "another secret": {"secret": OTHER},
        "no secret": {},
        "a certificate": {"identity": certified("bob")["bob"]},
    }[bad]
    said = {
        "another secret": "has another secret",
        "no secret": "is secured: pass secret= or identity=",
        "a certificate": "has a secret where others have certificates",
    }[bad]
    told: list[dict[str, int]] = []

    async def talk() -> None:
        async with inga.join(group_name, "alice", secret=SECRET, on_forged=told.append, **anywhere) as alice:
            with pytest.raises(inga.UsageError, match=said):
                async with inga.join(group_name, "bob", **options, **anywhere):
                    pass
            await until(lambda: told)
            assert alice.here == ("alice",)
            reason = {"another secret": "unproven", "no secret": "plain", "a certificate": "credentials"}[bad]
            assert alice.rejected[reason] > 0
            assert told[0].keys() >= {reason}

    run(talk())


def test_one_of_the_members_has_no_secret(run: Run, group_name: str, place: Place) -> None:
    """Nobody asks to be let in where members are named, so nobody is told by an answer: both see it by what they wait for."""

    async def talk() -> None:
        where = place("udp", 2)
        async with (
            inga.join(group_name, "alice", secret=SECRET, **where) as alice,
            inga.join(group_name, "bob", **where) as bob,
        ):
            await until(lambda: bob.rejected.get("sealed") and alice.rejected.get("plain"))
            with pytest.raises(
                inga.NotReady, match="missing are alice; somebody there has a secret= or an identity="
            ):
                await bob.ready(timeout=0)
            with pytest.raises(
                inga.NotReady, match=r"missing are bob; whoever is at .* speaks .* without a secret"
            ):
                await alice.ready(timeout=0)

    run(talk())


def test_certificates_of_another_authority_are_refused(
    run: Run, group_name: str, anywhere: dict[str, Any]
) -> None:
    ours, theirs = certified("alice")["alice"], certified("bob")["bob"]

    async def talk() -> None:
        async with inga.join(group_name, "alice", identity=ours, **anywhere) as alice:
            with pytest.raises(inga.UsageError, match="cannot prove who it is"):
                async with inga.join(group_name, "bob", identity=theirs, **anywhere):
                    pass
            assert alice.here == ("alice",)

    run(talk())


@needs_filters
@pytest.mark.parametrize("via", ["udp", "unicast"])
def test_large_datagrams_of_strangers_do_not_come_in(run: Run, party: Party, via: str) -> None:
    """Those of members do, and are told apart by where they come from."""

    async def talk() -> None:
        async with party(via=via, secret=SECRET) as (alice, bob, cathy):
            carrier = alice.carrier
            assert isinstance(carrier, UdpCarrier) and carrier._own is not None
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for _ in range(20):
                    stranger.sendto(bytes(LARGE + 1), carrier._own.getsockname())
                stranger.sendto(bytes(LARGE), carrier._own.getsockname())
            for sender in (alice, bob, cathy):
                await sender.send(b"x" * 200_000)
                for group in {alice, bob, cathy} - {sender}:
                    assert [len(text) for text in await texts(group, 1)] == [200_000]
            await until(lambda: alice.rejected == {"foreign": 1, "kernel": 20})
        assert alice.rejected == {"foreign": 1, "kernel": 20}  # also when the sockets are closed

    run(talk())


@needs_filters
@pytest.mark.parametrize("via", ["udp", "unicast"])
def test_large_datagrams_of_a_newcomer_come_in(
    run: Run, place: Place, group_name: str, free_port: FreePort, via: str
) -> None:
    """Members are let in, go, and come back from another port, with a large state and large messages both ways."""
    where = place(via, 2)
    state, taken = b"s" * 300_000, []

    async def take_state(chunks: AsyncIterator[bytes]) -> None:
        taken.append(b"".join([chunk async for chunk in chunks]))

    def address() -> dict[str, Any]:
        return {} if via == "udp" else {"address": f"127.0.0.1:{free_port()}"}

    async def hear(group: inga.Group, heard: dict[tuple[str, str], int]) -> None:
        async for delivery in group:
            heard[group.me, delivery.sender] = len(delivery.data)

    async def talk() -> None:
        options: dict[str, Any] = {**where, "secret": SECRET, "on_state_request": lambda: [state]}
        async with (
            inga.join(group_name, "alice", **options) as alice,
            inga.join(group_name, "bob", **options) as bob,
        ):
            await asyncio.gather(alice.ready(), bob.ready())
            for number in (1, 2):
                heard: dict[tuple[str, str], int] = {}
                tasks = [asyncio.ensure_future(hear(group, heard)) for group in (alice, bob)]
                late = {**options, "late": True, "on_state": take_state, **address()}
                async with inga.join(group_name, "zoe", **late) as zoe:
                    tasks.append(asyncio.ensure_future(hear(zoe, heard)))
                    await asyncio.gather(*(group.ready(members=["zoe"]) for group in (alice, bob)))
                    await zoe.send(b"z" * 200_000)
                    await alice.send(b"a" * 200_000)
                    await until(lambda heard=heard: len(heard) == 4)
                    assert {*heard.values()} == {200_000}
                    assert len(taken) == number
                await until(lambda: len(alice.view) == len(bob.view) == 2)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            assert taken == [state, state]

    run(talk())


@needs_filters
@pytest.mark.parametrize(
    ("via", "kind"), [("udp", "forged"), ("udp", "knocks"), ("udp", "plain"), ("unicast", "knocks")]
)
def test_in_a_flood_members_talk_and_newcomers_are_let_in(
    run: Run,
    place: Place,
    group_name: str,
    free_port: FreePort,
    monkeypatch: pytest.MonkeyPatch,
    via: str,
    kind: str,
) -> None:
    """Small datagrams without end: the kernel keeps most of them out, and nobody of those who belong to the group."""
    monkeypatch.setattr(flood, "STRICT_FOR", 0.5)
    is_plain = kind == "plain"
    options: dict[str, Any] = {**place(via, 2), "secret": None if is_plain else SECRET}
    late = {**options, "late": True, **({} if via == "udp" else {"address": f"127.0.0.1:{free_port()}"})}
    over = threading.Event()

    def watches(*groups: inga.Group) -> list[Any]:
        return [
            None if group.carrier._watch is None else group.carrier._watch.strict  # type: ignore[attr-defined]
            for group in groups
        ]

    async def talk() -> None:
        async with (
            inga.join(group_name, "alice", **options) as alice,
            inga.join(group_name, "bob", **options) as bob,
        ):
            await asyncio.gather(alice.ready(), bob.ready())
            places = [group.carrier._own.getsockname() for group in (alice, bob)]  # type: ignore[attr-defined]
            people = [group.stack.member.identity for group in (alice, bob)]
            with Stranger(
                "replayed" if is_plain else kind,
                people,
                group=group_name,
                places=places,
                heard=[(bytes(60), ("", 0))],
            ) as stranger:
                flooding = asyncio.get_running_loop().run_in_executor(None, stranger.flood, over.is_set)
                try:
                    await until(lambda: all(watches(alice, bob)))
                    assert all(each.samples_words is (kind == "knocks") for each in watches(alice, bob))
                    await bob.send(b"do you hear me?")
                    assert await texts(alice, 1) == ["do you hear me?"]
                    async with inga.join(group_name, "zoe", **late) as zoe:
                        await zoe.ready()
                        await zoe.send(b"here I am")
                        assert await texts(alice, 1) == ["here I am"]
                        assert alice.carrier.dropped > 0
                finally:
                    over.set()
                    await flooding
            await until(lambda: not any(watches(alice, bob)))
            assert {"bob", "alice"} == set(alice.view.names)

    run(talk())


def test_ready_says_that_somebody_has_another_secret(run: Run, place: Place, group_name: str) -> None:
    where = place("udp", 2)

    async def talk() -> None:
        async with (
            inga.join(group_name, "alice", secret=SECRET, **where) as alice,
            inga.join(group_name, "bob", secret=OTHER, **where) as bob,
        ):
            await until(lambda: alice.rejected.get("unproven") and bob.rejected.get("unproven"))
            for group in (alice, bob):
                with pytest.raises(inga.NotReady, match="has another secret"):
                    await group.ready(timeout=0.01)

    run(talk())


def test_nothing_that_is_said_is_readable_on_the_network(
    run: Run, group_name: str, free_port: FreePort
) -> None:
    port, heard = free_port(), []

    async def talk() -> None:
        where = {"via": f"udp://239.7.7.7:{port}", "interface": "lo", "members": ["alice", "bob"]}
        async with (
            inga.join(group_name, "alice", secret=SECRET, **where) as alice,
            inga.join(group_name, "bob", secret=SECRET, **where) as bob,
        ):
            await asyncio.gather(alice.ready(), bob.ready())
            await alice.send(b"the treasure is under the oak")
            assert await texts(bob, 1) == ["the treasure is under the oak"]

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tap:
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tap.bind(("239.7.7.7", port))
        tap.setsockopt(
            socket.IPPROTO_IP,
            socket.IP_ADD_MEMBERSHIP,
            socket.inet_aton("239.7.7.7") + socket.inet_aton("127.0.0.1"),
        )
        tap.setblocking(False)
        run(talk())
        while True:
            try:
                heard.append(tap.recv(65536))
            except BlockingIOError:
                break
    assert heard
    everything = b"".join(heard)
    for word in (b"treasure", b"alice", b"bob", group_name.encode(), b"hello", b'"do"'):
        assert word not in everything


def test_what_is_given_is_checked(run: Run, place: Place, tmp_path: Path) -> None:
    where = place("udp", 3)
    bob = certified("bob")["bob"]
    long = Authority.make("office").issue(
        "alice", hosts=[f"host{number}.example.org" for number in range(130)]
    )
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"secret": "sesame"}, KeysError, "passphrases can be guessed"),
        ({"secret": 7}, inga.UsageError, "a Secret, its text"),
        ({"secret": SECRET, "identity": bob}, inga.UsageError, "not both"),
        ({"identity": bob}, inga.UsageError, "that of 'bob', not of 'alice'"),
        ({"secret": SECRET, "order": "remiop"}, inga.UsageError, "no place for a secret"),
        ({"identity": long}, inga.UsageError, "too long: to prove who it is takes 4"),
        ({"on_forged": 3}, inga.UsageError, "on_forged is a function"),
    ]

    async def try_all() -> None:
        for options, error, text in cases:
            with pytest.raises(error, match=text):
                async with inga.join("room", "alice", **{**where, **options}):
                    pass

    run(try_all())


def test_a_secret_is_read_from_a_file(run: Run, party: Party, tmp_path: Path) -> None:
    path = SECRET.save(tmp_path / "secret")

    async def talk() -> None:
        each = {"alice": {"secret": path}, "bob": {"secret": f"file:{path}"}}
        async with party(members=2, each=each) as (alice, bob):
            await alice.send(b"x")
            assert await texts(bob, 1) == ["x"]

    run(talk())


@pytest.mark.parametrize(
    ("order", "remedy"), [("causal", "pass secret= or identity="), ("remiop", "cannot be: keep its network")]
)
def test_plain_groups_say_so_once(
    run: Run,
    place: Place,
    group_name: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    order: str,
    remedy: str,
) -> None:
    """But for those on one machine, where there is nobody to tell them from."""
    warn_plain.cache_clear()
    where = place("udp", 2)

    async def talk() -> None:
        for _ in range(2):
            async with inga.join(group_name, "alice", order=order, **where):
                pass

    run(talk())
    assert not [each for each in caplog.records if each.event == "group.plain"]  # type: ignore[attr-defined]
    far = property(lambda self: False, lambda self, value: None)
    monkeypatch.setattr(MulticastCarrier, "is_loopback", far, raising=False)
    run(talk())
    (told,) = [each.getMessage() for each in caplog.records if each.event == "group.plain"]  # type: ignore[attr-defined]
    assert told.startswith(f"group {group_name} is not secured:") and remedy in told


def test_a_certificate_that_has_expired_says_how_to_make_another(run: Run, tmp_path: Path) -> None:
    expired = Authority.make("lunch").issue("bob", days=1.0, now=time.time() - 10 * 86400)

    async def main(identity: Any) -> None:
        async with inga.join("lunch", "bob", via="udp://239.7.7.7:9", identity=identity):
            pass

    said = "has expired on .*; `inga keys member bob --authority DIR` makes another"
    with pytest.raises(KeysError, match=f"^the identity: the certificate {said}"):
        run(main(expired))
    with pytest.raises(KeysError, match=f"bob.pem: the certificate {said}"):
        run(main(expired.save(tmp_path / "bob.pem")))
