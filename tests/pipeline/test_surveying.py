"""Counting messages by height: against sets, for random tables in random parts."""

from itertools import pairwise
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from inga.pipeline import surveying
from inga.pipeline.surveying import HEIGHT_MAX, PARTS_MAX, Survey

Message = tuple[int, int, int]  # height, sender, number


def messages_of(seed: int, copies: bool, first: int = 0) -> list[Message]:
    """Those of one sender one after the other, with growing heights and holes between them."""
    rng = Random(seed)
    found = []
    for src in range(rng.randint(1, 6)):
        height, seq = first, 0
        for _ in range(rng.randint(0, 200)):
            height, seq = height + rng.choice((1, 1, 2, 3, 50)), seq + rng.choice((1, 1, 1, 4))
            found.append((height, src, seq))
    if copies and found:
        for _ in range(5):
            found.insert(rng.randrange(len(found) + 1), rng.choice(found))
    return found


def surveyed(messages: list[Message], named: list[int] | None = None) -> Survey:
    height, src, seq = np.array(messages, np.int64).reshape(-1, 3).T
    return Survey.of(height, src, seq, np.array(named or [0] * len(messages), np.int64))


def in_tasks(messages: list[Message], rng: Random) -> Survey:
    """As several tasks see them, each some batches of neighbours, and put together in any order."""
    cuts = [0, *sorted(rng.randrange(len(messages) + 1) for _ in range(6)), len(messages)]
    batches = [surveyed(messages[begin:end]) for begin, end in pairwise(cuts)]
    tasks = [Survey.sum(batches[at : at + 2]) for at in range(0, len(batches), 2)]
    rng.shuffle(tasks)
    return Survey.sum(tasks)


@pytest.mark.parametrize("seed", range(30))
def test_parts_are_counted_as_they_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where few lines are kept, so that heights are rounded, and where heights begin far up."""
    monkeypatch.setattr(surveying, "LINES_MAX", (1, 200, 1 << 13)[seed % 3])
    monkeypatch.setattr(surveying, "PARTS_MAX", 9)
    monkeypatch.setattr(surveying, "PART_MESSAGES", 40)
    messages = messages_of(seed, copies=False, first=(0, 10**6, HEIGHT_MAX - 99)[seed // 3 % 3])
    found = in_tasks(messages, Random(seed))
    assert not found.may_have_copies
    assert len(found.src) <= max(surveying.LINES_MAX, 4 * 9 * 6)
    bounds = found.bounds()
    assert bounds == sorted(set(bounds)) and len(bounds) < 9
    edges = [-1, *bounds, 1 << 62]
    for (low, high), summary in zip(pairwise(edges), found.summaries(bounds), strict=True):
        here = [message for message in messages if low <= message[0] < high]
        assert summary.messages == len(here)
        came = [max((seq for _, src, seq in here if src == k), default=0) for k in range(len(summary.came))]
        assert summary.came.tolist() == came and {src for _, src, _ in here} <= set(range(len(came)))


def test_parts_are_of_about_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "PART_MESSAGES", 1000)
    messages = [(10**7 + at, at % 3, 1 + at // 3) for at in range(10_000)]
    found = surveyed([*messages, (1 << 60, 3, 1)])  # one far away must not make all others one part
    found = Survey.sum([found])
    sizes = [summary.messages for summary in found.summaries(found.bounds())]
    assert sum(sizes) == 10_001 and len(sizes) >= 10 and max(sizes) < 1200
    monkeypatch.setattr(surveying, "PART_MESSAGES", 10_001)
    assert found.bounds() == [] and found.summaries([])[0].messages == 10_001
    monkeypatch.setattr(surveying, "PART_MESSAGES", 1)
    assert 32 <= len(found.bounds()) < PARTS_MAX


@pytest.mark.parametrize("n", [1, 64, 1000])
def test_parts_are_of_about_one_size_in_large_groups(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tasks see them, who each begin with what lies low and go on: every message a little higher than the one before."""
    monkeypatch.setattr(surveying, "PART_MESSAGES", 3_000)
    count = 200_000
    rng = np.random.default_rng(n)
    at = np.arange(count)
    height, src, seq = at + 1 - rng.integers(0, min(n, at[-1] // 9), count).clip(0, at), at % n, 1 + at // n
    tasks = [
        Survey.sum([Survey.of(*(column[task::5] for column in (height, src, seq, seq)))]) for task in range(5)
    ]
    found = Survey.sum(tasks)
    bounds = found.bounds()
    summaries = found.summaries(bounds)
    assert len(bounds) + 1 >= PARTS_MAX * 3 // 4
    assert max(each.messages for each in summaries) < 2 * count / len(summaries)
    edges = [-1, *bounds, 1 << 62]
    for (low, high), summary in zip(pairwise(edges), summaries, strict=True):
        here = (low <= height) & (height < high)
        came = np.zeros(n, np.int64)
        np.maximum.at(came, src[here], seq[here])
        assert summary.messages == here.sum() and summary.came.tolist() == came.tolist()


def test_sums_of_many_senders_are_not_made_for_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if what is kept is more than is counted in one go."""
    monkeypatch.setattr(surveying, "PENDING_MAX", 20)
    sums: list[int] = []
    monkeypatch.setattr(Survey, "sum", lambda parts, sum_=Survey.sum: sums.append(len(parts)) or sum_(parts))
    batches = [surveyed([(1 + at, (7 * at) % 100, 1 + at // 100)]) for at in range(1000)]
    found = surveying.summed(iter(batches))
    assert found is not None and found.summaries([])[0].messages == 1000
    assert found.summaries([])[0].came.tolist() == [10] * 100
    assert len(sums) < 15 and surveying.summed([]) is None


@pytest.mark.parametrize("seed", range(20))
def test_copies_are_suspected(seed: int) -> None:
    messages = messages_of(seed, copies=True)
    assert len(set(messages)) < len(messages)
    assert in_tasks(messages, Random(seed)).may_have_copies


def test_copies_in_the_last_task_are_suspected() -> None:
    first, second = [(1, 0, 1), (2, 0, 2)], [(2, 0, 2), (3, 0, 3)]
    assert Survey.sum([surveyed(first), surveyed(second)]).may_have_copies
    assert not Survey.sum([surveyed(second), surveyed(first[:1])]).may_have_copies


@pytest.mark.parametrize("missing", [0, 1])
def test_files_of_a_sender_may_be_read_in_any_order(missing: int) -> None:
    """Spark begins with the largest, and a batch may hold the first and the third. Numbers may be missing within them, too."""
    files = [
        [(seq, src, seq) for seq in range(1000 * at + 1, 1000 * at + 1001) if not missing or seq % 7]
        for src in range(3)
        for at in range(9)
    ]
    rows = [row for at in range(0, 27, 3) for file in (0, 2, 1) for row in files[at + file]]
    batches = [rows[at : at + 1700] for at in range(0, len(rows), 1700)]
    found = Survey.sum([surveyed(batch) for batch in batches])
    assert not found.may_have_copies
    assert Survey.sum([found, surveyed(files[5][10:11])]).may_have_copies


def test_stretches_end_at_the_widest_gaps_only() -> None:
    """Of a table that lacks every second number there is not one for each."""
    numbers = np.cumsum([2] * 500 + [100] + [2] * 500 + [50] + [2] * 500)
    found = surveyed([(int(seq), 0, int(seq)) for seq in numbers])
    assert found.stretches.tolist() == [
        [0, 2, 1000],
        [0, 1100, 2100],
        [0, 2150, 3150],
    ]


def test_too_many_stretches_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "STRETCHES_MAX", 3)
    apart = [surveyed([(seq, 0, seq)]) for seq in range(1, 9, 2)]
    assert not Survey.sum(apart[:3]).may_have_copies
    found = Survey.sum(apart)
    assert found.may_have_copies and not len(found.stretches)
    assert Survey.sum([found, apart[0]]).may_have_copies


def test_what_many_tasks_send_fits_into_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them as many stretches as there may be: Spark refuses results of more than a gigabyte in all."""
    rng = np.random.default_rng(1)
    src = rng.permutation(surveying.STRETCHES_MAX)
    seq = rng.integers(1, 1000, len(src))
    found = Survey.sum([Survey.of(seq, src, seq, 0 * seq)])
    assert len(found.stretches) == surveying.STRETCHES_MAX
    packed = surveying._packed(found)
    assert len(packed.column("stretches")[0].as_py()) < 400_000
    again = surveying._unpacked(SimpleNamespace(**packed.to_pylist()[0]))
    assert (again.stretches == found.stretches).all() and (again.height == found.height).all()
    few = Survey.of(np.ones(40, np.int64), *np.array([[0] * 40, range(80, 0, -2), [0] * 40], np.int64))
    tasks = [Survey.sum([few]) for _ in range(50)]
    assert len(tasks[0].src) == 1 and len(tasks[0].stretches) == 40
    monkeypatch.setattr(surveying, "PENDING_MAX", 100)
    sums: list[int] = []
    monkeypatch.setattr(Survey, "sum", lambda parts, sum_=Survey.sum: sums.append(len(parts)) or sum_(parts))
    assert surveying.summed(tasks) is not None and max(sums) < 10, "never those of all tasks at once"


def test_what_is_named_is_the_highest_of_its_part() -> None:
    found = Survey.sum([surveyed([(1, 0, 1), (2, 1, 1), (3, 0, 2)], [0, 7, 5])])
    assert [part.named for part in found.summaries([3])] == [7, 5]
    assert [part.named for part in found.summaries([2])] == [0, 7]


def test_nothing_is_no_part() -> None:
    nothing = Survey.sum([surveyed([])])
    assert nothing.bounds() == [] and nothing.summaries([])[0].messages == 0
