"""Watching a trace grow: violations as they come, the verdict of `inga check` at the end, and killed watchers."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from inga.certify.verdict import Certificate
from inga.lab.traces import TraceRecipe, make
from inga.model.errors import TraceError, UsageError
from inga.pipeline import remembering
from inga.pipeline.jobs import check_trace
from inga.pipeline.remembering import Memory
from inga.pipeline.watching import Watch, watch_trace
from inga.trace import Manifest, ProcessFile, read_processes

from .killed import run_and_kill

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CHECKS = ["integrity", "complete", "fifo", "stamps", "causal"]


class Growing:
    """A finished trace that appears segment by segment, as while it was written."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.target = source, target
        (target / "events").mkdir(parents=True)
        self._describe(complete=False)
        segments = sorted((source / "events").iterdir(), key=lambda path: path.name.partition("-")[::-1])
        self.left = [path.name for path in segments]  # in turn from all processes

    def add(self, count: int = 1) -> list[str]:
        names, self.left = self.left[:count], self.left[count:]
        for name in names:
            hidden = self.target / "events" / f".{name}"
            shutil.copy(self.source / "events" / name, hidden)
            hidden.rename(self.target / "events" / name)
        return names

    def finish(self) -> None:
        self.add(len(self.left))
        self._describe(complete=True)

    def _describe(self, complete: bool) -> None:
        for file in read_processes(self.source):
            known = (
                file
                if complete
                else ProcessFile(
                    process=file.process,
                    name=file.name,
                    first_view=file.first_view,
                )
            )
            known.write(self.target)
        content = json.loads((self.source / "manifest.json").read_text())
        Manifest(**{**content, "complete": complete}).write(self.target)


def growing(tmp_path: Path, events: int = 1800, **recipe: Any) -> tuple[Growing, Any]:
    planted = make(tmp_path / "whole", TraceRecipe(events, 3, **recipe), segment_rows=200)
    return Growing(tmp_path / "whole", tmp_path / "trace"), planted


def looks(watch: Watch, trace: Growing, spark: Any) -> Iterator[tuple[list[str], Certificate | None]]:
    """What a look says after every segment."""
    while trace.left:
        names = trace.add()
        yield names, watch.look(spark, lambda *_: None)
    yield [], watch.look(spark, lambda *_: None)
    trace.finish()
    yield [], watch.look(spark, lambda *_: None)


def same(one: Certificate, other: Certificate) -> bool:
    """Equal but for the time it took."""
    mine, others = one.to_json(), other.to_json()
    return {**mine, "seconds": 0} == {**others, "seconds": 0}


@pytest.mark.parametrize("seed", [1, 2])
def test_every_segment_is_read_once_and_the_verdict_is_that_of_check(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    trace, _ = growing(tmp_path, seed=seed)
    read: list[str] = []
    add = Memory.add

    def count(self: Memory, new: dict[str, Any]) -> None:
        read.extend(new)
        add(self, new)

    monkeypatch.setattr(Memory, "add", count)
    watch = Watch(str(trace.target), None, Memory())
    for _, certificate in looks(watch, trace, spark):
        assert certificate is None or certificate.verdict != "fail"
    assert len(read) == len(set(read)) == len(list((trace.source / "events").iterdir()))
    verdict = watch.memory.verdict
    assert verdict is not None and verdict.verdict == "pass"
    assert same(verdict, check_trace(str(trace.source), session=spark)[1])


@pytest.mark.parametrize("defect", ["swap", "stamp"])
def test_a_violation_is_raised_with_the_segment_that_holds_it(
    spark: Any, tmp_path: Path, defect: str
) -> None:
    trace, planted = growing(tmp_path, defect=defect, seed=3)
    watch = Watch(str(trace.target), None, Memory())
    segment = None
    for names, _ in looks(watch, trace, spark):
        if watch.violated is not None and segment is None:
            segment = names
    assert watch.violated is not None and segment
    witnesses = [each for check in watch.violated.checks for each in check.witnesses]
    assert (planted.process, planted.pos) in [(each.process, each.pos) for each in witnesses]
    assert {each.segment for each in witnesses} == {f"events/{name}" for name in segment}
    assert watch.memory.verdict is not None
    assert same(watch.memory.verdict, check_trace(str(trace.source), session=spark)[1])


def test_a_copy_delivered_twice_is_found_when_nothing_new_comes(spark: Any, tmp_path: Path) -> None:
    trace, planted = growing(tmp_path, defect="duplicate", seed=4)
    watch = Watch(str(trace.target), None, Memory())
    trace.add(len(trace.left))
    for _ in range(2):
        watch.look(spark, lambda *_: None)
    assert watch.violated is not None
    (integrity,) = [check for check in watch.violated.checks if check.name == "integrity"]
    assert (planted.process, planted.pos) in [(each.process, each.pos) for each in integrity.witnesses]


def test_what_is_remembered_is_not_read_again(spark: Any, tmp_path: Path) -> None:
    trace, _ = growing(tmp_path)
    memory = str(tmp_path / "memory")
    trace.add(5)
    Watch(str(trace.target), None, Memory(memory)).look(spark, lambda *_: None)
    assert len(Memory(memory).summaries) == 5
    (tmp_path / "memory" / ".3-000001.pickle.99").write_bytes(b"half a lo")  # killed in the middle
    trace.finish()
    verdict = watch_trace(str(trace.target), checkpoint=memory, session=spark)
    assert verdict.verdict == "pass"
    shutil.rmtree(trace.target / "events")
    (trace.target / "events").mkdir()
    assert same(watch_trace(str(trace.source), checkpoint=memory, session=spark), verdict)


def test_memory_of_something_else_is_refused(spark: Any, tmp_path: Path) -> None:
    trace, _ = growing(tmp_path)
    trace.finish()
    memory = str(tmp_path / "memory")
    watch_trace(str(trace.target), ["causal"], checkpoint=memory, session=spark)
    with pytest.raises(UsageError, match="remembers another trace or other checks"):
        watch_trace(str(trace.target), ["fifo"], checkpoint=memory, session=spark)
    (tmp_path / "memory" / "head.json").write_text("{}")
    with pytest.raises(UsageError, match="is no checkpoint of inga watch"):
        watch_trace(str(trace.target), ["causal"], checkpoint=memory, session=spark)


def test_a_run_may_come_to_claim_less(spark: Any, tmp_path: Path) -> None:
    """As when a member opens its gate: what it disclaims is not judged any more, and the rest goes on."""
    trace, _ = growing(tmp_path)
    watch = Watch(str(trace.target), None, Memory(str(tmp_path / "memory")))
    trace.add(3)
    first = watch.look(spark, lambda *_: None)
    ProcessFile(0, read_processes(trace.source)[0].name, disclaims=["stamps", "causal"]).write(trace.target)
    trace.add(3)
    second = watch.look(spark, lambda *_: None)
    assert first is not None and second is not None
    assert {each.name for each in first.checks} - {each.name for each in second.checks} == {
        "stamps",
        "causal",
    }


def test_what_is_wrong_twice_is_an_error(spark: Any, tmp_path: Path) -> None:
    trace, _ = growing(tmp_path)
    trace.add(6)
    last = sorted((trace.target / "events").iterdir())[-1]
    last.write_bytes(last.read_bytes()[:100])
    with pytest.raises(TraceError, match="is not a readable Parquet file"):
        watch_trace(str(trace.target), poll=0.01, session=spark)


def test_newcomers_make_it_read_again(spark: Any, tmp_path: Path) -> None:
    """Vectors have more entries then, so summaries of before are of no use."""
    trace, _ = growing(tmp_path)
    memory = Memory(str(tmp_path / "memory"))
    watch = Watch(str(trace.target), None, memory)
    trace.add(3)
    watch.look(spark, lambda *_: None)
    content = json.loads((trace.target / "manifest.json").read_text())
    Manifest(**{**content, "processes": [*content["processes"], "newcomer"]}).write(trace.target)
    ProcessFile(3, "newcomer").write(trace.target)
    assert watch.look(spark, lambda *_: None) is not None
    trace.add(3)
    watch.look(spark, lambda *_: None)
    found = Memory(str(tmp_path / "memory")).summaries
    assert len(found) == 6 and {len(each.required) for each in found.values()} == {4}
    assert watch.violated is None


def test_a_carry_that_is_lost_is_noticed(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If summaries of earlier looks were forgotten, positions would not fit together."""
    trace, _ = growing(tmp_path)
    watch = Watch(str(trace.target), None, Memory())
    trace.add(3)
    watch.look(spark, lambda *_: None)
    monkeypatch.setattr(
        remembering.RememberingSource,
        "map",
        lambda self, what, function, questions: remembering.FileSource.map(
            self, what, function, questions[-1:]
        ),
    )
    trace.add(3)
    with pytest.raises(TraceError, match="a segment is missing"):
        for _ in range(2):
            watch.look(spark, lambda *_: None)


def killed_while_watching(spark: Any, tmp_path: Path, kills: int, defect: str | None, seed: int) -> None:
    trace, _ = growing(tmp_path, events=200 * 3 * (6 + 3 * kills), defect=defect, seed=seed)
    memory = tmp_path / "memory"

    def remembered() -> int:
        return len(list(memory.glob("[0-9]*.pickle")))

    def feed(life: int) -> None:
        if life < kills:
            trace.add(3)
        else:
            trace.finish()

    arguments = (
        f"watch {trace.target} --until-complete --poll 50 --checkpoint {memory} --master local[2] --json"
    )
    ended = run_and_kill(arguments.split(), tmp_path / "log", remembered, kills, Random(seed), feed)
    found = json.loads(ended.stdout)
    assert ended.returncode == (1 if defect else 0), ended.stderr
    batch = check_trace(str(trace.source), session=spark)[1].to_json()
    assert {**found, "seconds": 0} == {**batch, "seconds": 0}


def test_a_killed_watcher_ends_with_the_verdict_of_check(spark: Any, tmp_path: Path) -> None:
    killed_while_watching(spark, tmp_path, kills=1, defect="swap", seed=1)


@pytest.mark.hunt
@pytest.mark.parametrize("seed", range(2, 12))
def test_twenty_killed_watchers(spark: Any, tmp_path: Path, seed: int) -> None:
    killed_while_watching(spark, tmp_path, kills=2, defect="swap" if seed % 2 else None, seed=seed)
