"""`inga live` as a person and a script see it: JSON, exit codes, what is refused."""

import json
import re
import socket
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from inga.cli.main import main
from inga.recipes import find
from inga.recipes import recipe as registry
from inga.runs.live import patience, run
from inga.trace import read_manifest, read_processes, rows
from inga.trial.calls import CallLoad
from inga.trial.trial import Trial
from inga.trial.workload import Workload

pytestmark = pytest.mark.network

KEYS = set(
    "order members seed sent delivered expected violations unpromised related pdus bytes seconds "
    "cpu_seconds trace".split()
)
"""Of spec/cli.md."""

ROUGH = "--order none --members 3 --messages 100 --size 16000 --reorder 0.5 --delay 0:2 --seed 1"
"""So large that few share a datagram: hardly any two come in order."""


def live(*words: str) -> int:
    return main(["live", "--quiet", *words])


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one JSON object on standard output; nothing else anywhere."""
    said, complained = capsys.readouterr()
    assert complained == "" and said.count("\n") == 1
    content: dict[str, Any] = json.loads(said)
    return content


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence on standard error; nothing on standard output."""
    said, complained = capsys.readouterr()
    assert said == "" and complained.startswith("inga live: ") and complained.count("\n") == 1
    return complained.removeprefix("inga live: ").strip()


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    assert live(*f"--members 2 --messages 40 --seed 3 --loss 0.1 --json --trace {trace}".split()) == 0
    content = found(capsys)
    assert set(content) >= KEYS
    assert (content["order"], content["members"], content["seed"]) == ("vector", 2, 3)
    assert (content["sent"], content["delivered"], content["expected"]) == (80, 80, 80)
    assert (content["violations"], content["unpromised"], content["trace"]) == (0, {}, str(trace))
    assert set(content["pdus"]) == {"data", "control", "repair"}
    assert all(type(number) is int for number in (*content["pdus"].values(), content["bytes"]))
    assert content["related"] > 0 and content["bytes"] >= 80 * 64
    assert 0 < content["seconds"] < 60 and 0 <= content["cpu_seconds"] < 60
    manifest = read_manifest(trace)
    assert (manifest.order, manifest.seed, manifest.complete) == ("vector", 3, True)
    assert manifest.options["messages"] == 40 and manifest.options["loss"] == 0.1
    assert sum(row.n or 0 for row in rows(trace) if row.step == "take") == 80


def test_without_an_oracle_a_run_is_counted_and_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert live(*f"{ROUGH} --no-oracle --json".split()) == 0, "although it breaks every promise there is"
    content = found(capsys)
    assert (content["judged"], content["violations"], content["related"]) == (False, 0, 0)
    assert (content["sent"], content["delivered"], content["expected"]) == (300, 600, 600)
    assert content["seconds"] > 0 and content["cpu_seconds"] > 0
    assert live(*"--members 2 --messages 20 --no-oracle".split()) == 0
    said, _ = capsys.readouterr()
    assert "not judged" in said and "promises" not in said and "related" not in said
    assert "messages/s and member" in said and "us of CPU per delivery" in said


@pytest.mark.parametrize("words", ["--join 1", "--crash 1", "--order object --objects 1", "--slow bob"])
def test_what_only_an_oracle_can_follow(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert live("--members", "3", "--no-oracle", *words.split()) == 2
    assert sentence(capsys).startswith("--no-oracle only counts what members send and take")


@pytest.mark.parametrize("words", ["--matrix --subset 2", "--order relay"])
def test_other_ways_to_causal_order(capsys: pytest.CaptureFixture[str], words: str) -> None:
    rough = "--members 3 --messages 40 --loss 0.05 --delay 0:2 --reorder 0.2 --json"
    assert live(*rough.split(), *words.split()) == 0
    content = found(capsys)
    assert content["order"] == ("vector" if "--matrix" in words else "relay")
    assert content["delivered"] == content["expected"] > 0 and content["violations"] == 0


def test_words(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """To a subset, with echo, a lean trace in an empty directory, over TCP."""
    trace = tmp_path / "trace"
    trace.mkdir()
    options = "--order fifo --members 3 --messages 20 --subset 1 --echo --via tcp --trace-level deliveries"
    assert live(*options.split(), "--trace", str(trace)) == 0
    said, complained = capsys.readouterr()
    assert complained == ""
    first, *_, last = said.splitlines()
    assert first.startswith("fifo: 3 members, seed 0: 60 sent, 120 of 120 delivered in ")
    assert "all promises kept" in said and "causally related pairs" in said
    assert last == f"trace: {trace}"
    steps = {row.step for row in rows(trace)}
    # Whether anybody closes a view when the others leave depends on who is last.
    assert steps - {"flush"} == {"view", "join", "leave", "send", "deliver", "take"}


def test_a_broken_promise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, and not in the members, the order that promises nothing is said to promise everything."""
    plain = find("none")
    guarantees = ("integrity", "complete", "fifo", "causal")
    monkeypatch.setitem(registry._recipes, "none", replace(plain, guarantees=guarantees))
    assert live(*ROUGH.split(), "--json") == 1
    content = found(capsys)
    assert content["violations"] > 0 and content["unpromised"] == {}
    assert content["delivered"] == content["expected"] == 600
    assert content["witnesses"] and all(": site " in each for each in content["witnesses"])


def test_what_was_not_promised(capsys: pytest.CaptureFixture[str]) -> None:
    assert live(*ROUGH.split(), "--via", "unicast") == 0
    said, _ = capsys.readouterr()
    assert "not promised by none: causal, violated" in said and "all promises kept" in said
    assert re.search("for example: (alice|bob|cathy|dave) took message", said) and "site " not in said


@pytest.mark.parametrize("words", ["--order fifo --messages 12", "--order object --objects 1 --messages 12"])
def test_a_rate_is_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str) -> None:
    """The last send of each is not before its time, which the seed decides; back to back it takes no time at all."""
    trace = tmp_path / "trace"
    assert live(*f"--members 2 --rate 20 --seed 5 --json --trace {trace} {words}".split()) == 0
    content = found(capsys)
    load = CallLoad(2, 12, 1, 20.0) if "--objects" in words else Workload(2, 12, rate=20.0)
    for me in range(2):
        rng = Random(f"5/{me}")
        moves: Any = load.plan(rng, me) if isinstance(load, CallLoad) else load.plan(rng)
        assert content["seconds"] > sum(move[0] for move in moves) > 0.3
    assert read_manifest(trace).options["rate"] == 20.0


def test_without_a_rate_members_send_back_to_back(tmp_path: Path) -> None:
    """At the simulator's hundred a second it would take 20 seconds."""
    trace, trial = tmp_path / "trace", Trial("fifo", members=2, messages=2000)
    started: list[int] = []
    result = run(trial, trace, full=False, starting=started.append)
    assert result.delivered == 4000
    assert result.seconds < sum(gap for gap, _ in trial.workload.plan(Random("0/0")))
    assert read_manifest(trace).options["rate"] is None
    assert started == sorted(started) and started[-1] == 2


def test_patience_knows_the_pace() -> None:
    slow = Trial(members=2, messages=10, rate=0.01, timeout=5.0)
    assert patience(slow) == 2005.0 and patience(replace(slow, rate=None)) == 5.0


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["live", "--help"])
    assert ended.value.code == 0
    said, complained = capsys.readouterr()
    assert complained == "" and "\n  inga live --order causal --members 4" in said, "an example"
    for option in (
        "--json --quiet --order --members --messages --size --rate --subset --loss --dup --reorder --delay "
        "--join --deliver --seed --trace --trace-level --via --objects --misdeclare"
    ).split():
        assert option in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--join -1", "--join is the number of members that come later, so not below 0"),
        ("--join 1 --order miop+acks", "nobody can join a group of order 'miop+acks' later"),
        (
            "--order chaos",
            "no order 'chaos'; there are causal, co, fifo,",
        ),
        ("--objects 2", "--objects: order 'vector' has no objects; use --order object or total"),
        ("--order object --objects 0", "a trial of objects needs at least one"),
        ("--order object --objects 1 --subset 2", "--objects: every member has a copy from the start"),
        ("--order object --objects 1 --misdeclare add/put", "only what conflicts can be declared wrongly"),
        ("--order object --misdeclare put/put", "--misdeclare is about methods of objects"),
        ("--order total --option keys=2", "order 'total' has no option 'keys'"),
        ("--order fifo --matrix", "matrix is an option of order vector; order 'fifo' has none"),
        ("--deliver confirmed", "order 'vector' delivers at level 'causal', not 'confirmed'"),
        ("--members 0", "a group of 0 members"),
        ("--messages -1", "-1 messages per member"),
        ("--size 3", "--size is at least 4"),
        ("--rate 0", "the rate is a number of messages a second above 0, not 0"),
        ("--members 100000", "100000 live members would be as many processes, and 256 are the most"),
        ("--members 200 --join 57", "257 live members"),
        ("--order object --objects 1 --members 300", "300 live members"),
        ("--subset 4", "--subset 4: there are 3 others to choose from"),
        ("--subset 0", "--subset 0"),
        ("--loss 1", "with a loss of 1 nothing ever arrives"),
        ("--loss 1.5", "loss is a probability between 0 and 1"),
        ("--dup -0.1", "duplicate is a probability"),
        ("--reorder 2", "reorder is a probability"),
        ("--reorder 0.1", "--delay"),
        ("--delay 5:1", "is not MIN:MAX"),
        ("--via pigeon", "via is udp://239.x.y.z:port, unicast or tcp, not 'pigeon'"),
        ("--via udp://10.0.0.1:7400", "10.0.0.1 is no multicast address"),
        ("--via udp://239.7.7.7:0?ttl=3", "via has no option ttl"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], words: str, reason: str) -> None:
    assert live("--json", *words.split()) == 2
    assert reason in sentence(capsys)


@pytest.mark.parametrize(
    "words", ["--members many", "--delay soon", "--trace-level some", "--tunnel", "--loss", "x"]
)
def test_what_cannot_be_read(capsys: pytest.CaptureFixture[str], words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        live(*words.split())
    assert ended.value.code == 2
    said, complained = capsys.readouterr()
    assert said == "" and "error: " in complained.splitlines()[-1]


def test_a_trace_is_not_written_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "something").touch()
    for name in ("file", "directory"):
        assert live("--trace", str(tmp_path / name)) == 2
        assert sentence(capsys).endswith(f"{name} exists already; a trace is written to a new directory")


def test_a_trace_nobody_may_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert live("--members", "2", "--messages", "1", "--trace", "/proc/trace") == 2
    assert "/proc/trace" in sentence(capsys)


def test_a_run_without_progress_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert live(*"--members 2 --messages 100000 --timeout 0.001".split()) == 2
    assert "did not say 'done' within 0.001 s" in sentence(capsys)


def test_a_chosen_place(capsys: pytest.CaptureFixture[str]) -> None:
    """A port, or any that is free; an interface, of which live runs know loopback by themselves."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for via in (f"udp://239.7.7.8:{port}", "udp://239.7.7.8:0?interface=lo"):
        assert live(*"--members 2 --messages 5 --json --via".split(), via) == 0
        assert found(capsys)["delivered"] == 10


@pytest.mark.parametrize("via", ["udp://239.7.7.7:0", "unicast", "tcp"])
def test_members_that_come_later(capsys: pytest.CaptureFixture[str], tmp_path: Path, via: str) -> None:
    """The second half of all messages is for everybody; what is sent before is for those who are there."""
    trace = tmp_path / "trace"
    words = f"--members 3 --join 2 --messages 100 --loss 0.02 --seed 2 --json --via {via} --trace {trace}"
    assert live(*words.split()) == 0
    content = found(capsys)
    assert (content["members"], content["sent"], content["violations"]) == (5, 500, 0)
    assert 250 * 4 + 150 * 2 <= content["expected"] <= 500 * 4
    assert content["delivered"] == content["expected"] and content["related"] > 0
    manifest, processes = read_manifest(trace), read_processes(trace)
    assert manifest.complete and len(processes) == 5 and all(process.complete for process in processes)
    taken = sum(row.n or 0 for row in rows(trace) if row.step == "take")
    assert taken == content["delivered"]


@pytest.mark.parametrize(
    "options",
    [
        "--order fifo --subset 1",
        "--order none --echo",
        "--messages 0",
        "--matrix --subset 1",
        "--order relay --echo",
        "--order co --subset 1",
        "--order sco --subset 1",
        "--order object",
        "--order total --echo",
    ],
)
def test_members_that_come_later_to_other_groups(capsys: pytest.CaptureFixture[str], options: str) -> None:
    assert live(*f"--members 2 --join 1 --messages 40 --json {options}".split()) == 0
    content = found(capsys)
    assert (content["members"], content["violations"]) == (3, 0)
    assert content["delivered"] == content["expected"]


def test_nothing_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert live(*"--members 2 --messages 0".split()) == 0
    assert "this run proves nothing" in capsys.readouterr().out
    assert live(*"--members 1 --messages 10 --json".split()) == 0
    assert found(capsys)["expected"] == 0
