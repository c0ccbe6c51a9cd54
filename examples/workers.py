"""Workers who are told only what concerns them, and still nobody sees an effect before its cause.

    python examples/workers.py [ORDERS]

The shop tells the store and the packer of an order, and the books of its price. The store tells the packer that it
has picked it, the packer tells the shop that it is sent, and the shop tells the books. The shop's line to the
packer is slow, so that "picked" always comes before the order it belongs to; the packer never has to know. Who is
not concerned gets nothing at all: every message of this program has one or two destinations of four.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

import inga

NAMES = ("shop", "store", "packer", "books")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


async def shop(group: inga.Group, orders: int) -> str:
    for number in range(orders):
        await group.send(f"order {number}".encode(), to=["store", "packer"])
        await group.send(f"price {number}".encode(), to="books")
    sent = 0
    async for delivery in group:
        await group.send(delivery.data, to="books")
        sent += 1
        if sent == orders:
            break
    return f"{orders} ordered, {sent} sent"


async def store(group: inga.Group, orders: int) -> str:
    for _ in range(orders):
        what, number = await _next(group)
        assert what == "order"
        await group.send(f"picked {number}".encode(), to="packer")
    return f"{orders} picked"


async def packer(group: inga.Group, orders: int) -> str:
    known: set[str] = set()
    for _ in range(2 * orders):
        what, number = await _next(group)
        if what == "order":
            known.add(number)
        else:
            assert number in known, f"{number} was picked before it was ordered"
            await group.send(f"sent {number}".encode(), to="shop")
    return f"{len(known)} packed, each ordered before it was picked"


async def books(group: inga.Group, orders: int) -> str:
    prices: set[str] = set()
    for _ in range(2 * orders):
        what, number = await _next(group)
        if what == "price":
            prices.add(number)
        else:
            assert number in prices, f"{number} was sent before it had a price"
    return f"{len(prices)} booked, each priced before it was sent"


async def _next(group: inga.Group) -> tuple[str, str]:
    async for delivery in group:
        what, number = bytes(delivery.data).decode().split()
        return what, number
    raise AssertionError("the group ended too soon")


async def main(orders: int) -> None:
    async with AsyncExitStack() as members:
        groups = [
            await members.enter_async_context(
                inga.join("workers", name, members=NAMES, via=VIA, order="sco", deliver="causal")
            )
            for name in NAMES
        ]
        await asyncio.gather(*(group.ready() for group in groups))
        groups[0].delay(to="packer", seconds=0.1, keep_order=True)
        work = (shop, store, packer, books)
        done = await asyncio.gather(*(each(group, orders) for each, group in zip(work, groups, strict=True)))
        for name, what in zip(NAMES, done, strict=True):
            print(f"{name}: {what}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
