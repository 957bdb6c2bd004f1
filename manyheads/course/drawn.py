"""What `course plot` draws of a function beside its values, as an exercise's row in course.yaml says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .shapes import Signature, parse_signature


class Tiled(BaseModel):
    """The arguments of a function that computes its scores tile by tile, by their names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queries: str = Field(min_length=1, description="(…, T, width)")
    keys: str = Field(min_length=1, description="(…, T, width)")
    rows: str = Field(min_length=1, description="how many queries a tile has")
    columns: str = Field(min_length=1, description="how many keys a tile has")


class Drawn(BaseModel):
    """What is drawn of one function."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turned: str | None = Field(
        None,
        min_length=1,
        description="the argument whose pairs of neighbouring channels it turns: by how much is drawn",
    )
    tiles: Tiled | None = Field(
        None, description="what its tiles are made of: in which order it visits them is drawn, and the running maximum"
    )

    @model_validator(mode="after")
    def _says_something(self) -> Drawn:
        if self.turned is None and self.tiles is None:
            raise ValueError("plot: say what is drawn, turned or tiles")
        return self


def refuse_undrawable(drawn: Mapping[str, Drawn], shapes: Mapping[str, str | tuple[str, ...]]) -> None:
    """Raise ValueError for a function that has no shapes, or whose shapes do not fit what is to be drawn."""
    for name, each in drawn.items():
        if name not in shapes:
            raise ValueError(f"plot: {name} has no shapes")
        listed = shapes[name]
        for signature in map(parse_signature, (listed,) if isinstance(listed, str) else listed):
            if each.turned is not None:
                _refuse_unturned(name, each.turned, signature)
            if each.tiles is not None:
                _refuse_untiled(name, each.tiles, signature)


def _refuse_unturned(name: str, turned: str, signature: Signature) -> None:
    shape = {p.name: p.shape for p in signature.call}.get(turned)
    if not shape or shape != signature.returns or signature.form is not None:
        raise ValueError(f"plot: {name} should return one tensor of the shape of {turned}")


def _refuse_untiled(name: str, tiles: Tiled, signature: Signature) -> None:
    shapes = {p.name: p.shape for p in signature.call}
    queries, keys = (shapes.get(each) for each in (tiles.queries, tiles.keys))
    if not queries or not keys or len(queries) < 2 or queries != keys:
        raise ValueError(f"plot: {name} should take {tiles.queries} and {tiles.keys}, (…, T, width) both")
    for side in (tiles.rows, tiles.columns):
        if shapes.get(side, ()) is not None:
            raise ValueError(f"plot: {name} should take {side}, a number")
