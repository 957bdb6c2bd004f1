"""Whether sizes stand in an attempt's text."""

from __future__ import annotations

import ast

from ..submission.unwritten import statements_of

HARD_CODED = "hard_coded_shape"
AXES = 3  # the largest number that is an axis in most texts


def has_written_size(source: str) -> bool:
    """Return whether a text contains an integer that is a size and hardly an axis; True where the text is not at hand."""
    nodes = (node for part in statements_of(source) for node in ast.walk(part))
    return not source or any(isinstance(n, ast.Constant) and type(n.value) is int and n.value > AXES for n in nodes)
