"""SCO over a network that loses nothing, for schedules that are played move by move: no time passes.

Nothing is requested again, since every copy arrives by itself, and no sender waits for buffers. A member of which a message may
still arrive is polled at once, not after a delay.
"""

from dataclasses import replace

from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import LSN_WINDOW
from inga.layers.sco.parts import ScoMessage, ScoSettings
from inga.model.compiled import mypyc_attr
from inga.model.packet import Runs


@mypyc_attr(allow_interpreted_subclasses=True)
class LosslessSco(ScoMachine):
    """An SCO machine that needs no timer."""

    @property
    def wake(self) -> float | None:
        return None

    def __init__(self, me: int, members: int, settings: ScoSettings) -> None:
        wide = replace(settings, window=LSN_WINDOW, quota=LSN_WINDOW, throttle=False)
        super().__init__(me, members, wide)
        self._came = False

    def receive(self, message: ScoMessage) -> str | None:
        self._came = True
        return super().receive(message)

    def stages(self) -> None:
        super().stages()
        if self._came:
            self._came = False
            silent = {h for queue in self.accepted.values() for h in self._silent_blockers(queue[0])}
            for member in sorted(silent):
                self._poll(member)

    def _request(self, src: int, runs: Runs) -> None:
        pass
