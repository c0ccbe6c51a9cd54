"""Two processes of one name: the first one that was met is the member."""

import pytest

import inga

from .conftest import Place, Run
from .helpers import texts

DETECT = 0.5


def test_a_second_process_of_a_name_is_refused(run: Run, place: Place, group_name: str) -> None:
    async def main() -> None:
        where = {**place(members=2), "detect": 30.0}  # the first one is not to be taken for dead
        async with (
            inga.join(group_name, "alice", **where) as alice,
            inga.join(group_name, "bob", **where) as bob,
        ):
            await alice.ready()
            with pytest.raises(inga.Excluded, match="there is a member 'bob' already"):
                async with inga.join(group_name, "bob", **where) as other:
                    async for _ in other:
                        pass
            # When the other one ended it said goodbye, under the name of both.
            await bob.send(b"it is me")
            assert await texts(alice, 1) == ["it is me"]
            await alice.send(b"it is")
            assert await texts(bob, 1) == ["it is"]
            assert alice.view.number == bob.view.number == 1 and alice.here == ("alice", "bob")

    run(main())


def test_who_starts_again_at_once_is_let_in_when_the_first_is_gone(
    run: Run, place: Place, group_name: str
) -> None:
    """Nothing of the new process is taken for the old one's."""

    async def main() -> None:
        where = {**place(members=2), "detect": DETECT}
        async with inga.join(group_name, "alice", **where) as alice:
            first = inga.join(group_name, "bob", **where)
            bob = await first.__aenter__()
            await alice.ready()
            await bob.send(b"one")
            assert await texts(alice, 1) == ["one"]
            bob.carrier.close()  # as if it were killed
            async with inga.join(group_name, "bob", **where) as again:
                hasty = await again.send(b"who listens?")
                with pytest.raises(inga.UsageError, match="it may be lost"):
                    await hasty.reached("confirmed")
                assert alice.view.joined == again.view.joined == ("bob",)
                with pytest.raises(inga.UsageError, match="it may be lost"):
                    await hasty.reached("confirmed")
                receipt = await again.send(b"two")
                await receipt.reached("confirmed")
                assert await texts(alice, 1) == ["two"]
            await bob.close(linger=0)

    run(main())
