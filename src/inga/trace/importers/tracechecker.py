"""Logs of the UBC tracing library, as TraceChecker reads them: a line of JSON for each event.

`GenerateTokenTrace` puts a clock into a token, which travels with a message of the application; at the receiver
`ReceiveTokenTrace` names the same token. So these two events are the send and the receipt of one message. Clocks
travel only in tokens, so the vectors of these messages can be checked, too.
"""

import json
from collections.abc import Iterator
from typing import Any

from inga.model.errors import TraceError
from inga.trace.importers.record import BadLines, Log, Record, check_clock, fault
from inga.trace.importers.source import LogText
from inga.trace.importers.text import read_objects

ROLES = {"GenerateTokenTrace": "send", "ReceiveTokenTrace": "deliver"}
KEYS = ("TracerIdentity", "Tag", "VectorClock")


def open_log(log: LogText, *, encoding: str) -> Log:
    bad = BadLines()

    def records() -> Iterator[Record]:
        for line, content in read_objects(log, encoding, bad):
            try:
                record = _record(log, line, content)
            except TraceError as error:
                bad.add(error)
            else:
                yield record

    # A token may be received more than once, since a network may duplicate it.
    return Log(log, records, "tracechecker", ["clocks", "stamps"], bad=bad, to_receivers=True)


def _record(log: LogText, line: int, content: dict[str, Any]) -> Record:
    for key in KEYS:
        if key not in content:
            raise fault(log, line, f'there is no "{key}"')
    host, tag, body = content["TracerIdentity"], content["Tag"], content.get("Body")
    if not isinstance(host, str) or not isinstance(tag, str):
        raise fault(log, line, "TracerIdentity and Tag must be texts")
    clock = check_clock(content["VectorClock"], host, log, line)
    role = ROLES.get(tag)
    message = "" if role is None else _token(body, tag, log, line)
    said = tag if role is not None or not body else f"{tag} {json.dumps(body, ensure_ascii=False)}"
    return Record(host, clock, said, line, role, message)


def _token(body: Any, tag: str, log: LogText, line: int) -> str:
    token = body.get("Token") if isinstance(body, dict) else None
    if not isinstance(token, str) or not token:
        raise fault(log, line, f"{tag} has no token in its body")
    return token
