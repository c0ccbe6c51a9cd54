"""Supplies: what is there at first, how fast it comes back, and that nothing is had twice."""

from inga.stack.budget import Supply


def test_a_supply_fills_with_time_and_no_time_counts_twice() -> None:
    supply = Supply(rate=1.0, most=2.0)
    assert [supply.take(10.0) for _ in range(3)] == [True, True, False], "what is there at the beginning"
    assert [supply.take(11.0) for _ in range(2)] == [True, False], "one a second"
    assert [supply.take(11.5), supply.take(12.0)] == [False, True], "halves add up"
    assert [supply.take(99.0) for _ in range(3)] == [True, True, False], "and never more than fits"
