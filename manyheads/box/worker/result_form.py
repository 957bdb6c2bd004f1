"""The form of a result: one tensor, or a structure of tensors and of parts that stay in the box.

The judge chooses the form of each call, never the attempt. The worker reads a result part by part
as the form describes it. So it never walks a structure that the attempt chose, and never sends a
name that the attempt chose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# The index of a part in its form, then the index of a part in that part, and so on.
PartPath = tuple[int, ...]
_MISFIT = re.compile(r"in place of ([0-9]{1,2}): (.+)", re.DOTALL)


@dataclass(frozen=True)
class Form:
    """The structure that a result must have.

    Attributes:
        kind: "tensor" is one tensor, number or None. "opaque" is any value: it can be passed to a
            later call, and nothing inspects it. "tuple" is a tuple or a list with parts.
        names: the names of the parts, or empty if they have no names.
        parts: the forms of the parts.
    """

    kind: Literal["tensor", "opaque", "tuple"] = "tensor"
    names: tuple[str, ...] = ()
    parts: tuple[Form, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether the form has no parts. A reply has one output for each leaf."""
        return self.kind != "tuple"

    @property
    def count(self) -> int:
        """The number of leaves."""
        return 1 if self.is_leaf else sum(subform.count for subform in self.parts)

    def leaves(self, path: PartPath = ()) -> Iterator[tuple[PartPath, Form]]:
        """Yield the path and the form of every leaf. Each path begins with the argument `path`."""
        if self.is_leaf:
            yield path, self
        for index, subform in enumerate(self.parts):
            yield from subform.leaves((*path, index))

    def part_at(self, path: PartPath) -> Form:
        """Return the form of the part at this path. Raises IndexError if there is none."""
        return self if not path else self.parts[path[0]].part_at(path[1:])

    def index_of(self, key: int | str) -> int:
        """Return the index of the part with this name or index.

        Raises IndexError for an unknown index, KeyError for an unknown name.
        """
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(
                    f"there is no part {key!r}: the parts are "
                    f"{', '.join(self.names) or 'without names'}"
                )
            return self.names.index(key)
        return range(len(self.parts))[key]

    def label(self, path: PartPath, root_label: str = "the output") -> str:
        """Return the name of a part in messages to students: "stats.mean", "the output[1]"."""
        form, label = self, root_label
        for index in path:
            name = form.names[index] if form.names else ""
            if not name:
                label = f"{label}[{index}]"
            else:
                label = name if label == root_label else f"{label}.{name}"
            form = form.parts[index]
        return label


OPAQUE = "(opaque)"  # the kind of an output without a description; no type has this name
ONE = Form()  # one tensor: the default if course.yaml gives no other form for a function


def misfit(depth: int, came: str) -> str:
    """Return the kind of an output that is missing because the result has another structure.

    Args:
        depth: the length of the path at which the structure differs.
        came: the type that the result has there.
    """
    return f"in place of {depth}: {came}"


def read_misfit(output_kind: str) -> tuple[int, str] | None:
    """Return the arguments with which `misfit` made this kind, or None if it did not make it."""
    match = _MISFIT.fullmatch(output_kind)
    return None if match is None else (int(match[1]), match[2])
