"""Logs of the UBC tracing library, as TraceChecker reads them: a line of JSON for each event.

`GenerateTokenTrace` puts a clock into a token, which travels with a message of the application; at its receiver
`ReceiveTokenTrace` names the same token. So the two are the send and the receipt of one message, and since
clocks travel no other way, the vectors of these messages can be checked too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inga.trace.importers.record import Log, Record, bad, check_clock, is_text
from inga.trace.importers.text import read_lines
from inga.trace.manifest import shown

ROLES = {"GenerateTokenTrace": "send", "ReceiveTokenTrace": "deliver"}
KEYS = ("TracerIdentity", "Tag", "VectorClock")


def open_log(path: Path, *, encoding: str) -> Log:
    def records() -> Iterator[Record]:
        for line, text in read_lines(path, encoding):
            yield _record(path, line, text)

    # Nothing says that a token is received only once: a network may bring it again.
    return Log(path, records, "tracechecker", ["clocks", "stamps"], to_receivers=True)


def _record(path: Path, line: int, text: str) -> Record:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad(path, line, f"this is not JSON: {error}") from None
    if not is_text(content, text):
        raise bad(path, line, "this holds half a character")
    if not isinstance(content, dict):
        raise bad(path, line, f"an object is expected, not {shown(content)}")
    for key in KEYS:
        if key not in content:
            raise bad(path, line, f'there is no "{key}"')
    host, tag, body = content["TracerIdentity"], content["Tag"], content.get("Body")
    if not isinstance(host, str) or not isinstance(tag, str):
        raise bad(path, line, "TracerIdentity and Tag must be texts")
    clock = check_clock(content["VectorClock"], host, path, line)
    role = ROLES.get(tag)
    message = "" if role is None else _token(body, tag, path, line)
    said = tag if role is not None or not body else f"{tag} {json.dumps(body, ensure_ascii=False)}"
    return Record(host, clock, said, line, role, message)


def _token(body: Any, tag: str, path: Path, line: int) -> str:
    token = body.get("Token") if isinstance(body, dict) else None
    if not isinstance(token, str) or not token:
        raise bad(path, line, f"{tag} has no token in its body")
    return token
