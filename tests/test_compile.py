"""The copy that is compiled is made when it has to be, and only then; where that fails, there is none, and a notice says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "requirements" / "compile.py"


class Tree:
    """A source tree with one module in a room, and what became of it."""

    def __init__(self, top: Path) -> None:
        self.top, self.folder = top, top / "build"
        self.module = top / "src" / "inga" / "model" / "one.py"
        self.module.parent.mkdir(parents=True)
        for package in self.module.parents[:2]:
            (package / "__init__.py").touch()
        (top / "pyproject.toml").write_text("[tool.mypy]\nexplicit_package_bases = true\n")
        self.says("answer", "int", "41")

    def says(self, name: str, kind: str, what: str) -> None:
        self.module.write_text(f"def {name}() -> {kind}:\n    return {what}\n")

    def compiled(self, **environment: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, SCRIPT, self.folder],
            cwd=self.top,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    def answers(self) -> tuple[str, str]:
        """What runs with the copy before the sources: the answer, and from which kind of file."""
        path = os.pathsep.join(map(str, (self.folder, self.top / "src")))
        program = "from inga.model import one; print(one.answer(), one.__file__)"
        command = [sys.executable, "-P", "-c", program]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        answer, file = done.stdout.split()
        return answer, Path(file).suffix


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_without_a_compiler_there_is_a_notice_and_no_copy(tree: Tree) -> None:
    (tree.folder / "inga").mkdir(parents=True)  # of before
    (tree.folder / "inga" / "__init__.py").touch()
    code, said, notice = tree.compiled(CC="no-such-compiler")
    assert (code, said) == (2, "")
    assert notice == (
        "inga is not compiled and runs interpreted: there is no C compiler 'no-such-compiler'\n"
    )
    assert tree.answers() == ("41", ".py")


def test_what_is_edited_is_compiled_again_and_nothing_else(tree: Tree) -> None:
    code, said, notice = tree.compiled()
    if code == 2:
        pytest.skip(notice)
    assert (code, said.splitlines()) == (
        0,
        ["Compiling the protocol rooms, a minute or so after each change of the source."],
    )
    assert tree.answers() == ("41", ".so")
    tree.module.touch()
    assert tree.compiled() == (0, "", "")

    tree.says("answer", "int", "42")
    assert tree.compiled()[0] == 0
    assert tree.answers() == ("42", ".so")

    tree.says("answer", "str", "43")  # which is none
    code, said, notice = tree.compiled()
    assert (code, notice) == (
        1,
        f"inga could not be compiled and runs interpreted: mypyc says why in {tree.folder / '.made' / 'log'}\n",
    )
    assert "one.py:2: error" in (tree.folder / ".made" / "log").read_text()
    assert tree.answers() == ("43", ".py")
    assert tree.compiled() == (1, "", notice), "is not tried again"


def test_a_compiler_that_fails_is_named(tree: Tree) -> None:
    code, _, notice = tree.compiled(CC="false")
    if code == 2:
        pytest.skip(notice)
    assert (code, "could not be compiled and runs interpreted: false says why in" in notice) == (1, True)
    assert tree.answers() == ("41", ".py")
