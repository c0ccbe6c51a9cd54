"""What the kernel lets in: small datagrams from anywhere, large ones from those who have proven who they are."""

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from inga.model.packet import Packet
from inga.net import sieve
from inga.net.sieve import ADMITTED_MAX, LARGE, SAMPLE, WORDS_SAMPLE, StrictRules, attach, dropped
from inga.stack.stack import joined
from inga.wire.packet import HEAD, OUTSIDE, encode

from .helpers import SECONDS

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is filtered"),
]

Bind = Callable[..., socket.socket]


@pytest.fixture
def bind() -> Iterator[Bind]:
    """Sockets, gone afterwards."""
    opened: list[socket.socket] = []

    def make(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.append(sock)
        sock.bind((host, port))
        sock.settimeout(SECONDS)
        return sock

    yield make
    for sock in opened:
        sock.close()


def place(sock: socket.socket) -> str:
    host, port = sock.getsockname()
    return f"{host}:{port}"


def comes(source: socket.socket, to: socket.socket, size: int) -> bool:
    """Whether a datagram of so many octets comes in, before a small one that was sent after it."""
    source.sendto(bytes(size), to.getsockname())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as after:
        after.sendto(b"after it", to.getsockname())
    came = to.recv(65536)
    if came == b"after it":
        return False
    assert (came, to.recv(65536)) == (bytes(size), b"after it")
    return True


def test_large_datagrams_come_in_from_those_who_are_known(bind: Bind) -> None:
    ear, friend, stranger = bind(), bind(), bind()
    attach(ear, None, [place(friend)])
    for size in (0, 1, LARGE):
        assert comes(stranger, ear, size)
        assert comes(friend, ear, size)
    for size in (LARGE + 1, 60 * 1024):
        assert not comes(stranger, ear, size)
        assert comes(friend, ear, size)


def test_address_and_port_count(bind: Bind) -> None:
    ear, friend, stranger = bind(), bind(), bind()
    elsewhere = bind("127.0.0.2", friend.getsockname()[1])
    attach(ear, None, [place(friend)])
    assert not comes(elsewhere, ear, LARGE + 1)
    assert not comes(stranger, ear, LARGE + 1)
    attach(ear, None, [place(elsewhere)])  # in the place of what was attached before
    assert comes(elsewhere, ear, LARGE + 1)
    assert not comes(friend, ear, LARGE + 1)


def test_nobody_is_known_yet(bind: Bind) -> None:
    ear, stranger = bind(), bind()
    attach(ear, None, [])
    assert comes(stranger, ear, LARGE)
    assert not comes(stranger, ear, LARGE + 1)
    attach(ear, None, None)
    assert comes(stranger, ear, LARGE + 1)


def test_what_comes_from_ourselves_is_not_heard(bind: Bind) -> None:
    ear, own, friend = bind(), bind(), bind()
    for admitted in (None, [place(friend), place(own)]):
        attach(ear, own.getsockname(), admitted)
        for size in (1, LARGE + 1):
            assert not comes(own, ear, size)
            assert comes(friend, ear, size)


def test_as_many_are_known_as_fit(bind: Bind) -> None:
    ear, first, last, stranger = bind(), bind(), bind(), bind()
    others = [f"10.1.{number // 250}.{number % 250}:7400" for number in range(ADMITTED_MAX)]
    attach(ear, None, [place(first), *others[2:], place(last)])
    assert comes(first, ear, LARGE + 1)
    assert comes(last, ear, LARGE + 1)
    assert not comes(stranger, ear, LARGE + 1)
    attach(ear, None, [place(first), *others])
    assert comes(stranger, ear, LARGE + 1)  # nobody is kept out who might be known


def test_a_filter_that_the_kernel_does_not_take_keeps_nobody_out(
    bind: Bind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sieve, "ADMITTED_MAX", 10_000)
    ear, own, newcomer = bind(), bind(), bind()
    attach(ear, own.getsockname(), [])
    assert not comes(newcomer, ear, LARGE + 1)
    attach(ear, own.getsockname(), [place(newcomer), *(f"10.1.1.1:{port}" for port in range(1, 2000))])
    assert comes(newcomer, ear, LARGE + 1)
    assert not comes(own, ear, 1)


def test_what_is_no_address_is_nobody(bind: Bind) -> None:
    ear, friend, stranger = bind(), bind(), bind()
    attach(ear, None, ["None", "somewhere:1", "[::1]:7", "127.0.0.1", place(friend)])
    assert comes(friend, ear, LARGE + 1)
    assert not comes(stranger, ear, LARGE + 1)


def test_what_does_not_come_in_is_counted(bind: Bind) -> None:
    ear, stranger = bind(), bind()
    attach(ear, None, [])
    for size in (LARGE + 1, LARGE, LARGE + 2):
        comes(stranger, ear, size)
    assert dropped(ear) == 2
    ear.close()
    assert dropped(ear) == 0


BEGIN = b"iS\x02\x01\x01lunc"  # of a knock in this group
FLOOD = 1500


def come(source: socket.socket, to: socket.socket, data: bytes) -> int:
    """Of so many datagrams that are alike, how many come in."""
    found = 0
    to.setblocking(False)
    for _ in range(FLOOD // 10):
        for _ in range(10):
            source.sendto(data, to.getsockname())
        with suppress(BlockingIOError):  # on loopback what was sent has come
            while True:
                found += to.recv(65536) == data
    return found


def few(of: int) -> range:
    """About one of so many, so that chance keeps it there but once in ten million times."""
    mean = FLOOD / of
    return range(int(mean - 5.5 * mean**0.5), int(mean + 5.5 * mean**0.5) + 1)


@pytest.mark.parametrize("samples_words", [False, True])
def test_in_a_flood_few_of_the_rest_come_in(bind: Bind, samples_words: bool) -> None:
    ear, member, visitor, noisy, stranger = (bind() for _ in range(5))
    strict = StrictRules(frozenset([place(member)]), frozenset([place(noisy)]), samples_words, BEGIN)
    attach(ear, None, [place(member), place(visitor), place(noisy)], strict)
    small, sealed, large = b"in" + bytes(60), b"iS\x02\x05" + bytes(60), bytes(LARGE + 1)
    knock, confirm = BEGIN + bytes(60), BEGIN[:3] + b"\x04" + BEGIN[4:] + bytes(60)
    elsewhere = BEGIN[:-1] + b"h" + bytes(60)  # a fourth octet that is not looked at
    other = BEGIN[:-2] + b"hh" + bytes(60)
    for data in (small, sealed, large, knock, b"", b"iS"):
        assert come(member, ear, data) == come(visitor, ear, data) == FLOOD
        assert come(noisy, ear, data) in few(SAMPLE if len(data) > LARGE else WORDS_SAMPLE)
    for data in (small, sealed, other, b"", b"i", b"iS", b"iS\x02", b"iS\x02\x01", BEGIN[:8], BEGIN):
        assert come(stranger, ear, data) in few(SAMPLE), data
    for data in (knock, confirm, elsewhere):
        if samples_words:
            assert come(stranger, ear, data) in few(WORDS_SAMPLE)
        else:
            assert come(stranger, ear, data) == FLOOD
    assert come(stranger, ear, large) == come(stranger, ear, BEGIN + large) == 0


def test_in_a_flood_nothing_of_our_own_comes_in_either(bind: Bind) -> None:
    ear, own, member = bind(), bind(), bind()
    strict = StrictRules(frozenset([place(member)]), frozenset(), False, BEGIN)
    attach(ear, own.getsockname(), [place(member)], strict)
    assert come(own, ear, BEGIN + bytes(60)) == 0
    assert come(member, ear, b"hello") == FLOOD


def test_when_more_are_known_than_fit_a_flood_is_let_in(bind: Bind) -> None:
    ear, stranger = bind(), bind()
    others = [f"10.1.{number // 250}.{number % 250}:7400" for number in range(ADMITTED_MAX + 1)]
    attach(ear, None, others, StrictRules(frozenset(others), frozenset(), True, BEGIN))
    assert come(stranger, ear, b"hello") == FLOOD
    attach(ear, None, others[:-1], StrictRules(frozenset(others[:-1]), frozenset(others[:64]), True, BEGIN))
    assert come(stranger, ear, b"hello") in few(SAMPLE)  # as long as a filter gets


def test_in_a_flood_a_plain_group_hears_its_members_and_samples_the_rest(bind: Bind) -> None:
    ear, member, stranger = bind(), bind(), bind()
    attach(ear, None, None, StrictRules(frozenset([place(member)]), frozenset(), False, None))
    greeting = joined(encode(Packet(0, OUTSIDE, kind=3), 7))
    message = joined(encode(Packet(0, 1, b"hello"), 7))
    for data in (greeting, message, bytes(LARGE + 1), b""):
        assert come(member, ear, data) == FLOOD
    for data in (message, bytes(LARGE + 1), b"", b"in", greeting[: HEAD.size], b"no" + greeting[2:]):
        assert come(stranger, ear, data) in few(SAMPLE)
    assert come(stranger, ear, greeting) in few(WORDS_SAMPLE)
    attach(ear, None, None)
    assert come(stranger, ear, message) == FLOOD
