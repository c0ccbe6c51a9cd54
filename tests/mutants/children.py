"""Jobs in processes of their own, a few at a time: a job may change anything, never end, or die of what it does."""

import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple, TypeVar

MEMORY_MAX = 4 << 30
"""Octets of addresses a child may use; then it gets a MemoryError instead of making the machine swap."""

Job = TypeVar("Job")
Tell = Callable[[Any], None]
Work = Callable[[Job, Tell, Path], None]


class Ended(NamedTuple):
    """What a child left behind."""

    told: list[Any]
    status: int  # negative: the signal that ended it
    output: str  # its last lines


def each_in_a_child(
    work: Work[Job], jobs: Iterable[Job], workers: int
) -> Generator[tuple[Job, Ended], None, None]:
    """Fork for each job, and yield it when its child has ended.

    `work` gets the job, a function that tells us something, and a folder to write in. What it has told is not lost
    when a signal ends it.
    """
    running: dict[int, tuple[Job, Path]] = {}
    waiting = iter(jobs)
    with TemporaryDirectory(prefix="mutants-") as scratch:
        try:
            while True:
                while len(running) < workers and (job := next(waiting, None)) is not None:
                    folder = Path(mkdtemp(dir=scratch))
                    running[_fork(work, job, folder)] = job, folder
                if not running:
                    return
                pid, status = _wait_for_one()
                job, folder = running.pop(pid)
                told = [json.loads(line) for line in (folder / "told").read_text().splitlines()]
                output = (folder / "output").read_text(errors="replace")[-4000:]
                rmtree(folder)
                yield job, Ended(told, status, output)
        finally:
            for pid in running:
                _kill_group(pid)
                os.waitpid(pid, 0)


def limit(*, cpu: float, wall: float) -> None:
    """From now on this process has so many seconds. No handler: nothing that runs here can catch the signal's effect."""
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, wall)


def _fork(work: Work[Job], job: Job, folder: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setpgid(0, 0)  # so that what it starts ends with it, and Ctrl-C is for the parent alone
        with suppress(ValueError, OSError):  # not every system can limit it
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        with open(folder / "told", "w") as told:
            work(job, lambda news: print(json.dumps(news), file=told, flush=True), folder)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _wait_for_one() -> tuple[int, int]:
    """A child that has ended, and how. It is looked at before it is let go, so that its number is still its own."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    _kill_group(ended.si_pid)
    _, status = os.waitpid(ended.si_pid, 0)
    return ended.si_pid, os.waitstatus_to_exitcode(status)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
