"""A newcomer that can never begin says so until those who let it in know."""

from inga.model.view import Member
from inga.session.newcomer import GOODBYES_MAX, Newcomer
from inga.wire.told import said

from .town import Town, of_session


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
    goodbyes = 0
    while dave.refused is None:
        assert goodbyes <= GOODBYES_MAX
        goodbyes += sum(b"goodbye" in bytes(datagram) for _, datagram in dave.tick(dave.wake))  # type: ignore[arg-type]
    assert goodbyes == GOODBYES_MAX + 1


def test_a_goodbye_of_somebody_else_is_nothing_to_it() -> None:
    town = Town(3)
    dave = town.knock("dave")
    town.wait(1.0, lambda copy: copy.do == "base", until=lambda: dave.view is not None)
    stranger = Member("eve")
    told = {"name": stranger.name, "incarnation": 1, "group": f"{dave.group:08x}", "view": 2, "itself": True}
    dave.receive([(of_session(2, 0, said("goodbye", **told)), None)], now=town.now)
    town.wait(2.0, until=lambda: "dave" in town.members)
    assert "dave" in town.members
