"""Where a log comes from: a file, a compressed one, a directory of them, standard input. Importers get one plain file, which
they may read twice; what is not one is copied, and errors name what the user did."""

import gzip
import re
import sys
import zlib
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from inga.model.errors import TraceError, UsageError

STANDARD_INPUT = "-"
GZIP = b"\x1f\x8b"
CHUNK = 1 << 20


@contextmanager
def plain_file(log: str) -> Iterator[Path]:
    """A file with all of a log; of a directory that is all files in it, by name, one after the other. It has the name of the
    log, which traces cite."""
    path = Path(log)
    with _reading(log):
        parts = [path] if log == STANDARD_INPUT else _parts(path)
        is_plain = log != STANDARD_INPUT and parts == [path] and not _is_compressed(path)
    if is_plain:
        yield path
        return
    with TemporaryDirectory(prefix="inga-import-") as scratch:
        name = "stdin" if log == STANDARD_INPUT else path.resolve().name.removesuffix(".gz")
        copy = Path(scratch) / name
        with _reading(log):
            places = _copy(parts, copy, log)
        try:
            yield copy
        except (TraceError, UsageError) as error:
            raise type(error)(_renamed(str(error), copy, places, log)) from None


@contextmanager
def _reading(log: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{error.filename or log} cannot be read: {error.strerror or error}") from None


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    if not found:
        raise UsageError(f"{path} is a directory without any files")
    return found


def _is_compressed(path: Path) -> bool:
    if not path.is_file():
        return False  # whoever opens it says what it is
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def _copy(parts: list[Path], target: Path, log: str) -> list[tuple[int, str]]:
    """Copy all of it; after how many lines each part begins, and its name."""
    places: list[tuple[int, str]] = []
    lines = 0
    with target.open("wb") as out:
        for part in parts:
            if log == STANDARD_INPUT:
                places.append((lines, "standard input"))
                lines += _append(sys.stdin.buffer, out, "standard input")
            else:
                places.append((lines, str(part)))
                with part.open("rb") as file:
                    lines += _append(file, out, str(part))
    return places


def _append(file: Any, out: IO[bytes], name: str) -> int:
    """Copy one part without a byte order mark, and end its last line; how many lines it has."""
    source = gzip.GzipFile(fileobj=file) if file.peek(len(GZIP))[: len(GZIP)] == GZIP else file
    lines, last = 0, b""
    try:
        chunk = source.read(CHUNK).removeprefix(BOM_UTF8)
        while chunk:
            out.write(chunk)
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
            chunk = source.read(CHUNK)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{name} is compressed, but not whole: {error}") from None
    if last not in (b"", b"\n"):
        out.write(b"\n")
        lines += 1
    return lines


def _renamed(text: str, copy: Path, places: list[tuple[int, str]], log: str) -> str:
    """What is said of the copy, of what it was made of."""

    def place(match: re.Match[str]) -> str:
        line = int(match[1])
        first, name = places[max(bisect_right(places, line - 1, key=lambda each: each[0]) - 1, 0)]
        return f"{name}:{line - first}"

    return re.sub(rf"{re.escape(str(copy))}:(\d+)", place, text).replace(str(copy), log)
