"""A notebook's cell as Python: what IPython takes for its own becomes blank, which keeps line numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .parsed import parsed
from .text import lines_of

_OTHER_LANGUAGES = frozenset(
    "bash cmd file html javascript js latex markdown perl ruby script sh svg sx system writefile".split()
)
_MAGIC = re.compile(r"\s*(%{1,2}[A-Za-z_]|!(?!=)|\?)")  # `%` followed by a blank or a number is arithmetic
_CELL_MAGIC = re.compile(r"\s*%%(\w+)(?!\S)")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[A-Za-z_]\w*\s*=\s*)[!%].*$")
_ONE_BY_ONE = 20  # magics of a cell: each takes Python a look at the cell
_LOOKED_AT = 200_000  # characters, in all such looks at one notebook: 2,000 cells of many magics took 9 s


def without_magics(source: str, size: int = 0) -> str:
    """The cell as Python. A cell that parses is not changed: a line of it may start with the operator `%`.

    size: of all cells of its notebook together, if there are others.
    """
    if _stumbles_at(source) is None:
        return source
    lines = _flush_left(lines_of(source))
    if other_language(source):
        return "\n" * (len(lines) - 1)
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].startswith("%%"):
        lines[first] = ""
    return "\n".join(_one_by_one(lines, _LOOKED_AT // max(size, len(source), 1)) or _every(lines))


def other_language(source: str) -> str:
    """Return the magic that makes the cell another language than Python: "writefile", "html"; "" where none does."""
    magic = _CELL_MAGIC.match(source)
    return magic[1] if magic and magic[1] in _OTHER_LANGUAGES else ""


def _flush_left(lines: list[str]) -> list[str]:
    """The lines without the blanks before the first of them, as IPython runs a cell that was pasted from further in."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(indent) for line in lines]


def _one_by_one(lines: Sequence[str], looks: int) -> list[str]:
    """Without the magics at which Python stumbles, so that a text of several lines may have lines that look like some.
    Empty where it stumbles at something else, or more often than there are looks."""
    kept = list(lines)
    for _ in range(min(_ONE_BY_ONE, looks)):
        at = _stumbles_at("\n".join(kept))
        if at is None:
            return kept
        if not 0 < at <= len(kept) or _without_magic(kept[at - 1]) == kept[at - 1]:
            break
        kept[at - 1 :] = _every(kept[at - 1 :], only_first=True)
    return []


def _every(lines: Sequence[str], only_first: bool = False) -> list[str]:
    """Without whatever looks like a magic, or without the one that the first line is."""
    kept: list[str] = []
    continues = False  # a magic that ends with a backslash includes the next line
    for number, line in enumerate(lines):
        if only_first and number and not continues:
            return [*kept, *lines[number:]]
        kept.append("" if continues else _without_magic(line))
        continues = line.endswith("\\") and (continues or _is_magic(line))
    return kept


def _stumbles_at(source: str) -> int | None:
    """The line at which this is no Python, 0 where none is known; None where it is Python."""
    try:
        parsed(source)
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError, MemoryError):
        return 0
    return None


def _without_magic(line: str) -> str:
    if _is_magic(line):
        return f"{line[: len(line) - len(line.lstrip())]}pass"
    return _ASSIGNED_MAGIC.sub(r"\1None", line)


def _is_magic(line: str) -> bool:
    return bool(_MAGIC.match(line)) or (line.rstrip().endswith("?") and "#" not in line)
