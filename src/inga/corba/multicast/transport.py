"""MIOP as the transport of an order's packets, with a strategy against loss or without one."""

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
"""A limit of unread bytes that no application reaches."""


class Miop(Transport):
    """Carries packets in requests over MIOP. Members may join, leave and fail if the strategy lends packets of departed members
    and failures are detected; otherwise the membership is fixed."""

    wire = "miop"

    def __init__(self, strategy: type[Strategy[Any]] | None = None, **defaults: Any) -> None:
        """`defaults`: values of the strategy's settings that the caller may override."""
        self.strategy = strategy
        self.defaults = defaults
        self.fragment = LossyFragment if strategy is None else Fragment
        self.lends = strategy is not None and issubclass(strategy, StreamLender)

    def parts(self, order: Part, options: Options) -> list[Part]:
        own = repairs_itself(order.layer)
        given = {
            "announced": options.greet,
            # Such an order makes senders wait for slow readers itself. The packets by which it lets them go on must not wait for
            # readers here.
            "queue_max": UNLIMITED if own else options.queue_max,
            "confirms": not order.options,  # else the order confirms
        }
        return miop_parts(self.strategy, options, given, self.defaults)

    def layers(self, order: Layer, made: Sequence[Layer], options: Options, name: str) -> list[Layer]:
        # Senders that do not wait for reports may have dropped packets that a member lacks.
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
    """The parts for fragments and a strategy, if any: `given` are its arguments, `defaults` its settings that the caller may override."""
    first = {"first": options.start << 16 or 1}
    fragments = Part(MiopFragments, first)
    return [fragments] if strategy is None else [fragments, Part(strategy, {**first, **given}, defaults)]


def miop_layers(
    name: str, strategy: type[Strategy[Any]] | None, options: Options, *, sender: int, **defaults: Any
) -> list[Layer]:
    """The layers beneath requests over MIOP in an open group; `sender` is our own number."""
    parts = miop_parts(strategy, options, {"queue_max": options.queue_max}, defaults)
    refuse_unknown(name, options.protocol, options_of(parts))
    made = [part.make(options.protocol) for part in parts]
    return [*made, shaped(options.faults), MiopPackets(sender=sender)]
