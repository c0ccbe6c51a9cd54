"""Scenes: a schedule that was played, with what happened move by move, and what is wrong.

The judge here keeps explicit sets of known messages, as the oracle does, but its findings have more detail: which
member delivered which message before which of its causes, which is held for ever, which should be flagged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inga.lab.rungs import Rung
from inga.layers.causal import Causal
from inga.layers.matrix import Matrix
from inga.layers.shape import Shape
from inga.model.view import View
from inga.recipes import Options
from inga.sim.board import Board, lossless
from inga.sim.schedule import Arrive, Event, Gate, Install, Join, Leave, Schedule, Send, Take, Wait, letter
from inga.stack.layer import Layer
from inga.stack.stack import Stack
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row

DELAY = 5.0
"""Seconds by which packets leave late in shows that delay them."""

MATRIX = "matrix"
"""The name here of the order `vector` with a count per pair of members."""

EARLY, NEVER, UNFLAGGED = "early", "never", "unflagged"


class SceneFinding(NamedTuple):
    """One thing that is wrong at one site."""

    site: int
    kind: str
    message: int
    cause: int = 0  # if the message is early: the cause that is missing

    def __str__(self) -> str:
        what = f"{self.message} before {self.cause}" if self.kind == EARLY else f"{self.message} {self.kind}"
        return f"{letter(self.site)}: {what}"


@dataclass(slots=True)
class Moment:
    """One move, and its effects at its site."""

    event: Event
    held: list[int] = field(default_factory=list)  # messages that wait from this move on
    released: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)  # messages that leave only now
    dropped: bool = False  # a duplicate was recognised
    flagged: bool = False  # the message was taken with the flag of concurrency
    state: str = ""  # the state with which the site compares stamps, after the move
    finding: SceneFinding | None = None  # what is wrong with this move


@dataclass(slots=True)
class Scene:
    """A schedule that was played under an order."""

    order: str
    sites: int
    schedule: Schedule  # as played, completed
    moments: list[Moment]
    stamps: dict[int, str]  # by message: its stamp, as it was sent
    senders: dict[int, int]
    audience: dict[int, set[int]]
    findings: list[SceneFinding]
    taken: list[list[int]]
    broken: set[str]  # guarantees that were broken, according to the oracle

    @property
    def found(self) -> tuple[str, ...]:
        return tuple(map(str, self.findings))


def play_schedule(
    text: str,
    order: str,
    *,
    skew: Sequence[float] = (),
    wait: float | None = None,
    delayed: bool = False,
    **flaws: Any,
) -> Scene:
    """Play a schedule to its end on a board under an order. `delayed`: packets leave later than they are sent.
    `flaws` are options of the board, such as where newcomers start."""
    schedule = Schedule.parse(text)
    sites = max(2, schedule.sites)
    newcomers = sum(isinstance(event, Join) for event in schedule.events)
    realtime: dict[str, Any] = {"skew": tuple(skew)} if skew else {}
    if wait is not None:
        realtime["wait"] = wait
    options = Options(protocol=realtime if order == "realtime" else {}, matrix=order == MATRIX)
    build = lossless("vector" if options.matrix else order, options)

    def layers() -> list[Layer]:
        return [*build(), Shape()] if delayed else build()

    watcher = Watcher(sites, newcomers)
    board = Board(sites, layers, view=watcher.view, traces=list(watcher.traces), watch=watcher, **flaws)
    if delayed:
        for stack in board.stacks:
            shape = stack.layer("shape")
            assert isinstance(shape, Shape)
            for other in stack.others:
                shape.delay(other, DELAY)
    watcher.board = board
    board.play(schedule)
    return watcher.scene(order)


class Watcher:
    """Examines a board after every move. Its traces share one list of rows, so these are in the order of the moves."""

    board: Board

    def __init__(self, sites: int, newcomers: int = 0) -> None:
        everybody = range(sites + newcomers)
        self.view = View.of(*map(letter, range(sites)), traced=True)
        self.rows: list[Row] = []
        self.traces = [MemoryTrace(site, sites, self.rows) for site in range(sites)]
        self._moments: list[Moment] = []
        self._read = 0  # rows already read
        self._under_way: set[int] = set()  # messages that have left
        self._vectors: dict[int, list[int]] = {}  # vectors of messages, if the order itself has vectors
        self._causes: dict[int, set[int]] = {}
        self._audience: dict[int, set[int]] = {}
        self._senders: dict[int, int] = {}
        self._taken: list[set[int]] = [set() for _ in everybody]
        self._known: list[set[int]] = [set() for _ in everybody]
        self._released: list[set[int]] = [set() for _ in everybody]
        self._concurrent: set[tuple[int, int]] = set()  # (site, message) that should be flagged
        self._flagged: set[tuple[int, int]] = set()

    def __call__(self, event: Event) -> None:
        if self._is_nothing(event):
            return
        moment = Moment(event)
        self._judge(moment)
        for row in self.rows[self._read :]:
            self._note(row, moment)
        self._read = len(self.rows)
        if isinstance(event, Take):
            moment.flagged = event in self._flagged
        if isinstance(event, Wait):
            moment.left = sorted({message for message, _ in self.board.under_way} - self._under_way)
        self._under_way |= {message for message, _ in self.board.under_way}
        self._look_at_queue(moment)
        if event.site < len(self.board.stacks):  # a newcomer that waits for its bases has no stack
            moment.state = _state(self.board.stacks[event.site])
        self._moments.append(moment)

    def scene(self, order: str) -> Scene:
        """Return the scene, once the board has finished."""
        board = self.board
        findings = [moment.finding for moment in self._moments if moment.finding is not None]
        for site, taken in enumerate(self._taken):
            if site in board.gone:
                continue
            missing = {m for m, audience in self._audience.items() if site in audience} - taken
            if board.gone:  # messages of crashed members may be missing, but must not be held
                lost = {m for m in missing if self._senders[m] in board.gone}
                missing -= lost - set(board.held(site))
            findings += [SceneFinding(site, NEVER, message) for message in sorted(missing)]
        if board.sees_concurrency and not any(isinstance(event, Gate) for event in board.played):
            findings += [SceneFinding(*each) for each in self._unflagged()]
        return Scene(
            order=order,
            sites=len(self._taken),
            schedule=Schedule(tuple(board.played)),
            moments=self._moments,
            stamps={message: self._stamp(message) for message in self._senders},
            senders=self._senders,
            audience=self._audience,
            findings=findings,
            taken=board.taken,
            broken={name for name, number in board.oracle.violations.items() if number},
        )

    def _look_at_queue(self, moment: Moment) -> None:
        """Note the messages that the move released, and the one that has arrived but was not released, so that it waits."""
        event = moment.event
        released = self._released[event.site]
        if not isinstance(event, Take):
            moment.released = [m for m in self.board.released(event.site) if m not in released]
            released |= {*moment.released}
        if not isinstance(event, Arrive) or event.duplicate or event.message in moment.held:
            return
        if event.site in self._audience[event.message] and event.message not in released:
            moment.held.append(event.message)

    def _judge(self, moment: Moment) -> None:
        match moment.event:
            case Send(site, message, dst):
                self._causes[message] = set(self._known[site])
                self._known[site].add(message)
                self._senders[message] = site
                others = self.board.stacks[site].others
                self._audience[message] = {m for m in others if dst is None or dst >> m & 1}
            case Take(site, message):
                causes, taken = self._causes[message], self._taken[site]
                seen = taken | {m for m, sender in self._senders.items() if sender == site}
                missing = {cause for cause in causes if site in self._audience[cause]} - taken
                if missing and (site, message) not in self.board.loose:
                    moment.finding = SceneFinding(site, EARLY, message, min(missing))
                if seen - causes:
                    self._concurrent.add((site, message))
                taken.add(message)
                self._known[site] |= causes | {message}

    def _is_nothing(self, event: Event) -> bool:
        """Whether an arrival means nothing: the header of a message that is not for the site, under a scheme without headers."""
        if not isinstance(event, Arrive) or event.site in self._audience[event.message]:
            return False
        return any(isinstance(layer, Rung | Matrix) for layer in self.board.stacks[event.site].layers)

    def _note(self, row: Row, moment: Moment) -> None:
        if row.src is None or row.seq is None:
            return
        message = self.board.message(row.src, row.seq)
        if row.step == "send" and row.deps is not None and self.board.sees_concurrency:
            self._vectors[message] = [*row.deps[: row.src], row.seq, *row.deps[row.src + 1 :]]
        elif row.step == "hold":
            moment.held.append(message)
        elif row.step == "duplicate":
            moment.dropped = True
        elif row.step == "concurrent":
            self._flagged.add((row.process, message))  # possibly before it is taken

    def _stamp(self, message: int) -> str:
        """Return the stamp of a message in words, as its first receiver reads it."""
        if message in self._vectors:
            return _vector(self._vectors[message])
        for member, packet in self.board.copies(message):
            if packet.bare:
                continue
            rungs = (each for each in self.board.stacks[member].layers if isinstance(each, Rung))
            rung = next(rungs, None)
            return f"no. {packet.seq}" if rung is None else rung.stamp_text(packet)
        return ""

    def _unflagged(self) -> list[tuple[int, str, int]]:
        return [(site, UNFLAGGED, message) for site, message in sorted(self._concurrent ^ self._flagged)]


def _state(stack: Stack) -> str:
    for layer in stack.layers:
        if isinstance(layer, Rung):
            return layer.state_text()
        if isinstance(layer, Causal):
            return _vector(layer.inbox.vector)
    return ""


def _vector(counts: Sequence[int]) -> str:
    return "(" + ",".join(map(str, counts)) + ")"


def describe(scene: Scene) -> list[str]:
    """Describe a scene in words, move by move."""
    return [_line(scene, moment) for moment in scene.moments]


def _line(scene: Scene, moment: Moment) -> str:
    site = letter(moment.event.site)
    match moment.event:
        case Send(_, message, dst):
            to = "" if dst is None else " to " + "".join(letter(m) for m in range(26) if dst >> m & 1)
            stamp = scene.stamps[message]
            text = f"{site} sends {message}{to}" + (f", stamped {stamp}" if stamp else "")
            if moment.held:
                text += "; its own copy waits in its own buffer"
        case Arrive(message, _, duplicate):
            what = (
                str(message) if moment.event.site in scene.audience[message] else f"the header of {message}"
            )
            text = f"{what} reaches {site}" + (" again" if duplicate else "")
            if message in moment.held:
                text += ": held"
            elif moment.dropped:
                text += ": dropped"
        case Wait():
            text = f"the waiting time of {site} ends"
            if moment.left:
                text += f": {', '.join(map(str, moment.left))} goes out"
        case Join():
            text = f"{site} joins"
        case Leave():
            text = f"{site} is gone"
        case Install():
            text = f"{site} installs the new view"
        case Gate(_, is_open):
            text = f"the gate of {site} {'opens' if is_open else 'closes'}"
        case Take(_, message):
            text = f"{site} delivers {message}" + (", flagged as concurrent" if moment.flagged else "")
    if moment.finding is not None:
        text += f" BEFORE ITS CAUSE {moment.finding.cause}"
    return text + (f"   [{site} {moment.state}]" if moment.state else "")


def outcome(scene: Scene) -> list[str]:
    """Describe what is wrong in a scene."""
    sentences = {
        EARLY: "{site} delivers {message} before its cause {cause}",
        NEVER: "{site} never delivers {message}",
        UNFLAGGED: "{site} is not told that {message} is concurrent with something it knows",
    }
    return [
        sentences[each.kind].format(site=letter(each.site), message=each.message, cause=each.cause)
        for each in scene.findings
    ]
