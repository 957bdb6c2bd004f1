"""The statements of an attempt's text, for whoever looks at it without running it."""

from __future__ import annotations

import ast
from functools import lru_cache

from .notebook import CODE_LIMIT
from .parsed import parsed


@lru_cache(maxsize=2)  # half a dozen look at each text, one after the other
def statements_of(source: str) -> tuple[ast.stmt, ...]:
    """The statements of the module, but for those below `if __name__ == "__main__"`. Nobody may change them.

    Empty if the text is longer than CODE_LIMIT characters, or Python cannot parse it.
    """
    if len(source) > CODE_LIMIT:
        return ()
    try:
        statements = parsed(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(part for part in statements if not (isinstance(part, ast.If) and _names_main(part.test)))


def _names_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
