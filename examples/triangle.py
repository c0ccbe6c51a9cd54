"""The triangle that goes wrong elsewhere: one tells two others of something separately, and news of it travels.

    python examples/triangle.py              three members, real sockets, the first copy delayed by 0.2 s
    python examples/triangle.py --virtual    the same in virtual time, delayed by 20 s

Alice writes to Cathy alone, then to Bob alone; Bob writes to Cathy. None of the three messages goes to all, and
the first is slow. Under `fifo` Cathy hears from Bob before she knows what it is about; under `sco` she cannot,
though nobody is sent a byte that is not addressed to them.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

import inga
from inga.sim import Sim

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")
CAUSE, HINT, EFFECT = b"I quit.", b"I told Cathy.", b"Alice quits?"


async def play(order: str) -> list[str]:
    """What Cathy sees, over real sockets."""
    async with AsyncExitStack() as members:
        alice, bob, cathy = [
            await members.enter_async_context(
                inga.join(f"triangle-{order}", name, members=NAMES, via=VIA, order=order)
            )
            for name in NAMES
        ]
        await asyncio.gather(*(member.ready() for member in (alice, bob, cathy)))
        alice.delay(to="cathy", seconds=0.2)
        await alice.send(CAUSE, to="cathy")
        await alice.send(HINT, to="bob")
        async for delivery in bob:
            assert delivery.data == HINT
            await bob.send(EFFECT, to="cathy")
            break
        seen: list[str] = []
        async for delivery in cathy:
            seen.append(f"{delivery.sender}: {bytes(delivery.data).decode()}")
            if len(seen) == 2:
                break
        return seen


def simulate(order: str) -> list[str]:
    """The same without sockets and without waiting."""
    sim = Sim(*NAMES, order=order)
    sim.link("alice", "cathy").delay = 20
    sim["bob"].react = lambda delivery: sim["bob"].send(EFFECT, to="cathy")
    sim["alice"].send(CAUSE, to="cathy")
    sim["alice"].send(HINT, to="bob")
    sim.run()
    sim.check()
    return [f"{delivery.sender}: {bytes(delivery.data).decode()}" for delivery in sim["cathy"].taken]


if __name__ == "__main__":
    for order in ("fifo", "sco"):
        seen = simulate(order) if "--virtual" in sys.argv else asyncio.run(play(order))
        print(f"{order}: Cathy sees", ", then ".join(seen))
