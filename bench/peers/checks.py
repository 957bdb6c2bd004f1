"""The 18 checks, three for each function, a point each: the one list that every grader's form is written from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

NAME = "six_functions"
RIGHT = Path(__file__).with_name(f"{NAME}.py").read_text(encoding="utf-8")
FUNCTIONS = tuple(re.findall(r"^def (\w+)", RIGHT, re.MULTILINE))
WRONG = RIGHT.replace(".tril()", ".triu()").replace("y.transpose(1, 2).reshape", "y.reshape")
WRONG_EARNS = 15  # all but the mask's values, and the merge's values and gradients


class Kind(StrEnum):
    """What a check compares with the right function's answer."""

    SHAPE = "shape"
    DTYPE = "dtype"
    VALUES = "values"
    GRADIENTS = "gradients"  # of all arguments that are tensors
    REFUSED = "refused"  # compares nothing: a ValueError or an assert is wanted, beside an allowed input


@dataclass(frozen=True)
class Check:
    """A function called with random float64 tensors of these shapes, and with these integers."""

    function: str
    kind: Kind
    arguments: tuple[tuple[int, ...] | int, ...]

    @property
    def id(self) -> str:
        """Such as attend_values."""
        return f"{self.function}_{self.kind}"


CHECKS = (
    Check("attention_scores", Kind.SHAPE, ((2, 3, 4, 5), (2, 3, 6, 5))),
    Check("attention_scores", Kind.VALUES, ((3, 7, 5), (3, 4, 5))),
    Check("attention_scores", Kind.GRADIENTS, ((2, 7, 3), (2, 4, 3))),
    Check("attention_weights", Kind.SHAPE, ((2, 3, 4, 5),)),
    Check("attention_weights", Kind.VALUES, ((3, 7, 5),)),
    Check("attention_weights", Kind.GRADIENTS, ((2, 7, 3),)),
    Check("attend", Kind.SHAPE, ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7))),
    Check("attend", Kind.VALUES, ((3, 7, 5), (3, 4, 5), (3, 4, 6))),
    Check("attend", Kind.GRADIENTS, ((2, 7, 3), (2, 4, 3), (2, 4, 5))),
    Check("causal_mask", Kind.SHAPE, (5,)),
    Check("causal_mask", Kind.DTYPE, (6,)),
    Check("causal_mask", Kind.VALUES, (7,)),
    Check("split_heads", Kind.VALUES, ((2, 5, 12), 3)),
    Check("split_heads", Kind.GRADIENTS, ((2, 4, 6), 3)),
    Check("split_heads", Kind.REFUSED, ((2, 5, 7), 3)),
    Check("merge_heads", Kind.SHAPE, ((2, 3, 5, 4),)),
    Check("merge_heads", Kind.VALUES, ((2, 4, 6, 3),)),
    Check("merge_heads", Kind.GRADIENTS, ((2, 3, 4, 5),)),
)
