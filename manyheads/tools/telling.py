"""Show the call that an attempt gets wrong: the easiest one to understand tells nothing where it happens to be right."""

from __future__ import annotations

from collections.abc import Callable

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.cast import cast
from .example import Example
from .returned import is_right


def most_telling(example: Example, ask: Callable[[Call], Reply]) -> Example:
    """The example, or the first of those in its place that the attempt does not get right.

    ask: put a call to the attempt; here in float32.
    """
    if not example.instead:
        return example
    wrong = (each for each in (example, *example.instead) if not is_right(each, ask(cast(each.call, "float32"))))
    return next(wrong, example)
