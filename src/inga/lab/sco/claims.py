"""The paper's claims about its schemes, and whether the simulations agree."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, NOT_STATED, ROUGHLY, Claim
from inga.lab.sco.schemes import ROUND, SchemeCosts, SchemeLoad

DELAYS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
"""The values of k in Figures 5 and 6."""

DESTINATIONS = tuple(range(1, 10))
"""The values of d in Figures 7 and 8."""

RATES = (1, 2, 4)
"""Values of a, messages of a member per time unit. The paper allows any from 1 on; its figures have 1."""

MEMBERS, USUAL_D, USUAL_K = 10, 5, 4.0

ABOUT = 0.15
"""A published number counts as roughly right within this relative deviation."""

READINGS = ("from receipt", "from sending")
"""Two meanings that a delay may have in the paper; each claim names the one by which it was judged."""

NOISE = 0.01
"""Relative differences below this do not count: schemes are equal where every message carries everything."""


class SchemePoint(NamedTuple):
    """The parameters of a measurement."""

    scheme: str
    n: int
    d: int
    k: float
    a: int = 1


Results = Mapping[SchemePoint, SchemeCosts]


def point(load: SchemeLoad) -> SchemePoint:
    return SchemePoint(load.scheme, load.members, load.destinations, load.delay, load.rate)


def judge(results: Results) -> list[Claim]:
    """Return a verdict for each claim of section 4."""
    found = _Found(results)
    return [claim(found) for claim in _CLAIMS]


class _Found:
    def __init__(self, results: Results) -> None:
        self._results = results

    def by_k(self, scheme: str) -> list[SchemeCosts]:
        return [self._results[SchemePoint(scheme, MEMBERS, USUAL_D, k)] for k in DELAYS]

    def by_d(self, scheme: str) -> list[SchemeCosts]:
        return [self._results[SchemePoint(scheme, MEMBERS, d, USUAL_K)] for d in DESTINATIONS]

    def by_rate(self, scheme: str) -> list[SchemeCosts]:
        return [self._results[SchemePoint(scheme, MEMBERS, USUAL_D, USUAL_K, a)] for a in RATES]

    def usual(self, scheme: str) -> SchemeCosts:
        return self._results[SchemePoint(scheme, MEMBERS, USUAL_D, USUAL_K)]

    def delays(self, scheme: str) -> tuple[float, float]:
        """Return the delay from receipt, and the one from sending."""
        delay = self.usual(scheme).delay
        return delay - ROUND, delay


def _rounds(found: _Found) -> Claim:
    exact = all(abs(m.pdus - 3 * d) < 1e-9 for d, m in zip(DESTINATIONS, found.by_d("C0"), strict=True))
    delay, direct = found.usual("C0").delay, found.usual("D0").delay
    exact = exact and delay == 3 * ROUND and direct == 2 * ROUND
    return Claim(
        "rounds",
        "the sender-led scheme takes N(d) = 3d PDUs and three rounds, the direct one two rounds",
        "3d PDUs; 3 and 2 rounds",
        f"3d PDUs for d = 1..9: {'yes' if exact else 'no'}; {delay / ROUND:g} and {direct / ROUND:g} rounds",
        HOLDS if exact else NOT_REPRODUCED,
    )


def _squares(found: _Found) -> Claim:
    confirmations = [m.pdus - d for d, m in zip(DESTINATIONS, found.by_d("D0"), strict=True)]
    exact = all(abs(c - d * d) < 1e-9 for d, c in zip(DESTINATIONS, confirmations, strict=True))
    return Claim(
        "squares",
        "the direct scheme takes D(d) = d² PDUs",
        "d² PDUs",
        f"d² confirmations and d data copies: {found.usual('D0').pdus:g} PDUs at d = 5"
        if exact
        else f"{confirmations[USUAL_D - 1]:.3g} confirmations at d = 5",
        ROUGHLY if exact else NOT_REPRODUCED,
    )


def _longer_waits(found: _Found) -> Claim:
    holds = True
    for scheme in ("C1", "D1"):
        rows = found.by_k(scheme)
        holds &= all(a.pdus > b.pdus and a.delay < b.delay for a, b in pairwise(rows))
    first, last = found.by_k("D1")[0], found.by_k("D1")[-1]
    return Claim(
        "deferral",
        "the longer confirmations may wait, the fewer control PDUs and the longer the delay",
        "both monotone in k",
        f"D1 from k = 1 to 8: {first.pdus:.2f} to {last.pdus:.2f} PDUs, {first.delay:.2f} to {last.delay:.2f} units",
        HOLDS if holds else NOT_REPRODUCED,
    )


def _ranks(found: _Found) -> Claim:
    """Judge the ranks: PDUs rise from C1 over D1 and C0 to D0; delays rise from D0 over D1 and C0 to C1."""

    def ranked(d: int) -> bool:
        c0, c1, d0, d1 = (found.by_d(s)[d - 1] for s in ("C0", "C1", "D0", "D1"))
        cheap = c1.pdus <= d1.pdus * (1 + NOISE) and d1.pdus < c0.pdus <= d0.pdus
        fast = d0.delay <= d1.delay <= c0.delay < c1.delay
        return cheap and fast

    good = [d for d in DESTINATIONS if ranked(d)]
    bad = [d for d in DESTINATIONS if d not in good]
    return Claim(
        "ranks",
        "C1 has the fewest PDUs and the longest delay, D0 the opposite, D1 is second in both",
        "for every d",
        f"for d = {_listed(good)}" + (f"; not for d = {_listed(bad)}" if bad else ""),
        HOLDS if not bad else ROUGHLY if len(good) >= 7 else NOT_REPRODUCED,
    )


def _fewer(found: _Found) -> Claim:
    by_d = zip(found.by_d("D1"), found.by_d("C0"), found.by_d("D0"), strict=True)
    holds = all(d1.pdus < min(c0.pdus, d0.pdus) for d1, c0, d0 in by_d)
    holds &= all(m.pdus < found.usual("C0").pdus for m in found.by_k("D1"))
    return Claim(
        "fewer",
        "D1 sends fewer PDUs than C0 and D0",
        "always",
        f"at d = 5, k = 4: {found.usual('D1').pdus:.2f} against {found.usual('C0').pdus:g} and "
        f"{found.usual('D0').pdus:g}; for every k and d measured: {'yes' if holds else 'no'}",
        HOLDS if holds else NOT_REPRODUCED,
    )


def _near(found: _Found) -> Claim:
    shares = [
        (d1.pdus - c1.pdus) / d1.pdus
        for c1, d1 in zip(found.by_d("C1")[2:8], found.by_d("D1")[2:8], strict=True)
    ]
    return Claim(
        "near",
        "for d = 3..8 the PDUs of C1 are below those of D1 by less than 20 %",
        "< 20 %",
        f"at most {100 * max(shares):.1f} % (k = 4)",
        HOLDS if max(shares) < 0.2 else NOT_REPRODUCED,
    )


def _twice(found: _Found) -> Claim:
    ratios = [c1 / d1 for c1, d1 in zip(found.delays("C1"), found.delays("D1"), strict=True)]
    return Claim(
        "twice",
        "the delay of C1 is about twice that of D1",
        "2",
        f"{ratios[0]:.2f} from receipt, {ratios[1]:.2f} from sending; {_judged_by(2.0, ratios)}",
        _closeness(2.0, ratios),
    )


def _below(other: str, published: float) -> Callable[[_Found], Claim]:
    def claim(found: _Found) -> Claim:
        shares = [1 - d1 / x for d1, x in zip(found.delays("D1"), found.delays(other), strict=True)]
        return Claim(
            f"below-{other}",
            f"the delay of D1 is {100 * published:g} % below that of {other}",
            f"{100 * published:g} %",
            f"{100 * shares[0]:.0f} % from receipt, {100 * shares[1]:.0f} % from sending; "
            f"{_judged_by(published, shares)}",
            _closeness(published, shares),
        )

    return claim


def _above(found: _Found) -> Claim:
    shares = [d1 / d0 - 1 for d1, d0 in zip(found.delays("D1"), found.delays("D0"), strict=True)]
    return Claim(
        "above-D0",
        "the delay of D1 is within 20 % of that of D0",
        "<= 20 %",
        f"{100 * shares[0]:.0f} % above from receipt, {100 * shares[1]:.0f} % from sending; "
        f"judged {READINGS[shares.index(min(shares))]}",
        HOLDS if min(shares) <= 0.2 else ROUGHLY if min(shares) <= 0.2 * (1 + ABOUT) else NOT_REPRODUCED,
    )


def _controller(found: _Found) -> Claim:
    """Judge a fixed controller. In Figure 3 (1) the sender is the controller; with another process each message takes one more hop."""
    fixed, led = found.by_d("F0"), found.by_d("C0")
    rounds = {m.delay / ROUND for m in fixed}
    more = {round(m.pdus - 3 * d, 9) for d, m in zip(DESTINATIONS, fixed, strict=True)}
    published, ours = (more, rounds) == ({0}, {3}), (more, rounds) == ({1}, {4})
    at = DESTINATIONS.index(USUAL_D)
    return Claim(
        "controller",
        "one fixed controller for all messages takes 3d PDUs and three rounds",
        "3d PDUs; 3 rounds",
        f"{_more(more)} PDUs and {_listed(sorted(rounds))} rounds, as a message has to get to the controller first; "
        f"that sends and receives {fixed[at].busiest:.0f} PDUs a unit, the busiest member of C0 {led[at].busiest:.0f}",
        HOLDS if published else ROUGHLY if ours else NOT_REPRODUCED,
    )


def _more(more: set[float]) -> str:
    return f"3d + {min(more):g}" if len(more) == 1 else "not 3d and a constant"


def _than_controller(found: _Found) -> Claim:
    def better(scheme: str, what: str) -> bool:
        points = [*zip(found.by_d("D1"), found.by_d(scheme), strict=True)]
        points += zip(found.by_k("D1"), found.by_k(scheme), strict=True)
        return all(getattr(d1, what) < getattr(x, what) for d1, x in points)

    at_once = better("F0", "pdus") and better("F0", "delay")
    d1, waits = found.usual("D1"), found.usual("F1")
    everywhere = at_once and better("F1", "pdus") and better("F1", "delay")
    return Claim(
        "than-controller",
        "D1 sends fewer PDUs and takes less delay than with a fixed controller",
        "section 5, of non-distributed control",
        f"{'fewer and less' if at_once else 'not everywhere fewer and less'} than F0 for every k and d measured; of F1, which waits as D1 "
        f"does, {100 * (1 - d1.delay / waits.delay):.0f} % less delay at d = 5, k = 4, and {d1.pdus:.2f} PDUs against {waits.pdus:.2f}",
        HOLDS if everywhere else ROUGHLY if at_once and better("F1", "delay") else NOT_REPRODUCED,
    )


def _rates(found: _Found) -> Claim:
    """Judge higher rates. At rate 1 two claims of section 4 fail; waits shorten with the rate, rounds do not."""
    direct, d1, c0, c1 = (found.by_rate(scheme) for scheme in ("D0", "D1", "C0", "C1"))
    above = [a.delay / b.delay - 1 for a, b in zip(d1, direct, strict=True)]
    below = [1 - (a.delay - ROUND) / (b.delay - ROUND) for a, b in zip(d1, c0, strict=True)]
    twice = [(a.delay - ROUND) / (b.delay - ROUND) for a, b in zip(c1, d1, strict=True)]
    control = [m.pdus - USUAL_D for m in d1]
    derived = all(
        each == sorted(each, reverse=falls)
        for each, falls in ((above, True), (below, False), (twice, False), (control, True))
    )
    near = all(each <= 0.2 for each in above[1:])
    rates = ", ".join(map(str, RATES))
    return Claim(
        "rates",
        "the more messages a unit, the closer the delay of D1 comes to that of D0, and, from receipt, to half of those of C0 and C1",
        NOT_STATED,
        f"at a = {rates}: {_percent(above)} % above D0 from sending, {_percent(below)} % below C0 from receipt, C1 "
        f"{', '.join(f'{each:.2f}' for each in twice)} times D1; at most 20 % above D0 from a = 2 on: {'yes' if near else 'no'}",
        NOT_STATED if derived and near else NOT_REPRODUCED,
    )


def _percent(shares: list[float]) -> str:
    return ", ".join(f"{100 * each:.0f}" for each in shares)


def _judged_by(published: float, readings: list[float]) -> str:
    """Return in words which reading is closer: the paper does not say from which event its delays count."""
    closest = min(readings, key=lambda reading: abs(reading - published))
    return f"judged {READINGS[readings.index(closest)]}"


def _closeness(published: float, readings: list[float]) -> str:
    """Return the verdict by the better of the readings."""
    off = min(abs(reading - published) / published for reading in readings)
    return HOLDS if off <= 0.05 else ROUGHLY if off <= ABOUT else NOT_REPRODUCED


def _listed(numbers: Sequence[float]) -> str:
    if len(numbers) > 1 and list(numbers) == list(range(int(numbers[0]), int(numbers[-1]) + 1)):
        return f"{numbers[0]}..{numbers[-1]}"
    return ", ".join(f"{each:g}" for each in numbers) or "none"


_CLAIMS: tuple[Callable[[_Found], Claim], ...] = (
    _rounds,
    _squares,
    _longer_waits,
    _ranks,
    _fewer,
    _near,
    _twice,
    _below("C1", 0.5),
    _below("C0", 0.5),
    _above,
    _controller,
    _than_controller,
    _rates,
)
