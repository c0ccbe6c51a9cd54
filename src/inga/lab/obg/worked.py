"""The paper's worked examples, Figures 3 and 4 with Table 2, played by the order of the product and drawn.

Identifiers are written as in the paper: `1i0` is the first send of the instance that object i started when its clock was 1. The product
has counters in its vectors; `V` shows, for each object, the largest identifier among the messages that the counter counts.
"""

from typing import NamedTuple

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim, Table
from inga.lab.obg.printed import NO_ID, PrintedId, id_of
from inga.model.invocation import ONE_WAY, Message
from inga.objects.instance import Instance
from inga.objects.order import Clock, Precedence
from inga.objects.roster import Pairs
from inga.report.spacetime import Copy, Diagram, Dot

SELF = Pairs([("f", "f")])
"""The only method of the examples conflicts with itself, so that an object remembers what its committed instances knew."""

FIGURE_3 = {
    "sid of op1": "1i",
    "id of m1": "1i0",
    "V of m1": "<0,0>",
    "V of op1 after m1": "<1i0,0>",
    "sid of op2": "2j",
    "V of op2": "<1i0,0>",
    "V of j after op2": "<1i0,0>",
    "id of m2": "1i1",
}
TABLE_2 = {
    "m1": ("1i0", "1i", "<0,0,0>"),
    "m2": ("2j0", "2j", "<1i0,0,0>"),
    "m3": ("2i0", "1i", "<0,0,0>"),
}
"""As printed: for each message of Figure 4 its id, cid and V."""


class PaperInstance(NamedTuple):
    """An instance with its name in the paper."""

    name: str
    place: int
    instance: Instance


class PaperExample:
    """Objects whose moves are given. The result of each move is recorded and drawn."""

    def __init__(self, objects: str, title: str) -> None:
        self.names = objects.split()
        self.diagram = Diagram([f"object {name}" for name in self.names], 0, title)
        self._orders = [Precedence(at, len(self.names), SELF, Clock()) for at in range(len(self.names))]
        self._messages: dict[str, Message] = {}
        self._left: dict[str, int] = {}  # the column in which each message was sent
        self.sids: dict[str, str] = {}

    def start(self, name: str, at: str) -> PaperInstance:
        """Start an instance without a request."""
        place = self.names.index(at)
        return self._begun(name, self._orders[place].root())

    def send(self, sender: PaperInstance, name: str, to: str) -> None:
        order = self._orders[sender.place]
        dst = tuple(map(self.names.index, to.split()))
        message = self._messages[name] = order.send(sender.instance, ONE_WAY, dst, op="f")
        self._left[name] = self._step()
        note = f"{name} = {self.id_text(name)} {self.vector_text(message.vector)}"
        self.diagram.dots.append(Dot(sender.place, self._left[name], name[1:], "send", note))

    def deliver(self, name: str, at: str, starts: str) -> PaperInstance:
        """Deliver a request, which starts an instance."""
        place, message = self.names.index(at), self._messages[name]
        self._orders[place].clock.see(message.ts)
        column = self._step()
        self.diagram.copies.append(Copy(message.src, self._left[name], place, column))
        begun = self._orders[place].start(message, "f", (), ())
        self.diagram.dots.append(Dot(place, column, name[1:], "deliver", self.vector_text(begun.vector)))
        return self._begun(starts, begun)

    def commit(self, each: PaperInstance) -> None:
        self._orders[each.place].commit(each.instance, "f")
        self.diagram.dots.append(Dot(each.place, self._step(), "", "mark", f"{each.name} commits"))

    def row(self, name: str) -> list[str]:
        """Return identifier, compatibility identifier and vector of a message: a line of Table 2."""
        message = self._messages[name]
        return [self.id_text(name), self._text((*message.cohort,)), self.vector_text(message.vector)]

    def past_text(self, at: str) -> str:
        """Return the vector that an object keeps of the instances that have committed there."""
        return self.vector_text(self._orders[self.names.index(at)].past["f"])

    def id_text(self, name: str) -> str:
        return self._text(id_of(self._messages[name].id))

    def vector_text(self, vector: "tuple[int, ...] | list[int]") -> str:
        """Return a vector of counters as identifiers: for each object the largest one that is counted."""
        largest: list[PrintedId] = [NO_ID] * len(self.names)
        for each in self._messages.values():
            if each.ev <= vector[each.src]:
                largest[each.src] = max(largest[each.src], id_of(each.id))
        return f"<{','.join(map(self._text, largest))}>"

    def _begun(self, name: str, instance: Instance) -> PaperInstance:
        self.sids[name] = self._text((*instance.start,))
        return PaperInstance(name, instance.place, instance)

    def _step(self) -> int:
        """Return the column of the next move. Each has two columns, since the text at a dot needs room."""
        self.diagram.columns += 2
        return self.diagram.columns - 2

    def _text(self, id: tuple[int, ...]) -> str:
        return "0" if not id[0] else f"{id[0]}{self.names[id[1]]}{''.join(map(str, id[2:]))}"


def figure_3() -> tuple[PaperExample, dict[str, str]]:
    """Play Figure 3: i invokes f of j one-way, and sends again after that has committed. Return what the paper prints, as it
    comes out here."""
    example = PaperExample("i j", "Figure 3: object vectors")
    first = example.start("op1", "i")
    example.send(first, "m1", "j")
    found = {
        "sid of op1": example.sids["op1"],
        "id of m1": example.id_text("m1"),
        "V of m1": example.row("m1")[2],
        "V of op1 after m1": example.vector_text(first.instance.vector),
    }
    second = example.deliver("m1", "j", "op2")
    found |= {"sid of op2": example.sids["op2"], "V of op2": example.vector_text(second.instance.vector)}
    example.commit(second)
    found["V of j after op2"] = example.past_text("j")
    example.send(first, "m2", "j")
    example.deliver("m2", "j", "op3")
    found["id of m2"] = example.id_text("m2")
    return example, found


def figure_4() -> PaperExample:
    """Play Figure 4: two instances of i run concurrently, and an instance of j that the first one started sends a message of its
    own."""
    example = PaperExample("i j k", "Figure 4: message ordering")
    first = example.start("op1", "i")
    example.send(first, "m1", "j k")
    second = example.start("op2", "i")
    example.deliver("m1", "k", "op4")
    third = example.deliver("m1", "j", "op3")
    example.send(third, "m2", "k")
    example.deliver("m2", "k", "op5")
    example.send(second, "m3", "k")
    example.deliver("m3", "k", "op6")
    return example


def tabulate_examples() -> dict[str, Table]:
    """Return Figure 3 as a table, and Table 2, each beside the printed values."""
    (_, found), four = figure_3(), figure_4()
    rows = [[what, text, FIGURE_3[what]] for what, text in found.items()]
    lines = [[name, *four.row(name), ", ".join(TABLE_2[name])] for name in TABLE_2]
    return {
        "figure 3": Table(["what", "here", "printed"], rows),
        "table 2": Table(["message", "id", "cid", "V", "printed"], lines),
    }


def judge_examples(tables: dict[str, Table]) -> list[Claim]:
    """Judge whether identifiers and vectors come out as printed."""
    words = {
        "figure 3": "identifiers and vectors of two objects, Figure 3",
        "table 2": "identifiers, compatibility identifiers and vectors of the messages of Figure 4, Table 2",
    }
    claims = []
    for name, statement in words.items():
        rows = [(row[0], ", ".join(row[1:-1]), row[-1]) for row in tables[name].rows]
        published, measured = ("; ".join(f"{row[0]} {row[at]}" for row in rows) for at in (2, 1))
        verdict = HOLDS if all(here == printed for _, here, printed in rows) else NOT_REPRODUCED
        claims.append(Claim(name, statement, published, measured, verdict))
    return claims
