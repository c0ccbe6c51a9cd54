"""One description of a trial: said on a command line it is the same again, whoever runs it."""

import argparse
import shlex
from dataclasses import fields, replace

import pytest

from inga.cli import live, sim
from inga.model.errors import UsageError
from inga.sim.hunt import calls, case
from inga.trial.trial import Trial

LIVE_ONLY = {"via", "unsafe", "timeout"}
SIM_ONLY = {"datagram", "coarse"}


def parser(command: object) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    command.add_options(made)  # type: ignore[attr-defined]
    return made


def again(trial: Trial) -> Trial:
    """What its command describes."""
    return sim.trial_of(parser(sim).parse_args(shlex.split(trial.command())[2:]))


@pytest.mark.parametrize("order", ["vector", "co", "sco", "object", "remiop"])
def test_a_hunted_trial_is_its_command(order: str) -> None:
    for seed in range(30):
        played = case(order, seed)
        said = tuple((name, value) for name, value in played.option if value is not None)
        assert again(played) == replace(played, option=said)


def test_so_is_one_of_objects() -> None:
    trial = Trial("object", members=3, objects=2, misdeclare=("put", "put"), rate=20.0, delay=(0.5, 1.0))
    assert again(trial) == trial
    assert calls("object", 7).command().endswith("--objects 2")


def test_so_is_one_in_which_something_befalls_members() -> None:
    befallen = {
        "crash": 1,
        "back": 1,
        "pause": 1,
        "pause_for": 2.5,
        "partition": "alice,bob/cathy@1+2",
        "slow": "bob",
        "slow_policy": "skip",
        "patience": 2.5,
    }
    for rejoin in (None, False, True):
        trial = Trial(members=5, detect=0.5, rejoin=rejoin, rate=100.0, delay=(0.0, 0.5), **befallen)  # type: ignore[arg-type]
        assert again(trial) == trial


def test_they_talk_until_all_is_over() -> None:
    said = sim.trial_of(parser(sim).parse_args("--partition alice/bob@2+30".split()))
    assert said.length > 32 and said.cut is not None
    assert sim.trial_of(parser(sim).parse_args([])).messages == 100


def test_every_field_can_be_said() -> None:
    """An option that no command has could not be said again."""
    names = {each.name for each in fields(Trial)}
    said = {command: set(vars(parser(command).parse_args([]))) for command in (sim, live)}
    assert names - said[sim] == LIVE_ONLY
    assert names - said[live] == SIM_ONLY


def test_both_drivers_tell_the_same_in_a_manifest() -> None:
    trial = Trial("vector", members=3, messages=5, loss=0.1, subset=1, seed=4)
    one, other = trial.manifest("sim", full=True), trial.manifest("live", full=True)
    assert one.options == other.options and one.options["loss"] == 0.1
    assert (one.processes, one.guarantees, one.seed) == (other.processes, other.guarantees, other.seed)
    assert (one.clock, other.clock) == ("virtual", "wall")


def test_a_manifest_has_the_conflicts_that_there_are() -> None:
    """Also if members were told others."""
    right = Trial("object", members=2, objects=1)
    wrong = Trial("object", members=2, objects=1, misdeclare=("put", "put"))
    assert right.manifest("sim", full=True).conflicts == wrong.manifest("sim", full=True).conflicts
    assert ["put", "put"] in (right.manifest("sim", full=True).conflicts or {})["alice/tally1"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"datagram": 255}, "at least 256 bytes"),
        ({"window": 0}, "at least 1 byte"),
        ({"join": -1}, "come later"),
        ({"crash": -1}, "--crash is fewer"),
        ({"crash": 4}, "--crash is fewer"),
        ({"crash": 1, "back": 2}, "--return no more than crash"),
        ({"crash": 2, "pause": 2}, "--pause and --crash are fewer"),
        ({"pause": -1}, "--pause and --crash are fewer"),
        ({"pause": 1, "pause_for": 0.0}, "--pause-for is a number of seconds above 0"),
        ({"detect": -1.0}, "--detect is a number of seconds above 0"),
        ({"slow": "zoe"}, "--slow: no member 'zoe'; there are alice, bob, cathy, dave"),
        ({"slow_policy": "skip"}, "--slow-policy says what becomes of a slow member: name one with --slow"),
        ({"slow": "bob", "slow_policy": "kill"}, "--slow-policy is one of wait, expel, skip, not 'kill'"),
        ({"slow": "bob", "patience": 0.0}, "--patience is a number of seconds above 0"),
        ({"members": 0}, "a group of 0 members"),
        ({"size": 3}, "--size is at least 4"),
        ({"subset": 4}, "there are 3 others"),
        ({"rate": 0}, "the rate is a number of messages a second above 0, not 0"),
    ],
)
def test_what_is_refused(wrong: dict[str, int], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Trial(**wrong)  # type: ignore[arg-type]
