"""A class is one thing that a reader can hold in mind; what has more methods than this is several."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "inga"

METHODS_MAX = 40
"""Methods that a class itself defines, properties and private ones included."""


def methods_of(root: Path) -> Iterator[tuple[str, int]]:
    """Every class under a folder, and how many methods it defines."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                methods = [
                    each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
                yield f"{path.relative_to(root)}: {node.name}", len(methods)


def test_no_class_has_more_methods_than_a_reader_can_hold_in_mind() -> None:
    assert {name: count for name, count in methods_of(SOURCE) if count > METHODS_MAX} == {}


def test_every_method_counts(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "class A:\n"
        "    x = 1\n"
        "    def one(self): ...\n"
        "    @property\n"
        "    def _two(self): ...\n"
        "    async def three(self):\n"
        "        def inner(): ...\n"
        "    class B(A):\n"
        "        def four(self): ...\n"
    )
    assert dict(methods_of(tmp_path)) == {"a.py: A": 3, "a.py: B": 1}
