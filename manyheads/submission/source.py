"""A student's text as Python reads it: encoding, lines, digest, statements, and locations in it.

A text is parsed only up to a limit of length and of depth, and is never run. The module also
decides whether an attempt or one of its functions is still as empty as the stub. It describes the
location of a line or of a name, in a file or in a cell of a notebook.
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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..result import ProvedLine

if TYPE_CHECKING:
    from ..box.worker.messages import Load

# characters without comments: parsing needs about a thousand bytes of memory for each
CODE_LIMIT = 200_000
# Levels of the syntax tree, about ten times as many as in any attempt that we have seen. Python's
# own limit depends on its version and on the stack. With this one, a recursive walk can make three
# calls for each level.
DEEPEST = 200
# Comprehensions inside each other. The compiler of Python 3.13 crashes at 24.
DEEPEST_COMPREHENSIONS = 10
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
TRIES = 3  # parses of one text; see `_parse_result`
# the exceptions that Python raises for a text that it cannot parse
TEXT_ERRORS = ("SyntaxError", "IndentationError", "TabError")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Encodings that a coding line may name: tables of letters. Others are slow (punycode), or hide the
# text (unicode_escape).
_TABLES = re.compile(
    r"iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gbk|gb2312|gb18030|big5\w*|shift_jis\w*|euc_\w+|tis-620"
)


class CellNotRun(NamedTuple):
    """A cell of a notebook whose text no kernel runs as Python.

    Attributes:
        source: the text of the cell.
        why: the end of a sentence that begins with the name of a function in the cell.
    """

    source: Source
    why: str


class LeftOver(NamedTuple):
    """A stub's `raise` in a function that has other code, and whether it is below that code."""

    line: int
    is_below: bool


class _FunctionSpan(NamedTuple):
    """The lines of a function, and the first line of its content: infinity if it has none."""

    first_line: int
    last_line: int
    content_line: float


class _Parsed(NamedTuple):
    """The statements of a text, and Python's message about a syntax error, or ""."""

    statements: tuple[ast.stmt, ...] = ()
    message: str = ""


@dataclass(frozen=True)
class Source:
    """The text of a student's attempt at one exercise, with its statements and definitions.

    The text is parsed once, when it is first needed. So a function that works on the code of an
    attempt takes a Source. A stub, an edited attempt and a single cell are also held as a Source.

    Attributes:
        name: the name of the file.
        text: the text; empty if there is a problem.
        problem: one sentence with the reason why the file cannot be an attempt, or "".
        missing: whether there is no file.
        note: a message to the student about the choice of the file.
        cells: for a notebook, the first line of each cell in `text`.
        skipped: the numbers of the parts that ended the process in which they ran, and are
            therefore not run again.
        not_run: for a notebook, the cells with definitions that Jupyter does not run as Python.
        from_kernel: whether the text holds only the definitions of a running notebook. A function
            that is missing may then be in a cell that has not run.
    """

    name: str
    text: str = ""
    problem: str = ""
    missing: bool = False
    note: str = ""
    cells: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    not_run: tuple[CellNotRun, ...] = ()
    from_kernel: bool = False

    def load(self) -> Load:
        """Return the message that tells a box to load this text."""
        from ..box.worker.messages import Load  # which imports torch

        return Load(self.text, self.name, self.cells, self.skipped)

    @property
    def digest(self) -> str:
        """A hash of the fields on which the verdict depends.

        They are `name`, `text`, `problem`, `missing` and `cells`.
        """
        fields = (self.name, self.text, self.problem, str(self.missing), *map(str, self.cells))
        return hashlib.sha256("\0".join(fields).encode()).hexdigest()

    @cached_property
    def code_digest(self) -> str:
        """A hash of the code without comment lines, blank lines, and blanks at the ends of lines.

        A script and a notebook with the same code have the same hash.
        """
        lines = (line.rstrip() for line in self.text.splitlines())
        code = "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
        return hashlib.sha256(code.encode()).hexdigest()

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the text as Python counts them (`lines_of`)."""
        return tuple(lines_of(self.text))

    @cached_property
    def cell_sources(self) -> tuple[Source, ...]:
        """Each cell of a notebook, below blank lines, so that line numbers stay the same.

        A script has none.
        """
        cells = list[Source]()
        for first_line, end in pairwise((*self.cells, len(self.lines) + 1)):
            cell_text = "\n".join(self.lines[first_line - 1 : end - 1])
            cells.append(Source(self.name, "\n" * (first_line - 1) + cell_text))
        return tuple(cells)

    def cell_around(self, line: int) -> Source:
        """Return the cell around a line, with the same line numbers.

        Return a script as a whole. For a line above all cells, return the first cell.
        """
        if not self.cells:
            return self
        begun_cells = bisect_right(self.cells, line)
        return self.cell_sources[max(begun_cells - 1, 0)]

    @cached_property
    def _parse_result(self) -> _Parsed:
        """The statements of the text, and Python's message about a syntax error.

        There are no statements if the code has more than CODE_LIMIT characters without comments, if
        Python cannot parse it, or if it is nested too deeply (`_is_too_deep`). The attempt is then
        graded only by its replies. Before 3.11.8, a parse in one thread can end with a SystemError
        if another thread parses at the same time (https://github.com/python/cpython/issues/106905).
        So the text is parsed up to TRIES times.
        """
        if (
            len(self.text)
            > CODE_LIMIT
            < sum(len(line) for line in self.text.split("\n") if not line.startswith("#"))
        ):
            return _Parsed()
        for _ in range(TRIES):
            try:
                statements = ast.parse(self.text).body
                return _Parsed(() if _is_too_deep(statements) else tuple(statements))
            except SystemError:
                continue
            except SyntaxError as error:
                return _Parsed(message=error.msg)
            except (ValueError, RecursionError, MemoryError):
                break
        return _Parsed()

    @property
    def tree(self) -> tuple[ast.stmt, ...]:
        """All statements of the file, also below its main guard; () if they cannot be read.

        Every analysis of a student's text uses this tree, so none has to walk one that is too deep.
        All readers share the nodes, so none may change them.
        """
        return self._parse_result.statements

    def python_message(self, line: int = 0) -> str:
        """Return Python's message if it cannot compile the text; otherwise "".

        If the text has more than CODE_LIMIT characters, return "". The message depends only on the
        text, so it cannot contain anything that a judge hides.

        Args:
            line: If the whole text can be parsed, only the statement at this line is compiled,
                which finds a `return` outside a function. 0 compiles none.
        """
        if len(self.text) > CODE_LIMIT:
            return ""
        line_statements = [
            statement
            for statement in self.tree
            if statement.lineno <= line <= (statement.end_lineno or 0)
        ]
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(ast.Module(line_statements, []), "attempt", "exec", dont_inherit=True)
        except SyntaxError as error:
            return error.msg
        except (ValueError, RecursionError, MemoryError, SystemError):
            return ""
        return self._parse_result.message

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """The statements of the file, without those below `if __name__ == "__main__"`."""
        return tuple(statement for statement in self.tree if not _is_main_guard(statement))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of `statements`."""
        return tuple(node for statement in self.statements for node in ast.walk(statement))

    @cached_property
    def definitions(self) -> Mapping[str, ast.stmt]:
        """The functions and classes at the top level, by name.

        If a name has several definitions, the last one counts.
        """
        return {
            statement.name: statement
            for statement in self.statements
            if isinstance(statement, DEFINITIONS)
        }

    def definition(self, name: str) -> ast.stmt:
        """Return the function or class with this name at the top level.

        If there is none, return a `pass` statement.
        """
        return self.definitions.get(name, ast.Pass())

    @cached_property
    def is_unwritten(self) -> bool:
        """Whether no function or class has any content, or the text has only comments.

        `pass`, a docstring, `...`, `return None`, `raise NotImplementedError` and
        `super().__init__()` are no content. Statements below `if __name__ == "__main__"` do not
        count. A text that assigns to an attribute, such as `self.x`, is written. So is a text with
        code but without any function or class, and a text that Python cannot parse.
        """
        lines = self.text.splitlines(keepends=True)
        if all(line.isspace() or line.lstrip().startswith("#") for line in lines):
            return True
        stores = any(
            isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            for node in self.nodes
        )
        return (
            any(isinstance(node, DEFINITIONS) for node in self.nodes)
            and not stores
            and all(map(_is_empty, self.nodes))
        )

    @cached_property
    def unwritten_names(self) -> frozenset[str]:
        """The names of functions and classes at the top level that have no content."""
        return frozenset(
            name for name, definition in self.definitions.items() if has_no_content(definition)
        )

    def unwritten_methods(self, name: str) -> list[str]:
        """Return the names of the methods of this class that have no content.

        Return [] if there is no such class, or if none of its methods has content.
        """
        definition = self.definition(name)
        methods = (
            [n for n in definition.body if isinstance(n, ast.FunctionDef)]
            if isinstance(definition, ast.ClassDef)
            else []
        )
        empty = [method.name for method in methods if has_no_content(method)]
        return empty if len(empty) < len(methods) else []

    def left_over_raise(self, name: str) -> LeftOver | None:
        """Return the stub's `raise` in a function, or in a method of a class, that has other code.

        Return the first one, or None if there is none.
        """
        nodes = ast.walk(self.definition(name))
        for body in (node.body for node in nodes if isinstance(node, ast.FunctionDef)):
            stub = next((i for i, statement in enumerate(body) if _is_stub(statement)), None)
            if stub is not None and not all(map(_does_nothing, body)):
                is_below = not all(map(_does_nothing, body[:stub]))
                return LeftOver(body[stub].lineno, is_below)
        return None

    def is_beside_code(self, line: int) -> bool:
        """Return whether the innermost function around a line has content above that line.

        If no function is around the line, return False.
        """
        around = [
            span for span in self._function_spans if span.first_line <= line <= span.last_line
        ]
        return bool(around) and line > max(around).content_line

    @cached_property
    def _function_spans(self) -> tuple[_FunctionSpan, ...]:
        spans = list[_FunctionSpan]()
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef):
                written = (stmt.lineno for stmt in node.body if not _does_nothing(stmt))
                content = math.inf if has_no_content(node) else min(written, default=node.lineno)
                spans.append(_FunctionSpan(node.lineno, node.end_lineno or 0, content))
        return tuple(spans)

    @cached_property
    def names_used(self) -> Mapping[str, frozenset[str]]:
        """For each function and class at the top level, those at the top level that it names."""
        definitions = self.definitions
        if len(definitions) == 1:  # it can name no other, however long it is
            return dict.fromkeys(definitions, frozenset())
        used_names = {}
        for name, definition in definitions.items():
            names = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name)}
            used_names[name] = frozenset(names & definitions.keys())
        return used_names

    def uses(self, *names: str) -> frozenset[str]:
        """Return the other functions and classes at the top level that these use.

        A function counts also if it is used indirectly.
        """
        reached = set[str]()
        pending = [*self.names_used.keys() & set(names)]
        while pending:
            new = self.names_used[pending.pop()] - reached
            reached |= new
            pending += new
        return frozenset(reached.difference(names))


NO_TEXT = Source("", missing=True)  # for an attempt whose text is not available


def with_fields(source: Source, **fields: Any) -> Source:
    """Return a copy of `source` with these fields. The same text is not parsed again."""
    copy = replace(source, **fields)
    if copy.text == source.text and "_parse_result" in vars(source):
        vars(copy)["_parse_result"] = vars(source)["_parse_result"]
    return copy


class Unreadable(Exception):
    """The file cannot be an attempt. The message is a sentence for the student."""


def with_newlines(text: str) -> str:
    """Return the text with line ends of Unix instead of those of Windows and old Macs."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    r"""Return the lines as Python counts them, without "\n" at their ends.

    `splitlines` would also end a line at a form feed, or at U+2028 in a comment.
    """
    return text.removesuffix("\n").split("\n")


def printable(text: str) -> str:
    """Return the text with a blank for each character that is not printable.

    Such a character, also a newline, could move the cursor of a terminal, or reverse a line.
    """
    return "".join(c if c.isprintable() else " " for c in text)


def decode_text(data: bytes) -> str:
    """Return the text of a file.

    If the file has a coding line with one of the encodings `_TABLES`, and the bytes fit it, this
    encoding is used. Otherwise the text is read as UTF-8, with or without its mark.

    Raises:
        UnicodeDecodeError: the text must be UTF-8, and is not.
    """
    with suppress(SyntaxError, LookupError, UnicodeDecodeError):
        name = codecs.lookup(tokenize.detect_encoding(io.BytesIO(data).readline)[0]).name
        if _TABLES.fullmatch(name):
            return data.decode(name)
    return data.decode("utf-8-sig")


def _is_too_deep(statements: list[ast.stmt]) -> bool:
    """Return whether nodes are nested deeper than DEEPEST, or comprehensions than their limit.

    The walk has no recursion.
    """
    # the nodes of a level, each with the number of comprehensions around it
    level: list[tuple[ast.AST, int]] = [(statement, 0) for statement in statements]
    for _ in range(DEEPEST):
        level = [
            (child, around + isinstance(node, COMPREHENSIONS))
            for node, around in level
            for child in ast.iter_child_nodes(node)
        ]
        if not level:
            return False
        if any(around > DEEPEST_COMPREHENSIONS for _, around in level):
            return True
    return True


def _is_main_guard(statement: ast.stmt) -> bool:
    """Return whether a statement is an `if` with `__name__` in its condition."""
    if not isinstance(statement, ast.If):
        return False
    nodes = ast.walk(statement.test)
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in nodes)


UNTOUCHED = "stub_untouched"  # the misconception's id


def has_no_content(definition: ast.AST) -> bool:
    """Return whether a function or class, with all definitions in it, is as empty as a stub.

    A lambda in it, a decorator, or a base class other than Module is content.
    """
    # The first node is the definition itself, and decides most cases.
    return all(map(_is_empty, ast.walk(definition)))


def _is_empty(node: ast.AST) -> bool:
    """Return whether a definition has no content; True for any other node but a lambda."""
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
_HOLD = (
    ast.stmt,
    ast.ExceptHandler,
    ast.match_case,
)  # statements, and other nodes that contain statements
_NAMED = re.compile(
    r"\b((?:raised [A-Z]\w+|raised an exception of its own|in the loop|written|the stub's raise) "
    r"on|come back from) line ([1-9]\d{0,6})\b"
)
# Also matches sentences about code that is not visible where it stands. These name the cell from
# the beginning.
_OR_STANDS = _NAMED.pattern.replace("|written|", "|written|it stands|that begins|")
_LINE_IN_MESSAGE = re.compile(rf"{_OR_STANDS}(?: of code cell ([1-9]\d{{0,6}})\b)?")


def proved_line(source: Source, line: int, edit: str = "") -> ProvedLine:
    """Return a line of the attempt's text; for a notebook, with the cell and the line in the cell.

    Only code cells that are not blank are counted, from 1.

    Args:
        source: the attempt.
        line: the line, from 1.
        edit: the change of the line that proves it wrong, or "".
    """
    if not source.cells:
        return ProvedLine(line=line, edit=edit)
    cell = bisect_right(source.cells, line)
    first_line = source.cells[cell - 1] if cell else 1
    return ProvedLine(line=line, cell=cell, line_in_cell=line - first_line + 1, edit=edit)


def in_cells(sentence: str, source: Source) -> str:
    """Return the sentence with the cell, and the line in the cell, for each line that it names.

    A student never sees the cells joined into one text. For a script, and for a line in other words
    than `_NAMED` has, the sentence is unchanged.
    """
    if not source.cells:
        return sentence
    return _NAMED.sub(
        lambda match: f"{match[1]} {proved_line(source, int(match[2])).place}", sentence
    )


def named_line(sentence: str, source: Source) -> int:
    """Return the line of the attempt's text that a sentence names, with or without a cell.

    Return 0 if the sentence names no line, or a cell that does not exist.
    """
    match = _LINE_IN_MESSAGE.search(sentence)
    if match is None or int(match[3] or 0) > len(source.cells):
        return 0
    return int(match[2]) + (source.cells[int(match[3]) - 1] - 1 if match[3] else 0)


def location_of(source: Source, name: str) -> str:
    """Return a clause with the location of a name that is not defined once all has run.

    The clause begins with "stands" or "is commented out", and gives the reason and the next step.
    If the file has definitions of the name, the last one at the top level counts, or else the last
    one. If the file has none, the name is looked for in strings, in cells that Python cannot read,
    in comments, and in cells that Jupyter does not run. Return "" if the name is not in the file.
    """
    definitions = _definitions(source, name)
    if not definitions:
        return _definition_outside_code(source, name) or _in_a_cell_that_is_not_run(source, name)
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


def where_it_is_written(source: Source, name: str) -> str:
    """Return a sentence with the line of a function's content, if its last definition is a stub.

    The caller must know that the last definition at the top level is a stub. Return "" if there is
    none, or if no other definition has content. If several have, the last of these counts.
    """
    definitions = _definitions(source, name)[::-1]
    stub = next((node for node, around in definitions if around is None), None)
    written = next(
        (node for node, _ in definitions if stub not in (None, node) and not has_no_content(node)),
        None,
    )
    if written is None or stub is None:
        return ""
    at = _line(source, written)
    stub_line = _line(source, stub)
    return (
        f"what is written on {at} is not seen, for the stub on {stub_line} counts. Write it in the "
        "stub's place"
    )


def _statements(source: Source) -> Sequence[ast.stmt]:
    """Return the statements of the file, or of the cells that Python can parse."""
    if source.tree or not source.cells:
        return source.tree
    return [statement for cell in source.cell_sources for statement in cell.tree]


def _definitions(source: Source, name: str) -> list[tuple[ast.stmt, ast.stmt | None]]:
    """Return all definitions of a name, at any depth, in the order of the file.

    Each has the innermost statement around it, or None at the top level.
    """
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


def _definition_outside_code(source: Source, name: str) -> str:
    """Return a clause about a definition of the name that Python does not read as code, or "".

    Strings, cells that Python cannot parse, and comments are searched in this order, and the first
    such definition counts.
    """
    definition = rf"(?:def|class)[ \t]+{re.escape(name)}\b"
    header = re.compile(rf"^[ \t]*(?:async[ \t]+)?{definition}", re.MULTILINE)
    is_mentioned = re.search(definition, source.text)
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
    cells = zip(source.cells, source.cell_sources, strict=True)
    for number, (first_line, cell) in enumerate(cells, 1):
        # the blank lines above the cell are not searched
        if header.search(cell.text, first_line - 1) and not cell.tree:
            return f"stands in code cell {number}, which Python cannot read. Mend that cell first."
    for number, line in enumerate(source.lines, 1):
        if line.lstrip().startswith("#") and header.search(line.lstrip(" \t#")):
            at = proved_line(source, number).place
            return f"is commented out on {at}: take the # away, there and on the lines below."
    return ""


def _in_a_cell_that_is_not_run(source: Source, name: str) -> str:
    """Return a clause if the name is defined in a cell that Jupyter does not run; otherwise "".

    Python must be able to parse the whole cell, because the text of a lesson may have a definition
    as an example.
    """
    return next((cell.why for cell in source.not_run if name in cell.source.definitions), "")


def _line(source: Source, node: ast.AST) -> str:
    return proved_line(source, getattr(node, "lineno", 1)).place
