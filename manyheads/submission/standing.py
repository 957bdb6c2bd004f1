"""Tell where lines and names of an attempt stand, as its student sees them: in a file, or in a cell
of a notebook.

A name that is not there once the attempt has run may stand in a string, in a class, below the main
guard, in a cell of text. The text is read, never run, and each part of it is looked at once.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from ..result import ExerciseResult, FunctionResult, ProvedLine
from .source_text import DEFINITIONS, AttemptSource, lines_of, read_statements, tree_of
from .unwritten import has_no_content

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
