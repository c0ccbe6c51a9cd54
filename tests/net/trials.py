"""The workload of a trial, played by members of one process."""

import asyncio
from array import array

import inga
from inga.runs.live import expected_of, judge_diaries
from inga.runs.member import MemberTraffic
from inga.trial.oracle import Oracle
from inga.trial.workload import Workload

ROUGH = inga.Faults(loss=0.05, duplicate=0.05, reorder=0.2, delay_max=0.002)


async def play(
    groups: list[inga.Group], workload: Workload, seed: int = 1, *, echo: bool = False
) -> list["array[int]"]:
    """Everybody sends and takes everything; what each did, in order."""
    expected = expected_of(workload, seed, echo=echo)
    parts = [MemberTraffic(group, workload, me, seed) for me, group in enumerate(groups)]
    async with asyncio.TaskGroup() as tasks:
        for part, count in zip(parts, expected, strict=True):
            tasks.create_task(part.run(count))
    return [part.diary for part in parts]


def judged(
    diaries: list["array[int]"], workload: Workload, seed: int = 1, *, echo: bool = False
) -> dict[str, int]:
    """What the oracle found, of everything it looks for."""
    oracle: Oracle = judge_diaries(workload, seed, diaries, echo=echo)
    assert oracle.sent == workload.members * workload.messages
    assert oracle.related, "a run without causes proves nothing"
    return dict(+oracle.violations)
