"""Members that join, and orders that change, where causal order does not come from broadcast vectors."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.trace import Row, read_manifest, rows

from .helpers import Party, Place, Run, take, text, texts
from .trials import ROUGH

pytestmark = pytest.mark.network

WAYS: list[dict[str, Any]] = [{"order": "vector"}, {"matrix": True}, {"order": "relay"}]
FOUNDERS = ("alice", "bob", "cathy")


def causal_violations(path: Path) -> list[tuple[int, Row]]:
    """Deliveries before a message they depend on, by trying all; who joined is spared what was before."""
    every = list(rows(path))
    sent = {(row.src, row.seq): row for row in every if row.step == "send"}
    found = []
    for process in range(len(read_manifest(path).processes)):
        mine = [row for row in every if row.process == process]
        first = min(row.view for row in mine)
        place = {(row.src, row.seq): row.pos for row in mine if row.step == "deliver"}
        for row in mine:
            if row.step != "deliver" or row.src == process:
                continue
            assert row.deps is not None
            for k, last in enumerate(row.deps):
                for seq in range(1, last + 1):
                    cause = sent[k, seq]
                    meant = (cause.dst is None and k != process) or (cause.dst or 0) >> process & 1
                    if meant and cause.view >= first and place.get((k, seq), row.pos + 1) > row.pos:
                        found.append((process, row))
    return found


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "+".join(map(str, way.values())))
def test_somebody_joins_while_the_others_talk(
    run: Run, place: Place, group_name: str, way: dict[str, Any], tmp_path: Path
) -> None:
    async def main() -> None:
        where = place("udp", 3)
        options = {**where, **way, "faults": ROUGH, "trace": tmp_path / "trace"}
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            groups = [await enter(inga.join(group_name, name, **options)) for name in FOUNDERS]
            await asyncio.gather(*(group.ready() for group in groups))
            for number in range(20):  # what the newcomer never hears of
                await groups[number % 3].send(b"before")
            late = {**where, **way, "trace": tmp_path / "trace", "late": True}
            groups.append(await enter(inga.join(group_name, "dave", **late)))
            await groups[-1].ready()
            for group, own in zip(groups, (7, 7, 6), strict=False):
                assert await texts(group, 20 - own) == ["before"] * (20 - own)
            await groups[3].send(b"question")
            heard = await asyncio.gather(*(answers(group) for group in groups))
            for name, each in zip(FOUNDERS, heard, strict=False):
                assert each[0] == "question"
                assert sorted(each[1:]) == [f"answer of {other}" for other in FOUNDERS if other != name]
            assert sorted(heard[3]) == [f"answer of {name}" for name in FOUNDERS]

    run(main())
    assert causal_violations(tmp_path / "trace") == []


async def answers(group: inga.Group) -> list[str]:
    """Answer the question, and hear it and everybody else's answer."""
    heard: list[str] = []
    async for delivery in group:
        heard.append(text(delivery))
        if heard[-1] == "question":
            await group.send(f"answer of {group.me}".encode())
        if len(heard) == 3:
            return heard
    raise AssertionError("the group has ended")


@pytest.mark.parametrize(
    ("founded", "other"),
    [
        ({"order": "vector"}, "relay"),
        ({"order": "relay"}, "vector"),
        ({"matrix": True}, "fifo"),
        ({"matrix": True}, "relay"),
    ],
    ids=str,
)
def test_the_order_changes_and_changes_back(
    run: Run, place: Place, group_name: str, founded: dict[str, Any], other: str, tmp_path: Path
) -> None:
    async def main() -> None:
        options = {**place("udp", 3), **founded, "faults": ROUGH, "trace": tmp_path / "trace"}
        async with AsyncExitStack() as stack:
            groups = [
                await stack.enter_async_context(inga.join(group_name, name, **options)) for name in FOUNDERS
            ]
            await asyncio.gather(*(group.ready() for group in groups))
            first = groups[0].recipe.name
            for order in (first, other, first):
                if order != groups[1].view.recipe:
                    await groups[1].use(order)
                for number in range(30):
                    to = None if number % 2 else groups[(number + 1) % 3].me
                    await groups[number % 3].send(b"%s %d" % (order.encode(), number), to=to)
            for group in groups:
                heard = await take(aiter(group), 3 * (10 + 5))
                orders = [text(each).split()[0] for each in heard]
                assert orders == [first] * 15 + [other] * 15 + [first] * 15
            assert {group.view.recipe for group in groups} == {first}

    run(main())
    if other != "fifo":
        assert causal_violations(tmp_path / "trace") == []


def test_gates_that_stay_closed(run: Run, place: Place, group_name: str) -> None:
    async def main() -> None:
        async with inga.join(group_name, "alice", matrix=True, **place("udp", 3)) as alice:
            with pytest.raises(inga.UsageError, match="a group with matrix=True has no gate"):
                alice.gate("open")
        where = place("udp", 3)
        async with (
            inga.join(group_name, "alice", order="relay", **where) as alice,
            inga.join(group_name, "bob", order="relay", **where) as bob,
        ):
            with pytest.raises(inga.UsageError, match="the relay holds for everybody"):
                alice.gate("open")
            bob.gate("open")
            bob.gate("closed")

    run(main())


def test_receipts_know_the_order_they_were_sent_under(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, _bob):
            causal = await alice.send(b"under an order that confirms")
            await alice.use("relay")
            await causal.reached("confirmed")
            relayed = await alice.send(b"under one that does not")
            await alice.use("co")
            with pytest.raises(inga.UsageError, match="a receipt here can reach: none"):
                await relayed.reached("confirmed")
            with pytest.raises(inga.UsageError, match="a receipt here can reach: confirmed"):
                await causal.reached("acknowledged")
            await (await alice.send(b"now it can be")).reached("acknowledged")
            assert not alice._changes and not alice.receipts.waiting

    run(main())
