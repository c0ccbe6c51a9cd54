"""Charts: what is larger is further along, and names do not lie on each other."""

import re
from xml.etree import ElementTree

import pytest

from inga.report.chart import HEIGHT, WIDTH, line_chart, log_chart


def dots(chart: str) -> list[tuple[float, float]]:
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', chart)
    return [(float(x), float(y)) for x, y in found]


@pytest.mark.parametrize("draw", [line_chart, log_chart])
def test_points_lie_within_and_in_their_order(draw: object) -> None:
    assert callable(draw)
    chart = draw("t", {"a <b>": [(1, 2), (10, 50), (100, 70)], "c": [(1, 90)]}, x="x", y="y")
    assert ElementTree.fromstring(chart).tag == "svg"
    (x1, y1), (x2, y2), (x3, y3), _ = dots(chart)
    assert 0 < x1 < x2 < x3 < WIDTH and HEIGHT > y1 > y2 > y3 > 0


def test_a_power_of_ten_is_the_same_step_everywhere() -> None:
    chart = log_chart("t", {"a": [(1000, 0.01), (10_000, 0.1), (100_000, 1)]}, x="bytes", y="s")
    (x1, y1), (x2, y2), (x3, y3) = dots(chart)
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2) and y2 - y1 == pytest.approx(y3 - y2, abs=0.2)
    assert ">10,000<" in chart and ">0.01<" in chart


def test_one_point_is_enough() -> None:
    assert len(dots(log_chart("t", {"a": [(10, 10)]}, x="x", y="y"))) == 1


def test_names_keep_apart() -> None:
    chart = log_chart("t", {"a": [(1, 1), (10, 10)], "b": [(1, 1), (10, 10.01)]}, x="x", y="y")
    ends = [float(each) for each in re.findall(r'y="([\d.]+)">[ab]<', chart)]
    assert abs(ends[0] - ends[1]) >= 14
