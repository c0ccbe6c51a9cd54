"""What was promised, sent and taken in a run: all that the oracle and the recorder are told, they are told here."""

from typing import Any

from inga.model.delivery import Batch
from inga.model.view import Member, View
from inga.recipes import Options, Recipe, find
from inga.sim.recorder import Recorder
from inga.sim.site import Site
from inga.trial.oracle import Oracle, agreed_orders
from inga.trial.workload import HEADER, number_of

EPOCHS = 1 << 20
"""Views of one number, at most."""


class Ledger:
    """Messages by number, and what each view promises about them."""

    def __init__(self, sites: list[Site], recipe: Recipe, options: Options, *, record: bool) -> None:
        self.oracle = Oracle(len(sites))
        self.recorder = Recorder() if record else None
        self.guarantees = recipe.promises(options.deliver)  # that every order so far has given
        self.judges_flags = False  # whether flags of concurrency are exact
        self.sends: dict[int, tuple[int, bytes]] = {}  # by message: its sender and its data
        self._recipe = recipe  # the first
        self._options = options
        self._keys: dict[int, Any] = {}  # of messages that are in order with others of their key
        self.steps: list[
            tuple[View, View]
        ] = []  # from one view to the next, of members that went through both
        self._epochs: dict[str, int] = {}  # of views: later ones have higher numbers
        self._numbers: dict[
            tuple[str, int], int
        ] = {}  # of members, in the order in which they were first seen

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
        if view.text not in self._epochs:
            # Parts of a group may have different views of one number.
            self._epochs[view.text] = epoch = EPOCHS * view.number + len(self._epochs)
            self._promise(epoch, find(view.recipe))
        numbers = [self.number_of(person) for person in view.members]
        mine = self.number_of(site.stack.member)
        if mine == site.number and site.before is not None:
            self.steps.append((site.before, view))
        if mine != site.number:
            if site.number >= 0:  # it was taken for dead, and is a new member
                self.oracle.crash(site.number)
            site.number = mine
        if site.before is not None and site.before.recipe == "relay":
            self._lose_relay(site.before, view)
        before = {} if site.before is None else {each.name: each for each in site.before.members}
        left = [self.number_of(before[name]) for name in view.left if name in before]
        self.oracle.enter(mine, view.text, numbers, left)

    def _lose_relay(self, before: View, view: View) -> None:
        """What the relay had not passed on is lost with it."""
        if view.index(before.members[0]) is None:
            epoch = self._epochs[before.text]
            promises = self.oracle.promises[epoch]
            self.oracle.promises[epoch] = [name for name in promises if name != "complete"]

    def number_of(self, person: Member) -> int:
        """By which the oracle knows a member."""
        number = self._numbers.setdefault(person.identity, len(self._numbers))
        self.oracle.admit(number)
        return number

    def name_of(self, number: int) -> str:
        return list(self._numbers)[number][0]

    def _promise(self, epoch: int, recipe: Recipe) -> None:
        """What is sent from that view on is under this order."""
        deliver = self._options.deliver if recipe is self._recipe else None
        promised = recipe.promises(deliver)
        self.oracle.promises[epoch] = promised
        if recipe.objects:
            self.oracle.open_epochs.add(epoch)
        self.oracle.agree(agreed_orders(promised, self._agreed_key))

    def _agreed_key(self, message: int) -> Any:
        """Which others a message is to be taken in one order with: those of its key and of its epoch."""
        key = self._keys.get(message)
        return None if key is None else (self.oracle.epoch_of(message), key)

    # What happens

    def send(self, site: Site, data: bytes, dst: int | None) -> tuple[int, bytes, int]:
        """A site is about to send: the number of the message, what it is with that in front, and who is to take it."""
        message = len(self.sends) + 1
        self.sends[message] = (site.index, data)
        if self.recorder is not None:
            self.recorder.send(site.index, message, dst)
        view = site.stack.view
        members = range(len(view)) if dst is None else [m for m in range(len(view)) if dst >> m & 1]
        audience = {self.number_of(view.members[member]) for member in members}
        if dst is None:
            audience.discard(site.number)
        if find(view.recipe).echoes(self._options.echo):
            audience.add(site.number)
        epoch = self._epochs[view.text]
        payload = message.to_bytes(HEADER, "big") + data
        sites = sum(1 << each for each in audience)
        self.oracle.send(site.number, message, sites, epoch=epoch, whole=dst is None)
        if "object" in self.oracle.promises[epoch]:
            self._keys[message] = site.objects.key_of(payload)
        return message, payload, sites

    def take(self, site: int, batch: Batch, *, loose: bool) -> None:
        """An application has begun these messages; `loose`: they came through an open gate."""
        oracle, recorder = self.oracle, self.recorder
        judged = self.judges_flags
        for payload in batch.payloads:
            message = number_of(payload)
            if recorder is not None:
                recorder.take(site, message)
            concurrent = oracle.take(site, message, loose=loose)
            if judged and concurrent != batch.concurrent:
                oracle.blame("flags", f"{self.name_of(site)} saw message {message} as {batch.concurrent=}")
            judged = False  # a flag is about the first of a batch
