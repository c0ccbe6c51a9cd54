"""Nobody has named the members, and nobody leads yet: those who ask to be let in hear each other, and one founds the group.

Everybody says `hello` without a host, outside all views. Whoever leads a view answers, and lets them in. If nobody does:

    gather     until no new face was seen for a while
    choose     whom others ask already and we have not heard; or else the lowest by name and incarnation of those who are
               there: the others ask that one to be let in, as they would ask the leader of a view
    found      the one chosen goes into a first view with all who ask it, and welcomes them

Who asks names one host alone, so that no two found a view with the same member in it. Who was chosen and dies on the way
is given up like a leader that does not answer, and the others gather again.

Rejected: to found a view alone and let the others in. That is two views for every group that begins, and in the second
one objects would have to be handed over that nobody has used yet.
"""

from inga.model.compiled import mypyc_attr
from inga.model.view import Member
from inga.session.alarms import NEVER

QUIET = 0.3
"""Seconds without a new face after which those who are there found a group."""

QUIET_APART = 0.5
"""The same where each has to be reached at an address of its own, by a connection that takes time."""

GATHER_MAX = 1.0
"""Seconds for which newcomers are waited for at most; and, once whoever was asked has not answered, at least: it may
lead a view and be late."""

GRACE = 0.2
"""Seconds that the one who is chosen gives the others to ask it."""

FRESH = 0.5
"""Seconds after which one that has not asked again is not there any more: many times the pause between two questions."""

PATIENCE = 2
"""How often one that others ask, and that we do not hear, is asked in vain before it counts as gone. Else those who give it
up at different times would remind each other of it for ever."""

FACES_MAX = 256
"""Others that are remembered."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Gathering:
    """Who else is without a view."""

    def __init__(self, now: float, *, is_apart: bool = False) -> None:
        """`is_apart`: each has to be reached at an address of its own."""
        self._faces: dict[tuple[str, int], _Face] = {}
        self._quiet = QUIET_APART if is_apart else QUIET
        self._began = self._changed = now
        self._asked = NEVER  # when somebody first asked us
        self._in_vain: dict[tuple[str, int], int] = {}  # how often we have asked whom; until it is heard

    def saw(self, me: Member, person: Member, host: tuple[str, int] | None, now: float) -> None:
        """Somebody without a view asks that one, or has nobody to ask."""
        if host == me.identity:
            self._asked = min(self._asked, now)
        self._in_vain.pop(person.identity, None)
        face = self._faces.get(person.identity)
        if face is None or now - face.seen >= FRESH:
            self._changed = now
            self._forget(now)
        if face is not None or len(self._faces) < FACES_MAX:
            self._faces[person.identity] = _Face(person, host, now)

    def expect(self, now: float) -> None:
        """There is a place where somebody may be whom we have not seen yet."""
        self._changed = now

    def gone(self, person: tuple[str, int]) -> None:
        """It does not want to be in the group any more."""
        self._faces.pop(person, None)
        self._note_absent(person, PATIENCE)

    def begin_again(self, asked: tuple[str, int], now: float) -> None:
        """Whoever was asked has not answered."""
        self._note_absent(asked, self._in_vain.get(asked, 0) + 1)
        self._quiet = GATHER_MAX
        self._began = self._changed = now
        self._asked = NEVER

    def _note_absent(self, person: tuple[str, int], times: int) -> None:
        self._in_vain[person] = times
        if len(self._in_vain) > FACES_MAX:
            del self._in_vain[next(iter(self._in_vain))]

    def due(self, me: Member, now: float) -> float:
        """When there may be something to conclude from what was seen so far."""
        end = self._end
        if now < end or self._have_all_asked(me, now):
            return end
        return min(self._complete, self._asked) + GRACE

    @property
    def _complete(self) -> float:
        """When nobody new is waited for any more."""
        return min(self._changed + self._quiet, self._began + GATHER_MAX)

    @property
    def _end(self) -> float:
        """The same, but who asks us has waited long enough already."""
        return min(self._complete, self._asked + GRACE)

    def chosen(self, me: Member, now: float) -> tuple[str, int] | None:
        """Who is to be asked, or is to found the group, once no new face was seen for a while."""
        if now < self._end:
            return None
        there = self._there(now)
        free = {me.identity, *(face.person.identity for face in there if face.host is None)}
        absent = {person for person, times in self._in_vain.items() if times >= PATIENCE}
        unheard = {face.host for face in there if face.host is not None} - free - absent
        return min(unheard or free)

    def founders(self, me: Member, now: float) -> tuple[Member, ...] | None:
        """As the one that was chosen: who is in the first view, ourselves first, as we lead it; None: some have not asked
        us yet."""
        if now < self.due(me, now):
            return None
        founders = {me.name: me}
        for face in self._there(now):
            if face.host == me.identity:
                founders.setdefault(face.person.name, face.person)
        return tuple(founders.values())

    def _have_all_asked(self, me: Member, now: float) -> bool:
        return all(face.host == me.identity for face in self._there(now))

    def _there(self, now: float) -> "list[_Face]":
        there = [face for face in self._faces.values() if now - face.seen < FRESH]
        return sorted(there, key=lambda face: face.person.identity)

    def _forget(self, now: float) -> None:
        self._faces = {key: face for key, face in self._faces.items() if now - face.seen < FRESH}


@mypyc_attr(allow_interpreted_subclasses=True)
class _Face:
    """Somebody else without a view."""

    __slots__ = ("host", "person", "seen")

    def __init__(self, person: Member, host: tuple[str, int] | None, seen: float) -> None:
        self.person = person
        self.host = host  # whom it asks
        self.seen = seen
