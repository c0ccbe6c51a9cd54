"""Sensors that report to a collector, and a certificate for every minute: nothing is missing, doubled or out of order.

    python examples/sensors.py [--every SECONDS] [--periods N] [--engine spark|local]

Each period is a run of its own with a trace in `sensors/`; when it is over it is certified, on Spark or in this process, while the next one
runs. The results gather in `sensors/certificates`: `inga trend sensors/certificates` shows since when something is wrong.
"""

import argparse
import asyncio
import json
import os
from pathlib import Path
from random import Random

import inga
import inga.pipeline

NAMES = ("collector", "kitchen", "cellar", "roof")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")


async def sensor(name: str, trace: Path, seconds: float) -> int:
    """Measures, as often as it can."""
    rng, sent = Random(name), 0
    async with inga.join("sensors", name, members=NAMES, via=VIA, order="fifo", trace=trace) as group:
        await group.ready()
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await group.send(json.dumps({"celsius": round(rng.gauss(20, 2), 1)}).encode(), to="collector")
            sent += 1
            await asyncio.sleep(0.01)
        await group.send(b"null", to="collector")
    return sent


async def collector(trace: Path) -> int:
    """Hears all of them, until all have said that the period is over."""
    readings, ended = 0, 0
    async with inga.join("sensors", "collector", members=NAMES, via=VIA, order="fifo", trace=trace) as group:
        async for message in group:
            reading = json.loads(bytes(message.data))
            readings, ended = readings + (reading is not None), ended + (reading is None)
            if ended == len(NAMES) - 1:
                return readings
    raise AssertionError("the group ended before its sensors did")


def certify(trace: Path, spark: object = None) -> str:
    """The verdict of one period; with a Spark session it is kept in the tables, too."""
    if spark is None:
        return inga.pipeline.check_local(trace).verdict
    found = inga.pipeline.check(spark, str(trace))  # type: ignore[arg-type]
    found.write(str(trace.parent / "certificates"))
    return found.verdict


async def main(every: float, periods: int, spark: object, root: Path) -> None:
    certifying: list[asyncio.Task[None]] = []

    async def report(period: int, trace: Path, sent: int, heard: int) -> None:
        verdict = await asyncio.to_thread(certify, trace, spark)
        print(f"period {period}: {heard} of {sent} readings, certificate: {verdict}", flush=True)

    for period in range(1, periods + 1):
        trace = root / f"period-{period:04}"
        heard, *sent = await asyncio.gather(
            collector(trace), *(sensor(name, trace, every) for name in NAMES[1:])
        )
        certifying.append(asyncio.create_task(report(period, trace, sum(sent), heard)))
    await asyncio.gather(*certifying)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=float, default=60.0)
    parser.add_argument("--periods", type=int, default=1_000_000)
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    options = parser.parse_args()
    session = None
    if options.engine == "spark":
        from pyspark.sql import SparkSession

        session = SparkSession.builder.appName("sensors").getOrCreate()
    asyncio.run(main(options.every, options.periods, session, Path("sensors")))
