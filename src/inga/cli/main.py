"""The one command and its subcommands.

Exit codes: 0 done or pass, 1 a guarantee is violated, 2 bad usage or bad input, 3 unknown (the input
has holes), 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from inga.cli.output import tell
from inga.model.compiled import compiled
from inga.model.errors import IngaError

COMMANDS = {
    "demo": "the main job: talk, trace, certify, show",
    "sim": "one deterministic run in virtual time",
    "play": "schedules in a browser, move by move: drag messages, switch the order",
    "live": "the same with one process per member, over real sockets",
    "top": "watch a live group: members, rates, what waits and for whom",
    "chat": "talk in a group from a terminal",
    "hunt": "many seeds with faults, until a promise breaks",
    "fuzz": "spoil all that inga reads, until a decoder breaks its promise",
    "check": "certify a trace, with Spark or without",
    "trend": "the certificates of many runs, by date",
    "watch": "certify a trace while it grows",
    "order": "restore the causal order of a capture with Spark",
    "stamp": "compute the vectors of a trace that has none",
    "keys": "make secrets, authorities and certificates for groups and TLS",
    "names": "a naming service for CORBA clients and groups",
    "tap": "listen in a group, and log what is delivered for Spark",
    "report": "what happened in a run, verdicts and a diagram, as one HTML file",
    "lab": "reproduce what papers claim: the ladder of stamps, CO, the schemes of SCO, ReMIOP",
    "import": "a log of another system as a trace",
    "export": "a trace for other tools",
    "metrics": "delays, holds, repair and flow of a trace as tables",
    "dissect": "MIOP, GIOP and ReMIOP's control packets in a capture file",
    "ior": "what a reference to an object or a group says",
    "bench": "measure, as ratios against a baseline of the same run",
}
"""Built: each has a module here with `add_options(parser)` and `run(options) -> exit code`."""

OK, VIOLATED, BAD_USE, UNKNOWN, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser(words[0] if words else None).parse_args(words, argparse.Namespace(words=words))
    try:
        code: int = import_module(f"inga.cli.{options.command}").run(options)
        return code
    except KeyboardInterrupt:
        tell("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return OK
    except (IngaError, OSError) as error:
        tell(f"inga {options.command}: {error}", file=sys.stderr)
        return BAD_USE


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    """Only the wanted command's module is imported: `inga --help` is instant."""
    parser = argparse.ArgumentParser(
        prog="inga", description="Group communication in which nothing arrives before its cause."
    )
    kind = "compiled" if compiled else "interpreted"
    parser.add_argument("--version", action="version", version=f"inga {version('inga')}, {kind}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text in COMMANDS.items():
        module = import_module(f"inga.cli.{name}") if name == wanted else None
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
