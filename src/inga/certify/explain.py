"""One violation in words: which message came too early, by which chain it follows from the other, and where to look."""

from itertools import pairwise
from typing import Any

import numpy as np

from inga.certify.agree import Clash, message_of
from inga.certify.chain import Chains, RequestChains, Step
from inga.certify.chunk import DELIVER, Chunk, Ints
from inga.certify.clocks import line_of, place_of
from inga.certify.combine import PlacedChunk
from inga.certify.evidence import Evidence
from inga.certify.fold import Folded
from inga.certify.roots import Bad, Excess, named
from inga.certify.verdict import Witness
from inga.certify.work import RowKey

SENT = (Chains.sent, RequestChains.sent)

HOPS_FIRST, HOPS_LAST = 3, 2
"""How many of the first and of the last hops of a long chain are put in words; the witness has all hops."""


class Explainer:
    """Explains violations, for which it reads a few segments again. In a growing trace it omits details that only rows of folds
    contain."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._names = evidence.names
        self._read = evidence.source.read
        self._chains = Chains(evidence.lines, self._read, evidence.source.receipt)
        self._requests = RequestChains(evidence.lines, self._read)
        self._left_out: tuple[type[Exception], ...] = (Folded,) if evidence.growing else ()

    def witness(self, row: RowKey, bad: Bad) -> Witness:
        names, link_at = self._evidence.source.segment_names, self._evidence.link_at
        segment = names[link_at(row.process, row.pos).segment] if row.pos else None
        found = Witness(bad.check, row.process, row.pos, (row.src, row.seq), "", segment)
        if bad.check in ("causal", "fifo"):
            self._explain_late(found, row)
        elif bad.check == "stamps":
            self._explain_stamp(found, row)
        elif bad.clashes:
            self._explain_clash(found, bad.clashes[bad.rows.index(row)])
        else:
            self._explain_pair(found, bad)
        if self._evidence.source.is_import:
            found.line = self._line(found)
        return found

    def effect(self, row: RowKey, check: str) -> RowKey | None:
        """The first delivery at that process that should have come after this one; None if its row is in a fold."""
        for link in self._evidence.lines[row.process]:
            if check == "fifo":
                highest = link.summary.delivered_high[row.src] - 1
            else:
                highest = link.summary.required[row.src]
            if highest < row.seq or link.summary.first >= row.pos:
                continue
            try:
                chunk = self._read(link.segment)
            except self._left_out:
                return None
            newer = (chunk.src == row.src) & (chunk.seq > row.seq)
            if check != "fifo":
                newer |= chunk.deps[:, row.src] >= row.seq
            at = np.flatnonzero(newer & ((chunk.kind & DELIVER) != 0) & (chunk.pos < row.pos))
            if len(at):
                return RowKey(row.process, *(int(a[at[0]]) for a in (chunk.pos, chunk.src, chunk.seq)))
        return None

    def excess(self, row: RowKey) -> list[Excess]:
        """Where the vector of a send differs from what its process had sent and received."""
        link = self._evidence.link_at(row.process, row.pos)
        chunk = self._read(link.segment)
        at = int(np.searchsorted(chunk.pos, row.pos))
        stamped, known = chunk.deps[at], _known_before(chunk, link, at)
        differ = np.flatnonzero(stamped != known).tolist()
        return [Excess(at, int(stamped[at]), int(known[at])) for at in differ]

    def origin(self, row: RowKey, source: int, number: int) -> RowKey | None:
        """The first row of a process, before this one, after which it knew so many messages of a source; None if it is in a fold."""
        for link in self._evidence.lines[row.process]:
            if link.summary.known[source] < number or link.summary.first >= row.pos:
                continue
            try:
                chunk = self._read(link.segment)
            except self._left_out:
                return None
            told = (chunk.deps[:, source] >= number) | ((chunk.src == source) & (chunk.seq >= number))
            at = np.flatnonzero(told & chunk.is_known() & (chunk.pos < row.pos))
            if len(at):
                return RowKey(row.process, *(int(a[at[0]]) for a in (chunk.pos, chunk.src, chunk.seq)))
        return None

    def _explain_late(self, witness: Witness, row: RowKey) -> None:
        effect, late = self.effect(row, witness.check), self._message(witness.message)
        if effect is None:
            assert self._left_out, f"{row} is late, but nothing came before it"
            witness.text = (
                f"{self._names[row.process]} delivered {late} long after a message that it precedes"
            )
            return
        witness.other, witness.other_pos = (effect.src, effect.seq), effect.pos
        try:
            witness.chain = self._chains.find(witness.message, witness.other)
            unlinked = "by its vector only: nothing in the trace links them"
        except self._left_out:
            unlinked = "by its vector; what links them was long before"
        if effect.src == row.src:
            why = "was sent first"
        elif self._is_circle(row, effect):
            why = "precedes it, and follows from it: by their vectors the two are a cycle"
        elif witness.chain:
            why = f"precedes it: {self._tell(witness.chain)}"
        else:
            why = f"precedes it {unlinked}"
        early = self._message(witness.other)
        witness.text = f"{self._names[row.process]} delivered {early} before {late}, which {why}"

    def _is_circle(self, row: RowKey, effect: RowKey) -> bool:
        """Whether a late message names, as its own cause, the message that was delivered before it and depends on it."""
        chunk = self._read(self._evidence.link_at(row.process, row.pos).segment)
        return bool(chunk.deps[int(np.searchsorted(chunk.pos, row.pos)), effect.src] >= effect.seq)

    def _line(self, witness: Witness) -> str | None:
        """The line of the log where a person should look first."""
        places = [(witness.process, witness.pos)] if witness.pos else []
        places += [(step.process, step.pos) for step in witness.chain]
        if not places:
            return None
        process, pos = places[0]
        return line_of(self._read(self._evidence.link_at(process, pos).segment), pos)

    def _explain_stamp(self, witness: Witness, row: RowKey) -> None:
        link = self._evidence.link_at(row.process, row.pos)
        chunk = self._read(link.segment)
        at = int(np.searchsorted(chunk.pos, row.pos))
        witness.text = (
            f"{self._names[row.process]} stamped {self._message(witness.message)} with "
            f"{_show(chunk.deps[at])}, but had sent and received {_show(_known_before(chunk, link, at))}"
        )

    def _explain_clash(self, witness: Witness, clash: Clash) -> None:
        n = len(self._names)
        witness.other, witness.other_pos = message_of(clash.other, n), clash.other_pos
        witness.against = (clash.against, clash.against_pos, clash.against_other_pos)
        here, there = self._names[witness.process], self._names[clash.against]
        verb = "began" if witness.check == "object" else "delivered"
        early, late = self._message(witness.other), self._message(witness.message)
        if clash.methods:
            early, late = f"{clash.methods[0]} ({early})", f"{clash.methods[1]} ({late})"
        witness.text = (
            f"{here} {verb} {early} before {late}, but {there} the other way round, "
            f"at positions {clash.against_pos} and {clash.against_other_pos}"
        )
        self._relate(witness)

    def _relate(self, witness: Witness) -> None:
        """Say which of the two messages precedes the other, if one does."""
        assert witness.other is not None
        chains = self._requests if witness.check == "object" else self._chains
        for cause, effect in ((witness.message, witness.other), (witness.other, witness.message)):
            if not witness.chain:
                witness.chain = chains.find(cause, effect)
                if witness.chain and cause[0] == effect[0]:
                    witness.text += f"; {self._message(cause)} was sent first"
                elif witness.chain:
                    told = self._tell(witness.chain, self._message(effect))
                    witness.text += f"; {self._message(cause)} precedes {self._message(effect)}: {told}"
        if not witness.chain and witness.check == "total":
            witness.text += "; neither precedes the other"

    def _follow(self, witness: Witness, bad: Bad) -> None:
        """Add the chain from the send of a message to a process that has it."""
        witness.chain = self._chains.find(witness.message, witness.message)
        found = self._chains.reached(witness.message, bad.step, besides=witness.process, view=bad.view)
        if found is not None:
            witness.chain.append(found)
            witness.against = (found.process, found.pos, 0)
            witness.text += f"; {self._names[found.process]} has it at position {found.pos}"

    def _explain_pair(self, witness: Witness, bad: Bad) -> None:
        here, message = self._names[witness.process], self._message(witness.message)
        if bad.step == "view":
            witness.text = f"{here} {bad.what}"
            witness.chain = list(bad.chain)
        elif bad.check == "complete":
            witness.text = f"{message} {bad.what} at {here}"
            witness.chain = self._chains.find(witness.message, witness.message)
        elif bad.check in ("atomic", "views"):
            witness.text = f"{message} {bad.what}"
            if witness.pos:
                witness.chain = self._chains.find(witness.message, witness.message)
                if bad.step != "send":  # the chain has it already, as its first step
                    witness.chain.append(Step(witness.process, witness.pos, bad.step, witness.message))
            else:
                self._follow(witness, bad)
            witness.chain += bad.chain
        elif bad.check == "clocks":
            row = RowKey(witness.process, witness.pos, *witness.message)
            witness.other = bad.others.get(row)
            witness.text = f"{self._event(row)} {bad.what}{self._named_event(witness.other)}"
        elif bad.check == "object":
            assert bad.early is not None
            witness.other, witness.other_pos = (bad.early.src, bad.early.seq), bad.early.pos
            witness.text = f"{here} began {message} after {self._message(witness.other)}, which it precedes"
            witness.chain = self._requests.find(witness.message, witness.other)
            if witness.chain and witness.message[0] != witness.other[0]:
                witness.text += f": {self._tell(witness.chain)}"
        elif bad.check in ("quiet", "time"):
            witness.text = f"{here} {bad.what}"
        elif bad.check == "integrity":
            witness.text = f"{here} delivered {message}, which {bad.what}"
        else:
            witness.text = f"{here}: {message} {bad.what}"

    def _tell(self, chain: list[Step], effect: str = "it") -> str:
        """The chain as half a sentence: which process had which message when it sent which; the last message sent is the effect."""
        hops = [(got, sent) for got, sent in pairwise(chain) if got.step not in SENT and sent.step in SENT]
        told = [
            f"{self._names[got.process]} had {self._message(got.message)} when it sent {self._message(sent.message)}"
            for got, sent in hops[:-1]
        ]
        last = hops[-1][0]
        told.append(f"{self._names[last.process]} had {self._message(last.message)} when it sent {effect}")
        hidden = len(told) - HOPS_FIRST - HOPS_LAST
        if hidden > 1:
            told[HOPS_FIRST:-HOPS_LAST] = [f"so on over {hidden:,} more messages"]
        return ", and ".join(told)

    def _event(self, row: RowKey) -> str:
        """An imported event, with its line in the log."""
        chunk = self._read(self._evidence.link_at(row.process, row.pos).segment)
        return f"{place_of(chunk, row.pos)}: event {row.seq} of {self._names[row.process]}"

    def _named_event(self, event: tuple[int, int] | None) -> str:
        return "" if event is None else f" event {event[1]} of {self._names[event[0]]}"

    def _message(self, message: tuple[int, int]) -> str:
        return named(self._names, message)


def _known_before(chunk: Chunk, link: PlacedChunk, at: int) -> Ints:
    """What the process had sent and received before a row of the chunk."""
    known = link.carry.known.copy()
    rows = np.flatnonzero(chunk.is_known()[:at])
    if len(rows):
        known = np.maximum(known, chunk.deps[rows].max(axis=0))
        np.maximum.at(known, chunk.src[rows], chunk.seq[rows])
    return known


def _show(deps: Any) -> str:
    return "<" + ",".join(str(int(entry)) for entry in deps) + ">"
