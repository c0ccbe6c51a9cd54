"""Every Python snippet of the README, the tutorial and the how-to pages runs, and every internal link leads somewhere.

A block that begins with `# NAME.py` is a file of that name; all other blocks of a page are one program, run from top to bottom.
Files are started as their page says, each process for itself.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
]
SECONDS = 60

SPARK = {"4-spark.md"}
"""Pages whose program wants a Spark session: tests/pipeline/test_snippets.py runs them."""

THREE = [["alice"], ["bob"], ["cathy"]]
TWO = THREE[:2]
STARTED: dict[str, tuple[list[list[str]], str]] = {
    "lunch.py": (THREE, r"cathy: cathy is hungry"),
    "poll.py": (THREE, r"alice hears cathy: yes to curry"),
    "hits.py": (THREE, r"alice: 15"),
    "named.py": (TWO, r"alice hears hello from bob"),
    "found.py": ([["alice", "127.0.0.1:7411"], ["bob", "127.0.0.1:7412"]], r"bob hears hello from alice"),
    "ask.py": ([["boss"], ["ann"], ["ben"]], r"\['TEA\?', 'CAKE\?'\]"),
    "sealed.py": (TWO, r"bob hears hello from alice"),
    "watched.py": (TWO, r"alice: here \('alice', 'bob'\), waits \{.*\}, rejected \{.*\}"),
}
"""Files that end by themselves: how they are started together, and a line that one of them prints."""

KILLED = {
    "members.py": (THREE, r"alice: alice bob cathy", 1, r"(alice|cathy): alice cathy; failed: bob"),
    "todo.py": ([["alice", "bread", "milk"], ["bob"]], r"alice: bread, milk", 0, ""),
    "crash.py": (THREE, r"alice: with alice bob cathy", 1, r"(alice|cathy): lost bob"),
}
"""Files that run until they are ended: a line that is awaited, who is killed then, and what the others print."""


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def file_name(block: str) -> str | None:
    found = re.match(r"# (\w+\.py)\n", block)
    return found[1] if found else None


FILES = {name: block for page in PAGES for block in blocks(page) if (name := file_name(block))}
PROGRAMS = [
    page for page in PAGES if page.name not in SPARK and any(file_name(b) is None for b in blocks(page))
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def placed(block: str, ports: dict[str, str]) -> str:
    """With ports that no other test uses, the same for the same number of the page."""
    return re.sub(r"\b74\d\d\b", lambda found: ports.setdefault(found[0], str(free_port())), block)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    command = [sys.executable, "-m", "inga", "keys", "secret", "lunch.secret"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=SECONDS)
    return tmp_path


class Started:
    """Processes of one file, and what they print."""

    def __init__(self, folder: Path, name: str, arguments: list[list[str]]) -> None:
        ports: dict[str, str] = {}
        (folder / name).write_text(placed(FILES[name], ports))
        self.outputs = [folder / f"{number}.txt" for number in range(len(arguments))]
        self.processes = []
        for words, output in zip(arguments, self.outputs, strict=True):
            with output.open("w") as file:
                command = [sys.executable, name, *(placed(word, ports) for word in words)]
                self.processes.append(
                    subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT)
                )

    @property
    def text(self) -> str:
        return "".join(output.read_text() for output in self.outputs)

    def hear(self, pattern: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def started(folder: Path) -> Iterator[list[Started]]:
    all_of_them: list[Started] = []
    yield all_of_them
    for each in all_of_them:
        each.end()


def test_every_file_of_a_page_is_tried() -> None:
    assert set(FILES) == {*STARTED, *KILLED}


@pytest.mark.network
@pytest.mark.parametrize("name", STARTED)
def test_a_file_of_a_page_does_what_it_says(name: str, folder: Path, started: list[Started]) -> None:
    arguments, line = STARTED[name]
    group = Started(folder, name, arguments)
    started.append(group)
    codes = [process.wait(SECONDS) for process in group.processes]
    assert codes == [0] * len(arguments), group.text
    assert re.search(line, group.text), group.text
    if (folder / "run1").exists():
        command = [sys.executable, "-m", "inga", "check", "run1", "--engine", "local", "--quiet"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0 and "verdict: pass" in done.stdout, done.stdout + done.stderr


@pytest.mark.network
@pytest.mark.parametrize("name", KILLED)
def test_a_file_of_a_page_goes_on_when_one_is_killed(name: str, folder: Path, started: list[Started]) -> None:
    arguments, line, victim, then = KILLED[name]
    group = Started(folder, name, arguments)
    started.append(group)
    group.hear(line)
    if then:
        for output in group.outputs:  # so that nobody is killed who is not there yet
            group.hear(f"{arguments[group.outputs.index(output)][0]}: ")
        group.processes[victim].send_signal(signal.SIGKILL)
        group.hear(then)
    for number, process in enumerate(group.processes):
        if not then or number != victim:
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 128 + signal.SIGTERM


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.name)
def test_the_program_of_a_page_runs(page: Path, folder: Path) -> None:
    source = ["from inga.sim.trials import simulate_trial", "from inga.trial.trial import Trial",
              "simulate_trial(Trial('causal', 3, 5), trace='run1')"] if "run1" in page.read_text() else []  # fmt: skip
    program = "\n".join([*source, *(block for block in blocks(page) if file_name(block) is None)])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def linking() -> list[Path]:
    tops = list(ROOT.glob("*.md"))
    return sorted(
        [*tops, *(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md", ROOT / "bench" / "README.md"]
    )


def anchors(page: Path) -> set[str]:
    """Of headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", linking(), ids=lambda page: str(page.relative_to(ROOT)))
def test_internal_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "", text)
    wrong = []
    for target in LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            wrong.append(target)
    assert wrong == []


def site() -> ModuleType:
    sys.path.insert(0, str(ROOT / "requirements"))
    try:
        return import_module("site_of_docs")
    finally:
        sys.path.pop(0)


def test_every_page_is_in_the_navigation_once() -> None:
    made = site()
    placed_pages = [page for pages in made.parts().values() for page in pages]
    assert len(placed_pages) == len(set(placed_pages))
    assert {*placed_pages, made.HOME} == set(made.pages())
    assert {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} <= {
        *placed_pages
    }


def test_what_pages_link_to_is_on_the_site() -> None:
    made = site()
    there = {*made.made(), *made.assets()}
    lost = []
    for page in linking():
        text = re.sub(
            r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
        )
        for target in LINK.findall(text):
            path = target.partition("#")[0]
            if path and "://" not in target and not target.startswith("mailto:"):
                file = (page.parent / path).resolve().relative_to(ROOT).as_posix()
                if not file.startswith("docs/") and file not in there:
                    lost.append(f"{page.relative_to(ROOT)}: {target}")
    assert lost == []
