"""The one command and its subcommands.

Exit codes: 0 done or pass, 1 a guarantee is violated, 2 bad usage or bad input, 3 unknown (the input
has holes), 130 interrupted.
"""

import argparse
import sys
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import NoReturn

from inga import __version__
from inga.cli.interrupts import safe_interrupts
from inga.cli.output import tell
from inga.model.compiled import compiled
from inga.model.errors import IngaError
from inga.model.text import suggest

COMMANDS = {
    "demo": "live groups under several orders, certified, as one HTML report",
    "sim": "one simulated run, deterministic, in virtual time",
    "play": "play schedules in a browser, move by move: drag messages, switch the order",
    "live": "one run with a process for each member, over real sockets",
    "top": "monitor a live group: members, rates, what waits, and for which members",
    "chat": "chat in a group from a terminal",
    "hunt": "search for protocol bugs: many simulated groups with random faults",
    "fuzz": "search for decoder bugs: mutated input for everything that inga reads",
    "check": "certify a trace, with Spark or without",
    "trend": "show the certificates of many runs, by date",
    "watch": "certify a trace while it grows",
    "order": "restore the causal order of a capture with Spark",
    "stamp": "compute the vector clocks of a trace that has none",
    "keys": "make secrets, authorities and certificates for groups and TLS",
    "names": "run a naming service for CORBA clients and groups",
    "tap": "join a group silently, and log its messages for Spark",
    "report": "write one HTML file about a run: verdicts, figures, a space-time diagram",
    "lab": "reproduce the claims of papers: the ladder of stamps, CO, SCO, OBG, ReMIOP",
    "import": "convert the log of another system to a trace",
    "export": "convert a trace for other tools",
    "metrics": "print delays, holds, repair and flow of a trace as tables",
    "dissect": "show MIOP, GIOP and ReMIOP packets of a capture file",
    "ior": "show the contents of a CORBA reference to an object or a group",
    "bench": "run benchmarks, as ratios against a baseline of the same run",
    "completion": "print a script that completes commands and options in a shell",
}
"""Built: each has a module here with `add_options(parser)` and `run(options) -> exit code`."""

EXTRAS = {
    "numpy": "trace",
    "pyarrow": "trace",
    "pandas": "spark",
    "pyspark": "spark",
    "py4j": "spark",
    "cryptography": "secure",
    "duckdb": "bench",
    "polars": "bench",
    "numba": "fast",
    "zmq": "bench",
}
"""The extra of pyproject.toml that brings a package."""

SPARK = {"demo", "metrics", "order", "stamp", "lab", "bench"}
"""Commands that need more than `trace` brings."""

READING = {"check", "export", "import", "metrics", "order", "report", "stamp", "trend", "watch"}
"""Commands that load packages while they work, and may start Java. Members of groups have loops that mind signals themselves."""

OK, VIOLATED, BAD_USE, UNKNOWN, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words else ""
    try:
        options = parser({command}).parse(words)
        with safe_interrupts() if options.command in READING else nullcontext():
            code: int = import_module(f"inga.cli.{options.command}").run(options)
        return code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = "spark" if command in SPARK and EXTRAS[package] == "trace" else EXTRAS[package]
        tell(
            f"inga {command}: this needs {package}, which is not installed: pip install 'inga[{extra}]'",
            file=sys.stderr,
            tone="bad",
        )
        return BAD_USE
    except KeyboardInterrupt:
        tell("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return OK
    except (IngaError, OSError) as error:
        why = str(error)
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            why = f"{error.filename}: {error.strerror}"  # without the number, which Python puts first
        tell(f"inga {command}: {why}", file=sys.stderr, tone="bad")
        return BAD_USE


class Parser(argparse.ArgumentParser):
    """Whoever misspells a command or an option is told which one is like it."""

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The options of a command line, or an error that helps."""
        options, unknown = self.parse_known_args(words, argparse.Namespace(words=list(words)))
        if unknown:
            self._refuse(options.command, unknown)
        return options

    def error(self, message: str) -> NoReturn:
        first, _, rest = message.partition("invalid choice: ")
        wrong, _, choices = rest.partition(" (choose from ")
        if choices and self._subparsers is not None:
            known = [choice.strip(" '") for choice in choices.rstrip(")").split(",")]
            message = f"{first}invalid choice: {wrong}{suggest(wrong.strip(chr(39)), known)}"
        super().error(message)

    def _refuse(self, command: str, unknown: Sequence[str]) -> NoReturn:
        action = next(each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        sub: argparse.ArgumentParser = action.choices[command]
        known = [option for each in sub._actions for option in each.option_strings]
        option = next((each for each in unknown if each.startswith("-")), None)
        if option is None:
            sub.error(f"too many arguments: {' '.join(unknown)}")
        name = option.partition("=")[0]
        meant = suggest(name, known)
        hint = meant if "did you mean" in meant else f"; inga {command} --help lists them"
        sub.error(f"no option {name}{hint}")


def parser(wanted: Collection[str]) -> Parser:
    """Only the wanted commands' modules are imported: `inga --help` is instant."""
    parser = Parser(prog="inga", description="Group communication in which nothing arrives before its cause.")
    kind = "compiled" if compiled else "interpreted"
    parser.add_argument("--version", action="version", version=f"inga {__version__}, {kind}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text in COMMANDS.items():
        module = import_module(f"inga.cli.{name}") if name in wanted else None
        sub = commands.add_parser(
            name,
            help=help_text,
            description=None if module is None else module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if module is not None:
            sub.add_argument("--json", action="store_true", help="one JSON object on standard output")
            sub.add_argument("--quiet", action="store_true", help="no progress on standard error")
            module.add_options(sub)
    return parser
