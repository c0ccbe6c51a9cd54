"""Plain values as bytes: arguments and results of object calls. Reading a value runs no code of its sender.

    0 None   1 False   2 True   3 n: the number n   4 n: the number -1-n   5: a float in eight bytes
    6 n: a text of n bytes   7 n: n bytes   8 n: a list of n   9 n: a tuple of n   10 n: a dictionary of n pairs
    11 n: a larger number, in n bytes   12 n: -1 less such a number

n is a varint. Keys of dictionaries are hashable values.
"""

from struct import Struct, error
from typing import Any

from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer
from inga.model.readonly import PLAIN
from inga.wire import varint

DEPTH_MAX = 32
"""The deepest nesting of values."""

NUMBER_BYTES_MAX = 1 << 10
"""The most bytes of an integer: Python refuses to print one of more than 4300 digits."""

OTHER_KEYS_MAX = 1 << 10
"""The most keys of one dictionary that are neither text nor bytes. Python hashes those two with a secret and all others
without one, so a sender can choose keys of which each collides with all before it: 20,000 such numbers cost 2 * 10^8
comparisons, these at most 2^19. No range of numbers is safe, since the way in which a dictionary probes for a free slot is
known, too. Larger dictionaries of that kind can be sent as a list of pairs."""

SMALL_MAX = (1 << 63) - 1

FLOAT = Struct(">d")
NONE, FALSE, TRUE, PLUS, MINUS, REAL, TEXT, BYTES, LIST, TUPLE, DICT, BIG_PLUS, BIG_MINUS = range(13)


def copied(value: Any, depth: int = 0) -> Any:
    """The value as it would arrive at another member, sharing nothing mutable; UsageError for values that cannot be sent."""
    kind = type(value)
    if kind in (str, bytes, bool, float) or value is None:
        return value
    if kind is int:
        if value.bit_length() > 8 * NUMBER_BYTES_MAX:
            raise UsageError(f"a number of {value.bit_length()} bits is too large to be sent")
        return value
    kind = PLAIN.get(kind, kind)
    if depth >= DEPTH_MAX:
        raise UsageError(f"what is sent is nested more than {DEPTH_MAX} deep")
    if kind in (list, tuple):
        return kind([copied(each, depth + 1) for each in value])
    if kind is dict:
        if sum(map(_is_guessable, value)) > OTHER_KEYS_MAX:
            raise UsageError(
                f"a dictionary has more than {OTHER_KEYS_MAX} keys that are neither text nor bytes: "
                "send a list of pairs"
            )
        return {copied(key, depth + 1): copied(each, depth + 1) for key, each in value.items()}
    raise UsageError(
        f"arguments and results are None, bool, int, float, str, bytes, list, tuple and dict, not {kind.__name__}"
    )


def put(out: bytearray, value: Any) -> None:
    """Append a value that `copied` accepts."""
    kind = type(value)
    if value is None:
        out.append(NONE)
    elif kind is bool:
        out.append(TRUE if value else FALSE)
    elif kind is int:
        _put_number(out, value)
    elif kind is float:
        out.append(REAL)
        out += FLOAT.pack(value)
    elif kind is str:
        _put_bytes(out, TEXT, value.encode("utf-8", "surrogatepass"))
    elif kind is bytes:
        _put_bytes(out, BYTES, value)
    elif kind is dict:
        out.append(DICT)
        varint.put(out, len(value))
        for key, each in value.items():
            put(out, key)
            put(out, each)
    else:
        out.append(LIST if kind is list else TUPLE)
        varint.put(out, len(value))
        for each in value:
            put(out, each)


def get(data: Buffer, at: int, depth: int = 0) -> tuple[Any, int]:
    """The value at `at`, and the offset behind it; WireError for invalid bytes."""
    if at >= len(data):
        raise WireError("truncated", "where a value should be")
    kind = data[at]
    at += 1
    if kind <= TRUE:
        return (None, False, True)[kind], at
    if kind == REAL:
        try:
            return FLOAT.unpack_from(data, at)[0], at + 8
        except error:
            raise WireError("truncated", "in a float") from None
    if kind > BIG_MINUS:
        raise WireError("malformed", "no kind of value")
    n, at = varint.get(data, at)
    if kind == PLUS:
        return n, at
    if kind == MINUS:
        return -1 - n, at
    if n > len(data) - at:  # every item takes a byte at least
        raise WireError("truncated", "in a value")
    if kind in (LIST, TUPLE, DICT):
        return _get_items(data, at, kind, n, depth)
    raw = bytes(data[at : at + n])
    at += n
    if kind == BYTES:
        return raw, at
    if kind == TEXT:
        try:
            return raw.decode("utf-8", "surrogatepass"), at
        except UnicodeDecodeError:
            raise WireError("malformed", "no text") from None
    if n > NUMBER_BYTES_MAX:
        raise WireError("malformed", "a number too large")
    number = int.from_bytes(raw, "big")
    return (number if kind == BIG_PLUS else -1 - number), at


def _get_items(data: Buffer, at: int, kind: int, n: int, depth: int) -> tuple[Any, int]:
    if depth >= DEPTH_MAX:
        raise WireError("malformed", "nested too deep")
    if kind == DICT:
        pairs = {}
        guessable = 0
        for _ in range(n):
            key, at = get(data, at, depth + 1)
            guessable += _is_guessable(key)
            if guessable > OTHER_KEYS_MAX:
                raise WireError("malformed", "too many keys that may collide")
            value, at = get(data, at, depth + 1)
            try:
                pairs[key] = value
            except TypeError:
                raise WireError("malformed", "a key that can change") from None
        return pairs, at
    items = []
    for _ in range(n):
        item, at = get(data, at, depth + 1)
        items.append(item)
    return (items if kind == LIST else tuple(items)), at


def _is_guessable(key: Any) -> bool:
    """Whether a sender can predict the hash of a key."""
    return type(key) not in (str, bytes)


def _put_number(out: bytearray, value: int) -> None:
    size = value if value >= 0 else -1 - value
    if size <= SMALL_MAX:
        out.append(PLUS if value >= 0 else MINUS)
        varint.put(out, size)
    else:
        _put_bytes(
            out, BIG_PLUS if value >= 0 else BIG_MINUS, size.to_bytes((size.bit_length() + 7) // 8, "big")
        )


def _put_bytes(out: bytearray, kind: int, raw: bytes) -> None:
    out.append(kind)
    varint.put(out, len(raw))
    out += raw
