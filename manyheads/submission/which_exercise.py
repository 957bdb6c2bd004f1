"""Find the exercise of a file by its name, or else by its functions and classes.

The file is read as data, and never imported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from ..course import Assignment, Course, Exercise
from .find import ARCHIVES, ENDINGS
from .intake_limits import IntakeLimits
from .read import NotebookError, asked_of, defined_in, read_notebook, without_magics
from .source import decoded

# Endings that browsers, platforms and people append to a name: (1), -2, " - Copy", _final, _v2.
_SUFFIX = re.compile(
    r"[\s_.-]*(?:\(\d{1,4}\)|[\s_-]\d{1,4}|[\s_-]*(?:copy|kopie)\d*|[\s_-](?:final|neu|new|v\d{1,"
    r"3}))$"
)
# Only a limited number of endings is removed, each of limited length, because a student's archive
# has up to 5,000 names.
_SUFFIX_LENGTH = 40  # characters of an ending, with blanks and dots before it
_MOST_SUFFIXES = 8  # of one name
_RENAME = "Next: rename it to the exercise that it is, if it was to be graded"


class NotPlaced(Exception):
    """The file belongs to no exercise, or to several.

    The message continues a sentence that begins with the path.
    """


@dataclass(frozen=True)
class Exercises:
    """The exercises of a course, and the rules that assign files to them."""

    course: Course

    def exercise_of(
        self, name: str, content: bytes, budget: IntakeLimits | None = None
    ) -> Exercise | Assignment:
        """Return the exercise of this file, or the assignment if the file holds several.

        `budget` limits the amount of the student's code that is parsed.

        Raises:
            NotPlaced: the file belongs to no exercise, or to several assignments.
        """
        if match := self.match_name(name):
            return match
        budget = budget or IntakeLimits()
        # a file without any of these names need not be parsed
        is_promising = any(owner.encode() in content for owner in self._owners)
        if is_promising and budget.code < 0:
            raise NotPlaced(
                "has no exercise's name, and so much code of one student is not looked into. "
                f"{_RENAME}"
            )
        source = _source(name, content) if is_promising else ""
        budget.code -= len(source)
        # Only functions and classes that one exercise alone asks for show the exercise.
        owners = {
            self._owners[defined_name].id: self._owners[defined_name]
            for defined_name in defined_in(source) & self._owners.keys()
        }
        assignments = {exercise.assignment.id: exercise.assignment for exercise in owners.values()}
        if len(owners) == 1:
            return next(iter(owners.values()))
        if len(assignments) == 1:
            return next(iter(assignments.values()))
        if owners:
            raise NotPlaced(
                f"may be of {', '.join(sorted(owners))}: it defines what each of them asks for. "
                f"{_RENAME}"
            )
        raise NotPlaced(
            "has no exercise's name, and defines nothing that one exercise alone asks for. "
            f"{_RENAME}"
        )

    def match_name(self, name: str) -> Exercise | Assignment | None:
        """Return the exercise or the whole assignment that this file name shows, or None."""
        if match := self._by_name(name):
            return match
        stem = f"_{_plain(PurePath(name).stem)}_"
        # ada_reshape_dance
        within = [exercise for exercise in self.course.exercises if f"_{exercise.id}_" in stem]
        return within[0] if len(within) == 1 else None

    def may_be_work(self, path: str) -> bool:
        """Return whether a path that is not graded may be work.

        If so, the student has no score instead of 0 points. Scripts, notebooks, archives, folders,
        and files with the name of an exercise may be work. A note or a picture is not, because
        otherwise a student could avoid 0 points for missing exercises by handing in a note.
        """
        name = PurePath(path).name
        if self.is_handed_out(name):
            return False
        is_of_a_kind = "." not in name or name.lower().endswith((*ENDINGS, *ARCHIVES))
        # Systems that hide the last suffix may append a second one: 04_reshape_dance.py.txt.
        return is_of_a_kind or self.match_name(PurePath(name).stem) is not None

    def is_handed_out(self, path: str) -> bool:
        """Return whether a file has the name of a file that came with the exercises.

        Such files are figures and recorded tensors.
        """
        return PurePath(path).name in self._handed_out

    def is_plain(self, name: str) -> bool:
        """Return whether the name has no words except those of an exercise, and known endings."""
        return self._by_name(name) is not None

    def is_in_place(self, folders: Sequence[str]) -> bool:
        """Return whether these folders end as in the course's repository."""
        released_folders = (
            assignment.exercises_folder.relative_to(assignment.root).parts
            for assignment in self.course.assignments
        )
        return tuple(folders[-2:]) in released_folders

    def _by_name(self, name: str) -> Exercise | Assignment | None:
        stem = _plain(PurePath(name).stem)
        for _ in range(_MOST_SUFFIXES):
            suffix = _SUFFIX.search(stem, max(0, len(stem) - _SUFFIX_LENGTH))
            if stem in self._names or suffix is None:
                break
            stem = _plain(stem[: suffix.start()])
        return self._names.get(stem)

    @cached_property
    def _names(self) -> dict[str, Exercise | Assignment]:
        """The exercises and assignments by ids and file names.

        Present names of exercises take precedence over earlier ones, and these over assignments.
        """
        by_id: dict[str, Exercise | Assignment] = {
            assignment.id: assignment for assignment in self.course.assignments
        }
        earlier = {
            key: exercise
            for exercise in self.course.exercises
            for key in (*exercise.row.was, *exercise.stems)
        }
        return by_id | earlier | {key: e for e in self.course.exercises for key in (e.id, e.stem)}

    @cached_property
    def _handed_out(self) -> frozenset[str]:
        paths = (
            path for e in self.course.exercises for path in (e.fingerprints, e.trained, *e.figures)
        )
        return frozenset(path.name for path in paths)

    @cached_property
    def _owners(self) -> dict[str, Exercise]:
        pairs = [
            (name, exercise) for exercise in self.course.exercises for name in asked_of(exercise)
        ]
        times = Counter(name for name, _ in pairs)
        return {name: exercise for name, exercise in pairs if times[name] == 1}


def place_of(target: Exercise | Assignment) -> tuple[Assignment, str]:
    """Return the assignment of a file, and the file's name there without its ending."""
    return (
        (target, target.id) if isinstance(target, Assignment) else (target.assignment, target.stem)
    )


def _source(name: str, content: bytes) -> str:
    try:
        text = decoded(content)
        return read_notebook(text).text if name.lower().endswith(".ipynb") else without_magics(text)
    except (UnicodeDecodeError, NotebookError):
        return ""


def _plain(stem: str) -> str:
    return re.sub(r"[\s_-]+", "_", stem.casefold()).strip("_")
