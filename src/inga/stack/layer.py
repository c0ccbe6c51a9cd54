"""The building block of a stack: a state machine with a neighbour above and one below."""

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
    """Passes everything on. A layer overrides the hooks that it needs, and the others cost nothing: the stack binds
    `above` and `below` past layers that do not override a direction.

    Most layers need no more than these eight hooks; the rest are small protocols in `stack.hooks`, which a layer may
    have. A layer reads the stack and calls its methods. It never writes the stack's state, nor another
    layer's: it keeps what it knows in its own attributes (`is_open`, `held`, ...), and the stack draws the conclusions.

    No clocks, no sockets, no randomness but `self.stack.now` and `self.stack.rng`.
    """

    name: ClassVar[str] = "forward"
    id: ClassVar[int] = 0  # the `kind` of this layer's own packets; 0 = it has none
    requires: ClassVar[frozenset[str]] = frozenset()  # services needed from layers below
    provides: ClassVar[frozenset[str]] = frozenset()  # services provided to layers above
    transparent: ClassVar[bool] = False  # sees packets of every kind; only at the bottom
    partition: ClassVar[str] = (
        "all"  # of an order: which parts of a group go on by default when the network is cut
    )
    stays: ClassVar[bool] = False  # other members do not notice this layer: kept when the recipe changes

    stack: "Stack"
    above: Pass
    below: Pass
    wake: float | None = None  # the time at which `tick` is to be called
    levels: tuple[str, ...] = ()  # levels that a receipt can reach through this layer

    def view(self, view: View) -> None:
        """A view is installed, in which everything is counted anew; called at its place among the packets, bottom to top."""

    def down(self, batch: list[Packet]) -> None:
        """Handle outgoing data."""
        self.below(batch)

    def up(self, batch: list[Packet]) -> None:
        """Handle incoming data."""
        self.above(batch)

    def control(self, packet: Packet) -> None:
        """Handle an incoming packet of this layer's own kind. No other layer sees it as data."""

    def tick(self, now: float) -> None:
        """The time `wake` has come."""

    def turn(self) -> None:
        """The turn ends: send now what waited for more messages; top to bottom."""

    def taken(self, packets: list[Packet]) -> None:
        """The application has begun to process these packets; top to bottom."""

    def gone(self, member: int) -> None:
        """A member has left or failed, for good: stop waiting for its acknowledgements; bottom to top."""

    def sends_again(self, member: int | None, n: int) -> None:
        """Count a repair for a member. While we are in no view it is not counted: layers may still answer, but the wire drops
        what they send in the view that was ours."""
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
