"""Compile the protocol rooms by mypyc: `python requirements/compile.py FOLDER` from the top of the source tree.

FOLDER gets a copy of the package `inga` with an extension module beside each source that was compiled; put it on PYTHONPATH
to run it. `src` stays as it is, so nothing that was compiled can be older than what is edited. Parts that did not change are
not compiled again. Needs mypy, a C compiler (`CC`, or `cc`) and Python's header files, and says so where they are missing.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOMS = ("model", "causality", "wire", "stack", "session", "layers", "corba/multicast")

INTERPRETED = {
    "model/compiled",  # looks at classes, and is how compiled ones are told apart
    "model/errors",  # exceptions of two bases; pickled by their arguments
    "model/event",  # small values that applications get and compare, with slots, as these two:
    "model/view",
    "model/readonly",  # containers derived from Python's own, as the next
    "stack/backlog",
    "corba/multicast/rate",  # refuses settings that cannot be meant, of whatever type
    "corba/multicast/transport",  # a part of recipes, which are interpreted
}
"""Modules of these rooms that are left as they are, without their endings."""

LEVEL = "1"
"""How hard the C compiler tries: 2 takes half as long again."""


def main(folder: Path) -> int:
    compiler = os.environ.get("CC", "cc")
    headers = Path(sysconfig.get_paths()["include"])
    if shutil.which(compiler) is None or not (headers / "Python.h").exists():
        print(
            f"inga is not compiled: no C compiler {compiler!r}, or no Python.h in {headers}", file=sys.stderr
        )
        return 1
    config = Path("pyproject.toml").resolve()
    package = folder.resolve() / "inga"
    made = package.parent / ".made"
    made.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree("src/inga", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    os.chdir(package.parent)
    os.environ["MYPYPATH"] = str(package.parent)
    try:
        extensions = _translate(config, made / "c")
        build = _Build(compiler, headers, made)
        sources = {source: each for each in extensions for source in each.sources}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(build.compiled, sources.items()))
            list(pool.map(build.link, extensions))
    except (ImportError, subprocess.CalledProcessError, SystemExit) as error:
        for part in package.parent.rglob("*.so"):
            part.unlink()  # compiled together or not at all: what is left runs interpreted
        print(f"inga is not compiled: {error}", file=sys.stderr)
        return 1
    print(f"{len(extensions) - 1} modules compiled: PYTHONPATH={package.parent}")
    return 0


def _translate(config: Path, into: Path) -> list[Any]:
    """Let mypyc write C: one part that has everything, and one for each module that makes it known to Python."""
    from mypyc.build import mypycify

    modules = sorted(path for room in ROOMS for path in Path("inga", room).rglob("*.py"))
    chosen = [
        str(path)
        for path in modules
        if path.name != "__init__.py" and str(path.with_suffix("")).removeprefix("inga/") not in INTERPRETED
    ]
    arguments = [f"--config-file={config}", *chosen]
    sys.argv = sys.argv[:1]  # which mypyc reads as well
    made = mypycify(
        arguments, opt_level=LEVEL, debug_level="0", multi_file=True, target_dir=str(into), group_name="inga"
    )
    return list(made)


class _Build:
    """Calls the C compiler. Objects are named by all that they were made of, so those that are there need not be made."""

    def __init__(self, compiler: str, headers: Path, made: Path) -> None:
        self._compiler, self._headers, self._objects = compiler, headers, made / "objects"
        self._objects.mkdir(exist_ok=True)
        generated = b"".join(path.read_bytes() for path in sorted((made / "c").glob("*.h")))
        self._common = f"{compiler} {sys.version} {LEVEL}".encode() + generated

    def compiled(self, item: tuple[str, Any]) -> Path:
        source, extension = item
        name = hashlib.sha256(self._common + Path(source).read_bytes()).hexdigest()[:32]
        made = self._objects / f"{name}.o"
        if not made.exists():
            include = [f"-I{folder}" for folder in (self._headers, *extension.include_dirs)]
            unfinished = made.with_suffix(f".{os.getpid()}")
            options = ["-c", "-fPIC", "-w", "-g0", "-DNDEBUG", *include, *extension.extra_compile_args]
            subprocess.run([self._compiler, *options, "-x", "c", source, "-o", unfinished], check=True)
            unfinished.rename(made)
        return made

    def link(self, extension: Any) -> None:
        parts = [self.compiled((source, extension)) for source in extension.sources]
        target = Path(extension.name.replace(".", "/") + sysconfig.get_config_var("EXT_SUFFIX"))
        subprocess.run([self._compiler, "-shared", *parts, "-o", target], check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
