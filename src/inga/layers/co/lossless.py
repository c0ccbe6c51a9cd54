"""CO over a network that loses nothing, for schedules that are played move by move: only data is sent.

Nothing is requested, since every copy arrives by itself, and nothing is confirmed, so no message gets beyond the
level `causal`.
"""

from inga.layers.co.machine import CoMachine
from inga.model.compiled import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class LosslessCo(CoMachine):
    """A CO machine that sends only data, and needs no timer."""

    @property
    def wake(self) -> float | None:
        return None

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        self.dirty = False

    def _look_for_holes(self) -> None:
        self._heard_of.clear()
