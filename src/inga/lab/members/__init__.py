"""What is promised when members come, fail, stand still and are cut off, tried with eight processes and real sockets.

    start    all start at once: how long until they are one view
    killed   SIGKILL of two under load, of which one leads; both start again
    stopped  SIGSTOP of one for five seconds, then SIGCONT
    split    five and three are cut off from each other for three seconds (70 with --long), by network namespaces
    scenes   the lecture's counterexamples about groups that change, in which here nothing goes wrong

Under each of five orders, but for the last. Members of `total` and `object` call replicated objects, those of the others send messages. An oracle
judges what the applications saw, and `inga check` the traces.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inga.lab import evaluation
from inga.lab.bench import SayProgress
from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim, Outcome, Table
from inga.lab.members.scenes import SCENES, Acted, LiveScene, act
from inga.lab.members.start import MEMBERS, measure_starts
from inga.model.errors import TraceError, UsageError
from inga.pipeline.jobs import check_trace
from inga.pipeline.session import LOCAL, using
from inga.recipes import find
from inga.runs.cluster import WorkerDied
from inga.runs.disturbed import run as run_disturbed
from inga.trial.mishaps import Mishap, NetworkCut
from inga.trial.people import member_names
from inga.trial.result import Result
from inga.trial.trial import Trial

ORDERS = ("causal", "co", "sco", "total", "object")
RATE = 20.0
"""Sends or calls per second and member: load enough to notice that something stops, on two cores too."""

DETECT = 1.0
STOP_MAX = DETECT + 1.0
"""Seconds for which nothing comes to a survivor, at most."""

FILE_NAME = str.maketrans(" /", "--", ",")
"""Makes a file name of words."""

PEOPLE = member_names(MEMBERS)
SPLIT = f"{','.join(PEOPLE[:5])}/{','.join(PEOPLE[5:])}"
TITLE = "Members come, fail and return, measured"

CAPTIONS = {
    "scenes": "V19 to V24 and V27 of the ladder, live; what the members that matter took, in its order",
    "start": f"seconds from the moment at which {MEMBERS} processes join until all of them are in one view, over all rounds",
    "trials": "longest time that nothing came to a member that was there all the time, and seconds until all that were there "
    "agreed again who is there; violations as the oracle counts them, verdict of `inga check`",
}


class Trouble(NamedTuple):
    """One thing that befalls a group. `seconds`: how long it lasts, with what the group needs afterwards."""

    name: str
    mishaps: tuple[Mishap, ...]
    seconds: float


class LiveTrial(NamedTuple):
    """A trial that was run."""

    order: str
    trouble: Trouble
    result: Result | None  # None if a member failed that should not have
    verdict: str  # of `inga check`, or why there is no result


def run(out: Path, quick: bool, progress: SayProgress, *, master: str = LOCAL, long: bool = False) -> Outcome:
    """All trials, then tables, claims and a page."""
    rounds = 3 if quick else 20
    starts = measure_starts(ORDERS, rounds, progress)
    with using(None, master) as session:
        played = list(_play_all(out, troubles(long=long)[: 1 if quick else None], progress, session))
        acted = list(_act_all(out, SCENES[:3] if quick else SCENES, progress, session))
    tables = {
        "start": Table(
            ["order", "rounds", "within 2 s", "median", "longest"], [each.row() for each in starts]
        ),
        "trials": Table(
            ["order", "what", "views", "stopped", "agreed", "violations", "check"],
            [_row(each) for each in played],
        ),
        "scenes": Table(["scene", "what happens", "who took what"], [each.row() for each, _ in acted]),
    }
    claims = [each.claim() for each in starts] + [_claim(each) for each in played]
    claims += [each.claim(verdict) for each, verdict in acted]
    page = out / "members.html"
    lead = f"{MEMBERS} processes on one machine, {RATE:g} sends or calls a second each; detect={DETECT:g}."
    try:
        html = evaluation.page(
            TITLE, lead, claims, (), tables, CAPTIONS, heading="", claimed="What is promised"
        )
        page.write_text(html, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written to: {error.strerror}") from error
    text = "\n".join(
        [*(f"{name}\n{_plain(table)}\n" for name, table in tables.items()), *evaluation.verdicts(claims)]
    )
    return Outcome(claims, tables, text, [page])


def troubles(*, long: bool) -> list[Trouble]:
    """What befalls the groups. The first of all leads."""
    leader, other, third = PEOPLE[0], PEOPLE[4], PEOPLE[2]
    killed = (
        Mishap(2.0, "crash", leader),
        Mishap(2.3, "crash", other),
        Mishap(4.5, "return", leader),
        Mishap(4.8, "return", other),
    )
    stopped = (Mishap(2.0, "pause", third), Mishap(7.0, "resume", third))
    found = [Trouble("two killed, both return", killed, 10.0), Trouble("stopped for 5 s", stopped, 10.0)]
    for seconds in (3.0, 70.0) if long else (3.0,):
        cut = NetworkCut.parse(f"{SPLIT}@2+{seconds:g}", PEOPLE)
        split = (Mishap(cut.at, "cut", parts=cut.parts), Mishap(cut.ends, "heal"))
        found.append(Trouble(f"split 5/3 for {seconds:g} s", split, cut.ends + 5.0))
    return found


def _play_all(out: Path, them: Sequence[Trouble], progress: SayProgress, session: Any) -> Iterator[LiveTrial]:
    for order in ORDERS:
        for trouble in them:
            progress(f"{order}: {trouble.name}")
            trace = _new(out / f"{order} {trouble.name}".translate(FILE_NAME))
            try:
                result = run_disturbed(trial_of(order, trouble), trace, mishaps=trouble.mishaps, say=progress)
            except WorkerDied as error:
                yield LiveTrial(order, trouble, None, str(error))
            else:
                yield LiveTrial(order, trouble, result, _certified(trace, session))


def _act_all(
    out: Path, scenes: Sequence[LiveScene], progress: SayProgress, session: Any
) -> Iterator[tuple[Acted, str]]:
    for scene in scenes:
        progress(f"{scene.id}: {scene.title}")
        trace = _new(out / scene.id)
        yield act(scene, trace), _certified(trace, session)


def _certified(trace: Path, session: Any) -> str:
    """What `inga check` says, in a word if it can read the trace."""
    try:
        _, certificate = check_trace(str(trace), session=session)
    except TraceError as error:
        return str(error)
    return str(certificate.verdict)


def trial_of(order: str, trouble: Trouble) -> Trial:
    """By the policy that the order prefers where the network is cut."""
    objects = 2 if find(order).objects else None
    messages = int(trouble.seconds * RATE)
    is_cut = any(each.do == "cut" for each in trouble.mishaps)
    policy = find(order).partition if is_cut else None
    return Trial(
        order, MEMBERS, messages, rate=RATE, objects=objects, detect=DETECT, rejoin=True, policy=policy
    )


def _new(trace: Path) -> Path:
    if trace.exists():
        raise UsageError(f"{trace} exists already; --out names a directory without traces of before")
    return trace


def _row(played: LiveTrial) -> list[object]:
    if played.result is None:
        return [played.order, played.trouble.name, "-", "-", "-", "-", played.verdict]
    course = played.result.course
    assert course is not None
    agreed = max(course.settled.values(), default=0.0) if not course.unsettled else "never"
    stopped = round(course.longest_stop, 2)
    what, violations = played.trouble.name, played.result.violations
    return [played.order, what, course.views, stopped, agreed, violations, played.verdict]


def _claim(played: LiveTrial) -> Claim:
    measured, is_kept = _measured(played)
    what = f"{played.order}, {played.trouble.name}"
    return Claim(
        id=f"{played.order}: {played.trouble.name}",
        statement=f"{what}: survivors never stop for longer than detect and a second, and agree",
        published=f"at most {STOP_MAX:g} s, no violation, one view in the end",
        measured=measured,
        verdict=HOLDS if is_kept else NOT_REPRODUCED,
    )


def _measured(played: LiveTrial) -> tuple[str, bool]:
    """In words, and whether it is what is promised."""
    if played.result is None or (course := played.result.course) is None:
        return played.verdict, False
    # A process that is killed loses its last rows, without which some checks cannot tell.
    killed = any(each.do == "crash" for each in played.trouble.mishaps)
    is_certified = played.verdict in (("pass", "unknown") if killed else ("pass",))
    stopped, violations = course.longest_stop, played.result.violations
    is_kept = is_certified and not violations and not course.unsettled and stopped <= STOP_MAX
    took = "; ".join(f"{what}: {seconds:.2f} s" for what, seconds in course.settled.items())
    return f"{stopped:.2f} s, {violations} violations, check: {played.verdict}; {took}", is_kept


def _plain(table: Table) -> str:
    """With columns as wide as what is in them."""
    cells = [table.columns, *([evaluation.cell_text(each) for each in row] for row in table.rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(table.columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
