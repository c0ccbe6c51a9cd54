"""What befalls members: said on the command line, drawn from a seed, told as a story."""

import pytest

from inga.model.errors import UsageError
from inga.trial.course import Chronicle
from inga.trial.mishaps import Mishap, NetworkCut
from inga.trial.trial import Trial

PEOPLE = ("alice", "bob", "cathy", "dave")
CUT = Mishap(2.0, "cut", parts=(("alice", "bob"), ("cathy", "dave")))


def test_a_cut() -> None:
    cut = NetworkCut.parse("alice,bob/cathy,dave@2+3", PEOPLE)
    assert cut == ((("alice", "bob"), ("cathy", "dave")), 2.0, 3.0) and cut.ends == 5.0
    assert NetworkCut.parse("bob/dave/cathy@0.5+0.25", PEOPLE).parts == (
        ("bob", "alice"),
        ("dave",),
        ("cathy",),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("alice/bob", "--partition is A,B/C,D@2\\+3"),
        ("alice/bob@2", "cut at second 2 for 3 seconds"),
        ("alice/bob@x+3", "--partition is"),
        ("alice/bob@-1+3", "--partition is"),
        ("alice/bob@1+0", "--partition is"),
        ("alice/bob@1+inf", "--partition is"),
        ("alice@1+2", "two parts at least"),
        ("alice/@1+2", "with a member in each"),
        ("alice/zoe@1+2", "no member 'zoe'; there are alice, bob, cathy, dave"),
        ("alice,bob/bob@1+2", "bob is in two parts"),
    ],
)
def test_what_is_no_cut(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Trial(partition=text)


def test_what_a_seed_draws() -> None:
    """Nobody both crashes and stands still, and one that comes back has crashed before."""
    for seed in range(50):
        trial = Trial(
            members=6, messages=1000, rate=100.0, crash=2, back=1, pause=2, pause_for=4.0, seed=seed
        )
        assert trial.mishaps == trial.mishaps, "a seed is all there is"
        by_kind = {
            do: [each for each in trial.mishaps if each.do == do]
            for do in ("crash", "return", "pause", "resume")
        }
        assert [len(each) for each in by_kind.values()] == [2, 1, 2, 2]
        crashed, paused = ({each.name for each in by_kind[do]} for do in ("crash", "pause"))
        assert len(crashed | paused) == 4
        (back,) = by_kind["return"]
        assert any(each.name == back.name and each.at + 1 <= back.at for each in by_kind["crash"])
        assert all(3.0 <= each.at <= 7.0 for each in by_kind["crash"])
        assert [round(b.at - a.at, 6) for a, b in zip(by_kind["pause"], by_kind["resume"], strict=True)] == [
            4.0,
            4.0,
        ]
        assert trial.mishaps == sorted(trial.mishaps)


def test_who_comes_back_by_itself() -> None:
    assert [Trial(pause=1).returns, Trial(partition="alice/bob@1+1").returns] == [True, True]
    assert not Trial(crash=1).returns and Trial(crash=1, rejoin=True).returns
    assert not Trial(pause=1, rejoin=False).returns
    assert (Trial().forgives, Trial(crash=1).forgives, Trial(detect=3.0).forgives) == (None, 1.0, 3.0)


def chronicle() -> tuple[Chronicle, list[str]]:
    told: list[str] = []
    made = Chronicle(PEOPLE, told.append)
    enter(made, 1, PEOPLE, 0.0)
    return made, told


def enter(made: Chronicle, number: int, members: tuple[str, ...], at: float) -> None:
    for name in members:
        made.enters(name, number, f"{number} {members}", members, at)


def test_the_story_of_a_crash() -> None:
    made, told = chronicle()
    made.befalls(Mishap(1.0, "crash", "bob"), 1.0)
    rest = ("alice", "cathy", "dave")
    made.enters("alice", 2, "2", rest, 2.0)
    made.enters("cathy", 2, "2", rest, 2.1)
    assert told == ["1.0 s: bob killed", "2.0 s: view 2: alice cathy dave"], "dave is still in view 1"
    made.enters("dave", 2, "2", rest, 2.25)
    assert told[-1] == "2.2 s: bob gone from the view after 1.25 s"
    made.befalls(Mishap(3.0, "return", "bob"), 3.0)
    enter(made, 3, (*rest, "bob"), 3.4)
    course = made.finish(dict.fromkeys(PEOPLE, 0.5))
    assert course.settled == {"bob killed": 1.25, "bob starts again": 0.4}
    assert told[-1] == "3.4 s: bob back after 0.40 s"
    assert set(course.stopped) == set(rest), "bob was not there all the time"
    assert course.views == 3 and not course.unsettled


def test_the_story_of_a_cut() -> None:
    made, told = chronicle()
    made.befalls(CUT, 2.0)
    enter(made, 2, ("alice", "bob"), 3.0)
    assert not made.is_whole
    enter(made, 2, ("cathy", "dave"), 3.1)
    assert told[-1] == "3.1 s: one view in each part after 1.10 s"
    made.befalls(Mishap(5.0, "heal"), 5.0)
    assert not made.is_whole
    enter(made, 3, PEOPLE, 5.5)
    assert made.finish({}).settled["the network is whole again"] == 0.5


def test_of_a_part_without_a_majority_nothing_is_expected() -> None:
    made = Chronicle(PEOPLE, is_primary=True)
    enter(made, 1, PEOPLE, 0.0)
    made.befalls(Mishap(2.0, "cut", parts=(("alice", "bob", "cathy"), ("dave",))), 2.0)
    assert not made.is_whole
    enter(made, 2, ("alice", "bob", "cathy"), 3.0)
    assert made.is_whole and made.victims == {"dave"}
    made.befalls(Mishap(5.0, "heal"), 5.0)
    assert not made.is_whole


def test_those_who_never_agree_again() -> None:
    made, _ = chronicle()
    made.befalls(Mishap(1.0, "crash", "bob"), 1.0)
    enter(made, 2, ("alice", "cathy"), 2.0)
    course = made.finish({"alice": 3.0})
    assert course.unsettled == ["bob killed"] and course.longest_stop == 3.0
    assert "  bob killed: they never agreed again who is there" in course.summary
