"""Pictures of scenes: each move is a column, and each message is shown by its number."""

from inga.lab.ladder.scene import NEVER, UNFLAGGED, Moment, Scene
from inga.report.spacetime import Bar, Copy, Diagram, Dot
from inga.sim.schedule import Arrive, Gate, Install, Join, Leave, Send, Take, Wait, letter
from inga.trial.people import member_names


def picture(scene: Scene, title: str) -> Diagram:
    """Return the diagram of a scene."""
    return _Painter(scene, title).diagram


def columns(scene: Scene) -> list[int]:
    """Return the column of each moment in the picture."""
    found: list[int] = []
    for at, moment in enumerate(scene.moments):
        previous = scene.moments[at - 1] if at else None
        found.append(found[-1] if found and _continues(moment, previous) else len(set(found)))
    return found


class _Painter:
    """Draws a scene in one pass through its moments, column by column."""

    def __init__(self, scene: Scene, title: str) -> None:
        self._scene = scene
        lanes = [f"{name} {letter(site)}" for site, name in enumerate(member_names(scene.sites))]
        self.diagram = Diagram(lanes, 0, title)
        self._left: dict[int, tuple[int, int]] = {}  # by message: lane, and column in which it left
        self._released: dict[tuple[int, int], int] = {}  # (site, message): column
        self._taken: dict[tuple[int, int], int] = {}
        self._held: dict[tuple[int, int], int] = {}
        self._early: set[tuple[int, int]] = set()  # causes that are missing at a site
        for moment, column in zip(scene.moments, columns(scene), strict=True):
            self.diagram.columns = column + 1
            self._paint(moment, column)
        self._paint_waiting()
        if any(bar.last is None for bar in self.diagram.bars):
            self.diagram.columns += 2  # to show how long "for ever" is
        self.diagram.ends = [self._end(site) for site in range(scene.sites)]

    def _paint(self, moment: Moment, column: int) -> None:
        scene, diagram = self._scene, self.diagram
        for message in moment.released:
            self._released[moment.event.site, message] = column
        match moment.event:
            case Send(site, message, _):
                self._left[message] = site, column
                diagram.dots.append(Dot(site, column, str(message), "send", scene.stamps[message]))
                self._paint_stuck(moment, column, "own copy")
            case Arrive(message, site, duplicate):
                kind = self._kind(site, message, duplicate)
                diagram.copies.append(Copy(*self._left[message], site, column, kind))
                if duplicate:
                    self._paint_stuck(moment, column, "stale, at the head")
                elif message in moment.held:
                    self._held[site, message] = column
            case Take(site, message):
                self._taken[site, message] = column
                self._paint_delivery(moment, site, message, column)
            case Join(site):
                diagram.dots.append(Dot(site, column, "", "mark", "joins"))
            case Leave(site):
                diagram.dots.append(Dot(site, column, "", "mark", "gone"))
            case Install(site):
                diagram.dots.append(Dot(site, column, "", "mark", "view"))
            case Gate(site, is_open):
                diagram.dots.append(Dot(site, column, "", "mark", "gate open" if is_open else "gate shut"))
            case Wait(site):
                diagram.dots.append(Dot(site, column, "", "wait"))
                for message in moment.left:
                    diagram.bars.append(Bar(*self._left[message], column, str(message), "queued", "delayed"))
                    self._left[message] = site, column

    def _paint_delivery(self, moment: Moment, site: int, message: int, column: int) -> None:
        kind, note = "deliver", ""
        if moment.finding is not None:
            kind, note = "early", f"before {moment.finding.cause}!"
            self._early.add((site, moment.finding.cause))
        elif moment.flagged:
            kind = "flagged"
        self.diagram.dots.append(Dot(site, column, str(message), kind, note))

    def _paint_stuck(self, moment: Moment, column: int, words: str) -> None:
        """Draw the copies in a buffer that no state of the site will ever admit."""
        for message in moment.held:
            self.diagram.bars.append(Bar(moment.event.site, column, None, str(message), "blocked", words))

    def _paint_waiting(self) -> None:
        """Draw the messages that wait, and how long they do."""
        bars = self.diagram.bars
        for (site, message), column in self._held.items():
            end = self._taken.get((site, message))
            kind, words = ("blocked", "held for ever") if end is None else ("held", "held")
            bars.append(Bar(site, column, end, str(message), kind, words))
        for (site, message), column in self._released.items():
            taken = self._taken.get((site, message), column)
            if taken > column and (site, message) not in self._held:
                bars.append(Bar(site, column, taken, str(message), "queued", "unread"))

    def _kind(self, site: int, message: int, duplicate: bool) -> str:
        if duplicate:
            return "double"
        if site not in self._scene.audience[message]:
            return "header"
        return "late" if (site, message) in self._early else "plain"

    def _end(self, site: int) -> tuple[tuple[str, ...], bool]:
        """Return what the application at a site got and lacks, in words, and whether something is wrong there."""
        wrong = [each for each in self._scene.findings if each.site == site]
        got = ", ".join(map(str, self._scene.taken[site]))
        words = [f"got {got}"] if got else []
        for kind in (NEVER, UNFLAGGED):
            concerned = ", ".join(str(each.message) for each in wrong if each.kind == kind)
            if concerned:
                words.append(f"{kind} {concerned}")
        return tuple(words), bool(wrong)


def _continues(moment: Moment, previous: Moment | None) -> bool:
    """Whether a moment shares the column of the previous one: a delivery on arrival, or when a waiting time ends."""
    if previous is None or not isinstance(moment.event, Take):
        return False
    match previous.event:
        case Arrive(message, site, _):
            return moment.event == Take(site, message)
        case Wait(site):
            return moment.event.site == site
    return False
