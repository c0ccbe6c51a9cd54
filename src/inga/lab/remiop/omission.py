"""A receiver beyond the omission degree: it still lacks a packet after Od + 1 repairs, and is treated as crashed.

The paper allows this assumption and names its benefit and its price: progress, but a slow or badly connected member is taken for
a dead one. The product leaves the decision to the member itself: with `od` the others stop repairing, the member that lacks the
packet requests it for minutes and ends with `Gap`, and the others go on in the next view. Here a strategy of the lab combines the
rule with views: the leader of the others excludes a member that requests the packet once more.

One of four members receives only a share of what is sent to it; its own packets reach all, so no silence is detected. Another
member sends a series of messages. The questions are which members get them, how soon, and which are members in the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.transport import Miop
from inga.corba.orders import REPEATS
from inga.corba.wire.miop import ControlPacket
from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim, Table
from inga.layers.shape import Faults
from inga.model.delivery import Delivery
from inga.recipes import Options
from inga.recipes.standard import NONE
from inga.recipes.transports import Composition
from inga.session.session import Session
from inga.sim.simulator import Sim

NAMES = ("one", "two", "three", "four")
MESSAGES, SIZE, APART = 40, 1000, 0.02
"""Messages of the first member, their octets, and seconds between them."""
BUFFER = 16
"""Packets that are kept of each sender: fewer than are sent, so that a sender has to wait for a member that lacks packets."""
SECONDS = 30.0
SOON = 5.0
"""Seconds within which the others have to get all messages: also the silence after which a member counts as failed."""
OD = 3


class BeyondOd(ReMiop):
    """ReMIOP that treats a member as crashed if it requests a packet after the last repair that `od` allows."""

    def _hear_request(self, control: ControlPacket) -> None:
        asker = self._streams.get(control.sender)
        repaired = self.stack.counts["od_exceeded"]
        super()._hear_request(control)
        if self.stack.counts["od_exceeded"] > repaired and asker is not None:
            self._take_for_crashed(asker.member)

    def _take_for_crashed(self, member: int) -> None:
        """Exclude a member, if we lead the others."""
        stack = self.stack
        session = stack.layer("session")
        assert isinstance(session, Session)
        leads = all(each == member or each in stack.left for each in range(stack.me))
        if member in stack.peers and leads and stack.views.follow:
            session.exclude({member})


@dataclass(frozen=True, slots=True)
class BadlyConnected:
    """The experiment: the share of all copies to the last member that is lost, and the omission degree, None for no bound."""

    loss: float
    od: int | None
    seed: int = 1

    def run(self, strategy: type[ReMiop] = BeyondOd) -> "OmissionSeen":
        """Run the experiment in virtual time. The same experiment always has the same result."""
        own: dict[str, Any] = {"size": BUFFER, "tnack": 0.02, "trepair": 0.02}
        if self.od is not None:
            own["od"] = self.od
        sim = Sim(
            *NAMES,
            order="remiop",
            seed=self.seed,
            faults=Faults(delay_min=0.0005, delay_max=0.001),
            options=Options(detect=SOON, protocol=own),
            build=Composition("remiop", NONE, {"": Miop(strategy, repeats=REPEATS)}),
            record=False,
        )
        first, last = sim.sites[0], sim.sites[-1]
        for site in sim.sites[:-1]:
            link = sim.link(site.name, last.name)
            link.faults = replace(link.faults, loss=self.loss)
        got: dict[str, list[float]] = {name: [] for name in NAMES}

        def note(name: str) -> Any:
            def react(delivery: Delivery) -> None:
                got[name].append(sim.now)

            return react

        for site in sim.sites:
            site.react = note(site.name)
        sent, left = 0, inf
        while sim.now < SECONDS:
            sim.run(until=sim.now + APART)
            if sent < MESSAGES and first.stack.writable:
                first.send(b"%d" % sent * (SIZE // 2))
                sent += 1
            if left == inf and last.name not in first.stack.view.names:
                left = sim.now
        others = [got[name] for name in NAMES[1:-1]]
        whole = all(len(each) == MESSAGES for each in others)
        return OmissionSeen(
            self.loss,
            self.od,
            left < inf,
            None if left == inf else round(left, 2),
            min(map(len, others)),
            round(max(max(each) for each in others), 2) if whole else None,
            len(got[last.name]),
        )


class OmissionSeen(NamedTuple):
    """The result of one run: whether and when the badly connected member was excluded, how many messages the others got and when
    they had all, and how many it got itself."""

    loss: float
    od: int | None
    excluded: bool
    at: float | None
    others: int
    done: float | None
    itself: int


EXPERIMENTS = (
    BadlyConnected(0.1, OD),
    BadlyConnected(0.1, None),
    BadlyConnected(0.95, OD),
    BadlyConnected(0.95, None),
)
CAPTION = (
    f"one of four members loses a share of all that is sent to it, and is heard by all; one sends {MESSAGES} messages, of which {BUFFER} are kept; od: the "
    f"omission degree, after whose number plus one repairs it is taken for crashed. When that was, how many messages the two others got, when they had all, and how "
    f"many it got itself, in {SECONDS:g} s of virtual time"
)


def omission_table(found: Sequence[OmissionSeen]) -> Table:
    return Table(
        ["loss", "od", "excluded", "at_s", "others", "all_at_s", "itself"],
        [[each.loss, each.od, int(each.excluded), *each[3:]] for each in found],
    )


def judge_omission(found: Sequence[OmissionSeen]) -> Claim:
    """Judge claim 8. The others make progress by a view; no member within the bound is excluded, and none at all without a bound."""
    good, good_unbound, bad, bad_unbound = found
    stays = not good.excluded and good.itself == good.others == MESSAGES and not good_unbound.excluded
    goes = bad.excluded and bad.done is not None and bad.done <= SOON
    waits = not bad_unbound.excluded and (bad_unbound.done is None or bad_unbound.done > SOON)
    done = (
        f"after {bad_unbound.done:g} s"
        if bad_unbound.done
        else f"{bad_unbound.others} of {MESSAGES} after {SECONDS:g} s"
    )
    return Claim(
        "8",
        "a receiver that lacks a packet after Od + 1 transmissions can be treated as crashed: the others make progress, and one that is only badly connected "
        "is taken for dead",
        "section 4.1",
        f"Od = {OD}: of {100 * bad.loss:g} % loss excluded by a view after {bad.at or 0:g} s, the others have all after {bad.done or inf:g} s, and it was alive, with "
        f"{bad.itself} messages; of {100 * good.loss:g} % loss a member to the end, with all {good.itself}. Without a bound the others have {done}",
        HOLDS if stays and goes and waits else NOT_REPRODUCED,
    )
