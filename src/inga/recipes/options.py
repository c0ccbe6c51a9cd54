"""The options of recipes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inga.layers.shape import Faults
from inga.model.view import Member
from inga.session.slow import PATIENCE

PLACE = ("239.7.7.7", 7400)
"""The multicast address and port of a group that names no other."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a recipe. Those of PLACED are supported by some orders only, and the others refuse them."""

    echo: bool | None = None  # deliver a member's own messages to it, too; None = the recipe's default
    on_concurrent: str = "deliver"
    coarse: bool = False
    matrix: bool = False  # vector: count per pair of members, so that subset sends name only what matters
    faults: Faults | None = None
    lossless: bool = False  # the network loses nothing: leave out repair and flow
    deliver: str | None = None  # level at which messages are delivered; None = the recipe's own
    unsafe: bool = True  # a group may change to orders that exist for teaching only
    detect: float | None = None  # seconds of silence after which a member is excluded; None: never
    rejoin: bool = False  # come back when the others have excluded us
    partition: str | None = None  # which parts of a divided group go on; None = the order's default
    slow: str = "wait"  # what is done about a member that holds up the others
    patience: float = PATIENCE  # seconds after which that is done
    open: bool = False  # the members were not listed beforehand
    gives: str = ""  # the kind of state that the application gives to newcomers
    wants: str = ""  # the kind of state that it takes as a newcomer
    greet: bool = False  # send greetings from the start, until all members were met
    accepts: Callable[[Member], str | None] | None = None  # the driver's objections to newcomers
    config: Mapping[str, Any] = field(default_factory=dict)  # settings to agree on, in the form people know
    multicast: bool = True  # one datagram can reach all members
    queue_max: int = 16 << 20  # unread bytes above which we make senders wait
    protocol: dict[str, Any] = field(default_factory=dict)  # settings of the order and of its transport
    objects: Mapping[str, Any] = field(default_factory=dict)  # of the group, by name: see `objects.hosting`
    reliable: dict[str, Any] = field(default_factory=dict)  # settings of the layer of that name
    flow: dict[str, Any] = field(default_factory=dict)
    start: int = 0  # the second in which this member started; its MIOP packets are numbered from there
    said: "tuple[Options, str] | None" = (
        None  # after a change of the order: the original options, and the order for which they were given
    )
    place: tuple[str, int] = PLACE  # multicast address and port that MIOP requests name


PLACED = ("on_concurrent", "matrix", "coarse", "objects")
"""The options that only some orders support."""

UNSAID = Options()
