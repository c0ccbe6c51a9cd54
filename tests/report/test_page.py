"""The page in a real browser: nothing missing, nothing loaded, nothing executed that came from a trace."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inga.report.page import render
from inga.report.section import Section
from inga.trace import Row

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
        row(3, 2, 6_000_000, "deliver", 0, 1, question),
        row(3, 3, 7_000_000, "deliver", 1, 1, answer),
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


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages = []

    def open_page(*sections: Section) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(render(sections), encoding="utf-8")
        pages.append(Opened(browser, path))
        return pages[-1]

    yield open_page
    for each in pages:
        each.page.close()


@browser_test
def test_it_opens_alone_and_in_silence(opened: Any) -> None:
    found = opened(lunch())
    found.page.wait_for_selector("svg .message")
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in found.requests if url.startswith("file:")]) == 1


@browser_test
def test_the_table_has_verdicts_and_counts(opened: Any) -> None:
    page = opened(lunch(), lunch(["a", "b", "c", "d"])).page
    cells = page.locator("table.verdicts tbody tr").all_inner_texts()
    assert [" ".join(cell.split()[:1]) for cell in cells] == ["fifo", "causal", "atomic"]
    assert page.locator("table.verdicts tfoot .mark.fail").count() == 2
    assert "1 violation" in cells[1] and "not built" in cells[2]
    assert page.locator(".tile").first.inner_text().split() == ["9", "events"]
    assert page.locator(".viewer svg[role=img]").count() == 2


@browser_test
def test_the_violation_is_shown_at_once_and_can_be_left_and_found_again(opened: Any) -> None:
    page = opened(lunch()).page
    assert page.locator(".violation").inner_text() == "causal: cathy heard the answer first"
    assert page.locator(".message.is-late").get_attribute("data-message") == "0:1"
    assert page.locator(".message.is-early").get_attribute("data-message") == "1:1"
    assert page.locator(".message.is-late .copy.is-here").count() == 1
    assert len(page.locator(".chain").get_attribute("points").split()) == 3
    select = page.get_by_label("jump to a violation")
    select.select_option("")
    assert page.locator(".violation").is_hidden()
    assert page.locator(".is-late").count() == 0
    select.select_option("0")
    assert page.locator(".is-late").count() == 1


@browser_test
def test_pointing_at_a_message_shows_it_and_its_causes(opened: Any) -> None:
    page = opened(lunch()).page
    page.locator("[data-message='1:1'] .send").hover(force=True)
    text = re.sub("[\u2068\u2069]", "", page.locator(".tip").inner_text())
    assert text.startswith("message 1 of bob\nsent at 3 ms to alice, cathy, dave\n")
    assert "delivered at dave, position 3, held for 2.5 ms" in text
    assert text.endswith("caused by\nmessage 1 of alice")
    assert page.locator(".is-cause").get_attribute("data-message") == "0:1"
    page.mouse.move(2, 2)
    assert page.locator(".tip").is_hidden()
    assert page.locator(".is-cause").count() == 0


def x_of(page: Any) -> float:
    return float(page.locator("[data-message='1:1'] .send").get_attribute("cx"))


@browser_test
def test_it_pans_and_zooms(opened: Any) -> None:
    page = opened(lunch()).page
    stage = page.locator(".stage svg")
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    before = x_of(page)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] - 5
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 70, middle[1])
    page.mouse.up()
    assert x_of(page) == pytest.approx(before + 70)

    def distance() -> float:
        first = float(page.locator("[data-message='0:1'] .send").get_attribute("cx"))
        return x_of(page) - first

    apart = distance()
    page.mouse.wheel(0, -200)
    page.wait_for_function(
        """apart => {
            const x = (message) => +document.querySelector(`[data-message='${message}'] .send`).getAttribute("cx");
            return x("1:1") - x("0:1") > apart;
        }""",
        arg=apart,
        timeout=5000,
    )
    page.get_by_role("button", name="fit").click()
    page.get_by_role("button", name="by time").click()
    fitted = distance()
    stage.focus()
    page.keyboard.press("+")
    assert distance() == pytest.approx(fitted * 1.5, rel=0.01)


@browser_test
def test_hostile_names_are_text(opened: Any) -> None:
    found = opened(lunch(HOSTILE))
    page = found.page
    page.locator("[data-message='1:1'] .send").hover(force=True)
    assert HOSTILE[0] in page.locator(".tip").inner_text()
    assert found.complaints == []
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    text = page.locator("body").inner_text()
    assert HOSTILE[0] in text and HOSTILE[1] in text and HOSTILE[2] in text
    assert "short" not in text and "…" in page.locator("svg .names").text_content()
    overflow = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not overflow, "a long name makes the page wider than the window"
    labels = page.locator("svg .names text").all()
    assert all(label.bounding_box()["width"] < 150 for label in labels)


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
    assert page.locator("svg .others .other").count() == 4
    assert page.locator("svg .others .heard").count() == 2, "what bob knew came to cathy by him"
    assert "answers at bob" in page.locator("svg .others .other title").all_text_contents()
    assert " ms" not in "".join(page.locator("svg .axis").all_text_contents())
    assert page.get_by_role("button", name="by time").count() == 0


def test_names_and_causes_are_escaped() -> None:
    """Outside of the data for the script, which is quoted in a way of its own."""
    outside = re.sub(r"<script.*?</script>", "", render([lunch(HOSTILE[:1] * 4)]), flags=re.DOTALL)
    assert "<img" not in outside
    told = "&lt;img src=x onerror=alert(1)&gt;"
    for shown in (f"fifo: {told}", f"{told} is late"):
        assert shown in outside


def test_nothing_in_the_page_ends_its_script() -> None:
    page = render([lunch(HOSTILE)])
    assert page.count("</script>") == 2
    embedded = re.search(r'id="data-0">(.*?)</script>', page)
    assert embedded is not None
    assert json.loads(embedded[1])["names"] == HOSTILE


def test_a_trace_without_events_has_no_diagram() -> None:
    section = lunch()
    empty = Section(section.title, section.names, [], section.certificate)
    page = render([empty])
    assert "There are no events to draw" in page and 'class="viewer"' not in page


def test_what_an_order_does_not_promise_is_marked() -> None:
    section = lunch()
    page = render([replace(section, promised=frozenset({"fifo"}))])
    assert page.count("not promised by this order") == len(section.certificate["checks"]) - 1
    assert "not promised" not in render([section])
