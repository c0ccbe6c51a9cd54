"""The figures of one member at one moment: `group.stats()`, and the same for a site in virtual time.

The stack contributes what it owns, the layers what they keep anyway (`hooks.Accounting`), the session which members are waited for. The
driver adds what only it knows: the group's name, and the traffic of its sockets.
"""

from collections.abc import Mapping

from inga.model.stats import MemberStats, Stats, Traffic, WindowStats
from inga.session.session import session_of
from inga.stack.figures import Figures
from inga.stack.stack import Stack


def snapshot(
    stack: Stack,
    *,
    group: str,
    now: float,
    traffic: Traffic | None = None,
    state: str | None = None,
    rejected: Mapping[str, int] | None = None,
) -> Stats:
    """Return the figures at that time. `state` and `rejected` replace those of the stack where the driver knows better: it may have closed
    the sockets, or dropped datagrams that never reached the stack."""
    stack.advance(max(now, stack.now))
    pressure, counts, totals = session_of(stack).pressure, stack.counts, stack.views.totals
    figures = stack.chain.account()
    return Stats(
        group=group,
        me=stack.member.name,
        order=stack.view.recipe,
        state=state or _state_of(stack),
        view=stack.view.number,
        view_age=stack.now - stack.views.since,
        members=_members(stack, figures, pressure.waits),
        sent=totals.sent + figures.sent,
        delivered=totals.delivered + sum(figures.delivered),
        calls=stack.chain.begun,
        unread_packets=stack.views.untaken,
        unread_bytes=stack.queued,
        held_bytes=stack.held,
        held_for=pressure.held_for,
        windows=_windows(stack, figures),
        blocked_for=pressure.blocked_for,
        repairs_asked=counts["nack"],
        repairs_given=counts["repair"] + counts["lent"],
        packets_data=counts["data"],
        packets_control=counts["control"],
        round_trip=figures.round_trip,
        rejected=dict(stack.rejected if rejected is None else rejected),
        traffic=traffic or Traffic(),
    )


def _state_of(stack: Stack) -> str:
    if stack.leaving:
        return "leaving"
    if stack.paused is not None:
        return "paused"
    if stack.closing:
        return "closing"
    return "open" if stack.writable else "waiting"


def _members(stack: Stack, figures: Figures, waits: dict[str, float]) -> tuple[MemberStats, ...]:
    now, blockers, awaited = stack.now, stack.chain.blockers(), stack.chain.awaited()
    found = []
    for member, name in enumerate(stack.view.names):
        is_me, since = member == stack.me, figures.owed_since[member]
        found.append(
            MemberStats(
                name=name,
                here=is_me or (member in stack.met and member not in stack.left),
                silent=0.0 if is_me else max(now - stack.heard[member], 0.0),
                delivered=stack.views.totals.by_name.get(name, 0) + figures.delivered[member],
                behind=figures.behind[member],
                behind_for=max(now - since, 0.0) if since else 0.0,
                blocks=member in blockers,
                awaited=member in awaited,
                waited=waits.get(name, 0.0),
            )
        )
    return tuple(found)


def _windows(stack: Stack, figures: Figures) -> tuple[WindowStats, ...]:
    return tuple(
        WindowStats(
            layer.name, layer.is_open, layer.outstanding, figures.limits.get(layer.name), layer.waiting
        )
        for layer in stack.chain.having("is_open")
    )
