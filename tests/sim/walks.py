"""Random schedules of particular kinds, for tests."""

from collections.abc import Callable
from random import Random

from inga.sim.board import Board, Build
from inga.sim.schedule import Arrive, Event, Schedule, Send, Take, letter


def wander_to_some(
    rng: Random, sites: int, messages: int, build: Build, watch: Callable[[Event], None] = lambda event: None
) -> Board:
    """Sends to random destinations, and arrivals in any order; taken when released."""
    board = Board(sites, build, watch=watch)
    left = messages
    while left or board.under_way:
        if left and (not board.under_way or rng.random() < 0.4):
            site = rng.randrange(sites)
            others = [m for m in range(sites) if m != site]
            chosen = rng.sample(others, rng.randint(1, len(others)))
            everybody = len(chosen) == len(others) and rng.random() < 0.5
            board.send(site, messages - left + 1, None if everybody else sum(1 << m for m in chosen))
            left -= 1
        else:
            board.arrive(*rng.choice(board.under_way))
    board.finish()
    return board


def serial(rng: Random, sites: int, messages: int) -> Schedule:
    """Everybody has delivered a message before the next one is sent; copies arrive in any order."""
    words = []
    for message in range(1, messages + 1):
        sender = rng.randrange(sites)
        words.append(f"{letter(sender)}!{message}")
        others = [site for site in range(sites) if site != sender]
        rng.shuffle(others)
        words += [f"{message}>{letter(site)}" for site in others]
    return Schedule.parse(" ".join(words))


def one_after_the_other(rng: Random, sites: int, messages: int) -> Schedule:
    """Whoever sends has delivered all that was sent before, and nobody else need have: copies overtake each other, though
    nothing is concurrent."""
    words: list[str] = []
    here = [set[int]() for _ in range(sites)]  # what has come to each site, or was sent there
    under_way: list[tuple[int, int]] = []
    sent = 0
    while sent < messages or under_way:
        able = [site for site in range(sites) if len(here[site]) == sent]
        if sent < messages and able and (not under_way or rng.random() < 0.5):
            sent += 1
            sender = rng.choice(able)
            words.append(f"{letter(sender)}!{sent}")
            here[sender].add(sent)
            under_way += [(sent, site) for site in range(sites) if site != sender]
        else:
            message, site = under_way.pop(rng.randrange(len(under_way)))
            words.append(f"{message}>{letter(site)}")
            here[site].add(message)
    return Schedule.parse(" ".join(words))


class Eager:
    """Watches a board, and objects to a message that is held though every cause is here."""

    def __init__(self, sites: int) -> None:
        self.needless: list[tuple[int, int]] = []  # (site, message)
        self.held = 0  # messages that had to wait
        self._sites = sites
        self._audience: dict[int, set[int]] = {}
        self._causes: dict[int, set[int]] = {}
        self._known: list[set[int]] = [set() for _ in range(sites)]
        self._taken: list[set[int]] = [set() for _ in range(sites)]
        self._arrived: list[set[int]] = [set() for _ in range(sites)]

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Take):
            self._look()  # whatever the move before made possible has happened by now
        match event:
            case Send(site, message, dst):
                everybody = range(self._sites)
                self._audience[message] = {
                    m for m in everybody if m != site and (dst is None or dst >> m & 1)
                }
                self._causes[message] = set(self._known[site])
                self._known[site].add(message)
            case Arrive(message, site, _):
                if site in self._audience[message]:
                    self._arrived[site].add(message)
            case Take(site, message):
                self._taken[site].add(message)
                self._known[site] |= self._causes[message] | {message}

    def _look(self) -> None:
        for site in range(self._sites):
            for message in self._arrived[site] - self._taken[site]:
                self.held += 1
                addressed = {c for c in self._causes[message] if site in self._audience[c]}
                if addressed <= self._taken[site]:
                    self.needless.append((site, message))


def wander_over_views(
    rng: Random, build: Build, *, joins: int = 0, gates: float = 0.0, eager: bool = False
) -> Board:
    """Sends, arrivals, doubles and takes in any order, while some join and gates open and close.

    `eager`: see Board. Members then say themselves whom a message is for, since they know of the
    newcomer before they have let it in.
    """
    founders = rng.randint(2, 4)
    board = Board(founders, build, queues=rng.random() < 0.5, eager=eager)
    messages = rng.randint(6, 14)
    sent = 0
    letting_in: list[int] = []  # members that have yet to install the view
    newcomers = 0
    while True:
        sites = len(board.stacks)
        roll = rng.random()
        if joins > newcomers and not letting_in and roll < 0.2:
            board.join(founders + newcomers)
            newcomers += 1
            letting_in = rng.sample(range(sites), sites)
        elif letting_in and roll < 0.4:
            board.install(letting_in.pop())
        elif gates and rng.random() < gates:
            board.gate(rng.randrange(sites), rng.random() < 0.5)
        elif sent < messages and rng.random() < 0.45:
            sent += 1
            site = rng.randrange(sites)
            known = founders + newcomers - (1 if site in letting_in else 0)
            to = sum(1 << member for member in range(known) if member != site)
            board.send(site, sent, to if eager else None)
        elif board.under_way and rng.random() < 0.7:
            message, site = rng.choice(board.under_way)
            board.arrive(message, site)
            if rng.random() < 0.1:
                board.arrive(message, site, duplicate=True)
        elif board.in_queues and board.waiting(site := rng.randrange(sites)):
            board.take(site)
        elif sent == messages and newcomers == joins and not letting_in and not board.under_way:
            board.finish()
            return board
