"""Options of layers that are numbers: in their range, or an error that names it."""

from inga.model.errors import UsageError


def check_number(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{name} is a whole number from {low} to {high}, not {value!r}")


def check_seconds(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
        raise UsageError(f"{name} is a number of seconds above 0, not {value!r}")


def check_delay(name: str, value: object) -> None:
    if value != 0:
        check_seconds(name, value)
