"""The documents that inga is built from, claim by claim: docs/sources.toml, and the page made of it.

A verdict says how a claim came out, and what its row has to name besides what it says:

    holds            confirmed, and a test notices if it is broken on purpose: `fails`, with the case of a test that has several
    corrected        built, after a mistake or an omission was mended: `note` says which
    roughly          about as claimed: `note` says what is different
    not reproduced   measured, with another result than claimed
    not stated       measured, as we derive it; the document says nothing of it
    by construction  as claimed, because the experiment was set up so that it comes out: `note`
    defined          a definition, a model or an assumption that we use as it is
    told             a sentence with nothing to be built or measured: `note`
    not built        there is no such thing here: `note` says why

`claims` names claims of the experiment that repeats a document. What that says of them, a row says as well: `disagreements`. The
ladder's claims are counterexamples, which hold whatever becomes of the sentence of the lecture that they are about.
"""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA, PAGE = ROOT / "docs" / "sources.toml", ROOT / "docs" / "sources.md"
SOURCE, TESTS = ROOT / "src" / "inga", ROOT / "tests"

DOCUMENTS = {
    "lecture": 'Dewan, "Causality" (lecture)',
    "co": 'Sakamoto, Nakamura, Tachikawa, Takizawa, "Causally Ordered Group Communication Protocol Using Sequence Numbers '
    'of Messages"',
    "sco": 'Tachikawa, Takizawa, "Distributed Protocol for Selective Intra-group Communication"',
    "obg": 'Timura, Tanaka, Takizawa, "Group Protocol for Supporting Object-based Ordered Delivery"',
    "remiop": 'Bessani, Fraga, Lung, "Extending the UMIOP Specification for Reliable Multicast in CORBA"',
}
"""By the name of their rows."""

NEEDS: dict[str, set[str]] = {
    "holds": {"where", "test", "fails"},
    "corrected": {"where", "test", "note"},
    "roughly": {"where", "test", "note"},
    "not reproduced": {"where", "test"},
    "not stated": {"where", "test"},
    "by construction": {"where", "test", "note"},
    "defined": {"where", "test"},
    "told": {"where", "test", "note"},
    "not built": {"note"},
}
"""What a row of each verdict has to have, besides `at` and `says`."""

FROM_BEST = ("holds", "by construction", "roughly", "not reproduced")
"""Verdicts of experiments on what a document says. A row that names several claims has the worst of theirs."""
CORRECTED = ", corrected"
"""How the claim ends that is judged after a mistake was mended; the name before it is that of the claim as it is printed."""

Row = dict[str, Any]


def sources() -> dict[str, list[Row]]:
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def faults(rows: dict[str, list[Row]]) -> Iterator[str]:
    """What is wrong with the table: rows that lack something, and names of what is not there."""
    if list(rows) != list(DOCUMENTS):
        yield f"documents are {', '.join(DOCUMENTS)}, not {', '.join(rows)}"
    for document, its in rows.items():
        for row in its:
            where = f"{document}, {row.get('at')}: {row.get('says', '')[:40]}"
            for fault in _faults(row):
                yield f"{where}: {fault}"


def _faults(row: Row) -> Iterator[str]:
    verdict = row.get("verdict", "")
    if verdict not in NEEDS:
        yield f"no verdict: {verdict!r}"
        return
    for key in sorted({"at", "says"} | NEEDS[verdict]):
        if not row.get(key):
            yield f"{verdict}, and no `{key}`"
    for key in sorted(row.keys() - {"at", "says", "verdict", "where", "test", "fails", "note", "claims"}):
        yield f"what is `{key}`?"
    for name in row.get("where", []):
        if not _is_there(ROOT if name.startswith("docs/") else SOURCE, *name.split(":")):
            yield f"{name} is not there"
    for name in [*row.get("test", []), *row.get("fails", [])]:
        test, _, case = name.partition("[")
        if not _is_there(TESTS, *test.split("::")) or (case and name not in collected()):
            yield f"{name} is not there"
        elif name in row.get("fails", []) and "::" in name and name not in collected():
            yield f"{name} has cases, and none is named"


def disagreements(document: str, found: Mapping[str, str]) -> Iterator[str]:
    """Where the rows of a document say otherwise than its experiment, which found these verdicts, by claim."""
    rows = [row for row in sources()[document] if row.get("claims")]
    named = {claim for row in rows for claim in row["claims"]}
    for claim in sorted(found.keys() - named):
        yield f"{claim}: no row names it"
    for claim in sorted(named - found.keys()):
        yield f"{claim}: there is no such claim"
    for row in rows:
        verdicts = {claim: found[claim] for claim in row["claims"] if claim in found}
        if verdicts and not _agree(row["verdict"], verdicts):
            told = ", ".join(f"{claim} {verdict}" for claim, verdict in verdicts.items())
            yield f"{row['at']}: {row['says'][:40]}: {row['verdict']}, and found was: {told}"


def _agree(verdict: str, found: Mapping[str, str]) -> bool:
    if verdict == "corrected":
        printed = {claim for claim in found if claim + CORRECTED in found}
        mended = {found[claim] for claim in found.keys() - printed}
        return mended <= {"holds", "not stated"} and {found[claim] for claim in printed} <= {"not reproduced"}
    if not {*found.values()} <= {*FROM_BEST}:
        return {*found.values()} == {verdict}
    return verdict == max(found.values(), key=FROM_BEST.index)


def _is_there(root: Path, file: str, name: str = "") -> bool:
    path = root / file
    return path.is_file() and (not name or name in _names(path))


@cache
def collected() -> frozenset[str]:
    """All tests, as pytest names them, of the modules in which the table names a mutation, or a case of a test."""
    rows = [row for its in sources().values() for row in its]
    named = [name for row in rows for name in row.get("fails", [])]
    named += [name for row in rows for name in row.get("test", []) if "[" in name]
    modules = {name.partition("::")[0] for name in named if "::" in name}
    paths = sorted(str(path) for module in modules if (path := TESTS / module).is_file())
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return frozenset(line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line)


@cache
def _names(path: Path) -> frozenset[str]:
    """What a module defines: names, and those of its classes with the class before them."""
    return frozenset(_defined(ast.parse(path.read_bytes()).body))


def _defined(body: list[ast.stmt], owner: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield owner + node.name
            if isinstance(node, ast.ClassDef):
                yield from _defined(node.body, f"{owner}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        yield owner + each.id


def page() -> str:
    """docs/sources.md."""
    found = sources()
    count: dict[str, int] = dict.fromkeys(NEEDS, 0)
    for rows in found.values():
        for row in rows:
            count[row["verdict"]] += 1
    total = sum(count.values())
    summary = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
    meanings = __doc__[__doc__.index("    holds") : __doc__.index("\n\n`claims`")].split("\n")
    return "\n".join(
        [
            "# The documents, claim by claim",
            "",
            "The documents that inga is built from: each section, rule, figure, table, theorem and claim, the code that implements it, the tests",
            "that would fail if it were not so, and the verdict. Made from `sources.toml` by `python tests/docs/sources.py`; a test verifies that the",
            "page agrees with the data, and that every file, function and test it names exists.",
            "",
            f"{total} rows: {summary}.",
            "",
            "| verdict | means |",
            "|---|---|",
            *(f"| {line[4:21].strip()} | {line[21:].strip()} |" for line in meanings),
            "",
            "Files are below `src/inga`, tests below `tests`. *Broken in* names a test that breaks the thing, or a measured result, on purpose and",
            "notices it, with its case if it has several; [mutants.md](mutants.md) has more of these. If a row names claims of `inga lab`, the experiment has the",
            "same verdict, the worst one of several claims, and a test verifies that.",
            *(line for name, rows in found.items() for line in _section(name, rows)),
            "",
        ]
    )


def _section(name: str, rows: list[Row]) -> Iterator[str]:
    yield from ("", f"## {DOCUMENTS[name]}", "")
    yield from ("| at | says | verdict | where | test | broken in |", "|---|---|---|---|---|---|")
    for row in rows:
        verdict = f"**{row['verdict']}**" + (f": {row['note']}" if row.get("note") else "")
        if row.get("claims"):
            verdict += f" (`inga lab {name}`: {'; '.join(row['claims'])})"
        names = (_listed(row.get(key, [])) for key in ("where", "test", "fails"))
        words = (text.replace("|", "\\|") for text in (row["at"], row["says"], verdict))
        yield f"| {' | '.join([*words, *names])} |"


def _listed(names: list[str]) -> str:
    """One to a line; several cases of one test share theirs."""
    lines: dict[str, list[str]] = {}
    for name in names:
        test, bracket, case = name.partition("[")
        cases = lines.setdefault(test, [])
        cases.append(f"`{bracket}{case}`" if cases else f"`{name}`")
    return "<br>".join(", ".join(cases) for cases in lines.values()) or "–"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
