"""Make the student's starting point from the solution: strip what stands between BEGIN and END SOLUTION.

This is stricter than nbgrader's ClearSolutions, which ignores a stray END SOLUTION. If both accept a source, both give the
same text.
"""

from __future__ import annotations

from ..course import CourseError, Exercise
from ..errors import CourseFault

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = ("# YOUR CODE HERE", 'raise NotImplementedError("write this part")')  # nbgrader's, with a message


def stub_of(exercise: Exercise) -> str:
    """Return the student's starting point. Raises CourseFault."""
    path = exercise.solution
    try:
        source = path.read_text(encoding="utf-8")
    except OSError:
        said = f"{path} is missing, which course.yaml requires. Next: write it, or mend course.yaml"
        raise CourseError(said) from None
    return strip(source, str(path.relative_to(exercise.root)))


def strip(source: str, name: str) -> str:
    """Replace every solution part of the source by the stub, in scripts and notebooks alike. Raises CourseFault."""
    kept, opened = list[str](), 0
    for number, line in enumerate(source.splitlines(), 1):
        marker = line.strip()
        if marker == BEGIN and not opened:
            opened = number
            kept += [line.replace(BEGIN, text).rstrip() for text in STUB]
        elif marker == END and opened:
            opened = 0
        elif "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            begun = f"{BEGIN} inside the part that began on line {opened}"
            problems = {BEGIN: begun, END: f"{END} without {BEGIN}"}
            raise _fault(name, number, problems.get(marker, "a marker that is not alone on its line"))
        elif not opened:
            kept.append(line)
    if opened:
        raise _fault(name, opened, f"{BEGIN} is never closed")
    if STUB[0] not in map(str.strip, kept):
        raise _fault(name, 1, "no solution part at all")
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


def _fault(name: str, line: int, problem: str) -> CourseFault:
    return CourseFault(f"{name}:{line}: {problem}. Next: mend it, then course release")
