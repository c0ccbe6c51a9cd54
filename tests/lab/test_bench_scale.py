"""What `inga bench scale` measures works on small groups."""

import json
import re
from pathlib import Path

import pytest

from inga.cli.main import main
from inga.lab import bench_scale
from inga.lab.bench import BenchRow
from inga.lab.bench_sim import received, traffic


@pytest.mark.network
def test_small_groups_are_measured_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, less in {"LIVE_DELIVERIES": 2000, "SIMULATED_DELIVERIES": 60, "PACKETS": 200}.items():
        monkeypatch.setattr(bench_scale, name, less)
    page = tmp_path / "scale.html"
    assert main(["bench", "scale", "--quick", "--members", "3,2", "--json", "--page", str(page)]) == 0
    captured = capsys.readouterr()
    rows = json.loads(captured.out)["rows"]
    found = {(row["case"], row["unit"]) for row in rows}
    for unit in ("us CPU/delivery", "messages/s and receiver", "MB/member"):
        assert {(f"processes, {size} members", unit) for size in (2, 3)} <= found
    for unit in ("us CPU/delivery", "header bytes/delivery", "MB/member"):
        assert {(f"member, {size} members", unit) for size in (2, 3)} <= found
    assert all(row["value"] > 0 and row["baseline_is"] == "2 members" for row in rows)
    assert all(row["ratio"] == 1 for row in rows if row["case"].endswith(", 2 members"))
    assert "measuring 3 processes" in captured.err
    text = page.read_text()
    assert text.count("<svg") == len({row["unit"] for row in rows})
    assert not re.search(r"(src|href)=\"(?!data:)", text), "it needs nothing else"


def test_a_larger_group_is_said_not_to_run_as_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, less in {"LIVE_EACH": 0, "SIMULATED_DELIVERIES": 60, "PACKETS": 200}.items():
        monkeypatch.setattr(bench_scale, name, less)
    notes: list[str] = []
    rows = bench_scale.run(lambda text: None, notes.append, members=[2, 12])
    assert "Groups of more than 0" in notes[0]
    header = {row.case: row.value for row in rows if row.unit == "header bytes/delivery"}
    assert header["member, 12 members"] > header["member, 2 talk, 12 members"] + 5, (
        "who is silent costs nothing"
    )


def test_rows_are_drawn_by_what_was_measured() -> None:
    rows = [BenchRow(f"member, 2 talk, {n} members", 1.0, float(n), "us", "2 members") for n in (2, 4)]
    page = bench_scale.page(rows, ["a note"], {"cores": 2})
    assert page.count("<circle") == 2 and ">member, 2 talk</text>" in page and "a note; cores 2" in page


def test_a_member_takes_all_that_arrives() -> None:
    arriving = traffic(40, 300)
    seconds, stack = received("causal", 40, arriving)
    assert seconds > 0 and stack.layer("causal").past(arriving[-1][0].src)  # type: ignore[union-attr]


def test_pages_are_of_scale_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "sim", "--page", "x.html"]) == 2
    assert "--page draws the curves of scale" in capsys.readouterr().err
