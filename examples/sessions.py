"""Sessions and applications with names: a listener is told who joined which, whether it is new, and who all are.

    python examples/sessions.py

A group has one name, and one order for all its messages. Where people use several applications in several sessions, each
session of an application is a group of its own, so that none waits for another's messages; and who is where is kept in one more group,
under `total`: all hear of it in the same order, and agree on who was first. Who comes late is given the register as it is,
and who leaves or fails is taken out of it by the view.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple

import inga

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


class ClientJoined(NamedTuple):
    """What a listener is told."""

    client: str
    application: str
    session: str
    is_new_session: bool
    is_new_application: bool
    users: tuple[str, ...]  # of that application in that session


class Register:
    """Who uses which application in which session."""

    def __init__(self, joined: Callable[[ClientJoined], None], left: Callable[[str, str], None]) -> None:
        self._joined, self._left = joined, left
        self.users: dict[tuple[str, str], list[str]] = {}  # by session and application

    def give(self) -> Iterator[bytes]:
        yield json.dumps([[*where, *users] for where, users in self.users.items()]).encode()

    async def take(self, chunks: AsyncIterator[bytes]) -> None:
        rows = json.loads(b"".join([chunk async for chunk in chunks]))
        self.users = {(session, application): users for session, application, *users in rows}

    async def follow(self, group: inga.Group) -> None:
        async for item in group.items():
            if isinstance(item, inga.Delivery):
                self._enter(item.sender, *json.loads(item.data))
            elif isinstance(item, inga.View):
                for name in (*item.left, *item.failed):
                    self._leave(name)

    def _enter(self, client: str, session: str, application: str) -> None:
        is_new_session = all(session != each for each, _ in self.users)
        is_new_application = (session, application) not in self.users
        users = self.users.setdefault((session, application), [])
        if client not in users:
            users.append(client)
            self._joined(
                ClientJoined(client, application, session, is_new_session, is_new_application, tuple(users))
            )

    def _leave(self, client: str) -> None:
        for (session, application), users in list(self.users.items()):
            if client in users:
                users.remove(client)
                self._left(client, application)
            if not users:
                del self.users[session, application]


class Person:
    """A member of the register's group, and what it was told."""

    def __init__(self, name: str, *, late: bool = False) -> None:
        self.name, self.told = name, asyncio.Queue[str]()
        self.register = Register(self._joined, lambda who, what: self.told.put_nowait(f"{who} left {what}"))
        hooks = {"on_state_request": self.register.give, "on_state": self.register.take}
        self._joining = inga.join("register", name, members=NAMES, via=VIA, order="total", late=late, **hooks)

    async def __aenter__(self) -> "Person":
        self.group = await self._joining.__aenter__()
        self._following = asyncio.create_task(self.register.follow(self.group))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._joining.__aexit__(None, None, None)
        await self._following

    async def enter(self, session: str, application: str) -> None:
        await self.group.send(json.dumps([session, application]).encode())

    def _joined(self, news: ClientJoined) -> None:
        new = ", ".join(
            word
            for word, is_new in (
                ("new session", news.is_new_session),
                ("new application", news.is_new_application),
            )
            if is_new
        )
        users = " ".join(news.users)
        self.told.put_nowait(
            f"{news.client} joined {news.application} in {news.session} ({new or 'known'}): {users}"
        )


async def main() -> None:
    async with Person("cathy") as cathy, Person("bob") as bob:
        async with Person("alice") as alice:
            await asyncio.gather(*(each.group.ready() for each in (alice, bob, cathy)))
            for person, session, application in (
                (alice, "lunch", "chat"),
                (bob, "lunch", "chat"),
                (bob, "lunch", "board"),
                (cathy, "work", "chat"),
            ):
                await person.enter(session, application)
                line = await cathy.told.get()
                assert line == await bob.told.get() == await alice.told.get()
                print(line)
            async with Person("dave", late=True) as dave:
                await dave.group.ready()
                await dave.enter("lunch", "board")
                line = await dave.told.get()
                assert line == await cathy.told.get()
                print(line)
        print(await cathy.told.get())
        print(await cathy.told.get())


if __name__ == "__main__":
    asyncio.run(main())
