"""What can be said about how objects are kept in order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inga.objects.window import WINDOW


@dataclass(frozen=True, slots=True)
class Options:
    """Times are in seconds, or whatever unit `now` is in."""

    delta: float = 0.05  # between heartbeats, the papers' δ
    grace: float | None = None  # how long a request waits before it may die; None = 3 delta
    announce: bool = True  # tell those outside a request's destinations that their clocks are wanted (L6)
    quiet: bool = False  # heartbeats only while somebody has use for them
    reliable: bool = False  # what is below loses nothing: keep no copies, ask for nothing
    window: int = WINDOW  # bytes of one member that may wait at another
    invoking: Mapping[str, Iterable[int]] = field(default_factory=dict)  # object -> members that may call it

    @property
    def patience(self) -> float:
        """How long a request waits before it may die."""
        return 3 * self.delta if self.grace is None else self.grace
