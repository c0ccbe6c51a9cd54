"""The printed rules, and what else could go wrong with ours: each defect is found by the check that is meant for it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import precedes
from inga.layers.sco.parts import NumberPairs, ScoMessage
from inga.layers.sco.underway import Underway

from ..scenarios.play_sco import ScoScript
from .sco_printed import InHand
from .sco_world import Broken, Links, Plan, World, plan, run_seed

FOLDER = Path(__file__).parents[1] / "scenarios" / "sco"
SEEDS = range(60)
SOON = 5000.0
"""By then a run of the right rules is over, for all but the unluckiest seeds."""


def broken(make: type[ScoMachine], seeds: range = SEEDS, **fixed: object) -> list[str]:
    """What is found over these seeds."""
    found = []
    for seed in seeds:
        try:
            run_seed(seed, make, patience=SOON, **fixed)
        except Broken as error:
            found.append(str(error))
    return found


def differs(make: type[ScoMachine], scenario: str) -> bool:
    """Whether a scenario prints something else."""
    return ScoScript(make).differs((FOLDER / f"{scenario}.txt").read_text())


class PrintedStep2(InHand):
    """With a clear top, also move every top concurrent with it."""

    def _order(self) -> None:
        self._work.clear()
        while self.accepted and self._has_all_in_hand():
            tops = [queue[0] for queue in self.accepted.values()]
            clear = [top for top in tops if self._is_clear_of_all(top)]
            if not clear:
                return
            first = clear[0]
            for top in tops:
                if top is first or not (precedes(top, first) or precedes(first, top)):
                    self._move(top)


def test_printed_step_2() -> None:
    assert differs(PrintedStep2, "v3")
    found = broken(PrintedStep2, mode="wait")
    assert len(found) > 3
    assert any("before its cause" in each for each in found)


class ReportsWithoutPlusOne(ScoMachine):
    """AL := sqn."""

    def _report(self, message: ScoMessage) -> None:
        super()._report(message)
        row = self.known_accepted[self.me]
        row[message.src] = message.seq


def test_acceptance_reported_without_plus_one() -> None:
    assert differs(ReportsWithoutPlusOne, "v1")
    found = broken(ReportsWithoutPlusOne, range(4))
    assert len(found) == 4, "the last message is never confirmed anywhere"


class WithoutCoverage(ScoMachine):
    """C2 without COV: an empty queue blocks nothing."""

    def _cleared(self, member: int) -> float:
        return super()._cleared(member) if member in self.accepted else float("inf")


def test_coverage_not_tested() -> None:
    assert differs(WithoutCoverage, "v1")
    found = broken(WithoutCoverage, mode="csn")
    assert len(found) > 10
    assert any("before its cause" in each for each in found)


class WithoutTheOthers(ScoMachine):
    """What is in order here counts as accepted by all."""

    def _enter_log(self, message: ScoMessage) -> None:
        super()._enter_log(message)
        for member in range(self.members):
            self._has_accepted(message, member)


def test_acceptance_taken_for_that_of_all() -> None:
    found = broken(WithoutTheOthers, range(12))
    assert len(found) > 8
    assert any("for confirmed, but" in each for each in found)


class StampedWithAck(ScoMachine):
    """Ordered by what was confirmed instead of by the causal clock."""

    def _changes(self, since: int) -> NumberPairs:
        reported = self.known_accepted.get(self.me, {})
        return tuple((j, upto - 1) for j, upto in sorted(reported.items()) if j != self.me)


def test_ack_compared_instead_of_csn() -> None:
    assert differs(StampedWithAck, "v1")
    found = broken(StampedWithAck)
    assert len(found) > 10
    assert any("by stamps" in each or "before its cause" in each for each in found)


class NeverAsksForCoverage(ScoMachine):
    def _on_probe(self, _: int) -> None:
        pass


def hearsay(make: type[ScoMachine], noted_max: int = 0) -> World:
    """2 writes to 3 alone and never again; 3 writes to 1, which cannot know that nothing of 2's is missing, unless it is
    told."""
    settings = plan(0, mode="csn", noted_max=noted_max).settings
    world = World(Plan(3, settings, Links(), sends=0, patience=SOON), 0, make)
    world.push(0.0, 1, 1 << 2)
    world.push(10.0, 2, 1 << 0)
    world.run()
    return world


def test_no_coverage_query_with_a_silent_member() -> None:
    hearsay(ScoMachine)
    with pytest.raises(Broken, match="not idle"):
        hearsay(NeverAsksForCoverage)
    assert len(broken(NeverAsksForCoverage, range(30), noted_max=0)) >= 3
    hearsay(NeverAsksForCoverage, noted_max=1)
    assert not broken(ScoMachine, range(30))


def noting(kind: type[Underway]) -> type[ScoMachine]:
    """A machine that notes by other rules what is under way."""

    class Noting(ScoMachine):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self._underway = kind(self.me, self.settings.noted_max)

    return Noting


class NotesNothingOfItsOwn(Underway):
    def sent(self, seq: int, to: Iterable[int]) -> None:
        pass


class BelievesNobody(Underway):
    """What others have noted is left out."""

    def accepted(self, message: ScoMessage, clock: Sequence[int]) -> None:
        noted, message.noted = message.noted, message.noted and ()
        super().accepted(message, clock)
        message.noted = noted


class ForgetsWhatOthersDoNotNote(Underway):
    """Whatever its sender has not noted is forgotten, also what that does not know of."""

    def accepted(self, message: ScoMessage, clock: Sequence[int]) -> None:
        deps, message.deps = message.deps, (1 << 30,) * len(clock)
        super().accepted(message, clock)
        message.deps = deps


class PassesNothingOn(Underway):
    """A destination of a message does not note that there are others."""

    def accepted(self, message: ScoMessage, clock: Sequence[int]) -> None:
        dst, message.dst = message.dst, 0
        super().accepted(message, clock)
        message.dst = dst


class KnowsTooLittle(Underway):
    """One who was told nothing by somebody goes on telling."""

    def accepted(self, message: ScoMessage, clock: Sequence[int]) -> None:
        if message.noted is not None:
            super().accepted(message, clock)


@pytest.mark.parametrize(
    ("kind", "noted_max"),
    [
        (NotesNothingOfItsOwn, 512),
        (BelievesNobody, 512),
        (ForgetsWhatOthersDoNotNote, 512),
        (PassesNothingOn, 512),
        (KnowsTooLittle, 2),
    ],
)
def test_what_is_under_way_is_noted_wrong(kind: type[Underway], noted_max: int) -> None:
    found = broken(noting(kind), mode="csn", noted_max=noted_max)
    assert any("before its cause" in each for each in found)
    assert not broken(noting(Underway), range(20), mode="csn", noted_max=noted_max)


class NeverAsksForAtomicity(ScoMachine):
    def _on_poll(self, _: int) -> None:
        pass


def test_no_atomicity_query_under_loss() -> None:
    lossy = [seed for seed in SEEDS if plan(seed).links.loss]
    found = [seed for seed in lossy if broken(NeverAsksForAtomicity, range(seed, seed + 1))]
    assert len(found) > 3
    for seed in found:
        run_seed(seed)
    for seed in set(SEEDS).difference(lossy):
        run_seed(seed, NeverAsksForAtomicity)  # without loss there is no difference


def deadlocks(*, fifo: bool) -> int:
    """Of schedules with one buffer per source, a wide window and no throttle: how many never end."""
    stuck = 0
    for seed in range(40):
        drawn = plan(seed, mode="csn", fifo=fifo, quota=1, window=8, throttle=False)
        tight = Plan(4, drawn.settings, Links(), sends=24, span=6.0, patience=1500.0, printed=drawn.printed)
        try:
            World(tight, seed).run()
        except Broken:
            stuck += 1
    return stuck


def test_fifo_with_small_buffers_deadlocks() -> None:
    assert deadlocks(fifo=False) == 0
    assert deadlocks(fifo=True) > 0


def test_fifo_is_safe_where_buffers_are_not_short() -> None:
    for seed in range(40):
        run_seed(seed, fifo=True, quota=16, window=4)


class PrintedFlow(ScoMachine):
    """The window counts from the lowest number anybody reported, whether ever written to or not."""

    @property
    def oldest_unreleased(self) -> int:
        return min(self.accepted_by(h, self.me) for h in range(self.members) if h != self.me)


def test_printed_flow_rule() -> None:
    assert differs(PrintedFlow, "v4"), "it stops after two messages"
    assert len(broken(PrintedFlow, range(12), window=2)) > 5


class OwesNothingToTheSource(ScoMachine):
    """ACC for the destinations only."""

    def _report(self, message: ScoMessage) -> None:
        owed = set(self.owed_since)
        super()._report(message)
        if not message.dst >> message.src & 1 and message.src not in owed:
            self.owed_since.pop(message.src, None)


class OwesTooSoon(ScoMachine):
    """ACC raised at continuous acceptance, though what is confirmed is causal acceptance."""

    def _enter(self, message: ScoMessage) -> None:
        for member in self._remote(message.dst | 1 << message.src):
            self._owe(member)
        super()._enter(message)


@pytest.mark.parametrize("mutant", [OwesNothingToTheSource, OwesTooSoon])
def test_what_random_runs_do_not_see(mutant: type[ScoMachine]) -> None:
    """Retransmissions repair both, at a price: only the column of what is owed shows them."""
    for seed in range(20):
        run_seed(seed, mutant)
    assert differs(mutant, "v1")


def test_nothing_owed_to_the_source() -> None:
    assert differs(OwesNothingToTheSource, "v5")


@pytest.mark.parametrize("scenario", ["v1", "v3", "v4", "v5"])
def test_the_right_rules_change_nothing(scenario: str) -> None:
    assert not differs(ScoMachine, scenario)
