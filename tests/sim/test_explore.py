"""Every schedule within a bound: all of them are tried, ours are clean, and broken rules are found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inga.model.packet import Packet
from inga.sim.board import Board, lossless
from inga.sim.explore import Explorer, Report
from inga.sim.schedule import Schedule
from inga.stack.layer import Layer

from .mutants import on_board

ROOT = Path(__file__).parents[2]


def explore(sites: int, messages: int, scheme: str = "causal", *, queues: bool = False) -> Report:
    return Explorer(sites, messages, on_board(scheme), queues=queues).run()


@pytest.mark.parametrize(("sites", "messages"), [(2, 4), (3, 3)])
def test_causal_order_is_clean(sites: int, messages: int) -> None:
    report = explore(sites, messages)
    assert report.violations == 0, f"{report.first}: {report.why}"
    assert report.schedules > 300


@pytest.mark.parametrize(("sites", "messages"), [(2, 3), (3, 2)])
def test_causal_order_is_clean_with_queues(sites: int, messages: int) -> None:
    """Takes are moves of their own: stamps and flags are right whenever an application reads."""
    report = explore(sites, messages, queues=True)
    assert report.violations == 0, f"{report.first}: {report.why}"
    assert report.schedules > 90


@pytest.mark.hunt
@pytest.mark.parametrize(("sites", "messages"), [(2, 5), (3, 4), (4, 3)])
def test_causal_order_is_clean_further_out(sites: int, messages: int) -> None:
    report = explore(sites, messages)
    assert report.violations == 0, f"{report.first}: {report.why}"
    assert report.schedules > 3000


@pytest.mark.hunt
@pytest.mark.parametrize(("sites", "messages"), [(2, 4), (3, 3)])
def test_causal_order_is_clean_further_out_with_queues(sites: int, messages: int) -> None:
    report = explore(sites, messages, queues=True)
    assert report.violations == 0, f"{report.first}: {report.why}"


def test_the_plain_hold_queue_is_clean_too() -> None:
    """The mutants below are made from it: it is their rules that break."""
    assert explore(2, 3, "broadcast").violations == explore(3, 2, "broadcast").violations == 0


# Nothing is left out


def by_brute_force(sites: int, messages: int) -> int:
    """Distinct sets of local histories, found by walking every single sequence of events."""
    ends = set()

    def walk(histories: tuple[str, ...], under_way: frozenset[tuple[int, int]], sent: int) -> None:
        def at(site: int, event: str) -> tuple[str, ...]:
            return (*histories[:site], histories[site] + event, *histories[site + 1 :])

        if sent == messages and not under_way:
            ends.add(histories)
        if sent < messages:
            for site in range(sites):
                copies = {(sent + 1, other) for other in range(sites) if other != site}
                walk(at(site, f"!{sent + 1}"), under_way | copies, sent + 1)
        for copy in under_way:
            walk(at(copy[1], f">{copy[0]}"), under_way - {copy}, sent)

    walk(("",) * sites, frozenset(), 0)
    return len(ends)


@pytest.mark.parametrize(("sites", "messages", "schedules"), [(2, 2, 8), (2, 3, 48), (3, 2, 36)])
def test_all_schedules_are_tried_each_once(sites: int, messages: int, schedules: int) -> None:
    assert by_brute_force(sites, messages) == schedules
    assert explore(sites, messages).schedules == schedules


# What is broken is found, and the first found is a shortest


def test_v1_is_found_where_causes_of_others_are_not_looked_at() -> None:
    report = explore(3, 2, "fifo")
    assert report.violations == 1
    assert str(report.first) == "A!1 1>B B!2 2>C"
    assert report.why == "C took 2 before its cause"
    assert explore(2, 4, "fifo").violations == 0, "two sites are safe with fifo"


def test_v10_is_found_for_the_strict_successor() -> None:
    report = explore(2, 2, "strict")
    assert str(report.first) == "A!1 B!2 1>B 2>A"
    assert report.why == "A holds something for ever"


def test_v12_is_found_for_incomparable_so_deliver() -> None:
    report = explore(2, 3, "at-once-count")
    assert str(report.first) == "A!1 A!2 B!3 2>B"
    assert report.why == "B took 2 before its cause"


def test_v26_is_found_for_stamps_from_released_counts() -> None:
    assert explore(2, 3, "released").violations == 0, "without queues there is no difference"
    report = explore(2, 2, "released", queues=True)
    assert report.violations
    assert str(report.first) == "A!1 1>B B!2 B?1", "V26 itself"
    assert report.why == "B took 1 with flag False"


class Stutter(Layer):
    """Hands over everything twice."""

    name = "stutter"

    def up(self, batch: list[Packet]) -> None:
        self.above([packet for packet in batch for _ in range(2)])


def test_a_message_taken_twice_is_found() -> None:
    report = Explorer(2, 1, lambda: [Stutter(), *lossless("causal")()]).run()
    assert str(report.first) == "A!1 1>B"
    assert report.why == "B took 1 twice"


@pytest.mark.parametrize("scheme", ["strict", "at-once-count", "fifo"])
def test_a_found_schedule_is_broken_on_a_board_too(scheme: str) -> None:
    report = explore(3, 3, scheme)
    assert report.first is not None
    oracle = Board(3, on_board(scheme)).play(Schedule.parse(str(report.first)))
    assert oracle.violations.total() > 0
    assert Board(3, lossless("causal")).play(report.first).violations.total() == 0


def test_the_first_found_is_the_same_everywhere() -> None:
    """Also with another hash seed: everything comes from the seed, or from nothing."""
    program = (
        "from tests.sim.test_explore import explore\n"
        "print(*(explore(3, 2, scheme).first for scheme in ('strict', 'fifo')), sep=';')"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    assert said.pop().strip().endswith(";A!1 1>B B!2 2>C")
