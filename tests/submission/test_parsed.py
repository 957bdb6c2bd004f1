"""The fault of Python 3.11 that a second try mends, played by a parser that has it once."""

from __future__ import annotations

import ast

import pytest

from manyheads.submission import source_text as place
from manyheads.submission.source_text import read_statements


def test_who_loses_a_race_of_two_parsers_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, faults = ast.parse, [SystemError("AST constructor recursion depth mismatch (before=147, after=86)")]

    def once_wrong(source: str) -> ast.Module:
        if faults:
            raise faults.pop()
        return parse(source)

    monkeypatch.setattr(place.ast, "parse", once_wrong)
    assert [ast.unparse(part) for part in read_statements("x = 1")] == ["x = 1"]
    assert not faults
