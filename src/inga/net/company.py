"""The members that are here: it notices which were met and which have left, for tasks that wait for members and for listeners."""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from inga.model.errors import NotReady, UsageError
from inga.model.view import Member, View
from inga.net.log import report
from inga.net.options import ForgedListener
from inga.session.pressure import WARN_AFTER
from inga.stack.stack import Stack

NameListener = Callable[[str], None]
ViewListener = Callable[[View], None]


Told = TypeVar("Told")


class Awaited(NamedTuple):
    """The members that a task waits for: at least so many, and those with these names. `at_least` is None for all members of the
    view at that time, which a member that was waited for may have left."""

    at_least: int | None
    names: frozenset[str] = frozenset()

    def is_met(self, here: tuple[str, ...], view: View) -> bool:
        return len(here) >= self.count(view) and self.names <= {*here}

    def count(self, view: View) -> int:
        """How many members have to be here."""
        return len(view) if self.at_least is None else self.at_least


FORGED_EVERY = 1.0
"""Seconds between two calls of `on_forged`, so that a flood does not keep the application busy."""

STRANGERS_NAMED = 3
"""The most processes without valid credentials that a message about missing members names."""


class Company:
    """The members of a live group that are here."""

    def __init__(self, group: str, stack: Stack, *, is_open: bool, on_forged: ForgedListener | None) -> None:
        """`is_open`: members are not listed, so there may be more than there are now. `on_forged` is called with the numbers of
        dropped datagrams."""
        self._on_forged = on_forged
        self._forged = 0  # the total at its last call
        self._tells_forged_at = 0.0  # it is not called before this time
        self.present: dict[Member, None] = {}  # others that were met and have not left
        self.watchers: list[tuple[Awaited, asyncio.Future[None]]] = []  # tasks that wait for members
        self.group = group
        self._is_open = is_open
        self._stack = stack
        self._loop = asyncio.get_running_loop()
        # The facts that determine which members are here, as of the last `notice`.
        self._seen: tuple[View | None, int, int] = (None, 0, 0)
        self._on_join: list[NameListener] = []
        self._on_leave: list[NameListener] = []
        self._on_merge: list[ViewListener] = []

    @property
    def here(self) -> tuple[str, ...]:
        """Members met that have not left, ourselves included."""
        mine = self._stack.member.identity
        present = {member.identity for member in self.present} | {mine}
        return tuple(member.name for member in self._stack.view.members if member.identity in present)

    async def ready(self, at_least: int | None, members: Iterable[str] | None, timeout: float | None) -> None:
        """Wait until `at_least` members are here, or these `members`, or all of the view."""
        _check_count(at_least)
        view = self._stack.view
        wanted = Awaited(at_least or 0, frozenset({members} if isinstance(members, str) else members or ()))
        if at_least is None and members is None:
            wanted = Awaited(None)
        if wanted.count(view) > len(view) and not self._is_open:
            raise UsageError(
                f"ready(at_least={at_least}): the group has {len(view)} member{'s' * (len(view) > 1)}"
            )
        if wanted.is_met(self.here, view):
            return
        watcher = wanted, self._loop.create_future()
        self.watchers.append(watcher)
        warning = self._loop.call_later(WARN_AFTER, self._warn, wanted)
        try:
            async with asyncio.timeout(timeout):
                await watcher[1]
        except TimeoutError:
            words = f"waited {timeout:g} s: {self._who_is_missing(wanted)}"
            raise NotReady(words, self._missing(wanted)) from None
        finally:
            warning.cancel()
            if watcher in self.watchers:
                self.watchers.remove(watcher)

    def on_join(self, listener: NameListener) -> None:
        _check_listener("on_join", listener)
        self._on_join.append(listener)
        for member in self.present:
            self._tell(listener, member.name)

    def on_leave(self, listener: NameListener) -> None:
        _check_listener("on_leave", listener)
        self._on_leave.append(listener)

    def on_merge(self, listener: ViewListener) -> None:
        _check_listener("on_merge", listener)
        self._on_merge.append(listener)

    def reach(self, view: View) -> None:
        """The application's iteration has reached a view: call the `on_merge` listeners if parts merge in it."""
        for listener in self._on_merge if view.merged else ():
            self._tell(listener, view)

    def notice(self) -> None:
        """Check which members have come or left, call the listeners and wake the tasks that wait for members."""
        stack = self._stack
        if self._on_forged is not None:
            self._notice_forged(self._on_forged)
        seen = (stack.view, len(stack.met), len(stack.left))
        if seen == self._seen:
            return
        self._seen = seen
        before = self.present
        self.present = {stack.view.members[m]: None for m in stack.peers if m in stack.met}
        joined = [member for member in self.present if member not in before]
        left = [member for member in before if member not in self.present]
        for members, listeners in ((joined, self._on_join), (left, self._on_leave)):
            for member in members:
                for listener in listeners:
                    self._tell(listener, member.name)
        for wanted, future in self.watchers:
            if wanted.is_met(self.here, stack.view) and not future.done():
                future.set_result(None)

    def _notice_forged(self, listener: ForgedListener) -> None:
        now, count = self._loop.time(), self._stack.rejected.total()
        if count > self._forged and now >= self._tells_forged_at:
            self._forged, self._tells_forged_at = count, now + FORGED_EVERY
            self._tell(listener, dict(self._stack.rejected))

    def _tell(self, listener: Callable[[Told], None], told: Told) -> None:
        """Call a listener. An exception in it goes to the event loop's exception handler, and has no other effect."""
        try:
            listener(told)
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": "Exception in a listener for what happens in a group", "exception": error}
            )

    def _missing(self, wanted: "Awaited") -> tuple[str, ...]:
        here, names = set(self.here), sorted(wanted.names) or self._stack.view.names
        return tuple(name for name in names if name not in here)

    def _who_is_missing(self, wanted: "Awaited") -> str:
        here, missing = set(self.here), ", ".join(self._missing(wanted))
        there, count = (
            (len(here & wanted.names), len(wanted.names))
            if wanted.names
            else (len(here), wanted.count(self._stack.view))
        )
        parts = [f"{there} of {count} members are here", *([f"missing are {missing}"] if missing else [])]
        return "; ".join([", ".join(parts), *self._strangers()])

    def _strangers(self) -> list[str]:
        """Sentences about processes that may be missing members, but whose datagrams cannot be read."""
        if self._stack.guard is not None:
            return self._stack.guard.strangers[:STRANGERS_NAMED]
        if self._stack.rejected["sealed"]:
            return ["somebody there has a secret= or an identity=, and this member has neither"]
        return []

    def _warn(self, wanted: "Awaited") -> None:
        report("members.missing", "%s", self._who_is_missing(wanted), group=self.group)


def _check_count(at_least: object) -> None:
    if at_least is not None and not (isinstance(at_least, int) and at_least > 0):
        raise UsageError(
            f"ready(at_least={at_least!r}): this is how many members have to be here, at least 1"
        )


def _check_listener(name: str, listener: object) -> None:
    if not callable(listener):
        raise UsageError(f"{name} is told a function to call, not {listener!r}")
