"""What helps a person who types: suggestions, completion, colours, one sentence for what is not installed."""

import io
import re
import shutil
import subprocess
import sys
from functools import cache

import pytest

from inga.cli.main import COMMANDS, main
from inga.cli.output import ProgressLine, has_colours, tell_verdicts

SECONDS = 60


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("simm", "invalid choice: 'simm'; did you mean 'sim'?"),
        ("sim --oder causal", "no option --oder; did you mean '--order'?"),
        ("sim --zzz=3", "no option --zzz; inga sim --help lists them"),
        ("sim alice", "too many arguments: alice"),
    ],
)
def test_what_is_misspelt_is_guessed(words: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert capsys.readouterr().err.endswith(f"{answer}\n")


@cache
def bash_script() -> str:
    command = [sys.executable, "-m", "inga", "completion", "bash"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout


def completed(words: str) -> set[str]:
    """What bash offers for the last of these words."""
    typed = words.split(" ")
    script = bash_script()
    script += f"COMP_WORDS=({' '.join(map(repr, typed))})\nCOMP_CWORD={len(typed) - 1}\n_inga\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=SECONDS, check=True)
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("inga che", {"check"}),
        ("inga sim --or", {"--order"}),
        ("inga sim --order caus", {"causal"}),
        ("inga lab lad", {"ladder"}),
        ("inga check --engine ", {"spark", "local"}),
    ],
)
def test_bash_completes(words: str, offered: set[str]) -> None:
    assert completed(words) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_all_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(re.search(rf"\b{name}\b", script) for name in COMMANDS)
    assert "trace-level" in script and "deliveries" in script
    quotes = [line.count("'") for line in script.splitlines()]
    assert not any(count % 2 for count in quotes), "texts of options would end a quotation"


WITHOUT = """
import sys
for name in {missing!r}: sys.modules[name] = None
from inga.cli.main import main
sys.exit(main({words!r}))
"""


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        ("demo", ["numpy", "pyarrow", "pyspark"], "trace"),
        ("lab co", ["numpy", "pyarrow", "pyspark"], "spark"),
        ("bench check", ["numpy"], "spark"),
        ("trend nothing", ["numpy"], "trace"),
        ("fuzz --runs 1", ["cryptography"], "secure"),
        ("sim --messages 1 --trace {out}/trace", ["numpy"], "trace"),
    ],
)
def test_what_is_not_installed_is_said_in_one_sentence(
    words: str, missing: list[str], extra: str, tmp_path: object
) -> None:
    program = WITHOUT.format(words=words.format(out=tmp_path).split(), missing=missing)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(rf"inga {words.split()[0]}: [^\n]*pip install 'inga\[{extra}\]'[^\n]*\n", done.stderr)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_verdicts_have_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["check      verdict", "fifo       pass  0", "causal     fail  3", "verdict: fail (0.1 s)"]
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen, pipe = Screen(), io.StringIO()
    for file in (screen, pipe):
        monkeypatch.setattr(sys, "stdout", file)
        tell_verdicts(*lines)
    first, *others = screen.getvalue().splitlines()
    assert first == lines[0]
    assert others == [f"\033[{c}m{line}\033[0m" for c, line in zip((32, 31, 31), lines[1:], strict=True)]
    assert pipe.getvalue().splitlines() == lines
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colours(screen)
    monkeypatch.setenv("NO_COLOR", "")
    assert has_colours(screen)


def test_a_rate_is_shown_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(ProgressLine, "BAR_SECONDS", -1.0)
    ProgressLine("members started", 3)(0)
    assert screen.getvalue().endswith("members started: 0 of 3")
    ProgressLine("delivered", 3000)(2000)
    assert re.search(r"delivered: 2,000 of 3,000, [\d,]+/s$", screen.getvalue())
