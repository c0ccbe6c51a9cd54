"""Whether rows of a run are in the order of the lecture's steps."""

from collections.abc import Iterable, Iterator

from inga.trace.schema import Row

LATE = ("concurrent", "branch")


def out_of_place(trace: Iterable[Row]) -> Iterator[Row]:
    """Rows of one process that tell what is concurrent after the message was delivered, although its application did nothing in
    between that could have made it so: it neither took nor sent another message."""
    delivered: dict[tuple[int | None, int | None], int] = {}
    acts = 0  # what the application has taken and sent
    for row in trace:
        key = (row.src, row.seq)
        if row.step in LATE:
            if delivered.get(key) == acts:
                yield row
        elif row.step == "deliver":
            delivered[key] = acts
        elif row.step in ("take", "send"):
            acts += 1


def told_in_place(trace: Iterable[Row]) -> int:
    """How many branches were told before the delivery of the message that opens them."""
    delivered: set[tuple[int | None, int | None]] = set()
    count = 0
    for row in trace:
        if row.step == "deliver":
            delivered.add((row.src, row.seq))
        count += row.step == "branch" and (row.src, row.seq) not in delivered
    return count


def told_wrong(trace: Iterable[Row]) -> set[tuple[int | None, int | None]]:
    """Messages that open a branch at one process and have no row that says so, or have one and open none."""
    told, opened, ends = set(), set(), set[tuple[int, int]]()
    for row in trace:
        if row.step == "branch":
            told.add((row.src, row.seq))
        if row.step not in ("send", "take") or (row.step == "take" and row.src == row.process):
            continue
        deps = row.deps
        assert deps is not None and row.src is not None and row.seq is not None
        followed = {(src, seq) for src, seq in ends if seq <= deps[src]}
        if ends and not followed:
            opened.add((row.src, row.seq))
        ends = ends - followed | {(row.src, row.seq)}
    return told ^ opened
