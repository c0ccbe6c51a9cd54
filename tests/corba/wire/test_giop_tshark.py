"""GIOP as tshark reads it, which is not ours: every message, in every version and byte order."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from inga.corba.wire.giop import (
    CancelRequest,
    CloseConnection,
    GiopFragment,
    GiopMessage,
    KeyAddr,
    Kind,
    LocateReply,
    LocateRequest,
    LocateStatus,
    MessageError,
    Reply,
    Request,
    Status,
    SystemFailure,
    Tagged,
    encode,
    put_failure,
)

pytestmark = pytest.mark.interop

USER_LINK = 147
"""A kind of link of which the reader is told what is on it."""
FIELDS = """type minor_version flags.little_endian len request_id request_op replystatus locale_status exceptionid
completion_status""".split()
CODE_SETS = Tagged(1, bytes.fromhex("000000000501000100010109"))
FAILURE = SystemFailure("IDL:omg.org/CORBA/TRANSIENT:1.0", 3, 1)

# A message, and what tshark says beyond type, version, byte order and length
SAID: list[tuple[GiopMessage, dict[str, str]]] = [
    (Request(7, KeyAddr(b"key"), "ping", contexts=(CODE_SETS,)), {"request_id": "7", "request_op": "ping"}),
    (Request(8, KeyAddr(b"key"), "note", response_flags=0), {"request_id": "8", "request_op": "note"}),
    (Reply(7, contexts=(CODE_SETS,)), {"request_id": "7", "replystatus": "0"}),
    (
        Reply(9, Status.SYSTEM_EXCEPTION),
        {
            "request_id": "9",
            "replystatus": "2",
            "exceptionid": FAILURE.exception_id,
            "completion_status": "1",
        },
    ),
    (LocateRequest(10, KeyAddr(b"key")), {"request_id": "10"}),
    (LocateReply(10, LocateStatus.OBJECT_HERE), {"request_id": "10", "locale_status": "1"}),
    (CancelRequest(11), {"request_id": "11"}),
    (CloseConnection(), {}),
    (MessageError(), {}),
]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark (Debian package)")
def test_every_message_is_read_as_it_was_meant(tmp_path: Path) -> None:
    capture, expected = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, USER_LINK)], []
    for minor in (0, 1, 2):
        for little in (False, True):
            for message, said in SAID:
                is_failure = isinstance(message, Reply) and message.status is Status.SYSTEM_EXCEPTION
                body = (lambda out: put_failure(out, FAILURE)) if is_failure else None
                data = encode(message, body, minor=minor, little=little)
                capture += [struct.pack("<IIII", 0, 0, len(data), len(data)), data]
                flags = {"type": str(data[7]), "minor_version": str(minor), "len": str(len(data) - 12)}
                expected.append(flags | {"flags.little_endian": "01"[little]} | said)
    (tmp_path / "giop.pcap").write_bytes(b"".join(capture))
    user = f'uat:user_dlts:"User 0 (DLT={USER_LINK})","giop","0","","0",""'
    names = [*(f"giop.{name}" for name in FIELDS), "_ws.malformed", "_ws.expert.message"]
    chosen = [word for name in names for word in ("-e", name)]
    command = [
        "tshark",
        "-r",
        str(tmp_path / "giop.pcap"),
        "-o",
        user,
        "-T",
        "fields",
        "-E",
        "separator=/t",
        *chosen,
    ]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    read = [
        dict(zip([*FIELDS, "malformed", "expert"], line.split("\t"), strict=True))
        for line in printed.splitlines()
    ]
    assert [{name: value for name, value in frame.items() if value} for frame in read] == expected


def test_all_kinds_are_there() -> None:
    """But for fragments, of which nothing can be said alone."""
    there = {encode(message)[7] for message, _ in SAID} | {encode(GiopFragment(1))[7]}
    assert there == set(Kind)
