"""The guard between a member's stack and the network: it seals all outgoing datagrams, and accepts only sealed ones.

    channel    with another process, after a handshake: packets that belong to no view go over channels, one copy for each; so
               does what is for one member alone, such as the secret of the next view
    view       a packet of a view is sealed once, with its sender's key in that view
    via        datagrams relayed by another process, since a newcomer and the leader may not hear each other: see
               `carrying`. They are opened and authenticated like all others

Datagrams that cannot be opened are counted by reason, and cost no more than this check. Nothing is remembered of a process before it has
proven who it is; answers to knocks have a budget, and when many processes knock, only those are answered that
show that they receive at their addresses.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from inga.model.errors import KeysError, WireError
from inga.model.notice import Notice
from inga.model.packet import Buffer
from inga.model.text import printable
from inga.model.view import View
from inga.secure.carrying import CARRIES_FOR, HANDED, WayRound, WaysRound
from inga.secure.credentials import Credentials
from inga.secure.handshake import (
    ANSWER,
    CONFIRM,
    COOKIE,
    GOOD_FOR,
    KNOCK,
    NO_COOKIE,
    SECURED,
    AnsweredKnock,
    ConfirmedKnock,
    Handshake,
    Knock,
    Other,
)
from inga.secure.sealing import AES, CHACHA, HEAD, KEY, MAGIC, TAG, VERSION, Forged, ReceivingKey, SendingKey
from inga.secure.shares import FairSupply, SupplyOfEach
from inga.secure.useless import SecuredSenders
from inga.secure.views import ViewKeys
from inga.secure.whereabouts import Whereabouts, as_text
from inga.stack.budget import Supply
from inga.stack.native import Direct, Outsider
from inga.stack.stack import EVERYBODY, Address, Datagram, joined
from inga.stack.waits import grown
from inga.wire.packet import HEAD as PACKET_HEAD
from inga.wire.packet import MAGIC as PACKET_MAGIC
from inga.wire.packet import OUTSIDE, view_of
from inga.wire.told import Told, said

PLAIN = PACKET_MAGIC.to_bytes(2, "big")
"""The first octets of a plain packet."""

PAST_MAX = 4
"""Closed views whose datagrams are still opened: their senders may not know that they are closed."""

EXPECTED_MAX = 4
"""Views to come whose keys are known: attempts of a change, those expected last. A member follows one attempt at a time, and each ends
those before it, so the view that it may install is always among them."""

CHANNELS_MAX = 1024
"""Processes with which there is a channel. Beyond that the channel is dropped that was silent for longest, members of the view in force
last."""

PROCESSES_EACH = 8
"""The same for one name, also that of a member: the owner of a certificate can start any number of processes."""

OF_NAME, OF_NAME_A_SECOND = 64.0, 1.0
"""Handshakes that are completed with processes of one name, at once and how many more each second. Two processes that hear each
other begin one a minute."""

CHANNELS_EACH = 8
"""Channels with one process that are kept: that process may not know of the latest handshakes yet."""

ADDRESSES_EACH = 4
"""Addresses that are remembered of one process, the latest from which it sent."""

NAMESAKES_MAX = 4
"""Processes of one name that are sent a view's secret for that name: those heard last."""

SILENT_MAX = 60.0
"""Seconds of silence after which a process that is not a member of our view is forgotten."""

KNOCK_EVERY = 0.02
"""Seconds between two knocks at one address, at least."""

LOOK, LOOK_MAX = 0.02, 1.0
"""Seconds between two searches for members without a channel: first, and after doubling."""

HANDSHAKES, HANDSHAKES_A_SECOND = 512.0, 200.0
"""Handshake messages of one kind that are processed at once, and how many more each second."""

COOKIES, COOKIES_A_SECOND = 2048.0, 1000.0
"""The same for requests to prove an address, which cost little."""

HEARD_WITHIN = 1.0
"""Seconds since a process was heard within which it needs no other channel."""

WAITING_MAX = 8
"""Messages kept for an address without a channel; and recent messages to all, which a process gets with its channel."""

WAITING_FOR = 0.5
"""Seconds for which these are kept."""

WRONG = {
    "plain": "speaks in this group without a secret or certificate",
    "unproven": "has another secret",
    "credentials": "has a secret where others have certificates, or certificates where others have a secret",
}
"""What a person is told of processes that cannot prove who they are, by reason."""

FAILED_MAX = 64
"""Addresses whose failed proofs are reported to a person."""


class Channel:
    """The channel with another process, which has proven who it is."""

    __slots__ = (
        "address",
        "confirm",
        "handed",
        "heard",
        "id",
        "name",
        "receiving",
        "sending",
        "since",
        "via",
        "via_heard",
    )

    def __init__(
        self,
        other: Other,
        address: Hashable,
        now: float,
        *,
        is_ours: bool,
        kind: int,
        table: dict[bytes, ReceivingKey],
    ) -> None:
        """`is_ours`: we have knocked. `table`: maps the key ids in datagrams to receiving keys."""
        keys = other.keys
        said, heard = (keys.forth, keys.back) if is_ours else (keys.back, keys.forth)
        self.id = other.id
        self.name = other.name
        self.address = address
        self.via: WayRound | None = None  # the relay path by which it was last heard, besides its address
        self.via_heard = -CARRIES_FOR
        self.handed: Supply | None = None  # the budget for what it may relay to us
        self.since = self.heard = now
        self.confirm: bytes | None = None  # our confirmation, repeated until we know that it has arrived
        self.sending = SendingKey(said, now, kind)
        self.receiving = ReceivingKey(heard, self, table)

    @property
    def is_sure(self) -> bool:
        """Whether the other side has the channel, too."""
        return self.confirm is None

    @property
    def to(self) -> Address:
        """The address where the process was last heard directly."""
        return _at(self.address)

    def is_heard(self, now: float) -> bool:
        """Whether the process was heard so recently that it needs no other channel."""
        return now - self.heard < HEARD_WITHIN

    def has_way_round(self, now: float) -> bool:
        """Whether the process was recently heard by way of a relaying process."""
        return now - self.via_heard < CARRIES_FOR


class GroupGuard:
    """Seals and opens the datagrams of one process; pure: time and octets in, octets out."""

    def __init__(
        self,
        group: str,
        name: str,
        credentials: Credentials,
        *,
        entropy: Callable[[int], bytes],
        kind: int,
    ) -> None:
        """`group` is the name by which all members know the group, `name` our own. `entropy(n)` returns `n` random octets. `kind`: the
        cipher with which we seal; others may use another."""
        self._name = name
        self._entropy = entropy
        self._kind = kind
        self._handshake = Handshake(group, credentials, entropy, name)
        self._by_id: dict[bytes, ReceivingKey] = {}
        self._channels: dict[bytes, Channel] = {}  # by process, the channel over which we send to it
        self._by_name: dict[str, Channel] = {}
        self._by_address: dict[str, Channel] = {}
        self._whereabouts = Whereabouts(self._by_name, self._by_address)
        self._knocked: dict[Address, float] = {}
        self._waiting: dict[
            str, deque[tuple[float, bytes]]
        ] = {}  # messages by address, until there is a channel
        self._recent: deque[tuple[float, bytes]] = deque(maxlen=WAITING_MAX)  # recent messages to all
        self._keys: ViewKeys | None = None
        self._past: deque[ViewKeys] = deque()
        self._expected: dict[tuple[int, int], ViewKeys] = {}  # by number and tag
        self._made: dict[
            tuple[bytes, bytes], Channel
        ] = {}  # by process and its public key: completed handshakes
        self._knocks, self._cookies, self._answers, self._confirms, self._repeats = (
            FairSupply(HANDSHAKES_A_SECOND, HANDSHAKES) for _ in range(5)
        )
        self._asked = FairSupply(COOKIES_A_SECOND, COOKIES)  # requests to prove an address
        self._of_name = SupplyOfEach(OF_NAME_A_SECOND, OF_NAME)
        self._asks_cookies = self._handshake.is_long
        self.ways = WaysRound(
            self._handshake.id, self._channels, self._by_name, self._by_address, self._say_at, self._knock
        )
        self._own: bytes | None = None  # the secret of the next view, if we make it
        self._look = LOOK
        self._out: list[tuple[Address, Datagram]] = []  # messages of our own to be sent
        self.words: list[tuple[Address, Datagram]] = []  # messages of our own in the last result of `seal`
        self._now = 0.0
        self.wake: float | None = None
        self.rejected: Counter[str] = Counter()  # datagrams, by reason
        self.opened = 0
        self.senders = SecuredSenders(self._whereabouts, self._handshake.begin)
        self._notices: list[Notice] = []
        self.failures: dict[str, str] = {}  # by address, why a process there could not prove who it is

    @property
    def longest_word(self) -> int:
        """Octets of our longest handshake message, which has to fit one datagram."""
        return self._handshake.longest

    # Incoming

    def open(self, batch: Iterable[tuple[Buffer, Hashable]], now: float) -> list[tuple[Buffer, Hashable]]:
        """Return the packets in those of these datagrams whose senders had the right key."""
        self._now = now
        by_id, unpack, rejected, senders = self._by_id, HEAD.unpack_from, self.rejected, self.senders
        in_force = {} if self._keys is None else self._keys.receiving
        found: list[tuple[Buffer, Hashable]] = []
        # Indices of packets in `found` that came over a channel, and that channel.
        spoken: list[tuple[int, Channel]] = []
        for data, address in batch:
            try:
                if len(data) < HEAD.size:
                    raise Forged("truncated")
                magic, version, kind, key_id, counter = unpack(data)
                if magic != MAGIC or version != VERSION:
                    raise Forged("plain" if data[:2] == PLAIN else "foreign")
                if kind != AES and kind != CHACHA:
                    self._hear(data, address)
                    continue
                key = by_id.get(key_id)
                if key is None:
                    raise Forged("key")
                plain = key.open(data, kind, key_id, counter)
                self.opened += 1
                owner = key.owner
                if type(owner) is Channel:
                    if not self._hear_from(owner, plain, address):
                        continue
                    spoken.append((len(found), owner))
                elif not owner.may_say(plain) or type(address) is WayRound:
                    raise Forged("impostor")
                elif in_force.get(owner.member) is not key:  # a former member still has these keys
                    senders.note(address)
                elif address is not None:
                    self._whereabouts.hear(owner.name, address, now)
                found.append((plain, address))
            except (Forged, WireError) as error:
                rejected[str(error) if type(error) is Forged else error.reason] += 1  # type: ignore[union-attr]
                senders.note(address)
                if str(error) == "plain":
                    self._tell(address, WRONG["plain"], len(data))
        # The reader of these packets asks which process sends from their address. An attacker can forward datagrams of another process from
        # its own address; then the address no longer identifies the sender of packets opened before that.
        for at, channel in reversed(spoken):
            if not self.speaks_for(found[at][1], channel.name):
                del found[at]
                rejected["impostor"] += 1
        if self.ways.inside:
            inside, self.ways.inside = self.ways.inside, []
            found += self.open(inside, now)
        return found

    def _hear_from(self, channel: Channel, plain: bytes, address: Hashable) -> bool:
        """Handle the contents of a datagram over a channel; return whether they are a packet for the stack."""
        _check_way(channel.id, address)
        channel.confirm = None
        if channel.name not in self._whereabouts.members:
            self.senders.note(address)
        self._channels[channel.id] = channel
        self._found(channel, address)
        if not plain:
            return False  # its arrival is all that matters
        if plain[:2] == HANDED:
            if type(address) is WayRound:
                raise Forged("impostor")  # a relayed datagram is not relayed again
            self.ways.hear(channel, plain, self._now)
            return False
        if plain[:2] != PLAIN:
            self._hear_word(channel, Told.read(plain))
            return False
        if len(plain) < PACKET_HEAD.size or view_of(plain) != OUTSIDE:
            raise Forged("impostor")
        return True

    def _found(self, channel: Channel, address: Hashable) -> None:
        """Note that the process was heard just now, at that address or by way of a relaying process."""
        if isinstance(address, WayRound):
            channel.heard = channel.via_heard = self._now
            channel.via, self._by_name[channel.name] = address, channel
            return
        where = as_text(address)
        if where not in self._by_address:
            known = [each for each, other in self._by_address.items() if other.id == channel.id]
            for each in known[: 1 - ADDRESSES_EACH]:
                del self._by_address[each]
            self._whereabouts.has_changed = True
        channel.heard, channel.address = self._now, address
        self._by_address.pop(where, None)  # the address heard last is the last entry
        self._by_address[where] = self._by_name[channel.name] = channel

    def _hear_word(self, channel: Channel, told: Told) -> None:
        """Handle a message of another guard: its key in a first view."""
        keys = self._keys
        if keys is None or not keys.is_first or told.large("tag") != keys.tag:
            return
        index = keys.index_of(channel.name)
        if index is None:
            return
        if told.do == "key" and index not in keys.receiving:
            keys.learn(index, _key(told.text("key")), self._by_id)
        if told.do == "key" and told.flag("asks"):
            self._give_key(channel, keys, asks=False)

    # Handshakes

    def _hear(self, data: Buffer, address: Hashable) -> None:
        self.senders.words += 1
        try:
            kind, content = self._handshake.read(data)
            if kind == KNOCK:
                self._on_knock(self._handshake.read_knock(content), address)
            elif kind == COOKIE:
                given = self._handshake.read_cookie(content)
                if given is not None:
                    self._check_expected(self._cookies, given.token, address)
                    self._spend(self._cookies, address)
                    self._knock(_at(address), given.cookie)
            elif kind == ANSWER:
                answer = self._handshake.read_answer(content)
                if answer is not None:
                    self._on_answer(answer, address)
            elif kind == CONFIRM:
                confirmed = self._handshake.read_confirm(content)
                if confirmed is not None:
                    self._on_confirm(confirmed, address)
            else:
                raise Forged("malformed")
        except KeysError as error:
            self.rejected[error.reason] += 1
            self._tell(address, f"cannot prove who it is: {error}", len(data))
        except Forged as error:
            if str(error) in WRONG:
                self._tell(address, WRONG[str(error)], len(data))
            raise

    def _spend(self, turns: FairSupply, address: Hashable) -> None:
        """Charge work that another process causes to a budget; Forged if it is exceeded."""
        if not turns.take(address, self._now):
            raise Forged("flood")

    def _check_expected(self, turns: FairSupply, token: bytes, address: Hashable) -> None:
        """Under load, accept a reply to our knock only from an address at which we knocked."""
        where, now = as_text(address), self._now
        if turns.is_busy(now) and not self._handshake.is_expected(token, where, now):
            self._spend(self._asked, address)
            self._knock(_at(address))  # a process that is there gets this knock
            raise Forged("flood")

    def _on_knock(self, knock: Knock, address: Hashable) -> None:
        _check_way(knock.id, address)
        if knock.id == self._handshake.id:
            return  # our own knock
        channel = self._channels.get(knock.id)
        if channel is not None and self._now - channel.heard < HEARD_WITHIN:
            return  # it has a channel in use
        handshake, now, where = self._handshake, self._now, as_text(address)
        asks = self._asks_cookies or self._knocks.is_busy(now)
        if asks and not handshake.is_there(knock, where, now):
            self._spend(self._asked, address)
            self._out.append((_at(address), handshake.cookie(knock, where, now)))
            return
        self._spend(self._knocks, address)
        known = self._made.get((knock.id, knock.public))
        if known is not None:  # it has confirmed this handshake, and may have forgotten our address
            self._say_at(address, known, b"")
            return
        self._out.append((_at(address), handshake.answer(knock, where, now)))
        self.wake = _sooner(self.wake, now + GOOD_FOR)

    def _on_answer(self, answer: AnsweredKnock, address: Hashable) -> None:
        _check_way(answer.id, address)
        known = self._made.get((answer.id, answer.public))
        if known is not None:
            # It has not got our confirmation, perhaps since it is at another address.
            if known.confirm is not None:
                self._spend(self._repeats, address)
                confirm = self._handshake.confirm_again(known.confirm, answer.cookie)
                self._out.append((_at(address), confirm))
            return
        self._check_expected(self._answers, answer.token, address)
        self._spend(self._answers, address)
        handshake = self._handshake
        other, public = handshake.judge(answer, self._now)
        channel = self._channel(other, address, is_ours=True)
        channel.confirm = handshake.confirm(public, other, answer.cookie)
        self._out.append((_at(address), channel.confirm))
        self._open_channel(channel, answer.public, address)

    def _on_confirm(self, confirmed: ConfirmedKnock, address: Hashable) -> None:
        knock = confirmed.knock
        _check_way(knock.id, address)
        known = self._made.get((knock.id, knock.public))
        if known is not None:  # it does not know yet that its confirmation has arrived
            self._spend(self._repeats, address)
            self._say(known, b"")
            if isinstance(address, WayRound) and known.via != address:
                self._say_at(address, known, b"")
            return
        is_busy = self._confirms.is_busy(self._now)
        if is_busy and not self._handshake.is_there(knock, as_text(address), self._now):
            raise Forged("flood")  # it does not have the cookie that we sent to that address
        self._spend(self._confirms, address)
        channel = self._channel(self._handshake.finish(confirmed, self._now), address, is_ours=False)
        self._open_channel(channel, knock.public, address)
        self._say(channel, b"")

    def _channel(self, other: Other, address: Hashable, *, is_ours: bool) -> Channel:
        """Make a channel with an authenticated process; Forged if its number belongs to a process of another name."""
        known = self._channels.get(other.id)
        if known is not None and known.name != other.name:
            raise Forged("impostor")
        if not self._of_name.take(other.name, self._now):
            raise Forged("flood")
        where = None if isinstance(address, WayRound) else address
        return Channel(other, where, self._now, is_ours=is_ours, kind=self._kind, table=self._by_id)

    def _open_channel(self, channel: Channel, public: bytes, address: Hashable) -> None:
        """Use a new channel; `public` is the other's public key in this handshake, which is not accepted a second time."""
        self._made[channel.id, public] = channel
        known = self._channels.get(channel.id)
        # Two processes that knock at each other at the same time have two channels, and both open datagrams of either. The channel over
        # which we have heard the other is known to both sides.
        if known is None or not known.is_sure or self._now - known.heard >= HEARD_WITHIN:
            self._channels[channel.id] = channel
        self._found(self._channels[channel.id], address)
        self.failures.pop(as_text(address), None)
        self._expire()
        keys = self._keys
        if keys is not None and keys.is_first and keys.index_of(channel.name) is not None:
            self._give_key(channel, keys, asks=True)
        waiting = self._waiting.pop(as_text(address), ())
        for since, word in (*self._recent, *waiting):
            if self._now - since <= WAITING_FOR:
                self._say(channel, word)

    def _expire(self) -> None:
        """Forget processes that are silent and not members of our view, and channels beyond the limits."""
        names = set() if self._keys is None else {*self._keys.view.names}
        of_name = Counter(channel.name for channel in self._channels.values())
        by_need = sorted(self._channels.values(), key=lambda channel: (channel.name in names, channel.heard))
        for channel in by_need:
            is_silent = self._now - channel.heard > SILENT_MAX and channel.name not in names
            if is_silent or len(self._channels) > CHANNELS_MAX or of_name[channel.name] > PROCESSES_EACH:
                of_name[channel.name] -= 1
                self._drop(channel.id)
        of_process: Counter[bytes] = Counter()
        for made, channel in reversed(list(self._made.items())):
            of_process[channel.id] += 1
            is_used = self._channels.get(channel.id) is channel
            # By now the keys of its handshake are forgotten, so a replay cannot complete it again.
            if (
                of_process[channel.id] > CHANNELS_EACH
                and self._now - channel.since > GOOD_FOR
                and not is_used
            ):
                self._made.pop(made).receiving.forget()

    def _drop(self, process: bytes) -> None:
        """Forget a process, and make sure that none of its handshakes can be completed again: that would make the same keys, with
        counters from the start."""
        del self._channels[process]
        for each in [key for key in self._made if key[0] == process]:
            self._made.pop(each).receiving.forget()
        for table in (self._by_name, self._by_address):
            for key in [key for key, channel in table.items() if channel.id == process]:
                del table[key]
        self._whereabouts.has_changed = True
        self._handshake.forget()

    def _knock(self, to: Address, cookie: bytes = NO_COOKIE) -> None:
        """Send a knock to one process or to all."""
        now, where = self._now, as_text(to.address) if isinstance(to, (Outsider, Direct)) else ""
        if cookie == NO_COOKIE:
            if now - self._knocked.get(to, -1.0) < KNOCK_EVERY:
                return
            if len(self._knocked) > CHANNELS_MAX:
                self._knocked.clear()
            self._knocked[to] = now
        self._out.append((to, self._handshake.knock(now, cookie, where)))
        self.wake = _sooner(self.wake, now + GOOD_FOR)

    # Outgoing

    def seal(self, sends: Sequence[tuple[Address, Datagram]], now: float) -> list[tuple[Address, Datagram]]:
        """Return the sealed datagrams for these packets, and our own messages."""
        self._now = now
        sealed: list[tuple[Address, Datagram]] = []
        last: Datagram | None = None
        last_sealed: Datagram = b""
        for to, datagram in sends:
            if datagram is not last:
                plain = joined(datagram) if type(datagram) is list else datagram
                if view_of(plain) == OUTSIDE:  # type: ignore[arg-type]
                    self._say_outside(to, bytes(plain))  # type: ignore[arg-type]
                    continue
                if self._keys is None:
                    continue
                last, last_sealed = datagram, self._keys.sending.seal(plain, now)  # type: ignore[arg-type]
            sealed.append((to, last_sealed))
        self.words, self._out = self.ways.go_round(self._out, now), []
        return sealed + self.words

    def _say_outside(self, to: Address, word: bytes) -> None:
        """Send a message that belongs to no view: to one process, or to all that have a channel or get one within `WAITING_FOR` seconds."""
        if to is EVERYBODY:
            self._recent.append((self._now, word))
            self._expire()
            for channel in list(self._channels.values()):
                self._say(channel, word)
            self._knock(EVERYBODY)
            return
        if isinstance(to, (Outsider, Direct)):
            self._say_to_place(to, word)
            return
        known = self._member(to)
        if known is not None:
            self._say(known, word)
        else:
            self._knock(to)

    def _say_to_place(self, to: Outsider | Direct, word: bytes) -> None:
        """Send a message to the process at an address: as far as we know, the one that was heard there. An attacker can forward its
        datagrams from another address, so if it was not heard there recently we also knock, to find out who is there."""
        if isinstance(to.address, WayRound):
            if (known := self._channels.get(to.address.process)) is not None:
                self._say(known, word)
            return
        where = as_text(to.address)
        known = self._by_address.get(where)
        if known is None:
            if len(self._waiting) >= CHANNELS_MAX:
                self._waiting.clear()
            self._waiting.setdefault(where, deque(maxlen=WAITING_MAX)).append((self._now, word))
        else:
            self._say_at(to.address, known, word)
            if as_text(known.address) == where and self._now - known.heard < HEARD_WITHIN:
                return
        self._knock(to)

    def _member(self, index: int) -> Channel | None:
        """Return the channel with a member of the view in force."""
        names = () if self._keys is None else self._keys.view.names
        return self._by_name.get(names[index]) if index < len(names) else None

    def _say(self, channel: Channel, word: bytes) -> None:
        """Send a message over a channel: directly, and also by way of a relaying process if the other side was recently heard that way,
        since either path may work in one direction only."""
        has_way_round = channel.has_way_round(self._now)
        if channel.address is not None or not has_way_round:
            self._say_at(channel.address, channel, word)
        if has_way_round:
            self._say_at(channel.via, channel, word)

    def _say_at(self, address: Hashable, channel: Channel, word: bytes) -> None:
        to = _at(address)
        if channel.confirm is not None:
            self._out.append((to, channel.confirm))
        self._out.append((to, channel.sending.seal(word, self._now)))

    def _give_key(self, channel: Channel, keys: ViewKeys, *, asks: bool) -> None:
        self._say(channel, said("key", tag=keys.tag, key=keys.sending.secret.hex(), asks=asks))

    # Views

    def fresh(self) -> bytes:
        """Make a secret for a view to come."""
        return self._entropy(KEY)

    def expect(self, tag: int, view: View, me: int, secret: bytes) -> None:
        """This view may follow: open its datagrams from now on."""
        expected = self._expected.pop((view.number, tag), None)
        if expected is not None:  # the attempt in progress is forgotten last
            self._expected[view.number, tag] = expected
        known = (self._keys, *self._past, expected)
        if any(each is not None and each.is_of(view.number, tag) for each in known):
            return  # to make the same keys again would restart their counters
        keys = ViewKeys(tag, view, me, secret, self._now, is_first=False, kind=self._kind)
        keys.learn_all(self._by_id)
        self._expected[view.number, tag] = keys
        while len(self._expected) > EXPECTED_MAX:
            self._expected.pop(next(iter(self._expected))).forget()

    def enter(self, tag: int, view: View, me: int, now: float) -> None:
        """This view is in force from now on."""
        self._now = now
        if self._keys is not None and self._keys.is_of(view.number, tag):
            return
        keys = self._expected.pop((view.number, tag), None)
        if keys is None:
            keys = ViewKeys(tag, view, me, self.fresh(), now, is_first=True, kind=self._kind)
        for other in self._expected.values():
            other.forget()
        self._expected.clear()
        if self._keys is not None:
            self._past.append(self._keys)
            if len(self._past) > PAST_MAX:
                self._past.popleft().forget()
        self._keys = keys
        # Drop messages that are addressed by indices of the view before; they are repeated if they are still needed.
        self._out = [each for each in self._out if not isinstance(each[0], int)]
        self._look, self.wake = LOOK, now
        self._whereabouts.enter(view.names)

    def secret_for(self, name: str) -> str | None:
        """Return the secret of the view in force for a member that has just been admitted, wrapped for it; None if there is no such member, or no
        channel with it, or if it has already sent in the view: then another process asks, whose counters would start again."""
        keys = self._keys
        index = None if keys is None or keys.is_first else keys.index_of(name)
        return (
            None if keys is None or index is None or keys.has_spoken(index) else self.wrap(name, keys.secret)
        )

    def wrap(self, name: str, secret: bytes) -> str | None:
        """Seal the secret of a view for one member only; None if there is no channel with it yet."""
        if name == self._name:
            self._own = secret
            return ""
        namesakes = [channel for channel in self._channels.values() if channel.name == name]
        if not namesakes:
            self._knock(EVERYBODY)
            return None
        namesakes.sort(key=lambda channel: -channel.heard)
        for channel in namesakes:
            if not channel.is_sure:
                self._say(channel, b"")
        wrapped = (joined(each.sending.seal(secret, self._now)).hex() for each in namesakes[:NAMESAKES_MAX])
        return " ".join(wrapped)

    def unwrap(self, name: str, text: str) -> bytes:
        """Open a secret that the member of that name has wrapped for us."""
        if name == self._name:
            own, self._own = self._own, None
            if own is None:
                raise WireError("key", "a secret of our own that we have not made")
            return own
        for octets in map(_octets, text.split()):
            if len(octets) != HEAD.size + KEY + TAG:
                raise WireError("malformed", "no secret of a view")
            _, _, kind, key_id, counter = HEAD.unpack_from(octets)
            key = self._by_id.get(key_id)
            if key is None or type(key.owner) is not Channel or key.owner.name != name:
                continue  # wrapped for another process of our name
            if kind not in (AES, CHACHA):
                raise WireError("malformed", "no secret of a view")
            try:
                return key.open(octets, kind, key_id, counter)
            except Forged as error:
                raise WireError(str(error), "a secret that cannot be read") from None
        raise WireError("key", "a secret from one with whom there is no channel")

    def tick(self, now: float) -> None:
        """Knock at members of the view in force without a channel, and ask for keys that are missing."""
        self._now = now
        self.wake = self._handshake.expire(now)
        keys = self._keys
        if keys is None:
            return
        others = {i: self._by_name.get(keys.view.names[i]) for i in range(len(keys.view)) if i != keys.me}
        strangers = [i for i, channel in others.items() if channel is None or not channel.is_sure]
        for index in strangers if len(strangers) <= 2 else [EVERYBODY]:
            self._knock(index)
        unknown = keys.unknown() if keys.is_first else []
        for index, channel in others.items():
            if channel is not None and index in unknown:
                self._give_key(channel, keys, asks=True)
            elif channel is not None and not channel.is_sure:
                self._say(channel, b"")
        if strangers or unknown:
            self.wake = _sooner(self.wake, now + self._look)
            self._look = grown(self._look, LOOK_MAX)

    # For the session

    def is_sealed(self, datagram: Buffer) -> bool:
        """Whether a datagram is for `open`; a plain packet is not."""
        return datagram[:2] == SECURED

    def speaks_for(self, address: Hashable, *names: str) -> bool:
        """Whether the process at that address has proven one of these names."""
        if isinstance(address, WayRound):
            channel = self._channels.get(address.process)
        else:
            channel = self._by_address.get(as_text(address))
        return channel is not None and channel.name in names

    def address_of(self, name: str) -> Hashable:
        """Return the address, or the relay path, of the process of that name."""
        channel = self._by_name.get(name)
        if channel is None:
            return None
        return channel.via if channel.has_way_round(self._now) else channel.address

    @property
    def places(self) -> frozenset[str]:
        """The addresses of authenticated processes, as `host:port`; the same object until they change."""
        return self._whereabouts.all

    @property
    def strangers(self) -> list[str]:
        """For each process of a group of this name that could not prove who it is, what is wrong with it."""
        return [f"whoever is at {printable(where)} {why}" for where, why in self.failures.items()]

    @property
    def has_company(self) -> bool:
        """Whether any other process has proven who it is."""
        return bool(self._channels)

    def told(self) -> list[Notice]:
        """Return the notices since the last call."""
        told, self._notices = self._notices, []
        return told

    def _tell(self, address: Hashable, why: str, size: int) -> None:
        """Report a failed proof to a person, once for each address. `size`: octets of the datagram that failed."""
        where = as_text(address)
        if where not in self.failures and len(self.failures) < FAILED_MAX:
            self._notices.append(Notice("stranger.refused", f"whoever is at {printable(where)} {why}"))
            # Show the other side the difference, too; with no more octets than it has sent, since its address may be forged.
            if size >= self._handshake.padded:
                self._knock(_at(address))
            else:
                self._out.append((_at(address), self._handshake.sign()))
        if len(self.failures) < FAILED_MAX:
            self.failures[where] = why

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("what guards a group is not pickled: it has keys")


def _sooner(wake: float | None, when: float) -> float:
    """Return the earlier of two times to wake."""
    return when if wake is None else min(wake, when)


def _at(address: Hashable) -> Address:
    """Return the destination for an address; all, if there is none: the driver knows none, or the process was heard only by way of another."""
    return EVERYBODY if address is None else Direct(address)


def _check_way(process: bytes, address: Hashable) -> None:
    """Check that a datagram relayed for one process comes from no other; Forged otherwise."""
    if isinstance(address, WayRound) and address.process != process:
        raise Forged("impostor")


def _octets(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise WireError("malformed", "no octets") from None


def _key(text: str) -> bytes:
    octets = _octets(text)
    if len(octets) != KEY:
        raise WireError("malformed", "no key")
    return octets
