"""What the worked examples of CO say that no schedule shows; the others are scenarios, in tests/scenarios/co."""

import pytest

from inga.lab.co.printed import PrintedCo
from inga.layers.co.machine import CoMachine
from inga.layers.co.parts import CoMessage, Reached
from inga.layers.shape import Faults

from .co_world import Setting, World

# V5


def test_two_ways_to_know_are_not_mixed() -> None:
    """Both minima of row 1 are 1; the entry-wise maximum would acknowledge."""
    confirmed, reported = (1, 1, 2), (2, 2, 1)
    co = PrintedCo(0, 3)
    message = CoMessage(0, 1, None, (), 0)
    co.log.append(message)
    co.held[0] = co.held_in_all = 1
    for reporter in range(3):
        co.known_confirmed.rise(0, reporter, confirmed[reporter])
        co.reported_confirmed.rise(0, reporter, reported[reporter])
    co.stages()
    assert not co.events
    assert message.seq < min(map(max, confirmed, reported))
    # One more word of the third, and everybody has said so.
    co.reported_confirmed.rise(0, 2, 2)
    co.stages()
    assert co.events == [Reached("acknowledged", [message])]


# V6


class Mute(CoMachine):
    """Sends no confirmations."""

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        self.dirty = False


class AtOnce(World):
    """Every member fills its window before anything arrives."""

    def plan(self) -> None:
        for member in range(self.setting.n):
            for _ in range(self.setting.window):
                self.at(0.0, self.send, member)


@pytest.mark.parametrize("window", [1, 2, 4, 8])
@pytest.mark.parametrize("self_knowledge", ["printed", "eager"])
def test_full_windows_need_confirmations(window: int, self_knowledge: str) -> None:
    """Every entity fills its window before it hears anybody. Data alone gets nobody any further."""
    setting = Setting.of(
        1,
        n=3,
        window=window,
        quota=64,
        messages=(window,) * 3,
        self_knowledge=self_knowledge,
        faults=Faults(delay_min=0.001, delay_max=0.001),
    )
    mute = AtOnce(setting, Mute)
    with pytest.raises(AssertionError, match="10: not quiet"):
        mute.run()
    assert not any(mute.confirmed) and not any(mute.acknowledged)
    talking = AtOnce(setting, CoMachine)
    talking.run()
    assert [len(each) for each in talking.acknowledged] == [window * 3] * 3
