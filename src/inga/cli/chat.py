"""Chat in a group from a terminal. Nobody sees an answer before the question.

  inga chat lunch alice
  inga chat lunch bob --via tcp --address 127.0.0.1:7002 --seeds 127.0.0.1:7001
  inga chat lunch cathy --members alice,bob,cathy

Members find each other by multicast, at the addresses of --seeds, or in a shared file (--seeds file:PATH); or all
give the same --members in the same order. /help lists the commands; Ctrl-D leaves. A
message marked with ‖ was written by somebody who had not seen some message shown above it. If standard input is not a
terminal, its lines are sent and received messages are printed as plain lines; --json prints all messages at the end.
"""

import argparse
import asyncio
import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from inga.cli.chat_line import Editor
from inga.cli.chat_screen import HistoryFile, Plain, Screen, Terminal, is_terminal, require_input
from inga.cli.chat_text import harmless, width_of
from inga.cli.chat_view import (
    COMMANDS,
    GLYPHS,
    ChatMessage,
    ChatView,
    Do,
    Say,
    Transcript,
    WrongLine,
    completions,
    understand,
)
from inga.layers.causal import Causal
from inga.model.delivery import Delivery
from inga.model.errors import UsageError
from inga.model.event import Paused
from inga.model.view import View
from inga.net.address import parse_via
from inga.net.group import Group
from inga.net.join import join
from inga.net.receipt import LiveReceipt
from inga.net.running import run as run_member
from inga.net.seeds import FILE
from inga.recipes import find, names

PORT = 7400
LINGER = 5.0
"""Seconds after the end of piped input in which members that lack something may get it."""

HISTORY_SHOWN = 20
TEXT_KEPT = 64 * 1024
"""Bytes kept of one message."""

HELD_SECONDS = 3.0
"""After which a person is told that messages wait for an earlier one."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("group", metavar="GROUP", help="the name of the group")
    add("name", metavar="NAME", help="your name")
    add("--members", metavar="A,B,C", help="all members, and no others; A=HOST:PORT,... for unicast and tcp")
    add("--seeds", metavar="S", help="unicast, tcp: look for others at HOST:PORT,... or in file:PATH")
    add("--address", metavar="HOST:PORT", help="unicast, tcp: your own address, with --seeds")
    add(
        "--via",
        metavar="V",
        help="udp://239.x.y.z:port, unicast or tcp (default: a multicast address made from the group's name)",
    )
    add("--order", default="causal", metavar="O", help=f"one of {', '.join(names())} (default causal)")
    add(
        "--interface",
        metavar="I",
        help="network interface for multicast, by name or address (default: as routed)",
    )
    add(
        "--secret",
        type=Path,
        metavar="FILE",
        help="the secret that all members share, made by `inga keys secret`",
    )
    add("--identity", type=Path, metavar="FILE", help="your certificate and key, made by `inga keys member`")
    add("--history", type=Path, metavar="FILE", help="keep the lines you type in FILE, for the next time")
    add(
        "--linger",
        type=float,
        default=LINGER,
        metavar="S",
        help=f"at the end of piped input, wait so many seconds for members that lack messages (default {LINGER:g})",
    )


def run(options: argparse.Namespace) -> int:
    members = parse_members(options.members) if options.members is not None else None
    if not options.name or harmless(options.name) != options.name or any(map(str.isspace, options.name)):
        raise UsageError(f"{options.name!r} is no name; names have no spaces")
    if members is not None and options.name not in members:
        raise UsageError(
            f"{options.name!r} is not one of --members: name it there, the same list for everybody, or leave out "
            "--members, so that people find each other and may come later"
        )
    via = choose_via(options.via, options.group, members)
    if options.interface and not via.startswith("udp:"):
        raise UsageError(f"--interface is for multicast, not for {via}")
    if options.linger < 0:
        raise UsageError(f"--linger is a number of seconds from 0 on, not {options.linger:g}")
    find(options.order)
    require_input()
    try:
        run_member(_chat(options, members, via))
    except BrokenPipeError:  # nobody reads what we print
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def parse_members(text: str) -> list[str] | dict[str, str]:
    """`a,b,c`, or `a=host:port,b=host:port`."""
    entries = [entry.strip() for entry in text.split(",")]
    people = [entry.partition("=")[0] for entry in entries]
    for name in people:
        if not name or harmless(name) != name or any(map(str.isspace, name)):
            raise UsageError(f"--members: {name!r} is no name; names are separated by commas, without spaces")
    if len(set(people)) < len(people):
        raise UsageError(f"--members: two members of one name in {text!r}; give each a name of its own")
    addressed = [entry for entry in entries if "=" in entry]
    if not addressed:
        return people
    if len(addressed) < len(entries):
        raise UsageError("--members: give addresses to all (name=host:port), or to none")
    return {entry.partition("=")[0]: entry.partition("=")[2] for entry in entries}


def parse_seeds(text: str | None) -> str | list[str] | None:
    """`file:PATH`, or `host:port,host:port`."""
    if text is None or text.startswith(FILE):
        return text
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def choose_via(via: str | None, group: str, members: list[str] | dict[str, str] | None) -> str:
    """As asked for; else unicast where members have addresses, and multicast where they have none."""
    if via is None:
        return "unicast" if isinstance(members, dict) else f"udp://{group_address(group)}:{PORT}"
    multicast = parse_via(via).kind == "udp"
    if multicast and isinstance(members, dict):
        raise UsageError(
            f"addresses of members go with --via unicast or --via tcp, not with {via}: leave the addresses out"
        )
    if not multicast and isinstance(members, list):
        raise UsageError(f"--via {via} needs addresses: --members {members[0]}=HOST:PORT,...")
    return via


def group_address(group: str) -> str:
    """A multicast address of its own for each name, so that different chats seldom meet."""
    if not group:
        raise UsageError("a group needs a name: inga chat lunch alice")
    high, low = hashlib.sha256(group.encode(errors="replace")).digest()[:2]
    return f"239.7.{high}.{low}"


async def _chat(options: argparse.Namespace, members: list[str] | dict[str, str] | None, via: str) -> None:
    history = _open_history(options.history)
    async with join(
        options.group,
        options.name,
        members=members,
        via=via,
        seeds=parse_seeds(options.seeds),
        address=options.address,
        order=options.order,
        interface=options.interface,
        secret=options.secret,
        identity=options.identity,
        echo=True,
    ) as group:
        screen, view = _open_screen(options, group, history)
        chat = Chat(group, screen, view, quiet=options.quiet, linger=options.linger)
        with screen:
            chat.greet(via)
            await chat.run(history)
    if options.json:
        content: dict[str, Any] = {"group": group.name, "name": group.me, "members": chat.people}
        content |= {"order": group.recipe.name, "via": via, "messages": chat.transcript.to_json()}
        print(json.dumps(content))  # all in ASCII: what others wrote may reach a terminal


def _open_history(path: Path | None) -> HistoryFile | None:
    try:
        return None if path is None else HistoryFile(path)
    except OSError as error:
        raise UsageError(f"--history {path}: {error.strerror}") from None


def _open_screen(
    options: argparse.Namespace, group: Group, history: HistoryFile | None
) -> tuple[Screen, ChatView]:
    people = group.view.names
    if is_terminal() and not options.json:
        view = ChatView(people, colour="NO_COLOR" not in os.environ, ascii_only=not _has_glyphs(sys.stdout))

        def complete(before: str) -> list[str]:
            return completions(before, [name for name in group.view.names if name != group.me])

        editor = Editor(history.lines if history else (), complete)
        return Terminal(view.prompt(group.me), width_of(group.me) + 2, editor), view
    output = sys.stderr if options.json else sys.stdout
    if isinstance(output, TextIOWrapper):
        output.reconfigure(errors="backslashreplace")
    return Plain(output), ChatView(people, ascii_only=not _has_glyphs(output))


def _has_glyphs(output: TextIO) -> bool:
    try:
        "".join(GLYPHS).encode(output.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


class Chat:
    """One member at its terminal."""

    def __init__(self, group: Group, screen: Screen, view: ChatView, *, quiet: bool, linger: float) -> None:
        self.transcript = Transcript()
        self._group = group
        self._screen = screen
        self._view = view
        self._quiet = quiet
        self._linger = linger
        self.people = list(group.view.names)  # also those who leave
        self._seen = group.view  # in which what we read was said
        self._left: list[str] = []
        self._unannounced: list[str] = []  # have left, but something of theirs may be unread
        self._addressed: set[str] = set()  # whom we have told something
        self._receipt: LiveReceipt | None = None  # of what we said last

    @property
    def _others(self) -> list[str]:
        return [name for name in self.people if name != self._group.me]

    def greet(self, via: str) -> None:
        """Say where we are, and who comes and goes from now on."""
        others = f"with {', '.join(self._others)}" if self._others else "and nobody else is here yet"
        self._announce(f"{self._group.name}: you are {self._group.me}, {others}")
        self._announce(f"by {via}, order {self._group.recipe.name}; /help for help")
        self._group.on_join(self._on_join)
        self._group.on_leave(self._on_leave)

    async def run(self, history: HistoryFile | None = None) -> None:
        """Until the input ends, or somebody says so."""
        log = logging.getLogger("inga")
        handler = _Handler(self._note)
        log.addHandler(handler)
        tasks = [asyncio.create_task(work) for work in (self._talk(history), self._listen(), self._watch())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            log.removeHandler(handler)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # What we do

    async def _talk(self, history: HistoryFile | None) -> None:
        while (line := await self._screen.line()) is not None:
            if history is not None and line.strip():
                self._keep(history, line)
            meant = understand(line, self._group.me, self.people)
            if meant == Do("quit"):
                break
            if isinstance(meant, Say):
                await self._say(meant)
            elif isinstance(meant, WrongLine):
                self._note(meant.why)
            elif meant is not None:
                self._do(meant)
        if isinstance(self._screen, Plain):
            await self._wait_for_others()
        absent = [name for name in self._absent() if name in self._addressed]
        if absent:
            self._note(f"{_all(absent)} never came, and will miss what you said")

    async def _say(self, say: Say) -> None:
        await self._group.writable()
        gone = [name for name in say.to if name in self._left]
        to = [name for name in say.to if name not in gone]
        if to or not say.to:
            # Shown only when it is on its way, so that the screen has it in its place in the order.
            self._receipt = self._group.post(say.text.encode(errors="replace"), to=to or None)
            message = self.transcript.add_own(self._group.me, say.text, to)
            self._screen.show(self._view.message(message, self._screen.columns))
            self._addressed.update(to or self._others)
        if gone:
            self._note(f"{_all(gone)} left and will not see it")

    def _do(self, command: Do) -> None:
        if command.name == "help":
            self._note(*(f"{name:<18}{what}" for name, what in COMMANDS.items()))
        elif command.name == "who":
            self._note(self._who())
        elif command.name == "why":
            self._why(command.number)
        else:
            count = HISTORY_SHOWN if command.number is None else command.number
            self._show_all(self.transcript.last(count), "nothing was said yet")

    def _who(self) -> str:
        here = [name if name != self._group.me else f"{name} (you)" for name in self._group.here]
        groups = (("here", here), ("not yet", self._absent()), ("left", self._left))
        return "; ".join([f"{title}: {', '.join(people)}" for title, people in groups if people])

    def _why(self, number: int | None) -> None:
        message = self.transcript.find(number)
        if message is None:
            known = "marked as concurrent" if number is None else f"with the number {number}"
            self._note(f"there is no message {known}")
            return
        others = self.transcript.concurrent_with(message)
        if others:
            self._note(f"{message.number} was written without knowing these, and these without knowing it:")
            self._show_all(others, "")
        elif message.concurrent:
            self._note(f"{message.number} is concurrent with something that is not for you, or long ago")
        elif message.deps is None and message.seq:
            self._note(f"order {self._group.recipe.name} does not tell what is concurrent")
        else:
            self._note(f"{message.number} is not concurrent with anything")

    # What happens

    async def _listen(self) -> None:
        async for item in self._group.items():
            if isinstance(item, Delivery):
                self._take(item)
            elif isinstance(item, View):
                self._seen = item
            elif isinstance(item, Paused):
                self._note(f"paused until enough are heard again of {', '.join(item.missing)}")
            else:
                self._note("going on")
            if not self._group.stack.queued:
                self._announce_left()

    def _take(self, delivery: Delivery) -> None:
        if delivery.sender == self._group.me:  # the echo, which knows the stamp of what we have shown
            self.transcript.stamped(delivery)
            return
        text = bytes(delivery.data[:TEXT_KEPT]).decode(errors="replace")
        if len(delivery.data) > TEXT_KEPT:
            text += f"\n[{len(delivery.data) - TEXT_KEPT:,} bytes more]"
        message = self.transcript.add(
            delivery.sender, text, self._named(delivery.batch.packet.dst), concurrent=delivery.concurrent
        )
        message.stamp(delivery)
        self._screen.show(self._view.message(message, self._screen.columns))

    def _named(self, dst: int | None) -> list[str]:
        """Members of a bit set; nobody where a message is for everybody."""
        return [] if dst is None else [n for i, n in enumerate(self._seen.names) if dst >> i & 1]

    def _on_join(self, name: str) -> None:
        if name not in self.people:
            self.people.append(name)
        if name in self._left:
            self._left.remove(name)
        self._announce(f"{name} is here")

    def _on_leave(self, name: str) -> None:
        """The last words of a member may still be unread: they are shown first."""
        self._left.append(name)
        self._unannounced.append(name)
        if not self._group.stack.queued:
            self._announce_left()

    def _announce_left(self) -> None:
        while self._unannounced:
            self._announce(f"{self._unannounced.pop(0)} has left")

    async def _watch(self) -> None:
        """Tell when messages wait long for an earlier one: whoever sent that may be gone."""
        told: set[tuple[int, int]] = set()
        before: set[tuple[int, int]] = set()
        while True:
            await asyncio.sleep(HELD_SECONDS)
            causal = self._group.stack.layer("causal")
            missing = (
                {(k, seq) for k, seq, _ in causal.inbox.missing()} if isinstance(causal, Causal) else set()
            )
            for member, seq in sorted((missing & before) - told):
                name = self._group.view.names[member]
                hint = "; if you left and came back, all have to start anew"
                if name not in self._group.here:
                    hint = f", and {name} is not here"
                self._note(f"messages are held back: something {name} said before has not come{hint}")
                told.add((member, seq))
            before = missing

    # Helpers

    async def _wait_for_others(self) -> None:
        """Let everybody get what was said, also those who come within the time."""
        if self._receipt is not None and "confirmed" in self._group.stack.chain.levels:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger):
                    await self._receipt.reached("confirmed")

    def _absent(self) -> list[str]:
        here = self._group.here
        return [name for name in self._others if name not in here and name not in self._left]

    def _show_all(self, messages: list[ChatMessage], otherwise: str) -> None:
        rows = [row for message in messages for row in self._view.message(message, self._screen.columns)]
        self._screen.show(rows or [self._view.note(otherwise)])

    def _note(self, *lines: str) -> None:
        self._screen.show([self._view.note(*lines)])

    def _announce(self, text: str) -> None:
        if not self._quiet:
            self._note(text)

    def _keep(self, history: HistoryFile, line: str) -> None:
        try:
            history.add(line)
        except OSError as error:
            self._note(f"the history is not kept: {error}")


class _Handler(logging.Handler):
    """Warnings of the library, without garbling the line being typed."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        self._note(record.getMessage())


def _all(people: list[str]) -> str:
    return " and ".join(people)
