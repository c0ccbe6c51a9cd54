"""States in pieces: how large they are, how many are asked for at once, and what becomes of those that come early.

A newcomer asks for some pieces, and once the last of them has come for the next ones. How many is found out as it goes:
each question whose answer came without being repeated is followed by one for twice as many, one that had to be repeated by
one for half. So a state crosses a network with long delays in few round trips, also in small datagrams, and where much is lost, or
somebody's buffers are short, little is sent in vain. A question is repeated after twice the time that the last one took.

Rejected: so many pieces always. Eight of the smallest are two kilobytes for each round trip.
"""

from inga.model.compiled import mypyc_attr
from inga.session.alarms import Backoff
from inga.stack.stack import Rng, Stack
from inga.wire.told import Told

AGAIN, AGAIN_MAX = 0.02, 0.5
"""Seconds before a question is repeated: first, and after doubling."""

PIECE, HEAD = 16 * 1024, 512
"""Octets of a piece, at most, and reckoned for what goes with it; of a small packet at most half."""

PIECE_MIN = 64
"""Octets of a piece at least, however small packets are."""

PIECES = 8
"""Pieces for the first question, and for each at least."""

ANSWER_MAX = PIECES * PIECE
"""Octets for one question at most: what buffers of sockets hold without more ado."""

PIECES_MAX = ANSWER_MAX // PIECE_MIN
"""Pieces for one question at most."""


def piece_size(stack: Stack) -> int:
    """Octets of a state that one packet carries: if they took more, each loss would cost all of them."""
    packet_max = stack.chain.hook("packet_max")
    room = stack.wire.body_max if packet_max is None else packet_max()
    return max(min(PIECE, room - min(HEAD, room // 2)), PIECE_MIN)


def answer_size(pieces: int, size: int) -> int:
    """Octets of an answer to a question for so many pieces of that size."""
    return min(pieces * size, ANSWER_MAX)


def note_state(stack: Stack, giver: int, octets: int, of: str) -> None:
    """A trace says that a state has come."""
    if stack.trace is not None:
        stack.trace.row("state", stack.now, stack.view.number, peer=giver, n=octets, note=of)


@mypyc_attr(allow_interpreted_subclasses=True)
class FetchPace:
    """How a newcomer asks for one state."""

    def __init__(self) -> None:
        self._pieces = PIECES
        self._is_open = False  # not all has come that was asked for last
        self._is_repeated = False  # that was
        self._asked_at: float | None = None  # since when nothing has come
        self._again = Backoff(AGAIN, AGAIN_MAX)

    def ask(self, now: float) -> int:
        """A question leaves: for how many pieces."""
        self._is_repeated = self._is_open
        if self._is_open:
            self._pieces = max(self._pieces // 2, PIECES)
        self._is_open = True
        if self._asked_at is None:
            self._asked_at = now
        return self._pieces

    def wait(self, rng: Rng) -> float:
        """Seconds before it is repeated, unless something comes."""
        return self._again.next(rng)

    def came(self, now: float, *, is_last: bool) -> None:
        """Something new came, perhaps the last piece that we have asked for."""
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
    """Pieces of a state that came before their turn: a network may deliver those of one question in any order."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[bytes, Told]] = {}  # by their places
        self._size = 0

    def in_turn(self, expected: int, offset: int, body: bytes, told: Told) -> list[tuple[bytes, Told]]:
        """The pieces whose turn it is now that this one has come, where the next one expected begins there."""
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
