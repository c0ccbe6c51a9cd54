"""What may be said of a trace of which something is missing: nothing passes that was not judged, and what fails fails for
certain, whatever the missing rows held."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inga.certify.certificate import certify
from inga.certify.combine import Process
from inga.certify.copies import _ranges
from inga.certify.local import Chunks
from inga.certify.verdict import Answer
from inga.lab.traces import TraceRecipe
from inga.recipes import find
from inga.trace import Row

from .test_defects import assert_found, made
from .test_kernels import CHECKED, worlds
from .test_views import copied, moved
from .views_world import Run, apart, failing
from .world import Trace, renumbered, sabotage, source, wander

pytestmark = pytest.mark.xdist_group("views")  # they share their runs with test_views.py


def answers(given: Chunks, checks: list[str]) -> dict[str, Answer]:
    return {each.name: each for each in certify(given, checks, seed=1).checks}


def message(at: int, step: str, src: int, seq: int, *deps: int, time: int = 0) -> Row:
    return Row(at, 0, time, step, 1, src, seq, None, deps or None, sum(deps) + 1 if deps else None, n=1)


def judged(*lines: list[Row], cuts: int = 3, **changes: object) -> dict[str, Answer]:
    trace = [renumbered(rows) for rows in lines]
    return answers(source(Random(1), trace, cuts=cuts, **changes), CHECKED)


# ---- what judged nothing


def test_sends_and_receives_alone_pass_no_check_of_deliveries() -> None:
    found = judged([message(0, "send", 0, 1, 0, 0)], [message(1, "receive", 0, 1, 0, 0)])
    for check in ("integrity", "fifo", "causal", "total"):
        assert (found[check].verdict, found[check].reason) == ("unknown", "no message was delivered")
    assert (found["atomic"].verdict, found["atomic"].reason) == (
        "unknown",
        "no message was delivered or confirmed",
    )
    assert found["stamps"].verdict == "pass" and found["complete"].verdict == "fail"


def test_deliveries_alone_pass_no_check_of_sends() -> None:
    found = judged([message(0, "deliver", 1, 1, 0, 0)], [])
    for check in ("complete", "stamps"):
        assert (found[check].verdict, found[check].reason) == ("unknown", "no message was sent")
    assert found["integrity"].verdict == "fail"


def test_confirmations_are_enough_for_atomic() -> None:
    rows = [message(1, "accept", 0, 1, 0, 0), message(1, "confirm", 0, 1, 0, 0)]
    assert judged([message(0, "send", 0, 1, 0, 0)], rows)["atomic"].verdict == "pass"


# ---- own messages


def test_an_own_message_is_not_delivered_before_it_is_sent() -> None:
    sent, echo = message(0, "send", 0, 1, 0), message(0, "deliver", 0, 1, 0)
    for cuts in (0, 3):
        assert judged([sent, echo], cuts=cuts)["integrity"].verdict == "pass"
        early = judged([echo, sent], cuts=cuts)["integrity"]
        assert (early.verdict, early.violations) == ("fail", 1)
        assert [each.text for each in early.witnesses] == [
            "p0 delivered message 1 of p0, which it had not sent yet"
        ]


def test_an_own_message_without_send_is_wrong_even_if_the_end_is_missing() -> None:
    """What came before a row at its own process is all there."""
    cut = {"complete": False, "crashed": False}
    echo = message(0, "deliver", 0, 2, 1)
    found = judged([message(0, "send", 0, 1, 0), echo], last_0=cut)["integrity"]
    assert (found.verdict, found.violations) == ("fail", 1)


# ---- what is missing


def without(given: Chunks, process: int) -> Chunks:
    """As if a process had left nothing behind."""
    processes = list(given.processes)
    processes[process] = Process(processes[process].name, None, 0, complete=False, crashed=False)
    chunks = [given.read(at) for at in range(len(given.segment_names))]
    rest = [chunk for chunk in chunks if chunk.process != process]
    more = {"conflicts": given.conflicts, "guarantees": given.guarantees, "order": given.order}
    return Chunks(rest, processes, given.receipt, **more)


@pytest.mark.parametrize("defect", ["duplicate", "forgery", "swap"])
def test_what_copies_prove_is_found_without_their_sender(defect: str) -> None:
    for seed in range(6):
        recipe = TraceRecipe(1500, 4, receipt="take", seed=seed, defect=defect)
        given, planted = made(recipe)
        assert planted is not None
        certificate = certify(without(given, planted.message[0]), recipe.guarantees, witnesses=1000)
        assert_found(certificate, planted)
        (found,) = [each for each in certificate.checks if each.name == planted.check]
        assert "rows of" in found.reason  # what else there may be is not known
        twin, _ = made(replace(recipe, defect=None))
        verdicts = {
            each.verdict for each in certify(without(twin, planted.message[0]), recipe.guarantees).checks
        }
        assert verdicts == {"unknown"}


def test_a_message_is_delivered_in_one_view_whoever_sent_it() -> None:
    run = failing("vector")
    for seed in range(6):
        trace = copied(run)
        at, (src, seq) = moved(run, trace, Random(seed))
        (found,) = certify(without(run.source(trace), src), ["views"], seed=1).checks
        assert found.verdict == "fail"
        (witness,) = found.witnesses
        assert (witness.process, witness.message) == (at, (src, seq))
        assert "but elsewhere in another" in witness.text


@pytest.mark.parametrize("order", ["sco", "total"])
@pytest.mark.parametrize("happens", [failing, apart])
def test_a_good_run_fails_nothing_whoever_is_missing(order: str, happens: Callable[[str], Run]) -> None:
    run = happens(order)
    for process in range(len(run.names)):
        found = answers(without(run.source(run.trace), process), [*find(order).guarantees, "views"])
        assert {each.verdict for each in found.values()} == {"unknown"}, run.names[process]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), world=worlds, whole=st.booleans())
def test_what_fails_without_some_rows_fails_with_them(
    seed: int, world: dict[str, object], whole: bool
) -> None:
    """The rows that are missing may have been these."""
    random = Random(seed)
    trace = wander(random, **world)  # type: ignore[arg-type]
    for rows in trace:
        rows[:] = [row._replace(time=random.randrange(3) * 10**9) for row in rows]
    if random.random() < 0.7:
        sabotage(random, trace)
    receipt = str(world["receipt"])
    everything = answers(source(random, trace, receipt), CHECKED)
    at = random.randrange(len(trace))
    kept = 0 if whole else random.randrange(len(trace[at]) + 1)
    part: Trace = [rows[:kept] if here == at else rows for here, rows in enumerate(trace)]
    change = {f"last_{at}": {"complete": False, "crashed": False}}
    found = answers(source(random, part, receipt, **change), CHECKED)
    for check, answer in found.items():
        assert answer.verdict == "unknown" or everything[check].verdict == "fail", check


def test_traffic_may_be_about_a_message_that_is_missing() -> None:
    talk = [message(0, "send", 0, 1, 0, 0), Row(0, 0, 5 * 10**9, "control", 1)]
    heard = [message(1, "deliver", 0, 1, 0, 0)]
    assert judged(talk, heard)["quiet"].verdict == "fail"
    assert judged(talk, heard, last_1={"complete": False, "crashed": False})["quiet"].verdict == "unknown"


def test_copies_are_compared_some_at_a_time() -> None:
    def ranges(*highs: int) -> list[tuple[int, int]]:
        return [(each.low, each.high) for each in _ranges(highs, 5, 10)]

    assert ranges(9, 12, 16, 18) == [(5, 13), (13, 19)]
    assert ranges(7) == [(5, 8)]
    assert ranges(7, 10**15) == [(5, 8), (8, 10**15 + 1)]
    assert ranges() == []
