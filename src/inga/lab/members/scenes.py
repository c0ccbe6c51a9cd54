"""The lecture's counterexamples about groups that change, V19 to V24 and V27, with real processes and sockets.

In each of them some simpler way to change a group blocks a member for ever, or delivers a message before its cause. Here the
same happens to a live group, in which a delay keeps a message in flight: no member waits, and causes come first. `inga lab ladder`
plays the simpler ways, which fail.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim
from inga.model.delivery import Delivery
from inga.model.errors import IngaError
from inga.model.view import View
from inga.net.group import Group
from inga.net.join import join
from inga.runs.cluster import Cluster, WorkerDied
from inga.runs.live import free_ports
from inga.runs.worker import WorkerLink
from inga.trace.manifest import mark_crashed

FOUNDERS = ("alice", "bob", "cathy")
LATE, NEVER = 0.3, 60.0
"""Seconds for which messages are delayed: so that others arrive first; longer than a scene takes."""

TIMEOUT = 30.0
DETECT = 1.0


class LiveScene(NamedTuple):
    """One scene. `took`: by member, the messages that it takes in their order, if all is well."""

    id: str
    title: str
    founders: int
    play: "Callable[[Actors], None]"
    took: dict[str, list[str]]


class Acted(NamedTuple):
    """A scene that was played."""

    scene: LiveScene
    took: dict[str, list[str]]
    seconds: float
    stuck: str  # the error that ended the scene, or empty

    @property
    def is_right(self) -> bool:
        return not self.stuck and all(self.took.get(name) == texts for name, texts in self.scene.took.items())

    def row(self) -> list[object]:
        seen = "; ".join(f"{name}: {' '.join(texts) or 'nothing'}" for name, texts in self.took.items())
        return [self.scene.id, self.scene.title, f"{seen}; {self.stuck}" if self.stuck else seen]

    def claim(self, verdict: str) -> Claim:
        """`verdict` is that of `inga check`, which is *unknown* if the last rows of a killed process are lost."""
        expected = "; ".join(
            f"{name} takes {' '.join(texts) or 'nothing'}" for name, texts in self.scene.took.items()
        )
        return Claim(
            id=self.scene.id,
            statement=f"{self.scene.id}, {self.scene.title}: nobody waits, and causes come first",
            published=expected,
            measured=f"{self.row()[2]}; check: {verdict}",
            verdict=HOLDS if self.is_right and verdict in ("pass", "unknown") else NOT_REPRODUCED,
        )


class Actors:
    """The processes of a scene, which follow commands."""

    def __init__(self, cluster: Cluster, names: tuple[str, ...], trace: Path) -> None:
        self.took: dict[str, list[str]] = {name: [] for name in names}
        self._views: dict[str, tuple[str, ...]] = {}
        self._cluster = cluster
        self._names = names
        self._trace = trace
        self._killed: list[str] = []

    def tell(self, name: str, kind: str, **what: Any) -> None:
        self._cluster.tell(kind, self._names.index(name), **what)

    def send(self, name: str, text: str, *to: str) -> None:
        """Let a member send a text; to all members if `to` is empty."""
        self.tell(name, "send", text=text, to=to or None)

    def keep_back(self, name: str, to: str, seconds: float = NEVER) -> None:
        """From now on, delay the datagrams of a member to another one by so many seconds."""
        self.tell(name, "delay", to=to, seconds=seconds)

    def kill(self, *names: str) -> None:
        for name in names:
            self._killed.append(name)
            self._cluster.signal(self._names.index(name), signal.SIGKILL)
        for name in names:
            self._cluster.wait(self._names.index(name))
            mark_crashed(self._trace, self._names.index(name), name)

    def until_took(self, name: str, text: str) -> None:
        self._until(lambda: text in self.took[name], f"{name} takes {text}")

    def until_view(self, *names: str) -> None:
        """Wait until all of these are in a view with exactly these members."""
        self._until(
            lambda: all(set(self._views.get(name, ())) == set(names) for name in names), f"view of {names}"
        )

    def finish(self) -> None:
        """Let the processes leave that were not killed."""
        for name in self._names:
            self.tell(name, "leave")
        gone = frozenset(self._names.index(name) for name in self._killed)
        self._cluster.gather("left", timeout=TIMEOUT, without=gone)

    def _until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + TIMEOUT
        while not is_so():
            if monotonic() > deadline:
                raise WorkerDied(f"not within {TIMEOUT:g} s: {what}")
            for index, line in self._cluster.listen(0.05):
                name = self._names[index]
                if line["kind"] == "took":
                    self.took[name].append(line["text"])
                elif line["kind"] == "view":
                    self._views[name] = tuple(line["names"])
                elif line["kind"] == "error":
                    raise WorkerDied(f"{name}: {line['text']}")
            for index, name in enumerate(self._names):
                if name not in self._killed and (how := self._cluster.has_ended(index)) is not None:
                    raise WorkerDied(f"{name} {how}")


def act(scene: LiveScene, trace: Path) -> Acted:
    """Play a scene, and return what all members have taken. A scene that gets stuck ends with what was taken until then."""
    began, stuck = monotonic(), ""
    with _actors(scene, trace) as actors:
        try:
            scene.play(actors)
            actors.finish()
        except IngaError as error:
            stuck = str(error)
        return Acted(scene, {name: actors.took[name] for name in scene.took}, monotonic() - began, stuck)


@contextmanager
def _actors(scene: LiveScene, trace: Path) -> Iterator[Actors]:
    founders, names = FOUNDERS[: scene.founders], (*FOUNDERS[: scene.founders], "judy")
    port = free_ports(1, socket.SOCK_DGRAM)[0]
    how = {
        "group": f"scene-{os.getpid()}-{port}",
        "members": founders,
        "via": f"udp://239.7.7.7:{port}",
        "interface": "127.0.0.1",
        "detect": DETECT,
        "trace": str(trace),
    }
    configs = [{"join": {**how, "name": name, "late": name not in founders}} for name in names]
    with Cluster("inga.lab.members.scenes:play", configs) as cluster:
        actors = Actors(cluster, names, trace)
        for name in founders:
            actors.tell(name, "join")
        cluster.gather("ready", timeout=60.0, without=frozenset({len(founders)}))
        yield actors


async def play(config: dict[str, Any], link: WorkerLink) -> None:
    """Run the process of one actor."""
    if (await link.hear())["kind"] != "join":
        link.say("left")
        return
    async with join(**config["join"]) as group:
        await group.ready()
        link.say("ready")
        reading = asyncio.create_task(_read(group, link))
        while (told := await link.hear())["kind"] != "leave":
            if told["kind"] == "send":
                await group.send(told["text"].encode(), told["to"])
            else:
                group.delay(told["to"], told["seconds"])
        reading.cancel()
    link.say("left")


async def _read(group: Group, link: WorkerLink) -> None:
    async for item in group.items():
        if isinstance(item, View):
            link.say("view", names=item.names)
        elif isinstance(item, Delivery):
            link.say("took", text=bytes(item.data).decode())


# The scenes


def _starts_at_zero(on: Actors) -> None:
    on.send("alice", "1")
    on.until_took("bob", "1")
    on.tell("judy", "join")
    on.until_view("alice", "bob", "judy")
    on.send("alice", "2")
    on.until_took("judy", "2")
    on.until_took("bob", "2")


def _copies_one_member(on: Actors) -> None:
    on.keep_back("alice", "bob", LATE)
    on.send("alice", "1")
    on.tell("judy", "join")
    on.until_view("alice", "bob", "judy")
    on.send("alice", "2")
    on.until_took("judy", "2")
    on.until_took("bob", "2")


def _counts_again(on: Actors) -> None:
    on.tell("judy", "join")
    on.until_view("alice", "bob", "judy")
    on.send("judy", "1")
    on.until_took("bob", "1")
    on.send("judy", "2")
    on.until_took("bob", "2")
    on.until_took("alice", "2")


def _dies(on: Actors) -> None:
    on.keep_back("alice", "cathy")
    on.send("alice", "1")
    on.until_took("bob", "1")
    on.kill("alice")
    on.send("bob", "2")
    on.until_view("bob", "cathy")
    on.until_took("cathy", "2")


def _die_both(on: Actors) -> None:
    on.keep_back("alice", "cathy")
    on.send("alice", "1")
    on.until_took("bob", "1")
    on.send("bob", "2")
    on.until_took("alice", "2")  # so it has reached cathy, too, where it waits for its cause
    on.kill("alice", "bob")
    on.until_view("cathy")


def _leaves(on: Actors) -> None:
    on.keep_back("alice", "cathy")
    on.send("alice", "1")
    on.until_took("bob", "1")
    on.tell("alice", "leave")
    on.send("bob", "2")
    on.until_took("cathy", "2")
    on.until_view("bob", "cathy")


def _differences(on: Actors) -> None:
    on.tell("judy", "join")
    on.until_view("alice", "bob", "judy")
    on.keep_back("bob", "judy", LATE)
    on.send("bob", "1", "alice", "judy")
    on.until_took("alice", "1")
    on.send("alice", "2", "bob")
    on.send("alice", "3", "bob", "judy")
    on.until_took("bob", "3")
    on.until_took("judy", "3")


SCENES = (
    LiveScene(
        "V19",
        "a newcomer does not wait for what was sent before it came",
        2,
        _starts_at_zero,
        {"bob": ["1", "2"], "judy": ["2"]},
    ),
    LiveScene(
        "V20",
        "one comes while a message is on its way",
        2,
        _copies_one_member,
        {"bob": ["1", "2"], "judy": ["2"]},
    ),
    LiveScene("V21", "a newcomer speaks twice", 2, _counts_again, {"alice": ["1", "2"], "bob": ["1", "2"]}),
    LiveScene("V22", "one dies whose message only some have", 3, _dies, {"bob": ["1"], "cathy": ["1", "2"]}),
    LiveScene("V23", "two die, and with them the cause of a message", 3, _die_both, {"cathy": []}),
    LiveScene(
        "V24", "one leaves while its message is on its way", 3, _leaves, {"bob": ["1"], "cathy": ["1", "2"]}
    ),
    LiveScene(
        "V27",
        "differences of stamps, to some, after somebody came",
        2,
        _differences,
        {"alice": ["1"], "judy": ["1", "3"]},
    ),
)
