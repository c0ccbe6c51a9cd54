"""The known addresses at which processes of the group may be that are not in our view."""

from collections.abc import Iterable, Iterator

from inga.model.view import View

PLACES_MAX = 256
"""The most addresses that are remembered; beyond that, the one that was learned longest ago is forgotten."""


PLACE_MAX = 255
"""The most characters of an address."""


class Places:
    """Addresses in the form `host:port`, as members announce them; none if the group is reached by multicast."""

    __slots__ = ("_known", "_mine", "_seeds")

    def __init__(self, seeds: Iterable[str] = (), mine: str = "") -> None:
        """`seeds` are never forgotten. `mine` is our own address."""
        self._mine = mine
        self._seeds = tuple(dict.fromkeys(seed for seed in seeds if seed != mine))
        self._known: dict[str, None] = {}

    def learn(self, place: str) -> bool:
        """Remember an address at which a process is, or was; return whether it is new."""
        if not 0 < len(place) <= PLACE_MAX or place in self._seeds or place == self._mine:
            return False
        is_new = place not in self._known
        self._known.pop(place, None)
        self._known[place] = None
        if len(self._known) > PLACES_MAX:
            del self._known[next(iter(self._known))]
        return is_new

    def __iter__(self) -> Iterator[str]:
        return iter((*self._seeds, *self._known))

    def beside(self, view: View) -> list[str]:
        """The addresses that no member of that view has."""
        members = {member.address for member in view.members}
        return [place for place in self if place not in members]
