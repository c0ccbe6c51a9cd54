"""The time that a report takes to open and to scroll in a real browser, measured in the page.

Traces are made, certified and rendered as `inga report` does. The page notes when its diagram was drawn, counted from the request of the
page, so this includes reading the file, decoding and drawing. Then the diagram is moved 60 times, zoomed in to single arrows and
with everything in view: as fast as it can be painted, which is the cost of a frame, and once for each frame that the browser
shows, which is what a person sees. Baselines are the goals: 0.3 s for ten thousand events, 2 s for a million, and 60
frames a second. CPU is that of the page's main thread, which is more telling than the clock on a busy machine.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inga.lab.bench import BenchRow, SayProgress
from inga.lab.traces import TraceRecipe, make
from inga.model.errors import UsageError
from inga.pipeline.jobs import report_tables
from inga.report.page import render
from inga.report.section import Section

LIMITS = {10_000: 300.0, 1_000_000: 2000.0}  # events: milliseconds
FRAMES = 60.0  # a second
MOVES = 60
MEMBERS = 8
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")

_MOVE = f"""(place) => {{
    const {{ scene }} = place.viewer, started = performance.now();
    for (let frame = 0; frame < {MOVES}; frame++) {{ scene.pan(frame % 2 ? 7 : -7); scene.paint(); }}
    scene.context.getImageData(0, 0, 1, 1);
    return (performance.now() - started) / {MOVES};
}}"""

_SHOWN = f"""(place) => new Promise((done) => {{
    const {{ viewer }} = place;
    let frame = 0, started = 0;
    const move = (now) => {{
        if (!frame) started = now;
        if (frame === {MOVES}) {{ done({MOVES} * 1000 / (now - started)); return; }}
        viewer.act(() => viewer.scene.pan(frame++ % 2 ? 7 : -7));
        requestAnimationFrame(move);
    }};
    requestAnimationFrame(move);
}})"""


def run(progress: SayProgress, *, quick: bool = False) -> list[BenchRow]:
    """Return rows for each size of trace; `quick` leaves out the largest."""
    program = shutil.which("chromium")
    if program is None:
        raise UsageError("chromium is not installed, and pages are measured in it")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise UsageError("playwright is not installed, by which the browser is driven") from None
    rows = []
    with TemporaryDirectory() as scratch, sync_playwright() as playwright:
        pages = [
            (events, _page(Path(scratch), events, progress))
            for events in list(LIMITS)[: 1 if quick else None]
        ]
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        _measure(browser, pages[0][1])  # the first page of a browser pays for its start
        for events, path in pages:
            progress(f"a page of {events:,} events")
            rows += _rows(events, path, _measure(browser, path))
        browser.close()
    return rows


def _page(scratch: Path, events: int, progress: SayProgress) -> Path:
    progress(f"a trace of {events:,} events, and its report")
    trace = scratch / str(events)
    trace.mkdir()
    make(trace, TraceRecipe(events, MEMBERS, seed=3, defect="swap"))
    path = scratch / f"{events}.html"
    make_page(trace, path)
    return path


def make_page(trace: Path, page: Path) -> None:
    """Make a page as `inga report --engine local` does."""
    tables = report_tables(str(trace), master=None)
    section = Section(
        f"{tables.certificate.events:,} events",
        [process.name for process in tables.trace.processes],
        [],
        tables.certificate.to_json(),
        shown=tables.shown,
        drawing=tables.drawing,
        measured=tables.measured,
    )
    page.write_text(render([section]), encoding="utf-8")


def _measure(browser: Any, path: Path) -> dict[str, float]:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(path.as_uri())
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.reload()  # in the same process, whose main thread is measured from here on
    page.wait_for_selector("html[data-opened]", state="attached", timeout=120_000)
    opened = float(page.locator("html").get_attribute("data-opened"))
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    viewer = page.locator(".viewer").first
    found = {"opened": opened, "cpu": metrics["TaskDuration"] * 1000}
    found |= {"arrows": viewer.evaluate(_MOVE), "arrows shown": viewer.evaluate(_SHOWN)}
    page.get_by_role("button", name="all", exact=True).first.click()
    found |= {"all": viewer.evaluate(_MOVE), "all shown": viewer.evaluate(_SHOWN)}
    page.close()
    return found


def _rows(events: int, path: Path, found: dict[str, float]) -> list[BenchRow]:
    case, limit = f"{events:,} events", LIMITS[events]
    return [
        BenchRow(f"{case}: page", 10.0 * events / 1e6, path.stat().st_size / 1e6, "MB", "10 bytes an event"),
        BenchRow(f"{case}: opened and drawn", limit, found["opened"], "ms", "the limit"),
        BenchRow(f"{case}: of that, CPU", limit, found["cpu"], "ms", "the limit"),
        BenchRow(f"{case}: a frame, arrows", 1000 / FRAMES, found["arrows"], "ms", "60 frames a second"),
        BenchRow(f"{case}: a frame, everything", 1000 / FRAMES, found["all"], "ms", "60 frames a second"),
        BenchRow(f"{case}: shown, arrows", FRAMES, found["arrows shown"], "frames/s", "what a screen shows"),
        BenchRow(f"{case}: shown, everything", FRAMES, found["all shown"], "frames/s", "what a screen shows"),
    ]
