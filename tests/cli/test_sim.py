"""`inga sim` and `inga hunt` as a user calls them."""

import json
import re
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.sim.hunt import Swarm
from inga.trace import read_manifest, read_processes, rows

KEYS = {
    "order", "members", "seed", "sent", "delivered", "expected", "violations", "unpromised", "related",
    "pdus", "bytes", "seconds", "cpu_seconds", "trace",
}  # fmt: skip


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """The one JSON object on standard output."""
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_run_under_causal_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("sim --order causal --members 5 --messages 20 --loss 0.2 --seed 3 --json".split()) == 0
    result = said(capsys)
    assert result.keys() >= KEYS
    assert (result["order"], result["violations"], result["unpromised"]) == ("vector", 0, {})
    assert result["delivered"] == result["expected"] == 5 * 20 * 4
    assert isinstance(result["related"], int) and result["related"] > 0


def test_fifo_breaks_causality_on_the_seed_on_which_causal_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = "--members 4 --messages 50 --loss 0.2 --seed 7 --json".split()
    assert main(["sim", "--order", "fifo", *options]) == 0
    weak = said(capsys)
    assert weak["unpromised"]["causal"] > 0  # type: ignore[index]
    assert main(["sim", "--order", "causal", *options]) == 0
    assert said(capsys)["unpromised"] == {}


def test_the_same_seed_gives_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = "sim --members 3 --messages 30 --loss 0.3 --dup 0.1 --reorder 0.2 --seed 11 --json".split()
    results = []
    for _ in range(2):
        assert main(words) == 0
        results.append({k: v for k, v in said(capsys).items() if k != "cpu_seconds"})
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "words", ["--matrix", "--matrix --subset 2", "--order relay", "--order relay --subset 1"]
)
def test_other_ways_to_causal_order(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    rough = "sim --messages 30 --loss 0.1 --reorder 0.3 --echo --seed 2 --json".split()
    assert main([*rough, *words.split()]) == 0
    result = said(capsys)
    assert (result["order"], result["violations"]) == ("vector" if "--matrix" in words else "relay", 0)
    assert result["delivered"] == result["expected"] and int(str(result["related"])) > 0


def test_a_trial_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    words = "sim --order object --objects 2 --members 4 --messages 10 --loss 0.1 --seed 3"
    assert main([*words.split(), "--json"]) == 0
    result = said(capsys)
    assert result.keys() >= KEYS | {"objects", "committed", "aborted"}
    assert (result["violations"], result["objects"], result["sent"]) == (0, 2, 40)
    assert main([*words.split(), "--misdeclare", "put/put"]) == 1
    told = capsys.readouterr().out
    assert "copies of tally1 end differently" in told and "began put" in told
    assert main(words.split()) == 0
    assert "40 requests" in capsys.readouterr().out


def test_plain_messages_in_total_order_and_by_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("sim --order total --members 3 --messages 10 --loss 0.1 --json".split()) == 0
    assert said(capsys)["unpromised"] == {}
    assert main("sim --order object --members 3 --messages 10 --option keys=3 --json".split()) == 0
    unpromised = said(capsys)["unpromised"]
    assert isinstance(unpromised, dict) and unpromised["total"] > 0


def test_a_schedule_with_messages_to_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--matrix", "--schedule", "A!1:B A!2:C 1>B 2>C"]) == 0
    assert "C took 2" in capsys.readouterr().out


@pytest.mark.parametrize("level", ["full", "deliveries"])
def test_it_writes_a_trace(level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "run"
    words = (
        f"sim --order fifo --members 3 --messages 10 --loss 0.3 --trace-level {level} --json --trace".split()
    )
    assert main([*words, str(trace)]) == 0
    result = said(capsys)
    manifest = read_manifest(trace)
    assert (manifest.order, manifest.source, manifest.complete) == ("fifo", "sim", True)
    assert all(each.complete for each in read_processes(trace))
    steps = [row.step for row in rows(trace)]
    assert sum(row.n for row in rows(trace) if row.step == "deliver") == result["delivered"]
    assert all(row.deps is not None for row in rows(trace) if row.step in ("send", "deliver", "take"))
    assert ("datagram_out" in steps) == (level == "full")


def test_a_schedule_is_played(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--order", "fifo", "--schedule", "A!1 1>B B!2 2>C"]) == 0
    assert "C took 2 1" in capsys.readouterr().out
    assert main(["sim", "--order", "causal", "--schedule", "A!1 1>B B!2 2>C"]) == 0
    assert "C took 1 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("sim --order upside-down", "no order"),
        ("sim --order fifo --matrix", "matrix is an option of order vector; order 'fifo' has none"),
        ("sim --order relay --schedule A!1", "passes messages on"),
        ("sim --crash 4", "--crash is fewer than there are members"),
        ("sim --crash 1 --return 2", "--return no more than crash"),
        ("sim --join -1", "--join is the number of members that come later"),
        ("sim --loss 1.5", "probability"),
        ("sim --loss 1", "nothing ever arrives"),
        ("sim --delay 5:1", "MIN"),
        ("sim --members 0", "members"),
        ("sim --size 2", "--size"),
        ("sim --subset 9", "--subset"),
        ("sim --rate 0", "rate"),
        ("sim --deliver acknowledged", "level"),
        ("sim --schedule A?B", "schedule"),
        ("sim --datagram 5", "--datagram"),
        ("sim --objects 1", "has no objects"),
        ("sim --order total --schedule A!1", "no schedule"),
        ("hunt --runs 0", "--runs"),
        ("hunt --order nothing", "no order"),
        ("hunt --forged --order remiop", "cannot be secured"),
        ("hunt --until-failure --keep-going", "say one of them"),
        ("bench nothing", "no bench"),
        (
            "bench pipeline --commands metric",
            "--commands knows no 'metric'; there are check, metrics, stamp, order",
        ),
        ("bench sim --commands metrics", "--commands are those of the pipeline, and sim has none"),
        ("bench sim --traces here", "--traces are those of the pipeline, and sim has none"),
        ("dissect nowhere.pcap", "no file"),
    ],
)
def test_bad_use_gets_one_sentence(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.err.count("\n") == 1 and not captured.out


def test_a_trace_is_never_written_over_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("precious")
    assert main(["sim", "--trace", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_hunt_that_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("hunt --order miop --runs 60 --jobs 1 --json --quiet".split()) == 0
    result = said(capsys)
    assert (result["runs"], result["failure"]) == (60, None)


def test_a_hunt_that_keeps_going(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main("hunt --order fifo --forged --runs 3 --keep-going --json --quiet".split()) == 0
    result = said(capsys)
    assert (result["runs"], result["failures"]) == (3, [])
    monkeypatch.setattr(Swarm, "try_seed", lambda search, seed: "it is 2" if seed == 2 else None)
    assert main("hunt --runs 4 --keep-going --quiet".split()) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first == "all orders: seed 2 fails: it is 2" and "4 runs, 1 failed" in last


def test_a_plan_is_played_again(capsys: pytest.CaptureFixture[str]) -> None:
    plan = '{"order": "fifo", "members": 2, "actions": [[0.1, 0, "send", [40, null, 3]]], "loss": 0.3}'
    assert main(["hunt", "--plan", plan]) == 0
    assert capsys.readouterr().out == "nothing is wrong with it\n"
    assert main(["hunt", "--plan", plan, "--json"]) == 0
    assert said(capsys) == {"order": "fifo", "found": []}
    assert main(["hunt", "--plan", "nonsense"]) == 2
    assert "no plan" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    ["sim", "live", "hunt", "bench", "check", "stamp", "report", "demo", "chat", "export", "dissect", "ior"],
)
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"inga {command}" in capsys.readouterr().out


def test_what_was_lost_and_who_repaired_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("sim --order remiop --members 4 --messages 20 --loss 0.2 --seed 1".split()) == 0
    told = capsys.readouterr().out
    line = next(line for line in told.splitlines() if line.startswith("recovery: "))
    lost, nacks, _, repairs, others, _ = map(int, re.findall(r"\d+", line))
    assert lost > nacks > 0 and repairs > others > 0


def test_nobody_joins_a_group_that_keeps_nothing_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("sim --order miop+acks --join 1".split()) == 2
    assert "nobody can join a group of order 'miop+acks' later" in capsys.readouterr().err


def test_members_of_a_group_that_speaks_miop_come_and_fail(capsys: pytest.CaptureFixture[str]) -> None:
    words = "sim --order remiop+vector --members 4 --join 1 --crash 1 --return 1 --seed 1"
    assert main(words.split()) == 0, capsys.readouterr()
