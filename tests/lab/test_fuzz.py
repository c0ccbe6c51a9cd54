"""Mutations of all that is read: fixed seeds and fresh ones break no promise, and what breaks one is found and shrunk."""

import json
import os
import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random, randrange
from typing import Any

import pytest

import inga.cli.fuzz  # noqa: F401  # its help names the decoders as they are before any is planted
from inga import session
from inga.cli.main import main
from inga.corba.dissect import pcap
from inga.corba.wire import giop
from inga.corba.wire.giop import GiopFragment, KeyAddr, Request
from inga.lab.fuzz import broker, native, table
from inga.lab.fuzz.decoder import FuzzedDecoder
from inga.lab.fuzz.mutate import OCTETS_MAX, Form, Mutator, json_values, sample, shrunk, varints
from inga.lab.fuzz.search import CHUNK, octets_of, search, watched
from inga.lab.fuzz.table import DECODERS, Shares, chosen
from inga.model.errors import WireError
from inga.model.packet import Packet
from inga.sim.swarm import ORDERS
from inga.stack.stack import Stack, joined
from inga.wire import value
from inga.wire.packet import OUTSIDE, encode, source_of, tag_of, view_of
from inga.wire.told import said

RUNS = 1500
BASE = int(os.environ.get("INGA_SEED") or randrange(1 << 32, 1 << 40))
"""Where fresh seeds begin. A failure names its own; INGA_SEED repeats them all."""


@pytest.mark.parametrize("first", [0, pytest.param(BASE, id="fresh")])
def test_seeds(first: int) -> None:
    found = search([], RUNS, first)
    assert found.total == RUNS
    assert not found.faults, [(each.seed, each.finding.text, each.command) for each in found.faults]


# ---- what it found stays mended


def packed(content: Any) -> bytes:
    out = bytearray()
    value.put(out, content)
    return bytes(out)


def spans(**more: Any) -> bytes:
    span = {"traceId": "t", "spanId": "s", "startTimeUnixNano": 1, "endTimeUnixNano": 2, **more}
    content = {"resource": {"attributes": []}, "scopeSpans": [{"spans": [span]}]}
    return json.dumps({"resourceSpans": [content]}).encode()


def service(attribute: dict[str, Any]) -> bytes:
    return spans().replace(b'"attributes": []', b'"attributes": ' + json.dumps([attribute]).encode())


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def event(**more: Any) -> bytes:
    return json.dumps({"TracerIdentity": "a", "Tag": "t", "VectorClock": {"a": 1}, **more}).encode()


def pieces_of_a_datagram() -> bytes:
    """One datagram in five thousand pieces, of which one comes very often."""
    frame = pcap.record(0, ("127.0.0.1", 1), ("127.0.0.1", 2), b"x" * 64_000)[16:]
    return broker._pcap(
        [broker._pieces(frame, at, True) for at in (*range(5000), *[7] * 3000)], pcap.ETHERNET, "<"
    )


def pieces_of_a_message() -> bytes:
    """One message in eight thousand fragments, in few segments."""
    begin = giop.encode(Request(1, KeyAddr(b"k"), "op"), more=True)
    stream = begin + giop.encode(GiopFragment(1), more=True) * 8000
    frame = pcap.record(0, ("127.0.0.1", 1), ("127.0.0.1", 2), b"x" * 8)[16:]
    parts = range(0, len(stream), 32_000)
    return broker._pcap(
        [broker._segment(frame, at, stream[at : at + 32_000]) for at in parts], pcap.ETHERNET, "<"
    )


ROW = ["alice", 0, 1, 5, b"hello", 0.5]
MENDED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a stamp by a member whose index is no octet, of members whose indices are": (
        "packets",
        lambda: bytes.fromhex("00696e04000000000000833000000000000000000030000b") + bytes(30),
    ),
    "a sender of MIOP without its last number, where that is compiled": (
        "miop",
        lambda: bytes.fromhex(
            "4d494f501080003f00000000000000020000000c52654d494f502d6374726c00000000000000000d3130302e38302e3130302e30000000"
            "00000000010000000d3030372e30302e30302e302e00000000000072fa586f00000072fa586f0000"
        ),
    ),
    "a sender of MIOP with a letter, the same": (
        "miop",
        lambda: bytes.fromhex(
            "4d494f501080005f00000000000000020000000c52654d494f502d6374726c00000000000000000a302e302e302e302e6400000000000000"
            "0000000000000000300030000000000000000000000000000000000000000000300030000000000000000000000000000000000000000030"
            "003000000000000000000000000000"
        ),
    ),
    "a number of thousands of digits": ("told", lambda: b'{"do":"cut","dealt":{"' + b"9" * 4301 + b'":[]}}'),
    "a message that is a number, and so octets": ("packets/history", lambda: packed([[*ROW[:4], 1 << 40, 0.5]])),
    "one that no memory can hold": ("packets/history", lambda: packed([[*ROW[:4], 1 << 400, 0.5]])),
    "an age that is no float": ("packets/history", lambda: packed([[*ROW[:5], 1 << 5000]])),
    "a key that is no text": ("references", lambda: b"corbaloc:iiop:h/\xed"),
    "a host that ends in a URL": ("references/ior", lambda: broker_reference("a/b")),
    "wide text that begins as a mark": ("cdr", lambda: b"\x0b\0\0\0\0\6\xfe\xff\xfe\xff\0a"),
    "and as the other mark": ("cdr", lambda: b"\x0b\0\0\0\0\6\xfe\xff\xff\xfe\0a"),
    "an attribute by a key that is none": ("importers/otel-whole", lambda: service({"key": {}, "value": {"a": 1}})),
    "half a character in a span": ("importers/otel-whole", lambda: spans(spanId="\ud800")),
    "and in the name of a service": (
        "importers/otel-whole", lambda: service({"key": "service.name", "value": {"a": "\udfff"}}),
    ),
    "half a character in a clock": ("importers/shiviz-whole", lambda: b'a {"a":1,"\\ud800":1}\nx\n'),
    "a datagram in very many pieces": ("pcap", pieces_of_a_datagram),
    "a message in very many pieces": ("pcap", pieces_of_a_message),
}  # fmt: skip


def broker_reference(host: str) -> bytes:
    out = broker.Encoder.encapsulation()
    profile = broker.references.encode_iiop(broker.Iiop(host, 1, b"k"))
    broker.references.put_reference(out, broker.Reference("", (profile,)))
    return out.data()


@pytest.mark.parametrize("name", MENDED)
def test_what_is_mended_stays_mended(name: str) -> None:
    decoder, make = MENDED[name]
    with watched():
        assert DECODERS[decoder].judge(make(), measured=decoder == "packets/history").finding is None


@pytest.mark.parametrize("depth", range(900, 1000, 4))
def test_what_is_nested_as_deep_as_the_stack_is_refused(depth: int) -> None:
    """Whoever shows what it does not understand needs a little more of the stack than who has read it."""
    for name, octets in (
        ("traces/manifest", b'{"format":' + nested(depth) + b"}"),
        ("importers/tracechecker", event(Body=0).replace(b"0}", nested(depth) + b"}")),
        ("importers/tracechecker", nested(depth)),
    ):
        assert DECODERS[name].judge(octets).finding is None, name
    assert (
        DECODERS["importers/otel-whole"]
        .judge(spans(name=0).replace(b'"name": 0', b'"name": ' + nested(depth)))
        .finding
        is None
    )


def test_what_was_passed_on_within_what_was_passed_on_is_not_read() -> None:
    """Three hundred datagrams, one in the other, are deeper than the stack of Python."""
    arrival, stack = next(
        (each, stack)
        for each in native.arrivals()
        if each.members > 2 and each.stack is not None and native._words_at(each.datagram) > 0
        if isinstance(stack := pickle.loads(each.stack), Stack) and view_of(each.datagram) != OUTSIDE
    )
    datagram, src = native._sealed(arrival.datagram), source_of(arrival.datagram)
    for _ in range(300):
        by = next(each for each in range(arrival.members) if each not in (src, stack.me))
        packet = Packet(by, view_of(arrival.datagram), datagram, kind=arrival.datagram[3])
        packet.ext = said("passed", member=src, needs=False)
        datagram, src = joined(encode(packet, tag_of(arrival.datagram))), by
    stack.receive([(datagram, arrival.address)], now=arrival.now)


# ---- the samples


SESSION = Path(session.__file__).parent
HEARD = re.compile(r'(?:case |\.do == |\| )"([a-z]+)"')
"""How the session tells words apart."""

ODD = ("packets/history", "secure/certificate")
"""Some samples of these are of another kind than what is asked for."""


@pytest.mark.parametrize("name", DECODERS)
def test_decoders_accept_what_encoders_made(name: str) -> None:
    decoder = DECODERS[name]
    for each in decoder.samples[:: max(1, len(decoder.samples) // 30)]:
        outcome = decoder.judge(each.octets)
        assert outcome.finding is None
        assert outcome.is_accepted or name in ODD, each.octets


def test_samples_are_of_every_order_and_hold_every_word() -> None:
    assert set(native.PLANS) == set(ORDERS)
    kinds = {each.datagram[3] for each in native.arrivals() if each.datagram.startswith(b"in")}
    assert len(kinds) >= 6
    words = {json.loads(each.octets)["do"] for each in DECODERS["told"].samples}
    assert words >= set(native.WORDS)
    heard = {word for path in SESSION.glob("*.py") for word in HEARD.findall(path.read_text())}
    assert len(heard) > 20
    assert not heard - set(native.WORDS), "these have no sample: add them to `WORDS`"


def test_members_in_every_situation_hear_every_word_with_any_text_in_it() -> None:
    situations: dict[Any, set[str]] = {}
    for each in DECODERS["members/texts"].samples:
        words = json.loads(each.octets[2:])
        who = pickle.loads(native.arrivals()[int.from_bytes(each.octets[:2])].stack or b"")
        situations.setdefault(native._situation(who), set()).add(words["do"])
        for field in each.fields:
            old = each.octets[field.start : field.end]
            assert field.form is Form.TEXT and isinstance(json.loads(old), str | list), old
    assert {*situations} >= {"newcomer", "homeless", "closing", True, False}
    assert all(words >= set(native.WORDS) for words in situations.values())
    tried = b"".join(octets_of("members/texts", seed) for seed in range(300))
    assert all(odd in tried for odd in (b"\\ud800", b"\\u0000", b"\\u001b", b'""', b"x" * 5000))


def test_fields_are_where_they_are_said_to_be() -> None:
    made = sample(b'{"a": [1, {"b": "x"}], "c": null}', json_values)
    values = [made.octets[each.start : each.end] for each in made.fields if each.form is Form.VALUE]
    assert b'{"b": "x"}' in values and b"null" in values and b"1" in values and b'"b"' in values
    items = [made.octets[each.start : each.end] for each in made.fields if each.form is Form.ITEM]
    assert items == [b'"a": [1, {"b": "x"}],', b"1,"]
    assert [made[:2] for made in varints(b"\x05\x80\x01\x7f")] == [(0, 1), (1, 3), (3, 4)]


def test_shares_follow_weights_and_the_same_seed_is_the_same_mutation() -> None:
    decoders = chosen(["packets"])
    shares = Shares(decoders)
    counts = {each.name: 0 for each in decoders}
    for seed in range(20_000):
        counts[shares.decoder(seed).name] += 1
    total = sum(each.weight for each in decoders)
    for each in decoders:
        assert counts[each.name] / 20_000 == pytest.approx(each.weight / total, rel=0.1)
    assert octets_of("told", 7) == octets_of("told", 7) != octets_of("told", 8)
    assert all(len(octets_of("packets/co", seed)) <= OCTETS_MAX for seed in range(3000))


# ---- it finds what is wrong

NUMBERS = [sample(bytes(range(1, 9)), varints)]


def raises(error: type[Exception], octets: bytes) -> int:
    if b"\0" in octets:
        raise error("x")
    return 0


def hoards(octets: bytes) -> int:
    return len(bytes(1 << 24)) if b"\0" in octets else 0


def dawdles(octets: bytes) -> int:
    return sum(range(400_000)) if b"\0" in octets else 0


def forgets(found: bytes) -> bytes:
    return found.replace(b"\0", b"")


PLANTED: dict[str, FuzzedDecoder] = {
    "KeyError in raises": FuzzedDecoder("planted", lambda: NUMBERS, partial(raises, KeyError)),
    "slow": FuzzedDecoder("planted", lambda: NUMBERS, dawdles, seconds=0.001),
    "memory": FuzzedDecoder("planted", lambda: NUMBERS, hoards),
    "unstable": FuzzedDecoder("planted", lambda: NUMBERS, lambda octets: octets, again=forgets),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_broken_promise_is_found_and_shrunk(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table.DECODERS, "planted", PLANTED[kind])
    monkeypatch.setattr(table, "FAMILIES", ("planted",))
    monkeypatch.setattr("inga.lab.fuzz.search.MEASURED_ONE_IN", 1 if kind == "memory" else 1000)
    (fault,) = search(["planted"], 20).faults
    assert (fault.finding.kind, fault.octets) == (kind, b"\0")
    assert fault.command == "inga fuzz --replay planted:00"
    assert main(["fuzz", "--replay", "planted:00"]) == 1
    assert main(["fuzz", "--replay", "planted:01"]) == 0


def test_documented_errors_are_none() -> None:
    outcome = FuzzedDecoder("planted", lambda: NUMBERS, lambda octets: raises(Refused, octets)).judge(b"\0")
    assert outcome == (False, None)


class Refused(WireError):
    pass


def test_who_asks_for_very_much_memory_gets_none() -> None:
    with watched():
        finding = FuzzedDecoder("planted", lambda: NUMBERS, lambda octets: bytes(1 << 40)).judge(b"").finding
    assert finding is not None and finding.kind.startswith("MemoryError")


def test_mutations_change_numbers_and_sizes_and_mix_samples() -> None:
    one, other = sample(b"\1\2\3\4", varints), sample(b"\x41\x42\x43\x44", varints)
    mutator = Mutator([one, other])
    made = {mutator.mutate(Random(seed)) for seed in range(3000)}
    assert any(each.startswith(b"\1\2") and each.endswith(b"\x44") for each in made)
    assert any(len(each) < 4 for each in made) and any(len(each) > 1024 for each in made)
    assert any(b"\xff\xff\xff\xff\x0f" in each for each in made), "a number at the end of 32 bits"


def test_shrinking_ends_with_what_is_needed() -> None:
    assert shrunk(bytes(range(200)), lambda each: {7, 150} <= {*each}) == b"\7\x96"


# ---- the command


def test_counts_are_printed_and_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--only", "packets/co,packets/sco", "--runs", "300", "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == sum(each["runs"] for each in told["decoders"].values()) == 300
    assert set(told["decoders"]) == {"packets/co", "packets/sco"}
    assert main(["fuzz", "--only", "packets/co", "--runs", "50", "--quiet"]) == 0
    text = capsys.readouterr().out
    assert "50 mutations from seed 0: nothing but documented errors" in text
    assert text.splitlines()[1].split()[:2] == ["packets/co", "50"]


def test_processes_find_the_same_as_one() -> None:
    names = ["packets/co"]
    alone, together = search(names, 2 * CHUNK, 5), search(names, 2 * CHUNK, 5, jobs=2)
    assert (alone.runs, alone.accepted) == (together.runs, together.accepted)


@pytest.mark.parametrize(
    "words",
    [
        ["--only", "nothing"],
        ["--runs", "0"],
        ["--jobs", "0"],
        ["--replay", "told:xy"],
        ["--replay", "cdr2:00"],
    ],
)
def test_bad_use(words: list[str]) -> None:
    assert main(["fuzz", *words]) == 2


def test_members_that_close_a_view_are_told_cuts_that_deal_out_and_that_say_what_was_missed() -> None:
    """What can be spoiled in them has to be there, for somebody who takes it: one that waits for packets, one that goes on."""
    taken = set()
    for arrival in native.arrivals():
        if arrival.address or arrival.stack is None or b'"do":"cut"' not in arrival.datagram:
            continue
        stack: Stack = pickle.loads(arrival.stack)
        stack.receive([(native._sealed(arrival.datagram), "")], now=arrival.now)
        layer = stack.layer("session")
        assert isinstance(layer, session.session.Session)
        closing = layer.changes.closing
        if closing is not None and closing.cut is not None:
            taken.add((bool(closing.cut.dealt), bool(closing.cut.missed), closing.reached))
    assert taken >= {(True, False, False), (False, True, True)}
