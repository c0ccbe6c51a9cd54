"""Small space-time pictures: members as lines, time to the right, copies as arrows.

A picture is drawn from places on a grid, column by column, not from rows of a trace: for a handful of
events, each of which matters. For traces there is the viewer of `page`.

    dot    something happens: sent, delivered, delivered too early
    copy   a message on its way
    bar    a message that waits: held, in the queue, or held for ever
"""

from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from math import hypot
from typing import NamedTuple

COLUMN, LANE = 44, 66  # distances
LEFT, RIGHT, TOP, BOTTOM = 88, 104, 40, 26  # margins
RADIUS = 10
SLOT = 17  # between bars on one lane
ARROW = 7


class Dot(NamedTuple):
    """Something that happens on a lane. Kinds: send, deliver, early, wait."""

    lane: int
    column: float
    label: str
    kind: str
    note: str = ""  # a few words above it


class Copy(NamedTuple):
    """A copy from lane to lane. Kinds: plain, late, double, header."""

    source: int
    left: float
    target: int
    arrived: float
    kind: str = "plain"


class Bar(NamedTuple):
    """Something waits on a lane. Kinds: held, queued, blocked. Without an end it waits for ever."""

    lane: int
    first: float
    last: float | None
    label: str
    kind: str


@dataclass(slots=True)
class Diagram:
    """What to draw. `ends` are words at the right end of each lane, with whether these are bad news."""

    lanes: list[str]
    columns: int
    title: str
    dots: list[Dot] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    ends: list[tuple[str, bool]] = field(default_factory=list)


def style() -> str:
    """How the classes of a picture look; the colours are variables of the page around it."""
    return files("inga.report").joinpath("spacetime.css").read_text(encoding="utf-8")


def draw(diagram: Diagram, *, alone: bool = False) -> str:
    """The picture as an SVG element; `alone` makes it a file that brings its own colours."""
    slots = _slots(diagram.bars)
    deepest = [
        max((slots[bar] for bar in diagram.bars if bar.lane == lane), default=0) for lane in _lanes(diagram)
    ]
    levels = [TOP]
    for depth in deepest:
        levels.append(levels[-1] + LANE + depth * SLOT)
    width = LEFT + diagram.columns * COLUMN + RIGHT
    height = levels[-1] - LANE + RADIUS + BOTTOM
    parts = [
        *_lines(diagram, levels, width),
        *(_bar(bar, levels[bar.lane] + slots[bar] * SLOT, width) for bar in diagram.bars),
        *(_copy(copy, levels) for copy in diagram.copies),
        *(_dot(dot, levels[dot.lane]) for dot in diagram.dots),
    ]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg class="spacetime" role="img" {size}'
    if alone:
        head += ' xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif"'
        parts = [
            f"<style>{_alone()}</style>",
            f'<rect class="paper" width="{width}" height="{height}"/>',
            *parts,
        ]
    return f"{head}><title>{escape(diagram.title)}</title>\n" + "\n".join(parts) + "\n</svg>"


def _alone() -> str:
    """The page's colours, and the style."""
    css = files("inga.report").joinpath("page.css").read_text(encoding="utf-8")
    colours = css[: css.index("* {")].replace(":root", "svg")
    return colours + style()


def _lanes(diagram: Diagram) -> range:
    return range(len(diagram.lanes))


def _x(column: float) -> float:
    return LEFT + (column + 0.5) * COLUMN


def _slots(bars: list[Bar]) -> dict[Bar, int]:
    """Bars of one lane that overlap lie beneath each other."""
    slots: dict[Bar, int] = {}
    for bar in sorted(bars, key=lambda each: each.first):
        taken = {slots[other] for other in slots if other.lane == bar.lane and _overlap(other, bar)}
        slots[bar] = next(slot for slot in range(len(bars)) if slot not in taken)
    return slots


def _overlap(one: Bar, other: Bar) -> bool:
    return (one.last is None or other.first < one.last) and (other.last is None or one.first < other.last)


def _lines(diagram: Diagram, levels: list[float], width: float) -> list[str]:
    parts = []
    for lane, name in enumerate(diagram.lanes):
        y = levels[lane]
        parts.append(f'<line class="lane" x1="{LEFT - 8}" x2="{width - RIGHT + 6}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="name" x="{LEFT - 18}" y="{y + 5}">{escape(name)}</text>')
        if lane < len(diagram.ends):
            text, is_bad = diagram.ends[lane]
            kind = "end bad" if is_bad else "end"
            parts.append(f'<text class="{kind}" x="{width - RIGHT + 16}" y="{y + 5}">{escape(text)}</text>')
    return parts


def _bar(bar: Bar, y: float, width: float) -> str:
    left = _x(bar.first)
    right = width - RIGHT + 6 if bar.last is None else _x(bar.last)
    shape = (
        f'<rect class="bar {bar.kind}" x="{left:g}" y="{y - 7}" width="{right - left:g}" height="14" rx="7"/>'
    )
    middle = (left + right) / 2
    if bar.last is not None and bar.last - bar.first < 1.5:
        return shape  # no room for words
    return f'{shape}<text class="word {bar.kind}" x="{middle:g}" y="{y + 4}">{escape(bar.label)}</text>'


def _copy(copy: Copy, levels: list[float]) -> str:
    x, y = _x(copy.left), levels[copy.source]
    to_x, to_y = _x(copy.arrived), levels[copy.target]
    length = hypot(to_x - x, to_y - y) or 1.0
    along_x, along_y = (to_x - x) / length, (to_y - y) / length
    tip_x, tip_y = to_x - along_x * (RADIUS + 1), to_y - along_y * (RADIUS + 1)
    back_x, back_y = tip_x - along_x * ARROW, tip_y - along_y * ARROW
    side_x, side_y = -along_y * ARROW / 2, along_x * ARROW / 2
    head = " ".join(
        f"{a:.1f},{b:.1f}"
        for a, b in ((tip_x, tip_y), (back_x + side_x, back_y + side_y), (back_x - side_x, back_y - side_y))
    )
    line = f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{back_x:.1f}" y2="{back_y:.1f}"/>'
    return f'<g class="copy {copy.kind}">{line}<polygon points="{head}"/></g>'


def _dot(dot: Dot, y: float) -> str:
    x = _x(dot.column)
    if dot.kind == "wait":
        return f'<text class="clock" x="{x:g}" y="{y + 5}">⏱</text>'
    parts = [f'<circle class="dot {dot.kind}" cx="{x:g}" cy="{y}" r="{RADIUS}"/>']
    if dot.kind == "early":
        parts.insert(0, f'<circle class="ring" cx="{x:g}" cy="{y}" r="{RADIUS + 5}"/>')
    parts.append(f'<text class="number {dot.kind}" x="{x:g}" y="{y + 4}">{escape(dot.label)}</text>')
    if dot.note:
        above = y + RADIUS + 16 if dot.kind == "early" else y - RADIUS - 7
        parts.append(f'<text class="note {dot.kind}" x="{x:g}" y="{above}">{escape(dot.note)}</text>')
    return "".join(parts)
