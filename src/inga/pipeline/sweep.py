"""Many independent computations as Spark tasks: an experiment's parameters in, its results out."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from inga.pipeline.files import Progress, collect
from inga.pipeline.session import LOCAL, open_session

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def sweep(
    function: Callable[[Task], Answer],
    tasks: Sequence[Task],
    *,
    master: str = LOCAL,
    progress: Progress = lambda what, done, total: None,
    session: Any = None,
) -> list[Answer]:
    """The answers, in the order of the tasks. Each is a Spark task of its own; a session that is given stays open."""
    spark = session or open_session(master)
    try:
        rdd = spark.sparkContext.parallelize(list(enumerate(tasks)), max(1, len(tasks)))
        found = collect(
            spark, rdd.map(lambda each: (each[0], function(each[1]))), "simulations", len(tasks), progress
        )
    finally:
        if session is None:
            spark.stop()
    return [answer for _, answer in sorted(found, key=lambda each: each[0])]
