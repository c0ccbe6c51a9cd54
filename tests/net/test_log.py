"""What live members log is text of one line, whoever chose the names in it."""

import json
import logging
import pickle
import re
from pathlib import Path

import pytest

import inga.net.log
from inga.model.errors import Gap
from inga.model.notice import Notice
from inga.net.log import EVENTS, JsonLines, log, report
from inga.session.pressure import WAITS

from .helpers import Party, Run, until


def test_names_of_others_command_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "inga"):
        log.warning("group %s: %s is slow", "lunch\nERROR forged", "\x1b[2Jmallory\u202e")
    (record,) = caplog.records
    assert record.getMessage() == r"group lunch\nERROR forged: \x1b[2Jmallory\u202e is slow"
    assert log is logging.getLogger("inga"), "where everything of ours is logged"


def test_a_failure_keeps_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("%s failed", "it")
    (record,) = caplog.records
    assert record.getMessage() == "it failed"
    assert record.exc_info is not None and "ValueError: no" in caplog.text


# Events


def test_every_event_is_logged_somewhere_and_has_a_place_in_the_table() -> None:
    source = Path(inga.net.log.__file__).parents[1]
    text = "\n".join(path.read_text() for path in source.rglob("*.py") if path.name != "log.py")
    named = set(re.findall(r"""(?:\breport|\.notice|\bNotice)\(\s*"([^"]*)\"""", text)) | set(WAITS.values())
    assert named == EVENTS.keys()


def test_the_page_for_operators_lists_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    names = {logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error", logging.DEBUG: "debug"}
    rows = [f"| `{event}` | {names[level]} | {meaning} |" for event, (level, meaning) in EVENTS.items()]
    assert [row for row in rows if row not in page] == []


def test_an_event_is_a_name_a_group_and_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "inga"):
        report("members.missing", "%s is missing", "bob\n", group="lunch\x1b[2J")
    (record,) = caplog.records
    assert (record.levelname, record.event, record.group) == ("WARNING", "members.missing", r"lunch\x1b[2J")
    told = json.loads(JsonLines().format(record))
    assert told["text"] == r"group lunch\x1b[2J: bob\n is missing" and told["level"] == "warning"
    assert told["event"] == "members.missing" and abs(told["time"] - record.created) < 0.001


def test_an_error_is_in_the_line(caplog: pytest.LogCaptureFixture) -> None:
    report("state.failed", "no state", error=ValueError("no\nstate"))
    (record,) = caplog.records
    line = JsonLines().format(record)
    assert "\n" not in line and "ValueError: no" in json.loads(line)["error"]


def test_what_a_stack_notices_keeps_its_event_when_it_is_copied() -> None:
    notice = pickle.loads(pickle.dumps(Notice("member.slow", "bob: too slow")))
    assert (notice, notice.event) == ("bob: too slow", "member.slow")


@pytest.mark.network
def test_the_life_of_a_member_in_the_log(caplog: pytest.LogCaptureFixture, run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob):
            await bob.close()
            await until(lambda: alice.view.number == 2)
            alice.stack.fail(Gap("lost"))
            alice._driver.end_turn()

    with caplog.at_level(logging.INFO, "inga"):
        run(main())
    told = [(record.event, record.getMessage().partition(": ")[2]) for record in caplog.records]
    assert told.count(("group.joined", "alice is a member")) == 1
    assert ("view.installed", "view 2: alice, order vector") in told
    assert ("group.failed", "lost") in told and ("group.closed", "bob has left") in told
