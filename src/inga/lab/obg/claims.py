"""The claims of the OBG paper, which has no numbers, and the verdicts of the simulations on them."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, NOT_STATED, ROUGHLY, Claim, Table
from inga.lab.obg.load import MODELS, LoadMeans
from inga.lab.obg.paced import PACES

ABOUT = 0.2
"""Time units: with few seeds, smaller differences do not count."""

CLEARLY = 0.2
"""The share by which a wait has to be shorter to be clearly shorter."""

LESS = 0.99
"""A cost counts as less if it is below this many times the other."""

COSTS = {
    "communication": (("packets", "bytes"), "which takes less communication"),
    "computation": (("numbers",), "and less computation"),
}
"""For each claim about cost, the measurements per request and its statement. Numbers are entries of vectors, matrices and
heartbeats that receivers have to process."""

Found = Mapping[Any, LoadMeans]


def judge(found: Found) -> list[Claim]:
    """Return a verdict for each claim about the load."""
    return [
        _fewer(found),
        *(_cheaper(found, what, order) for what in COSTS for order in ("causal", "total")),
        *(_faster_than_total(found, model) for model in MODELS),
        _faster_than_causal(found),
        _free(found),
    ]


def _grid(found: Found, model: str) -> list[tuple[int, int, LoadMeans, LoadMeans, LoadMeans]]:
    """Return (n, share, measurements of object, causal and total order) for all sizes and shares."""
    cells = []
    for at, measured in found.items():
        if at.model == model and at.order == "object":
            others = (found[at._replace(share=0, order=order)] for order in ("causal", "total"))
            cells.append((at.n, at.share, measured, *others))
    return sorted(cells, key=lambda cell: cell[:2])


def _fewer(found: Found) -> Claim:
    cells = [cell for model in MODELS for cell in _grid(found, model)]
    fewer = [cell for cell in cells if cell[2].ordered < cell[3].ordered]
    more = sorted({cell[1] for cell in cells if cell not in fewer})
    shares_tried = {cell[1] for cell in cells}
    share = 60 if 60 in shares_tried else sorted(shares_tried)[1]
    told = []
    for model in MODELS:
        at = [cell for cell in _grid(found, model) if cell[1] == share]
        shares = (
            f"{fmean(getattr(cell[2], what) for cell in at):.0f}" for what in ("ordered", "needed", "waiting")
        )
        told.append("{} % ordered, {} % in conflict, {} % waiting for each other ({})".format(*shares, model))
    causal = [cell[3].ordered for cell in cells]
    where = f", not with {', '.join(map(str, more))} %" if more else ""
    return Claim(
        "fewer",
        "fewer messages have to be ordered than in causal order",
        "fewer, no number",
        f"pairs that start in one order, whichever comes first: fewer in {len(fewer)} of {len(cells)} cases{where} compatible. "
        f"With {share} %: {'; '.join(told)}; causal order {min(causal):.0f} to {max(causal):.0f} %",
        HOLDS if len(fewer) == len(cells) else ROUGHLY if fewer else NOT_REPRODUCED,
    )


def _cheaper(found: Found, what: str, order: str) -> Claim:
    """Judge whether object order costs less wherever any methods are compatible. If none are, object order is total order."""
    columns, statement = COSTS[what]
    cells = [cell for model in MODELS for cell in _grid(found, model)]
    cells = [cell for cell in cells if cell[1] > 0]
    at = {"causal": 3, "total": 4}[order]

    def ratio(cell: Any, column: str) -> float:
        return float(getattr(cell[2], column) / getattr(cell[at], column))

    less = [cell for cell in cells if all(ratio(cell, column) < LESS for column in columns)]
    largest = max(cell[0] for cell in cells)
    told = [
        f"{column} {min(ratios):.2f} to {max(ratios):.2f} times as many in {n} objects"
        for column in columns
        for n in sorted({min(cell[0] for cell in cells), largest})
        if (ratios := [ratio(cell, column) for cell in cells if cell[0] == n])
    ]
    if what == "computation" and order == "total":
        spent = [(cell[2].cpu, cell[4].cpu) for cell in cells if cell[0] == largest and cell[4].cpu]
        if spent:
            told.append(
                f"CPU {fmean(a for a, _ in spent):.0f} and {fmean(b for _, b in spent):.0f} us a request, not judged"
            )
    return Claim(
        f"{what}, {order}",
        f"{statement} than in {order} order",
        "less, no number",
        f"less in {len(less)} of {len(cells)} cases with anything compatible: {', '.join(told)}",
        HOLDS if len(less) == len(cells) else ROUGHLY if less else NOT_REPRODUCED,
    )


def _faster_than_total(found: Found, model: str) -> Claim:
    """Judge whether the wait falls in proportion to the compatible share: the claim is that fewer ordered pairs mean less delay."""
    cells = [cell for cell in _grid(found, model) if 0 < cell[1] < 100]
    shares = sorted({cell[1] for cell in cells})
    left = {
        share: [100 * cell[2].wait / cell[4].wait for cell in cells if cell[1] == share] for share in shares
    }
    falls = [share for share in shares if sum(left[share]) / len(left[share]) <= 100 - share / 2]
    words = {
        "methods": "if whole methods conflict with nothing",
        "pairs": "if pairs of methods are compatible",
    }
    told = ", ".join(f"{sum(v) / len(v):.0f} % at {share} %" for share, v in left.items())
    return Claim(
        f"faster, {model}",
        f"so the delay is less than in total order, {words[model]}",
        "less, no number",
        f"wait left of that of total order, by the share that is compatible: {told}",
        HOLDS if falls == shares else ROUGHLY if falls else NOT_REPRODUCED,
    )


def _faster_than_causal(found: Found) -> Claim:
    cells = [cell for model in MODELS for cell in _grid(found, model)]
    less = [cell for cell in cells if cell[2].wait <= cell[3].wait]
    clearly = [cell for cell in cells if cell[2].wait < cell[3].wait - ABOUT]
    where = sorted({cell[1] for cell in less})
    return Claim(
        "faster than causal",
        "and less than in causal order",
        "less, no number",
        f"in {len(less)} of {len(cells)} cases, clearly in {len(clearly)}: at shares of {', '.join(map(str, where))} %. "
        "Causal order does not order concurrent conflicting requests, which is why it is fast and no substitute",
        HOLDS if len(less) == len(cells) else ROUGHLY if 2 * len(less) > len(cells) else NOT_REPRODUCED,
    )


def _free(found: Found) -> Claim:
    waits = [cell[2].wait for model in MODELS for cell in _grid(found, model) if cell[1] == 100]
    return Claim(
        "free",
        "what conflicts with nothing is not delayed at all",
        "delivered on receipt",
        f"wait of {max(waits):.2f} at most where all methods are compatible",
        HOLDS if max(waits) == 0 else NOT_REPRODUCED,
    )


def judge_paces(table: Table) -> Claim:
    """Judge the effect of a δ for each pair, in the largest group."""
    n = max(row[0] for row in table.rows)
    rows = {(row[1], row[2]): row[3:] for row in table.rows if row[0] == n}
    pair, longest, mean = (rows["0%", pace] for pace in PACES)
    is_right = pair[2] == 0 and pair[0] <= longest[0]
    return Claim(
        "delta",
        "delta in proportion to the delay of each pair: nothing is repeated that was not lost, and requests wait no longer than with "
        "one delta that is long enough for all pairs",
        "proportional; not what that gives",
        f"{n} objects: wait {pair[0]:g} with {pair[1]:g} control packets a request; one delta for the longest pair {longest[0]:g} with "
        f"{longest[1]:g}; one for the mean pair {mean[0]:g} with {mean[1]:g}, and {mean[2]:g} copies repeated for nothing",
        NOT_STATED if is_right else NOT_REPRODUCED,
    )


def judge_invoking(table: Table) -> Claim:
    """Judge the effect of telling objects which members call them."""
    told = {(row[0], row[1]): row for row in table.rows}
    sizes = sorted({row[0] for row in table.rows})
    left = [told[n, "named"][2] / told[n, "not named"][2] for n in sizes]
    return Claim(
        "invoking",
        "objects that are told which members call them wait for these alone",
        NOT_STATED,
        f"two members call: {', '.join(f'{share:.0%} of the wait in {n} objects' for share, n in zip(left, sizes, strict=True))}",
        NOT_STATED if max(left) < 1 - CLEARLY else NOT_REPRODUCED,
    )
