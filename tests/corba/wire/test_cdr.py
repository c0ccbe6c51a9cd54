"""CDR: golden octets in both byte orders, alignment, round trips, and octets that are no CDR."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.wire.cdr import Decoder, Encoder
from inga.model.errors import UsageError, WireError

# kind, value, big endian, little endian
GOLDEN: list[tuple[str, Any, str, str]] = [
    ("octet", 200, "c8", "c8"),
    ("boolean", True, "01", "01"),
    ("char", "A", "41", "41"),
    ("short", -2, "fffe", "feff"),
    ("ushort", 0x1234, "1234", "3412"),
    ("long", -2, "fffffffe", "feffffff"),
    ("ulong", 0x12345678, "12345678", "78563412"),
    ("longlong", -2, "fffffffffffffffe", "feffffffffffffff"),
    ("ulonglong", 1 << 63, "8000000000000000", "0000000000000080"),
    ("float", 1.5, "3fc00000", "0000c03f"),
    ("double", -2.0, "c000000000000000", "00000000000000c0"),
    ("string", "hello", "0000000668656c6c6f00", "0600000068656c6c6f00"),
    ("string", "", "0000000100", "0100000000"),
    ("string", "é", "00000003c3a900", "03000000c3a900"),
    ("octets", b"\x01\x02", "000000020102", "020000000102"),
    ("wchar", "é", "0200e9", "0200e9"),
    ("wchar", "😀", "04d83dde00", "04d83dde00"),
    ("wstring", "hé", "00000004006800e9", "04000000006800e9"),
]
SIZES = {
    "octet": 1,
    "short": 2,
    "ushort": 2,
    "long": 4,
    "ulong": 4,
    "longlong": 8,
    "ulonglong": 8,
    "float": 4,
    "double": 8,
}
WHOLE = {
    "octet": (0, 255),
    "short": (-(1 << 15), (1 << 15) - 1),
    "ushort": (0, (1 << 16) - 1),
    "long": (-(1 << 31), (1 << 31) - 1),
    "ulong": (0, (1 << 32) - 1),
    "longlong": (-(1 << 63), (1 << 63) - 1),
    "ulonglong": (0, (1 << 64) - 1),
}


def put(encoder: Encoder, kind: str, value: Any) -> None:
    getattr(encoder, kind)(value)


def get(decoder: Decoder, kind: str) -> Any:
    return getattr(decoder, kind)()


@pytest.mark.parametrize(("kind", "value", "big", "little"), GOLDEN)
def test_golden_octets(kind: str, value: Any, big: str, little: str) -> None:
    for is_little, octets in ((False, big), (True, little)):
        encoder = Encoder(little=is_little)
        put(encoder, kind, value)
        assert encoder.data().hex() == octets
        decoder = Decoder(bytes.fromhex(octets), little=is_little)
        assert get(decoder, kind) == value
        decoder.finish()


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("before", range(9))
def test_numbers_stand_on_their_boundary_counted_from_the_base(kind: str, before: int) -> None:
    encoder = Encoder(base=before)
    put(encoder, kind, 1)
    gap = -before % SIZES[kind]
    assert len(encoder) == gap + SIZES[kind]
    assert encoder.data()[:gap] == bytes(gap)
    assert get(Decoder(encoder.data(), base=before), kind) == 1


def test_padding_is_ignored_when_read() -> None:
    assert Decoder(bytes.fromhex("ffff12345678"), base=2).ulong() == 0x12345678


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("before", range(17))
def test_align(size: int, before: int) -> None:
    encoder = Encoder(base=1)
    encoder.raw(bytes(before))
    encoder.align(size)
    assert len(encoder) >= before
    assert (1 + len(encoder)) % size == 0
    assert len(encoder) - before < size
    decoder = Decoder(bytes(40), base=1, at=before)
    decoder.align(size)
    assert decoder.at == len(encoder)


def test_an_encapsulation_begins_behind_its_byte_order() -> None:
    inner = Decoder.encapsulation(bytes.fromhex("010203"))
    assert (inner.octet(), inner.octet(), inner.remaining) == (2, 3, 0)


def test_alignment_restarts_in_an_encapsulation() -> None:
    inner = Encoder.encapsulation(little=True)
    inner.ulong(5)
    assert inner.data().hex() == "0100000005000000"
    outer = Encoder()
    outer.octet(9)
    outer.octets(inner.data())
    reader = Decoder(outer.data())
    assert reader.octet() == 9
    inside = Decoder.encapsulation(reader.octets())
    assert inside.little
    assert inside.ulong() == 5
    inside.finish()


@pytest.mark.parametrize(("kind", "bounds"), WHOLE.items())
def test_what_a_type_cannot_hold_is_a_usage_error(kind: str, bounds: tuple[int, int]) -> None:
    for value in bounds:
        encoder = Encoder()
        put(encoder, kind, value)
        assert get(Decoder(encoder.data()), kind) == value
    for value in (bounds[0] - 1, bounds[1] + 1, "1", None, 1.5):
        with pytest.raises(UsageError, match=f"does not fit into an? {kind}"):
            put(Encoder(), kind, value)


def test_text_that_cannot_be_written() -> None:
    for kind, value, text, says in [
        ("string", "a\0b", "utf-8", "NUL"),
        ("string", "λ", "latin-1", "cannot be written in latin-1"),
        ("string", "\ud800", "utf-8", "cannot be written in utf-8"),
        ("string", b"octets", "utf-8", "is not text"),
        ("char", "é", "utf-8", "not one octet"),
        ("char", "ab", "utf-8", "not one octet"),
        ("wchar", "ab", "utf-8", "not one character"),
        ("wstring", "\ud800", "utf-8", "UTF-16"),
        ("float", 1e39, "utf-8", "does not fit into a float"),
    ]:
        with pytest.raises(UsageError, match=says):
            put(Encoder(text=text), kind, value)


def test_the_code_set_of_text_is_a_choice() -> None:
    encoder = Encoder(text="latin-1")
    encoder.string("é")
    encoder.char("é")
    assert encoder.data().hex() == "00000002e900e9"
    decoder = Decoder(encoder.data(), text="latin-1")
    assert (decoder.string(), decoder.char()) == ("é", "é")
    with pytest.raises(WireError, match="not utf-8"):
        Decoder(encoder.data()).string()


def test_wide_text_with_a_byte_order_mark() -> None:
    assert Decoder(bytes.fromhex("00000004fffe6800")).wstring() == "h"
    assert Decoder(bytes.fromhex("00000004feff0068")).wstring() == "h"


@pytest.mark.parametrize(
    ("kind", "octets", "reason"),
    [
        ("string", "00000000", "malformed"),  # the closing NUL is missing
        ("string", "0000000141", "malformed"),
        ("string", "0000000341004200", "malformed"),
        ("string", "0000000300410000", "malformed"),
        ("string", "ffffffff4100", "truncated"),
        ("string", "0000000341", "truncated"),
        ("octets", "ffffffff00", "truncated"),
        ("octets", "0000", "truncated"),
        ("boolean", "02", "malformed"),
        ("wstring", "00000003004100", "malformed"),
        ("wstring", "00000002d800", "malformed"),
        ("wstring", "fffffffe0041", "truncated"),
        ("wchar", "0400410042", "malformed"),
        ("wchar", "00", "malformed"),
        ("wchar", "ff0041", "malformed"),
        ("double", "00000000000000", "truncated"),
        ("octet", "", "truncated"),
    ],
)
def test_octets_that_are_no_value(kind: str, octets: str, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        get(Decoder(bytes.fromhex(octets)), kind)
    assert caught.value.reason == reason


def test_a_count_is_held_against_what_is_left() -> None:
    data = bytes.fromhex("00000002") + bytes(16)
    assert Decoder(data).count(8) == 2
    for least in (9, 1 << 20):
        with pytest.raises(WireError, match="truncated"):
            Decoder(data).count(least)
    with pytest.raises(WireError, match="4294967295 elements in 0 octets"):
        Decoder(b"\xff" * 4).count(0)


def test_an_encapsulation_needs_its_byte_order() -> None:
    with pytest.raises(WireError, match="truncated"):
        Decoder.encapsulation(b"")
    with pytest.raises(WireError, match="malformed"):
        Decoder.encapsulation(b"\x02")
    with pytest.raises(WireError, match="3 octets too many"):
        Decoder(b"abc").finish()


ONE = st.one_of(
    *(st.tuples(st.just(kind), st.integers(*bounds)) for kind, bounds in WHOLE.items()),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("float"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("string"), st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=9)),
    # A leading mark says the byte order and is no text.
    st.tuples(
        st.just("wstring"),
        st.text(st.characters(exclude_characters="\ufeff\ufffe", codec="utf-8"), max_size=9),
    ),
    st.tuples(st.just("octets"), st.binary(max_size=9)),
)


@given(st.lists(ONE, max_size=12), st.booleans(), st.integers(0, 16))
def test_round_trip(values: list[tuple[str, Any]], little: bool, base: int) -> None:
    encoder = Encoder(little=little, base=base)
    for kind, value in values:
        put(encoder, kind, value)
    decoder = Decoder(encoder.data(), little=little, base=base)
    assert [(kind, get(decoder, kind)) for kind, _ in values] == values
    decoder.finish()
    assert decoder.remaining == 0


@given(st.binary(max_size=40), st.lists(st.sampled_from([kind for kind, *_ in GOLDEN]), max_size=8))
def test_any_octets_give_a_value_or_a_wire_error(data: bytes, kinds: list[str]) -> None:
    decoder = Decoder(data)
    try:
        for kind in kinds:
            value = get(decoder, kind)
            encoder = Encoder()
            put(encoder, kind, value)
            again = get(Decoder(encoder.data()), kind)
            assert type(again) is type(value) and (again == value or (again != again and value != value))
    except WireError:
        pass
    assert 0 <= decoder.at <= len(data)
