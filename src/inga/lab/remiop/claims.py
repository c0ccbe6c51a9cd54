"""The paper's claims about its Figure 7 and the omission degree, and whether they hold here."""

from collections.abc import Callable, Iterable, Sequence

from inga.lab.experiments import BY_CONSTRUCTION, HOLDS, NOT_REPRODUCED, ROUGHLY, Claim
from inga.lab.remiop.omission import OmissionSeen, judge_omission
from inga.lab.remiop.trips import FAST_RATES, SLOW_RATES, Trip, pacing_ms

ONE_PACKET = 1280
"""The largest message that fits into one packet, headers included."""
LARGE = 75_000
MIOP_MAX = 50_000
"""The largest message that plain MIOP and sockets completed in the paper."""

PAPER_COST_MS = 5.0
CLOSE = 0.05
"""The relative deviation up to which a published number still holds."""
FAR_ABOVE = 10.0
SLACK_MS = 60.0
"""The part of a round trip that pacing does not explain: processes that wake up late, and two packets' worth of answers."""


def judge(
    free: Sequence[Trip], narrow: Sequence[Trip], careful: Sequence[Trip], omission: Sequence[OmissionSeen]
) -> list[Claim]:
    """Judge all claims. `free` has round trips over a path without loss, `narrow` over the narrow path; `careful` too, at rates below
    what that path carries; `omission` has the runs with a badly connected member."""
    return [
        _closer(free),
        _slow_rates(free, careful),
        _follows(free),
        _one_packet(free),
        _faster_and_lossier(free, narrow),
        _no_better(narrow),
        _breaks(narrow),
        judge_omission(omission),
    ]


def _of(trips: Iterable[Trip], stack: str, rmax: int | None = None) -> dict[int, Trip]:
    """Return the trips of one curve, by size."""
    return {trip.trial.bytes: trip for trip in trips if (trip.trial.stack, trip.trial.rmax) == (stack, rmax)}


def _ms(trip: Trip | None) -> float:
    return float("inf") if trip is None or trip.ms is None else trip.ms


def _rates(trips: Iterable[Trip]) -> list[int]:
    return sorted({trip.trial.rmax for trip in trips if trip.trial.rmax is not None})


def _closer(free: Sequence[Trip]) -> Claim:
    """Judge claim 1: the higher the rate, the closer the curve is to MIOP's."""
    sizes = [size for size in _of(free, "miop") if size > ONE_PACKET]
    rates = _rates(free)
    times = {size: [_ms(_of(free, "remiop", rate).get(size)) for rate in rates] for size in sizes}
    falling = all(
        each == sorted(each, reverse=True) and len(set(each)) == len(each) for each in times.values()
    )
    largest = max(sizes)
    miop = _ms(_of(free, "miop")[largest])
    shown = ", ".join(f"{each / miop:,.0f}" for each in times[largest])
    return Claim(
        "1",
        "the higher Rmax, the closer ReMIOP is to MIOP",
        "Figure 7",
        f"{largest // 1000} K: {shown} times MIOP at {_listed(rates)} Kbit/s",
        HOLDS if falling else NOT_REPRODUCED,
    )


def _slow_rates(free: Sequence[Trip], careful: Sequence[Trip]) -> Claim:
    """Judge claim 2: a slow sender loses nothing, but takes long. Losses are counted where a burst would have some: on the narrow path,
    which was chosen to carry more than these rates."""
    lost = sum(trip.lost for trip in careful)
    nacks = sum(trip.nacks for trip in careful)
    miop = _of(free, "miop")
    paced = [trip for trip in free if trip.trial.rmax in SLOW_RATES and trip.trial.packets > 1]
    least = min(_ms(trip) / _ms(miop[trip.trial.bytes]) for trip in paced)
    fine = not lost and not nacks
    return Claim(
        "2",
        "Rmax 10, 50, 100: no loss, no NACK; the round trip is far above MIOP",
        "Figure 7",
        f"{lost:g} lost, {nacks:g} NACKs in virtual time on a narrow path that was chosen to carry more; at least {least:,.0f} times MIOP for messages of several packets",
        (BY_CONSTRUCTION if least >= FAR_ABOVE else ROUGHLY) if fine else NOT_REPRODUCED,
    )


def _follows(free: Sequence[Trip]) -> Claim:
    """Judge claim 3: round trips lie between the packet times at Rmax and at Rmin."""
    trips = [trip for trip in free if trip.trial.rmax is not None and trip.trial.packets > 1]
    within = []
    for trip in trips:
        rmax = trip.trial.rmax
        assert rmax is not None
        within.append(
            pacing_ms(trip.trial, rmax) - 1 <= _ms(trip) <= pacing_ms(trip.trial, rmax / 2) + SLACK_MS
        )
    ratios = [_ms(trip) / pacing_ms(trip.trial, trip.trial.rmax or 1) for trip in trips]
    share = sum(within) / len(within)
    return Claim(
        "3",
        "the overhead follows from Rmax and the number of packets",
        "Figure 7",
        f"{sum(within)} of {len(within)} round trips are between (packets - 1) packet times at Rmax and at Rmin; "
        f"{min(ratios):.2f} to {max(ratios):.2f} times those at Rmax",
        HOLDS if share == 1 else ROUGHLY if share >= 0.8 else NOT_REPRODUCED,
    )


def _one_packet(free: Sequence[Trip]) -> Claim:
    """Judge claim 4. One packet is not paced, so it costs only ReMIOP's own processing, on a faster machine less than on the
    paper's. Other work of the machine can only lengthen a round trip, so the shortest are compared."""
    fast, miop = _of(free, "remiop", FAST_RATES[-1]), _of(free, "miop")
    size = min(miop)
    assert size <= ONE_PACKET
    with_it, without = (each.best_ms or _ms(each) for each in (fast[size], miop[size]))
    cost = with_it - without
    return Claim(
        "4",
        "one packet, large Rmax: ReMIOP costs a few ms over MIOP",
        f"about {PAPER_COST_MS:g} ms (2004)",
        f"{cost:+.2f} ms, of the shortest round trips of four members ({with_it:.2f} against {without:.2f} ms)",
        HOLDS
        if abs(cost - PAPER_COST_MS) <= CLOSE * PAPER_COST_MS
        else ROUGHLY
        if 0 < cost <= PAPER_COST_MS
        else NOT_REPRODUCED,
    )


def _faster_and_lossier(free: Sequence[Trip], narrow: Sequence[Trip]) -> Claim:
    """Judge claim 5: a higher rate is faster on the path without loss, and loses more on the narrow path."""
    rates = _rates(free)
    sizes = [size for size in _of(free, "miop") if size > ONE_PACKET]
    times = [[_ms(_of(free, "remiop", rate).get(size)) for rate in rates] for size in sizes]
    faster = all(each == sorted(each, reverse=True) for each in times)
    tried = _rates(narrow)
    sums = {
        what: [sum(getattr(trip, what) for trip in _of(narrow, "remiop", rate).values()) for rate in tried]
        for what in ("lost", "nacks", "repairs")
    }
    rising = [each == sorted(each) and each[-1] > each[0] for each in sums.values()]
    shown = "; ".join(f"{what} {_listed(sums[what])}" for what in sums)
    return Claim(
        "5",
        "larger Rmax: shorter round trip, more losses, NACKs and repairs",
        "Figure 7",
        f"{'shorter' if faster else 'not always shorter'} at every step where nothing is lost; on the narrow path at "
        f"{_listed(tried)} Kbit/s, all sizes: {shown}",
        HOLDS if faster and all(rising) else ROUGHLY if faster and rising[0] else NOT_REPRODUCED,
    )


def _no_better(narrow: Sequence[Trip]) -> Claim:
    """Judge claim 6: repairs cancel the gain of the higher rate. Our narrow path carries less than both rates, which shows that
    they do, but not from which rate on."""
    slower, faster = (_of(narrow, "remiop", rate) for rate in FAST_RATES)
    sizes = [size for size in faster if size >= LARGE and size in slower]
    ratios = [_ms(faster[size]) / _ms(slower[size]) for size in sizes]
    repairs = [sum(each[size].repairs for size in sizes) for each in (slower, faster)]
    return Claim(
        "6",
        "messages of 75 K and more: 1000 Kbit/s is no better than 500, because of repairs",
        "Figure 7",
        f"{_listed([f'{each:.2f}' for each in ratios])} times the round trip of 500 at "
        f"{_listed([size // 1000 for size in sizes])} K; repairs {repairs[0]:g} and {repairs[1]:g}; the path was chosen to carry less than 500",
        _all_or_some(ratios, lambda ratio: ratio >= 0.95, more=repairs[1] > 0),
    )


def _breaks(narrow: Sequence[Trip]) -> Claim:
    """Judge claim 7: a burst larger than the queue loses its end, which is not repaired. Our queue is as large as the largest messages
    that arrived in the paper, which shows that there is such a size, but not which."""
    wrong, seen = [], []
    for stack in ("miop", "sockets"):
        curve = _of(narrow, stack)
        whole = [size for size, trip in curve.items() if trip.ms is not None]
        wrong += [size for size in curve if (size <= MIOP_MAX) != (size in whole)]
        seen.append(f"{stack} up to {max(whole, default=0) // 1000} K of {max(curve) // 1000}")
    return Claim(
        "7",
        "MIOP and sockets do not complete above about 50 K: losses break the test",
        "50 K",
        ", ".join(seen) + "; the queue was chosen so that 50 K pass",
        BY_CONSTRUCTION if not wrong else ROUGHLY if len(wrong) <= 2 else NOT_REPRODUCED,
    )


def _all_or_some(values: Sequence[float], fine: Callable[[float], bool], *, more: bool) -> str:
    good = sum(map(fine, values))
    if not more or not good:
        return NOT_REPRODUCED
    return BY_CONSTRUCTION if good == len(values) else ROUGHLY


def _listed(values: Sequence[object]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
