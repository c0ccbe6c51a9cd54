"""What a packet of the order `total` says of places; in the packet's extension, all varints.

    of the sequencer    runs, one after the other: whose packets come next, and up to which number
    of other members    how many packets of the sequencer its sender had taken, which is nearly all it knows of the others

A packet of the sequencer without runs has no extension.
"""

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.wire import varint
from inga.wire.packet import COUNT_MAX

NamedRun = tuple[int, int]
"""A member, and the number up to which its packets have a place now."""

RUNS_MAX = 16
"""Runs that one packet names; of more, the first go ahead on packets of their own."""

RUN_BYTES = 8
"""Of one run, at most: an index and a number."""


def put_runs(runs: list[NamedRun]) -> bytes:
    return varint.pack(number for run in runs for number in run)


def get_runs(data: Buffer, members: int) -> list[NamedRun]:
    """The runs in an extension: no two that follow each other are of one member, and none goes back. The sequencer, who is
    the first member, names none of itself. Raises WireError for anything else."""
    if len(data) > RUNS_MAX * RUN_BYTES:
        raise WireError("malformed", f"{len(data)} bytes for runs")
    numbers = varint.unpack(data)
    if not numbers or len(numbers) % 2 or len(numbers) > 2 * RUNS_MAX:
        raise WireError("malformed", f"{len(numbers)} numbers for runs")
    runs = list(zip(numbers[::2], numbers[1::2], strict=True))
    last: dict[int, int] = {}
    previous = 0
    for sender, upto in runs:
        if not 0 < sender < members:
            raise WireError("stranger", f"a place for member {sender} of {members}")
        if sender == previous or not last.get(sender, 0) < upto <= COUNT_MAX:
            raise WireError("malformed", f"a run of member {sender} up to {upto}")
        last[sender] = upto
        previous = sender
    return runs


def put_known(count: int) -> bytes:
    return varint.pack([count])


def get_known(data: Buffer) -> int:
    """How many packets of the sequencer the sender had. Raises WireError for anything else."""
    count, at = varint.get(data, 0)
    if at != len(data) or count > COUNT_MAX:
        raise WireError("malformed", f"{len(data)} bytes for a count of {count}")
    return count
