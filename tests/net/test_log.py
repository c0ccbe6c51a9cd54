"""What live members log is text of one line, whoever chose the names in it."""

import logging

import pytest

import inga.net.driver
from inga.net.log import log


def test_names_of_others_command_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "inga"):
        log.warning("group %s: %s is slow", "lunch\nERROR forged", "\x1b[2Jmallory\u202e")
    (record,) = caplog.records
    assert record.getMessage() == r"group lunch\nERROR forged: \x1b[2Jmallory\u202e is slow"
    assert inga.net.driver.log is log is logging.getLogger("inga"), "where everything of ours is logged"


def test_a_failure_keeps_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("%s failed", "it")
    (record,) = caplog.records
    assert record.getMessage() == "it failed"
    assert record.exc_info is not None and "ValueError: no" in caplog.text
