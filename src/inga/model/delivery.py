"""What an application receives: batches of messages that shared a packet, and single deliveries."""

from typing import ClassVar

from inga.model.compiled import mypyc_attr
from inga.model.packet import Buffer, Packet
from inga.model.stamp import Deps, Stamp


@mypyc_attr(allow_interpreted_subclasses=True)
class Batch:
    """The messages of one packet, `payloads`, in the order they were sent, with what orders them; `sender` sent them all."""

    __slots__ = ("packet", "payloads", "sender")

    replayed: ClassVar[bool] = False  # it was sent before we joined, and comes from another member's history

    def __init__(self, sender: str, packet: Packet) -> None:
        assert packet.payloads is not None
        self.sender = sender
        self.packet = packet
        self.payloads: list[Buffer] = packet.payloads

    @property
    def src(self) -> int:
        """The index of its sender in the view it was sent in."""
        return self.packet.src

    @property
    def seq(self) -> int:
        """Which of the packets of its sender it came in, counted from 1."""
        return self.packet.seq

    @property
    def view(self) -> int:
        """The number of the view it was sent in."""
        return self.packet.view

    @property
    def stamp(self) -> Stamp | None:
        """The stamp that orders it, as it was sent; None if the order needs none."""
        return self.packet.stamp

    @property
    def deps(self) -> Deps | None:
        """Of each member: how many of its packets are in the causal past; None where the order carries no vector."""
        return self.packet.deps

    @property
    def height(self) -> int:
        """Packets in the causal past, this one included; 0 where the order carries no vector."""
        return 0 if self.packet.deps is None else sum(self.packet.deps) + 1

    @property
    def concurrent(self) -> bool:
        """Whether it is concurrent with some message already known here: neither is a cause of the other."""
        return self.packet.concurrent

    @property
    def concurrent_with(self) -> list[tuple[int, int, int]]:
        """(member, first, last) of the known packets concurrent with this one."""
        packet = self.packet
        if packet.known is None or packet.deps is None:
            return []
        return [
            (member, required + 1, known)
            for member, (required, known) in enumerate(zip(packet.deps, packet.known, strict=True))
            if member != packet.src and known > required
        ]

    @property
    def branch(self) -> int:
        """The branch that it continues; concurrent messages open new branches."""
        return self.packet.branch

    @property
    def merged(self) -> tuple[int, ...]:
        """Branches that end in this message, since its sender knew them all."""
        return self.packet.merged

    def __len__(self) -> int:
        return len(self.payloads)

    def __reduce__(self) -> tuple[type["Batch"], tuple[str, Packet]]:
        return type(self), (self.sender, self.packet)  # pickling a packet copies its payloads

    def __repr__(self) -> str:
        return f"<Batch {self.sender}:{self.seq} of {len(self.payloads)}>"


@mypyc_attr(allow_interpreted_subclasses=True)
class Delivery:
    """One message, at its place in the order. `data` is its content: `bytes(delivery.data)` makes a copy to keep."""

    __slots__ = ("batch", "data", "index")

    def __init__(self, batch: Batch, index: int) -> None:
        self.batch = batch
        self.index = index
        self.data = batch.payloads[index]

    @property
    def sender(self) -> str:
        """The name of the member that sent it."""
        return self.batch.sender

    @property
    def src(self) -> int:
        """The index of its sender in the view it was sent in."""
        return self.batch.packet.src

    @property
    def seq(self) -> int:
        """Which of the packets of its sender it came in, counted from 1."""
        return self.batch.packet.seq

    @property
    def view(self) -> int:
        """The number of the view it was sent in."""
        return self.batch.packet.view

    @property
    def stamp(self) -> Stamp | None:
        """The stamp that orders it, as it was sent; None if the order needs none."""
        return self.batch.packet.stamp

    @property
    def deps(self) -> Deps | None:
        """Of each member: how many of its packets are in the causal past; None where the order carries no vector."""
        return self.batch.packet.deps

    @property
    def height(self) -> int:
        """Packets in the causal past, that of this message included; 0 where the order carries no vector."""
        return self.batch.height

    @property
    def concurrent(self) -> bool:
        """Whether it is concurrent with some message already known here: neither is a cause of the other."""
        return self.batch.packet.concurrent

    @property
    def concurrent_with(self) -> list[tuple[int, int, int]]:
        """(member, first, last) of the known packets concurrent with this one."""
        return self.batch.concurrent_with

    @property
    def branch(self) -> int:
        """The branch that it continues; concurrent messages open new branches."""
        return self.batch.packet.branch

    @property
    def merged(self) -> tuple[int, ...]:
        """Branches that end in this message, since its sender knew them all."""
        return self.batch.packet.merged

    @property
    def replayed(self) -> bool:
        """Whether it was sent before we joined: see `history` in `inga.net.options`."""
        return self.batch.replayed

    def __repr__(self) -> str:
        return f"<Delivery {self.sender}:{self.seq}.{self.index} {bytes(self.data[:32])!r}>"
