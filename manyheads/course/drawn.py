"""What `course plot` draws of a function beside its values, as an exercise's row in course.yaml says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from .shapes import parse_signature


class Drawn(BaseModel):
    """What is drawn of one function."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turned: str = Field(
        min_length=1, description="the argument whose pairs of neighbouring channels it turns: by how much is drawn"
    )


def refuse_undrawable(drawn: Mapping[str, Drawn], shapes: Mapping[str, str | tuple[str, ...]]) -> None:
    """Raise ValueError for a function that has no shapes, or whose answer has not the shape of the argument."""
    for name, each in drawn.items():
        if name not in shapes:
            raise ValueError(f"plot: {name} has no shapes")
        listed = shapes[name]
        for signature in map(parse_signature, (listed,) if isinstance(listed, str) else listed):
            shape = {p.name: p.shape for p in signature.call}.get(each.turned)
            if not shape or shape != signature.returns or signature.form is not None:
                raise ValueError(f"plot: {name} should return one tensor of the shape of {each.turned}")
