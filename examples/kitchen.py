"""Objects that are called from elsewhere: one kitchen, a group of waiters, and names by which they are found.

    python examples/kitchen.py

A kitchen answers orders over IIOP, and tells all waiters at once, by ReMIOP, which repairs what multicast loses. Any
CORBA program could take the place of each of them; `docs/orb.md` shows it with omniORB's tools.
"""

import asyncio
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from inga.corba.orb import (
    CREATE_ADDRESS_SUPPLIED,
    GroupManager,
    Long,
    Multicast,
    NamingContext,
    Orb,
    UserException,
    find,
    interface,
    oneway,
    raises,
    serve_names,
    to_name,
    user_exception,
)

VIA = urlsplit(os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo"))
LOOPBACK = Multicast(interface="lo")


@dataclass
class Dish:
    name: str
    price: float


@user_exception("IDL:example/SoldOut:1.0")
class SoldOut(UserException):
    dish: str
    left: Long


@interface("IDL:example/Waiter:1.0")
class Waiter:
    def __init__(self, name: str) -> None:
        self._name = name

    @oneway
    async def serve(self, table: Long, dish: Dish) -> None:
        print(f"{self._name} hears: {dish.name} for table {table}")


@interface("IDL:example/Kitchen:1.0")
class Kitchen:
    def __init__(self, waiters: Waiter) -> None:
        self._waiters = waiters
        self._left = {"soup": 2}

    @raises(SoldOut)
    async def order(self, table: Long, name: str) -> Dish:
        if not self._left.get(name):
            raise SoldOut(name, 0)
        self._left[name] -= 1
        dish = Dish(name, 4.5)
        await self._waiters.serve(table, dish)  # all of them: it is a group
        return dish


async def main() -> None:
    async with Orb(multicast=LOOPBACK) as ours, Orb(multicast=LOOPBACK) as guest:
        names = ours.proxy(NamingContext, serve_names(ours))
        place = {"creation_mode": CREATE_ADDRESS_SUPPLIED, "address": VIA.hostname, "port": VIA.port}
        group, _ = GroupManager().create_object("IDL:example/Waiter:1.0", place | {"reliable": True})
        for name in ("anna", "bert", "carla"):
            await ours.join(group, Waiter(name))
        kitchen = ours.activate(Kitchen(ours.proxy(Waiter, group)))
        await names.bind(to_name("kitchen"), kitchen)
        await names.bind(to_name("waiters.group"), group)

        found = await find(guest, f"corbaname::127.0.0.1:{ours.port}#kitchen")
        for table in (1, 2, 3):
            try:
                dish = await guest.proxy(Kitchen, found).order(table, "soup")
                print(f"table {table} pays {dish.price:.2f}")
            except SoldOut as error:
                print(f"table {table}: {error}")


if __name__ == "__main__":
    asyncio.run(main())
