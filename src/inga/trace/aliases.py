"""The papers' own names for the steps of a trace, for display.

One of our steps may be several of theirs. `ALIASES[scheme][step]` lists them in order; a step that a
scheme does not mention keeps its name.
"""

from collections.abc import Iterable, Iterator

from inga.trace.schema import Row

BUFFERED = "VectorTimeStampedMessageBuffered"
_CREATED = "VectorTimeStampCreated"
_ADDED = "UserAddedToVectorTimeStamp"
_COUNTED = "LocalCountIncrementedInSiteVectorTimeStamp"
_COPIED = "VectorTimeStampCopiedAndNewBufferCreated"
_ADVANCED = "RemoteCountIncrementedInSiteVectorTimeStamp"
_DELIVERED = "VectorTimeStampedMessageDelivered"

CHANGES = frozenset({_CREATED, _ADDED, _COUNTED, _COPIED, _ADVANCED})
"""The lecture's steps that concern a vector of the site, not the stamp of a message."""

ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "dewan": {
        "view": (_CREATED,),
        "join": (_ADDED,),
        "send": (_COUNTED, "VectorTimeStampedMessageSent"),
        "receive": ("VectorTimeStampedMessageReceived",),
        "concurrent": ("ConcurrentVectorTimeStampedMessageDetected",),
        "branch": (_COPIED,),
        "hold": (BUFFERED,),
        "deliver": (
            "VectorTimeStampedMessageRemovedFromBuffer",
            _ADVANCED,
            _DELIVERED,
        ),
    },
    "co": {
        "send": ("DT sent",),
        "accept": ("accepted",),
        "confirm": ("pre-acknowledged",),
        "acknowledge": ("acknowledged",),
        "nack": ("RET sent",),
        "control": ("CNF sent",),
    },
    "sco": {
        "send": ("DT sent",),
        "receive": ("simply accepted",),
        "accept": ("continuously accepted",),
        "causal": ("causally accepted",),
        "confirm": ("fully accepted",),
        "nack": ("RET sent",),
        "control": ("CTL sent",),
    },
    "obg": {},
    "remiop": {
        "nack": ("NACK",),
        "control": ("STATE",),
    },
}


def rename(rows: Iterable[Row], scheme: str | None) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """Yield each row with the names that a scheme has for it; None stands for our own names. Rows of one process must come in
    `pos` order.

    In the lecture every message passes through the buffer. We write `hold` only if the message has to wait
    there, so a delivery without a hold gets the name for buffering first. An own message that is echoed never
    was in the buffer, and changes no remote count. A vector is created once, with a process's first view.
    """
    names = {} if scheme is None else ALIASES[scheme]
    lecture = scheme == "dewan"
    held: set[tuple[int, int, int | None, int | None]] = set()
    created: set[int] = set()
    for row in rows:
        found = names.get(row.step, (row.step,))
        message = (row.process, row.view, row.src, row.seq)
        if lecture and row.step == "hold":
            held.add(message)
        elif lecture and row.step == "view":
            if row.process in created:
                found = (row.step,)
            created.add(row.process)
        elif lecture and row.step == "deliver":
            if row.src == row.process:
                found = (_DELIVERED,)
            elif message not in held:
                found = (BUFFERED, *found)
            held.discard(message)
        yield row, found
