"""The orders whose packets travel over MIOP. `inga.recipes.find` imports this module when one of them is requested."""

from typing import Any

from inga.corba.multicast.acks import Acknowledged
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.transport import Miop
from inga.layers.causal import Causal
from inga.layers.co.parts import LEVELS as CO_LEVELS
from inga.layers.fifo import Unreliable
from inga.recipes.standard import CAUSAL, KEYS, NONE, OBJECT, SET, causal, co, objects, plain
from inga.recipes.transports import compose

REPEATS = 64
"""How often a member of a group repeats its request for a lost packet before the group fails: about two minutes in all."""

REMIOP = Miop(ReMiop, repeats=REPEATS)

DATAGRAM: dict[str, tuple[Any, ...]] = {"datagram": (256, 1472)}
REMIOP_TRIED: dict[str, tuple[Any, ...]] = {
    "size": (4, 32, 512),
    "tnack": (0.01, 0.05),
    "trepair": (0.0, 0.05),
    "rmin": (20_000, 1_000_000),
    "rmax": (1_000_000, 1_000_000_000),
    "state_every": (None, 0),
    **DATAGRAM,
}
REMIOP_FAST = {**REMIOP_TRIED, "rmin": (1_000_000,)}

compose("miop", plain(Unreliable), Miop(), guarantees=("integrity", "stamps"), tunings=DATAGRAM)
compose(
    "miop+acks",
    NONE,
    Miop(Acknowledged),
    guarantees=SET,
    tunings={"size": (4, 32, 512), "resend": (0.02, 0.05), "ack_delay": (0.0, 0.005), **DATAGRAM},
)
compose("remiop", NONE, REMIOP, guarantees=SET, tunings=REMIOP_TRIED)
compose("remiop+vector", causal(Causal), REMIOP, guarantees=CAUSAL, level="causal", tunings=REMIOP_TRIED)
compose(
    "remiop+co",
    # CO repairs by itself, too: it gives the strategy beneath it time to do so first.
    co(confirm_delay=0.02, nack_delay=1.0, nack_again=2.0, resend=2.0, poll=1.0),
    REMIOP,
    guarantees=(*CAUSAL, "atomic"),
    receipt="accept",
    level="acknowledged",
    levels=CO_LEVELS,
    tunings={**REMIOP_FAST, "window": (1, 2, 4, 8)},
)
# ReMIOP repairs heartbeats as well, and multicasts them to all members: they need not be repeated soon.
compose(
    "remiop+object",
    objects(crowded=True, delta=0.5),
    REMIOP,
    guarantees=OBJECT,
    level="causal",
    tunings={**REMIOP_FAST, **KEYS},
    direct=False,
)
compose(
    "remiop+total",
    objects(total=True, crowded=True, delta=0.5),
    REMIOP,
    guarantees=(*CAUSAL, "total"),
    level="causal",
    tunings=REMIOP_FAST,
    direct=False,
)
