"""The transfer of application states in virtual time: drawn from one site at a cut, and taken by a newcomer that joined there."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from inga.model.delivery import Batch, Delivery
from inga.model.event import Incident
from inga.model.view import View
from inga.session.history import LastMessages
from inga.session.session import Session
from inga.session.transfer import OutgoingState
from inga.trial.workload import HEADER

if TYPE_CHECKING:
    from inga.sim.site import Site

SiteGives = Callable[["Site"], Iterable[bytes]]
"""Returns the state of a site's application, in chunks."""

SiteTakes = Callable[["Site", bytes], None]
"""Lets a site's application take the state of another."""


class SiteStates:
    """Gives and takes states on behalf of the application of one site, as `net` does for `on_state_request` and `on_state`."""

    def __init__(
        self, site: "Site", give: SiteGives | None, take: SiteTakes | None, history: int | float | None
    ) -> None:
        self._site = site
        self._give = give
        self._take = take
        session = cast(Session, site.stack.layer("session"))
        self.transfer = session.transfer
        self.history = None if history is None else LastMessages(history, site.stack.view, self.transfer)
        self._sources: dict[OutgoingState, Iterator[bytes]] = {}

    def pass_by(self, view: View) -> bool:
        """Note that the application has taken everything before this view. Return whether it goes on now, or has to wait for a
        state or until its own state is drawn."""
        transfer, place, how = self.transfer, view, "went"
        if transfer.waits_at(view):
            return False
        if view is transfer.stop_at:
            incoming, how = transfer.pass_stop(), "without"
            if incoming is not None:
                place, how = incoming.cut, "took"
                self._site.skip_to(place)
                self._begin(b"".join(incoming.taken()))
        self._sources = {each: source for each, source in self._sources.items() if each.is_open}
        for outgoing in transfer.due(view):
            self._draw(outgoing)
        goes_on = not transfer.due(view)
        if self._site.sim.passed is not None and (goes_on or how != "went"):
            self._site.sim.passed(self._site, place, how)
        return goes_on

    def sent(self, payload: bytes) -> None:
        """Note that the application has sent a message to all members."""
        site, stack = self._site, self._site.stack
        if self.history is not None and not site.sim.ledger.echoes(stack.view):
            self.history.sent(site.name, stack.me, stack.view.number, [payload], stack.now)

    def follow(self, items: Iterable[Batch | View | Incident]) -> None:
        """Note what was delivered."""
        if self.history is not None:
            self.history.follow(items, self._site.stack.now)

    def _begin(self, state: bytes) -> None:
        if self.history is not None:
            for batch in self.history.restore(state, self._site.stack.now):
                delivery = Delivery(batch, 0)
                delivery.data = delivery.data[HEADER:]
                self._site.taken.append(delivery)
        elif self._take is not None:
            self._take(self._site, state)

    def _draw(self, outgoing: OutgoingState) -> None:
        assert self._give is not None
        try:
            if outgoing not in self._sources:
                self._sources[outgoing] = iter(self._give(self._site))
            while outgoing.is_hungry:
                chunk = next(self._sources[outgoing], None)
                if chunk is None:
                    self.transfer.end(outgoing)
                else:
                    self.transfer.put(outgoing, chunk)
                if self._site.reads_at > self._site.sim.now:
                    break  # the application pauses
        except Exception as error:
            self.transfer.refuse(outgoing, repr(error))
