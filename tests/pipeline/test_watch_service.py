"""`inga watch` that goes on after violations: each is told once, also by a watcher that was killed, and to a web server."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from inga.certify.verdict import Certificate
from inga.cli import webhook
from inga.lab.traces import TraceRecipe, make
from inga.pipeline import remembering, watching
from inga.pipeline.jobs import check_trace
from inga.pipeline.remembering import Memory, NewViolations
from inga.pipeline.watching import Watch, watch_trace

from ..certify.world import store, wander
from .test_watch import Growing


def disordered(tmp_path: Path, cuts: int = 6) -> Growing:
    """A run without any order, so that causal violations come in nearly every segment."""
    store(Random(1), wander(Random(1), 3, 60), "deliver", tmp_path / "whole", cuts=cuts)
    return Growing(tmp_path / "whole", tmp_path / "trace")


def looked(trace: Growing, memory: Memory) -> Iterator[list[NewViolations]]:
    """What is new after every segment, told as `watch_trace` tells it."""
    watch = Watch(str(trace.target), ["causal"], memory, goes_on=True)
    told: list[NewViolations] = []

    def announce(notice: NewViolations) -> bool:
        told.append(notice)
        return True

    teller = watching._Teller(memory, announce, 5)
    while trace.left:
        trace.add()
        told.clear()
        teller.hear(watch.look(None, lambda *_: None))
        yield list(told)


def test_every_violation_is_told_once(tmp_path: Path) -> None:
    trace = disordered(tmp_path)
    found = [notice for notices in looked(trace, Memory()) for notice in notices]
    assert len(found) > 3, "or it tells nothing about more than one look"
    assert [notice.since for notice in found[1:]] == [notice.total for notice in found[:-1]]
    assert len({notice.name for notice in found}) == len(found)
    examples = [(w.process, w.pos, w.message) for notice in found for w in notice.examples]
    assert len(examples) == len(set(examples)) >= len(found)
    trace.finish()
    (causal,) = check_trace(str(trace.target), ["causal"], master=None)[1].checks
    assert found[-1].total == causal.violations


def test_a_watcher_that_was_killed_does_not_tell_again(tmp_path: Path) -> None:
    trace, memory = disordered(tmp_path), str(tmp_path / "memory")
    lives = looked(trace, Memory(memory))
    first = [notice for _ in range(8) for notice in next(lives)]
    lives.close()
    second = [notice for notices in looked(trace, Memory(memory)) for notice in notices]
    assert first and second and second[0].since == first[-1].total
    assert not {notice.name for notice in first} & {notice.name for notice in second}


def test_a_receiver_can_tell_repeats_from_what_has_come_since(tmp_path: Path) -> None:
    """A watcher that is killed when it has told something, and before it has written that down."""
    trace, memory = disordered(tmp_path), str(tmp_path / "memory")
    first: list[dict[str, Any]] = []
    watch = Watch(str(trace.target), ["causal"], Memory(memory), goes_on=True)
    while not first:
        trace.add()
        certificate = watch.look(None, lambda *_: None)
        assert certificate is not None
        first = [notice.to_json() for notice in watch.memory.notices(certificate, 5)]
    again = Memory(memory)
    watch = Watch(str(trace.target), ["causal"], again, goes_on=True)
    trace.add(6)
    certificate = watch.look(None, lambda *_: None)
    assert certificate is not None
    (notice,) = (notice.to_json() for notice in again.notices(certificate, 50))
    assert notice["since"] == first[0]["since"] == 0 and notice["total"] > first[0]["total"]
    assert notice["id"] != first[0]["id"] == f"{notice['run']}/causal/1-{first[0]['total']}"
    examples = [each["id"] for each in notice["examples"]]
    assert len(set(examples)) == len(examples) == notice["total"]
    assert {each["id"] for each in first[0]["examples"]} < set(examples)


def test_what_did_not_arrive_is_told_again_under_the_same_name(tmp_path: Path) -> None:
    trace, heard = disordered(tmp_path), []
    trace.finish()

    def announce(notice: NewViolations) -> bool:
        heard.append(notice.name)
        return len(heard) > 1

    memory = Memory()
    watch = Watch(str(trace.target), ["causal"], memory, goes_on=True)
    teller = watching._Teller(memory, announce, 5)
    teller.hear(watch.look(None, lambda *_: None))
    teller.hear(None)
    teller.hear(None)
    assert len(heard) == 2 and len(set(heard)) == 1


@pytest.mark.parametrize("failures", [0, 1, watching.LAST_TRIES, watching.LAST_TRIES + 1])
def test_what_the_last_look_has_found_is_told_whatever_happens(tmp_path: Path, failures: int) -> None:
    """Again for a while, and then by the next one."""
    trace, heard = disordered(tmp_path), []
    trace.finish()

    def announce(notice: NewViolations) -> bool:
        heard.append(notice.name)
        return len(heard) > failures

    def watch() -> Certificate:
        return watching.watch_trace(
            str(trace.target), ["causal"], poll=0.001, checkpoint=str(tmp_path / "memory"), master=None,
            until_complete=True, announce=announce,
        )  # fmt: skip

    verdict = watch()
    assert verdict.verdict == "fail" and len(heard) == 1 + min(failures, watching.LAST_TRIES)
    assert watch().checks == verdict.checks
    assert len(heard) == 1 + failures and len(set(heard)) == 1
    watch()
    assert len(heard) == 1 + failures


def test_a_watcher_that_is_killed_before_it_tells_of_the_end_tells_then(tmp_path: Path) -> None:
    trace, heard = disordered(tmp_path), []
    trace.finish()

    def killed(notice: NewViolations) -> bool:
        raise KeyboardInterrupt

    def announce(notice: NewViolations) -> bool:
        heard.append(notice)
        return True

    told: dict[str, Any] = {"checkpoint": str(tmp_path / "memory"), "master": None}
    with pytest.raises(KeyboardInterrupt):
        watching.watch_trace(str(trace.target), ["causal"], announce=killed, **told)
    watching.watch_trace(str(trace.target), ["causal"], announce=announce, **told)
    assert len(heard) == 1


def test_files_of_a_checkpoint_are_made_one_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "LOOKS_KEPT", 3)
    trace, memory = disordered(tmp_path), tmp_path / "memory"
    segments = len(trace.left)
    for _ in looked(trace, Memory(str(memory))):
        assert len(list(memory.glob("*-*.pickle"))) <= 4
    assert len(Memory(str(memory)).summaries) == segments > 10


def test_it_says_how_far_behind_it_is_and_ends_with_the_verdict_of_check(tmp_path: Path) -> None:
    trace = disordered(tmp_path)
    trace.finish()
    behind: list[float | None] = []
    verdict = watch_trace(
        str(trace.target),
        ["causal"],
        until_complete=True,
        master=None,
        tell=lambda found: behind.append(found.behind),
    )
    assert len(behind) == 1 and behind[0] is not None and 0 <= behind[0] < 600
    assert (
        verdict.checks[0].violations
        == check_trace(str(trace.target), ["causal"], master=None)[1].checks[0].violations
    )


def test_objects_are_judged_as_by_check(tmp_path: Path) -> None:
    make(
        tmp_path / "trace", TraceRecipe(1500, 4, seed=1, defect="conflict", kind="objects"), segment_rows=200
    )
    verdict = watch_trace(str(tmp_path / "trace"), master=None)
    checked = check_trace(str(tmp_path / "trace"), master=None)[1]
    assert {**verdict.to_json(), "seconds": 0} == {**checked.to_json(), "seconds": 0}
    assert verdict.verdict == "fail"


class Hook(BaseHTTPRequestHandler):
    answers: list[int]
    heard: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.answers.pop(0) if self.answers else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, type[Hook]]]:
    monkeypatch.setattr(webhook, "PAUSE_SECONDS", 0.0)
    kind = type("OneHook", (Hook,), {"answers": [], "heard": []})
    server = HTTPServer(("127.0.0.1", 0), kind)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", kind
    server.shutdown()
    server.server_close()


@pytest.mark.network
def test_a_web_server_is_told_and_asked_again_if_it_fails(hook: tuple[str, type[Hook]]) -> None:
    url, kind = hook
    notice = NewViolations("run", "causal", 2, 5, []).to_json()
    kind.answers[:] = [503]
    assert webhook.post(url, notice) == "" and kind.heard == [notice, notice]
    assert (notice["id"], notice["new"]) == ("run/causal/3-5", 3)
    kind.heard.clear()
    kind.answers[:] = [404]
    assert webhook.post(url, notice).startswith("404") and len(kind.heard) == 1
    kind.answers[:] = [500] * 9
    assert webhook.post(url, notice).startswith("500") and len(kind.heard) == 1 + webhook.TRIES


def test_a_server_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "PAUSE_SECONDS", 0.0)
    assert "refused" in webhook.post("http://127.0.0.1:9/", {})
