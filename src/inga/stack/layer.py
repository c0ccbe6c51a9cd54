"""The part a stack is made of: a state machine with a neighbour above and one below."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from inga.model.compiled import mypyc_attr, restore, state_of
from inga.model.packet import Packet
from inga.model.view import View

if TYPE_CHECKING:
    from inga.stack.stack import Stack

Pass = Callable[[list[Packet]], None]


@mypyc_attr(allow_interpreted_subclasses=True)
class Layer:
    """Passes everything on. A layer overrides what it cares for, and costs nothing elsewhere: the stack binds
    `above` and `below` past layers that do not override a direction.

    These eight hooks are what most layers need; the rest are small protocols in `stack.hooks`, which a layer has
    or has not. A layer reads the stack and calls its methods. It never writes the stack's state, nor another
    layer's: what it knows it says (`is_open`, `held`, ...), and the stack draws the conclusions.

    No clocks, no sockets, no chance but `self.stack.now` and `self.stack.rng`.
    """

    name: ClassVar[str] = "forward"
    id: ClassVar[int] = 0  # the `kind` of this layer's own packets; 0 = it has none
    requires: ClassVar[frozenset[str]] = frozenset()  # services needed from below
    provides: ClassVar[frozenset[str]] = frozenset()  # services added for above
    transparent: ClassVar[bool] = False  # sees packets of every kind; only at the bottom
    partition: ClassVar[str] = (
        "all"  # of an order: which parts of a group go on, unless something else is said
    )
    stays: ClassVar[bool] = False  # other members do not notice this layer: kept when the recipe changes

    stack: "Stack"
    above: Pass
    below: Pass
    wake: float | None = None  # when tick() is wanted
    levels: tuple[str, ...] = ()  # levels a receipt can reach by this layer

    def view(self, view: View) -> None:
        """A view is installed, in which everything is counted anew; in band, bottom to top."""

    def down(self, batch: list[Packet]) -> None:
        """Data on its way out."""
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        """Data on its way in."""
        self.above(batch)

    def control(self, packet: Packet) -> None:
        """A packet of this layer's own kind came in. It is invisible above."""

    def tick(self, now: float) -> None:
        """The time `wake` named has come."""

    def turn(self) -> None:
        """The turn ends: what waited for company leaves now; top to bottom."""

    def taken(self, packets: list[Packet]) -> None:
        """The application has begun these packets; top to bottom."""

    def gone(self, member: int) -> None:
        """A member has left or failed, for good: nobody waits for its word any more; bottom to top."""

    def sends_again(self, member: int | None, n: int) -> None:
        """Count a packet that is sent once more to one who misses it. Who is in no view says nothing there: whatever its
        layers go on to answer is not sent."""
        if not self.stack.is_homeless:
            self.stack.counts["repair"] += 1
            self.stack.row("repair", member, n=n)

    def __getstate__(self) -> dict[str, Any]:
        state = state_of(self)
        for bound in ("stack", "above", "below"):
            state.pop(bound, None)
        wake = getattr(type(self), "wake", None)
        if hasattr(wake, "__get__") and wake is not getattr(Layer, "wake", None):
            state.pop("wake", None)  # a property of this layer: it follows from the rest
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)
