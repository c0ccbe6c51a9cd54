"""The way of one message in docs/architecture.md, compared with what really runs."""

import asyncio
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import inga
from inga.stack.chain import has
from inga.stack.hooks import HOOKS
from inga.stack.layer import Layer
from inga.stack.stack import Stack

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
SOURCE = str(Path(inga.__file__).parent)
SECONDS = 10
TRIES = 4

UNEVENTFUL = {"wake", "tick", "held", "is_open", "settled", "outside"}
"""Hooks that answer a question or wait for their time: no part of the way, though they may be called on it."""

pytestmark = pytest.mark.network


def told() -> list[tuple[str, str]]:
    """Who runs what, as the page has it."""
    text = PAGE.read_text()
    start = text.index("## The way of one message")
    section = text[start : text.index("\n## ", start)]
    return re.findall(r"^\| (alice|bob) \| `([\w.]+)` \|", section, re.MULTILINE)


class Witness:
    """Writes down who runs what."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.hooks: set[str] = set()
        self._who = [""]  # whose function runs, for those that do not know

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(SOURCE):
            return
        if event == "return":
            if len(self._who) > 1:
                self._who.pop()
            return
        owner = frame.f_locals.get("self")
        who = next(_names(owner), self._who[-1])
        self._who.append(who)
        self.calls.append((who, frame.f_code.co_qualname))
        name = frame.f_code.co_name
        if isinstance(owner, Layer) and name in _HOOK_NAMES and has(owner, name):
            self.hooks.add(frame.f_code.co_qualname)


_HOOK_NAMES = {"up", "down", "control", *HOOKS} - UNEVENTFUL


def _names(owner: Any) -> Iterator[str]:
    stack = owner if isinstance(owner, Stack) else getattr(owner, "stack", None)
    if isinstance(stack, Stack):
        yield stack.view.names[stack.me]


async def play() -> Witness:
    """Alice sends one message to bob, who waits for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        via = f"udp://239.7.7.9:{probe.getsockname()[1]}?interface=lo"
    people = ["alice", "bob"]
    witness = Witness()
    async with (
        inga.join("hops", "alice", members=people, via=via) as alice,
        inga.join("hops", "bob", members=people, via=via) as bob,
        asyncio.timeout(SECONDS),
    ):
        await asyncio.gather(alice.ready(), bob.ready())
        words = aiter(bob)
        hearing = asyncio.ensure_future(anext(words))
        await asyncio.sleep(0)  # bob's iteration begins to wait
        before = sys.getprofile()
        sys.setprofile(witness)
        try:
            receipt = await alice.send(b"hello")
            await receipt.reached("confirmed")
            assert bytes((await hearing).data) == b"hello"
        finally:
            sys.setprofile(before)
    return witness


def differences(page: list[tuple[str, str]], witness: Witness) -> Iterator[str]:
    calls = iter(witness.calls)
    for who, function in page:
        # Functions without an owner, and carriers, know nobody.
        if not any(name == function and caller in (who, "") for caller, name in calls):
            yield f"{function} of {who} does not run there"
            break
    if missing := witness.hooks - {function for _, function in page}:
        yield f"hooks that run and are not on the page: {sorted(missing)}"


@pytest.mark.interpreted  # compiled functions run without frames that could be watched
def test_the_way_of_one_message_is_as_the_page_says() -> None:
    """A greeting or a heartbeat may come in between; a page that is wrong is so every time."""
    page = told()
    assert len(page) > 60
    found = [list(differences(page, asyncio.run(play())))]
    while found[-1] and len(found) < TRIES:
        found.append(list(differences(page, asyncio.run(play()))))
    assert not found[-1]
