"""Every named bound of the protocol rooms, and how to get to it.

A row is a question with a number in it: can there be so many? It answers yes or no by doing it, with real stacks,
layers and decoders; an error that is meant for a person or counted as a datagram's is a no, any other is a failure.
At the bound the answer is yes, one step beyond it is no. Bounds that are a least have their step below.
"""

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, product
from random import Random
from typing import Any

from inga.causality.inbox import Inbox
from inga.corba.broker.call import OutgoingCall, ways
from inga.corba.broker.dispatch import _PASS_ON, Broker, _detail_context, detail_of
from inga.corba.broker.idl import SystemException, interface
from inga.corba.broker.naming import OVERHEAD, InvalidName, NameComponent, NameService
from inga.corba.dissect import pcap
from inga.corba.multicast import reported
from inga.corba.multicast.fragments import QUAD_NET, MiopFragments, MiopPackets, Piece, Reassembly, quad_of
from inga.corba.multicast.rate import Rate
from inga.corba.multicast.remiop import ReMiop
from inga.corba.wire import giop, group_request, miop, reference
from inga.corba.wire.framing import Framer
from inga.corba.wire.giop import KeyAddr, Reply, Request, Status, Tagged
from inga.corba.wire.group_request import encode_request
from inga.corba.wire.reference import GroupIdentity as ObjectGroup
from inga.corba.wire.reference import Reference, encode_uipmc, group_reference, put_reference
from inga.lab.rungs.history import History
from inga.layers.bundle import Bundle
from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import CoMessage, CoNack, CoSettings, SentAgain
from inga.layers.fifo import Unordered, Unreliable
from inga.layers.flow import Flow, share_of
from inga.layers.fragment import Fragment, LossyFragment
from inga.layers.lending import deal
from inga.layers.reliable import Reliable
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.parts import ScoMessage
from inga.model.errors import UsageError, WireError
from inga.model.invocation import Message, Nack, SendId, StartId
from inga.model.packet import Packet
from inga.model.view import Member, View
from inga.net.options import complete
from inga.objects.declare import ObjectClass, method
from inga.objects.engine import Engine
from inga.objects.hosted import remember
from inga.objects.invoke import Host
from inga.objects.layer import ObjectOrder
from inga.objects.links import Links
from inga.objects.options import EngineOptions
from inga.objects.order import Clock
from inga.objects.roster import Pairs, Roster
from inga.recipes import Options, find
from inga.secure.guard import GroupGuard
from inga.secure.handshake import ANSWER, PROOF, Other, PairKeys
from inga.secure.sealing import AES, Forged, derive
from inga.secure.shares import SupplyOfEach
from inga.session.alarms import Alarms
from inga.session.closing import Cut
from inga.session.door import _Caller
from inga.session.gathering import Gathering
from inga.session.hearing import ADDRESSES, Hearing
from inga.session.history import EACH, LastMessages
from inga.session.newcomer import Newcomer
from inga.session.pieces import EarlyPieces, FetchPace
from inga.session.session import Session
from inga.stack.backlog import Backlog
from inga.stack.hooks import Lack
from inga.stack.layer import Layer
from inga.stack.native import Outsider
from inga.stack.places import Places
from inga.stack.stack import EVERYBODY, Stack, joined
from inga.wire import bundle, invocation, row, value, varint
from inga.wire.packet import HEAD, decode, encode
from inga.wire.sequence import get_runs, put_runs
from inga.wire.told import Told, said

from ..secure.helpers import known, word
from ..secure.helpers import view_of as secure_view_of
from ..session.town import Town, of_session
from ..stack.harness import NAMES, Net, Probe, Top, resealed

Attempt = Callable[[int], bool]

BOUNDS: dict[str, Attempt] = {}
"""By `room.module.NAME`."""

LEASTS: dict[str, Attempt] = {}
"""The same, of the least that is possible."""

REFUSED = (UsageError, WireError, SystemException, InvalidName)
"""How things are refused: for a person, or to be counted."""


def bound(*names: str, least: bool = False) -> Callable[[Attempt], Attempt]:
    """The attempt at a bound, or at several that are the same."""

    def enter(attempt: Attempt) -> Attempt:
        for name in names:
            (LEASTS if least else BOUNDS)[name] = attempt
        return attempt

    return enter


# stack and session


@bound("stack.native.AHEAD_MAX")
def datagrams_of_the_next_view(n: int) -> bool:
    net = Net(2)
    data = joined(encode(Packet(1, net.view.number + 1, b"early"), net.stacks[0].group))
    net.inject(0, *[data] * n)
    assert net.stacks[0].counts["ahead"] == n
    return len(net.stacks[0].wire.ahead) == n


@bound("stack.backlog.SOURCE_BYTES_MAX")
def octets_of_one_source_that_come_too_early(n: int) -> bool:
    backlog = Backlog(100)
    return backlog.keep(bytes(n - 10), 1, None) and backlog.keep(bytes(10), 1, None)


@bound("stack.backlog.BYTES_MAX")
def octets_that_come_too_early(n: int) -> bool:
    backlog = Backlog(100)
    return all(
        backlog.keep(bytes(n // 8 + (n % 8 if source == 7 else 0)), source, None) for source in range(8)
    )


@bound("session.hearing.SOURCES_MAX")
def addresses_that_are_remembered(n: int) -> bool:
    hearing = Hearing()
    for address in range(n):
        hearing.hears_from(address, address / ADDRESSES)
    return len(hearing._sources) == n


@bound("stack.native.PAST_MAX")
def closed_views_that_are_remembered(n: int) -> bool:
    wire = Net(2).stacks[0].wire
    for tag in range(n):
        wire.tag = tag
        wire.close(replace(wire.stack.view, number=tag))
    return len(wire.past) == n


class Lacking(Layer):
    """Has joined, and has no state yet."""

    name = "lacking"
    provides = frozenset({"reliable"})

    def lacks(self) -> dict[str, Lack]:
        return {"all": Lack([1], [], 0)}


@bound("session.handover.STATE_MAX")
def octets_of_a_state(n: int) -> bool:
    net = Net(2, build=lambda: [Bundle(), Unordered(), Lacking(), Session()])
    packet = Packet(1, 1, b"the first of them", kind=Session.id)
    packet.ext = said("piece", topic="all", offset=0, total=n, ask=False)
    net.inject(0, joined(encode(packet, net.stacks[0].group)))
    return not net.stacks[0].rejected


@bound("session.pieces.ANSWER_MAX")
def octets_of_pieces_before_their_turn(n: int) -> bool:
    early, told = EarlyPieces(), Told({})
    early.in_turn(0, 2, bytes(n - 1), told)
    early.in_turn(0, 1, b".", told)
    return len(early.in_turn(0, 0, b".", told)) == 3


@bound("session.pieces.PIECES_MAX")
def pieces_for_one_question(n: int) -> bool:
    pace, asked = FetchPace(), 0
    while asked < n:
        before, asked = asked, pace.ask(0.0)
        if asked == before:
            return False
        pace.came(0.0, is_last=True)
    return True


@bound("session.history.HISTORY_MAX")
def octets_of_the_last_messages(n: int) -> bool:
    stack = Net(2).stacks[0]
    session = stack.layer("session")
    assert isinstance(session, Session)
    last = LastMessages(2, stack.view, session.transfer)
    last.sent("alice", 0, 1, [b"." * (n - EACH)], 0.0)
    return len(last) == 1


@bound("session.parts.LOST_MAX")
def members_that_are_remembered_as_lost(n: int) -> bool:
    stack = Net(2).stacks[0]
    session = stack.layer("session")
    assert isinstance(session, Session)
    session.parts.view(replace(stack.view, failed=tuple(map(str, range(n)))))
    return len(session.parts._lost) == n


@bound("stack.hooks.SPREAD_MAX")
def packets_of_one_that_is_gone_that_a_member_lacks(n: int) -> bool:
    return deal({0: [], 1: [[1, n + 1, 0]]}) == {0: [[1, 1, n + 1]], 1: []}


@bound("session.door.NAME_MAX")
def characters_of_a_newcomers_name(n: int) -> bool:
    town = Town(2)
    newcomer = town.knock("x" * n)
    town.wait(1.0)
    return newcomer.refused is None and len(town.member("alice").view) == 3


@bound("session.door.AT_ONCE_BYTES")
def bytes_that_newcomers_add_to_the_words_of_one_change(n: int) -> bool:
    town = Town(2)
    door = town.changes("alice")._door
    each = len(said("", all=[*4 * ["x"], "", ""]))
    for name, wants in (("x", ""), ("y", "w" * (n - 2 * each))):
        door._waiting[Member(name, 1)] = caller = _Caller(town.now, 0.0)
        caller.wants = wants
    return len(door.newcomers()) == 2


@bound("session.newcomer.BACKLOG_MAX")
def datagrams_kept_for_a_newcomer(n: int) -> bool:
    newcomer = Newcomer("", Member("dave", 1), now=0.0)
    newcomer.receive([(joined(encode(Packet(1, 7, b"early"), 0)), None)] * n, now=0.0)
    return len(newcomer.backlog) == n


@bound("stack.places.PLACES_MAX")
def places_that_are_remembered(n: int) -> bool:
    places = Places()
    for number in range(n):
        places.learn(f"host:{number}")
    return len(list(places)) == n


@bound("stack.places.PLACE_MAX")
def characters_of_a_place(n: int) -> bool:
    return Places().learn("x" * n)


@bound("session.gathering.FACES_MAX")
def others_without_a_view_that_are_remembered(n: int) -> bool:
    gathering = Gathering(0.0)
    for number in range(n):
        gathering.saw(Member("alice", 1), Member("bob", number), None, 0.0)
    return len(gathering._faces) == n


@bound("session.slow.MISSED_MAX")
def slow_members_of_whom_it_is_known_what_they_missed(n: int) -> bool:
    session = Net(2).stacks[0].layer("session")
    assert isinstance(session, Session)
    session.slow._missed = {f"slow {number}": Counter() for number in range(n)}
    session.slow.count(Cut(1, [0, 0], [0, 0], [0, 0], {}, [0, 0], {}, [], [], []))
    return len(session.slow._missed) == n


@bound("session.pressure.WAITS_MAX")
def members_of_whom_it_is_known_how_long_they_were_waited_for(n: int) -> bool:
    session = Net(2).stacks[0].layer("session")
    assert isinstance(session, Session)
    session.pressure._waits = {f"slow {number}": 2.0 for number in range(n)}
    return len(session.pressure.waits) == n


@bound("session.presence.GOODBYES_MAX")
def goodbyes_to_nobody_who_answers(n: int) -> bool:
    net = Net(2)
    net.send(1, b"here")
    net.settle()
    net.stacks[0].goodbye(now=net.now)
    net.turn(0)
    net.wait(1e6, lambda flight: flight.target == 1)
    assert net.wake[0] is None
    return sum(b"goodbye" in flight.data for flight in net.log) >= n


@bound("session.presence.NAMES_MAX")
def members_that_a_greeting_lists(n: int) -> bool:
    view = View.of(*[f"m{k}" for k in range(n)])
    stack = Stack(find("none").build(Options(greet=True)), 0, view, rng=Random(0))
    stack.tick(0.0)
    texts = [bytes(joined(data)) for _, data in stack.ready().send]
    told = json.loads(texts[0][texts[0].index(b"{") : -4])
    return bool(told["members"] == list(view.names))


@bound("session.presence.DIFFERENCES_MAX")
def strangers_of_whom_a_person_is_told(n: int) -> bool:
    net = Net(2)
    for k in range(n):
        what = {"name": f"s{k}", "group": "0", "asks": False, "order": "co", "members": [], "bases": {}}
        net.inject(0, of_session(1, 0, said("here", **what)))
    return len(net.notices) == n


@bound("session.pressure.ASKS_MAX")
def questions_about_a_member_that_is_silent(n: int) -> bool:
    net = Net(2, options=Options(flow={"window": 500}))
    net.send(0, b"one")
    assert not net.stacks[0].writable
    net.wait(1e4, lambda flight: True)
    return sum(b'"who"' in flight.data for flight in net.log) >= n


@bound("session.alarms.WAIT_MAX")
def times_the_first_wait(n: int) -> bool:
    alarms, waits = Alarms(), []
    for _ in range(20):
        alarms.again((0, 0), 0.0, 1.0)
        waits.append(alarms.next or 0.0)
        assert list(alarms.due(1e9)) == [(0, 0)]
    return max(waits) >= n


# layers: between application and order


@bound("layers.bundle.MESSAGES_MAX")
def messages_in_a_bundle(n: int) -> bool:
    probe = Probe(Bundle())
    probe.stack.bind([Bundle(), probe.bottom])
    probe.stack.layers[0].view(probe.stack.view)
    probe.stack.send_many([b""] * n, now=0.0)
    probe.stack.ready()
    assert sum(packet.count for packet in probe.bottom.sent) == n
    return len(probe.bottom.sent) == 1


@bound("layers.bundle.MESSAGE_BYTES_MAX")
def bytes_of_a_message(n: int) -> bool:
    probe = Probe(Bundle())
    probe.stack.bind([Bundle(), probe.bottom])
    probe.stack.layers[0].view(probe.stack.view)
    probe.stack.send(bytes(n), now=0.0)
    probe.stack.ready()
    return len(probe.bottom.sent[0].body) == n + 1


def packets(n: int, first: int = 1, **slots: Any) -> list[Packet]:
    found = []
    for number in range(first, first + n):
        packet = Packet(1, 1, b"x")
        packet.seq = packet.lsn = number
        for name, each in slots.items():
            setattr(packet, name, each)
        found.append(packet)
    return found


@bound("layers.fifo.EARLY_MAX")
def numbers_remembered_where_nothing_is_repaired(n: int) -> bool:
    layer = Unreliable()
    probe = Probe(layer)
    assert len(probe.feed(*packets(n, first=2))) == n
    return layer._arrived[1].expected == 1


@bound("layers.fragment.ASSEMBLIES_MAX")
def unfinished_packets(n: int) -> bool:
    layer = Fragment()
    Probe(layer).feed(*packets(n, frag=(0, 2)))
    return len(layer._assemblies[1]) == n


@bound("layers.fragment.LOSSY_MAX")
def unfinished_packets_where_nothing_is_repaired(n: int) -> bool:
    layer = LossyFragment()
    Probe(layer).feed(*packets(n, frag=(0, 2)))
    return len(layer._assemblies[1]) == n


@bound("layers.flow.PACKETS_MAX")
def packets_on_their_way(n: int) -> bool:
    probe = Probe(Flow(window=1 << 40))
    for _ in range(n):
        if probe.stack.writable:
            probe.stack.send(b"", now=0.0)
    return len(probe.bottom.sent) == n


@bound("layers.flow.WINDOW_MAX")
def bytes_of_a_window(n: int) -> bool:
    return share_of(n, 2) == n


@bound("layers.flow.WINDOW_MIN", least=True)
def least_bytes_of_a_window(n: int) -> bool:
    return share_of(n, 2) == n


@bound("layers.reliable.LSN_WINDOW")
def packets_after_a_hole(n: int) -> bool:
    probe = Probe(Reliable())
    came = probe.feed(*packets(1, first=n))
    assert came or probe.stack.rejected["lsn"] == 1
    return bool(came)


# layers: CO and SCO


@bound("layers.co.parts.AHEAD_MAX")
def messages_ahead_in_co(n: int) -> bool:
    machine = CoMachine(0, 3)
    return machine.receive(CoMessage(1, n, (1, n, 1), None, 1))


@bound("layers.co.parts.WINDOW_MAX")
def window_of_co(n: int) -> bool:
    return CoSettings(window=n).window == n


@bound("layers.co.machine.REPAIRS_MAX")
def messages_that_co_sends_again_at_once(n: int) -> bool:
    machine = CoMachine(0, 3, CoSettings(window=4 * n))
    for _ in range(n):
        machine.request(None)
    machine.stages()
    machine.events.clear()
    machine.asked(CoNack(1, ((1, n + 1),), (1, 1, 1), 99))
    again = [event for event in machine.events if isinstance(event, SentAgain)]
    return len(again[0].messages) == n


@bound("layers.sco.ordering.LSN_WINDOW")
def messages_ahead_in_sco(n: int) -> bool:
    return ScoMachine(0, 3).receive(ScoMessage(1, 1, n, n, ())) is None


@bound("layers.sco.talking.SLOWER_MAX")
def how_much_longer_sco_waits_for_slow_answers(n: int) -> bool:
    machine = ScoMachine(0, 3)
    machine._answer_time = 1e6
    return machine._pace(1.0) >= n


# layers: MIOP


def piece(key: int, index: int, count: int) -> Piece:
    return Piece(b"%d" % key, 0, 0, index, count, index == count - 1, 0)


@bound("corba.multicast.fragments.COLLECTIONS_MAX")
def unfinished_messages(n: int) -> bool:
    reassembly = Reassembly(lambda reason: None)
    for key in range(n):
        reassembly.add(piece(key, 0, 2), b"x", 0.0)
    return reassembly.open == n


@bound("corba.multicast.fragments.OCTETS_MAX")
def octets_of_a_message_by_miop(n: int) -> bool:
    reassembly = Reassembly(lambda reason: None)
    half = n // 2
    reassembly.add(piece(1, 0, 2), bytes(half), 0.0)
    return reassembly.add(piece(1, 1, 2), bytes(n - half), 0.0) is not None


@bound("corba.multicast.fragments.RING")
def messages_whose_late_packets_are_known(n: int) -> bool:
    counted: list[str] = []
    reassembly = Reassembly(counted.append)
    for key in range(n):
        assert reassembly.add(piece(key, 0, 1), b"x", 0.0) is not None
    reassembly.add(piece(0, 0, 1), b"x", 0.0)
    return counted == ["dup"]


def in_public(**options: Any) -> tuple[Stack, ReMiop]:
    """A member of a group that anybody may speak in."""
    strategy = ReMiop(**options)
    layers = [Top(), MiopFragments(), strategy, MiopPackets(sender=quad_of(0, 0))]
    return Stack(layers, 0, View.of(*NAMES[:1]), rng=Random(0)), strategy


def spoken_by(sender: int, number: int) -> bytes:
    return miop.split(b"GIOP", miop.numbered_id(sender, number))[0]


@bound("corba.multicast.reported.SENDERS_MAX")
def senders_that_are_followed(n: int) -> bool:
    stack, strategy = in_public()
    stack.receive([(spoken_by(quad_of(1, k), 1), None) for k in range(n)], now=0.0)
    return len(strategy._streams) == n


@bound("corba.multicast.reported.FORMER_MAX")
def senders_of_which_nothing_is_taken_twice(n: int) -> bool:
    stack, _ = in_public()
    top = stack.layers[0]
    assert isinstance(top, Top)
    clients = range(QUAD_NET + 256, QUAD_NET + 256 + reported.SENDERS_MAX + n)
    for client in (*clients, clients[0]):
        stack.receive([(spoken_by(client, 1), None)], now=stack.now + reported.SILENT)
    return len(top.got) == len(clients)


@bound("corba.multicast.reported.NEW_LIFE")
def numbers_that_a_sender_skips(n: int) -> bool:
    stack, _ = in_public()
    sender = quad_of(1, 1)
    stack.receive([(spoken_by(sender, 1), None), (spoken_by(sender, 1 + n), None)], now=0.0)
    return stack.counts["new_life"] == 0


@bound("corba.multicast.reported.WINDOW_MIN", least=True)
def least_packets_of_a_window(n: int) -> bool:
    _, strategy = in_public()
    strategy.fit(n * 2304)  # what the kernel counts for a datagram of MIOP
    return strategy._window == n


@bound("corba.multicast.rate.RATE_MAX")
def bits_a_second(n: int) -> bool:
    return Rate(1, n, 10).fastest == n


# causality


@bound("causality.inbox.PASSED_MAX")
def runs_given_up_that_are_remembered(n: int) -> bool:
    inbox: Inbox[int] = Inbox.for_stream([0])
    out: list[int] = []
    for k in range(n):
        inbox.offer(0, 2 * k + 2, (), k, out)
        inbox.give_up(lambda item: True, out)
    assert len(out) == n
    inbox.offer(0, 1, (), -1, out)
    return out[-1] == -1


# wire: packets


def taken_in(packet: Packet, members: int = 3) -> bool:
    """Whether a packet is read as it was written."""
    return decode(joined(encode(packet, 0)), 0, {1: members}, 0) is not None


@bound("wire.packet.COUNT_MAX")
def packets_that_a_sender_can_number(n: int) -> bool:
    packet = Packet(1, 1, b"x")
    packet.seq = n
    return taken_in(packet)


@bound("wire.runs.RUNS_MAX")
def runs_in_a_request(n: int) -> bool:
    packet = Packet(1, 1, kind=1)
    packet.runs = tuple((2 * k, 2 * k + 1) for k in range(n))
    return taken_in(packet)


@bound("wire.sequence.RUNS_MAX")
def runs_of_places_on_a_packet(n: int) -> bool:
    runs = [(1 + k % 2, k + 1) for k in range(n)]
    return get_runs(put_runs(runs), 3) == runs


@bound("wire.packet.FRAGMENTS_MAX")
def pieces_of_a_packet(n: int) -> bool:
    packet = Packet(1, 1, b"x")
    packet.frag = (0, n)
    return taken_in(packet)


@bound("wire.packet.MESSAGES_MAX")
def messages_that_a_packet_announces(n: int) -> bool:
    packet = Packet(1, 1, b"x")
    packet.count = n
    return taken_in(packet)


@bound("wire.packet.INDEX_MAX")
def members_that_a_header_can_tell_apart(n: int) -> bool:
    source = (n - 1).to_bytes(4, "big")[-2:]
    data = bytearray(joined(encode(Packet(1, 1, b"x"), 0)))
    data[HEAD.size - 10 : HEAD.size - 8] = source
    packet = decode(resealed(data), 0, {1: n}, 1 << 20)
    return packet is not None and packet.src == n - 1


@bound("wire.bundle.MESSAGES_MAX")
def messages_in_a_body(n: int) -> bool:
    return len(bundle.split(bundle.join([b"x"] * n))) == n


@bound("wire.varint.VARINT_MAX")
def the_largest_number(n: int) -> bool:
    return varint.unpack(varint.pack([n])) == [n]


@bound("wire.row.COUNT_MAX")
def the_largest_count_in_a_row(n: int) -> bool:
    out = bytearray()
    row.put(out, (n,))
    return row.get(out, 0)[0] == (n,)


@bound("wire.told.TEXT_MAX")
def characters_of_a_text(n: int) -> bool:
    return len(Told.read(said("x", why="y" * n)).text("why")) == n


@bound("wire.told.LARGE_MAX")
def the_largest_count_that_is_told(n: int) -> bool:
    return Told.read(said("x", first=n)).counts() == {"first": n}


@bound("wire.told.DIGITS_MAX")
def digits_of_a_number_that_is_a_key(n: int) -> bool:
    return Told.read(said("x", of={"7".zfill(n): [[1, 2]]})).tables("of", 2) == {7: [[1, 2]]}


# wire: values


def sent_and_read(what: Any) -> bool:
    """As bytes and back; who reads has the same bounds as who sends."""
    out = bytearray()
    value.put(out, what)
    refusals = 0
    for action in (lambda: value.copied(what), lambda: value.get(out, 0)):
        try:
            action()
        except (UsageError, WireError):
            refusals += 1
    assert refusals in (0, 2), "one side refuses what the other takes"
    return not refusals


@bound("wire.value.DEPTH_MAX")
def values_within_values(n: int) -> bool:
    """Whatever they are nested in."""
    items: Any = 7
    members, values, keys = items, items, items
    for depth in range(n):
        items, members, values = [items], (members,), {"": values}
        keys = (keys,) if depth < n - 1 else {keys: 7}
    (answer,) = {sent_and_read(each) for each in (items, members, values, keys)}
    return answer


@bound("wire.value.NUMBER_BYTES_MAX")
def bytes_of_a_number(n: int) -> bool:
    return sent_and_read((1 << 8 * n) - 1)


@bound("wire.value.OTHER_KEYS_MAX")
def keys_that_may_collide(n: int) -> bool:
    return sent_and_read(dict.fromkeys(range(n)))


# wire: MIOP


@bound("corba.wire.miop.ID_MAX")
def octets_of_a_unique_id(n: int) -> bool:
    return len(miop.decode(miop.encode(b"i" * n, 0, 1, b"payload")).unique_id) == n


@bound("corba.wire.miop.COUNT_MAX")
def fragments_of_a_message(n: int) -> bool:
    return miop.decode(miop.encode(b"id", 0, n, b"payload")).count == n


@bound("corba.wire.miop.ENTRIES_MAX")
def entries_of_a_control_packet(n: int) -> bool:
    entries = tuple((quad_of(1, k), k) for k in range(n))
    if n <= miop.ENTRIES_MAX:
        data = miop.encode_control(miop.ControlPacket(miop.STATE, quad_of(1, 0), entries))
    else:  # as somebody else might
        one = bytearray(miop.encode_control(miop.ControlPacket(miop.STATE, quad_of(1, 0), entries[:-1])))
        at = one.index((n - 1).to_bytes(4, "big"), miop.HEADER)
        one[at : at + 4] = n.to_bytes(4, "big")
        data = bytes(one)
    assert len(data) <= 1472
    return len(miop.decode_control(miop.decode(data)).entries) == n


@bound("corba.wire.miop.NUMBER_MAX")
def packets_that_a_unique_id_can_number(n: int) -> bool:
    try:
        return miop.read_id(miop.numbered_id(quad_of(1, 1), n)) == (quad_of(1, 1), n)
    except AssertionError:
        return False  # nobody lives that long


@bound("corba.wire.miop.QUAD_MAX")
def characters_of_a_quad_that_is_remembered(n: int) -> bool:
    """Whether it is one or not."""
    miop._read_quad.cache_clear()
    assert miop.read_quad("1" * n) is None
    return miop._read_quad.cache_info().currsize == 1


# wire: CORBA


@bound("corba.wire.group_request.PROFILE_KNOWN_MAX")
def octets_of_a_profile_that_is_remembered(n: int) -> bool:
    """Larger ones are read each time."""
    (group,) = GROUP.multicast()
    bare = encode_uipmc(replace(group, components=(*group.components, Tagged(77, b""))))
    padding = Tagged(77, bytes(n - len(bare.data)))
    profile = encode_uipmc(replace(group, components=(*group.components, padding)))
    assert len(profile.data) == n
    group_request._known_group_in.cache_clear()
    assert group_request.decode_request(encode_request(1, profile, "put")).group == group.group
    return group_request._known_group_in.cache_info().currsize == 1


@bound("wire.invocation.PATH_MAX")
def calls_of_a_lineage(n: int) -> bool:
    shape = Roster.of(2, {"o": (Pairs(), (0, 1))})
    return len(invocation.decode(invocation.encode(request_of(n)), shape)[13]) == n + 1


def request_of(depth: int, **more: Any) -> Message:
    given: dict[str, Any] = {
        "sq": ((0, 1),),
        "path": ((1, 2), *[1] * depth),
        "hosts": ((2,),),
        "view": 0,
    } | more
    start = StartId(1, 2)
    return Message(
        "s",
        2,
        (1,),
        SendId(start, 0),
        1,
        given.pop("ev", 1),
        (0, 0, 0, 0),
        given.pop("sq"),
        start,
        (1, 2, 0),
        "op",
        **given,
    )


@bound("corba.dissect.pcap.FRAME_MAX")
def octets_of_a_frame(n: int) -> bool:
    head = pcap.HEADER
    frame = bytes(8) + n.to_bytes(4, "little") * 2 + bytes(n)
    return len(next(iter(pcap.frames(head + frame))).octets) == n


@bound("corba.dissect.pcap.JOINED_MAX")
def datagrams_of_which_a_part_was_seen(n: int) -> bool:
    joiner = pcap._Joiner()
    for k in range(n):
        joiner.join(pcap._Packet("a", "b", 17, b"x" * 8, False, (k, 0, True)))
    return joiner.join(pcap._Packet("a", "b", 17, b"y", False, (0, 8, False))) is not None


@bound("corba.wire.giop.MINOR_MAX")
def versions_of_giop(n: int) -> bool:
    message = bytearray(giop.encode(Request(1, KeyAddr(b"key"), "put"), b""))
    message[5] = n
    return giop.read_header(message).minor == n


@bound("corba.wire.reference.GROUP_ID_MAX")
def numbers_of_object_groups(n: int) -> bool:
    found = next(iter(reference.read(f"corbaloc:miop:1.0@1.0-d-{n}/239.1.2.3:7000").multicast()))
    return found.group.group_id == n


@bound("corba.wire.reference.REF_VERSION_MAX")
def versions_of_object_groups(n: int) -> bool:
    found = next(iter(reference.read(f"corbaloc:miop:1.0@1.0-d-1-{n}/239.1.2.3:7000").multicast()))
    return found.group.ref_version == n


# objects


@bound("corba.wire.framing.MESSAGE_MAX")
def octets_of_a_giop_message(n: int) -> bool:
    head = giop.encode(Request(1, KeyAddr(b"key"), "put"), b"")[:8]
    size = n - giop.HEADER_SIZE
    return len(Framer().feed(head + size.to_bytes(4, "big") + bytes(size))) == 1


@bound("corba.wire.framing.FRAGMENTED_MAX")
def messages_begun_on_a_connection(n: int) -> bool:
    framer = Framer()
    for k in range(n):
        whole = giop.encode(Request(k, KeyAddr(b"key"), "put"), lambda out: out.string("x" * 200))
        framer.feed(giop.fragments(whole, 64)[0])
    return framer.buffered > 0


@bound("objects.hosted.REMEMBERED_MAX")
def calls_that_a_place_remembers(n: int) -> bool:
    memory: OrderedDict[Any, Any] = OrderedDict()
    for k in range(n):
        remember(memory, (k, 0, 0))
    return len(memory) == n


def links_of(n: int = 3) -> tuple[Links, list[Any]]:
    sent: list[Any] = []
    roster = Roster.of(n, {"o": (Pairs(), (0, 1))})
    links = Links(
        0, roster, Clock(), EngineOptions(), lambda members, spoken: sent.append(spoken), lambda: (0, 0)
    )
    return links, sent


@bound("objects.roster.SETS_MAX")
def sets_of_places_whose_members_are_remembered(n: int) -> bool:
    roster = Roster.of(20, {"o": (Pairs(), range(20))})
    for places in islice(product(range(40), repeat=2), n):
        roster.members_at(places)
    return len(roster._members_at) == n


@bound("objects.links.NACK_MAX")
def numbers_in_a_question_of_objects(n: int) -> bool:
    links, sent = links_of()
    links.take(0.0, 1, request_of(0, sq=((0, n + 1),)))
    asked = [spoken for spoken in sent if isinstance(spoken, Nack)]
    return len(asked[0].numbers) == n


@bound("objects.links.AHEAD_MAX")
def messages_ahead_between_objects(n: int) -> bool:
    links, _ = links_of()
    return links.take(0.0, 1, request_of(0, sq=((0, n),)))


@bound("objects.failures.AHEAD_MAX")
def messages_of_a_view_of_objects_to_come(n: int) -> bool:
    roster = Roster.of(2, {"o": (Pairs(), (0, 1))})
    engine = Engine(0, roster, EngineOptions())
    message = request_of(0, view=1)
    for _ in range(n):
        engine._take_from(1, message)
    return len(engine.failures._ahead) == n


def names_service() -> NameService:
    numbers = iter(range(1 << 20))
    return NameService(
        lambda servant: Reference("r", (Tagged(99, b"%d" % next(numbers)),)),
        lambda servant: None,
        lambda reference: None,
        lambda reference: None,  # type: ignore[arg-type,return-value]
    )


GROUP = group_reference("IDL:test/Forum:1.0", ObjectGroup("d", 1), "239.1.2.3", 7000)


@bound("corba.broker.naming.COMPONENTS_MAX")
def components_of_a_name(n: int) -> bool:
    service = names_service()
    try:
        asyncio.run(service.root.resolve([NameComponent("x")] * n))
    except InvalidName:
        return False
    except Exception as error:  # of whatever kind: it was looked for
        return type(error).__name__ == "NotFound"
    return True


@bound("corba.broker.naming.OCTETS_MAX")
def octets_of_all_names(n: int) -> bool:
    service = names_service()
    service.count(n - OVERHEAD)
    service.context()
    return service.octets == n


@bound("corba.broker.naming.ITERATORS_MAX")
def iterators_that_clients_forgot(n: int) -> bool:
    service = names_service()
    for _ in range(n):
        service.iterate(service.root, [NameComponent("x")])
    return len(service._iterators) == n


@bound("corba.broker.naming.LIST_MAX")
def bindings_in_an_answer(n: int) -> bool:
    service = names_service()
    for k in range(n):
        asyncio.run(service.root.bind([NameComponent(f"{k}")], GROUP))
    found, rest = asyncio.run(service.root.list(n))
    assert (rest is None) == (len(found) == n)
    return len(found) == n


@bound("objects.invoke.NESTED_MAX")
def calls_within_calls(n: int) -> bool:
    class Down(ObjectClass):
        @method
        async def go(self, ctx: Any, depth: int) -> int:
            return 1 + int(await ctx.call("o", "go", depth - 1)) if depth > 1 else 1

    roster = Roster.of(1, {"o": (Pairs(), (0,))})
    host = Host(0, roster, {"o": Down})

    async def body(ctx: Any) -> int:
        return int(await ctx.call("o", "go", n))

    root = host.begin(0.0, body)
    for _ in range(4 * n):
        host.sends(0.0)
    return root.result == n


@bound("objects.invoke.PAUSE_MAX")
def seconds_of_a_pause(n: int) -> bool:
    roster = Roster.of(1, {})
    host = Host(0, roster, {})
    root = host.begin(0.0, lambda ctx: ctx.pause(n))
    host.sends(0.0)
    host.tick(float(n))
    return root.done and root.error is None


@bound("objects.layer.KEY_MAX")
def bytes_of_a_key(n: int) -> bool:
    head = 3  # of a value: its kind, and its length
    layers = find("object").build(Options(protocol={"key": lambda payload: b"k" * (n - head)}))
    Stack(layers, 0, View.of(*NAMES[:2]), rng=Random(1)).send(b"hello", now=0.0)
    return True


@bound("objects.layer.SHARED_MAX")
def bytes_for_one_member_that_all_get_to_see(n: int) -> bool:
    layers = find("object").build(Options())
    order = Stack(layers, 0, View.of(*NAMES[:3]), rng=Random(1)).layer("object")
    assert isinstance(order, ObjectOrder)
    order._say((1,), bytes(n), None)
    return order.waiting == 1


@bound("corba.broker.dispatch.KEY_MAX")
def octets_of_an_object_key(n: int) -> bool:
    @interface("IDL:test/Nothing:1.0")
    class Nothing:
        async def nothing(self) -> None:
            """Do nothing."""

    return len(Broker().root.activate(Nothing(), b"k" * n)) == n


@bound("corba.broker.dispatch.DETAIL_MAX")
def characters_of_an_exception(n: int) -> bool:
    return detail_of((_detail_context("x" * n),)) == "x" * n


@bound("corba.broker.call.FORWARDS_MAX")
def times_a_request_is_forwarded(n: int) -> bool:
    reply = giop.encode(Reply(1, Status.LOCATION_FORWARD), lambda out: put_reference(out, GROUP))
    call = OutgoingCall(_PASS_ON, [], GROUP)
    for _ in range(n):
        assert call.take(giop.decode(reply)) is None
    return call.forwards == n


@bound("corba.broker.call.REFERENCES_MAX")
def references_whose_ways_are_remembered(n: int) -> bool:
    ways.cache_clear()
    for k in range(n):
        ways(group_reference("IDL:test/Forum:1.0", ObjectGroup("d", k + 1), "239.1.2.3", 7000), oneway=True)
    return ways.cache_info().currsize == n


# secure


def guard_of(name: str = "alice") -> GroupGuard:
    return GroupGuard("lunch", name, known(), entropy=Random(1).randbytes, kind=AES)


def open_channels(guard: GroupGuard, n: int, name: str = "") -> None:
    """With so many processes, each at an address of its own: all of one name, or each of its own."""
    for k in range(n):
        process = k.to_bytes(16, "big")
        keys = PairKeys(
            process, *(derive(process, purpose) for purpose in ("answer", "confirm", "forth", "back"))
        )
        other = Other(process, name or f"m{k}", keys)
        guard._open_channel(guard._channel(other, k, is_ours=True), process, k)


@bound("secure.guard.PAST_MAX")
def closed_views_that_are_still_understood(n: int) -> bool:
    guard = guard_of()
    for number in range(n + 1):
        guard.enter(number, secure_view_of("alice", "bob", number=number + 1), 0, float(number))
    return len(guard._past) == n


@bound("secure.guard.EXPECTED_MAX")
def views_to_come_that_are_understood(n: int) -> bool:
    guard = guard_of()
    for attempt in range(n):
        view = secure_view_of("alice", "bob", number=2, attempt=attempt + 1)
        guard.expect(attempt, view, 0, guard.fresh())
    return len(guard._expected) == n


@bound("secure.guard.CHANNELS_MAX")
def processes_that_have_proven_who_they_are(n: int) -> bool:
    """And those for whom something waits until they have."""
    guard = guard_of()
    open_channels(guard, n)
    guard.seal([(Outsider(f"there:{k}"), word(b"hello")) for k in range(n)], 1.0)
    (answer,) = {len(each) == n for each in (guard._channels, guard._waiting)}
    return answer


@bound("secure.guard.PROCESSES_EACH")
def processes_of_one_name(n: int) -> bool:
    guard = guard_of()
    open_channels(guard, n, "bob")
    return len(guard._channels) == n


@bound("secure.shares.SHARES_MAX")
def those_with_a_budget_of_their_own(n: int) -> bool:
    budgets = SupplyOfEach(0.0, 1.0)
    for whose in range(n):
        assert budgets.take(whose, 0.0)
    return not budgets.take(0, 0.0)  # the first is still known, and has spent it


@bound("secure.handshake.WORD_MAX")
def octets_of_a_word(n: int) -> bool:
    words = guard_of()._handshake
    try:
        words.read(words._proven(words._head(ANSWER).ljust(n - PROOF, b"x")))
    except Forged:
        return False
    return True


@bound("secure.guard.NAMESAKES_MAX")
def processes_of_a_name_that_are_told_its_secret(n: int) -> bool:
    guard = guard_of()
    open_channels(guard, n, "bob")
    return len((guard.wrap("bob", guard.fresh()) or "").split()) == n


@bound("secure.guard.WAITING_MAX")
def words_that_wait_for_a_channel(n: int) -> bool:
    guard = guard_of()
    guard.seal([(Outsider("there"), word(b"%d" % k)) for k in range(n)], 1.0)
    guard.seal([(EVERYBODY, word(b"%d" % k)) for k in range(n)], 1.0)
    (answer,) = {len(each) == n for each in (guard._waiting["there"], guard._recent)}
    return answer


@bound("secure.guard.FAILED_MAX")
def others_whose_failures_a_person_is_told(n: int) -> bool:
    guard = guard_of()
    guard.open([(word(b"hello"), k) for k in range(n)], 1.0)
    assert guard.rejected == {"plain": n}
    return len(guard.failures) == n


# what is left


@bound("lab.rungs.history.HISTORY_MAX")
def messages_in_a_history(n: int) -> bool:
    net = Net(2, "history")
    layer = net.stacks[0].layer("history")
    assert isinstance(layer, History)
    layer._past = {(1, k): None for k in range(1, n)}
    net.send(0, b"one more")
    return net.errors[0] is None


@bound("session.pressure.QUEUE_MIN", least=True)
def unread_bytes_that_a_queue_takes(n: int) -> bool:
    return complete({"queue_max": n})["queue_max"] == n
