"""All published results of the five sources beside those of this program, on one page.

Each source has an experiment of its own, which runs as usual, into a directory of its own. Its results are kept there with its
arguments and a digest of the program: with the same arguments and the same program it is not run again. So an interrupted run
continues where it stopped.
"""

import hashlib
import json
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from inga.lab.bench import SayProgress
from inga.lab.experiments import Claim, Outcome, Table, find_experiment, writing
from inga.lab.papers.page import render
from inga.lab.papers.sources import SOURCES, PaperSource
from inga.pipeline.session import LOCAL
from inga.trace.directory import whole_file

KEPT = "outcome.json"


class Examined(NamedTuple):
    """A source, the outcome of its experiment, and the time that took."""

    source: PaperSource
    outcome: Outcome
    seconds: float
    cpu_seconds: float
    is_kept: bool  # from an earlier run


def run(
    out: Path, quick: bool, progress: SayProgress, *, master: str = LOCAL, fresh: bool = False
) -> Outcome:
    """Run all experiments, and write the page. `fresh`: run also those whose results are kept."""
    digest = program_digest()
    found = [_examine(source, out, quick, progress, master, digest, fresh) for source in SOURCES]
    page = out / "all.html"
    with writing(out):
        page.write_text(render(found, quick=quick, version=digest[:12]), encoding="utf-8")
    claims = [
        Claim(f"{each.source.name}: {claim.id}", *_rest(claim))
        for each in found
        for claim in each.outcome.claims
    ]
    tables = {
        f"{each.source.name}: {name}": table for each in found for name, table in each.outcome.tables.items()
    }
    return Outcome(claims, tables, "\n".join(map(_told, found)), [page])


def program_digest() -> str:
    """Return a digest of this program, including scripts, styles and compiled modules: another program may have other results
    and other pages."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(platform.python_version().encode())
    for path in sorted(path for path in root.rglob("*.*") if path.suffix != ".pyc" and path.is_file()):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _examine(
    source: PaperSource, out: Path, quick: bool, progress: SayProgress, master: str, digest: str, fresh: bool
) -> Examined:
    place = out / source.name
    asked = {"experiment": source.name, "quick": quick, "program": digest}
    kept = None if fresh else _recall(place, asked)
    if kept is not None:
        progress(f"{source.name}: as before")
        return Examined(source, *kept, is_kept=True)
    place.mkdir(parents=True, exist_ok=True)
    (place / KEPT).unlink(missing_ok=True)
    wall, cpu = perf_counter(), process_time()
    outcome = find_experiment(source.name, master=master)(place, quick, _named(source.name, progress))
    spent = perf_counter() - wall, process_time() - cpu
    _keep(place, asked, outcome, *spent)
    return Examined(source, outcome, *spent, is_kept=False)


def _named(name: str, progress: SayProgress) -> Callable[[str], None]:
    return lambda what: progress(f"{name}: {what}")


def _keep(place: Path, asked: dict[str, Any], outcome: Outcome, seconds: float, cpu_seconds: float) -> None:
    content = {
        "asked": asked,
        **outcome.to_json(),
        "text": outcome.text,
        "pages": [page.name for page in outcome.pages],
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }
    with whole_file(place / KEPT) as hidden:
        hidden.write_text(json.dumps(content), encoding="utf-8")


def _recall(place: Path, asked: dict[str, Any]) -> tuple[Outcome, float, float] | None:
    """Return the kept results of a run with the same arguments; None if there are none, or if some are missing."""
    try:
        content = json.loads((place / KEPT).read_text(encoding="utf-8"))
        if content["asked"] != asked:
            return None
        pages = [place / name for name in content["pages"]]
        outcome = Outcome(
            [Claim(**claim) for claim in content["claims"]],
            {name: Table(**table) for name, table in content["tables"].items()},
            content["text"],
            pages,
        )
        seconds = float(content["seconds"]), float(content["cpu_seconds"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return (outcome, *seconds) if all(page.is_file() for page in pages) else None


def _told(each: Examined) -> str:
    verdicts = [claim.verdict for claim in each.outcome.claims]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    spent = "as before" if each.is_kept else f"{each.seconds:.0f} s, {each.cpu_seconds:.0f} s of CPU here"
    return f"{each.source.title}: {counts} ({spent})"


def _rest(claim: Claim) -> tuple[str, str, str, str]:
    return claim.statement, claim.published, claim.measured, claim.verdict
