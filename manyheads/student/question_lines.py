"""Read an attempt's text for questions: the lines that can be asked about, the sizes written out, and edits of one line."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..diagnosis.edit_text import Edit
from ..diagnosis.reached_parts import name_of
from ..submission.source_text import printable
from ..submission.unwritten import DEFINITIONS, tree_of

_OF_AXES = frozenset(
    "transpose permute swapaxes swapdims movedim softmax sum mean cat concat stack size unsqueeze squeeze".split()
)
LONGEST = 120  # characters of a line that can be read in a question


@dataclass(frozen=True)
class ChangedLine:
    """An edit of one line. text: of the whole file after it. line: this line after it."""

    text: str
    number: int
    line: str


def nodes_of(text: str) -> list[ast.AST]:
    """Return the nodes of the definitions in a text."""
    return [node for part in tree_of(text) if isinstance(part, DEFINITIONS) for node in ast.walk(part)]


def sizes_written(nodes: Sequence[ast.AST]) -> frozenset[int]:
    """Return the numbers in a text that may be sizes: those among arguments, but of functions that take axes."""
    calls = [node for node in nodes if isinstance(node, ast.Call) and name_of(node) not in _OF_AXES]
    given = (value for call in calls for value in (*call.args, *(k.value for k in call.keywords)))
    parts = (part for value in given for part in (value.elts if isinstance(value, ast.Tuple | ast.List) else [value]))
    return frozenset(part.value for part in parts if isinstance(part, ast.Constant) and type(part.value) is int)


def leaves_unset(nodes: Sequence[ast.AST]) -> bool:
    """Return whether an edit may leave memory that is not set: its numbers are chance."""
    return any("empty" in name_of(node) for node in nodes if isinstance(node, ast.Call))


def plain_lines(nodes: Sequence[ast.AST]) -> frozenset[int]:
    """Return the lines that are one whole statement, of which a reader can say what its result is."""
    statements = [node for node in nodes if isinstance(node, ast.stmt)]
    starts = [node.lineno for node in statements]
    own = {node.name for node in nodes if isinstance(node, DEFINITIONS)} | set(dir(builtins)) | {"append"}
    return frozenset(
        node.lineno
        for node in statements
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr)
        and node.lineno == node.end_lineno
        and starts.count(node.lineno) == 1
        and all(isinstance(target, ast.Name | ast.Attribute) for target in getattr(node, "targets", ()))
        and not isinstance(getattr(node, "target", None), ast.Subscript)
        and isinstance(node.value, ast.Call | ast.BinOp | ast.UnaryOp | ast.Subscript | ast.Attribute | ast.Compare)
        and not (isinstance(node.value, ast.Call) and name_of(node.value) in own)
        and not any(isinstance(part, ast.Lambda) for part in ast.walk(node))
    )


def changed_line(edit: Edit) -> ChangedLine | None:
    """Return the line that an edit changes; None where it changes several, or none."""
    before, after = edit.before.split("\n"), edit.after.split("\n")
    if len(before) != len(after) or ("self." in edit.after and "self." not in edit.before):
        return None
    places = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    if len(places) != 1:
        return None
    old, new = shown_code(before[places[0]]), shown_code(after[places[0]])
    return ChangedLine(edit.after, places[0] + 1, new) if old != new and len(new) <= LONGEST else None


def shown_code(line: str) -> str:
    """Return a line as it can be shown, without its comment, which may say what is asked."""
    line = line.strip()
    with suppress(tokenize.TokenError, SyntaxError):  # of a line that is not a whole statement
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.type == tokenize.COMMENT:
                line = line[: token.start[1]]
    return printable(line.strip())
