"""A group on one machine: a process per member, started together and reaped for certain."""

import json
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import IO, Any, Self

from inga.model.errors import IngaError, UsageError

GRACE = 5.0
"""Seconds a worker has to end by itself before it is killed."""

PLACES = 6
"""Of a worker's traceback, how many of the innermost places are told."""


class WorkerDied(IngaError):
    """A process of the cluster ended when it should not."""


class Cluster:
    """Workers of one job, one a configuration. Use as a context manager: nobody survives it."""

    def __init__(self, job: str, configs: list[dict[str, Any]]) -> None:
        """A configuration may say in `within` which command its worker is to be started by."""
        self._job = job
        self._configs = configs
        self._workers: list[subprocess.Popen[bytes]] = []
        self._heard: list[list[dict[str, Any]]] = []
        self._partial: list[bytes] = []
        self._done: list[int] = []  # what each says it has done
        self._moved = 0.0  # when one of them last said more
        self.started = 0  # workers that have begun with their job
        self._selector = selectors.DefaultSelector()
        self._errors: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self.start(*self._configs)
        except BaseException:
            self._reap()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reap(gently=kind is None)

    @property
    def processes(self) -> list[int]:
        """Process ids, by member."""
        return [worker.pid for worker in self._workers]

    def start(self, *configs: dict[str, Any]) -> None:
        """One worker more for each of these."""
        # An interrupt waits until every process that was started is known, or it would survive us.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for config in configs:
                self._start(config)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def signal(self, index: int, number: signal.Signals) -> None:
        """To one of them: it is killed, stopped, or goes on."""
        self._workers[index].send_signal(number)

    def wait(self, index: int) -> None:
        """Until it has ended, as one that was killed does at once."""
        self._workers[index].wait(GRACE)

    def listen(self, seconds: float) -> list[tuple[int, dict[str, Any]]]:
        """What any of them has said, each with its index; waits so long for the first of it."""
        self._listen(seconds, set())
        lines = [(index, line) for index, lines in enumerate(self._heard) for line in lines]
        for said in self._heard:
            said.clear()
        return lines

    def has_ended(self, index: int) -> str | None:
        """How a worker ended that has nothing more to say, in words; None: it is there."""
        code = self._workers[index].poll()
        if code is None or self._has_output(index):
            return None
        return f"ended with {code}{self._last_words(index)}"

    def tell(self, kind: str, index: int | None = None, **content: Any) -> None:
        """One line to a worker, or to all."""
        line = json.dumps({"kind": kind, **content}).encode() + b"\n"
        for worker in self._workers if index is None else [self._workers[index]]:
            assert worker.stdin is not None
            with suppress(BrokenPipeError):  # its death is noticed where somebody waits for it
                worker.stdin.write(line)
                worker.stdin.flush()

    def gather(
        self,
        kind: str,
        *,
        timeout: float,
        without: frozenset[int] = frozenset(),
        progress: Callable[[int], None] = lambda done: None,
    ) -> list[dict[str, Any]]:
        """Wait for one line of that kind from every worker (but those `without`).

        `timeout` is without progress; `progress` is told how much all of them have done.
        """
        self._moved = monotonic()
        found: dict[int, dict[str, Any]] = {}
        wanted = set(range(len(self._workers))) - without
        while True:
            for index in wanted - found.keys():
                for line in self._heard[index]:
                    if line["kind"] == "error":
                        raise UsageError(f"member {index}: {line['text']}")
                    if line["kind"] == kind:
                        found[index] = line
                        self._heard[index].remove(line)
                        break
            progress(sum(self._done))
            if found.keys() >= wanted:
                return [found.get(index, {}) for index in range(len(self._workers))]
            left = self._moved + timeout - monotonic()
            if left <= 0:
                late = sorted(wanted - found.keys())
                raise WorkerDied(f"members {late} did not say {kind!r} within {timeout:g} s")
            self._listen(min(left, 0.5), wanted - found.keys())

    def _start(self, config: dict[str, Any]) -> None:
        index = len(self._workers)
        self._heard.append([])
        self._partial.append(b"")
        self._done.append(0)
        self._errors.append(tempfile.TemporaryFile())  # noqa: SIM115 — closed in _reap
        worker = subprocess.Popen(
            [*config.get("within", ()), sys.executable, "-m", "inga.runs.worker", self._job],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors[index],
            process_group=0,  # Ctrl-C reaches us alone; we tell the workers
        )
        self._workers.append(worker)
        assert worker.stdin is not None and worker.stdout is not None
        self._selector.register(worker.stdout, selectors.EVENT_READ, index)
        worker.stdin.write(json.dumps(config).encode() + b"\n")
        worker.stdin.flush()

    def _listen(self, seconds: float, wanted: set[int]) -> None:
        for key, _ in self._selector.select(seconds):
            index: int = key.data
            data = key.fileobj.read1(1 << 16)  # type: ignore[union-attr]
            if not data:
                self._selector.unregister(key.fileobj)
                continue
            *lines, self._partial[index] = (self._partial[index] + data).split(b"\n")
            for content in (json.loads(line) for line in lines if line.startswith(b"{")):
                if content["kind"] == "progress":
                    self._advance(index, content["taken"])
                elif content["kind"] == "started":
                    self.started += 1
                    self._moved = monotonic()
                else:
                    self._heard[index].append(content)
        for index in wanted:
            if (how := self.has_ended(index)) is not None:
                raise WorkerDied(f"member {index} {how}")

    def _advance(self, index: int, done: int) -> None:
        if done > self._done[index]:
            self._done[index] = done
            self._moved = monotonic()

    def _has_output(self, index: int) -> bool:
        stdout = self._workers[index].stdout
        return bool(self._heard[index]) or any(k.fileobj is stdout for k in self._selector.get_map().values())

    def _last_words(self, index: int) -> str:
        """The last line, and of a traceback also the places it came through, the innermost last: an error
        that nobody foresaw has no more to say, and the process is gone."""
        lines = self.stderr(index).strip().splitlines()
        places = [line.strip() for line in lines if line.startswith('  File "')]
        return (f": {lines[-1]}" if lines else "") + (f" ({'; '.join(places[-PLACES:])})" if places else "")

    def stderr(self, index: int) -> str:
        """All a worker wrote to standard error so far."""
        file = self._errors[index]
        file.seek(0)
        return file.read().decode(errors="replace")

    def _reap(self, *, gently: bool = False) -> None:
        for worker in self._workers:
            if worker.stdin is not None:
                with suppress(BrokenPipeError):
                    worker.stdin.close()  # which ends a worker that is still at work
            if not gently:
                worker.send_signal(signal.SIGTERM)
            worker.send_signal(signal.SIGCONT)  # one that is stopped would not even end
        deadline = monotonic() + GRACE
        for worker in self._workers:
            try:
                worker.wait(max(0.1, deadline - monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()
        for file in self._errors:
            file.close()
        self._selector.close()
