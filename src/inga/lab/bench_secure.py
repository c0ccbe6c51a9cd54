"""The cost of security: the same groups with a secret and without, measured alternately."""

from statistics import median
from typing import Any

from inga.keys.secret import Secret
from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_net import FAST, cost, round_trips

MEMBERS, SIZE = 4, 1024
ROUND_TRIPS = (2, 4)


def run(progress: SayProgress, *, quick: bool, repetitions: int) -> list[BenchRow]:
    """Measure CPU for each delivery, messages per second, and idle round trips."""
    secret = Secret.make().text()
    plain: list[dict[str, float]] = []
    secured: list[dict[str, float]] = []
    for repetition in range(repetitions):
        progress(f"{MEMBERS} members, plain and secured ({repetition + 1}/{repetitions})")
        for found, how in ((plain, {}), (secured, {"secret": secret})):
            found.append(cost(FAST, MEMBERS, SIZE, **how))

    def rows(key: str, unit: str) -> BenchRow:
        before, after = (median(result[key] for result in results) for results in (plain, secured))
        return BenchRow(f"{MEMBERS} x {SIZE} B secured, {FAST.name}", before, after, unit, "plain")

    found_rows = [rows("cpu", "us CPU/delivery"), rows("rate", "messages/s and receiver")]
    rounds = 400 if quick else 2000
    for members in ROUND_TRIPS:
        times: dict[str, list[float]] = {"": [], secret: []}
        for repetition in range(repetitions):
            progress(f"round trips of {members} members ({repetition + 1}/{repetitions})")
            for key, found_times in times.items():
                told: dict[str, Any] = {"secret": key} if key else {}
                found_times.append(round_trips("latency", members, rounds, **told)["p50"])
        found_rows.append(
            BenchRow(
                f"{members} members secured, p50", median(times[""]), median(times[secret]), "us", "plain"
            )
        )
    return found_rows
