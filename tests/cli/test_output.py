"""What reaches the terminal of whoever runs a command on something that others made."""

import json
from pathlib import Path

import pytest

from inga.certify.verdict import Answer, Certificate, ViolationGroup, Witness
from inga.cli.check import table
from inga.cli.main import main
from inga.cli.output import print_json

EVIL = "\x1b[2J\x9b1m\u202emallory\n"
SHOWN = r"\x1b[2J\x9b1m\u202emallory\n"


def test_json_is_readable_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "李"})
    assert capsys.readouterr().out == '{"name": "李"}\n'
    print_json({"name": EVIL})
    out = capsys.readouterr().out
    assert out.isascii() and out.rstrip("\n").isprintable()
    assert json.loads(out) == {"name": EVIL}


def test_an_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", f"{tmp_path}/{EVIL}", "-", "--format", "jsonl"]) == 2
    error = capsys.readouterr().err
    assert SHOWN in error and error.count("\n") == 1 and error.rstrip("\n").isprintable()


def test_a_certificate_names_processes_harmlessly() -> None:
    witness = Witness("causal", 0, 3, (0, 1), f"{EVIL} was late")
    check = Answer("causal", "fail", 1, f"rows of {EVIL} are missing", [witness], [f"see {EVIL}"])
    group = ViolationGroup(f"{EVIL} counts again", ["causal"], 1, {})
    shown = table(Certificate(1, 1, 1, 1, [EVIL], [check], [group]))
    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.count(SHOWN) == 4
