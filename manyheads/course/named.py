"""Which exercise a name means (its id, its file, or its number, with or without zeros before it), and which assignment."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from ..errors import CourseFault
from .model import Assignment, Course, Exercise


def exercises_called(exercises: Sequence[Exercise], name: str) -> list[Exercise]:
    """Return the exercises of this name; several where a number stands in several assignments."""
    wanted = _plain(Path(name).stem)
    return [e for e in exercises if wanted in (e.id, _plain(e.stem), _plain(e.stem.split("_")[0]))]


def unknown(exercises: Sequence[Exercise], name: str) -> str:
    """Return one sentence on a name that no exercise has, with what may be meant."""
    ids = {alias: e.id for e in exercises for alias in (e.id, _plain(e.stem))}
    return f"there is no exercise {name!r}; {_near(_plain(Path(name).stem), ids)}"


class UnknownAssignment(CourseFault):
    """No assignment is meant, or one of several. The text is one sentence, and lacks what to do next."""


def assignment_named(course: Course, name: str | None, *, in_part: bool = False) -> Assignment:
    """Return the assignment of this id or title; without a name the course's only one. Raises UnknownAssignment.

    in_part: a part of either is enough where no other assignment has it.
    """
    every = course.assignments
    if not name:
        if len(every) == 1:
            return every[0]
        raise UnknownAssignment(f"of which assignment? There are: {', '.join(each.id for each in every)}.")
    wanted = name.casefold()
    names = {each: (each.id, each.title.casefold()) for each in every}
    matches = [each for each in every if each.id == name] or [each for each in every if wanted in names[each]]
    matches = matches or [each for each in every if in_part and any(wanted in other for other in names[each])]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(each.id for each in matches)
        raise UnknownAssignment(f"{name!a} may be any of these assignments: {ids}.")
    ids_by_name = {other: each.id for each in every for other in names[each]}
    raise UnknownAssignment(f"there is no assignment {name!a}; {_near(wanted, ids_by_name)}")


def _near(name: str, ids: dict[str, str]) -> str:
    near = get_close_matches(name, ids, 1)
    return f"did you mean {ids[near[0]]}?" if near else f"there are: {', '.join(dict.fromkeys(ids.values()))}."


def _plain(name: str) -> str:
    """Without zeros before a number: 1_scores for 01_scores."""
    return name.lstrip("0") or name
