"""The jobs of `inga bench hostile`: members that send for a while, and an attacker."""

import asyncio
import resource
from time import monotonic
from typing import Any

from inga.lab.hostile import FORMER, Former, KeptKeys, Stranger
from inga.lab.jobs import GROUP, join_bench
from inga.model.errors import IngaError
from inga.net.carrier import UdpCarrier
from inga.net.group import Group
from inga.runs.worker import WorkerLink
from inga.secure.guard import GroupGuard

BATCH = 32
"""Messages that are sent at once."""


async def talk(config: dict[str, Any], link: WorkerLink) -> None:
    """Send numbered messages for some seconds, and check that each sender's messages arrive complete, unchanged and in order."""
    async with join_bench(config) as group:
        await group.ready()
        link.say("ready", who=group.stack.member.identity)
        await link.hear()
        listener = _Listener(group, config["size"])
        reading = asyncio.ensure_future(listener.read())
        before = _memory()
        end = monotonic() + config["seconds"]
        sent = 0
        ended = ""
        try:
            async with asyncio.timeout(config["seconds"]):
                while monotonic() < end:
                    await group.send_many([_numbered(sent + i, config["size"]) for i in range(BATCH)])
                    sent += BATCH
        except TimeoutError:
            pass  # the window was closed when the time was over
        except IngaError as error:
            ended = str(error)
        link.say(
            "done",
            taken=listener.taken,
            wrong=listener.wrong,
            excluded=len(set(config["members"]) - set(group.view.names)),
            rejected=sum(group.rejected.values()),
            grown=_memory() - before,
            ended=ended,
        )
        await link.hear()  # and read on: a member that does not read holds up members that are not done
        reading.cancel()


async def disturb(config: dict[str, Any], link: WorkerLink) -> None:
    """Flood the group; or, for comparison, keep one core as busy without sending anything."""
    people = [(name, incarnation) for name, incarnation in config["people"]]
    told = {"group": GROUP, "via": config["via"]}
    kept = await _left(config) if config["kind"] == FORMER else None
    link.say("ready")
    await link.hear()
    end = monotonic() + config["seconds"]
    if config["kind"] == "nothing":
        count = 0
        while monotonic() < end:
            count += 1
        link.say("done", sent=0)
    else:
        with Former(kept, people, **told) if kept else Stranger(config["kind"], people, **told) as stranger:
            stranger.flood(lambda: monotonic() >= end)
            link.say("done", sent=stranger.sent)
    await link.hear()


async def _left(config: dict[str, Any]) -> KeptKeys:
    """Join the group, leave it, and return the keys and addresses that a former member may keep."""
    async with join_bench(config, late=True) as group:
        await group.ready()
        guard, own = group.stack.guard, group.carrier
        assert isinstance(guard, GroupGuard)
        assert isinstance(own, UdpCarrier)
        assert own._own is not None
        kept = KeptKeys(guard, own._own.getsockname()[1])
    return kept


class _Listener:
    """Reads what a group delivers, and counts the messages that are not the next ones of their senders, or changed."""

    def __init__(self, group: Group, size: int) -> None:
        self.taken = self.wrong = 0
        self._group = group
        self._size = size

    async def read(self) -> None:
        expected: dict[str, int] = {}
        async for batch in self._group.batches():
            for payload in batch.payloads:
                number = expected.get(batch.sender, 0)
                self.wrong += bytes(payload) != _numbered(number, self._size)
                expected[batch.sender] = number + 1
            self.taken += len(batch.payloads)


def _numbered(number: int, size: int) -> bytes:
    return b"%012d" % number + b"." * (size - 12)


def _memory() -> int:
    """Return the peak of this process's resident memory, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
