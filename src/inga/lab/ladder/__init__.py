"""The ladder of stamps: every counterexample, scheme by scheme, and the same under the right rule.

The experiment writes `ladder.html`, an introduction to vector time, and each of its pictures as an SVG file.
"""

from pathlib import Path

from inga.lab.bench import SayProgress
from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim, Outcome, Table, writing
from inga.lab.ladder.page import render
from inga.lab.ladder.played import Played, play
from inga.lab.ladder.search import BOUNDS, QUICK_BOUNDS, smallest
from inga.lab.ladder.text import tell
from inga.lab.ladder.vectors import CHAPTERS
from inga.report.spacetime import draw

SEARCHED = "none fifo scalar last-sender last-sender-own strict at-once-count tree own-copy vector".split()
"""Schemes for which every small schedule is tried. The search covers no subsets, clocks or duplicates."""


def run(out: Path, quick: bool, progress: SayProgress) -> Outcome:
    """Play everything, write the page and the pictures, and judge the claims."""
    progress("playing the counterexamples")
    chapters = [(chapter, [play(vector) for vector in chapter.vectors]) for chapter in CHAPTERS]
    played = sorted((each for _, group in chapters for each in group), key=_place)
    progress("searching for the smallest")
    searched = Table(["scheme", "messages", "sites", "schedules", "first", "why"], [])
    for scheme in SEARCHED:
        searched.rows.append([scheme, *smallest(scheme, QUICK_BOUNDS if quick else BOUNDS)])
    page = out / "ladder.html"
    with writing(out):
        page.write_text(render(chapters, searched), encoding="utf-8")
        for each in played:
            for name, figure in each.files():
                (out / name).write_text(draw(figure, alone=True) + "\n", encoding="utf-8")
    return Outcome(
        [_claim(each) for each in played], _tables(played, searched), tell(chapters, searched), [page]
    )


def _place(played: Played) -> tuple[int, str]:
    number = played.vector.id[1:]
    return int(number.rstrip("ab")), number


def _claim(played: Played) -> Claim:
    vector = played.vector
    verdict = HOLDS if played.holds else NOT_REPRODUCED
    return Claim(vector.id, vector.statement, vector.published, played.measured, verdict)


def _tables(played: list[Played], searched: Table) -> dict[str, Table]:
    columns = ["vector", "scheme", "schedule", "found", "right", "clean"]
    rows = [
        [each.vector.id, show.name, show.schedule, list(scene.found), right.order, not right.findings]
        for each in played
        for show, scene, rights in each.shows
        for right in rights
    ]
    return {"vectors": Table(columns, rows), "search": searched}
