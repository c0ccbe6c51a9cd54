"""One simulated trial, complete: everything that `inga sim` can be told, and nothing else.

So whatever a hunt finds can be said again as one command.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from time import process_time
from typing import Any

from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.steps import Trace
from inga.recipes import Options, find
from inga.session.newcomer import Newcomer
from inga.sim.recording import Recording
from inga.sim.simulator import DELAY, Sim
from inga.trace.manifest import Manifest
from inga.trace.writer import TraceWriter
from inga.trial.people import member_names
from inga.trial.result import Result
from inga.trial.workload import Workload

FLOW_WINDOW = 1 << 20
DATAGRAM = 60 * 1024

QUIET, QUIET_DELAYS = 1.0, 20.0
"""Seconds, and delays of the slowest link, after which a simulated group has nothing more to say."""


@dataclass(frozen=True, slots=True)
class Case:
    """A trial by numbers. Times in seconds."""

    order: str = "causal"
    members: int = 4
    messages: int = 100
    size: int = 64
    rate: float = 100.0
    subset: int | None = None
    loss: float = 0.0
    dup: float = 0.0
    reorder: float = 0.0
    delay: tuple[float, float] = (DELAY.delay_min, DELAY.delay_max)
    window: int = FLOW_WINDOW
    datagram: int = DATAGRAM
    seed: int = 0
    echo: bool = False
    coarse: bool = False
    join: int = 0  # members that come later
    matrix: bool = False
    deliver: str | None = None  # level; None = the order's own
    option: tuple[tuple[str, Any], ...] = ()  # of the order's own

    def __post_init__(self) -> None:
        if self.datagram < 256:
            raise UsageError("--datagram is at least 256 bytes")
        if self.window < 1:
            raise UsageError("--window is at least 1 byte")
        if self.join < 0:
            raise UsageError("--join is the number of members that come later")

    def sim(self, *, record: bool = False, traces: list[TraceWriter] | None = None) -> Sim:
        """The group, loaded with its workload and ready to run."""
        find(self.order).check_window(None if self.window == FLOW_WINDOW else self.window)
        faults = Faults(self.loss, self.dup, self.reorder, *self.delay)
        workload = Workload(self.members, self.messages, self.size, self.rate, self.subset)
        options = Options(
            echo=self.echo,
            coarse=self.coarse,
            matrix=self.matrix,
            deliver=self.deliver,
            protocol=dict(self.option),
            flow={"window": self.window},
        )
        tracing: list[Trace] | None = None if traces is None else list(traces)
        sim = Sim(
            *member_names(self.members),
            order=self.order,
            seed=self.seed,
            faults=faults,
            options=options,
            datagram_max=self.datagram,
            record=record and not self.join,
            traces=tracing,
        )
        sim.load(workload)
        for name in member_names(self.members + self.join)[self.members :]:
            sim.join(name, sim.rng.random() * self.messages / self.rate, workload)
        return sim

    def run(self, trace: Path | None = None, *, full: bool = True) -> Result:
        """Run it to the end, and judge it."""
        started = process_time()
        if trace is None:
            sim = self.sim()
            sim.run()
        else:
            sim = self._traced(trace, full)
        return Result.of(
            sim.finish(),
            sim.order,
            sim.guarantees,
            seed=self.seed,
            pdus=sim.pdus,
            bytes=sim.bytes,
            seconds=sim.now,
            cpu_seconds=process_time() - started,
            trace=None if trace is None else str(trace),
            recovery=sim.recovery if find(self.order).wire == "miop" else {},
        )

    def command(self, program: str = "inga sim") -> str:
        """How to say this on the command line."""
        words = [program]
        for option in fields(self):
            value = getattr(self, option.name)
            if value == option.default and option.name not in ("order", "members", "messages", "seed"):
                continue
            if option.name == "delay":
                value = f"{1000 * value[0]:g}:{1000 * value[1]:g}"
            if option.name == "option":
                words += [f"--option {quote(f'{name}={each}')}" for name, each in value if each is not None]
            elif value is True:
                words.append(f"--{option.name}")
            elif value is not None:
                words.append(f"--{option.name} {quote(str(value))}")
        return " ".join(words)

    def told(self) -> dict[str, Any]:
        """What a trace says about how the run was made."""
        told = {o.name: getattr(self, o.name) for o in fields(self) if o.name not in ("seed", "option")}
        return {**told, "deliver": find(self.order).level_of(self.deliver), "protocol": dict(self.option)}

    def _traced(self, directory: Path, full: bool) -> Sim:
        recipe = find(self.order)
        layout = recipe.layout(member_names(self.members), None, dict(self.option))
        manifest = Manifest(
            group="sim",
            processes=list(member_names(self.members)),
            source="sim",
            order=recipe.name,
            guarantees=recipe.claims(full=full, deliver=self.deliver),
            receipt=recipe.receipt,
            options={**self.told(), "quiet_seconds": QUIET + QUIET_DELAYS * self.delay[1]},
            seed=self.seed,
            clock="virtual",
            conflicts=None if layout is None else layout.conflicts,
        )
        recording = Recording(directory, manifest, full=full)
        sim = self.sim(traces=recording.writers)

        def late(index: int, name: str, n: int, newcomer: Newcomer) -> TraceWriter:
            writer = recording.add(index, name, n)
            if newcomer.cuts:
                writer.cut(min(newcomer.sizes) - 1, newcomer.cuts)
            return writer

        sim.trace_newcomers(late)
        recording.run(sim)
        return sim
