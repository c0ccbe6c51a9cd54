"""The paper's Theorems 1 to 4 and its Table 1, tested on random runs: each as it is printed, and as corrected.

    1   one order at all destinations     conflicting requests that two or more objects start: in different orders?
    2   vectors show happened-before      printed: m1.V < m2.V; corrected: the vector of m2 counts m1
    3   the rule includes precedence      conflicting requests, and answers and data for one instance: does the rule order them as → does,
                                          and concurrent conflicting requests in one way?
    4   delivery respects precedence      the same pairs, as they were started and taken

As printed, 1 and 4 are judged by runs of the printed delivery procedure, 2 and 3 by the printed vectors and rule on runs of our
engine. True precedence is derived independently of both, by `history`.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations, permutations

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, NOT_STATED, Claim, Table
from inga.lab.obg.data import DATA
from inga.lab.obg.history import Act, InstanceRun, RunHistory
from inga.lab.obg.printed import PrintedEngine
from inga.lab.obg.runs import RandomRun
from inga.model.invocation import REQUESTS, RESPONSE, Message, SendId
from inga.objects.order import precedes

PRINTED, CORRECTED = "printed", "corrected"
RULES = (PRINTED, CORRECTED)

RunCounts = Counter[tuple[str, ...]]
"""Counts by (theorem, rule, what is counted), or (case of Table 1, relation of the instances, what is counted)."""

SAME, FIRST, APART = "same instance", "first precedes second", "concurrent"
RELATIONS = (SAME, FIRST, APART)
"""Relations between the instances of two messages at one object: the columns of Table 1."""

CASES = {"S": "sent, then sent", "R": "received, then sent", "T": "received, then received"}
"""The rows of Table 1, for m1 and m2."""


def count_run(seed: int) -> RunCounts:
    """Return all counts of one seed."""
    counts: RunCounts = Counter()
    run = RandomRun(seed)
    counts["4", CORRECTED, "stuck"] += not run.run()
    history = RunHistory(run)
    _count_orders(counts, CORRECTED, history)
    _count_vectors(counts, history)
    _count_rule(counts, history)
    _count_deliveries(counts, CORRECTED, history)
    _count_cases(counts, history)
    counts["data", "", "sent"] += sum(message.kind == DATA for message in history.messages)
    counts["data", "", "dropped"] += run.dropped
    printed = RandomRun(seed, engine=PrintedEngine)
    counts["4", PRINTED, "stuck"] += not printed.run()
    history = RunHistory(printed)
    _count_orders(counts, PRINTED, history)
    _count_deliveries(counts, PRINTED, history)
    return counts


# Theorem 1


def _count_orders(counts: RunCounts, rule: str, history: RunHistory) -> None:
    """Count conflicting requests that several objects have started."""
    orders: dict[frozenset[SendId], list[SendId]] = {}
    for place, started in enumerate(history.starts):
        for one, other in combinations(started, 2):
            if history.conflict(place, one.op, other.op):
                orders.setdefault(frozenset((one.id, other.id)), []).append(one.id)
    for firsts in orders.values():
        if len(firsts) > 1:
            counts["1", rule, "pairs"] += 1
            counts["1", rule, "broken"] += len(set(firsts)) > 1


# Theorem 2


def _count_vectors(counts: RunCounts, history: RunHistory) -> None:
    happened = history.run.happened
    for one, other in permutations(history.messages, 2):
        has_happened = one.id in happened[other.id]
        if history.printed.is_less(one, other):
            counts["2", PRINTED, "pairs"] += 1
            counts["2", PRINTED, "broken"] += not has_happened
        counted, known = precedes(one, other), history.precedes(one, other)
        if counted or known:
            counts["2", CORRECTED, "pairs"] += 1
            counts["2", CORRECTED, "broken"] += not has_happened or not counted


# Theorem 3


def _count_rule(counts: RunCounts, history: RunHistory) -> None:
    requests = [message for message in history.messages if message.kind in REQUESTS]
    relations = history.roster.relations
    for one, other in combinations(requests, 2):
        common = [
            place for place in one.dst if place in other.dst and history.conflict(place, one.op, other.op)
        ]
        if common:
            relation = relations[common[0]]
            rules = {
                PRINTED: (
                    history.printed.precedes(one, other, relation),
                    history.printed.precedes(other, one, relation),
                ),
                CORRECTED: (one.key < other.key, other.key < one.key),
            }
            for rule, said in rules.items():
                _count_said(counts, rule, history, one, other, *said)
    for run in history.runs.values():
        for one, other in combinations(run.taken, 2):
            relation = relations[run.place]
            if history.precedes(one, other) or history.precedes(other, one):
                said = (
                    history.printed.precedes(one, other, relation),
                    history.printed.precedes(other, one, relation),
                )
                _count_said(counts, PRINTED, history, one, other, *said)
                _count_said(
                    counts, CORRECTED, history, one, other, precedes(one, other), precedes(other, one)
                )


def _count_said(
    counts: RunCounts,
    rule: str,
    history: RunHistory,
    one: Message,
    other: Message,
    is_first: bool,
    is_second: bool,
) -> None:
    """Count the verdict of a rule on a pair: whether it says that one is first, and whether that the other is."""
    counts["3", rule, "pairs"] += 1
    if history.precedes(other, one):
        one, other, is_first, is_second = other, one, is_second, is_first
    if not history.precedes(one, other):
        fault = "" if is_first != is_second else "concurrent, in no order"
    elif is_second:
        fault = "the wrong way round"
    else:
        fault = "" if is_first else "missed"
    if fault:
        counts["3", rule, "broken"] += 1
        counts["3", rule, fault] += 1


# Theorem 4, and data


def _count_deliveries(counts: RunCounts, rule: str, history: RunHistory) -> None:
    """Count pairs in the order in which they started or were taken. As corrected, concurrent requests count too: their keys order
    them."""
    for place, started in enumerate(history.starts):
        for one, other in combinations(started, 2):
            if not history.conflict(place, one.op, other.op):
                continue
            is_known = history.precedes(one, other) or history.precedes(other, one)
            if is_known or rule == CORRECTED:
                counts["4", rule, "pairs"] += 1
                is_wrong = history.precedes(other, one) if is_known else other.key < one.key
                counts["4", rule, "broken"] += is_wrong
    for run in history.runs.values():
        for one, other in combinations(run.taken, 2):
            if history.precedes(one, other) or history.precedes(other, one):
                counts["4", rule, "pairs"] += 1
                is_wrong = history.precedes(other, one)
                counts["4", rule, "broken"] += is_wrong
                if rule == CORRECTED and DATA in (one.kind, other.kind):
                    counts["data", "", "pairs"] += 1
                    counts["data", "", "broken"] += is_wrong


# Table 1


def _count_cases(counts: RunCounts, history: RunHistory) -> None:
    """Count how the vectors of the product relate requests, answers and data. Commits and aborts, which go from invoker to
    invoked, are not in the table, and follow other rules."""
    kinds = (*REQUESTS, RESPONSE, DATA)
    for place, acts in enumerate(history.acts):
        for one, other in combinations([act for act in acts if act.message.kind in kinds], 2):
            relation = _relation(history, place, one.run, other.run)
            if other.is_send:
                case = "S" if one.is_send else "R"
                counts[case, relation, "pairs"] += 1
                counts[case, relation, "related"] += precedes(one.message, other.message)
            elif not one.is_send:
                _count_receipts(counts, history, relation, one, other)


def _count_receipts(counts: RunCounts, history: RunHistory, relation: str, one: Act, other: Act) -> None:
    """Count related messages, and those that were delivered in the reverse order."""
    is_turned = history.precedes(other.message, one.message)
    if not is_turned and not history.precedes(one.message, other.message):
        return
    is_mixed = relation == FIRST and not all(each.message.kind in REQUESTS for each in (one, other))
    case = "T, not two requests" if is_mixed else "T"
    counts[case, relation, "pairs"] += 1
    counts[case, relation, "turned"] += is_turned


def _relation(history: RunHistory, place: int, one: InstanceRun, other: InstanceRun) -> str:
    """Return the relation of two instances of one object; the first one's message was sent or received first."""
    if one is other:
        return SAME
    is_over = one.committed is not None and one.committed < other.begun
    return FIRST if is_over and history.conflict(place, one.op, other.op) else APART


# The results


def tabulate_theorems(counts: RunCounts) -> dict[str, Table]:
    """Return how often each theorem was tested and broken, and Table 1."""
    rows = [
        [theorem, rule, *(counts[theorem, rule, what] for what in ("pairs", "broken", "stuck"))]
        for theorem in "1234"
        for rule in RULES
    ]
    rows.append(["data", CORRECTED, counts["data", "", "pairs"], counts["data", "", "broken"], 0])
    return {
        "theorems": Table(["theorem", "rule", "pairs", "broken", "runs without end"], rows),
        "table 1": Table(
            ["m1 and m2, at one object", *RELATIONS],
            [
                [words, *(_cell(counts, case, relation) for relation in RELATIONS)]
                for case, words in CASES.items()
            ],
        ),
    }


def _cell(counts: RunCounts, case: str, relation: str) -> str:
    pairs = counts[case, relation, "pairs"]
    if case != "T":
        related = counts[case, relation, "related"]
        words = f"{related:,} of {pairs:,} pairs related"
        return f"m1 → m2: all of {pairs:,} pairs" if related == pairs else f"–: {words}, by other ways"
    turned = counts[case, relation, "turned"]
    if turned:
        return f"in any order: {turned:,} of {pairs:,} related pairs turned round"
    words = f"order matters: none of {pairs:,} related pairs turned round"
    if relation == FIRST:
        mixed, back = (counts["T, not two requests", FIRST, what] for what in ("pairs", "turned"))
        words += f" if both are requests; with an answer or data, {back:,} of {mixed:,}"
    return words


STATEMENTS = {
    "1": (
        "requests that conflict are in one order at all common destinations",
        "Theorem 1",
        "the delivery procedure as printed",
        "the product",
    ),
    "2": (
        "a vector below another means that the one message was sent before the other",
        "Theorem 2",
        "vectors of identifiers, m1.V < m2.V",
        "counters: the vector of m2 counts m1, and it does if m1 → m2",
    ),
    "3": (
        "a message that OB-precedes another is before it in the ordering rule",
        "Theorem 3",
        "the rule of identifiers as printed",
        "keys for requests, counters for answers and data",
    ),
    "4": (
        "a message that OB-precedes another is delivered first",
        "Theorem 4",
        "the delivery procedure as printed",
        "the product",
    ),
}
"""By number: the statement of a theorem, its source, and what is tested as printed and as corrected."""


def judge_theorems(counts: RunCounts, runs: int) -> list[Claim]:
    """Return the verdicts. A theorem without any test cases does not hold."""
    claims = []
    for theorem, (statement, published, *tried) in STATEMENTS.items():
        for rule, words in zip(RULES, tried, strict=True):
            name = f"theorem {theorem}" + (", corrected" if rule == CORRECTED else "")
            verdict = _verdict(counts, theorem, rule)
            claims.append(
                Claim(name, f"{statement}; {words}", published, _told(counts, theorem, rule, runs), verdict)
            )
    return [*claims, _judge_data(counts), _judge_cases(counts)]


def _verdict(counts: RunCounts, theorem: str, rule: str) -> str:
    broken = counts[theorem, rule, "broken"] + counts[theorem, rule, "stuck"]
    return HOLDS if counts[theorem, rule, "pairs"] and not broken else NOT_REPRODUCED


def _told(counts: RunCounts, theorem: str, rule: str, runs: int) -> str:
    pairs, broken = counts[theorem, rule, "pairs"], counts[theorem, rule, "broken"]
    told = f"broken by {broken:,} of {pairs:,} pairs in {runs:,} random runs"
    faults = [
        f"{counts[theorem, rule, fault]:,} {fault}"
        for fault in ("concurrent, in no order", "missed", "the wrong way round")
        if counts[theorem, rule, fault]
    ]
    stuck = counts[theorem, rule, "stuck"]
    return told + (f": {'; '.join(faults)}" if faults else "") + (f"; {stuck} did not end" if stuck else "")


def _judge_data(counts: RunCounts) -> Claim:
    sent, dropped, pairs, broken = (
        counts["data", "", what] for what in ("sent", "dropped", "pairs", "broken")
    )
    return Claim(
        "data",
        "data that an instance and its invoker tell each other are taken after the request, in order with answers and other data",
        "sections 2.1 and 4.2; no rule of their own",
        f"{sent:,} data messages, {dropped:,} for instances that had ended; broken by {broken:,} of {pairs:,} pairs with data",
        HOLDS if pairs and not broken else NOT_REPRODUCED,
    )


def _judge_cases(counts: RunCounts) -> Claim:
    related = [(case, relation) for case in "SR" for relation in (SAME, FIRST)]
    is_related = all(
        counts[*each, "pairs"] and counts[*each, "related"] == counts[*each, "pairs"] for each in related
    )
    is_free = all(counts[case, APART, "related"] < counts[case, APART, "pairs"] for case in "SR")
    is_kept = all(counts["T", each, "pairs"] and not counts["T", each, "turned"] for each in (SAME, FIRST))
    turned = counts["T", APART, "turned"]
    return Claim(
        "table 1",
        "which of two messages at one object precedes the other, by how their instances are related",
        "Table 1; its cells are not in our copy",
        f"the cells that follow from the text come out of the runs: {_words(is_related)} where one is related, "
        f"{_words(is_free)} where none is, {_words(is_kept)} where order matters; {turned:,} pairs turned round where it does not",
        NOT_STATED if is_related and is_free and is_kept and turned else NOT_REPRODUCED,
    )


def _words(is_so: bool) -> str:
    return "right" if is_so else "wrong"


def total(counted: Iterable[RunCounts]) -> RunCounts:
    """Return the sums over all runs."""
    found: RunCounts = Counter()
    for each in counted:
        found.update(each)
    return found
