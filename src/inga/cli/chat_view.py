"""What a chat remembers and shows: messages with numbers, who is private with whom, what is concurrent.

3   bob> yes              number, sender, text
4 ‖ cathy> pizza?         concurrent with something above; `/why 4` says with what
5   bob → alice> psst     private
* cathy is here           everything that is no message
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from inga.causality.clock import relation
from inga.cli.chat_text import harmless, shorten, width_of, wrap
from inga.model.delivery import Delivery
from inga.model.stamp import Deps
from inga.model.text import printable

MESSAGES_MAX = 2000
"""Messages remembered for `/history` and `/why`."""

TEXT_MAX, TEXT_LINES_MAX = 2000, 20
"""Characters and lines shown of one message."""

COMMANDS = {
    "/who": "who is here",
    "/to NAME TEXT": "tell one, or several (NAME,NAME); also @NAME TEXT",
    "/why [NUMBER]": "what a message marked as concurrent is concurrent with",
    "/history [COUNT]": "what was said so far",
    "/help": "this",
    "/quit": "leave, as Ctrl-D does",
}


@dataclass(slots=True)
class ChatMessage:
    """One message as it was shown here. What `src`, `seq` and `deps` are, in its view: `inga.relation`."""

    number: int
    sender: str
    text: str
    to: tuple[str, ...] = ()  # private to these; nobody means everybody
    concurrent: bool = False
    view: int = 0
    src: int = 0
    seq: int = 0
    deps: Deps | None = None  # unknown where the order has none, and until our own message is stamped

    def stamp(self, delivery: Delivery) -> None:
        """Remember what its place in the order is known by."""
        self.view, self.src, self.seq, self.deps = delivery.view, delivery.src, delivery.seq, delivery.deps


class Transcript:
    """The messages of this session, in the order in which they were shown."""

    def __init__(self) -> None:
        self.messages: deque[ChatMessage] = deque(maxlen=MESSAGES_MAX)
        self._count = 0
        self._unstamped: deque[ChatMessage] = deque()  # our own, whose echo has not come

    def add(self, sender: str, text: str, to: Iterable[str] = (), *, concurrent: bool = False) -> ChatMessage:
        self._count += 1
        message = ChatMessage(self._count, sender, text, tuple(to), concurrent)
        self.messages.append(message)
        return message

    def add_own(self, sender: str, text: str, to: Iterable[str] = ()) -> ChatMessage:
        """A message of ours: shown when it is sent, stamped a moment later."""
        message = self.add(sender, text, to)
        self._unstamped.append(message)
        return message

    def stamped(self, echo: Delivery) -> None:
        """The echo of our oldest unstamped message."""
        if self._unstamped:
            self._unstamped.popleft().stamp(echo)

    def find(self, number: int | None = None) -> ChatMessage | None:
        """The message of that number; without one, the last that was marked as concurrent."""
        for message in reversed(self.messages):
            if message.concurrent if number is None else message.number == number:
                return message
        return None

    def last(self, count: int) -> list[ChatMessage]:
        return list(islice(self.messages, max(0, len(self.messages) - count), None))

    def concurrent_with(self, message: ChatMessage) -> list[ChatMessage]:
        """Those of which neither was written in sight of the other."""
        if message.deps is None:
            return []
        known = [other for other in self.messages if other.deps is not None]
        return [other for other in known if relation(message, other) == "||"]

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {
                "number": message.number,
                "sender": message.sender,
                "to": list(message.to) or None,
                "text": message.text,
                "concurrent": message.concurrent,
                "concurrent_with": [other.number for other in self.concurrent_with(message)],
            }
            for message in self.messages
        ]


# Words of a line


@dataclass(frozen=True, slots=True)
class Say:
    """Something to send: to everybody, or to some."""

    text: str
    to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Do:
    """A command, and a number after it if there is one."""

    name: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class WrongLine:
    """A line that cannot be meant."""

    why: str


def understand(line: str, me: str, members: Sequence[str]) -> Say | Do | WrongLine | None:
    """What a line asks for; an empty one for nothing."""
    text, line = line.rstrip(), line.strip()
    if not line:
        return None
    if line.startswith("//"):
        return Say(line[1:])
    if line.startswith("@") and not line[1:2].isspace() and len(line) > 1:
        return _private(line[1:], me, members)
    if not line.startswith("/"):
        return Say(text)
    name, _, rest = line[1:].partition(" ")
    rest = rest.strip()
    if name == "to":
        return _private(rest, me, members)
    if name not in {command.split()[0][1:] for command in COMMANDS}:
        return WrongLine(f"no command /{name}; /help lists them, //{name} says it")
    if not rest:
        return Do(name)
    if name not in ("why", "history") or not rest.isdecimal():
        return WrongLine(f"/{name} {rest}: see /help")
    return Do(name, int(rest[:9]))


def completions(before: str, members: Iterable[str]) -> list[str]:
    """Words a line could go on with: commands, and names where a name is due."""
    word = before.rpartition(" ")[2]
    if before == word and word.startswith("/"):
        words = [command.split()[0] for command in COMMANDS]
    elif before == word and word.startswith("@"):
        words = [f"@{name}" for name in members]
    elif before == f"/to {word}":
        words = list(members)
    else:
        return []
    return [candidate for candidate in words if candidate.startswith(word)]


def _private(rest: str, me: str, members: Sequence[str]) -> Say | WrongLine:
    names, _, text = rest.partition(" ")
    to = tuple(dict.fromkeys(name for name in names.split(",") if name))
    for name in to:
        if name not in members:
            return WrongLine(f"no member {name!r}; there are {', '.join(members)}")
    if me in to:
        return WrongLine("that is you")
    if not to or not text.strip():
        return WrongLine("/to NAME TEXT, or @NAME TEXT")
    return Say(text.strip(), to)


# How it looks

PALETTE = (36, 33, 35, 32, 34, 31)
"""Colours of members, in the order of the group; their numbers in ANSI terminals."""


GLYPHS, ASCII = ("‖", "→", "│", "…"), ("||", "->", "|", "...")
"""Concurrent, to, goes on, left out; and the same for terminals that know only ASCII."""


class ChatView:
    """Turns messages into rows: wrapped and coloured for a terminal, plain elsewhere."""

    def __init__(self, members: Sequence[str], *, colour: bool = False, ascii_only: bool = False) -> None:
        self._members = list(members)
        self._colour = colour
        self._mark, self._arrow, self._bar, self._more = ASCII if ascii_only else GLYPHS

    def message(self, message: ChatMessage, columns: int | None = None) -> list[str]:
        """One message. Whatever its text, no row but the first looks like the beginning of one."""
        mark = self._mark if message.concurrent else " " * len(self._mark)
        who = printable(message.sender)
        if message.to:
            who += f" {self._arrow} {printable(', '.join(message.to))}"
        head = f"{message.number:>3} {mark} {who}> "
        indent = " " * (5 + len(self._mark)) + f"{self._bar} "
        text, omitted = shorten(harmless(message.text), TEXT_MAX, TEXT_LINES_MAX)
        if columns is None:
            rows = text.split("\n")
        else:
            rows = _wrapped(text, columns - 1, width_of(head), width_of(indent))
        if omitted:
            rows.append(f"{self._more} {omitted:,} more characters")
        first = f"{self._head(message, mark, who)}{rows[0]}"
        return [first, *(self._paint(indent, 2) + row for row in rows[1:])]

    def note(self, *lines: str) -> str:
        """Something that is no message."""
        return self._paint("* " + "\n  ".join(map(printable, lines)), 2)

    def prompt(self, name: str) -> str:
        return self._paint(f"{name}> ", 1)

    def _head(self, message: ChatMessage, mark: str, who: str) -> str:
        if message.sender not in self._members:  # it joined later
            self._members.append(message.sender)
        place = self._members.index(message.sender) % len(PALETTE)
        number, mark = self._paint(f"{message.number:>3}", 2), self._paint(mark, 1, 33)
        return f"{number} {mark} {self._paint(who, *((1,) if message.to else ()), PALETTE[place])}> "

    def _paint(self, text: str, *codes: int) -> str:
        if not self._colour or not text.strip():
            return text
        return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m"


def _wrapped(text: str, columns: int, head: int, indent: int) -> list[str]:
    """Rows of a message: the first stands after the head, the others after the indent."""
    room = max(columns - indent, 10)
    first = wrap(text, max(columns - head, 10))[0]
    rest = text[len(first) :]
    if not rest:
        return [first]
    return [first, *wrap(rest[1:] if rest[0] in " \n" else rest, room)]
