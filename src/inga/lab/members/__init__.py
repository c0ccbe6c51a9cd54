"""The promises about members that join, fail, stop and are cut off, tested with eight processes and real sockets.

    start    all start at once: how long until all are in one view
    killed   SIGKILL of two under load, one of which leads; both start again
    stopped  SIGSTOP of one for five seconds, then SIGCONT
    split    five and three are cut off from each other for three seconds (70 with --long), by network namespaces, with both policies
    scenes   the lecture's counterexamples about groups that change, in which nothing goes wrong here

All but the scenes run under each of five orders. An oracle judges what the applications saw, and `inga check` the traces. A broken
promise is a bug of inga.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inga.lab import evaluation
from inga.lab.bench import SayProgress
from inga.lab.experiments import Claim, Outcome, Table, writing
from inga.lab.members.scenes import SCENES, LiveScene, act
from inga.lab.members.start import MEMBERS, MeasuredStarts, measure_starts
from inga.lab.members.trials import (
    CALL_RATE,
    COLUMNS,
    DETECT,
    ORDERS,
    RATE,
    LiveTrial,
    Trouble,
    name_of,
    trial_of,
    troubles,
)
from inga.model.errors import TraceError, UsageError
from inga.pipeline.jobs import check_trace
from inga.pipeline.session import LOCAL, using
from inga.runs.cluster import WorkerDied
from inga.runs.disturbed import run as run_disturbed

ROUNDS, ROUNDS_QUICK = 20, 3
SCENES_QUICK = 3
FILE_NAME = str.maketrans(" /", "--", ",:")
"""Translates the name of a trial to a file name."""

TITLE = "Members come, fail and return, measured"

CAPTIONS = {
    "scenes": "V19 to V24 and V27 of the ladder, live; what the members that matter took, in its order",
    "start": f"seconds from the moment at which {MEMBERS} processes join until all of them are in one view, over all rounds; "
    "verdict of `inga check` on the last of them",
    "trials": "longest time that nothing came to a member that was there all the time, and seconds until all that were there "
    "agreed again who is there; messages delivered, or calls committed; violations as the oracle counts them, verdict of "
    "`inga check`",
}


def run(
    out: Path,
    quick: bool,
    progress: SayProgress,
    *,
    master: str = LOCAL,
    long: bool = False,
    only: str = "",
    detect: float | None = None,
) -> Outcome:
    """Run all trials, or those with the words of `only` in their names; then write tables, claims and a page."""
    forgiven, words = detect or DETECT, only.split()
    if forgiven <= 0:
        raise UsageError(f"--detect is a number of seconds above 0, not {detect:g}")
    orders = [order for order in ORDERS if _is_asked(f"{order}: start", words)]
    them = troubles(long=long)[: 1 if quick else None]
    trials = [(order, each) for order in ORDERS for each in them if _is_asked(name_of(order, each), words)]
    scenes = [
        each for each in SCENES[: SCENES_QUICK if quick else None] if _is_asked(f"scene {each.id}", words)
    ]
    if not (orders or trials or scenes):
        raise UsageError(
            f"--only {only!r}: no trial is called so; there are 'start', 'killed', 'split', 'scene'"
        )
    with using(None, master) as session:
        rounds = ROUNDS_QUICK if quick else ROUNDS
        starts = [*_start_all(out, orders, rounds, progress, session)]
        played = list(_play_all(out, trials, forgiven, progress, session))
        acted = list(_act_all(out, scenes, progress, session))
    tables = {
        "start": Table(
            ["order", "rounds", "within 2 s", "median", "longest", "check"], [each.row() for each in starts]
        ),
        "trials": Table(COLUMNS, [each.row() for each in played]),
        "scenes": Table(["scene", "what happens", "who took what"], [row for row, _ in acted]),
    }
    tables = {name: table for name, table in tables.items() if table.rows}
    claims = [each.claim() for each in starts] + [each.claim() for each in played]
    claims += [claim for _, claim in acted]
    page = out / "members.html"
    load = f"{RATE:g} sends or {CALL_RATE:g} calls a second each"
    lead = f"{MEMBERS} processes on one machine, {load}; detect={forgiven:g}."
    with writing(out):
        html = evaluation.page(
            TITLE, lead, claims, (), tables, CAPTIONS, heading="", claimed="What is promised"
        )
        page.write_text(html, encoding="utf-8")
    text = "\n".join(
        [*(f"{name}\n{_plain(table)}\n" for name, table in tables.items()), *evaluation.verdicts(claims)]
    )
    return Outcome(claims, tables, text, [page], is_binding=True)


def _is_asked(name: str, words: Sequence[str]) -> bool:
    return all(word in name for word in words)


def _start_all(
    out: Path, orders: Sequence[str], rounds: int, progress: SayProgress, session: Any
) -> Iterator[MeasuredStarts]:
    traces = {order: _new(out / f"{order}-start") for order in orders}
    for order, seconds in measure_starts(traces, rounds, progress):
        yield MeasuredStarts(order, seconds, _certified(traces[order], session))


def _play_all(
    out: Path, trials: Sequence[tuple[str, Trouble]], detect: float, progress: SayProgress, session: Any
) -> Iterator[LiveTrial]:
    for at, (order, trouble) in enumerate(trials, 1):
        name = name_of(order, trouble)
        progress(f"trial {at} of {len(trials)}: {name}")
        trace, trial = _new(out / name.translate(FILE_NAME)), trial_of(order, trouble, detect)
        try:
            result = run_disturbed(trial, trace, mishaps=trouble.mishaps, say=progress)
        except WorkerDied as error:
            played = LiveTrial(order, trouble, detect, None, str(error))
        else:
            played = LiveTrial(order, trouble, detect, result, _certified(trace, session))
        progress("{0.verdict}: {0.measured}".format(played.claim()))
        yield played


def _act_all(
    out: Path, scenes: Sequence[LiveScene], progress: SayProgress, session: Any
) -> Iterator[tuple[list[object], Claim]]:
    for scene in scenes:
        progress(f"{scene.id}: {scene.title}")
        trace = _new(out / scene.id)
        acted = act(scene, trace)
        yield acted.row(), acted.claim(_certified(trace, session))


def _certified(trace: Path, session: Any) -> str:
    """Return the verdict of `inga check`, or the error if it cannot read the trace."""
    try:
        _, certificate = check_trace(str(trace), session=session)
    except TraceError as error:
        return str(error)
    return str(certificate.verdict)


def _new(trace: Path) -> Path:
    if trace.exists():
        raise UsageError(f"{trace} exists already; --out names a directory without traces of before")
    return trace


def _plain(table: Table) -> str:
    """Return a table as text, with columns as wide as their cells."""
    cells = [table.columns, *([evaluation.cell_text(each) for each in row] for row in table.rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(table.columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
