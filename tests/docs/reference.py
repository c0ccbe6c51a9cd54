"""The pages of docs/reference that are made from the code. `python tests/docs/reference.py` brings them up to date."""

import argparse
import inspect
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"

MODULES = ("inga", "inga.sim", "inga.obg", "inga.pipeline", "inga.recipes", "inga.trace", "inga.corba.orb")
"""The public modules. What they list in `__all__` is the public API."""

OPTIONS = "inga.net.options"
"""Has the options of `inga.join` beside its arguments, each with a comment."""

MADE = "<!-- Made from the code by tests/docs/reference.py. Do not edit. -->"


SPOKEN = ("__aiter__", "__getitem__")
"""Methods that are used without being named."""

GIVEN = "Group Delivery Batch Receipt LiveReceipt CheckedTrace Metrics Site".split()
"""Classes of which programs get instances, and make none."""


def public(module: ModuleType) -> list[tuple[str, Any]]:
    """What a module offers, by name, in the order in which it lists it."""
    return [(name, getattr(module, name)) for name in module.__all__]


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class of ours, or a base of ours, defines, in the order of definition."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("inga."):
            continue
        for name, value in vars(base).items():
            if (name.startswith("_") and name not in SPOKEN) or name in seen:
                continue
            if inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod)):
                seen.add(name)
                yield name, value


def is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def doc(value: Any) -> str:
    """The docstring, with code where Markdown wants it; a text that was inherited is none."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    if inspect.isclass(value) and text.startswith(f"{value.__name__}("):
        return ""  # what dataclass writes by itself
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        is_code = line.startswith("    ") or (inside and not line.strip())
        if is_code != inside and (is_code or line.strip()):
            lines.append("```text" if is_code else "```")
            inside = is_code
        lines.append(line.removeprefix("    ") if inside else line)
    if inside:
        lines.append("```")
    return "\n".join(lines).replace("\n\n```\n", "\n```\n")


def signature(name: str, value: Any) -> str:
    """How it is called, with types as they are written."""
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    try:
        text = str(inspect.signature(function))
    except (TypeError, ValueError):
        return name
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z]\w)", "", text).replace("'", '"')
    text = re.sub(r'"([A-Z][\w\[\], |.]*)"', r"\1", text)
    text = re.sub(r"<(?=\w)(?:[^<>]|<\w+>)*>", "...", text)  # such as <function Sim.<lambda> at 0x7f...>
    text = re.sub(r"^\((self|cls)(?:, |(?=\)))", "(", text).replace(
        "options: *...", "options: Unpack[JoinOptions]"
    )
    text = text.replace("options: *JoinOptions", "options: Unpack[JoinOptions]")
    if isinstance(value, property):
        return f"{name}: {text.partition('-> ')[2]}"
    kind = "async " if inspect.iscoroutinefunction(function) else ""
    call = f"{kind}{name}{text}"
    if len(call) <= 100:
        return call
    inner, _, result = text[1:].rpartition(") -> ") if ") -> " in text else (text[1:-1], "", "")
    parts = _split(inner)
    return (
        f"{kind}{name}(\n"
        + "".join(f"    {part},\n" for part in parts)
        + f"){' -> ' + result if result else ''}"
    )


def _split(text: str) -> list[str]:
    """At commas that are not inside brackets or quotes."""
    parts, depth, quoted = [""], 0, False
    for each in text:
        quoted ^= each == '"'
        depth += (each in "([{") - (each in ")]}") if not quoted else 0
        if each == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += each
    return [part.strip() for part in parts]


def api() -> str:
    lines = [
        MADE, "", "# Public API", "",
        "These modules and the names below are what programs may rely on; everything else is private and may change in any "
        "version. Names of `inga` and `inga.pipeline` are imported when they are first used. All have types "
        "(`py.typed`): mypy and pyright check calls. A release that breaks one of them for programs has another "
        "first number, or, below 1.0, another second number, and the changelog says so.", "",
    ]  # fmt: skip
    for module in map(import_module, MODULES):
        lines += [f"## {module.__name__}", "", doc(module).split("\n\n")[0], ""]
        for name, value in public(module):
            lines += _entry(f"{module.__name__}.{name}", name, value, module.__name__)
    return "\n".join(lines).rstrip() + "\n"


def _entry(path: str, name: str, value: Any, module: str) -> Iterator[str]:
    home = f"{getattr(value, '__module__', '')}"
    yield from (f"### {path}", "")
    if inspect.ismodule(value):
        yield from (f"The module, described [below](#{path.replace('.', '')}).", "")
    elif not callable(value) or not home.startswith("inga"):
        yield from _value(value)
    elif module != "inga" and name in import_module("inga").__all__:
        yield from (f"The same as `inga.{name}`, [above](#inga{name.lower()}).", "")
    elif inspect.isclass(value):
        if not is_error(value) and name not in GIVEN:
            yield from ("```python", signature(name, value), "```", "")
        yield from (doc(value), "")
        if is_error(value):
            if module == "inga":
                yield from (f"What to do about it: [errors](errors.md#{name.lower()}).", "")
            return
        for each, method in members(value):
            yield from (
                f"**`{name}.{each}`**",
                "",
                "```python",
                signature(each, method),
                "```",
                "",
                doc(method),
                "",
            )
    else:
        yield from ("```python", signature(name, value), "```", "", doc(value), "")
        if name == "join":
            yield from _options()


def _value(value: Any) -> Iterator[str]:
    kind = "text" if isinstance(value, str) else "a number" if isinstance(value, (int, bool)) else "a value"
    text = str(value)
    if hasattr(value, "__metadata__"):
        yield from (f"The IDL type `{value.__metadata__[0].kind}` as a type hint.", "")
    elif isinstance(value, bool):
        yield from ("True or False.", "")
    else:
        yield from (f"{kind.capitalize()}." if len(text) > 200 else f"`{type(value).__name__}`.", "")


def _options() -> Iterator[str]:
    """The table of options, from the comments beside them."""
    from inga.net.options import DEFAULTS

    source = inspect.getsource(import_module(OPTIONS).JoinOptions)
    yield from ("Options beside these arguments:", "", "| option | default | meaning |", "|---|---|---|")
    pattern = re.compile(
        r"^    (\w+): (?:\(\n(.*?)\n    \)|([^#\n]*))(?:  # ([^\n]*))?$", re.MULTILINE | re.DOTALL
    )
    for name, inner, _, comment in pattern.findall(source):
        found = comment or re.search(r"# (.*)", inner)
        text = found if isinstance(found, str) else found[1]
        default = DEFAULTS[name]  # type: ignore[literal-required]
        yield f"| `{name}` | `{default!r}` | {text.strip().replace('|', chr(92) + '|')} |"
    yield ""


def commands() -> str:
    """What every command says about itself."""
    os.environ["COLUMNS"] = "110"
    from inga.cli.main import COMMANDS, parser

    actions = parser(COMMANDS)._actions
    subs = next(each for each in actions if isinstance(each, argparse._SubParsersAction)).choices
    lines = [
        MADE, "", "# Commands", "",
        "`inga COMMAND --help` prints the same text. Every command has `--json`, which prints one JSON object on standard "
        "output, and `--quiet`. Exit codes: 0 done, or all promises kept; 1 a guarantee is violated; 2 bad usage or bad input; "
        "3 undecided, since data is missing; 130 interrupted.", "",
        "| command | |", "|---|---|",
        *(f"| [`{name}`](#inga-{name}) | {text} |" for name, text in COMMANDS.items()), "",
    ]  # fmt: skip
    for name in COMMANDS:
        text = re.sub(r"^usage: .*?\n\n", "", subs[name].format_help(), flags=re.DOTALL)
        lines += [f"## inga {name}", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


PAGES = {"reference/api.md": api, "reference/commands.md": commands}


if __name__ == "__main__":
    for page, make in PAGES.items():
        (DOCS / page).parent.mkdir(exist_ok=True)
        (DOCS / page).write_text(make(), encoding="utf-8")
    sys.exit()
