"""Every test that docs/security.md names is there, and every attack that is tested is named."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
TESTS = ROOT / "tests" / "secure"
LIVE = ROOT / "tests" / "net"
SESSION = ROOT / "tests" / "session"
BENCH = ROOT / "tests" / "lab" / "test_hostile.py"


def named_in(path: Path) -> set[str]:
    found = ast.parse(path.read_bytes()).body
    return {
        node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_the_list_of_attacks_is_that_of_the_tests() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    there = set().union(
        *map(named_in, [*TESTS.glob("test_*.py"), *LIVE.glob("test_*.py"), *SESSION.glob("test_*.py"), BENCH])
    )
    assert named - there == set()
    assert named_in(TESTS / "test_attacks.py") - named == set()
