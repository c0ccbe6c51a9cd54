"""The ladder as text for a terminal: what happens move by move, and where it goes wrong."""

import re
from collections.abc import Sequence
from html import unescape
from textwrap import fill

from inga.lab.experiments import Table
from inga.lab.ladder.played import Played
from inga.lab.ladder.scene import Scene, describe, outcome
from inga.lab.ladder.vectors import Chapter

WIDTH = 100


def tell(chapters: Sequence[tuple[Chapter, Sequence[Played]]], searched: Table) -> str:
    """Return the whole text."""
    parts = []
    for chapter, played in chapters:
        parts.append(f"\n{chapter.title.upper()}\n")
        parts += [_prose(paragraph) + "\n" for paragraph in chapter.lead]
        parts += [_vector(each) for each in played]
        if chapter.rule:
            parts.append(_prose(f"=> {chapter.rule}") + "\n")
    return "\n".join([*parts, _searched(searched)])


def _vector(played: Played) -> str:
    vector = played.vector
    lines = [f"{vector.id}  {vector.title}", _prose(vector.why, "    "), ""]
    for schedule, orders, scene, is_right in played.pictures():
        lines += [f"    {', '.join(orders)}{' (the right rule)' if is_right else ''}:  {schedule}"]
        lines += [f"        {line}" for line in describe(scene)]
        lines += [f"      {'ok' if not scene.findings else '!!'} {line}" for line in _ending(scene)]
        lines.append("")
    return "\n".join(lines)


def _ending(scene: Scene) -> list[str]:
    return outcome(scene) or ["everything is delivered, nothing before its cause"]


def _searched(table: Table) -> str:
    lines = ["THE SMALLEST, FOUND BY SEARCH\n"]
    for scheme, messages, sites, _, first, why in table.rows:
        bound = f"{messages} messages, {sites} sites"
        lines.append(f"    {scheme:<16} {bound:<20} {first or '-':<28} {why}")
    return "\n".join(lines) + "\n"


def _prose(text: str, indent: str = "") -> str:
    """Return prose with HTML tags as plain lines."""
    plain = unescape(re.sub(r"</?\w+>", "", text))
    return fill(plain, WIDTH, initial_indent=indent, subsequent_indent=indent)
