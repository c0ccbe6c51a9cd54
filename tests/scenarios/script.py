"""The grammar of scenarios: commands, a line of dashes, and what they printed. Its words are in docs/scenarios.md."""

from collections.abc import Callable, Iterable
from itertools import takewhile

DASHES = "----"


class Script:
    """Plays commands. The first word names a method `do_...` of a subclass, which gets the other words and answers
    with the lines that it prints."""

    def play(self, commands: Iterable[str]) -> list[str]:
        """What these commands print."""
        lines: list[str] = []
        for command in commands:
            verb, *words = command.split()
            do: Callable[[list[str]], list[str]] | None = getattr(self, f"do_{verb}", None)
            assert do is not None, f"{type(self).__name__} knows no {verb!r}: {command}"
            lines += do(words)
        return lines

    def replay(self, text: str) -> str:
        """The text of a scenario, with what it prints now."""
        return "\n\n".join(self._block(block) for block in text.rstrip("\n").split("\n\n")) + "\n"

    def differs(self, text: str) -> bool:
        """Whether it prints anything else than it says."""
        try:
            return self.replay(text) != text
        except AssertionError:
            return True

    def _block(self, block: str) -> str:
        """Comments stay; so do blocks without commands."""
        told = list(takewhile(lambda line: line != DASHES, block.split("\n")))
        printed = self.play(line for line in told if line and not line.startswith("#"))
        return "\n".join([*told, DASHES, *printed] if printed or DASHES in block.split("\n") else told)


def numbers(values: Iterable[object]) -> str:
    """Side by side, or a dash where there are none."""
    return " ".join(map(str, values)) or "-"


def answer(yes: bool) -> str:
    return "yes" if yes else "no"
