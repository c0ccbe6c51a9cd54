"""What a run cost and how long things took, as small tables: DataFrames in, DataFrames out.

    delays    from a send to each level of acceptance, in all, per member and per link
    steps     how often each step occurred, in all, per member and per link
    holds     how long messages waited for others, in all, per member and per link
    held_by   for which message they waited last
    windows   how long members were not allowed to send
    rates     sends, deliveries, control and repair, windows that close and permitted rates over time

Times are milliseconds. In `delays`, `steps` and `holds` a null stands for all members.
"""

from typing import Any

from inga.trace.schema import spark_schema

LEVELS = ("receive", "accept", "causal", "confirm", "acknowledge", "deliver", "take")
CONTROL_STEPS = ("control", "poll", "nack")
REPAIR_STEPS = ("repair",)
HELD_BY_MAX = 1000  # messages that held others, the worst first
BUCKETS = 60  # of time
MEASURED_COLUMNS = ("process", "pos", "time", "step", "src", "seq", "deps", "peer", "n")
SCHEMA = spark_schema(MEASURED_COLUMNS)

_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_PERCENTILE_ACCURACY = 10_000


def delays(rows: Any) -> Any:
    """From sends to what others did with the message. Only of use if all processes have one clock."""
    from pyspark.sql import functions as F

    sends = rows.where(F.col("step") == "send").select("src", "seq", F.col("time").alias("sent"))
    is_level = F.col("step").isin(*LEVELS) & (F.col("process") != F.col("src"))
    reached = rows.where(is_level).select("step", "process", "src", "seq", "time")
    took = reached.join(sends, on=["src", "seq"], how="inner").select(
        "step", "process", "src", ((F.col("time") - F.col("sent")) / 1e6).alias("ms")
    )
    grouped = took.groupingSets(
        [["step"], ["step", "process"], ["step", "process", "src"]], "step", "process", "src"
    )
    return (
        grouped.agg(*_spread("ms"))
        .select("step", "process", "src", *_SPREAD)
        .orderBy("step", "process", "src")
    )


def steps(rows: Any) -> Any:
    """Counts of all steps, and sums of their numbers: bytes for datagrams, payloads for messages."""
    from pyspark.sql import functions as F

    grouped = rows.groupingSets(
        [["step"], ["step", "process"], ["step", "process", "peer"]], "step", "process", "peer"
    )
    counted = grouped.agg(
        F.count("*").alias("count"), F.sum("n").alias("n"), F.grouping("peer").alias("is_all_peers")
    )
    # Of links only those that are some: a step without peer is in the member's line already.
    is_line = (F.col("is_all_peers") == 1) | F.col("peer").isNotNull()
    return (
        counted.where(is_line)
        .select("step", "process", "peer", "count", "n")
        .orderBy("step", "process", "peer")
    )


def held(rows: Any) -> Any:
    """Every message that waited: when it was put aside and when it went on, at which positions."""
    from pyspark.sql import functions as F

    # Of each step the first that concerns the message at this process. Few messages are held, mostly: what became of the
    # others is not grouped.
    message = ["process", "src", "seq"]
    put = rows.where((F.col("step") == "hold") & F.col("src").isNotNull()).groupBy(*message)
    put = put.agg(F.min(F.struct("pos", "time")).alias("put"))
    is_through = F.col("step").isin("deliver", "accept") & F.col("src").isNotNull()
    went = rows.where(is_through).select(*message, "pos", "time", "deps").join(put, on=message, how="inner")
    found = went.groupBy(*message).agg(
        F.first("put").alias("put"),
        F.min(F.struct("pos", "time")).alias("went"),
        F.first("deps", ignorenulls=True).alias("deps"),
    )
    return found.select(
        "process", "src", "seq", "deps",
        F.col("put.pos").alias("held_pos"), F.col("went.pos").alias("went_pos"),
        ((F.col("went.time") - F.col("put.time")) / 1e6).alias("ms"),
    )  # fmt: skip


def about_held(rows: Any) -> Any:
    """The rows, if there is a message that was held; else none, so that nothing is read to find that out again."""
    from pyspark.sql import functions as F

    is_any_held = rows.where(F.col("step") == "hold").limit(1).count()
    return rows if is_any_held else rows.where(F.lit(False))


def holds(waited: Any) -> Any:
    """How long messages were held. One process, one clock: always comparable."""
    grouped = waited.groupingSets([[], ["process"], ["process", "src"]], "process", "src")
    return grouped.agg(*_spread("ms")).select("process", "src", *_SPREAD).orderBy("process", "src")


def held_by(rows: Any, waited: Any, n: int) -> Any:
    """For which message others waited last: of all that precede a held one, the last to be let through.

    A vector names one message of each sender and thereby implies all earlier ones of it. Where the named one was
    not for this process, one of those is what was waited for. Rows that let a message through and entries of vectors are
    laid side by side, per sender by number; a running maximum then says, for each entry, when the last message up to
    it was let through. A message that was let through without its causes waited for none of those that came later.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    named = F.posexplode(F.expr(_entries(n))).alias("by_src", "number")
    causes = waited.where(F.col("deps").isNotNull()).select(
        "process", "src", "seq", "held_pos", "went_pos", "ms", named
    )
    is_let_through = F.col("step").isin("deliver", "accept") & F.col("src").isNotNull()
    let_through = (
        rows.where(is_let_through)
        .groupBy("process", F.col("src").alias("by_src"), F.col("seq").alias("number"))
        .agg(F.min("pos").alias("by_pos"))
        .select(
            "process",
            "by_src",
            "number",
            F.struct("by_pos", F.col("number").alias("by_seq")).alias("through"),
        )
    )
    beside = causes.where(F.col("number") > 0).unionByName(let_through, allowMissingColumns=True)
    up_to_here = (
        Window.partitionBy("process", "by_src")
        .orderBy("number")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    found = beside.withColumn("latest", F.max("through").over(up_to_here)).where(F.col("seq").isNotNull())
    by_pos = F.col("latest.by_pos")
    last = (
        found.where((by_pos > F.col("held_pos")) & (by_pos < F.col("went_pos")))
        .groupBy("process", "src", "seq")
        .agg(
            F.max(F.struct(by_pos.alias("by_pos"), "by_src", F.col("latest.by_seq").alias("by_seq"))).alias(
                "last"
            ),
            F.first("ms").alias("ms"),
        )
    )
    grouped = last.groupBy("process", F.col("last.by_src").alias("src"), F.col("last.by_seq").alias("seq"))
    table = grouped.agg(F.count("*").alias("held"), F.sum("ms").alias("ms"), F.max("ms").alias("ms_max"))
    return table.select("process", "src", "seq", "held", "ms", "ms_max").orderBy(
        F.desc("ms"), "process", "src", "seq"
    ).limit(HELD_BY_MAX)  # fmt: skip


def windows(rows: Any) -> Any:
    """How often and how long each member's window was closed. One that stays closed counts to the last row."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    is_about = F.col("step").isin("window_closed", "window_opened")
    ends = rows.groupBy("process").agg(
        ((F.max("time") - F.min("time")) / 1e6).alias("run_ms"), F.max("time").alias("end")
    )
    order = Window.partitionBy("process").orderBy("pos")
    changes = rows.where(is_about).select("process", "pos", "step", "time")
    changes = changes.withColumn("next", F.lead("time").over(order))
    closed = changes.where(F.col("step") == "window_closed").join(ends, on="process", how="inner")
    length = (F.coalesce("next", "end") - F.col("time")) / 1e6
    grouped = closed.select("process", "run_ms", length.alias("ms")).groupBy("process")
    table = grouped.agg(
        F.count("*").alias("closed"), F.sum("ms").alias("ms"), F.max("ms").alias("ms_max"),
        F.max("run_ms").alias("run_ms"),
    )  # fmt: skip
    share = F.when(F.col("run_ms") > 0, F.col("ms") / F.col("run_ms")).otherwise(F.lit(0.0))
    return table.select("process", "closed", "ms", "ms_max", share.alias("share")).orderBy("process")


def rates(rows: Any, begin: int, end: int) -> Any:
    """How often messages were sent and delivered, over equal parts of the time between two instants.

    `allowed` is the bits per second that a member might send when that was last said in the part of time; null where
    nothing was said.
    """
    from pyspark.sql import functions as F

    width = max((end - begin) // BUCKETS + 1, 1)
    families = {
        "sends": ("send",),
        "deliveries": ("deliver",),
        "holds": ("hold",),
        "control": CONTROL_STEPS,
        "repair": REPAIR_STEPS,
        "closed": ("window_closed",),
        "events": ("event",),
    }
    wanted = ["rate", *(step for steps in families.values() for step in steps)]
    bucket = F.floor((F.col("time") - F.lit(begin)) / F.lit(width))
    counted = [F.count(F.when(F.col("step").isin(*steps), 1)).alias(name) for name, steps in families.items()]
    said = F.when(F.col("step") == "rate", F.struct("pos", "n"))
    table = (
        rows.where(F.col("step").isin(*wanted))
        .groupBy(bucket.alias("bucket"), "process")
        .agg(*counted, F.max(said).getField("n").alias("allowed"))
    )
    start = F.col("bucket") * width / 1e6
    return table.select(
        start.alias("from_ms"), F.lit(width / 1e6).alias("length_ms"), "process", *families, "allowed"
    ).orderBy("from_ms", "process")


_SPREAD = ("count", "mean", "min", *_SHARES, "max")


def _spread(column: str) -> list[Any]:
    from pyspark.sql import functions as F

    shares = [
        F.percentile_approx(column, share, _PERCENTILE_ACCURACY).alias(name)
        for name, share in _SHARES.items()
    ]
    return [
        F.count(column).alias("count"), F.mean(column).alias("mean"), F.min(column).alias("min"), *shares,
        F.max(column).alias("max"),
    ]  # fmt: skip


def _entries(n: int) -> str:
    """The vector of a row as an array: `deps` is n little-endian int32."""
    byte = "hex(substring(deps, 4 * h + {}, 1))"
    digits = ", ".join(byte.format(at) for at in (4, 3, 2, 1))
    entry = f"coalesce(cast(conv(concat({digits}), 16, 10) as bigint), 0)"
    return f"transform(sequence(0, {n - 1}), h -> {entry})"
