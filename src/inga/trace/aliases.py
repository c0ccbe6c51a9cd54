"""The papers' own names for the steps of a trace, for display.

One step of ours may be several of theirs. `ALIASES[scheme][step]` lists them in order; a step that a
scheme does not mention keeps its name.
"""

from collections.abc import Iterable, Iterator

from inga.trace.schema import Row

_BUFFERED = "VectorTimeStampedMessageBuffered"
_DELIVERED = "VectorTimeStampedMessageDelivered"

ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "dewan": {
        "join": ("UserAddedToVectorTimeStamp",),
        "send": ("LocalCountIncrementedInSiteVectorTimeStamp", "VectorTimeStampedMessageSent"),
        "receive": ("VectorTimeStampedMessageReceived",),
        "concurrent": ("ConcurrentVectorTimeStampedMessageDetected",),
        "branch": ("VectorTimeStampCopiedAndNewBufferCreated",),
        "hold": (_BUFFERED,),
        "deliver": (
            "VectorTimeStampedMessageRemovedFromBuffer",
            "RemoteCountIncrementedInSiteVectorTimeStamp",
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


def rename(rows: Iterable[Row], scheme: str) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """Each row with the names a scheme has for it. Rows of one process must come in `pos` order.

    In the lecture every message passes through the buffer. We write `hold` only when it has to wait
    there, so a delivery without a hold is named as buffered first. An own message that is echoed never
    was in the buffer, and no remote count changes.
    """
    names = ALIASES[scheme]
    lecture = scheme == "dewan"
    held: set[tuple[int, int, int | None, int | None]] = set()
    for row in rows:
        found = names.get(row.step, (row.step,))
        message = (row.process, row.view, row.src, row.seq)
        if lecture and row.step == "hold":
            held.add(message)
        elif lecture and row.step == "deliver":
            if row.src == row.process:
                found = (_DELIVERED,)
            elif message not in held:
                found = (_BUFFERED, *found)
            held.discard(message)
        yield row, found
