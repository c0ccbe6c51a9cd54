"""What is built from here and installed elsewhere: the wheel alone runs, and says what it lacks."""

import os
import re
import socket
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import inga

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 120

BUILD = "import sys; from hatchling.build import build_sdist, build_wheel; build_sdist(sys.argv[1]); build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, and the wheel unpacked, as pip does it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, check=True, timeout=SECONDS)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "unpacked")
    return folder


def alone(built: Path, *words: str) -> list[str]:
    """A command that finds the standard library and the wheel, and nothing else that is installed."""
    return [sys.executable, "-S", *words]


def environment(built: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(built / "unpacked")}


def test_what_is_in_it(built: Path) -> None:
    files = {
        str(path.relative_to(built / "unpacked"))
        for path in (built / "unpacked").rglob("*")
        if path.is_file()
    }
    assert "inga/py.typed" in files
    assert not [
        file for file in files if not file.startswith(("inga/", f"inga-{inga.__version__}.dist-info/"))
    ]
    about = message_from_bytes(
        (built / "unpacked" / f"inga-{inga.__version__}.dist-info" / "METADATA").read_bytes()
    )
    assert about["Version"] == inga.__version__ and about["Requires-Python"] == ">=3.11"
    assert [each for each in about.get_all("Requires-Dist") if "extra ==" not in each] == []
    assert {"trace", "spark", "java", "secure", "fast", "bench"} <= set(about.get_all("Provides-Extra"))


def test_the_source_distribution_has_what_the_makefile_needs(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "Makefile",
        "pyproject.toml",
        "README.md",
        "CONTRIBUTING.md",
        "CITATION.cff",
        "Containerfile",
        "LICENSE",
    }
    wanted |= {
        "requirements/test.txt",
        "requirements/site_of_docs.py",
        "docs/tutorial/1-first-group.md",
        "examples/todo.py",
    }
    assert wanted <= files


@pytest.mark.network
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sim --messages 20", "all promises kept"),
        ("live --members 2 --messages 50", "all promises kept"),
        ("--version", f"inga {inga.__version__}, interpreted"),
        ("completion bash", "complete -o default -F _inga inga"),
    ],
)
def test_the_wheel_alone_runs(built: Path, tmp_path: Path, words: str, said: str) -> None:
    done = subprocess.run(
        alone(built, "-m", "inga", *words.split()),
        cwd=tmp_path, env=environment(built), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(said)


@pytest.mark.network
def test_the_wheel_alone_runs_the_first_program(built: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = re.search(r"```python\n(# lunch\.py.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found
    (tmp_path / "lunch.py").write_text(found[1].replace("7400", str(port)))
    people = ("alice", "bob", "cathy")
    started = [
        subprocess.Popen(
            alone(built, "lunch.py", name),
            cwd=tmp_path,
            env=environment(built),
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in people
    ]
    heard = [process.communicate(timeout=SECONDS)[0].splitlines() for process in started]
    assert [sorted(lines) for lines in heard] == [
        [f"{other}: {other} is hungry" for other in people if other != name] for name in people
    ]


def test_help_imports_next_to_nothing() -> None:
    """It is to be there at once."""
    program = "import sys\nfrom inga.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "inga.cli.main" in loaded
    assert not loaded & {
        "asyncio",
        "socket",
        "importlib.metadata",
        "numpy",
        "pyspark",
        "inga.net",
        "inga.recipes",
        "difflib",
    }
