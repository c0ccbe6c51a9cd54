"""The extension of packets of the order `total`: places in the order, all varints.

    of the sequencer    runs, one after the other: which member's packets come next, and up to which number
    of other members    how many packets of the sequencer the sender had taken, which is nearly all it knows about the others

A packet of the sequencer without runs has no extension.
"""

from inga.model.errors import WireError
from inga.model.packet import Buffer
from inga.wire import varint
from inga.wire.packet import COUNT_MAX

NamedRun = tuple[int, int]
"""A member, and the number up to which its packets have a place now."""

RUNS_MAX = 16
"""The most runs in one packet; if there are more, the first ones are sent before it in packets of their own."""

RUN_BYTES = 8
"""The most bytes of one run: an index and a number."""


def put_runs(runs: list[NamedRun]) -> bytes:
    return varint.pack(number for run in runs for number in run)


def get_runs(data: Buffer, members: int) -> list[NamedRun]:
    """The runs in an extension: no two consecutive runs are of one member, and the numbers of a member increase. The sequencer,
    which is the first member, has no runs itself. Raises WireError for invalid bytes."""
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
    """How many packets of the sequencer the sender had taken. Raises WireError for invalid bytes."""
    count, at = varint.get(data, 0)
    if at != len(data) or count > COUNT_MAX:
        raise WireError("malformed", f"{len(data)} bytes for a count of {count}")
    return count
