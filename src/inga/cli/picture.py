"""`inga.picture("run7")`: the report of a trace where notebooks show it, verdicts first, then the space-time diagram."""

import contextlib
import io
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from inga.model.errors import UsageError

HEIGHT = 760
"""Pixels of the frame in which the page is shown; it scrolls."""


class Picture:
    """A page that needs nothing else. A notebook shows it; `write` saves it."""

    def __init__(self, html: str, verdict: str) -> None:
        self.html = html
        self.verdict = verdict

    def write(self, path: str | Path) -> None:
        """Save it as a file for any browser."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # In a frame of its own: the page has styles, ids and a policy, and may not reach the notebook around it.
        return (
            f'<iframe sandbox="allow-scripts" style="width:100%;height:{HEIGHT}px;border:0" '
            f'title="inga report" srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<picture of a run: {self.verdict}>"


def picture(*traces: str | Path, checks: Sequence[str] = (), engine: str = "local") -> Picture:
    """Certify traces and draw them, as `inga report` does: in this process, or by Spark with `engine="spark"`. Several are
    compared."""
    from inga.cli.main import OK, UNKNOWN, VIOLATED, main

    verdicts = {OK: "pass", VIOLATED: "fail", UNKNOWN: "unknown"}
    said, complaints = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory(prefix="inga-picture-") as scratch:
        page = Path(scratch) / "report.html"
        words = ["report", *map(str, traces), "--out", str(page), "--engine", engine, "--quiet"]
        words += ["--checks", ",".join(checks)] if checks else []
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaints):
                code = main(words)
        except SystemExit:  # words that no option has
            code = None
        if code not in verdicts:
            raise UsageError(complaints.getvalue().strip().removeprefix("inga report: "))
        return Picture(page.read_text(encoding="utf-8"), verdicts[code])
