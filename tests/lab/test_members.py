"""What `inga lab members` makes of its measurements; the trials themselves are for `make trials`."""

from dataclasses import replace
from pathlib import Path

import pytest

from inga.lab import members
from inga.lab.experiments import Outcome
from inga.lab.members.scenes import SCENES, Acted
from inga.lab.members.start import MeasuredStarts
from inga.lab.members.trials import ORDERS, PEOPLE, LiveTrial, Trouble, trial_of, troubles
from inga.model.errors import UsageError
from inga.trial.calls import CallResult
from inga.trial.course import Course
from inga.trial.result import Result

KILLED, STOPPED, PRIMARY, ALL, LONG_PRIMARY, LONG_ALL = troubles(long=True)
PARTS = [list(PEOPLE[:5]), list(PEOPLE[5:])]


def result(violations: int = 0, stopped: float = 1.2, **course: object) -> Result:
    came = Course(3, {"alice killed": 1.1}, {"bob": stopped}, **course)  # type: ignore[arg-type]
    pdus = dict.fromkeys(("data", "control", "repair"), 0)
    return Result("vector", 8, 0, 1, 1234, 1, violations, {}, 1, pdus, 0, 1.0, 1.0, course=came)


def merged(*people: str, parts: list[list[str]] = PARTS) -> dict[str, list[list[list[str]]]]:
    return {name: [[["ann"], ["zoe"]], parts[::-1]] for name in people}


def test_what_befalls_the_groups() -> None:
    crashed = [each.name for each in KILLED.mishaps if each.do == "crash"]
    assert crashed[0] == PEOPLE[0], "who leads is the first of all"
    assert sorted(crashed) == sorted(each.name for each in KILLED.mishaps if each.do == "return")
    (pause, resume) = STOPPED.mishaps
    assert resume.at - pause.at == 5.0
    splits = {PRIMARY: 3.0, ALL: 3.0, LONG_PRIMARY: 70.0, LONG_ALL: 70.0}
    for trouble, seconds in splits.items():
        cut, heal = trouble.mishaps
        assert [len(part) for part in cut.parts] == [5, 3] and heal.at - cut.at == seconds
        for order in ORDERS:
            trial = trial_of(order, trouble, 1.0)
            assert trial.length > heal.at and trial.is_primary == (trouble in (PRIMARY, LONG_PRIMARY))
    assert len(troubles(long=False)) == 4


@pytest.mark.parametrize(
    ("trouble", "found", "verdict", "fault"),
    [
        (KILLED, result(), "pass", None),
        (KILLED, result(), "unknown", None),  # rows of the killed are missing
        (STOPPED, result(), "unknown", "check: unknown"),
        (STOPPED, result(), "pass", None),
        (STOPPED, result(), "fail", "check: fail"),
        (STOPPED, result(violations=1), "pass", "1 violations"),
        (STOPPED, result(stopped=2.1), "pass", "stopped for more than 2 s"),
        (STOPPED, result(unsettled=["cathy goes on"]), "pass", "never agreed: cathy goes on"),
        (STOPPED, result(states=2), "pass", "2 states"),
        (STOPPED, None, "cathy ended with 1", "cathy ended with 1"),
        (PRIMARY, result(), "pass", None),
        (ALL, result(merged=merged(*PEOPLE)), "pass", None),
        (ALL, result(merged=merged(*PEOPLE[1:])), "pass", "on_merge was given"),
        (ALL, result(merged=merged(*PEOPLE, parts=[PARTS[0]])), "pass", "on_merge was given"),
    ],
)
def test_when_a_promise_was_kept(
    trouble: Trouble, found: Result | None, verdict: str, fault: str | None
) -> None:
    played = LiveTrial("causal", trouble, 1.0, found, verdict)
    claim = played.claim()
    assert (claim.verdict == "holds") == (fault is None)
    assert fault is None or fault in claim.measured
    assert len(played.row()) == 8
    assert found is None or "3 views, 1,234 delivered" in claim.measured


def test_of_objects_calls_are_counted() -> None:
    pdus = dict.fromkeys(("data", "control", "repair"), 0)
    found = CallResult("total", 8, 0, 9, 0, 0, 0, {}, 1, pdus, 0, 1.0, 1.0, course=Course(), committed=77)
    played = LiveTrial("total", KILLED, 1.0, found, "pass")
    assert "77 calls committed" in played.claim().measured and played.row()[5] == 77


def test_a_busy_machine_is_forgiven_more() -> None:
    late = LiveTrial("causal", STOPPED, 2.0, result(stopped=2.9), "pass")
    assert late.claim().verdict == "holds" and "at most 3 s" in late.claim().statement
    assert trial_of("causal", STOPPED, 2.0).detect == 2.0


def test_starts() -> None:
    on_time = MeasuredStarts("co", [0.1, 1.9], "pass")
    assert on_time.claim().verdict == "holds"
    assert on_time._replace(check="fail").claim().verdict == "not reproduced"
    late = MeasuredStarts("co", [0.1, 2.1, 0.3], "pass")
    assert late.claim().verdict == "not reproduced" and late.row() == ["co", 3, 2, 0.3, 2.1, "pass"]


def test_scenes() -> None:
    assert [scene.id for scene in SCENES] == "V19 V20 V21 V22 V23 V24 V27".split()
    scene = SCENES[0]
    assert Acted(scene, scene.took, 1.0, "").claim("pass").verdict == "holds"
    assert Acted(scene, scene.took, 1.0, "").claim("fail").verdict == "not reproduced"
    assert Acted(scene, {**scene.took, "judy": []}, 1.0, "").claim("pass").verdict == "not reproduced"
    assert Acted(scene, scene.took, 1.0, "nobody came").claim("pass").verdict == "not reproduced"


def test_what_is_not_kept_is_a_failure_of_the_command() -> None:
    kept = MeasuredStarts("co", [0.1], "pass").claim()
    broken = replace(kept, verdict="not reproduced")
    assert not Outcome([kept], is_binding=True).has_failed
    assert Outcome([kept, broken], is_binding=True).has_failed
    assert not Outcome([broken]).has_failed, "a paper may be wrong"


def test_only_some_of_the_trials(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trial is called so"):
        members.run(tmp_path, False, lambda text: None, only="total stolen")
    with pytest.raises(UsageError, match="--detect is a number of seconds above 0"):
        members.run(tmp_path, False, lambda text: None, detect=-1.0)
