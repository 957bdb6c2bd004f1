"""Evidence: the sentence that says how an attempt fails a check, apart from the numbers in it.

An attempt knows its hidden inputs, and chooses the shape and the numbers of its answer. A report
that repeats them can carry those inputs out. So the numbers are kept apart from the sentence.
The full text contains all numbers. In grading, `redact` (judge/redact_hidden_inputs.py) shows only
numbers that follow from the call. The sentence itself is always shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import LiteralString

_MAX_SIZE_SHOWN, _MAX_AXES_SHOWN = 100_000, 8  # no check has larger sizes, or more axes


@dataclass(frozen=True)
class Number:
    """A real number that depends on the answer, such as a factor.

    Attributes:
        value: the number.
        digits: the number of significant digits that are shown.
    """

    value: float
    digits: int = 4

    def __str__(self) -> str:
        return f"{self.value:.{self.digits}g}"


# A size, count or position; a shape, or an index in a tensor; a factor; or a text, which may quote
# numbers.
Value = int | tuple[int, ...] | Number | str


class Evidence:
    """A sentence with a {} for each value: `Evidence("{} of {} heads are right", right, heads)`.

    The sentence must be written out. In a sentence that is put together, as by an f-string, an
    attempt may have chosen some of the numbers.
    """

    def __init__(self, sentence: LiteralString, *values: Value) -> None:
        self._sentence, self._values = sentence, values

    def __str__(self) -> str:
        return self.render(in_full)

    def render(self, show: Callable[[Value], str]) -> str:
        """Return the sentence with the text that `show` returns for each value."""
        return self._sentence.format(*map(show, self._values))


def in_full(value: Value) -> str:
    """Return the value as the student's own machine shows it."""
    return shape_text(value) if isinstance(value, tuple) else str(value)


def shape_text(
    shape: Sequence[int], show: Callable[[int], str] = str, max_axes: int = _MAX_AXES_SHOWN
) -> str:
    """Return the shape as Python writes it, with "…" for too large sizes and for too many axes.

    A student may have chosen them.

    Args:
        shape: the shape.
        show: returns the text of a size that is not too large.
        max_axes: the most axes that are shown.
    """
    max_axes = min(max_axes, _MAX_AXES_SHOWN)
    sizes = [show(size) if size <= _MAX_SIZE_SHOWN else "…" for size in shape[:max_axes]]
    if len(shape) > max_axes:
        sizes.append("…")
    comma = "," if len(shape) == 1 else ""
    return f"({', '.join(sizes)}{comma})"
