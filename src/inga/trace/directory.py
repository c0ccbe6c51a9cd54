"""Files and directories that are there when they are whole."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident

from inga.model.errors import UsageError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Why writing may fail in the middle of a file."""


@contextmanager
def naming_full(path: Path) -> Iterator[None]:
    """Say which place has no room for what is written in here: such an error does not name the file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        raise UsageError(f"{path} cannot be written: {os.strerror(error.errno)}") from None


@contextmanager
def whole_directory(out: Path) -> Iterator[Path]:
    """A directory that is there when what is in it is whole, and not before."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists already: choose another place")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent} to make {out.name} in")
    out = out.resolve()  # `.` has no name to hide
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
    """A file to write instead of this one, which takes its place when all went well; nobody ever reads half of it. `anew`: only
    if there is none, else `FileExistsError`; of several that try, one succeeds. `lasting`: also after a power failure."""
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
