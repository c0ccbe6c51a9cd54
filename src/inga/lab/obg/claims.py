"""What the OBG paper claims, which has no numbers of its own, and what the simulations say about it."""

from collections.abc import Mapping
from typing import Any

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, ROUGHLY, Claim
from inga.lab.obg.load import MODELS, LoadMeans

ABOUT = 0.2
"""Time units: with few seeds, smaller differences are none."""

Found = Mapping[Any, LoadMeans]


def judge(found: Found) -> list[Claim]:
    """A verdict for each claim."""
    return [
        _fewer(found),
        *(_faster_than_total(found, model) for model in MODELS),
        _faster_than_causal(found),
        _free(found),
    ]


def _grid(found: Found, model: str) -> list[tuple[int, int, LoadMeans, LoadMeans, LoadMeans]]:
    """n, share, then what object, causal and total order measured there."""
    cells = []
    for at, measured in found.items():
        if at.model == model and at.order == "object":
            others = (found[at._replace(share=0, order=order)] for order in ("causal", "total"))
            cells.append((at.n, at.share, measured, *others))
    return sorted(cells, key=lambda cell: cell[:2])


def _fewer(found: Found) -> Claim:
    cells = [cell for model in MODELS for cell in _grid(found, model)]
    some = [cell for cell in cells if cell[1] > 0]
    fewer = [cell for cell in some if cell[2].ordered < cell[3].ordered]
    at = [cell for cell in cells if cell[1] == 60] or some
    ours = {model: [c[2].ordered for c in _grid(found, model) if c[1] == at[0][1]] for model in MODELS}
    ranges = ", ".join(f"{min(v):.0f} to {max(v):.0f} % ({model})" for model, v in ours.items())
    causal = [cell[3].ordered for cell in cells]
    return Claim(
        "fewer",
        "fewer messages have to be ordered than in causal order",
        "fewer, no number",
        f"with {at[0][1]} % compatible: {ranges} of the pairs, causal order {min(causal):.0f} to {max(causal):.0f} %; "
        f"fewer in {len(fewer)} of {len(some)} cases with anything compatible",
        HOLDS if len(fewer) == len(some) else ROUGHLY if fewer else NOT_REPRODUCED,
    )


def _faster_than_total(found: Found, model: str) -> Claim:
    """In proportion to what needs no order, that is: the claim is that fewer pairs mean less delay."""
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
