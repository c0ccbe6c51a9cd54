"""What axe-core finds wrong with pages for people who do not see them well, or use no mouse.

axe-core is not part of this repository: `make packages` fetches it with npm, or AXE names its file.
"""

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (
    os.environ.get("AXE", ""),
    str(ROOT / "build/tools/node_modules/axe-core/axe.min.js"),
    str(ROOT / "node_modules/axe-core/axe.min.js"),
    "/usr/lib/node_modules/axe-core/axe.min.js",
)
RUN = """(rules) => axe.run({ resultTypes: ["violations"], ...(rules.length ? { runOnly: rules } : {}) }).then((found) =>
    found.violations.map((each) => [each.impact, each.id, each.nodes[0].html.slice(0, 200)]))"""
OF_SIGHT = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")
"""Rules of which colours and width make a difference; the others are the same on every screen."""

SCREENS: tuple[tuple[str, int, tuple[str, ...]], ...] = (("light", 1200, ()), ("dark", 390, OF_SIGHT))
"""Colours, width, and rules to look at, none for all."""


@pytest.fixture(scope="session")
def axe() -> str:
    """Its script."""
    found = next((Path(place) for place in PLACES if place and Path(place).is_file()), None)
    if found is None:
        pytest.skip("axe-core is not here: `make packages` fetches it, or AXE=its/axe.min.js")
    return found.read_text(encoding="utf-8")


def serious(page: Any, axe: str, rules: tuple[str, ...]) -> list[list[str]]:
    """What is serious or worse on a page as it is now: impact, rule, and the first element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    found = page.evaluate(RUN, list(rules))
    return [each for each in found if each[0] in ("serious", "critical")]
