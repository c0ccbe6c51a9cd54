"""The rate of a ReMIOP sender: equation 1 as a table, and when packets leave."""

from math import ceil

import pytest

from inga.corba.multicast import rate as module
from inga.corba.multicast.rate import Rate, next_rate
from inga.model.errors import UsageError

SIZE, SLOWEST, FASTEST = 100, 10_000, 110_000

TABLE = [
    (0, 60_000, 70_000),
    (20, 70_000, 80_000),
    (21, 80_000, 70_000),
    (50, 70_000, 60_000),
    (51, 60_000, 10_000),
    (5, 10_000, 20_000),
    (0, 105_000, 110_000),
    (30, 15_000, 10_000),
]
"""Worked by hand: lag, rate before, rate after."""


@pytest.mark.parametrize(("lag", "before", "after"), TABLE)
def test_the_worked_table(lag: int, before: int, after: int) -> None:
    assert next_rate(before, lag, SIZE, SLOWEST, FASTEST) == after


def test_the_table_once_around() -> None:
    rate = Rate(SLOWEST, FASTEST, SIZE)
    assert (rate.now, rate.period) == (60_000, 10)
    for lag, before, after in TABLE[:6]:
        assert rate.now == before
        rate.report(lag)
        assert [rate.spend(0, 100) for _ in range(10)] == [False] * 9 + [True]
        assert rate.now == after


@pytest.mark.parametrize("size", [1, 5, 7, 10, 99, 100, 512])
def test_whole_numbers_do_what_the_equation_says(size: int) -> None:
    for lag in range(2 * size):
        if lag > size / 2:
            expected = 0.0
        else:
            expected = min(max(50 + (-1) ** ceil((lag - size / 5) / size) * 10, 0), 100)
        assert next_rate(50, lag, size, 0, 100) == expected


@pytest.mark.interpreted  # as a function of a compiled module is replaced
def test_a_wrong_sign_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exponent rounded down instead of up: every step would be a step down, or none."""

    def floored(rate: float, lag: int, size: int, slowest: float, fastest: float) -> float:
        if 2 * lag > size:
            return slowest
        sign = (-1) ** ((5 * lag - size) // (5 * size))
        return min(max(rate + sign * (fastest - slowest) / 10, slowest), fastest)

    monkeypatch.setattr(module, "next_rate", floored)
    with pytest.raises(AssertionError):
        test_the_table_once_around()


def test_from_the_slowest_to_the_fastest_takes_as_many_packets_as_the_buffer_has() -> None:
    rate = Rate(SLOWEST, FASTEST, SIZE)
    rate.now = SLOWEST
    packets = 0
    while rate.now < FASTEST:
        rate.report(0)
        rate.spend(0, 1)
        packets += 1
    assert packets == SIZE


def test_the_slowest_receiver_of_a_period_decides() -> None:
    rate = Rate(SLOWEST, FASTEST, SIZE)
    for lag in (0, 51, 3):
        rate.report(lag)
    for _ in range(rate.period):
        rate.spend(0, 1)
    assert rate.now == SLOWEST


def test_a_rate_that_the_fastest_receiver_decides_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is reported in a period, the least lag would count."""

    def report(self: Rate, lag: int) -> None:
        self.lag = max(0, lag) if self.lag is None else min(max(0, lag), self.lag)

    monkeypatch.setattr(Rate, "report", report)
    with pytest.raises(AssertionError):
        test_the_slowest_receiver_of_a_period_decides()


def test_silence_changes_nothing_and_a_lag_is_not_negative() -> None:
    rate = Rate(SLOWEST, FASTEST, SIZE)
    assert not any(rate.spend(0, 1) for _ in range(5 * rate.period))
    assert rate.now == 60_000
    rate.report(-7)
    assert rate.lag == 0


@pytest.mark.parametrize(
    ("kilobits", "milliseconds"), [(10, 1177.6), (50, 235.52), (100, 117.76), (500, 23.552), (1000, 11.776)]
)
def test_a_full_packet_has_its_time(kilobits: int, milliseconds: float) -> None:
    rate = Rate(1000 * kilobits, 1000 * kilobits, SIZE)
    due = [rate.due(0.0)]
    for _ in range(3):
        rate.spend(due[-1], 1472)
        due.append(rate.due(0.0))
    assert due == pytest.approx([0, *(milliseconds / 1000 * k for k in (1, 2, 3))])


def test_the_first_packet_after_a_pause_leaves_at_once() -> None:
    rate = Rate(10_000, 10_000, SIZE)
    rate.spend(rate.due(5.0), 1472)
    assert rate.due(6.0) == pytest.approx(6.1776)
    assert rate.due(60.0) == 60.0


def test_fewer_than_ten_packets_in_the_buffer() -> None:
    assert Rate(1, 2, 7).period == 1


@pytest.mark.parametrize(
    ("slowest", "fastest", "why"),
    [(0, 10, "rmin is a rate"), (10, "fast", "rmax is a rate"), (20, 10, "at most"), (True, 10, "rmin is a")],
)
def test_rates_that_are_none(slowest: float, fastest: float, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Rate(slowest, fastest, 10)
