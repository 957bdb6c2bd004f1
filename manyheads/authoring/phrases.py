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


class Text:
    """A text in normal form, in which phrases are looked for: in its comments, in its code, also across lines."""

    def __init__(self, normal: str) -> None:
        ways = [normal.replace("#", ""), *([re.sub(r"#[^\n]*", "", normal)] if "#" in normal else [])]
        tokens = [way.split() for way in ways]
        self.ways = [(set(zip(t, t[1:], t[2:], strict=False)), f" {' '.join(t)} ") for t in tokens]


class Phrases:
    """Lines in normal form, of three tokens or more, that are found anywhere in a text."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_start: dict[tuple[str, ...], list[str]] = {}
        for form in forms:
            self._by_start.setdefault(tuple(form.split(" ")[:3]), []).append(form)

    def within(self, text: Text) -> set[str]:
        """The phrases in a text."""
        found = set[str]()
        for starts, whole in text.ways:
            for start, forms in self._by_start.items():
                if start in starts:
                    found.update(form for form in forms if f" {form} " in whole)
        return found


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
        return self.anywhere.within(Text(normal)) | (self.alone & whole) | (self.apart & (whole | pieces))


def _forms(line: str) -> tuple[str, str]:
    """The code of a line, and its code without a leading sign such as `>`."""
    return line.split("#")[0].strip(), line.lstrip(SIGNS).split("#")[0].strip()


def _pieces(line: str) -> Iterator[str]:
    """The separate parts of a line: in quotes, in a comment, after a semicolon, after the first colon."""
    for piece in (*BETWEEN.split(line), *BETWEEN.split(line.partition(" : ")[2])):
        yield piece.strip(SIGNS)
