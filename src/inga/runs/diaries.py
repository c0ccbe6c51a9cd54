"""Passes the diaries of a run to the judges: the views of members, the messages they sent and took, the requests they made.
`survivor` describes the format. The processes may have been killed or excluded, or have rejoined as new members."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from inga.model.view import Member, View
from inga.recipes import find
from inga.session.description import view_told
from inga.trial.calls import CallJudge, CallResult, ClientRequest
from inga.trial.oracle import Oracle
from inga.trial.roll import Roll
from inga.trial.trial import Trial
from inga.wire.told import Told


def judge_talk(trial: Trial, diaries: Sequence[list[Any]], dead: set[int]) -> Oracle:
    """Pass all diaries to the oracle, in some order in which no message is taken before it was sent. `dead`: processes that
    were killed or excluded."""
    recipe = find(trial.order)
    keys = dict(trial.option).get("keys") or 1
    oracle = Oracle(0)

    def key_of(message: int) -> tuple[int, int]:
        return oracle.epoch_of(message), message % keys

    roll = Roll(oracle, recipe, trial.deliver, key_of, objects=bool(trial.objects))
    sent: set[int] = set()
    readers = [_Reader(trial, roll, oracle, sent, diary) for diary in diaries]
    while sum(reader.advance() for reader in readers):
        pass
    for index, reader in enumerate(readers):
        reader.finish(dead=index in dead)
    oracle.finish()
    return oracle


class _Reader:
    """Reads the diary of one process."""

    def __init__(self, trial: Trial, roll: Roll, oracle: Oracle, sent: set[int], diary: list[Any]) -> None:
        self._trial = trial
        self._roll = roll
        self._oracle = oracle
        self._sent = sent  # messages sent by any process so far
        self._diary = diary
        self._at = 0
        # The application reads all views in order, but the process may have sent messages in a view before that.
        self._views = [each for entry in diary if isinstance(entry, dict) and (each := _seen(entry, "view"))]
        self._entered: View | None = None
        self._numbers: dict[str, int] = {}  # the oracle's number for us, by view
        self._sends_in: View | None = None
        self._reads = 0  # our number in the view that the application has reached
        self._has_state = False  # whether it took the state that the others have at the next view

    def advance(self) -> bool:
        """Pass on entries until one has to wait. Return whether any was passed on."""
        began = self._at
        while self._at < len(self._diary) and self._tell(self._diary[self._at]):
            self._at += 1
        return self._at > began

    def finish(self, *, dead: bool) -> None:
        for entry in self._diary[self._at :]:
            if isinstance(entry, int):
                self._oracle.blame("integrity", f"message {-entry} was taken, which nobody sent")
        numbers = list(dict.fromkeys(self._numbers.values()))
        for number in numbers if dead else numbers[:-1]:
            self._oracle.crash(number)  # a process that rejoined is a new member; the old one has failed

    def _tell(self, entry: Any) -> bool:
        """Pass an entry to the oracle. Return False if it has to wait: a message that nobody has sent so far."""
        if isinstance(entry, int):
            if -entry not in self._sent:
                return False
            self._oracle.take(self._reads, -entry)
        elif isinstance(entry, list):
            self._send(*entry)
        elif "state" in entry:
            self._has_state = True
        elif seen := _seen(entry, "view"):
            self._reads = self._enter(seen)
            if self._has_state:
                self._oracle.skip(self._reads, self._roll.epoch_of(seen[0]))
                self._has_state = False
        elif seen := _seen(entry, "in"):
            self._enter(seen)
            self._sends_in = seen[0]
        return True

    def _enter(self, seen: tuple[View, Member]) -> int:
        """Enter all views up to this one; return our number in it. Views that the application never saw, since it took a state
        instead, are left out."""
        while seen[0].text not in self._numbers:
            is_next = bool(self._views) and self._views[0][0].number <= seen[0].number
            view, me = self._views.pop(0) if is_next else seen
            if view.text not in self._numbers:
                self._numbers[view.text] = self._roll.enter(me, self._entered, view)
                self._entered = view
        return self._numbers[seen[0].text]

    def _send(self, message: int, to: list[str] | None) -> None:
        view = self._sends_in
        assert view is not None
        site = self._numbers[view.text]
        members = [each for each in view.members if to is None or each.name in to]
        audience = {self._roll.number_of(each) for each in members} - {site}
        if find(view.recipe).echoes(self._trial.echo):
            audience.add(site)
        bits = sum(1 << each for each in audience)
        self._oracle.send(site, message, bits, epoch=self._roll.epoch_of(view), whole=to is None)
        self._sent.add(message)


@dataclass(slots=True)
class CallTally:
    """Counts requests by their outcomes."""

    judge: CallJudge
    asked: int = 0
    committed: int = 0
    aborted: int = 0

    def count(self, request: ClientRequest, outcome: str | None, *, lossy: bool) -> None:
        self.asked += 1
        self.committed += outcome == "committed"
        self.aborted += outcome == "aborted"
        if (
            outcome == "committed" and not lossy and request.kind != "oneway"
        ):  # the client of a one-way call learns no outcome
            self.judge.told(request.adds)
        elif outcome != "aborted":
            self.judge.doubted(request.adds)

    def result(self, **measured: Any) -> CallResult:
        doubtful = self.asked - self.committed - self.aborted
        counts = {
            "sent": self.asked,
            "committed": self.committed,
            "aborted": self.aborted,
            "doubtful": doubtful,
        }
        return self.judge.result(expected=0, **counts, **measured)


def judge_calls(
    trial: Trial,
    configs: Sequence[dict[str, Any]],
    diaries: Sequence[list[Any]],
    states: Mapping[str, Mapping[str, Any]],
    *,
    lossy: bool,
) -> CallTally:
    """Judge the outcomes that clients got by the final states of the members that are present at the end. `lossy`: the network
    was cut and all parts went on, of which only the largest keeps its state."""
    tally = CallTally(CallJudge(trial.load))
    for config, diary in zip(configs, diaries, strict=False):
        load, me = Trial(**config["trial"]).load, config["me"]
        plan = [each for _, each in load.plan(Random(f"{trial.seed}/{me}"), me)]
        outcomes: dict[int, str | None] = dict(diary)  # the last entry of a request has its outcome
        for number, outcome in outcomes.items():
            tally.count(plan[number], outcome, lossy=lossy)
    for name, ended in states.items():
        tally.judge.saw(name, (), ended)
    tally.judge.finish()
    return tally


def _seen(entry: dict[str, Any], kind: str) -> tuple[View, Member] | None:
    """The view that an entry of a diary describes, and our member in it; None if it is not an entry of that kind."""
    if kind not in entry:
        return None
    said = entry[kind]
    return view_told(Told(said)), Member(*said["me"])


def read_diary(path: Path) -> list[Any]:
    """The entries of a diary. An incomplete last line is ignored: nothing that it records has left the process."""
    whole, _, _ = path.read_bytes().rpartition(b"\n") if path.exists() else (b"", b"", b"")
    return [json.loads(line) for line in whole.splitlines()]
