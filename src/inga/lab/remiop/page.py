"""The evaluation of ReMIOP for people: as text, and as one page with figures."""

from collections.abc import Mapping, Sequence

from inga.lab import evaluation
from inga.lab.experiments import Claim, Table
from inga.lab.papers.sources import source_of
from inga.lab.remiop import omission
from inga.lab.remiop.receiver import Sample
from inga.lab.remiop.slow import CAPTION, slow_figure
from inga.lab.remiop.trips import Trip
from inga.report.chart import line_chart, log_chart

TITLE = "Reliable multicast for CORBA, measured"
TICK = 25_000
"""Bytes between two marks of an axis."""

_SETUP = (
    "four members; one multicasts a message, which is one GIOP request, all answer by multicast with one packet, itself included; from the send to the "
    "last answer. Rmin = Rmax / 2, size 512, Tnack and Trepair 50 ms, STATE every 500 ms. Rates in Kbit/s; losses are of "
    "single copies, and like NACKs and repairs of one round trip"
)


def _captions(path: str) -> dict[str, str]:
    return {
        "round_trip": f"{_SETUP}. Below 500 Kbit/s in virtual time, else between processes over loopback multicast",
        "constrained": f"the same over a narrow path: {path}. No time: the message did not arrive",
        "slow": CAPTION,
        "omission": omission.CAPTION,
    }


def describe(tables: Mapping[str, Table], claims: Sequence[Claim], path: str) -> str:
    """Return the evaluation as text for a terminal."""
    captions = _captions(path)
    parts = [f"{name}: {captions[name]}\n{_plain(table)}\n" for name, table in tables.items()]
    return "\n".join([*parts, *evaluation.verdicts(claims)])


def render(
    tables: Mapping[str, Table],
    claims: Sequence[Claim],
    free: Sequence[Trip],
    narrow: Sequence[Trip],
    path: str,
    slow: Sequence[Sample] = (),
) -> str:
    """Return the page, which needs no other files."""
    lead = (
        "MIOP multicasts requests and lets go of them. ReMIOP keeps to a rate, and repairs what is lost. What the paper "
        f"measured of both, and what this program measures of its own. The narrow path is {path}."
    )
    shown = {
        name: Table(table.columns, [_filled(row) for row in table.rows]) for name, table in tables.items()
    }
    figures = _figures(free, narrow)
    if slow:
        figures.append(
            (slow_figure(slow), "A receiver that cannot follow for a while, and the rate of the sender")
        )
    return evaluation.page(TITLE, lead, claims, figures, shown, _captions(path), source=source_of("remiop"))


def _figures(free: Sequence[Trip], narrow: Sequence[Trip]) -> list[tuple[str, str]]:
    lost = {
        name: [(trip.trial.bytes / TICK, trip.lost) for trip in trips]
        for name, trips in _curves(narrow).items()
    }
    return [
        (
            log_chart("round trip", _times(free), x="bytes of the message", y="seconds"),
            "Round trip over a path that loses nothing (the paper's Figure 7)",
        ),
        (
            log_chart("round trip, narrow path", _times(narrow), x="bytes of the message", y="seconds"),
            "Round trip over the narrow path; a curve ends where messages do not arrive any more",
        ),
        (
            line_chart("lost copies", lost, x=f"size of the message, in {TICK // 1000} K", y="copies"),
            "Lost copies of packets in a round trip, narrow path",
        ),
    ]


def _curves(trips: Sequence[Trip]) -> dict[str, list[Trip]]:
    curves: dict[str, list[Trip]] = {}
    for trip in trips:
        curves.setdefault(trip.trial.name, []).append(trip)
    return curves


def _times(trips: Sequence[Trip]) -> dict[str, list[tuple[float, float]]]:
    lines = {
        name: [(float(trip.trial.bytes), trip.ms / 1000) for trip in curve if trip.ms is not None]
        for name, curve in _curves(trips).items()
    }
    return {name: line for name, line in lines.items() if line}


def _filled(row: Sequence[object]) -> list[object]:
    return ["-" if value is None else value for value in row]


def _plain(table: Table) -> str:
    lines = ["".join(f"{name:>12}" for name in table.columns)]
    lines += ["".join(f"{evaluation.cell_text(value):>12}" for value in _filled(row)) for row in table.rows]
    return "\n".join(lines)
