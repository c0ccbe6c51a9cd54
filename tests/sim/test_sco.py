"""SCO whole, in virtual time: what was promised, at every level, under faults, with silence, and in large groups."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from inga.certify.certificate import certify
from inga.certify.chunk import DELIVER, from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.layers.sco import layer
from inga.layers.sco.layer import Sco
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.parts import ScoMessage
from inga.layers.shape import Faults
from inga.recipes import Options, find
from inga.sim import Sim
from inga.sim.board import lossless, replay
from inga.sim.hunt import try_seed
from inga.sim.trials import simulate_trial
from inga.stack.hooks import Holdings
from inga.stack.layer import Layer
from inga.stack.stack import Stack
from inga.trace import read_processes
from inga.trace.reader import read_manifest
from inga.trial.trial import Trial
from inga.wire import bundle, shares
from inga.wire.shares import Share, share_out

from .walks import wander_to_some


@pytest.mark.parametrize("seed", range(0, 120, 20))
def test_groups_of_all_kinds(seed: int) -> None:
    for each in range(seed, seed + 20):
        assert try_seed("sco", each) is None


def test_the_triangle() -> None:
    sim = Sim("alice", "bob", "cathy", order="sco", deliver="causal")
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda delivery: sim["bob"].send(b"effect", to="cathy")
    sim["alice"].send(b"cause", to="cathy")
    sim["alice"].send(b"hint", to="bob")
    sim.run()
    sim.check()
    assert sim["cathy"].texts == ["cause", "effect"]
    assert sim["bob"].texts == ["hint"]


def test_the_triangle_move_by_move() -> None:
    schedule = "A!1:C A!2:B 2>B B!3:C 3>C 1>C"
    assert replay(schedule, "sco").taken == [[], [2], [1, 3]]
    assert replay(schedule, "fifo").taken == [[], [2], [3, 1]]


def test_self_among_the_destinations_is_an_echo() -> None:
    sim = Sim("alice", "bob", order="sco")
    sim["alice"].send(b"me too", to=["alice", "bob"])
    sim["alice"].send(b"not me", to="bob")
    sim.run()
    sim.check()
    assert sim["alice"].texts == ["me too"]
    assert sim["bob"].texts == ["me too", "not me"]


def test_a_member_that_never_speaks_blocks_nobody() -> None:
    sim = Sim("alice", "bob", "cathy", "silent", order="sco", faults=Faults(loss=0.2, delay_max=0.01))
    for number in range(20):
        sim["alice"].send(f"{number}".encode(), to=["bob", "silent"])
        sim["bob"].send(f"{number}".encode(), to="cathy")
        sim["cathy"].send(f"{number}".encode(), to="alice")
    sim.run()
    sim.check()
    assert len(sim["cathy"].texts) == len(sim["silent"].texts) == 20


@pytest.mark.parametrize(
    ("deliver", "promised"),
    [
        ("received", {"integrity", "complete", "stamps", "atomic", "quiet"}),
        ("accepted", {"integrity", "complete", "fifo", "stamps", "atomic", "quiet"}),
        ("causal", {"integrity", "complete", "fifo", "stamps", "causal", "atomic", "quiet"}),
        ("confirmed", {"integrity", "complete", "fifo", "stamps", "causal", "atomic", "quiet"}),
    ],
)
def test_a_trace_claims_what_its_level_promises(tmp_path: Path, deliver: str, promised: set[str]) -> None:
    result = simulate_trial(Trial("sco", messages=10, subset=2, loss=0.1, deliver=deliver), tmp_path / "run")
    assert result.violations == 0
    manifest = read_manifest(tmp_path / "run")
    assert set(manifest.guarantees) == {*promised, "views"}
    assert manifest.receipt == "accept"


def test_only_destinations_get_copies() -> None:
    """What a group of forty costs for messages to three: the copies are three each."""
    result = simulate_trial(Trial("sco", members=40, messages=3, subset=3, rate=20))
    assert result.violations == 0
    assert result.pdus["data"] <= 3 * result.sent
    assert result.delivered == result.expected == 3 * result.sent


def heard_by_dave(
    deliver: str,
    loss: float,
    *,
    speaks: bool = False,
    machine: type[ScoMachine] | None = None,
    **protocol: int,
) -> list[tuple[str, int]]:
    """Who sends dave datagrams of how many bytes while the other three write to each other, and he says nothing, or something to
    alice before."""
    names = ("alice", "bob", "cathy", "dave")
    options = Options(detect=None, protocol=protocol)
    faults = Faults(loss=loss, delay_min=0.001, delay_max=0.01)
    build = None if machine is None else sco_with(machine)
    sim = Sim(
        *names,
        order="sco",
        deliver=deliver,
        seed=1,
        faults=faults,
        options=options,
        build=build,
        record=False,
    )
    sim.run(until=1.0)  # they have met
    got: list[tuple[str, int]] = []
    sim.network.listeners.append(
        lambda source, target, data: (
            got.append((names[source.index], len(data))) if target.index == 3 else None
        )
    )
    if speaks:
        sim["dave"].send(b"to alice", to="alice")
        sim.run(until=2.0)
    rng = Random(3)
    for number in range(40):
        sim.run(until=2.0 + 0.05 * number)
        source, *others = rng.sample(names[:3], 3)
        sim[source].send(b"x", to=others if number % 3 else others[:1])
    sim.run()
    sim.check()
    return got


@pytest.mark.parametrize("loss", [0.0, 0.2])
@pytest.mark.parametrize("deliver", ["causal", "confirmed"])
def test_what_a_member_gets_that_nobody_writes_to(deliver: str, loss: float) -> None:
    assert heard_by_dave(deliver, loss) == heard_by_dave(deliver, loss, noted_max=0) == []
    confirmed = heard_by_dave(deliver, loss, speaks=True)
    assert {source for source, _ in confirmed} == {"alice"}
    assert all(33 <= size <= 35 for _, size in confirmed) and (loss or len(confirmed) == 1)


def sco_with(machine: type[ScoMachine]) -> Callable[[Options], list[Layer]]:
    def build(options: Options) -> list[Layer]:
        layers = find("sco").build(options)
        return [Sco(machine=machine) if isinstance(each, Sco) else each for each in layers]

    return build


class SendsToAll(ScoMachine):
    """Everybody gets everything."""

    def request(self, dst: int, body: Any, size: int = 0) -> None:
        super().request((1 << self.members) - 1 & ~(1 << self.me), body, size)


class ConfirmsToAll(ScoMachine):
    """Everybody is told what was accepted, whoever it was for."""

    def _report(self, message: ScoMessage) -> None:
        super()._report(message)
        for other in self._remote((1 << self.members) - 1):
            self._owe(other)


@pytest.mark.parametrize("machine", [SendsToAll, ConfirmsToAll])
def test_what_is_sent_to_those_it_is_not_for_is_noticed(machine: type[ScoMachine]) -> None:
    assert heard_by_dave("causal", 0.0, machine=ScoMachine) == []
    with pytest.raises(AssertionError):
        assert heard_by_dave("causal", 0.0, machine=machine) == []


def test_only_where_messages_tell_nothing_others_are_asked() -> None:
    """Bob and cathy hear of dave's message to alice by a stamp, and ask whether it was for them: once each."""
    got = heard_by_dave("causal", 0.0, speaks=True, noted_max=0)
    assert sorted(source for source, _ in got) == ["alice", "bob", "cathy"]
    assert {size for source, size in got if source != "alice"} == {33}


def test_a_hundred_members() -> None:
    result = simulate_trial(Trial("sco", members=100, messages=1, subset=3, rate=20))
    assert result.violations == 0
    assert result.delivered == 300


def test_stacks_survive_pickling() -> None:
    import pickle

    sim = Sim("alice", "bob", order="sco", record=False)
    sim["alice"].send(b"one")
    stack: Stack = pickle.loads(pickle.dumps(sim["alice"].stack))
    layer = stack.layer("sco")
    assert isinstance(layer, Sco)
    assert layer.machine.unreleased


def test_window_and_quota_of_one() -> None:
    options = Options(protocol={"window": 1, "quota": 1})
    sim = Sim("alice", "bob", "cathy", order="sco", options=options, faults=Faults(loss=0.3, delay_max=0.01))
    for number in range(30):
        sim["alice"].send(f"{number}".encode())
    sim.run()
    sim.check()
    assert sim["cathy"].texts == [str(number) for number in range(30)]


def test_exact_for_arbitrary_subsets_move_by_move() -> None:
    for seed in range(150):
        board = wander_to_some(Random(seed), 2 + seed % 5, 1 + seed % 15, lossless("sco"))
        assert board.oracle.count(find("sco").guarantees) == 0, (seed, board.oracle.witnesses)


# Traces, judged by the kernels of `inga check`


def certified(path: Path, *, without: int | None = None) -> dict[str, str]:
    """The verdicts on a traced run; `without` leaves out the last delivery at that member."""
    processes = [
        Process(each.name, 1, each.last_pos, complete=each.complete, crashed=each.crashed)
        for each in read_processes(path)
    ]
    chunks = []
    for file in sorted(path.glob("events/*.parquet")):
        table, process = pq.read_table(file), int(file.name.partition("-")[0])
        chunk = from_table(table, process, len(processes), "accept", where=file.name)
        if process == without:
            last = int(np.flatnonzero(chunk.kind & DELIVER)[-1])
            chunk.kind[last] &= ~np.uint8(DELIVER)
        chunks.append(chunk)
    found = certify(Chunks(chunks, processes, "accept"), find("sco").guarantees)
    return {check.name: check.verdict for check in found.checks}


def test_the_trace_of_a_run_to_subsets_passes(tmp_path: Path) -> None:
    simulate_trial(Trial("sco", members=6, messages=25, subset=2, loss=0.1, seed=4), tmp_path / "run")
    assert set(certified(tmp_path / "run").values()) == {"pass"}


def test_a_destination_that_is_left_out_is_found(tmp_path: Path) -> None:
    simulate_trial(Trial("sco", members=6, messages=25, subset=2, loss=0.1, seed=4), tmp_path / "run")
    verdicts = certified(tmp_path / "run", without=3)
    assert verdicts["complete"] == "fail"
    assert verdicts["causal"] == verdicts["stamps"] == "pass"


# Messages that nobody else gets


def test_a_message_to_oneself_does_not_keep_back_the_next() -> None:
    sim = Sim("alice", "bob", order="sco")
    sim["alice"].send(b"1", to="alice")
    sim["alice"].send(b"2", to="bob")
    sim.run()
    sim.check()
    assert sim["alice"].texts == ["1"]
    assert sim["bob"].texts == ["2"]


def test_a_group_of_one_hears_itself() -> None:
    sim = Sim("alice", order="sco", options=Options(echo=True))
    for number in range(3):
        sim["alice"].send(str(number).encode())
    sim.run()
    assert sim["alice"].texts == ["0", "1", "2"]


# Messages for several sets under one number


CROWD = ("alice", "bob", "cathy", "dave", "eve")
ROUGH = Faults(loss=0.2, duplicate=0.1, reorder=0.3, delay_min=0.001, delay_max=0.02)


def bursts(seed: int, deliver: str, *, crash: bool) -> Sim:
    """Everybody says several things to several sets at once, over bad links; then one may fail."""
    rng = Random(seed)
    options = Options(detect=0.5, partition="all")
    sim = Sim(*CROWD, order="sco", deliver=deliver, seed=seed, faults=ROUGH, options=options, record=False)
    for turn in range(4):
        for name in CROWD:
            others = [other for other in CROWD if other != name]
            for _ in range(6):
                sim[name].send(b"to some", to=rng.sample(others, rng.choice((1, 2, 3))))
        sim.run(0.01 * (turn + 1))
    if crash:
        sim["alice"].crash()
    sim.calm()
    sim.run(6.0)
    return sim


@pytest.mark.parametrize("deliver", ["confirmed", "causal", "accepted", "received"])
def test_bursts_to_several_sets(deliver: str) -> None:
    lent = 0
    for seed in range(3):
        bursts(seed, deliver, crash=False).check()
        sim = bursts(seed, deliver, crash=True)
        sim.check()
        lent += sum(site.stack.counts["lent"] for site in sim.sites)
    assert lent > 3, "those who have some of a packet lend it to others"


def _one_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = layer.joined
    monkeypatch.setattr(layer, "joined", lambda lent, me, members: joined(lent[:1], me, members))


def _one_lender_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    deal = Sco.deal

    def first_of_each(self: Sco, held: dict[int, Holdings]) -> dict[int, Holdings]:
        return {
            member: list({row[1]: row for row in reversed(rows)}.values())
            for member, rows in deal(self, held).items()
        }

    monkeypatch.setattr(Sco, "deal", first_of_each)


def _lends_what_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Sco._whole
    monkeypatch.setattr(Sco, "_whole", lambda self, message, to: whole(self, message, self.me))


def _newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def reverse(*given: Any) -> dict[int, Share]:
        return {
            member: share._replace(body=bundle.join(bundle.split(share.body)[::-1]))  # type: ignore[arg-type]
            for member, share in share_out(*given).items()
        }

    monkeypatch.setattr(shares, "share_out", reverse)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("break_it", "promise"),
    [
        (_one_part_alone, "survivors"),
        (_one_lender_alone, "survivors"),
        (_lends_what_is_its_own, "integrity"),
        (_newest_first, "fifo"),
    ],
)
def test_shares_that_go_wrong_are_found(
    break_it: Callable[[pytest.MonkeyPatch], None], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    sims = [bursts(seed, "confirmed", crash=True) for seed in range(3)]
    with pytest.raises(AssertionError, match=f"{promise}: site"):
        for sim in sims:
            sim.check()


def test_nobody_is_asked_what_a_message_tells() -> None:
    """Control packets a message do not grow with the group, where nothing is lost: all of them are confirmations."""
    for members in (8, 32):
        names = [f"member{i}" for i in range(members)]
        sim = Sim(*names, order="sco", deliver="causal", seed=1, record=False)
        rng = Random(members)
        for number in range(60):
            src, *to = rng.sample(range(members), 4)
            sim.run(until=0.1 * number)
            sim.sites[src].send(b"to three", to=[names[m] for m in to])
        sim.run()
        sim.check()
        assert sim.pdus["control"] <= 9 * 60, "three tell each other and the sender"


@pytest.mark.parametrize("deliver", ["causal", "confirmed"])
@pytest.mark.parametrize(
    ("to", "taken"),
    [
        (None, []),  # lost for all who are left
        (["alice"], ["effect"]),  # which is nobody's business who is left
        (["alice", "bob"], ["effect"]),  # lost for bob, but dave can deliver what follows, and they agree
    ],
    ids=["for all", "for one that is gone", "for some"],
)
def test_a_cause_that_is_lost_with_two_members(to: list[str] | None, taken: list[str], deliver: str) -> None:
    """Only alice gets what cathy says, and answers to all; then both of them die."""
    links = Faults(delay_min=0.001, delay_max=0.001)
    names = ("alice", "bob", "cathy", "dave")
    sim = Sim(*names, order="sco", deliver=deliver, faults=links, options=Options(detect=0.5), record=False)
    alice, bob, cathy, dave = sim.sites
    sim.network.sever(cathy, bob)
    sim.network.sever(cathy, dave)
    sim.run(0.05)
    cathy.send(b"cause", to=to)
    sim.run(0.06)
    alice.send(b"effect")
    sim.run(0.07)
    alice.crash()
    cathy.crash()
    sim.run(2.0)
    assert bob.stack.view.names == dave.stack.view.names == ("bob", "dave")
    assert (bob.texts, dave.texts) == (taken, taken)
    bob.send(b"on")
    dave.send(b"we go")
    sim.run(3.0)
    assert (bob.texts[len(taken) :], dave.texts[len(taken) :]) == (["we go"], ["on"])
