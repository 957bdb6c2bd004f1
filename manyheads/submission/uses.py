"""Which of an attempt's own functions and classes each of them uses, read from its text."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from .statements import statements_of

_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@lru_cache(maxsize=2)  # several look at each text, one after the other
def uses(source: str) -> Mapping[str, frozenset[str]]:
    """For each function and class at the top of the file, the others there that it names, or that these name in turn."""
    definitions = {each.name: each for each in statements_of(source) if isinstance(each, _DEFINITIONS)}
    if len(definitions) == 1:
        return dict.fromkeys(definitions, frozenset())
    named = {
        name: {n.id for n in ast.walk(each) if isinstance(n, ast.Name)} & definitions.keys()
        for name, each in definitions.items()
    }
    return {name: frozenset(_reached(name, named) - {name}) for name in definitions}


def _reached(start: str, named: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = {start}
    while left:
        reached = set[str]().union(*(named[name] for name in left))
        left = reached - found
        found |= reached
    return found
