"""`inga report`: one file about several traces."""

import json
import re
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_two_orders_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lent: None
) -> None:
    for order in ("fifo", "causal"):
        simulate_trial(Trial(order, members=3, messages=30, loss=0.2, seed=1), tmp_path / order)
    out = tmp_path / "compared.html"

    monkeypatch.chdir(tmp_path)
    assert main(["report", "fifo", "causal", "-o", str(out), "--checks", "all", "--json"]) == 1

    found = json.loads(capsys.readouterr().out)
    assert (found["report"], found["verdict"]) == (str(out), "fail")
    assert [(each["trace"], each["verdict"]) for each in found["traces"]] == [
        ("fifo", "fail"),
        ("causal", "pass"),
    ]
    page = out.read_text()
    assert page.count('class="viewer"') == 2
    assert "causal (order vector)" in page
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["{}/nowhere", "-o", "{}/r.html"],
            "inga report: {}/nowhere does not exist, so it is not a trace.\n",
        ),
        (["{}/nowhere"], "inga report: {}/nowhere does not exist, so it is not a trace.\n"),
        (["file:{}/nowhere"], "inga report: {}/nowhere does not exist, so it is not a trace.\n"),
        (["{}"], "inga report: {} is empty, so it is not a trace.\n"),
        (
            ["hdfs://host/run7"],
            "inga report: hdfs://host/run7 is not on this machine: say where to write the report, -o FILE\n",
        ),
        (
            ["{}", "-o", "{}/no/r.html"],
            "inga report: {}/no is not a directory, so the report cannot be written",
        ),
    ],
)
def test_bad_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["report", "--quiet", *(each.format(tmp_path) for each in arguments)]) == 2
    assert capsys.readouterr().err.startswith(message.format(tmp_path))


def test_a_page_of_an_address_goes_into_the_trace(tmp_path: Path) -> None:
    simulate_trial(Trial("causal", members=2, messages=5, seed=1), tmp_path / "run 7")
    address = (tmp_path / "run 7").as_uri()
    assert main(["report", "--quiet", "--engine", "local", address]) == 0
    assert (tmp_path / "run 7" / "report.html").exists()


@pytest.mark.parametrize("command", ["check", "watch"])
def test_whoever_certifies_can_write_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    trace, out = tmp_path / "run", tmp_path / "run.html"
    simulate_trial(Trial("causal", members=3, messages=5, seed=1), trace)
    words = [command, str(trace), "--engine", "local", "--quiet", "--report", str(out)]
    assert main(words) == 0
    assert "verdict: pass" in capsys.readouterr().out
    page = out.read_text()
    assert "Every promise was kept: no message was delivered before one that caused it" in page
    assert f"inga {command} {trace} --engine local" in page, "how it was made"
    assert main([*words[:-1], str(tmp_path / "no" / "r.html")]) == 2


def test_the_number_of_events_is_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the diagram: what happened is counted in the whole trace."""
    simulate_trial(Trial("causal", members=4, messages=20, seed=1, crash=1), tmp_path / "run")
    words = ["report", str(tmp_path / "run"), "--engine", "local", "--quiet"]
    assert main([*words, "--events", "50"]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    found = re.search(r"The first (\d+) events are here", page)
    assert found is not None and 20 < int(found[1]) <= 50
    assert "<b>2</b><span>views" in page and "<b>1</b><span>crash<" in page
    capsys.readouterr()
    assert main([*words, "--events", "0"]) == 2
    assert "--events is at least 1" in capsys.readouterr().err
