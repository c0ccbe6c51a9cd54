"""Transfers: two accounts at two members, a replicated ledger, and withdrawals that come to nothing.

    python examples/transfer.py [--virtual]

A transfer withdraws here and deposits there, or does nothing at all: if there is not enough money `withdraw` raises
`Abort`, the transfer aborts, and whatever it had done by then is taken back. The caller gets the reason.
`withdraw` is not compatible with anything, since its outcome depends on the balance; `check_compatible` shows what
happens to those who declare otherwise.
"""

import asyncio
import os
import sys
from typing import Any

import inga
from inga.obg import Abort, ObjectClass, RemoteError, check_compatible, method
from inga.sim import Sim

NAMES = ("alice", "bob", "cathy")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


class Account(ObjectClass):
    def initial(self) -> int:
        return 0

    @method(compatible=("deposit",), undo="take_back")
    async def deposit(self, ctx: Any, x: int) -> None:
        ctx.effect(lambda s: s + x)

    @method(undo="deposit")
    async def withdraw(self, ctx: Any, x: int) -> None:
        if self.state < x:
            raise Abort(f"insufficient funds: {self.state}, not {x}")
        ctx.effect(lambda s: s - x)

    @method
    async def take_back(self, ctx: Any, x: int) -> None:
        ctx.effect(lambda s: s - x)

    @method(compatible=("balance",), identity=True)
    async def balance(self, ctx: Any) -> int:
        return int(self.state)


class Ledger(ObjectClass):
    """One line for every transfer."""

    def initial(self) -> list[str]:
        return []

    @method
    async def append(self, ctx: Any, line: str) -> None:
        ctx.effect(lambda s: [*s, line])

    @method(identity=True)
    async def lines(self, ctx: Any) -> list[str]:
        return list(self.state)


class Careless(Account):
    @method(compatible=("deposit",), undo="deposit")
    async def withdraw(self, ctx: Any, x: int) -> None:
        if self.state < x:
            raise Abort(f"insufficient funds: {self.state}, not {x}")
        ctx.effect(lambda s: s - x)


OBJECTS = {"savings": (Account, ["alice"]), "shop": (Account, ["bob"]), "ledger": Ledger}


def transfer(source: str, target: str, amount: int) -> Any:
    """A transaction over three objects; the ledger is written first, to have something to take back."""

    async def body(ctx: Any) -> None:
        await ctx.call("ledger", "append", f"{amount} from {source} to {target}")
        await ctx.call(target, "deposit", amount)
        await ctx.call(source, "withdraw", amount)

    return body


def careless() -> None:
    found = check_compatible(Careless, range(0, 30, 10), [("deposit", 10), ("withdraw", 10)], show=None)
    print(f"careless: {found[0]}")


async def real() -> None:
    async with inga.join("bank", "alice", members=NAMES, via=VIA, order="object", objects=OBJECTS) as alice:
        others = [
            inga.join("bank", n, members=NAMES, via=VIA, order="object", objects=OBJECTS) for n in NAMES[1:]
        ]
        async with others[0], others[1] as cathy:
            await alice.ready()
            await alice.call("savings", "deposit", 100)
            for amount in (70, 50):
                try:
                    await cathy.transact(transfer("savings", "shop", amount))
                except RemoteError as error:
                    print(f"{amount}: {error}")
                else:
                    print(f"{amount}: transferred")
            balances = [await cathy.call(name, "balance") for name in ("savings", "shop")]
            report(balances, await cathy.call("ledger", "lines", answers="all"))


def virtual() -> None:
    sim = Sim(*NAMES, order="object", objects=OBJECTS, seed=1)
    sim["alice"].call("savings", "deposit", 100)
    sim.run()
    for amount in (70, 50):
        root = sim["cathy"].begin(transfer("savings", "shop", amount))
        sim.run()
        print(f"{amount}: {root.error or 'transferred'}")
    report(
        [sim["alice"].state("savings"), sim["bob"].state("shop")],
        [site.state("ledger") for site in sim.sites],
    )


def report(balances: list[int], ledgers: list[list[str]]) -> None:
    print(
        f"savings {balances[0]}, shop {balances[1]}, {len(ledgers)} ledgers with {set(map(len, ledgers))} lines"
    )


if __name__ == "__main__":
    careless()
    if "--virtual" in sys.argv:
        virtual()
    else:
        asyncio.run(real())
