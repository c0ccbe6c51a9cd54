"""The figures of `group.stats()` as metrics with stable names: one table for Prometheus and OpenTelemetry.

The text for Prometheus is written here, without its client library: the format is a page long, the library's server runs in a
thread of its own while a group belongs to its event loop, and the live half of inga has no dependencies. Programs with a
registry or a meter of their own add a group to it by `net.telemetry`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from inga.model.stats import STATES, MemberStats, Stats, WindowStats

COUNTER, GAUGE = "counter", "gauge"

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]


class Metric(NamedTuple):
    """One metric: its name and kind, and a function that reads its values from a snapshot."""

    name: str
    kind: str
    help: str
    labels: Labels  # besides `group` and `member`, which all have
    samples: Callable[[Stats], Samples]


class MetricValue(NamedTuple):
    """One value of a metric, with all its labels."""

    metric: Metric
    labels: dict[str, str]
    value: float


def _one(name: str, kind: str, help: str, value: Callable[[Stats], Any]) -> Metric:
    return Metric(name, kind, help, (), lambda stats: [] if value(stats) is None else [((), value(stats))])


def _each_peer(name: str, kind: str, help: str, value: Callable[[MemberStats], float]) -> Metric:
    def samples(stats: Stats) -> Samples:
        return [((peer.name,), value(peer)) for peer in stats.members if peer.name != stats.me]

    return Metric(name, kind, help, ("peer",), samples)


def _each_window(name: str, help: str, value: Callable[[WindowStats], int | None]) -> Metric:
    def samples(stats: Stats) -> Samples:
        found = [((window.layer,), value(window)) for window in stats.windows]
        return [(labels, each) for labels, each in found if each is not None]

    return Metric(name, GAUGE, help, ("layer",), samples)


METRICS: tuple[Metric, ...] = (
    Metric(
        "inga_state",
        GAUGE,
        "1 for the state the member is in, 0 for the others",
        ("state",),
        lambda stats: [((state,), state == stats.state) for state in STATES],
    ),
    _one("inga_view_number", GAUGE, "Number of the view in force", lambda s: s.view),
    _one("inga_view_age_seconds", GAUGE, "Time since the view was installed here", lambda s: s.view_age),
    _one("inga_view_members", GAUGE, "Members of the view", lambda s: len(s.members)),
    _one("inga_members_here", GAUGE, "Members that were met and have not left", lambda s: len(s.here)),
    _one("inga_messages_sent_total", COUNTER, "Messages sent by the application", lambda s: s.sent),
    _one(
        "inga_messages_delivered_total", COUNTER, "Messages given to the application", lambda s: s.delivered
    ),
    _one("inga_calls_begun", GAUGE, "Calls of objects begun here in this view", lambda s: s.calls),
    _one("inga_unread_packets", GAUGE, "Packets delivered and not yet taken", lambda s: s.unread_packets),
    _one("inga_unread_bytes", GAUGE, "Bytes delivered and not yet taken", lambda s: s.unread_bytes),
    _one(
        "inga_held_bytes",
        GAUGE,
        "Bytes that wait for a packet that has to be delivered first",
        lambda s: s.held_bytes,
    ),
    _one("inga_held_seconds", GAUGE, "Time without a delivery while bytes are held", lambda s: s.held_for),
    _one("inga_blocked_seconds", GAUGE, "Time since a window closed", lambda s: s.blocked_for),
    _each_window("inga_window_used", "In flight, in the unit of the window", lambda w: w.used),
    _each_window("inga_window_limit", "How much may be in flight, in the same unit", lambda w: w.limit),
    _each_window("inga_window_waiting_packets", "Packets that a window keeps back", lambda w: w.waiting),
    _one(
        "inga_repairs_asked_total",
        COUNTER,
        "Requests for missing packets",
        lambda s: s.repairs_asked,
    ),
    _one("inga_repairs_given_total", COUNTER, "Packets that were sent again", lambda s: s.repairs_given),
    Metric(
        "inga_packets_sent_total",
        COUNTER,
        "Packets sent, with messages (data, repairs included) and without (control)",
        ("kind",),
        lambda s: [(("data",), s.packets_data), (("control",), s.packets_control)],
    ),
    _one(
        "inga_round_trip_seconds",
        GAUGE,
        "Time until all members were known to have a packet of ours",
        lambda s: s.round_trip,
    ),
    Metric(
        "inga_rejected_total",
        COUNTER,
        "Datagrams and packets that were dropped, by reason",
        ("reason",),
        lambda s: [((reason,), count) for reason, count in sorted(s.rejected.items())],
    ),
    _one(
        "inga_datagrams_received_total",
        COUNTER,
        "Datagrams received",
        lambda s: s.traffic.datagrams_in,
    ),
    _one("inga_datagrams_sent_total", COUNTER, "Datagrams sent", lambda s: s.traffic.datagrams_out),
    _one(
        "inga_received_bytes_total",
        COUNTER,
        "Bytes of datagrams received",
        lambda s: s.traffic.bytes_in,
    ),
    _one("inga_sent_bytes_total", COUNTER, "Bytes of datagrams sent", lambda s: s.traffic.bytes_out),
    _one(
        "inga_datagrams_dropped_total",
        COUNTER,
        "Datagrams dropped by the kernel before they were read, or because a socket was full",
        lambda s: s.traffic.dropped,
    ),
    _each_peer("inga_peer_here", GAUGE, "1 if the member was met and has not left", lambda m: m.here),
    _each_peer("inga_peer_silent_seconds", GAUGE, "Time since anything was heard of it", lambda m: m.silent),
    _each_peer(
        "inga_peer_messages_delivered_total",
        COUNTER,
        "Messages of it given to our application",
        lambda m: m.delivered,
    ),
    _each_peer(
        "inga_peer_behind_packets", GAUGE, "Packets of ours that it is not known to have", lambda m: m.behind
    ),
    _each_peer(
        "inga_peer_behind_seconds", GAUGE, "Time since the oldest of these was sent", lambda m: m.behind_for
    ),
    _each_peer("inga_peer_blocks", GAUGE, "1 if sending waits for it", lambda m: m.blocks),
    _each_peer(
        "inga_peer_awaited", GAUGE, "1 if a held packet waits for one of its packets", lambda m: m.awaited
    ),
    _each_peer(
        "inga_peer_waited_seconds_total", COUNTER, "Time that sending has waited for it", lambda m: m.waited
    ),
)


def samples_of(metric: Metric, stats: Stats) -> Iterator[MetricValue]:
    """The values of one metric in a snapshot."""
    for labels, value in metric.samples(stats):
        named = {"group": stats.group, "member": stats.me, **dict(zip(metric.labels, labels, strict=True))}
        yield MetricValue(metric, named, float(value))


def exposition(snapshots: Sequence[Stats]) -> str:
    """All metrics in the text format 0.0.4 of Prometheus."""
    lines: list[str] = []
    for metric in METRICS:
        samples = [sample for stats in snapshots for sample in samples_of(metric, stats)]
        if samples:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
            lines += map(_line, samples)
    return "\n".join(lines) + "\n"


def _line(sample: MetricValue) -> str:
    labels = ",".join([f'{name}="{_escaped(value)}"' for name, value in sample.labels.items()])
    number = sample.value
    return f"{sample.metric.name}{{{labels}}} {int(number) if number.is_integer() else number!r}"


def _escaped(value: str) -> str:
    """A label's value, escaped. Names come from the network, and may contain any characters."""
    value = value.encode(errors="backslashreplace").decode()
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
