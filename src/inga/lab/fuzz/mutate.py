"""Samples whose fields are known, and their mutations.

A field is a number, a text, a JSON value or a run of octets, at a known place. A mutation changes some fields, each in a
way that fits its form: a number is replaced by 0, its neighbours, its bounds or another field's value; a JSON value by one of another
type; any field is dropped, doubled, repeated, or exchanged for one of another sample. Some mutations ignore all structure:
they flip bits, cut off the end, or join two samples.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from random import Random
from typing import Any, Literal, NamedTuple

from inga.wire import varint

OCTETS_MAX = 1 << 16
"""The most octets of a mutation: those of the largest datagram."""

LARGE_FROM = 1 << 10
"""The smallest size limit, in octets, of a mutation with many repetitions. There are few of these, since they take long."""

LARGE_ONE_IN = 300
"""One mutation in this many has many repetitions."""

EDITS = (1, 1, 1, 1, 2, 2, 3, 5)
"""Numbers of fields to change at once; one is drawn."""


class Form(Enum):
    """The form of a field, on which its mutations depend."""

    VARINT = auto()
    BIG = auto()  # a big-endian number
    LITTLE = auto()  # a little-endian number
    DECIMAL = auto()  # a number as text
    VALUE = auto()  # a JSON value
    ITEM = auto()  # an item of a JSON list or object, with the comma after it
    TEXT = auto()  # a JSON string, or an empty list, which may be for strings
    WORD = auto()  # a word or sign of a text
    OCTETS = auto()


class Field(NamedTuple):
    """The place and form of a field in a sample."""

    start: int
    end: int
    form: Form


class FuzzSample(NamedTuple):
    """Octets that an encoder of inga made, and the fields in them."""

    octets: bytes
    fields: tuple[Field, ...]


FieldFinder = Callable[[bytes], list[Field]]
"""Finds the fields of a sample."""

Mend = Callable[[bytearray, bytes], None]
"""Corrects the outermost length in mutated octets, so that deeper fields are reached; also gets the sample before its mutation."""


# ---- layouts


def varints(data: bytes, start: int = 0, end: int | None = None) -> list[Field]:
    """Find numbers in groups of seven bits, one after the other."""
    fields, at = [], start
    for place in range(start, len(data) if end is None else end):
        if data[place] < 0x80:
            fields.append(Field(at, place + 1, Form.VARINT))
            at = place + 1
    return fields


def words(data: bytes, form: Form, start: int = 0, size: int = 4) -> list[Field]:
    """Find numbers of one size, one after the other."""
    return [Field(at, at + size, form) for at in range(start, len(data) - size + 1, size)]


_TOKEN = re.compile(rb"[0-9]+|[A-Za-z_]+|[^0-9A-Za-z_\s]|\s+")
_LINE = re.compile(rb"[^\n]*\n")


def tokens(data: bytes) -> list[Field]:
    """Find the words, numbers and signs of a text, and its lines."""
    fields = [
        Field(found.start(), found.end(), Form.DECIMAL if found[0].isdigit() else Form.WORD)
        for found in _TOKEN.finditer(data)
    ]
    return fields + [Field(found.start(), found.end(), Form.OCTETS) for found in _LINE.finditer(data)]


def json_values(data: bytes) -> list[Field]:
    """Find the JSON values at every depth, in one document or one a line, and the items of lists and objects."""
    fields: list[Field] = []
    at = 0
    for line in data.split(b"\n") if data.count(b"\n{") else [data]:
        if line.strip():
            _JsonFields(line.decode(), at, fields).value(0)
        at += len(line) + 1
    return fields


class _JsonFields:
    """Finds the values in an ASCII text that is valid JSON."""

    def __init__(self, text: str, offset: int, fields: list[Field]) -> None:
        self._text = text
        self._offset = offset
        self._fields = fields
        self._scan = json.JSONDecoder().raw_decode

    def value(self, at: int) -> int:
        """Add the value at `at` and all values in it to the fields, and return where it ends."""
        at = self._space(at)
        opens = self._text[at]
        end = self._items(at) if opens in "[{" else self._scan(self._text, at)[1]
        self._add(at, end, Form.VALUE)
        return end

    def _items(self, at: int) -> int:
        is_object = self._text[at] == "{"
        at = self._space(at + 1)
        while self._text[at] not in "]}":
            start = at
            if is_object:
                at = self._space(self.value(at)) + 1
            at = self._space(self.value(at))
            if self._text[at] == ",":
                at += 1
                self._add(start, at, Form.ITEM)
                at = self._space(at)
        return at + 1

    def _space(self, at: int) -> int:
        while self._text[at].isspace():
            at += 1
        return at

    def _add(self, start: int, end: int, form: Form) -> None:
        self._fields.append(Field(self._offset + start, self._offset + end, form))


def json_texts(data: bytes) -> list[Field]:
    """Find the JSON strings at every depth, keys included, and empty lists, which may be for strings."""
    return [
        each._replace(form=Form.TEXT)
        for each in json_values(data)
        if each.form is Form.VALUE and data[each.start : each.end].startswith((b'"', b"[]"))
    ]


def sample(octets: bytes, layout: FieldFinder) -> FuzzSample:
    """Return a sample with its fields, sorted by their starts."""
    return FuzzSample(octets, tuple(sorted(layout(octets), key=lambda field: (field.start, field.end))))


# ---- mutations

_TEXTS = tuple(
    text.encode()
    for text in (
        "null", "true", "false", "0", "-1", "1", "0.5", "1e999", "-1e999", "NaN", "Infinity", "2147483647", "2147483648",
        "4611686018427387904", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1" + "0" * 30,
        '""', '"a"', '"0"', '"-1"', '"\\ud800"', '"\\u0000"', '"\\ud83d\\ude00"', '"\u00e9"', '"\u0663"', "[]", "{}", "[[]]",
        '{"a":1}', '{"":[]}', "[1,2]", '["a",1,"b"]', '[["a",1,"b"]]', "[null]", '{"0":[]}', '{"0":[[1]]}', "[[1,2],[3,4]]",
        '"' + "x" * 5000 + '"', "9" * 5000, '{"' + "9" * 5000 + '":[]}', "[" * 300 + "]" * 300, "[" * 100_000,
        '{"a":' * 600 + "1" + "}" * 600,
    )
)  # fmt: skip
"""JSON values of every type, and of unusual sizes."""

_ODD_TEXTS = tuple(
    b'"' + text.encode() + b'"'
    for text in (
        "", "\\ud800", "\\udfff", "a\\ud800b", "\\ud83d\\ude00", "\\u0000", "a\\u0000b", "\\u001b[2J\\u0007", "\\r\\n", "\\u0085\\u2028\\u202e",
        " ", "\u00e9", "\u0663", "0", "-1", "%", "%ud800", "{}", "{0}", "%s", ":", "a:0", "a:1", "a:99999", ":1", "a:\u0663", "[::1]:1",
        "a\\u0000:1", "\\ud800:1", "." * 70 + ":1", "x" * 70 + ":1", "x" * 300, "x" * 4096, "x" * 5000, "\u00e9" * 4096, "\\ud800" * 4096,
        "0" * 4096, "9" * 5000, "a:" + "1" * 4000, "\\u0000" * 4096,
        "file:x", "../../x", "/", "a b", "a\\tb", "fifo", "vector", "causal", "total", "object", "fifo with matrix=True", "nonsense",
    )
)  # fmt: skip
"""Unusual JSON strings: empty, very long, with lone surrogates, terminal escapes or null characters, and some that look like names,
addresses or paths."""

_WORDS = (b"", b"\0", b"\xff", b"\xed\xa0\x80", b"%", b"%00", b"%ud800", b"-", b":", b"/", b",", b";", b"[", b"]", b"\n", b"\r",
          b"\xc2\x85", b"\xe2\x80\xa8", "\u0663".encode(), b"a" * 300, b"{", b"}", b'"', b"\\")  # fmt: skip
"""Unusual parts of a text."""


class Mutator:
    """Makes mutations of samples. A random generator in the same state gives the same mutation."""

    def __init__(self, samples: Sequence[FuzzSample], mend: Mend | None = None) -> None:
        assert samples
        self._samples = samples
        self._mend = mend

    def mutate(self, rng: Random) -> bytes:
        """Return one mutation of one sample."""
        chance = rng.random
        samples = self._samples
        octets, fields = samples[int(chance() * len(samples))]
        if int(chance() * LARGE_ONE_IN) == 0:
            return self._grown(rng, octets, fields)
        data = bytearray(octets)
        way = chance()
        if fields and way < 0.8:
            self._edit(rng, data, octets, fields)
        if way > 0.7 or not fields:
            self._spoil(rng, data)
        if self._mend is not None and chance() < 0.5:
            self._mend(data, octets)
        return bytes(data[:OCTETS_MAX])

    def _edit(self, rng: Random, data: bytearray, octets: bytes, fields: tuple[Field, ...]) -> None:
        """Change some fields, the last one first, so that the places of the others stay as they are."""
        chance = rng.random
        count = EDITS[int(chance() * len(EDITS))]
        chosen = [fields[int(chance() * len(fields))] for _ in range(count)]
        if count > 1:
            chosen.sort(reverse=True)
        before = len(octets) + 1
        for field in chosen:
            if field.end <= before:
                data[field.start : field.end] = self._changed(rng, octets, field)
                before = field.start

    def _changed(self, rng: Random, octets: bytes, field: Field) -> bytes:
        chance = rng.random
        start, end, form = field
        old = octets[start:end]
        way = chance()
        if way < 0.1 or (form is Form.ITEM and way < 0.5):
            return b"" if chance() < 0.5 else old * (2 + int(chance() * 3))
        if way < 0.2:
            return self._other(rng, form) or old
        match form:
            case Form.VARINT:
                return _varint(rng, old)
            case Form.BIG | Form.LITTLE:
                order: Literal["big", "little"] = "big" if form is Form.BIG else "little"
                size = len(old)
                return _near(rng, int.from_bytes(old, order), 8 * size).to_bytes(size, order)
            case Form.DECIMAL:
                return _decimal(rng, old)
            case Form.VALUE:
                if old.isdigit() and chance() < 0.5:
                    return _decimal(rng, old)
                if chance() < 0.03:  # about as deep as Python's limit of recursion
                    depth = 850 + int(chance() * 150)
                    return b"[" * depth + b"]" * depth
                return _TEXTS[int(chance() * len(_TEXTS))]
            case Form.TEXT:
                text = _ODD_TEXTS[int(chance() * len(_ODD_TEXTS))]
                return b"[" + text + b"]" if old.startswith(b"[") else text
            case Form.WORD:
                return _WORDS[int(chance() * len(_WORDS))]
            case _:
                return bytes(_flipped(rng, bytearray(old)))

    def _other(self, rng: Random, form: Form) -> bytes:
        """Return a field of the same form from a random sample, or nothing if a few tries find none."""
        octets, fields = self._samples[int(rng.random() * len(self._samples))]
        for _ in range(4):
            start, end, found = fields[int(rng.random() * len(fields))] if fields else (0, 0, form)
            if found is form:
                return octets[start:end]
        return b""

    def _spoil(self, rng: Random, data: bytearray) -> None:
        """Change the octets without regard to structure."""
        chance = rng.random
        size = len(data)
        at = int(chance() * size)
        match int(chance() * 9):
            case 0:
                del data[at:]
            case 1:
                data += (
                    rng.randbytes(1 + int(chance() * 16)) if chance() < 0.5 else bytes(1 + int(chance() * 16))
                )
            case 2:
                del data[at : at + 1 + int(chance() * 8)]
            case 3:
                data[at:at] = rng.randbytes(1 + int(chance() * 8))
            case 4:
                data[at:at] = data[at : at + 1 + int(chance() * 32)]
            case 5:
                other = self._samples[int(chance() * len(self._samples))].octets
                data[at:] = other[at if chance() < 0.5 else int(chance() * len(other)) :]
            case 6:
                if size:
                    data[at] = (0, 1, 0x7F, 0x80, 0xFF)[int(chance() * 5)]
            case _:
                _flipped(rng, data)

    def _grown(self, rng: Random, octets: bytes, fields: tuple[Field, ...]) -> bytes:
        """Return the sample with some of its fields repeated very often, which reveals decoders whose time or memory is quadratic."""
        chance = rng.random
        if fields:
            first = int(chance() * len(fields))
            last = min(first + int(chance() * 8), len(fields) - 1)
            start, end = fields[first].start, max(fields[first].end, fields[last].end)
        else:
            start = int(chance() * len(octets))
            end = start + 1 + int(chance() * 32)
        part = octets[start:end] or b"\0"
        room = min(OCTETS_MAX, LARGE_FROM << int(chance() * 7)) - len(octets)
        data = bytearray(octets)
        data[end:end] = part * max(1, room // len(part))
        if chance() < 0.7:
            number = min(len(fields) - 1, first - 1) if fields and first else -1  # may be their count
            if number >= 0:
                field = fields[number]
                data[field.start : field.end] = self._changed(rng, octets, field)
        if self._mend is not None:
            self._mend(data, octets)
        return bytes(data[:OCTETS_MAX])


def _near(rng: Random, value: int, bits: int) -> int:
    """Return a number that decoders often fail to consider: near the given one or near bounds."""
    chance = rng.random
    top = 1 << bits
    match int(chance() * 14):
        case 0:
            return 0
        case 1:
            return 1
        case 2:
            return top - 1
        case 3:
            return top - 2
        case 4:
            return top >> 1
        case 5:
            return (top >> 1) - 1
        case 6 | 7:
            return (value + 1) % top
        case 8:
            return (value - 1) % top
        case 9:
            return value * 2 % top
        case 10:
            return value ^ 1 << int(chance() * bits)
        case 11 | 12:
            return int(chance() * 16) % top  # as small as codes of kinds are
        case _:
            return int(chance() * 300) % top


def _varint(rng: Random, old: bytes) -> bytes:
    value = 0
    for place, octet in enumerate(old):
        value |= (octet & 0x7F) << 7 * place
    bits = (7, 14, 16, 20, 31, 32, 62, 63, 64, 70)[int(rng.random() * 10)]
    out = bytearray()
    varint.put(out, _near(rng, value, bits))
    if rng.random() < 0.03:  # longer than it needs to be
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def _decimal(rng: Random, old: bytes) -> bytes:
    value = int(old) if len(old) < 20 else 0
    text = b"%d" % _near(rng, value, (8, 16, 31, 32, 63, 64, 100)[int(rng.random() * 7)])
    way = rng.random()
    return b"-" + text if way < 0.1 else text * 300 if way < 0.13 else b"0" + text if way < 0.17 else text


def _flipped(rng: Random, data: bytearray) -> bytearray:
    if data:
        for _ in range(EDITS[int(rng.random() * len(EDITS))]):
            data[int(rng.random() * len(data))] ^= 1 << int(rng.random() * 8)
    return data


def shrunk(octets: bytes, fails: Callable[[bytes], bool], tries: int = 3000) -> bytes:
    """Return fewer octets that still fail: leave out parts, the larger ones first, then replace octets by zeros."""
    for candidate_of in (_shorter, _plainer):
        is_done = False
        while not is_done and tries > 0:
            is_done = True
            for candidate in candidate_of(octets):
                tries -= 1
                if tries <= 0:
                    break
                if fails(candidate):
                    octets, is_done = candidate, False
                    break
    return octets


def _shorter(octets: bytes) -> Iterator[bytes]:
    part = len(octets)
    while part := part // 2:
        for start in range(0, len(octets), part):
            yield octets[:start] + octets[start + part :]
    if len(octets) == 1:
        yield b""


def _plainer(octets: bytes) -> Iterator[bytes]:
    for at, octet in enumerate(octets):
        for plain in (0, ord("0")):
            if octet not in (0, ord("0")):
                yield octets[:at] + bytes((plain,)) + octets[at + 1 :]


def fields_of(value: Any) -> Any:
    """Convert a result for comparison with another, so that NaN equals NaN at any depth of lists, tuples and dicts."""
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, list | tuple):
        return (
            type(value)(map(fields_of, value)) if type(value) in (list, tuple) else [*map(fields_of, value)]
        )
    if isinstance(value, dict):
        return [(fields_of(key), fields_of(each)) for key, each in value.items()]
    return value
