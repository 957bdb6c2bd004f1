"""A Python text, and edits of it at the places that its syntax tree names."""

from __future__ import annotations

import ast
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ..submission.source_text import printable

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict)
SHOWN = 160  # characters of a line in an edit's description


@dataclass(frozen=True)
class Edit:
    """A small change of a text.

    kind: the family that it belongs to. tier: how late it is tried. line: the first line of the text that it changes, 0 where
    it changes nothing.
    """

    kind: str
    tier: int
    line: int
    before: str
    after: str

    @property
    def described(self) -> str:
        """The changed lines before and after, for the instructor."""
        return f"{_changed(self.before, self.after)} → {_changed(self.after, self.before)}"


@dataclass(frozen=True)
class Text:
    """The text of an attempt. Offsets are of its UTF-8 bytes, as the syntax tree counts."""

    source: str

    @cached_property
    def _data(self) -> bytes:
        return self.source.encode()

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self._data.split(b"\n")), initial=0))

    def start(self, node: ast.AST) -> int:
        """Return where the node begins."""
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined, no-any-return]

    def end(self, node: ast.AST) -> int:
        """Return where the node ends."""
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined, no-any-return]

    def of(self, node: ast.AST) -> str:
        """Return the text of the node."""
        return self._data[self.start(node) : self.end(node)].decode()

    def held(self, node: ast.AST) -> str:
        """Return the text of the node, in parentheses where something that is put beside it could take it apart."""
        return self.of(node) if isinstance(node, _ATOMS) else f"({self.of(node)})"

    def edit(self, kind: str, tier: int, *changes: tuple[int, int, str]) -> Edit:
        """Return the edit that puts each text in place of what stands from an offset to another."""
        data, first = self._data, len(self._data)
        for start, end, new in sorted(changes, reverse=True):
            written, old = new.encode(), data[start:end]
            if written != old:
                first = start + _same(written, old)
                data = data[:start] + written + data[end:]
        line = bisect_right(self._starts, first) if data != self._data else 0
        return Edit(kind, tier, line, self.source, data.decode())


def _same(a: bytes, b: bytes) -> int:
    """Return how many bytes both begin with. Halves are compared, for thousands of edits may have a long beginning."""
    same, different = 0, min(len(a), len(b)) + 1
    while different - same > 1:
        middle = (same + different) // 2
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            different = middle
    return same


def _changed(text: str, other: str) -> str:
    """Return the lines of the text that the other does not have at the same end or beginning, as one."""
    mine, theirs = text.split("\n"), other.split("\n")
    first = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
    rest = list(zip(mine[:first:-1], theirs[:first:-1], strict=False))
    last = next((i for i, (a, b) in enumerate(rest) if a != b), len(rest))
    shown = printable(" ".join(line.strip() for line in mine[first : len(mine) - last]))
    return shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1]}…"
