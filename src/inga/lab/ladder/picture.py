"""From a scene to a picture: each move a column, each message its number."""

from inga.lab.ladder.scene import NEVER, Moment, Scene
from inga.report.spacetime import Bar, Copy, Diagram, Dot
from inga.sim.schedule import Arrive, Send, Take, Wait, letter
from inga.trial.people import names


def picture(scene: Scene, title: str) -> Diagram:
    """The diagram of a scene."""
    return _Painter(scene, title).diagram


class _Painter:
    """Goes through the moments once, column by column."""

    def __init__(self, scene: Scene, title: str) -> None:
        self._scene = scene
        lanes = [f"{name} {letter(site)}" for site, name in enumerate(names(scene.sites))]
        self.diagram = Diagram(lanes, 0, title)
        self._sent: dict[int, tuple[int, int]] = {}  # of each message: lane and column
        self._arrived: dict[tuple[int, int], int] = {}  # (site, message): column
        self._released: dict[tuple[int, int], int] = {}
        self._taken: dict[tuple[int, int], int] = {}
        self._held: dict[tuple[int, int], int] = {}
        self._stale: list[Bar] = []
        previous: Moment | None = None
        for moment in scene.moments:
            if not _continues(moment, previous):
                self.diagram.columns += 1
            self._paint(moment, self.diagram.columns - 1)
            previous = moment
        self._paint_bars()
        self.diagram.ends = [self._end(site) for site in range(scene.sites)]

    def _paint(self, moment: Moment, column: int) -> None:
        scene, diagram = self._scene, self.diagram
        for message in moment.released:
            self._released[moment.event.site, message] = column
        match moment.event:
            case Send(site, message, _):
                self._sent[message] = site, column
                diagram.dots.append(Dot(site, column, str(message), "send", scene.stamps[message]))
                for own in moment.held:
                    self._stale.append(Bar(site, column, None, f"own {own} is no successor", "blocked"))
            case Arrive(message, site, duplicate):
                diagram.copies.append(
                    Copy(*self._sent[message], site, column, self._kind(site, message, duplicate))
                )
                if duplicate and message in moment.held:
                    self._stale.append(Bar(site, column, None, f"stale {message} at the head", "blocked"))
                elif not duplicate:
                    self._arrived[site, message] = column
                    if message in moment.held:
                        self._held[site, message] = column
            case Take(site, message):
                self._taken[site, message] = column
                early = moment.finding
                note = "" if early is None else f"before {early.cause}!"
                diagram.dots.append(Dot(site, column, str(message), "early" if early else "deliver", note))
            case Wait(site):
                diagram.dots.append(Dot(site, column, "", "wait"))

    def _paint_bars(self) -> None:
        """What waits, and how long."""
        for (site, message), column in self._held.items():
            end = self._released.get((site, message))
            kind, words = (
                ("held", f"{message} held") if end is not None else ("blocked", f"{message} held for ever")
            )
            self.diagram.bars.append(Bar(site, column, end, words, kind))
        for (site, message), column in self._released.items():
            taken = self._taken.get((site, message), column)
            if taken > column and (site, message) not in self._held:
                self.diagram.bars.append(Bar(site, column, taken, f"{message} unread", "queued"))
        self.diagram.bars += self._stale

    def _kind(self, site: int, message: int, duplicate: bool) -> str:
        if duplicate:
            return "double"
        if site not in self._scene.audience[message]:
            return "header"
        is_late = any(each.site == site and each.cause == message for each in self._scene.findings)
        return "late" if is_late else "plain"

    def _end(self, site: int) -> tuple[str, bool]:
        """What the application at a site got, and whether something is wrong with it."""
        wrong = [each for each in self._scene.findings if each.site == site]
        never = [str(each.message) for each in wrong if each.kind == NEVER]
        got = ", ".join(map(str, self._scene.taken[site]))
        words = f"got {got}" if got else ("" if not never else "got nothing")
        if never and got:
            words += f", never {', '.join(never)}"
        return words, bool(wrong)


def _continues(moment: Moment, previous: Moment | None) -> bool:
    """A message delivered the moment it arrives shares that column."""
    if previous is None or not isinstance(moment.event, Take) or not isinstance(previous.event, Arrive):
        return False
    return moment.event[:2] == (previous.event.site, previous.event.message)
