"""Random schedules of particular kinds, for tests."""

from random import Random

from inga.sim.board import Board, Build
from inga.sim.schedule import Schedule, letter


def wander_to_some(rng: Random, sites: int, messages: int, build: Build) -> Board:
    """Sends to random destinations, arrivals and duplicates in any order; taken when released."""
    board = Board(sites, build)
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
