"""What layers around a machine have in common that orders, repairs and keeps a window by itself: CO and SCO."""

from typing import Any

from inga.layers.order import Order


class MachineOrder(Order):
    """Answers for its machine towards the stack."""

    machine: Any  # the protocol, made anew for every view
    deliver: str  # the level at which messages are handed over

    @property
    def wake(self) -> float | None:  # type: ignore[override]  # an attribute elsewhere
        due: float | None = self.machine.wake
        return due

    @property
    def waiting(self) -> int:
        return len(self.machine.waiting)

    @property
    def is_open(self) -> bool:
        return not self.machine.waiting

    @property
    def is_passable(self) -> bool:
        return bool(self.machine.is_open)

    @property
    def outstanding(self) -> int:
        return len(self.machine.unreleased)

    def blockers(self) -> list[int]:
        return list(self.machine.blockers())

    def awaited(self) -> list[int]:
        return list(self.machine.awaited(self.deliver))
