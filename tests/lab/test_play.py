"""`inga play`: schedules played for a page, by a server that answers nobody else."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from inga.cli.main import main
from inga.lab.ladder.picture import columns, picture
from inga.lab.ladder.scene import play_schedule
from inga.lab.play.game import LUNCH, examples, play
from inga.lab.play.server import BODY_MAX, PlayServer
from inga.model.errors import UsageError
from inga.sim.schedule import Take

from ..report.axe import SCREENS, axe, serious
from ..report.opened import Opened, browser_test

__all__ = ["axe"]

# What is played


def test_each_example_is_wrong_under_its_scheme_and_right_under_the_rule() -> None:
    assert len(examples()) > 20
    for each in examples():
        assert play(each["schedule"], each["order"])["wrong"], each["title"]
        assert not play(each["schedule"], each["right"])["wrong"], each["title"]


def test_clocks_and_queues_after_each_move() -> None:
    found = play(LUNCH, "vector")
    told = {each["text"]: each for each in found["moments"]}
    assert told["2 reaches C: held"]["held"] == [[], [], [2]]
    assert told["2 reaches C: held"]["states"][1] == "(1,1,0)"
    assert found["moments"][-1]["got"] == [[2], [1], [1, 2]] and found["moments"][-1]["held"] == [[], [], []]
    assert found["wrong"] == []
    assert play(LUNCH, "fifo")["wrong"] == ["C delivers 2 before its cause 1"]


def test_moves_are_numbered_as_in_the_schedule() -> None:
    found = play("1>B A!1 B!2", "vector")
    assert found["words"] == ["A!1", "B!2", "1>B", "2>A"], (
        "what cannot be is left out, and arrives at the end"
    )
    assert [each["move"] for each in found["moments"] if each["move"] is not None] == [0, 1, 2, 3]


def test_columns_are_those_of_the_picture() -> None:
    scene = play_schedule(LUNCH, "fifo")
    dots = {(dot.lane, dot.label): dot.column for dot in picture(scene, "").dots if dot.kind != "send"}
    taken = {
        (moment.event.site, str(moment.event.message)): column
        for moment, column in zip(scene.moments, columns(scene), strict=True)
        if isinstance(moment.event, Take)
    }
    assert dots == taken


@pytest.mark.parametrize(
    ("schedule", "order", "why"),
    [
        (LUNCH, "nonsense", "no order 'nonsense'"),
        ("hello", "vector", "is no event of a schedule"),
        ("A!1 1>Z", "vector", "at most 200 moves of 8 members"),
        ("A!12345", "vector", "messages up to 999"),
        ("A. " * 201, "vector", "at most 200 moves"),
    ],
)
def test_what_cannot_be_played_is_refused(schedule: str, order: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        play(schedule, order)


# Who is answered


@pytest.fixture(scope="module")
def server() -> Iterator[PlayServer]:
    with PlayServer("", "") as found:
        Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield found
        found.shutdown()


def ask(server: PlayServer, method: str = "GET", path: str | None = None, **given: Any) -> tuple[int, bytes]:
    url = urlsplit(server.url)
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(method, path or f"{url.path}?{url.query}", **given)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_page_needs_the_token(server: PlayServer) -> None:
    assert ask(server)[0] == 200
    for path in ("/", "/?token=", "/?token=%FF", "/?token=x&token=" + server.token):
        assert ask(server, path=path)[0] == 403, path


def test_other_pages_get_nothing(server: PlayServer) -> None:
    here = f"127.0.0.1:{server.server_port}"
    assert ask(server, headers={"Host": f"evil.example:{server.server_port}"})[0] == 403
    assert ask(server, headers={"Host": here, "Origin": "http://evil.example"})[0] == 403
    assert ask(server, headers={"Host": here, "Origin": f"http://{here}"})[0] == 200


def test_a_schedule_is_played(server: PlayServer) -> None:
    path = f"/play?token={server.token}"
    code, content = ask(server, "POST", path, body=json.dumps({"schedule": LUNCH, "order": "fifo"}))
    assert code == 200 and json.loads(content)["wrong"] == ["C delivers 2 before its cause 1"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"schedule": "A!1"}', 400),
        (b'{"schedule": "hm", "order": "fifo"}', 400),
        (b"[" * BODY_MAX, 400),
        (b"x" * (BODY_MAX + 1), 413),
    ],
)
def test_bad_questions_are_refused_in_words(server: PlayServer, body: bytes, code: int) -> None:
    found, content = ask(server, "POST", f"/play?token={server.token}", body=body)
    assert found == code and json.loads(content)["error"]


# The command


def test_a_port_that_is_taken_is_said(server: PlayServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "--no-open", "--port", str(server.server_port)]) == 2
    assert f"port {server.server_port} cannot be used" in capsys.readouterr().err
    assert main(["play", "hm", "--no-open"]) == 2
    assert "is no event of a schedule" in capsys.readouterr().err
    assert main(["play", "--port", "70000", "--no-open"]) == 2


def test_it_serves_until_it_is_interrupted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: PlayServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PlayServer, "serve_forever", interrupted)
    assert main(["play", "A!1 1>B", "--order", "fifo", "--no-open"]) == 130
    assert capsys.readouterr().out.startswith("open http://127.0.0.1:")


# In a browser


@browser_test
def test_a_student_sees_why_a_vector_is_needed(browser: Any, server: PlayServer, tmp_path: Path) -> None:
    opened = Opened(browser, server.url)
    page = opened.page
    verdict = page.locator("#verdict")
    page.wait_for_selector("#verdict.is-wrong")
    assert verdict.inner_text() == "C delivers 2 before its cause 1."
    page.locator("#order").select_option("vector")
    page.wait_for_selector("#verdict.is-right")
    page.locator("#back").click()
    assert page.locator("#told").inner_text() == "9 of 10: 2 reaches A"
    page.locator("#step").fill("5")
    assert page.locator("#told").inner_text() == "5 of 10: 2 reaches C: held"
    cells = [line.split("\t") for line in page.locator("#members tr").all_inner_texts()]
    assert cells[2][1:] == ["(0,0,0)", "2", "–"]
    # The question arrives at Cathy before the answer, by dragging it there.
    page.locator("#order").select_option("fifo")
    page.wait_for_selector("#verdict.is-wrong")
    handle, answer = page.locator('[data-move="4"]'), page.locator('[data-move="3"]')
    box, other = handle.bounding_box(), answer.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(other["x"] - 5, box["y"] + box["height"] / 2, steps=3)
    page.mouse.up()
    page.wait_for_selector("#verdict.is-right")
    assert page.locator("#schedule").input_value() == "A!1 1>B B!2 1>C 2>C 2>A"
    page.locator('[data-move="3"]').press("ArrowRight")
    page.wait_for_selector("#verdict.is-wrong")
    page.locator("#schedule").fill("A!1 nonsense")
    page.locator("#schedule").press("Enter")
    page.get_by_text("is no event of a schedule").wait_for()
    assert [text for text in opened.complaints if "400" not in text] == []
    page.close()


@browser_test
def test_nothing_serious(browser: Any, axe: str, server: PlayServer) -> None:
    """Where something goes wrong, where nothing does, in the middle, and where a schedule cannot be played."""
    for colours, width, rules in SCREENS:
        opened = Opened(browser, server.url, colours=colours, width=width)
        page = opened.page
        page.wait_for_selector("#verdict.is-wrong")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert serious(page, axe, rules) == []
        page.locator("#order").select_option("vector")
        page.wait_for_selector("#verdict.is-right")
        page.locator("#step").fill("5")
        assert serious(page, axe, rules) == []
        page.locator("#schedule").fill("A!1 nonsense")
        page.locator("#schedule").press("Enter")
        page.get_by_text("is no event of a schedule").wait_for()
        assert serious(page, axe, rules) == []
        page.close()
