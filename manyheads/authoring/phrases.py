"""Finding lines of code in a text of any kind: compared token by token.

Blanks, line breaks, remarks and the kind of quotes make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

TOKEN = re.compile(r"\w+|[^\w\s\\]|\n")  # no backslash: in JSON one stands before every quote
SIGNS = " #>*-"  # before a remark, a quotation, an item of a list
BETWEEN = re.compile(r'[`";#]')


def normalised(text: str) -> str:
    """Tokens with a blank between, line breaks and remarks' signs among them."""
    return " ".join(TOKEN.findall(text.replace("'", '"')))


def as_code(line: str) -> str:
    """A line in normal form, without its remark."""
    return normalised(line.split("#")[0])


def length(form: str) -> int:
    """Characters without the blanks."""
    return len(form.replace(" ", ""))


class Phrases:
    """Lines in normal form, of three tokens or more, to be found wherever they stand."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_start: dict[tuple[str, ...], list[str]] = {}
        for form in forms:
            self._by_start.setdefault(tuple(form.split(" ")[:3]), []).append(form)

    def within(self, normal: str) -> set[str]:
        """Those that stand in a text in normal form: in its remarks, in its code, over several lines."""
        found = set(self._in_tokens(normal.replace("#", "").split()))
        if "#" in normal:
            found |= set(self._in_tokens(re.sub(r"#[^\n]*", "", normal).split()))
        return found

    def _in_tokens(self, tokens: list[str]) -> Iterator[str]:
        starts = self._by_start.keys() & set(zip(tokens, tokens[1:], tokens[2:], strict=False))
        whole = f" {' '.join(tokens)} " if starts else ""
        return (form for start in starts for form in self._by_start[start] if f" {form} " in whole)


@dataclass(frozen=True)
class Wanted:
    """Lines in normal form, by how they have to stand: anywhere, alone on a line, or at least set off within one."""

    anywhere: Phrases
    alone: frozenset[str]
    apart: frozenset[str]

    def within(self, text: str) -> set[str]:
        """Those that stand so in this text."""
        normal = normalised(text)
        lines = normal.split("\n")
        whole = {form for line in lines for form in _forms(line)}
        pieces = {piece for line in lines for piece in _pieces(line)}
        return self.anywhere.within(normal) | (self.alone & whole) | (self.apart & (whole | pieces))


def _forms(line: str) -> tuple[str, str]:
    """A line as code, and as the code that it would be without a sign before it."""
    return line.split("#")[0].strip(), line.lstrip(SIGNS).split("#")[0].strip()


def _pieces(line: str) -> Iterator[str]:
    """What stands in quotes, in a remark, behind a semicolon, behind the first colon."""
    for piece in (*BETWEEN.split(line), *BETWEEN.split(line.partition(" : ")[2])):
        yield piece.strip(SIGNS)
