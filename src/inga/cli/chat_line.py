"""The line being typed: bytes of a terminal go in, finished lines come out. No I/O.

    Enter            the line is done              Up, Down, ^P, ^N   earlier lines
    Left, Right, ^B, ^F, Home, End, ^A, ^E         move
    Alt-B, Alt-F, ^Left, ^Right                    move by words
    Backspace, Delete, ^D                          delete; ^D in an empty line ends the input
    ^W, ^U, ^K, ^Y   delete a word, to the start, to the end; put it back
    Tab              complete                      ^L   clear the screen

A pasted text stays one line, whatever newlines it has (bracketed paste).
"""

import codecs
import re
from collections.abc import Callable, Iterable
from enum import Enum

from inga.cli.chat_text import TAB, harmless, width, width_of

LINE_MAX = 16 * 1024
"""Characters of a line; what is typed or pasted beyond it is ignored."""

HISTORY_MAX = 1000
NEWLINE = "⏎"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"

_KEY = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO[A-Za-z]|\x1b[^\[O]|.", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;? -/]{0,32}|O)?\Z")
_PASTE_CUT = re.compile(r"(\r|\x1b(\[(2(01?)?)?)?)\Z")
"""The end of a piece of a paste that only the next piece makes sense of."""

Complete = Callable[[str], list[str]]
"""Words that the text before the cursor could end with."""


class Signal(Enum):
    """What a line cannot say."""

    END = "end of input"
    CLEAR = "clear the screen"


class Editor:
    """One line with a cursor, and the lines before it."""

    def __init__(self, history: Iterable[str] = (), complete: Complete = lambda before: []) -> None:
        self.text = ""
        self.cursor = 0
        self.history = list(history)[-HISTORY_MAX:]
        self._complete = complete
        self._place = len(self.history)  # in the history; at its end is the line being typed
        self._draft = ""  # that line, while an earlier one is shown
        self._cut = ""  # what ^W, ^U, ^K took
        self._pasting = False
        self._pending = ""  # the beginning of a key
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._actions = self._bindings()

    def feed(self, data: bytes) -> list[str | Signal]:
        """Take what the terminal sent; lines that were finished by it."""
        self._pending += self._decode(data)
        done: list[str | Signal] = []
        while self._pending:
            if self._pasting:
                if not self._take_paste():
                    break
                continue
            if _UNFINISHED.match(self._pending):
                break
            key = _KEY.match(self._pending)
            assert key is not None
            self._pending = self._pending[key.end() :]
            done += self._press(key.group())
        return done

    def view(self, columns: int) -> tuple[str, int]:
        """The part around the cursor that fits so many columns, and the cursor's column in it."""
        near = 4 * columns  # of a very long line, only this much is looked at
        before = _shown(self.text[max(0, self.cursor - near) : self.cursor])
        after = _shown(self.text[self.cursor : self.cursor + near])
        before = _last(before, columns - 1 - min(width_of(after), columns // 4))
        return before + _first(after, columns - 1 - width_of(before)), width_of(before)

    # Keys

    def _bindings(self) -> dict[str, Callable[[], None]]:
        keys = {
            self._left: "\x02 \x1b[D \x1bOD",
            self._right: "\x06 \x1b[C \x1bOC",
            self._home: "\x01 \x1b[H \x1bOH \x1b[1~ \x1b[7~",
            self._end: "\x05 \x1b[F \x1bOF \x1b[4~ \x1b[8~",
            self._word_left: "\x1bb \x1b[1;5D \x1b[1;3D",
            self._word_right: "\x1bf \x1b[1;5C \x1b[1;3C",
            self._earlier: "\x10 \x1b[A \x1bOA",
            self._later: "\x0e \x1b[B \x1bOB",
            self._backspace: "\x7f \x08",
            self._delete: "\x04 \x1b[3~",
            self._cut_word: "\x17 \x1b\x7f",
            self._cut_to_start: "\x15",
            self._cut_to_end: "\x0b",
            self._put_back: "\x19",
            self._tab: "\t",
        }
        # Not split(): some control characters count as white space.
        return {key: action for action, names in keys.items() for key in names.split(" ")}

    def _press(self, key: str) -> list[str | Signal]:
        if key in "\r\n":
            return self._enter()
        if key == "\x04" and not self.text:
            return [Signal.END]
        if key == "\x0c":
            return [Signal.CLEAR]
        if key == PASTE:
            self._pasting = True
        elif (action := self._actions.get(key)) is not None:
            action()
        elif key.isprintable() or not width(key[0]):
            self._insert(key)
        return []

    def _enter(self) -> list[str | Signal]:
        line, self.text, self.cursor = self.text, "", 0
        if line.strip() and (not self.history or self.history[-1] != line):
            self.history.append(line)
            del self.history[:-HISTORY_MAX]
        self._place = len(self.history)
        return [line]

    def _take_paste(self) -> bool:
        """Insert what is pasted; whether its end has come."""
        text, end, rest = self._pending.partition(PASTED)
        if not end and (cut := _PASTE_CUT.search(text)):
            text, rest = text[: cut.start()], cut.group()
        self._pending = rest
        self._pasting = not end
        lines = re.sub("\r\n?", "\n", text).replace("\t", TAB)
        self._insert("".join([char for char in lines if char == "\n" or char >= " "]))
        return bool(end)

    def _insert(self, text: str) -> None:
        text = text[: LINE_MAX - len(self.text)]
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    # Moving and deleting

    def _left(self) -> None:
        self.cursor = self._previous(self.cursor)

    def _right(self) -> None:
        self.cursor = self._next(self.cursor)

    def _home(self) -> None:
        self.cursor = 0

    def _end(self) -> None:
        self.cursor = len(self.text)

    def _word_left(self) -> None:
        self.cursor = self._word_start()

    def _word_right(self) -> None:
        found = re.compile(r"\W*\w+").match(self.text, self.cursor)
        self.cursor = found.end() if found else len(self.text)

    def _backspace(self) -> None:
        self._remove(self._previous(self.cursor), self.cursor)

    def _delete(self) -> None:
        self._remove(self.cursor, self._next(self.cursor))

    def _cut_word(self) -> None:
        self._cut = self._remove(self._word_start(), self.cursor)

    def _cut_to_start(self) -> None:
        self._cut = self._remove(0, self.cursor)

    def _cut_to_end(self) -> None:
        self._cut = self._remove(self.cursor, len(self.text))

    def _put_back(self) -> None:
        self._insert(self._cut)

    def _remove(self, start: int, end: int) -> str:
        removed = self.text[start:end]
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start
        return removed

    def _word_start(self) -> int:
        at = self.cursor
        while at and not self.text[at - 1].isalnum():
            at -= 1
        while at and self.text[at - 1].isalnum():
            at -= 1
        return at

    def _previous(self, at: int) -> int:
        """The start of the character before, with its combining marks and what is joined to it."""
        at = max(at - 1, 0)
        while at and self._continues(at):
            at -= 1
        return at

    def _next(self, at: int) -> int:
        at = min(at + 1, len(self.text))
        while at < len(self.text) and self._continues(at):
            at += 1
        return at

    def _continues(self, at: int) -> bool:
        return not width(self.text[at]) or self.text[at - 1] == "\u200d"

    # Earlier lines and completion

    def _earlier(self) -> None:
        self._go(self._place - 1)

    def _later(self) -> None:
        self._go(self._place + 1)

    def _go(self, place: int) -> None:
        last = len(self.history)
        if not 0 <= place <= last:
            return
        if self._place == last:
            self._draft = self.text
        self._place = place
        self.text = self._draft if place == last else self.history[place]
        self.cursor = len(self.text)

    def _tab(self) -> None:
        before = self.text[: self.cursor]
        words = self._complete(before)
        if words:
            start = before.rfind(" ") + 1
            self._remove(start, self.cursor)
            self._insert(_common(words) + (" " if len(words) == 1 else ""))


def _shown(text: str) -> str:
    return harmless(text).replace("\n", NEWLINE)


def _common(words: list[str]) -> str:
    """What all begin with."""
    low, high = min(words), max(words)
    return low[
        : next((at for at, pair in enumerate(zip(low, high, strict=False)) if len(set(pair)) > 1), len(low))
    ]


def _first(text: str, columns: int) -> str:
    at = 0
    while at < len(text) and (columns := columns - width(text[at])) >= 0:
        at += 1
    return text[:at]


def _last(text: str, columns: int) -> str:
    at = len(text)
    while at and (columns := columns - width(text[at - 1])) >= 0:
        at -= 1
    return text[at:]
