"""The keys of a view: one for each of its members, of which all know all.

In a view that follows another, all of them come from one secret, which the leader of the change makes and hands to each
member that will be in it, and to nobody else. In a first view, which members know before they have met, each makes its own
and gives it to the others as it meets them.
"""

from typing import NamedTuple

from inga.model.packet import Buffer
from inga.model.view import View
from inga.secure.sealing import ReceivingKey, SendingKey, derive
from inga.wire.packet import HEAD, LENT


class Sender(NamedTuple):
    """Whose datagrams a key opens: a member of a view, by its index. Whoever was in a view knows keys of it for good, so they
    open nothing that claims to be of another one."""

    tag: int | None  # of a first view it differs by sender, and its number tells it from all that follow
    number: int
    member: int
    name: str

    def may_say(self, packet: Buffer) -> bool:
        """Whether that packet is of this view and member, or of one that is gone and whose packets others hand round."""
        if len(packet) < HEAD.size:
            return False
        _, _, _, tag, sections, source, number, *_ = HEAD.unpack_from(packet)
        return (
            number == self.number
            and (tag == self.tag or self.tag is None)
            and (source == self.member or bool(sections & LENT))
        )


class ViewKeys:
    """What a process has to speak in one view, and to hear the others."""

    def __init__(
        self, tag: int, view: View, me: int, secret: bytes, now: float, *, is_first: bool, kind: int
    ) -> None:
        """`tag` is what packets of the view are known by. `secret`: that of the view; of a first one, our own."""
        self.tag = tag
        self.view = view
        self.me = me
        self.secret = b"" if is_first else secret
        self.is_first = is_first
        self.sending = SendingKey(secret if is_first else self.secret_of(me), now, kind)
        self.receiving: dict[int, ReceivingKey] = {}

    def is_of(self, number: int, tag: int) -> bool:
        """Whether that is the view. A tag alone does not tell: who comes chooses its incarnation, on which the next one depends."""
        return self.view.number == number and self.tag == tag

    def learn_all(self, table: dict[bytes, ReceivingKey]) -> None:
        """As one that knows the secret of the view: how everybody else in it seals."""
        for index in range(len(self.view)):
            if index != self.me:
                self.learn(index, self.secret_of(index), table)

    def learn(self, index: int, secret: bytes, table: dict[bytes, ReceivingKey]) -> None:
        """How one member seals what it says in this view."""
        tag = None if self.is_first else self.tag
        self.receiving[index] = ReceivingKey(
            secret, Sender(tag, self.view.number, index, self.view.names[index]), table
        )

    def forget(self) -> None:
        """Nothing that is said in this view is opened any more."""
        for key in self.receiving.values():
            key.forget()

    def unknown(self) -> list[int]:
        """Members whose keys are not known yet."""
        return [i for i in range(len(self.view)) if i != self.me and i not in self.receiving]

    def has_spoken(self, index: int) -> bool:
        """Whether anything has come of that member in this view."""
        return index in self.receiving and self.receiving[index].is_used

    def index_of(self, name: str) -> int | None:
        """The member of that name, if there is one besides us."""
        return next((i for i, each in enumerate(self.view.names) if each == name and i != self.me), None)

    def secret_of(self, index: int) -> bytes:
        """What the keys of one member follow from, in a view that follows another."""
        return derive(self.secret, "sender", index.to_bytes(4, "big"), self.tag.to_bytes(8, "big"))
