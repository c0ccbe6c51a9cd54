"""Between a member's stack and the network: everything that leaves is sealed, and nothing else comes in.

    channel    with another process, after a handshake: what belongs to no view goes over these, one copy for each; so
               does what is for one member alone, as the secret of the next view is
    view       what is said in a view is sealed once, with its sender's key in that view

What cannot be opened is counted by its reason, and costs no more than to see that. Before somebody has proven who it is
nothing is remembered of it; answers to those who knock have a budget, and when many knock, only those are answered who
show that they are where they say.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from inga.model.errors import KeysError, WireError
from inga.model.packet import Buffer
from inga.model.text import printable
from inga.model.view import View
from inga.secure.credentials import Credentials
from inga.secure.handshake import (
    ANSWER,
    CONFIRM,
    COOKIE,
    KNOCK,
    NO_COOKIE,
    Answer,
    Confirmed,
    Handshake,
    Knock,
    Other,
)
from inga.secure.sealing import AES, CHACHA, HEAD, KEY, MAGIC, VERSION, Forged, ReceivingKey, SendingKey
from inga.secure.views import Sender, ViewKeys
from inga.stack.native import Direct, Outsider
from inga.stack.stack import EVERYBODY, Address, Datagram, joined
from inga.wire.packet import HEAD as PACKET_HEAD
from inga.wire.packet import MAGIC as PACKET_MAGIC
from inga.wire.packet import OUTSIDE, is_lent, source_of, view_of
from inga.wire.told import Told, said

PLAIN = PACKET_MAGIC.to_bytes(2, "big")
"""How a datagram begins that nobody has sealed."""

PAST_MAX = 4
"""Closed views whose datagrams are still opened: their senders may not know that they are closed."""

EXPECTED_MAX = 4
"""Views to come whose keys are known: attempts of a change."""

CHANNELS_MAX = 1024
"""Processes with which there is a channel; of more, the one that was silent for longest loses its own."""

SILENT_MAX = 60.0
"""Seconds after which a process that is in no view of ours and says nothing is forgotten."""

KNOCK_EVERY = 0.02
"""Seconds between two knocks at one door, at least."""

PRIVATE_FOR = 60.0
"""Seconds for which one key of ours is good for knocking."""

LOOK, LOOK_MAX = 0.02, 1.0
"""Seconds between two looks for members without a channel: first, and after doubling."""

HANDSHAKES, HANDSHAKES_A_SECOND = 512.0, 200.0
"""Words of handshakes of one kind that are worked on at once, and how many more each second."""

HEARD_WITHIN = 1.0
"""Seconds within which one that is heard needs no other channel."""

WAITING_MAX = 8
"""Words for one that has no channel yet, and words to all that one gets that was late."""

WAITING_FOR = 0.5
"""Seconds for which they are kept."""

WRONG = {
    "plain": "speaks in this group without a secret or certificate",
    "unproven": "has another secret",
    "credentials": "has a secret where others have certificates, or certificates where others have a secret",
}
"""What people are told of those who cannot prove who they are."""

FAILED_MAX = 64
"""Others whose failures are told to a person."""


class Channel:
    """One other process that has proven who it is."""

    __slots__ = ("address", "confirm", "heard", "id", "is_ours", "name", "receiving", "sending")

    def __init__(
        self, other: Other, address: Hashable, now: float, secret: bytes, *, is_ours: bool, kind: int
    ) -> None:
        """`is_ours`: we have knocked. `secret`: of what we say."""
        self.id = other.id
        self.name = other.name
        self.is_ours = is_ours
        self.address = address
        self.heard = now
        self.confirm: bytes | None = None  # repeated until it is clear that it has come
        self.sending = SendingKey(secret, now, kind)
        self.receiving: ReceivingKey | None = None


class Budget:
    """How much work others can make us do."""

    __slots__ = ("_left", "_since")

    def __init__(self) -> None:
        self._left, self._since = HANDSHAKES, 0.0

    @property
    def has_half(self) -> bool:
        return self._left >= HANDSHAKES / 2

    def spend(self, now: float) -> None:
        """Do it once, or raise Forged: too many want that."""
        self._left = min(HANDSHAKES, self._left + (now - self._since) * HANDSHAKES_A_SECOND)
        self._since = now
        if self._left < 1.0:
            raise Forged("flood")
        self._left -= 1.0


class Guard:
    """Seals and opens for one process; pure: time and octets in, octets out."""

    def __init__(
        self,
        group: str,
        name: str,
        credentials: Credentials,
        *,
        entropy: Callable[[int], bytes],
        kind: int,
    ) -> None:
        """`group` is the name that all members know it by, `name` our own. `entropy(n)` gives `n` random octets. `kind`: the
        cipher for what we say; others may use another."""
        self._name = name
        self._entropy = entropy
        self._kind = kind
        self._handshake = Handshake(group, credentials, entropy)
        self._by_id: dict[bytes, ReceivingKey] = {}
        self._channels: dict[bytes, Channel] = {}  # by process, who was heard last at the end
        self._by_name: dict[str, Channel] = {}
        self._by_address: dict[str, Channel] = {}
        self._privates: list[tuple[bytes, float]] = []  # with which we have knocked, the newest first
        self._knocked: dict[Address, float] = {}
        self._waiting: dict[
            str, deque[tuple[float, bytes]]
        ] = {}  # words by address, until there is a channel
        self._recent: deque[tuple[float, bytes]] = deque(maxlen=WAITING_MAX)  # words to all
        self._keys: ViewKeys | None = None
        self._past: deque[ViewKeys] = deque()
        self._expected: dict[int, ViewKeys] = {}
        self._made: dict[
            tuple[bytes, bytes], Channel
        ] = {}  # by process and its key: handshakes that are over
        self._knocks, self._answers, self._confirms = Budget(), Budget(), Budget()
        self._look = LOOK
        self._out: list[tuple[Address, Datagram]] = []  # what we say ourselves
        self._now = 0.0
        self.wake: float | None = None
        self.rejected: Counter[str] = Counter()  # datagrams, by reason
        self._notices: list[str] = []
        self.failures: dict[
            str, str
        ] = {}  # what is wrong with those who could not prove who they are, by address

    # What comes

    def open(self, batch: Iterable[tuple[Buffer, Hashable]], now: float) -> list[tuple[Buffer, Hashable]]:
        """The packets in these datagrams that somebody has sealed who may speak so."""
        self._now = now
        by_id, unpack, rejected = self._by_id, HEAD.unpack_from, self.rejected
        found: list[tuple[Buffer, Hashable]] = []
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
                owner = key.owner
                if type(owner) is Channel:
                    if not self._hear_from(owner, plain, address):
                        continue
                elif (
                    len(plain) < PACKET_HEAD.size
                    or view_of(plain) == OUTSIDE
                    or (source_of(plain) != owner.member and not is_lent(plain))
                ):
                    raise Forged("impostor")
                found.append((plain, address))
            except (Forged, WireError) as error:
                rejected[str(error) if type(error) is Forged else error.reason] += 1  # type: ignore[union-attr]
                if str(error) == "plain":
                    self._tell(address, WRONG["plain"])
        return found

    def _hear_from(self, channel: Channel, plain: bytes, address: Hashable) -> bool:
        """Somebody speaks over its channel; whether that is for the stack."""
        channel.confirm = None
        current = self._channels[channel.id]
        current.heard, current.address = self._now, address
        self._by_address[_text(address)] = self._by_name[current.name] = current
        if not plain:
            return False  # that it was said is all there is to it
        if plain[:2] != PLAIN:
            self._hear_word(channel, Told.read(plain))
            return False
        if len(plain) < PACKET_HEAD.size or view_of(plain) != OUTSIDE:
            raise Forged("impostor")
        return True

    def _hear_word(self, channel: Channel, told: Told) -> None:
        """What guards say to each other: the keys of a first view."""
        keys = self._keys
        if keys is None or not keys.is_first or told.large("tag") != keys.tag:
            return
        index = keys.index_of(channel.name)
        if index is None:
            return
        if told.do == "key" and index not in keys.receiving:
            keys.learn(index, _octets(told.text("key")), self._by_id)
        if told.do == "key" and told.flag("asks"):
            self._give_key(channel, keys, asks=False)

    # Handshakes

    def _hear(self, data: Buffer, address: Hashable) -> None:
        try:
            kind, content = self._handshake.read(data)
            if kind == KNOCK:
                self._on_knock(self._handshake.read_knock(content), address)
            elif kind == COOKIE:
                cookie = self._handshake.read_cookie(content)
                if cookie is not None:
                    self._knock(Direct(address), cookie)
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
            self._tell(address, f"cannot prove who it is: {error}")
        except Forged as error:
            if str(error) in WRONG:
                self._tell(address, WRONG[str(error)])
            raise

    def _on_knock(self, knock: Knock, address: Hashable) -> None:
        if knock.id == self._handshake.id:
            return  # our own, come back to us
        channel = self._channels.get(knock.id)
        if channel is not None and self._now - channel.heard < HEARD_WITHIN:
            return  # it is there already
        if (knock.id, knock.public) in self._made:
            return  # it has confirmed this one
        if not self._knocks.has_half and knock.cookie != self._handshake.cookie(knock, _text(address)):
            self._out.append((Direct(address), self._handshake.say_cookie(knock, _text(address))))
            return
        self._knocks.spend(self._now)
        self._out.append((Direct(address), self._handshake.answer(knock, self._name)))

    def _on_answer(self, answer: Answer, address: Hashable) -> None:
        if (answer.id, answer.public) in self._made:
            return  # it has answered before
        self._answers.spend(self._now)
        privates = [private for private, since in self._privates if self._now - since < 2 * PRIVATE_FOR]
        other, private = self._handshake.judge(answer, privates)
        keys, confirm = other.keys, self._handshake.confirm(private, other, self._name)
        channel = Channel(other, address, self._now, keys.forth, is_ours=True, kind=self._kind)
        channel.confirm = confirm
        channel.receiving = ReceivingKey(keys.back, channel, self._by_id)
        self._out.append((Direct(address), confirm))
        self._open_channel(channel, answer.public)

    def _on_confirm(self, confirmed: Confirmed, address: Hashable) -> None:
        knock = confirmed.knock
        known = self._made.get((knock.id, knock.public))
        if known is not None:
            self._say(known, b"")  # it has not heard that we heard it
            return
        self._confirms.spend(self._now)
        other = self._handshake.finish(confirmed)
        channel = Channel(other, address, self._now, other.keys.back, is_ours=False, kind=self._kind)
        channel.receiving = ReceivingKey(other.keys.forth, channel, self._by_id)
        self._open_channel(channel, knock.public)
        self._say(channel, b"")

    def _open_channel(self, channel: Channel, public: bytes) -> None:
        """There is somebody that we can speak with; `public` is its key in this handshake, which never counts again."""
        self._made[channel.id, public] = channel
        known = self._channels.get(channel.id)
        # Two who knock at each other's door at once have two channels; what comes over either is heard.
        if (
            known is None
            or channel.is_ours is (self._handshake.id < channel.id)
            or known.is_ours is channel.is_ours
        ):
            self._channels[channel.id] = channel
        current = self._channels[channel.id]
        current.heard = self._now
        self._by_name[channel.name] = self._by_address[_text(channel.address)] = current
        self.failures.pop(_text(channel.address), None)
        self._expire()
        keys = self._keys
        if keys is not None and keys.is_first and keys.index_of(channel.name) is not None:
            self._give_key(channel, keys, asks=True)
        waiting = self._waiting.pop(_text(channel.address), ())
        for since, word in (*self._recent, *waiting):
            if self._now - since <= WAITING_FOR:
                self._say(channel, word)

    def _expire(self) -> None:
        """Forget those who are silent and in no view of ours."""
        names = set() if self._keys is None else {*self._keys.view.names}
        by_silence = sorted(self._channels.values(), key=lambda channel: channel.heard)
        for channel in by_silence:
            is_silent = self._now - channel.heard > SILENT_MAX and channel.name not in names
            if is_silent or len(self._channels) > CHANNELS_MAX:
                self._drop(channel.id)

    def _drop(self, process: bytes) -> None:
        """Forget one, and see to it that nothing it said in a handshake can be said again: the same keys would be made, and
        counted from the start."""
        del self._channels[process]
        for each in [key for key in self._made if key[0] == process]:
            receiving = self._made.pop(each).receiving
            assert receiving is not None
            receiving.forget()
        for table in (self._by_name, self._by_address):
            for key in [key for key, channel in table.items() if channel.id == process]:
                del table[key]
        self._handshake.forget()
        self._privates.clear()

    def _knock(self, to: Address, cookie: bytes = NO_COOKIE) -> None:
        """Say that we are there, to one or to all who hear it."""
        now = self._now
        if cookie == NO_COOKIE:
            if now - self._knocked.get(to, -1.0) < KNOCK_EVERY:
                return
            if len(self._knocked) > CHANNELS_MAX:
                self._knocked.clear()
            self._knocked[to] = now
        if not self._privates or now - self._privates[0][1] >= PRIVATE_FOR:
            self._privates = [(self._entropy(KEY), now), *self._privates[:1]]
        self._out.append((to, self._handshake.knock(self._privates[0][0], cookie)))

    # What leaves

    def seal(self, sends: Sequence[tuple[Address, Datagram]], now: float) -> list[tuple[Address, Datagram]]:
        """The datagrams for these packets, and our own."""
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
        if self._out:
            sealed += self._out
            self._out = []
        return sealed

    def _say_outside(self, to: Address, word: bytes) -> None:
        """What belongs to no view: to one process, or to all that there are and those that are about to be heard."""
        if to is EVERYBODY:
            self._recent.append((self._now, word))
            self._expire()
            for channel in list(self._channels.values()):
                self._say(channel, word)
            self._knock(EVERYBODY)
            return
        known = self._channel_to(to)
        if known is not None:
            self._say(known, word)
            return
        if isinstance(to, (Outsider, Direct)):
            if len(self._waiting) >= CHANNELS_MAX:
                self._waiting.clear()
            self._waiting.setdefault(_text(to.address), deque(maxlen=WAITING_MAX)).append((self._now, word))
        self._knock(to)

    def _channel_to(self, to: Address) -> Channel | None:
        if isinstance(to, (Outsider, Direct)):
            return self._by_address.get(_text(to.address))
        if to is EVERYBODY or self._keys is None or to >= len(self._keys.view):
            return None
        return self._by_name.get(self._keys.view.names[to])

    def _say(self, channel: Channel, word: bytes) -> None:
        to = Direct(channel.address)
        if channel.confirm is not None:
            self._out.append((to, channel.confirm))
        self._out.append((to, channel.sending.seal(word, self._now)))

    def _give_key(self, channel: Channel, keys: ViewKeys, *, asks: bool) -> None:
        self._say(channel, said("key", tag=keys.tag, key=keys.secret.hex(), asks=asks))

    # Views

    def fresh(self) -> bytes:
        """The secret of a view to come."""
        return self._entropy(KEY)

    def expect(self, tag: int, view: View, me: int, secret: bytes) -> None:
        """This view may follow: what is said in it can be read from now on."""
        if tag in self._expected or (self._keys is not None and self._keys.tag == tag):
            return
        keys = ViewKeys(tag, view, me, secret, self._now, is_first=False, kind=self._kind)
        keys.learn_all(self._by_id)
        self._expected[tag] = keys
        while len(self._expected) > EXPECTED_MAX:
            self._expected.pop(next(iter(self._expected))).forget()

    def enter(self, tag: int, view: View, me: int, now: float) -> None:
        """This view is in force from now on."""
        self._now = now
        if self._keys is not None and self._keys.tag == tag:
            return
        keys = self._expected.pop(tag, None)
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
        self._look, self.wake = LOOK, now

    def secret_for(self, name: str) -> str | None:
        """The secret of the view in force, for a member that has just come into it; None: that one is not there."""
        keys = self._keys
        assert keys is not None and not keys.is_first
        return self.wrap(name, keys.secret) if keys.index_of(name) is not None else None

    def wrap(self, name: str, secret: bytes) -> str | None:
        """The secret of the next view, for one member's eyes; None: there is no channel with it yet."""
        if name == self._name:
            return secret.hex()
        channel = self._by_name.get(name)
        if channel is None:
            self._knock(EVERYBODY)
            return None
        return joined(channel.sending.seal(secret, self._now)).hex()

    def unwrap(self, name: str, text: str) -> bytes:
        """What that member has wrapped for us."""
        octets = _octets(text)
        if name == self._name:
            return octets
        try:
            _, _, kind, key_id, counter = HEAD.unpack_from(octets)
        except Exception:
            raise WireError("malformed", "no secret of a view") from None
        key = self._by_id.get(key_id)
        if (
            key is None
            or type(key.owner) is not Channel
            or key.owner.name != name
            or kind not in (AES, CHACHA)
        ):
            raise WireError("key", "a secret from one with whom there is no channel")
        try:
            secret = key.open(octets, kind, key_id, counter)
        except Forged as error:
            raise WireError(str(error), "a secret that cannot be read") from None
        if len(secret) != KEY:
            raise WireError("malformed", "no secret of a view")
        return secret

    def tick(self, now: float) -> None:
        """Look for members of the view in force with whom there is no channel, or whose keys are missing."""
        self._now = now
        self.wake = None
        keys = self._keys
        if keys is None:
            return
        others = [i for i in range(len(keys.view)) if i != keys.me]
        strangers = [i for i in others if keys.view.names[i] not in self._by_name]
        for index in strangers if len(strangers) <= 2 else [EVERYBODY]:
            self._knock(index)
        unknown = keys.unknown() if keys.is_first else []
        for index in unknown:
            channel = self._by_name.get(keys.view.names[index])
            if channel is not None:
                self._give_key(channel, keys, asks=True)
        if strangers or unknown:
            self.wake = now + self._look
            self._look = min(2 * self._look, LOOK_MAX)

    # For the session

    def speaks_for(self, address: Hashable, name: str) -> bool:
        """Whether the one that speaks from there has proven that it is called so."""
        channel = self._by_address.get(_text(address))
        return channel is not None and channel.name == name

    def address_of(self, name: str) -> Hashable:
        """Where the one of that name was heard last."""
        channel = self._by_name.get(name)
        return None if channel is None else channel.address

    @property
    def strangers(self) -> list[str]:
        """What is wrong with those who are in a group of this name and could not prove who they are."""
        return [f"whoever is at {printable(where)} {why}" for where, why in self.failures.items()]

    @property
    def has_company(self) -> bool:
        """Whether anybody has proven who it is."""
        return bool(self._channels)

    def told(self) -> list[str]:
        """What a person is to know, since the last call."""
        told, self._notices = self._notices, []
        return told

    def _tell(self, address: Hashable, why: str) -> None:
        """Tell a person, once of each that fails."""
        where = _text(address)
        if where not in self.failures and len(self.failures) < FAILED_MAX:
            self._notices.append(f"whoever is at {printable(where)} {why}")
            self._knock(Direct(address))  # so that it sees the difference, too
        if len(self.failures) < FAILED_MAX:
            self.failures[where] = why

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("what guards a group is not pickled: it has keys")


def _text(address: Hashable) -> str:
    """An address as people write it: members say it so, and sockets as a pair."""
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)


def _octets(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise WireError("malformed", "no octets") from None


__all__ = ["Channel", "Guard", "Sender"]
