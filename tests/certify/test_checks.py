"""Adding a check: a record and a judge, and everybody who lists checks has it."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from inga.certify.certificate import certify
from inga.certify.checks import CHECKS, Check, Needs
from inga.certify.chunk import SEND, Chunk
from inga.certify.evidence import Evidence
from inga.certify.roots import Bad
from inga.certify.work import RowKey
from inga.cli.check import table
from inga.cli.main import main
from inga.model.errors import TraceError, UsageError
from inga.pipeline.jobs import choose_checks
from inga.pipeline.storage import open_trace
from inga.report.page import render
from inga.report.section import Section
from inga.trace import Manifest, TraceWriter, read_manifest

from ..docs.tables import checks as documented
from .world import source, wander

STATEMENT = "every message has an even number"


def odd(chunk: Chunk, question: None) -> list[RowKey]:
    rows = np.flatnonzero(((chunk.kind & SEND) != 0) & (chunk.seq % 2 == 1))
    return [
        RowKey(chunk.process, *(int(each[row]) for each in (chunk.pos, chunk.src, chunk.seq))) for row in rows
    ]


def judge(evidence: Evidence) -> Iterator[Bad]:
    found = evidence.ask("numbers read", odd, [(link.segment, None) for link in evidence.links])
    for rows in (rows for _, rows in found if rows):
        process = rows[0].process
        blames = f"{evidence.names[process]} counts one by one"
        yield Bad("even", process, process, "has an odd number", len(rows), rows, blames=blames)


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that nobody else has heard of, for one test."""
    monkeypatch.setitem(CHECKS, "even", Check("even", STATEMENT, "odd messages", judge))


def claim(directory: Path, *checks: str) -> None:
    """A run of one message that says that it keeps these."""
    Manifest("g", ["a"], "sim", "none", "deliver", "virtual", list(checks), complete=True).write(directory)
    with TraceWriter(directory, 0, "a", 1) as trace:
        trace.row("send", 0.0, 1, 0, 1, deps=(0,))


@pytest.mark.usefixtures("even")
def test_a_check_that_is_added_is_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = source(Random(1), wander(Random(1), 3, 12))
    certificate = certify(made, ["even", "fifo"])
    answer = certificate.checks[0]
    sent = sum(1 for rows in wander(Random(1), 3, 12) for row in rows if row.step == "send" and row.seq % 2)  # type: ignore[operator]
    assert (answer.name, answer.verdict, answer.violations) == ("even", "fail", sent)
    assert answer.witnesses[0].text == "p0: message 1 of p0 has an odd number"
    assert "p0 counts one by one" in {group.cause for group in certificate.groups}
    assert "p0 counts one by one (even)" in "\n".join(table(certificate))

    for command in ("check", "watch", "report"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert f"even       {STATEMENT}" in capsys.readouterr().out

    claim(tmp_path, "even")
    assert read_manifest(tmp_path).guarantees == ["even"]
    trace = open_trace(str(tmp_path))
    assert choose_checks(trace, None) == ["even"] and "even" in choose_checks(trace, ["all"])

    page = render([Section("run", ["p0", "p1", "p2"], [], certificate.to_json())])
    assert f'<th scope="row">even<small>{STATEMENT}</small></th>' in page
    assert f"| `even` | {STATEMENT} | odd messages |" in documented()


def test_it_is_gone_afterwards(tmp_path: Path) -> None:
    assert not any("`even`" in line for line in documented())
    with pytest.raises(TraceError, match='"guarantees" must be a list of integrity, complete'):
        claim(tmp_path, "even")


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.name)
def test_every_check_has_a_judge(check: Check) -> None:
    """Judges are found by name when they are called; a trace without anything leaves each of them open."""
    answer = certify(source(Random(1), [[], []]), [check.name]).checks[0]
    assert answer.verdict == "unknown" and answer.reason.startswith(check.needs.value)


def test_checks_that_a_trace_says_nothing_about_are_not_among_all(tmp_path: Path) -> None:
    claim(tmp_path)
    trace = open_trace(str(tmp_path))
    assert choose_checks(trace, ["all"]) == [
        each.name for each in CHECKS.values() if each.needs not in (Needs.REQUESTS, Needs.EVENTS)
    ]
    with pytest.raises(UsageError, match="claims no guarantee"):
        choose_checks(trace, None)
