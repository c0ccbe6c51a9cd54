"""How processes found a group whose members were not listed: they hear each other's requests for admission, and agree on one founder.

Each process sends `hello` without a host, outside all views. The leader of a view answers, and admits them. If there is none:

    gather     until no new process (*face*) was seen for a while
    choose     a process that others ask and that we have not heard; or else the lowest by name and incarnation of those
               present that have no host: the others ask it for admission, as they would ask the leader of a view
    found      the chosen process installs a first view with all that ask it, and welcomes them

A request names one host only, so that no two processes found a view with the same member in it. A chosen process that dies before the view is founded
is given up like a leader that does not answer, and the others gather again.

Rejected: to found a view alone and admit the others. Every group would begin with two views, and for the second
one objects would have to be handed over that nobody has used yet.
"""

from inga.model.compiled import mypyc_attr
from inga.model.view import Member
from inga.session.alarms import NEVER

QUIET = 0.3
"""Seconds without a new face after which the processes that are present found a group."""

QUIET_APART = 0.5
"""The same where each process has an address of its own, since connections take time."""

GATHER_MAX = 1.0
"""Seconds for which we wait for new faces, at most. After the process that we asked has not answered, we wait for all of them, since that
process may lead a view and be late."""

GRACE = 0.2
"""Seconds for which the chosen process waits for the others to ask it."""

FRESH = 0.5
"""Seconds after which a process that has not repeated its request counts as gone: many times the pause between two requests."""

PATIENCE = 2
"""How often we ask a process in vain that others ask and we do not hear, before it counts as gone. Otherwise processes that give it
up at different times would choose it again for ever, each because of the others' requests to it."""

FACES_MAX = 256
"""Processes that are remembered."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Gathering:
    """What one process knows of the others that have no view."""

    def __init__(self, now: float, *, is_apart: bool = False) -> None:
        """`is_apart`: each process has to be reached at an address of its own."""
        self._faces: dict[tuple[str, int], _Face] = {}
        self._quiet = QUIET_APART if is_apart else QUIET
        self._began = self._changed = now
        self._asked = NEVER  # when a process first asked us
        # How often we have asked each process in vain, until it is heard.
        self._in_vain: dict[tuple[str, int], int] = {}

    def saw(self, me: Member, person: Member, host: tuple[str, int] | None, now: float) -> None:
        """Note the request of a process without a view, which asks that host, or none."""
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
        """A new address was learned, where a process may be that we have not seen yet: extend the wait."""
        self._changed = now

    def gone(self, person: tuple[str, int]) -> None:
        """A process has withdrawn its request."""
        self._faces.pop(person, None)
        self._note_absent(person, PATIENCE)

    def begin_again(self, asked: tuple[str, int], now: float) -> None:
        """The process that we asked has not answered: gather again."""
        self._note_absent(asked, self._in_vain.get(asked, 0) + 1)
        self._quiet = GATHER_MAX
        self._began = self._changed = now
        self._asked = NEVER

    def _note_absent(self, person: tuple[str, int], times: int) -> None:
        self._in_vain[person] = times
        if len(self._in_vain) > FACES_MAX:
            del self._in_vain[next(iter(self._in_vain))]

    def due(self, me: Member, now: float) -> float:
        """The next time at which to call `chosen` or `founders`, as far as is known now."""
        end = self._end
        if now < end or self._have_all_asked(me, now):
            return end
        return min(self._complete, self._asked) + GRACE

    @property
    def _complete(self) -> float:
        """The time from which we do not wait for new faces any more."""
        return min(self._changed + self._quiet, self._began + GATHER_MAX)

    @property
    def _end(self) -> float:
        """The same, or earlier, if a process has asked us: `GRACE` after its first request."""
        return min(self._complete, self._asked + GRACE)

    def chosen(self, me: Member, now: float) -> tuple[str, int] | None:
        """Return the process to ask, or ourselves if we are to found the group; None while new faces are waited for."""
        if now < self._end:
            return None
        there = self._there(now)
        free = {me.identity, *(face.person.identity for face in there if face.host is None)}
        absent = {person for person, times in self._in_vain.items() if times >= PATIENCE}
        unheard = {face.host for face in there if face.host is not None} - free - absent
        return min(unheard or free)

    def founders(self, me: Member, now: float) -> tuple[Member, ...] | None:
        """As the chosen process: return the members of the first view, ourselves first, since we lead it; None while we wait for processes
        that have not asked us yet."""
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
    """Another process without a view."""

    __slots__ = ("host", "person", "seen")

    def __init__(self, person: Member, host: tuple[str, int] | None, seen: float) -> None:
        self.person = person
        self.host = host  # the process that it asks
        self.seen = seen
