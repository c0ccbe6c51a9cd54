"""A counterexample, played under its schemes and under the right rule, and judged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from inga.lab.ladder.picture import picture
from inga.lab.ladder.scene import Scene, outcome
from inga.lab.ladder.vectors import LadderVector, Show
from inga.report.spacetime import Diagram, draw


@dataclass(frozen=True, slots=True)
class Played:
    """A vector that was played: for each show, the scene under its scheme and the scenes under the right rules."""

    vector: LadderVector
    shows: tuple[tuple[Show, Scene, tuple[Scene, ...]], ...]

    @property
    def holds(self) -> bool:
        """Whether the schemes broke exactly as listed, and the right rules did not."""
        return all(
            set(scene.found) == set(show.found) and not any(right.findings for right in rights)
            for show, scene, rights in self.shows
        )

    @property
    def measured(self) -> str:
        """The findings, in a sentence or two."""
        said: dict[str, list[str]] = {}
        for show, scene, _ in self.shows:
            said.setdefault("; ".join(outcome(scene)) or "nothing is wrong", []).append(show.name)
        broken = ". ".join(f"{', '.join(dict.fromkeys(schemes))}: {what}" for what, schemes in said.items())
        dirty = [right.order for _, _, rights in self.shows for right in rights if right.findings]
        return (
            broken
            + ". "
            + (f"Broken too: {', '.join(dirty)}" if dirty else f"Clean: {', '.join(self.vector.right)}")
        )

    def pictures(self) -> list[tuple[str, list[str], Scene, bool]]:
        """Return the different pictures: (schedule, orders with this same picture, scene, whether these are right rules)."""
        found: dict[str, tuple[str, list[str], Scene, bool]] = {}
        for show, scene, rights in self.shows:
            for each, is_right in ((scene, False), *((right, True) for right in rights)):
                drawn = f"{show.schedule} {is_right} {draw(picture(each, ''))}"
                orders = found.setdefault(drawn, (show.schedule, [], each, is_right))[1]
                name = each.order if is_right else show.name
                if name not in orders:
                    orders.append(name)
        return list(found.values())

    def files(self) -> Iterator[tuple[str, Diagram]]:
        """Yield names of files and their pictures: the first one of each scheme and rule."""
        names = set()
        for _, orders, scene, _ in self.pictures():
            name = f"{self.vector.id}-{re.sub(r'[^a-z-]+', '-', orders[0].lower())}.svg"
            if name not in names:
                names.add(name)
                yield name, picture(scene, self.caption(orders, scene))

    def caption(self, orders: list[str], scene: Scene) -> str:
        """Return the caption of a picture: its orders, and what is wrong."""
        return (
            f"{self.vector.id} under {', '.join(orders)}: {'; '.join(outcome(scene)) or 'nothing is wrong'}"
        )


def play(vector: LadderVector) -> Played:
    """Play all shows of a vector."""
    return Played(
        vector,
        tuple(
            (show, show.broken(), tuple(show.under(order) for order in vector.right)) for show in vector.shows
        ),
    )
