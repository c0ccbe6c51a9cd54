"""The evaluation of the CO paper, repeated: stages in units of R, messages to be kept, processing time, headers.

    stages   how long after its acceptance a message is confirmed and acknowledged, in steady rounds
    buffer   messages received between acceptance and acknowledgement, windows saturated
    cost     processing time and application delay at the paper's load (its Figure 7)
    header   bytes of a data packet besides its message
    theorems      Theorems 1 and 2 on random runs
    sending       when confirmations leave: by the paper's rule, by ours, at every receipt
    establishment how a group begins
    services      order by sender, causal order and total order, side by side

Simulations run as Spark tasks; with `quick` there are fewer of them, and they run in this process unless a master was given.
Measurements in seconds are made in this process or by processes on this machine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inga.lab.bench import SayProgress
from inga.lab.co import cost
from inga.lab.co.establish import establishment
from inga.lab.co.page import describe, render
from inga.lab.co.played import PlayedFigures, Task, simulate
from inga.lab.co.sending import sending_table, sending_tasks, simulate_sending
from inga.lab.co.services import services
from inga.lab.co.theorems import theorems
from inga.lab.experiments import HOLDS, NOT_REPRODUCED, NOT_STATED, ROUGHLY, Claim, Outcome, Table, writing
from inga.lab.simulations import simulate_all
from inga.pipeline.session import LOCAL

SIZES = (2, 3, 4, 5, 6, 7, 8)
WINDOWS = (1, 2, 4)
SPREADS = 5
"""The number of random placements of members for unequal delays."""

EXPECTED = {"remote confirm": 1.0, "remote acknowledge": 2.0, "own confirm": 2.0, "own acknowledge": 3.0}
"""Units of R after acceptance; the paper has values only for messages of others."""

HEADER = 84
"""Bytes of the paper's header in a group of eight."""
CLOSE = 0.05
"""The relative deviation up to which a published number still holds."""


def run(out: Path, quick: bool, progress: SayProgress, *, master: str = LOCAL) -> Outcome:
    """Run all simulations; then write tables, claims and a page."""
    tasks = _tasks(quick)
    answers = simulate_all(play_task, tasks, progress, None if quick and master == LOCAL else master)
    found = dict(zip(tasks, answers, strict=True))
    tables = {
        "stages": _stages(found),
        "buffer": _buffer(found),
        "cost": _cost(quick, progress),
        "header": _header(found),
        "theorems": theorems(range(5 if quick else 50)),
        "sending": sending_table(found),
        "establishment": establishment(range(50 if quick else 500)),
        "services": services(range(80 if quick else 1000)),
    }
    claims = judge(tables)
    page = out / "co.html"
    with writing(out):
        page.write_text(render(tables, claims), encoding="utf-8")
    return Outcome(claims, tables, describe(tables, claims), [page])


def play_task(task: Task) -> PlayedFigures:
    """Run one simulation, wherever Spark schedules it."""
    return simulate_sending(task) if task.what == "sending" else simulate(task)


def _tasks(quick: bool) -> list[Task]:
    sizes = (2, 3, 8) if quick else SIZES
    tasks = [Task("stages", n, known) for n in sizes for known in ("printed", "eager")]
    for n in (3, 5, 8):
        for window in WINDOWS:
            tasks.append(Task("buffer", n, window=window))
            if not quick or (n, window) == (5, 4):
                tasks += [
                    Task("buffer", n, window=window, delays="unequal", seed=seed) for seed in range(SPREADS)
                ]
    wide = sizes if quick else (*sizes, 16, 32)
    tasks += sending_tasks((2, 6) if quick else (2, 4, 8, 16))
    return tasks + [Task("header", n, delays=who) for n in wide for who in ("all talk", "two talk")]


# Tables


def _stages(found: dict[Task, PlayedFigures]) -> Table:
    table = Table(["n", "self_knowledge", "whose", "step", "min_R", "max_R", "expected_R"], [])
    for task, answer in found.items():
        if task.what == "stages":
            for name, wanted in EXPECTED.items():
                whose, step = name.split()
                low, high = answer[f"{name} min"], answer[f"{name} max"]
                row = [task.members, task.self_knowledge, whose, step, round(low, 6), round(high, 6), wanted]
                table.rows.append(row)
    return table


def _buffer(found: dict[Task, PlayedFigures]) -> Table:
    most: dict[tuple[int, int, str], int] = {}
    for task, answer in found.items():
        if task.what == "buffer":
            key = (task.members, task.window, task.delays)
            most[key] = max(most.get(key, 0), int(answer["received"]))
    rows = [[*key, received, 2 * key[0] * key[1]] for key, received in sorted(most.items())]
    return Table(["n", "window", "delays", "received_max", "2nW"], rows)


def _cost(quick: bool, progress: SayProgress) -> Table:
    table = Table(["n", "processing_us", "delay_ms", "delay_ms_median", "process_cpu_us"], [])
    for n in (2, 8) if quick else SIZES:
        progress(f"processing time and delay, {n} members")
        spent = cost.processing(n, 20 if quick else 60)
        live = cost.delay(n, 10 if quick else 40)
        row = [1e6 * spent, 1e3 * live["mean"], 1e3 * live["median"], 1e6 * live["cpu"]]
        table.rows.append([n, *[round(each, 2) for each in row]])
    return table


def _header(found: dict[Task, PlayedFigures]) -> Table:
    table = Table(["n", "who", "bytes", "20+8n"], [])
    for task, answer in found.items():
        if task.what == "header":
            row = [task.members, task.delays, round(answer["bytes"], 2), 20 + 8 * task.members]
            table.rows.append(row)
    return table


# Claims


def judge(tables: dict[str, Table]) -> list[Claim]:
    """Return the paper's claims beside the measurements."""
    return [
        *(_stage_claim(tables["stages"], *each) for each in _STAGES),
        _buffer_claim(tables["buffer"], "equal", "with equal delays"),
        _buffer_claim(tables["buffer"], "unequal", "with delays from R/10 to R"),
        _cost_claim(tables["cost"]),
        _header_claim(tables["header"]),
        *_theorem_claims(tables["theorems"]),
        *_sending_claims(tables["sending"]),
        _establishment_claim(tables["establishment"]),
        _services_claim(tables["services"]),
    ]


_STAGES = (
    ("confirmed", "remote", "confirm", "a message is confirmed R after it was accepted", "R"),
    ("acknowledged", "remote", "acknowledge", "a message is acknowledged 2R after it was accepted", "2R"),
    (
        "own confirmed",
        "own",
        "confirm",
        "a member knows that its own message is confirmed 2R after it has sent it, when all answers to it have come back",
        NOT_STATED,
    ),
    (
        "own acknowledged",
        "own",
        "acknowledge",
        "and that it is acknowledged after 3R, one round of answers later",
        NOT_STATED,
    ),
)


def _stage_claim(table: Table, id: str, whose: str, step: str, statement: str, published: str) -> Claim:
    rows = [row for row in table.rows if row[1:4] == ["printed", whose, step]]
    low, high = min(row[4] for row in rows), max(row[5] for row in rows)
    exact = all(abs(each - row[6]) < 1e-6 for row in rows for each in row[4:6])
    measured = f"{low:g}R" if low == high else f"{low:g}R to {high:g}R"
    right = NOT_STATED if published == NOT_STATED else HOLDS
    return Claim(
        id, statement, published, f"{measured} for n = {_range(rows)}", right if exact else NOT_REPRODUCED
    )


def _buffer_claim(table: Table, delays: str, words: str) -> Claim:
    rows = [row for row in table.rows if row[2] == delays]
    worst = max(rows, key=lambda row: row[3] / row[4])
    ratio = worst[3] / worst[4]
    measured = f"at most {ratio:.2f} times 2nW (n = {worst[0]}, W = {worst[1]}: {worst[3]} of {worst[4]})"
    verdict = HOLDS if ratio <= 1 else ROUGHLY if ratio <= 1.25 else NOT_REPRODUCED
    statement = f"a message is acknowledged before 2nW messages have come after it, {words}"
    return Claim(f"buffer, {delays}", statement, "2nW", measured, verdict)


def _cost_claim(table: Table) -> Claim:
    first, last = table.rows[0], table.rows[-1]
    growth, members = last[1] / first[1], last[0] / first[0]
    measured = (
        f"{first[1]:.0f} us for n = {first[0]}, {last[1]:.0f} us for n = {last[0]}: {growth:.2f} times "
        f"for {members:g} times the members; delay {first[2]:.1f} and {last[2]:.1f} ms"
    )
    verdict = HOLDS if growth <= members else ROUGHLY if growth <= 1.5 * members else NOT_REPRODUCED
    return Claim(
        "processing", "processing time per message grows as O(n)", "O(n), Figure 7", measured, verdict
    )


def _header_claim(table: Table) -> Claim:
    eight = {row[1]: row for row in table.rows if row[0] == 8}
    largest = max(table.rows, key=lambda row: row[2] / row[3])
    measured = (
        f"n = 8: {eight['all talk'][2]:g} B if all talk, {eight['two talk'][2]:g} B if two do, of {HEADER}; "
        f"never more than {largest[2] / largest[3]:.2f} of 20 + 8n"
    )
    close = abs(eight["all talk"][2] - HEADER) <= CLOSE * HEADER
    verdict = NOT_REPRODUCED if largest[2] > largest[3] else HOLDS if close else ROUGHLY
    return Claim(
        "header",
        f"the header is O(n): {HEADER} bytes for n = 8",
        f"{HEADER} B; 20 + 8n is our reading of that one number",
        measured,
        verdict,
    )


def _theorem_claims(table: Table) -> list[Claim]:
    (_, pairs, mistaken, revealed, wrongly, lacked), corrected = table.rows
    return [
        Claim(
            "theorem 1",
            "numbers tell what precedes what, with acceptance as it is printed",
            "Theorem 1",
            f"wrong for {mistaken:,} of {pairs:,} pairs, {lacked:,} messages being sent by members that lacked a cause",
            NOT_REPRODUCED if mistaken else HOLDS,
        ),
        Claim(
            "theorem 1, corrected",
            "numbers tell what precedes what, where acceptance waits for what a message names",
            "Theorem 1",
            f"wrong for {corrected[2]:,} of {corrected[1]:,} pairs",
            NOT_REPRODUCED if corrected[2] else HOLDS,
        ),
        Claim(
            "theorem 2",
            "where vectors do not rise along precedence, a message is lost",
            "Theorem 2",
            f"seen in {revealed:,} pairs, in {wrongly:,} of them though nothing was; where acceptance waits, in {corrected[3]:,}: "
            "there is nothing left to detect",
            HOLDS if revealed and not wrongly and not corrected[3] else NOT_REPRODUCED,
        ),
    ]


def _sending_claims(table: Table) -> list[Claim]:
    def rows(load: str, rule: str) -> list[list[Any]]:
        return sorted((row for row in table.rows if row[:2] == [load, rule]), key=lambda row: float(row[2]))

    def packets(load: str, rule: str) -> list[float]:
        return [row[3] for row in rows(load, rule)]

    def delays(rule: str) -> str:
        return f"{rows('one talks', rule)[-1][4]:g}R and {rows('all talk', rule)[-1][4]:g}R"

    sizes = [row[2] for row in rows("all talk", "printed")]
    small, large = sizes[0], sizes[-1]
    at_once, printed, ours = (packets("all talk", rule) for rule in ("each receipt", "printed", "ours"))
    grows = at_once[-1] / at_once[0] >= 0.5 * large / small
    stays = printed[-1] <= 1.25 * printed[0]
    fewer = all(
        a <= b
        for load in ("one talks", "all talk")
        for a, b in zip(packets(load, "ours"), packets(load, "printed"), strict=True)
    )
    shown = _listed(sizes)
    return [
        Claim(
            "sending",
            "a member sends when it has heard all, or some time after its last message, so that there are not O(n²) messages",
            "n messages a round where all talk, not n²",
            f"all talk, n = {shown}: {_listed(printed)} packets a message, at every receipt {_listed(at_once)}",
            HOLDS if grows and stays else NOT_REPRODUCED,
        ),
        Claim(
            "sending, ours",
            "where a confirmation waits from acceptance on, and data may carry it, there are no more packets",
            NOT_STATED,
            f"all talk: {_listed(ours)} packets a message; acknowledged {delays('ours')} after sending if one talks and if all do, "
            f"{delays('printed')} by the printed rule (n = {large}, a wait of R)",
            NOT_STATED if fewer else NOT_REPRODUCED,
        ),
    ]


def _establishment_claim(table: Table) -> Claim:
    two, one = table.rows
    _, runs, wrong, early, stale, _, _, openings, rounds, mistaken = two
    return Claim(
        "establishment",
        "once a group is established all know each other's first SEQ and BUF, and its CID",
        "assumed; the procedure is cited, not printed",
        f"{runs} runs under loss: {wrong} with wrong tables, {early} first messages to members that did not know their numbers ({one[3]} if members begin "
        f"when they have heard all), {stale} of an earlier group taken, {mistaken} pairs ordered wrongly from there on; {openings:g} openings and {rounds:g}R "
        "without loss",
        NOT_REPRODUCED if wrong or early or stale or mistaken else HOLDS,
    )


def _services_claim(table: Table) -> Claim:
    by = {name: row for name, *row in table.rows}
    runs, *_ = by["TO"]

    def broken(name: str) -> list[bool]:
        """Return whether order by sender, one order and causal order are broken, and whether answers came first everywhere."""
        return [each > 0 for each in by[name][1:]]

    apart = (
        broken("LO")[:3] == [False, True, True]
        and broken("CO") == [False, True, False, False]
        and broken("TO") == [False, False, True, True]
    )
    return Claim(
        "services",
        "order by sender, causal order and total order are three services; in total order all may receive the answer before the question",
        "section 1",
        f"TO: one order, and each sender's, in all of {runs} runs; the answer first everywhere in {by['TO'][4]}; where members also take their own messages at "
        f"their place, in {by['TO, own placed'][4]}. CO: never, and not one order",
        HOLDS if apart else NOT_REPRODUCED,
    )


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _range(rows: Sequence[Sequence[int]]) -> str:
    sizes = sorted({row[0] for row in rows})
    return f"{sizes[0]} to {sizes[-1]}"
