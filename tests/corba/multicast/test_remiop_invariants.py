"""ReMIOP in thousands of bad networks, and with each of its rules broken once: see `remiop_world`."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from inga.corba.multicast.acks import Acknowledged
from inga.corba.multicast.fragments import Piece
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.reported import Stream
from inga.corba.wire.miop import ControlPacket
from inga.layers.shape import Faults
from inga.model.packet import Packet

from .remiop_world import Setting, World, found

SAMPLE = 100
ALL = 20_000
PARTS = 20


@pytest.mark.parametrize("part", range(2))
def test_a_sample_of_worlds(part: int) -> None:
    for seed in range(part, SAMPLE, 2):
        World(Setting.of(seed)).run()


@pytest.mark.hunt
@pytest.mark.parametrize("part", range(PARTS))
def test_all_worlds(part: int) -> None:
    for seed in range(part, ALL, PARTS):
        World(Setting.of(seed)).run()


@pytest.mark.parametrize("od", [0, 1])
def test_no_member_repairs_more_often_than_the_omission_degree(od: int) -> None:
    exceeded = 0
    for seed in range(20):
        world = World(Setting.of(seed, od=od), repeats=8, on_gap="skip")
        world.run()
        exceeded += sum(stack.counts["od_exceeded"] for stack in world.stacks)
    assert exceeded


def test_acknowledgements_do_as_well() -> None:
    for seed in range(40):
        World(Setting.of(seed), Acknowledged).run()


def test_the_worlds_are_worth_judging() -> None:
    kinds: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for seed in range(20):
        world = World(Setting.of(seed))
        world.run()
        kinds += world.kinds
        for stack in world.stacks:
            counts.update(stack.counts)
    assert min(kinds["data"], kinds["repair"], kinds["nack"], kinds["state"]) > 25
    assert min(counts["nack_suppressed"], counts["repair_suppressed"], counts["repair_of_others"]) > 5


def spared(strategy: type[ReMiop]) -> tuple[int, int]:
    """Requests and repairs that were not needed, since another's came first: of five who hear each other within a millisecond,
    and wait for fifty at most."""
    counts: Counter[str] = Counter()
    near = Faults(loss=0.2, delay_min=0.001, delay_max=0.001)
    for seed in range(4):
        world = World(Setting.of(seed, n=5, faults=near, tnack=0.05, trepair=0.05), strategy)
        world.run()
        for stack in world.stacks:
            counts.update(stack.counts)
    return counts["nack_suppressed"], counts["repair_suppressed"]


def test_those_who_wait_by_chance_are_spared_what_others_say(strategy: type[ReMiop] = ReMiop) -> None:
    requests, repairs = spared(strategy)
    assert requests > 20 and repairs > 100


class Together(ReMiop):
    """All wait for the longest time."""

    def _chance(self, limit: float) -> float:
        return limit


class AtOnce(ReMiop):
    """Nobody waits."""

    def _chance(self, limit: float) -> float:
        return 0.0


@pytest.mark.parametrize("broken", [Together, AtOnce])
def test_those_who_do_not_wait_by_chance_are_noticed(broken: type[ReMiop]) -> None:
    with pytest.raises(AssertionError):
        test_those_who_wait_by_chance_are_spared_what_others_say(broken)


# Broken rules: each must be found by the judge


class NoRequests(ReMiop):
    """Nobody asks for anything."""

    def _request(self, stream: Stream, numbers: Iterable[int]) -> None:
        pass


class NoSuppression(ReMiop):
    """Another's NACK is no reason to leave out one's own."""

    def _suppress(self, stream: Stream, number: int) -> None:
        pass


class NoRepairSuppression(ReMiop):
    """Another's repair is no reason to leave out one's own."""

    def _receive(self, packet: Packet, piece: Piece) -> bool:
        kept = self._repairs
        self._repairs = type(kept)()
        try:
            return super()._receive(packet, piece)
        finally:
            self._repairs = kept


class NoRepetition(ReMiop):
    """What was asked for once is not asked for again."""

    def _was_asked(self, stream: Stream, numbers: Iterable[int]) -> None:
        pass


class NoTail(ReMiop):
    """Reports show nothing that was lost."""

    def _hear_report(self, control: ControlPacket) -> None:
        settings = self._settings
        self._settings = replace(settings, tail=False)
        super()._hear_report(control)
        self._settings = settings


class OnlyTheSender(ReMiop):
    """Nobody repairs for others. That works, as long as the sender does: it is not to be found here."""

    keeps = False


class Reencoded(ReMiop):
    """A repair that says of itself that it is one."""

    def _repair(self, due: Iterable[tuple[int, int]]) -> None:
        due = list(due)
        for sender, number in due:
            stream = self._streams.get(sender)
            packet = None if stream is None else stream.buffer.get(number)
            if packet is not None:
                body = bytearray(packet.body)
                body[5] |= 0x40
                packet.body = bytes(body)
        super()._repair(due)


class OneRepairMore(ReMiop):
    """`nacks <= Od + 1`."""

    def _promise(self, packet: Packet) -> None:
        settings = self._settings
        od = settings.od
        self._settings = replace(settings, od=None if od is None else od + 1)
        super()._promise(packet)
        self._settings = settings


class Boaster(ReMiop):
    """Reports the highest number that came instead of the highest without a hole before it."""

    def _report(self) -> list[tuple[int, int]]:
        return self._ourselves() + [(s.sender, s.known) for s in self._streams.values() if s.known]


class WrongBase(ReMiop):
    """A packet's number is taken to be that of its place alone."""

    def _receive(self, packet: Packet, piece: Piece) -> bool:
        packet.lsn = piece.index + 1
        return super()._receive(packet, piece)


class FirstHeard(ReMiop):
    """What a member sent before it was first heard is not asked for, though everybody was there."""

    def _new_stream(self, sender: int, member: int, baseline: int) -> Stream:
        stream = super()._new_stream(sender, member, baseline)
        if not self.stack.now:
            del self._streams[sender]
        return stream

    def _stream_of(self, packet: Packet, piece: Piece) -> Stream | None:
        if piece.sender not in self._streams:
            self._streams[piece.sender] = Stream(piece.sender, packet.src, piece.base, self.size)
        return super()._stream_of(packet, piece)


class Outruns(ReMiop):
    """Sends on, whatever the others have."""

    def _has_room(self) -> bool:
        return True


SMALL = {"size": 4}


MUTATIONS: dict[type[ReMiop], tuple[str, dict[str, Any]]] = {
    NoRequests: ("10", {}),
    NoSuppression: ("7", {}),
    NoRepairSuppression: ("4", {}),
    NoRepetition: ("10", {}),
    NoTail: ("10", {}),
    Reencoded: ("2", {}),
    OneRepairMore: ("5", {"od": 0}),
    Boaster: ("8", {}),
    WrongBase: ("6", {}),
    FirstHeard: ("10", {}),
    Outruns: ("3", SMALL),
}
"""Which invariant finds it, and in which worlds."""


@pytest.mark.parametrize("broken", MUTATIONS)
def test_mutation(broken: type[ReMiop]) -> None:
    rule, fixed = MUTATIONS[broken]
    options = {"repeats": 8, "on_gap": "skip"} if "od" in fixed else {}
    message = found(broken, range(120), options, **fixed)
    assert message is not None and message.startswith(rule), message


def test_only_the_sender_repairs_is_no_fault_of_delivery() -> None:
    assert found(OnlyTheSender, range(12)) is None
    repairs: Counter[str] = Counter()
    for strategy in (ReMiop, OnlyTheSender):
        for seed in range(12):
            world = World(Setting.of(seed), strategy)
            world.run()
            repairs[strategy.__name__] += sum(stack.counts["repair_of_others"] for stack in world.stacks)
    assert repairs["ReMiop"] > 20 > repairs["OnlyTheSender"] == 0
