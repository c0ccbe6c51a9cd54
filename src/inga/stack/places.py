"""Where somebody of a group may be who is in no view of ours, as far as anybody has said so."""

from collections.abc import Iterable, Iterator

from inga.model.view import View

PLACES_MAX = 256
"""Places that are remembered; of more, the one that was named longest ago is forgotten."""


PLACE_MAX = 255
"""Characters of a place."""


class Places:
    """Addresses as members give them, `host:port`; none where a group is reached without."""

    __slots__ = ("_known", "_mine", "_seeds")

    def __init__(self, seeds: Iterable[str] = (), mine: str = "") -> None:
        """`seeds` are not forgotten. `mine` is where we are."""
        self._mine = mine
        self._seeds = tuple(dict.fromkeys(seed for seed in seeds if seed != mine))
        self._known: dict[str, None] = {}

    def learn(self, place: str) -> bool:
        """Somebody is there, or was; whether that is new."""
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
        """Those where no member of that view is."""
        members = {member.address for member in view.members}
        return [place for place in self if place not in members]
