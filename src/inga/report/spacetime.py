"""Small space-time pictures: members as lines, time to the right, copies as arrows.

A picture is drawn from places on a grid, column by column, not from rows of a trace: it is for a handful of
events, each of which matters. For traces there is the viewer of `page`.

    dot    an event: sent, delivered, delivered too early
    copy   a message in flight
    bar    a message that waits: held, in the queue, or held for ever
"""

from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from math import hypot
from typing import NamedTuple

from inga.report.chart import Point

COLUMN, LANE = 50, 68  # distances between columns and between lanes
LEFT, RIGHT, TOP, BOTTOM = 84, 92, 42, 28  # margins
RADIUS = 10
SLOT = 24  # between bars of one lane
ARROW = 7
BENDS = (0, 30, -30, 60, -60, 90)  # by how much an arrow may be curved, tried in this order
CURVE_STEPS = 24

PASSABLE = {"wait", "mark"}  # dots that cover nothing


class Dot(NamedTuple):
    """An event on a lane. Kinds: send, deliver, flagged, early, wait, mark."""

    lane: int
    column: float
    label: str
    kind: str
    note: str = ""  # a few words beside it


class Copy(NamedTuple):
    """A copy of a message from lane to lane. Kinds: plain, late, double, header."""

    source: int
    left: float
    target: int
    arrived: float
    kind: str = "plain"


class Bar(NamedTuple):
    """A message that waits on a lane. Kinds: held, queued, blocked. Without an end (`last`) it waits for ever."""

    lane: int
    first: float
    last: float | None
    label: str
    kind: str
    words: str


@dataclass(slots=True)
class Diagram:
    """The content of a picture. `ends` are for each lane the lines of text at its right end, and whether they are bad news."""

    lanes: list[str]
    columns: int
    title: str
    dots: list[Dot] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    ends: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)


def style() -> str:
    """The CSS for the classes of a picture; the colours are variables of the surrounding page."""
    return files("inga.report").joinpath("spacetime.css").read_text(encoding="utf-8")


def draw(diagram: Diagram, *, alone: bool = False) -> str:
    """The picture as an SVG element; with `alone`, as the content of a file, with its own colours."""
    frame = _Frame(diagram)
    parts = [
        *frame.lines(),
        *map(frame.bar, diagram.bars),
        *map(frame.copy, diagram.copies),
        *map(frame.head, diagram.bars),
        *map(frame.dot, diagram.dots),
    ]
    width, height = f"{frame.width:g}", f"{frame.height:g}"
    head = (
        f'<svg class="spacetime" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    )
    if alone:
        head += ' xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif"'
        paper = f'<rect class="paper" width="{width}" height="{height}"/>'
        parts = [f"<style>{_alone()}</style>", paper, *parts]
    return f"{head}><title>{escape(diagram.title)}</title>\n" + "\n".join(parts) + "\n</svg>"


def levels(diagram: Diagram) -> list[float]:
    """The y coordinate of each lane."""
    return _Frame(diagram).levels[: len(diagram.lanes)]


def draw_sign(diagram: Diagram) -> str:
    """The events on the first lane only, without its line and name: for a legend."""
    frame = _Frame(diagram)
    parts = [
        *map(frame.bar, diagram.bars),
        *map(frame.copy, diagram.copies),
        *map(frame.head, diagram.bars),
        *map(frame.dot, diagram.dots),
    ]
    width, height = diagram.columns * COLUMN - 16, 2 * RADIUS + 14
    place = f"{LEFT + 8} {TOP - RADIUS - 7} {width} {height}"
    size = f'viewBox="{place}" width="{width}" height="{height}"'
    return f'<svg class="spacetime" aria-hidden="true" {size}>{"".join(parts)}</svg>'


def _alone() -> str:
    """The CSS for a picture in a file of its own: the page's colours, and the style."""
    css = files("inga.report").joinpath("page.css").read_text(encoding="utf-8")
    colours = css[: css.index("* {")].replace(":root", "svg")
    return colours + style()


class _Frame:
    """The coordinates of a picture, and its elements as SVG."""

    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        self._slots = _slots(diagram)
        lanes = range(len(diagram.lanes))
        depths = [
            max((self._slots[bar] for bar in diagram.bars if bar.lane == lane), default=0) for lane in lanes
        ]
        self.levels = [float(TOP)]
        for depth in depths:
            self.levels.append(self.levels[-1] + LANE + depth * SLOT)
        self._end = LEFT + diagram.columns * COLUMN
        self.width = self._end + RIGHT
        self.height = self.levels[-1] - LANE + RADIUS + BOTTOM
        dots = (dot for dot in diagram.dots if dot.kind not in PASSABLE)
        self._obstacles = {(x_of(dot.column), self.levels[dot.lane]) for dot in dots}
        self._obstacles |= {(x_of(bar.first), self._y(bar)) for bar in diagram.bars}

    def lines(self) -> list[str]:
        parts = []
        for lane, name in enumerate(self._diagram.lanes):
            y = self.levels[lane]
            parts.append(f'<line class="lane" x1="{LEFT - 8}" x2="{self._end:g}" y1="{y:g}" y2="{y:g}"/>')
            parts.append(f'<text class="name" x="{LEFT - 16}" y="{y + 5:g}">{escape(name)}</text>')
            words, is_bad = self._diagram.ends[lane] if lane < len(self._diagram.ends) else ((), False)
            for line, text in enumerate(words):
                kind, below = "end bad" if is_bad else "end", y + 5 + 15 * line
                parts.append(
                    f'<text class="{kind}" x="{self._end + 10:g}" y="{below:g}">{escape(text)}</text>'
                )
        return parts

    def bar(self, bar: Bar) -> str:
        left, y = x_of(bar.first), self._y(bar)
        right = self._end - 4 if bar.last is None else x_of(bar.last)
        size = f'x="{left:g}" y="{y - 7:g}" width="{right - left:g}" height="14" rx="7"'
        words = ""
        if right - left > 6.5 * len(bar.words) + 3 * RADIUS:
            words = f'<text class="word {bar.kind}" x="{left + RADIUS + 5:g}" y="{y + 4:g}">{escape(bar.words)}</text>'
        return f'<rect class="bar {bar.kind}" {size}/>{words}'

    def head(self, bar: Bar) -> str:
        """The label of the message, in a circle at the beginning of the bar."""
        x, y = x_of(bar.first), self._y(bar)
        circle = f'<circle class="head {bar.kind}" cx="{x:g}" cy="{y:g}" r="{RADIUS - 1}"/>'
        return circle + f'<text class="number {bar.kind}" x="{x:g}" y="{y + 4:g}">{escape(bar.label)}</text>'

    def copy(self, copy: Copy) -> str:
        """An arrow; curved if a straight one would cross dots or bars between its ends."""
        start = x_of(copy.left), self.levels[copy.source]
        end = x_of(copy.arrived), self._arrival(copy)
        bend = next((bend for bend in BENDS if self._is_free(start, end, bend)), 0)
        over = _over(start, end, bend)
        length = hypot(end[0] - over[0], end[1] - over[1]) or 1.0
        along_x, along_y = (end[0] - over[0]) / length, (end[1] - over[1]) / length
        tip_x, tip_y = end[0] - along_x * (RADIUS + 1), end[1] - along_y * (RADIUS + 1)
        back_x, back_y = tip_x - along_x * ARROW, tip_y - along_y * ARROW
        side_x, side_y = -along_y * ARROW / 2, along_x * ARROW / 2
        corners = (tip_x, tip_y), (back_x + side_x, back_y + side_y), (back_x - side_x, back_y - side_y)
        head = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        way = f"M{start[0]:.1f} {start[1]:.1f}Q{over[0]:.1f} {over[1]:.1f} {back_x:.1f} {back_y:.1f}"
        return f'<g class="copy {copy.kind}"><path d="{way}"/><polygon points="{head}"/></g>'

    def _is_free(self, start: Point, end: Point, bend: float) -> bool:
        """Whether an arrow with this bend touches no dot and no bar, except at its ends."""
        over = _over(start, end, bend)
        others = self._obstacles - {start, end}
        points = [_on_curve(start, over, end, step / CURVE_STEPS) for step in range(1, CURVE_STEPS)]
        return all(hypot(x - a, y - b) > RADIUS + 3 for x, y in points for a, b in others)

    def dot(self, dot: Dot) -> str:
        x, y = x_of(dot.column), self.levels[dot.lane]
        if dot.kind == "wait":
            hands = f"M{x:g} {y - 27:g}v5h4"
            return f'<g class="clock"><circle cx="{x:g}" cy="{y - 22:g}" r="7"/><path d="{hands}"/></g>'
        if dot.kind == "mark":
            tick = f'<line class="tick" x1="{x:g}" x2="{x:g}" y1="{y - 8:g}" y2="{y + 8:g}"/>'
            return f'{tick}<text class="note" x="{x:g}" y="{y - 14:g}">{escape(dot.note)}</text>'
        parts = [f'<circle class="dot {dot.kind}" cx="{x:g}" cy="{y:g}" r="{RADIUS}"/>']
        if dot.kind == "early":
            parts.insert(0, f'<circle class="ring" cx="{x:g}" cy="{y:g}" r="{RADIUS + 5}"/>')
        parts.append(f'<text class="number {dot.kind}" x="{x:g}" y="{y + 4:g}">{escape(dot.label)}</text>')
        if dot.note:
            beside = y - RADIUS - 8 if dot.kind == "send" else y + RADIUS + 16
            parts.append(f'<text class="note {dot.kind}" x="{x:g}" y="{beside:g}">{escape(dot.note)}</text>')
        return "".join(parts)

    def _y(self, bar: Bar) -> float:
        return self.levels[bar.lane] + self._slots[bar] * SLOT

    def _arrival(self, copy: Copy) -> float:
        """The y coordinate at which a copy arrives: on the lane, or at a bar beneath it if the copy has to wait."""
        bars = self._diagram.bars
        waits = (bar for bar in bars if (bar.lane, bar.first) == (copy.target, copy.arrived))
        bar = next(waits, None)
        return self.levels[copy.target] if bar is None else self._y(bar)


def _over(start: Point, end: Point, bend: float) -> Point:
    """The control point of a curve: beside the middle of its ends, at the distance `bend`."""
    across, down = end[0] - start[0], end[1] - start[1]
    length = hypot(across, down) or 1.0
    return (start[0] + end[0]) / 2 - down / length * bend, (start[1] + end[1]) / 2 + across / length * bend


def _on_curve(start: Point, over: Point, end: Point, part: float) -> Point:
    rest = 1 - part
    weights = rest * rest, 2 * rest * part, part * part
    xs, ys = zip(start, over, end, strict=True)
    return sum(w * x for w, x in zip(weights, xs, strict=True)), sum(
        w * y for w, y in zip(weights, ys, strict=True)
    )


def x_of(column: float) -> float:
    return LEFT + (column + 0.5) * COLUMN


def _slots(diagram: Diagram) -> dict[Bar, int]:
    """The row of each bar below its lane. Bars that overlap are in different rows, and below dots that would cover them."""
    slots: dict[Bar, int] = {}
    for bar in sorted(diagram.bars, key=lambda each: each.first):
        taken = {slots[other] for other in slots if other.lane == bar.lane and _overlap(other, bar)}
        above = {dot.kind for dot in diagram.dots if dot.lane == bar.lane and _is_within(dot.column, bar)}
        if above - PASSABLE:
            taken |= {0, 1} if "early" in above else {0}  # an early dot has a note below it
        slots[bar] = next(slot for slot in range(len(diagram.bars) + 2) if slot not in taken)
    return slots


def _is_within(column: float, bar: Bar) -> bool:
    return bar.first <= column and (bar.last is None or column < bar.last)


def _overlap(one: Bar, other: Bar) -> bool:
    return (one.last is None or other.first <= one.last) and (other.last is None or one.first <= other.last)
