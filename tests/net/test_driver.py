"""The driver between sockets, stack and application: what it leaves alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import inga

SOURCE = Path(inga.__file__).parent


def written(path: Path) -> Iterator[str]:
    """The attributes of stacks that a module writes."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.lstrip("_") == "stack":
                yield node.attr


def test_drivers_write_nothing_into_a_stack_but_the_trace_that_they_lend() -> None:
    found = {attribute for path in sorted((SOURCE / "net").rglob("*.py")) for attribute in written(path)}
    assert found == {"trace"}
