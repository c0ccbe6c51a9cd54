"""Another recipe while the group runs: a member wishes for it, the leader is asked, all follow or all refuse.

use        a member to the leader: please, another recipe
renew      a member to the leader: please, another view, if only of the same members
cannot     a member to the leader: this recipe is none of mine
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
"""Makes the layers of a recipe by its name."""


def made(build: BuildByName | None, recipe: str) -> list[Layer]:
    """The layers of a recipe to which a group that runs can change; UsageError if it cannot."""
    layers = [] if build is None else build(recipe)
    orders = [layer for layer in layers if hasattr(layer, "sent")]
    if not any(layer.name == "session" for layer in layers) or not orders:
        raise UsageError(f"a group that runs already cannot change to the order {recipe!r}")
    return layers


class RecipeRequest(NamedTuple):
    """What a member has asked the leader for."""

    recipe: str
    asker: int
    wish: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Wishes:
    """This member's own wish for another recipe, and as the leader the one that it was asked for."""

    def __init__(self, session: "Session", questions: Questions, build: BuildByName | None) -> None:
        self._session = session
        self._questions = questions
        self._build = build
        self._own: _Wish | None = None
        self._count = 0  # of our wishes so far
        self.request: RecipeRequest | None = None  # as the leader
        self.renews = False  # another view of the same members is wanted, for its cut
        self._refusal: dict[str, Any] | None = None  # as the leader: what came of the last attempt, in words

    @property
    def is_open(self) -> bool:
        """Whether this member waits for an answer."""
        return self._own is not None or self.renews

    def propose(self, recipe: str, done: Done) -> None:
        """Wish for another recipe in the whole group; `done` is told how it ends."""
        if self._build is None:
            order = self._session.stack.view.recipe
            raise UsageError(f"order {order!r} cannot be changed while the group runs")
        if self._own is not None:
            raise UsageError(
                "this member has asked for a change of order that is still under way: await that first"
            )
        made(self._build, recipe)  # or it raises what is wrong with it
        self._count += 1
        self._own = _Wish(self._count, recipe, done)

    def renew(self) -> None:
        """Wish for another view, whoever is in it."""
        self.renews = True

    def ask(self, leader: int) -> None:
        """Ask the leader for what we wish; if that is us, it is a request."""
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
        """As the leader: the request for a recipe that the view in force does not have."""
        if self.request is not None and self.request.recipe == self._session.stack.view.recipe:
            self.request = None
        return self.request

    def view(self, view: View) -> None:
        """A view is installed, perhaps with what was wished for."""
        self.request = self._refusal = None
        self.renews = False
        if self._own is not None and self._own.recipe == view.recipe:
            self.end(None)

    def end(self, why: str | None) -> None:
        """Our own wish came true, or did not, for this reason."""
        wish, self._own = self._own, None
        if wish is not None:
            wish.done(why)

    def on_use(self, request: RecipeRequest) -> None:
        """As the leader: a member asks for another recipe."""
        if self.request is None and request.recipe != self._session.stack.view.recipe:
            self.request = request

    def refuse(self, key: dict[str, int], why: str) -> None:
        """As the leader: tell all that the change of this key does not happen, since a member cannot follow."""
        request, self.request = self.request, None
        assert request is not None
        self._refusal = {**key, "asker": request.asker, "wish": request.wish, "why": why}
        self._questions.tell(None, "refused", **self._refusal)
        self._questions.tell(self._session.stack.me, "refused", **self._refusal)

    def remind(self, src: int, key: dict[str, int]) -> None:
        """As the leader: a member speaks of a change that was refused, or of one before it; it has not heard of that."""
        refusal = self._refusal
        if refusal is None or key["number"] != refusal["number"] or key["attempt"] > refusal["attempt"]:
            return
        self._questions.tell(src, "refused", **{**refusal, **key})

    def on_refused(self, asker: int, wish: int, why: str) -> None:
        """The leader has refused a wish; it may be ours."""
        if self._own is not None and (asker, wish) == (self._session.stack.me, self._own.number):
            self.end(why)


class _Wish(NamedTuple):
    """What this member has asked for."""

    number: int
    recipe: str
    done: Done
