"""Which lines does a test execute? Statements planted in every block of a function mark it in an array.

That costs a few per cent, where tracing lines makes these tests five times slower. It errs on the safe side: what
follows an expression that raises counts as executed, if it is in the same block.
"""

import ast

from .kinds import lines_of

NAME = "_probes_"
"""The array, as a global of the module."""


class Probed(ast.NodeTransformer):
    """A module with probes."""

    def __init__(self, source: bytes) -> None:
        self.lines: list[int] = []  # by probe, as bits
        self.tree: ast.Module = ast.fix_missing_locations(self.visit(ast.parse(source)))
        self.hits = bytearray(len(self.lines))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        for each in ast.walk(node):
            for block in ("body", "orelse", "finalbody"):
                statements = getattr(each, block, None)
                if isinstance(statements, list) and statements and not isinstance(each, ast.ClassDef):
                    setattr(each, block, self._probed(statements))
        return node

    def _probed(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """With a probe before the first, and one after each that may leave or end somewhere else."""
        out: list[ast.stmt] = []
        wanted = True
        for statement in statements:
            is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if wanted and not is_docstring:
                probe = ast.parse(f"{NAME}[{len(self.lines)}] = 1").body[0]
                self.lines.append(0)
                out.append(probe)
                wanted = False
            out.append(statement)
            if not is_docstring:
                self.lines[-1] |= sum(1 << line for line in lines_of(statement))
            wanted = wanted or hasattr(statement, "body") or isinstance(statement, ast.Match)
        return out

    def reset(self) -> None:
        self.hits[:] = bytes(len(self.hits))

    @property
    def executed(self) -> int:
        """The lines of all probes that were hit since the last reset, as bits."""
        bits = 0
        for lines, hit in zip(self.lines, self.hits, strict=True):
            if hit:
                bits |= lines
        return bits
