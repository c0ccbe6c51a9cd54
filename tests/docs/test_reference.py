"""The public API is what the reference says: complete, described, and typed for those who use it."""

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import inga
from inga.net.log import EVENTS

from .reference import DOCS, MODULES, PAGES, doc, is_error, members, public, signature

ROOT = DOCS.parent
SECONDS = 300


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_made_from_the_code(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    if sys.version_info[:2] != (3, 11) and page == "reference/commands.md":
        pytest.skip("argparse words its help differently from version to version")
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), (
        "python tests/docs/reference.py writes it"
    )


def test_a_signature_is_whole() -> None:
    """Defaults that are functions are left out, and nothing behind them; `cls` may be an argument like any other."""

    def each(cls: type, show: Callable[[str], None] = print, more: Any = lambda: None) -> list[int]: ...

    written = "each(cls: type, show: Callable[[str], None] = ..., more: Any = ...) -> list[int]"
    assert signature("each", each) == written
    assert '"<", ">"' in signature("relation", inga.relation)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_says_what_it_is(module: str) -> None:
    found = [(name, value) for name, value in public(import_module(module)) if hasattr(value, "__module__")]
    silent = [name for name, value in found if callable(value) and not doc(value)]
    silent += [
        f"{name}.{each}"
        for name, value in found
        if inspect.isclass(value)
        for each, method in members(value)
        if not doc(method)
    ]
    assert silent == []


def test_type_checkers_see_what_the_interpreter_finds() -> None:
    """The imports under TYPE_CHECKING and the table of homes name the same things, and `__all__` names them all."""
    tree = ast.parse(Path(inga.__file__).read_bytes())
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    shown = {
        alias.asname: node.module
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert shown == inga._HOMES  # type: ignore[attr-defined]
    assert {*inga.__all__} - {"__version__"} == set(shown)
    assert all(hasattr(inga, name) for name in inga.__all__)


def test_every_error_has_a_section() -> None:
    errors = [name for name, value in public(inga) if is_error(value)]
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == errors


def test_every_notice_is_explained() -> None:
    text = (DOCS / "reference" / "notices.md").read_text(encoding="utf-8")
    first_cells = " ".join(re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE))
    assert set(re.findall(r"`(\w+\.\w+)`", first_cells)) == set(EVENTS)


RIGHT = """
import asyncio

import inga
import inga.pipeline
from inga.obg import Context, ObjectClass, method
from inga.sim import Sim


class Counter(ObjectClass):
    def initial(self) -> int:
        return 0

    @method(compatible=("inc",))
    async def inc(self, ctx: Context, k: int = 1) -> None:
        ctx.effect(lambda total: total + k)


async def main() -> None:
    async with inga.join("lunch", "alice", members=["alice", "bob"], trace="run1", detect=2.0) as group:
        receipt: inga.LiveReceipt = await group.send(b"hello", to=group.all_but("bob"))
        await receipt.reached("confirmed")
        async for delivery in group:
            name: str = delivery.sender
            print(name, bytes(delivery.data), delivery.concurrent)
        async for item in group.items():
            if isinstance(item, inga.View):
                print(item.names)


sim = Sim("alice", "bob", order="causal", seed=1)
sim["alice"].send(b"hello")
verdict: str = inga.pipeline.check_local("run1").verdict
version: str = inga.__version__
inga.run(main())
"""

WRONG = """
import inga
import inga.pipeline


async def main() -> None:
    inga.join("lunch", "alice").send(b"hello")
    async with inga.join("lunch", "alice", oder="causal") as group:
        await group.send("hello")
        await group.send(b"hello", 3)
        async for delivery in group:
            print(delivery.sendr)
    inga.jion("lunch", "alice")
    inga.pipeline.chek("run1")
    inga.run(main)
"""

COMPLAINTS = ("send", "oder", '"str"; expected "bytes"', '"int"', "sendr", "jion", "chek", "run")
"""What is wrong with each line of `WRONG` that is, in its order."""


def test_mypy_checks_a_users_program(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text(WRONG)
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--no-pretty",
            f"--cache-dir={tmp_path}", "--disable-error-code=import-untyped", "--hide-error-context",
            str(right), str(wrong),
        ],
        capture_output=True, text=True, timeout=SECONDS, check=False, env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in errors if "wrong.py" not in line] == []
    assert len(errors) == len(COMPLAINTS), done.stdout
    assert all(word in line for word, line in zip(COMPLAINTS, errors, strict=True)), done.stdout
