"""Experiments as Spark tasks."""

from typing import Any

import pytest

from inga.lab import obg
from inga.lab.sco import simulate
from inga.lab.sco.schemes import SchemeLoad
from inga.pipeline.sweep import sweep

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_answers_come_in_the_order_of_their_tasks(spark: Any) -> None:
    tasks = [("model", SchemeLoad(scheme, time=60.0)) for scheme in ("C0", "D0", "C0")]
    seen: list[tuple[int, int]] = []
    answers = sweep(
        simulate, tasks, session=spark, progress=lambda what, done, total: seen.append((done, total))
    )
    assert [answer.pdus for answer in answers] == [15.0, 30.0, 15.0]
    assert seen[-1] == (3, 3)


def test_the_loads_of_obg_travel(spark: Any) -> None:
    tasks = [
        obg.Load(model, 3, 40, order, roots=10)
        for model, order in (("pairs", "object"), ("methods", "causal"))
    ]
    assert sweep(obg.simulate, tasks, session=spark) == [obg.simulate(task) for task in tasks]
