"""Python's own parser, without a fault of Python 3.11."""

from __future__ import annotations

import ast

TRIES = 3


def parsed(source: str) -> ast.Module:
    """The module's tree. Raises what `ast.parse` raises.

    Before 3.11.8, two threads that parse at once (one may be writing a traceback) can end either with a SystemError:
    https://github.com/python/cpython/issues/106905. Asked again, it answers.
    """
    for _ in range(TRIES - 1):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)
