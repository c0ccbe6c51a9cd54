"""What was promised, sent and taken in a run: all that the oracle and the recorder are told, they are told here."""

from typing import Any

from inga.model.delivery import Batch
from inga.model.view import View
from inga.recipes import Options, Recipe, find
from inga.sim.recorder import Recorder
from inga.sim.site import Site
from inga.trial.oracle import Oracle, agreed_orders
from inga.trial.workload import HEADER, number_of


class Ledger:
    """Messages by number, and what each view promises about them."""

    def __init__(self, sites: list[Site], recipe: Recipe, options: Options, *, record: bool) -> None:
        """`sites` are the founders; newcomers are added to the same list."""
        self.oracle = Oracle(len(sites))
        self.recorder = Recorder() if record else None
        self.guarantees = recipe.promises(options.deliver)  # that every order so far has given
        self.judges_flags = False  # whether flags of concurrency are exact
        self.sends: dict[int, tuple[int, bytes]] = {}  # by message: its sender and its data
        self._sites = sites
        self._founders = len(sites)
        self._recipe = recipe  # the first
        self._options = options
        self._keys: dict[int, Any] = {}  # of messages that are in order with others of their key
        self._epochs = {1: 1}  # of views: the number of the first that had their order
        self._promise(1, recipe)

    # What is promised

    def change(self, recipe: Recipe) -> None:
        """Another order is asked for: of the whole run only what both promise can be expected."""
        self.guarantees = tuple(name for name in self.guarantees if name in recipe.guarantees)
        self.judges_flags = self.judges_flags and recipe.name == "vector"

    def gate(self) -> None:
        """Somebody stops or resumes holding: what others may expect of it ends with that."""
        self.guarantees = tuple(name for name in self.guarantees if name not in ("fifo", "causal"))
        self.judges_flags = False

    def install(self, view: View, before: int) -> None:
        """A member has installed a view, after one of `before` members."""
        if view.number not in self._epochs:
            is_extended = len(view) > before
            self._epochs[view.number] = self._epochs[view.number - 1] if is_extended else view.number
            self._promise(self._epochs[view.number], find(view.recipe))

    def _promise(self, epoch: int, recipe: Recipe) -> None:
        """What is sent from that view on is under this order."""
        deliver = self._options.deliver if recipe is self._recipe else None
        promised = recipe.promises(deliver)
        self.oracle.promises[epoch] = promised
        self.oracle.agree(agreed_orders(promised, self._agreed_key))

    def _agreed_key(self, message: int) -> Any:
        """Which others a message is to be taken in one order with: those of its key and of its epoch."""
        key = self._keys.get(message)
        return None if key is None else (self.oracle.epoch_of(message), key)

    # What happens

    def send(self, site: Site, data: bytes, dst: int | None) -> tuple[int, bytes, int | None]:
        """A site is about to send: the number of the message, what it is with that in front, and who is to take it."""
        message = len(self.sends) + 1
        self.sends[message] = (site.index, data)
        if self.recorder is not None:
            self.recorder.send(site.index, message, dst)
        view = site.stack.view
        audience = dst
        if dst is None and len(self._sites) > self._founders:
            audience = ((1 << len(view)) - 1) & ~(1 << site.index)
        if find(view.recipe).echoes(self._options.echo):
            audience = ((1 << len(view)) - 1) if dst is None else dst | 1 << site.index
        epoch = self._epochs[view.number]
        payload = message.to_bytes(HEADER, "big") + data
        self.oracle.send(site.index, message, audience, epoch=epoch)
        if "object" in self.oracle.promises[epoch]:
            self._keys[message] = site.objects.key_of(payload)
        return message, payload, audience

    def take(self, site: Site, batch: Batch, *, loose: bool) -> None:
        """An application has begun these messages; `loose`: they came through an open gate."""
        oracle, recorder = self.oracle, self.recorder
        judged = self.judges_flags
        for payload in batch.payloads:
            message = number_of(payload)
            if recorder is not None:
                recorder.take(site.index, message)
            concurrent = oracle.take(site.index, message, loose=loose)
            if judged and concurrent != batch.concurrent:
                oracle.blame("flags", f"{site.name} saw message {message} as {batch.concurrent=}")
            judged = False  # a flag is about the first of a batch
