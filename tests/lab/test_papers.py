"""`inga lab all`: one page for all sources; every claim has a reading, and none holds that could not fail."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from inga.cli.main import main
from inga.lab import evaluation, papers
from inga.lab.bench import SayProgress
from inga.lab.experiments import (
    BY_CONSTRUCTION,
    HOLDS,
    NOT_STATED,
    VERDICTS,
    Claim,
    Experiment,
    Outcome,
    Table,
)
from inga.lab.ladder.played import play
from inga.lab.ladder.vectors import VECTORS
from inga.lab.obg.worked import tabulate_examples
from inga.lab.papers.sources import SOURCES, source_of
from inga.lab.sco.claims import DELAYS, MEMBERS, USUAL_D, Results, SchemePoint
from inga.lab.sco.claims import judge as judge_sco
from inga.lab.sco.levels import DEFINED, IMPLIED, PUBLISHED, judge_levels
from inga.lab.sco.schemes import CONTROLLED, SCHEMES

from . import test_co, test_obg, test_remiop, test_sco

Verdicts = dict[str, str]

CLAIMS = sum(len(source.readings) for source in SOURCES)


# Every claim can fail


def sco_levels() -> tuple[Table, Table]:
    """Table 1 and Figure 2 as they are published."""
    shares = [
        [said, 9, *(100 if name in implied else 50 for name in DEFINED)] for said, implied in IMPLIED.items()
    ]
    return Table([], [[level, *row] for level, row in PUBLISHED.items()]), Table([], shares)


def sco_verdicts(results: Results, levels: tuple[Table, Table] | None = None) -> Verdicts:
    claims = [*judge_levels(*(levels or sco_levels())), *judge_sco(results)]
    return {claim.id: claim.verdict for claim in claims}


def bent_sco() -> Iterator[Verdicts]:
    """One scheme takes three times as many PDUs, or as long, or less than half of it."""
    for bent, what, factor in product((*SCHEMES, *CONTROLLED), ("pdus", "delay"), (3.0, 0.4)):
        results = test_sco.expected()
        for point in results:
            if point.scheme == bent:
                results[point] = results[point]._replace(**{what: getattr(results[point], what) * factor})
        yield sco_verdicts(results)
    waits = test_sco.expected()  # the longer they may wait, the more and the sooner
    for scheme in ("C1", "D1"):
        places = [SchemePoint(scheme, MEMBERS, USUAL_D, k) for k in DELAYS]
        turned = [waits[place] for place in reversed(places)]
        waits.update(zip(places, turned, strict=True))
    yield sco_verdicts(waits)
    for at, (row, column, cell) in enumerate([(0, 1, "guessed"), (3, 5, 99)]):
        levels = sco_levels()
        levels[at].rows[row][column] = cell
        yield sco_verdicts(test_sco.expected(), levels)


def bent_co() -> Iterator[Verdicts]:
    for name, table in test_co.tables().items():
        for row, column in product(range(len(table.rows)), range(1, len(table.columns))):
            bent = test_co.tables()[name]
            if isinstance(bent.rows[row][column], float | int):
                bent.rows[row][column] = 100 * bent.rows[row][column] or 1
                yield test_co.verdicts(**{name: bent})


def obg_verdicts(found: Any = None, counts: Any = None, examples: Any = None, **tables: Any) -> Verdicts:
    return test_obg.all_claims(
        test_obg.made(4.0) if found is None else found,
        test_obg.counted() if counts is None else counts,
        tabulate_examples() if examples is None else examples,
        **tables,
    )


def bent_obg() -> Iterator[Verdicts]:
    """One order measures a hundred times as much; a pair breaks a theorem; an identifier, a wait is another."""
    for what, order in product(
        ("ordered", "wait", "packets", "bytes", "numbers"), ("object", "causal", "total")
    ):
        found = test_obg.made(4.0, free=0.5)
        for point, means in found.items():
            if point.order == order:
                found[point] = replace(means, **{what: 100 * getattr(means, what)})
        yield obg_verdicts(found)
    for theorem, rule in product("1234", ("printed", "corrected")):
        yield obg_verdicts(counts=test_obg.counted() + Counter({(theorem, rule, "broken"): 1}))
    yield obg_verdicts(counts=test_obg.counted() + Counter({("data", "", "broken"): 1}))
    yield obg_verdicts(counts=test_obg.counted() + Counter({("T", "same instance", "turned"): 1}))
    for name in ("figure 3", "table 2"):
        examples = tabulate_examples()
        examples[name].rows[0][1] = "9k9"
        yield obg_verdicts(examples=examples)
    paced, told = deepcopy(test_obg.PACED), deepcopy(test_obg.TOLD)
    paced.rows[0][5], told.rows[1][2] = 0.1, 3.9
    yield obg_verdicts(paced=paced, told=told)


def bent_remiop() -> Iterator[Verdicts]:
    (cases,) = (mark.args[1] for mark in test_remiop.test_every_claim_can_fail.pytestmark)  # type: ignore[attr-defined]
    for id, trips, stack, rate, size, change, _ in cases:
        found = {
            "free": test_remiop.free(),
            "narrow": test_remiop.narrow(),
            "careful": test_remiop.careful(),
        }
        found[trips] = test_remiop.but(found[trips], stack, rate, size, change)
        verdict = test_remiop.verdicts(**found)[id]
        yield {id: verdict}
    yield test_remiop.verdicts(
        test_remiop.free(),
        test_remiop.narrow(),
        omission=[each._replace(excluded=True) for each in test_remiop.omission()],
    )


UNBENT: dict[str, Callable[[], Verdicts]] = {
    "co": test_co.verdicts,
    "sco": lambda: sco_verdicts(test_sco.expected()),
    "obg": obg_verdicts,
    "remiop": lambda: test_remiop.verdicts(test_remiop.free(), test_remiop.narrow()),
}
BENT: dict[str, Callable[[], Iterator[Verdicts]]] = {
    "co": bent_co,
    "sco": bent_sco,
    "obg": bent_obg,
    "remiop": bent_remiop,
}


@pytest.mark.parametrize("name", UNBENT)
def test_no_claim_holds_whatever_is_measured(name: str) -> None:
    found = UNBENT[name]()
    failing = {
        id
        for verdicts in BENT[name]()
        for id, verdict in verdicts.items()
        if verdict not in (HOLDS, NOT_STATED, BY_CONSTRUCTION)
    }
    assert failing >= found.keys(), f"no measurement makes these fail: {found.keys() - failing}"


@pytest.mark.parametrize("id", VECTORS)
def test_no_counterexample_holds_if_it_ends_otherwise(id: str) -> None:
    vector = VECTORS[id]
    assert play(vector).holds
    wrong = tuple(replace(show, found=("nothing of the kind",)) for show in vector.shows)
    assert not play(replace(vector, shows=wrong)).holds


@pytest.mark.parametrize("name", UNBENT)
def test_every_claim_has_a_reading_and_every_reading_a_claim(name: str) -> None:
    (source,) = [source for source in SOURCES if source.name == name]
    assert source.readings.keys() == UNBENT[name]().keys()
    for reading in source.readings.values():
        assert reading.how and reading.tolerance


def test_the_ladder_has_one_reading_for_all() -> None:
    assert SOURCES[0].name == "ladder" and {*SOURCES[0].readings} == {""}
    assert SOURCES[0].reading("V17").tolerance == "exact"


def test_a_claim_without_a_reading_is_told_to_have_none() -> None:
    assert source_of("co").reading("new").how == "not told"


# The page


class Lab:
    """Experiments that find what the test says, and count how often they are run."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, bool]] = []
        self.verdict = HOLDS

    def find(self, name: str, **more: Any) -> Experiment:
        def run(out: Path, quick: bool, progress: SayProgress) -> Outcome:
            self.ran.append((name, quick))
            progress("at work")
            (source,) = [source for source in SOURCES if source.name == name]
            ids = [id or "V1" for id in source.readings]
            claims = [Claim(id, f"<b>{name} {id}", "10 %", f"measured {id}", self.verdict) for id in ids]
            tables = {"numbers": Table(["n", "value"], [[1, 2.5]])}
            page = out / f"{name}.html"
            text = evaluation.page(
                name, "lead", claims, [("<svg></svg>", "a figure")], tables, {"numbers": "caption"}
            )
            page.write_text(text)
            return Outcome(claims, tables, "text", [page])

        return run


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab()
    monkeypatch.setattr(papers, "find_experiment", made.find)
    return made


def test_one_page_has_everything(lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "all", "--quick", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert [name for name, _ in lab.ran] == ["ladder", "co", "sco", "obg", "remiop"]
    assert "sco: at work" in captured.err and captured.out.endswith(f"open {tmp_path / 'all.html'}\n")
    page = (tmp_path / "all.html").read_text()
    for source in SOURCES:
        assert f'<section class="card papers" id="{source.name}">' in page
        assert f"<code>inga lab {source.name} --quick</code>" in page
        for id, reading in source.readings.items():
            assert f"&lt;b&gt;{source.name} {id or 'V1'}" in page and "<b>co" not in page
            assert evaluation.escape(reading.how) in page
    assert page.count("<svg></svg>") == page.count("<figcaption>a figure") == len(SOURCES)
    assert page.count('<span class="mark pass">holds</span>') == CLAIMS + 1, "one explains it"
    assert 'href="ladder/ladder.html"' in page and f"{CLAIMS} holds, of {CLAIMS} claims of 5 sources" in page
    assert "http" not in page.replace("http-equiv", "")


def test_what_was_found_is_kept_until_anything_differs(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> int:
        lab.ran.clear()
        assert main(["lab", "all", "--quiet", "--json", "--out", str(tmp_path), *words]) == 0
        assert len(json.loads(capsys.readouterr().out)["claims"]) == CLAIMS
        return len(lab.ran)

    assert [run("--quick"), run("--quick")] == [5, 0]
    assert run("--quick", "--fresh") == 5
    assert [run(), run()] == [5, 0], "other parameters, other results"
    (tmp_path / "co" / "co.html").unlink()
    assert run() == 1, "its page is gone"
    (tmp_path / "sco" / papers.KEPT).write_text('{"asked":')
    (tmp_path / "obg" / papers.KEPT).write_text("[]")
    assert run() == 2, "what cannot be read is found again"
    monkeypatch.setattr(papers, "program_digest", lambda: "another program")
    assert run() == 5


def test_an_experiment_that_fails_is_not_taken_for_done(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str, **more: Any) -> Experiment:
        def run(out: Path, quick: bool, progress: SayProgress) -> Outcome:
            raise OSError(28, "No space left on device")

        return run if name == "obg" else lab.find(name)

    monkeypatch.setattr(papers, "find_experiment", broken)
    assert main(["lab", "all", "--quiet", "--out", str(tmp_path)]) == 2
    monkeypatch.setattr(papers, "find_experiment", lab.find)
    lab.ran.clear()
    assert main(["lab", "all", "--quiet", "--out", str(tmp_path)]) == 0
    assert [name for name, _ in lab.ran] == ["obg", "remiop"], "it goes on where it stopped"


def test_verdicts_are_counted_by_name(lab: Lab, tmp_path: Path) -> None:
    lab.verdict = NOT_STATED
    assert main(["lab", "all", "--quiet", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "all.html").read_text()
    assert f"{CLAIMS} not stated, of {CLAIMS} claims" in page
    assert all(verdict in page for verdict in VERDICTS)


def test_another_program_has_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another source, style, script or compiled module; but not another bytecode, which is made while a program runs."""
    here = tmp_path / "inga/lab/papers/__init__.py"
    here.parent.mkdir(parents=True)
    monkeypatch.setattr(papers, "__file__", str(here))
    found = [papers.program_digest()]
    for name in ("model.py", "page.css", "play.js", "model.cpython-311-x86_64-linux-gnu.so"):
        (tmp_path / "inga" / name).write_text("1")
        found.append(papers.program_digest())
    (tmp_path / "inga/page.css").write_text("2")
    found.append(papers.program_digest())
    monkeypatch.setattr("platform.python_version", lambda: "9.9.9")
    found.append(papers.program_digest())
    assert len({*found}) == 7 and {len(each) for each in found} == {64}
    (tmp_path / "inga/__pycache__").mkdir()
    (tmp_path / "inga/__pycache__/model.cpython-311.pyc").write_text("1")
    assert papers.program_digest() == found[-1]
