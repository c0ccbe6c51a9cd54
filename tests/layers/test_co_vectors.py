"""The worked examples of the CO protocol, from the files in tests/scenarios/co."""

import json
from pathlib import Path
from typing import Any

import pytest

from inga.lab.co.printed import PrintedCo
from inga.layers.co.machine import CoMachine
from inga.layers.co.ordering import insert_causally, precedes
from inga.layers.co.parts import CoMessage, Reached
from inga.layers.shape import Faults
from inga.model.packet import Packet
from inga.wire.co import unpack

from .co_world import Entities, Observed, Setting, World

SCENARIOS = Path(__file__).parent.parent / "scenarios" / "co"


def scenario(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SCENARIOS / f"{name}.json").read_text())
    return content


def test_every_scenario_is_played() -> None:
    """No file without a test: add one here with its test below."""
    assert sorted(path.stem for path in SCENARIOS.iterdir()) == [
        "v1_v2_examples",
        "v3_failure_conditions",
        "v4_acceptance",
        "v5_two_ways_to_know",
        "v6_windows",
    ]


# V1, V2


def test_examples_of_the_paper() -> None:
    file = scenario("v1_v2_examples")
    group = Entities(file["n"])
    checked = []

    def check(name: str) -> None:
        for entity in range(1, file["n"] + 1):
            assert state(group, entity, file[name]) == file[name], f"{name} at {entity}"
        checked.append(name)

    group.play(file["script"], check)
    assert checked == ["after_d", "after_h", "after_w"]
    assert {name: group.pdu(name) for name in file["pdus"]} == file["pdus"]


def state(group: Entities, entity: int, wanted: dict[str, Any]) -> dict[str, Any]:
    co = group.co(entity)
    assert isinstance(co, Observed)
    done = group.acknowledged(entity)
    found = {
        "REQ": co.expected,
        "AL": co.known_accepted.rows,
        "PAL": co.known_confirmed.rows,
        "RRL": [group.named(queue) for queue in co.accepted],
        "PRL": group.named(co.log),
        "ARL": done,
        "PRL_before_ACK_step": done + group.named(co.log),
        "inserted": [group.names[message] for message in co.inserted],
    }
    return {key: found[key] for key in wanted}


# V3


@pytest.mark.parametrize("case", [0, 1])
def test_failure_conditions(case: int) -> None:
    file = scenario("v3_failure_conditions")
    wanted = file["cases"][case]
    group = Entities(file["n"])
    group.play(wanted["script"])
    assert group.co(1).expected[1] == 4
    received = group.pdu(wanted["last"])
    assert received[:2] == [wanted["receive"]["SRC"], wanted["receive"]["SEQ"]]
    assert received[2] == wanted["receive"].get("ACK", received[2])
    accepted = [(row.src + 1, row.seq) for row in group.rows if row.step == "accept" and row.process == 0]
    assert (tuple(received[:2]) in accepted) == wanted["accepted"]

    ((source, target, nack),) = group.control
    asked = wanted["RET"]
    assert (source, target) == (1, asked["LSRC"])
    said = unpack(nack.ext or b"", 0, file["n"])
    assert said.expected is not None and said.expected[1] == asked["ACK_2"]
    assert said.runs == ((asked["LO"], asked["LSEQ"]),)

    group.receive(2, nack_bytes(group, nack))
    assert group.resent == [(2, 1, seq) for seq in wanted["resent"]]
    assert wanted["resent"] != file["printed_range_would_resend"]


def nack_bytes(group: Entities, nack: Packet) -> bytes:
    from inga.stack.stack import joined
    from inga.wire.packet import encode

    return joined(encode(nack, group.stacks[0].group))


# V4


class WithoutGate(Observed):
    """A message is accepted as soon as it is the next of its sender."""

    def _is_acceptable(self, claims: object) -> bool:
        return True


def test_without_the_gate_the_test_is_not_transitive_and_a_message_finds_no_place() -> None:
    file = scenario("v4_acceptance")
    wanted = file["without_gate"]
    group = Entities(file["n"], WithoutGate)
    group.play(wanted["script"])
    assert {name: group.pdu(name) for name in wanted["pdus"]} == wanted["pdus"]
    messages = {name: group.messages[name] for name in wanted["pdus"]}
    assert {test: precedes(messages[test[0]], messages[test[2]]) for test in wanted["direct_test"]} == wanted[
        "direct_test"
    ]
    log: list[CoMessage] = []
    *first, last = wanted["PACK_order"]
    for name in first:
        insert_causally(log, messages[name])
    assert group.named(log) == wanted["PRL_after_p"]
    assert wanted["slot_for_r"] is None
    with pytest.raises(AssertionError, match="no place for"):
        insert_causally(log, messages[last])


def test_the_gate_waits_for_what_precedes() -> None:
    file = scenario("v4_acceptance")
    wanted = file["with_gate"]
    group = Entities(file["n"])
    group.play(wanted["script"])
    co = group.co(wanted["at"])
    assert co.expected == wanted["REQ"]
    assert {str(src + 1): sorted(early) for src, early in enumerate(co.early) if early} == wanted["STASH"]
    ((source, target, nack),) = group.control
    assert (source, target) == (wanted["at"], wanted["RET"]["LSRC"])
    assert unpack(nack.ext or b"", nack.src, file["n"]).runs == (
        (wanted["RET"]["LO"], wanted["RET"]["LSEQ"]),
    )
    group.play(wanted["then"])
    assert co.expected == wanted["REQ_after"]
    group.play(wanted["built"])
    assert group.pdu("q") == wanted["q_built"]


# V5


def test_two_ways_to_know_are_not_mixed() -> None:
    file = scenario("v5_two_ways_to_know")
    co = PrintedCo(0, file["n"])
    message = CoMessage(file["row"] - 1, file["SEQ"], None, (), 0)
    co.log.append(message)
    co.held[0] = co.held_in_all = 1
    for reporter in range(file["n"]):
        co.known_confirmed.rise(0, reporter, file["PAL"][reporter])
        co.reported_confirmed.rise(0, reporter, file["QAL"][reporter])
    co.stages()
    assert bool(co.events) == file["acknowledged"]
    mixed = list(map(max, file["PAL"], file["QAL"]))
    assert mixed == file["entrywise_maximum"] and file["SEQ"] < min(mixed)
    # One more word of the third, and everybody has said so.
    co.reported_confirmed.rise(0, 2, 2)
    co.stages()
    assert co.events == [Reached("acknowledged", [message])]


# V6


class Mute(CoMachine):
    """Sends no confirmations."""

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        self.dirty = False


class AtOnce(World):
    """Every member fills its window before anything arrives."""

    def __init__(self, setting: Setting, machine: type[CoMachine]) -> None:
        super().__init__(setting, machine)
        self.heap.clear()
        for member in range(setting.n):
            for _ in range(setting.window):
                self._push(0.0, "send", member, None)


@pytest.mark.parametrize("window", scenario("v6_windows")["windows"])
@pytest.mark.parametrize("self_knowledge", ["printed", "eager"])
def test_full_windows_need_confirmations(window: int, self_knowledge: str) -> None:
    file = scenario("v6_windows")
    setting = Setting.of(
        1,
        n=file["n"],
        window=window,
        quota=64,
        messages=(window,) * file["n"],
        self_knowledge=self_knowledge,
        faults=Faults(delay_min=0.001, delay_max=0.001),
    )
    mute = AtOnce(setting, Mute)
    with pytest.raises(AssertionError, match="10: not quiet"):
        mute.run()
    expected = file["without_confirmations"]
    assert sum(map(len, mute.confirmed)) == expected["confirmed"]
    assert sum(map(len, mute.acknowledged)) == expected["acknowledged"]
    talking = AtOnce(setting, CoMachine)
    talking.run()
    assert file["with_confirmations"]["acknowledged"] == "all"
    assert [len(each) for each in talking.acknowledged] == [window * file["n"]] * file["n"]
