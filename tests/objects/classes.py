"""Classes of objects that tests share: those of the interface's description."""

from typing import Any

from inga.obg import Abort, Call, ObjectClass, method


class Counter(ObjectClass):
    def initial(self) -> int:
        return 0

    @method(compatible=("inc", "dec"), undo="dec")
    async def inc(self, ctx: Any, k: int = 1) -> None:
        ctx.effect(lambda s: s + k)

    @method(compatible=("inc", "dec"), undo="inc")
    async def dec(self, ctx: Any, k: int = 1) -> None:
        ctx.effect(lambda s: s - k)

    @method(compatible=("show",), identity=True)
    async def show(self, ctx: Any) -> int:
        return int(self.state)


class File(ObjectClass):
    def initial(self) -> bytes:
        return b""

    @method(compatible=("read",), identity=True)
    async def read(self, ctx: Any) -> bytes:
        return bytes(self.state)

    @method(absorbs=("write",))
    async def write(self, ctx: Any, data: bytes) -> None:
        ctx.effect(lambda s: data)


class Account(ObjectClass):
    def initial(self) -> int:
        return 0

    @method(compatible=("deposit",), undo="take_back")
    async def deposit(self, ctx: Any, x: int) -> None:
        ctx.effect(lambda s: s + x)

    @method(undo="deposit")
    async def withdraw(self, ctx: Any, x: int) -> None:
        if self.state < x:
            raise Abort("insufficient funds")
        ctx.effect(lambda s: s - x)

    @method
    async def take_back(self, ctx: Any, x: int) -> None:
        ctx.effect(lambda s: s - x)

    @method(compatible=("balance",), identity=True)
    async def balance(self, ctx: Any) -> int:
        return int(self.state)


def same_paragraph(mine: Call, other: Call) -> bool:
    return bool(mine.args[0] == other.args[0])


class Document(ObjectClass):
    def initial(self) -> dict[str, str]:
        return {}

    @method(conflict_if=same_paragraph)
    async def edit(self, ctx: Any, par: str, text: str) -> None:
        ctx.effect(lambda s: {**s, par: text})

    @method(compatible=("render",), identity=True)
    async def render(self, ctx: Any) -> dict[str, str]:
        return dict(self.state)


class Teller(ObjectClass):
    @method(compatible=("transfer",))
    async def transfer(self, ctx: Any, a: str, b: str, x: int) -> Any:
        await ctx.call(a, "withdraw", x)
        handle = ctx.start(b, "deposit", x)
        await handle
        return await ctx.all(ctx.start(a, "balance"), ctx.start(b, "balance"))
