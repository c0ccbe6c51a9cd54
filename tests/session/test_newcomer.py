"""One that wants to be let in: whom it asks, how often, and what it keeps until it is."""

from itertools import pairwise

from inga.model.view import Member
from inga.secure.credentials import SECRET
from inga.secure.handshake import KNOCK, MAGIC, TALKS, VERSION
from inga.secure.sealing import derive
from inga.session.asking import HOST_FOR
from inga.session.newcomer import STRANGE_FOR, Newcomer
from inga.stack.stack import EVERYBODY, joined

from .test_changes import NEXT, answer
from .town import Copy, Town


def dave() -> Newcomer:
    return Newcomer("", Member("dave", 7), now=0.0)


def asked(newcomer: Newcomer, now: float) -> dict[str, object]:
    """What it says when its time has come."""
    ((address, datagram),) = newcomer.tick(now)
    assert address is EVERYBODY
    return Copy("dave", "", joined(datagram)).told


def part(name: str, incarnation: int = 1, group: str = "00000000") -> tuple[bytes, None]:
    return answer("part", name=name, incarnation=incarnation, group=group, size=3)


def test_it_asks_ever_more_rarely_and_never_gives_up() -> None:
    newcomer, times = dave(), []
    for _ in range(200):
        times.append(newcomer.wake)
        asked(newcomer, newcomer.wake)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(pauses))
    assert pauses[0] <= 0.01 and 0.09 <= pauses[-1] <= 0.11


def test_it_asks_whoever_leads_and_nobody_else_for_a_while() -> None:
    """Two parts of a group that do not hear each other must not both let it in."""
    newcomer = dave()
    assert asked(newcomer, 0.0)["host"] == []
    newcomer.receive([part("zoe", group="00000001"), part("alice"), part("bob", 5)], now=0.1)
    assert newcomer.wake == 0.1, "at once"
    assert asked(newcomer, 0.1)["host"] == [["alice", 1, ""]]
    assert asked(newcomer, 0.09 + HOST_FOR)["host"] == [["alice", 1, ""]]
    assert asked(newcomer, 0.1 + HOST_FOR)["host"] == [], "alice does not answer"
    newcomer.receive([part("bob", 5)], now=1.0)
    assert asked(newcomer, 1.0)["host"] == [["bob", 5, ""]]


def test_it_comes_again_as_another_if_it_was_taken_for_dead() -> None:
    newcomer = dave()
    newcomer.receive([answer("again", name="dave", incarnation=7, free=5)], now=0.0)
    assert newcomer.member == Member("dave", 8)
    newcomer.receive([answer("again", name="dave", incarnation=7, free=5)], now=0.0)
    assert newcomer.member == Member("dave", 8), "a copy of the same word"
    welcome = {**NEXT, "cuts": [], "group": "00000000"}
    newcomer.receive([answer("welcome", **welcome)], now=0.0)
    assert newcomer.view is None, "of the one it was"
    people = [*NEXT["members"][:3], ["dave", 8, ""]]
    newcomer.receive([answer("welcome", **{**welcome, "members": people})], now=0.0)
    assert newcomer.view is not None and newcomer.me == 3


def test_without_a_key_it_gives_up_a_secured_group_after_a_while() -> None:
    knock = TALKS.pack(MAGIC, VERSION, KNOCK, SECRET, derive(b"", "group", "")[:4])
    newcomer = dave()
    newcomer.receive([(knock, None)], now=0.0)
    newcomer.tick(STRANGE_FOR - 0.01)
    assert newcomer.refused is None
    newcomer.tick(STRANGE_FOR)
    assert "the group of this name is secured" in str(newcomer.refused)


def test_what_was_sent_in_views_before_it_is_told_to_it() -> None:
    """For a trace, in which messages are numbered through all views."""
    town = Town(3, traced=True)
    for name in ("alice", "alice", "cathy"):
        town.send(name, b"one")
        town.wait(0.1)
    newcomer = town.knock("dave")
    town.quiet()
    assert newcomer.cuts == [2, 0, 1]
    town.send("bob", b"two")
    town.send("dave", b"two")
    town.quiet()
    town.leave("alice")
    town.quiet()
    newcomer = town.knock("erin")
    town.quiet()
    assert newcomer.cuts == [2, 1, 1, 1]


def test_who_joined_later_and_leads_by_now_knows_what_was_before_it() -> None:
    town = Town(2, traced=True)
    town.send("alice", b"one")
    town.quiet()
    town.knock("dave")
    town.quiet()
    for name in ("alice", "bob"):
        town.leave(name)
        town.quiet()
    assert town.names("dave") == ("dave",)
    newcomer = town.knock("erin")
    town.quiet()
    assert newcomer.cuts == [1, 0, 0]


def test_who_thinks_better_of_it_is_not_let_in() -> None:
    town = Town(2)
    newcomer = town.knock("dave")
    town.wait(0.2, lambda copy: copy.do == "flushed")
    assert town.changes("alice")._door.newcomers()
    for _, datagram in newcomer.goodbye():
        for name in ("alice", "bob"):
            town.inject(name, joined(datagram))
    town.crash("dave")
    assert not town.changes("alice")._door.newcomers()


def test_who_leaves_after_it_was_let_in_unheard_is_not_waited_for() -> None:
    town = Town(2)
    newcomer = town.knock("dave")
    town.wait(1.0, lambda copy: copy.do == "welcome", until=lambda: len(town.names("alice")) == 3)
    town.crash("dave")
    for _, datagram in newcomer.goodbye():
        for name in ("alice", "bob"):
            town.inject(name, joined(datagram))
    town.quiet()
    town.check("vector", "alice", "bob")


def test_whoever_says_goodbye_says_the_same_words() -> None:
    """A member that leaves, and a newcomer that has thought better of it: both are read by one reader."""
    town = Town(2)
    town.quiet()
    newcomer = town.knock("dave")
    ((_, datagram),) = newcomer.goodbye()
    told = Copy("dave", "alice", joined(datagram)).told
    town.leave("bob")
    ours = next(copy.told for copy in town.log if copy.do == "goodbye")
    assert told.keys() == ours.keys() and (told["itself"], ours["itself"]) == (False, True)
