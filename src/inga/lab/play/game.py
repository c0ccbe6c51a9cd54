"""Plays a schedule, and returns all that a page needs to show it move by move.

The moves are those of `inga.sim.schedule`; a move that cannot be made is left out, and copies in flight at the end arrive.
So after dragging any move to any place there is a valid schedule again.
"""

from typing import Any

from inga.lab.ladder.picture import columns, picture
from inga.lab.ladder.scene import Scene, describe, outcome, play_schedule
from inga.lab.ladder.vectors import CHAPTERS, SCHEMES
from inga.model.errors import UsageError
from inga.report.spacetime import draw, levels, x_of
from inga.sim.schedule import Schedule, Send, Take, letter

MOVES_MAX = 200
SITES_MAX = 8
NUMBER_MAX = 999

LUNCH = "A!1 1>B B!2 2>C 1>C 2>A"
"""Alice asks, Bob answers, Cathy gets the answer first."""


def examples() -> list[dict[str, str]]:
    """Return the schedules of the ladder, each under the scheme that it breaks."""
    found = [
        {
            "title": f"{vector.id}: {vector.title}",
            "why": vector.why,
            "schedule": show.schedule,
            "order": show.scheme,
            "right": vector.right[0],
        }
        for chapter in CHAPTERS
        for vector in chapter.vectors
        for show in vector.shows[:1]
        if show.play is None and not show.options and not show.flaws and show.scheme in SCHEMES
    ]
    lunch = {
        "title": "Lunch: the answer before the question",
        "why": "Alice asks (1), Bob answers (2), and the answer reaches Cathy first. Switch the order to vector, and Cathy "
        "waits; then drag arrivals about and try to make her see the answer first again.",
        "schedule": LUNCH,
        "order": "fifo",
        "right": "vector",
    }
    return [lunch, *found]


def play(text: str, order: str) -> dict[str, Any]:
    """Play a schedule under an order, and return what happens, move by move, and what is wrong."""
    if order not in SCHEMES:
        raise UsageError(f"no order {order!r} to play; there are {', '.join(SCHEMES)}")
    _check(text)
    scene = play_schedule(text, order)
    diagram = picture(scene, f"{scene.schedule} under {order}")
    words = list(map(str, scene.schedule.events))
    return {
        "schedule": " ".join(words),
        "words": words,
        "order": order,
        "rule": SCHEMES[order],
        "svg": draw(diagram, alone=True),
        "names": diagram.lanes,
        "levels": levels(diagram),
        "moments": _moments(scene),
        "wrong": outcome(scene),
    }


def _check(text: str) -> None:
    """Refuse schedules that would take too long or could not be shown."""
    schedule = Schedule.parse(text)
    numbers = [getattr(event, "message", 0) for event in schedule.events]
    if len(schedule.events) > MOVES_MAX or schedule.sites > SITES_MAX or max(numbers, default=0) > NUMBER_MAX:
        raise UsageError(
            f"at most {MOVES_MAX} moves of {SITES_MAX} members (A to {letter(SITES_MAX - 1)}), "
            f"and messages up to {NUMBER_MAX}, can be played"
        )


def _moments(scene: Scene) -> list[dict[str, Any]]:
    """Return each move with the states of all members after it."""
    played = list(map(str, scene.schedule.events))
    states = ["" for _ in range(scene.sites)]
    held: list[list[int]] = [[] for _ in range(scene.sites)]
    got: list[list[int]] = [[] for _ in range(scene.sites)]
    found, at = [], 0
    for moment, column, text in zip(scene.moments, columns(scene), describe(scene), strict=True):
        site, word = moment.event.site, str(moment.event)
        is_move = at < len(played) and word == played[at]
        states[site] = moment.state or states[site]
        held[site] = [each for each in (*held[site], *moment.held) if each not in moment.released]
        if isinstance(moment.event, Take):
            got[site].append(moment.event.message)
            held[site] = [each for each in held[site] if each != moment.event.message]
        found.append(
            {
                "move": at if is_move else None,
                "x": x_of(column),
                "column": column,
                "site": site,
                "isSend": isinstance(moment.event, Send),
                "text": text.split("   [")[0],
                "isWrong": moment.finding is not None,
                "states": list(states),
                "held": [list(each) for each in held],
                "got": [list(each) for each in got],
            }
        )
        at += is_move
    return found
