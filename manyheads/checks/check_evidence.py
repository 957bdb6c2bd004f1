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

_SIZE_SHOWN, _AXES_SHOWN = 100_000, 8


@dataclass(frozen=True)
class Number:
    """A real number that depends on the answer, such as a factor.

    Attributes:
        value: the number.
        digits: as many significant digits are shown.
    """

    value: float
    digits: int = 4

    def __str__(self) -> str:
        return f"{self.value:.{self.digits}g}"


# A size, count or position; a shape or a position in a tensor; a factor; or a text, in which
# numbers are looked for, because it may quote some.
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
        """Return the sentence with each value as `show` writes it."""
        return self._sentence.format(*map(show, self._values))


def in_full(value: Value) -> str:
    """Return the value as the student's own machine shows it."""
    return shape_text(value) if isinstance(value, tuple) else str(value)


def shape_text(
    shape: Sequence[int], show: Callable[[int], str] = str, max_axes: int = _AXES_SHOWN
) -> str:
    """Return the shape as Python writes it.

    Sizes and numbers of axes that are larger than in any check are cut, because a student chose
    them.

    Args:
        shape: the shape.
        show: writes a size that is not cut.
        max_axes: the most axes that are shown.
    """
    max_axes = min(max_axes, _AXES_SHOWN)
    sizes = [show(size) if size <= _SIZE_SHOWN else "…" for size in shape[:max_axes]]
    sizes += ["…"] * (len(shape) > max_axes)
    return f"({', '.join(sizes)}{',' if len(shape) == 1 else ''})"
