"""Virtual time: the same stacks, every schedule and every fault, by seed.

from inga.sim import Sim, recorded
"""

from inga.sim.board import Board, replay
from inga.sim.network import Link
from inga.sim.recorded import recorded
from inga.sim.schedule import Schedule
from inga.sim.simulator import Sim, Unquiet
from inga.sim.site import Site

__all__ = ["Board", "Link", "Schedule", "Sim", "Site", "Unquiet", "recorded", "replay"]
