"""`inga check`: exit codes, one clear sentence for bad input, a table for people and JSON for programs."""

import json
from pathlib import Path

import pytest

from inga.certify.verdict import Answer, Certificate, ViolationGroup, Witness
from inga.cli.check import table
from inga.cli.main import main
from inga.model.errors import UsageError
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_weak_order_is_seen_to_break_causality(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lent: None
) -> None:
    trace = str(tmp_path / "fifo")
    simulate_trial(Trial("fifo", members=4, messages=50, loss=0.2, seed=1), Path(trace))

    assert main(["check", trace, "--checks", "fifo,causal,clocks", "--witnesses", "2", "--json"]) == 1

    told = capsys.readouterr()
    assert told.err.startswith("Spark on local[*] with Java ")
    found = json.loads(told.out)
    assert set(found) >= {
        "verdict",
        "events",
        "messages",
        "processes",
        "checks",
        "groups",
        "seconds",
        "payloads",
    }
    assert [(each["name"], each["verdict"]) for each in found["checks"]] == [
        ("fifo", "pass"),
        ("causal", "fail"),
        ("clocks", "unknown"),
    ]
    assert found["payloads"] == 200
    causal = found["checks"][1]
    assert len(causal["witnesses"]) == 2
    assert sum(group["count"] for group in found["groups"]) == causal["violations"]
    witness = causal["witnesses"][0]
    assert witness["chain"][0]["step"] == "send" and witness["chain"][-1]["step"] == "send"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{}/nowhere"], "inga check: {}/nowhere does not exist, so it is not a trace.\n"),
        (["{}"], "inga check: {} is empty, so it is not a trace.\n"),
        (["{}", "--witnesses", "-1"], "inga check: --witnesses is a number from 0 on, not -1\n"),
        (["{}", "--checks", "casual"], "inga check: no check 'casual'; did you mean 'causal'?"),
    ],
)
def test_bad_use_is_said_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code = main(["check", "--quiet", *(each.format(tmp_path) for each in arguments)])
    assert code == 2
    assert capsys.readouterr().err.startswith(message.format(tmp_path))


def test_a_missing_package_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inga.cli.check.find_spec", lambda name: None if name == "pyspark" else name)
    assert main(["check", str(tmp_path), "--engine", "spark"]) == 2
    assert capsys.readouterr().err == (
        "inga check: pyspark is not installed; certification needs it: pip install 'inga[spark]', or use --engine local, which needs only 'inga[trace]'\n"
    )


@pytest.mark.parametrize("missing", ["pyspark", "java"])
def test_where_spark_cannot_run_it_is_done_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def no_java() -> None:
        raise UsageError("Spark needs Java: there is none")

    if missing == "java":
        monkeypatch.setattr("inga.cli.check.find_java", no_java)
    else:
        monkeypatch.setattr("inga.cli.check.find_spec", lambda name: None if name == "pyspark" else name)
    simulate_trial(Trial("causal", 2, 3), trace=tmp_path / "run")
    assert main(["check", str(tmp_path / "run")]) == 0
    said, told = capsys.readouterr()
    assert "verdict: pass" in said and "in this process, without Spark" in told


def test_a_missing_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events").mkdir()
    assert main(["check", "--quiet", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"inga check: {tmp_path} has no manifest.json, so it is not a trace.\n"


def test_the_table_has_all_of_a_certificate() -> None:
    witness = Witness("causal", 0, 3, (0, 1), "mallory was late", "events/0-00000.parquet")
    certificate = Certificate(
        events=10, messages=2, deliveries=4, payloads=3, names=["a", "b"],
        checks=[Answer("causal", "fail", 1, "", [witness]), Answer("fifo", "unknown", reason="rows are missing")],
        groups=[ViolationGroup("a late message", ["causal"], 1, {})] * 12,
    )  # fmt: skip
    text = "\n".join(table(certificate))
    assert "mallory was late" in text and "[events/0-00000.parquet, position 3]" in text
    assert "in 2 more groups" in text
    assert "rows are missing" in text
    assert text.endswith("verdict: fail (0.0 s)")


def test_warnings_are_told() -> None:
    checks = [Answer("clocks", "pass", warnings=["file order contradicts the clocks in 1 place: x.log:3"])]
    shown = table(Certificate(4, 0, 0, 0, ["a"], checks, []))
    assert f"{'':<10} warning: file order contradicts the clocks in 1 place: x.log:3" in shown
    assert checks[0].to_json()["warnings"] == checks[0].warnings
