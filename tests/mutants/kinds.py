"""Small bugs, planted by changing a few bytes of a source file: one mutant each.

The kinds are those of bugs that tests have let through:

    timer      a statement that sets a timer or a wait is gone
    release    a statement that gives memory back is gone: pop, discard, clear, del
    state      an assignment to an attribute or an item is gone
    call       a call whose result nobody uses is gone
    hook       a public method does nothing
    exit       an early return, continue, break or raise is gone
    condition  an `if` is negated, always or never taken
    logic      one part of an `and` or `or` counts for nothing, or the two are exchanged
    boundary   `<` for `<=`, and so on
    extreme    `min` for `max`
    offset     `+ 1` or `- 1` is `+ 0`
    factor     what was doubled or halved is not
    bound      a limit or a delay, a constant or a default, is zero or a thousand times as large
    return     another value is returned
    argument   an optional argument is not given

A mutant is text in the place of text, found by the syntax tree: its diff is what a reader would see in a commit.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

TIMER = re.compile(r"(_at|_wait|_due|_since|_until|_again)s?$|wake|alarm|timer|rearm")
RELEASES = frozenset("pop popleft popitem discard remove clear difference_update forget".split())
LIMIT = re.compile(
    r"max|min\b|min_|_min|window|limit|wait|delay|after|again|every|repeat|back_off|patience|heartbeat", re.I
)
BOUNDARIES = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
OPTIONAL_SECOND = frozenset("get pop next getattr".split())

Lines = dict[str, set[int]]
"""Lines by file."""


@dataclass(frozen=True)
class Mutant:
    """One bug: `text` instead of the bytes from `start` to `end`."""

    file: str  # below the package, as "layers/flow.py"
    function: str  # with its class; empty at the top of a module
    line: int
    kind: str
    start: int
    end: int
    text: str
    before: str  # the lines that change, without indentation
    after: str
    watched: Lines = field(compare=False, repr=False)  # whoever executes one of these could notice
    constant: str = ""  # its name, if it is one: whoever names it could notice, too

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]

    @property
    def change(self) -> tuple[str, str, str, str]:
        """What it is called by, wherever its line moves."""
        return self.file, self.function, self.before, self.after

    @property
    def id(self) -> str:
        """Unique as long as no source changes."""
        return f"{self.file}:{self.start}-{self.end}:{self.text}"

    def plant(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def find_mutants(sources: Mapping[str, bytes]) -> list[Mutant]:
    """All mutants of these files."""
    modules = [Module(file, source) for file, source in sources.items()]
    uses: dict[str, Lines] = defaultdict(lambda: defaultdict(set))
    optional: set[str] = set()
    for module in modules:
        module.note_uses(uses)
        optional |= module.optional_parameters()
    return [mutant for module in modules for mutant in module.mutants(uses, optional)]


class Module:
    """A source file and its syntax tree, of which every node knows its parent."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file = file
        self.source = source
        self.tree = ast.parse(source)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def _starts(self) -> list[int]:
        """Where lines start, in bytes; there is no line 0."""
        starts = [0, 0]
        for line in self.source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    # What mutants of other modules need to know

    def note_uses(self, uses: dict[str, Lines]) -> None:
        """Which lines read a constant. What is read when the module is loaded concerns all of the module."""
        for node in ast.walk(self.tree):
            name = (
                node.id
                if isinstance(node, ast.Name)
                else node.attr
                if isinstance(node, ast.Attribute)
                else ""
            )
            if name.isupper() and isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                statement = self._statement(node)
                inside = self._function(statement) is not None
                lines = lines_of(statement) if inside else set(range(1, len(self._starts)))
                uses[name][self.file] |= lines

    def optional_parameters(self) -> set[str]:
        """Names of parameters that may be left out."""
        names = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.arguments):
                positional = [*node.posonlyargs, *node.args]
                names |= {each.arg for each in positional[len(positional) - len(node.defaults) :]}
                names |= {a.arg for a, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value}
            elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
                names.add(node.target.id)
        return names

    # Finding

    def mutants(self, uses: Mapping[str, Lines], optional: set[str]) -> Iterator[Mutant]:
        for node in ast.walk(self.tree):
            if self._is_spared(node):
                continue
            place = _body(node)[0] if isinstance(node, ast.FunctionDef) else node
            for kind, start, end, text in self._changes(node, optional):
                yield self._mutant(place, kind, start, end, text, uses)

    def _is_spared(self, node: ast.AST) -> bool:
        """Assertions, texts of errors, annotations and what only people read."""
        for each in self._ancestors(node):
            match each:
                case ast.Assert() | ast.JoinedStr():
                    return True
                case ast.Raise() if each is not node:
                    return True
                case ast.FunctionDef(name="__repr__" | "__str__"):
                    return True
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    return True
        return False

    def _changes(self, node: ast.AST, optional: set[str]) -> Iterator[tuple[str, int, int, str]]:
        """Kind, span and new text of each bug this node can have."""
        match node:
            case ast.Expr(value=ast.Call(func=called)):
                name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
                kind = (
                    "release"
                    if name in RELEASES
                    else "timer"
                    if TIMER.search(ast.unparse(called))
                    else "call"
                )
                yield kind, *self._span(node), "pass"
            case ast.Delete():
                yield "release", *self._span(node), "pass"
            case ast.Assign() | ast.AugAssign() if self._is_lasting(node):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                while isinstance(target, ast.Subscript):
                    target = target.value
                kind = "timer" if TIMER.search(ast.unparse(target)) else "state"
                yield kind, *self._span(node), "pass"
            case ast.Return() | ast.Continue() | ast.Break() if self._is_followed(node):
                yield "exit", *self._span(node), "pass"
            case ast.Raise():
                yield "exit", *self._span(node), "pass"
            case ast.FunctionDef() if self._is_hook(node):
                first = _body(node)[0]
                start = self._start(first)
                yield "hook", start, start, f"return\n{' ' * first.col_offset}"
            case ast.If(test=test):
                start, end = self._span(test)
                yield "condition", start, end, f"not ({self._text(test)})"
                yield "condition", start, end, "True"
                yield "condition", start, end, "False"
            case ast.IfExp(test=test):
                yield "condition", *self._span(test), f"not ({self._text(test)})"
            case ast.While(test=test) if not isinstance(test, ast.Constant):
                yield "condition", *self._span(test), "False"
            case ast.comprehension(ifs=[_, *_]):
                for test in node.ifs:
                    yield "condition", *self._span(test), "True"
            case ast.BoolOp():
                yield from self._logic(node)
            case ast.Compare():
                yield from self._boundaries(node)
            case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
                yield "offset", *self._span(node.right), "0"
            case ast.BinOp(op=ast.Mult() | ast.Div() | ast.FloorDiv()):
                sides = [node.left, node.right] if isinstance(node.op, ast.Mult) else [node.right]
                for side in sides:
                    if (
                        isinstance(side, ast.Constant)
                        and isinstance(side.value, int | float)
                        and side.value > 1
                    ):
                        yield "factor", *self._span(side), "1"
            case ast.arguments():
                positional = [*node.posonlyargs, *node.args]
                late = positional[len(positional) - len(node.defaults) :]
                pairs = [
                    *zip(late, node.defaults, strict=True),
                    *zip(node.kwonlyargs, node.kw_defaults, strict=True),
                ]
                for parameter, value in pairs:
                    yield from self._bounds(parameter.arg, value)
        match node:  # what can be one of the above, too
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if self._function(node) is None:
                    yield from self._bounds(name, node.value)
            case ast.Call(func=ast.Name(id="min" | "max" as name)):
                yield "extreme", *self._span(node.func), "max" if name == "min" else "min"
            case ast.Call():
                yield from self._arguments(node, optional)
            case ast.Return(value=ast.expr() as value):
                yield from self._returns(node, value)

    def _logic(self, node: ast.BoolOp) -> Iterator[tuple[str, int, int, str]]:
        idle, word, other = (
            ("True", b"and", "or") if isinstance(node.op, ast.And) else ("False", b"or", "and")
        )
        for value in node.values:
            yield "logic", *self._span(value), idle
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield "logic", *self._between(left, right, word), other

    def _boundaries(self, node: ast.Compare) -> Iterator[tuple[str, int, int, str]]:
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            if type(op) in BOUNDARIES:
                sign, other = BOUNDARIES[type(op)]
                yield "boundary", *self._between(left, right, sign.encode()), other

    def _bounds(self, name: str, value: ast.expr | None) -> Iterator[tuple[str, int, int, str]]:
        if value is not None and LIMIT.search(name) and _is_number(value):
            yield "bound", *self._span(value), "0"
            text = self._text(value)
            yield "bound", *self._span(value), f"({text}) * 1000" if " " in text else f"{text} * 1000"

    def _arguments(self, node: ast.Call, optional: set[str]) -> Iterator[tuple[str, int, int, str]]:
        given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        for before, argument in zip([None, *given], given, strict=False):
            if isinstance(argument, ast.keyword):
                is_optional = argument.arg in optional
            else:
                called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
                is_optional = len(node.args) == 2 and argument is node.args[1] and called in OPTIONAL_SECOND
            if is_optional:
                start, end = self._span(argument)
                yield "argument", start if before is None else self._span(before)[1], end, ""

    def _returns(self, node: ast.Return, value: ast.expr) -> Iterator[tuple[str, int, int, str]]:
        function = self._function(node)
        promised = "" if function is None or function.returns is None else ast.unparse(function.returns)
        text = self._text(value)
        if promised == "bool":
            other = {"True": "False", "False": "True"}.get(text, f"not ({text})")
        elif promised in {"int", "float"}:
            other = f"({text}) + 1"
        elif promised.startswith("list["):
            other = "[]"
        elif promised.endswith("| None"):
            other = "None"
        else:
            return
        if other != text:
            yield "return", *self._span(value), other

    def _mutant(
        self, node: ast.AST, kind: str, start: int, end: int, text: str, uses: Mapping[str, Lines]
    ) -> Mutant:
        first, last = self._line_at(start), self._line_at(max(start, end - 1))
        region = slice(self._starts[first], self._starts[last + 1])
        old = self.source[region].decode()
        new = (self.source[region.start : start] + text.encode() + self.source[end : region.stop]).decode()
        function = self._function(node, around_arguments=True)
        return Mutant(
            self.file,
            self._qualified(function or self._class(node)),
            first,
            kind,
            start,
            end,
            text,
            _without_indentation(old),
            _without_indentation(new),
            self._watched(node, uses),
            self._constant(node),
        )

    def _watched(self, node: ast.AST, uses: Mapping[str, Lines]) -> Lines:
        """The lines whose execution shows the change: a constant's are where it is used."""
        if self._function(node) is not None:
            return {self.file: lines_of(self._statement(node))}
        outer = self._function(node, around_arguments=True) or self._class(node)
        if outer is not None:  # a default, or an attribute of a class
            return {self.file: set(range(outer.lineno, (outer.end_lineno or outer.lineno) + 1))}
        if (name := self._constant(node)) in uses:
            return {file: set(lines) for file, lines in uses[name].items()}
        return {self.file: set(range(1, len(self._starts)))}

    def _constant(self, node: ast.AST) -> str:
        """The name that a statement of the module gives to a value."""
        match self._statement(node):
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) as statement
            ):
                return name if isinstance(self.parents[statement], ast.Module) else ""
        return ""

    # Questions about the tree

    def _ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The node itself first."""
        each: ast.AST | None = node
        while each is not None:
            yield each
            each = self.parents.get(each)

    def _statement(self, node: ast.AST) -> ast.stmt:
        return next(each for each in self._ancestors(node) if isinstance(each, ast.stmt))

    def _function(self, node: ast.AST, *, around_arguments: bool = False) -> ast.FunctionDef | None:
        """The function that executes a node. Its own defaults are executed by whoever defines it."""
        inner = node
        for each in self._ancestors(node):
            if isinstance(each, ast.FunctionDef) and (around_arguments or inner in each.body):
                return each
            inner = each
        return None

    def _class(self, node: ast.AST) -> ast.ClassDef | None:
        return next((each for each in self._ancestors(node) if isinstance(each, ast.ClassDef)), None)

    def _qualified(self, scope: ast.AST | None) -> str:
        if scope is None:
            return ""
        scopes = (ast.FunctionDef, ast.ClassDef)
        return ".".join([each.name for each in self._ancestors(scope) if isinstance(each, scopes)][::-1])

    def _is_lasting(self, node: ast.Assign | ast.AugAssign) -> bool:
        """Whether it changes what another statement could see. Without a first assignment nothing works at all."""
        function = self._function(node)
        if function is None or function.name == "__init__":
            return False
        if isinstance(node, ast.AugAssign):
            return True
        if not any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            return False
        return function.name != "view" or ast.unparse(node.targets[0]) in self._declared(node)

    def _declared(self, node: ast.AST) -> set[str]:
        """Attributes that `__init__` of the class around it has set already."""
        around = self._class(node)
        assigned = [
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for method in (around.body if around else [])
            if isinstance(method, ast.FunctionDef) and method.name == "__init__"
            for statement in ast.walk(method)
            if isinstance(statement, ast.Assign | ast.AnnAssign)
        ]
        return {ast.unparse(target) for targets in assigned for target in targets}

    def _is_followed(self, node: ast.stmt) -> bool:
        """Whether something else would run next if this did not leave."""
        inner: ast.AST = node
        for each in self._ancestors(self.parents[node]):
            for block in ("body", "orelse", "finalbody"):
                statements = getattr(each, block, None)
                if isinstance(statements, list) and inner in statements and inner is not statements[-1]:
                    return True
            if isinstance(each, ast.For | ast.While):
                return not isinstance(node, ast.Continue)
            if isinstance(each, ast.FunctionDef):
                return False
            inner = each
        return False

    def _is_hook(self, node: ast.FunctionDef) -> bool:
        """A method that others call for what it does; with one statement it is a mutant already."""
        is_method = isinstance(self.parents[node], ast.ClassDef) and not node.name.startswith("_")
        returns_nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
        return is_method and returns_nothing and len(_body(node)) > 1

    # Places in the text

    def _start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self._starts[node.lineno] + node.col_offset

    def _span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._start(node), self._starts[node.end_lineno] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _between(self, left: ast.expr, right: ast.expr, sign: bytes) -> tuple[int, int]:
        """Where an operator stands."""
        start = self.source.index(sign, self._span(left)[1], self._start(right))
        return start, start + len(sign)

    def _line_at(self, offset: int) -> int:
        return self.source.count(b"\n", 0, offset) + 1


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    """Its statements without the docstring, unless that is all."""
    return function.body[1:] or function.body if ast.get_docstring(function) is not None else function.body


def lines_of(statement: ast.stmt) -> set[int]:
    """Its lines; of a compound statement, those before its first inner one."""
    inner = getattr(statement, "body", None)
    last = max(inner[0].lineno - 1, statement.lineno) if inner else statement.end_lineno or statement.lineno
    return set(range(statement.lineno, last + 1))


def _is_number(value: ast.expr) -> bool:
    """A number that is not zero, written out or computed of such."""
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in {int, float} and bool(value.value)


def _without_indentation(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())
