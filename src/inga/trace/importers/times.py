"""Conversion of times as logs write them to nanoseconds since 1970."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from re import compile, fullmatch
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from inga.model.errors import UsageError
from inga.trace.importers.spans import TIME_MAX

UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""(bound, nanoseconds in a unit): a number below the first bound is in seconds, below the next in milliseconds, then
microseconds; all others are nanoseconds. For times of our century the size of the number tells the unit."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FINER = compile(r":\d\d[.,]\d{6}(\d{1,3})")
"""Finds the digits below a microsecond, which Python's `datetime` cannot hold. The order of one process's rows may depend on them."""


class FineTime(datetime):
    """A time, and the nanoseconds beyond its microseconds."""

    nanosecond: int = 0

    @classmethod
    def of(cls, time: datetime, nanosecond: int) -> "FineTime":
        found = cls.combine(time.date(), time.timetz())
        found.nanosecond = nanosecond
        return found

    def __repr__(self) -> str:
        return f"{self.isoformat()} and {self.nanosecond} ns"


def parse_zone(name: str) -> tzinfo:
    """The time zone of a name in the time zone database, or of an offset from UTC as in +02:00."""
    match = fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if match:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"there is no time zone {name!r}: name one as in Europe/Berlin or +02:00") from None


def parse_time(value: Any, zone: tzinfo, form: str | None = None) -> int | None:
    """Convert a value to a time, or return None if it is not a time. A number is in seconds, milliseconds, microseconds or
    nanoseconds; a text is in ISO 8601, or in the form given. Texts without a zone of their own are in `zone`."""
    if isinstance(value, datetime):
        return _nanoseconds(value, zone)
    if isinstance(value, bool):
        return None
    if form is not None:
        value = str(value)  # JSON may have a number, for a form such as %Y%m%d
    elif isinstance(value, int | float | str):
        # Not as a float: nanoseconds since 1970 have more digits than a float holds.
        with suppress(InvalidOperation):
            return _scaled(Decimal(str(value).strip()))
    try:
        found = datetime.fromisoformat(value) if form is None else datetime.strptime(value, form)
    except (ValueError, TypeError):
        return None
    finer = _FINER.search(value) if form is None else None
    return _nanoseconds(FineTime.of(found, int(finer[1].ljust(3, "0"))) if finer else found, zone)


def _scaled(number: Decimal) -> int | None:
    if not number.is_finite() or not 0 <= number < TIME_MAX:
        return None
    time = int(number * next((unit for below, unit in UNITS if number < below), 1))
    return time if time < TIME_MAX else None


def _nanoseconds(moment: datetime, zone: tzinfo) -> int | None:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    since = aware - _EPOCH
    time = ((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds) * 1000
    time += getattr(moment, "nanosecond", 0)
    return time if 0 <= time < TIME_MAX else None
