"""Changes of the recipe while the group runs: a member asks the leader for another one, and all members adopt it, or none does.

use        a member to the leader: a request for another recipe
renew      a member to the leader: a request for another view, even of the same members
cannot     a member to the leader: it does not know this recipe
refused    the leader to all: the view stays as it is, for this reason
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.view import View
from inga.session.questions import Questions
from inga.stack.layer import Layer
from inga.stack.stack import Done

if TYPE_CHECKING:
    from inga.session.session import Session

BuildByName = Callable[[str], list[Layer]]
"""Builds the layers of a recipe by its name."""


def made(build: BuildByName | None, recipe: str) -> list[Layer]:
    """Build the layers of a recipe to which a running group can change; UsageError if it cannot."""
    layers = [] if build is None else build(recipe)
    orders = [layer for layer in layers if hasattr(layer, "sent")]
    if not any(layer.name == "session" for layer in layers) or not orders:
        raise UsageError(f"a group that runs already cannot change to the order {recipe!r}")
    return layers


class RecipeRequest(NamedTuple):
    """A member's request to the leader for another recipe."""

    recipe: str
    asker: int
    wish: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Wishes:
    """This member's own wish for another recipe and, if it leads, the request that it has accepted."""

    def __init__(self, session: "Session", questions: Questions, build: BuildByName | None) -> None:
        self._session = session
        self._questions = questions
        self._build = build
        self._own: _Wish | None = None
        self._count = 0  # our own wishes so far
        self.request: RecipeRequest | None = None  # as the leader
        self.renews = False  # another view of the same members is wanted, for its cut
        # As the leader: the message about the last refused change.
        self._refusal: dict[str, Any] | None = None

    @property
    def is_open(self) -> bool:
        """Whether this member waits for an answer."""
        return self._own is not None or self.renews

    def propose(self, recipe: str, done: Done) -> None:
        """Ask for another recipe in the whole group; `done` is called with the outcome."""
        if self._build is None:
            order = self._session.stack.view.recipe
            raise UsageError(f"order {order!r} cannot be changed while the group runs")
        if self._own is not None:
            raise UsageError(
                "this member has asked for a change of order that is still under way: await that first"
            )
        made(self._build, recipe)  # raises an error if the recipe cannot be used
        self._count += 1
        self._own = _Wish(self._count, recipe, done)

    def renew(self) -> None:
        """Ask for another view, even of the same members."""
        self.renews = True

    def ask(self, leader: int) -> None:
        """Send our wishes to the leader; if that is us, record the wish as a request."""
        wish, stack = self._own, self._session.stack
        if self.renews and leader != stack.me:
            self._questions.ask({leader}, "renew")
        if wish is None:
            return
        if wish.recipe == stack.view.recipe:
            self.end(None)
        elif leader != stack.me:
            self._questions.ask({leader}, "use", recipe=wish.recipe, wish=wish.number)
        elif self.request is None:
            self.request = RecipeRequest(wish.recipe, leader, wish.number)

    def wanted(self) -> RecipeRequest | None:
        """As the leader: return the request for another recipe than that of the view in force, if there is one."""
        if self.request is not None and self.request.recipe == self._session.stack.view.recipe:
            self.request = None
        return self.request

    def view(self, view: View) -> None:
        """A view is installed, perhaps with the recipe that was asked for."""
        self.request = self._refusal = None
        self.renews = False
        if self._own is not None and self._own.recipe == view.recipe:
            self.end(None)

    def end(self, why: str | None) -> None:
        """End our own wish: granted, or refused for the reason `why`."""
        wish, self._own = self._own, None
        if wish is not None:
            wish.done(why)

    def on_use(self, request: RecipeRequest) -> None:
        """As the leader: a member asks for another recipe."""
        if self.request is None and request.recipe != self._session.stack.view.recipe:
            self.request = request

    def refuse(self, key: dict[str, int], why: str) -> None:
        """As the leader: tell all that the change of this key does not happen, since a member cannot adopt its recipe."""
        request, self.request = self.request, None
        assert request is not None
        self._refusal = {**key, "asker": request.asker, "wish": request.wish, "why": why}
        self._questions.tell(None, "refused", **self._refusal)
        self._questions.tell(self._session.stack.me, "refused", **self._refusal)

    def remind(self, src: int, key: dict[str, int]) -> None:
        """As the leader: repeat the refusal to a member that still refers to a refused change, or to an earlier one."""
        refusal = self._refusal
        if refusal is None or key["number"] != refusal["number"] or key["attempt"] > refusal["attempt"]:
            return
        self._questions.tell(src, "refused", **{**refusal, **key})

    def on_refused(self, asker: int, wish: int, why: str) -> None:
        """The leader has refused a wish, perhaps ours."""
        if self._own is not None and (asker, wish) == (self._session.stack.me, self._own.number):
            self.end(why)


class _Wish(NamedTuple):
    """Our own wish for another recipe."""

    number: int
    recipe: str
    done: Done
