"""Plays scenarios of OBG: objects without a network, instances and messages step by step.

    objects i j k                  new objects, in the order that breaks ties
    conflict k f g                 at object k, methods f and g conflict
    start i op1 main               an instance of method main begins at object i; prints its identifier
    send op1 m1 oneway f to j k    an instance calls method f; also `sync` and `async`, which are answered
    send Y r answer q              an instance answers message q
    rx j m1 as op2                 object j starts m1; prints the identifier of the new instance
    rx A r                         an instance takes an answer
    commit op2, abort op2          an instance ends
    show j                         V of an object, as printed in the paper
    order m1 m2                    does m1 precede m2: truly; by the counters that messages carry; by the printed rule; by that
                                   with correction C7 (`-` where the two have no destination in common)
    conflicts k m1 m2              does object k care
    starts k                       in which order k starts what was sent to it, if that arrives in the opposite order
    takes I r2 r1                  in which order an instance takes answers that arrive in this order

Delivery at one object, whose peers are in the hands of the script:

    at k                           the object
    rx k b from j ts 2 sq 1 f      a call of f arrives, called b
    beat k from i ts 1 sent 1      a heartbeat arrives

Identifiers are written as in the paper: 1i is the first start at i, 1i0 the first message of that instance.
"""

from collections.abc import Callable
from typing import Any

from inga.lab.obg.printed import NO_ID, PrintedVectors, id_of
from inga.model.invocation import REQUESTS, Heartbeat, Message, Nack, SendId, StartId
from inga.objects.actions import Run, Transmit
from inga.objects.engine import Engine
from inga.objects.instance import Instance
from inga.objects.options import EngineOptions
from inga.objects.order import Clock, Precedence, call_of, precedes
from inga.objects.roster import Pairs, Place, Roster

from .script import Script, answer, numbers

KINDS = {"oneway": "o", "sync": "s", "async": "a"}


class ObgScript(Script):
    """Objects that do what a scenario says. Instances and messages have names."""

    def do_objects(self, words: list[str]) -> list[str]:
        self.names = words
        self._pairs: dict[str, list[tuple[str, str]]] = {name: [] for name in words}
        self._relations = [Pairs([]) for _ in words]
        self.orders: list[Precedence] = []
        self._printed = PrintedVectors(len(words))
        self._instances: dict[str, Instance] = {}
        self._ops: dict[str, str] = {}
        self.messages: dict[str, Message] = {}
        self._sent: dict[str, list[str]] = {}
        self._past: dict[str, set[str]] = {}  # of instances, then of messages: exactly what precedes them
        self.before: dict[str, set[str]] = {}
        self._committed: list[tuple[int, str, set[str]]] = []
        self._meet()
        return []

    def do_conflict(self, words: list[str]) -> list[str]:
        self._pairs[words[0]].append((words[1], words[2]))
        self._meet()
        return []

    def _meet(self) -> None:
        """Nothing has happened yet."""
        n = len(self.names)
        self._relations = [Pairs(self._pairs[name]) for name in self.names]
        self.orders = [Precedence(i, n, self._relations[i], Clock()) for i in range(n)]

    # What happens

    def do_start(self, words: list[str]) -> list[str]:
        name, inst, op = words
        place = self._place(name)
        return self._begun(inst, place, self.orders[place].root(op=op), op)

    def _begun(self, inst: str, place: int, instance: Instance, op: str) -> list[str]:
        self._instances[inst], self._ops[inst], self._sent[inst] = instance, op, []
        rivals = self._relations[place].of(op)
        self._past[inst] = set().union(
            *(past for where, done, past in self._committed if where == place and done in rivals)
        )
        self._printed.start(inst, place)
        return [f"{inst} is {self._written(tuple(instance.start))}"]

    def do_send(self, words: list[str]) -> list[str]:
        inst, name, kind, op, *to = words
        instance = self._instances[inst]
        if kind == "answer":
            asked = self.messages[op]
            message_kind, op, call, dst = "r", asked.op, asked.call, (asked.src,)
        else:
            dst = tuple(map(self._place, to[1:]))
            message_kind, call = KINDS[kind], (*instance.start, len(self._sent[inst]))
            self._sent[inst].append(name)
        sq = tuple((place, 1) for place in dst)
        message = self.orders[instance.place].send(instance, message_kind, dst, sq, op=op, call=call)
        self.messages[name] = message
        self.before[name] = set(self._past[inst])
        self._past[inst].add(name)
        self._printed.send(inst, message)
        id, cohort = self._written(id_of(message.id)), self._written(tuple(message.cohort))
        known = self._known(message)
        assert known == [self._written(each) for each in self._printed.messages[message.id]], "as printed"
        vector = f"V {numbers(known)} counts {numbers(message.vector)}"
        return [f"{name}: id {id} cid {cohort} ts {message.ts} {vector}"]

    def do_rx(self, words: list[str]) -> list[str]:
        where, name, *rest = words
        if rest and rest[0] == "from":
            return self._arrive(where, name, *rest[1:])
        message = self.messages[name]
        if rest:
            place, inst = self._place(where), rest[1]
            order = self.orders[place]
            order.clock.see(message.ts)
            lines = self._begun(inst, place, order.start(message, message.op, (), ()), message.op)
        else:
            inst, lines = where, []
            order = self.orders[self._instances[inst].place]
            order.clock.see(message.ts)
            order.deliver(self._instances[inst], message)
        self._printed.deliver(inst, message)
        self._past[inst] |= self.before[name] | {name}
        return lines

    def do_commit(self, words: list[str]) -> list[str]:
        (inst,) = words
        instance = self._instances[inst]
        self.orders[instance.place].commit(instance, self._ops[inst])
        self._printed.commit(inst, instance.place)
        self._committed.append((instance.place, self._ops[inst], self._past[inst]))
        return []

    def do_abort(self, words: list[str]) -> list[str]:
        self.orders[self._instances[words[0]].place].abort()
        return []

    # What comes of it

    def do_show(self, words: list[str]) -> list[str]:
        ids = self._printed.objects[self._place(words[0])]
        return [f"{words[0]}: V {numbers(map(self._written, ids))}"]

    def do_order(self, words: list[str]) -> list[str]:
        one, other = words
        first, second = self.messages[one], self.messages[other]
        common = set(first.dst) & set(second.dst)

        def printed(repaired: bool) -> str:
            if not common:
                return "-"
            relation = self._relations[min(common)]
            return answer(self._printed.precedes(first, second, relation, repaired=repaired))

        truly, counted = one in self.before[other], precedes(first, second)
        # Counters know no less than there is; what they say beyond it was sent before, at least.
        assert counted or not truly
        assert not counted or first.ts < second.ts
        rules = f"printed {printed(False)} with C7 {printed(True)}"
        return [f"{one} before {other}: {answer(truly)} counters {answer(counted)} {rules}"]

    def do_conflicts(self, words: list[str]) -> list[str]:
        name, *pair = words
        first, second = (call_of(self.messages[each]) for each in pair)
        return [answer(self._relations[self._place(name)].between(first, second))]

    def do_starts(self, words: list[str]) -> list[str]:
        place = self._place(words[0])
        engine = Engine(place, self._roster(), EngineOptions(delta=10.0))
        sent = dict.fromkeys(range(len(self.names)), 0)
        packets: list[Message | Heartbeat] = []
        for message in self.messages.values():
            if place in message.dst:
                sent[message.src] += 1
                packets.insert(0, message._replace(sq=((place, sent[message.src]),)))
        packets += [Heartbeat(src, 100, sent[src], 0, (100,), 0) for src in sent if src != place]
        started: list[str] = []
        names = {message.id: name for name, message in self.messages.items()}
        for packet in packets:
            _run(engine, engine.receive(1.0, packet), lambda request: started.append(names[request.id]))
        return [f"{words[0]} starts {numbers(started)}"]

    def do_takes(self, words: list[str]) -> list[str]:
        inst, *arriving = words
        takes = _Takes()
        place = self._instances[inst].place
        engine = Engine(place, self._roster(), observer=takes)
        root = engine.begin(0.0, place)
        for name in self._sent[inst]:
            request = self.messages[name]
            engine.calls.call(root, request.kind, request.dst, request.op)
        engine.actions(0.0)
        for name in arriving:
            engine.receive(1.0, self.messages[name])
        names = {message.id: name for name, message in self.messages.items()}
        taken = numbers(names[message.id] for message in takes.taken)
        return [f"{inst} takes {taken}; held {engine.counts['held']}"]

    # One object, whose peers are in the hands of the script

    def do_at(self, words: list[str]) -> list[str]:
        self._me = self._place(words[0])
        self._engine = Engine(self._me, self._roster(), EngineOptions(delta=10.0))
        self._calls = dict.fromkeys(range(len(self.names)), 0)
        return []

    def _arrive(
        self, where: str, name: str, src: str, _ts: str, ts: str, _sq: str, sq: str, op: str
    ) -> list[str]:
        assert self._place(where) == self._me
        source = self._place(src)
        self._calls[source] += 1
        start, zero = StartId(self._calls[source], source), (0,) * len(self.names)
        call = (*start, 0)
        message = Message(
            "o", source, (self._me,), SendId(start, 0), int(ts), int(sq), zero, ((self._me, int(sq)),), start, call,
            op, (name,), path=(call,),
        )  # fmt: skip
        return self._act(self._engine.receive(1.0, message))

    def do_beat(self, words: list[str]) -> list[str]:
        where, _, src, _, ts, _, sent = words
        assert self._place(where) == self._me
        beat = Heartbeat(self._place(src), int(ts), int(sent), 0, (int(sent),), 0)
        return self._act(self._engine.receive(1.0, beat))

    def _act(self, actions: list[Any]) -> list[str]:
        me = self.names[self._me]
        lines: list[str] = []
        asked = _run(self._engine, actions, lambda request: lines.append(f"{me} starts {request.args[0]}"))
        return lines + [f"{me} asks {self.names[to]} for {numbers(missing)}" for to, missing in asked]

    # In the words of the paper

    def _known(self, message: Message) -> list[str]:
        """What the counters of a message say: of each object the largest identifier of a request that is counted."""
        counted = [
            each
            for each in self.messages.values()
            if each.kind in REQUESTS and each.ev <= message.vector[each.src]
        ]
        return [
            self._written(max((id_of(each.id) for each in counted if each.src == place), default=NO_ID))
            for place in range(len(self.names))
        ]

    def _written(self, id: tuple[int, ...]) -> str:
        return "0" if not id[0] else f"{id[0]}{self.names[id[1]]}{''.join(map(str, id[2:]))}"

    def _place(self, name: str) -> int:
        return self.names.index(name)

    def _roster(self) -> Roster:
        places = [Place(at, name) for at, name in enumerate(self.names)]
        return Roster(places, {name: Pairs(pairs) for name, pairs in self._pairs.items()})


class _Takes:
    """Notes what is taken."""

    def __init__(self) -> None:
        self.taken: list[Message] = []

    def note(self, step: str, now: float, place: int, message: Any, instance: Any) -> None:
        if step == "take":
            self.taken.append(message)


def _run(
    engine: Engine, actions: list[Any], started: Callable[[Message], None]
) -> list[tuple[int, tuple[int, ...]]]:
    """Let instances end as soon as they start; what is asked for again, and of whom."""
    asked = []
    while actions:
        for action in actions:
            if isinstance(action, Run):
                assert action.instance.request is not None
                started(action.instance.request)
                engine.endings.finish(action.instance, None)
            elif isinstance(action, Transmit) and isinstance(action.packet, Nack):
                asked.append((action.members[0], tuple(action.packet.numbers)))
        actions = engine.actions(1.0)
    return asked
