"""What is meant by a name.

Which exercise (its id, its file, or its number, with or without a zero before it), and which assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from ..errors import CourseFault
from .model import Assignment, Course, Exercise


def exercises_called(exercises: Sequence[Exercise], name: str) -> list[Exercise]:
    """Return the exercises of this name; several where a number stands in several assignments."""
    wanted = _plain(Path(name).stem)
    return [
        exercise
        for exercise in exercises
        if wanted in (exercise.id, _plain(exercise.stem), _plain(exercise.stem.split("_")[0]))
    ]


def exercises_of(exercises: Sequence[Exercise], name: str) -> list[Exercise]:
    """Return those of the assignment with this id or title."""
    wanted = name.casefold()
    return [e for e in exercises if wanted in (e.assignment.id, e.assignment.title.casefold())]


def unknown(exercises: Sequence[Exercise], name: str) -> str:
    """Return one sentence on a name that no exercise has, with what may be meant."""
    near = get_close_matches(_plain(Path(name).stem), [n for e in exercises for n in (e.id, _plain(e.stem))], 1)
    meant = next((e.id for e in exercises if near and near[0] in (e.id, _plain(e.stem))), "")
    if meant:
        return f"there is no exercise {name!r}; did you mean {meant}?"
    return f"there is no exercise {name!r}; there are: {', '.join(exercise.id for exercise in exercises)}."


class UnknownAssignment(CourseFault):
    """No assignment is meant, or one of several. The text is one sentence, and lacks what to do next."""


def assignment_named(course: Course, name: str | None, *, in_part: bool = False) -> Assignment:
    """Return the assignment of this id or title; without a name the course's only one. Raises UnknownAssignment.

    in_part: a part of either is enough where no other assignment has it.
    """
    known = {assignment.id: assignment for assignment in course.assignments}
    if not name:
        if len(known) == 1:
            return course.assignments[0]
        raise UnknownAssignment(f"of which assignment? There are: {', '.join(known)}.")
    if name in known:
        return known[name]
    wanted = name.casefold()
    names = {
        assignment.id: (assignment.id.casefold(), assignment.title.casefold()) for assignment in course.assignments
    }
    matches = [id_ for id_ in known if wanted in names[id_]]
    matches = matches or [id_ for id_ in known if in_part and any(wanted in other for other in names[id_])]
    if len(matches) == 1:
        return known[matches[0]]
    if matches:
        raise UnknownAssignment(f"{name!a} may be any of these assignments: {', '.join(matches)}.")
    near = get_close_matches(wanted, [each for pair in names.values() for each in pair], 1)
    meant = next((id_ for id_ in known if near and near[0] in names[id_]), "")
    said = f"did you mean {meant}?" if meant else f"there are: {', '.join(known)}."
    raise UnknownAssignment(f"there is no assignment {name!a}; {said}")


def _plain(name: str) -> str:
    """Without zeros before a number: 1_scores for 01_scores."""
    return name.lstrip("0") or name
