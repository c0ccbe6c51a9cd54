"""Sender-initiated repair over MIOP: the sender repeats packets that some member has not acknowledged.

    send      keep the packet and send it; after a timeout, send again packets that some member has not acknowledged
    receive   pass on new packets; acknowledge within `ack_delay`, duplicates, too: their sender lacks the acknowledgement

An alternative to `remiop`, and simpler: no requests, no rate, no repair by other members. It has to know the members,
and every receiver acknowledges all packets it gets. An acknowledgement is a STATE of ReMIOP, which contains
just what is needed: up to which number nothing is missing.
"""

from dataclasses import dataclass
from typing import Any, Final

from inga.corba.multicast import reported
from inga.corba.multicast.fragments import STRANGER, Piece
from inga.corba.multicast.reported import Reported
from inga.corba.wire.miop import STATE, ControlPacket
from inga.layers.numbers import check_delay, check_number, check_seconds
from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.packet import DATA, Packet
from inga.model.view import View
from inga.session.alarms import Alarms, Backoff
from inga.session.pressure import unread_in

PATIENCE: Final = 60.0
"""Seconds without a packet of an incomplete message after which receivers check whether its sender has left. If not, they go on waiting:
the sender repeats the missing packets."""

_ACKNOWLEDGE, _REPEAT = (0, 0), (1, 0)


@mypyc_attr(native_class=False)
@dataclass(frozen=True)
class AcknowledgedSettings(reported.ReportedSettings):
    """The settings of `acks`. Times are in seconds."""

    # The first timeout before packets are repeated; longer if twice the recent delay until all members acknowledge a packet is longer.
    resend: float = 0.05
    resend_max: float = 1.0  # the longest timeout, up to which it doubles
    ack_delay: float = 0.005  # how long an acknowledgement waits for further packets
    burst: int = 64  # packets repeated at once

    def __post_init__(self) -> None:
        said: Any = self  # values from the caller, of any type
        super().__post_init__()
        check_seconds("resend", said.resend)
        check_seconds("resend_max", said.resend_max)
        check_delay("ack_delay", said.ack_delay)
        check_number("burst", said.burst, 1, 1 << 16)
        if not said.wait:
            raise UsageError("acks wait for the members: wait=0 goes with remiop only")


@mypyc_attr(allow_interpreted_subclasses=True)
class Acknowledged(Reported[AcknowledgedSettings]):
    """Acknowledges packets of others, and repeats its own until all members have acknowledged them."""

    name = "acks"
    provides = frozenset({"reliable", "flow"})
    keeps = False  # members repair only their own packets
    patience = PATIENCE
    settings = AcknowledgedSettings

    def view(self, view: View) -> None:
        self._alarms = Alarms()
        self._resending = Backoff(self._settings.resend, self._settings.resend_max)
        self._left_at: dict[int, float] = {}  # when packets left that were sent only once
        self._round = 0.0  # seconds until all members have acknowledged a packet, smoothed
        super().view(view)
        if self.is_public:
            raise UsageError("acks need to know the members: use remiop where anybody may speak")

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        return self._alarms.next

    def tick(self, now: float) -> None:
        for alarm in self._alarms.due(now):
            if alarm == _ACKNOWLEDGE:
                self._acknowledge()
            else:
                self._repeat(now)
        self._pump()

    def goodbye(self) -> None:
        super().goodbye()
        self._alarms = Alarms()

    def awaits(self, sender: int, number: int) -> bool:
        """Whether a missing packet may still arrive, however long nothing does: we have not acknowledged it, so its sender repeats it until
        it leaves."""
        stream = self._streams.get(sender)
        return stream is not None and number > stream.stable and stream.member not in self.stack.left

    # As a sender

    def _left(self, since: float, packet: Packet) -> None:
        self._left_at[packet.lsn] = self.stack.now
        if _REPEAT not in self._alarms:
            self._wait_again()

    def _wait_again(self) -> None:
        self._resending.first = max(self._settings.resend, min(2 * self._round, self._settings.resend_max))
        self._alarms.set(_REPEAT, self.stack.now + self._resending.start())

    def _repeat(self, now: float) -> None:
        batch = []
        for number in range(
            self._everywhere + 1, min(self._last, self._everywhere + self._settings.burst) + 1
        ):
            self.sends_again(self.stack.me, number)
            self._left_at.pop(number, None)  # an acknowledgement does not say which copy it is for
            packet = self._own[number]
            packet.kind = DATA  # a repair is counted as data, whatever packet it repairs
            batch.append(packet)
        self._alarms.set(_REPEAT, now + self._resending.next(self.stack.rng))
        self.below(batch)

    def _settle(self) -> None:
        before = self._everywhere
        super()._settle()
        for number in range(before + 1, self._everywhere + 1):
            left_at = self._left_at.pop(number, None)
            if left_at is not None:
                self._round += (self.stack.now - left_at - self._round) / 8
        if self._everywhere >= self._last:
            self._alarms.clear(_REPEAT)
        elif self._everywhere > before:
            self._wait_again()

    # As a receiver

    def _hear(self, control: ControlPacket) -> None:
        if control.kind == STATE:
            for sender, number in control.entries:
                if sender == self.miop.sender:
                    self._told_of_us(control.sender, number)

    def _receive(self, packet: Packet, piece: Piece) -> bool:
        if piece.sender == self.miop.sender:
            return False
        stream = self._stream_of(packet, piece)
        if stream is None:
            return packet.src == STRANGER  # no number, or not of a member: plain MIOP, passed on
        self._alarms.sooner(_ACKNOWLEDGE, self.stack.now + self._settings.ack_delay)
        return self._take_in(stream, packet)

    def _acknowledge(self) -> None:
        self._alarms.clear(_ACKNOWLEDGE)
        self._say(STATE, self._report()[len(self._ourselves()) :])

    def taken(self, packets: list[Packet]) -> None:
        stood_still = self._unread.behind and not self.stack.leaving
        if stood_still and not self._unread.is_behind(unread_in(self.stack)):
            self._acknowledge()
