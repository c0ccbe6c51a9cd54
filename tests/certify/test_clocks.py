"""The check `clocks` against a judge with plain dictionaries, and planted defects named with file and line."""

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from inga.certify import clocks
from inga.certify.certificate import certify
from inga.certify.chunk import Chunk, from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.certify.verdict import Answer, Certificate
from inga.trace import Row

from .world import table

Log = list[list[Row]]
"""Events by process, in the order of the file."""


def gossip(random: Random, n: int, events: int) -> Log:
    """A log with right clocks: local events, and events at which another's clock arrives."""
    log: Log = [[] for _ in range(n)]
    known = [[0] * n for _ in range(n)]
    for line in range(1, events + 1):
        at, other = random.randrange(n), random.randrange(n)
        if random.random() < 0.5:
            known[at] = list(map(max, known[at], known[other]))
        deps = tuple(known[at])
        known[at][at] += 1
        log[at].append(Row(at, 0, 0, "event", 0, at, known[at][at], deps=deps, ref=f"x.log:{line}"))
    return renumbered(log)


def renumbered(log: Log) -> Log:
    return [[row._replace(pos=pos) for pos, row in enumerate(rows, 1)] for rows in log]


def changed(log: Log, process: int, index: int, **values: object) -> Log:
    """The log with one event changed; a new number also counts in its vector."""
    row = log[process][index]._replace(**values)  # type: ignore[arg-type]
    if "seq" in values:
        row = row._replace(deps=entry(row, process, (row.seq or 0) - 1))
    return [
        [*rows[:index], row, *rows[index + 1 :]] if at == process else rows for at, rows in enumerate(log)
    ]


def entry(row: Row, at: int, value: int) -> tuple[int, ...]:
    assert row.deps is not None
    return (*row.deps[:at], value, *row.deps[at + 1 :])


def source(random: Random, log: Log, cuts: int = 3, **options: bool) -> Chunks:
    chunks: list[Chunk] = []
    for process, rows in enumerate(log):
        places = sorted(random.randrange(len(rows) + 1) for _ in range(cuts))
        for low, high in zip([0, *places], [*places, len(rows)], strict=True):
            part: pa.Table = table(rows[low:high], len(log))
            chunks.append(from_table(part, process, len(log), "deliver", where="test", width=len(log)))
    complete = options.get("complete", True)
    processes = [Process(f"p{at}", 0, len(rows), complete, crashed=False) for at, rows in enumerate(log)]
    return Chunks(chunks, processes, "deliver")


def check(log: Log, seed: int = 0, cuts: int = 3) -> tuple[Answer, Certificate]:
    certificate = certify(source(Random(seed), log, cuts), ["clocks"], witnesses=10_000)
    return certificate.checks[0], certificate


def judge(log: Log) -> Counter[str]:
    """Violations by kind, from the statements alone, and `late` places."""
    found: Counter[str] = Counter()
    first: dict[tuple[int, int], Row] = {}
    for process, rows in enumerate(log):
        for row in rows:
            if (process, row.seq) in first:
                found["repeated"] += 1
            else:
                first[process, row.seq] = row  # type: ignore[index]
    for (process, seq), row in first.items():
        before = first.get((process, seq - 1))
        for other, value in enumerate(row.deps or ()):
            is_new = other == process or before is None or before.deps[other] != value  # type: ignore[index]
            if not value or not is_new:
                continue
            named = first.get((other, value))
            if named is None:
                found["missing"] += 1
            elif any(a > b for a, b in zip(entry(named, other, value), row.deps or (), strict=True)):
                found["below"] += 1
    return found


def test_right_clocks_pass() -> None:
    for seed in range(30):
        random = Random(seed)
        answer, certificate = check(gossip(random, random.randrange(1, 6), 120), seed)
        assert (answer.verdict, answer.violations, answer.warnings) == ("pass", 0, []), certificate.to_json()


def test_whatever_is_wrong_is_counted_exactly() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(60):
        random = Random(seed)
        n = random.randrange(2, 6)
        log = gossip(random, n, 80)
        for _ in range(random.randrange(1, 6)):
            process = random.randrange(n)
            if not log[process]:
                continue
            index = random.randrange(len(log[process]))
            row = log[process][index]
            if random.random() < 0.4:
                log = changed(log, process, index, seq=random.randrange(1, 30))
            elif random.random() < 0.5:
                other = random.randrange(n)
                value = random.randrange(30)
                log = changed(log, process, index, deps=entry(row, other, value if other != process else row.deps[process]))  # type: ignore[index]  # fmt: skip
            else:
                shuffled = list(log[process])
                random.shuffle(shuffled) if random.random() < 0.3 else shuffled.pop(index)
                log = renumbered([shuffled if at == process else rows for at, rows in enumerate(log)])
        expected = judge(log)
        kinds += expected
        for cuts in (0, 6):
            answer, certificate = check(log, seed, cuts)
            assert answer.violations == expected.total(), (seed, cuts, expected, certificate.to_json())
            assert answer.verdict == ("fail" if expected.total() else "pass")
            assert len(answer.witnesses) == answer.violations
            assert sum(group.count for group in certificate.groups) == answer.violations
    assert min(kinds[kind] for kind in ("repeated", "missing", "below")) > 20, "each kind occurred often"


def test_rounds_do_not_change_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    log = gossip(Random(1), 4, 200)
    for index in range(5, len(log[1]), 3):
        log = changed(log, 1, index, deps=entry(log[1][index], 0, 0))
    whole = check(log)[0].violations
    monkeypatch.setattr(clocks, "EVENTS_AT_ONCE", 4)
    assert check(log)[0].violations == whole == judge(log).total() > 10


# ---- planted defects, named


def test_a_clock_that_goes_back_is_named() -> None:
    for seed in range(20):
        log = gossip(Random(seed), 3, 90)
        process, index = next(
            (process, index)
            for process, rows in enumerate(log)
            for index in range(4, len(rows))
            if rows[index - 1].deps[(process + 1) % 3]  # type: ignore[index]
        )
        row = log[process][index]
        answer, certificate = check(changed(log, process, index, deps=entry(row, (process + 1) % 3, 0)), seed)
        cause = f"the clock of p{process} goes back at event {row.seq} ({row.ref})"
        assert cause in [group.cause for group in certificate.groups]
        assert (
            f"{row.ref}: event {row.seq} of p{process} knows less than event {row.seq - 1} of p{process}"
            in [  # type: ignore[operator]
                witness.text for witness in answer.witnesses
            ]
        )


def test_a_number_used_twice_is_one_cause() -> None:
    for seed in range(20):
        log = gossip(Random(seed), 3, 90)
        row = log[1][10]
        log[1].insert(11, row._replace(ref="x.log:twice"))
        answer, certificate = check(renumbered(log), seed)
        assert (answer.violations, [group.cause for group in certificate.groups]) == (
            1,
            ["p1 counts again from event 11 (x.log:twice)"],
        )
        assert answer.witnesses[0].text == "x.log:twice: event 11 of p1 uses a number again"


def test_a_restart_under_an_old_name_is_one_cause() -> None:
    """The process counts from 1 again, and goes on to talk to others: everything follows from that."""
    for seed in range(20):
        first, second = gossip(Random(seed), 3, 60), gossip(Random(seed + 1000), 3, 90)
        life = [row._replace(deps=entry(row, 0, 0), ref=f"y.log:{row.seq}") for row in second[2]]
        log = renumbered([first[0], first[1], first[2] + life])
        answer, certificate = check(log, seed)
        assert answer.violations == judge(log).total() >= min(len(first[2]), len(life))
        group = certificate.groups[0]
        assert group.cause == "p2 counts again from event 1 (y.log:1)"
        assert [each.count for each in certificate.groups] == [answer.violations]


def test_a_missing_event_and_those_that_name_it_are_one_cause() -> None:
    for seed in range(20):
        log = gossip(Random(seed), 3, 90)
        gone = next(row for row in log[0][5:] if any(row.seq == each.deps[0] for each in log[1] + log[2]))  # type: ignore[index]
        log[0].remove(gone)
        after = log[0][gone.seq - 1]  # type: ignore[operator]
        answer, certificate = check(renumbered(log), seed)
        cause = f"events of p0 are missing before event {after.seq} ({after.ref})"
        assert [group.cause for group in certificate.groups] == [cause]
        assert certificate.groups[0].count == answer.violations >= 2


def test_a_clock_that_counts_too_much_is_the_cause_and_not_the_event_after_it() -> None:
    firsts = wrong = 0
    for seed in range(30):
        random = Random(seed)
        log = gossip(random, 3, 90)
        process = random.randrange(3)
        index, other = random.randrange(2, len(log[process]) - 2), (process + 1) % 3
        row = log[process][index]
        assert row.deps is not None
        high = row.deps[other] + random.randrange(3, 9)
        _, certificate = check(changed(log, process, index, deps=entry(row, other, high)), seed)
        if certificate.verdict == "pass":  # it might as well have known that
            continue
        wrong += 1
        first = certificate.groups[0].first
        firsts += first == {"process": process, "pos": row.pos, "message": [process, row.seq]}
        assert sum(group.count for group in certificate.groups) == certificate.checks[0].violations
    assert wrong >= 20 and firsts >= 0.9 * wrong, (firsts, wrong)


@pytest.mark.parametrize("n", [2, 3])
def test_events_that_precede_each_other_are_a_cycle(n: int) -> None:
    """Each names the next one, and none knows what that knows."""

    def deps(at: int) -> tuple[int, ...]:
        return tuple(int(other == (at + 1) % n) for other in range(n))

    log = [[Row(at, 1, 0, "event", 0, at, 1, deps=deps(at), ref=f"x.log:{at}")] for at in range(n)]
    answer, certificate = check(log)
    assert answer.violations == n
    (group,) = certificate.groups
    events = ", ".join(f"event 1 of p{at} (x.log:{at})" for at in range(n))
    assert group.cause.startswith("a cycle: ") and group.cause.endswith(events)


def test_two_processes_of_one_name_are_told_from_one_that_counts_again() -> None:
    one, two = gossip(Random(1), 1, 20)[0], gossip(Random(2), 1, 12)[0]
    mixed = [row for pair in zip(one, two, strict=False) for row in pair] + one[12:]
    _, certificate = check(renumbered([mixed]))
    (group,) = certificate.groups
    assert group.cause == "two processes seem to be called p0: numbers of both come from event 1 on (x.log:1)"


def test_file_order_is_a_warning() -> None:
    for seed in range(20):
        random = Random(seed)
        log = gossip(random, 3, 90)
        for index in (20, 5):
            log[1][index : index + 2] = reversed(log[1][index : index + 2])
        answer, certificate = check(renumbered(log), seed)
        assert (answer.verdict, certificate.groups) == ("pass", [])
        places = ", ".join(str(log[1][index + 1].ref) for index in (5, 20))
        assert answer.warnings == [f"file order contradicts the clocks in 2 places: {places}"]


# ---- what is missing


def test_without_imported_events_the_check_is_open() -> None:
    log = [[Row(0, 1, 0, "send", 0, 0, 1, deps=(0,))]]
    assert check(log, cuts=0)[0].reason == "there are no events of an imported log"


def test_events_without_clocks_leave_it_open() -> None:
    log = gossip(Random(1), 2, 20)
    log[0][3] = log[0][3]._replace(deps=None)
    answer, _ = check(log)
    assert (answer.verdict, answer.reason) == ("unknown", "1 events have no clock")


def test_what_lost_rows_may_have_held_is_not_missed() -> None:
    log = gossip(Random(1), 3, 60)
    log[0] = log[0][:4]
    certificate = certify(source(Random(1), log, complete=False), ["clocks"])
    answer = certificate.checks[0]
    assert (answer.verdict, answer.violations) == ("unknown", 0)


# ---- rules broken on purpose are noticed


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("merge", lambda left, right: left),  # what the second asks is forgotten
        ("answer", lambda chunk, question, named: clocks.WrongEvents(chunk.process, named.seq[:0], named.deps[:0], False)),
        ("_settle", lambda *args: iter(())),
    ],
)  # fmt: skip
def test_a_broken_rule_is_found(monkeypatch: pytest.MonkeyPatch, name: str, replacement: object) -> None:
    monkeypatch.setattr(clocks, name, replacement)
    with pytest.raises(AssertionError):
        test_whatever_is_wrong_is_counted_exactly()
