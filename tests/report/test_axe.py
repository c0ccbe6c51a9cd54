"""What axe-core finds wrong with the page for people who do not see it well, or use no mouse.

axe-core is not part of this repository: `npm install --no-save axe-core` puts it into `node_modules`, or AXE names its file.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from inga.report.page import render

from .opened import Opened, browser_test
from .test_page import lunch, measured

ROOT = Path(__file__).parents[2]
PLACES = (
    os.environ.get("AXE", ""),
    str(ROOT / "node_modules/axe-core/axe.min.js"),
    "/usr/lib/node_modules/axe-core/axe.min.js",
)
RUN = "() => axe.run().then((found) => found.violations.map((each) => [each.impact, each.id, each.nodes[0].html.slice(0, 120)]))"


@browser_test
def test_nothing_serious(browser: Any, tmp_path: Path) -> None:
    axe = next((Path(place) for place in PLACES if place and Path(place).is_file()), None)
    if axe is None:
        pytest.skip("axe-core is not installed: npm install axe-core, or AXE=its/axe.min.js")
    path = tmp_path / "report.html"
    path.write_text(render([measured(), lunch()], made="by inga"), encoding="utf-8")
    for colours in ("light", "dark"):
        page = Opened(browser, path, colours=colours).page
        page.wait_for_selector("html[data-opened]", state="attached")
        page.evaluate(axe.read_text(encoding="utf-8"))
        found = page.evaluate(RUN)
        assert [each for each in found if each[0] in ("serious", "critical")] == []
        page.close()
