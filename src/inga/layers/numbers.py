"""Checks of single settings: each raises a UsageError that says which values are possible."""

from collections.abc import Sequence

from inga.model.errors import UsageError


def check_number(name: str, value: object, low: int, high: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high and value > high):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise UsageError(f"{name} is a whole number {bounds}, not {value!r}")


def check_seconds(name: str, value: object, most: float = 1e6) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        raise UsageError(f"{name} is a number of seconds above 0, not {value!r}")


def check_delay(name: str, value: object, most: float = 1e6) -> None:
    if value != 0:
        check_seconds(name, value, most)


def check_switch(name: str, value: object) -> None:
    if value not in (0, 1):
        raise UsageError(f"{name} is 0 or 1, not {value!r}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UsageError(f"{name} is {' or '.join(choices)}, not {value!r}")
