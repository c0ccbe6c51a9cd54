"""What `inga bench views` measures works on a small group."""

import pytest

from inga.cli.main import main
from inga.lab.bench_views import Members, soak, starts

pytestmark = pytest.mark.network


def test_a_small_group_changes_in_every_way() -> None:
    with Members(3, detect=0.5) as group:
        group.all("join", late=False)
        times = [group.leave(2), group.join(2), group.use(1, "fifo"), group.kill(0)]
        ends = group.all("measure", seconds=0.1)
    assert all(time > 0 for time in times) and times[-1] > 0.3, "a kill is noticed by silence"
    assert [end["view"] for end in ends] == [5, 5]


def test_those_who_start_at_once_are_timed() -> None:
    row = starts(lambda text: None, 2, members=2)
    assert row.value > 300, "nobody founds a group before it was quiet for a while"


def test_nobody_is_excluded_under_load() -> None:
    row = soak(lambda text: None, 1.0, members=2)
    assert (row.value, row.baseline) == (0, 0)


def test_a_soak_takes_some_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "views", "--soak", "0"]) == 2
    assert "--soak is a number of seconds above 0" in capsys.readouterr().err
