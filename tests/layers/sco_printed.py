"""SCO as it is printed, where that differs from ours and still works: to compare with, and for the paper's figures."""

from collections import deque
from typing import Any

from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.parts import ScoMessage


class InHand(ScoMachine):
    """C2: a message is ordered only while something is in hand of everybody, a message or a control message."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.heard_control = [0] * self.members  # CTLSEEN

    def _cover(self, src: int, seq: int) -> None:
        self.heard_control[src] = max(self.heard_control[src], seq)
        super()._cover(src, seq)

    def _order(self) -> None:
        """C3: move all tops that are clear now together; they are pairwise concurrent."""
        self._work.clear()
        while self.accepted and self._has_all_in_hand():
            clear = [queue[0] for queue in self.accepted.values() if self._is_clear_of_all(queue[0])]
            if not clear:
                return
            for top in clear:
                self._move(top)

    def _has_all_in_hand(self) -> bool:
        absent = {self.me} | self.gone
        return all(m in absent or m in self.accepted or self.heard_control[m] for m in range(self.members))

    def _is_clear_of_all(self, top: ScoMessage) -> bool:
        return not any(self._lacks_evidence(top, member) for member in range(self.members))

    def _lacks_evidence(self, top: ScoMessage, member: int) -> bool:
        if member == top.src:
            return False
        queue = self.accepted.get(member)
        if queue is not None:
            return queue[0].seq <= top.deps[member]
        if member == self.me or member in self.gone:
            return False
        return self.heard_control[member] < max(1, top.deps[member] + 1)

    def _silent_blockers(self, top: ScoMessage) -> set[int]:
        lacking = [member for member in range(self.members) if self._lacks_evidence(top, member)]
        return {member for member in lacking if member not in self.accepted}


class OldestFirst(ScoMachine):
    """F2: only the oldest ordered message may become confirmed."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._log_in_order: deque[ScoMessage] = deque()

    def _enter_log(self, message: ScoMessage) -> None:
        super()._enter_log(message)
        self._log_in_order.append(message)

    def _confirm(self) -> None:
        while self._log_in_order and not self._log_in_order[0].missing:
            self._leave_log(self._log_in_order.popleft().src)
        self._full.clear()


def variant(make: type[ScoMachine], *, mode: str = "csn", fifo: bool = False) -> type[ScoMachine]:
    """A machine, right or broken, with printed rules."""
    assert mode in ("csn", "wait")
    for kind, is_wanted in ((InHand, mode == "wait"), (OldestFirst, fifo)):
        if is_wanted and not issubclass(make, kind):
            bases = (kind,) if make is ScoMachine else (make, kind)
            make = type(f"{make.__name__}{kind.__name__}", bases, {})
    return make
