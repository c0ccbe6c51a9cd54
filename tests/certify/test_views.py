"""Views: runs with crashes, returns, parts and leaves pass for true reasons, and what is planted in them is found."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import pytest

from inga.certify.certificate import certify
from inga.certify.verdict import Certificate, Witness
from inga.recipes import find
from inga.trace import Row

from .test_answers import failed, named
from .views_world import Run, apart, apart_and_open, failing
from .world import Trace, renumbered

pytestmark = pytest.mark.xdist_group("views")  # all share their runs, as do those of test_missing.py

ORDERS = ("none", "fifo", "vector", "co", "sco", "relay", "object", "total")
SEEDS = (1, 2, 3)


def certified(run: Run, trace: Trace | None = None, checks: Sequence[str] = ()) -> Certificate:
    claimed = [name for name in find(run.order).guarantees if name != "quiet"]
    return certify(run.source(run.trace if trace is None else trace), checks or [*claimed, "views"], seed=1)


def copied(run: Run) -> Trace:
    return [list(rows) for rows in run.trace]


# ---- what is right passes


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("happens", [failing, apart])
def test_whatever_fails_the_claims_hold(order: str, happens: Callable[[str], Run]) -> None:
    run = happens(order)
    certificate = certified(run)
    assert {check.name: (check.verdict, check.reason) for check in certificate.checks} == {
        check.name: ("pass", "") for check in certificate.checks
    }
    late = [row for rows in run.trace[5:] for row in rows if row.step == "deliver"]
    assert len(late) > 50, "those who came back are processes with deliveries"
    assert any(row.step == "suspect" for rows in run.trace for row in rows)


@pytest.mark.parametrize("order", ["vector", "total"])
def test_parts_that_both_let_somebody_in_do_not_mean_two_by_one_number(order: str) -> None:
    """And whoever was to come in, and never did, keeps nothing open."""
    run = apart_and_open(order)
    certificate = certified(run)
    assert {check.name: (check.verdict, check.reason) for check in certificate.checks} == {
        check.name: ("pass", "") for check in certificate.checks
    }
    assert any(not rows for rows in run.trace)
    views = [row for rows in run.trace for row in rows if row.step == "view"]
    let_in = {row.ref for row in views if row.ref is not None and row.view > 1}
    assert {"joined 5", "joined 6"} <= let_in and any(
        row.note == "grace" for rows in run.trace for row in rows
    )


def test_copies_of_objects_keep_their_processes_over_views() -> None:
    run = failing("object", hosted=True)
    certificate = certified(run, checks=["object", "views"])
    assert certificate.verdict == "pass", [check.to_json() for check in certificate.checks]
    started = {
        (run.names[at], row.view) for at, rows in enumerate(run.trace) for row in rows if row.step == "start"
    }
    views = sorted({number for _, number in started})
    assert len(views) > 3
    assert {number for name, number in started if name == "alice/account"} == set(views)
    returned = [name for name, _ in started if name.startswith("p") and name.endswith("/account")]
    assert returned, "and those of one that came back have others"
    states = [row for rows in run.trace for row in rows if row.step == "state"]
    assert states and all(row.peer is not None and row.n for row in states)


def test_parts_are_not_compared_with_each_other() -> None:
    """p0 and p1 deliver the end of their last common view in another order than p2, which went on alone."""
    run = Run("total", _parts(alone=2), ("p0", "p1", "p2"), frozenset(), None)
    assert certified(run, checks=["total", "views", "complete"]).verdict == "pass"
    run = Run("total", _parts(alone=None), ("p0", "p1", "p2"), frozenset(), None)
    assert failed(certified(run, checks=["total", "views", "complete"])) == ["total"]


@pytest.mark.parametrize(
    ("stay", "well", "verdict"),
    [
        ((), (), "fail"),  # the view goes on, and has one order
        ((0, 1), (), "fail"),  # its first member does: whoever fails has followed it
        ((1,), (), "pass"),  # that failed, and p2 with it, which may have heard more of it than p1
        ((1,), (0,), "fail"),  # that left, when all had everything
        ((1, 2), (), "fail"),  # that failed, and p1 and p2 agree
    ],
)
def test_who_goes_on_together_agrees_and_so_does_who_failed_unless_the_first_member_did(
    stay: tuple[int, ...], well: tuple[int, ...], verdict: str
) -> None:
    """p0 and p1 deliver in another order than p2."""
    trace = []
    for at, rows in enumerate(_parts(alone=None)):
        *before, installed = rows
        if at in stay:
            members = sum(1 << each for each in stay)
            before.append(installed._replace(dst=members, peer=stay[0], n=len(stay)))
        elif stay:
            end = Row(at, 0, 0, "leave" if at in well else "crash", 1, peer=at, n=0 if at in well else None)
            before.append(end)
        trace.append(renumbered(before))
    run = Run("total", trace, ("p0", "p1", "p2"), frozenset(), None)
    assert certified(run, checks=["total"]).verdict == verdict


def _parts(alone: int | None) -> Trace:
    def view(at: int, number: int, leader: int, members: int) -> Row:
        return Row(at, 0, 0, "view", number, dst=members, peer=leader, n=members.bit_count())

    def sent(at: int) -> Row:
        return Row(at, 0, 0, "send", 1, at, 1, None, (0, 0, 0), 1, n=1)

    def got(at: int, src: int) -> Row:
        return Row(at, 0, 0, "deliver", 1, src, 1, None, (0, 0, 0), 1, n=1)

    members = [0b011, 0b011, 0b100] if alone is not None else [0b111] * 3
    leaders = [0, 0, 2] if alone is not None else [0] * 3
    orders = [(0, 1), (0, 1), (1, 0)]
    return [
        renumbered(
            [
                view(at, 1, 0, 0b111),
                *([sent(at)] if at < 2 else []),
                *(got(at, src) for src in orders[at]),
                view(at, 2, leaders[at], members[at]),
            ]
        )
        for at in range(3)
    ]


# ---- what is planted is found


Plant = Callable[[Run, Trace, Random], tuple[int, tuple[int, int] | None]]
"""Breaks something; where, and of which message."""


def closing(run: Run, at: int) -> list[int]:
    """The views that a process came through."""
    return run.closed[at]


def places(run: Run, random: Random, wanted: Callable[[int, Row], bool]) -> list[tuple[int, int]]:
    """Process and index of the rows that are as wanted, in any order."""
    found = [
        (at, place) for at, rows in enumerate(run.trace) for place, row in enumerate(rows) if wanted(at, row)
    ]
    random.shuffle(found)
    return found


def survived(run: Run, source: int, at: int, view: int) -> bool:
    """Whether a source was in the view that a process went on to."""
    following = next(row for row in run.trace[at] if row.step == "view" and row.view > view)
    return bool((following.dst or 0) >> source & 1)


def is_closed(run: Run, at: int, row: Row) -> bool:
    return row.step == "deliver" and row.src != at and row.view in closing(run, at)


def others_have(run: Run, at: int, row: Row) -> bool:
    """Whether another one that went on with this process has delivered a message in the same view."""
    together = next(each for each in run.trace[at] if each.step == "view" and each.view > row.view).dst or 0
    return any(
        together >> other & 1
        and any((each.step, each.src, each.seq) == ("deliver", row.src, row.seq) for each in rows)
        for other, rows in enumerate(run.trace)
        if other not in (at, row.src)
    )


def without_delivery(run: Run, trace: Trace, random: Random, *, dead: bool) -> tuple[int, tuple[int, int]]:
    """A survivor of a view lacks what a member sent in it that went on too, or one that did not and others have."""
    at, place = next(
        (at, place)
        for at, place in places(run, random, partial(is_closed, run))
        if (row := run.trace[at][place]).src is not None
        and survived(run, row.src, at, row.view) is not dead
        and (not dead or others_have(run, at, row))
    )
    row = run.trace[at][place]
    trace[at] = [
        each
        for each in trace[at]
        if not (each.step in ("deliver", "take", "accept") and (each.src, each.seq) == (row.src, row.seq))
    ]
    assert row.src is not None and row.seq is not None
    return at, (row.src, row.seq)


def moved(run: Run, trace: Trace, random: Random) -> tuple[int, tuple[int, int]]:
    """A delivery is in the next view."""
    at, place = places(run, random, partial(is_closed, run))[0]
    row = trace[at].pop(place)
    next_view = next(i for i, each in enumerate(trace[at]) if each.step == "view" and each.view > row.view)
    trace[at].insert(next_view + 1, row._replace(view=trace[at][next_view].view))
    assert row.src is not None and row.seq is not None
    return at, (row.src, row.seq)


def all_moved(run: Run, trace: Trace, random: Random) -> tuple[int, tuple[int, int]]:
    """Everybody delivers a message in the next view: they agree, and yet it is not where it was sent."""
    at, place = places(run, random, partial(is_closed, run))[0]
    row = run.trace[at][place]
    for here, rows in enumerate(trace):
        which = [i for i, each in enumerate(rows) if is_closed(run, here, each) and each[5:7] == row[5:7]]
        for i in which:
            following = next(each for each in rows if each.step == "view" and each.view > rows[i].view)
            moving = rows.pop(i)._replace(view=following.view)
            rows.insert(rows.index(following) + 1, moving)
    assert row.src is not None and row.seq is not None
    return at, (row.src, row.seq)


def kept_back(run: Run, trace: Trace, random: Random) -> tuple[int, tuple[int, int]]:
    """A delivery of a view comes when the next one is in force."""
    at, place = places(run, random, partial(is_closed, run))[0]
    row = trace[at].pop(place)
    next_view = next(i for i, each in enumerate(trace[at]) if each.step == "view" and each.view > row.view)
    trace[at].insert(next_view + 1, row)
    assert row.src is not None and row.seq is not None
    return at, (row.src, row.seq)


def ahead(run: Run, trace: Trace, random: Random) -> tuple[int, tuple[int, int]]:
    """A message is sent before the view that it is of."""
    at, place = places(run, random, lambda at, row: row.step == "send" and row.view > 1)[0]
    row = trace[at].pop(place)
    own_view = next(i for i, each in enumerate(trace[at]) if each.step == "view" and each.view == row.view)
    trace[at].insert(own_view, row)
    assert row.src is not None and row.seq is not None
    return at, (row.src, row.seq)


def is_view(at: int, row: Row) -> bool:
    return row.step == "view" and (row.dst or 0).bit_count() > 2 and row.view > 1


def without_member(run: Run, trace: Trace, random: Random) -> tuple[int, None]:
    """One process has somebody less in a view than all others."""
    at, place = places(run, random, is_view)[0]
    row = trace[at][place]
    members = [each for each in range(16) if (row.dst or 0) >> each & 1 and each != at]
    trace[at][place] = row._replace(dst=(row.dst or 0) & ~(1 << random.choice(members)))
    return at, None


def passed_over(run: Run, trace: Trace, random: Random) -> tuple[int, None]:
    """A process goes from a view to the one after the next."""
    at, place = next(
        (at, place)
        for at, place in places(run, random, is_view)
        if run.trace[at][place].view in closing(run, at)[1:]
        and any(r.view < run.trace[at][place].view for r in run.trace[at])
    )
    del trace[at][place]
    return at, None


def disordered(run: Run, trace: Trace, random: Random) -> tuple[int, None]:
    """Two views in the wrong order."""
    at = random.choice([at for at in range(3) if len(closing(run, at)) > 2])
    first, second = [i for i, row in enumerate(trace[at]) if row.step == "view"][1:3]
    trace[at][first], trace[at][second] = trace[at][second], trace[at][first]
    return at, None


def without_last(run: Run, trace: Trace, random: Random) -> tuple[int, tuple[int, int]]:
    """Somebody who is there to the end lacks something of the last view."""
    last = max(row.view for row in run.trace[0])
    at, place = next(
        (at, place)
        for at, place in places(run, random, lambda at, row: row.step == "deliver" and row.view == last)
        if run.trace[at][place].src != at
    )
    row = trace[at].pop(place)
    assert row.src is not None and row.seq is not None
    return at, (row.src, row.seq)


def swapped(step: str, run: Run, trace: Trace, random: Random) -> tuple[int, tuple[int, int]]:
    """Two neighbours of one closed view in the wrong order, of different senders."""
    wanted = places(run, random, lambda at, row: row.step == step and row.view in closing(run, at))
    for at, place in wanted:
        rows = trace[at]
        after = next((i for i in range(place + 1, len(rows)) if rows[i].step == step), None)
        if after is None or rows[after].view != rows[place].view or rows[after].src == rows[place].src:
            continue
        if (
            rows[after].op != rows[place].op
            or rows[place].op == "inc"
            or not others_saw(run, at, step, rows[place], rows[after])
        ):
            continue
        rows[place], rows[after] = rows[after], rows[place]
        assert rows[after].src is not None and rows[after].seq is not None
        return at, (rows[after].src, rows[after].seq)
    raise AssertionError("nothing to swap")


def others_saw(run: Run, at: int, step: str, *wanted: Row) -> bool:
    return any(
        all(
            any((row.step, row.src, row.seq) == (step, each.src, each.seq) for row in rows) for each in wanted
        )
        for other, rows in enumerate(run.trace)
        if other != at
    )


DEFECTS: dict[str, tuple[str, str, Plant]] = {
    "a survivor lacks what another survivor sent": (
        "vector",
        "complete",
        partial(without_delivery, dead=False),
    ),
    "a survivor lacks what a dead one sent": ("fifo", "views", partial(without_delivery, dead=True)),
    "one that stays lacks something of the last view": ("none", "complete", without_last),
    "a delivery is in the next view": ("vector", "views", moved),
    "everybody has a delivery in the next view": ("fifo", "views", all_moved),
    "a delivery comes after its view": ("vector", "views", kept_back),
    "a send comes before its view": ("fifo", "views", ahead),
    "a member is missing in a view row": ("co", "views", without_member),
    "a view is passed over": ("fifo", "views", passed_over),
    "views are in the wrong order": ("none", "views", disordered),
    "a survivor of sco lacks what a dead one sent": ("sco", "atomic", partial(without_delivery, dead=True)),
    "deliveries are in another order": ("total", "total", partial(swapped, "deliver")),
    "requests begin in another order": ("object", "object", partial(swapped, "start")),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("defect", DEFECTS)
def test_what_is_planted_is_found(defect: str, seed: int) -> None:
    order, check, plant = DEFECTS[defect]
    run = failing(order)
    trace = copied(run)
    at, message = plant(run, trace, Random(seed))
    certificate = certified(run, trace)
    assert check in failed(certificate)
    witnesses = named(certificate, check).witnesses
    assert any(_names(witness, at, message) for witness in witnesses), [each.text for each in witnesses]
    assert all(witness.chain for witness in witnesses if check == "views"), "there is something to follow"


def _names(witness: Witness, at: int, message: tuple[int, int] | None) -> bool:
    """Whether a witness is about that process and message, as its own or as what it is held against."""
    processes = {witness.process, *({witness.against[0]} if witness.against else ())}
    return at in processes and message in (None, witness.message, witness.other)


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_to_copies_in_another_order(seed: int) -> None:
    """Also of a member that came back, whose copies no manifest names."""
    run = failing("object", hosted=True)
    trace = copied(run)
    at, message = swapped("start", run, trace, Random(seed))
    certificate = certified(run, trace, checks=["object"])
    assert failed(certificate) == ["object"]
    assert any(_names(each, at, message) for each in named(certificate, "object").witnesses)


def test_a_delivery_in_a_part_counts_in_that_part() -> None:
    """A member of one part lacks what another of the same part sent after they came apart."""
    run = apart("vector")
    split = [
        number
        for number in (2, 3)
        if len({row.dst for rows in run.trace for row in rows if row.step == "view" and row.view == number})
        > 1
    ]
    assert split, "there are two views of one number"
    trace = copied(run)
    place = next(i for i, row in enumerate(trace[1]) if row.step == "deliver" and row.view == split[0])
    row = trace[1].pop(place)
    certificate = certified(run, trace, checks=["complete"])
    assert [(each.process, each.message) for each in named(certificate, "complete").witnesses] == [
        (1, (row.src, row.seq))
    ]


def test_a_message_that_another_part_delivers_is_not_its_own() -> None:
    """One of a part delivers in its own view of a number what was sent in the other one of that number."""
    run = apart("vector")
    sent = next(row for row in run.trace[0] if row.step == "send" and row.view == 2)
    trace = copied(run)
    inside = next(i for i, row in enumerate(trace[4]) if row.step == "view" and row.view == 2)
    trace[4].insert(inside + 1, sent._replace(process=4, step="deliver", dst=None))
    assert "integrity" in failed(certified(run, trace))


def test_views_may_have_any_numbers() -> None:
    """Such as the time at which they began. Two parts went on, with one number."""
    trace = _parts(alone=2)
    late = [[row._replace(view=2**31 - 1) if row.view == 2 else row for row in rows] for rows in trace]
    run = Run("total", late, ("p0", "p1", "p2"), frozenset(), None)
    assert certified(run, checks=["total", "views"]).verdict == "pass"
