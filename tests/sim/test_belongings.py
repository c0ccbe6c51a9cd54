"""What newcomers are given, in the swarm: the judge notices what is missing, what comes twice, and what never comes."""

from collections.abc import Iterator

import pytest

from inga.model.delivery import Batch
from inga.session.history import LastMessages
from inga.session.transfer import Transfer
from inga.sim.belongings import NUMBER, Belongings
from inga.sim.judge import judge
from inga.sim.site import Site
from inga.sim.swarm import Action, Plan
from inga.trial.workload import number_of

TALK = tuple(Action(0.05 * turn, turn % 3, "send", (40, None, 2)) for turn in range(12))
JOIN = Action(0.28, 3, "join")
STATE = (0, 0, 1000)


def kinds(order: str = "vector", *more: Action, **settings: object) -> list[str]:
    plan = Plan(order, 3, actions=(*TALK, JOIN, *more), **settings)  # type: ignore[arg-type]
    return [found.kind for found in judge(plan)]


@pytest.mark.parametrize("order", ["none", "fifo", "vector", "co", "sco", "relay", "object", "total"])
@pytest.mark.parametrize("what", [{"state": STATE}, {"state": (2, 1, 7)}, {"history": 5}, {"history": 0.2}])
def test_a_plain_run_is_clean(order: str, what: dict[str, object]) -> None:
    assert kinds(order, **what) == []


@pytest.mark.parametrize("who", [0, 1, 2])
def test_the_one_who_gives_may_die(who: int) -> None:
    assert kinds("vector", Action(0.35, who, "crash"), state=(16, 1, 1000), detect=0.5) == []


def changed(monkeypatch: pytest.MonkeyPatch, change: object) -> None:
    """States are made otherwise: of the numbers of messages that are in them."""
    original = Belongings._has

    def has(belongings: Belongings, site: Site, before: object = None) -> list[int]:
        return original(belongings, site, before)  # type: ignore[arg-type]

    def give(belongings: Belongings, site: Site) -> Iterator[bytes]:
        mine = [0, *change(has(belongings, site, site.queue[0][1]), site)]  # type: ignore[operator]
        yield b"".join(each.to_bytes(NUMBER, "big") for each in (0, len(mine), *mine))

    monkeypatch.setattr(Belongings, "give", give)


@pytest.mark.interpreted
def test_a_state_that_lacks_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, lambda messages, site: messages[1:])
    assert kinds(state=STATE) == ["state"]


@pytest.mark.interpreted
def test_a_state_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, lambda messages, site: messages[::-1])
    assert kinds("total", state=STATE) == ["state: order"] and kinds("vector", state=STATE) == []


@pytest.mark.interpreted
def test_a_state_of_a_later_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The giver has gone on, and what came meanwhile comes to the newcomer, too."""

    def later(messages: list[int], site: Site) -> list[int]:
        more = [batch for _, batch in site.queue if isinstance(batch, Batch)]
        return [*messages, *(number_of(payload) for batch in more for payload in batch.payloads)]

    changed(monkeypatch, later)
    reads_late = Action(0.25, 2, "stop_reading", 0.2)
    assert set(kinds("vector", reads_late, state=STATE)) == {"state", "state: twice"}


@pytest.mark.interpreted
def test_a_state_that_comes_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Transfer.put
    monkeypatch.setattr(Transfer, "put", lambda transfer, to, data: original(transfer, to, data[::-1]))
    assert "state: torn" in kinds(state=(1, 0, 1 << 20))


@pytest.mark.interpreted
def test_what_comes_before_a_cut_and_with_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose first giver dies waits in its first view, and is given the state of the next one."""
    monkeypatch.setattr(Site, "skip_to", lambda site, view: None)
    assert "state: twice" in kinds("vector", Action(0.35, 2, "crash"), state=(16, 1, 1000), detect=0.5)


@pytest.mark.interpreted
def test_a_state_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transfer, "_pass_on", lambda transfer, outgoing: None)
    assert "stuck: state" in kinds(state=STATE)


@pytest.mark.interpreted
def test_one_that_begins_without_a_state_that_others_have(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Transfer._choose

    def choose(transfer: Transfer, view: object, lack: object) -> None:
        transfer._give = []
        original(transfer, view, lack)  # type: ignore[arg-type]

    monkeypatch.setattr(Transfer, "_choose", choose)
    assert "state: missing" in kinds(state=STATE)


@pytest.mark.interpreted
@pytest.mark.parametrize("history", [5, 0.2])
def test_last_messages_that_lack_one(monkeypatch: pytest.MonkeyPatch, history: int | float) -> None:
    original = LastMessages._encoded

    def encoded(messages: LastMessages, now: float) -> bytes:
        messages._kept.pop()
        return original(messages, now)

    monkeypatch.setattr(LastMessages, "_encoded", encoded)
    assert kinds(history=history) == ["history"]


@pytest.mark.interpreted
def test_last_messages_that_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newcomer is told of what it takes after its cut, too."""
    original = Belongings.passed

    def passed(belongings: Belongings, site: Site, view: object, how: str) -> None:
        original(belongings, site, view, how)  # type: ignore[arg-type]
        if how == "took":
            site.taken.append(site.taken[-1])

    monkeypatch.setattr(Belongings, "passed", passed)
    assert "state: twice" in kinds(history=5)


# Applications that are reluctant


@pytest.mark.parametrize("do", ["once", "always", "pauses"])
@pytest.mark.parametrize("chunks", [0, 1, 3, 400])
@pytest.mark.parametrize("who", [(2,), (0, 2), (1, 2)])
def test_another_gives_what_one_refuses(who: tuple[int, ...], chunks: int, do: str) -> None:
    assert kinds(state=(16, 1, 1000), reluctant=tuple((each, do, chunks) for each in who)) == []


@pytest.mark.parametrize("chunks", [0, 3])
def test_where_nobody_can_the_newcomer_fails(chunks: int) -> None:
    always = tuple((who, "always", chunks) for who in range(3))
    assert kinds(state=(16, 1, 1000), reluctant=always) == []
    assert kinds(state=(16, 1, 1000), reluctant=always, detect=0.5) == []


@pytest.mark.interpreted
def test_who_fails_although_somebody_could_give_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transfer, "on_stateless", lambda transfer, *_: refuse(transfer))

    def refuse(transfer: Transfer) -> None:
        transfer._refusal = "cathy"
        transfer._miss("nobody")

    assert kinds(state=STATE, reluctant=((2, "once", 0),)) == ["error: UsageError"]
