"""The ladder as one page: a problem, rung after rung, and the rule at the end."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from inga.lab.experiments import Table
from inga.lab.ladder.picture import picture
from inga.lab.ladder.played import Played
from inga.lab.ladder.scene import Scene, describe, outcome, play_schedule
from inga.lab.ladder.vectors import SCHEMES, Chapter
from inga.report.page import document
from inga.report.spacetime import Bar, Copy, Diagram, Dot, draw, draw_sign, style

TITLE = "The ladder: why a message needs a vector"

_LEGEND = (
    ("sent", Diagram([""], 1, "a message is sent", [Dot(0, 0, "1", "send")])),
    ("delivered", Diagram([""], 1, "a message is delivered", [Dot(0, 0, "1", "deliver")])),
    ("flagged as concurrent", Diagram([""], 1, "delivered, flagged", [Dot(0, 0, "1", "flagged")])),
    ("delivered before its cause", Diagram([""], 1, "delivered too early", [Dot(0, 0, "1", "early")])),
    ("held", Diagram([""], 2, "held", bars=[Bar(0, 0, 1, "1", "held", "")])),
    ("held for ever", Diagram([""], 2, "held for ever", bars=[Bar(0, 0, None, "1", "blocked", "")])),
    ("unread, or not yet sent", Diagram([""], 2, "in a queue", bars=[Bar(0, 0, 1, "1", "queued", "")])),
    ("comes too late", Diagram([""], 2, "late", copies=[Copy(0, 0, 0, 1, "late")])),
)


def render(chapters: Sequence[tuple[Chapter, Sequence[Played]]], searched: Table) -> str:
    """Return the page, which needs no other files and no network."""
    body = [
        f"<header><h1>{escape(TITLE)}</h1>",
        "<p>A group of people talk, and messages take different ways. Climb from no order at all to vector time: "
        "each rung is an idea that almost works, and the smallest example that breaks it, beside the same example "
        "under the right rule. Everything here was played by the program that you are about to use.</p></header>",
        "<main>",
        _contents(chapters),
        *(_chapter(number, *each) for number, each in enumerate(chapters, 1)),
        _summary(chapters),
        _searched(searched),
        "</main>",
    ]
    more = files("inga.lab.ladder").joinpath("ladder.css").read_text(encoding="utf-8")
    return document(TITLE, body, style=style() + more)


def _contents(chapters: Sequence[tuple[Chapter, Sequence[Played]]]) -> str:
    items = "".join(
        f'<li><a href="#chapter-{number}">{chapter.title}</a> '
        + " ".join(f'<a class="id" href="#{each.vector.id}">{each.vector.id}</a>' for each in played)
        + "</li>"
        for number, (chapter, played) in enumerate(chapters, 1)
    )
    signs = "".join(
        f"<li>{draw_sign(diagram)}<span>{escape(words)}</span></li>" for words, diagram in _LEGEND
    )
    return (
        f'<section class="card"><h2>The way up</h2><ol class="contents">{items}</ol>'
        f'<h3>How to read the pictures</h3><ul class="signs">{signs}</ul>'
        '<p class="muted">Beside each picture stands its schedule: <code>A!1</code> alice sends message 1, '
        "<code>1&gt;B</code> its copy reaches bob, <code>1&gt;&gt;B</code> a second copy does, <code>A!1:B</code> it is "
        "for bob only, <code>B?1</code> bob reads it, <code>B.</code> his waiting time ends. Whatever is still on its "
        "way at the end arrives.</p></section>"
    )


def _chapter(number: int, chapter: Chapter, played: Sequence[Played]) -> str:
    lead = "".join(f"<p>{paragraph}</p>" for paragraph in chapter.lead)
    rule = f'<p class="rule">{chapter.rule}</p>' if chapter.rule else ""
    return (
        f'<section class="card chapter" id="chapter-{number}"><h2><span class="rung">{number}</span>{chapter.title}</h2>'
        f'<div class="prose">{lead}</div>{_example(chapter)}{"".join(map(_vector, played))}{rule}</section>'
    )


def _example(chapter: Chapter) -> str:
    """Return the chapter's example: a schedule under the right rule, step by step."""
    if not chapter.example:
        return ""
    scene = play_schedule(chapter.example, "vector")
    steps = "".join(f"<li>{_step(line)}</li>" for line in describe(scene))
    return (
        f'<p class="schedule"><code>{escape(chapter.example)}</code></p><div class="figures"><figure class="clean">'
        f'<div class="scroll">{draw(picture(scene, "lunch under the standard test"))}</div></figure>'
        f'<figure class="clean steps"><figcaption>step by step <span>vector of the member</span></figcaption><ol>{steps}</ol>'
        "</figure></div>"
    )


def _vector(played: Played) -> str:
    vector = played.vector
    head = (
        f'<article id="{vector.id}"><h3><span class="id">{vector.id}</span> {escape(vector.title)} {_mark(played)}</h3>'
        f'<p class="prose">{vector.why}</p>'
    )
    return head + "".join(_row(played, schedule) for schedule in _schedules(played)) + "</article>"


def _schedules(played: Played) -> list[str]:
    return list(dict.fromkeys(show.schedule for show, _, _ in played.shows))


def _row(played: Played, schedule: str) -> str:
    """Return the pictures of one schedule side by side, the broken schemes on the left."""
    figures = [each for each in played.pictures() if each[0] == schedule]
    drawn = "".join(_figure(played, orders, scene, is_right) for _, orders, scene, is_right in figures)
    return f'<p class="schedule"><code>{escape(schedule)}</code></p><div class="figures">{drawn}</div>'


def _figure(played: Played, orders: list[str], scene: Scene, is_right: bool) -> str:
    words = outcome(scene) or ["everything is delivered, nothing before its cause"]
    verdict = "".join(f"<li>{escape(line)}</li>" for line in words)
    steps = "".join(f"<li>{_step(line)}</li>" for line in describe(scene))
    names = " ".join(f"<code>{escape(order)}</code>" for order in orders)
    kind, sign = ("clean", "✓") if not scene.findings else ("broken", "✗")
    what = "the right rule" if is_right else "a weaker scheme"
    rule = SCHEMES.get(orders[0], "")
    return (
        f'<figure class="{kind}"><figcaption><i aria-hidden="true">{sign}</i> {names} <span>{what}</span></figcaption>'
        f'<p class="test">{escape(rule)}</p><div class="scroll">{draw(picture(scene, played.caption(orders, scene)))}</div><ul class="outcome">{verdict}</ul>'
        f"<details><summary>step by step</summary><ol>{steps}</ol></details></figure>"
    )


def _step(line: str) -> str:
    text, _, state = line.partition("   [")
    bad = ' class="bad"' if "BEFORE" in text else ""
    shown = f" <small>{escape(state.rstrip(']'))}</small>" if state else ""
    return f"<span{bad}>{escape(text.replace('BEFORE ITS CAUSE', 'before its cause'))}</span>{shown}"


def _mark(played: Played) -> str:
    if played.holds:
        return '<span class="mark pass"><i aria-hidden="true">✓</i> breaks as listed, clean under the right rule</span>'
    if not played.shows:
        return '<span class="mark unknown"><i aria-hidden="true">?</i> not played yet</span>'
    return '<span class="mark fail"><i aria-hidden="true">✗</i> not as listed</span>'


def _summary(chapters: Sequence[tuple[Chapter, Sequence[Played]]]) -> str:
    broken: dict[str, list[str]] = {}
    for _, played in chapters:
        for each in played:
            for show, scene, _ in each.shows:
                ids = broken.setdefault(show.name, [])
                if scene.findings and each.vector.id not in ids:
                    ids.append(each.vector.id)
    lines = "".join(
        f'<tr><th scope="row"><code>{escape(scheme)}</code></th><td>'
        + " ".join(f'<a class="id" href="#{each}">{each}</a>' for each in ids)
        + "</td></tr>"
        for scheme, ids in broken.items()
    )
    return (
        '<section class="card"><h2>Who breaks where</h2><table class="summary"><thead><tr><th scope="col">scheme</th>'
        f'<th scope="col">broken by</th></tr></thead><tbody>{lines}</tbody></table></section>'
    )


def _searched(table: Table) -> str:
    lines = "".join(
        f'<tr><th scope="row"><code>{escape(scheme)}</code></th><td>{messages} messages, {sites} members</td>'
        f"<td><code>{escape(first) or '–'}</code></td><td>{escape(why)}</td></tr>"
        for scheme, messages, sites, _, first, why in table.rows
    )
    return (
        '<section class="card"><h2>The smallest, found by search</h2><p class="muted">Every schedule of so many '
        "broadcasts among so many members was tried, the smaller ones first. What the search finds is often the very "
        'counterexample above.</p><div class="scroll"><table><thead><tr><th scope="col">scheme</th><th scope="col">bound</th>'
        f'<th scope="col">first that breaks it</th><th scope="col">why</th></tr></thead><tbody>{lines}</tbody></table></div></section>'
    )
