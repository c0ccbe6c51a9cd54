"""What new users do wrong: each ends in one clear sentence, none in silence or in a traceback of somebody else's."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

import inga
from inga.trace.writer import TraceWriter

from .conftest import Place, Run

pytestmark = pytest.mark.network


@pytest.mark.parametrize("text", ["hello", 3, None, ["a"]])
def test_text_is_sent(run: Run, place: Place, group_name: str, text: Any) -> None:
    async def main() -> None:
        async with inga.join(group_name, "alice", **place(members=2)) as alice:
            with pytest.raises(inga.UsageError, match=r"a message is bytes, not \w+; encode text first"):
                await alice.send(text)
            with pytest.raises(inga.UsageError, match=r"a message is bytes, not \w+; encode text first"):
                await alice.send_many([text])

    run(main())


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else has, for UDP and TCP."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stream,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        stream.bind(("127.0.0.1", 0))
        stream.listen()
        datagrams.bind(stream.getsockname())
        yield stream.getsockname()[1]


@pytest.mark.parametrize("via", ["unicast", "tcp"])
def test_a_port_is_in_use(taken: int, via: str) -> None:
    async def main() -> None:
        members = {"alice": f"127.0.0.1:{taken}", "bob": "127.0.0.1:1"}
        async with inga.join("lunch", "alice", members=members, via=via):
            pass

    with pytest.raises(
        inga.UsageError,
        match=rf"^cannot listen at 127.0.0.1:{taken}: Address already in use; choose another port, or end the program that has",
    ):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"via": "udp://239.7.7.7:7400?interface=198.51.100.7"},
            "Cannot assign requested address; this machine has no such address",
        ),
        (
            {"via": "udp://239.7.7.7:7400?interface=nowhere0"},
            "no interface 'nowhere0' with an IPv4 address; there are ",
        ),
        ({"via": "udp://10.0.0.1:7400"}, "10.0.0.1 is no multicast address; those are 224.0.0.0 to"),
        (
            {"members": ["alice", "alice"]},
            "two members of one name in alice, alice: give each a name of its own",
        ),
        (
            {"members": ["bob", "cathy"]},
            "'alice' is not among the members: bob, cathy; to join while they run, pass late=True",
        ),
        ({"members": "alice"}, "members is a list of names, or a dict of names and addresses, not 'alice'"),
        ({"order": "casual"}, "no order 'casual'; did you mean 'causal'?"),
        ({"oder": "causal"}, "inga.join has no option 'oder'; did you mean 'order'?"),
        ({"window": 0}, "window is at least 1 byte, not 0"),
    ],
)
def test_an_option_is_wrong(options: dict[str, Any], said: str) -> None:
    async def main() -> None:
        async with inga.join("lunch", "alice", **{"members": ["alice", "bob"], **options}):
            pass

    with pytest.raises(inga.UsageError) as error:
        asyncio.run(main())
    assert said in str(error.value) and "\n" not in str(error.value)


def test_the_group_is_used_after_its_end(run: Run, place: Place, group_name: str) -> None:
    async def main() -> None:
        async with inga.join(group_name, "alice", **place(members=2)) as alice:
            pass
        with pytest.raises(inga.UsageError, match="the group is closed: use it inside of `async with"):
            await alice.send(b"hello")

    run(main())


def test_the_disk_is_full(
    run: Run, place: Place, group_name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member leaves with one sentence that names the file: a trace with a hole certifies nothing."""

    def no_room(self: TraceWriter, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", no_room)

    async def main() -> None:
        async with inga.join(group_name, "alice", trace=tmp_path / "run", **place(members=2)) as alice:
            alice.post(b"hello")

    with pytest.raises(
        inga.TraceError, match=r"run/events/0-00000.parquet cannot be written: No space left on device"
    ):
        run(main())
