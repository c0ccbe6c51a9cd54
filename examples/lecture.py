"""The lecture's scene: Alice asks, Bob answers at once, and Alice's question is slow on its way to Cathy.

    python examples/lecture.py              three members, real sockets, the link delayed by 0.2 s
    python examples/lecture.py --virtual    the same in virtual time, the link delayed by 20 s

Under `fifo` Cathy sees the answer before the question; under `causal` she cannot.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

import inga
from inga.sim import Sim

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")
QUESTION, ANSWER = b"Lunch?", b"Yes!"


async def play(order: str) -> list[str]:
    """What Cathy sees, over real sockets."""
    async with AsyncExitStack() as members:
        alice, bob, cathy = [
            await members.enter_async_context(
                inga.join(f"lecture-{order}", name, members=NAMES, via=VIA, order=order)
            )
            for name in NAMES
        ]
        await asyncio.gather(*(member.ready() for member in (alice, bob, cathy)))
        alice.delay(to="cathy", seconds=0.2)
        await alice.send(QUESTION)
        async for delivery in bob:
            assert delivery.data == QUESTION
            await bob.send(ANSWER)
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
    sim["bob"].react = lambda delivery: ANSWER if delivery.data == QUESTION else None
    sim["alice"].send(QUESTION)
    sim.run()
    sim.check()
    return [f"{delivery.sender}: {bytes(delivery.data).decode()}" for delivery in sim["cathy"].taken]


if __name__ == "__main__":
    for order in ("fifo", "causal"):
        seen = simulate(order) if "--virtual" in sys.argv else asyncio.run(play(order))
        print(f"{order}: Cathy sees", ", then ".join(seen))
