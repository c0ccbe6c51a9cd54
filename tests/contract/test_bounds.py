"""Every named bound is kept: at it things still work, beyond it they are refused, counted or dropped."""

import ast
import importlib
from pathlib import Path

import pytest

import inga
from inga.corba.wire.reference import read, to_ior
from inga.model.errors import UsageError

from ..rooms import PROTOCOL_ROOMS
from .bounds import BOUNDS, GROUP, LEASTS, REFUSED, Attempt

ROOMS = (*PROTOCOL_ROOMS, "secure", "lab/rungs")

NO_BOUNDS = {
    "a duration, in seconds": """
        session.questions.PAUSE session.questions.PAUSE_MAX session.hearing.REMEMBERED_FOR session.leading.LOOKS_WITHIN session.presence.GREETING session.presence.GREETING_MAX
        session.presence.GOODBYE session.presence.GOODBYE_MAX session.pressure.ASK_AFTER session.pressure.ASK_AFTER_MAX
        session.pressure.WARN_AFTER corba.multicast.remiop.WAIT_MIN corba.multicast.remiop.WAIT_MAX corba.multicast.remiop.SLACK
        corba.multicast.reported.HEARD corba.multicast.reported.SILENT layers.sco.layer.TWO_WAYS
        session.gathering.FRESH session.gathering.GATHER_MAX session.gathering.GRACE session.gathering.QUIET
        session.gathering.QUIET_APART session.newcomer.PAUSED_FOR session.newcomer.STRANGE_FOR session.silence.LOOK_MAX session.silence.STANDS_IN_AFTER session.slow.AGAIN
        session.slow.DENY_WITHIN session.slow.PATIENCE session.door.PART_WITHIN session.door.SPEAKS_FOR
        session.door.ASKS_WITHIN session.porter.CARRIES_AFTER session.porter.CARRIES_EVERY session.porter.CARRIES_PARTS_EVERY session.parts.PART session.parts.ASKING session.parts.ASKING_MAX session.asking.HOST_FOR
        session.parts.ALONE_AFTER session.parts.ALONE_AFTER_MAX session.pieces.AGAIN session.pieces.AGAIN_MAX session.transfer.REFUSES_FOR session.handover.REMINDS session.handover.REMINDS_MAX objects.layer.CLOSES_WITHIN
        lab.rungs.counters.MICROSECOND lab.rungs.counters.WAIT corba.multicast.acks.PATIENCE
        secure.carrying.CARRIES_FOR secure.guard.HEARD_WITHIN secure.guard.KNOCK_EVERY secure.guard.LOOK secure.guard.LOOK_MAX secure.guard.SILENT_MAX
        secure.guard.WAITING_FOR secure.whereabouts.MOVED secure.handshake.FRESH_FOR secure.handshake.GOOD_FOR secure.sealing.EPOCH_SECONDS""",
    "which kind of row it is": "layers.sco.layer.WHOLE layers.sco.layer.COVERED layers.sco.layer.EARLY layers.sco.layer.SHARE layers.sco.layer.EARLY_SHARE",
    "which of a layer's alarms it is": """
        layers.machine.ALL layers.co.machine.CONFIRM layers.co.machine.POLL layers.co.machine.RESEND
        layers.co.machine.FOUND layers.co.machine.ASK layers.sco.talking.ASK layers.sco.talking.CONFIRM layers.sco.talking.FLOW
        layers.sco.talking.FOUND layers.sco.talking.POLL layers.sco.talking.PROBE layers.sco.talking.RESEND""",
    "gone to in tests of its own: test_repair, test_bundle, test_objects, test_alarms, test_door, test_failures, test_streams, test_gathering, test_forged, test_guard, test_carrying, test_attacks, test_sealing, test_object_groups": """
        stack.budget.ANSWERS_MAX session.hearing.WORDS session.hearing.OUTSIDE_WORDS_MAX session.hearing.ADDRESSES_MAX
        stack.chain.ELSEWHERE_MAX session.changes.ATTEMPTS_MAX session.changes.VIEWS_MAX layers.reliable.EARLY_BYTES
        session.newcomer.PLACES_TOLD wire.shares.SETS_MAX session.gathering.PATIENCE session.silence.STAND_INS
        corba.dissect.streams.STREAMS_MAX corba.dissect.streams.MESSAGE_MAX corba.dissect.streams.EARLY_MAX
        objects.links.REPAIRS_MAX objects.layer.HELD_MAX session.alarms.STALE_MIN session.door.REFUSED_MAX
        session.door.FORMER_MAX session.description.PROCESSES_MAX session.porter.CALLERS_MAX session.closing.LENT_MAX corba.broker.managed.MEMBERS_MAX
        secure.carrying.ERRANDS_MAX secure.carrying.CARRIED_MAX secure.carrying.HANDED_MAX
        secure.useless.PLACES_MAX secure.guard.ADDRESSES_EACH secure.guard.CHANNELS_EACH secure.guard.HANDSHAKES secure.guard.COOKIES secure.guard.OF_NAME
        secure.sealing.EPOCH_DATAGRAMS secure.sealing.EPOCHS_AHEAD secure.sealing.WINDOW""",
    "given to Reassembly, which keeps them: see the rows of corba.multicast.fragments": """
        corba.dissect.dissector.OPEN_MAX corba.dissect.dissector.OCTETS_MAX corba.dissect.dissector.RECENT""",
    "so much a second, or what something costs of that": """
        stack.chain.ELSEWHERE stack.budget.ANSWERS stack.budget.UNIT session.hearing.OUTSIDE_WORDS session.hearing.ADDRESSES layers.reliable.REPLAYED
        corba.multicast.reported.REQUESTS secure.guard.HANDSHAKES_A_SECOND secure.guard.COOKIES_A_SECOND secure.guard.OF_NAME_A_SECOND secure.carrying.CARRIED_A_SECOND secure.carrying.HANDED_A_SECOND""",
    "a factor or a weight, not a limit": """
        layers.reliable.LOOKS layers.reliable.EARLY_BYTES_MIN layers.sequenced.WAITS
        session.pieces.PIECES session.silence.BEATS session.silence.LOOKS session.silence.OUT_OF_REACH session.changes.DISSOLVES
        stack.waits.BACK_OFF secure.shares.SHARE layers.co.machine.SMOOTH layers.co.machine.RESEND_ROUNDS layers.sco.machine.SMOOTHING
        layers.co.parts.QUOTA_WINDOWS corba.multicast.rate.LEVELS corba.wire.framing.PASSED_OVER_MAX layers.co.machine.FULL_EVERY""",
    "what an option is unless told; what is told is checked": """
        corba.multicast.transport.UNLIMITED
        corba.multicast.fragments.DATAGRAM corba.multicast.reported.SIZE corba.multicast.remiop.RATE_MIN corba.multicast.remiop.RATE_MAX corba.multicast.remiop.REPEATS
        corba.multicast.remiop.BURST objects.window.WINDOW corba.wire.miop.PAYLOAD_MAX""",
    "a size that is reckoned with, and kept by the stack tests of sizes": """
        session.pieces.PIECE session.pieces.PIECE_MIN session.pieces.HEAD session.transfer.AHEAD session.history.EACH objects.window.HEAD objects.window.SCALAR wire.bundle.BLOCK
        layers.bundle.HEAD layers.bundle.LENGTH layers.matrix.CELLS_EXPECTED objects.layer.HEAD wire.sequence.RUN_BYTES
        layers.sco.layer.NOTE_BYTES wire.shares.EACH
        objects.layer.HEAD_OF_PLACE objects.messages.HEAD objects.messages.HEAD_OF_PLACE corba.broker.naming.OVERHEAD""",
    "more is refused unread, and as much is refused as well, since no character takes it": "corba.wire.cdr.WIDE_BYTES_MAX",
    "from where on something is done in another way": """
        layers.reliable.CROWD wire.bundle.VIEW_FROM wire.packet.GATHERED_FROM wire.value.SMALL_MAX""",
    "a number of a format, a place in it, or a name for a number": """
        corba.multicast.fragments.STRANGER corba.multicast.fragments.QUAD_NET corba.multicast.fragments.CONTROL_KIND corba.multicast.envelope.REQUEST_IDS
        layers.sequenced.SEQUENCER stack.native.UNKNOWN session.newcomer.NOBODY causality.inbox.NOBODY wire.vector.NOBODY causality.inbox.FORMAT causality.knowledge.FIRST
        causality.inbox.RELEASED causality.inbox.HELD causality.inbox.DUPLICATE causality.inbox.FORGED
        causality.inbox.LATE causality.knowledge.SAME causality.knowledge.RISEN causality.knowledge.ALL_RISEN
        session.presence.CHALLENGES wire.packet.MAGIC wire.packet.SEALED_MAGIC wire.packet.VERSION wire.packet.VIEW_AT wire.packet.OUTSIDE wire.packet.SEQ wire.packet.STAMP wire.packet.LSN
        wire.packet.ACK wire.packet.ROOM wire.packet.RUNS wire.packet.FRAG wire.packet.TRACE wire.packet.DST
        wire.packet.EXT wire.packet.URGENT wire.packet.BARE wire.packet.PARTIAL wire.packet.COUNT wire.packet.LENT wire.packet.COVERED wire.packet.RIGHT
        wire.co.EXPECTED wire.co.RISES wire.co.CONFIRMED wire.co.RUNS
        corba.wire.giop.HEADER_SIZE corba.wire.giop.LITTLE corba.wire.giop.MORE corba.wire.giop.FRAGMENT_HEAD
        corba.wire.giop.CODE_SETS wire.invocation.MESSAGE wire.invocation.HEARTBEAT wire.invocation.NACK
        wire.invocation.ANNOUNCE wire.invocation.FLUSH corba.wire.miop.VERSION corba.wire.miop.LITTLE corba.wire.miop.STOP
        corba.wire.miop.CONTROL corba.wire.miop.HEAD corba.wire.miop.ID_SIZE corba.wire.miop.HEADER corba.wire.miop.LENGTH_MAX corba.wire.miop.SENDER_MAX
        corba.wire.miop.CONTROL_COUNT corba.wire.miop.NACK corba.wire.miop.STATE corba.dissect.pcap.ETHERNET corba.dissect.pcap.COOKED corba.dissect.pcap.COOKED_2
        corba.wire.reference.TAG_INTERNET_IOP corba.wire.reference.TAG_UIPMC corba.wire.reference.TAG_GROUP
        corba.wire.reference.TAG_SSL_SEC_TRANS corba.wire.reference.MEMBER
        corba.wire.reference.TAG_GROUP_IIOP corba.wire.reference.JACORB_GROUP_IIOP corba.wire.reference.CORBALOC_PORT
        wire.value.NONE wire.value.FALSE wire.value.TRUE wire.value.PLUS wire.value.MINUS wire.value.REAL
        wire.value.TEXT wire.value.BYTES wire.value.LIST wire.value.TUPLE wire.value.DICT wire.value.BIG_PLUS
        wire.value.BIG_MINUS corba.broker.groups.CREATE_ADDRESS_DEFERED corba.broker.groups.CREATE_ADDRESS_GENERATED
        corba.broker.groups.CREATE_ADDRESS_SUPPLIED corba.broker.groups.RELIABLE corba.broker.dispatch.UTF_8 corba.broker.dispatch.LATIN_1
        corba.broker.dispatch.ASCII corba.broker.dispatch.UTF_16 corba.broker.dispatch.EXCEPTION_DETAIL corba.broker.dispatch.FT_GROUP_VERSION stack.hooks.TOP_DOWN
        stack.hooks.BOTTOM_UP session.alarms.NEVER
        secure.credentials.SECRET secure.credentials.CERTIFICATE secure.handshake.KNOCK secure.handshake.COOKIE
        secure.carrying.CARRY secure.carrying.CARRIED secure.handshake.ANSWER secure.handshake.CONFIRM secure.handshake.ID secure.handshake.PROOF secure.handshake.CONFIRM_HEAD secure.handshake.KIND_AT secure.sealing.MAGIC
        secure.sealing.VERSION secure.sealing.AES secure.sealing.CHACHA secure.sealing.TAG secure.sealing.OVERHEAD
        secure.sealing.KEY""",
}
"""Numbers with names that are no bounds, and why."""


def names_of_numbers() -> set[str]:
    """The constants of the protocol rooms that are numbers, as `room.module.NAME`."""
    root = Path(inga.__file__).parent
    found = set()
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.parse(path.read_text()).body:
                for name in _assigned(node):
                    number = getattr(importlib.import_module(f"inga.{module}"), name)
                    if isinstance(number, int | float) and not name.startswith("_"):
                        found.add(f"{module}.{name}")
    return found


def _assigned(node: ast.stmt) -> list[str]:
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return [name for name in names if name.isupper()]


def value_of(name: str) -> int:
    module, _, constant = name.rpartition(".")
    return int(getattr(importlib.import_module(f"inga.{module}"), constant))


def is_possible(attempt: Attempt, n: int) -> bool:
    try:
        return attempt(n)
    except REFUSED:
        return False


def test_every_number_with_a_name_is_a_bound_with_a_row_or_has_a_reason() -> None:
    explained = {name for names in NO_BOUNDS.values() for name in names.split()}
    rows = BOUNDS.keys() | LEASTS.keys()
    numbers = names_of_numbers()
    assert sorted(numbers - explained - rows) == [], "have neither a row nor a reason"
    assert sorted((explained | rows) - numbers) == [], "are gone"
    assert sorted(explained & rows) == []


@pytest.mark.parametrize("name", [*BOUNDS, *LEASTS])
def test_at_the_bound_it_works(name: str) -> None:
    assert is_possible((BOUNDS | LEASTS)[name], value_of(name))


@pytest.mark.parametrize("name", BOUNDS)
def test_beyond_the_bound_it_does_not(name: str) -> None:
    assert not is_possible(BOUNDS[name], value_of(name) + 1)


@pytest.mark.parametrize("name", LEASTS)
def test_below_the_least_it_does_not(name: str) -> None:
    assert not is_possible(LEASTS[name], value_of(name) - 1)


VALUES = {
    "stack.native.AHEAD_MAX": 1024,
    "stack.native.PAST_MAX": 4,
    "stack.backlog.SOURCE_BYTES_MAX": 1 << 20,
    "stack.backlog.BYTES_MAX": 4 << 20,
    "session.hearing.SOURCES_MAX": 4096,
    "session.parts.LOST_MAX": 256,
    "session.pieces.ANSWER_MAX": 128 << 10,
    "session.pieces.PIECES_MAX": 2048,
    "session.gathering.FACES_MAX": 256,
    "session.slow.MISSED_MAX": 64,
    "session.pressure.WAITS_MAX": 64,
    "stack.places.PLACES_MAX": 256,
    "stack.places.PLACE_MAX": 255,
    "session.handover.STATE_MAX": 1 << 30,
    "session.history.HISTORY_MAX": 4 << 20,
    "stack.hooks.SPREAD_MAX": 1 << 15,
    "session.door.NAME_MAX": 255,
    "session.door.AT_ONCE_BYTES": 16 << 10,
    "session.newcomer.BACKLOG_MAX": 4096,
    "session.presence.GOODBYES_MAX": 64,
    "session.presence.NAMES_MAX": 64,
    "session.presence.DIFFERENCES_MAX": 64,
    "session.pressure.ASKS_MAX": 16,
    "session.alarms.WAIT_MAX": 8,
    "layers.bundle.MESSAGES_MAX": 1 << 13,
    "layers.bundle.MESSAGE_BYTES_MAX": 1 << 26,
    "layers.fifo.EARLY_MAX": 4096,
    "layers.fragment.ASSEMBLIES_MAX": 4096,
    "layers.fragment.LOSSY_MAX": 16,
    "layers.flow.PACKETS_MAX": 4096,
    "layers.flow.WINDOW_MAX": 1 << 20,
    "layers.reliable.LSN_WINDOW": 1 << 13,
    "layers.co.parts.AHEAD_MAX": 1 << 13,
    "layers.co.parts.WINDOW_MAX": 4096,
    "layers.co.machine.REPAIRS_MAX": 64,
    "layers.sco.ordering.LSN_WINDOW": 1 << 13,
    "layers.sco.talking.SLOWER_MAX": 4,
    "corba.multicast.fragments.COLLECTIONS_MAX": 64,
    "corba.multicast.fragments.OCTETS_MAX": 1 << 24,
    "corba.multicast.fragments.RING": 1024,
    "corba.multicast.reported.SENDERS_MAX": 1024,
    "corba.multicast.reported.FORMER_MAX": 4096,
    "corba.multicast.reported.NEW_LIFE": 1 << 16,
    "corba.multicast.rate.RATE_MAX": 1_000_000_000_000,
    "causality.inbox.PASSED_MAX": 1024,
    "wire.packet.COUNT_MAX": (1 << 31) - 1,
    "wire.runs.RUNS_MAX": 1024,
    "wire.sequence.RUNS_MAX": 16,
    "wire.packet.FRAGMENTS_MAX": 1 << 20,
    "wire.packet.MESSAGES_MAX": 1 << 16,
    "wire.packet.INDEX_MAX": 1 << 16,
    "wire.bundle.MESSAGES_MAX": 1 << 16,
    "wire.varint.VARINT_MAX": (1 << 64) - 1,
    "wire.row.COUNT_MAX": (1 << 62) - 1,
    "wire.told.TEXT_MAX": 4096,
    "wire.told.LARGE_MAX": 1 << 62,
    "wire.told.DIGITS_MAX": 10,
    "wire.value.DEPTH_MAX": 32,
    "wire.value.NUMBER_BYTES_MAX": 1024,
    "wire.value.OTHER_KEYS_MAX": 1024,
    "corba.wire.miop.ID_MAX": 252,
    "corba.wire.miop.COUNT_MAX": 1 << 16,
    "corba.wire.miop.ENTRIES_MAX": 40,
    "corba.wire.miop.NUMBER_MAX": (1 << 49) - 1,
    "corba.wire.miop.QUAD_MAX": 15,
    "corba.wire.group_request.PROFILE_KNOWN_MAX": 1024,
    "wire.invocation.PATH_MAX": 1024,
    "corba.dissect.pcap.FRAME_MAX": 1 << 18,
    "corba.dissect.pcap.JOINED_MAX": 256,
    "corba.wire.giop.MINOR_MAX": 2,
    "corba.wire.reference.GROUP_ID_MAX": (1 << 64) - 1,
    "corba.wire.reference.REF_VERSION_MAX": (1 << 32) - 1,
    "corba.wire.framing.MESSAGE_MAX": 1 << 20,
    "corba.wire.framing.FRAGMENTED_MAX": 8,
    "objects.hosted.REMEMBERED_MAX": 4096,
    "objects.invoke.PAUSE_MAX": 1_000_000,
    "objects.layer.KEY_MAX": 256,
    "objects.layer.SHARED_MAX": 512,
    "objects.roster.SETS_MAX": 1024,
    "objects.links.NACK_MAX": 256,
    "objects.links.AHEAD_MAX": 1 << 16,
    "objects.failures.AHEAD_MAX": 1 << 16,
    "corba.broker.naming.COMPONENTS_MAX": 64,
    "corba.broker.naming.OCTETS_MAX": 1 << 26,
    "corba.broker.naming.ITERATORS_MAX": 64,
    "corba.broker.naming.LIST_MAX": 1000,
    "objects.invoke.NESTED_MAX": 256,
    "corba.broker.dispatch.KEY_MAX": 1024,
    "corba.broker.dispatch.DETAIL_MAX": 500,
    "corba.broker.call.FORWARDS_MAX": 8,
    "corba.broker.call.REFERENCES_MAX": 1024,
    "secure.guard.PAST_MAX": 4,
    "secure.guard.EXPECTED_MAX": 4,
    "secure.guard.CHANNELS_MAX": 1024,
    "secure.guard.NAMESAKES_MAX": 4,
    "secure.guard.PROCESSES_EACH": 8,
    "secure.handshake.WORD_MAX": 4096,
    "secure.shares.SHARES_MAX": 4096,
    "secure.guard.WAITING_MAX": 8,
    "secure.guard.FAILED_MAX": 64,
    "layers.flow.WINDOW_MIN": 1 << 16,
    "corba.multicast.reported.WINDOW_MIN": 16,
    "session.pressure.QUEUE_MIN": 1024,
}
"""What they are. Those of formats are what one member may write and all others have to read, also those of another version;
the others are what people find in a group, and what a stranger can make it keep: other numbers are for the changelog."""


def test_bounds_are_what_others_reckon_with() -> None:
    assert {name: value_of(name) for name in (*BOUNDS, *LEASTS) if not name.startswith("lab.")} == VALUES


@pytest.mark.parametrize("more", ["00", "00" * 100])
def test_an_ior_ends_with_its_reference(more: str) -> None:
    assert read(to_ior(GROUP)) == GROUP
    with pytest.raises(UsageError):
        read(to_ior(GROUP) + more)
