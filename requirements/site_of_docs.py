"""Build the documentation as a site: `make docs`. It needs no network, and its search works from the disk, too.

Sphinx wants all pages in one folder. So docs/ is copied to one, with pages made of files elsewhere (the README, examples, measurements),
links between them turned, and a navigation of four parts. A page belongs to the part that its folder is named after; pages in
docs/ itself are listed below, and one that is not listed is reference. So a new page is in the navigation as soon as it is there.
Links work in the repository, where they lead to files, and on the site, where they lead to pages.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

HOME = "index.md"
OUTSIDE = {
    "README.md": HOME,
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "bench/README.md": "bench.md",
    "examples/README.md": "examples/index.md",
}
"""Files of the repository outside of docs/ that are pages, and where they stand."""

PARTS = {
    "Tutorial": ("tutorial",),
    "How-to": (
        *(
            "howto",
            "chat.md",
            "objects.md",
            "python.md",
            "import.md",
            "own-logs.md",
            "operating.md",
            "report.md",
        ),
        *("layers.md", "extending.md", "orb.md", "examples"),
    ),
    "Reference": (
        *("reference", "trace.md", "checks.md", "metrics.md", "pipeline.md", "security.md", "dissect.md"),
        *("scenarios.md", "glossary.md", "changelog.md"),
    ),
    "Explanation": (
        *("architecture.md", "protocols", "decisions", "hunting.md", "mutants.md", "bench.md"),
        *("contributing.md", "reporting.md"),
    ),
}
REST = "Reference"

LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)#\s]+)([^)]*\))")

CONFIGURATION = """
project = "inga"
author = "the inga authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "inga 因果"
html_copy_source = False
html_show_sourcelink = False
exclude_patterns = []
suppress_warnings = ["myst.header"]  # the changelog and decisions begin as they like
"""


def main(out: str) -> int:
    """Assemble the pages beside the site, and let Sphinx build it; any warning is an error."""
    from sphinx.cmd.build import build_main

    site = Path(out)
    source = site.parent / f"{site.name}-source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    assemble(source)
    code = build_main(
        ["-q", "-W", "--keep-going", "-d", str(site.parent / "doctrees"), str(source), str(site)]
    )
    if code == 0:
        print(f"open {site / 'index.html'}")
    return code


def assemble(source: Path) -> None:
    """All pages, in one folder."""
    shutil.copytree(DOCS, source)
    for path, place in assets().items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, source / place)
    origins = {page: path for path, page in made().items()}
    for page in pages():
        path = origins.get(page, f"docs/{page}")
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".py"):
            text = f"# {Path(path).name}\n\n```python\n{text}```\n"
        text = linked(text, path, page)
        target = source / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + (contents() if page == HOME else ""), encoding="utf-8")
    (source / "conf.py").write_text(CONFIGURATION, encoding="utf-8")


def made() -> dict[str, str]:
    """Files outside of docs/ that are pages, and where."""
    present = {path: page for path, page in OUTSIDE.items() if (ROOT / path).is_file()}
    examples = sorted((ROOT / "examples").glob("*.py"))
    return present | {f"examples/{each.name}": f"examples/{each.stem}.md" for each in examples}


def assets() -> dict[str, str]:
    """Files outside of docs/ that are linked as they are, and where they go."""
    examples = [path for path in sorted((ROOT / "examples").glob("*.*")) if path.suffix not in (".py", ".md")]
    known = {"bench/scale.html": "scale.html", "Containerfile": "Containerfile", "LICENSE": "LICENSE"}
    return known | {f"examples/{each.name}": f"examples/{each.name}" for each in examples}


def pages() -> list[str]:
    """All pages of the site."""
    return sorted({*(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")), *made().values()})


def parts() -> dict[str, list[str]]:
    """Each page but the first, in its part."""
    left = [page for page in pages() if page != HOME]
    placed: dict[str, list[str]] = {}
    for part, places in PARTS.items():
        placed[part] = []
        for place in places:
            found = [page for page in left if page == place or page.startswith(f"{place}/")]
            placed[part] += sorted(found, key=lambda page: (not page.endswith("index.md"), page))
            left = [page for page in left if page not in found]
    placed[REST] += left
    return placed


def contents() -> str:
    """The navigation, for the end of the first page."""
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {part}", "", *found, "```"])
        for part, found in parts().items()
        if found
    ]
    return "\n\n" + "\n\n".join(trees) + "\n"


def linked(text: str, path: str, page: str) -> str:
    """The text of a file as a page: links to files lead to the pages that are made of them."""
    folder, here = posixpath.dirname(path), posixpath.dirname(page) or "."
    known = made() | assets()

    def turn(found: re.Match[str]) -> str:
        before, target, after = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        file = posixpath.normpath(posixpath.join(folder, target))
        if target.endswith("/"):
            file += "/README.md"
        place = file.removeprefix("docs/") if file.startswith("docs/") else known.get(file)
        return found[0] if place is None else before + posixpath.relpath(place, here) + after

    return LINK.sub(turn, text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "build/site"))
