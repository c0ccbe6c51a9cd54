"""The events of a run in numbers, and its delays and costs: numbers with their definitions, and small charts.

All of it comes from tables of `inga metrics`. A number is a `details` element: its definition is one click away, also
by keyboard and without any script. Charts are SVG in the colours of the page; each has its numbers as text.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import log10
from typing import Any

from inga.report.section import Section
from inga.report.verdict import text

MEMBERS_SHOWN = 10
HELD_SHOWN = 5
LINES_MAX = 3  # of one chart: so many have colours that can be told apart
WIDTH = 420
LABEL, ROOM = 104, 128  # width of the text to the left and to the right of bars

TableRows = Sequence[Mapping[str, Any]]
Curve = list[tuple[float, float]]
"""Points of a curve: the time in milliseconds since the start of the run, and the value."""

_LEVELS = {
    "receive": ("arrived", "the packet came in from the network, in whatever order"),
    "accept": ("accepted", "nothing that precedes it is missing at this member"),
    "causal": ("in causal order", "it has its place among the others, behind everything that caused it"),
    "confirm": ("confirmed", "this member knows that every member has accepted it"),
    "acknowledge": ("acknowledged", "this member knows that every member has confirmed it"),
    "deliver": ("delivered", "it was handed to the application"),
    "take": (
        "taken",
        "the application has begun to read it; from now on it is a cause of what this member sends",
    ),
}


# ---- numbers


def tiles(section: Section) -> str:
    """The events of a run in numbers, as HTML."""
    found = [_tile(*each) for each in _numbers(section)]
    return f'<div class="tiles">{"".join(found)}</div>'


def _tile(label: str, value: int, definition: str, tone: str = "") -> str:
    return (
        f'<details class="tile{" " + tone if tone else ""}"><summary><b>{value:,}</b><span>{escape(label)}</span></summary>'
        f"<p>{escape(definition)}</p></details>"
    )


def _numbers(section: Section) -> list[tuple[str, int, str]]:
    """Label, number and definition of each tile. Kinds of events that did not occur are left out."""
    certificate, steps, crashes = section.certificate, _totals(section), _crashes(section)
    numbers = [
        ("messages sent", certificate["payloads"], "What applications sent. Messages sent in one turn of a program share a packet."),
        ("packets", certificate["messages"], "What is numbered, stamped, ordered and repaired: one or several messages with one stamp. Numbers in sentences and in the diagram count packets."),
        ("deliveries", certificate["deliveries"], "Packets handed to an application, counted at every receiver: one packet to three members is three deliveries."),
        (_plural("member", certificate["processes"]), certificate["processes"], "Members that wrote a record of the run, those that left or crashed included; in runs with objects also each copy of an object."),
        ("events", certificate["events"], "Rows of the record: everything that was written down about the run."),
    ]  # fmt: skip
    optional = [
        ("held back", steps.count("hold"), "Packets that arrived before something that caused them, and had to wait for it. This is what causal order costs."),
        ("copies lost", steps.count("lost"), "Copies of packets that were lost on purpose, to see whether they are repaired."),
        ("gaps noticed", steps.count("gap"), "A member saw by a later number that something of a sender is missing."),
        ("repairs", steps.count("repair"), "Packets sent again because somebody asked for them."),
        ("given up", steps.count("gave_up"), "Packets that nobody could repair any more."),
        (_plural("crash", crashes, "es"), crashes, "Members that failed: the others excluded them, or they noted it themselves."),
        ("calls of objects", steps.count("start"), "Executions of a method by a copy of an object."),
        ("calls undone", steps.count("undo"), "Executions that were taken back, because an older one had to come first."),
    ]  # fmt: skip
    views = _views(section)
    if views > 1:
        numbers.append(("views", views, "Lists of members that were in force, one after the other: whoever joins, leaves or fails makes a new one."))  # fmt: skip
    return [*numbers, *(each for each in optional if each[1])]


def _plural(word: str, count: int, ending: str = "s") -> str:
    return word if count == 1 else word + ending


def _crashes(section: Section) -> int:
    """How many members crashed. Each counts once, however many rows name it; a row without a peer is about its own process."""
    named, alone = _by_peer(section, "crash")
    return len({*named, *alone})


def _views(section: Section) -> int:
    """How many views there were. A view is identified by its number and the leader of the change to it. Of the views that a leader
    led, some member has seen all, mostly the leader itself: so the largest count of one member is taken."""
    led, alone = _by_peer(section, "view")
    return sum(led.values()) + max(alone.values(), default=0)


def _by_peer(section: Section, step: str) -> tuple[dict[int, int], dict[int, int]]:
    """Counts of the rows of a step. First by peer: the most rows of one process that name it. Then by process: its rows that name
    no peer, computed as its total less those that name one."""
    named: dict[int, int] = {}
    alone: Counter[int] = Counter()
    for row in section.measured.get("steps", ()):
        process, peer, count = row["process"], row["peer"], row["count"]
        if row["step"] != step or process is None:
            continue
        alone[process] += count if peer is None else -count
        if peer is not None:
            named[peer] = max(named.get(peer, 0), count)
    return named, +alone


class _Totals:
    """How often each step occurred in the whole run."""

    def __init__(self, rows: TableRows) -> None:
        self._counts = {row["step"]: row["count"] for row in rows if row["process"] is None}

    def count(self, *steps: str) -> int:
        return sum(int(self._counts.get(step, 0)) for step in steps)


def _totals(section: Section) -> _Totals:
    return _Totals(section.measured.get("steps", ()))


# ---- pictures


def figures(section: Section) -> str:
    """Charts of the measurements that exist, as HTML."""
    made = [_delays, _rate, _permitted, _overhead, _slowest, _holds, _windows]
    drawn = [each for figure in made if (each := figure(section))]
    if not drawn:
        return ""
    note = (
        f'<p class="muted">Delays between members are not given: {text(section.reason)}.</p>'
        if section.reason
        else ""
    )
    return (
        f'<h3>How long things took, and what they cost</h3>{note}<div class="figures">{"".join(drawn)}</div>'
    )


def _figure(title: str, finding: str, picture: str, definition: str) -> str:
    return (
        f"<figure><figcaption><b>{escape(title)}</b> {finding}</figcaption>{picture}"
        f"<details><summary>What is this?</summary><p>{definition}</p></details></figure>"
    )


def _delays(section: Section) -> str:
    rows = {row["step"]: row for row in section.measured.get("delays", ()) if row["process"] is None}
    shown = [(_LEVELS[step][0], rows[step]) for step in _LEVELS if step in rows]
    if not shown:
        return ""
    name, row = next(((n, r) for n, r in shown if n == "delivered"), shown[-1])
    words = "; ".join(
        f"<i>{escape(_LEVELS[s][0])}</i>: {escape(_LEVELS[s][1])}" for s in _LEVELS if s in rows
    )
    return _figure(
        "From a send to each level",
        f"Half of all packets were {escape(name)} within {ms(row['p50'])}, 99 of 100 within {ms(row['p99'])}.",
        _ranges([(label, row) for label, row in shown], "delay by level"),
        f"The time from the send of a packet until another member had it. The dot is the median, the thick part ends where "
        f"nine of ten are done, the thin one where 99 of 100 are. {words}.",
    )


def _slowest(section: Section) -> str:
    delays = section.measured.get("delays", ())
    level = next(
        (
            step
            for step in ("deliver", "take", "accept", "receive")
            if any(row["step"] == step for row in delays)
        ),
        "",
    )
    rows = [
        row
        for row in delays
        if row["step"] == level and row["process"] is not None and row.get("src") is None
    ]
    if len(rows) < 2:
        return ""
    rows.sort(key=lambda row: (-row["p99"], row["process"]))
    shown = [(section.names[row["process"]], row) for row in rows[:MEMBERS_SHOWN]]
    rest = f" The slowest {MEMBERS_SHOWN} of {len(rows)} are shown." if len(rows) > MEMBERS_SHOWN else ""
    return _figure(
        "Member by member, the slowest first",
        f"{text(shown[0][0])} waited longest: 99 of 100 packets were {_LEVELS[level][0]} there within {ms(rows[0]['p99'])}.{rest}",
        _ranges(shown, "delay by member"),
        "The same delay, from the send to this level, counted by the member that received. A member that is slow alone has a "
        "slow machine or link; if all are slow, look at what holds packets.",
    )


def _rate(section: Section) -> str:
    lines = _over_time(section, deliveries="deliveries", sends="sends", repairs="repair")
    if not lines:
        return ""
    what, line = next(iter(lines.items()))
    busiest = max(value for _, value in line)
    return _figure(
        "Packets over time",
        f"At most {busiest:,.0f} {what} a second, all members together.",
        _lines([*lines.items()], _length(section), "packets per second over time"),
        "The run is cut into 60 equal parts; the lines say how many packets were sent, delivered and sent again in each, per "
        "second. A delivery counts at every receiver.",
    )


def _over_time(section: Section, **columns: str) -> dict[str, Curve]:
    """Curves of some columns of `rates`, under the names given: the sum per second of all members in each part of the run. Parts
    without rows are 0; columns that are 0 throughout are left out."""
    rows = section.measured.get("rates", ())
    width = rows[0]["length_ms"] if rows else 1.0
    parts = [round(row["from_ms"] / width) for row in rows]
    found = {}
    for name, column in columns.items():
        sums = [0.0] * (max(parts, default=0) + 1)
        for part, row in zip(parts, rows, strict=True):
            sums[part] += (row[column] or 0) * 1000 / width
        if len(sums) > 1 and any(sums):
            found[name] = [(part * width, value) for part, value in enumerate(sums)]
    return found


def _length(section: Section) -> float:
    return max(float(row["from_ms"] + row["length_ms"]) for row in section.measured["rates"])


def _permitted(section: Section) -> str:
    """The permitted rates under a paced order. A member reports its rate only when it changes, so each holds until the next."""
    said: dict[int, Curve] = {}
    for row in sorted(section.measured.get("rates", ()), key=lambda row: row["from_ms"]):
        if row["allowed"] is not None:
            line = said.setdefault(row["process"], [])
            line.extend((row["from_ms"], value) for _, value in line[-1:])
            line.append((row["from_ms"], float(row["allowed"])))
    if not said:
        return ""
    least = {process: min(value for _, value in line) for process, line in said.items()}
    slowest = sorted(least, key=lambda process: (least[process], process))
    end = _length(section)
    lines = [(section.names[at], [*said[at], (end, said[at][-1][1])]) for at in slowest[:LINES_MAX]]
    rest = (
        f" The {LINES_MAX} that were permitted least of {len(said)} are shown."
        if len(said) > LINES_MAX
        else ""
    )
    return _figure(
        "Permitted rate",
        f"{text(section.names[slowest[0]])} was permitted least: {_rough(least[slowest[0]])} bit/s.{rest}",
        _lines(lines, end, "permitted bits per second over time"),
        "The bits a second that a member might send: the order paces it by its slowest receiver. A line begins where that changed for "
        "the first time.",
    )


def _overhead(section: Section) -> str:
    steps = _totals(section)
    sends = steps.count("send")
    families = {
        "control packets": ("control", "poll"),
        "asked again": ("nack",),
        "repairs": ("repair",),
    }
    counts = {label: steps.count(*each) for label, each in families.items()}
    if not sends or not any(counts.values()):
        return ""
    each = {label: count / sends for label, count in counts.items()}
    picture = _bars(
        [(label, value, in_digits(value, 2)) for label, value in each.items()],
        "control packets per data packet",
    )
    return _figure(
        "For each packet of data",
        f"{in_digits(sum(each.values()), 2)} other packets were sent: to confirm, to ask again and to repair.",
        picture,
        "How many packets that carry no new data were sent, divided by the packets that do. Confirmations that ride on data "
        "cost nothing and are not counted.",
    )


def _holds(section: Section) -> str:
    whole = next((row for row in section.measured.get("holds", ()) if row["process"] is None), None)
    if whole is None:
        return ""
    if not whole["count"]:
        return _figure("Held back", "No packet had to wait for another.", "", "A packet is held when it comes before something that caused it.")  # fmt: skip
    names, deliveries = section.names, section.certificate["deliveries"]
    share = f" ({whole['count'] / deliveries:.1%} of the deliveries)" if deliveries else ""
    lines = "".join(
        f"<tr><td>{text(names[row['process']])}</td><td>packet {row['seq']} of {text(names[row['src']])}</td>"
        f'<td class="number">{row["held"]:,}</td><td class="number">{ms(row["ms"])}</td></tr>'
        for row in list(section.measured.get("held_by", ()))[:HELD_SHOWN]
    )
    table = (
        '<div class="scroll" tabindex="0"><table class="small"><thead><tr><th scope="col">at</th><th scope="col">waited for</th>'
        '<th scope="col" class="number">held</th><th scope="col" class="number">in all</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )
    return _figure(
        "Held back, and by what",
        f"{whole['count']:,} packets waited for another{share}: half of them at most {ms(whole['p50'])}, the longest {ms(whole['max'])}.",
        table if lines else "",
        "A packet is held when it comes before something that caused it. What held it is, of everything that precedes it, the "
        "last that came. The table has what cost most time in all.",
    )


def _windows(section: Section) -> str:
    rows = sorted(section.measured.get("windows", ()), key=lambda row: -row["share"])[:MEMBERS_SHOWN]
    if not rows:
        return ""
    bars = [(section.names[row["process"]], row["share"], f"{row['share']:.0%}") for row in rows]
    closed = _over_time(section, closings="closed")
    label = "windows closed per second over time"
    over_time = _lines([*closed.items()], _length(section), label, 90) if closed else ""
    return _figure(
        "Not allowed to send",
        f"{text(bars[0][0])} had to wait most: {rows[0]['share']:.0%} of its time, {rows[0]['closed']:,} times.",
        _bars(bars, "share of time with a closed window") + over_time,
        "The share of its time in which a member's window was closed: receivers had no room, or had not yet confirmed enough. The "
        "line says how often windows closed, all members together.",
    )


# ---- drawing


def in_digits(value: float, digits: int) -> str:
    """A number with so many significant digits, or with all digits before the point if there are more; never in scientific
    notation."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def ms(value: float) -> str:
    """A time given in milliseconds as text, in a suitable unit."""
    for unit, size in (("s", 1000.0), ("ms", 1.0), ("µs", 0.001)):
        if abs(value) >= size:
            return f"{in_digits(value / size, 3)} {unit}"
    return f"{value * 1e6:.3g} ns" if value else "0 ms"


def _svg(height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="figure" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _label(name: str, y: float) -> str:
    return f'<text x="{LABEL - 8}" y="{y + 4:g}" text-anchor="end">{_short(name, 15)}</text>'


def _short(name: str, letters: int) -> str:
    """A name for a text element, shortened; pointing at it shows up to 200 characters of it."""
    if len(name) <= letters:
        return escape(name)
    return f"{escape(name[: letters - 1])}…<title>{escape(name[:200])}</title>"


def _ranges(rows: Sequence[tuple[str, Mapping[str, Any]]], label: str) -> str:
    """A chart of medians and of the 90th and 99th percentiles, on one scale."""
    values = [row[key] for _, row in rows for key in ("p50", "p99")]
    place = _scale(min(values), max(values))
    parts, step = [], 24
    for at, (name, row) in enumerate(rows):
        y = 14 + at * step
        median, most, nearly = (place(row[key]) for key in ("p50", "p90", "p99"))
        parts += [
            _label(name, y),
            f'<line class="thin" x1="{median:.1f}" x2="{nearly:.1f}" y1="{y}" y2="{y}"/>',
            f'<line class="thick" x1="{median:.1f}" x2="{most:.1f}" y1="{y}" y2="{y}"/>',
            f'<circle class="median" cx="{median:.1f}" cy="{y}" r="4.5"/>',
            f'<text class="value" x="{WIDTH - ROOM + 12}" y="{y + 4}">{escape(ms(row["p50"]))} – {escape(ms(row["p99"]))}</text>',
        ]
    return _svg(14 + len(rows) * step, label, parts)


def _scale(low: float, high: float) -> Callable[[float], float]:
    """A function from values to x coordinates: linear from 0, or logarithmic if the largest value is more than 50 times the
    lowest."""
    room = WIDTH - LABEL - ROOM - 12
    if low > 0 and high / low > 50:
        span = log10(high / low)
        return lambda value: LABEL + 6 + room * max(log10(max(value, low) / low), 0) / span
    floor, span = min(low, 0.0), max(high - min(low, 0.0), 1e-9)
    return lambda value: LABEL + 6 + room * (value - floor) / span


def _bars(rows: Sequence[tuple[str, float, str]], label: str) -> str:
    largest, room, step = max(max(value for _, value, _ in rows), 1e-9), WIDTH - LABEL - ROOM, 24
    parts = []
    for at, (name, value, words) in enumerate(rows):
        y = 14 + at * step
        width = max(room * value / largest, 1.5)
        parts += [
            _label(name, y),
            f'<rect class="amount" x="{LABEL}" y="{y - 6}" width="{width:.1f}" height="12" rx="3"/>',
            f'<text class="value" x="{LABEL + width + 6:.1f}" y="{y + 4}">{escape(words)}</text>',
        ]
    return _svg(14 + len(rows) * step, label, parts)


def _lines(lines: Sequence[tuple[str, Curve]], length: float, label: str, height: float = 150) -> str:
    """A chart of curves over time, each with its name (which need not be unique), and the highest value of all."""
    left, right, top, bottom = 40, 8, 22, 22
    highest = max(max(value for _, value in line) for _, line in lines) or 1.0
    parts = [
        f'<line class="rule" x1="{left}" x2="{WIDTH - right}" y1="{y}" y2="{y}"/>'
        for y in (top, height - bottom)
    ]
    parts.append(f'<text x="{left - 6}" y="{top + 4}" text-anchor="end">{_rough(highest)}</text>')
    parts.append(f'<text x="{left - 6}" y="{height - bottom + 4}" text-anchor="end">0</text>')
    for share in (0.0, 0.5, 1.0):
        x = left + (WIDTH - left - right) * share
        anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[share]
        parts.append(
            f'<text x="{x:.1f}" y="{height - 6}" text-anchor="{anchor}">{escape(ms(length * share))}</text>'
        )
    for number, (name, line) in enumerate(lines):
        points = " ".join(
            f"{left + (WIDTH - left - right) * at / length:.1f},{height - bottom - (height - top - bottom) * value / highest:.1f}"
            for at, value in line
        )
        parts.append(f'<polyline class="line line-{number}" points="{points}"/>')
        parts.append(
            f'<text class="key line-{number}" x="{left + 96 * number}" y="11">{_short(name, 13)}</text>'
        )
    return _svg(height, label, parts)


def _rough(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return in_digits(value / size, 2) + unit
    return in_digits(value, 2)
