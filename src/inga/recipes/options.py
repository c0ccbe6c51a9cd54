"""What a recipe may be asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inga.layers.shape import Faults
from inga.model.view import Member
from inga.session.slow import PATIENCE

PLACE = ("239.7.7.7", 7400)
"""Where a group is that names no multicast address of its own."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a recipe. Those of PLACED are for orders that have a place for them, and others refuse them."""

    echo: bool | None = None  # deliver own messages too; None = as the recipe prefers
    on_concurrent: str = "deliver"
    coarse: bool = False
    matrix: bool = False  # vector: count per pair of members, so that subset sends name only what matters
    faults: Faults | None = None
    lossless: bool = False  # the network loses nothing: leave out repair and flow
    deliver: str | None = None  # level at which messages are handed over; None = the recipe's own
    unsafe: bool = True  # a group may change to orders that are there to learn from
    detect: float | None = None  # seconds of silence that a member is forgiven; None: any
    rejoin: bool = False  # come back when the others have excluded us
    partition: str | None = None  # which parts of a group go on; None = as the order prefers
    slow: str = "wait"  # what becomes of a member that holds up the others
    patience: float = PATIENCE  # seconds after which that is so
    open: bool = False  # nobody has named the members beforehand
    gives: str = ""  # the kind of state that the application has for those who join
    wants: str = ""  # and that it takes when it joins
    greet: bool = False  # say from the start that we are here, until everybody was met
    accepts: Callable[[Member], str | None] | None = None  # the driver's objections to newcomers
    config: Mapping[str, Any] = field(default_factory=dict)  # what members agree on, as people know it
    multicast: bool = True  # one datagram can reach everybody
    queue_max: int = 16 << 20  # unread bytes above which we let senders wait
    protocol: dict[str, Any] = field(default_factory=dict)  # settings of the order, and of what carries it
    objects: Mapping[str, Any] = field(default_factory=dict)  # of the group, by name: see `objects.hosting`
    reliable: dict[str, Any] = field(default_factory=dict)  # settings of the layer of that name
    flow: dict[str, Any] = field(default_factory=dict)
    start: int = 0  # the second in which this member started; its MIOP packets are numbered from there
    said: "tuple[Options, str] | None" = (
        None  # these are what is left of options that were said of another order
    )
    place: tuple[str, int] = PLACE  # multicast address and port of the group, as MIOP requests name it


PLACED = ("on_concurrent", "matrix", "coarse", "objects")
"""What only some orders have a place for."""

UNSAID = Options()
