"""What tshark, which is not ours, makes of a capture file; and that it is what we make of it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from inga.cli.main import main

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark (Debian package)")

MIOP = ["flags", "packet_length", "packet_number", "number_of_packets", "unique_id_len", "unique_id"]
GIOP = [
    "type",
    "len",
    "flags.little_endian",
    "request_id",
    "request_op",
    "target_address.discriminant",
    "profid",
    "profile_data",
    "stub_data",
]
FIELDS = ["frame.number", *(f"miop.{name}" for name in MIOP), *(f"giop.{name}" for name in GIOP)]
TROUBLE = ["_ws.malformed", "_ws.expert.message"]
CHECKS = ["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]


def read_by_tshark(path: Path) -> list[dict[str, str]]:
    """The fields of every frame; nothing in it is marked."""
    chosen = [word for name in FIELDS + TROUBLE for word in ("-e", name)]
    printed = subprocess.run(
        [
            "tshark",
            "-r",
            str(path),
            *CHECKS,
            "-T",
            "fields",
            "-E",
            "separator=/t",
            "-E",
            "occurrence=f",
            *chosen,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    frames = [dict(zip(FIELDS + TROUBLE, line.split("\t"), strict=True)) for line in printed.splitlines()]
    for frame in frames:
        assert not [frame[name] for name in TROUBLE if frame[name]], frame
    return frames


def read_by_us(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["dissect", str(path), "--json"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def same(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What we read in a capture, after tshark has read the same."""
    ours = read_by_us(path, capsys)
    frames = read_by_tshark(path)
    assert len(frames) == ours["datagrams"]
    # Who is no member any more, or not yet, is answered by our own wire, which neither takes for MIOP.
    theirs = [frame for frame in frames if frame["miop.unique_id_len"]]
    assert [int(each["frame.number"]) for each in theirs] == [each["frame"] for each in ours["packets"]]
    messages = {message["unique_id"]: message for message in ours["messages"]}
    for packet, frame in zip(ours["packets"], theirs, strict=True):
        header = packet["miop"]
        assert [frame[f"miop.{name}"] for name in MIOP] == [
            *(str(header[name]) for name in ("flags", "length", "number", "count")),
            str(len(header["unique_id"]) // 2),
            header["unique_id"],
        ]
        if "control" in packet or header["number"]:
            assert not any(frame[f"giop.{name}"] for name in GIOP)
        elif (message := messages.get(header["unique_id"])) is not None:
            _same_message(message, frame, is_whole=header["count"] < 2)
    return ours


def _same_message(message: dict[str, Any], frame: dict[str, str], *, is_whole: bool) -> None:
    """The request that begins in this frame; tshark does not join fragments, so it sees the first arguments."""
    # Shown as text, and without the octet that says the byte order.
    profile = bytes.fromhex(message["target"]["profile"])[1:]
    stub = frame["giop.stub_data"]
    assert message["body"] == stub if is_whole else message["body"].startswith(stub)
    assert [frame[f"giop.{name}"] for name in GIOP[:-1]] == [
        "0",
        str(message["size"]),
        str(int(message["little_endian"])),
        str(message["request_id"]),
        message["operation"],
        "1",
        str(message["target"]["tag"]),
        "".join(chr(octet) if 32 <= octet < 127 else "." for octet in profile),
    ]
