"""Many simulations by processes of ours: answers in order, and a failure is ours, too."""

import os

import pytest

from inga.lab.simulations import simulate_all


def square(number: int) -> tuple[int, int]:
    if number < 0:
        raise ValueError(f"{number} is below zero")
    return number * number, os.getpid()


def test_answers_come_in_the_order_of_the_tasks_from_other_processes() -> None:
    said: list[str] = []
    answers = simulate_all(square, range(20), said.append, None)
    assert [number for number, _ in answers] == [number * number for number in range(20)]
    assert os.getpid() not in {process for _, process in answers}
    assert said == ["20 simulations"]


def test_a_task_that_fails_is_told() -> None:
    with pytest.raises(ValueError, match="-1 is below zero"):
        simulate_all(square, [1, -1, 2], lambda what: None, None)
