"""The keys of a view: one for each sender in it, known to all its members.

In a view that follows another, all keys are derived from one secret, which the leader of the change makes and sends to each
member of the next view, and to nobody else. In a first view, which members know before they have met, each makes its own key
and gives it to the others as it meets them.
"""

from typing import NamedTuple

from inga.model.packet import Buffer
from inga.model.view import View
from inga.secure.sealing import ReceivingKey, SendingKey, derive
from inga.wire.packet import HEAD, LENT


class Sender(NamedTuple):
    """The sender whose datagrams a key opens: a member of a view, by its index. A former member knows the keys of its views for good, so
    a key opens no packet that claims to be of another view."""

    # None in a first view, where it differs by sender; the number tells that view from all later ones.
    tag: int | None
    number: int
    member: int
    name: str

    def may_say(self, packet: Buffer) -> bool:
        """Whether the packet is of this view and member, or one of a departed member that this member has lent."""
        if len(packet) < HEAD.size:
            return False
        _, _, _, tag, sections, source, number, *_ = HEAD.unpack_from(packet)
        return (
            number == self.number
            and (tag == self.tag or self.tag is None)
            and (source == self.member or bool(sections & LENT))
        )


class ViewKeys:
    """The keys with which a process sends in one view, and receives from the others."""

    def __init__(
        self, tag: int, view: View, me: int, secret: bytes, now: float, *, is_first: bool, kind: int
    ) -> None:
        """`tag` is the one in packets of the view. `secret`: that of the view; in a first view, that of our own key."""
        self.tag = tag
        self.view = view
        self.me = me
        self.secret = b"" if is_first else secret
        self.is_first = is_first
        self.sending = SendingKey(secret if is_first else self.secret_of(me), now, kind)
        self.receiving: dict[int, ReceivingKey] = {}

    def is_of(self, number: int, tag: int) -> bool:
        """Whether these are the keys of that view. The tag alone does not identify it: it depends on the incarnations of newcomers, which
        these choose themselves."""
        return self.view.number == number and self.tag == tag

    def learn_all(self, table: dict[bytes, ReceivingKey]) -> None:
        """Derive the keys of all other members from the secret of the view."""
        for index in range(len(self.view)):
            if index != self.me:
                self.learn(index, self.secret_of(index), table)

    def learn(self, index: int, secret: bytes, table: dict[bytes, ReceivingKey]) -> None:
        """Learn the key with which one member sends in this view."""
        tag = None if self.is_first else self.tag
        self.receiving[index] = ReceivingKey(
            secret, Sender(tag, self.view.number, index, self.view.names[index]), table
        )

    def forget(self) -> None:
        """Open no datagrams of this view any more."""
        for key in self.receiving.values():
            key.forget()

    def unknown(self) -> list[int]:
        """Return the members whose keys are not known yet."""
        return [i for i in range(len(self.view)) if i != self.me and i not in self.receiving]

    def has_spoken(self, index: int) -> bool:
        """Whether a datagram of that member was opened in this view."""
        return index in self.receiving and self.receiving[index].is_used

    def index_of(self, name: str) -> int | None:
        """Return the index of the member of that name, if there is one besides us."""
        return next((i for i, each in enumerate(self.view.names) if each == name and i != self.me), None)

    def secret_of(self, index: int) -> bytes:
        """Return the secret from which one member's keys are derived, in a view that follows another."""
        return derive(self.secret, "sender", index.to_bytes(4, "big"), self.tag.to_bytes(8, "big"))
