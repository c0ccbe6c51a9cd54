"""A newcomer that can never begin says so until those who let it in know."""

from inga.model.view import Member
from inga.session.door import REFUSED_MAX
from inga.session.newcomer import GOODBYES_MAX, NOBODY, Newcomer
from inga.wire.told import said

from .town import Copy, Town, of_session


def left_in_the_middle(town: Town) -> Newcomer:
    """Dave is in the view, has nobody's base, and hears that cathy has left."""
    dave = town.knock("dave")
    town.wait(1.0, lambda copy: copy.do == "base", until=lambda: dave.view is not None)
    assert dave.view is not None and dave.bases is None
    cathy = dave.view.members[2]
    told = {"name": cathy.name, "incarnation": cathy.incarnation, "group": f"{dave.group:08x}", "view": 2}
    dave.receive([(of_session(2, 0, said("goodbye", **told, itself=True)), None)], now=town.now)
    return dave


def test_it_does_not_wait_for_the_word_of_one_that_has_left() -> None:
    town = Town(3)
    dave = left_in_the_middle(town)
    town.leave("cathy")
    town.wake["dave"] = dave.wake
    town.wait(5.0, until=lambda: dave.refused is not None)
    assert dave.refused is not None and "cathy left meanwhile; try again" in str(dave.refused)
    for name in ("alice", "bob"):
        assert 3 in town.member(name).left, "nobody waits for dave"
        assert town.send(name, b"still here") is not None


def test_if_nobody_answers_it_goes_all_the_same() -> None:
    town = Town(3)
    dave = left_in_the_middle(town)
    goodbyes, start = 0, dave.wake
    while dave.refused is None:
        assert goodbyes <= GOODBYES_MAX
        goodbyes += sum(b"goodbye" in bytes(datagram) for _, datagram in dave.tick(dave.wake))  # type: ignore[arg-type]
    assert goodbyes == GOODBYES_MAX + 1
    assert 2.0 < dave.wake - start < 10.0, "a few seconds"


def test_a_goodbye_of_somebody_else_is_nothing_to_it() -> None:
    town = Town(3)
    dave = town.knock("dave")
    town.wait(1.0, lambda copy: copy.do == "base", until=lambda: dave.view is not None)
    stranger = Member("eve")
    told = {"name": stranger.name, "incarnation": 1, "group": f"{dave.group:08x}", "view": 2, "itself": True}
    dave.receive([(of_session(2, 0, said("goodbye", **told)), None)], now=town.now)
    town.wait(2.0, until=lambda: "dave" in town.members)
    assert "dave" in town.members


def test_who_was_refused_is_not_let_in_by_a_greeting_that_comes_late() -> None:
    town = Town(2, "co")
    town.knock("dave")
    hello = next(copy for copy in town_after_one_tick(town) if copy.do == "hello" and copy.target == "alice")
    town.wait(1.0, until=lambda: town.at["dave"].refused is not None)  # type: ignore[union-attr]
    del town.at["dave"], town.wake["dave"]
    assert town.use("bob", "fifo") == []
    town.quiet()
    town.arrive(hello)
    town.quiet()
    assert town.member("alice").view.names == ("alice", "bob")


def test_refused_newcomers_are_forgotten_in_the_end() -> None:
    town = Town(2, "co")
    door = town.changes("alice")._door
    for number in range(REFUSED_MAX + 1):
        told = {
            "name": "dave",
            "incarnation": number,
            "group": f"{town.member('alice').group:08x}",
            "address": "",
        }
        town.inject("alice", of_session(NOBODY, 0, said("hello", **told)))
        assert len(door._refused) == min(number + 1, REFUSED_MAX)


def town_after_one_tick(town: Town) -> list[Copy]:
    town.tick("dave")
    return list(town.under_way)
