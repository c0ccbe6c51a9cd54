"""The page of `inga play`, before any schedule is played."""

from collections.abc import Mapping
from html import escape
from importlib.resources import files

from inga.lab.ladder.vectors import SCHEMES
from inga.lab.play.game import examples
from inga.report.packed import safe_json
from inga.report.page import document
from inga.report.spacetime import style


def page(start: Mapping[str, str]) -> str:
    """Return the page as one document. It requests nothing from its server but the outcome of schedules."""
    orders = "".join(f'<option value="{escape(name)}">{escape(name)}</option>' for name in SCHEMES)
    choices = "".join(
        f'<option value="{at}">{escape(each["title"])}</option>' for at, each in enumerate(examples())
    )
    body = [
        "<header><h1>Why messages wait</h1><p>Each line is a member, time runs to the right. Drag an arrival (the end of an "
        "arrow) or a send to another moment, switch the order, and see what each member delivers.</p></header>",
        '<main><section class="card"><div class="controls">',
        f'<label>Example <select id="example"><option value="">one of your own</option>{choices}</select></label>',
        f'<label>Order <select id="order">{orders}</select></label>',
        '<label class="wide">Schedule <input id="schedule" spellcheck="false" autocomplete="off"></label>',
        "</div>",
        '<p id="why" class="muted"></p><p id="rule"></p><p id="verdict" class="told" role="status"></p>',
        '<div id="stage" class="scroll"></div>',
        '<div class="steps"><button type="button" id="back">‹ back</button><input id="step" type="range" min="0" value="0" '
        'aria-label="move"><button type="button" id="on">on ›</button><span id="told" role="status"></span></div>',
        '<div class="scroll"><table class="members"><thead><tr><th scope="col">member</th><th scope="col">its clock</th>'
        '<th scope="col">held back</th><th scope="col">delivered</th></tr></thead><tbody id="members"></tbody></table></div>',
        "</section>",
        '<section class="card"><h2>The language of schedules</h2><p><code>A!1</code> A sends message 1 to all others, <code>A!1:BC</code> '
        "only to B and C. <code>1&gt;B</code> its copy reaches B, <code>1&gt;&gt;B</code> once more. <code>B?1</code> B's application "
        "takes it (else as soon as it is released). <code>B.</code> the waiting time of B ends. <code>A-</code> A crashes, "
        "<code>B=</code> B installs the view without it. What is still under way at the end arrives.</p></section></main>",
        f'<script type="application/json" id="examples">{safe_json({"examples": examples(), "start": dict(start)})}</script>',
    ]
    assets = files("inga.lab.play")
    script = assets.joinpath("play.js").read_text(encoding="utf-8")
    looks = style() + assets.joinpath("play.css").read_text(encoding="utf-8")
    return document("inga play", body, style=looks, script=script, asks=True)
