"""Compile the protocol rooms by mypyc: `python requirements/compile.py FOLDER` from the top of the source tree.

FOLDER gets a copy of the package `inga` with an extension module beside each source that was compiled; put it on PYTHONPATH
to run it. `src` stays as it is. A copy that was made of the same sources by the same tools stays, any other goes before a new
one is made: what is compiled is never older than what is edited. Needs mypy, setuptools, a C compiler (`CC`, or `cc`) and
Python's header files.

Ends with 0 if the copy is there, with 1 if compiling failed, with 2 if there is nothing to compile with, and says why. Without a
copy, FOLDER on PYTHONPATH changes nothing, and inga runs interpreted.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOMS = ("model", "causality", "wire", "stack", "session", "layers", "objects", "corba/multicast")

BESIDES = (
    "net/carrier",
    "net/driver",
    "sim/board",
    "trial/oracle",
    "corba/wire/miop",
    "corba/wire/group_request",
)
"""Modules of other rooms, without their endings: what every datagram and every turn of a live group goes through, also on the
CORBA wire format, and what every move of a schedule does."""

INTERPRETED = {
    "model/compiled",  # looks at classes, and is how compiled ones are told apart
    "model/errors",  # exceptions of two bases; pickled by their arguments
    "model/event",  # small values that applications get and compare, with slots, as these three:
    "model/view",
    "model/stats",
    "model/notice",  # text, derived from Python's own
    "model/readonly",  # containers derived from Python's own, as the next
    "stack/backlog",
    "objects/declare",  # what applications derive from, and settings of whatever type, as the next
    "objects/options",
    "objects/hosting",  # what users say of their objects, and what they call, as the next two: errors are in words
    "objects/calling",
    "objects/invoke",
    "corba/multicast/transport",  # a part of recipes, which are interpreted
}
"""Modules of these rooms that are left as they are, without their endings."""

LEVEL = "1"
"""How hard the C compiler tries: 2 takes half as long again."""


def main(folder: Path) -> int:
    compiler, headers = os.environ.get("CC", "cc"), Path(sysconfig.get_paths()["include"])
    if lacking := _lacking(compiler, headers):
        _discard(folder)
        print(f"inga is not compiled and runs interpreted: {lacking}", file=sys.stderr)
        return 2
    made = folder.resolve() / ".made"
    made.mkdir(parents=True, exist_ok=True)
    with open(made / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # somebody else may be making the same
        origin, mark = made / "origin", _mark(compiler)
        if not origin.exists() or not origin.read_text().startswith(mark):
            print("Compiling the protocol rooms, a minute or so after each change of the source.", flush=True)
            origin.write_text(f"{mark}\n{_make(folder.resolve(), compiler, headers)}")
        if failed := origin.read_text().partition("\n")[2]:
            print(f"inga could not be compiled and runs interpreted: {failed}", file=sys.stderr)
    return 1 if failed else 0


def _lacking(compiler: str, headers: Path) -> str | None:
    if shutil.which(compiler) is None:
        return f"there is no C compiler {compiler!r}"
    if not (headers / "Python.h").exists():
        return f"there is no Python.h in {headers}"
    for package in ("mypy", "setuptools"):
        try:
            version(package)
        except PackageNotFoundError:
            return f"{package} is not installed"
    return None


def _mark(compiler: str) -> str:
    """Stands for all that a copy is made of, and made with."""
    mark = hashlib.sha256(f"{sys.version} {version('mypy')} {shutil.which(compiler)}".encode())
    for path in [Path(__file__), Path("pyproject.toml"), *sorted(Path("src/inga").rglob("*"))]:
        if path.is_file() and path.suffix != ".pyc":
            mark.update(str(path).encode() + path.read_bytes())
    return mark.hexdigest()


def _discard(folder: Path) -> None:
    (folder / ".made" / "origin").unlink(missing_ok=True)
    shutil.rmtree(folder / "inga", ignore_errors=True)
    for part in folder.glob("*.so"):
        part.unlink()


def _make(folder: Path, compiler: str, headers: Path) -> str:
    """Make the copy anew, in a place of its own until it is whole. Returns why it failed, or nothing."""
    made, config = folder / ".made", Path("pyproject.toml").resolve()
    unfinished, log = made / "unfinished", made / "log"
    _discard(folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree("src/inga", unfinished / "inga", ignore=shutil.ignore_patterns("__pycache__"))
    os.chdir(unfinished)
    try:
        with open(log, "w") as said, redirect_stdout(said), redirect_stderr(said):
            extensions = _translate(config, made)
        _Build(compiler, headers, made).build(extensions)
    except SystemExit:
        return f"mypyc says why in {log}"
    except subprocess.CalledProcessError as error:
        log.write_bytes(error.stderr)
        return f"{compiler} says why in {log}"
    for path in [unfinished / "inga", *unfinished.glob("*.so")]:
        path.rename(folder / path.name)
    return ""


def _translate(config: Path, made: Path) -> list[Any]:
    """Let mypyc write C: one part that has everything, and one for each module that makes it known to Python."""
    from mypyc.build import mypycify

    modules = sorted(path for room in ROOMS for path in Path("inga", room).rglob("*.py"))
    modules += [path for name in BESIDES if (path := Path("inga", f"{name}.py")).exists()]
    chosen = [
        str(path)
        for path in modules
        if path.name != "__init__.py" and str(path.with_suffix("")).removeprefix("inga/") not in INTERPRETED
    ]
    os.environ["MYPYPATH"] = str(Path.cwd())
    sys.argv = sys.argv[:1]  # which mypyc reads as well
    extensions = mypycify(
        [f"--config-file={config}", f"--cache-dir={made / 'types'}", *chosen],
        opt_level=LEVEL,
        debug_level="0",
        multi_file=True,
        target_dir=str(made / "c"),
        group_name="inga",
    )
    return list(extensions)


class _Build:
    """Calls the C compiler. Objects are named by all that they were made of, so those that are there need not be made."""

    def __init__(self, compiler: str, headers: Path, made: Path) -> None:
        self._compiler, self._headers, self._objects = compiler, headers, made / "objects"
        self._objects.mkdir(exist_ok=True)
        generated = b"".join(path.read_bytes() for path in sorted((made / "c").glob("*.h")))
        self._common = f"{compiler} {sys.version} {LEVEL}".encode() + generated

    def build(self, extensions: list[Any]) -> None:
        sources = {source: each for each in extensions for source in each.sources}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = dict(zip(sources, pool.map(self._compiled, sources.items()), strict=True))
            list(
                pool.map(
                    lambda each: self._link(each, [objects[source] for source in each.sources]), extensions
                )
            )
        for old in set(self._objects.iterdir()) - set(objects.values()):
            old.unlink()

    def _compiled(self, item: tuple[str, Any]) -> Path:
        source, extension = item
        name = hashlib.sha256(self._common + Path(source).read_bytes()).hexdigest()[:32]
        made = self._objects / f"{name}.o"
        if not made.exists():
            include = [f"-I{folder}" for folder in (self._headers, *extension.include_dirs)]
            options = ["-c", "-fPIC", "-w", "-g0", "-DNDEBUG", *include, *extension.extra_compile_args]
            unfinished = made.with_suffix(".part")
            self._call(*options, "-x", "c", source, "-o", str(unfinished))
            unfinished.rename(made)
        return made

    def _link(self, extension: Any, objects: Iterable[Path]) -> None:
        target = extension.name.replace(".", "/") + sysconfig.get_config_var("EXT_SUFFIX")
        shared = shlex.split(sysconfig.get_config_var("LDSHARED"))[1:]
        self._call(*shared, *map(str, objects), "-o", target)

    def _call(self, *arguments: str) -> None:
        subprocess.run([self._compiler, *arguments], check=True, stderr=subprocess.PIPE)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
