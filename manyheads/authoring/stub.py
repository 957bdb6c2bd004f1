"""Make the student's starting point from the solution: strip what stands between BEGIN and END SOLUTION.

This is stricter than nbgrader's ClearSolutions, which ignores a stray END SOLUTION. If both accept a source, both give
the same text.
"""

from __future__ import annotations

from ..course import CourseError, Exercise
from ..errors import CourseFault

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = ("# YOUR CODE HERE", 'raise NotImplementedError("write this part")')  # nbgrader's, with a message


def strip(source: str, name: str) -> str:
    """Replace every solution part of the source by the stub. Raises CourseFault."""
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
            has_marker = "BEGIN SOLUTION" in line or "END SOLUTION" in line
            _demand(not has_marker, name, number, "a marker that is not alone on its line")
            if not opened:
                kept.append(line)
    _demand(not opened, name, opened, f"{BEGIN} is never closed")
    _demand(STUB[0] in (line.strip() for line in kept), name, 1, "no solution part at all")
    return "\n".join(kept) + "\n"


def solution_parts(source: str) -> list[str]:
    """Return the lines of all solution parts, without indentation."""
    inside, found = False, []
    for line in map(str.strip, source.splitlines()):
        if line in (BEGIN, END):
            inside = line == BEGIN
        elif inside and line:
            found.append(line)
    return found


def _demand(condition: bool, name: str, line: int, problem: str) -> None:
    if not condition:
        raise CourseFault(f"{name}:{line}: {problem}. Next: mend it, then course release")


def stub_of(exercise: Exercise) -> str:
    """Return the student's starting point. Raises CourseFault."""
    path = exercise.solution
    try:
        source = path.read_text(encoding="utf-8")
    except OSError:
        said = f"{path} is missing, which course.yaml requires"
        raise CourseError(f"{said}. Next: write it, or mend course.yaml") from None
    return strip(source, str(path.relative_to(exercise.root)))
