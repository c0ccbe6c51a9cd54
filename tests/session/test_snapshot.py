"""What is known about a group at one moment: what a driver adds, and what is said where there is none to add anything."""

from inga.model.stats import Traffic
from inga.session.snapshot import snapshot

from .town import Town


def test_what_only_a_driver_knows_is_told_as_it_says() -> None:
    alice = Town(2).member("alice")
    alice.reject("malformed")
    traffic = Traffic(datagrams_out=3)
    told = snapshot(
        alice, group="lunch", now=1.0, traffic=traffic, state="closed", rejected={"unconnected": 2}
    )
    assert (told.group, told.me, told.traffic) == ("lunch", "alice", traffic)
    assert (told.state, told.rejected) == ("closed", {"unconnected": 2})


def test_without_a_driver_it_is_what_the_stack_knows() -> None:
    alice = Town(2).member("alice")
    alice.reject("malformed")
    told = snapshot(alice, group="lunch", now=1.0)
    assert (told.state, told.rejected, told.traffic) == ("open", {"malformed": 1}, Traffic())
