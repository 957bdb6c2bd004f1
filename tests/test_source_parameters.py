"""A function that works on an attempt's code takes a Source, so that the code is parsed once."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1] / "manyheads"
# the worker receives source code as text, and must not import manyheads.submission
WORKER = ENGINE / "box" / "worker"
ADVICE = (
    "for an attempt's code, take a Source (manyheads/submission/source.py), which is parsed once. "
    "Name another text after what it is: solution, reference_text, notebook_json."
)


def lines_with_bare_source(text: str) -> Iterator[int]:
    """Yield the line of each parameter that is named `source` and annotated with `str`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.arg) and node.arg == "source" and node.annotation:
            words = re.findall(r"\w+", ast.unparse(node.annotation))
            yield from [node.lineno] * ("str" in words)


def test_no_function_takes_source_code_as_a_plain_string() -> None:
    paths = [
        path
        for path in sorted(ENGINE.rglob("*.py"))
        if WORKER not in path.parents and "templates" not in path.parts
    ]
    assert len(paths) > 100  # otherwise the search for modules is broken
    sentences = [
        f"{path.relative_to(ENGINE.parent)}:{line}: {ADVICE}"
        for path in paths
        for line in lines_with_bare_source(path.read_text(encoding="utf-8"))
    ]
    if sentences:
        pytest.fail("\n".join(sentences), pytrace=False)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("class A:\n    def f(self, *, source: str = ''): ...", [2]),
        ("async def f(source: str | None): ...", [1]),
        ("def f(source: Source, cell_text: str): ...", []),
        ("class Bind:\n    source: str", []),
    ],
)
def test_parameters_named_source_with_type_str_are_detected(text: str, lines: list[int]) -> None:
    assert [*lines_with_bare_source(text)] == lines
