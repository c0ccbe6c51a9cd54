"""Telling another program of something by HTTP, in bounded time."""

import json
from http.client import HTTPException
from time import sleep
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from inga.model.errors import UsageError

TRIES = 3
SECONDS = 5.0  # for each of them
PAUSE_SECONDS = 0.5  # before the second, twice that before the third


def check_url(url: str) -> None:
    """Refuse what is no address of a web server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--webhook is an address with http or https, not {url!r}")


def post(url: str, content: dict[str, Any]) -> str:
    """Post JSON; what went wrong the last time, or nothing if it arrived. What the server refuses is not tried again."""
    request = Request(url, json.dumps(content).encode(), {"Content-Type": "application/json"})
    trouble = ""
    for number in range(TRIES):
        if number:
            sleep(PAUSE_SECONDS * 2 ** (number - 1))
        try:
            with urlopen(request, timeout=SECONDS):
                return ""
        except HTTPError as error:
            trouble = f"{error.code} {error.reason}"
            if error.code < 500:
                break
        except (OSError, HTTPException) as error:
            trouble = str(error)
    return trouble
