"""What a call is asked to return: one tensor, or a structure of tensors and of parts that stay in
the box.

A form is the judge's, never the attempt's: a result is read by it, part for part, so that no
structure of an attempt's own is walked, and no name of its own is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

PartPath = tuple[
    int, ...
]  # the place of a part in its form, then the place of a part in that part, …
_MISFIT = re.compile(r"in place of ([0-9]{1,2}): (.+)", re.DOTALL)


@dataclass(frozen=True)
class Form:
    """kind.

    "tensor" is one tensor, number or None; "opaque" is whatever the attempt likes: it can be handed
    to a later call, and nobody looks at it. "tuple" has parts, and a list will do. names: of the
    parts; empty where they have none.
    """

    kind: Literal["tensor", "opaque", "tuple"] = "tensor"
    names: tuple[str, ...] = ()
    parts: tuple[Form, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether it has no parts: for each leaf there is one output."""
        return self.kind != "tuple"

    @property
    def count(self) -> int:
        """How many leaves it has."""
        return 1 if self.is_leaf else sum(subform.count for subform in self.parts)

    def leaves(self, path: PartPath = ()) -> Iterator[tuple[PartPath, Form]]:
        """Yield every leaf, with its path."""
        if self.is_leaf:
            yield path, self
        for index, subform in enumerate(self.parts):
            yield from subform.leaves((*path, index))

    def at(self, path: PartPath) -> Form:
        """Return the form of the part at this path."""
        return self if not path else self.parts[path[0]].at(path[1:])

    def index_of(self, key: int | str) -> int:
        """Return the place of the part with this name or index.

        Raises IndexError for an index, KeyError for a name.
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
        """Return what a student calls this part: "stats.mean", "the output[1]"."""
        form, label = self, root_label
        for index in path:
            name = form.names[index] if form.names else ""
            label = (
                f"{label}[{index}]"
                if not name
                else name
                if label == root_label
                else f"{label}.{name}"
            )
            form = form.parts[index]
        return label


OPAQUE = "(opaque)"  # the kind of an output that says nothing: no type can be called so
ONE = Form()  # one tensor: what every function returns of which course.yaml says nothing else


def misfit(depth: int, came: str) -> str:
    """Return the kind of an output that is missing, for `came` stands in place of the structure at
    this depth of its path.
    """
    return f"in place of {depth}: {came}"


def read_misfit(output_kind: str) -> tuple[int, str] | None:
    """Return the depth and what came; None where the kind says no such thing."""
    match = _MISFIT.fullmatch(output_kind)
    return None if match is None else (int(match[1]), match[2])
