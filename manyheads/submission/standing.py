"""Where a name stands that an attempt lacks once it has run: in a string, in a class, below the main guard, in a cell of text.

The text is read, never run, and each part of it is looked at once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..result import Diagnosed, ExerciseResult, FunctionResult
from .read import AttemptSource, proved_line, told_in_cells
from .source_text import lines_of
from .unwritten import DEFINITIONS, has_no_content, names_main, read_statements, tree_of

INTERFACE, LOAD_ERROR = "interface", "load_error"  # ids of misconceptions
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INDENTED = "Move it to the left margin"
_HOLDERS = {ast.If: "if", ast.Try: "try", ast.For: "for", ast.While: "while", ast.With: "with", ast.Match: "match"}


@dataclass(frozen=True)
class _Place:
    """A statement that makes, imports or takes away a name.

    within: the function or class that it stands in, if any. block: the innermost `if`, `try`, loop or the like around it; of
    several the main guard, if one of them is it.
    """

    node: ast.stmt
    within: ast.stmt | None = None
    block: ast.stmt | None = None

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, DEFINITIONS)


def told_of_file(result: ExerciseResult, source: AttemptSource) -> ExerciseResult:
    """Return the result with the place of each function that is not seen where it stands, and each line with its cell."""
    functions = tuple(_placed(function, source) for function in result.functions)
    told = {
        function.name: function.evidence
        for function in functions
        if function.state == "undefined" and function.evidence
    }
    changes = {
        "functions": functions,
        "diagnosis": tuple(_not_misnamed(diagnosed, told) for diagnosed in result.diagnosis),
    }
    return told_in_cells(result.model_copy(update=changes), source)


def _placed(function: FunctionResult, source: AttemptSource) -> FunctionResult:
    if function.state == "undefined" and (stands := where_it_stands(source, function.name)):
        return function.model_copy(update={"evidence": f"{function.name} {stands}"})
    if function.state == "undefined" and all(line.strip()[:1] in ("", "#") for line in lines_of(source.source)):
        return function.model_copy(update={"state": "unwritten", "near": ""})
    if function.state == "unwritten" and not function.evidence:
        return function.model_copy(update={"evidence": where_it_is_written(source, function.name)})
    return function


def _not_misnamed(diagnosed: Diagnosed, told: Mapping[str, str]) -> Diagnosed:
    """Return what is said of a name that differs; of one that does not, and is not seen, why that is."""
    if diagnosed.id != INTERFACE or diagnosed.function not in told:
        return diagnosed
    title = f"{diagnosed.function} is not there once the file has run."
    return diagnosed.model_copy(update={"title": title, "hint": told[diagnosed.function]})


def where_it_stands(source: AttemptSource, name: str) -> str:
    """Say where the file has this name and why it is not seen there, as "stands in …"; "" where the file has nothing like it."""
    statements = _statements(source)
    places = [place for place in _places(statements) if name in _names_of(place.node)]
    outside = [place for place in places if place.within is None]
    if outside:
        return _at_the_end(source, outside)
    inside = next((place for place in places if place.is_definition), None)
    return _as_text(source, statements, name) if inside is None else _inside(source, inside)


def where_it_is_written(source: AttemptSource, name: str) -> str:
    """Say where a version stands that has content, of a function whose last definition is a stub; "" where none does."""
    places = [p for p in _places(_statements(source)) if p.is_definition and name in _names_of(p.node)]
    last = next((p.node for p in reversed(places) if p.within is None and not _is_guarded(p)), None)
    for place in reversed(places):
        if last is None or place.node is last or has_no_content(place.node):  # type: ignore[arg-type]
            continue
        written, stub = _line(source, place.node), _line(source, last)
        if place.within is None and place.block is None:
            return f"what is written on {written} is replaced by the stub on {stub}, for the last one counts. Delete the stub"
        around = place.within or place.block
        inside = f"on {written} inside the {_word(around)} on {_line(source, around)}"
        return f"the stub on {stub} counts, and what is written {inside} is not seen. Write it in the stub's place"
    return ""


def _statements(source: AttemptSource) -> Sequence[ast.stmt]:
    """Return the statements of the file; where a cell is no Python, those of the other cells."""
    statements = tree_of(source.source)
    if statements or not source.cells:
        return statements
    found: list[ast.stmt] = []
    for first, text in _cells(source):
        found += (ast.increment_lineno(statement, first - 1) for statement in read_statements(text))
    return found


def _cells(source: AttemptSource) -> Iterator[tuple[int, str]]:
    """Yield the line at which each cell begins, and its text."""
    lines = lines_of(source.source)
    for first, after in zip(source.cells, (*source.cells[1:], len(lines) + 1), strict=True):
        yield first, "\n".join(lines[first - 1 : after - 1])


def _places(statements: Sequence[ast.stmt]) -> Iterator[_Place]:
    """Yield every statement, in the order of the text."""
    left = [_Place(statement) for statement in reversed(statements)]
    while left:
        place = left.pop()
        yield place
        node = place.node
        inner = [
            child
            for field in ("body", "handlers", "orelse", "finalbody", "cases")
            for part in getattr(node, field, ())
            for child in (part.body if isinstance(part, ast.ExceptHandler | ast.match_case) else [part])
        ]
        within = node if isinstance(node, DEFINITIONS) else place.within
        block = place.block if _is_guarded(place) or isinstance(node, DEFINITIONS) else node
        left += [_Place(child, within, block) for child in reversed(inner)]


def _is_guarded(place: _Place) -> bool:
    return isinstance(place.block, ast.If) and names_main(place.block.test)


def _names_of(node: ast.stmt) -> set[str]:
    """Return the names that this statement gives something to, or takes away; not those within a block."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Import():
            return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        case ast.ImportFrom():
            return {alias.asname or alias.name for alias in node.names}
        case ast.Assign() | ast.Delete():
            targets = node.targets
        case ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.AsyncFor():
            targets = [node.target]
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in node.items if item.optional_vars]
        case _:
            return set()
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def _inside(source: AttemptSource, place: _Place) -> str:
    around = f"{_stands(source, place.node)} inside the {_word(place.within)} on {_line(source, place.within)}"
    why = "where it is a method" if isinstance(place.within, ast.ClassDef) else "and nothing outside of that knows it"
    return f"{around}, {why}. {_INDENTED}."


def _at_the_end(source: AttemptSource, places: Sequence[_Place]) -> str:
    """Return what became of a name that the module itself has: the last statement about it decides."""
    last = places[-1]
    where = _line(source, last.node)
    written = next((p for p in reversed(places) if p.is_definition), None)
    if last.is_definition:
        return _not_reached(source, last)
    if isinstance(last.node, ast.Import | ast.ImportFrom):
        return (
            f"is imported on {where}, and no function or class comes from there where attempts run. "
            "An attempt is one file: write it here."
        )
    if isinstance(last.node, ast.Delete):
        before = f"{_stands(source, written.node)}, and is deleted" if written else "is deleted"
        return f"{before} on {where}. Take the `del` out."
    if written is None:
        return f"is no function or class: {where} makes something else of that name."
    return f"{_stands(source, written.node)}, and {where} gives its name to something else. Use another name there."


def _not_reached(source: AttemptSource, place: _Place) -> str:
    stands = _stands(source, place.node)
    if _is_guarded(place):
        return (
            f'{stands} below `if __name__ == "__main__":` on {_line(source, place.block)}, which runs only where you run the file '
            f"yourself. {_INDENTED}, above that."
        )
    if place.block is not None:
        return f"{stands} inside the `{_word(place.block)}` on {_line(source, place.block)}, which did not come to it. {_INDENTED}."
    if place.node.decorator_list:  # type: ignore[attr-defined]
        return f"{stands}, and what its decorator makes of it is no function or class. Does the decorator return one?"
    return f"{stands}, and is not there once all has run. Did something stop above it, or take it away below?"


def _as_text(source: AttemptSource, statements: Sequence[ast.stmt], name: str) -> str:
    """Return where a definition of this name stands that is no code; "" where none does."""
    header = re.compile(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(name)}\b", re.MULTILINE)
    is_mentioned = re.search(rf"(?:def|class)[ \t]+{re.escape(name)}\b", source.source)
    for node in (node for statement in statements if is_mentioned for node in ast.walk(statement)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and header.search(node.value):
            return (
                f"stands inside the string that begins on {_line(source, node)}: that is text, not code. "
                "Take it out of the quotes."
            )
    for number, (_, text) in enumerate(_cells(source) if source.cells else (), 1):
        if header.search(text) and not read_statements(text):
            return f"stands in code cell {number}, which Python cannot read. Mend that cell first."
    for aside in source.aside:
        if name in aside.names:
            return f"stands in {_ASIDES.get(aside.kind, _OTHER_LANGUAGE).format(aside.kind, _after(aside.after))}"
    for number, text in enumerate(lines_of(source.source), 1):
        if text.lstrip().startswith("#") and header.search(text.lstrip(" \t#")):
            line = proved_line(source, number).place
            return f"is commented out on {line}: take the # away, there and on the lines below."
    return ""


_ASIDES = {
    "markdown": "a Markdown cell, {1}: that is text, not code. Make it a code cell.",
    "raw": "a raw cell, {1}: that is text, not code. Make it a code cell.",
    "check": "the cell of a visible check, {1}, which is no part of your answer. Write it in a cell of its own.",
}
_OTHER_LANGUAGE = "the cell that begins with %%{0}, {1}, which is not run as Python. Take that first line out."


def _after(cells: int) -> str:
    return f"below code cell {cells}" if cells else "above all code cells"


def _stands(source: AttemptSource, node: ast.stmt) -> str:
    return f"stands on {_line(source, node)}"


def _line(source: AttemptSource, node: ast.AST | None) -> str:
    return proved_line(source, getattr(node, "lineno", 1)).place


def _word(node: ast.stmt | None) -> str:
    if isinstance(node, DEFINITIONS):
        return "function" if isinstance(node, _FUNCTIONS) else "class"
    return next((word for kind, word in _HOLDERS.items() if isinstance(node, kind)), "block")
