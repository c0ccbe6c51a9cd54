"""Ctrl-C, where it would be lost or do harm.

Two places are delicate. Some packages take any error while they are loaded for one of their own: pyarrow loads pandas in
the middle of the work, and an interrupt in there is forgotten, or becomes an error of another kind. And while Spark
waits for the Java process that it has just started, nobody else knows of that process: it would stay behind. In both
an interrupt waits for the end, a second or two.

Rejected: to block the signal. Threads that packages have started do not block it, and Python hears of it from any.
"""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType

LATER_SECONDS = 0.05  # until it is looked again
LOADING = "<frozen importlib._bootstrap>"
STARTING = "pyspark.java_gateway", "launch_gateway"


@contextmanager
def safe_interrupts() -> Iterator[None]:
    """Handle Ctrl-C for what is done in here, unless somebody else does."""
    is_ours = (
        current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield
        return
    handler = _Handler()
    signal.signal(signal.SIGINT, handler)
    root = logging.getLogger()
    root.addFilter(_is_error)
    try:
        yield
    finally:
        root.removeFilter(_is_error)
        if signal.getsignal(signal.SIGINT) is handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        handler.end()


class _Handler:
    def __init__(self) -> None:
        self._waiting: Timer | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if not _is_delicate(frame):
            raise KeyboardInterrupt
        self._waiting = Timer(LATER_SECONDS, os.kill, (os.getpid(), number))
        self._waiting.daemon = True
        self._waiting.start()

    def end(self) -> None:
        """What still waits takes effect now."""
        if self._waiting is not None:
            self._waiting.cancel()
            raise KeyboardInterrupt


def _is_delicate(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_globals.get("__name__") != "inga.cli.main":
        named = frame.f_globals.get("__name__"), frame.f_code.co_name
        if frame.f_code.co_filename == LOADING or named == STARTING:
            return True
        frame = frame.f_back
    return False


def _is_error(record: logging.LogRecord) -> bool:
    """Spark's bridge to Java logs an interrupt with all its stack; whoever pressed the keys knows."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)
