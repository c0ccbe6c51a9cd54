"""Ctrl-C where a package would swallow it, or a process would stay behind: it waits, and is not lost."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from inga.cli.interrupts import STARTING, safe_interrupts
from inga.cli.main import COMMANDS, READING

GREEDY = """\
import os, signal

went_on = False
try:
    os.kill(os.getpid(), signal.SIGINT)
    went_on = True
except BaseException:
    pass
"""


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """As in a program that has just begun, whatever handles signals in this one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_start() -> Callable[[], str]:
    """What Spark starts Java with, where somebody presses Ctrl-C in the middle."""
    module, name = STARTING
    made: dict[str, Any] = {"__name__": module, "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT)}
    exec(f"def {name}():\n    interrupt()\n    return 'started'", made)
    start: Callable[[], str] = made[name]
    return start


def wait() -> None:
    Event().wait(30)


def test_a_module_that_takes_an_interrupt_for_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greedy_module.py").write_text(GREEDY)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        import greedy_module  # type: ignore[import-not-found]

        assert greedy_module.went_on
        wait()
    monkeypatch.delitem(sys.modules, "greedy_module")


def test_java_that_is_just_being_started() -> None:
    told = []
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        told.append(interrupted_start()())
        wait()
    assert told == ["started"]


def test_elsewhere_it_comes_at_once_and_at_the_end_it_is_not_late() -> None:
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it went on")
    with pytest.raises(KeyboardInterrupt), safe_interrupts():
        interrupted_start()()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with safe_interrupts():
        for kind in (KeyboardInterrupt, OSError):
            try:
                raise kind
            except BaseException:
                logging.exception("while sending command")
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [OSError]


def test_whoever_handles_signals_goes_on_with_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with safe_interrupts():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_they_are_commands() -> None:
    assert COMMANDS.keys() >= READING
