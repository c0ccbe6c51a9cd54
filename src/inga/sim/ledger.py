"""The ledger of a run: what was promised, sent and taken. It feeds the oracle and the recorder."""

from typing import Any

from inga.model.delivery import Batch
from inga.model.view import View
from inga.recipes import Options, Recipe, find
from inga.sim.recorder import Recorder
from inga.sim.site import Site
from inga.trial.oracle import Oracle
from inga.trial.roll import Roll
from inga.trial.workload import HEADER, number_of


class Ledger:
    """Messages by number, and what each view promises about them."""

    def __init__(self, sites: list[Site], recipe: Recipe, options: Options, *, record: bool) -> None:
        self.oracle = Oracle(len(sites))
        self.recorder = Recorder() if record else None
        self.guarantees = recipe.promises(options.deliver)  # those that every order so far has given
        self.judges_flags = False  # whether flags of concurrency are exact
        self.sends: dict[int, tuple[int, bytes]] = {}  # by message: its sender and its data
        self.whole: dict[int, int] = {}  # by message to all members: the epoch in which it was sent
        self.said_at: dict[int, float] = {}  # by message to all members: when it was sent
        # By sending site: messages to all members that are not delivered to the sender itself, with their epochs.
        self.silent: dict[int, list[tuple[int, int]]] = {}
        self.has_slipped = False  # some message passed an open gate
        self._options = options
        self.roll = Roll(
            self.oracle, recipe, options.deliver, self._agreed_key, objects=bool(options.objects)
        )
        self._keys: dict[int, Any] = {}  # by message: its key; messages of one key are taken in one order
        # Each pair of views that some member installed one after the other.
        self.steps: list[tuple[View, View]] = []

    # Guarantees

    def change(self, recipe: Recipe) -> None:
        """Note that another order was requested: for the whole run only the guarantees of both orders hold."""
        self.guarantees = tuple(name for name in self.guarantees if name in recipe.guarantees)
        self.judges_flags = self.judges_flags and recipe.name == "vector"

    def gate(self) -> None:
        """Note that a member opened or closed its gate: `fifo` and `causal` hold for the whole run no more."""
        self.guarantees = tuple(name for name in self.guarantees if name not in ("fifo", "causal"))
        self.judges_flags = False

    def install(self, site: Site, view: View) -> None:
        """Note that a member has installed a view: messages sent in it have the guarantees of its order."""
        mine = self.roll.enter(site.stack.member, site.before, view)
        if mine == site.number and site.before is not None:
            self.steps.append((site.before, view))
        if mine != site.number:
            if site.number >= 0:  # it was excluded, and is a new member
                self.oracle.crash(site.number)
            site.number = mine

    def _agreed_key(self, message: int) -> Any:
        """Return the key and epoch of a message, or None if it has no key. Messages with equal ones must be taken in one order."""
        key = self._keys.get(message)
        return None if key is None else (self.oracle.epoch_of(message), key)

    # Messages

    def echoes(self, view: View) -> bool:
        """Whether members of a view get the messages that they sent themselves."""
        return find(view.recipe).echoes(self._options.echo)

    def send(self, site: Site, data: bytes, dst: int | None) -> tuple[int, bytes, int]:
        """Register a message that a site is about to send. Return its number, its payload with the number in front, and the
        bit set of members (by the oracle's numbers) that have to take it."""
        message = len(self.sends) + 1
        self.sends[message] = (site.index, data)
        if self.recorder is not None:
            self.recorder.send(site.index, message, dst)
        view = site.stack.view
        members = range(len(view)) if dst is None else [m for m in range(len(view)) if dst >> m & 1]
        audience = {self.roll.number_of(view.members[member]) for member in members}
        if dst is None:
            audience.discard(site.number)
        if self.echoes(view):
            audience.add(site.number)
        epoch = self.roll.epoch_of(view)
        payload = message.to_bytes(HEADER, "big") + data
        if dst is None:
            self.whole[message], self.said_at[message] = epoch, site.sim.now
            if site.number not in audience:
                self.silent.setdefault(site.index, []).append((epoch, message))
        sites = sum(1 << each for each in audience)
        self.oracle.send(site.number, message, sites, epoch=epoch, whole=dst is None)
        if "object" in self.oracle.promises[epoch]:
            self._keys[message] = site.objects.key_of(payload)
        return message, payload, sites

    def take(self, site: int, batch: Batch, *, loose: bool) -> None:
        """Note that an application has taken a batch. `loose`: it passed an open gate."""
        oracle, recorder = self.oracle, self.recorder
        self.has_slipped = self.has_slipped or loose
        judged = self.judges_flags
        for payload in batch.payloads:
            message = number_of(payload)
            if recorder is not None:
                recorder.take(site, message)
            concurrent = oracle.take(site, message, loose=loose)
            if judged and concurrent != batch.concurrent:
                oracle.blame(
                    "flags", f"{self.roll.name_of(site)} saw message {message} as {batch.concurrent=}"
                )
            judged = False  # the flag of a batch is about its first message
