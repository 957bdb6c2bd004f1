"""Allowed inputs that a guard of the student's own refuses: the comparison is the wrong way round,
or counts the limit out.

What stands behind a guard is not run, so that no mutant's answers say why. A guard compares sizes
of its arguments; an assertion about what the code has computed is none, for what it finds has
another cause.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ..box.worker.messages import Raised
from ..checks.explain import is_refusal
from ..submission.source import statements_of

REFUSES = "refuses_allowed"
# whoever asks whether the wrong width can be divided refuses what is allowed, too
UNDIVIDED = "divisibility_unchecked"
_LIMITS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_METHODS = ("__init__", "forward")
_ASKED = ("size", "dim", "numel", "is_integer")
_COUNTED = ("len", "int", "min", "max", "abs", "divmod", "isinstance")
# made of arguments and their sizes; of sizes of what was computed; of anything
_GIVEN, _COMPUTED, _OTHER = range(3)
# at which guards are looked for: of one attempt's calls hundreds raise, and each may raise at
# another line
PLACES = 16
_PARTS = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Slice,
    ast.Starred,
)


@dataclass(frozen=True)
class Guard:
    """A guard that raised.

    divides: it refuses a size that another does not divide. inverted: one that another divides.
    """

    line: int
    divides: bool
    inverted: bool = False


def guards_of(source: str, raised: Mapping[int, tuple[str, Raised]]) -> dict[int, Guard]:
    """Return the guard that refused each of these calls; those that nothing refused, or something
    else, are left out.

    raised: of calls with allowed arguments, the function that was called or the class that was
    built, and the exception. A function that calls another one meets the other's guard.
    """
    # hundreds of calls raise at one place
    places = {(target, exception.line): exception for target, exception in raised.values()}
    candidates = (
        guard_of(source, target, exception)
        for (target, _), exception in islice(places.items(), PLACES)
    )
    guards = {guard.line: guard for guard in candidates if guard is not None}
    return {
        i: guards[e.line]
        for i, (_, e) in raised.items()
        if e.line and e.line in guards and is_refusal(e)
    }


def guard_of(source: str, target: str, raised: Raised) -> Guard | None:
    """Return the guard of this function or class that raised this; None where something else did.

    A helper may be given anything.
    """
    line = raised.line or 0
    for function in _functions(source, target) if line and is_refusal(raised) else ():
        tests = _tests(function.body, line)
        if tests and all(map(_Sizes(function, line).decide, tests)):
            inverted = any(map(_asks_for_no_rest, tests))
            nodes = [
                (getattr(n, "op", None), getattr(n, "id", ""))
                for test in tests
                for n in ast.walk(test)
            ]
            divides = any(
                isinstance(op, ast.Mod | ast.FloorDiv) or name == "divmod" for op, name in nodes
            )
            return Guard(line, divides and not inverted, inverted)
    return None


def _functions(source: str, target: str) -> Iterator[ast.FunctionDef]:
    """Yield the function, or the methods of the class and of those in the file that it is derived
    from.
    """
    classes, class_names = list[ast.ClassDef](), {target}
    for statement in reversed(statements_of(source)):
        if isinstance(statement, ast.FunctionDef) and statement.name == target:
            yield statement
        elif isinstance(statement, ast.ClassDef) and statement.name in class_names:
            classes.append(statement)
            class_names |= {base.id for base in statement.bases if isinstance(base, ast.Name)}
    for method in (member for definition in classes for member in definition.body):
        if isinstance(method, ast.FunctionDef) and method.name in _METHODS:
            yield method


def _tests(body: Sequence[ast.stmt], line: int) -> list[ast.expr]:
    """Return what decides whether the `raise` or `assert` on this line raises; empty where nothing
    does, or a loop may.
    """
    for statement in body:
        if not statement.lineno <= line <= (statement.end_lineno or 0):
            continue
        if isinstance(statement, ast.Assert):
            return [ast.UnaryOp(ast.Not(), statement.test)]
        if isinstance(statement, ast.If):
            otherwise = ast.UnaryOp(ast.Not(), statement.test)
            for branch, test in ((statement.body, statement.test), (statement.orelse, otherwise)):
                if any(
                    isinstance(node, ast.Raise) and node.lineno <= line <= (node.end_lineno or 0)
                    for node in branch
                ):
                    return [test]
                if within := _tests(branch, line):
                    return [test, *within]
    return []


def _asks_for_no_rest(test: ast.expr) -> bool:
    """Return whether an `if` raises where nothing is left over: `C % n == 0`, `not C % n`."""
    match test:
        case ast.Compare(
            left=ast.BinOp(op=ast.Mod()), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]
        ):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod())):
            return True
    return False


class _Sizes:
    """The names of a function that hold its arguments, its attributes' numbers, or sizes of them,
    down to a line.

    Sizes of what was computed may be compared with a limit, such as the keys in all; whoever
    asserts that they are equal to others looks for a mistake of their own.
    """

    def __init__(self, function: ast.FunctionDef, line: int) -> None:
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        self._names = {argument.arg: _GIVEN for argument in arguments}
        nodes = (node for statement in function.body for node in ast.walk(statement))
        assignments = (n for n in nodes if isinstance(n, _ASSIGNMENTS) and n.lineno < line)
        for node in sorted(assignments, key=lambda node: node.lineno):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            self._bind(targets, _OTHER if node.value is None else self._made_of(node.value))

    def decide(self, test: ast.expr) -> bool:
        """Return whether sizes alone decide this test."""
        operators = [
            op for node in ast.walk(test) if isinstance(node, ast.Compare) for op in node.ops
        ]
        limits = bool(operators) and all(isinstance(op, _LIMITS) for op in operators)
        return self._made_of(test) <= (_COMPUTED if limits else _GIVEN)

    def _made_of(self, node: ast.expr) -> int:
        """Return what a value is made of.

        Each node is looked at once: a student chooses how deep the text is nested.
        """
        match node:
            case ast.Constant():
                return _GIVEN
            case ast.Name():
                return self._names.get(node.id, _OTHER)
            case ast.Attribute():
                return (
                    _size_of(self._made_of(node.value))
                    if node.attr == "shape"
                    else self._made_of(node.value)
                )
            case ast.Subscript():
                return max(self._made_of(node.value), self._made_of(node.slice))
            case ast.Call():
                return max([self._made_by(node.func), *map(self._made_of, node.args)])
            case ast.NamedExpr():
                made_of = self._made_of(node.value)
                self._bind([node.target], made_of)
                return made_of
        if isinstance(node, _PARTS):
            children = (
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
            )
            return max(map(self._made_of, children), default=_GIVEN)
        return _OTHER

    def _made_by(self, func: ast.expr) -> int:
        if isinstance(func, ast.Attribute) and func.attr in _ASKED:
            return _size_of(self._made_of(func.value))
        return _GIVEN if isinstance(func, ast.Name) and func.id in _COUNTED else _OTHER

    def _bind(self, targets: Iterable[ast.expr], made_of: int) -> None:
        names = {
            node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
        }
        self._names.update(dict.fromkeys(names - {"self"}, made_of))


def _size_of(made_of: int) -> int:
    return min(made_of, _COMPUTED)
