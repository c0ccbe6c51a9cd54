"""Virtual time: the same stacks, every schedule and every fault, by seed.

from inga.sim import Sim, recorded
"""

from inga.sim.board import Board
from inga.sim.recorded import recorded
from inga.sim.schedule import Schedule
from inga.sim.simulator import Sim

__all__ = ["Board", "Schedule", "Sim", "recorded"]
