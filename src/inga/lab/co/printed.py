"""Self-knowledge as the paper prints it: a member counts what it has accepted itself only once it has announced it.

Its own entries rise when it sends or confirms, and a sender's own report is needed for its own messages, too. This gives
the tables of the paper's examples, and confirms later than the protocol as we use it; both are sound.
"""

from inga.layers.co.machine import CoMachine


class PrintedCo(CoMachine):
    """CO that counts a member's own acceptances when it announces them."""

    def _is_needed(self, sender: int, reporter: int) -> bool:
        return True

    def _have_accepted(self, src: int, number: int) -> None:
        if src == self.me:
            self._owe()

    def _confirm(self, to: int | None, *, poll: bool = False) -> None:
        self._know_ourselves()
        super()._confirm(to, poll=poll)

    def _know_ourselves(self) -> None:
        """K1: raise our own entries to what we are about to announce to others."""
        for k, number in enumerate(self.expected):
            super()._have_accepted(k, number)
        if self._raised:
            self._advance()
