"""A student's text as Python reads it: encoding, lines, digest, statements, and locations in it.

All statements are read within bounds, and the text is never run. The module also decides whether an
attempt or one of its functions is still as empty as the stub, and describes where a line or a name
stands: in a file, or in a cell of a notebook.
"""

from __future__ import annotations

import ast
import codecs
import hashlib
import io
import math
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..result import ExerciseResult, FunctionResult, ProvedLine

if TYPE_CHECKING:
    from ..box.worker.messages import Load

# characters, without remarks: parsing takes about a thousand bytes of memory for each
CODE_LIMIT = 200_000
# Nodes of the syntax tree within each other, about ten times as many as in any attempt that we have
# seen. Python's own limit depends on its version and on the stack; within this one a walk that
# calls itself has room for three calls a node.
DEEPEST = 200
TRIES = 3
# which Python raises for a text that it cannot read
TEXT_ERRORS = ("SyntaxError", "IndentationError", "TabError")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Encodings that a coding line may name: tables of letters. Others are slow (punycode), or hide what
# stands there (unicode_escape).
_TABLES = re.compile(
    r"iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gbk|gb2312|gb18030|big5\w*|shift_jis\w*|euc_\w+|tis-620"
)


class CellNotRun(NamedTuple):
    """A cell of a notebook whose text no kernel runs as Python.

    why: follows the name of what stands in it.
    """

    text: str
    why: str


@dataclass(frozen=True)
class AttemptSource:
    """What a student handed in for one exercise.

    problem: one sentence that says why the file cannot be an attempt; then `source` is empty.
    missing: whether there is no file.
    note: what the student should know about which file was read.
    cells: of a notebook, the line at which each cell begins.
    skipped: the numbers of the parts of it that ended the process that ran them, and are left out
        since.
    not_run: of a notebook, the cells with definitions that are no Python code to Jupyter.
    """

    name: str
    source: str = ""
    problem: str = ""
    missing: bool = False
    note: str = ""
    cells: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    not_run: tuple[CellNotRun, ...] = ()

    def load(self) -> Load:
        """Return the message that has a box load it."""
        from ..box.worker.messages import Load  # which imports torch

        return Load(self.source, self.name, self.cells, self.skipped)

    @property
    def digest(self) -> str:
        """A hash of everything that the verdict depends on: attempts with the same digest are the
        same.
        """
        fields = (self.name, self.source, self.problem, str(self.missing), *map(str, self.cells))
        return hashlib.sha256("\0".join(fields).encode()).hexdigest()


class Unreadable(Exception):
    """The file cannot be an attempt. The text is the sentence for the student."""


def with_newlines(text: str) -> str:
    """Return the text with the line ends of Unix in place of those of Windows and of old Macs."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    """Return the lines as Python counts them: `splitlines` also ends one at a form feed, or at
    U+2028 in a comment.
    """
    return text.removesuffix("\n").split("\n")


def printable(text: str) -> str:
    """Return the text with a blank for each character that is not seen: it could move a terminal's
    cursor, or turn a line around.
    """
    return "".join(c if c.isprintable() else " " for c in text)


def decoded(data: bytes) -> str:
    """Return what a coding line in it says, where that fits; else UTF-8, with or without its mark.

    Raises UnicodeDecodeError.
    """
    with suppress(SyntaxError, LookupError, UnicodeDecodeError):
        name = codecs.lookup(tokenize.detect_encoding(io.BytesIO(data).readline)[0]).name
        if _TABLES.fullmatch(name):
            return data.decode(name)
    return data.decode("utf-8-sig")


def code_digest(source: str) -> str:
    """Return a hash of the code without comments and blank lines.

    A script and its notebook have the same.
    """
    lines = (line.rstrip() for line in source.splitlines())
    code = "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
    return hashlib.sha256(code.encode()).hexdigest()


def read_statements(source: str) -> tuple[ast.stmt, ...]:
    """Return all statements of the module, below its main guard, too.

    Every analysis of a student's text begins here, so that none meets a tree that it cannot walk.
    Empty if there are more than CODE_LIMIT characters beside remarks, if Python cannot parse it, or
    if it is nested deeper than DEEPEST: then the attempt is graded by its answers, and nothing is
    read in its text. Before 3.11.8, two threads that parse at once can end either with a
    SystemError (https://github.com/python/cpython/issues/106905): it is asked again.
    """
    if (
        len(source)
        > CODE_LIMIT
        < sum(len(line) for line in source.split("\n") if not line.startswith("#"))
    ):
        return ()
    for _ in range(TRIES):
        try:
            statements = ast.parse(source).body
            return () if _is_too_deep(statements) else tuple(statements)
        except SystemError:
            continue
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            break
    return ()


def pythons_words(source: str, line: int = 0) -> str:
    """Return why Python cannot read a text, in its own words; "" if it can, or if the text is
    beyond the bounds.

    They are found by reading the text alone, so nothing that a judge hides can stand in them.

    Args:
        source: The text of a script, or of one cell.
        line: Of the statement that is looked at, if Python can parse the whole: it also refuses a
            `return` outside a function.
    """
    if len(source) > CODE_LIMIT:
        return ""
    statements = read_statements(source)
    line_statements = [
        statement
        for statement in statements
        if statement.lineno <= line <= (statement.end_lineno or 0)
    ]
    try:
        with warnings.catch_warnings(action="ignore"):
            if statements:
                compile(ast.Module(line_statements, []), "attempt", "exec", dont_inherit=True)
            else:
                ast.parse(source)
    except SyntaxError as error:
        return error.msg
    except (ValueError, RecursionError, MemoryError, SystemError):
        pass
    return ""


def _is_too_deep(statements: list[ast.stmt]) -> bool:
    """Return whether nodes stand within each other deeper than DEEPEST. It calls nothing for
    itself, whatever the depth.
    """
    level: list[ast.AST] = [*statements]
    for _ in range(DEEPEST):
        level = [*chain.from_iterable(map(ast.iter_child_nodes, level))]
        if not level:
            return False
    return True


# half a dozen look at each text, one after the other
tree_of = lru_cache(maxsize=2)(read_statements)


@lru_cache(maxsize=2)
def statements_of(source: str) -> tuple[ast.stmt, ...]:
    """Return the statements of the module, but for those below `if __name__ == "__main__"`.

    Nobody may change them.
    """
    guard = (
        (statement, ast.walk(statement.test) if isinstance(statement, ast.If) else ())
        for statement in tree_of(source)
    )
    return tuple(
        p
        for p, nodes in guard
        if not any(isinstance(n, ast.Name) and n.id == "__name__" for n in nodes)
    )


@lru_cache(maxsize=2)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return these statements and all that they hold."""
    return tuple(node for statement in statements_of(source) for node in ast.walk(statement))


UNTOUCHED = "stub_untouched"  # the misconception's id


class LeftOver(NamedTuple):
    """A stub's `raise` beside something that is written. is_below: whether that stands above it."""

    line: int
    is_below: bool


def is_unwritten(source: str) -> bool:
    """Return whether there are functions or classes, and none of them has any content; or nothing
    at all but remarks.

    `pass`, a docstring, `...`, `return None`, `raise NotImplementedError` and `super().__init__()`
    are no content. What stands below `if __name__ == "__main__"` does not count. A text that Python
    cannot parse is not unwritten.
    """
    if all(
        line.isspace() or line.lstrip().startswith("#") for line in source.splitlines(keepends=True)
    ):
        return True
    nodes = nodes_of(source)
    stores = any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) for node in nodes
    )
    return (
        any(isinstance(node, DEFINITIONS) for node in nodes)
        and not stores
        and all(map(_is_empty, nodes))
    )


def definitions_of(source: str) -> dict[str, ast.stmt]:
    """Return the functions and classes at the top of the file, by their names: of several with one
    name the last counts.
    """
    return {
        statement.name: statement
        for statement in statements_of(source)
        if isinstance(statement, DEFINITIONS)
    }


@lru_cache(maxsize=2)  # several look at each text, one after the other
def unwritten_names(source: str) -> frozenset[str]:
    """Return the functions and classes of the module that have no content, in an attempt of which
    others may have some.

    Where a name is defined twice the last definition counts.
    """
    return frozenset(
        name for name, definition in definitions_of(source).items() if has_no_content(definition)
    )


def left_over_raise(source: str, name: str) -> LeftOver | None:
    """Return the stub's `raise` that stands beside what is written in the function, or in a method
    of the class.
    """
    nodes = ast.walk(definitions_of(source).get(name, ast.Pass()))
    for body in (node.body for node in nodes if isinstance(node, ast.FunctionDef)):
        stub = next((i for i, statement in enumerate(body) if _is_stub(statement)), None)
        if stub is not None and not all(map(_does_nothing, body)):
            return LeftOver(body[stub].lineno, is_below=not all(map(_does_nothing, body[:stub])))
    return None


def unwritten_methods(source: str, name: str) -> list[str]:
    """Return the methods of this class that have no content, where others have some."""
    last = definitions_of(source).get(name)
    methods = (
        [n for n in last.body if isinstance(n, ast.FunctionDef)]
        if isinstance(last, ast.ClassDef)
        else []
    )
    empty = [method.name for method in methods if has_no_content(method)]
    return empty if len(empty) < len(methods) else []


def is_beside_code(source: str, line: int) -> bool:
    """Return whether something is written above this line, or around it, in the innermost function
    that it stands in.
    """
    around = [function for function in _functions(source) if function[0] <= line <= function[1]]
    return bool(around) and line > max(around)[2]


@lru_cache(maxsize=2)  # hundreds of calls may end at one line, or each at another
def _functions(source: str) -> tuple[tuple[int, int, float], ...]:
    """Return the first and the last line of each function, and where something is written; infinity
    where nothing is.
    """
    return tuple(
        (
            node.lineno,
            node.end_lineno or 0,
            math.inf if has_no_content(node) else min(written, default=node.lineno),
        )
        for node in nodes_of(source)
        if isinstance(node, ast.FunctionDef)
        for written in [
            [statement.lineno for statement in node.body if not _does_nothing(statement)]
        ]
    )


def has_no_content(definition: ast.AST) -> bool:
    """Return whether a function or class is as empty as the stub's, and so is all that stands in
    it.
    """
    return all(map(_is_empty, ast.walk(definition)))  # of most, nothing but the first is looked at


def _is_empty(node: ast.AST) -> bool:
    match node:
        case ast.Lambda():
            return False
        case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
            return all(map(_does_nothing, node.body))
        case ast.ClassDef(
            decorator_list=[],
            bases=[]
            | [
                ast.Name("Module" | "object")
                | ast.Attribute(ast.Name("nn") | ast.Attribute(ast.Name("torch"), "nn"), "Module")
            ],
        ):
            methods = ast.FunctionDef | ast.AsyncFunctionDef
            return all(
                isinstance(statement, methods) or _does_nothing(statement)
                for statement in node.body
            )
    return not isinstance(node, DEFINITIONS)


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__"), [], [])):
            return True
    return _is_stub(statement)


def _is_stub(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"


INTERFACE, LOAD_ERROR = "interface", "load_error"  # ids of misconceptions
_HOLD = (ast.stmt, ast.ExceptHandler, ast.match_case)  # what may hold statements, or is one
_NAMED = re.compile(
    r"\b((?:raised [A-Z]\w+|raised an exception of its own|in the loop|written|the stub's raise) "
    r"on|come back from) line ([1-9]\d{0,6})\b"
)
# Also what is said of code that is not seen where it stands, which has its cell from the beginning.
_OR_STANDS = _NAMED.pattern.replace("|written|", "|written|it stands|that begins|")
_PLACED = re.compile(rf"{_OR_STANDS}(?: of code cell ([1-9]\d{{0,6}})\b)?")


def proved_line(source: AttemptSource, line: int, edit: str = "") -> ProvedLine:
    """Return a line of the attempt's text; of a notebook, with its place in its cell.

    Cells are counted from 1, code cells alone.
    """
    if not source.cells:
        return ProvedLine(line=line, edit=edit)
    cell = bisect_right(source.cells, line)
    first_line = source.cells[cell - 1] if cell else 1
    return ProvedLine(line=line, cell=cell, line_in_cell=line - first_line + 1, edit=edit)


def in_cells(text: str, source: AttemptSource) -> str:
    """Return a sentence that names a line of a notebook with its cell, for no student sees the
    cells joined; of a file, as it is.
    """
    if not source.cells:
        return text
    return _NAMED.sub(lambda match: f"{match[1]} {proved_line(source, int(match[2])).place}", text)


def named_line(text: str, source: AttemptSource) -> int:
    """Return the line of the attempt's text that a sentence names, whether with its cell or
    without; 0 where it names none.
    """
    match = _PLACED.search(text)
    if match is None or int(match[3] or 0) > len(source.cells):
        return 0
    return int(match[2]) + (source.cells[int(match[3]) - 1] - 1 if match[3] else 0)


def with_locations(result: ExerciseResult, source: AttemptSource) -> ExerciseResult:
    """Return the result with the place of each function that is not seen where it stands, and each
    line with its cell.
    """
    functions = [_placed(function, source) for function in result.functions]
    stands = {
        function.name: function.evidence
        for function in functions
        if function.state == "undefined" and function.evidence
    }
    diagnosis = list(result.diagnosis)
    for index, diagnosed in enumerate(diagnosis):
        if (
            diagnosed.id == INTERFACE and diagnosed.function in stands
        ):  # its name differs in nothing
            title = f"{diagnosed.function} is not there once the file has run."
            diagnosis[index] = diagnosed.model_copy(
                update={"title": title, "hint": stands[diagnosed.function]}
            )
    changes: dict[str, object] = {
        "diagnosis": tuple(diagnosis),
        "note": in_cells(result.note, source),
    }
    for key, rows in (("functions", functions), ("checks", result.checks)):
        changes[key] = tuple(
            r.model_copy(update={"evidence": in_cells(r.evidence, source)}) for r in rows
        )
    return result.model_copy(update=changes)


def _placed(function: FunctionResult, source: AttemptSource) -> FunctionResult:
    changes = {}
    if function.state == "undefined":
        if stands := location_of(source, function.name):
            changes = {"evidence": f"{function.name} {stands}"}
        elif all(line.strip()[:1] in ("", "#") for line in lines_of(source.source)):
            changes = {"state": "unwritten", "near": ""}
    elif function.state == "unwritten" and not function.evidence:
        changes = {"evidence": where_it_is_written(source, function.name)}
    return function.model_copy(update=changes)


def location_of(source: AttemptSource, name: str) -> str:
    """Say where the file has this name and why it is not seen there, as "stands in …"; "" where the
    file has nothing like it.
    """
    definitions = _definitions(source, name)
    if not definitions:
        return _as_text(source, name) or _in_a_cell_that_is_not_run(source, name)
    node, around = next(
        (definition for definition in reversed(definitions) if definition[1] is None),
        definitions[-1],
    )
    if around is not None:
        word = re.sub("Async|Def|Star", "", type(around).__name__).lower()
        inside = f"inside the `{word}` on {_line(source, around)}, which keeps it from being seen"
        return f"stands on {_line(source, node)} {inside}. Move it to the left margin."
    why = "Did something stop above it, or give its name to something else below?"
    return f"stands on {_line(source, node)}, and is no function or class once all has run. {why}"


def where_it_is_written(source: AttemptSource, name: str) -> str:
    """Say where a version stands that has content, of a function whose last definition is a stub;
    "" where none does.
    """
    definitions = _definitions(source, name)[::-1]
    stub = next((node for node, around in definitions if around is None), None)
    written = next(
        (node for node, _ in definitions if stub not in (None, node) and not has_no_content(node)),
        None,
    )
    if written is None or stub is None:
        return ""
    at, last = _line(source, written), _line(source, stub)
    return (
        f"what is written on {at} is not seen, for the stub on {last} counts. Write it in the "
        "stub's place"
    )


def _statements(source: AttemptSource) -> Sequence[ast.stmt]:
    """Return the statements of the file; where a cell is no Python, those of the other cells."""
    if (statements := tree_of(source.source)) or not source.cells:
        return statements
    return [
        ast.increment_lineno(statement, first_line - 1)
        for first_line, text in texts_of_cells(source)
        for statement in read_statements(text)
    ]


def texts_of_cells(source: AttemptSource) -> list[tuple[int, str]]:
    """Return the first line of each cell, and its text."""
    lines = lines_of(source.source)
    ends = pairwise((*source.cells, len(lines) + 1))
    return [(first_line, "\n".join(lines[first_line - 1 : end - 1])) for first_line, end in ends]


def _definitions(source: AttemptSource, name: str) -> list[tuple[ast.stmt, ast.stmt | None]]:
    definitions = list[tuple[ast.stmt, ast.stmt | None]]()
    pending: list[tuple[ast.AST, ast.stmt | None]] = [
        (statement, None) for statement in reversed(_statements(source))
    ]
    while pending:
        node, around = pending.pop()
        if isinstance(node, DEFINITIONS) and node.name == name:
            definitions.append((node, around))
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, _HOLD)]
        pending += [
            (child, node if isinstance(node, ast.stmt) else around) for child in reversed(inner)
        ]
    return definitions


def _as_text(source: AttemptSource, name: str) -> str:
    definition = rf"(?:def|class)[ \t]+{re.escape(name)}\b"
    header = re.compile(rf"^[ \t]*(?:async[ \t]+)?{definition}", re.MULTILINE)
    is_mentioned = re.search(definition, source.source)
    for node in (
        node for statement in _statements(source) if is_mentioned for node in ast.walk(statement)
    ):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and header.search(node.value)
        ):
            at = _line(source, node)
            return (
                f"stands inside the string that begins on {at}: that is text, not code. Take "
                "it out of the quotes."
            )
    for number, (_, text) in enumerate(texts_of_cells(source), 1):
        if header.search(text) and not read_statements(text):
            return f"stands in code cell {number}, which Python cannot read. Mend that cell first."
    for number, text in enumerate(lines_of(source.source), 1):
        if text.lstrip().startswith("#") and header.search(text.lstrip(" \t#")):
            at = proved_line(source, number).place
            return f"is commented out on {at}: take the # away, there and on the lines below."
    return ""


def _in_a_cell_that_is_not_run(source: AttemptSource, name: str) -> str:
    """Say that the name stands in such a cell, if all of that is Python: a lesson's text may hold
    the definition as an example.
    """
    for cell in source.not_run:
        if any(
            isinstance(statement, DEFINITIONS) and statement.name == name
            for statement in read_statements(cell.text)
        ):
            return cell.why
    return ""


def _line(source: AttemptSource, node: ast.AST) -> str:
    return proved_line(source, getattr(node, "lineno", 1)).place
