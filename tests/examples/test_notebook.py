"""The notebook runs from top to bottom, and shows what its words say."""

import ast
import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from inga.certify.verdict import Certificate
from inga.cli.picture import picture
from inga.model.errors import UsageError
from inga.model.html import html_table
from inga.pipeline import check
from inga.sim import Sim, recorded
from inga.sim.trials import simulate_trial
from inga.trial.trial import Trial

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "lunch.ipynb"


def executed(path: Path, names: dict[str, Any]) -> Iterator[Any]:
    """What each cell shows: the value of its last line, if that is an expression."""
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"])).body
        shows = isinstance(body[-1], ast.Expr)
        exec(compile(ast.Module(body[: len(body) - shows], []), str(path), "exec"), names)
        if shows:
            assert isinstance(body[-1], ast.Expr)
            yield eval(compile(ast.Expression(body[-1].value), str(path), "eval"), names)


def test_the_notebook_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, Any] = {}
    fifo, causal, taken, judged, _, verdict, table, drawn = executed(NOTEBOOK, names)
    assert "<td>Yes!, Lunch?</td>" in fifo._repr_html_(), "Cathy reads the answer first"
    assert "<td>Lunch?, Yes!</td>" in causal._repr_html_() and "kept so far" in causal._repr_html_()
    assert taken["cathy"] == [b"Yes!", b"Lunch?"]
    assert judged.verdict == "fail" and "<td>causal</td><td>fail</td>" in judged._repr_html_()
    assert verdict == "pass"
    assert "causal: " in capsys.readouterr().out
    assert (table["name"] == "cathy").all() and "causal" in set(table["check"])
    assert drawn.verdict == "fail"
    frame = drawn._repr_html_()
    assert frame.startswith("<iframe sandbox=") and unescape(frame).count("Content-Security-Policy") == 1
    assert "cathy" in unescape(frame) and (names["runs"] / "lunch.html").read_text() == drawn.html


def test_the_notebook_is_one() -> None:
    book = json.loads(NOTEBOOK.read_text())
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, "no results are kept in it"


def test_results_in_arrow_and_pandas_without_a_session(tmp_path: Path) -> None:
    with recorded(tmp_path / "run", "alice", "bob", order="co") as sim:
        sim["alice"].send(b"hello")
    found = check(None, str(tmp_path / "run"))
    assert found.verdict == "pass" and [row["data"] for row in sim.deliveries()] == [b"hello"]
    assert found.arrow["verdicts"].num_rows == len(found.pandas["verdicts"]) == len(found.certificate.checks)
    with pytest.raises(UsageError, match=r"see \.arrow and \.pandas"):
        _ = found.verdicts


def test_a_block_that_raises_leaves_a_trace_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), recorded(tmp_path / "run", "alice", "bob") as sim:
        sim["alice"].send(b"hello")
        raise ZeroDivisionError
    assert check(None, str(tmp_path / "run")).verdict == "unknown"


def test_a_result_of_a_trial_says_whether_it_passed() -> None:
    result = simulate_trial(Trial(members=2, messages=3))
    assert "<caption>vector: pass</caption>" in result._repr_html_()
    result.violations, result.witnesses = 1, ["<b>"]
    assert "<caption>vector: fail</caption>" in result._repr_html_()
    assert "<td>&lt;b&gt;</td>" in result._repr_html_()


def test_nothing_of_names_is_markup() -> None:
    sim = Sim("<script>", "bob")
    sim["bob"].send(b"<img src=x>")
    sim.run()
    html = sim._repr_html_() + html_table(["<i>"], [["<u>"]], "<a>")
    assert "<script" not in html and "<img" not in html and "<i>" not in html and "<u>" not in html
    empty = Certificate(0, 0, 0, 0, [], [], [])
    assert "<caption>pass: 0 events" in empty._repr_html_()


def test_a_picture_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        picture(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="engine"):
        picture(tmp_path, engine="abacus")
