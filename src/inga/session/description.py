"""The description of a view in control messages: of the next view for members, of their first one for newcomers."""

from collections.abc import Sequence
from typing import Any

from inga.model.errors import WireError
from inga.model.view import MEMBERS_MAX, Member, View
from inga.stack.stack import Stack
from inga.wire.told import Told

PROCESSES_MAX = 1 << 16
"""Processes that a traced group may ever have had: each of them has a number in every row, and in the welcome to newcomers."""

People = list[tuple[str, int, str]]
"""Members by name and incarnation, with the kind of state that each gives or lacks: see `transfer`."""


def named(person: Member) -> dict[str, Any]:
    """Return the fields that identify one member in any control message; `Told.identity` reads them."""
    return {"name": person.name, "incarnation": person.incarnation}


def signed(person: Member, group: str, view: int) -> dict[str, Any]:
    """Return the same fields with the digest of the group and the number of the view: for goodbyes and farewells."""
    return {**named(person), "group": group, "view": view}


def parting(
    person: Member, group: str, view: int, *, itself: bool = False, bound: bool = False, birth: int = 0
) -> dict[str, Any]:
    """Return the fields of a goodbye: of the leaving member `itself`, or of another member that reports it. `bound`: the leaving member has
    agreed to a change. `birth`: which process of that name leaves, where there may be two."""
    return {**signed(person, group, view), "itself": itself, "bound": bound, "birth": birth}


def change_key(view: View) -> dict[str, int]:
    """Return the fields by which members tell the change to this view from others."""
    return {"number": view.number, "attempt": view.attempt}


def described(view: View) -> dict[str, Any]:
    """Return all fields of a view, as a control message carries them."""
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
    """Return the name of the member that hands out this view and its secret; WireError if it is not in the view."""
    host = told.text("host")
    if host not in view.names:
        raise WireError("impostor", "a view of others")
    return host


def view_told(told: Told, *, traced: bool = False) -> View:
    """Read the view that a control message describes; WireError if it is impossible. `traced`: we keep a trace, whatever others do."""
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
    """Return the view that follows the one in force: without the members that are gone, with the newcomers, whose process numbers in the
    trace are `fresh`. `parts`: the other parts of the group from which some of them come."""
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
