"""The statements of an attempt's text, for whoever looks at it without running it."""

from __future__ import annotations

import ast
from functools import lru_cache

from .notebook import CODE_LIMIT
from .parsed import parsed


def read_statements(source: str) -> tuple[ast.stmt, ...]:
    """Return all statements of the module, below its main guard, too.

    Empty if the text is longer than CODE_LIMIT characters, or Python cannot parse it.
    """
    if len(source) > CODE_LIMIT:
        return ()
    try:
        return tuple(parsed(source).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


tree_of = lru_cache(maxsize=2)(read_statements)  # half a dozen look at each text, one after the other


@lru_cache(maxsize=2)
def statements_of(source: str) -> tuple[ast.stmt, ...]:
    """Return the statements of the module, but for those below `if __name__ == "__main__"`. Nobody may change them."""
    return tuple(part for part in tree_of(source) if not (isinstance(part, ast.If) and names_main(part.test)))


def names_main(test: ast.expr) -> bool:
    """Return whether the condition of an `if` is the main guard's."""
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
