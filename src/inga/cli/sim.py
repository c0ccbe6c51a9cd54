"""One deterministic run in virtual time: the whole protocol stack over simulated links.

  inga sim --order causal --members 5 --messages 200 --loss 0.2 --seed 7 --trace run7
  inga sim --order fifo --schedule 'A!1 1>B B!2 2>C'
  inga sim --members 8 --crash 2 --return 2
  inga sim --order total --members 5 --partition alice,bob,cathy/dave,erin@2+3
  inga sim --slow bob --slow-policy skip --patience 2
  inga sim --order object --objects 2 --members 5 --loss 0.05 --trace objects

Exits with 0 if the order kept all its guarantees, with 1 if not. Times are in milliseconds.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from inga.cli.output import print_json, tell
from inga.model.errors import UsageError
from inga.recipes import Options, Recipe, find, names, refuse_late
from inga.session.slow import PATIENCE, POLICIES
from inga.sim.board import replay
from inga.sim.schedule import letter
from inga.sim.simulator import Unquiet
from inga.sim.trials import simulate_trial
from inga.trial.calls import CallLoad, CallResult, tally_class
from inga.trial.course import TellStory
from inga.trial.people import member_names
from inga.trial.result import Result, judge
from inga.trial.trial import DATAGRAM, DETECT, PAUSE, Trial


def add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser)
    add_mishap_options(parser)
    parser.add_argument("--datagram", type=int, default=DATAGRAM, metavar="BYTES", help="largest datagram")
    parser.add_argument(
        "--coarse", action="store_true", help="do not close a bundle when the application takes a message"
    )
    parser.add_argument("--schedule", metavar="TEXT", help="play this schedule over lossless links instead")


def add_trial_options(
    parser: argparse.ArgumentParser, *, delay: str = "1:10", rate: float | None = 100.0
) -> None:
    """What simulated and live runs have in common."""
    add = parser.add_argument
    add("--order", default="causal", metavar="O", help=f"one of {', '.join(names())} (default causal)")
    add("--members", type=int, default=4, metavar="N", help="size of the group (default 4)")
    many = "100; with injected failures, enough to go on after them"
    add("--messages", type=int, metavar="M", help=f"sends per member (default {many})")
    add("--size", type=int, default=64, metavar="B", help="bytes of each message (default 64)")
    pace = "as fast as the group takes them" if rate is None else f"{rate:g}"
    add("--rate", type=float, default=rate, metavar="R", help=f"sends per second and member (default {pace})")
    add("--subset", type=int, metavar="K", help="each message goes to K random others")
    add(
        "--matrix",
        action="store_true",
        help="vector: count messages per pair of members, for messages to subsets",
    )
    add("--loss", type=float, default=0.0, metavar="P", help="share of packet copies lost")
    add("--dup", type=float, default=0.0, metavar="P", help="share of packet copies duplicated")
    add(
        "--reorder",
        type=float,
        default=0.0,
        metavar="P",
        help="share of packet copies delayed beyond the maximum of --delay",
    )
    add(
        "--delay",
        type=milliseconds,
        default=delay,
        metavar="MIN:MAX",
        help=f"delay of a link (default {delay})",
    )
    add("--window", type=int, metavar="BYTES", help="bytes in flight per sender, at most")
    add("--echo", action="store_true", help="members get their own messages too")
    add("--join", type=int, default=0, metavar="K", help="K members join later")
    add(
        "--deliver",
        metavar="LEVEL",
        help="how far a message must get before it is delivered (default: the order's own level)",
    )
    add(
        "--option",
        type=named_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the order's protocol, such as window=8; may be repeated",
    )
    add(
        "--objects",
        type=int,
        metavar="K",
        help="orders object, total: call K replicated objects, M calls each",
    )
    add(
        "--misdeclare",
        type=pair_of_methods,
        metavar="A/B",
        help="with --objects: wrongly declare two conflicting methods compatible, such as put/put",
    )
    add("--seed", type=int, default=0, metavar="S", help="seed of all random choices (default 0)")
    add("--trace", type=Path, metavar="DIR", help="write a trace to DIR")
    add(
        "--trace-level",
        choices=("full", "deliveries"),
        default="full",
        help="what the trace contains (default full)",
    )


def add_mishap_options(parser: argparse.ArgumentParser) -> None:
    """What may befall members on the way; which of them, follows from the seed."""
    add = parser.add_argument_group("injected failures").add_argument
    add("--crash", type=int, default=0, metavar="K", help="K members crash (live: SIGKILL)")
    add("--return", type=int, default=0, dest="back", metavar="K", help="K of the crashed members come back")
    add(
        "--pause",
        type=int,
        default=0,
        metavar="K",
        help="K members are suspended for a while (live: SIGSTOP)",
    )
    add(
        "--pause-for",
        type=float,
        default=PAUSE,
        metavar="S",
        help=f"length of each --pause in seconds (default {PAUSE:g})",
    )
    add(
        "--partition",
        metavar="A,B/C,D@2+3",
        help="cut the network into these parts at second 2, for 3 seconds; members not listed belong to the first part "
        "(live: network namespaces, so as root)",
    )
    add(
        "--policy",
        choices=("primary", "all"),
        help="which parts go on during --partition (default: that of the order)",
    )
    add("--slow", metavar="NAME", help="this member's application reads slowly")
    add(
        "--slow-policy",
        choices=POLICIES,
        default="wait",
        help="what happens to the slow member: all wait for it (default); with expel and skip it stops reading and is "
        "excluded, and with skip it comes back when it reads again",
    )
    add(
        "--patience",
        type=float,
        default=PATIENCE,
        metavar="S",
        help=f"seconds that all wait before they exclude a slow member (default {PATIENCE:g})",
    )
    add(
        "--detect",
        type=float,
        metavar="S",
        help=f"seconds of silence after which a member is excluded (default {DETECT:g} with any of these options)",
    )
    add(
        "--rejoin",
        action=argparse.BooleanOptionalAction,
        help="excluded members come back by themselves (default: with --pause and --partition)",
    )


def run(options: argparse.Namespace) -> int:
    check_trial_options(options)
    if options.schedule is not None:
        return _play(options)
    say = story(options)
    try:
        result = simulate_trial(trial_of(options), options.trace, full=options.trace_level == "full", say=say)
    except Unquiet as error:
        tell(f"inga sim: {error}", file=sys.stderr)
        return 1
    show(result, options)
    return 1 if result.violations else 0


def trial_of(options: argparse.Namespace) -> Trial:
    """The trial that a command line describes: its options have the names of the fields."""
    told = {each.name: getattr(options, each.name) for each in fields(Trial) if hasattr(options, each.name)}
    told |= {"option": tuple(dict(options.option).items())}
    if options.messages is None:
        del told["messages"]
        told["messages"] = Trial(**told).enough
    return Trial(**told)


def story(options: argparse.Namespace) -> TellStory:
    """Tells a person what happens, as it happens."""

    def say(text: str) -> None:
        if not options.quiet:
            tell(text, file=sys.stderr)

    return say


def check_trial_options(options: argparse.Namespace) -> None:
    """What does not exist yet, or cannot be meant."""
    recipe = find(options.order)
    if options.join < 0:
        raise UsageError(
            f"--join is the number of members that come later, so not below 0: {options.join} is"
        )
    if options.join or options.crash or options.pause or options.partition:
        refuse_late(recipe, options.detect or DETECT)
    recipe.level_of(options.deliver)
    asked: dict[str, Any] = {name: getattr(options, name, False) for name in ("matrix", "coarse")}
    asked |= {"deliver": options.deliver, "slow": options.slow_policy}
    recipe.build(Options(protocol=dict(options.option), **asked))  # or says what is wrong
    if options.objects is not None:
        _check_objects(recipe, options)
    elif options.misdeclare is not None:
        raise UsageError("--misdeclare is about methods of objects: give --objects too")
    trace = options.trace
    if trace is not None and trace.exists() and not (trace.is_dir() and not any(trace.iterdir())):
        raise UsageError(f"{trace} exists already; a trace is written to a new directory")


def _check_objects(recipe: Recipe, options: argparse.Namespace) -> None:
    """What does not go together with objects."""
    if not recipe.objects:
        raise UsageError(f"--objects: order {recipe.name!r} has no objects; use --order object or total")
    if options.slow is not None:
        raise UsageError("--objects: calls are not read by an application, so nobody is slow with --slow")
    if options.join or options.subset is not None:
        raise UsageError("--objects: every member has a copy from the start, so not with --join or --subset")
    CallLoad(options.members, options.messages or 0, options.objects)
    tally_class(options.misdeclare)


def show(result: Result, options: argparse.Namespace, *measured: str) -> None:
    """The result, as JSON or for a person, who is also told what was `measured`."""
    if options.json:
        print_json(result.to_json())
        return
    came_through = [] if result.course is None else result.course.summary
    if isinstance(result, CallResult):
        for line in (*result.summary, *came_through, *result.witnesses):
            tell(line)
        _tell_verdict(result)
        return
    pdus = result.pdus
    people = member_names(result.members)
    tell(
        f"{result.order}: {result.members} members, seed {result.seed}: {result.sent:,} sent, "
        f"{result.delivered:,} of {result.expected:,} delivered in {result.seconds:.3f} s"
    )
    if result.judged:
        proof = "" if result.related else ": this run proves nothing"
        tell(f"{result.related:,} causally related pairs{proof}")
    tell(f"datagrams: {pdus['data']:,} data, {pdus['control']:,} control, {pdus['repair']:,} repairs")
    if (found := result.recovery) and found["lost"]:
        tell(
            f"recovery: {found['lost']:,} copies lost; {found['nack']:,} nacks, "
            f"{found['nack_suppressed']:,} packets not asked for since another did; {found['repair']:,} repairs, "
            f"{found['repair_of_others']:,} of them of others' packets, {found['repair_suppressed']:,} left to others"
        )
    for line in (*came_through, *measured):
        tell(line)
    for name, count in result.unpromised.items():
        example = result.examples.get(name)
        tell(
            f"not promised by {result.order}: {name}, violated {count:,} times"
            + (f", for example: {_named(example, people)}" if example else "")
        )
    if result.judged:
        _tell_verdict(result)
    else:
        tell("not judged")
    for witness in result.witnesses[:5]:
        tell(f"  {_named(witness, people)}", tone="bad")
    if result.trace:
        tell(f"trace: {result.trace}")


def _tell_verdict(result: Result) -> None:
    broken = f"promised guarantees: {result.violations:,} violations"
    tell(broken if result.violations else "all promises kept", tone="bad" if result.violations else "good")


def _named(witness: str, people: Sequence[str]) -> str:
    """What the oracle says of a site, with the name of the member."""

    def name(found: re.Match[str]) -> str:
        site = int(found[1])
        return people[site] if site < len(people) else found[0]

    return re.sub(r"\bsite (\d+)\b", name, witness)


def pair_of_methods(text: str) -> tuple[str, str]:
    """`put/put` as two names."""
    one, slash, other = text.partition("/")
    if not slash or not one or not other:
        raise argparse.ArgumentTypeError(f"two methods, as in put/put, not {text!r}")
    return one, other


def milliseconds(text: str) -> tuple[float, float]:
    """MIN:MAX in milliseconds, as seconds."""
    low, _, high = text.partition(":")
    try:
        first, last = float(low) / 1000, float(high or low) / 1000
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not MIN:MAX in milliseconds") from None
    return first, last


def named_value(text: str) -> tuple[str, int | float | str]:
    """NAME=VALUE, a number if it is one."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def _play(options: argparse.Namespace) -> int:
    board = replay(options.schedule, options.order, options=Options(matrix=options.matrix))
    recipe = find(options.order)
    violations, unpromised = judge(board.oracle, recipe.guarantees)
    orders = {letter(site): taken for site, taken in enumerate(board.taken)}
    if options.json:
        content = {"order": recipe.name, "taken": orders, "violations": violations, "unpromised": unpromised}
        print_json({**content, "witnesses": board.oracle.witnesses})
    else:
        for name, taken in orders.items():
            tell(f"{name} took {' '.join(map(str, taken)) or 'nothing'}")
        for witness in board.oracle.witnesses:
            promised = witness.partition(":")[0] not in unpromised
            excuse = "" if promised else f" (not promised by {recipe.name})"
            tell(f"{_named(witness, list(orders))}{excuse}", tone="bad" if promised else "doubt")
    return 1 if violations else 0
