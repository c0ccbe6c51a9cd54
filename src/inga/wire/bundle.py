"""Application messages that share one packet, as its body.

    0  one message     the rest is the message
    1  equal lengths   u32 count, then the messages end to end
    2  short messages  u32 count, a u16 length each, then the messages
    3  long messages   u32 count, a u32 length each, then the messages

Equal lengths are the common case of a fast sender, and the cheapest to split: one call for many messages.
"""

from functools import lru_cache
from itertools import accumulate, pairwise
from struct import Struct, pack, unpack_from

from inga.model.errors import WireError
from inga.model.packet import Buffer

MESSAGES_MAX = 1 << 16
VIEW_FROM = 16 * 1024
"""A single message whose body is larger than this is returned as a memoryview, which saves a copy."""

BLOCK = 64
"""The most equal messages that one call splits. Struct formats are cached, and the size of a format grows with its number of
messages: one format for each number of messages in a bundle would take megabytes."""

_COUNT = Struct(">BI")


def join(payloads: list[bytes]) -> bytes:
    """One body of all messages."""
    count = len(payloads)
    if count == 1:
        return b"\0" + payloads[0]
    sizes = list(map(len, payloads))
    largest = max(sizes)
    if largest == min(sizes) and largest:
        return b"".join((_COUNT.pack(1, count), *payloads))
    if largest < 1 << 16:
        return b"".join((_COUNT.pack(2, count), pack(f">{count}H", *sizes), *payloads))
    return b"".join((_COUNT.pack(3, count), pack(f">{count}I", *sizes), *payloads))


def count(body: Buffer) -> int:
    """The number of messages that a body claims to hold."""
    if not len(body):
        raise WireError("malformed", "an empty bundle")
    if body[0] == 0:
        return 1
    if body[0] > 3 or len(body) < 5:
        raise WireError("malformed", f"a bundle of form {body[0]}")
    number: int = _COUNT.unpack_from(body)[1]
    if not 0 < number <= MESSAGES_MAX:
        raise WireError("malformed", f"a bundle of {number} messages")
    return number


def split(body: Buffer) -> list[Buffer]:
    """The messages of a body."""
    messages = count(body)
    size = len(body)
    form = body[0]
    if form == 0:
        return [memoryview(body)[1:] if size > VIEW_FROM else bytes(body[1:])]
    if form == 1:
        each, rest = divmod(size - 5, messages)
        if rest or not each:
            raise WireError("malformed", f"{messages} equal messages in {size - 5} bytes")
        return _split_equal(body, messages, each)
    width = 2 if form == 2 else 4
    start = 5 + width * messages
    if start > size:
        raise WireError("malformed", "a bundle shorter than its lengths")
    sizes = unpack_from(f">{messages}{'H' if width == 2 else 'I'}", body, 5)
    ends = list(accumulate(sizes, initial=start))
    if ends[-1] != size:
        raise WireError("malformed", f"messages of {ends[-1]} bytes in a bundle of {size}")
    return [bytes(body[low:high]) for low, high in pairwise(ends)]


def _split_equal(body: Buffer, messages: int, each: int) -> list[Buffer]:
    out: list[Buffer] = []
    for first in range(0, messages, BLOCK):
        out += _equal(min(BLOCK, messages - first), each).unpack_from(body, 5 + first * each)
    return out


@lru_cache(maxsize=512)
def _equal(messages: int, each: int) -> Struct:
    return Struct(f"{each}s" * messages)
