"""The experiment `ladder`: claims, text, page and pictures."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inga.lab.experiments import Outcome
from inga.lab.ladder import page, run, vectors
from inga.lab.ladder.picture import picture
from inga.lab.ladder.played import play
from inga.lab.ladder.scene import describe, outcome, play_schedule
from inga.lab.ladder.vectors import CHAPTERS, SCHEMES, VECTORS, LadderVector
from inga.recipes import ladder
from inga.report.spacetime import draw

from ..report.opened import Opened, browser_test

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "protocols" / "img"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ladder")


@pytest.fixture(scope="module")
def ran(out: Path) -> Outcome:
    return run(out, True, lambda what: None)


# Claims


def test_one_claim_for_each_vector_in_order(ran: Outcome) -> None:
    numbers = [f"V{n}" for n in range(29)]
    numbers[14:15] = ["V14a", "V14b"]
    assert [claim.id for claim in ran.claims] == numbers


def test_every_claim_holds(ran: Outcome) -> None:
    for claim in ran.claims:
        assert claim.verdict == "holds", claim


def test_what_is_measured_names_scheme_and_outcome(ran: Outcome) -> None:
    measured = {claim.id: claim.measured for claim in ran.claims}
    assert measured["V1"] == "pairwise, fifo: C delivers 2 before its cause 1. Clean: vector"
    assert measured["V18"] == "broadcast: C never delivers 2. Clean: history, vector, matrix"


def right_rule_in_its_place(vector: LadderVector) -> LadderVector:
    """Nothing is wrong any longer."""
    return replace(
        vector, shows=tuple(replace(show, scheme=vector.right[0], flaws={}) for show in vector.shows)
    )


def another_outcome(vector: LadderVector) -> LadderVector:
    return replace(vector, shows=tuple(replace(show, found=("A: 9 never",)) for show in vector.shows))


def weaker_scheme_called_right(vector: LadderVector) -> LadderVector:
    return replace(vector, right=(*vector.right, vector.shows[0].scheme))


OTHERWISE: dict[str, Callable[[LadderVector], LadderVector]] = {
    "the right rule in its place": right_rule_in_its_place,
    "another outcome": another_outcome,
    "the scheme called right": weaker_scheme_called_right,
}


@pytest.mark.parametrize(
    ("id", "wrong"),
    [
        pytest.param(vector.id, wrong, id=f"{vector.id}: {wrong}")
        for vector in VECTORS.values()
        for wrong in OTHERWISE
        if not (wrong == "the scheme called right" and vector.shows[0].flaws)  # of which the scheme is right
    ],
)
def test_a_vector_that_ends_otherwise_does_not_hold(id: str, wrong: str) -> None:
    """Another scheme, another expectation or another "right" rule, and the claim is not reproduced."""
    assert play(VECTORS[id]).holds
    assert not play(OTHERWISE[wrong](VECTORS[id])).holds


def test_what_is_measured_names_a_rule_that_is_not_right() -> None:
    played = play(weaker_scheme_called_right(VECTORS["V1"]))
    assert played.measured.endswith("Broken too: pairwise, pairwise")


def test_a_vector_may_bring_its_own_way_to_be_played() -> None:
    """For what a schedule on a board cannot say."""
    show = vectors.Show(
        "fifo",
        "in words",
        ("C: 2 before 1",),
        play=lambda show, order: play_schedule("A!1 1>B B!2 2>C", order),
    )
    filled = replace(VECTORS["V22"], shows=(show,))
    assert play(filled).holds


def test_joins_and_gates_can_be_told_and_drawn() -> None:
    """With a flaw of the board under the scheme, and without it under the right rule."""
    show = vectors.Show("vector", "A!1 1>B J+ A= B= A!2 2>J", ("C: 2 never",), flaws={"entry": "zero"})
    named = replace(show, label="newcomer at zero")
    played = play(replace(VECTORS["V19"], shows=(named,)))
    assert played.holds
    assert played.measured == "newcomer at zero: C never delivers 2. Clean: vector"
    assert [name for name, _ in played.files()] == ["V19-newcomer-at-zero.svg", "V19-vector.svg"]
    broken, right = show.broken(), show.under("vector")
    assert broken.found == ("C: 2 never",)
    assert right.found == ()
    assert [line for line in describe(right) if "C" in line] == [
        "C joins",
        "2 reaches C   [C (2,0,0)]",
        "C delivers 2   [C (2,0,0)]",
    ]
    assert "B installs the new view   [B (1,0,0)]" in describe(right)
    drawn = draw(picture(broken, "x"))
    assert drawn.count('class="tick"') == 3 and drawn.count('class="bar blocked"') == 1
    crash = play_schedule("A!1 1>B A- B!2 2>C B= C=", "vector")
    assert "A is gone   [A (1,0,0)]" in describe(crash)
    assert 0 not in {finding.site for finding in crash.findings}, "nothing is expected of the dead"
    assert "gone" in draw(picture(crash, "x"))
    gate = play_schedule("B|open A!1 A!2 2>B B|shut", "vector")
    assert describe(gate)[0].startswith("the gate of B opens")
    assert gate.taken[1] == [2, 1]


def test_tables_have_every_show(ran: Outcome) -> None:
    table = ran.tables["vectors"]
    assert table.columns == ["vector", "scheme", "schedule", "found", "right", "clean"]
    shows = sum(len(vector.shows) * len(vector.right) for vector in VECTORS.values())
    assert len(table.rows) == shows
    assert all(row[5] is True for row in table.rows)
    assert [row[0] for row in ran.tables["search"].rows][-1] == "vector"


def test_every_scheme_is_shown_and_explained() -> None:
    shown = {show.scheme for vector in VECTORS.values() for show in vector.shows}
    assert set(ladder()) - shown == {"history"}, "which breaks nowhere"
    assert shown | {"history", "vector"} <= set(SCHEMES)


# Words


def test_the_story_of_a_schedule() -> None:
    scene = VECTORS["V1"].shows[0].under("pairwise")
    assert describe(scene) == [
        "A sends 1, stamped no. 1   [A has 0 from B, 0 from C]",
        "1 reaches B   [B has 1 from A, 0 from C]",
        "B delivers 1   [B has 1 from A, 0 from C]",
        "B sends 2, stamped no. 1   [B has 1 from A, 0 from C]",
        "2 reaches C   [C has 0 from A, 1 from B]",
        "C delivers 2 BEFORE ITS CAUSE 1   [C has 0 from A, 1 from B]",
        "1 reaches C   [C has 1 from A, 1 from B]",
        "C delivers 1   [C has 1 from A, 1 from B]",
        "2 reaches A   [A has 1 from B, 0 from C]",
        "A delivers 2   [A has 1 from B, 0 from C]",
    ]
    assert outcome(scene) == ["C delivers 2 before its cause 1"]


def test_the_text_has_everything_in_the_order_of_the_ladder(ran: Outcome) -> None:
    places = [ran.text.index(f"\n{v.id}  {v.title}") for c in CHAPTERS for v in c.vectors]
    assert places == sorted(places)
    assert not re.search(r"</?\w+>|&\w+;", ran.text), "marks of the page do not belong here"
    assert max(map(len, ran.text.splitlines())) <= 140


# Pictures


def test_every_picture_is_written_and_is_an_image(ran: Outcome, out: Path) -> None:
    files = sorted(path.name for path in out.glob("*.svg"))
    assert {"V1-pairwise.svg", "V1-vector.svg", "V14a-at-once-replace.svg"} <= set(files)
    for path in out.glob("*.svg"):
        text = path.read_text()
        assert text.startswith('<svg class="spacetime"') and text.endswith("</svg>\n")
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_what_goes_wrong_can_be_seen() -> None:
    early = draw(picture(VECTORS["V1"].shows[0].under("pairwise"), "x"))
    assert early.count('class="dot early"') == early.count('class="copy late"') == 1
    assert "before 1!" in early and "held" not in early
    right = draw(picture(VECTORS["V1"].shows[0].under("vector"), "x"))
    assert right.count('class="bar held"') == 1 and "early" not in right
    blocked = draw(picture(VECTORS["V10"].shows[0].under("strict"), "x"))
    assert blocked.count('class="bar blocked"') == 2
    stale = draw(picture(VECTORS["V11"].shows[0].under("head-only"), "x"))
    assert "stale, at the head" in stale and 'class="copy double"' in stale
    unread = draw(picture(VECTORS["V26"].shows[0].under("vector"), "x"))
    assert 'class="bar queued"' in unread and unread.count('class="dot flagged"') == 2
    header = draw(picture(VECTORS["V18"].shows[0].under("vector"), "x"))
    assert header.count('class="copy header"') == 2


def test_the_pictures_of_the_documentation_are_these(out: Path, ran: Outcome) -> None:
    """Made by `inga lab ladder --out DIR`; make them again if this fails."""
    shown = re.findall(r"img/([\w-]+\.svg)", (PICTURES.parent / "causality.md").read_text())
    assert len(shown) >= 6
    assert sorted(set(shown)) == sorted(path.name for path in PICTURES.glob("V*.svg"))
    for name in set(shown):
        assert (PICTURES / name).read_text() == (out / name).read_text(), name


# The page


def test_the_page_explains_before_it_shows(ran: Outcome) -> None:
    text = ran.pages[0].read_text()
    assert text.index("Lunch?") < text.index('id="V0"') < text.index('id="V10"') < text.index('id="V26"')
    for vector in VECTORS.values():
        assert text.count(f'<article id="{vector.id}">') == 1
    assert page.TITLE in text


@browser_test
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(browser: object, ran: Outcome, colours: str, width: int) -> None:
    """It loads nothing, complains of nothing, and never has to be scrolled sideways."""
    opened = Opened(browser, ran.pages[0], width=width, colours=colours)
    try:
        assert opened.complaints == []
        assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
        assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        shown = opened.page.locator("figure svg.spacetime")
        assert shown.count() == opened.page.locator("figure:not(.steps)").count()
        assert all(each.bounding_box()["width"] > 200 for each in shown.all()[:6])
        opened.page.locator("#V14b details summary").first.click()
        assert opened.page.locator("#V14b details li").first.is_visible()
    finally:
        opened.page.close()


@browser_test
def test_broken_and_clean_stand_side_by_side(browser: object, ran: Outcome) -> None:
    opened = Opened(browser, ran.pages[0])
    try:
        broken, clean = (
            opened.page.locator(f"#V1 figure.{kind}").bounding_box() for kind in ("broken", "clean")
        )
        assert broken["x"] + broken["width"] <= clean["x"]
        assert abs(broken["y"] - clean["y"]) < 2
        red = opened.page.locator("#V1 .dot.early").evaluate("e => getComputedStyle(e).fill")
        grey = opened.page.locator("#V1 .dot.deliver").first.evaluate("e => getComputedStyle(e).fill")
        assert red != grey
    finally:
        opened.page.close()
