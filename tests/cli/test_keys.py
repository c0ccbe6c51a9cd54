"""`inga keys`: secrets, authorities and certificates, one command each."""

import json
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from inga.cli.main import main
from inga.keys.authority import Authority
from inga.keys.identity import Identity
from inga.keys.secret import Secret


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "secret", "lunch.secret"]) == 0
    secret = Secret.load("lunch.secret")
    out = capsys.readouterr().out
    assert secret.fingerprint() in out and "next: " in out and secret.text() not in out
    assert main(["keys", "show", "lunch.secret"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "secret       of 256 bits",
        f"fingerprint  {secret.fingerprint()}",
    ]
    assert main(["keys", "secret", "lunch.secret"]) == 2
    assert "not written over" in capsys.readouterr().err
    assert Secret.load("lunch.secret") == secret
    assert main(["keys", "secret"]) == 0
    assert Secret.parse(capsys.readouterr().out).bits == 256


def test_an_authority_and_members(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "authority", "lunch", "--days", "30"]) == 0
    assert "next: inga keys member NAME --authority lunch\n" in capsys.readouterr().out
    assert Authority.load("lunch").name == "lunch"
    for name, file in [("alice", "alice.pem"), ("../ありす", "..%2F%E3%81%82%E3%82%8A%E3%81%99.pem")]:
        assert (
            main(["keys", "member", name, "--authority", "lunch", "--host", "a.example", "--host", "::1"])
            == 0
        )
        assert "next: " in capsys.readouterr().out
        assert Identity.load(file).name == name
    assert main(["keys", "show", "alice.pem", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["private_key"] is True
    member, authority = shown["certificates"]
    assert (member["member"], member["issued by"], member["hosts"]) == ("alice", "lunch", "a.example, ::1")
    assert authority["authority"] == "lunch"
    assert main(["keys", "show", "alice.pem"]) == 0
    out = capsys.readouterr().out
    assert "private key  Ed25519, not shown" in out and "PRIVATE" not in out
    assert Path("alice.pem").read_text().splitlines()[1] not in out
    before = Path("alice.pem").read_bytes()
    for command in (["authority", "lunch"], ["member", "alice", "--authority", "lunch"]):
        assert main(["keys", *command]) == 2
        assert "not written over" in capsys.readouterr().err
    assert Path("alice.pem").read_bytes() == before


def test_what_cannot_be_shown_or_made(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").write_text("")
    for command, why in [
        (["show", "empty"], "holds no secret, key or certificate"),
        (["show", "none"], "No such file"),
        (["member", "alice", "--authority", "none"], "No such file"),
        (["authority", "", "--out", "x"], "needs a name"),
    ]:
        assert main(["keys", *command]) == 2
        assert why in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "show", "none.pem"]) == 2
    assert capsys.readouterr().err == "inga keys: none.pem: No such file or directory\n"
