"""Monitor a running group: members, rates, what waits, and for which members.

  inga live --members 4 --messages 100000 --rate 2000 --metrics 9464        in one terminal,
  inga top 9464-9467                                                        in another
  inga top db1:9464 db2:9464 db3:9464 --every 5

Polls the figures that each member serves (inga.serve_metrics) at a PLACE: a port of this machine, the first and the last of
several ports, or host:port. It does not join the group. The key q ends it. Without a terminal, and with --once, it takes
two samples, --every seconds apart, and prints one table.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inga.cli.chat_text import fitting, width_of
from inga.cli.output import print_json, tell
from inga.cli.top_screen import LiveScreen
from inga.model.errors import UsageError
from inga.model.text import printable

EVERY, EVERY_MIN = 1.0, 0.1
ANSWER_SECONDS = 2.0
"""For which a member is waited for."""

ANSWER_MAX = 16 << 20
"""Bytes of an answer: much more than any group of ours has to say."""

ENDPOINTS_MAX = 512

COLUMNS = "MEMBER STATE VIEW SENT/s GOT/s UNREAD HELD WINDOW REPAIRS/s ROUND WAITS-FOR".split()
LEFT = {"MEMBER", "STATE", "WAITS-FOR"}
"""Columns of text; the others are numbers."""

StatsPlace = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Look:
    """What one place said at one time: its groups, or why there is no answer."""

    at: float
    groups: tuple[dict[str, Any], ...] = ()
    failure: str = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("places", nargs="+", metavar="PLACE", help="PORT, FIRST-LAST or HOST:PORT")
    parser.add_argument("--every", type=float, default=EVERY, metavar="S", help="seconds between two samples")
    parser.add_argument("--once", action="store_true", help="print one table, and end")


def run(options: argparse.Namespace) -> int:
    if not EVERY_MIN <= options.every <= 3600.0:
        raise UsageError(f"--every is {EVERY_MIN:g} to 3600 seconds, not {options.every:g}")
    places = places_of(options.places)
    is_live = sys.stdout.isatty() and sys.stdin.isatty() and not (options.once or options.json)
    return asyncio.run(watch(places, options.every) if is_live else once(places, options))


def places_of(words: Iterable[str]) -> list[StatsPlace]:
    """Where to ask."""
    found: dict[StatsPlace, None] = {}
    for word in words:
        match = re.fullmatch(
            r"(?:http://)?(?:(?P<host>[^:/]+):)?(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?/?", word
        )
        if match is None:
            raise UsageError(f"{word!r} is no place: PORT, FIRST-LAST or HOST:PORT")
        first = int(match["first"])
        last = int(match["last"] or first)
        if not 0 < first <= last < 1 << 16:
            raise UsageError(f"{word!r} names no ports from 1 to 65535")
        if len(found) + last - first >= ENDPOINTS_MAX:
            raise UsageError(f"at most {ENDPOINTS_MAX} members are watched")
        found |= dict.fromkeys((match["host"] or "127.0.0.1", port) for port in range(first, last + 1))
    return [*found]


async def watch(places: list[StatsPlace], every: float) -> int:
    """Until somebody presses q, or Ctrl-C."""
    before: dict[StatsPlace, Look] = {}
    with LiveScreen() as screen:
        while not screen.is_over:
            now = await look(places)
            screen.show(frame(before, now, screen.columns))
            before = now
            await screen.pause(every)
    return 0


async def once(places: list[StatsPlace], options: argparse.Namespace) -> int:
    """Two looks, for rates; 2 if nobody answers."""
    before = await look(places)
    if any(each.groups for each in before.values()):
        await asyncio.sleep(options.every)
    now = await look(places)
    if options.json:
        print_json({"members": [_said(place, before.get(place), each) for place, each in now.items()]})
    else:
        tell(*frame(before, now, None))
    return 0 if any(each.groups for each in now.values()) else 2


async def look(places: list[StatsPlace]) -> dict[StatsPlace, Look]:
    """Ask everybody, at the same time."""
    return dict(zip(places, await asyncio.gather(*[_ask(*place) for place in places]), strict=True))


async def _ask(host: str, port: int) -> Look:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(f"GET /stats HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read(ANSWER_MAX)
                while more := await reader.read(ANSWER_MAX - len(answer)):
                    answer += more
            finally:
                writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise ValueError("no figures are served there")
        groups = json.loads(body)
        return Look(time.monotonic(), tuple(_figures(group) for group in groups))
    except TimeoutError:
        return Look(time.monotonic(), failure=f"no answer within {ANSWER_SECONDS:g} s")
    except OSError as error:
        return Look(time.monotonic(), failure=_why(error))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Look(time.monotonic(), failure="what answers there is no member of a group")


def _why(error: OSError) -> str:
    """In the system's words: asyncio puts others in their place."""
    number = error.errno or 0
    # Names that cannot be resolved have numbers of their own.
    return os.strerror(number).lower() if number > 0 else str(error.strerror or error)


NUMBERS = "view view_age sent delivered unread_bytes held_bytes held_for blocked_for repairs_given".split()
OF_MEMBER = "behind behind_for waited".split()


def _figures(said: dict[str, Any]) -> dict[str, Any]:
    """What a member says, as far as it is shown. Whoever answers may say anything: what is no number is an error, and texts steer
    no terminal."""
    return {
        **{name: _number(said[name]) for name in NUMBERS},
        **{name: printable(str(said[name])) for name in ("group", "me", "order", "state")},
        "round_trip": None if said["round_trip"] is None else _number(said["round_trip"]),
        "windows": [(_number(each["used"]), _number(each["limit"] or 0)) for each in said["windows"]],
        "rejected": {printable(str(why)): _number(count) for why, count in said["rejected"].items()},
        "members": [
            {
                "name": printable(str(member["name"])),
                **{name: bool(member[name]) for name in ("here", "blocks", "awaited")},
                **{name: _number(member[name]) for name in OF_MEMBER},
            }
            for member in said["members"]
        ],
    }


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ValueError("no number")
    return value


# What is shown


def frame(before: dict[StatsPlace, Look], now: dict[StatsPlace, Look], columns: int | None) -> list[str]:
    """The rows of the screen; with `columns`, none is longer."""
    said = [(before.get(place), each, group) for place, each in now.items() for group in each.groups]
    rows: list[str] = []
    for name in sorted({group["group"] for _, _, group in said}):
        rows += [*_of_group(name, [each for each in said if each[2]["group"] == name]), ""]
    rows += [f"{host}:{port}  {each.failure}" for (host, port), each in now.items() if each.failure]
    while rows and not rows[-1]:
        rows.pop()
    return rows if columns is None else [row[: fitting(row, columns)] if row else "" for row in rows]


def _of_group(name: str, said: list[tuple[Look | None, Look, dict[str, Any]]]) -> list[str]:
    newest = max([group for _, _, group in said], key=lambda group: group["view"])
    members = len(newest["members"])
    groups = [group for _, _, group in said]
    table = [COLUMNS, *(_row(then, each, group) for then, each, group in said)]
    head = (
        f"{name}: {_count(members, 'member')}, view {newest['view']:.0f} for {_seconds(newest['view_age'])}, "
        f"order {newest['order']}; {len(said)} of {members} answer here"
    )
    return [
        head,
        *_aligned(table),
        *_slowest(groups),
        *_rejected(groups),
    ]


def _row(then: Look | None, now: Look, group: dict[str, Any]) -> list[str]:
    rates = _rates(then, now, group)
    used = max([used / limit for used, limit in group["windows"] if limit], default=0.0)
    waits = [
        f"{m['name']} (sending, {_seconds(group['blocked_for'])})" for m in group["members"] if m["blocks"]
    ]
    waits += [
        f"{m['name']} (delivery, {_seconds(group['held_for'])})" for m in group["members"] if m["awaited"]
    ]
    return [
        group["me"],
        group["state"],
        f"{group['view']:.0f}",
        rates["sent"],
        rates["delivered"],
        _bytes(group["unread_bytes"]),
        _bytes(group["held_bytes"]),
        f"{100 * used:.0f}%",
        rates["repairs_given"],
        "" if group["round_trip"] is None else _seconds(group["round_trip"]),
        ", ".join(waits),
    ]


def _rates(then: Look | None, now: Look, group: dict[str, Any]) -> dict[str, str]:
    """Of each counter, by how much it grew in a second; nothing at the first look, and if the member has started anew."""
    names = ("sent", "delivered", "repairs_given")
    before = _same(then, group)
    if then is None or before is None or any(group[name] < before[name] for name in names):
        return dict.fromkeys(names, "")
    seconds = max(now.at - then.at, 1e-9)
    return {name: f"{(group[name] - before[name]) / seconds:,.0f}" for name in names}


def _same(then: Look | None, group: dict[str, Any]) -> dict[str, Any] | None:
    """What the same member of the same group said before."""
    said = () if then is None else then.groups
    return next((each for each in said if (each["group"], each["me"]) == (group["group"], group["me"])), None)


def _slowest(groups: list[dict[str, Any]]) -> list[str]:
    """Who holds up the others most, as all of them say together."""
    found: dict[str, dict[str, float]] = {}
    for group in groups:
        for member in group["members"]:
            about = found.setdefault(member["name"], {"blocks": 0, "behind": 0, "behind_for": 0, "waited": 0})
            about["blocks"] += member["blocks"]
            about["behind"] = max(about["behind"], member["behind"])
            about["behind_for"] = max(about["behind_for"], member["behind_for"])
            about["waited"] += member["waited"]
    name, worst = max(
        found.items(), key=lambda each: (each[1]["blocks"], each[1]["waited"], each[1]["behind_for"])
    )
    if not worst["blocks"] and not worst["waited"] and worst["behind_for"] < 1.0:
        return []
    return [
        f"slowest: {name}: blocks {worst['blocks']:.0f} now, {_count(worst['behind'], 'packet')} behind for "
        f"{_seconds(worst['behind_for'])}, waited for {_seconds(worst['waited'])} in all"
    ]


def _rejected(groups: list[dict[str, Any]]) -> list[str]:
    total: dict[str, float] = {}
    for group in groups:
        for why, count in group["rejected"].items():
            total[why] = total.get(why, 0) + count
    listed = ", ".join([f"{why} {count:,.0f}" for why, count in sorted(total.items())])
    return [f"rejected: {listed}"] if listed else []


def _aligned(table: list[list[str]]) -> list[str]:
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    rows = []
    for line in table:
        cells = []
        for title, cell, width in zip(COLUMNS, line, widths, strict=True):
            space = " " * (width - width_of(cell))
            cells.append(cell + space if title in LEFT else space + cell)
        rows.append("  ".join(cells).rstrip())
    return rows


def _said(place: StatsPlace, then: Look | None, now: Look) -> dict[str, Any]:
    return {
        "place": f"{place[0]}:{place[1]}",
        "failure": now.failure or None,
        "seconds": None if then is None else now.at - then.at,
        "groups": [{**group, "before": _same(then, group)} for group in now.groups],
    }


def _count(number: float, what: str) -> str:
    return f"{number:,.0f} {what}" + ("" if number == 1 else "s")


def _seconds(seconds: float) -> str:
    if seconds < 1.0:
        return f"{1000 * seconds:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 100.0 else f"{seconds / 60:,.0f} min"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:,.0f} GB"
