"""What `inga lab members` makes of its measurements; the trials themselves are for `make trials`."""

import pytest

from inga.lab import members
from inga.lab.members import LiveTrial, troubles
from inga.lab.members.scenes import SCENES, Acted
from inga.lab.members.start import MeasuredStarts
from inga.trial.course import Course
from inga.trial.result import Result

KILLED, STOPPED, SPLIT, LONG = troubles(long=True)


def result(violations: int = 0, stopped: float = 1.2, unsettled: tuple[str, ...] = ()) -> Result:
    course = Course(3, {"alice killed": 1.1}, {"bob": stopped}, list(unsettled))
    pdus = dict.fromkeys(("data", "control", "repair"), 0)
    return Result("vector", 8, 0, 1, 1, 1, violations, {}, 1, pdus, 0, 1.0, 1.0, course=course)


def test_what_befalls_the_groups() -> None:
    crashed = [each.name for each in KILLED.mishaps if each.do == "crash"]
    assert crashed[0] == members.PEOPLE[0], "who leads is the first of all"
    assert sorted(crashed) == sorted(each.name for each in KILLED.mishaps if each.do == "return")
    (pause, resume) = STOPPED.mishaps
    assert resume.at - pause.at == 5.0
    for trouble, seconds in ((SPLIT, 3.0), (LONG, 70.0)):
        cut, heal = trouble.mishaps
        assert [len(part) for part in cut.parts] == [5, 3] and heal.at - cut.at == seconds
        assert members.trial_of("causal", trouble).length > heal.at
    assert len(troubles(long=False)) == 3


@pytest.mark.parametrize(
    ("trouble", "found", "verdict", "holds"),
    [
        (KILLED, result(), "pass", True),
        (KILLED, result(), "unknown", True),  # rows of the killed are missing
        (STOPPED, result(), "unknown", False),
        (STOPPED, result(), "pass", True),
        (STOPPED, result(), "fail", False),
        (STOPPED, result(violations=1), "pass", False),
        (STOPPED, result(stopped=2.1), "pass", False),
        (STOPPED, result(unsettled=("cathy goes on",)), "pass", False),
        (STOPPED, None, "cathy ended with 1", False),
    ],
)
def test_when_a_promise_was_kept(
    trouble: members.Trouble, found: Result | None, verdict: str, holds: bool
) -> None:
    played = LiveTrial("causal", trouble, found, verdict)
    assert (members._claim(played).verdict == "holds") == holds
    assert len(members._row(played)) == 7


def test_starts() -> None:
    assert MeasuredStarts("co", [0.1, 1.9]).claim().verdict == "holds"
    late = MeasuredStarts("co", [0.1, 2.1, 0.3])
    assert late.claim().verdict == "not reproduced" and late.row() == ["co", 3, 2, 0.3, 2.1]


def test_scenes() -> None:
    assert [scene.id for scene in SCENES] == "V19 V20 V21 V22 V23 V24 V27".split()
    scene = SCENES[0]
    assert Acted(scene, scene.took, 1.0, "").claim("pass").verdict == "holds"
    assert Acted(scene, scene.took, 1.0, "").claim("fail").verdict == "not reproduced"
    assert Acted(scene, {**scene.took, "judy": []}, 1.0, "").claim("pass").verdict == "not reproduced"
    assert Acted(scene, scene.took, 1.0, "nobody came").claim("pass").verdict == "not reproduced"
