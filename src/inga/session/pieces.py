"""States in pieces: their size, how many are requested at once, and a buffer for pieces that arrive early.

A newcomer requests some pieces and, once the last of them has arrived, the next ones. Their number adapts:
after a request that was answered without a repetition it doubles, after one that had to be repeated it is
halved. So a state crosses a network with long delays in few round trips, even in small datagrams, and where many datagrams are lost, or
buffers are short, few are sent in vain. A request is repeated after twice the time that the last one took to be answered.

Rejected: a constant number of pieces. Eight of the smallest would be half a kilobyte for each round trip.
"""

from inga.model.compiled import mypyc_attr
from inga.session.alarms import Backoff
from inga.stack.stack import Rng, Stack
from inga.wire.told import Told

AGAIN, AGAIN_MAX = 0.02, 0.5
"""Seconds before a question is repeated: first, and after doubling."""

PIECE, HEAD = 16 * 1024, 512
"""Octets of a piece, at most; and octets reserved in a packet for its other contents, but at most half of a small packet."""

PIECE_MIN = 64
"""Octets of a piece at least, however small packets are."""

PIECES = 8
"""Pieces of the first request, and of each request at least."""

ANSWER_MAX = PIECES * PIECE
"""Octets in the answer to one request, at most: default socket buffers hold as much."""

PIECES_MAX = ANSWER_MAX // PIECE_MIN
"""Pieces of one request, at most."""


def piece_size(stack: Stack) -> int:
    """Return the size in octets of a piece that fits one packet: a piece in several would be lost with any one of them."""
    packet_max = stack.chain.hook("packet_max")
    room = stack.wire.body_max if packet_max is None else packet_max()
    return max(min(PIECE, room - min(HEAD, room // 2)), PIECE_MIN)


def answer_size(pieces: int, size: int) -> int:
    """Return the octets of the answer to a request for so many pieces of that size."""
    return min(pieces * size, ANSWER_MAX)


def note_state(stack: Stack, giver: int, octets: int, of: str) -> None:
    """Record in the trace that a state has arrived."""
    if stack.trace is not None:
        stack.trace.row("state", stack.now, stack.view.number, peer=giver, n=octets, note=of)


@mypyc_attr(allow_interpreted_subclasses=True)
class FetchPace:
    """The size and the repetition of a newcomer's requests for one state."""

    def __init__(self) -> None:
        self._pieces = PIECES
        self._is_open = False  # some pieces of the last request have not arrived
        self._is_repeated = False  # the last request was repeated
        self._asked_at: float | None = None  # the time of the first request that nothing has answered yet
        self._again = Backoff(AGAIN, AGAIN_MAX)

    def ask(self, now: float) -> int:
        """A request is about to leave; return for how many pieces."""
        self._is_repeated = self._is_open
        if self._is_open:
            self._pieces = max(self._pieces // 2, PIECES)
        self._is_open = True
        if self._asked_at is None:
            self._asked_at = now
        return self._pieces

    def wait(self, rng: Rng) -> float:
        """Return the seconds before the request is repeated, unless a piece arrives."""
        return self._again.next(rng)

    def came(self, now: float, *, is_last: bool) -> None:
        """A new piece has arrived; `is_last`: the last one of the request."""
        if self._asked_at is not None:
            self._again.first = min(max(2 * (now - self._asked_at), AGAIN), AGAIN_MAX)
            self._asked_at = None
        self._again.reset()
        if is_last:
            self._is_open = False
            if not self._is_repeated:
                self._pieces = min(2 * self._pieces, PIECES_MAX)


@mypyc_attr(allow_interpreted_subclasses=True)
class EarlyPieces:
    """Pieces of a state that arrived before their predecessors: the network may deliver those of one request in any order."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[bytes, Told]] = {}  # by their offsets
        self._size = 0

    def in_turn(self, expected: int, offset: int, body: bytes, told: Told) -> list[tuple[bytes, Told]]:
        """Add a piece that begins at `offset`; return all pieces that are now in sequence from the octet `expected` on."""
        if offset > expected:
            has_room = self._size + len(body) <= ANSWER_MAX and len(self._pieces) < PIECES_MAX
            if offset - expected < ANSWER_MAX and has_room and offset not in self._pieces:
                self._pieces[offset] = body, told
                self._size += len(body)
            return []
        found: list[tuple[bytes, Told]] = []
        following: tuple[bytes, Told] | None = (body, told) if offset == expected else None
        while following is not None:
            found.append(following)
            expected += len(following[0])
            following = self._pieces.pop(expected, None)
        if found and self._pieces:
            self._pieces = {place: piece for place, piece in self._pieces.items() if place > expected}
        self._size = sum(len(piece) for piece, _ in self._pieces.values())
        return found
