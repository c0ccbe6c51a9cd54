"""Directories that are there when they are whole."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inga.model.errors import UsageError


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
        yield hidden
        os.replace(hidden, out)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
