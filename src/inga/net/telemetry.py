"""A group's metrics in the program's own registry of Prometheus or meter of OpenTelemetry.

Both read metrics from threads of their own, and a group belongs to its event loop: so the loop takes the snapshot. If it does not within
`PATIENCE`, they get the previous one.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Lock
from time import monotonic
from typing import Any

from inga.model.errors import UsageError
from inga.model.stats import Stats
from inga.net.metrics import COUNTER, METRICS, Metric, samples_of
from inga.net.serving import HasStats

PATIENCE = 2.0
"""Seconds for which a thread waits for the event loop."""

FRESH = 0.2
"""Seconds for which a snapshot is reused, since all instruments are read one after the other."""

UNITS = {"_seconds": "s", "_bytes": "By", "_packets": "{packet}"}
"""The endings of names that have a unit, and OpenTelemetry's symbol for it."""


class FromAnyThread:
    """Snapshots of a group for other threads than that of its event loop."""

    def __init__(self, group: HasStats) -> None:
        self._group = group
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._last = group.stats(), monotonic()

    def __call__(self) -> Stats:
        """Return a fresh snapshot. One thread at a time waits for the loop, and the others wait for that thread. The loop itself takes
        no lock: it would wait for a thread that waits for the loop."""
        if self._is_in_loop():
            return self._fresh(self._group.stats)
        with self._lock:
            return self._fresh(self._ask)

    def _is_in_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:  # no loop runs in this thread
            return False

    def _fresh(self, ask: Callable[[], Stats]) -> Stats:
        stats, taken = self._last
        if monotonic() - taken > FRESH:
            stats = ask()
            self._last = stats, monotonic()
        return stats

    def _ask(self) -> Stats:
        found: Future[Stats] = Future()
        try:
            self._loop.call_soon_threadsafe(lambda: found.set_result(self._group.stats()))
            return found.result(PATIENCE)
        except (RuntimeError, TimeoutError):  # the loop is closed, or busy
            return self._last[0]


class Collector:
    """For a registry of prometheus-client: `registry.register(Collector(group))`, in the group's event loop."""

    def __init__(self, group: HasStats) -> None:
        try:
            from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
        except ImportError:
            raise UsageError("this needs prometheus-client: pip install inga[prometheus]") from None
        self._stats = FromAnyThread(group)
        self._families = {True: CounterMetricFamily, False: GaugeMetricFamily}

    def describe(self) -> list[Any]:
        """Return nothing, so that the registry detects duplicates by what `collect` returns."""
        return []

    def collect(self) -> Iterator[Any]:
        """The metric families, in the classes of prometheus-client."""
        stats = self._stats()
        for metric in METRICS:
            labels = ("group", "member", *metric.labels)
            family = self._families[metric.kind == COUNTER](metric.name, metric.help, labels=labels)
            for sample in samples_of(metric, stats):
                family.add_metric([sample.labels[name] for name in labels], sample.value)
            yield family


def observe(group: HasStats, meter: Any = None) -> None:
    """Add a group to a meter of OpenTelemetry, by default one of the global provider. Call it in the group's event
    loop."""
    try:
        from opentelemetry import metrics
    except ImportError:
        raise UsageError("this needs opentelemetry-api: pip install inga[otel]") from None
    meter = metrics.get_meter("inga") if meter is None else meter
    stats = FromAnyThread(group)
    for metric in METRICS:
        make = meter.create_observable_counter if metric.kind == COUNTER else meter.create_observable_gauge
        name, unit = otel_name(metric)
        make(name, [_callback(metric, stats, metrics.Observation)], unit=unit, description=metric.help)


def otel_name(metric: Metric) -> tuple[str, str]:
    """The name of a metric in OpenTelemetry, and its unit. The unit stays in the name, too: some quantities are measured in two
    units, and exporters to Prometheus do not add a unit to a name that has it already."""
    name = metric.name.removesuffix("_total")
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    return name.replace("inga_", "inga.", 1), unit


def _callback(
    metric: Metric, stats: Callable[[], Stats], observation: Callable[[float, dict[str, str]], Any]
) -> Callable[[Any], list[Any]]:
    return lambda options: [
        observation(sample.value, sample.labels) for sample in samples_of(metric, stats())
    ]
