"""What reaches the terminal of whoever runs a command on something that others made."""

import ast
import json
from pathlib import Path

import pytest

from inga.certify.verdict import Answer, Certificate, ViolationGroup, Witness
from inga.cli import output
from inga.cli.check import table
from inga.cli.main import main
from inga.cli.output import print_json, tell
from inga.trace import Manifest, TraceWriter

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


def hostile(directory: Path, *, missing: bool = False) -> str:
    """A trace that breaks all it can, whose names, methods and notes steer terminals."""
    names = [f"{EVIL}{at}" for at in "abc"]
    pairs = {name: [[EVIL, EVIL]] for name in names}
    Manifest(
        EVIL,
        names,
        "sim",
        EVIL,
        "deliver",
        "virtual",
        ["fifo", "causal", "complete"],
        conflicts=pairs,
        complete=True,
    ).write(directory)
    text = {"op": EVIL, "note": EVIL, "ref": EVIL}
    sent = [("send", 0, 1, (0, 0, 0)), ("send", 0, 2, (1, 0, 0))]
    rows = [sent, [("deliver", *sent[1][1:]), ("deliver", *sent[0][1:])], [("deliver", *sent[1][1:])]]
    for at, mine in enumerate(rows):
        if not (missing and at == 1):
            with TraceWriter(directory, at, names[at], len(names)) as trace:
                for step, src, seq, deps in mine:
                    trace.row(step, 0.0, 1, src, seq, deps=deps, **text)
                trace.row("leave", 1.0, 1, peer=0, **text)
    return str(directory)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["check", "TRACE", "--engine", "local", "--checks", "all"], 1),
        (["watch", "TRACE", "--engine", "local"], 1),
        (["report", "TRACE", "--engine", "local", "-o", "PAGE"], 1),
        (["order", "TRACE", "PAGE", "--process", "nobody"], 2),
        (["export", "TRACE", "PAGE", "--format", "jsonl"], 0),
        (["export", "TRACE", "-", "--format", "jsonl"], 0),
        (["export", "TRACE", "-", "--format", "shiviz"], 0),
    ],
    ids=lambda value: " ".join(value[:1] + value[-1:]) if isinstance(value, list) else "",
)
def test_nothing_of_a_hostile_trace_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], code: int, missing: bool
) -> None:
    trace = hostile(tmp_path / "trace", missing=missing)
    words = {"TRACE": trace, "PAGE": str(tmp_path / "page")}
    assert main([words.get(word, word) for word in command]) == code
    told = capsys.readouterr()
    for line in (told.out + told.err).split("\n"):
        assert line.isprintable()
        assert not line.startswith("mallory")


def test_a_line_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell("a", EVIL, "", "b")
    assert capsys.readouterr().out == f"a\n{SHOWN}\n\nb\n"


def test_a_certificate_names_processes_harmlessly(capsys: pytest.CaptureFixture[str]) -> None:
    witness = Witness("causal", 0, 3, (0, 1), f"{EVIL} was late")
    check = Answer("causal", "fail", 1, f"rows of {EVIL} are missing", [witness], [f"see {EVIL}"])
    group = ViolationGroup(f"{EVIL} counts again", ["causal"], 1, {})
    tell(*table(Certificate(1, 1, 1, 1, [EVIL], [check], [group])))
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.count(SHOWN) == 4


def test_one_of_a_thing_is_one() -> None:
    alone = Certificate(1, 1, 1, 1, ["a"], [], [])
    assert table(alone)[0] == "1 event of 1 process: 1 message in 1 packet, 1 delivery"
    many = Certificate(1000, 0, 2, 3, ["a", "b"], [], [])
    assert table(many)[0].startswith("1,000 events of 2 processes: ") and "deliveries" in table(many)[0]


@pytest.mark.parametrize(
    "path", sorted(Path(str(output.__file__)).parent.glob("*.py")), ids=lambda path: str(path.stem)
)
def test_commands_print_in_one_place(path: Path) -> None:
    """Chat has a screen of its own, with rules of its own; tests/cli/test_chat_view.py looks at those."""
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert path.stem == "output" or path.stem.startswith("chat") or "print" not in called
