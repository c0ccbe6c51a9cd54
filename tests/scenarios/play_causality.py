"""Plays scenarios of the lecture on causal order: the same moves under several orders.

    vector V1                      which counterexample of the shipped table it is: `inga.lab.ladder.vectors`
    send A 1                       A sends message 1 to all others; `to B C`: only to those
    rx B 1                         the copy of message 1 reaches B; `again`: a duplicate of it does
    take B 1                       the application of B takes it; else it takes what is released at once
    wait B                         the waiting time of B ends
    join J, crash A                J joins; A crashes, and what it sent and has not arrived is lost
    install B                      B installs the view with J, or without A
    gate B open, gate B shut       B stops to hold messages back, and begins again
    wrong                          plays all moves up to here under each scheme that they break: prints who takes what, which
                                   promises are broken, and by what
    under fifo vector              the same under each of these orders

Schemes that are wrong by more than their stamps are played as the table says: with clocks that differ, with newcomers
that start elsewhere. What has not arrived at the end arrives then.
"""

from inga.lab.ladder.scene import Scene
from inga.lab.ladder.vectors import VECTORS, Show
from inga.sim.schedule import letter

from .script import Script


class CausalityScript(Script):
    """Collects moves, in the notation of schedules, until they are played."""

    def __init__(self) -> None:
        self.played: list[tuple[str, str]] = []  # counterexamples, and the schemes that they break

    def do_vector(self, words: list[str]) -> list[str]:
        self._vector = VECTORS[words[0]]
        self._moves: list[str] = []
        return []

    def do_send(self, words: list[str]) -> list[str]:
        site, message, *to = words
        return self._move(f"{site}!{message}" + (":" + "".join(to[1:]) if to else ""))

    def do_rx(self, words: list[str]) -> list[str]:
        site, message, *again = words
        return self._move(f"{message}{'>>' if again else '>'}{site}")

    def do_take(self, words: list[str]) -> list[str]:
        return self._move("?".join(words))

    def do_wait(self, words: list[str]) -> list[str]:
        return self._move(f"{words[0]}.")

    def do_join(self, words: list[str]) -> list[str]:
        return self._move(f"{words[0]}+")

    def do_crash(self, words: list[str]) -> list[str]:
        return self._move(f"{words[0]}-")

    def do_install(self, words: list[str]) -> list[str]:
        return self._move(f"{words[0]}=")

    def do_gate(self, words: list[str]) -> list[str]:
        return self._move("|".join(words))

    def do_wrong(self, _: list[str]) -> list[str]:
        return [f"{show.name}: {_outcome(show.broken())}" for show in self._shows]

    def do_under(self, words: list[str]) -> list[str]:
        show = self._shows[0]
        return [f"{order}: {_outcome(show.under(order))}" for order in words]

    def _move(self, word: str) -> list[str]:
        self._moves.append(word)
        return []

    @property
    def _shows(self) -> list[Show]:
        """What the table has to say about these moves."""
        schedule = " ".join(self._moves)
        found = [show for show in self._vector.shows if show.schedule == schedule]
        assert found, f"{self._vector.id} has no schedule {schedule}"
        self.played += [(self._vector.id, show.name) for show in found]
        return found


def _outcome(scene: Scene) -> str:
    taken = ", ".join(
        f"{letter(site)} takes {' '.join(map(str, messages))}"
        for site, messages in enumerate(scene.taken)
        if messages
    )
    if not scene.broken:
        return taken or "nobody takes anything"
    promises, found = " and ".join(sorted(scene.broken)), ", ".join(scene.found)
    return f"{taken or 'nobody takes anything'}; breaks {promises}: {found}"
