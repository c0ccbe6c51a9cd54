"""Newcomers get the state of objects as it was at the cut: piece by piece, from another if the one they asked is gone."""

import random

import pytest

from inga.layers.shape import Faults
from inga.model.errors import WouldBlock
from inga.obg import Abort, ObjectClass, method
from inga.objects.layer import ObjectOrder
from inga.recipes import Options
from inga.session.hearing import WORDS
from inga.session.pieces import AGAIN, ANSWER_MAX, PIECE, PIECES, PIECES_MAX, EarlyPieces, piece_size
from inga.session.session import Session
from inga.sim import Sim
from inga.sim.memory import leaks
from inga.sim.site import Site
from inga.wire.told import Told

NAMES = ("alice", "bob", "cathy", "dave")
DETECT = 0.5


class Account(ObjectClass):
    def initial(self) -> int:
        return 100

    @method()
    async def add(self, ctx, amount):  # type: ignore[no-untyped-def]
        if self.state + amount < 0:
            raise Abort("too little")
        ctx.effect(lambda state: state + amount)


class Book(ObjectClass):
    def initial(self) -> list[bytes]:
        return []

    @method()
    async def write(self, ctx, page):  # type: ignore[no-untyped-def]
        ctx.effect(lambda state: [*state, page])


class Odd(ObjectClass):
    """Its state is nothing that can be sent."""

    def initial(self) -> object:
        return object()


def group(
    order: str,
    objects: dict[str, object],
    *,
    faults: Faults | None = None,
    seed: int = 0,
    datagram_max: int = 60 * 1024,
) -> Sim:
    options = Options(detect=DETECT)
    return Sim(
        *NAMES,
        order=order,
        objects=objects,
        seed=seed,
        faults=faults or Faults(delay_max=0.01),
        options=options,
        record=False,
        datagram_max=datagram_max,
    )


@pytest.mark.parametrize("order", ["object", "total"])
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_a_newcomer_has_what_all_have(order: str, loss: float) -> None:
    sim = group(order, {"account": Account}, faults=Faults(loss, delay_max=0.01))
    for site in sim.sites:
        site.call("account", "add", 7)
    sim.run(2.0)
    erin = sim.join("erin")
    sim.run(5.0)
    assert [site.state("account") for site in (*sim.sites[:4], erin)] == [128] * 5
    erin.call("account", "add", 1)
    sim.calm()
    sim.run(10.0)
    assert {site.state("account") for site in sim.sites} == {129}


def test_a_state_of_many_pieces_comes_whole() -> None:
    pages = 3 * PIECES + 1
    sim = group("object", {"book": Book})
    for number in range(pages):
        sim["alice"].call("book", "write", bytes([number]) * PIECE)
    sim.run(5.0)
    erin = sim.join("erin")
    sim.run(10.0)
    assert erin.state("book") == sim["alice"].state("book") and len(erin.state("book")) == pages


def test_another_goes_on_where_the_first_has_failed() -> None:
    """Alice is asked first. Whatever has come of her stays."""
    sim = group("object", {"book": Book})
    for number in range(4 * PIECES):
        sim["bob"].call("book", "write", bytes([number]) * PIECE)
    sim.run(5.0)
    erin = sim.join("erin")
    while erin.newcomer is not None:
        sim.run(sim.now + 0.001)
    sim.run(sim.now + 0.005)
    order = erin.stack.layer("object")
    assert order.lacks()  # type: ignore[union-attr]
    sim["alice"].crash()
    sim.run(sim.now + 10.0)
    assert erin.stack.view.failed == ("alice",)
    assert erin.state("book") == sim["bob"].state("book") and erin.stack.writable


def test_until_it_has_the_state_it_takes_no_calls_and_makes_none() -> None:
    sim = group("object", {"account": Account})
    sim.run(0.5)
    erin = sim.join("erin")
    sim.at(0.5, erin, lambda: None)
    while erin.newcomer is not None:
        sim.run(sim.now + 0.0005)
    assert not erin.stack.writable
    with pytest.raises(WouldBlock):
        erin.call("account", "add", 1)
    while not sim["bob"].stack.writable:
        sim.run(sim.now + 0.0005)
    root = sim["bob"].call("account", "add", 1)
    sim.run(5.0)
    assert erin.stack.writable and root.done and erin.state("account") == 101


def test_what_cannot_be_handed_over_is_said() -> None:
    sim = group("object", {"odd": Odd})
    sim.run(0.5)
    sim.join("erin")
    with pytest.raises(Exception, match="no state for one who joins"):
        sim.run(5.0)


def test_who_has_no_copy_lacks_nothing() -> None:
    sim = group("object", {"account": (Account, ["alice", "bob"])})
    sim["cathy"].call("account", "add", 1)
    sim.run(1.0)
    erin = sim.join("erin")
    sim.run(4.0)
    root = erin.call("account", "add", 1)
    sim.run(6.0)
    assert root.done and root.error is None and sim["bob"].state("account") == 102


@pytest.mark.parametrize("order", ["object", "total"])
@pytest.mark.parametrize("seed", range(3))
def test_a_bank_keeps_its_sum_through_failures_and_returns(order: str, seed: int) -> None:
    chance = random.Random(seed)
    accounts = ("red", "green", "blue")
    sim = group(
        order, dict.fromkeys(accounts, Account), faults=Faults(0.1, 0.05, 0.1, 0.001, 0.005), seed=seed
    )

    def transfer(name: str) -> None:
        site = sim[name]
        if site.is_member and site.stack.writable:
            source, target = chance.sample(accounts, 2)
            amount = chance.randint(1, 30)

            async def body(ctx):  # type: ignore[no-untyped-def]
                await ctx.call(source, "add", -amount)
                await ctx.call(target, "add", amount)

            roots.append((site, site.begin(body)))

    def fail(name: str) -> None:
        if sim[name].is_member and sum(site.is_member for site in sim.sites) > 2:
            sim[name].crash()

    def come_back(name: str) -> None:
        if sim[name].has_left:
            sim.join(name)

    roots: list[tuple[Site, object]] = []
    for episode in range(4):
        start = 3.0 * episode
        for _ in range(20):
            _plan(sim, start + 2.5 * chance.random(), transfer, chance.choice(NAMES))
        victim = chance.choice(NAMES)
        _plan(sim, start + 1.0 + 0.2 * chance.random(), fail, victim)
        _plan(sim, start + 1.2 + 1.5 * chance.random(), come_back, victim)
    sim.run(12.0)
    sim.calm()
    sim.run(25.0)
    members = [site for site in sim.sites if site.is_member]
    assert sorted(site.name for site in members) == list(NAMES)
    states = [[site.state(name) for name in accounts] for site in members]
    assert all(state == states[0] for state in states) and sum(states[0]) == 300
    assert all(root.done for site, root in roots if not site.has_left)  # type: ignore[attr-defined]


def _plan(sim: Sim, at: float, act, name: str) -> None:  # type: ignore[no-untyped-def]
    sim.at(at, sim.sites[0], lambda: act(name))


def kept(sim: Sim) -> int:
    """Octets and states that members keep for newcomers."""
    found = 0
    for site in (site for site in sim.sites if site.is_member):
        session, order = site.stack.layer("session"), site.stack.layer("object")
        assert isinstance(session, Session) and isinstance(order, ObjectOrder)
        found += sum(map(len, session.handover._given.values())) + len(order._late._given)
    return found


@pytest.mark.parametrize("fate", ["stays", "crashes", "two"])
def test_what_newcomers_were_given_is_kept_until_they_have_it(fate: str) -> None:
    sim = group("object", {"book": Book})
    for number in range(20):
        sim["alice"].call("book", "write", bytes([number]) * PIECE)
    sim.run(5.0)
    erin = sim.join("erin")
    if fate == "two":
        sim.join("fred")
    while erin.newcomer is not None:
        sim.run(sim.now + 0.001)
    sim.run(sim.now + 0.01)
    assert kept(sim)
    if fate == "crashes":
        erin.crash()
    sim.run(sim.now + 5.0)
    assert not kept(sim)
    here = [site for site in sim.sites if site.is_member]
    assert all(site.state("book") == sim["alice"].state("book") for site in here)
    assert {where for site in here for where, _ in leaks(site.stack)} <= {"State.value", "State._base"}


@pytest.mark.parametrize("over", ["vector", "object"])
def test_pieces_come_in_any_order(over: str) -> None:
    """One question brings eight pieces, however they overtake each other: by time, a state of forty takes few round trips more
    than five."""
    pieces, delay = 5 * PIECES, 0.05
    data = random.Random(5).randbytes(pieces * PIECE)
    faults = Faults(delay_min=0.01, delay_max=delay)
    taken: list[bytes] = []
    if over == "object":
        sim = group("object", {"book": Book}, faults=faults)
        for at in range(0, len(data), PIECE):
            sim["alice"].call("book", "write", data[at : at + PIECE])
    else:
        give = lambda site: iter([data])  # noqa: E731
        sim = Sim(
            *NAMES, order=over, faults=faults, record=False, give=give, take=lambda site, it: taken.append(it)
        )
    sim.run(5.0)
    erin = sim.join("erin")
    while erin.newcomer is not None:
        sim.run(sim.now + 0.001)
    since = sim.now
    while erin.objects.lacks() if over == "object" else not taken:  # type: ignore[union-attr]
        sim.run(sim.now + 0.01)
    assert sim.now - since < (2 * pieces // PIECES) * 2 * delay, (
        "one piece for each question would take eight times as long"
    )
    assert (
        (b"".join(sorted(erin.state("book"))) == b"".join(sorted(sim["bob"].state("book"))))
        if over == "object"
        else taken == [data]
    )


def test_early_pieces_wait_for_those_before_and_are_few() -> None:
    early, told = EarlyPieces(), Told({})

    def places(expected: int, offset: int, size: int = 10) -> list[int]:
        found = early.in_turn(expected, offset, bytes([offset // 10 % 256]) * size, told)
        return [body[0] for body, _ in found]

    assert places(0, 20) == places(0, 10) == []
    assert places(0, 20) == [], "once more"
    assert places(0, 0) == [0, 1, 2]
    assert early._pieces == {}
    assert places(30, 10) == [], "what has come already is nothing new"
    assert places(30, 50) == [] and places(30, 45) == []
    assert places(30, 30, 20) == [3, 5], "and what no longer fits is dropped"
    assert early._pieces == {}
    for place in range(70, 70 + 10 * PIECES_MAX + 20, 10):
        assert places(60, place) == []
    assert len(early._pieces) == PIECES_MAX
    early = EarlyPieces()
    assert places(60, 60 + ANSWER_MAX) == [] and early._pieces == {}, "no question reaches as far"
    assert places(60, 60 + ANSWER_MAX - 1) == [] and len(early._pieces) == 1


def test_early_pieces_have_few_octets_together() -> None:
    """However they overlap; what is kept twice counts once, and what is gone does not count."""
    early, told, body = EarlyPieces(), Told({}), bytes(PIECE)
    for _ in range(2):
        for place in range(2, 2 + 2 * PIECES):
            assert early.in_turn(1, place, body, told) == []
        assert sorted(early._pieces) == list(range(2, 2 + PIECES))
        assert len(early.in_turn(1, 1, bytes(PIECE + PIECES), told)) == 1 and early._pieces == {}


@pytest.mark.parametrize("over", ["fifo", "object"])
def test_a_state_crosses_long_links_in_small_datagrams(over: str) -> None:
    """Eight pieces for each round trip would take 26 s, and four times as many datagrams."""
    delay, size = 0.1, 200_000
    data, taken = random.Random(5).randbytes(size), list[bytes]()
    faults, datagram_max = Faults(delay_min=delay, delay_max=delay), 512
    if over == "object":
        sim = group("object", {"book": Book}, faults=faults, datagram_max=datagram_max)
        sim["alice"].call("book", "write", data)
        sim.run(30.0)
    else:
        give = lambda site: iter([data])  # noqa: E731
        sim = Sim(
            *NAMES,
            order=over,
            faults=faults,
            datagram_max=datagram_max,
            record=False,
            give=give,
            take=lambda site, it: taken.append(it),
        )
        sim.run(2.0)
    erin = sim.join("erin")
    while erin.newcomer is not None:
        sim.run(sim.now + 0.01)
    since, sent = sim.now, sim.network.sent
    while erin.objects.lacks() if over == "object" else not taken:  # type: ignore[union-attr]
        sim.run(sim.now + 0.01)
    assert sim.now - since < 16 * 2 * delay
    pieces = size // piece_size(erin.stack)
    assert sim.network.sent - sent < 1.5 * pieces, "and hardly anything is sent twice"
    assert erin.state("book") == [data] if over == "object" else taken == [data]


@pytest.mark.parametrize("over", ["fifo", "object"])
def test_a_state_of_more_pieces_than_words_are_heard_comes_at_the_pace_of_the_link(over: str) -> None:
    """Pieces that were asked for use up no budget: if they did, each that is refused would be asked for and sent once more."""
    size, datagram_max, delay = 1_200_000, 512, 0.0002
    data, taken = random.Random(5).randbytes(size), list[bytes]()

    class Large(ObjectClass):
        def initial(self) -> bytes:
            return data

    give = (lambda site: iter([data])) if over == "fifo" else None
    sim = Sim(
        *NAMES,
        order=over,
        objects={"large": Large} if over == "object" else None,
        faults=Faults(delay_min=delay, delay_max=delay),
        datagram_max=datagram_max,
        record=False,
        give=give,
        take=lambda site, it: taken.append(it),
    )
    sim.run(1.0)
    sent, came = sim.network.sent, [sim.join(name) for name in ("erin", "fred")]
    sim.run(3.0)
    assert ([site.state("large") for site in came] if over == "object" else taken) == [data] * 2
    pieces = 2 * size // piece_size(came[0].stack)
    assert pieces > 2 * WORDS and sim.network.sent - sent < 1.05 * pieces
    assert not any(site.stack.rejected["budget"] for site in sim.sites)


def test_as_long_as_pieces_come_no_question_is_repeated() -> None:
    """Those of one answer may be on their way for very different times."""
    sim = group("object", {"book": Book}, faults=Faults(delay_min=0.01, delay_max=0.3), datagram_max=2000)
    sim["alice"].call("book", "write", random.Random(5).randbytes(100_000))
    sim.run(10.0)
    erin = sim.join("erin")
    while erin.newcomer is not None:
        sim.run(sim.now + 0.01)
    session = erin.stack.layer("session")
    assert isinstance(session, Session)
    came, step, looks = 0, 0.001, 0
    while erin.objects.lacks():  # type: ignore[union-attr]
        sim.run(sim.now + step)
        for coming in session.handover._come.values():
            if len(coming.data) > came:
                came, looks = len(coming.data), looks + 1
                assert coming.due >= sim.now - step + AGAIN
    assert looks > PIECES


def test_a_lost_question_is_repeated_as_soon_as_the_last_answer_allows() -> None:
    """However long questions had to wait before: after a cut the first answer was late, the second is not."""
    delay, step = 0.01, 0.001
    sim = group("object", {"book": Book}, faults=Faults(delay_min=delay, delay_max=delay))
    for number in range(8 * PIECES):
        sim["alice"].call("book", "write", bytes([number]) * PIECE)
    sim.run(5.0)
    erin, alice = sim.join("erin"), sim["alice"]
    while erin.newcomer is not None:
        sim.run(sim.now + step)
    session = erin.stack.layer("session")
    assert isinstance(session, Session)

    def more_has_come() -> None:
        coming = session.handover._come["book"]
        had = len(coming.data)
        while len(coming.data) == had:
            sim.run(sim.now + step)

    way = (erin.index, alice.index)
    sim.network.cut.add(way)
    sim.run(sim.now + DETECT / 2)
    sim.network.cut.discard(way)
    more_has_come()
    sim.run(sim.now + delay / 2)  # the next question is on its way, and the one after it will be lost
    sim.network.cut.add(way)
    more_has_come()
    lost_at = sim.now
    sim.network.cut.discard(way)
    more_has_come()
    assert sim.now - lost_at < 2 * (2 * delay) * 1.25 + 2 * delay + 4 * step


def test_half_a_state_of_those_who_are_gone_is_not_mixed_with_that_of_another_newcomer() -> None:
    """All who have it die while both newcomers have some of it. What one of them has itself is what both go on with."""
    sim = Sim(
        "alice",
        order="object",
        objects={"book": Book},
        faults=Faults(delay_min=0.01, delay_max=0.01),
        options=Options(detect=DETECT, partition="all"),
        record=False,
    )
    for number in range(8 * PIECES):
        sim["alice"].call("book", "write", bytes([number]) * PIECE)
    sim.run(1.0)
    dave, *newcomers = [sim.join(name) for name in ("dave", "erin", "fred")]
    while not all(site.newcomer is None and _has_some(site) for site in newcomers):
        sim.run(sim.now + 0.001)
        assert sim.now < 20.0
    for site in (sim["alice"], dave):
        site.crash()
    sim.run(sim.now + 10.0)
    assert newcomers[0].state("book") == newcomers[1].state("book") == []
    assert all(site.stack.writable and site.stack.view.names == ("erin", "fred") for site in newcomers)


def _has_some(site: Site) -> bool:
    session = site.stack.layer("session")
    assert isinstance(session, Session)
    return any(coming.data for coming in session.handover._come.values())
