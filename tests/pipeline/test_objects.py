"""Runs of objects, certified from their traces: what conflicts begins in one order everywhere, or the pair is named."""

from pathlib import Path
from typing import Any

import pytest

from inga.layers.shape import Faults
from inga.pipeline.jobs import check_trace
from inga.pipeline.watch import watch_trace
from inga.runs.live import LiveCase
from inga.runs.live_calls import LiveCalls
from inga.runs.live_calls import run as run_live
from inga.sim.calls import CallCase
from inga.sim.case import Case
from inga.trial.workload import Workload

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

WRONG = ("put", "put")


def check(path: Path, *, session: Any) -> Any:
    return check_trace(str(path), session=session)[1]


def named(verdict: Any) -> list[str]:
    (judged,) = [each for each in verdict.to_json()["checks"] if each["name"] == "object"]
    assert judged["violations"] > 0
    return [witness["text"] for witness in judged["witnesses"]]


def test_simulated_copies_agree_and_a_wrong_declaration_is_named(spark: Any, tmp_path: Path) -> None:
    case = Case(order="object", members=4, messages=10, loss=0.05, seed=3)
    assert not CallCase(case, 2).run(tmp_path / "right").violations
    assert check(tmp_path / "right", session=spark).verdict == "pass"
    assert watch_trace(str(tmp_path / "right"), session=spark).verdict == "pass"
    assert CallCase(case, 2, WRONG).run(tmp_path / "wrong").violations
    verdict = check(tmp_path / "wrong", session=spark)
    assert verdict.verdict == "fail"
    for text in named(verdict):
        assert text.count(" put (message ") == 2 and "/tally" in text


@pytest.mark.network
@pytest.mark.parametrize("wrong", [None, WRONG])
def test_live_copies_agree_unless_their_conflicts_are_declared_wrongly(
    spark: Any, tmp_path: Path, wrong: tuple[str, str] | None
) -> None:
    """Five processes, a copy of each object at every one, one datagram in twenty lost."""
    case = LiveCase(Workload(5, 8), order="object", faults=Faults(loss=0.05), trace=tmp_path / "run", seed=1)
    result = run_live(LiveCalls(case, 1, wrong))
    assert result.delivered == result.expected
    assert bool(result.violations) == (wrong is not None), result.witnesses
    verdict = check(tmp_path / "run", session=spark)
    assert verdict.verdict == ("pass" if wrong is None else "fail")
    if wrong is not None:
        assert all(text.count(" put (message ") == 2 for text in named(verdict))


@pytest.mark.parametrize(("order", "claims"), [("object", "object"), ("total", "total")])
def test_plain_messages_are_certified_too(spark: Any, tmp_path: Path, order: str, claims: str) -> None:
    keys = (("keys", 2),) if order == "object" else ()
    assert (
        not Case(order=order, members=4, messages=10, loss=0.05, option=keys).run(tmp_path / "run").violations
    )
    verdict = check(tmp_path / "run", session=spark)
    assert verdict.verdict == "pass" and claims in {each["name"] for each in verdict.to_json()["checks"]}
