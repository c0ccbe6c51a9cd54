"""Who is here: whom we have met and who has left, for those who wait for it or want to be told."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from inga.model.errors import NotReady, UsageError
from inga.model.view import Member, View
from inga.net.log import log
from inga.stack.stack import Stack

MISSED_SECONDS = 5.0
"""Of waiting for members, after which a warning names those that are missing."""

NameListener = Callable[[str], None]
ViewListener = Callable[[View], None]


Told = TypeVar("Told")


class Company:
    """The members of a live group, as far as they are here."""

    def __init__(self, group: str, stack: Stack) -> None:
        self.present: dict[Member, None] = {}  # others that were met and have not left
        self.watchers: list[tuple[int, asyncio.Future[None]]] = []  # who waits for so many members
        self.group = group
        self._stack = stack
        self._loop = asyncio.get_running_loop()
        # When we last looked: who is here follows from it.
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

    async def ready(self, at_least: int | None, timeout: float | None) -> None:
        """Wait for so many members, or for all of them."""
        everybody = len(self._stack.view)
        wanted = everybody if at_least is None else at_least
        if wanted > everybody:
            raise UsageError(f"ready(at_least={wanted}): the group has {everybody} members")
        if len(self.here) >= wanted:
            return
        watcher = wanted, self._loop.create_future()
        self.watchers.append(watcher)
        warning = self._loop.call_later(MISSED_SECONDS, self._warn, wanted)
        try:
            async with asyncio.timeout(timeout):
                await watcher[1]
        except TimeoutError:
            raise NotReady(f"{self._who_is_missing(wanted)} after {timeout:g} s", self._missing) from None
        finally:
            warning.cancel()
            if watcher in self.watchers:
                self.watchers.remove(watcher)

    def on_join(self, listener: NameListener) -> None:
        self._on_join.append(listener)
        for member in self.present:
            self._tell(listener, member.name)

    def on_leave(self, listener: NameListener) -> None:
        self._on_leave.append(listener)

    def on_merge(self, listener: ViewListener) -> None:
        self._on_merge.append(listener)

    def reach(self, view: View) -> None:
        """The application has come to a view."""
        for listener in self._on_merge if view.merged else ():
            self._tell(listener, view)

    def notice(self) -> None:
        """Look who has come and who has left, and tell those who want to know."""
        stack = self._stack
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
        if joined:
            count = len(self.present) + 1
            for wanted, future in self.watchers:
                if count >= wanted and not future.done():
                    future.set_result(None)

    def _tell(self, listener: Callable[[Told], None], told: Told) -> None:
        """What a listener raises goes to the event loop's exception handler, and concerns nobody else."""
        try:
            listener(told)
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": "Exception in a listener for members that join or leave", "exception": error}
            )

    @property
    def _missing(self) -> tuple[str, ...]:
        here = set(self.here)
        return tuple(name for name in self._stack.view.names if name not in here)

    def _who_is_missing(self, wanted: int) -> str:
        return f"{len(self.here)} of {wanted} members are here, missing are {', '.join(self._missing)}"

    def _warn(self, wanted: int) -> None:
        log.warning("group %s: %s", self.group, self._who_is_missing(wanted))
