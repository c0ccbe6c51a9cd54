"""The numbers by which the oracle knows members and views. The driver of a run reports here which member enters which view."""

from inga.model.view import Member, View
from inga.recipes import Recipe, find
from inga.trial.oracle import KeyOfNumber, Oracle, agreed_orders

EPOCHS = 1 << 20
"""The most different views of one number."""


class Roll:
    """All members and views that a group ever had, and what each view promised."""

    def __init__(
        self, oracle: Oracle, recipe: Recipe, deliver: str | None, key: KeyOfNumber, *, objects: bool
    ) -> None:
        """`deliver` is the level of delivery under the first order. `key` maps a message to its key: messages of one key must be
        taken in one order. `objects`: whether the group has objects."""
        self._oracle = oracle
        self._recipe = recipe
        self._deliver = deliver
        self._key = key
        self._objects = objects
        self._epochs: dict[str, int] = {}  # of views: later ones have higher numbers
        self._numbers: dict[
            tuple[str, int], int
        ] = {}  # of members, in the order in which they were first seen

    def number_of(self, person: Member) -> int:
        """The number by which the oracle knows a member."""
        number = self._numbers.setdefault(person.identity, len(self._numbers))
        self._oracle.admit(number)
        return number

    def name_of(self, number: int) -> str:
        return list(self._numbers)[number][0]

    def epoch_of(self, view: View) -> int:
        """The epoch of all messages that are sent in a view. They are promised what the order of the view promises."""
        if view.text not in self._epochs:
            # Parts of a group may have different views of one number.
            self._epochs[view.text] = epoch = EPOCHS * view.number + len(self._epochs)
            self._promise(epoch, find(view.recipe))
        return self._epochs[view.text]

    def enter(self, me: Member, before: View | None, view: View) -> int:
        """Record that a member enters a view; return the member's number."""
        self.epoch_of(view)
        numbers = [self.number_of(person) for person in view.members]
        mine = self.number_of(me)
        if before is not None and before.recipe == "relay":
            self._lose_relay(before, view)
        those = {} if before is None else {each.name: each for each in before.members}
        left = [self.number_of(those[name]) for name in view.left if name in those]
        self._oracle.enter(mine, view.text, numbers, left)
        return mine

    def _lose_relay(self, before: View, view: View) -> None:
        """If the relay does not go on to the new view, messages that it had not passed on are lost: drop the promise `complete`."""
        if view.index(before.members[0]) is None:
            epoch = self._epochs[before.text]
            promises = self._oracle.promises[epoch]
            self._oracle.promises[epoch] = [name for name in promises if name != "complete"]

    def _promise(self, epoch: int, recipe: Recipe) -> None:
        """Tell the oracle what the order of an epoch promises."""
        promised = recipe.promises(self._deliver if recipe is self._recipe else None)
        self._oracle.promises[epoch] = promised
        if recipe.engine(self._objects):
            self._oracle.open_epochs.add(epoch)
        self._oracle.agree(agreed_orders(promised, self._key))
