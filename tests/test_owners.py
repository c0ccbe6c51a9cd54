"""What belongs to a stack is changed by the stack: others call a method that says what happened."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "inga"

OTHERS = ("layers", "session", "objects", "corba", "net", "runs", "sim")
"""Rooms whose modules are given a stack."""

STACKS = frozenset({"stack", "_stack"})

MAY: dict[str, str] = {
    "net/group.py: trace": "a driver takes the trace away that it gave, as reading goes on after its end",
}
"""What is assigned from outside all the same, and why."""


def owners(target: ast.expr) -> Iterator[str]:
    """The names along a chain such as `self.stack.wire.also`, without the last."""
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
        if isinstance(target, ast.Attribute):
            yield target.attr
        elif isinstance(target, ast.Name):
            yield target.id


def targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to, one by one."""
    if isinstance(node, ast.Assign):
        found = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        found = [node.target]
    else:
        found = []
    while found:
        target = found.pop()
        if isinstance(target, ast.Tuple | ast.List):
            found += target.elts
        else:
            yield target


def assigned(root: Path, rooms: tuple[str, ...]) -> set[str]:
    """Attributes of stacks, and of what belongs to them, that modules of these rooms assign."""
    return {
        f"{path.relative_to(root)}: {target.attr}"
        for room in rooms
        for path in sorted((root / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_bytes()))
        for target in targets(node)
        if isinstance(target, ast.Attribute) and STACKS & {*owners(target)}
    }


def test_who_is_given_a_stack_assigns_none_of_its_attributes() -> None:
    found = assigned(SOURCE, OTHERS)
    assert sorted(found - MAY.keys()) == [], "let the owner have a method that says what happened"
    assert sorted(MAY.keys() - found) == [], "are gone"


def test_every_way_of_assigning_is_seen(tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "a.py").write_text(
        "class A:\n"
        "    def one(self, stack):\n"
        "        self.stack = stack\n"
        "        self.stack.a = 1\n"
        "        stack.b += 1\n"
        "        self._session.stack.wire.c, mine = 2, 3\n"
        "        self.stack.heard[0] = 4\n"
        "        stack.d: int = 5\n"
    )
    assert assigned(tmp_path, ("layers",)) == {f"layers/a.py: {name}" for name in "abcd"}
