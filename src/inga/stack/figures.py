"""What layers say of themselves when somebody asks: the raw material of a snapshot.

A layer that has something to say has the hook `account` and fills in what it knows. Nothing is counted for this: a layer tells
what it keeps for its own work.
"""

from inga.model.compiled import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Figures:
    """Of one stack, in the view in force."""

    def __init__(self, members: int) -> None:
        self.sent = 0  # messages of our application
        self.delivered = [0] * members  # messages that were delivered here, by sender
        self.limits: dict[str, int] = {}  # by the name of a layer: how much its window admits
        self.behind = [0] * members  # packets of ours that each member is not known to have
        # When the application sent the oldest of these; 0: nobody knows.
        self.owed_since = [0.0] * members
        self.round_trip: float | None = None  # seconds until everybody was known to have a packet of ours

    def lacks(self, member: int, packets: int, since: float) -> None:
        """A member is not known to have so many packets of ours, the oldest of which was sent then."""
        self.behind[member] += packets
        if since and (not self.owed_since[member] or since < self.owed_since[member]):
            self.owed_since[member] = since


@mypyc_attr(allow_interpreted_subclasses=True)
class Totals:
    """Messages of views that are closed. Of members that are no longer in the view only the sum is kept."""

    def __init__(self) -> None:
        self.sent = 0
        self.delivered = 0
        self.by_name: dict[str, int] = {}  # of members of the view in force

    def close(self, figures: Figures, names: tuple[str, ...], staying: tuple[str, ...]) -> None:
        """A view ends that had members of these names, and one follows with those."""
        self.sent += figures.sent
        self.delivered += sum(figures.delivered)
        by_name = {
            name: self.by_name.get(name, 0) + count
            for name, count in zip(names, figures.delivered, strict=True)
        }
        self.by_name = {name: by_name[name] for name in staying if name in by_name}
