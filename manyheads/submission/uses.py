"""Which of an attempt's own functions and classes each of them uses, read from its text."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from .statements import statements_of

_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@lru_cache(maxsize=2)  # several look at each text, one after the other
def named_in(source: str) -> Mapping[str, frozenset[str]]:
    """For each function and class at the top of the file, those there that it names itself."""
    definitions = {each.name: each for each in statements_of(source) if isinstance(each, _DEFINITIONS)}
    if len(definitions) == 1:
        return dict.fromkeys(definitions, frozenset())
    return {
        name: frozenset({n.id for n in ast.walk(each) if isinstance(n, ast.Name)} & definitions.keys())
        for name, each in definitions.items()
    }


def uses(source: str, name: str) -> frozenset[str]:
    """The others that this function or class names, or that these name in turn.

    Of one at a time: a file of 4,900 functions, each of which names the next, has 12 million pairs.
    """
    named = named_in(source)
    found: set[str] = set()
    left = {name} & named.keys()
    while left:
        reached = set[str]().union(*(named[each] for each in left))
        left = reached - found
        found |= reached
    return frozenset(found - {name})
