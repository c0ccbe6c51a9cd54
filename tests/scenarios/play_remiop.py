"""Plays scenarios of ReMIOP: members whose network, clock and chance are in the hands of the script.

    group 3 od=1                   new members; any option of ReMIOP, times in milliseconds: tnack, trepair (50 each)
    chance 2 0.1                   the share of every random time that member 2 draws from now on (0.5 at first)
    send 1 a                       a message of one packet leaves
    rx 2 a                         a copy arrives, the first or a repair; prints what it does
    rx 3 nack2                     the last request of member 2 arrives at 3; `state2`: its last report
    time 40                        the clock of all, in milliseconds; prints what they do by themselves, and when

Members are numbered from 1. `1:3` is the third packet of member 1. What members send reaches nobody but by `rx`.
"""

from typing import Any

from inga.corba.wire import miop

from ..corba.multicast.members import Fixed, Members, number
from .script import Script, numbers

TIMES = ("tnack", "trepair", "state_interval")
DONE = {
    "gap": "misses {} of member {}",
    "nack_suppressed": "leaves it to others to ask for {} of member {}",
    "repair_suppressed": "leaves it to others to repair {} of member {}",
    "gave_up": "gives up {} of member {}",
}


class ReMiopScript(Script):
    """Members that do what a scenario says. Messages have names."""

    def do_group(self, words: list[str]) -> list[str]:
        options: dict[str, Any] = {"tnack": 0.05, "trepair": 0.05}
        for word in words[1:]:
            name, value = word.split("=")
            options[name] = float(value) / 1000 if name in TIMES else int(value)
        self._net = Members(int(words[0]), **options)
        self._said: dict[str, bytes] = {}  # by name: a message, or the last request or report of a member
        self._packets: dict[tuple[int, int], str] = {}
        self._logged = 0
        self._rows = [0] * int(words[0])
        self._got = [0] * int(words[0])
        return []

    def do_chance(self, words: list[str]) -> list[str]:
        self._net.stacks[int(words[0]) - 1].rng = Fixed(float(words[1]))
        return []

    def do_send(self, words: list[str]) -> list[str]:
        member, name = int(words[0]) - 1, words[1]
        self._net.send(member, name.encode())
        packet = number(self._net.under_way[-1])
        self._packets[member, packet] = name
        return [f"{name} is {member + 1}:{packet}", *self._done(member)]

    def do_rx(self, words: list[str]) -> list[str]:
        member, *names = words
        lines = []
        for name in names:
            self._net.inject(int(member) - 1, self._said[name])
            lines += self._done(int(member) - 1)
        return lines

    def do_time(self, words: list[str]) -> list[str]:
        net, end = self._net, float(words[0]) / 1000
        lines = []
        while due := [
            (wake, member) for member, wake in enumerate(net.wake) if wake is not None and wake <= end
        ]:
            net.now, member = max(net.now, min(due)[0]), min(due)[1]
            net.tick(member)
            lines += [f"{1000 * net.now:g}: {line}" for line in self._done(member)]
        net.now = end
        return lines

    def _done(self, member: int) -> list[str]:
        """What a member has delivered, noticed and sent."""
        net, me = self._net, member + 1
        got, rows = net.got(member), net.traces[member].rows
        lines = [f"{me} delivers {body.decode()}" for body in got[self._got[member] :]]
        for row in rows[self._rows[member] :]:
            if row.step in DONE:
                packets = f"{row.n} packet{'s' * (row.n != 1)}"
                lines.append(f"{me} {DONE[row.step].format(packets, (row.peer or 0) + 1)}")
        self._got[member], self._rows[member] = len(got), len(rows)
        for data in dict.fromkeys(flight.data for flight in net.log[self._logged :]):
            lines += self._left(me, data)
        self._logged = len(net.log)
        net.under_way.clear()
        return lines

    def _left(self, me: int, data: bytes) -> list[str]:
        fragment = miop.decode(data)
        if not fragment.is_control:
            sender, base = miop.read_id(fragment.unique_id) or (0, 0)
            name = self._packets[self._net.senders.index(sender), base + fragment.number]
            repeated, self._said[name] = name in self._said, data
            return [f"{me} repairs {name}"] if repeated else []
        control = miop.decode_control(fragment)
        about = numbers(f"{self._net.senders.index(sender) + 1}:{at}" for sender, at in control.entries)
        is_request = control.kind == miop.NACK
        self._said[f"{'nack' if is_request else 'state'}{me}"] = data
        return [f"{me} {'asks for' if is_request else 'reports'} {about}"]
