"""A trace with a member that left, from files through Spark."""

from pathlib import Path
from typing import Any

import pytest

from inga.pipeline.jobs import check_trace
from inga.trace import Manifest, TraceWriter

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CLAIMS = ["integrity", "complete", "fifo", "stamps", "causal", "atomic"]


def write(path: Path, received: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """p0 sends three messages to all; p1 and p2 deliver these, and p2 leaves, which p0 and p1 hear."""
    Manifest(
        group="g", processes=["p0", "p1", "p2"], source="sim", order="vector", receipt="deliver",
        clock="virtual", guarantees=CLAIMS, complete=True,
    ).write(path)  # fmt: skip
    with TraceWriter(path, 0, "p0", 3) as trace:
        for seq in (1, 2, 3):
            trace.row("send", seq, 1, 0, seq, deps=(seq - 1, 0, 0), n=1)
        trace.row("leave", 9, 1, peer=2)
    for process, seqs in enumerate(received, 1):
        with TraceWriter(path, process, f"p{process}", 3) as trace:
            for seq in seqs:
                trace.row("deliver", 10 + seq, 1, 0, seq, deps=(seq - 1, 0, 0), n=1)
            trace.row("leave", 20, 1, peer=2)


@pytest.mark.parametrize(
    ("received", "failing"),
    [
        (((1, 2, 3), (1,)), {}),
        (((1, 2), (1,)), {"complete": (1, (0, 3))}),  # p1 stayed
        (((1, 2, 3), (1, 3)), {"complete": (2, (0, 2))}),  # p2 passed over the second
    ],
)
def test_only_what_a_leave_explains_is_excused(
    spark: Any, tmp_path: Path, received: Any, failing: dict[str, Any]
) -> None:
    write(tmp_path, received)
    certificate = check_trace(str(tmp_path), session=spark)[1]
    assert {
        check.name: (check.witnesses[0].process, check.witnesses[0].message)
        for check in certificate.checks
        if check.verdict != "pass"
    } == failing
