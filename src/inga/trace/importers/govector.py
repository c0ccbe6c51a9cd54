"""Logs of GoVector: a line with the host and its clock, and a line with the text. A level and a time may come first.

    client {"client":3, "server":2}
    INFO Received reply

A text may have several lines; all lines up to the next clock belong to it.
"""

from inga.trace.importers.record import Log
from inga.trace.importers.shiviz import NO_ROLES, Roles
from inga.trace.importers.shiviz import open_log as open_shiviz
from inga.trace.importers.source import LogText

_TIME = r"\d\S*[ \t]+"
PATTERN = (
    rf"^(?:{_TIME})?(?P<host>\S+) (?P<clock>\{{.*\}})[ \t]*\n"
    rf"(?P<event>.*(?:\n(?!(?:{_TIME})?\S+ \{{.*\}}[ \t]*$).*)*)"
)


def open_log(log: LogText, *, encoding: str, roles: Roles = NO_ROLES) -> Log:
    """Open a log of one or several GoVector hosts."""
    return open_shiviz(log, regex=PATTERN, roles=roles, encoding=encoding, source="govector")
