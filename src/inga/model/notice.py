"""A sentence for a person, and the name of what happened, for programs that read logs."""

from typing import Self


class Notice(str):
    """Text, which may change from one version to the next, with an `event`, which does not."""

    event: str

    def __new__(cls, event: str, text: str) -> Self:
        notice = super().__new__(cls, text)
        notice.event = event
        return notice

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # for copies: two, not one
        return self.event, str(self)
