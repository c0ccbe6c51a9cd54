"""What was promised, sent and taken in a run: all that the oracle and the recorder are told, they are told here."""

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
        self.guarantees = recipe.promises(options.deliver)  # that every order so far has given
        self.judges_flags = False  # whether flags of concurrency are exact
        self.sends: dict[int, tuple[int, bytes]] = {}  # by message: its sender and its data
        self.whole: dict[int, int] = {}  # by message for everybody: the epoch in which it was sent
        self.said_at: dict[int, float] = {}  # and when
        # By site: such messages that do not come back to it, with their epochs.
        self.silent: dict[int, list[tuple[int, int]]] = {}
        self.has_slipped = False  # something came through an open gate
        self._options = options
        self.roll = Roll(
            self.oracle, recipe, options.deliver, self._agreed_key, objects=bool(options.objects)
        )
        self._keys: dict[int, Any] = {}  # of messages that are in order with others of their key
        # from one view to the next, of members that went through both
        self.steps: list[tuple[View, View]] = []

    # What is promised

    def change(self, recipe: Recipe) -> None:
        """Another order is asked for: of the whole run only what both promise can be expected."""
        self.guarantees = tuple(name for name in self.guarantees if name in recipe.guarantees)
        self.judges_flags = self.judges_flags and recipe.name == "vector"

    def gate(self) -> None:
        """Somebody stops or resumes holding: what others may expect of it ends with that."""
        self.guarantees = tuple(name for name in self.guarantees if name not in ("fifo", "causal"))
        self.judges_flags = False

    def install(self, site: Site, view: View) -> None:
        """A member has installed a view: what is sent in it is promised what its order promises."""
        mine = self.roll.enter(site.stack.member, site.before, view)
        if mine == site.number and site.before is not None:
            self.steps.append((site.before, view))
        if mine != site.number:
            if site.number >= 0:  # it was taken for dead, and is a new member
                self.oracle.crash(site.number)
            site.number = mine

    def _agreed_key(self, message: int) -> Any:
        """Which others a message is to be taken in one order with: those of its key and of its epoch."""
        key = self._keys.get(message)
        return None if key is None else (self.oracle.epoch_of(message), key)

    # What happens

    def echoes(self, view: View) -> bool:
        """Whether members of a view get what they sent themselves."""
        return find(view.recipe).echoes(self._options.echo)

    def send(self, site: Site, data: bytes, dst: int | None) -> tuple[int, bytes, int]:
        """A site is about to send: the number of the message, what it is with that in front, and who is to take it."""
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
        """An application has begun these messages; `loose`: they came through an open gate."""
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
            judged = False  # a flag is about the first of a batch
