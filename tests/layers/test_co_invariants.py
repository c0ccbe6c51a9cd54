"""Random schedules against plain sets, and what happens to them when a rule is broken.

A failing seed is played again with `World(Setting.of(seed)).run()`.
"""

from typing import Any

import pytest

from inga.layers.co import ordering as module
from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import CoMessage
from inga.model.packet import Runs
from inga.wire.co import CoExtension, pack

from .co_world import Setting, World, found

SAMPLE = 160
ALL = 20_000
PARTS = 20


@pytest.mark.parametrize("part", range(4))
def test_a_sample_of_schedules(part: int) -> None:
    for seed in range(part, SAMPLE, 4):
        World(Setting.of(seed)).run()


@pytest.mark.hunt
@pytest.mark.parametrize("part", range(PARTS))
def test_all_schedules(part: int) -> None:
    for seed in range(part, ALL, PARTS):
        World(Setting.of(seed)).run()


def test_the_worlds_are_worth_judging() -> None:
    """Every kind of trouble occurs among the samples, and something comes of it."""
    worlds = [World(Setting.of(seed)) for seed in range(40)]
    for world in worlds:
        world.run()
    settings = [world.setting for world in worlds]
    assert {setting.n for setting in settings} == {2, 3, 4, 5}
    assert {setting.window for setting in settings} == {1, 2, 4, 8}
    assert {setting.deliver for setting in settings} == {"causal", "confirmed", "acknowledged"}
    assert any(0 in setting.messages for setting in settings)
    assert any(setting.quota == 1 for setting in settings)
    assert any(setting.faults.loss == 0.4 for setting in settings)
    steps = {row.step for world in worlds for row in world.rows}
    assert steps >= {"hold", "duplicate", "gap", "nack", "repair", "control", "poll", "window_closed"}
    assert sum(world.stacks[0].counts["overrun"] for world in worlds)
    assert any(len(causes) > 3 for world in worlds for causes in world.causes.values())


# Broken rules: each must be found by the judge


class NoGate(CoMachine):
    """A1 without `ACK_k <= REQ_k`."""

    def _is_acceptable(self, claims: Any) -> bool:
        return True


class Mixed(CoMachine):
    """P3 by the entry-wise maximum of what data and words say."""

    def _acknowledge(self) -> None:
        for sender in range(len(self.expected)):
            data, word = self.known_confirmed.rows[sender], self.reported_confirmed.rows[sender]
            low = min(map(max, data, word))
            self.known_confirmed.lowest[sender] = max(low, self.known_confirmed.lowest[sender])
        super()._acknowledge()


class Mute(CoMachine):
    """No confirmations at all."""

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        self.dirty = False
        self._spoke()


class PrintedRange(CoMachine):
    """L3 as printed, `(ACK_j, LSEQ]`, without the time-out of the source."""

    def _repair(self, member: int, runs: Runs) -> None:
        super()._repair(member, tuple((low + 1, high + 1) for low, high in runs))

    def _on_resend(self, _: int) -> None:
        pass


class Forgetful(CoMachine):
    """K1 without processing our own confirmation."""

    def _know_ourselves(self) -> None:
        pass


class NoPolls(CoMachine):
    """No K3."""

    def _is_unfinished(self) -> bool:
        return False


def test_mutation_acceptance_without_the_gate() -> None:
    assert found(NoGate, range(60)) is not None


def test_mutation_entrywise_maximum() -> None:
    message = found(Mixed, range(400), n=3)
    assert message is not None and "5:" in message


def test_mutation_no_confirmations() -> None:
    assert found(Mute, range(10)) is not None


def test_mutation_printed_range_without_source_timeout() -> None:
    assert found(PrintedRange, range(20)) is not None


def test_mutation_own_confirmation_not_processed() -> None:
    assert found(Forgetful, range(20), window=1, self_knowledge="printed") is not None


def test_mutation_no_polls_under_loss() -> None:
    message = found(NoPolls, range(40))
    assert message is not None and "something is not acknowledged" in message


# Others, of rules that are easily lost


class EarlyRelease(CoMachine):
    """L5 as soon as one other member has it."""

    def _merge(self, *given: Any) -> bool:
        moved = super()._merge(*given)
        row = self.known_accepted.rows[self.me]
        bound = max(number for m, number in enumerate(row) if m != self.me)
        for seq in [seq for seq in self.unreleased if seq < bound]:
            del self.unreleased[seq]
        return moved


class RefreshedVector(CoMachine):
    """A repeated message that tells the latest."""

    def _send_again(self, member: int, messages: list[CoMessage]) -> None:
        for message in messages:
            packet = message.body
            expected = tuple(packet.seq if k == self.me else a for k, a in enumerate(self.expected))
            packet.ext, packet.encoded = pack(CoExtension(message.free, expected)), None
        super()._send_again(member, messages)


class NoQuota(CoMachine):
    """B2 without eviction or refusal."""

    def _make_room(self, message: CoMessage) -> bool:
        return True


class SilentDuplicates(CoMachine):
    """R1 without owing a confirmation, and no polls to make up for it."""

    def receive(self, message: CoMessage) -> bool:
        dirty = self.dirty
        duplicate = message.seq < self.expected[message.src]
        is_new = super().receive(message)
        if duplicate:
            self.dirty = dirty
        return is_new

    def _is_unfinished(self) -> bool:
        return False


@pytest.mark.parametrize("broken", [EarlyRelease, RefreshedVector, NoQuota, SilentDuplicates])
def test_other_mutations(broken: type[CoMachine]) -> None:
    assert found(broken, range(120)) is not None


@pytest.mark.interpreted
def test_mutation_log_without_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5 that always appends."""
    monkeypatch.setattr(module, "insert_causally", lambda log, message, start=0: log.append(message))
    assert found(CoMachine, range(120)) is not None


def test_mutation_vectors_never_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong base for a vector is noticed: here every message claims to be the first in full."""

    class WrongBase(CoMachine):
        def _vector_before(self, src: int, seq: int) -> Any:
            return self.vectors[src]

    assert found(WrongBase, range(200)) is not None
