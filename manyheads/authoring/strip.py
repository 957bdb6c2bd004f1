"""Strip a solution's source to the student's stub, for scripts and notebooks alike.

This is stricter than nbgrader's ClearSolutions, which ignores a stray END SOLUTION.
If both accept a source, both give the same text.
"""

from __future__ import annotations

from ..errors import CourseFault

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")  # as nbgrader writes it


class SourceError(CourseFault):
    """A solution's source is malformed. The text names the file and the line."""


def strip(source: str, name: str) -> str:
    """Replace every solution part of the source by the stub. Raises SourceError."""
    kept: list[str] = []
    opened = 0
    for number, line in enumerate(source.splitlines(), 1):
        marker = line.strip()
        if marker == BEGIN:
            _demand(not opened, name, number, f"{BEGIN} inside the part that began on line {opened}")
            opened = number
            indent = line[: len(line) - len(line.lstrip())]
            kept += [indent + text for text in STUB]
        elif marker == END:
            _demand(bool(opened), name, number, f"{END} without {BEGIN}")
            opened = 0
        else:
            _demand(
                "BEGIN SOLUTION" not in line and "END SOLUTION" not in line,
                name,
                number,
                "a marker that is not alone on its line",
            )
            if not opened:
                kept.append(line)
    _demand(not opened, name, opened, f"{BEGIN} is never closed")
    _demand(STUB[0] in (line.strip() for line in kept), name, 1, "no solution part at all")
    return "\n".join(kept) + "\n"


def solution_parts(source: str) -> list[str]:
    """The lines of all solution parts, without indentation."""
    inside, lines = False, []
    for line in source.splitlines():
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif inside and line.strip():
            lines.append(line.strip())
    return lines


def _demand(condition: bool, name: str, line: int, problem: str) -> None:
    if not condition:
        raise SourceError(f"{name}:{line}: {problem}. Next: mend it, then course release")
