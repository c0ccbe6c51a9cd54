"""Messages from MIOP packets: every state of a collection, every limit, every counter."""

from collections import Counter
from itertools import permutations
from random import Random

import pytest

from inga.corba.multicast.fragments import Piece, Reassembly
from inga.corba.wire.miop import numbered_id
from inga.model.packet import Buffer

ONE, TWO = b"one", b"two"


class Table:
    """A reassembly, and what it counted."""

    def __init__(self, reassembly: type[Reassembly] = Reassembly, **limits: float) -> None:
        self.counts: Counter[str] = Counter()
        self.table = reassembly(self._count, **limits)  # type: ignore[arg-type]

    def _count(self, reason: str) -> None:
        self.counts[reason] += 1

    def add(
        self,
        index: int,
        count: int,
        payload: bytes = b"x",
        *,
        key: bytes = ONE,
        stop: bool | None = None,
        now: float = 0,
    ) -> bytes | None:
        is_last = index == count - 1 if stop is None else stop
        message = self.table.add(Piece(key, 0, 0, index, count, is_last, 0), payload, now)
        return None if message is None else bytes(message)

    @property
    def counted(self) -> dict[str, int]:
        return dict(self.counts)


def test_one_packet_is_a_message() -> None:
    table = Table()
    assert table.add(0, 1, b"whole") == b"whole"
    assert table.table.open == 0 and not table.counted


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_any_order(order: tuple[int, ...]) -> None:
    table = Table()
    came = [table.add(index, 3, b"abc"[index : index + 1]) for index in order]
    assert came == [None, None, b"abc"]
    assert (table.table.open, table.table.octets) == (0, 0)


def test_of_an_unknown_number_of_packets_the_stop_flag_says_the_last() -> None:
    table = Table()
    assert table.add(1, 0, b"b") is None
    assert table.add(2, 0, b"c", stop=True) is None
    assert table.add(0, 0, b"a") == b"abc"
    assert table.add(0, 0, b"a", key=TWO, stop=True) == b"a"
    assert not table.counted


def test_with_a_count_the_stop_flag_means_nothing() -> None:
    table = Table()
    assert table.add(0, 2, b"a", stop=True) is None
    assert table.add(1, 2, b"b", stop=True) == b"ab"


def test_twice_is_once() -> None:
    table = Table()
    table.add(0, 2, b"a")
    assert table.add(0, 2, b"z") is None
    assert table.add(1, 2, b"b") == b"ab"
    assert table.add(1, 2, b"b") is None  # late, of a message that is done
    assert table.add(0, 1, b"s", key=TWO) == b"s"
    assert table.add(0, 1, b"s", key=TWO) is None
    assert table.counted == {"dup": 3}


def test_the_ring_forgets_the_oldest() -> None:
    table = Table(ring=2)
    for key in (b"1", b"2", b"3"):
        assert table.add(0, 1, key=key) is not None
    assert table.add(0, 1, key=b"1") is not None
    assert table.add(0, 1, key=b"3") is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"index": 0, "count": 3}, {"index": 1, "count": 4}),
        ({"index": 0, "count": 3}, {"index": 1, "count": 0}),
        ({"index": 3, "count": 0, "stop": False}, {"index": 1, "count": 3}),
        ({"index": 2, "count": 0, "stop": True}, {"index": 3, "count": 0}),
        ({"index": 2, "count": 0, "stop": True}, {"index": 1, "count": 0, "stop": True}),
        ({"index": 2, "count": 0, "stop": True}, {"index": 1, "count": 3}),
    ],
)
def test_a_packet_that_contradicts_the_others_is_dropped(
    first: dict[str, int], second: dict[str, int]
) -> None:
    table = Table()
    assert table.add(**first) is None  # type: ignore[arg-type]
    assert table.add(**second) is None  # type: ignore[arg-type]
    assert table.counted == {"inconsistent": 1}
    assert table.table.open == 1


def test_a_stop_before_what_is_there_discards_the_collection() -> None:
    table = Table()
    table.add(4, 0)
    assert table.add(2, 0, stop=True) is None
    assert table.counted == {"inconsistent": 1}
    assert (table.table.open, table.table.octets) == (0, 0)


def test_a_count_that_comes_later_is_taken() -> None:
    table = Table()
    table.add(1, 0, b"b", stop=False)
    assert table.add(0, 2, b"a") == b"ab"


def test_what_its_sender_has_still_to_send_does_not_expire() -> None:
    """A window may close in the middle of a message, and stay closed for as long as somebody is silent."""
    awaited = {(7 << 24, 101)}
    table = Table()
    table.table = Reassembly(table._count, collect=1.0, awaits=lambda *packet: packet in awaited)
    half = numbered_id(7 << 24, 100)
    table.add(0, 3, b"a", key=half)
    table.add(2, 3, b"c", key=half)
    for now in range(1, 9):
        table.table.expire(now)
        assert (table.counted, table.table.wake) == ({}, now + 1.0)
    awaited.clear()
    table.table.expire(9.0)
    assert (table.counted, table.table.open) == ({"expired": 1}, 0)


def test_what_gets_no_more_packets_expires() -> None:
    table = Table(collect=1.0)
    table.add(0, 2, now=0.0)
    table.add(0, 3, key=TWO, now=0.5)
    table.add(1, 3, key=TWO, now=0.9)
    assert table.table.wake == 1.0
    table.table.expire(0.99)
    assert not table.counted
    table.table.expire(1.0)
    assert (table.counted, table.table.open) == ({"expired": 1}, 1)
    assert table.table.wake == 1.9  # since its last packet, not its first
    assert table.add(1, 2, b"b", now=1.1) is None, "the first packet is gone"
    assert table.add(0, 2, b"a", now=1.2) == b"ab", "and may come again"


def test_too_many_open_collections_evict_the_one_that_rested_longest() -> None:
    table = Table(collections_max=2)
    table.add(0, 2, b"a", key=b"1", now=0)
    table.add(0, 3, b"a", key=b"2", now=1)
    table.add(1, 3, b"b", key=b"2", now=2)
    table.add(2, 4, key=b"1", now=2)  # contradicts, and does not count as news
    table.add(0, 2, key=b"3", now=3)
    assert table.counted == {"inconsistent": 1, "evicted": 1}
    assert table.add(2, 3, b"c", key=b"2", now=4) == b"abc"
    assert table.add(1, 2, b"b", key=b"1", now=4) is None


def test_too_many_octets_evict_too() -> None:
    table = Table(octets_max=10)
    table.add(0, 9, b"12345", key=b"1")
    table.add(0, 9, b"12345", key=b"2")
    assert not table.counted
    table.add(0, 9, b"1", key=b"3")
    assert table.counted == {"evicted": 1}
    assert (table.table.open, table.table.octets) == (2, 6)


def test_a_message_above_the_limit_is_not_collected() -> None:
    table = Table(message_max=8)
    table.add(0, 3, b"12345")
    assert table.add(1, 3, b"12345") is None
    assert table.counted == {"too_large": 1}
    assert table.table.octets == 5


def test_nothing_is_allocated_for_what_is_only_announced() -> None:
    table = Table()
    table.add(65_535, 65_536)
    assert table.table.octets == 1


@pytest.mark.parametrize("seed", range(20))
def test_any_messages_in_any_order_with_duplicates(
    seed: int, reassembly: type[Reassembly] = Reassembly
) -> None:
    """Against the plain thing: each message once, when its last packet has come."""
    rng = Random(seed)
    messages = {bytes([key]): rng.randbytes(rng.randrange(1, 40)) for key in range(12)}
    unknown = {key for key in messages if rng.random() < 0.3}
    packets = []
    for key, message in messages.items():
        cut = rng.choice((1, 3, 7, 40))
        pieces = [message[at : at + cut] for at in range(0, len(message), cut)]
        for index, piece in enumerate(pieces):
            count = 0 if key in unknown else len(pieces)
            packets += [(key, index, count, piece, index == len(pieces) - 1)] * rng.choice((1, 1, 2))
    rng.shuffle(packets)
    table, seen, came = Table(reassembly), {key: set[int]() for key in messages}, []
    copies = Counter((key, index) for key, index, *_ in packets)
    sizes = {key: len({index for k, index in copies if k == key}) for key in messages}
    for key, index, count, piece, stop in packets:
        seen[key].add(index)
        message = table.add(index, count, piece, key=key, stop=stop)
        if message is not None:
            assert len(seen[key]) == sizes[key]
            came.append((key, message))
    assert sorted(came) == sorted(messages.items())
    assert table.counts["dup"] == sum(times - 1 for times in copies.values())
    assert (table.table.open, table.table.octets) == (0, 0)


class InOrderOfArrival(Reassembly):
    """The number of a packet is that of those which came before it."""

    def add(self, piece: Piece, payload: Buffer, now: float) -> Buffer | None:
        open_ = self._open.get(piece.unique_id)
        index = 0 if open_ is None else len(open_.slots)
        placed = Piece(piece.unique_id, 0, 0, index, piece.count, piece.is_last, 0)
        return super().add(placed, payload, now)


class RemembersNothing(Reassembly):
    """What comes again of a message that was whole begins a new one."""

    def _remember(self, key: bytes) -> None:
        pass


@pytest.mark.parametrize("broken", [InOrderOfArrival, RemembersNothing])
def test_mutation(broken: type[Reassembly]) -> None:
    with pytest.raises(AssertionError):
        test_any_messages_in_any_order_with_duplicates(0, broken)
