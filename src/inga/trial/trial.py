"""A trial: all options of `inga sim` and `inga live`, and nothing else.

So any failure that a hunt finds can be repeated with one command, and one description runs in virtual time and over sockets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import ceil, inf
from shlex import quote
from typing import Any

from inga.layers.flow import WINDOW_MAX
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.text import suggest
from inga.objects.declare import ObjectClass
from inga.recipes import Options, find
from inga.recipes.options import UNSAID
from inga.session.slow import DENY_WITHIN, PATIENCE, POLICIES
from inga.trace.manifest import Manifest
from inga.trial.calls import CallLoad, tally_class
from inga.trial.manifest import manifest_of
from inga.trial.mishaps import STALLS_AT, Mishap, NetworkCut, draw_mishaps
from inga.trial.people import member_names
from inga.trial.workload import RATE, Workload

DATAGRAM = 60 * 1024

VIA = "udp://239.7.7.7:0"
"""Loopback multicast on a free port."""

DETECT = 1.0
"""The default of `detect`, in seconds, in trials that need failures to be detected."""

PAUSE = 5.0
"""How long a member is suspended by default, in seconds."""

SLOW_READ = 0.005
"""Seconds that a slow reader spends on each message."""

SLOW_QUEUE = 32 << 10
"""Unread bytes at a slow reader above which senders wait for it."""

STALL_ROOM = 4 << 10
"""The same, and also the window of each sender, if a member is to be expelled because its application stalls: so small that all
members soon wait for it."""

SAID = {"back": "return", "pause_for": "pause-for", "slow_policy": "slow-policy"}
"""Fields that have another name on the command line."""

NOT_TOLD = ("seed", "option", "objects", "misdeclare", "via", "unsafe", "timeout")
"""Fields that are not simply copied to the options of a manifest: they have a key of their own, occur there only if they were
given, or not at all."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial described by numbers, under the names of the command line. Times are in seconds; None is the driver's default."""

    order: str = "causal"
    members: int = 4
    messages: int = 100  # per member; with objects, its requests
    size: int = 64
    rate: float | None = None  # sends per second and member; live: None, as fast as the group accepts them
    subset: int | None = None  # each message goes to this many others
    loss: float = 0.0
    dup: float = 0.0
    reorder: float = 0.0
    delay: tuple[float, float] | None = None
    window: int | None = None
    datagram: int = DATAGRAM  # sim
    seed: int = 0
    echo: bool = False
    coarse: bool = False  # sim
    join: int = 0  # processes that join later
    crash: int = 0  # members that crash during the run
    back: int = 0  # how many of these return; `--return` on the command line
    pause: int = 0  # members that are suspended for a while
    pause_for: float = PAUSE
    partition: str | None = None  # the parts of a cut network, and when it is cut: A,B/C,D@2+3
    policy: str | None = None  # which parts go on during a cut: primary or all; None: the order's default
    slow: str | None = None  # a member whose application reads slowly
    slow_policy: str = "wait"  # what the group does about it; unless it is wait, the application stalls
    patience: float = PATIENCE  # how long the others wait for it, unless the policy is wait
    detect: float | None = None  # silence after which a member is excluded
    rejoin: bool | None = None  # excluded members return; None: if the trial has pauses or a cut
    matrix: bool = False
    deliver: str | None = None  # level; None: the order's own
    option: tuple[tuple[str, Any], ...] = ()  # options of the order's protocol
    objects: int | None = None  # replicated objects that members call; None: they send messages
    misdeclare: tuple[str, str] | None = None  # methods declared compatible although they conflict
    via: str = VIA  # live
    unsafe: bool = False  # live
    timeout: float = 60.0  # live: a run without any delivery for so long is given up

    def __post_init__(self) -> None:
        if self.datagram < 256:
            raise UsageError(f"--datagram is at least 256 bytes, not {self.datagram}")
        if self.window is not None and self.window < 1:
            raise UsageError(f"--window is at least 1 byte, not {self.window}")
        if self.join < 0:
            raise UsageError(f"--join is the number of members that come later, not {self.join}")
        if not 0 <= self.back <= self.crash or 0 < self.members <= self.crash:
            raise UsageError(
                f"--crash is fewer than there are members, and --return no more than crash: {self.crash} and {self.back} of {self.members}"
            )
        if self.pause < 0 or 0 < self.members <= self.crash + self.pause:
            raise UsageError(
                "--pause and --crash are fewer than there are members, so that some are there all the time"
            )
        if not 0 < self.pause_for < inf:
            raise UsageError(f"--pause-for is a number of seconds above 0, not {self.pause_for:g}")
        if self.detect is not None and not 0 < self.detect < inf:
            raise UsageError(f"--detect is a number of seconds above 0, not {self.detect:g}")
        if self.slow is not None and self.slow not in self.people:
            raise UsageError(f"--slow: no member {self.slow!r}{suggest(self.slow, self.people)}")
        if self.slow_policy not in POLICIES:
            raise UsageError(f"--slow-policy is one of {', '.join(POLICIES)}, not {self.slow_policy!r}")
        if self.slow is None and self.slow_policy != "wait":
            raise UsageError("--slow-policy says what becomes of a slow member: name one with --slow")
        if not 0 < self.patience < inf:
            raise UsageError(f"--patience is a number of seconds above 0, not {self.patience:g}")
        _ = self.workload, self.cut  # raises if their values are invalid

    @property
    def people(self) -> tuple[str, ...]:
        """The names of the members at the start."""
        return member_names(self.members)

    @property
    def workload(self) -> Workload:
        return Workload(self.members, self.messages, self.size, self._rate, self.subset)

    @property
    def length(self) -> float:
        """Seconds for which members send, if they keep the times of the workload."""
        return self.messages / self._rate

    @property
    def enough(self) -> int:
        """How many messages each member must send so that it still sends when all mishaps are over."""
        if not self.is_disturbed:
            return self.messages
        ends = [self.pause_for if self.pause else 0.0, 0.0 if self.cut is None else self.cut.ends]
        lasts = max(3.0, *ends, STALLS_AT + self.stall_for if self.stalls else 0.0)
        return ceil((lasts + 2 * (1 + (self.forgives or 0.0))) * self._rate)

    def rest_of_workload(self, at: float) -> Workload:
        """The workload of a member that returns at the time `at`."""
        return replace(self.workload, messages=max(0, int((self.length - at) * self._rate)))

    @property
    def cut(self) -> NetworkCut | None:
        """The cut of the network, if there is one."""
        return None if self.partition is None else NetworkCut.parse(self.partition, self.people)

    @property
    def is_disturbed(self) -> bool:
        """Whether the trial has mishaps, so that views change without a request."""
        return bool(self.crash or self.pause or self.partition or self.stalls)

    @property
    def stalls(self) -> bool:
        """Whether the application of the slow member stalls, so that the others go on without that member."""
        return self.slow is not None and self.slow_policy != "wait"

    @property
    def stall_for(self) -> float:
        """How long it does not read, in seconds: until all others wait for it, `patience` is over, and they agree to expel it."""
        room = 2 * STALL_ROOM + DATAGRAM  # a sender waits when a whole bundle does
        return room / (self._rate * self.size) + self.patience + 2 * DENY_WITHIN

    @property
    def mishaps(self) -> list[Mishap]:
        """The mishaps of the trial, in order of time."""
        return draw_mishaps(
            self.people,
            self.seed,
            length=self.length,
            crash=self.crash,
            back=self.back,
            pause=self.pause,
            pause_for=self.pause_for,
            cut=self.cut,
            slow=self.slow if self.stalls else None,
            stall_for=self.stall_for,
        )

    @property
    def forgives(self) -> float | None:
        """Seconds of silence after which a member is excluded: as given, or `DETECT` if the trial needs one; else None."""
        on_others_wire = self.join and find(self.order).wire != "inga"  # where joining needs `detect`
        return self.detect or (DETECT if self.is_disturbed or on_others_wire else None)

    @property
    def returns(self) -> bool:
        """Whether an excluded member rejoins by itself."""
        return bool(self.pause or self.partition) if self.rejoin is None else self.rejoin

    @property
    def queue_max(self) -> int:
        """Unread bytes above which senders wait: few if a member reads slowly, so that senders soon wait for it."""
        return UNSAID.queue_max if self.slow is None else STALL_ROOM if self.stalls else SLOW_QUEUE

    @property
    def room(self) -> int | None:
        """The window of each sender in bytes: as given, or `STALL_ROOM` if an application stalls; else None."""
        return self.window or (STALL_ROOM if self.stalls and find(self.order).window else None)

    @property
    def load(self) -> CallLoad:
        """The requests to objects."""
        return CallLoad(self.members, self.messages, self.objects or 0, self._rate)

    @property
    def _rate(self) -> float:
        return RATE if self.rate is None else self.rate

    def faults(self, delay: tuple[float, float]) -> Faults:
        """The faults of the network. `delay` applies if the trial gives none."""
        return Faults(self.loss, self.dup, self.reorder, *(delay if self.delay is None else self.delay))

    def classes(self, wrong: tuple[str, str] | None = None) -> Mapping[str, type[ObjectClass]] | None:
        """The objects of the group by name, if it has objects; `wrong` as in `tally_class`."""
        return None if self.objects is None else dict.fromkeys(self.load.names, tally_class(wrong))

    @property
    def is_primary(self) -> bool:
        """Whether only the part with a majority goes on while the network is cut."""
        return (self.options().partition or find(self.order).partition) == "primary"

    def options(self) -> Options:
        """The options of each member's stack."""
        return Options(
            echo=self.echo if self.objects is None else None,
            coarse=self.coarse,
            matrix=self.matrix,
            deliver=self.deliver,
            protocol=dict(self.option),
            detect=self.forgives,
            rejoin=self.returns,
            # Without a cut, silent members have really failed, so the rest goes on however few they are.
            partition=self.policy
            or ("all" if self.partition is None and find(self.order).changes_with(self.forgives) else None),
            slow=self.slow_policy,
            patience=self.patience,
            queue_max=self.queue_max,
            flow={"window": self.room or WINDOW_MAX},
        )

    def manifest(self, source: str, *, full: bool, **more: Any) -> Manifest:
        """The manifest of the run. It has the true conflicts, even if the members were given wrong ones (`misdeclare`)."""
        recipe, protocol = find(self.order), dict(self.option)
        told = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in NOT_TOLD}
        told |= {"deliver": recipe.level_of(self.deliver), "protocol": protocol}
        if self.objects is not None:
            told |= {"objects": self.objects, "misdeclare": self.misdeclare}
        return manifest_of(
            recipe,
            self.people,
            recipe.layout(self.people, self.classes(), protocol),
            group=source,
            source=source,
            full=full,
            deliver=self.deliver,
            options=told | more,
            seed=self.seed,
        )

    def command(self, program: str = "inga sim") -> str:
        """The command that runs this trial."""
        words = [program]
        for option in fields(self):
            value = getattr(self, option.name)
            if value == option.default and option.name not in ("order", "members", "messages", "seed"):
                continue
            if option.name == "delay":
                value = f"{1000 * value[0]:g}:{1000 * value[1]:g}"
            elif option.name == "misdeclare":
                value = "/".join(value)
            if option.name == "option":
                words += [f"--option {quote(f'{name}={each}')}" for name, each in value if each is not None]
            elif isinstance(value, bool):
                words.append(f"--{'' if value else 'no-'}{option.name}")
            else:
                said = SAID.get(option.name, option.name)
                words.append(f"--{said} {quote(str(value))}")
        return " ".join(words)
