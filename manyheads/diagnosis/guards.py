"""Find guards in the student's code that refuse allowed inputs.

In such a guard a comparison is inverted, or it excludes the limit itself. The code behind a guard
does not run, so no mutant's replies can explain the refusal. A guard compares sizes of its
arguments. An assertion about computed values is no guard, because something else has made them
wrong.
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
# a guard that tests the divisibility of the wrong width also refuses allowed inputs
UNDIVIDED = "divisibility_unchecked"
_LIMITS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_METHODS = ("__init__", "forward")
_ASKED = ("size", "dim", "numel", "is_integer")
_COUNTED = ("len", "int", "min", "max", "abs", "divmod", "isinstance")
# A value depends only on arguments and their sizes, also on sizes of computed values, or on more.
_GIVEN, _COMPUTED, _OTHER = range(3)
# The most lines that are searched for guards: hundreds of calls may raise, each in another line.
MAX_LINES = 16
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

    Attributes:
        divides: whether it refuses a size that another size does not divide.
        inverted: whether it refuses a size that another size divides.
    """

    line: int
    divides: bool
    inverted: bool = False


def guards_of(source: str, raised: Mapping[int, tuple[str, Raised]]) -> dict[int, Guard]:
    """Return the guard that refused each of these calls. Other calls are left out.

    A function that calls another one can meet a guard of the other one.

    Args:
        source: the attempt's text.
        raised: for calls with allowed arguments the function or class, and the exception.
    """
    # hundreds of calls may raise in one line
    lines = {(target, exception.line): exception for target, exception in raised.values()}
    candidates = (
        guard_of(source, target, exception)
        for (target, _), exception in islice(lines.items(), MAX_LINES)
    )
    guards = {guard.line: guard for guard in candidates if guard is not None}
    return {
        i: guards[e.line]
        for i, (_, e) in raised.items()
        if e.line and e.line in guards and is_refusal(e)
    }


def guard_of(source: str, target: str, raised: Raised) -> Guard | None:
    """Return the guard of this function or class that raised, or None if something else raised.

    Guards of helper functions do not count, because their arguments may be computed values.
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
    """Yield the function, or the methods of the class and of its base classes in the file."""
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
    """Return the conditions under which the `raise` or `assert` on this line raises.

    Return none if it has no condition, or if it is in a loop.
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
    """Return whether a test is true if no remainder is left: `C % n == 0`, `not C % n`."""
    match test:
        case ast.Compare(
            left=ast.BinOp(op=ast.Mod()), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]
        ):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod())):
            return True
    return False


class _Sizes:
    """The origin of each name of a function before a line: arguments, sizes, or something else.

    A guard may compare sizes of computed values with a limit, such as the number of all keys. A
    test that such sizes are equal is no guard: it looks for a mistake in the code itself.
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
        """Return whether the result of this test depends on sizes alone."""
        operators = [
            op for node in ast.walk(test) if isinstance(node, ast.Compare) for op in node.ops
        ]
        limits = bool(operators) and all(isinstance(op, _LIMITS) for op in operators)
        return self._made_of(test) <= (_COMPUTED if limits else _GIVEN)

    def _made_of(self, node: ast.expr) -> int:
        """Return the origin of a value.

        Each node is visited once, because a student decides how deep the text is nested.
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
