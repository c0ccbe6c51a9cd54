"""Schedules played move by move: stacks over a network where every arrival is a decision.

Copies are never lost here, only late or doubled, so the stacks are the recipe's without repair and
flow: this is where orders are judged, and where counterexamples are small. Loss is `Sim`'s business.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from inga.model.delivery import Batch
from inga.model.errors import UsageError
from inga.model.packet import Buffer
from inga.model.steps import Trace
from inga.model.view import View
from inga.recipes import Options, find
from inga.sim.schedule import Arrive, Event, Schedule, Send, Take, letter
from inga.stack.layer import Layer
from inga.stack.stack import Ready, Rng, Stack, joined
from inga.trial.oracle import Oracle
from inga.trial.workload import HEADER, number_of

Build: TypeAlias = Callable[[], list[Layer]]


class Still:
    """No chance at all: for stacks whose every move is decided elsewhere."""

    def random(self) -> float:
        return 0.0


def lossless(order: str, *, matrix: bool = False) -> Build:
    """The recipe of that name over a network that loses nothing."""
    recipe = find(order)
    if not recipe.direct:
        raise UsageError(
            f"order {recipe.name!r} passes messages on, so no schedule can say what arrives where"
        )
    options = Options(lossless=True, matrix=matrix)
    return lambda: recipe.build(options)


class Board:
    """Sites, the copies under way between them, and the oracle watching."""

    def __init__(
        self,
        sites: int,
        build: Build,
        *,
        queues: bool = False,
        flags: bool = True,
        view: View | None = None,
        traces: list[Trace] | None = None,
    ) -> None:
        """`queues`: released messages wait to be taken. `flags`: compare concurrency flags too."""
        view = view or View.of(*map(letter, range(sites)))
        self.stacks = [
            Stack(
                build(),
                site,
                view,
                rng=Still(),
                beneath=("reliable",),
                trace=None if traces is None else traces[site],
            )
            for site in range(sites)
        ]
        self.oracle = Oracle(sites)
        self.under_way: list[tuple[int, int]] = []  # (message, site) of copies not yet arrived
        self.in_queues = 0  # messages released and not yet taken
        self.taken: list[list[int]] = [[] for _ in range(sites)]
        self.played: list[Event] = []
        self._queues = queues
        self._explicit: set[tuple[int, int]] = set()  # (site, message) to be taken by a move
        self._released: list[deque[Batch]] = [deque() for _ in range(sites)]
        self._copies: dict[tuple[int, int], list[Buffer]] = {}
        self._flags = flags and any(hasattr(layer, "frontier") for layer in self.stacks[0].layers)
        self._time = 0.0

    # Moves

    def send(self, site: int, message: int, dst: int | None = None) -> None:
        self.played.append(Send(site, message, dst))
        stack = self.stacks[site]
        self.oracle.send(site, message, dst)
        stack.send(message.to_bytes(HEADER, "big"), dst, now=self._tick())
        ready = stack.ready()
        for address, datagram in ready.send:
            data = joined(datagram)
            for member in stack.others() if address is None else (address,):
                copies = self._copies.setdefault((message, member), [])
                if not copies:
                    self.under_way.append((message, member))
                copies.append(data)
        self._collect(site, ready)  # who names oneself hears oneself

    def arrive(self, message: int, site: int, *, duplicate: bool = False) -> None:
        self.played.append(Arrive(message, site, duplicate))
        if not duplicate:
            self.under_way.remove((message, site))
        stack = self.stacks[site]
        stack.receive([(data, None) for data in self._copies[message, site]], now=self._tick())
        self._collect(site, stack.ready())

    def take(self, site: int) -> int:
        """The application begins the oldest released message; which one it was."""
        batch = self._released[site].popleft()
        message = number_of(batch.payloads[0])
        self.played.append(Take(site, message))
        self._take(site, batch, message)
        return message

    def waiting(self, site: int) -> int:
        """Messages released at the site and not yet taken."""
        return len(self._released[site])

    def finish(self) -> Oracle:
        """Let all remaining copies arrive and be taken, and give the verdict."""
        self._explicit.clear()
        for message, site in list(self.under_way):
            self.arrive(message, site)
        for site in range(len(self.stacks)):
            while self._released[site]:
                self.take(site)
        self.oracle.finish()
        return self.oracle

    # Schedules

    def play(self, schedule: Schedule) -> Oracle:
        """Play a schedule to its end. Moves that cannot be made (in a shrunk one) are left out."""
        self._explicit = {(e.site, e.message) for e in schedule.events if isinstance(e, Take)}
        for event in schedule.events:
            match event:
                case Send(site, message, dst):
                    self.send(site, message, dst)
                case Arrive(message, site, duplicate):
                    if (message, site) in (self._copies if duplicate else self.under_way):
                        self.arrive(message, site, duplicate=duplicate)
                case Take(site, message):
                    self._explicit.discard((site, message))
                    queue = self._released[site]
                    while any(number_of(batch.payloads[0]) == message for batch in queue):
                        self.take(site)
                    self._take_free(site)
        return self.finish()

    def _collect(self, site: int, ready: Ready) -> None:
        self.in_queues += len(ready.deliver)
        self._released[site].extend(ready.deliver)  # type: ignore[arg-type]  # no views here
        if not self._queues:
            self._take_free(site)

    def _take_free(self, site: int) -> None:
        """Take what is released, up to the first message that a later move takes."""
        queue = self._released[site]
        while queue:
            message = number_of(queue[0].payloads[0])
            if (site, message) in self._explicit:
                break
            self._take(site, queue.popleft(), message)

    def _take(self, site: int, batch: Batch, message: int) -> None:
        self.in_queues -= 1
        self.stacks[site].taken([batch.packet], now=self._tick())
        concurrent = self.oracle.take(site, message)
        if self._flags and concurrent != batch.concurrent:
            self.oracle.blame("flags", f"site {site} saw message {message} as {batch.concurrent=}")
        self.taken[site].append(message)

    def _tick(self) -> float:
        self._time += 1.0
        return self._time


def replay(text: str, order: str = "causal", *, sites: int = 0, matrix: bool = False) -> Board:
    """Play a schedule under an order; the board shows what was taken where."""
    schedule = Schedule.parse(text)
    board = Board(max(sites, schedule.sites), lossless(order, matrix=matrix))
    board.play(schedule)
    return board


def wander(
    rng: Rng, sites: int, messages: int, build: Build, *, duplicates: float = 0.1, subsets: float = 0.0
) -> Board:
    """One random schedule: sends, arrivals, doubles and takes in any order. A share `subsets` of the
    messages is for some only, perhaps for their own sender."""
    board = Board(sites, build, queues=True)
    left = messages
    random = rng.random
    while left or board.under_way or board.in_queues:
        roll = random()
        if left and roll < 0.3:
            site = int(random() * sites)
            some = bool(subsets) and random() < subsets
            board.send(site, messages - left + 1, 1 + int(random() * ((1 << sites) - 1)) if some else None)
            left -= 1
        elif board.under_way and roll < 0.65:
            message, site = board.under_way[int(random() * len(board.under_way))]
            board.arrive(message, site)
            if random() < duplicates:
                board.arrive(message, site, duplicate=True)
        else:
            site = int(random() * sites)
            if board.waiting(site):
                board.take(site)
    board.oracle.finish()
    return board
