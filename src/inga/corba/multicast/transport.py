"""MIOP as what carries the packets of an order, with a strategy against loss or with none."""

from collections.abc import Mapping, Sequence
from typing import Any

from inga.corba.multicast.envelope import Envelope
from inga.corba.multicast.fragments import MiopFragments, MiopPackets, Strategy
from inga.corba.multicast.lending import StreamLender
from inga.layers.fragment import Fragment, LossyFragment
from inga.layers.shape import shaped
from inga.recipes.options import Options
from inga.recipes.recipe import refuse_unknown
from inga.recipes.transports import Part, Transport, changing_session, options_of, repairs_itself
from inga.session.session import Session
from inga.stack.layer import Layer

UNLIMITED = 1 << 62
"""Unread bytes that no application has."""


class Miop(Transport):
    """Packets as requests by MIOP. Members come, go and fail where a strategy hands round what one had sent that is gone,
    and failures are detected; elsewhere they stay as they are."""

    wire = "miop"

    def __init__(self, strategy: type[Strategy[Any]] | None = None, **defaults: Any) -> None:
        """`defaults` are those of the strategy."""
        self.strategy = strategy
        self.defaults = defaults
        self.fragment = LossyFragment if strategy is None else Fragment
        self.lends = strategy is not None and issubclass(strategy, StreamLender)

    def parts(self, order: Part, options: Options) -> list[Part]:
        own = repairs_itself(order.layer)
        given = {
            "announced": options.greet,
            # Such an order lets senders wait for slow readers. What it says to go on must not wait for that below.
            "queue_max": UNLIMITED if own else options.queue_max,
            "confirms": not order.options,  # else that is for the order to say
        }
        return miop_parts(self.strategy, options, given, self.defaults)

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        # Senders that wait for nobody may have pushed out what another lacks.
        is_kept = options.protocol.get("wait", True)
        if self.lends and is_kept and options.detect is not None:
            session = changing_session(options, name)
        else:
            session = Session(greet=options.greet, config=options.config)
        envelope = Envelope(receipts=not repairs_itself(type(order)), place=options.place)
        return [session, envelope, *made, shaped(options.faults), MiopPackets()]


def miop_parts(
    strategy: type[Strategy[Any]] | None,
    options: Options,
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> list[Part]:
    """Fragments, and a strategy or none: what is told to the strategy, and what it does unless told otherwise."""
    first = {"first": options.start << 16 or 1}
    fragments = Part(MiopFragments, first)
    return [fragments] if strategy is None else [fragments, Part(strategy, {**first, **given}, defaults)]


def miop_layers(
    name: str, strategy: type[Strategy[Any]] | None, options: Options, *, sender: int, **defaults: Any
) -> list[Layer]:
    """Of a group in which anybody may speak: what is beneath requests that travel by MIOP, from us as `sender`."""
    parts = miop_parts(strategy, options, {"queue_max": options.queue_max}, defaults)
    refuse_unknown(name, options.protocol, options_of(parts))
    made = [part.make(options.protocol) for part in parts]
    return [*made, shaped(options.faults), MiopPackets(sender=sender)]
