"""Processes that work for this one. However it is interrupted, none of them stays, and none says a word of its own.

A terminal sends Ctrl-C to all processes of a command. Workers ignore it: the one that has started them ends them, and
tells what was found. Who ends a command by SIGTERM means the same, and reaches only that one.
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
    """So many processes, which end with this block: what they are still working on is of no use to anybody.

    Nobody cancels what he has submitted: of futures of processes that have ended, some Pythons trip over those.
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
    """In here SIGTERM is an interrupt, as Ctrl-C is. Only the main thread hears signals; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Workers(ProcessPoolExecutor):
    """Processes are made at the first submit. A signal meanwhile would reach them before they know what to do with it."""

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        with _held_back():
            return super().submit(function, *given, **named)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    gc.freeze()  # what was there before is no garbage


@contextmanager
def _held_back() -> Iterator[None]:
    """What would end this process does so behind this block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
