"""Small line charts as SVG, for pages that load no other file."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

Point = tuple[float, float]

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 92, 28, 40
CROWD = 20
"""From so many numbers along the x axis on, only round ones are labelled."""
COLOURS = ("#3056d3", "#b45f00", "#117a4b", "#c0262d", "#7a3ec8", "#5b6474", "#0e7490")
COLOURS_DARK = ("#8aa4ff", "#f5a742", "#5ad19a", "#ff8086", "#c39bff", "#98a2b3", "#4fc3d9")
"""Colours of lines and their names, which are readable on a light and on a dark background, respectively."""


def _classes(colours: Sequence[str]) -> str:
    return " ".join(
        [f".chart .line-{number} {{ color: {colour}; }}" for number, colour in enumerate(colours)]
    )


STYLE = (
    f"""
{_classes(COLOURS)}
@media screen and (prefers-color-scheme: dark) {{ {_classes(COLOURS_DARK)} }}
"""
    """
.chart { max-width: 100%; height: auto; }
.chart text { font: 12px system-ui, sans-serif; fill: var(--muted); }
.chart .series text { font-weight: 600; fill: currentColor; }
.chart .series polyline { stroke: currentColor; fill: none; stroke-width: 2; }
.chart .series circle { fill: currentColor; }
@media (max-width: 48rem) { .chart { overflow: visible; } .chart text { font-size: 15px; } }
.chart .axis line { stroke: var(--line); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 1rem; }
.charts figure { margin: 0; }
.charts figcaption { font-size: .88rem; color: var(--muted); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
"""
)


def line_chart(title: str, series: Mapping[str, Sequence[Point]], *, x: str, y: str) -> str:
    """A chart with one line per series, named at its end. Axes begin at 0."""
    points = [point for line in series.values() for point in line]
    x_max = max(point[0] for point in points)
    y_step = _step(max(point[1] for point in points))
    y_max = y_step * -(-max(point[1] for point in points) // y_step)

    def place(point: Point) -> tuple[float, float]:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * point[0] / x_max,
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * point[1] / y_max,
        )

    return _drawn(title, series, place, _axes(x_max, y_max, y_step, x, y, place))


def log_chart(title: str, series: Mapping[str, Sequence[Point]], *, x: str, y: str) -> str:
    """The same with logarithmic axes, from one power of ten to another. All values must be above 0."""
    points = [point for line in series.values() for point in line]
    lows = [floor(log10(min(point[axis] for point in points))) for axis in (0, 1)]
    highs = [max(ceil(log10(max(point[axis] for point in points))), lows[axis] + 1) for axis in (0, 1)]

    def place(point: Point) -> tuple[float, float]:
        along, up = ((log10(point[axis]) - lows[axis]) / (highs[axis] - lows[axis]) for axis in (0, 1))
        return LEFT + (WIDTH - LEFT - RIGHT) * along, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * up

    parts = ['<g class="axis">']
    levels = (10.0**power for power in range(lows[1], highs[1] + 1))
    parts += (_level(value, place((10.0 ** lows[0], value))[1]) for value in levels)
    for power in range(lows[0], highs[0] + 1):
        along, at = place((10.0**power, 10.0 ** lows[1]))
        parts.append(
            f'<text x="{along:.1f}" y="{at + 18:.1f}" text-anchor="middle">{10.0**power:,.10g}</text>'
        )
    return _drawn(title, series, place, [*parts, *_labels(x, y)])


def _drawn(
    title: str,
    series: Mapping[str, Sequence[Point]],
    place: Callable[[Point], tuple[float, float]],
    axes: list[str],
) -> str:
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        *axes,
    ]
    ends = _apart({name: place(line[-1])[1] for name, line in series.items()})
    for number, (name, line) in enumerate(series.items()):
        places = [place(point) for point in line]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        dots = "".join(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3"/>' for px, py in places)
        parts.append(
            f'<g class="series line-{number % len(COLOURS)}"><polyline points="{path}"/>{dots}'
            f'<text x="{places[-1][0] + 8:.1f}" y="{ends[name] + 4:.1f}">{escape(name)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def _axes(x_max: float, y_max: float, y_step: float, x: str, y: str, place: object) -> list[str]:
    assert callable(place)
    parts = ['<g class="axis">']
    value = 0.0
    while value <= y_max + 1e-9:
        parts.append(_level(value, place((0, value))[1]))
        value += y_step
    for number in range(0, int(x_max) + 1, 1 if x_max < CROWD else int(_step(x_max))):
        along, at = place((number, 0))
        parts.append(f'<text x="{along:.1f}" y="{at + 18:.1f}" text-anchor="middle">{number}</text>')
    return [*parts, *_labels(x, y)]


def _level(value: float, at: float) -> str:
    """A horizontal line across the chart, and its number."""
    return (
        f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>'
        f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>'
    )


def _labels(x: str, y: str) -> list[str]:
    """The names of the axes. Also closes their group element."""
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [
        f'<text x="{middle:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x)}</text>',
        f'<text x="{LEFT - 40}" y="{TOP - 16}">{escape(y)}</text></g>',
    ]


def _step(largest: float) -> float:
    """A round number that divides the axis into three to seven parts."""
    step = 10.0 ** len(str(int(largest))) / 10
    for part in (0.1, 0.2, 0.5, 1.0, 2.0):
        if largest / (step * part) <= 7:
            return step * part
    return step * 5


def _apart(wanted: Mapping[str, float], least: float = 14.0) -> dict[str, float]:
    """The heights of names, moved down where they would overlap."""
    placed: dict[str, float] = {}
    last = -least
    for name, at in sorted(wanted.items(), key=lambda item: item[1]):
        last = placed[name] = max(at, last + least)
    return placed
