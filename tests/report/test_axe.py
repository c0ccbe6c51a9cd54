"""What axe-core finds wrong with pages that are files; that of `inga play` is in tests/lab/test_play.py."""

from pathlib import Path
from typing import Any

import pytest

from inga.lab.evaluation import page as lab_page
from inga.lab.experiments import VERDICTS, Claim, Outcome, Table
from inga.lab.ladder.page import render as ladder_page
from inga.lab.ladder.played import play
from inga.lab.ladder.vectors import CHAPTERS
from inga.lab.papers import Examined
from inga.lab.papers.page import render as papers_page
from inga.lab.papers.sources import SOURCES, source_of
from inga.report.chart import line_chart
from inga.report.page import render

from .axe import SCREENS, axe, serious
from .opened import Opened, browser_test
from .test_page import lunch, measured

__all__ = ["axe"]


def report(folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(render([measured(), lunch()], made="by inga"), encoding="utf-8")
    return path


def experiment(folder: Path) -> Path:
    """The page of an experiment with all that such a page can have."""
    claims = [
        Claim(id, f"claim {id}", "10 %", "9 %", VERDICTS[at % 5])
        for at, id in enumerate(source_of("sco").readings)
    ]
    lines = {f"scheme {at}": [(float(x), float(x * at)) for x in range(1, 5)] for at in range(7)}
    tables = {"figure5": Table(["k", "value"], [[at, at / 3] for at in range(40)])}
    path = folder / "sco.html"
    path.write_text(
        lab_page("Four ways", "lead", claims, [(line_chart("c", lines, x="k", y="PDUs"), "caption")], tables, {"figure5": "all"},
                 source=source_of("sco")),
        encoding="utf-8",
    )  # fmt: skip
    return path


def papers(folder: Path) -> Path:
    own = experiment(folder)
    found = [
        Examined(
            source,
            Outcome(
                [Claim(id, id, "1", "2", VERDICTS[at % 5]) for at, id in enumerate(source.readings)],
                pages=[own],
            ),
            1.0,
            1.0,
            False,
        )
        for source in SOURCES
    ]
    path = folder / "all.html"
    path.write_text(papers_page(found, quick=True, version="1"), encoding="utf-8")
    return path


def ladder(folder: Path) -> Path:
    path = folder / "ladder.html"
    chapters = [(chapter, [play(vector) for vector in chapter.vectors[:1]]) for chapter in CHAPTERS[:2]]
    path.write_text(
        ladder_page(chapters, Table(["scheme", "messages", "sites", "schedules", "first", "why"], [])),
        encoding="utf-8",
    )
    return path


@browser_test
@pytest.mark.parametrize("made", [report, experiment, papers, ladder])
def test_nothing_serious(made: Any, browser: Any, axe: str, tmp_path: Path) -> None:
    path = made(tmp_path)
    for colours, width, rules in SCREENS:
        opened = Opened(browser, path, colours=colours, width=width)
        if made is report:
            opened.page.wait_for_selector("html[data-opened]", state="attached")
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        opened.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert serious(opened.page, axe, rules) == []
        assert opened.complaints == []
        opened.page.close()
