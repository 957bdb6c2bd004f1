"""Find the small changes of a module that `tools.mutate` tests, and choose some of them.

A comparison is turned round, an operand of `and` or `or` dropped, a condition negated or made
constant, a statement left out, a number made one larger, or None returned. Annotations, texts of
messages, logs and timeouts stay as they are: no test need notice them.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_OTHER_OPERATOR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_NOT_MEANT = re.compile(r"^(log|logger|logging|warnings)$|timeout|seconds|__all__", re.IGNORECASE)


@dataclass(frozen=True)
class Mutant:
    """One change: the text `old`, at the bytes `start` to `end` of a file, becomes `new`."""

    module: str
    path: str
    function: str
    line: int
    statement: str  # the line of source text in which the change begins
    kind: str
    old: str
    new: str
    start: int
    end: int

    @property
    def key(self) -> tuple[str, ...]:
        """What names the mutant wherever its line stands."""
        return (self.path, self.function, self.statement, self.old, self.new)

    @property
    def id(self) -> str:
        return hashlib.sha1("\0".join(self.key).encode(), usedforsecurity=False).hexdigest()[:8]

    def text(self, original: bytes) -> bytes:
        return original[: self.start] + self.new.encode() + original[self.end :]

    def __str__(self) -> str:
        change = " ".join(f"{self.old}  ->  {self.new}".split())
        return f"{self.id} {self.path}:{self.line} {self.function}, {self.kind}: {change}"


def changes(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Yield each change of a node: its kind, the node that is replaced, and the new text."""
    match node:
        case ast.Compare() | ast.BoolOp():
            yield from _changes_of_operators(node)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "branch", test, f"(not ({ast.unparse(test)}))"
            yield "branch", test, "False"
            yield "branch", test, "True"
        case ast.While(test=test):
            yield "branch", test, "False"
        case ast.comprehension(ifs=conditions):
            for condition in conditions:
                yield "branch", condition, "True"
        case ast.Constant(value=int(number) | float(number)) if not isinstance(number, bool):
            yield "number", node, repr(number + 1)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "None", value, "None"
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", node, "pass"
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield "statement", node, "pass"


def _changes_of_operators(node: ast.Compare | ast.BoolOp) -> Iterator[tuple[str, ast.expr, str]]:
    changed = copy.copy(node)
    if isinstance(changed, ast.Compare):
        if len(changed.ops) == 1:
            changed.ops = [_OTHER_OPERATOR[type(changed.ops[0])]()]
            yield "comparison", node, f"({ast.unparse(changed)})"
        return
    operands = changed.values
    for operand in operands:
        changed.values = [value for value in operands if value is not operand]
        one_or_all = changed if changed.values[1:] else changed.values[0]
        yield "operand", node, f"({ast.unparse(one_or_all)})"


def _has_no_meaning(node: ast.AST) -> bool:
    """Return whether changes of a node mean nothing: a text, a log, a timeout, an import."""
    match node:
        case ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.keyword(arg=name) if name:
            return bool(_NOT_MEANT.search(name))
        case ast.Assign(targets=[ast.expr() as target, *_]) | ast.AnnAssign(target=target):
            return bool(_NOT_MEANT.search(ast.unparse(target)))
        case ast.Expr(value=ast.Call(func=function)):
            return bool(_NOT_MEANT.search(ast.unparse(function).split(".")[0]))
    return False


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children whose changes mean something: no annotation, decorator or exception."""
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "exc", "cause"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield child


def mutants_of(module: str, path: str, names: Sequence[str], root: Path) -> list[Mutant]:
    """Return all mutants of a module, in the order of its text, without two of the same key.

    Args:
        module: its name in the table.
        path: its file below `root`.
        names: the definitions that are changed, or none for the whole file.
        root: the root of the tree.
    """
    text = (root / path).read_bytes()
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    mutants: dict[tuple[str, ...], Mutant] = {}

    def visit(node: ast.AST, function: str) -> None:
        if _has_no_meaning(node):
            return
        for kind, target, new in changes(node):
            first, last = target.lineno, target.end_lineno or target.lineno
            start = starts[first - 1] + target.col_offset
            end = starts[last - 1] + (target.end_col_offset or 0)
            statement, old = lines[first - 1].decode().strip(), text[start:end].decode()
            mutant = Mutant(module, path, function, first, statement, kind, old, new, start, end)
            mutants.setdefault(mutant.key, mutant)
        for child in _children(node):
            name = child.name if isinstance(child, ast.FunctionDef | ast.ClassDef) else ""
            visit(child, f"{function}.{name}" if name else function)

    for definition in ast.parse(text).body:
        name = getattr(definition, "name", "")
        if not names or name in names:
            visit(definition, name)
    return list(mutants.values())


def choose(mutants: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """Return some of the mutants, as many of each kind as there are, from many functions."""
    pending = sorted(mutants, key=lambda mutant: mutant.id)
    random.Random(seed).shuffle(pending)
    chosen: list[Mutant] = []
    kinds: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    while pending and len(chosen) < number:
        mutant = min(pending, key=lambda m: (kinds[m.kind], functions[m.function]))
        pending.remove(mutant)
        chosen.append(mutant)
        kinds[mutant.kind] += 1
        functions[mutant.function] += 1
    return sorted(chosen, key=lambda mutant: mutant.start)
