"""`inga dissect`: the vectors of the specification in a capture file, read by us and by tshark."""

import io
import json
import struct
import subprocess
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.cli.main import main
from inga.corba.dissect.dissector import Dissector, line
from inga.corba.dissect.pcap import HEADER, UdpDatagram, record
from inga.corba.wire import giop, miop
from inga.corba.wire.giop import KeyAddr, Reply, Request

from .listener import Capture
from .tshark import needs_tshark, same

VECTORS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "scenarios" / "miop" / "vectors.json").read_text()
)
NAMES = ("V1", "V2", "V3", "V4", "V5", "V6", "V7")
SOURCE, TARGET = ("127.0.0.1", 40000), ("225.6.7.8", 12345)


def vectors(*names: str) -> list[bytes]:
    return [bytes.fromhex(each) for name in names for each in VECTORS[name]]


def capture(path: Path, packets: list[bytes]) -> str:
    records = (record(10 + number / 4, SOURCE, TARGET, each) for number, each in enumerate(packets))
    path.write_bytes(HEADER + b"".join(records))
    return str(path)


def dissected(path: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["dissect", path, "--json", *options]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def test_the_vectors_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = capture(tmp_path / "vectors.pcap", vectors(*NAMES))
    assert main(["dissect", path]) == 0
    captured = capsys.readouterr()
    way = "127.0.0.1:40000 > 225.6.7.8:12345"
    assert captured.out.splitlines() == [
        f"     1    0.000000  {way}  MIOP 127.0.0.1#1 fragment 1 of 1, 144 octets",
        "                     GIOP 1.2 request 1: oneway greeting_oneway to group TestDomain/1, body of 16 octets",
        f"     2    0.250000  {way}  MIOP 127.0.0.1#2 fragment 1 of 1, 144 octets",
        "                     GIOP 1.2 request 2: oneway greeting_oneway to group TestDomain/1 version 7, "
        "body of 16 octets",
        f"     3    0.500000  {way}  MIOP 127.0.0.1#3 fragment 1 of 3, 160 octets",
        f"     4    0.750000  {way}  MIOP 127.0.0.1#4 fragment 2 of 3, 160 octets",
        f"     5    1.000000  {way}  MIOP 127.0.0.1#5 fragment 3 of 3, last, 97 octets",
        "                     GIOP 1.2 request 3: oneway put to group TestDomain/1, body of 305 octets, "
        "from 3 fragments",
        f"     6    1.250000  {way}  MIOP 000102030405060708090a0b fragment 1 of 1, 120 octets",
        "                     GIOP 1.2 request 4: oneway shutdown to group TestDomain/1",
        f"     7    1.500000  {way}  ReMIOP NACK 127.0.0.2 misses 127.0.0.1#4, 127.0.0.1#5",
        f"     8    1.750000  {way}  ReMIOP STATE 127.0.0.2 has all up to 127.0.0.1#5, 127.0.0.3#4294967296",
        f"     9    2.000000  {way}  MIOP 127.0.0.1#6 fragment 1 of ?, last, 144 octets",
        "                     GIOP 1.2 request 1: oneway greeting_oneway to group TestDomain/1, body of 16 octets",
    ]
    assert captured.err == "9 datagrams: 7 data, 5 messages, 1 nack, 1 state\n"


def with_link(link: int, packets: list[bytes]) -> bytes:
    """A capture whose frames are said to be of another link layer."""
    records = (record(10, SOURCE, TARGET, each) for each in packets)
    return HEADER[:-4] + link.to_bytes(4, "little") + b"".join(records)


@pytest.mark.parametrize("options", [(), ("--json",), ("--quiet",)])
def test_a_link_layer_that_is_not_known_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    path = tmp_path / "odd.pcap"
    path.write_bytes(with_link(147, vectors("V1", "V2")))
    assert main(["dissect", str(path), *options]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert (
        "odd.pcap: 2 frames are of link type 147, which is not known here; inga reads Ethernet"
        in captured.err
    )


def test_frames_that_are_not_looked_into_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interfaces of a pcapng file may differ."""

    def block(kind: int, body: bytes) -> bytes:
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    def frame(interface: int, octets: bytes) -> bytes:
        head = struct.pack("<IIIII", interface, 0, 0, len(octets), len(octets))
        return block(6, head + octets + bytes(-len(octets) % 4))

    ethernet = record(10, SOURCE, TARGET, vectors("V1")[0])[16:]
    path = tmp_path / "mixed.pcapng"
    path.write_bytes(
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        + block(1, struct.pack("<HHI", 1, 0, 0))
        + block(1, struct.pack("<HHI", 147, 0, 0))
        + frame(0, ethernet)
        + 3 * frame(1, ethernet)
    )
    assert main(["dissect", str(path)]) == 0
    expected = "1 datagrams: 1 data, 1 messages; 3 frames are of link type 147, which is not known here\n"
    assert capsys.readouterr().err == expected
    assert dissected(str(path), capsys)["unread"] == {"147": 3}


def test_the_vectors_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = dissected(capture(tmp_path / "vectors.pcap", vectors(*NAMES)), capsys)
    assert content["counters"] == {"data": 7, "messages": 5, "nack": 1, "state": 1}
    assert content["packets"][6]["control"] == {
        "kind": "NACK",
        "sender": "127.0.0.2",
        "entries": [["127.0.0.1", 4], ["127.0.0.1", 5]],
    }
    put = content["messages"][2]
    assert put["frames"] == [3, 4, 5] and put["operation"] == "put" and put["size"] == 405
    assert put["target"]["group"] == {"domain": "TestDomain", "id": 1, "ref_version": 0}
    assert put["target"]["address"] == "225.6.7.8:12345"
    assert bytes.fromhex(put["body"])[4:] == b"x" * 300 + b"\0"


@pytest.mark.interop
@needs_tshark
def test_tshark_reads_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "vectors.pcap"
    capture(path, vectors(*NAMES))
    assert len(same(path, capsys)["packets"]) == 9


@pytest.mark.interop
@needs_tshark
@pytest.mark.parametrize("form", ["pcapng", "pcap", "nsecpcap"])
def test_files_that_tshark_writes(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = capture(tmp_path / "ours.pcap", vectors(*NAMES)), str(tmp_path / "theirs")
    subprocess.run(
        ["tshark", "-r", ours, "-F", form, "-w", theirs], check=True, capture_output=True, timeout=60
    )
    assert {**dissected(theirs, capsys), "file": ours} == dissected(ours, capsys)


@pytest.fixture(scope="module")
def captured_live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a group of processes said by ReMIOP, with loss and with messages of several fragments."""
    path = tmp_path_factory.mktemp("live") / "live.pcap"
    with Capture(path) as capture, redirect_stdout(io.StringIO()) as out:
        run = "live --order remiop --members 3 --messages 20 --size 2500 --loss 0.1 --json --quiet --seed 3"
        assert main([*run.split(), "--via", capture.via]) == 0
    assert json.loads(out.getvalue())["violations"] == 0
    return path


@pytest.mark.network
@pytest.mark.interop
@pytest.mark.xdist_group("captured")
@needs_tshark
def test_tshark_reads_live_traffic_as_we_do(captured_live: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = same(captured_live, capsys)
    kinds = {each["control"]["kind"] for each in content["packets"] if "control" in each}
    counters = content["counters"]
    assert kinds == {"NACK", "STATE"}
    assert set(counters) == {"data", "dup", "messages", "nack", "state"}  # dup: the repairs
    packets = [each["packet"] for each in content["messages"]]
    assert {each["src"] for each in packets} == {0, 1, 2}
    assert sum(each["octets"] for each in packets if not each["kind"]) >= 3 * 20 * 2500
    assert max(len(each["frames"]) for each in content["messages"]) > 1


@pytest.mark.network
@pytest.mark.xdist_group("captured")
def test_live_traffic_as_text(captured_live: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dissect", str(captured_live), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert " ReMIOP NACK 127." in out and " ReMIOP STATE 127." in out and "refused" not in out
    assert " octets of data by member 2 in view 1, from " in out


def test_fragments_in_any_order_twice_or_never(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = vectors("V3")
    content = dissected(capture(tmp_path / "a.pcap", [third, first, first, second, second]), capsys)
    assert content["messages"][0]["frames"] == [1, 2, 4] and content["counters"]["dup"] == 2
    assert [each.get("note") for each in content["packets"]] == [None, None, "dup", None, "dup"]
    content = dissected(capture(tmp_path / "b.pcap", [third, first]), capsys)
    assert not content["messages"] and content["incomplete"] == 1


def test_what_a_receiver_would_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, other = vectors("V1", "V5")
    key = KeyAddr(b"\x1b[2J")
    messages = [
        giop.encode(Request(9, key, "evil\x1b[2J")),
        giop.encode(Reply(9)),
        b"no message at all",
        giop.encode(Request(9, key, "x"))[:-1],
    ]
    packets = [
        good[:-1],
        good[:15],
        good[:4] + b"\x20" + good[5:],
        other[:52] + b"\xff" + other[53:],
        *(each for number, text in enumerate(messages) for each in miop.split(text, miop.text_id(9, number))),
        b"another protocol",
    ]
    path = capture(tmp_path / "bad.pcap", packets)
    content = dissected(path, capsys)
    refused = ["bad_length", "short", "bad_version", "bad_control"]
    assert [each.get("refused") for each in content["packets"]] == [*refused, None, None, None, None]
    assert [each["refused"] for each in content["messages"]] == [
        "twoway_rejected",
        "unsupported_giop",
        "bad_giop",
        "bad_giop_size",
    ]
    assert content["datagrams"] == 9
    with_port = dissected(path, capsys, "--port", "12345")
    assert with_port["packets"][-1]["refused"] == "short"
    assert main(["dissect", path, "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "refused, bad_length: 144, in a datagram of 175 octets" in out
    assert r"request 9: evil\x1b[2J to key 1b5b324a" in out and "\x1b" not in out
    assert "message of 17 octets; refused, bad_giop" in out


def test_a_capture_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    octets = HEADER + record(0, SOURCE, TARGET, vectors("V1")[0])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(octets)))
    assert len(dissected("-", capsys)["packets"]) == 1


def test_a_capture_without_miop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dissect", capture(tmp_path / "a.pcap", [b"hello"])]) == 0
    captured = capsys.readouterr()
    assert not captured.out and captured.err == "1 datagrams: no MIOP\n"


def test_a_frame_that_was_not_captured_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = record(0, SOURCE, TARGET, vectors("V1")[0])
    path = tmp_path / "cut.pcap"
    path.write_bytes(HEADER + whole[:8] + (80).to_bytes(4, "little") + whole[12:96])
    content = dissected(str(path), capsys)
    assert content["packets"][0]["refused"] == "cut"


def test_a_capture_that_ends_too_early_is_shown_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.pcap"
    capture(path, vectors("V1", "V2"))
    path.write_bytes(path.read_bytes()[:-1])
    for option in ("--quiet", "--json"):
        assert main(["dissect", str(path), option]) == 2
        captured = capsys.readouterr()
        assert "greeting_oneway" in captured.out
        assert captured.err == f"inga dissect: {path}: the file ends in frame 2: the capture was cut short\n"


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(vectors(*NAMES)), st.integers(0, 400), st.binary(max_size=5)), max_size=12
    )
)
def test_whatever_is_captured_can_be_shown(changes: list[tuple[bytes, int, bytes]]) -> None:
    dissector = Dissector()
    for number, (packet, at, octets) in enumerate(changes):
        changed = packet[:at] + octets + packet[at + len(octets) :]
        for entry in dissector.take(UdpDatagram(number, 0.5, SOURCE, TARGET, changed, False)):
            assert json.dumps(entry) and line(entry, 0.5).isprintable()


@pytest.mark.parametrize(
    "contents, why",
    [(b"", "no capture file"), (b"PK\3\4whatever", "no capture file"), (HEADER[:10], "ends in its header")],
)
def test_files_that_are_no_captures(
    contents: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_bytes(contents)
    for option in ("--quiet", "--json"):
        assert main(["dissect", str(tmp_path / "x"), option]) == 2
        captured = capsys.readouterr()
        assert why in captured.err and captured.err.count("\n") == 1 and not captured.out


@pytest.mark.parametrize("words", [["nowhere.pcap"], ["."], ["x", "--port", "0"]])
def test_bad_use_gets_one_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dissect", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("inga dissect: ") and captured.err.count("\n") == 1 and not captured.out
