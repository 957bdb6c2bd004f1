"""Tell where lines and names of an attempt stand, as its student sees them: in a file, or in a cell of a notebook.

A name that is not there once the attempt has run may stand in a string, in a class, below the main guard, in a cell of text.
The text is read, never run, and each part of it is looked at once.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..result import ExerciseResult, FunctionResult, ProvedLine
from .source_text import DEFINITIONS, AttemptSource, lines_of, names_main, read_statements, tree_of
from .unwritten import has_no_content

INTERFACE, LOAD_ERROR = "interface", "load_error"  # ids of misconceptions
_HOLD = (ast.stmt, ast.ExceptHandler, ast.match_case)  # what may hold statements, or is one
_INSIDE = ("function", "class")
_NAMED = re.compile(
    r"\b((?:raised [A-Z]\w+|raised an exception of its own|in the loop|written|the stub's raise) on|come back from) line ([1-9]\d{0,6})\b"
)
_PLACED = re.compile(rf"{_NAMED.pattern}(?: of code cell ([1-9]\d{{0,6}})\b)?")
# Why a name is not seen. at: where it is defined. around, a `word`: what that stands in. last: what comes after.
_WHY = {
    "class": "stands on {at} inside the class on {around}, where it is a method. Move it to the left margin.",
    "function": "stands on {at} inside the function on {around}, and nothing outside of that knows it. Move it to the left margin.",
    "guard": 'stands on {at} below `if __name__ == "__main__":` on {around}, which runs only where you run the file yourself. Move it to the left margin, above that.',
    "block": "stands on {at} inside the `{word}` on {around}, which did not come to it. Move it to the left margin.",
    "decorated": "stands on {at}, and what its decorator makes of it is no function or class. Does the decorator return one?",
    "gone": "stands on {at}, and is not there once all has run. Did something stop above it, or take it away below?",
    "imported": "is imported on {last}, and no function or class comes from there where attempts run. An attempt is one file: write it here.",
    "deleted": "stands on {at}, and is deleted on {last}. Take the `del` out.",
    "replaced": "stands on {at}, and {last} gives its name to something else. Use another name there.",
    "other": "is no function or class: {last} makes something else of that name.",
    "string": "stands inside the string that begins on {at}: that is text, not code. Take it out of the quotes.",
    "cell": "stands in code cell {at}, which Python cannot read. Mend that cell first.",
    "markdown": "stands in a Markdown cell, {at}: that is text, not code. Make it a code cell.",
    "raw": "stands in a raw cell, {at}: that is text, not code. Make it a code cell.",
    "check": "stands in the cell of a visible check, {at}, which is no part of your answer. Write it in a cell of its own.",
    "language": "stands in the cell that begins with %%{word}, {at}, which is not run as Python. Take that first line out.",
    "comment": "is commented out on {at}: take the # away, there and on the lines below.",
}


def proved_line(source: AttemptSource, line: int, edit: str = "") -> ProvedLine:
    """Return a line of the attempt's text; of a notebook, with its place in its cell. Cells are counted from 1, code cells alone."""
    if not source.cells:
        return ProvedLine(line=line, edit=edit)
    cell = bisect_right(source.cells, line)
    first = source.cells[cell - 1] if cell else 1
    return ProvedLine(line=line, cell=cell, line_in_cell=line - first + 1, edit=edit)


def in_cells(text: str, source: AttemptSource) -> str:
    """Return a sentence that names a line of a notebook with its cell, for no student sees the cells joined; of a file, as it is."""
    if not source.cells:
        return text
    return _NAMED.sub(lambda found: f"{found[1]} {proved_line(source, int(found[2])).place}", text)


def named_line(text: str, source: AttemptSource) -> int:
    """Return the line of the attempt's text that a sentence names, whether with its cell or without; 0 where it names none."""
    found = _PLACED.search(text)
    if found is None or int(found[3] or 0) > len(source.cells):
        return 0
    return int(found[2]) + (source.cells[int(found[3]) - 1] - 1 if found[3] else 0)


def told_of_file(result: ExerciseResult, source: AttemptSource) -> ExerciseResult:
    """Return the result with the place of each function that is not seen where it stands, and each line with its cell."""
    functions = [_placed(each, source) for each in result.functions]
    stands = {each.name: each.evidence for each in functions if each.state == "undefined" and each.evidence}
    diagnosis = list(result.diagnosis)
    for index, each in enumerate(diagnosis):
        if each.id == INTERFACE and each.function in stands:  # its name differs in nothing
            title = f"{each.function} is not there once the file has run."
            diagnosis[index] = each.model_copy(update={"title": title, "hint": stands[each.function]})
    changes: dict[str, object] = {"diagnosis": tuple(diagnosis), "note": in_cells(result.note, source)}
    for key, rows in (("functions", functions), ("checks", result.checks)):
        changes[key] = tuple(r.model_copy(update={"evidence": in_cells(r.evidence, source)}) for r in rows)
    return result.model_copy(update=changes)


def _placed(function: FunctionResult, source: AttemptSource) -> FunctionResult:
    changes = {}
    if function.state == "undefined":
        if stands := where_it_stands(source, function.name):
            changes = {"evidence": f"{function.name} {stands}"}
        elif all(line.strip()[:1] in ("", "#") for line in lines_of(source.source)):
            changes = {"state": "unwritten", "near": ""}
    elif function.state == "unwritten" and not function.evidence:
        changes = {"evidence": where_it_is_written(source, function.name)}
    return function.model_copy(update=changes)


def where_it_stands(source: AttemptSource, name: str) -> str:
    """Say where the file has this name and why it is not seen there, as "stands in …"; "" where the file has nothing like it."""
    statements = _statements(source)
    places = [place for place in _places(statements) if name in _names_of(place.node)]
    outside = [place for place in places if place.kind not in _INSIDE]
    defined = [place for place in outside or places if isinstance(place.node, DEFINITIONS)]
    if not outside and not defined:
        return _as_text(source, statements, name)
    last = outside[-1] if outside else defined[0]  # the last statement about it decides
    at = defined[-1] if outside and defined else last
    if isinstance(last.node, ast.Import | ast.ImportFrom):
        why = "imported"
    elif not isinstance(at.node, DEFINITIONS):
        why = "other"
    elif at is not last:
        why = "deleted" if isinstance(last.node, ast.Delete) else "replaced"
    else:
        why = at.kind or ("decorated" if at.node.decorator_list else "gone")
    lines = {"at": at.node, "around": at.around, "last": last.node}
    return _WHY[why].format(word=_word(at.around), **{key: _line(source, node) for key, node in lines.items()})


def where_it_is_written(source: AttemptSource, name: str) -> str:
    """Say where a version stands that has content, of a function whose last definition is a stub; "" where none does."""
    named = (p for p in _places(_statements(source)) if isinstance(p.node, DEFINITIONS) and p.node.name == name)
    places = list(named)[::-1]
    stub = next((p.node for p in places if p.kind in ("", "block")), None)
    written = next((p for p in places if stub not in (None, p.node) and not has_no_content(p.node)), None)
    if written is None:
        return ""
    at, last = _line(source, written.node), _line(source, stub)
    if not written.kind:
        return f"what is written on {at} is replaced by the stub on {last}, for the last one counts. Delete the stub"
    inside = f"on {at} inside the {_word(written.around)} on {_line(source, written.around)}"
    return f"the stub on {last} counts, and what is written {inside} is not seen. Write it in the stub's place"


def _statements(source: AttemptSource) -> Sequence[ast.stmt]:
    """Return the statements of the file; where a cell is no Python, those of the other cells."""
    if (statements := tree_of(source.source)) or not source.cells:
        return statements
    return [ast.increment_lineno(part, first - 1) for first, text in _cells(source) for part in read_statements(text)]


def _cells(source: AttemptSource) -> list[tuple[int, str]]:
    """Return the line at which each cell begins, and its text."""
    lines, ends = lines_of(source.source), (*source.cells[1:], None)
    return [
        (first, "\n".join(lines[first - 1 : end and end - 1])) for first, end in zip(source.cells, ends, strict=False)
    ]


class _Place(NamedTuple):
    """A statement, and what it stands in: the innermost function, class or main guard, else the innermost `if`, loop or the like."""

    node: ast.AST
    around: ast.stmt | None = None
    kind: str = ""  # of that: "function", "class", "guard" or "block"


def _places(statements: Sequence[ast.stmt]) -> Iterator[_Place]:
    """Yield every statement, in the order of the text."""
    left = [_Place(part) for part in reversed(statements)]
    while left:
        place = node, around, kind = left.pop()
        is_definition = isinstance(node, DEFINITIONS)
        if isinstance(node, ast.stmt):
            yield place
            if is_definition or kind in ("", "block"):
                is_guard = isinstance(node, ast.If) and names_main(node.test)
                around, kind = node, _word(node) if is_definition else "guard" if is_guard else "block"
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, _HOLD)]
        left += [_Place(each, around, kind) for each in reversed(inner)]


def _names_of(node: ast.AST) -> set[str]:
    """Return the names that this statement gives something to, or takes away; not those within a block."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    fields = [getattr(node, field, None) for field in ("targets", "target", "items")]
    targets = [each for field in fields for each in (field if isinstance(field, list) else [field]) if each]
    names = (each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
    return {each.id for each in names if not isinstance(each.ctx, ast.Load)}


def _as_text(source: AttemptSource, statements: Sequence[ast.stmt], name: str) -> str:
    """Say where a definition of this name stands that is no code; "" where none does."""
    definition = rf"(?:def|class)[ \t]+{re.escape(name)}\b"
    header = re.compile(rf"^[ \t]*(?:async[ \t]+)?{definition}", re.MULTILINE)
    is_mentioned = re.search(definition, source.source)
    for node in (node for part in statements if is_mentioned for node in ast.walk(part)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and header.search(node.value):
            return _WHY["string"].format(at=_line(source, node))
    for number, (_, text) in enumerate(_cells(source), 1):
        if header.search(text) and not read_statements(text):
            return _WHY["cell"].format(at=number)
    for aside in (aside for aside in source.aside if name in aside.names):
        at = f"below code cell {aside.after}" if aside.after else "above all code cells"
        return _WHY.get(aside.kind, _WHY["language"]).format(at=at, word=aside.kind)
    for number, text in enumerate(lines_of(source.source), 1):
        if text.lstrip().startswith("#") and header.search(text.lstrip(" \t#")):
            return _WHY["comment"].format(at=proved_line(source, number).place)
    return ""


def _line(source: AttemptSource, node: ast.AST | None) -> str:
    return proved_line(source, getattr(node, "lineno", 1)).place


def _word(node: ast.AST | None) -> str:
    return re.sub("Async|Def|Star", "", type(node).__name__).lower()
