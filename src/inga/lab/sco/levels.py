"""Levels of acceptance, observed in runs: the paper's Table 1 and the implications of its Figure 2.

A run is a group that sends to random subsets over a network that loses and reorders. All events are in one list of rows, in the
order in which they happened. Whenever a member reports that a message has reached a level, each definition is compared with what had
happened until then at all members:

    simple               the message has arrived
    continuous           and so have all messages that its sender had sent there before
    causal               and so have all messages that precede it and are for that member
    atomic               it has arrived at all its destinations
    continuously atomic  and so have, at theirs, all messages that its sender had sent to that member before
    causally atomic      and so have, at theirs, all messages that precede it and are for that member
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim, Table
from inga.layers.shape import Faults
from inga.recipes import Options
from inga.sim.simulator import Sim
from inga.stack.layer import Layer
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row

NAMES = ("alice", "bob", "cathy", "dave", "erin")
ROUGH = Faults(loss=0.15, reorder=0.4, delay_min=0.001, delay_max=0.03)
ORDERS = {"vector": "CBCAST", "co": "CO", "sco": "SCO"}
"""Our orders, by the protocols that the paper compares."""

SAID = {"receive": "received", "accept": "accepted", "causal": "causal", "confirm": "confirmed"}
"""By the step of a row: the level that the message has reached according to the member."""

DEFINED = ("simple", "continuous", "causal", "atomic", "continuously atomic", "causally atomic")
IMPLIED = {
    "received": DEFINED[:1],
    "accepted": DEFINED[:2],
    "causal": DEFINED[:3],
    "confirmed": DEFINED,
}
"""The definitions that each level has to imply, by Figure 2."""

MessageKey = tuple[int, int]
"""A message: its sender and number."""


def observe(
    order: str, seed: int, messages: int = 12, build: Callable[[Options], list[Layer]] | None = None
) -> list[Row]:
    """Run a group, and return the rows of all members. `build` replaces the order's layers."""
    rows: list[Row] = []
    traces = [MemoryTrace(me, len(NAMES), rows) for me in range(len(NAMES))]
    options = Options(detect=None)
    sim = Sim(
        *NAMES,
        order=order,
        seed=seed,
        faults=ROUGH,
        options=options,
        traces=traces,
        build=build,
        record=False,
    )
    rng = Random(seed)
    for number in range(messages * len(NAMES)):
        sim.run(until=0.004 * number)
        source, *others = rng.sample(NAMES, len(NAMES))
        to = None if order == "co" else others[: rng.randint(1, len(others))]
        sim[source].send(b"%d" % number, to=to)
    sim.run()
    return rows


class Held:
    """Arrivals of messages at members, and precedence between messages, as a run goes on."""

    def __init__(self, members: int) -> None:
        self._members = members
        self._came: dict[MessageKey, set[int]] = defaultdict(set)  # members at which a message has arrived
        self._for: dict[MessageKey, set[int]] = {}
        self._past: dict[MessageKey, tuple[int, ...]] = {}

    def note(self, row: Row) -> None:
        """Note the next row of the run."""
        assert row.src is not None and row.seq is not None
        key = (row.src, row.seq)
        if row.step == "send":
            everybody = set(range(self._members)) - {row.src}
            self._for[key] = (
                everybody if row.dst is None else {m for m in range(self._members) if row.dst >> m & 1}
            )
            self._past[key] = row.deps or ()
            self._came[key].add(row.src)
        elif row.step == "receive":
            self._came[key].add(row.process)

    def true_of(self, key: MessageKey, member: int) -> dict[str, bool]:
        """Return which definitions are true now of a message at one of its destinations."""
        local = [(key[0], seq) for seq in range(1, key[1]) if self._is_for((key[0], seq), member)]
        causes = [
            each
            for src, last in enumerate(self._past[key])
            for each in ((src, seq) for seq in range(1, last + 1))
            if self._is_for(each, member)
        ]
        pasts: tuple[list[MessageKey], ...] = ([], local, causes)
        here = [all(member in self._came[each] for each in (key, *past)) for past in pasts]
        everywhere = [all(self._for[each] <= self._came[each] for each in (key, *past)) for past in pasts]
        return dict(zip(DEFINED, [*here, *everywhere], strict=True))

    def _is_for(self, key: MessageKey, member: int) -> bool:
        return member in self._for.get(key, ())


def implications(runs: Iterable[list[Row]]) -> Table:
    """Figure 2: return the share of reports of each level at which each definition was true, in per cent."""
    cases: dict[str, int] = defaultdict(int)
    true: dict[tuple[str, str], int] = defaultdict(int)
    for rows in runs:
        held = Held(len(NAMES))
        for row in rows:
            if row.step != "send" and row.step not in SAID:
                continue
            held.note(row)
            if row.step in SAID and row.process != row.src:
                said = SAID[row.step]
                cases[said] += 1
                for name, is_true in held.true_of((row.src or 0, row.seq or 0), row.process).items():
                    true[said, name] += is_true
    found = [[said, n, *(_share(true[said, name], n) for name in DEFINED)] for said, n in cases.items()]
    order = list(IMPLIED)
    return Table(["said", "cases", *DEFINED], sorted(found, key=lambda row: order.index(row[0])))


def realized(runs: dict[str, list[Row]]) -> Table:
    """Table 1: return how each order realizes each level, as its run shows."""
    seen = {order: dict(_realized(order, rows)) for order, rows in runs.items()}
    levels = next(iter(seen.values()))
    return Table(["level", *runs], [[level, *(each[level] for each in seen.values())] for level in levels])


def _realized(order: str, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Yield how an order realizes each level. Without a `reliable` layer the order's own sequence numbers serve for repair: a lost
    copy is requested by the number of its message. These numbers also serve for order if no member sees gaps in them, which messages to
    a subset leave."""
    own = not any(layer.name == "reliable" for layer in Sim(*NAMES, order=order).sites[0].stack.layers)
    numbers: dict[tuple[int, int], set[int]] = defaultdict(set)
    knows: set[bool] = set()
    for row in rows:
        if row.step == "receive":
            numbers[row.process, row.src or 0].add(row.seq or 0)
        if row.step == "confirm":
            knows.add(row.process != row.src)
    without_holes = all(len(seen) == max(seen) for seen in numbers.values())
    yield "simple", "network service"
    yield "continuous", "sequence number" if own else "network service"
    yield "causal", "sequence number" if own and without_holes else "vector clock"
    yield "atomic", "distributed" if True in knows else "decentralized"


PUBLISHED = {
    "simple": ["network service"] * 3,
    "continuous": ["network service", "sequence number", "sequence number"],
    "causal": ["vector clock", "sequence number", "vector clock"],
    "atomic": ["decentralized", "distributed", "distributed"],
}
"""Table 1, as published."""


def judge_levels(table: Table, figure: Table) -> list[Claim]:
    """Return the verdicts on Table 1 and Figure 2."""
    same = {level: row for level, *row in table.rows} == PUBLISHED
    wrong = [f"{said} without {name}" for said, name, share in _cells(figure) if share < 100]
    alike = [said for said in IMPLIED if _is_no_less(figure, said)]
    sound = not wrong and {row[0] for row in figure.rows} == set(IMPLIED)
    return [
        Claim(
            "levels",
            "how CBCAST, CO and SCO realize each level",
            "Table 1",
            "; ".join(f"{level}: {', '.join(row)}" for level, *row in table.rows),
            HOLDS if same else NOT_REPRODUCED,
        ),
        Claim(
            "implications",
            "which level of acceptance implies which",
            "Figure 2",
            f"{sum(row[1] for row in figure.rows):,} moments: "
            + (", ".join(wrong) or "no level was said that did not mean all it implies")
            + (f"; no difference seen: {', '.join(alike)}" if alike else ""),
            HOLDS if sound and not alike else NOT_REPRODUCED,
        ),
    ]


def _cells(figure: Table) -> Iterator[tuple[str, str, float]]:
    for said, _, *shares in figure.rows:
        for name, share in zip(DEFINED, shares, strict=True):
            if name in IMPLIED[said]:
                yield said, name, share


def _is_no_less(figure: Table, said: str) -> bool:
    """Whether a level seemed to imply more than it has to: then the runs could not distinguish it from the next one."""
    rows: dict[str, list[Any]] = {row[0]: row[2:] for row in figure.rows}
    free = [
        share for name, share in zip(DEFINED, rows.get(said, []), strict=False) if name not in IMPLIED[said]
    ]
    return any(share == 100 for share in free)


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if part < whole else 100
