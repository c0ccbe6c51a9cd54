"""States of objects, by hand: who keeps one for another asks until it hears that it has come."""

from inga.obg import ObjectClass
from inga.objects.layer import ObjectOrder
from inga.recipes import Options
from inga.session.handover import REMINDS

from .town import Copy, Town


class Book(ObjectClass):
    def initial(self) -> str:
        return "once upon a time"


def late(town: Town, name: str) -> ObjectOrder:
    order = town.member(name).layer("object")
    assert isinstance(order, ObjectOrder)
    return order


def test_who_does_not_say_that_it_has_a_state_is_asked_again_and_again() -> None:
    """Its word is lost, and so are the answers to the first questions."""
    town = Town(2, "object", options=Options(objects={"book": Book}))
    town.quiet()
    town.knock("cathy")
    town.wait(8 * REMINDS, _says_that_it_has_it)
    assert not late(town, "cathy").lacks()
    for name in ("alice", "bob"):
        assert late(town, name).incomplete() == {2} and not late(town, name).settled
    town.wait(12 * REMINDS)
    for name in ("alice", "bob"):
        assert late(town, name).incomplete() == set() and late(town, name).settled


def _says_that_it_has_it(copy: Copy) -> bool:
    return copy.do == "complete" and not copy.told["ask"]
