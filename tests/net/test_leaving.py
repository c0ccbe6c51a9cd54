"""What a member says before it leaves reaches those who are there."""

import asyncio

import pytest

import inga

from .helpers import Place, Run, texts

pytestmark = pytest.mark.network


def test_words_before_anybody_was_heard_are_not_lost(run: Run, place: Place) -> None:
    """The second and third wait for company of the first, which nobody has acknowledged yet."""

    async def main() -> None:
        where = place(members=2)
        async with inga.join("leaving", "bob", **where) as bob:
            async with inga.join("leaving", "alice", **where) as alice:
                for word in (b"one", b"two", b"three"):
                    await alice.send(word)
                    await asyncio.sleep(0)
            assert await texts(bob, 3) == ["one", "two", "three"]

    run(main())
