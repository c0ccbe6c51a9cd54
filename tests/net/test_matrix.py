"""The matrix over real sockets: messages to some, ordered, and members who agree on how."""

import asyncio
import re
from pathlib import Path

import pytest

import inga
from inga.trace import read_manifest, rows
from inga.trial.workload import Workload

from .helpers import Party, Place, Run, take, text, texts, until
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network


def test_an_effect_waits_for_its_cause(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, matrix=True) as (alice, bob, cathy):
            alice.delay("cathy", 0.2)
            await alice.send(b"aside", to="bob")
            await alice.send(b"lunch?")
            assert await texts(bob, 2) == ["aside", "lunch?"]
            await bob.send(b"yes", to=["cathy"])
            heard = await take(aiter(cathy), 2)
            assert [text(delivery) for delivery in heard] == ["lunch?", "yes"]
            assert inga.relation(*heard) == "<" and not heard[1].concurrent

    run(main())


@pytest.mark.parametrize("subset", [None, 1, 2])
def test_a_rough_world(run: Run, party: Party, subset: int | None, tmp_path: Path) -> None:
    workload = Workload(4, 60, subset=subset)

    async def main() -> None:
        async with party(4, matrix=True, faults=ROUGH, trace=tmp_path / "trace") as groups:
            diaries = await play(groups, workload)
            assert not any(group.stack.rejected["malformed"] for group in groups)
        assert judged(diaries, workload) == {}

    run(main())
    assert read_manifest(tmp_path / "trace").order == "vector"
    sent = {(row.src, row.seq): row.deps for row in rows(tmp_path / "trace") if row.step == "send"}
    for row in rows(tmp_path / "trace"):
        if row.step in ("deliver", "take"):
            assert row.deps == sent[row.src, row.seq]


def test_who_counts_otherwise_is_in_another_group(
    run: Run, place: Place, group_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        where = place("udp", 2)
        async with (
            inga.join(group_name, "alice", matrix=True, **where) as alice,
            inga.join(group_name, "bob", **where),
        ):
            await until(lambda: len(caplog.records) == 2)
            assert alice.here == ("alice",)

    run(main())
    assert "with order 'vector with matrix=True', here it is 'vector'" in caplog.text
    assert "with order 'vector', here it is 'vector with matrix=True'" in caplog.text


@pytest.mark.parametrize("order", ["none", "fifo", "relay"])
def test_other_orders_have_no_place_for_it(run: Run, place: Place, order: str) -> None:
    async def main() -> None:
        async with inga.join("lunch", "alice", order=order, matrix=True, **place("udp", 2)):
            await asyncio.sleep(0)

    with pytest.raises(inga.UsageError, match=re.escape("matrix is an option of order vector; order")):
        run(main())
