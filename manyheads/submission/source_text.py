"""A student's text as Python reads it: its encoding, its lines, its digest, and its statements
within bounds.
"""

from __future__ import annotations

import ast
import codecs
import hashlib
import io
import re
import tokenize
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

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
