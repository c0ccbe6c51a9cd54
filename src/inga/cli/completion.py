"""Print a script that completes commands, options and their choices in a shell.

  eval "$(inga completion bash)"                                   # in ~/.bashrc
  inga completion zsh > ~/.zfunc/_inga                             # a directory of fpath
  inga completion fish > ~/.config/fish/completions/inga.fish

The script is made from the parsers of the commands, so it knows the options of this version.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inga.cli.bench import NAMES as BENCHES
from inga.cli.output import tell
from inga.lab.experiments import EXPERIMENTS
from inga.recipes import names

KNOWN: dict[tuple[str, str], Iterable[str]] = {
    ("", "order"): names(),
    ("lab", "experiment"): EXPERIMENTS,
    ("bench", "name"): BENCHES,
}
"""What can be said where a parser takes any word, since a wrong one gets a better error later."""


@dataclass(frozen=True)
class Completed:
    """What can follow `inga COMMAND`."""

    command: str
    help: str
    options: dict[str, str]  # by name, with what it means
    choices: dict[str, tuple[str, ...]]  # by option, where there are few
    words: tuple[str, ...]  # of arguments with a few choices


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="which shell")


def run(options: argparse.Namespace) -> int:
    from inga.cli.main import COMMANDS, parser

    actions = parser(COMMANDS)._actions
    commands = next(each for each in actions if isinstance(each, argparse._SubParsersAction))
    found = [_completed(name, COMMANDS[name], sub) for name, sub in commands.choices.items()]
    tell(*SCRIPTS[options.shell](found))
    return 0


def _completed(command: str, help: str, parser: argparse.ArgumentParser) -> Completed:
    options: dict[str, str] = {}
    choices: dict[str, tuple[str, ...]] = {}
    words: tuple[str, ...] = ()
    for action in parser._actions:
        known = tuple(
            map(str, action.choices or KNOWN.get((command, action.dest), KNOWN.get(("", action.dest), ())))
        )
        if not action.option_strings:
            words += known
        for name in action.option_strings:
            options[name] = _plain((action.help or "") % {"default": action.default, "prog": parser.prog})
            if known:
                choices[name] = known
    return Completed(command, _plain(help), options, choices, words)


def _plain(text: str) -> str:
    """What needs no quoting in any shell, and no escape in zsh's lists."""
    return "".join(each for each in text if each not in "'\"`$\\[]:!").replace("\n", " ")


def _bash(commands: list[Completed]) -> Iterator[str]:
    yield "_inga() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" known=""'
    yield '    if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f"        known='{' '.join(each.command for each in commands)} --help --version'"
    yield "    else"
    yield '        case "${COMP_WORDS[1]} $before" in'
    for each in commands:
        for name, choices in each.choices.items():
            yield f"            '{each.command} {name}') known='{' '.join(choices)}' ;;"
    for each in commands:
        yield f"            '{each.command} '*) known='{' '.join((*each.words, *each.options))}' ;;"
    yield "        esac"
    yield "    fi"
    yield '    COMPREPLY=($(compgen -W "$known" -- "$word"))'
    yield "}"
    yield "complete -o default -F _inga inga"


def _zsh(commands: list[Completed]) -> Iterator[str]:
    yield "#compdef inga"
    yield "_inga() {"
    yield "    if (( CURRENT == 2 )); then"
    yield "        local -a known=("
    for each in commands:
        yield f"            '{each.command}:{each.help}'"
    yield "        )"
    yield "        _describe command known"
    yield "        return"
    yield "    fi"
    yield '    case "${words[2]}" in'
    for each in commands:
        yield f"        {each.command})"
        yield "            shift words; (( CURRENT-- ))"
        yield "            _arguments \\"
        for name, text in each.options.items():
            choices = each.choices.get(name)
            value = f":value:({' '.join(choices)})" if choices else ""
            yield f"                '{name}[{text}]{value}' \\"
        files = f"({' '.join(each.words)})" if each.words else "_files"
        yield f"                '*:argument:{files}' ;;"
    yield "    esac"
    yield "}"
    yield "compdef _inga inga"


def _fish(commands: list[Completed]) -> Iterator[str]:
    for each in commands:
        yield f"complete -c inga -n __fish_use_subcommand -f -a {each.command} -d '{each.help}'"
    for each in commands:
        seen = f"complete -c inga -n '__fish_seen_subcommand_from {each.command}'"
        if each.words:
            yield f"{seen} -f -a '{' '.join(each.words)}'"
        for name, text in each.options.items():
            kind = "-l" if name.startswith("--") else "-s"
            choices = each.choices.get(name)
            value = f" -x -a '{' '.join(choices)}'" if choices else ""
            yield f"{seen} {kind} {name.lstrip('-')}{value} -d '{text}'"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
