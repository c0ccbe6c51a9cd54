"""Every named bound is kept: at it things still work, beyond it they are refused, counted or dropped."""

import ast
import importlib
from pathlib import Path

import pytest

import inga
from inga.corba.wire.reference import read, to_ior
from inga.model.errors import UsageError

from .bounds import BOUNDS, GROUP, LEASTS, REFUSED, Attempt

ROOMS = (
    "stack",
    "session",
    "layers",
    "causality",
    "wire",
    "objects",
    "corba/wire",
    "corba/multicast",
    "corba/broker",
    "corba/dissect",
    "lab/rungs",
)

NO_BOUNDS = {
    "a duration, in seconds": """
        session.changes.PAUSE session.changes.PAUSE_MAX session.presence.GREETING session.presence.GREETING_MAX
        session.presence.GOODBYE session.presence.GOODBYE_MAX session.pressure.ASK_AFTER session.pressure.ASK_AFTER_MAX
        session.pressure.WARN_AFTER corba.multicast.remiop.WAIT_MIN corba.multicast.remiop.WAIT_MAX corba.multicast.remiop.SLACK
        corba.multicast.reported.HEARD layers.sco.layer.TWO_WAYS
        lab.rungs.counters.MICROSECOND lab.rungs.counters.WAIT corba.multicast.acks.PATIENCE""",
    "which of a layer's alarms it is": """
        layers.sco.talking.ALL layers.sco.talking.ASK layers.sco.talking.CONFIRM layers.sco.talking.FLOW
        layers.sco.talking.FOUND layers.sco.talking.POLL layers.sco.talking.PROBE layers.sco.talking.RESEND""",
    "gone to in tests of its own: test_repair, test_objects, test_alarms, test_newcomer, test_streams": """
        corba.dissect.streams.STREAMS_MAX corba.dissect.streams.MESSAGE_MAX corba.dissect.streams.EARLY_MAX
        objects.links.REPAIRS_MAX objects.layer.HELD_MAX session.alarms.STALE_MIN session.newcomer.GOODBYES_MAX
        session.door.REFUSED_MAX""",
    "given to Reassembly, which keeps them: see the rows of corba.multicast.fragments": """
        corba.dissect.dissector.OPEN_MAX corba.dissect.dissector.OCTETS_MAX corba.dissect.dissector.RECENT""",
    "a factor or a weight, not a limit": """
        session.alarms.BACK_OFF layers.co.machine.SMOOTH layers.co.machine.RESEND_ROUNDS layers.sco.machine.SMOOTHING
        layers.co.parts.QUOTA_WINDOWS corba.multicast.rate.LEVELS corba.wire.framing.PASSED_OVER_MAX layers.co.machine.FULL_EVERY""",
    "what an option is unless told; what is told is checked": """
        corba.multicast.transport.UNLIMITED
        corba.multicast.fragments.DATAGRAM corba.multicast.reported.SIZE corba.multicast.remiop.RATE_MIN corba.multicast.remiop.RATE_MAX corba.multicast.remiop.REPEATS
        corba.multicast.remiop.BURST objects.window.WINDOW corba.wire.miop.PAYLOAD_MAX""",
    "a size that is reckoned with, and kept by the stack tests of sizes": """
        objects.window.HEAD objects.window.SCALAR wire.bundle.BLOCK
        layers.bundle.HEAD layers.bundle.LENGTH layers.matrix.CELLS_EXPECTED objects.layer.HEAD
        objects.layer.HEAD_OF_PLACE objects.messages.HEAD objects.messages.HEAD_OF_PLACE corba.broker.naming.OVERHEAD""",
    "more is refused unread, and as much is refused as well, since no character takes it": "corba.wire.cdr.WIDE_BYTES_MAX",
    "from where on something is done in another way": """
        wire.bundle.VIEW_FROM wire.packet.GATHERED_FROM wire.value.SMALL_MAX""",
    "a number of a format, a place in it, or a name for a number": """
        corba.multicast.fragments.STRANGER corba.multicast.fragments.QUAD_NET corba.multicast.fragments.CONTROL_KIND corba.multicast.envelope.REQUEST_IDS
        session.newcomer.NOBODY causality.inbox.NOBODY causality.inbox.FORMAT causality.knowledge.FIRST
        causality.inbox.RELEASED causality.inbox.HELD causality.inbox.DUPLICATE causality.inbox.FORGED
        causality.inbox.LATE causality.knowledge.SAME causality.knowledge.RISEN causality.knowledge.ALL_RISEN
        wire.packet.MAGIC wire.packet.VERSION wire.packet.OUTSIDE wire.packet.SEQ wire.packet.STAMP wire.packet.LSN
        wire.packet.ACK wire.packet.BUF wire.packet.RUNS wire.packet.FRAG wire.packet.TRACE wire.packet.DST
        wire.packet.EXT wire.packet.URGENT wire.packet.BARE wire.packet.PARTIAL wire.packet.DELTA wire.packet.FREE
        wire.packet.COUNT corba.wire.giop.HEADER_SIZE corba.wire.giop.LITTLE corba.wire.giop.MORE corba.wire.giop.FRAGMENT_HEAD
        corba.wire.giop.CODE_SETS wire.invocation.MESSAGE wire.invocation.HEARTBEAT wire.invocation.NACK
        wire.invocation.ANNOUNCE wire.invocation.FLUSH corba.wire.miop.VERSION corba.wire.miop.LITTLE corba.wire.miop.STOP
        corba.wire.miop.CONTROL corba.wire.miop.HEAD corba.wire.miop.ID_SIZE corba.wire.miop.HEADER corba.wire.miop.LENGTH_MAX corba.wire.miop.SENDER_MAX
        corba.wire.miop.CONTROL_COUNT corba.wire.miop.NACK corba.wire.miop.STATE corba.dissect.pcap.ETHERNET corba.dissect.pcap.COOKED corba.dissect.pcap.COOKED_2
        corba.wire.reference.TAG_INTERNET_IOP corba.wire.reference.TAG_UIPMC corba.wire.reference.TAG_GROUP
        corba.wire.reference.TAG_GROUP_IIOP corba.wire.reference.JACORB_GROUP_IIOP corba.wire.reference.CORBALOC_PORT
        wire.value.NONE wire.value.FALSE wire.value.TRUE wire.value.PLUS wire.value.MINUS wire.value.REAL
        wire.value.TEXT wire.value.BYTES wire.value.LIST wire.value.TUPLE wire.value.DICT wire.value.BIG_PLUS
        wire.value.BIG_MINUS corba.broker.groups.CREATE_ADDRESS_DEFERED corba.broker.groups.CREATE_ADDRESS_GENERATED
        corba.broker.groups.CREATE_ADDRESS_SUPPLIED corba.broker.groups.RELIABLE corba.broker.dispatch.UTF_8 corba.broker.dispatch.LATIN_1
        corba.broker.dispatch.ASCII corba.broker.dispatch.UTF_16 corba.broker.dispatch.EXCEPTION_DETAIL stack.hooks.TOP_DOWN
        stack.hooks.BOTTOM_UP""",
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


@pytest.mark.parametrize("more", ["00", "00" * 100])
def test_an_ior_ends_with_its_reference(more: str) -> None:
    assert read(to_ior(GROUP)) == GROUP
    with pytest.raises(UsageError):
        read(to_ior(GROUP) + more)
