"""The flow control of ReMIOP at work: a receiver that is too slow for a while, and the rate of the sender."""

from collections.abc import Sequence

from inga.lab.experiments import Table
from inga.lab.remiop.receiver import Sample, SlowReceiver
from inga.report.chart import STYLE, line_chart

EXPERIMENT = SlowReceiver()
QUICK = SlowReceiver(slow_from=5, slow_until=15, end=22)

CAPTION = (
    f"three members, one sends as fast as it may between {EXPERIMENT.rmin / 1000:g} and {EXPERIMENT.rmax / 1000:g} Kbit/s, size "
    f"{EXPERIMENT.size}; while `slow` is 1, one receiver reads {EXPERIMENT.speed / 1000:g} Kbit/s through a buffer of "
    f"{EXPERIMENT.queue} packets; in virtual time. Kbit/s; lag in packets"
)
COLUMNS = ["seconds", "rate", "sent", "received", "lag", "slow"]


def slow_table(samples: Sequence[Sample]) -> Table:
    """Return the samples as a table, in Kbit/s."""
    return Table(
        COLUMNS,
        [
            [
                s.seconds,
                round(s.rate / 1000),
                round(s.sent / 1000),
                round(s.received / 1000),
                s.lag,
                int(s.is_slow),
            ]
            for s in samples
        ],
    )


def slow_figure(samples: Sequence[Sample]) -> str:
    """Return a chart of rate and lag over time."""
    lines = {
        "rate": [(s.seconds, s.rate / 1000) for s in samples],
        "lag": [(s.seconds, float(s.lag)) for s in samples],
        "speed": [(s.seconds, EXPERIMENT.speed / 1000) for s in samples if s.is_slow],
    }
    return line_chart("a slow receiver", lines, x="seconds", y="Kbit/s; packets")


def picture(samples: Sequence[Sample]) -> str:
    """Return the figure as the content of an SVG file."""
    style = STYLE.replace("var(--muted)", "#667085").replace("var(--line)", "#d0d5dd")
    head, rest = slow_figure(samples).split(">", 1)
    plain = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{plain}><style>{style}</style>{rest}\n"
