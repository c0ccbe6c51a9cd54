"""Runs of objects, certified from their traces: what conflicts begins in one order everywhere, or the pair is named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inga.pipeline.jobs import check_trace
from inga.pipeline.watching import watch_trace
from inga.recipes import Options, find
from inga.runs.live_calls import run as run_live
from inga.sim.recording import Recording
from inga.sim.simulator import Sim
from inga.sim.trials import simulate_trial
from inga.trial.manifest import manifest_of
from inga.trial.trial import Trial

from ..objects.classes import Document

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

WRONG = ("put", "put")


def check(path: Path, *, session: Any) -> Any:
    return check_trace(str(path), session=session)[1]


def named(verdict: Any) -> list[str]:
    (judged,) = [each for each in verdict.to_json()["checks"] if each["name"] == "object"]
    assert judged["violations"] > 0
    return [witness["text"] for witness in judged["witnesses"]]


def test_simulated_copies_agree_and_a_wrong_declaration_is_named(spark: Any, tmp_path: Path) -> None:
    trial = Trial(order="object", members=4, messages=10, loss=0.05, seed=3, objects=2)
    assert not simulate_trial(trial, tmp_path / "right").violations
    assert check(tmp_path / "right", session=spark).verdict == "pass"
    assert watch_trace(str(tmp_path / "right"), session=spark).verdict == "pass"
    assert simulate_trial(replace(trial, misdeclare=WRONG), tmp_path / "wrong").violations
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
    trial = Trial("object", members=5, messages=8, loss=0.05, seed=1, objects=1, misdeclare=wrong)
    result = run_live(trial, tmp_path / "run")
    assert result.delivered == result.expected
    assert bool(result.violations) == (wrong is not None), result.witnesses
    verdict = check(tmp_path / "run", session=spark)
    assert verdict.verdict == ("pass" if wrong is None else "fail")
    if wrong is not None:
        assert all(text.count(" put (message ") == 2 for text in named(verdict))


@pytest.mark.parametrize(("order", "claims"), [("object", "object"), ("total", "total")])
def test_plain_messages_are_certified_too(spark: Any, tmp_path: Path, order: str, claims: str) -> None:
    keys = (("keys", 2),) if order == "object" else ()
    assert not simulate_trial(
        Trial(order=order, members=4, messages=10, loss=0.05, option=keys), tmp_path / "run"
    ).violations
    verdict = check(tmp_path / "run", session=spark)
    assert verdict.verdict == "pass" and claims in {each["name"] for each in verdict.to_json()["checks"]}


def recorded(path: Path, order: str, *, objects: Any = None, **protocol: Any) -> tuple[Sim, Recording]:
    """A simulated group of three whose trace is written there, with nothing to do yet."""
    names, recipe = ("alice", "bob", "cathy"), find(order)
    layout = recipe.layout(names, objects, protocol)
    recording = Recording(
        path, manifest_of(recipe, names, layout, group="g", source="sim", full=True), len(names), full=True
    )
    options = Options(protocol=protocol)
    sim = Sim(
        *names, order=order, seed=4, objects=objects, options=options, recording=recording, record=False
    )
    return sim, recording


@pytest.mark.parametrize(("order", "verdict"), [("object", "unknown"), ("total", "pass")])
def test_where_arguments_decide_nothing_passes_unjudged(
    spark: Any, tmp_path: Path, order: str, verdict: str
) -> None:
    sim, recording = recorded(tmp_path, order, objects={"text": Document})
    for site in sim.sites:
        site.call("text", "edit", "one", site.name)
        site.call("text", "render")
    recording.run(sim, sim.run)
    found = check(tmp_path, session=spark)
    assert found.verdict == verdict
    if verdict == "unknown":
        assert "arguments decide whether edit and edit conflict" in found.to_json()["checks"][0]["reason"]


def first_byte(payload: bytes) -> bytes:
    return payload[4:5]  # behind the number that the simulator puts in front


def test_messages_are_certified_by_the_keys_that_a_function_gives(spark: Any, tmp_path: Path) -> None:
    sim, recording = recorded(tmp_path, "object", key=first_byte)
    for number in range(6):
        for site in sim.sites:
            site.send(bytes([number % 2]))
    recording.run(sim, sim.run)
    assert check(tmp_path, session=spark).verdict == "pass"
