"""`inga watch`: what it prints, and what it refuses before Spark starts."""

from pathlib import Path

import pytest

from inga.certify.verdict import Answer, Certificate, Witness
from inga.cli import watch
from inga.cli.main import main
from inga.lab.traces import TraceRecipe, make
from inga.pipeline.remembering import NewViolations
from inga.pipeline.watching import Looked


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{}/nowhere", "{}/nowhere does not exist, so it is not a trace."),
        ("{}/trace --poll 0", "--poll is a number of milliseconds above 0, not 0"),
        (
            "{}/trace --webhook file:///etc/passwd",
            "--webhook is an address with http or https, not 'file:///etc/passwd'",
        ),
        ("{}/trace --witnesses -1", "--witnesses is a number from 0 on, not -1"),
        ("{}/trace --checks casual", "no check 'casual'; did you mean 'causal'?"),
        ("{}/trace --checkpoint {}/memory", "{}/memory is no checkpoint of inga watch: name a new directory"),
    ],
)
def test_what_is_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    make(tmp_path / "trace", TraceRecipe(200, 3), segment_rows=100)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "head.json").write_text("[")
    assert main(["watch", "--quiet", *(word.replace("{}", str(tmp_path)) for word in words.split())]) == 2
    error = capsys.readouterr().err
    assert error.startswith("inga watch: ") and message.replace("{}", str(tmp_path)) in error
    assert error.count("\n") == 1


def test_a_line_for_every_look_and_one_for_a_violation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def certificate(*witnesses: Witness) -> Certificate:
        verdict = "fail" if witnesses else "unknown"
        return Certificate(
            events=1234, messages=2, deliveries=4, payloads=3, names=["a"], groups=[],
            checks=[Answer("causal", verdict, len(witnesses), "", list(witnesses))],
        )  # fmt: skip

    def looked(path: str, checks: object, **options: object) -> Certificate:
        tell = options["tell"]
        assert callable(tell)
        tell(Looked(certificate()))
        late = certificate(Witness("causal", 0, 3, (0, 1), "\x1b[2Jtoo late", "events/0-00000.parquet"))
        tell(Looked(late, 1.25))
        announce = options["announce"]
        assert callable(announce)
        assert announce(NewViolations("run", "causal", 0, 1, late.checks[0].witnesses))
        return late

    monkeypatch.setattr("inga.pipeline.watching.watch_trace", looked)
    assert main(["watch", str(tmp_path)]) == 1
    out, error = capsys.readouterr()
    assert "1,234 events: no violation\n1,234 events: 1 violations, 1.2 s behind\n" in error
    assert "causal: 1 new violations, 1 in all\n  causal: \\x1b[2Jtoo late" in error
    assert "verdict: fail" in out
    assert watch.__doc__ and "inga watch run7" in watch.__doc__
