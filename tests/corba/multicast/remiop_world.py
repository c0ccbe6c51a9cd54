"""Members with ReMIOP over a bad network, and a judge who knows it all by explicit sets.

The judge reads every datagram by itself, remembers who has received what, and never looks into a layer. He wants:

    1  a sender's packets are numbered without holes, from its first
    2  a repair is the original, octet by octet
    3  who repairs has the packet, within the newest `size` of that sender
    4  who repairs was asked since it last heard that packet: otherwise another's repair was enough
    5  nobody repairs a packet more than Od + 1 times
    6  who asks lacks the packet, which was sent
    7  who heard another ask for a packet it missed does not ask for it before that had time to bring it
    8  who reports has everything up to there; of itself, it has sent it
    9  every message is handed up once, as it was sent, and nothing else is
    10 there is an end, and then everybody has everything

With an omission degree packets may be lost for good; then 8 and the second half of 10 do not hold.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from inga.corba.multicast.fragments import MiopFragments, MiopPackets
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.reported import Reported
from inga.corba.wire import miop
from inga.layers.shape import Faults
from inga.model.errors import IngaError
from inga.model.view import View
from inga.stack.stack import Stack
from inga.trial.world import Stacks

from ...stack.harness import NAMES, Top

EVENTS_MAX = 30_000
EARLY = 1e-9


@dataclass(frozen=True)
class Setting:
    """One world."""

    seed: int
    n: int
    faults: Faults
    messages: tuple[tuple[float, int, int], ...]  # (when, who, octets)
    size: int = 512
    od: int | None = None
    datagram: int = 64
    tnack: float = 0.05
    trepair: float = 0.05

    @classmethod
    def of(cls, seed: int, **fixed: Any) -> "Setting":
        rng = Random(seed)
        n = fixed.pop("n", None) or rng.choice((2, 3, 3, 4, 5))
        delay = rng.choice((0.001, 0.01, 0.05))
        faults = Faults(
            rng.choice((0, 0.1, 0.2, 0.3)), rng.choice((0, 0.1)), rng.choice((0, 0.2)), 0.001, delay
        )
        span = rng.choice((0.05, 1.0))
        messages = tuple(
            (rng.random() * span, rng.randrange(n), rng.choice((8, 30, 100, 200)))
            for _ in range(rng.randrange(1, 12))
        )
        given = {
            "faults": faults,
            "messages": messages,
            "size": rng.choice((4, 16, 512)),
            "tnack": rng.choice((0.01, 0.05)),
            "trepair": rng.choice((0.01, 0.05)),
        }
        return cls(seed, n, **{**given, **fixed})

    @property
    def wait(self) -> float:
        """What a request has at least, to bring something."""
        return 2 * (self.tnack + self.trepair)


class World(Stacks):
    """Runs one setting, and judges it."""

    def __init__(self, setting: Setting, strategy: type[Reported] = ReMiop, **options: Any) -> None:
        self.setting = setting
        self.rng = Random(setting.seed)
        if issubclass(strategy, ReMiop):
            options = {"tnack": setting.tnack, "trepair": setting.trepair, "od": setting.od} | options
            options.setdefault("repeats", 40)
        view = View.of(*NAMES[: setting.n])
        self.tops = [Top() for _ in range(setting.n)]
        stacks = [
            Stack(
                [
                    self.tops[me],
                    MiopFragments(datagram=setting.datagram),
                    strategy(size=setting.size, **options),
                    MiopPackets(),
                ],
                me,
                view,
                rng=self.rng,
            )
            for me in range(setting.n)
        ]
        super().__init__(stacks)
        packets = self.stacks[0].layer("miop")
        assert isinstance(packets, MiopPackets)
        self.senders = packets.senders
        self.kinds: Counter[str] = Counter()  # of datagrams
        self._moment = 0  # events so far
        self._by_request = issubclass(strategy, ReMiop)  # whether repairs have to be asked for
        # what the judge knows
        self._sent: dict[tuple[int, int], bytes] = {}
        self._next = dict.fromkeys(self.senders, 1)
        n = setting.n
        self._got: list[dict[tuple[int, int], int]] = [{} for _ in range(n)]  # when last heard, as an event
        self._asked_by_others: list[dict[tuple[int, int], int]] = [{} for _ in range(n)]
        self._missed_when_asked: list[dict[tuple[int, int], float]] = [{} for _ in range(n)]
        self._known = [
            dict.fromkeys(self.senders, 0) for _ in range(n)
        ]  # numbers in use, as a member can tell
        self._asks: list[Counter[tuple[int, int]]] = [Counter() for _ in range(n)]
        self._repairs: list[Counter[tuple[int, int]]] = [Counter() for _ in range(n)]
        self._said: list[list[bytes]] = [[] for _ in range(n)]
        self._waiting: list[deque[bytes]] = [deque() for _ in range(n)]

    def run(self) -> None:
        for when, who, octets in self.setting.messages:
            self.at(when, self.say, who, octets)
        self.play()
        self._judge_the_end()

    def step(self) -> None:
        self._moment += 1
        assert self._moment < EVENTS_MAX, f"10: no end by {self.now:.3f} s"
        super().step()

    def say(self, who: int, octets: int) -> None:
        body = len(self._said[who]).to_bytes(4, "big") + who.to_bytes(4, "big") + bytes(octets)
        self._said[who].append(body)
        self._waiting[who].append(body)
        self.turn(who)

    def receive(self, member: int, packet: bytes) -> None:
        self._arrives(member, packet)
        super().receive(member, packet)

    def turn(self, member: int) -> None:
        while self._waiting[member] and self.stacks[member].writable:
            self.stacks[member].send(self._waiting[member].popleft(), now=self.now)
        super().turn(member)

    def arrivals(self, source: int, target: int) -> list[float]:
        return [self.now + delay for delay in self.setting.faults.fates(self.rng)]

    def failed(self, error: IngaError) -> None:
        raise AssertionError(f"10: {error}")

    # The judge

    def leaves(self, member: int, data: bytes) -> None:
        fragment = miop.decode(data)
        if fragment.is_control:
            control = miop.decode_control(fragment)
            assert control.sender == self.senders[member]
            self.kinds["nack" if control.kind == miop.NACK else "state"] += 1
            for entry in control.entries:
                if control.kind == miop.NACK:
                    self._judge_request(member, entry)
                else:
                    self._judge_report(member, entry)
            return
        found = miop.read_id(fragment.unique_id)
        assert found is not None
        key = found[0], found[1] + fragment.number
        if key[0] == self.senders[member] and key not in self._sent:
            self.kinds["data"] += 1
            assert key[1] == self._next[key[0]], f"1: packet {key} after {self._next[key[0]] - 1}"
            self._next[key[0]] += 1
            self._sent[key] = data
        else:
            self.kinds["repair"] += 1
            self._judge_repair(member, key, data)

    def _judge_repair(self, who: int, key: tuple[int, int], data: bytes) -> None:
        assert self._sent.get(key) == data, f"2: {key} is repaired by {who} as something else"
        own = key[0] == self.senders[who]
        assert own or key in self._got[who], f"3: {who} repairs {key}, which it never had"
        newest = max(number for sender, number in (self._sent if own else self._got[who]) if sender == key[0])
        assert key[1] > newest - self.setting.size, f"3: {who} has {key} no longer, for it has {newest}"
        asked, heard = self._asked_by_others[who].get(key, -1), self._got[who].get(key, 0)
        assert asked > heard or not self._by_request, f"4: nobody asked {who} for {key} since that came"
        self._repairs[who][key] += 1
        od = self.setting.od
        assert od is None or self._repairs[who][key] <= od + 1, f"5: {who} repairs {key} again and again"

    def _judge_request(self, who: int, key: tuple[int, int]) -> None:
        assert key[0] != self.senders[who] and key not in self._got[who], f"6: {who} asks for {key}"
        assert key in self._sent, f"6: {who} asks for {key}, which was not sent"
        self._asks[who][key] += 1
        heard = self._missed_when_asked[who].get(key)
        if heard is not None and self._asks[who][key] == 1:
            assert self.now >= heard + self.setting.wait - EARLY, f"7: {who} asks for {key}, as another did"

    def _judge_report(self, who: int, entry: tuple[int, int]) -> None:
        sender, number = entry
        have = self._sent if sender == self.senders[who] else self._got[who]
        lacking = [each for each in range(1, number + 1) if (sender, each) not in have]
        assert not lacking or self.setting.od is not None, (
            f"8: {who} says it has {number} of {sender}, and lacks {lacking}"
        )

    def _arrives(self, who: int, data: bytes) -> None:
        fragment = miop.decode(data)
        got, event = self._got[who], self._moment
        if not fragment.is_control:
            sender, base = miop.read_id(fragment.unique_id) or (0, 0)
            number = base + fragment.number
            got[sender, number] = event
            self._known[who][sender] = max(self._known[who][sender], number)
            return
        control = miop.decode_control(fragment)
        for key in control.entries:
            sender, number = key
            if control.kind == miop.STATE:
                self._known[who][sender] = max(self._known[who][sender], number)
                continue
            self._asked_by_others[who][key] = event
            if key not in got and number <= self._known[who][sender]:
                self._missed_when_asked[who].setdefault(key, self.now)

    def _judge_the_end(self) -> None:
        for who, top in enumerate(self.tops):
            others = [body for other, said in enumerate(self._said) if other != who for body in said]
            came = [bytes(packet.body) for packet in top.got]
            for body, times in Counter(came).items():
                assert body in others, f"9: {who} got what nobody said"
                assert times == 1, f"9: {who} got a message twice"
            if self.setting.od is None:
                assert len(came) == len(others), f"10: {who} got {len(came)} of {len(others)} messages"


def found(
    strategy: type[Reported], seeds: Iterable[int], options: dict[str, Any] | None = None, **fixed: Any
) -> str | None:
    """What the judge says of the first world in which a broken strategy is noticed."""
    for seed in seeds:
        try:
            World(Setting.of(seed, **fixed), strategy, **(options or {})).run()
        except AssertionError as error:
            return str(error)
    return None
