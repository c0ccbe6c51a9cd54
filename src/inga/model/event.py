"""What happens to a member besides messages and views; items of `group.items()`, each at its place."""

from collections.abc import Mapping
from dataclasses import dataclass

from inga.model.view import View


@dataclass(frozen=True, slots=True)
class Paused:
    """Too few members are here to go on: nothing can be sent until this is over, and the view stays in force."""

    view: View
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resumed:
    """A pause is over. If a view follows at once, the others had gone on, and we come back as a new member."""

    view: View  # in force until here


@dataclass(frozen=True, slots=True)
class Missed:
    """We were too slow, and the others went on without us. In the next view we are a new member, and we never get the messages
    that they sent in between or that had not arrived before."""

    messages: Mapping[str, int]  # by sender: how many


Incident = Paused | Resumed | Missed
