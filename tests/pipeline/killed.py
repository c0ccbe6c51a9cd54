"""Programs that are killed at random moments and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic, sleep

LIMIT = 100.0  # seconds after which a program that does not get on is a failure
POLL = 0.02


def run_and_kill(
    arguments: list[str],
    log: Path,
    marks: Callable[[], int],
    kills: int,
    rng: Random,
    feed: Callable[[int], object] = lambda life: None,
) -> subprocess.CompletedProcess[str]:
    """Run `inga` with these arguments; kill it so often, each time a moment after it has visibly got on (`marks`
    counts what it left behind); then let it end. `feed` gives each life something to do."""
    for life in range(kills):
        feed(life)
        before, delay = marks(), rng.random() * 0.5
        with log.open("a") as errors:
            driver = subprocess.Popen(
                [sys.executable, "-m", "inga", *arguments],
                stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
            )  # fmt: skip
        deadline = monotonic() + LIMIT
        while driver.poll() is None and marks() <= before and monotonic() < deadline:
            sleep(POLL)
        sleep(delay)  # not a wait for anything: the moment is to be random
        with suppress(ProcessLookupError):  # it was faster
            os.killpg(driver.pid, signal.SIGKILL)  # Python and Java
        driver.wait()
    feed(kills)
    return subprocess.run(
        [sys.executable, "-m", "inga", *arguments],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
