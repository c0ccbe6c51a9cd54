"""Every error inga raises on purpose. What each means and where it surfaces: docs/architecture.md."""

from typing import Any


class IngaError(Exception):
    """The root of all of inga's own errors."""


class UsageError(IngaError):
    """A call that cannot be right: unknown name, too large, closed group, a level the recipe lacks."""


class KeysError(UsageError):
    """A secret, a key or a certificate that is not what it should be. `reason` is one word for counters.

    The text never shows a secret, nor what was given in place of one.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class WouldBlock(IngaError):
    """The flow window is closed, and the caller asked not to wait."""


class NotReady(IngaError, TimeoutError):
    """Members that somebody waited for did not come in time; `missing` are their names."""

    def __init__(self, text: str, missing: tuple[str, ...]) -> None:
        super().__init__(text)
        self.missing = missing


class Concurrent(IngaError):
    """Two messages of which neither caused the other, under the policy that forbids them.

    `messages` are both, as batches: the one that came now, and the newest known of those it is
    concurrent with; None for one from before this member joined, or of a view that is over.
    """

    def __init__(self, text: str, *messages: Any) -> None:
        super().__init__(text)
        self.messages = messages


class Gap(IngaError):
    """A message is lost for good: whoever had it did not repair it in time."""


class NoMajority(IngaError):
    """This part of the group is paused, since less than a majority is here; `missing` are the names of the others."""

    def __init__(self, text: str, missing: tuple[str, ...]) -> None:
        super().__init__(text)
        self.missing = missing

    def __reduce__(self) -> tuple[type["NoMajority"], tuple[str, tuple[str, ...]]]:
        return NoMajority, (str(self), self.missing)  # a stack that is pickled may be paused


class Excluded(IngaError):
    """The other members removed this one from the group."""


class RemoteError(IngaError):
    """A method called on another member failed or was aborted."""


class TraceError(IngaError):
    """A trace that cannot be read: missing, malformed, or lying about itself."""


class WireError(IngaError):
    """Bytes that are not a packet of this group. `reason` is the counter a stack keeps of them."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
