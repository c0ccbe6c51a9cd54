"""Figures that layers provide for a snapshot.

A layer that has any defines the hook `account` and fills them in. Nothing is counted for snapshots alone: a layer reports what it
keeps for its own work.
"""

from inga.model.compiled import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Figures:
    """The figures of one stack, in the view in force."""

    def __init__(self, members: int) -> None:
        self.sent = 0  # messages of our application
        self.delivered = [0] * members  # messages that were delivered here, by sender
        self.limits: dict[str, int] = {}  # by the name of a layer: how much its window admits
        self.behind = [0] * members  # packets of ours that each member is not known to have
        # When the application sent the oldest of these; 0: unknown.
        self.owed_since = [0.0] * members
        self.round_trip: float | None = None  # seconds until everybody was known to have a packet of ours

    def lacks(self, member: int, packets: int, since: float) -> None:
        """Note that a member is not known to have `packets` packets of ours, the oldest of which was sent at `since`."""
        self.behind[member] += packets
        if since and (not self.owed_since[member] or since < self.owed_since[member]):
            self.owed_since[member] = since


@mypyc_attr(allow_interpreted_subclasses=True)
class Totals:
    """Message counts of closed views. Members that are no longer in the view are counted only in the sum."""

    def __init__(self) -> None:
        self.sent = 0
        self.delivered = 0
        self.by_name: dict[str, int] = {}  # delivered messages of members of the view in force

    def close(self, figures: Figures, names: tuple[str, ...], staying: tuple[str, ...]) -> None:
        """Add the figures of a view that ends. It had members of these `names`; those of `staying` are in the next one."""
        self.sent += figures.sent
        self.delivered += sum(figures.delivered)
        by_name = {
            name: self.by_name.get(name, 0) + count
            for name, count in zip(names, figures.delivered, strict=True)
        }
        self.by_name = {name: by_name[name] for name in staying if name in by_name}
