"""A relay over real sockets: three members, everything through the first."""

from pathlib import Path

import pytest

import inga
from inga.trace import read_manifest, rows
from inga.trial.workload import Workload

from .helpers import CARRIERS, Party, Run, take, text, texts
from .trials import ROUGH, judged, play

pytestmark = pytest.mark.network


def test_an_answer_never_comes_before_its_question(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="relay") as (alice, bob, cathy):
            alice.delay("cathy", 0.2)  # the relay is slow to one of them
            await bob.send(b"lunch?")
            assert await texts(alice, 1) == ["lunch?"]
            await alice.send(b"yes")
            assert await texts(bob, 1) == ["yes"]
            await bob.send(b"at one", to="cathy")
            heard = await take(aiter(cathy), 3)
            assert [(d.sender, d.seq, text(d)) for d in heard] == [
                ("bob", 1, "lunch?"),
                ("alice", 1, "yes"),
                ("bob", 2, "at one"),
            ]

    run(main())


@pytest.mark.parametrize("via", CARRIERS)
@pytest.mark.parametrize("echo", [False, True])
def test_a_rough_world(run: Run, party: Party, via: str, echo: bool, tmp_path: Path) -> None:
    workload = Workload(3, 80, subset=1 if echo else None)

    async def main() -> None:
        options = {"order": "relay", "faults": ROUGH, "echo": echo, "trace": tmp_path / "trace"}
        async with party(3, via, **options) as groups:
            diaries = await play(groups, workload, echo=echo)
        assert judged(diaries, workload, echo=echo) == {}

    run(main())
    manifest = read_manifest(tmp_path / "trace")
    assert (manifest.order, manifest.guarantees) == (
        "relay",
        "integrity complete fifo stamps causal views".split(),
    )
    sent = {(row.src, row.seq): row.deps for row in rows(tmp_path / "trace") if row.step == "send"}
    for row in rows(tmp_path / "trace"):
        if row.step in ("deliver", "take"):
            assert row.deps is not None and row.deps == sent[row.src, row.seq]


def test_large_messages_are_passed_on(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(3, order="relay") as (alice, bob, cathy):
            body = bytes(range(256)) * 2000
            await bob.send(body)
            for group in (alice, cathy):
                (delivery,) = await take(aiter(group), 1)
                assert delivery.sender == "bob" and bytes(delivery.data) == body

    run(main())


def test_a_receipt_has_no_level_to_reach(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2, order="relay") as (alice, bob):
            receipt = await bob.send(b"hello")
            with pytest.raises(inga.UsageError, match="a receipt here can reach: none"):
                await receipt.reached("confirmed")
            assert await texts(alice, 1) == ["hello"]

    run(main())
