"""What operators read: Prometheus' text, health for probes, and the same figures in registries and meters."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import inga
from inga.model.errors import UsageError
from inga.model.stats import MemberStats, Stats, Traffic
from inga.net import serving
from inga.net.metrics import COUNTER, METRICS, exposition
from inga.net.serving import MetricsServer, is_healthy, is_ready, serve_metrics
from inga.net.telemetry import Collector, FromAnyThread, observe, otel_name
from inga.sim import Sim

from .helpers import Party, Run, texts, until

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]

NASTY = 'a"\n\\}\x1b[2J\u202e\ud800'
"""A name that ends labels and lines, and cannot be encoded."""

TOOLS = Path(__file__).parents[2] / "build/tools"
"""What `make packages` fetches."""


def busy() -> Stats:
    """A snapshot in which every metric has a value."""
    sim = Sim("alice", "bob", "cathy", record=False)
    sim.run(until=1.0)
    sim["alice"].send(b"hello")
    sim["bob"].send(b"hello")
    sim.run()
    traffic = Traffic(1, 2, 3, 4, 5)
    return replace(sim["alice"].stats(), traffic=traffic, rejected={"group": 3, "noise": 1}, held_for=0.25)


def values(text: str) -> Values:
    """As Prometheus' own parser reads it."""
    found: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, f"{key} twice"
            found[key] = sample.value
    return found


def of(stats: Stats, name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset({"group": stats.group, "member": stats.me, **labels}.items())


def test_prometheus_reads_what_the_snapshot_says() -> None:
    stats = busy()
    found = values(exposition([stats]))
    assert {name for name, _ in found} == {metric.name for metric in METRICS}
    assert found[of(stats, "inga_messages_sent_total")] == 1
    assert found[of(stats, "inga_messages_delivered_total")] == 1
    assert found[of(stats, "inga_peer_messages_delivered_total", peer="bob")] == 1
    assert found[of(stats, "inga_rejected_total", reason="group")] == 3
    assert found[of(stats, "inga_state", state="open")] == 1
    assert found[of(stats, "inga_state", state="failed")] == 0
    assert found[of(stats, "inga_held_seconds")] == 0.25
    assert found[of(stats, "inga_window_limit", layer="flow")] == 1 << 20
    traffic = "inga_datagrams_received inga_datagrams_sent inga_received_bytes inga_sent_bytes inga_datagrams_dropped"
    assert [found[of(stats, f"{name}_total")] for name in traffic.split()] == [1, 2, 3, 4, 5]


def test_two_groups_of_one_process_share_a_page() -> None:
    stats = busy()
    found = values(exposition([stats, replace(stats, group="dinner", sent=7)]))
    sent = {
        dict(labels)["group"]: value for (name, labels), value in found.items() if "messages_sent" in name
    }
    assert sent == {"sim": 1, "dinner": 7}


def test_names_end_no_label_and_no_line() -> None:
    stats = busy()
    named = replace(stats.members[1], name=NASTY)
    text = exposition([replace(stats, group=NASTY, members=(stats.members[0], named))])
    text.encode()
    peers = {dict(labels).get("peer") for _, labels in values(text)} - {None}
    assert peers == {NASTY.replace("\ud800", r"\ud800")}


def test_names_and_kinds_are_as_prometheus_wants_them() -> None:
    for metric in METRICS:
        assert metric.name.endswith("_total") is (metric.kind == COUNTER), metric.name
        assert metric.name.startswith("inga_") and metric.help[0].isupper() | metric.help[0].isdigit()


def test_promtool_is_content() -> None:
    tool = shutil.which("promtool", path=f"{os.environ['PATH']}{os.pathsep}{TOOLS}")
    if tool is None:
        pytest.skip("no promtool here: `make packages` fetches it out of Debian's package prometheus")
    checked = subprocess.run(
        [tool, "check", "metrics"], input=exposition([busy()]), text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


# Health


@pytest.mark.parametrize(
    ("state", "healthy", "ready"),
    [
        ("open", True, True),
        ("waiting", True, True),
        ("closing", True, True),
        ("paused", True, False),
        ("leaving", True, False),
        ("failed", False, False),
        ("closed", False, False),
    ],
)
def test_health_follows_the_state(state: str, healthy: bool, ready: bool) -> None:
    stats = replace(busy(), state=state)
    assert (is_healthy(stats), is_ready(stats)) == (healthy, ready)


def test_who_has_met_nobody_is_not_ready_unless_there_is_nobody() -> None:
    stats = Sim("alice", "bob")["alice"].stats()
    assert is_healthy(stats) and not is_ready(stats)
    assert is_ready(Sim("alice")["alice"].stats())


# Over HTTP


async def asked(port: int, request: bytes) -> tuple[bytes, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


async def got(port: int, path: str) -> tuple[int, str]:
    head, body = await asked(port, b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n" % path.encode())
    return int(head.split(b" ", 2)[1]), body.decode()


@pytest.mark.network
def test_a_live_group_is_asked_and_its_figures_move(run: Run, party: Party) -> None:
    async def main() -> None:
        async with party(2) as (alice, bob), await inga.serve_metrics(alice, port=0) as server:
            before = values((await got(server.port, "/metrics"))[1])
            for _ in range(5):
                await bob.send(b"hello")
            await texts(alice, 5)
            status, text = await got(server.port, "/metrics")
            found, stats = values(text), alice.stats()
            delivered = of(stats, "inga_messages_delivered_total")
            assert (status, before[delivered], found[delivered]) == (200, 0, 5)
            (told,) = json.loads((await got(server.port, "/stats"))[1])
            assert (told["me"], told["delivered"]) == ("alice", 5)
            assert await got(server.port, "/healthz") == (200, "ok open\n")
            assert await got(server.port, "/readyz?verbose") == (200, "ok open\n")
            assert (await got(server.port, "/"))[0] == 404
            await alice.close()
            assert await got(server.port, "/healthz") == (503, "no closed\n")

    run(main())


@pytest.mark.network
def test_whatever_connects_it_goes_on_serving(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CONNECTIONS_MAX", 4)

    async def main() -> None:
        alice = Sim("alice")["alice"]
        async with await serve_metrics(alice, port=0) as server:
            head, body = await asked(server.port, b"HEAD /metrics HTTP/1.1\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK") and not body
            assert (await asked(server.port, b"POST /metrics HTTP/1.1\r\n\r\n"))[0].startswith(
                b"HTTP/1.1 405 "
            )
            assert (await asked(server.port, b"\xff\0\r\n\r\n"))[0].startswith(b"HTTP/1.1 400 ")
            assert await asked(server.port, b"GET " + b"/" * 100_000) == (b"", b"")
            idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(4)]
            assert await asked(server.port, b"GET /metrics HTTP/1.1\r\n\r\n") == (b"", b""), (
                "too many at once"
            )
            for _, writer in idle:
                writer.close()
            while (await asked(server.port, b"GET /healthz HTTP/1.1\r\n\r\n")) == (b"", b""):
                pass
            with pytest.raises(UsageError, match="cannot serve metrics"):
                await serve_metrics(alice, port=server.port)

    run(main())


@pytest.mark.network
def test_nothing_is_kept_for_one_that_does_not_read_its_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection is over when its time is, also if much of the answer has not left: nobody counts it any more."""
    monkeypatch.setattr(serving, "PATIENCE", 0.05)
    monkeypatch.setattr(serving, "exposition", lambda every: "x" * 50_000_000)
    writers: list[asyncio.StreamWriter] = []
    serve = MetricsServer._serve

    async def watched(
        server: MetricsServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writers.append(writer)
        await serve(server, reader, writer)

    monkeypatch.setattr(MetricsServer, "_serve", watched)

    async def main() -> None:
        async with await serve_metrics(Sim("alice")["alice"], port=0) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            await until(lambda: writers and not server._tasks)
            assert not writers[0].transport.get_write_buffer_size()
            writer.close()

    run(main())


def test_wrong_use_is_refused(run: Run) -> None:
    with pytest.raises(UsageError, match="needs a group"):
        run(serve_metrics(port=0))
    with pytest.raises(UsageError, match="a port is a number"):
        run(serve_metrics(Sim("alice")["alice"], port=70_000))
    assert MetricsServer([]).answer("GET", "/metrics")[0] == 200


# In what a program has already


class Aged:
    """Something with figures, one more each time that it is asked."""

    def __init__(self) -> None:
        self._stats = busy()
        self.asked = 0

    def stats(self) -> Stats:
        self.asked += 1
        return replace(self._stats, sent=self.asked)


def test_a_registry_of_prometheus_takes_a_group(run: Run) -> None:
    async def main() -> None:
        aged, registry = Aged(), CollectorRegistry()
        registry.register(Collector(aged))
        text = await asyncio.to_thread(generate_latest, registry)
        assert values(text.decode()) == values(exposition([replace(busy(), sent=1)]))

    run(main())


def test_a_meter_of_opentelemetry_observes_a_group(run: Run) -> None:
    async def main() -> None:
        aged, reader = Aged(), InMemoryMetricReader()
        provider = MeterProvider([reader])
        observe(aged, provider.get_meter("test"))
        data: Any = await asyncio.to_thread(reader.get_metrics_data)
        metrics = {metric.name: metric for metric in _metrics(data)}
        assert {*metrics} == {otel_name(metric)[0] for metric in METRICS}
        assert len(metrics) == len(METRICS)
        (point,) = metrics["inga.messages_sent"].data.data_points
        assert point.value == 1 and point.attributes == {"group": "sim", "member": "alice"}
        assert metrics["inga.messages_sent"].data.is_monotonic
        assert metrics["inga.held_seconds"].unit == "s" and metrics["inga.held_bytes"].unit == "By"
        assert aged.asked == 1, "one snapshot serves all instruments"
        provider.shutdown()

    run(main())


def _metrics(data: Any) -> Iterator[Any]:
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            yield from scope.metrics


def test_a_thread_gets_what_was_known_when_the_loop_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def make() -> Collector:
        return Collector(Aged())

    monkeypatch.setattr("inga.net.telemetry.FRESH", -1.0)
    collector = asyncio.run(make())
    sent = next(family for family in collector.collect() if family.name == "inga_messages_sent")
    assert [sample.value for sample in sent.samples] == [1]


def test_a_snapshot_serves_for_a_moment_and_the_newest_does(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counting:
        asked = 0

        def stats(self) -> Stats:
            self.asked += 1
            return replace(known, sent=self.asked)

    known = busy()

    async def main() -> None:
        stats = FromAnyThread(Counting())
        assert stats().sent == stats().sent == 1
        monkeypatch.setattr("inga.net.telemetry.FRESH", -1.0)
        assert [stats().sent, stats().sent] == [2, 3]
        monkeypatch.setattr("inga.net.telemetry.FRESH", 1e6)
        assert stats().sent == 3

    run(main())


def test_the_loop_does_not_wait_for_a_thread_that_waits_for_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may collect in its loop while a scraper asks from a thread."""
    monkeypatch.setattr("inga.net.telemetry.FRESH", -1.0)
    monkeypatch.setattr("inga.net.telemetry.PATIENCE", 5.0)

    async def main() -> None:
        stats, loop, waits = FromAnyThread(Aged()), asyncio.get_running_loop(), Event()
        soon = loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *asked: (soon(*asked), waits.set()))
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(stats)
            assert waits.wait(60)
            assert stats().sent == 2
            assert not other.done(), "nor has the thread given up meanwhile"
            assert (await asyncio.wrap_future(other)).sent == 3

    run(main())


# What goes with them

ROOT = Path(__file__).parents[2]


def test_the_page_for_operators_lists_every_metric() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |"
        for metric in METRICS
    ]
    assert [row for row in rows if row not in page] == []
    assert {*re.findall(r"\binga_[a-z_]+", page)} <= {metric.name for metric in METRICS}


def test_the_page_for_operators_defines_every_figure() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    own = [field.name for kind in (Stats, MemberStats) for field in fields(kind)]
    defined = set(re.findall(r"`(?:members\[\])?\.?(\w+)`", page))
    assert {*own} - defined <= {"group", "me", "order", "name", "blocks", "awaited"}, (
        "which need no definition"
    )


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    board = json.loads((ROOT / "examples" / "grafana.json").read_text())
    known = {metric.name: metric for metric in METRICS}
    asked: set[str] = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            text = target["expr"]
            for name in re.findall(r"\binga_[a-z_]+", text):
                asked.add(name)
                is_rate = f"rate({name}{{" in text
                assert is_rate is (known[name].kind == COUNTER), f"{panel['title']}: {text}"
            labels = {label for name in re.findall(r"\binga_[a-z_]+", text) for label in known[name].labels}
            used = {
                *re.findall(r"{{(\w+)}}", target["legendFormat"]),
                *re.findall(r"(\w+)(?:=~|!=|=)\"", text),
            }
            assert used <= labels | {"group", "member"}, f"{panel['title']}: {used}"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert [each["name"] for each in board["templating"]["list"]] == ["datasource", "group", "member"]
    unused = "inga_view_age_seconds inga_calls_begun inga_unread_packets inga_window_waiting_packets inga_datagrams_received_total inga_datagrams_sent_total inga_peer_here inga_peer_silent_seconds inga_peer_messages_delivered_total inga_peer_behind_packets inga_peer_blocks inga_peer_awaited"
    assert known.keys() - asked == {*unused.split()}
