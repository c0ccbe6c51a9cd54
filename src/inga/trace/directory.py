"""Files and directories that appear only when they are complete."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident

from inga.model.errors import UsageError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors that may interrupt writing in the middle of a file."""


@contextmanager
def naming_full(path: Path) -> Iterator[None]:
    """Turn an error of a write inside the block (no room, a limit, a broken disk) into a `UsageError` that names `path`: the
    original error does not."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        raise UsageError(f"{path} cannot be written: {os.strerror(error.errno)}") from None


@contextmanager
def whole_directory(out: Path) -> Iterator[Path]:
    """A hidden directory to write to, which is renamed to `out` when the block ends without an error, and deleted otherwise."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists already: choose another place")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent} to make {out.name} in")
    out = out.resolve()  # `.` has no name to derive a hidden one from
    hidden = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        try:
            hidden.mkdir()
        except OSError as error:
            raise UsageError(f"{hidden.parent} cannot be written to: {error.strerror}") from None
        with naming_full(out):
            yield hidden
        os.replace(hidden, out)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def whole_file(path: Path, *, anew: bool = False, lasting: bool = False) -> Iterator[Path]:
    """A hidden file to write, which replaces `path` when the block ends without an error; no reader ever sees half of it. With
    `anew` only if `path` does not exist, else `FileExistsError`: of several processes that try, one succeeds. With `lasting`
    its bytes are on disk before it is renamed, so that a power failure cannot leave an incomplete file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(
        f".{path.name}.{os.getpid()}.{get_ident()}.tmp"
    )  # a process may write in two threads
    try:
        yield hidden
        if lasting:
            with hidden.open("rb") as file:
                os.fsync(file.fileno())
        if anew:
            os.link(hidden, path)
        else:
            os.replace(hidden, path)
    finally:
        with suppress(OSError):
            hidden.unlink()
