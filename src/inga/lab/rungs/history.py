"""Message history: a message carries the ids of all messages that precede it, and waits for these.

This is exact, but stamps grow without bound. If the list has the destinations, a receiver knows which of the listed messages are
for it; without them (`history-blind`) it waits for ever for messages that were never sent to it.
"""

from inga.lab.rungs.rung import Rung, Waiting, is_count, need
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View

HISTORY_MAX = 20_000
"""The number of messages after which a group with history gives up: each send would list them all."""

Id = tuple[int, int]
"""(sender, number)"""

Past = dict[Id, frozenset[int] | None]
"""Ids, each with its destinations; None means all but the sender."""


class History(Rung[Past]):
    """Stamps list the messages that the application has taken or sent; the test considers the released ones."""

    name = "history"
    provides = frozenset({"fifo", "causal"})

    def view(self, view: View) -> None:
        super().view(view)
        self._past: Past = {}  # all messages sent or taken here, and those that precede them
        self._pasts: dict[Id, Past] = {}  # the stamps of messages released and not yet taken
        self._released: set[Id] = set()

    def taken(self, packets: list[Packet]) -> None:
        super().taken(packets)
        for packet in packets:
            past = self._pasts.pop((packet.src, packet.seq), None)
            if past is not None:
                self._past |= past
                self._past[packet.src, packet.seq] = _audience(packet)

    def state_text(self) -> str:
        return "knows " + self._ids(self._past)

    def _stamp(self, packet: Packet) -> list[int]:
        numbers = []
        for (src, seq), audience in self._past.items():
            numbers += [src, seq, *self._put_audience(audience)]
        self._past[packet.src, packet.seq] = _audience(packet)
        if len(self._past) > HISTORY_MAX:
            self.stack.fail(
                UsageError(
                    f"a history of {HISTORY_MAX} messages in each message is enough: use order='causal'"
                )
            )
        return numbers

    def _read(self, packet: Packet, numbers: list[int]) -> Past:
        past: Past = {}
        members, at = len(self.stack.view), 0
        while at < len(numbers):
            src, seq = numbers[at], numbers[at + 1] if at + 1 < len(numbers) else 0
            need(src < members and is_count(seq), f"message {seq} of member {src}")
            past[src, seq], at = self._get_audience(numbers, at + 2)
        return past

    def _show(self, stamp: Past) -> str:
        return "after " + self._ids(stamp)

    def _ids(self, past: Past) -> str:
        return ", ".join(f"{self._name(src)}{seq}" for src, seq in sorted(past)) or "–"

    def _passes(self, waiting: Waiting[Past]) -> bool:
        return all(
            cause in self._released
            for cause, audience in waiting.stamp.items()
            if self._is_awaited(cause, audience)
        )

    def _count(self, waiting: Waiting[Past]) -> None:
        packet = waiting.packet
        self._released.add((packet.src, packet.seq))
        self._pasts[packet.src, packet.seq] = waiting.stamp

    def _is_awaited(self, cause: Id, audience: frozenset[int] | None) -> bool:
        me = self.stack.me
        return cause[0] != me and (audience is None or me in audience)

    def _put_audience(self, audience: frozenset[int] | None) -> list[int]:
        return [0] if audience is None else [len(audience), *sorted(audience)]

    def _get_audience(self, numbers: list[int], at: int) -> tuple[frozenset[int] | None, int]:
        need(at < len(numbers), "no destinations")
        size = numbers[at]
        end = at + 1 + size
        audience = frozenset(numbers[at + 1 : end])
        need(len(audience) == size and max(audience, default=0) < len(self.stack.view), "odd destinations")
        return audience or None, end


class HistoryBlind(History):
    """The list has no destinations, so a message waits for every listed one."""

    name = "history-blind"

    def _is_awaited(self, cause: Id, audience: frozenset[int] | None) -> bool:
        return cause[0] != self.stack.me

    def _put_audience(self, audience: frozenset[int] | None) -> list[int]:
        return []

    def _get_audience(self, numbers: list[int], at: int) -> tuple[frozenset[int] | None, int]:
        return None, at


def _audience(packet: Packet) -> frozenset[int] | None:
    if packet.dst is None:
        return None
    return frozenset(member for member in range(packet.dst.bit_length()) if packet.dst >> member & 1)
