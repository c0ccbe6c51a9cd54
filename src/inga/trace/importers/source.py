"""The sources of logs: a plain file, a compressed one, a directory of files, standard input. Importers get one plain file, which
they may read twice; any other source is copied into one, and errors and rows still cite each line by its original file."""

import gzip
import os
import sys
import zlib
from bisect import bisect_right
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from inga.model.errors import TraceError, UsageError
from inga.trace.directory import naming_full

STANDARD_INPUT = "-"
GZIP = b"\x1f\x8b"
UTF_8 = "utf-8"
CHUNK = 1 << 20
CHARACTER_MAX = 4  # octets in UTF-8


@dataclass(frozen=True, slots=True)
class LogText:
    """A whole log in one plain file, and the origin of its lines."""

    path: Path
    said: str  # how the user named the log
    parts: tuple[tuple[int, str], ...]  # after how many lines each original file begins, and its path
    torn: frozenset[int] = frozenset()  # last lines of original files that had no line end
    is_cut: bool = False  # whether this is only the beginning of the log
    wanted: int | None = None  # characters after which a reader of documents may stop
    encoding: str | None = None  # of the file, if it differs from the one the user gave for the log

    @classmethod
    def plain(cls, path: Path) -> "LogText":
        return cls(path, str(path), ((0, str(path)),))

    @property
    def name(self) -> str:
        """The name of the log in a trace."""
        return "stdin" if self.said == STANDARD_INPUT else _short(str(Path(self.said).resolve()))

    def place(self, line: int) -> str:
        """The file and number of a line, for errors."""
        part, number = self._find(line)
        return f"{part}:{number}"

    def ref(self, line: int) -> str:
        """The file and number of a line, for `ref` in rows."""
        part, number = self._find(line)
        return f"{'stdin' if self.said == STANDARD_INPUT else _below(part, self.said)}:{number}"

    def _find(self, line: int) -> tuple[str, int]:
        first, part = self.parts[max(bisect_right(self.parts, line - 1, key=lambda each: each[0]) - 1, 0)]
        return part, line - first


def _short(path: str) -> str:
    return Path(path).name.removesuffix(".gz")


@lru_cache(maxsize=64)
def _below(part: str, said: str) -> str:
    """The path of a file below the directory that the user named: logs of several hosts may have the same file name."""
    way = Path(part).relative_to(said).as_posix()
    return _short(part) if way == "." else way.removesuffix(".gz")


@contextmanager
def plain_text(
    log: str, most: int | None = None, wanted: int | None = None, *, encoding: str = UTF_8
) -> Iterator[LogText]:
    """Provide a whole log as one plain file. For a directory these are all files in it and below, by name, one after the other.
    A copy is cut after `most` octets, at the end of a line if there is one. A larger plain file is cut as well, unless `wanted`
    tells its reader when to stop. If lines do not end with the octet of `\\n`, as in UTF-16, the log is copied as UTF-8."""
    path = Path(log)
    is_recoded = not _ends_lines_by_octets(encoding)
    with _reading(log):
        parts = [path] if log == STANDARD_INPUT else _parts(path)
        is_plain = log != STANDARD_INPUT and parts == [path] and not _is_compressed(path)
        is_plain &= not (is_recoded and path.is_file())
    if is_plain and (most is None or wanted is not None or not path.is_file() or path.stat().st_size <= most):
        yield replace(LogText.plain(path), wanted=wanted)
        return
    with TemporaryDirectory(prefix="inga-import-") as scratch:
        copy = Path(scratch) / "log"
        with _reading(log), naming_full(copy):
            text = _copy(parts, copy, log, most, encoding)
        yield replace(text, wanted=wanted, encoding=UTF_8 if is_recoded else None)


@contextmanager
def _reading(log: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{error.filename or log} cannot be read: {error.strerror or error}") from None


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = list(_files(path, set()))
    if not found:
        raise UsageError(f"{path} is a directory without any files, there or below")
    return found


def _files(directory: Path, seen: set[str]) -> Iterator[Path]:
    """All files in and below a directory, by name. Links are followed, but no directory is visited twice."""
    real = os.path.realpath(directory)
    if real in seen:
        return
    seen.add(real)
    for each in sorted(directory.iterdir()):
        if each.name.startswith((".", "_")):
            continue
        if each.is_dir():
            yield from _files(each, seen)
        elif each.is_file():
            yield each


def _is_compressed(path: Path) -> bool:
    if not path.is_file():
        return False  # the function that opens it reports what it is
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def is_utf8(encoding: str) -> bool:
    return encoding.lower() in ("utf-8", "utf8")


def _ends_lines_by_octets(encoding: str) -> bool:
    try:
        return "a\n".encode(encoding).endswith(b"a\n")
    except (LookupError, UnicodeError):
        return True  # the function that opens the file reports that there is no such encoding


class _Recoded:
    """A file in another encoding, read as UTF-8. An incomplete character at its end is dropped."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file = file
        self._decoder = getincrementaldecoder(encoding)()

    def read(self, size: int) -> bytes:
        while octets := self._file.read(size):
            if text := self._decoder.decode(octets):
                return text.encode()
        return b""


def _copy(parts: list[Path], target: Path, log: str, most: int | None, encoding: str) -> LogText:
    """Copy the parts of a log into one file. Record after how many lines each part begins, and which lines have no end."""
    places: list[tuple[int, str]] = []
    torn: set[int] = set()
    lines, is_cut = 0, False
    with target.open("wb") as out:
        for part in parts:
            left = None if most is None else most - out.tell()
            if left is not None and left <= 0:
                is_cut = True
                break
            name = "standard input" if log == STANDARD_INPUT else str(part)
            places.append((lines, name))
            if log == STANDARD_INPUT:
                added = _append(sys.stdin.buffer, out, name, left, encoding)
            else:
                with part.open("rb") as file:
                    added = _append(file, out, name, left, encoding)
            lines += added.lines
            torn |= {lines} if added.is_torn else set()
            is_cut |= added.is_cut
    return LogText(target, log, tuple(places), frozenset(torn), is_cut)


def _torn_character(tail: bytes) -> int:
    """How many octets at the end of a UTF-8 text are an incomplete character."""
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(tail)
    return len(decoder.getstate()[0])


def _ends(chunk: bytes) -> int:
    """How many lines end in a chunk, as Python reads text."""
    return chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")


class _Added(NamedTuple):
    lines: int
    is_torn: bool  # whether the last line had no end
    is_cut: bool  # whether more follow in the source


def _append(file: Any, out: IO[bytes], name: str, most: int | None, encoding: str) -> _Added:
    """Copy one part without its byte order mark, and add an end to its last line if it has none. Of a part that is cut only whole
    lines are copied, if there are any."""
    source = gzip.GzipFile(fileobj=file) if file.peek(len(GZIP))[: len(GZIP)] == GZIP else file
    source = source if _ends_lines_by_octets(encoding) else _Recoded(source, encoding)
    lines, last, left = 0, b"", CHUNK if most is None else most
    tail = b""
    whole = 0  # end of the last whole line in `out`
    try:
        chunk = source.read(min(CHUNK, left)).removeprefix(BOM_UTF8)
        while chunk:
            if (end := chunk.rfind(b"\n") + 1) > 0:
                whole = out.tell() + end
            out.write(chunk)
            lines, last = lines + _ends(chunk) - (last + chunk[:1] == b"\r\n"), chunk[-1:]
            tail = (tail + chunk[-CHARACTER_MAX:])[-CHARACTER_MAX:]
            left = CHUNK if most is None else max(left - len(chunk), 0)
            chunk = source.read(min(CHUNK, left))
        is_cut = most is not None and left <= 0 and bool(source.read(1))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{name} is compressed, but not whole: {error}") from None
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{name}:{lines + 1}: here or later is text that is not {encoding}: {error.reason}."
        ) from None
    if is_cut and whole:
        out.truncate(whole)
        out.seek(whole)
        return _Added(lines, False, True)
    is_torn = last not in (b"", b"\n", b"\r")
    if is_torn:
        out.seek(out.tell() - _torn_character(tail) if is_utf8(encoding) else out.tell())
        out.truncate()
        out.write(b"\n")
    return _Added(lines + is_torn, is_torn, is_cut)
