"""Worker processes. However the main process is interrupted, no worker outlives it, and none prints anything itself.

A terminal sends Ctrl-C to all processes of a command. Workers ignore it: the main process terminates them and
reports the result. SIGTERM means the same, but reaches only the main process.
"""

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start this many worker processes. They are terminated when the block ends, since work in progress is of no use then.

    Do not cancel futures of the pool: some versions of Python fail on cancelled futures of processes that have ended.
    """
    others = set(active_children())
    with interruptible(), _Workers(jobs, initializer=_begin) as pool:
        try:
            yield pool
        finally:
            with _held_back():
                for process in set(active_children()) - others:
                    process.terminate()


@contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM as an interrupt, like Ctrl-C, within this block. In other threads than the main one, which alone receives
    signals, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Workers(ProcessPoolExecutor):
    """A pool that blocks signals while it starts processes, at a submit: a signal would reach them before their handlers are set."""

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        with _held_back():
            return super().submit(function, *given, **named)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    gc.freeze()  # the objects of the parent process are no garbage, so collections need not examine them


@contextmanager
def _held_back() -> Iterator[None]:
    """Block the signals that would end this process until the end of this block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
