"""The log of live members: sentences for people, each with the name of an event that programs can rely on.

    logging.getLogger("inga").addHandler(handler)
    handler.setFormatter(JsonLines())      # if programs read it: one JSON object a line

A record has `event`, one of EVENTS, and, if it is known, `group`. Some names and texts come from the network: they are
escaped, so that they cannot control a terminal or end a line.
"""

import logging
from typing import Any

from inga.model.text import json_line, printable

EVENTS: dict[str, tuple[int, str]] = {
    "group.joined": (logging.INFO, "This member is in the group, and its sockets are open"),
    "group.closed": (logging.INFO, "This member has left, and its sockets are closed"),
    "group.failed": (logging.ERROR, "This member has stopped for good; its iteration raises the same error"),
    "group.plain": (
        logging.WARNING,
        "The group is not secured, or cannot be, since its order uses a foreign wire format",
    ),
    "group.differs": (
        logging.WARNING,
        "Another process is in a group of this name with other members, order or options",
    ),
    "group.paused": (logging.WARNING, "Too few members are here to go on: nothing is sent"),
    "group.resumed": (logging.WARNING, "The pause is over"),
    "group.homeless": (
        logging.WARNING,
        "The others went on without this member, which asks to be admitted again",
    ),
    "view.installed": (logging.INFO, "Another view is in force: who is a member, and which order"),
    "view.waits": (logging.WARNING, "A view change waits for members that do not answer"),
    "members.missing": (logging.WARNING, "`group.ready()` waits for members that were not met"),
    "member.failed": (logging.WARNING, "A member was silent for `detect` seconds, and is excluded"),
    "member.unreachable": (logging.WARNING, "A member does not answer during a view change, and is left out"),
    "member.slow": (logging.WARNING, "A member has held up the others for too long, and is excluded"),
    "sending.waits": (logging.WARNING, "Sending has waited for 5 s; the text names the members it waits for"),
    "delivery.waits": (
        logging.WARNING,
        "Delivery has waited for 5 s; the text names the members it waits for",
    ),
    "join.waits": (logging.WARNING, "A newcomer has not been admitted yet"),
    "host.unknown": (logging.WARNING, "The host of a member or a seed cannot be resolved"),
    "state.waits": (logging.WARNING, "A newcomer waits for the state of the group"),
    "state.refused": (logging.WARNING, "A member could not give the state to a newcomer"),
    "state.missing": (logging.WARNING, "A newcomer begins without the state of the group"),
    "state.lost": (
        logging.WARNING,
        "All copies of an object's state are gone: it begins anew, or as a returning member had it",
    ),
    "state.failed": (logging.ERROR, "The application raised an error when asked for its state"),
    "history.unreadable": (logging.WARNING, "Messages sent before this member joined cannot be read"),
    "relay.gone": (logging.WARNING, "The member that passed on all messages is gone"),
    "stranger.refused": (logging.WARNING, "A process could not prove that it is a member"),
    "trace.numbers": (logging.WARNING, "Parts of a group may give newcomers the same numbers in a trace"),
    "multicast.opened": (
        logging.INFO,
        "The multicast address and interface of the group, and why this interface",
    ),
    "tcp.refused": (logging.WARNING, "A TCP connection was closed; at DEBUG from the second time on"),
    "kernel.flooded": (
        logging.WARNING,
        "Far more comes than is of use, and the kernel keeps most of it out; at DEBUG from the second time on",
    ),
    "kernel.unfiltered": (logging.DEBUG, "The kernel does not filter datagrams for us"),
    "orb.unjoined": (logging.WARNING, "An ORB could not join a group that a reference names"),
    "orb.deaf": (logging.WARNING, "An ORB no longer receives requests to a group"),
    "orb.failed": (logging.WARNING, "A servant raised an error that its interface does not declare"),
}
"""Every event with its level and its meaning."""


class Printable(logging.Filter):
    """Lets every record pass, as one line with escapes: some names and texts come from the network."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable(record.getMessage()), ()
        return True


class JsonLines(logging.Formatter):
    """Records as JSON, one a line: `time` in seconds since 1970, `level`, `event`, `group`, `text`, and `error` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        found = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", None),
            "group": getattr(record, "group", None),
            "text": record.getMessage(),
            "error": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json_line({key: value for key, value in found.items() if value is not None})


log = logging.getLogger("inga")
log.addFilter(Printable())


def report(
    event: str,
    text: str,
    *args: Any,
    group: str | None = None,
    level: int | None = None,
    error: BaseException | None = None,
) -> None:
    """Log an event. The sentence is `text` with `args` in it, after the name of the `group`, if it concerns one group."""
    extra = {"event": event, "group": None if group is None else printable(group)}
    if group is not None:
        text, args = f"group %s: {text}", (group, *args)
    log.log(
        EVENTS[event][0] if level is None else level, text, *args, exc_info=error, extra=extra, stacklevel=2
    )
