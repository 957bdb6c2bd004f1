"""Find lines of code in a text of any kind. They are compared token by token.

Blanks, line breaks, comments and the kind of quotes make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

TOKEN = re.compile(r"\w+|[^\w\s\\]|\n")  # without the backslash, which JSON puts before quotes
SIGNS = " #>*-"  # the first characters of a comment, a quotation, a list item
BETWEEN = re.compile(r'[`";#]')


def normalised(text: str) -> str:
    """The tokens, separated by blanks. Line breaks and `#` are tokens too."""
    return " ".join(TOKEN.findall(text.replace("'", '"')))


def as_code(line: str) -> str:
    """A line in normal form, without its comment."""
    return normalised(line.split("#")[0])


def length(form: str) -> int:
    """The number of characters without blanks."""
    return len(form.replace(" ", ""))


class Phrases:
    """Lines in normal form, of three tokens or more, that are found anywhere in a text."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_start: dict[tuple[str, ...], list[str]] = {}
        for form in forms:
            self._by_start.setdefault(tuple(form.split(" ")[:3]), []).append(form)

    def within(self, normal: str) -> set[str]:
        """The phrases in a text in normal form: in its comments, in its code, also across lines."""
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
    """Lines in normal form, by where they count: anywhere, as a whole line, or as a separate part of a line."""

    anywhere: Phrases
    alone: frozenset[str]
    apart: frozenset[str]

    def within(self, text: str) -> set[str]:
        """The lines that count in this text."""
        normal = normalised(text)
        lines = normal.split("\n")
        whole = {form for line in lines for form in _forms(line)}
        pieces = {piece for line in lines for piece in _pieces(line)}
        return self.anywhere.within(normal) | (self.alone & whole) | (self.apart & (whole | pieces))


def _forms(line: str) -> tuple[str, str]:
    """The code of a line, and its code without a leading sign such as `>`."""
    return line.split("#")[0].strip(), line.lstrip(SIGNS).split("#")[0].strip()


def _pieces(line: str) -> Iterator[str]:
    """The separate parts of a line: in quotes, in a comment, after a semicolon, after the first colon."""
    for piece in (*BETWEEN.split(line), *BETWEEN.split(line.partition(" : ")[2])):
        yield piece.strip(SIGNS)
