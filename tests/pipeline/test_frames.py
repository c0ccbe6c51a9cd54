"""A job of one's own, in one's own session: DataFrames out, tables written. The program of docs/python.md runs."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import inga.pipeline
from inga.certify.checks import CHECKS
from inga.model.errors import UsageError
from inga.pipeline import tables
from inga.trace import COLUMNS, rows

from .page import make_run, page_blocks

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "run7"
    make_run(path)
    return path


def test_the_program_of_the_page_runs(
    spark: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run7").symlink_to(run)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in page_blocks():
        # As somebody does who follows the page. Spark, which was started before, is in another directory.
        block = block.replace("certificates", str(tmp_path / "certificates"))
        exec(block.replace('load("run7")', f'load("{tmp_path}/run7")'), names)
    said = capsys.readouterr().out
    found = names["found"]
    assert found.verdict == "fail" and "\nfail\n" in f"\n{said}"
    assert "causal: " in said and ", position " in said, "a violation is explained with its chain"
    assert names["failing"].count() == 2  # causal and total, which fifo does not promise
    assert said.rstrip().splitlines()[-2].startswith("|")
    found.write(str(tmp_path / "certificates"))
    assert names["failing"].count() == 2, "written twice, there once"


def test_rows(spark: Any, run: Path) -> None:
    frame = inga.pipeline.read(spark, str(run))
    assert tuple(frame.columns) == COLUMNS
    assert frame.count() == sum(1 for _ in rows(run))


def test_a_certificate_in_frames(spark: Any, run: Path) -> None:
    found = inga.pipeline.check(spark, str(run), ["causal", "fifo"], witnesses=3)
    verdicts = {row.check: row for row in found.verdicts.collect()}
    causal, fifo = (next(c for c in found.certificate.checks if c.name == n) for n in ("causal", "fifo"))
    assert (verdicts["causal"].violations, verdicts["fifo"].verdict) == (causal.violations, "pass")
    assert verdicts["fifo"].statement == CHECKS["fifo"].statement and fifo.violations == 0
    violations = found.violations.collect()
    assert len(violations) == len(causal.witnesses) == 3
    assert [row.text for row in violations] == [each.text for each in causal.witnesses]
    assert [len(row.chain) for row in violations] == [len(each.chain) for each in causal.witnesses]
    assert found.explain(violations[1]) == found.explain(1) != found.explain(0)
    assert sum(row["count"] for row in found.causes.collect()) == causal.violations
    html = found._repr_html_()
    assert "<td>causal</td><td>fail</td>" in html and found.verdict in repr(found)


def test_nothing_of_names_is_markup(spark: Any, run: Path) -> None:
    found = inga.pipeline.check(spark, str(run), ["causal"], witnesses=1)
    found.certificate.checks[0].witnesses[0].text = "<script>"
    assert "<script>" not in found._repr_html_()


def test_measures(spark: Any, run: Path) -> None:
    measured = inga.pipeline.metrics(spark, str(run))
    assert {"steps", "holds", "held_by", "windows", "rates", "delays"} == set(measured)
    assert measured.reason == "" and len(measured) == 6 and "holds" in measured._repr_html_()
    assert measured["steps"].where("step = 'send' and process is null").count() == 1


def test_order_and_stamp(spark: Any, run: Path, tmp_path: Path) -> None:
    ordered = inga.pipeline.order(spark, str(run)).orderBy("order").collect()
    assert [row.order for row in ordered] == list(range(1, len(ordered) + 1))
    stamped = inga.pipeline.stamp(spark, str(run), str(tmp_path / "stamped"))
    assert stamped.events == inga.pipeline.read(spark, str(tmp_path / "stamped")).count()


def test_watching_ends_with_a_certificate(spark: Any, run: Path) -> None:
    found = inga.pipeline.watch(spark, str(run), ["causal"], poll=0.01)
    assert found.verdict == "fail" and found.violations.count() > 0


def test_what_there_is() -> None:
    assert set(inga.pipeline.__all__) == set(inga.pipeline._PLACES)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = inga.pipeline.nothing


# Tables of many runs


def test_tables_are_added_to_and_nothing_stands_there_twice(spark: Any, run: Path, tmp_path: Path) -> None:
    found, where = inga.pipeline.check(spark, str(run)), str(tmp_path / "tables")
    assert found.write(where, date="2026-01-05") == "2026-01-05"
    assert found.write(where, date="2026-01-06") == "2026-01-05"
    assert inga.pipeline.metrics(spark, str(run)).write(where) == "2026-01-05"
    assert {row["run"] for row in tables.read(where, "steps")} == {found.trace.manifest.run}
    assert {row["date"] for row in tables.read(where, "verdicts")} == {"2026-01-05"}
    found.trace.manifest.run = "another/run = 2"
    found.write(where, date="2026-01-06")
    rows_ = tables.read(where, "verdicts")
    assert len(rows_) == 2 * len(found.certificate.checks)
    assert {row["run"] for row in rows_ if row["date"] == "2026-01-06"} == {"another/run = 2"}
    frame = spark.read.parquet(f"{where}/verdicts")
    assert frame.where("run = 'another/run = 2'").count() == len(found.certificate.checks)


@pytest.mark.parametrize("date", ["yesterday", "2026-13-01", ""])
def test_what_is_no_date(date: str) -> None:
    with pytest.raises(UsageError, match="a date looks like 2026-01-31"):
        tables.day(date)


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no table 'verdicts'"):
        tables.read(str(tmp_path), "verdicts")
    with pytest.raises(UsageError, match="not to hdfs"):
        tables.root("hdfs://there/tables")
    place = tmp_path / "verdicts" / "date=2026-01-01" / "run=1"
    place.mkdir(parents=True)
    (place / tables.PART).write_text("no table")
    with pytest.raises(UsageError, match="cannot be read"):
        tables.read(str(tmp_path), "verdicts")


def test_a_table_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        tables._put(tmp_path / "file" / "run" / tables.PART, pa.table({"a": [1]}))
