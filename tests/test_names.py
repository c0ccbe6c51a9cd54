"""One public name, one meaning: a reader who meets a class or a type in an error or an import knows which it is."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "inga"


def types_of(module: ast.Module) -> Iterator[str]:
    """Public classes and type aliases of a module. Type variables mean something only where they stand."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            is_variable = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "TypeVar"
            name = target.id if isinstance(target, ast.Name) and not is_variable else ""
        else:
            continue
        if name[:1].isupper() and not name.isupper():
            yield name


def shared_names(root: Path) -> dict[str, list[str]]:
    """Names that more than one module defines, and which modules these are."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        for name in types_of(ast.parse(path.read_bytes())):
            homes[name].append(str(path.relative_to(root)))
    return {name: found for name, found in homes.items() if len(found) > 1}


def test_a_public_type_is_defined_once() -> None:
    assert shared_names(SOURCE) == {}


def test_a_class_and_an_alias_of_one_name_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Row: ...\nclass _Own: ...\nItem = TypeVar('Item')\nMAX = 1\n")
    (tmp_path / "b.py").write_text(
        "Row = tuple[int, ...]\nclass _Own: ...\nItem = TypeVar('Item')\nMAX = 2\n"
    )
    assert shared_names(tmp_path) == {"Row": ["a.py", "b.py"]}
