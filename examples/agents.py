"""A swarm of agents in which nobody sees an answer before its question.

    python examples/agents.py [QUESTIONS]

A planner asks, workers answer, a critic reads everything and complains if an answer comes without its question. Links are slow at
random, so under `fifo` the critic does complain (`order=fifo`, to try it). `think` stands for a call of any model: put yours there.
"""

import asyncio
import json
import os
import sys
from random import Random

import inga

NAMES = ("planner", "worker1", "worker2", "critic")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


async def think(rng: Random, question: str) -> str:
    """`return (await client.messages.create(...)).content`, or whatever your client has."""
    await asyncio.sleep(rng.uniform(0, 0.003))
    return f"{len(question)} letters"


def told(kind: str, number: int, text: str) -> bytes:
    return json.dumps({"kind": kind, "number": number, "text": text}).encode()


async def planner(group: inga.Group, questions: int) -> str:
    for number in range(questions):
        await group.send(told("question", number, f"what is {'x' * number}?"))
        await asyncio.sleep(0.001)
    return f"asked {questions} questions"


async def worker(group: inga.Group, questions: int) -> str:
    rng, answered = Random(group.me), 0
    async for message in group:
        said = json.loads(bytes(message.data))
        if said["kind"] == "question":
            await group.send(told("answer", said["number"], await think(rng, said["text"])))
            answered += 1
        if answered == questions:
            break
    return f"gave {answered} answers"


async def critic(group: inga.Group, questions: int) -> str:
    known, heard, orphans = set(), 0, 0
    async for message in group:
        said = json.loads(bytes(message.data))
        if said["kind"] == "question":
            known.add(said["number"])
        else:
            heard += 1
            orphans += said["number"] not in known
        if heard == 2 * questions and len(known) == questions:
            break
    return f"read {heard} answers, {orphans} of them before their question"


async def agent(name: str, questions: int, order: str, end: asyncio.Barrier) -> str:
    role = {"planner": planner, "critic": critic}.get(name, worker)
    async with inga.join("swarm", name, members=NAMES, via=VIA, order=order) as group:
        await group.ready()
        if name == "planner":
            group.delay("critic", 0.005, jitter=0.02)  # as links over a wide area are
        found = await role(group, questions)
        await end.wait()  # nobody leaves while others still read
    return f"{name} {found}"


async def main(questions: int, order: str) -> None:
    end = asyncio.Barrier(len(NAMES))
    print(*await asyncio.gather(*(agent(name, questions, order, end) for name in NAMES)), sep="\n")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if "=" not in word]
    orders = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("order=")]
    asyncio.run(main(int(words[0]) if words else 20, orders[0] if orders else "causal"))
