"""Of one wrong row much follows. The cause that is listed first is that row, for nine of ten of every kind."""

from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from inga.certify.certificate import certify
from inga.certify.chunk import from_table
from inga.certify.combine import Process
from inga.certify.local import Chunks
from inga.certify.verdict import Certificate
from inga.lab.traces import (
    DEFECTS,
    DELIVER,
    KIND_DEFECTS,
    LEVEL_DEFECTS,
    SEND,
    Maker,
    MemberRows,
    TraceRecipe,
)

from .test_defects import ORDER, made

SEEDS = range(10)
FIRST_MIN = 9  # of these
EVENTS = 1500

Place = tuple[int, range, tuple[int, int]]
"""A process, positions that belong to the defect, and the message."""


def is_first(certificate: Certificate, place: Place) -> bool:
    process, positions, message = place
    first = certificate.groups[0].first
    if (first["process"], first["pos"]) == (process, positions[-1]):
        return tuple(first["message"]) == message
    return first["process"] == process and first["pos"] in positions  # another of the rows in the wrong order


@pytest.mark.parametrize(
    ("kind", "defect"),
    [
        *(("plain", defect) for defect in (*DEFECTS, *LEVEL_DEFECTS)),
        *((kind, defect) for kind, defects in KIND_DEFECTS.items() for defect in defects),
    ],
)
def test_the_planted_event_is_the_first_cause(kind: str, defect: str) -> None:
    """With five members and more: of two that disagree on an order, a third has to say which is right."""
    found = 0
    for seed in SEEDS:
        levels = kind == "plain" and (defect in LEVEL_DEFECTS or seed % 3 == 0)
        receipt = "accept" if levels else "take" if seed % 2 else "deliver"
        recipe = TraceRecipe(
            2 * EVENTS if levels else EVENTS,
            5 + seed % 2,
            burst=1 + seed % 3,
            receipt=receipt,
            seed=seed,
            defect=defect,
            kind=kind,
        )
        source, planted = made(recipe)
        assert planted is not None
        checks = recipe.guarantees if kind != "plain" else ORDER
        certificate = certify(source, checks, seed=seed)
        place = planted.process, range(planted.since or planted.pos, planted.pos + 1), planted.message
        found += is_first(certificate, place)
    assert found >= FIRST_MIN, f"{found} of {len(SEEDS)}"


# ---- more kinds: rows of a right trace, of which one is changed


def rows_of(recipe: TraceRecipe) -> list[MemberRows]:
    blocks = list(Maker(recipe).blocks())
    return [
        MemberRows(
            *(np.concatenate([getattr(block[at], name) for block in blocks]) for name in MemberRows.__slots__)
        )
        for at in range(recipe.members)
    ]


def source_of(rows: list[MemberRows], receipt: str) -> Chunks:
    chunks, processes, n = [], [], len(rows)
    for process, mine in enumerate(rows):
        whole: pa.Table = mine.table(process, 1)
        half = len(whole) // 2
        parts = (whole.slice(0, half), whole.slice(half))
        chunks += [from_table(part, process, n, receipt, where="test") for part in parts]
        processes.append(Process(f"p{process}", 1, len(whole), complete=True, crashed=False))
    return Chunks(chunks, processes, receipt)


def middle(rows: MemberRows, step: int, random: Random) -> int:
    """A row of that step that is neither among the first nor among the last."""
    found = np.flatnonzero(rows.step == step)
    return int(random.choice(found[len(found) // 4 : len(found) // 2].tolist()))


def place(process: int, index: int, rows: list[MemberRows]) -> Place:
    mine = rows[process]
    return process, range(index + 1, index + 2), (int(mine.src[index]), int(mine.seq[index]))


def forged_sender(rows: list[MemberRows], random: Random) -> Place:
    """A delivery names another sender."""
    process = random.randrange(len(rows))
    at = middle(rows[process], DELIVER, random)
    rows[process].src[at] = random.choice(
        [other for other in range(len(rows)) if other not in (process, rows[process].src[at])]
    )
    return place(process, at, rows)


def wrong_number(rows: list[MemberRows], random: Random) -> Place:
    """A delivery has a number that comes much later."""
    process = random.randrange(len(rows))
    at = middle(rows[process], DELIVER, random)
    rows[process].seq[at] += random.randrange(3, 10)
    return place(process, at, rows)


def component_too_high(rows: list[MemberRows], random: Random) -> Place:
    """The vector of a message, at its sender and everywhere else, counts what nobody has sent yet."""
    process = random.randrange(len(rows))
    at = middle(rows[process], SEND, random)
    message = rows[process].src[at], rows[process].seq[at]
    other = random.choice([each for each in range(len(rows)) if each != process])
    more = random.randrange(5, 30)
    for each in rows:
        each.deps[(each.src == message[0]) & (each.seq == message[1]), other] += more
    return place(process, at, rows)


def lost_send(rows: list[MemberRows], random: Random) -> Place:
    """The row of a send is not there; everybody has the message."""
    process = random.randrange(len(rows))
    at = middle(rows[process], SEND, random)
    message = place(process, at, rows)[2]
    rows[process] = rows[process].take(np.delete(np.arange(len(rows[process].step)), at))
    return process, range(1), message


def swapped_sends(rows: list[MemberRows], random: Random) -> Place:
    """Two sends of a process have changed places."""
    process = random.randrange(len(rows))
    at = middle(rows[process], SEND, random)
    sends = np.flatnonzero(rows[process].step == SEND)
    then = int(sends[np.searchsorted(sends, at) + 1])
    order = np.arange(len(rows[process].step))
    order[[at, then]] = then, at
    rows[process] = rows[process].take(order)
    found = place(process, then, rows)
    return process, range(at + 1, then + 2), found[2]


def old_message(rows: list[MemberRows], random: Random) -> Place:
    """A message of long ago is delivered once more, with its own vector."""
    process = random.randrange(len(rows))
    deliveries = np.flatnonzero(rows[process].step == DELIVER)
    at, again = int(deliveries[len(deliveries) // 8]), middle(rows[process], DELIVER, random)
    rows[process] = rows[process].take(np.insert(np.arange(len(rows[process].step)), again, at))
    return place(process, again, rows)


@pytest.mark.parametrize(
    "spoil", [forged_sender, wrong_number, component_too_high, lost_send, swapped_sends, old_message]
)
@pytest.mark.parametrize("receipt", ["deliver", "take"])
def test_one_row_that_is_changed_is_the_first_cause(
    receipt: str, spoil: Callable[[list[MemberRows], Random], Place]
) -> None:
    found = 0
    for seed in SEEDS:
        recipe = TraceRecipe(EVENTS, 4 + seed % 2, burst=1 + seed % 3, receipt=receipt, seed=seed)
        rows = rows_of(recipe)
        planted = spoil(rows, Random(seed))
        certificate = certify(source_of(rows, receipt), recipe.guarantees, seed=seed)
        assert certificate.verdict == "fail"
        found += is_first(certificate, planted)
    assert found >= FIRST_MIN, f"{found} of {len(SEEDS)}"
