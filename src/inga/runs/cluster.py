"""A group on one machine: a process per member. All are started together, and none is left behind."""

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
"""How many of the innermost places of a worker's traceback are reported."""


class WorkerDied(IngaError):
    """A process of the cluster ended, or fell silent, when it should not."""


class Cluster:
    """The workers of one job, one for each configuration. Use it as a context manager: no worker outlives the block."""

    def __init__(self, job: str, configs: list[dict[str, Any]]) -> None:
        """`within` in a configuration is a command that starts its worker, such as one that enters a network namespace."""
        self._job = job
        self._configs = configs
        self._workers: list[subprocess.Popen[bytes]] = []
        self._heard: list[list[dict[str, Any]]] = []
        self._partial: list[bytes] = []
        self._done: list[int] = []  # the progress that each worker has reported
        self._moved = 0.0  # when a worker last reported progress
        self.started = 0  # workers that have begun their job
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
        """Start one more worker for each configuration."""
        # An interrupt waits until every started process is recorded; otherwise a process could survive us.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for config in configs:
                self._start(config)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def signal(self, index: int, number: signal.Signals) -> None:
        """Send a signal to a worker: to kill, suspend or resume it."""
        self._workers[index].send_signal(number)

    def wait(self, index: int) -> None:
        """Wait until a worker has ended. For one that was killed, which ends at once."""
        self._workers[index].wait(GRACE)

    def listen(self, seconds: float) -> list[tuple[int, dict[str, Any]]]:
        """The lines that workers have sent since the last call, each with the worker's index. Waits at most `seconds` for
        output."""
        self._listen(seconds, set())
        lines = [(index, line) for index, lines in enumerate(self._heard) for line in lines]
        for said in self._heard:
            said.clear()
        return lines

    def has_ended(self, index: int) -> str | None:
        """How a worker ended, in words; None if it still runs or has output that was not read yet."""
        code = self._workers[index].poll()
        if code is None or self._has_output(index):
            return None
        return f"ended with {code}{self._last_words(index)}"

    def tell(self, kind: str, index: int | None = None, **content: Any) -> None:
        """Send a line to a worker, or to all."""
        line = json.dumps({"kind": kind, **content}).encode() + b"\n"
        for worker in self._workers if index is None else [self._workers[index]]:
            assert worker.stdin is not None
            with suppress(BrokenPipeError):  # `gather` and `has_ended` notice that the worker has ended
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
        """Wait for one line of that kind from every worker, except those in `without`.

        `timeout` is the longest time without progress; `progress` is called with the progress of all workers together.
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
            process_group=0,  # so that Ctrl-C reaches the launcher alone, which ends the workers
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
        """The last line of standard error and, if there is a traceback, its innermost places: for an unforeseen error
        nothing else is known, since the process is gone."""
        lines = self.stderr(index).strip().splitlines()
        places = [line.strip() for line in lines if line.startswith('  File "')]
        return (f": {lines[-1]}" if lines else "") + (f" ({'; '.join(places[-PLACES:])})" if places else "")

    def stderr(self, index: int) -> str:
        """All that a worker has written to standard error so far."""
        file = self._errors[index]
        file.seek(0)
        return file.read().decode(errors="replace")

    def _reap(self, *, gently: bool = False) -> None:
        for worker in self._workers:
            if worker.stdin is not None:
                with suppress(BrokenPipeError):
                    worker.stdin.close()  # ends a worker that is still running
            if not gently:
                worker.send_signal(signal.SIGTERM)
            worker.send_signal(signal.SIGCONT)  # a suspended process would not react to either
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
