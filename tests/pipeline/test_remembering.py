"""A watcher of a trace that grows for long: what it remembers does not grow with it, and its verdict is that of `inga check`."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from inga.certify import work
from inga.certify.certificate import certify
from inga.certify.combine import line_up
from inga.certify.fingerprint import Keys
from inga.certify.fold import Folded, folded, forgotten, old_chunks
from inga.lab.traces import DEFECTS, TraceRecipe, make
from inga.pipeline import remembering
from inga.pipeline.certify import FileSource
from inga.pipeline.files import files_of
from inga.pipeline.jobs import check_trace
from inga.pipeline.remembering import Memory, NewViolations, RememberingSource
from inga.pipeline.storage import open_trace
from inga.pipeline.watching import Watch, _Teller

from ..certify.world import Trace, renumbered, sabotage, store, wander
from .test_engines import comparable
from .test_watch import Growing


def silent(what: str, done: int, total: int) -> None:
    pass


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are folded when there are four of a process, all but the last two."""
    monkeypatch.setattr(remembering, "SEGMENTS_KEPT", 2)
    monkeypatch.setattr(remembering, "SEGMENTS_FULL", 4)


def watched(trace: Growing, memory: Memory, at_once: int = 3, checks: list[str] | None = None) -> Watch:
    """Look after every few segments, then at the whole."""
    watch = Watch(str(trace.target), checks, memory, goes_on=True)
    while trace.left:
        trace.add(at_once)
        watch.look(None, silent)
    trace.finish()
    watch.look(None, silent)
    return watch


def test_state_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    """What is in memory, and what is in the files of a checkpoint, after n and after 4n segments."""
    sizes: dict[int, tuple[int, int, int]] = {}
    make(tmp_path / "whole", TraceRecipe(24_000, 3), segment_rows=100)
    trace = Growing(tmp_path / "whole", tmp_path / "trace")
    memory = Memory(str(tmp_path / "memory"))
    watch = Watch(str(trace.target), None, memory, goes_on=True)
    count = len(trace.left)
    while trace.left:
        trace.add(9)
        certificate = watch.look(None, silent)
        assert certificate is not None and certificate.verdict != "fail"
        state = len(pickle.dumps((memory.summaries, memory.folds, memory.rescans)))
        files = sum(path.stat().st_size for path in (tmp_path / "memory").iterdir())
        sizes[count - len(trace.left)] = state, files, len(memory.summaries)
    assert count > 230
    quarter = max(each for at, each in sizes.items() if at <= count // 4)
    assert max(sizes.values()) <= (quarter[0] + 2000, 2 * quarter[1], 4 * 3 + 3 * 2 + 9)
    assert len(memory.folds) == 3 and memory.folds[0].summary.segments > 70
    # The verdict is that of all rows, and nothing had to be read again for it.
    trace.finish()
    watch.look(None, silent)
    assert memory.verdict is not None and memory.folds
    assert comparable(memory.verdict) == comparable(check_trace(str(trace.source), master=None)[1])


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_verdict_of_a_broken_run_is_that_of_check(tmp_path: Path, defect: str) -> None:
    make(tmp_path / "whole", TraceRecipe(3_000, 3, seed=5, defect=defect), segment_rows=60)
    trace, memory = Growing(tmp_path / "whole", tmp_path / "trace"), Memory()
    watched(trace, memory, 9)
    assert memory.verdict is not None and memory.verdict.verdict == "fail"
    assert comparable(memory.verdict) == comparable(check_trace(str(trace.source), master=None)[1])


@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_of_any_run_is_that_of_check(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    receipt = random.choice(["deliver", "take", "accept"])
    rows = wander(
        random, 3, 30, receipt=receipt, order=random.choice(["none", "fifo", "causal"]), echo=seed % 2 > 0
    )
    if seed % 3:
        sabotage(random, rows)
    store(random, rows, receipt, tmp_path / "whole", cuts=16)
    trace, memory = Growing(tmp_path / "whole", tmp_path / "trace"), Memory(str(tmp_path / "memory"))
    watched(trace, memory, 9, ["all"])
    assert memory.verdict is not None
    assert comparable(memory.verdict) == comparable(check_trace(str(trace.source), ["all"], master=None)[1])


def test_after_a_kill_folds_are_still_known(tmp_path: Path) -> None:
    make(tmp_path / "whole", TraceRecipe(6_000, 3), segment_rows=60)
    trace, place = Growing(tmp_path / "whole", tmp_path / "trace"), tmp_path / "memory"
    watch = Watch(str(trace.target), None, Memory(str(place)), goes_on=True)
    for _ in range(6):
        trace.add(10)
        watch.look(None, silent)
    assert watch.memory.folds
    # Killed between writing what is known as one file and removing the others.
    (place / "3-000000.pickle").write_bytes(pickle.dumps(([], {}, {"events/0-00000.parquet": None})))
    again = Memory(str(place))
    assert pickle.dumps(again.folds) == pickle.dumps(watch.memory.folds)
    assert again.summaries.keys() == watch.memory.summaries.keys()
    read: list[str] = []
    add = again.add
    again.add = lambda new: (read.extend(new), add(new))[1]  # type: ignore[method-assign]
    watched(trace, again, 9)
    assert again.verdict is not None and again.verdict.verdict == "pass"
    assert len(read) == len(set(read)) == len(list((tmp_path / "whole" / "events").iterdir())) - 60


def test_a_fold_says_what_its_segments_say(tmp_path: Path) -> None:
    """Carries, sums and what is suspect behind it are the same."""
    make(tmp_path / "t", TraceRecipe(2_000, 3, seed=1), segment_rows=50)
    trace = open_trace(str(tmp_path / "t"))
    source = FileSource(files_of(None, trace, silent), ["causal", "time"])
    keys = Keys.draw(3, 1)
    found = source.map("", work.summarise, [(at, keys) for at in range(len(trace.files))])
    for line in line_up(found, trace.processes):
        links = old_chunks(line, 2)
        assert len(links) == len(line) - 2
        whole = folded(links, np.full(3, 10**6))
        assert (whole.segments, whole.first, whole.last) == (len(links), 1, links[-1].summary.last)
        last = line[-2].carry  # of the first that is not in it
        assert (whole.required == last.required).all() and (whole.known == last.known).all()
        assert (whole.delivered_high == last.delivered).all()
        assert whole.sends == sum(link.summary.sends for link in links) and not whole.repeats
        (tally,) = whole.tallies.values()
        assert tally.sent == whole.sends and tally.delivered.sum() == whole.deliveries
        assert (whole.settled_high == whole.delivered_high).all() and not old_chunks(line, len(line) - 1)


def test_a_number_that_nobody_sent_does_not_hide_those_below_it(tmp_path: Path) -> None:
    """It was delivered at one process; whatever comes of its sender is compared all the same."""
    make(tmp_path / "t", TraceRecipe(2_000, 3, seed=1, defect="unsent"), segment_rows=50)
    trace = open_trace(str(tmp_path / "t"))
    source = FileSource(files_of(None, trace, silent), ["integrity"])
    keys = Keys.draw(3, 1)
    lines = line_up(
        source.map("", work.summarise, [(at, keys) for at in range(len(trace.files))]), trace.processes
    )
    sent = np.array([max(link.summary.sent_high for link in line) for line in lines])
    folds = [[replace(line[-1], summary=folded(line, sent))] for line in lines]
    highest = np.max([line[0].summary.delivered_high for line in folds], axis=0)
    assert (highest > sent).any() and [forgotten(folds, at) for at in range(3)] == sent.tolist()


def test_nobody_is_told_what_only_the_rows_of_a_fold_say(tmp_path: Path) -> None:
    make(tmp_path / "whole", TraceRecipe(3_000, 3), segment_rows=60)
    trace, memory = Growing(tmp_path / "whole", tmp_path / "trace"), Memory()
    watch = Watch(str(trace.target), None, memory, goes_on=True)
    while len(memory.folds) < 3:
        trace.add(3)
        watch.look(None, silent)
    stored = open_trace(str(trace.target), growing=True)
    source = RememberingSource(files_of(None, stored, silent), ["causal"], memory)
    (first, *_) = source._fold_at
    for ask in (
        lambda: source.read(first),
        lambda: source.map("", work.noise, [(first, (0, 1))]),
        lambda: source.map("", work.rescan, [(first, None)]),
        lambda: source.gather("", work.noise, [(first, None)], lambda key, parts: None),
        lambda: source.exchange("", work.noise, max, work.noise, [(first, None)]),
    ):
        with pytest.raises(Folded):
            ask()
    memory.unfold()
    again = source.again()
    assert certify(again, ["causal"], growing=True).verdict == "unknown"
    assert len(memory.summaries) == len(stored.files)


def test_violations_are_explained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a trace grows, no segment is summarised twice, whatever is wrong."""
    make(tmp_path / "whole", TraceRecipe(6_000, 3, seed=5, defect="swap"), segment_rows=60)
    trace, memory = Growing(tmp_path / "whole", tmp_path / "trace"), Memory()
    unfolded = 0
    unfold = Memory.unfold

    def count(self: Memory) -> None:
        nonlocal unfolded
        unfolded += 1
        unfold(self)

    watch = Watch(str(trace.target), None, memory, goes_on=True)
    trace.add(3)
    watch.look(None, silent)
    monkeypatch.setattr(Memory, "unfold", count)
    told: list[Any] = []
    while trace.left:
        trace.add(6)
        certificate = watch.look(None, silent)
        assert certificate is not None
        told += [witness for check in certificate.checks for witness in check.witnesses[:1]]
    assert not unfolded and len(told) > 5 and memory.folds
    assert len({(each.check, each.pos) for each in told}) == len({each.check for each in told})
    trace.finish()
    watch.look(None, silent)
    assert memory.verdict is not None
    assert comparable(memory.verdict) == comparable(check_trace(str(trace.source), master=None)[1])


def test_looks_are_counted_beyond_a_million(tmp_path: Path) -> None:
    """Their files are read in the order of their numbers, and the next one is new."""
    make(tmp_path / "whole", TraceRecipe(6_000, 3), segment_rows=60)
    trace, place = Growing(tmp_path / "whole", tmp_path / "trace"), tmp_path / "memory"
    watch = Watch(str(trace.target), None, Memory(str(place)), goes_on=True)
    trace.add(2)
    watch.look(None, silent)
    watch.memory._looks = 999_998
    for _ in range(3):
        trace.add(2)
        watch.look(None, silent)
    assert {path.name for path in place.glob("3-*")} >= {"3-999999.pickle", "3-1000000.pickle"}
    again = Memory(str(place))
    assert again._looks == watch.memory._looks == 1_000_001 and len(again.summaries) == 8


# ---- a group in which something is wrong all the time


def disordered(random: Random, messages: int) -> Trace:
    """Nobody keeps any order."""
    return wander(random, 3, messages)


def repeated(random: Random, messages: int) -> Trace:
    """Order is kept, but now and then a message is delivered again."""
    rows = wander(random, 3, messages, order="causal")
    for mine in rows:
        for at in range(len(mine) - 1, 0, -random.randrange(15, 25)):
            if mine[at].step == "deliver":
                mine.insert(at + 1, mine[at])
    return [renumbered(mine) for mine in rows]


def forged(random: Random, messages: int) -> Trace:
    """Vectors of sends are wrong now and then."""
    rows = wander(random, 3, messages, order="causal")
    for mine in rows:
        for at, row in enumerate(mine):
            if row.step == "send" and row.deps is not None and random.random() < 0.2:
                mine[at] = row._replace(deps=tuple(max(entry - 1, 0) for entry in row.deps))
    return rows


@pytest.mark.parametrize(
    ("kind", "killed"), [(disordered, False), (disordered, True), (repeated, False), (forged, True)]
)
def test_what_is_wrong_all_the_time_is_told_once_and_does_not_fill_memory(
    tmp_path: Path, kind: Callable[[Random, int], Trace], killed: bool
) -> None:
    """After every look, and with a watcher that is killed and started again now and then."""
    random = Random(3)
    store(random, kind(random, 240), "deliver", tmp_path / "whole", cuts=34)
    trace, place = Growing(tmp_path / "whole", tmp_path / "trace"), str(tmp_path / "memory")
    checks = ["integrity", "fifo", "stamps", "causal"]
    told: list[NewViolations] = []

    def announce(notice: NewViolations) -> bool:
        told.append(notice)
        return True

    def begin() -> tuple[Memory, Watch, _Teller]:
        memory = Memory(place)
        watch = Watch(str(trace.target), checks, memory, goes_on=True)
        return memory, watch, _Teller(memory, announce, 5)

    memory, watch, teller = begin()
    sizes, count = [], len(trace.left)
    while trace.left:
        trace.add(9)
        teller.hear(watch.look(None, silent))
        sizes.append(len(pickle.dumps((memory.summaries, memory.folds, memory.rescans, memory.settled))))
        assert len(memory.summaries) <= (4 + 2) * 3 + 9 >= len(memory.rescans)
        if killed and len(sizes) % 5 == 0:
            memory, watch, teller = begin()
    assert count > 100 and len(memory.folds) == 3 and any(memory.settled.values())
    assert max(sizes) <= 1.5 * max(sizes[: len(sizes) // 3])
    trace.finish()
    teller.hear(watch.look(None, silent))
    assert memory.verdict is not None
    here = check_trace(str(trace.source), checks, master=None)[1]
    assert comparable(memory.verdict) == comparable(here)

    found = {check.name: check.violations for check in here.checks if check.violations}
    assert found.keys() == {notice.check for notice in told}
    for check, total in found.items():
        mine = [notice for notice in told if notice.check == check]
        assert [notice.since for notice in mine] == [0, *(notice.total for notice in mine[:-1])]
        assert mine[-1].total == total and len(mine) > 5
        examples = [(each.process, each.pos, each.message) for notice in mine for each in notice.examples]
        assert len(examples) == len(set(examples))
        # The last notice comes with the witnesses of the verdict.
        assert all(notice.examples for notice in mine[:-1])
