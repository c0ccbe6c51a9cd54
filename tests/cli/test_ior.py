"""`inga ior`: what a reference says, as text and as JSON."""

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.corba.wire.giop import Tagged
from inga.corba.wire.reference import (
    GroupIdentity,
    Iiop,
    Reference,
    Uipmc,
    encode_group,
    encode_iiop,
    encode_uipmc,
    group_reference,
    read,
    to_ior,
)

IOR = json.loads((Path(__file__).parents[1] / "scenarios" / "miop" / "vectors.json").read_text())["V8"][0]
URL = "corbaloc:miop:1.0@1.0-TestDomain-1-7/225.6.7.8:12345"


def test_a_group_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ior", IOR]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "type      IDL:test/Hello:1.0",
        "profile   TAG_UIPMC (3): 225.6.7.8 port 12345, MIOP 1.0",
        "          - TAG_GROUP (39): group TestDomain/1",
        "          - TAG_GROUP_IIOP (40): 127.0.0.1 port 2809, IIOP 1.2, key groupobj",
        "profile   TAG_INTERNET_IOP (0): 127.0.0.1 port 2810, IIOP 1.2, key gateway",
        "          - TAG_GROUP (39): group TestDomain/1",
        "corbaloc  corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8:12345;iiop:1.2@127.0.0.1:2809/groupobj,"
        "iiop:1.2@127.0.0.1:2810/gateway",
        f"ior       {IOR}",
    ]


def test_a_url_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ior", URL, "--type", "IDL:test/Hello:1.0", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (profile,) = content["profiles"]
    (component,) = profile.pop("components")
    assert component["group"] == {"domain": "TestDomain", "id": 1, "ref_version": 7}
    assert (profile["name"], profile["address"], profile["port"]) == ("TAG_UIPMC", "225.6.7.8", 12345)
    assert content["corbaloc"] == URL
    assert read(content["ior"]) == Reference("IDL:test/Hello:1.0", read(URL).profiles)


def test_from_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(IOR + "\n"))
    assert main(["ior", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ior"] == IOR


def test_what_is_not_known_is_shown_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    components = (
        Tagged(0, b"\0\0\0\0ABCD"),
        Tagged(1, b"\1\0"),
        Tagged(4711, b"xyz"),
        Tagged(40, b"\0"),
        Tagged(39, b"\0\1\0"),
    )
    reference = Reference("IDL:x:1.0", (Tagged(99, b"abc"), encode_uipmc(Uipmc("225.6.7.8", 1, components))))
    assert main(["ior", to_ior(reference)]) == 0
    out = capsys.readouterr().out
    assert "number 99: 3 octets" in out and "number 4711: 3 octets" in out
    assert "TAG_ORB_TYPE (0): 8 octets" in out and "TAG_CODE_SETS (1): 2 octets" in out
    assert out.count("damaged: ") == 2 and "corbaloc  " not in out
    assert to_ior(reference) in out


def test_the_object_of_a_group_as_jacorb_numbers_it(capsys: pytest.CaptureFixture[str]) -> None:
    stored = Tagged(0, encode_iiop(Iiop("10.0.0.1", 5, b"\xff\0")).data)
    profile = encode_uipmc(Uipmc("225.6.7.8", 1, (encode_group(GroupIdentity("d", 1)), stored)))
    assert main(["ior", to_ior(Reference("", (profile,)))]) == 0
    out = capsys.readouterr().out
    assert "as JacORB numbers it (0): 10.0.0.1 port 5, IIOP 1.2, key ff00" in out
    assert "type      (not said)" in out


def test_a_terminal_is_not_steered(capsys: pytest.CaptureFixture[str]) -> None:
    reference = group_reference("\x1b[2J", GroupIdentity("\x1b]0;x\x07", 1), "225.6.7.8", 1)
    assert main(["ior", to_ior(reference)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_nil(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ior", to_ior(Reference("", ()))]) == 0
    assert "nil reference" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["nonsense", "IOR:0", "IOR:zz", "IOR:00", "corbaloc:miop:x", "corbaloc:rir:/x"]
)
def test_bad_references_get_one_sentence(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ior", text]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("inga ior: ") and captured.err.count("\n") == 1 and not captured.out


@pytest.mark.interop
@pytest.mark.skipif(shutil.which("catior") is None, reason="needs catior of omniORB (Debian package omniorb)")
@pytest.mark.parametrize("little", [False, True])
def test_omniorb_reads_our_references(little: bool) -> None:
    gateway = Iiop("127.0.0.1", 2810, b"gateway")
    reference = group_reference(
        "IDL:test/Hello:1.0", GroupIdentity("TestDomain", 1), "225.6.7.8", 1, gateway=gateway
    )
    printed = subprocess.run(
        ["catior", to_ior(reference, little=little)], capture_output=True, text=True, timeout=20, check=True
    ).stdout
    assert 'Type ID: "IDL:test/Hello:1.0"' in printed
    assert "IIOP 1.2 127.0.0.1 2810" in printed and "Unrecognised profile tag: 0x3" in printed
