"""Many independent computations as Spark tasks: an experiment's parameters in, its results out."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from inga.pipeline.files import TaskProgress, collect
from inga.pipeline.session import LOCAL, equip, using

HANDS_PER_CORE = 8

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def sweep(
    function: Callable[[Task], Answer],
    tasks: Sequence[Task],
    *,
    master: str = LOCAL,
    progress: TaskProgress = lambda what, done, total: None,
    session: Any = None,
) -> list[Answer]:
    """The answers, in the order of the tasks; a session that is given stays open.

    Tasks are dealt out like cards, as neighbours tend to take equally long. A few hands per core share the work evenly;
    a Spark task for each of them would cost more than a short simulation.
    """
    with using(session, master) as spark:
        equip(spark)
        context, numbered = spark.sparkContext, list(enumerate(tasks))
        hands = max(1, min(HANDS_PER_CORE * context.defaultParallelism, len(tasks)))
        dealt = [numbered[hand::hands] for hand in range(hands)]
        rdd = context.parallelize(dealt, hands).flatMap(lambda hand: hand)
        found = collect(
            spark, rdd.map(lambda each: (each[0], function(each[1]))), "simulations", len(tasks), progress
        )
    return [answer for _, answer in sorted(found, key=lambda each: each[0])]
