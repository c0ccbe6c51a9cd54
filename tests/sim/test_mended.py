"""Take a fix out, and the hunter finds the bug again: each was found from outside once, and no test had seen it.

`BUGS` are those that a plan of the swarm shows. Each has a function that undoes its fix, a plan, and the kind of
failure that the judge must then name; as the code is, the same plan is clean. `RED` are those that no run of the swarm
can show, such as forged packets or what a person is told: with the fix out, the test named there fails. What only
sockets, files or terminals show has tests of its own, listed in `ELSEWHERE`.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytest import MonkeyPatch

from inga.corba.multicast import fragments as miop
from inga.corba.multicast.reported import Reported
from inga.layers import sequenced
from inga.layers.co.layer import Co
from inga.layers.fifo import Unordered
from inga.layers.fragment import Fragment, Pieces
from inga.layers.machine_order import MachineOrder
from inga.layers.matrix import Matrix
from inga.layers.relay import Relay
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.parts import Heard
from inga.model.errors import Excluded, IngaError, UsageError
from inga.model.packet import Buffer, Packet
from inga.model.view import View
from inga.objects.layer import ObjectOrder
from inga.session import changes, presence
from inga.session.description import described
from inga.session.presence import Presence
from inga.session.pressure import Pressure
from inga.sim import Sim
from inga.sim.judge import judge
from inga.sim.swarm import Plan
from inga.stack.native import NativeWire
from inga.stack.stack import Stack, joined
from inga.stack.views import Views
from inga.trace.memory import MemoryTrace
from inga.wire.told import Told

from ..corba.multicast import test_remiop_late
from ..layers import test_co, test_fragment, test_sequenced
from ..stack import test_failure, test_robustness

TESTS = Path(__file__).parents[1]

TakeOut = Callable[[MonkeyPatch], None]
"""Undoes a fix."""


# Fixes taken out


def sends_while_the_view_closes(patch: MonkeyPatch) -> None:
    review = Stack.review

    def careless(stack: Stack) -> None:
        closing, stack.closing = stack.closing, False
        review(stack)
        stack.closing = closing

    patch.setattr(Stack, "review", careless)


def unheard(method: str) -> TakeOut:
    """What this does lets no bundle go that waits for the one before."""

    def take_out(patch: MonkeyPatch) -> None:
        original = getattr(ScoMachine, method)

        def silent(machine: ScoMachine, *arguments: Any) -> None:
            before = len(machine.events)
            original(machine, *arguments)
            machine.events[before:] = [
                event for event in machine.events[before:] if not isinstance(event, Heard)
            ]

        patch.setattr(ScoMachine, method, silent)

    return take_out


def stamps_without_room(order: type[Matrix] | type[Relay]) -> TakeOut:
    """The bundle leaves no room for what the order adds, and waits for the number of what was cut."""

    def take_out(patch: MonkeyPatch) -> None:
        original = Fragment._cut

        def cut(layer: Fragment, packet: Packet, limit: int) -> list[Packet]:
            pieces = original(layer, packet, limit)
            packet.is_cut = False
            return pieces

        patch.setattr(Fragment, "_cut", cut)
        patch.setattr(order, "overhead", lambda layer, members: 0)

    return take_out


def one_count_for_all(patch: MonkeyPatch) -> None:
    patch.setattr(ObjectOrder, "sent", Unordered.sent)


def own_messages_not_waited_for(patch: MonkeyPatch) -> None:
    def has(order: ObjectOrder, counts: list[int]) -> bool:
        pairs = zip(order._mail.begun, counts, strict=True)
        return all(begun >= count for m, (begun, count) in enumerate(pairs) if m != order.stack.me)

    patch.setattr(ObjectOrder, "has", has)
    patch.setattr(ObjectOrder, "waiting", 0)


def one_goodbye(patch: MonkeyPatch) -> None:
    """Nor does anybody answer who could know."""
    patch.setattr(presence, "GOODBYES_MAX", 1)
    patch.setattr(Presence, "on_who", lambda part, packet, told: None)


def numbered_greetings(patch: MonkeyPatch) -> None:
    patch.setattr(miop, "OUTSIDE", -1)


def layers_kept(patch: MonkeyPatch) -> None:
    """Although everything that they delivered is taken."""
    original = Views._install

    def install(views: Views, *change: Any) -> None:
        views.stack.taken_count -= 1
        original(views, *change)
        views.stack.taken_count += 1

    patch.setattr(Views, "_install", install)


def one_window_for_nobody(patch: MonkeyPatch) -> None:
    def pump(layer: Reported) -> None:
        if out := layer._leaving():
            layer.below(out)
            layer._settle()
        layer.stack.review()

    patch.setattr(Reported, "_pump", pump)


def pieces_forgotten(patch: MonkeyPatch) -> None:
    original = Stack.gone

    def gone(stack: Stack, member: int, *, failed: bool = False) -> None:
        for layer in stack.layers:
            if isinstance(layer, Pieces):
                layer._assemblies.pop(member, None)
        original(stack, member, failed=failed)

    patch.setattr(Stack, "gone", gone)


def excluded_by_its_own_goodbye(patch: MonkeyPatch) -> None:
    original = Presence.on_goodbye

    def on_goodbye(part: Presence, told: Told, where: Hashable = None) -> None:
        if part._find(told) == part._session.stack.me:
            part._session.stack.fail(Excluded("the others do not take us for a member any more"))
        original(part, told, where)

    patch.setattr(Presence, "on_goodbye", on_goodbye)


SEEDS = 40
"""Seeds of one plan that are tried."""


class Bug(NamedTuple):
    """One that the swarm shows."""

    what: str
    take_out: TakeOut
    kind: str
    plan: str


BUGS = [
    Bug(
        "co, use: what waits when the view closes is sent in it all the same, and lost",
        sends_while_the_view_closes,
        "stuck: deliver",
        """{"order": "co", "members": 3, "seed": 5002, "actions": [[0.083, 0, "answer", [40, null, 1]],
        [0.3469, 0, "use", "vector"]], "loss": 0.1}""",
    ),
    Bug(
        "sco: after a message to oneself alone nothing leaves",
        unheard("_send"),
        "stuck: deliver",
        """{"order": "sco", "members": 2, "seed": 1183, "actions": [[0.4866, 1, "send", [40, [1], 1]],
        [0.5866, 1, "send", [40, [1], 1]]]}""",
    ),
    Bug(
        "sco: alone in the group, only the first two messages are echoed",
        unheard("_send"),
        "stuck: deliver",
        """{"order": "sco", "members": 1, "seed": 1034, "actions": [[0.5862, 0, "send", [40, null, 1]],
        [0.6862, 0, "send", [40, null, 1]]], "echo": true}""",
    ),
    Bug(
        "matrix: the stamp is added after the bundle judged the size; what is cut is never heard of",
        stamps_without_room(Matrix),
        "stuck: deliver",
        """{"order": "vector", "members": 7, "seed": 2380, "actions": [[0.6546, 4, "send", [40, null, 1]],
        [0.7529, 2, "send", [1306, null, 1]], [0.8529, 2, "send", [1306, null, 1]]], "matrix": true, "coarse": true,
        "datagram": 1472}""",
    ),
    Bug(
        "relay: the same with the first sender and the destinations",
        stamps_without_room(Relay),
        "stuck: deliver",
        """{"order": "relay", "members": 2, "seed": 1, "actions": [[0.1, 1, "send", [145, null, 1]],
        [0.2, 1, "send", [145, null, 1]]], "datagram": 256}""",
    ),
    Bug(
        "object, use: after a subset send the cut is never reached",
        one_count_for_all,
        "stuck: use",
        """{"order": "object", "members": 2, "seed": 1852, "actions": [[0.1656, 1, "send", [40, [1], 1]],
        [0.4272, 0, "use", "sco"]]}""",
    ),
    Bug(
        "object, use: the view is closed although our own message has not come up yet",
        own_messages_not_waited_for,
        "stuck: deliver",
        """{"order": "object", "members": 3, "seed": 7052, "actions": [[0.4114, 1, "use", "none"],
        [0.4382, 2, "send", [40, null, 1]]], "loss": 0.3, "duplicate": 0.2, "delay": 0.1}""",
    ),
    Bug(
        "fifo: a goodbye that is lost",
        one_goodbye,
        "stuck: view",
        """{"order": "fifo", "members": 2, "seed": 100044, "actions": [[0.8794, 1, "leave", null]], "loss": 0.5,
        "reorder": 0.3, "window": 1}""",
    ),
    Bug(
        "vector: the same",
        one_goodbye,
        "stuck: send",
        """{"order": "vector", "members": 3, "seed": 7027, "actions": [[0.026, 0, "use", "object"],
        [0.0569, 2, "leave", null]], "loss": 0.5, "duplicate": 0.2, "reorder": 0.3, "delay": 0.001}""",
    ),
    Bug(
        "co: the same",
        one_goodbye,
        "stuck: view",
        '{"order": "co", "members": 3, "seed": 200005, "actions": [[0.2607, 2, "leave", null]], "loss": 0.3}',
    ),
    Bug(
        "sco: the same",
        one_goodbye,
        "stuck: send",
        """{"order": "sco", "members": 2, "seed": 7067, "actions": [[0.0453, 0, "leave", null],
        [0.1094, 1, "send", [401, null, 5]]], "loss": 0.3, "datagram": 512, "window": 1}""",
    ),
    Bug(
        "relay: the same, of one that is not the relay",
        one_goodbye,
        "stuck: view",
        """{"order": "relay", "members": 2, "seed": 7073, "actions": [[0.0347, 1, "send", [4, null, 1]],
        [0.0418, 1, "leave", null]], "loss": 0.3, "delay": 0.1}""",
    ),
    Bug(
        "vector, use: a change waits for one whose goodbye was lost",
        one_goodbye,
        "stuck: use",
        """{"order": "vector", "members": 3, "seed": 7027, "actions": [[0.026, 0, "use", "object"],
        [0.0569, 2, "leave", null]], "loss": 0.5, "duplicate": 0.2, "reorder": 0.3, "delay": 0.001}""",
    ),
    Bug(
        "remiop: a greeting waits behind the window that its answer would open",
        numbered_greetings,
        "stuck: send",
        """{"order": "remiop", "members": 2, "seed": 2460, "actions": [[0.7268, 0, "send", [40, null, 7]]],
        "greet": true, "option": [["size", 4]]}""",
    ),
    Bug(
        "remiop+vector: the same",
        numbered_greetings,
        "stuck: send",
        """{"order": "remiop+vector", "members": 2, "seed": 560, "actions": [[0.8687, 0, "send", [61346, null, 1]]],
        "greet": true, "option": [["size", 32]]}""",
    ),
    Bug(
        "acks over MIOP: the same",
        numbered_greetings,
        "stuck: send",
        """{"order": "miop+acks", "members": 2, "seed": 1723, "actions": [[0.5985, 1, "send", [40, null, 7]]],
        "greet": true, "option": [["size", 4]]}""",
    ),
    Bug(
        "use: the layers of a closed view are kept where nothing is taken any more",
        layers_kept,
        "memory: Views.retired",
        """{"order": "co", "members": 2, "seed": 100069, "actions": [[0.0131, 1, "send", [40, null, 1]],
        [0.2131, 1, "leave", null], [0.6131, 0, "use", "none"]]}""",
    ),
    Bug(
        "acks over MIOP: alone in the group, a window is filled once",
        one_window_for_nobody,
        "stuck: send",
        """{"order": "miop+acks", "members": 1, "seed": 1, "actions": [[0.4641, 0, "send", [1334, null, 1]]],
        "option": [["size", 4], ["datagram", 256]]}""",
    ),
    Bug(
        "sco, leave: with its sender the first pieces of a packet are forgotten",
        pieces_forgotten,
        "stuck: deliver",
        """{"order": "sco", "members": 3, "seed": 8246, "actions": [[0.0229, 1, "send", [183906, null, 1]],
        [0.0275, 1, "leave", null]], "reorder": 0.3, "delay": 0.001,
        "option": [["window", 2], ["quota", 2]]}""",
    ),
    Bug(
        "leave: who leaves hears from others that it has left, and fails",
        excluded_by_its_own_goodbye,
        "excluded",
        """{"order": "relay", "members": 3, "seed": 7037, "actions": [[0.0379, 1, "send", [40, null, 1]],
        [0.0426, 2, "send", [122624, null, 1]], [0.0444, 2, "pause", 1.0], [0.0464, 1, "leave", null]], "loss": 0.1,
        "delay": 0.1, "window": 1}""",
    ),
]


@pytest.mark.interpreted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_the_hunter_finds_it_again(bug: Bug) -> None:
    """With these links, or with others of the same kind: which copies are lost changes with whatever is said more."""
    first = Plan.parse(bug.plan)
    plans = (replace(first, seed=first.seed + more) for more in range(SEEDS))
    with MonkeyPatch.context() as patch:
        bug.take_out(patch)
        shown = next((plan for plan in plans if bug.kind in [found.kind for found in judge(plan)]), None)
    assert shown is not None
    assert judge(shown) == [], "as the code is, there is nothing to find"


# What no run of the swarm shows


def fails_in_silence(patch: MonkeyPatch) -> None:
    patch.setattr(Stack, "fail", lambda stack, error: setattr(stack, "_error", stack._error or error))


def holds_nothing(patch: MonkeyPatch) -> None:
    patch.delattr(MachineOrder, "no_gate")


def sco_says_why_it_has_no_gate() -> None:
    with pytest.raises(UsageError, match="has not ordered"):
        Sim("alice", "bob", order="sco", record=False)["alice"].gate("open")


def leaves_without_a_row(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTrace, "row", _without_leaves(MemoryTrace.row))


def _without_leaves(row: Callable[..., None]) -> Callable[..., None]:
    def silent(trace: MemoryTrace, step: str, *values: Any, **named: Any) -> None:
        if step != "leave":
            row(trace, step, *values, **named)

    return silent


def who_leaves_has_a_row() -> None:
    traces = [MemoryTrace(process, 2) for process in range(2)]
    sim = Sim("alice", "bob", record=False, traces=traces)
    sim["alice"].send(b"hello")
    sim["bob"].send(b"bye")
    sim.run()
    sim["bob"].leave()
    sim.run()
    assert [[row.peer for row in trace.rows if row.step == "leave"] for trace in traces] == [[1], [1]]


def differences_untold(patch: MonkeyPatch) -> None:
    patch.setattr(Presence, "_tell_difference", lambda part, name, told: None)


def pieces_not_held(patch: MonkeyPatch) -> None:
    patch.setattr(Fragment, "held", 0)


def what_waits_weighs_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(sequenced, "WAITS", 0)


def delivery_unwatched(patch: MonkeyPatch) -> None:
    patch.setattr(Pressure, "turn", lambda part: None)


def everybody_is_blamed(patch: MonkeyPatch) -> None:
    patch.setattr(Co, "blockers", lambda layer: layer.stack.peers)


def any_source_is_believed(patch: MonkeyPatch) -> None:
    original = NativeWire.read

    def read(wire: NativeWire, batch: Iterable[tuple[Buffer, Hashable]]) -> list[Packet]:
        packets = original(wire, batch)
        for packet in packets:
            wire.stack.meet(packet, fresh=True)
        return packets

    patch.setattr(NativeWire, "read", read)


def any_view_is_believed(patch: MonkeyPatch) -> None:
    patch.setattr(
        changes, "view_told", lambda told, **_: View.of(*(name for name, *_ in told.people("members")))
    )


def a_forged_view_is_counted() -> None:
    """Nobody can be in a view twice; and who does not lead cannot close one."""
    for order in ("vector", "co", "sco", "total"):
        alice, bob = (site.stack for site in Sim("alice", "bob", order=order, record=False).sites)
        session: Any = bob.layer("session")
        following = replace(bob.view, number=2, attempt=1)
        for members in (bob.view.members, (bob.member, bob.member)):
            told = described(replace(following, members=members, processes=(0, 1)))
            session.say(0, bob.view.number, "flush", {**told, "gone": [], "slow": []})
        alice.receive([(joined(data), None) for _, data in bob.ready().send], now=0.0)
        assert alice.rejected == {"malformed": 1} and not alice.closing


class Red(NamedTuple):
    """A test that fails without the fix."""

    what: str
    take_out: TakeOut
    test: Callable[[], None]


RED = [
    Red(
        "a member that fails says no goodbye",
        fails_in_silence,
        test_failure.test_the_others_do_not_wait_for_one_that_failed,
    ),
    Red("orders that hold say they hold nothing", holds_nothing, sco_says_why_it_has_no_gate),
    Red("a leave leaves no row", leaves_without_a_row, who_leaves_has_a_row),
    Red(
        "members that differ wait in silence",
        differences_untold,
        test_remiop_late.test_who_comes_when_the_others_have_met_is_told_too,
    ),
    Red(
        "unfinished packets are not counted as held",
        pieces_not_held,
        test_fragment.test_unfinished_packets_are_held_but_for_the_oldest_of_each,
    ),
    Red(
        "what `total` holds is not counted",
        what_waits_weighs_nothing,
        test_sequenced.test_what_waits_for_its_place_keeps_no_window_closed,
    ),
    Red(
        "delivery stands still without notice",
        delivery_unwatched,
        test_co.test_a_person_is_told_who_holds_us_up,
    ),
    Red(
        "healthy members are blamed for a slow reader",
        everybody_is_blamed,
        test_co.test_a_slow_reader_is_named_by_others_and_names_itself,
    ),
    Red(
        "an address is believed before anything is accepted",
        any_source_is_believed,
        test_robustness.test_where_a_member_is_is_learnt_from_valid_packets_only,
    ),
    Red("a view that cannot be is believed", any_view_is_believed, a_forged_view_is_counted),
]


@pytest.mark.interpreted
@pytest.mark.parametrize("red", RED, ids=lambda red: red.what)
def test_a_test_goes_red(red: Red, monkeypatch: MonkeyPatch) -> None:
    red.test()
    red.take_out(monkeypatch)
    with pytest.raises((AssertionError, IngaError)):
        red.test()


ELSEWHERE = {
    "what orders without a gate say": "layers/test_gate.py test_no_gate_without_order",
    "options that would do nothing": "net/test_join.py test_what_cannot_be_meant",
    "two members of one name": "sim/test_swarm.py test_names_are_different",
    "the relation of messages without vectors": "causality/test_clock.py"
    " test_packets_without_vectors_are_related_only_within_a_sender",
    "an ordinary leave is certified": "certify/test_leave.py test_an_ordinary_leave",
    "a listener that raises": "net/test_group.py test_a_listener_that_fails_keeps_nobody_waiting",
    "live --rate": "cli/test_live.py test_a_rate_is_kept",
    "ready() says who is missing": "net/test_group.py test_ready_names_who_does_not_come_in_time",
    "what differs between members": "corba/multicast/test_remiop_late.py test_both_are_told_once_what_differs",
    "a queue that any message fills": "net/test_join.py test_what_cannot_be_meant",
    "keys that collide": "wire/test_value.py test_keys_that_can_be_made_to_collide_are_few",
    "expressions of a ShiViz file": "trace/test_importers.py test_expressions_of_the_file_are_not_run_unasked",
    "names in logs": "net/test_log.py test_names_of_others_command_no_terminal",
    "names on terminals": "cli/test_output.py test_a_certificate_names_processes_harmlessly",
}
"""What needs sockets, files or terminals, and the test that fails without its fix."""


@pytest.mark.parametrize("what", ELSEWHERE)
def test_what_is_tested_elsewhere_is_still_there(what: str) -> None:
    file, name = ELSEWHERE[what].split()
    assert f"def {name}(" in (TESTS / file).read_text()
