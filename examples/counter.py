"""A shared counter: everybody adds, nobody asks anybody, all end with the same sum.

    python examples/counter.py [ADDITIONS]

Additions commute, so their order does not matter: it is enough that none is lost or counted twice. What is
sent at once with `send_many` travels in few packets, and `batches()` hands each packet over as a whole.
"""

import asyncio
import os
import sys
import time

import inga

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


async def count(name: str, additions: int) -> int:
    """One member: add 1, 2, 3, ..., and take what the others add."""
    async with inga.join("counter", name, members=NAMES, via=VIA) as group:
        await group.ready()
        numbers = range(1, additions + 1)
        total, awaited = sum(numbers), additions * (len(NAMES) - 1)
        sending = asyncio.create_task(group.send_many(number.to_bytes(4, "big") for number in numbers))
        async for batch in group.batches():
            total += sum(int.from_bytes(payload, "big") for payload in batch.payloads)
            awaited -= len(batch.payloads)
            if not awaited:
                break
        await sending
        return total


async def main(additions: int) -> None:
    started = time.perf_counter()
    totals = await asyncio.gather(*(count(name, additions) for name in NAMES))
    for name, total in zip(NAMES, totals, strict=True):
        print(f"{name}: {total}")
    assert len(set(totals)) == 1
    print(f"{len(NAMES) * additions:,} additions in {time.perf_counter() - started:.2f} s", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
