"""A few members with objects, on a network that takes one unit of time, for tests that tell a story."""

from collections.abc import Callable
from random import Random
from typing import Any

from inga.model.invocation import Message, Spoken
from inga.objects.declare import ObjectClass
from inga.objects.invoke import Body, Root
from inga.objects.options import EngineOptions
from inga.objects.roster import Roster

from .world import Network, Plan, World

Drop = Callable[[int, int, Spoken], bool]


class Party(World):
    """Members by number, objects by name: each a class and the members that have a copy."""

    def __init__(
        self,
        members: int,
        objects: dict[str, tuple[type[ObjectClass], tuple[int, ...]]],
        *,
        drop: Drop | None = None,
        crash: tuple[int, float, list[float]] | None = None,
        **options: Any,
    ) -> None:
        roster = Roster.of(members, {name: (cls.conflicts, where) for name, (cls, where) in objects.items()})
        plan = Plan(roster, [], EngineOptions(**{"delta": 10.0, **options}), crash)
        plan.classes = {name: cls for name, (cls, _) in objects.items()}
        self.drop = drop
        super().__init__(plan, Network(Random(0)))

    def begin(self, member: int, body: Body, *, retry_of: Root | None = None) -> Root:
        host = self.hosts[member]
        root = host.begin(self.now, body, retry_of=retry_of)
        self.roots.append(root)
        self._transmit(member, host.sends(self.now))
        self.turn(member)
        return root

    def ask(self, member: int, target: Any, op: str, *args: Any, **how: Any) -> Any:
        """Call as a client, and give the result; an error is raised."""

        async def body(ctx: Any) -> Any:
            return await ctx.call(target, op, *args, **how)

        return self.done(self.begin(member, body))

    def done(self, root: Root) -> Any:
        """Run until nothing is left to do."""
        assert self.run(self.now + 1000), "it does not end"
        assert root.done
        if root.error is not None:
            raise root.error
        return root.result

    def state(self, member: int, name: str) -> Any:
        return self.hosts[member].state(name)

    def sent(self, kind: type[Any]) -> int:
        """How many packets of that kind there were."""
        return self.kinds.get(kind, 0)

    def _transmit(self, src: int, sends: Any) -> None:
        kept = []
        for send in sends:
            self.kinds[type(send.packet)] = self.kinds.get(type(send.packet), 0) + 1
            members = tuple(
                to for to in send.members if self.drop is None or not self.drop(src, to, send.packet)
            )
            kept.append(send._replace(members=members))
        super()._transmit(src, kept)

    @property
    def kinds(self) -> dict[type[Any], int]:
        return self.__dict__.setdefault("_kinds", {})


def is_message(packet: Spoken, kind: str = "", op: str = "") -> bool:
    return isinstance(packet, Message) and kind in ("", packet.kind) and op in ("", packet.op)
