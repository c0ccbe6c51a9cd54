"""A view in words that travel: what members tell each other of the next one, and newcomers of their first."""

from collections.abc import Sequence
from typing import Any

from inga.model.errors import WireError
from inga.model.view import MEMBERS_MAX, Member, View
from inga.stack.stack import Stack
from inga.wire.told import Told

PROCESSES_MAX = 1 << 16
"""Processes that ever were in a group that is traced: each of them has a number in every row, and in what newcomers are told."""

People = list[tuple[str, int, str]]
"""Names, incarnations, and the kind of state that each of them gives or lacks: see `transfer`."""


def named(person: Member) -> dict[str, Any]:
    """Who it is, wherever one member is spoken of; `Told.identity` reads it."""
    return {"name": person.name, "incarnation": person.incarnation}


def signed(person: Member, group: str, view: int) -> dict[str, Any]:
    """The same of one that leaves: of which group, as its members know it, and which view."""
    return {**named(person), "group": group, "view": view}


def parting(
    person: Member, group: str, view: int, *, itself: bool = False, bound: bool = False, birth: int = 0
) -> dict[str, Any]:
    """A goodbye: of one that leaves, or (not `itself`) of one that it concerns. `bound`: it has agreed to a change. `birth`:
    which process of that name leaves, where there may be two."""
    return {**signed(person, group, view), "itself": itself, "bound": bound, "birth": birth}


def change_key(view: View) -> dict[str, int]:
    """The fields by which members tell the change to this view from others."""
    return {"number": view.number, "attempt": view.attempt}


def described(view: View) -> dict[str, Any]:
    """All that there is to know of a view."""
    return {
        "number": view.number,
        "attempt": view.attempt,
        "leader": view.leader,
        "recipe": view.recipe,
        "traced": view.traced,
        "members": [[member.name, member.incarnation, member.address] for member in view.members],
        "processes": list(view.processes),
        "total": view.total,
        "joined": list(view.joined),
        "left": list(view.left),
        "failed": list(view.failed),
        "merged": [list(part) for part in view.merged],
    }


def host_told(told: Told, view: View) -> str:
    """Who hands out that view and its secret; WireError if it is not in it."""
    host = told.text("host")
    if host not in view.names:
        raise WireError("impostor", "a view of others")
    return host


def view_told(told: Told, *, traced: bool = False) -> View:
    """The view that was described; WireError if there can be none like that. `traced`: we keep a trace, whatever others do."""
    members = tuple(Member(*person) for person in told.people("members"))
    processes = tuple(told.numbers("processes", len(members)))
    total = told.number("total")
    if len(members) > MEMBERS_MAX:
        raise WireError("malformed", f"a view of {len(members)} members")
    if (traced or told.flag("traced")) and total > PROCESSES_MAX:
        raise WireError("malformed", f"a view of a traced group that had {total} members")
    if not members or len({member.name for member in members}) < len(members):
        raise WireError("malformed", "a view of nobody, or of two members of one name")
    if len(set(processes)) < len(processes) or max(processes) >= total:
        raise WireError("malformed", "a view in which two are the same process")
    return View(
        told.number("number"),
        members,
        told.text("recipe"),
        told.flag("traced"),
        tuple(told.texts("joined")),
        tuple(told.texts("left")),
        tuple(told.texts("failed")),
        told.number("leader"),
        told.number("attempt"),
        processes,
        total,
        tuple(map(tuple, told.lists_of_texts("merged"))),
    )


def next_view(
    stack: Stack,
    number: int,
    attempt: int,
    newcomers: list[Member],
    fresh: Sequence[int],
    *,
    recipe: str,
    parts: Sequence[tuple[str, ...]] = (),
) -> View:
    """The view that follows the one in force: without the members that are gone, with those who come, who are `fresh`
    processes of the trace; some of them may be other `parts` of the group."""
    view = stack.view
    stay = [index for index in range(len(view)) if index not in stack.left]
    return View(
        number,
        (*(view.members[index] for index in stay), *newcomers),
        recipe,
        view.traced,
        joined=tuple(person.name for person in newcomers),
        left=tuple(view.names[index] for index in sorted(stack.left - stack.failed)),
        failed=tuple(view.names[index] for index in sorted(stack.failed)),
        leader=stack.member.incarnation,
        attempt=attempt,
        processes=(*(view.processes[index] for index in stay), *fresh),
        total=max([view.total - 1, *fresh]) + 1,
        merged=(tuple(view.names[index] for index in stay), *parts) if parts else (),
    )
