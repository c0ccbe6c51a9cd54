"""The page in a real browser: nothing missing, nothing loaded, nothing executed that came from a trace."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import pytest

from inga.cli.main import main
from inga.report.figures import in_digits, ms
from inga.report.page import render
from inga.report.section import Section
from inga.report.verdict import judge
from inga.trace import Row
from inga.trace.drawing import from_rows

from .opened import Opened, browser_test

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "long" * 200,
    "\N{RIGHT-TO-LEFT OVERRIDE}\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}'\"&amp;\\u003c",
]


def lunch(names: list[str] | None = None) -> Section:
    """Alice asks, Bob answers, Cathy hears the answer first; Dave hears it last."""
    names = names or ["alice", "bob", "cathy", "dave"]
    question, answer = (0, 0, 0, 0), (1, 0, 0, 0)

    def row(process: int, pos: int, time: int, step: str, src: int, seq: int, deps: tuple[int, ...]) -> Row:
        dst = 0b1101 if step == "send" and src == 1 else None
        return Row(process, pos, time, step, 1, src, seq, dst, deps, sum(deps) + 1)

    rows = [
        row(0, 1, 0, "send", 0, 1, question),
        row(1, 1, 2_000_000, "deliver", 0, 1, question),
        row(1, 2, 2_000_000, "take", 0, 1, question),
        row(1, 3, 3_000_000, "send", 1, 1, answer),
        row(2, 1, 4_000_000, "deliver", 1, 1, answer),
        row(3, 1, 4_500_000, "receive", 1, 1, answer),
        row(3, 2, 4_500_000, "hold", 1, 1, answer),
        row(3, 3, 6_000_000, "deliver", 0, 1, question),
        row(3, 4, 7_000_000, "deliver", 1, 1, answer),
        row(2, 2, 20_000_000, "deliver", 0, 1, question),
    ]
    chain = [
        {"process": 0, "pos": 1, "step": "send", "src": 0, "seq": 1},
        {"process": 1, "pos": 2, "step": "take", "src": 0, "seq": 1},
        {"process": 1, "pos": 3, "step": "send", "src": 1, "seq": 1},
    ]
    witness = {
        "check": "causal", "process": 2, "pos": 2, "message": [0, 1], "other": [1, 1], "other_pos": 1,
        "chain": chain, "segment": "events/2-00000.parquet", "text": f"{names[2]} heard the answer first",
    }  # fmt: skip
    certificate = {
        "verdict": "fail", "events": 9, "messages": 2, "deliveries": 5, "payloads": 2, "processes": 4,
        "checks": [
            {"name": "fifo", "verdict": "pass", "violations": 0, "reason": "", "witnesses": []},
            {"name": "causal", "verdict": "fail", "violations": 1, "reason": "", "witnesses": [witness]},
            {"name": "atomic", "verdict": "unknown", "violations": 0, "reason": "not built", "witnesses": []},
        ],
        "groups": [{"cause": f"{names[2]} is late", "checks": ["causal"], "count": 1, "first": {}}],
        "seconds": 1.0,
    }  # fmt: skip
    return Section(
        f"fifo: {names[0]}", names, [("group", names[1])], certificate, rows, "All 9 steps are shown"
    )


def noted(step: str, *rows: tuple[int, int | None, int]) -> list[dict[str, Any]]:
    """The table of steps: of each process and peer, and of each process in all, how many rows."""
    sums = Counter[int]()
    for process, _, count in rows:
        sums[process] += count
    lines = [*rows, *((process, None, count) for process, count in sums.items())]
    found = {
        (process, peer): count for process, peer, count in lines
    }  # rows without a peer are only in the sum
    return [
        {"step": step, "process": p, "peer": q, "count": count, "n": None} for (p, q), count in found.items()
    ]


def test_a_crash_is_one_however_many_note_it() -> None:
    """Cathy fails: three others note it. Dave was taken for dead, is told so, and notes it himself."""
    steps = noted("crash", (0, 2, 1), (1, 2, 1), (3, 2, 1), (0, 3, 1), (3, None, 1))
    assert "<b>2</b><span>crashes" in render([replace(lunch(), measured={"steps": steps})])
    one = replace(lunch(), measured={"steps": noted("crash", (3, None, 1))})
    assert "<b>1</b><span>crash<" in render([one])
    assert "<span>crash" not in render([lunch()])


def test_views_of_two_parts_are_two_though_they_have_one_number() -> None:
    """Alice leads to views 1, 2 and 4, of which bob, who was cut off with cathy, has 1 and 4; and bob to another 2 and to 3, after
    which he fails: cathy alone has it."""
    rows = [(0, 0, 3), (1, 0, 2), (2, 0, 2), (1, 1, 1), (2, 1, 2)]
    assert "<b>5</b><span>views" in render([replace(lunch(), measured={"steps": noted("view", *rows)})])
    older = noted("view", (0, None, 3), (1, None, 2))
    assert "<b>3</b><span>views" in render([replace(lunch(), measured={"steps": older})]), (
        "leaders are not named"
    )


def mended() -> Section:
    """The same, with cathy hearing both in order."""
    section = lunch()
    rows = [
        row._replace(time=1_500_000, pos=1) if row.process == 2 and row.src == 0 else row
        for row in section.rows
    ]
    rows = [row._replace(pos=2) if row.process == 2 and row.src == 1 else row for row in rows]
    return replace(section, title="mended", rows=rows)


def measured() -> Section:
    """With every figure there is."""
    spread = {"count": 9, "mean": 2.0, "min": 1.0, "p50": 2.0, "p90": 3.0, "p99": 40.0, "max": 50.0}
    delays = [
        {"step": step, "process": process, "src": None, **spread}
        for step in ("receive", "deliver")
        for process in (None, 0, 1)
    ]
    counts = {"send": 2, "hold": 1, "control": 3, "nack": 1, "repair": 1, "gap": 1, "lost": 1, "crash": 1}
    tables = {
        "delays": delays,
        "steps": [{"step": step, "process": None, "peer": None, "count": n, "n": n} for step, n in counts.items()],
        "holds": [{"process": None, "src": None, **spread}],
        "held_by": [{"process": 3, "src": 0, "seq": 1, "held": 1, "ms": 2.5, "ms_max": 2.5}],
        "windows": [{"process": 0, "closed": 2, "ms": 3.0, "ms_max": 2.0, "share": 0.25}],
        "rates": [
            {"from_ms": at, "length_ms": 1.0, "process": at % 4, "sends": 1, "deliveries": at, "control": 0, "repair": 1,
             "closed": at // 6, "allowed": (11 - at) * 100_000_000 if at else None}
            for at in range(10) if at != 5
        ],
    }  # fmt: skip
    return replace(lunch(), measured=tables)


NAMELESS = """() => [...document.querySelectorAll("button, select, input, a, summary, canvas[tabindex], svg[role=img], [role=group]")]
    .filter((each) => !(each.getAttribute("aria-label") || each.getAttribute("aria-labelledby") || each.textContent.trim()))
    .map((each) => each.outerHTML.slice(0, 120))"""
"""Controls and pictures that a screen reader could not name."""

FAINT = """() => {
    const channel = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const bright = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const behind = (each) => {
        for (; each; each = each.parentElement) {
            const colour = rgb(getComputedStyle(each).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const each of document.querySelectorAll("body *")) {
        const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || ["SCRIPT", "STYLE", "OPTION"].includes(each.tagName) || !each.getClientRects().length) continue;
        const style = getComputedStyle(each), ink = rgb(each.namespaceURI.includes("svg") ? style.fill : style.color);
        const [light, dark] = [bright(ink), bright(behind(each))].sort((a, b) => b - a);
        if ((light + 0.05) / (dark + 0.05) < 4.5) found.push(each.outerHTML.slice(0, 100) + " " + ink + " on " + behind(each));
    }
    return found;
}"""
"""Text with less contrast than 4.5 to 1, which is what people with weak sight need."""


def state(page: Any, expression: str, where: str = ".viewer >> nth=0") -> Any:
    """Something of a viewer."""
    return page.locator(where).evaluate(
        f"(place) => {{ const viewer = place.viewer, scene = viewer.scene; return {expression}; }}"
    )


def shades_of(page: Any) -> dict[str, str]:
    """How each copy is drawn, by its sender and where it came."""
    return state(  # type: ignore[no-any-return]
        page,
        "Object.fromEntries(Array.from(viewer.run.copyMessage, (m, c) => "
        "[viewer.run.src[m] + ' at ' + viewer.run.copyProcess[c], scene.shade(c), m]).filter((each) => each[2] >= 0))",
    )


def is_painted(page: Any, where: str = ".viewer >> nth=0") -> bool:
    """Whether anything dark is on the canvas, right of the names."""
    return bool(
        page.locator(where)
        .locator(".stage canvas")
        .evaluate(
            "(canvas) => { const { data } = canvas.getContext('2d').getImageData(0, 60, canvas.width, canvas.height - 60);"
            "let dark = 0; for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200 && data[at] < 90) dark++; return dark > 20; }"
        )
    )


def x_of(page: Any, event: int) -> float:
    return float(state(page, f"scene.x(scene.where({event}))"))


def span(page: Any) -> float:
    return float(state(page, "scene.camera.to - scene.camera.from"))


def status_says(page: Any, words: str) -> None:
    """Wait for what is painted next."""
    page.locator(".status").first.filter(has_text=words).wait_for(timeout=10_000)


def eventually(page: Any, happens: Callable[[], bool]) -> bool:
    """Whether something happens within some seconds: what a mouse does, a page does when it comes to it."""
    for _ in range(200):
        if happens():
            return True
        page.wait_for_timeout(25)
    return False


def point(page: Any, event: int) -> None:
    """Move the mouse to an event."""
    canvas = page.locator(".stage canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(
        box["x"] + x_of(page, event), box["y"] + float(state(page, f"scene.y(viewer.run.process[{event}])"))
    )
    page.locator(".tip").first.wait_for(timeout=10_000)


def plain(text: str) -> str:
    return re.sub("[\u2068\u2069]", "", text)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages = []

    def open_page(*sections: Section) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(render(sections), encoding="utf-8")
        pages.append(Opened(browser, path))
        pages[-1].page.wait_for_selector("html[data-opened]", state="attached")
        return pages[-1]

    yield open_page
    for each in pages:
        each.page.close()


@browser_test
def test_it_opens_alone_and_in_silence(opened: Any) -> None:
    found = opened(lunch())
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in found.requests if url.startswith("file:")]) == 1
    assert is_painted(found.page)


@browser_test
def test_verdicts_numbers_and_definitions(opened: Any) -> None:
    page = opened(measured(), lunch(["a", "b", "c", "d"])).page
    told = page.locator("header .verdict").all_inner_texts()
    assert len(told) == 2
    assert told[0].endswith("A promise was broken: 1 delivery came after something that it had caused.")
    cells = page.locator("table.verdicts tbody tr").all_inner_texts()
    assert [cell.split()[0] for cell in cells] == ["fifo", "causal", "atomic"]
    assert "1 violation" in cells[1] and "not built" in cells[2]
    assert page.locator("table.verdicts tfoot .mark.fail").count() == 2
    tile = page.locator(".tile").first
    assert tile.locator("summary").inner_text().split("\n")[:2] == ["2", "messages sent"]
    definition = tile.locator("p")
    assert not definition.is_visible()
    tile.locator("summary").click()
    assert definition.is_visible()
    figures = page.locator("figure").all()
    assert len(figures) == 7
    for figure in figures:
        assert not figure.locator("details p").is_visible()
        figure.get_by_text("What is this?").click()
        assert figure.locator("details p").is_visible()


@browser_test
def test_the_violation_is_shown_at_once_and_can_be_left_and_found_again(opened: Any) -> None:
    page = opened(lunch()).page
    assert page.locator(".violation").inner_text() == "1 of 1 · causal cathy heard the answer first"
    shades = {"0 at 2": "late", "1 at 2": "early", "0 at 1": "cause", "0 at 3": "faded"}
    assert shades_of(page) == shades | {"1 at 3": "faded"}, "the chain is drawn, everything else is dimmed"
    assert state(page, "scene.chosen.chain.map((at) => viewer.run.describe(at))") == [
        "message 1 of \u2068alice\u2069: sent",
        "message 1 of \u2068alice\u2069: taken",
        "message 1 of \u2068bob\u2069: sent",
    ]
    page.get_by_label("jump to a violation").select_option("-1")
    assert page.locator(".violation").is_hidden()
    assert set(shades_of(page).values()) == {"plain"}
    page.get_by_role("button", name="next violation").click()
    assert page.locator(".violation").is_visible()
    page.locator(".stage canvas").press("Escape")
    assert page.locator(".violation").is_hidden()


@browser_test
def test_a_broken_promise_is_shown_before_what_was_not_promised(opened: Any) -> None:
    """Also where only what was not promised has a chain of causes; of promises one that has."""
    section = lunch()
    fifo, causal, _ = section.certificate["checks"]
    chained = causal["witnesses"][0]
    bare = {**chained, "check": "fifo", "chain": [], "text": "bare"}
    fifo |= {"verdict": "fail", "violations": 1, "witnesses": [bare]}
    checks = [causal, fifo]
    shown = replace(
        section, certificate={**section.certificate, "checks": checks}, promised=frozenset({"fifo"})
    )
    assert opened(shown).page.locator(".violation").inner_text() == "2 of 2 · fifo bare"
    fifo["witnesses"] = [bare, {**bare, "chain": chained["chain"], "text": "explained"}]
    assert opened(shown).page.locator(".violation").inner_text() == "3 of 3 · fifo explained"


@browser_test
def test_pointing_at_a_packet_shows_its_causes_and_effects(opened: Any) -> None:
    page = opened(lunch()).page
    page.get_by_label("jump to a violation").select_option("-1")
    point(page, 3)
    text = plain(page.locator(".tip").inner_text())
    assert text.startswith("message 1 of bob\nsent at 3 ms to alice, cathy, dave\n")
    assert "delivered at dave after 4 ms, held for 2.5 ms, position 4" in text
    assert text.endswith("caused by\nmessage 1 of alice")
    assert shades_of(page) == {
        "0 at 1": "cause", "0 at 2": "faded", "0 at 3": "faded", "1 at 2": "effect", "1 at 3": "effect"
    }  # fmt: skip
    page.mouse.down()
    page.mouse.up()
    page.get_by_role("button", name="let go").wait_for()
    page.mouse.move(2, 2)
    assert page.locator(".tip").is_visible(), "it is pinned"
    page.get_by_role("button", name="let go").click()
    assert page.locator(".tip").is_hidden()
    assert set(shades_of(page).values()) == {"plain"}


@browser_test
def test_it_pans_and_zooms_by_mouse_wheel_and_keys(opened: Any) -> None:
    page = opened(lunch()).page
    page.get_by_role("button", name="all", exact=True).click()
    canvas = page.locator(".stage canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    before = x_of(page, 3)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] - 5
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 20, middle[1])
    page.mouse.up()
    assert eventually(page, lambda: abs(x_of(page, 3) - before - 20) < 1)
    width = span(page)
    page.mouse.wheel(0, -200)
    assert eventually(page, lambda: span(page) < width * 0.7)
    width = span(page)
    canvas.press("+")
    assert span(page) == pytest.approx(width / 1.5, rel=0.01)
    canvas.press("-")
    assert span(page) == pytest.approx(width, rel=0.01)
    canvas.press("0")
    assert span(page) > 20_000_000
    canvas.press("n")
    canvas.press("n")
    assert plain(page.locator(".tip").inner_text()).startswith("message 1 of alice")


def crowd() -> Section:
    """More members than are in view, each of whom says something."""
    rows = [Row(at, 1, at * 1_000_000, "send", 1, at, 1) for at in range(40)]
    return replace(lunch(), title="crowd", names=[f"m{at}" for at in range(40)], rows=rows)


@browser_test
def test_every_other_way_to_move_about(opened: Any) -> None:
    """By double click, two fingers, the strip, arrow keys and the wheel sideways, in one page."""
    page = opened(crowd()).page
    canvas = page.locator(".stage canvas")
    page.get_by_label("jump to a violation").select_option("-1")
    page.get_by_role("button", name="all", exact=True).click()
    canvas.scroll_into_view_if_needed()
    box, whole = canvas.bounding_box(), span(page)
    left, plot = float(state(page, "scene.gutter")), float(state(page, "scene.plot"))
    x, y = box["x"] + left + plot / 2, box["y"] + 62  # in the middle, above the first line

    def place() -> float:
        return float(state(page, "(scene.camera.from + scene.camera.to) / 2 / scene.length"))

    page.mouse.dblclick(x, y)
    assert eventually(page, lambda: span(page) == pytest.approx(whole / 3, rel=0.01))
    assert place() == pytest.approx(0.5, abs=0.01), "about where it was clicked"

    fingers = page.context.new_cdp_session(page)
    for kind, away in (("touchStart", 40), ("touchMove", 60), ("touchMove", 80), ("touchEnd", 0)):
        points = [{"x": x + side * away, "y": y, "id": side} for side in (-1, 1)] if away else []
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert eventually(page, lambda: span(page) == pytest.approx(whole / 6, rel=0.01))
    assert page.evaluate("visualViewport.scale") == 1, "the diagram is zoomed, not the page"

    page.mouse.move(box["x"] + left + plot * 0.2, box["y"] + 10)
    page.mouse.down()
    assert eventually(page, lambda: place() == pytest.approx(0.2, abs=0.01))
    page.mouse.move(box["x"] + left + plot * 0.7, box["y"] + 10)
    page.mouse.up()
    assert eventually(page, lambda: place() == pytest.approx(0.7, abs=0.01))
    assert span(page) == pytest.approx(whole / 6, rel=0.01)

    def moved(act: Callable[[], None]) -> float:
        """By how many pixels an act moves what is in view to the left."""
        before = x_of(page, 20)
        act()
        assert eventually(page, lambda: x_of(page, 20) != before)
        return before - x_of(page, 20)

    assert moved(lambda: canvas.press("ArrowLeft")) == pytest.approx(-80)
    assert moved(lambda: canvas.press("ArrowRight")) == pytest.approx(80)
    page.mouse.move(x, y)
    assert moved(lambda: page.mouse.wheel(50, 0)) == pytest.approx(50)
    page.keyboard.down("Shift")
    assert moved(lambda: page.mouse.wheel(0, 70)) == pytest.approx(70)
    page.keyboard.up("Shift")
    assert span(page) == pytest.approx(whole / 6, rel=0.01)
    lane = state(page, "scene.laneHeight")
    for key, top in (("ArrowDown", lane), ("ArrowDown", 2 * lane), ("ArrowUp", lane)):
        canvas.press(key)
        assert state(page, "scene.top") == top


@browser_test
def test_time_is_time_and_order_is_called_order(opened: Any) -> None:
    page = opened(lunch()).page
    page.get_by_role("button", name="all", exact=True).click()
    status_says(page, "from edge to edge")
    assert (x_of(page, 8) - x_of(page, 7)) > 5 * (x_of(page, 7) - x_of(page, 6)), "13 ms against 1 ms"
    page.get_by_role("button", name="even spacing").click()
    page.get_by_role("button", name="all", exact=True).click()
    status_says(page, "evenly spaced, in their order")
    assert x_of(page, 8) - x_of(page, 7) == pytest.approx(x_of(page, 7) - x_of(page, 6))
    page.close()
    page = opened(replace(lunch(), is_timed=False)).page
    status_says(page, "this log has no times")
    assert page.get_by_role("button", name="even spacing").is_disabled()


@browser_test
def test_search_and_filters(opened: Any) -> None:
    for_ever = Row(0, 2, 20_000_000, "hold", 1, 1, 3, None, (1, 2, 0, 0), 4)
    page = opened(replace(lunch(), rows=[*lunch().rows, for_ever])).page
    page.get_by_label("jump to a violation").select_option("-1")
    field, hits = page.get_by_label("search"), page.locator(".hits")
    for words, found in (
        ("from:bob to:dave held>2ms", "2 events"),
        ("from:bob to:dave held>5ms", "0 events"),
        ("held>5ms", "1 event"),  # and is to this day
        ("at:alice held<1s", "0 events"),
        ("delay>10ms", "1 event"),
        ("is:sent", "2 events"),
        ("cathy", "2 events"),
        ("seq:1 at:dave", "3 events"),
        ("colour:red", "there is no “colour”; there are from, to, at, seq, view, is, held, delay"),
        ("from:zoe", "no member’s name has “zoe” in it"),
        ("held:x", "“held” is compared with a time, as in held>5ms"),
    ):
        field.fill(words)
        assert hits.inner_text() == found, words
    field.fill("from:bob to:dave held>2ms")
    assert shades_of(page)["1 at 3"] == "match" and shades_of(page)["1 at 2"] == "faded"
    field.fill("is:sent at:bob")
    assert shades_of(page)["1 at 3"] == shades_of(page)["1 at 2"] == "match"
    field.fill("from:bob to:dave")
    assert shades_of(page)["1 at 3"] == "match" and shades_of(page)["1 at 2"] == "faded"
    field.fill("from:bob to:dave held>2ms")
    field.press("Enter")
    assert hits.inner_text() == "1 of 2 events"
    field.fill("")
    assert set(shades_of(page).values()) == {"plain"}
    held = page.get_by_role("button", name="held", exact=True)
    assert held.get_attribute("aria-pressed") == "true"
    held.click()
    assert held.get_attribute("aria-pressed") == "false" and not state(page, "scene.shown.has('held')")


@browser_test
def test_events_in_view_are_there_as_a_table(opened: Any) -> None:
    page = opened(lunch()).page
    page.get_by_role("button", name="all", exact=True).click()
    page.get_by_text("The events in view as a table").click()
    page.locator(".events tbody tr").first.wait_for()
    lines = [plain(line) for line in page.locator(".events tbody tr").all_inner_texts()]
    assert len(lines) == 9
    assert lines[0].split("\t") == ["0 ns", "alice", "message 1 of alice: sent"]


@browser_test
def test_two_runs_side_by_side(opened: Any) -> None:
    page = opened(lunch(), mended()).page
    page.locator("#compare").scroll_into_view_if_needed()
    told = plain(page.locator(".difference").inner_text())
    assert told.startswith("The runs first differ at cathy, in thing number 1 that it did. ")
    assert "fifo: alice: message 1 of bob: delivered. mended: message 1 of alice: delivered. " in told
    page.locator(".compare .viewer").nth(0).get_by_role("button", name="zoom in", exact=True).click()
    one, other = (state(page, "scene.camera", f".compare .viewer >> nth={at}") for at in (0, 1))
    assert one == other
    where = ".compare .viewer >> nth=0"
    page.locator(where).get_by_role("button", name="all", exact=True).click()
    assert state(page, "scene.camera.to - scene.camera.from > scene.length", where)
    page.get_by_role("button", name="first difference").click()
    near = "[scene.camera.to - scene.camera.from < scene.length / 8, scene.camera.from < scene.where(scene.marked), scene.where(scene.marked) < scene.camera.to]"
    assert state(page, near, where) == [True, True, True], "it is looked at closely"
    page.get_by_label("one run").select_option("1")
    assert page.locator(".difference").inner_text().startswith("Both runs are the same")
    page.get_by_label("one run").select_option("0")
    page.get_by_label("the other run").select_option("0")
    assert page.locator(".difference").inner_text().startswith("Both runs are the same")
    assert page.get_by_role("button", name="first difference").is_disabled()


@browser_test
def test_members_without_a_namesake_are_a_difference(opened: Any) -> None:
    """All of them, or dave alone, who is not in the third run."""
    names = ["alice", "bob", "cathy"]
    rows = [row for row in lunch().rows if row.process < len(names)]
    page = opened(
        lunch(), lunch(["a", "b", "c", "d"]), replace(lunch(), title="three", names=names, rows=rows)
    ).page
    page.locator("#compare").scroll_into_view_if_needed()
    told, again = page.locator(".difference"), page.get_by_role("button", name="first difference")
    assert told.inner_text().startswith("No member of one run has a namesake in the other")
    assert again.is_disabled()
    for one, other, words in (
        ("0", "2", "fifo: alice: message 1 of alice: delivered. three: it is not there. "),
        ("2", "0", "three: it is not there. fifo: alice: message 1 of alice: delivered. "),
    ):
        page.get_by_label("one run").select_option(one)
        page.get_by_label("the other run").select_option(other)
        start = f"The runs first differ at dave, in thing number 1 that it did. {words}"
        assert plain(told.inner_text()).startswith(start)
    assert again.is_enabled()


@browser_test
def test_two_runs_keep_step_when_they_are_spaced_evenly(opened: Any) -> None:
    page = opened(lunch(), mended(), replace(lunch(), is_timed=False)).page
    page.locator("#compare").scroll_into_view_if_needed()
    places = [f".compare .viewer >> nth={at}" for at in (0, 1)]
    buttons = [page.locator(place).get_by_role("button", name="even spacing") for place in places]

    def steps() -> list[list[Any]]:
        spacing = "[scene.isEven, viewer.even.getAttribute('aria-pressed'), viewer.even.disabled]"
        return [state(page, spacing, place) for place in places]

    assert steps() == [[False, "false", False]] * 2
    buttons[0].click()
    assert steps() == [[True, "true", False]] * 2
    one, other = (state(page, "scene.camera", place) for place in places)
    assert one == other
    buttons[1].click()
    assert steps() == [[False, "false", False]] * 2, "and back, from the other one"
    page.get_by_label("the other run").select_option("2")
    assert steps() == [[True, "true", True]] * 2, "one of them has no times"


@browser_test
def test_an_arrow_is_drawn_however_far_it_goes(opened: Any) -> None:
    """Also that of a sender who delivers its own message, to a receipt that is thousands of events further on."""
    rows = [
        Row(0, 1, 0, "send", 1, 0, 1),
        Row(0, 2, 1, "deliver", 1, 0, 1),
        *(Row(1, at, 10 * at, "send", 1, 1, at) for at in range(1, 4000)),
        Row(2, 1, 50_000, "deliver", 1, 0, 1),
    ]
    page = opened(replace(lunch(), rows=rows)).page
    drawn = "(scene.look(0, 100), scene.paint(), scene.drawn.map(({ copy }) => viewer.run.copyProcess[copy]))"
    assert sorted(state(page, drawn)) == [0, 2]


@browser_test
def test_hostile_names_are_text(opened: Any) -> None:
    found = opened(lunch(HOSTILE))
    page = found.page
    point(page, 3)
    assert HOSTILE[0] in page.locator(".tip").inner_text()
    page.get_by_text("The events in view as a table").click()
    page.locator(".events tbody tr").first.wait_for()
    assert found.complaints == []
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    text = page.locator("body").inner_text()
    assert HOSTILE[0] in text and HOSTILE[1] in text and HOSTILE[2][:200] in text
    overflow = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not overflow, "a long name makes the page wider than the window"


@browser_test
def test_odd_runs_are_drawn(opened: Any) -> None:
    """Times before 0 and far apart, numbers beyond all bounds, many members, a text without end."""
    big = 1 << 62
    rows = [
        Row(0, 1, -big, "send", 1, 0, big, None, None, None, n=big, note="x" * 1_000_000),
        Row(70_000, 5, big, "deliver", 1, 0, big),
        Row(3, 9, 5, "crash", 1, peer=2),
        Row(2, 2, 6, "hold", 1, 1, 7),
    ]
    names = [f"m{at}" for at in range(70_001)]
    found = opened(replace(lunch(), names=names, rows=rows))
    assert found.complaints == []
    assert is_painted(found.page)
    status_says(found.page, "4 events")
    assert len(found.page.content()) < 4_000_000


@browser_test
def test_a_hundred_thousand_members_and_endless_texts(opened: Any) -> None:
    """Each of them does something, before time 0 as well; messages go to all of them; names, calls and notes have no end."""
    n, names = 100_000, [f"<u>m{at}" for at in range(100_000)]
    names[0], endless = "<b>" * 3_000_000, "<script>alert(1)</script>" * 400_000
    everybody = (1 << n) - 1
    rows = [
        *(Row(at, 1, at - n // 2, "send", 1, at, 1, everybody - (1 << at % 3)) for at in range(0, n, 2)),
        *(Row(at, 1, at, "deliver", 1, at - 1, 1) for at in range(1, n, 2)),
        Row(0, 2, n, "send", 1, 0, 2, everybody, op=endless, ref=endless, note=endless),
    ]
    section = replace(lunch(), names=names, rows=rows, title=endless)
    started = perf_counter()
    found = opened(section)
    page = found.page
    status_says(page, "100,001 events")
    assert found.complaints == [] and is_painted(page)
    assert len(page.content()) < 6_000_000
    canvas = page.locator(".stage canvas")
    for key in ("ArrowDown", "n", "+", "+", "Enter", "Escape", "0"):
        canvas.press(key)
    page.get_by_label("search").fill("from:m99998")
    assert page.locator(".hits").inner_text() == "2 events"
    page.get_by_label("search").press("Enter")
    assert "and 99,987 more" in page.locator(".tip").inner_text()
    assert found.complaints == [] and page.locator("u, script:not([type])").count() == 1
    assert perf_counter() - started < 60, "it hangs"


@browser_test
@pytest.mark.parametrize("rows", [[], lunch().rows[:1], [row._replace(time=7) for row in lunch().rows]])
def test_runs_with_nothing_to_see_are_opened_too(opened: Any, rows: list[Row]) -> None:
    """No event, one, or all of them at one moment: every control can be used."""
    found = opened(replace(lunch(), rows=rows))
    page = found.page
    assert page.locator(".viewer").count() == bool(rows)
    if not rows:
        assert page.get_by_text("There are no events to draw").is_visible() and found.complaints == []
        return
    for button in page.locator(".viewer button:enabled").all():
        button.click()
        assert state(page, "scene.camera.to > scene.camera.from"), button
    assert page.locator(".legend button[aria-pressed=true]").count() == 0 and not state(
        page, "scene.shown.size"
    )
    canvas = page.locator(".stage canvas")
    for key, effect in (
        ("+", "scene.camera.to > scene.camera.from"),  # there is no less than a moment
        ("-", "scene.camera.to > scene.camera.from"),
        ("0", "scene.camera.from < 0 && scene.camera.to > scene.length"),
        ("n", "scene.pinned === 0 && !viewer.tip.hidden"),
        ("p", "scene.pinned === 0"),
        ("v", "viewer.witness === 0 && !viewer.note.hidden"),
        ("V", "viewer.witness === 0"),
        ("Escape", "viewer.witness < 0 && scene.pinned < 0 && viewer.tip.hidden && viewer.note.hidden"),
    ):
        canvas.press(key)
        assert state(page, effect), key
    assert is_painted(page) and found.complaints == []


@browser_test
def test_a_newcomer_finds_the_violated_pair_in_three_clicks(browser: Any, tmp_path: Path) -> None:
    """Of two runs, one is not in causal order: its verdict, then the next violation, then one of the two messages."""
    runs = [str(tmp_path / order) for order in ("vector", "fifo")]
    path = tmp_path / "report.html"
    load = ["--members", "3", "--messages", "10", "--loss", "0.1", "--seed", "1", "--quiet"]
    for order, run in zip(("vector", "fifo"), runs, strict=True):
        assert main(["sim", "--order", order, "--trace", run, *load]) == 0
    main(["report", *runs, "-o", str(path), "--checks", "all", "--engine", "local", "--quiet"])
    page = Opened(browser, path).page
    page.wait_for_selector("html[data-opened]", state="attached")
    assert page.locator("header .verdict.pass, header .verdict.unknown").count() == 2
    page.locator("header .verdict.unknown a").click()
    place, where = page.locator(".viewer").nth(1), ".viewer >> nth=1"
    place.get_by_role("button", name="next violation").click()
    told = "cathy delivered packet 9 of alice before packet 8 of bob, which precedes it"
    assert told in plain(place.locator(".violation").inner_text())
    pair = [state(page, f"scene.chosen.{which}", where) for which in ("late", "early")]
    box = place.locator(".stage canvas").bounding_box()
    spots = [
        state(page, f"[scene.x(scene.where({at})), scene.y(viewer.run.process[{at}])]", where) for at in pair
    ]
    for x, y in spots:
        assert 0 < x < box["width"], "both are in the picture"
        assert 0 < box["y"] + y < 900, "and on the screen"
    page.mouse.click(box["x"] + spots[0][0], box["y"] + spots[0][1])
    told = plain(place.locator(".tip").inner_text())
    assert told.startswith("packet 8 of bob\nsent at") and "delivered at cathy" in told
    page.close()


@browser_test
def test_print_is_dark_on_white(browser: Any, tmp_path: Path) -> None:
    """Of a page that is looked at in the dark, too, with a picture that was painted for the screen."""
    path = tmp_path / "report.html"
    path.write_text(render([lunch(), mended()]), encoding="utf-8")
    page = Opened(browser, path, colours="dark").page
    page.wait_for_selector("html[data-opened]", state="attached")
    assert page.locator(".viewer").count() == 2, "what is side by side is further down, and not opened yet"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(FAINT) == []
    assert page.locator(".viewer").count() == 4, "it is on the paper"
    colours = "[scene.colours.ink, scene.colours.card, scene.colours.failSoft, scene.colours.objectSoft]"
    places = [f".viewer >> nth={at}" for at in range(4)]
    for place in places:
        assert state(page, colours, place) == ["#1d2433", "#fff", "#fdeaea", "#f1e9fb"]
        assert is_painted(page, place)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".bar").first.is_visible()
    sent = page.locator("canvas.sign[data-step=send]").first
    assert sent.evaluate("(sign) => Array.from(sign.getContext('2d').getImageData(8, 8, 1, 1).data)") == [
        29,
        36,
        51,
        255,
    ]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen", color_scheme="dark")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    for place in places:
        assert state(page, "scene.colours.ink", place) == "#e6e9ef", "back on the screen"
    page.close()


@browser_test
def test_a_phone_shows_all_of_it(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render([lunch(HOSTILE), lunch()]), encoding="utf-8")
    page = Opened(browser, path, width=390, colours="dark").page
    page.wait_for_selector("html[data-opened]", state="attached")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width == 390
    for control in page.locator(".viewer").first.locator("button, select, input, canvas[tabindex]").all():
        box = control.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, control
    page.close()


@browser_test
def test_everything_has_a_name_and_colours_can_be_read(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render([measured(), lunch()], made="now"), encoding="utf-8")
    for colours in ("light", "dark"):
        page = Opened(browser, path, colours=colours).page
        page.wait_for_selector("html[data-opened]", state="attached")
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(FAINT) == []
        page.close()


def busy(events: int, members: int) -> list[Row]:
    """A run of any size that is as irregular as can be, always the same."""
    draw = Random(events)
    steps = ("send", "receive", "hold", "accept", "deliver", "take", "lost", "gap", "view", "crash")
    rows = []
    for _ in range(events):
        src, seq = (
            (None, None)
            if draw.random() < 0.2
            else (draw.randrange(members), draw.randrange(1, 1 + events // 4))
        )
        row = Row(
            draw.randrange(members),
            draw.randrange(1 << 40),
            draw.randrange(-events, events) ** 3,
            "send",
            1,
            src,
            seq,
        )
        rows.append(
            row._replace(step=draw.choice(steps), peer=draw.choice((None, 0, 1)), n=draw.choice((1, 1, 300)))
        )
    return rows


@browser_test
def test_what_is_read_is_what_was_written(opened: Any) -> None:
    """Columns come back from the page as they went in, and copies are numbered by message and member."""
    rows = busy(400, 5)
    drawing = from_rows(rows)
    page = opened(replace(lunch(list("abcde")), rows=rows)).page
    read = {
        name: state(page, f"Array.from(viewer.run.{name})")
        for name in (*("process", "pos", "time", "step", "view", "peer", "n", "text", "message"), "src", "seq", "copy")
    }  # fmt: skip
    for name in ("process", "pos", "step", "view", "peer", "n", "text"):
        assert read[name] == getattr(drawing, name).tolist(), name
    assert read["time"] == (drawing.time - drawing.time[0]).tolist()
    about = [at for at, message in enumerate(drawing.message) if message >= 0]
    assert [at for at, message in enumerate(read["message"]) if message >= 0] == about
    assert 100 < len(about) < len(drawing)
    told = [(read["src"][read["message"][at]], read["seq"][read["message"][at]]) for at in about]
    assert told == [(drawing.src[drawing.message[at]], drawing.seq[drawing.message[at]]) for at in about]
    copies = [(read["message"][at], read["process"][at]) for at in about]
    assert [read["copy"][at] for at in about] == [sorted(set(copies)).index(copy) for copy in copies]


@browser_test
def test_amounts_are_counted_right_wherever_one_looks(opened: Any) -> None:
    """Found by halving, they are what counting them one by one gives, and bars do not change by moving."""
    page = opened(replace(lunch(list("abcde")), rows=busy(9_000, 5))).page
    counted = """(() => {
        const { run } = viewer, bounds = [0, 0, 7, 500, 501, 4000, run.count, run.count], wrong = [];
        for (let p = 0; p < 5; p++) for (const kind of [0, 1, 2]) {
            const found = run.tally(p, kind, bounds, []);
            for (let at = 0; at + 1 < bounds.length; at++) {
                let count = 0;
                for (let event = bounds[at]; event < bounds[at + 1]; event++) {
                    const kinds = [["send"], ["accept", "deliver"], ["hold", "lost", "gap"]];
                    if (run.process[event] === p && kinds[kind].includes(run.steps[run.step[event]])) count++;
                }
                if (count !== found[at]) wrong.push([p, kind, at, count, found[at]]);
            }
        }
        return wrong;
    })()"""
    assert state(page, counted) == []
    strip = "scene.context.getImageData({}, 60, 600, 90).data.join()"
    assert not state(
        page, "(scene.look(0.2 * scene.length, 0.6 * scene.length), scene.paint(), scene.isDetailed)"
    )
    before = state(page, strip.format(300))
    assert len(set(before.split(","))) > 10, "there are bars"
    assert state(page, f"(scene.pan(31), scene.paint(), {strip.format(269)})") == before


def without_scripts(page: str) -> str:
    """Their data are quoted in a way of their own."""
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


@browser_test
def test_events_of_a_log_are_drawn_with_what_they_have_heard(opened: Any) -> None:
    """Without messages, and without times that the log does not have."""
    section = lunch()
    events = [
        Row(0, 1, 0, "event", 0, 0, 1, deps=(0, 0, 0, 0), note="asks"),
        Row(1, 1, 1_000_000, "event", 0, 1, 1, deps=(1, 0, 0, 0), note="answers"),
        Row(2, 1, 2_000_000, "event", 0, 2, 1, deps=(1, 1, 0, 0), note="hears both"),
        Row(2, 2, 3_000_000, "event", 0, 2, 2, deps=(1, 1, 1, 0), note="goes on"),
    ]
    certificate = {**section.certificate, "checks": [], "groups": []}
    page = opened(replace(section, rows=events, certificate=certificate, is_timed=False)).page
    assert state(page, "Array.from(viewer.run.cause)") == [-1, 0, 1, -1], "what bob knew came to cathy by him"
    status_says(page, "evenly spaced, in their order (this log has no times)")
    point(page, 1)
    assert plain(page.locator(".tip").inner_text()).split("\n") == ["bob", "answers", "event 2"]
    assert page.get_by_role("button", name="even spacing").is_disabled()


def test_names_and_causes_are_escaped() -> None:
    outside = without_scripts(render([lunch(HOSTILE[:1] * 4)]))
    assert "<img" not in outside
    told = "&lt;img src=x onerror=alert(1)&gt;"
    for shown in (f"fifo: {told}", f"{told} is late"):
        assert shown in outside


def test_nothing_in_the_page_ends_its_script() -> None:
    page = render([lunch(HOSTILE)])
    assert page.count("</script>") == 3
    embedded = re.search(r'id="data-0">(.*?)</script>', page)
    assert embedded is not None
    assert json.loads(embedded[1])["names"] == [name[:200] for name in HOSTILE]


def test_a_trace_without_events_has_no_diagram() -> None:
    section = lunch()
    empty = Section(section.title, section.names, [], section.certificate)
    page = render([empty])
    assert "There are no events to draw" in page and 'class="viewer"' not in page


def test_red_is_for_broken_promises() -> None:
    section = replace(lunch(), promised=frozenset({"fifo"}))
    page = without_scripts(render([section]))
    assert page.count("not promised by this order") == len(section.certificate["checks"]) - 1
    assert 'class="mark fail"' not in page and 'class="verdict unknown"' in page
    assert "Every promise was kept" in page
    assert "Not promised, and not so: 1 delivery came after something that it had caused." in page
    broken = without_scripts(render([lunch()]))
    assert 'class="mark fail"' in broken and "not promised" not in broken


@pytest.mark.parametrize(
    ("promised", "asked", "tone", "told"),
    [
        ("fifo", "fifo", "pass", "Every promise was kept: the messages of each sender were delivered in the order"),
        ("fifo causal views", "fifo", "unknown", "Everything that was checked of what was promised was kept: the messages"),
        ("fifo causal views", "fifo", "unknown", "in 5 deliveries. Promised, but not checked: causal, views."),
        ("fifo causal", "causal", "fail", "A promise was broken: 1 delivery came after something that it had caused."),
        ("atomic views", "atomic", "unknown", "not built. Promised, but not checked: views."),
        ("fifo", "causal", "unknown", "Nothing that was promised was checked. Promised, but not checked: fifo. Not promised, and not so: 1"),
        ("", "causal", "unknown", "Nothing was promised. Not promised, and not so: 1"),
    ],
)  # fmt: skip
def test_what_nobody_checked_is_not_said_to_be_kept(promised: str, asked: str, tone: str, told: str) -> None:
    certificate = lunch().certificate
    checks = [check for check in certificate["checks"] if check["name"] in asked.split()]
    section = replace(
        lunch(),
        promised=frozenset(promised.split()),
        certificate={**certificate, "checks": checks, "groups": []},
    )
    judged = judge(section)
    assert judged.tone == tone
    assert told in judged.text


def test_how_it_was_made_is_at_the_end() -> None:
    assert "<footer><bdi>by &lt;b&gt;</bdi></footer>" in render([lunch()], made="by <b>")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (988, 2, "988"),
        (99.6, 2, "100"),
        (1234.5, 3, "1,234"),
        (5.24, 2, "5.2"),
        (0.41, 2, "0.41"),
        (0, 2, "0"),
    ],
)
def test_numbers_of_figures_have_no_exponent(value: float, digits: int, text: str) -> None:
    assert in_digits(value, digits) == text


def test_long_times_have_no_exponent() -> None:
    assert [ms(each) for each in (1.31, 8470.0, 1_234_500.0)] == ["1.31 ms", "8.47 s", "1,234 s"]


def test_figures_say_what_was_measured() -> None:
    page = render([measured()])
    for words in (
        "Half of all packets were delivered within 2 ms, 99 of 100 within 40 ms.",
        "2.5 other packets were sent",
        "alice</bdi> waited longest",
        "9 packets waited for another (180.0% of the deliveries): half of them at most 2 ms, the longest 50 ms.",
        "packet 1 of <bdi>alice</bdi>",
        "alice</bdi> had to wait most: 25% of its time, 2 times.",
        "At most 9,000 deliveries a second",
        "bob</bdi> was permitted least: 200M bit/s. The 3 that were permitted least of 4 are shown.",
    ):
        assert words in page, words
    assert "no clock" in render([replace(measured(), reason="no clock")])


def test_lines_over_time_go_where_the_numbers_say() -> None:
    """From 0 to 10 ms and from 0 to the highest: nothing happened in the sixth part, a rate is good until another is said."""
    pictures = dict(
        re.findall(r'aria-label="([^"]* over time)">(.*?)</svg>', render([measured()]), re.DOTALL)
    )

    def lines(label: str, height: float = 150) -> dict[str, list[tuple[int, float]]]:
        found = re.findall(r'points="([^"]*)"/><text class="key[^>]*>([^<]*)', pictures[label])
        return {name: [_value(point, height) for point in points.split()] for points, name in found}

    def _value(point: str, height: float) -> tuple[int, float]:
        x, y = map(float, point.split(","))
        return round((x - 40) / 372 * 10), round((height - 22 - y) / (height - 44), 2)

    told = lines("packets per second over time")
    assert list(told) == ["deliveries", "sends", "repairs"]
    assert told["deliveries"][4:7] == [(4, 0.44), (5, 0), (6, 0.67)] and told["deliveries"][9] == (9, 1)
    assert lines("windows closed per second over time", 90) == {
        "closings": [(at, at // 6) for at in range(10)]
    }
    assert lines("permitted bits per second over time") == {
        "bob": [(1, 1), (9, 1), (9, 0.2), (10, 0.2)],
        "alice": [(4, 0.7), (8, 0.7), (8, 0.3), (10, 0.3)],
        "dave": [(3, 0.8), (7, 0.8), (7, 0.4), (10, 0.4)],
    }


@pytest.mark.parametrize(
    ("nothing", "words"), [((), "At most 9,000 deliveries"), (("deliveries",), "At most 1,000 sends"), (("deliveries", "sends"), "At most 1,000 repairs")]
)  # fmt: skip
def test_the_rate_is_that_of_what_there_was(nothing: tuple[str, ...], words: str) -> None:
    section = measured()
    rates = [{**row, **dict.fromkeys(nothing, 0)} for row in section.measured["rates"]]
    assert f"{words} a second" in render([replace(section, measured={**section.measured, "rates": rates})])


def test_two_processes_of_one_name_have_a_line_each() -> None:
    """One that came back is another process."""
    section = measured()
    page = render([replace(section, names=["alice"] * len(section.names))])
    (picture,) = re.findall(r'aria-label="permitted bits[^"]*">(.*?)</svg>', page, re.DOTALL)
    assert picture.count("<polyline") == picture.count(">alice<") == 3


def test_packets_are_called_packets_where_they_carry_several_messages() -> None:
    section = lunch()
    witness = section.certificate["checks"][1]["witnesses"][0]
    witness["text"] = "cathy delivered message 1 of bob before message 1 of alice"
    assert "delivered message 1 of bob" in render([section])
    section.certificate["payloads"] = 8
    assert "delivered packet 1 of bob before packet 1 of alice" in render([section])
