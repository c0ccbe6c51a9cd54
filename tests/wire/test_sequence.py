"""What packets of `total` say of places: golden bytes, round trips, and bytes that say nothing of the kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import WireError
from inga.wire.packet import COUNT_MAX, INDEX_MAX
from inga.wire.sequence import RUN_BYTES, RUNS_MAX, NamedRun, get_known, get_runs, put_known, put_runs

GOLDEN: list[tuple[list[NamedRun], str]] = [
    ([(1, 1)], "01 01"),
    ([(2, 300), (1, 7), (2, 301)], "02 ac02 01 07 02 ad02"),
]


@pytest.mark.parametrize(("runs", "text"), GOLDEN)
def test_golden_runs(runs: list[NamedRun], text: str) -> None:
    data = bytes.fromhex(text)
    assert put_runs(runs) == data
    assert get_runs(data, 3) == runs


def test_golden_counts() -> None:
    for count, text in ((0, "00"), (300, "ac02"), (COUNT_MAX, "ffffffff07")):
        assert put_known(count) == bytes.fromhex(text)
        assert get_known(bytes.fromhex(text)) == count


def test_as_many_runs_as_can_be_fit_into_what_is_kept_free_for_them() -> None:
    runs = [(INDEX_MAX - 1 - at % 2, COUNT_MAX - RUNS_MAX + at) for at in range(RUNS_MAX)]
    assert len(put_runs(runs)) == RUNS_MAX * RUN_BYTES
    assert get_runs(put_runs(runs), INDEX_MAX) == runs


@given(st.binary(max_size=20), st.integers(1, 9))
def test_anything_else_raises_wire_error_at_most(data: bytes, members: int) -> None:
    try:
        runs = get_runs(data, members)
    except WireError:
        return
    last = dict.fromkeys(range(members), 0)
    for sender, upto in runs:
        assert sender > 0 and last[sender] < upto
        last[sender] = upto
    assert get_runs(put_runs(runs), members) == runs


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "malformed"),
        ("01", "malformed"),
        ("01 80", "truncated"),
        ("00 01", "stranger"),  # the sequencer itself
        ("03 01", "stranger"),
        ("01 00", "malformed"),
        ("01 ffffffff08", "malformed"),
        ("01 01 01 02", "malformed"),  # two runs that are one
        ("01 02 02 01 01 02", "malformed"),  # again
        ("01 01 02 01" * (RUNS_MAX // 2 + 1), "malformed"),
        ("01" * (RUNS_MAX * RUN_BYTES + 1), "malformed"),
    ],
)
def test_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(WireError) as error:
        get_runs(bytes.fromhex(text), 3)
    assert error.value.reason == reason


@pytest.mark.parametrize(
    ("text", "reason"), [("", "truncated"), ("00 00", "malformed"), ("ffffffff08", "malformed")]
)
def test_what_is_no_count(text: str, reason: str) -> None:
    with pytest.raises(WireError) as error:
        get_known(bytes.fromhex(text))
    assert error.value.reason == reason
