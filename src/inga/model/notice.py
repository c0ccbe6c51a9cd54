"""A sentence for a person, and the name of the event, for programs that read logs."""

from typing import Self


class Notice(str):
    """A text that may change from one version to the next, and an `event`, whose name does not change."""

    event: str

    def __new__(cls, event: str, text: str) -> Self:
        notice = super().__new__(cls, text)
        notice.event = event
        return notice

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # a copy needs two arguments
        return self.event, str(self)
