"""Find submissions in submitted/<student>/<assignment>/NN_name.py or .ipynb, and a file's exercise.

For every other file and folder there, the module gives the reason why it is not graded. It also
decides which names can be a student's, which are archives, and which are noise. `Exercises` finds
the exercise of a file by its name, or else by its functions and classes. The file is read as data,
and never imported.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePath
from shlex import quote

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..course import Assignment, Course, Exercise
from ..files import CourseFault, os_error_as_fault, write_whole
from .read import IntakeLimits, NotebookError, asked_of, defined_in, read_notebook, without_magics
from .source import NO_TEXT, Source, decode_text

NAME = "not-graded.json"
ENDINGS = (".py", ".ipynb")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".7z", ".rar", ".gz")
MOST_NAMED = 20  # unknown entries of one folder that get a message each
# Files that systems, editors and nbgrader leave beside hand-ins. No message names them.
_NOISE = (
    ".DS_Store",
    "._*",
    "__MACOSX",
    "desktop.ini",
    "Thumbs.db",
    ".*.swp",
    "__pycache__",
    "*.pyc",
    ".ipynb_checkpoints",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    # virtual environments, also with other names than .venv
    ".venv",
    "site-packages",
    "dist-packages",
    "node_modules",
    ".tox",
    ".nox",
    ".course",  # the state of our commands
    "model-solutions",  # part of a release
    ".git",
    ".gitignore",
    ".gitattributes",
    ".gitkeep",
    ".vscode",
    ".idea",
    ".collected.json*",
    ".collecting",  # the state of `course collect`
    "timestamp.txt",
    "submission_secret.txt",  # nbgrader's
)
_COLLECT = "Next: course collect {submitted} --out collected, then course grade collected"
_LINK = "is a link, and links are not followed. Next: put the files themselves there"
_ARCHIVE = f"is an archive, and `course grade` opens none. {_COLLECT}"
_CLOSED = (
    "may not be read by who runs this. Next: chmod -R u+rwX {path}, then the same command again"
)
_EMPTY = "is empty. Next: remove it, or put there what was handed in"
_REFUSED = (
    "is not graded, for its name begins with a dot, or could break a page or a log. Next: "
    "rename it to the student's id"
)
_OTHER = f"is no part of what is graded (STUDENT/ASSIGNMENT/NN_name.py). {_COLLECT}"
_MORE = f"holds {{more}} more that are not graded. {_COLLECT}"
_STUDENT = re.compile(r"(?!.*::)[^/\\]{1,120}")  # `::` starts a command to a CI runner
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
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


@dataclass(frozen=True)
class Submission:
    """The folder that one student handed in for one assignment, not read yet."""

    student: str
    assignment: Assignment
    folder: Path


class NotGraded(BaseModel):
    """A file or folder that is not graded.

    Attributes:
        reason: a sentence that ends with the next step.
        is_work: whether it may hold work that gets no points only because of its name or place.
            False for an empty folder, and for the paths of `closed_in`, because `to_grade` reports
            these as attempts that cannot be read. Not stored in not-graded.json.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str  # within the submitted folder, in a printable form
    reason: str
    is_work: bool = Field(default=True, exclude=True)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


_LIST = TypeAdapter(list[NotGraded])


def write_not_graded(not_graded: Sequence[NotGraded], results: Path) -> None:
    """Write the list to not-graded.json in a folder of results.

    Raises CourseFault if the file cannot be written.
    """
    with os_error_as_fault(results / NAME, "give --out another folder"):
        write_whole(results / NAME, _LIST.dump_json(list(not_graded), indent=1) + b"\n")


def read_not_graded(results: Path) -> list[NotGraded]:
    """Return the list in a folder of results, or [] if the folder has none.

    Raises CourseFault if the list cannot be read or is damaged.
    """
    path = results / NAME
    try:
        return _LIST.validate_json(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValidationError):
        raise CourseFault(
            f"{path} cannot be read. Next: remove it, then course grade again"
        ) from None


def find_submissions(course: Course, submitted: Path) -> tuple[list[Submission], list[NotGraded]]:
    """Return all submissions below a folder, and the entries that are not graded.

    The submissions are ordered by student, then as in the course. If this process may not enter the
    folder of a student, there is a submission for each assignment. If it may not read some paths of
    a student (`closed_in`), only these are returned as entries of this student.

    Raises:
        CourseFault: the folder is missing, or has neither a submission nor any other entry.
    """
    if not submitted.is_dir():
        raise CourseFault(
            f"{submitted} is not a folder. Next: course grade FOLDER, with "
            "FOLDER/<student>/<assignment>/"
        )
    submissions = list[Submission]()
    source = course.root / "source"
    folders = filter(_is_folder, _entries(submitted))
    students = [path for path in folders if is_student(path.name) and not path.name.startswith(".")]
    not_graded = [*_not_known(submitted, submitted, {path.name for path in students})]
    known_names = {assignment.id: _known_names(assignment) for assignment in course.assignments}
    for folder in students:
        # A folder that cannot be entered may hold any assignment.
        ids = {
            assignment.id
            for assignment in course.assignments
            if not _may_enter(folder) or _is_folder(folder / assignment.id)
        }
        student_submissions = [
            Submission(folder.name, assignment, folder / assignment.id)
            for assignment in course.assignments
            if assignment.id in ids
        ]
        submissions += student_submissions
        if closed := dict.fromkeys(
            path for submission in student_submissions for path in closed_in(submission)
        ):
            entries = (_not_graded_entry(submitted, path, _CLOSED) for path in closed)
            not_graded += [entry.model_copy(update={"is_work": False}) for entry in entries]
            continue
        nbgraders = {
            path.name
            for path in _entries(folder)
            if _is_folder(path) and (source / path.name).is_dir()
        }
        not_graded += _not_known(submitted, folder, ids | nbgraders)
        for submission in student_submissions:
            not_graded += _not_known(
                submitted, submission.folder, known_names[submission.assignment.id]
            )
    if not submissions and not not_graded:
        assignment_ids = ", ".join(assignment.id for assignment in course.assignments)
        raise CourseFault(
            f"{submitted} holds no submission ({submitted}/<student>/<assignment>/, with an"
            f" assignment of: {assignment_ids}). Next: course collect DOWNLOAD --out"
            f" {quote(str(submitted))}"
        )
    return submissions, not_graded


def _not_known(submitted: Path, folder: Path, known_names: Collection[str]) -> Iterator[NotGraded]:
    """Yield the unknown entries of a folder, each with the reason why it is not graded.

    Yield no more than `MOST_NAMED`, and one further entry with the number of the rest. If `folder`
    is empty, yield the folder itself, unless it is `submitted`.
    """
    entries = _entries(folder)
    unknown_paths = [path for path in entries if path.name not in known_names]
    if not entries and folder != submitted:
        yield _not_graded_entry(submitted, folder, _EMPTY)
    for path in unknown_paths[:MOST_NAMED]:
        if path.is_symlink():
            reason = _LINK
        elif not _is_folder(path):
            reason = _ARCHIVE if is_archive(path.name) else _OTHER
        elif folder == submitted:
            reason = _REFUSED
        elif not _may_enter(path):
            reason = _CLOSED
        else:
            reason = _OTHER if _entries(path) else _EMPTY
        yield _not_graded_entry(submitted, path, reason)
    if len(unknown_paths) > MOST_NAMED:
        yield _not_graded_entry(submitted, folder, _MORE, len(unknown_paths) - MOST_NAMED)


def _not_graded_entry(submitted: Path, path: Path, reason: str, count: int = 0) -> NotGraded:
    """Return the entry for a path. `reason` may have the fields {submitted}, {path} and {more}."""
    quoted_paths = {
        "submitted": quote(printable_name(str(submitted))),
        "path": quote(printable_name(str(path))),
    }
    names = map(printable_name, path.relative_to(submitted).parts)
    message = reason.format(**quoted_paths, more=count)
    return NotGraded(path="/".join(names) or ".", reason=message, is_work=reason != _EMPTY)


def closed_in(submission: Submission) -> list[Path]:
    """Return the paths of a submission that this process may not read.

    If it may not enter the student's folder or the folder of the submission, return this folder
    alone. Otherwise return the attempts that it may not read.
    """
    for folder in (submission.folder.parent, submission.folder):
        if not _may_enter(folder):
            return [folder]
    attempts = [submission.folder / name for name in sorted(_names_of(submission.assignment))]
    return [path for path in attempts if os.path.isfile(path) and not os.access(path, os.R_OK)]


def is_student(name: str) -> bool:
    """Return whether a student's folder can have this name.

    Results are stored under this name, and pages and logs show it. So the name must have 1 to 120
    printable characters, no slash, no backslash and no `::`, and must not be "not-graded.json".
    """
    return name.isprintable() and bool(_STUDENT.fullmatch(name)) and name.casefold() != NAME


def is_reserved(name: str) -> bool:
    """Return whether Windows reserves this name, so that no file can have it: con, con.txt."""
    return bool(_RESERVED.fullmatch(name.casefold()))


def is_noise(name: str) -> bool:
    """Return whether a file or folder of this name is never part of a hand-in."""
    return any(fnmatchcase(name, pattern) for pattern in _NOISE)


def is_archive(name: str) -> bool:
    """Return whether this name has the ending of an archive, also of a type that is not opened."""
    return name.lower().endswith(ARCHIVES)


def printable_name(name: str) -> str:
    """Return the name in a form that is safe to print.

    A name that could change the display of a terminal, a log or a page is quoted and escaped, as by
    `ascii`. Any other name is returned unchanged.
    """
    return name if name.isprintable() and "::" not in name else ascii(name)


def plain(name: str) -> str:
    """Return the letters and digits of a name, without case, because people vary the rest."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _known_names(assignment: Assignment) -> set[str]:
    """Return the names of attempts, and of the files that came with the assignment."""
    released = (path.name for path in assignment.exercises_folder.glob("*"))
    return _names_of(assignment).union(released)


def _names_of(assignment: Assignment) -> set[str]:
    """Return the file names for attempts at an exercise or at the whole assignment."""
    stems = (assignment.id, *(stem for exercise in assignment.exercises for stem in exercise.stems))
    return {stem + ending for stem in stems for ending in ENDINGS}


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not is_noise(path.name))


def _is_folder(path: Path) -> bool:
    # path.is_dir() raises an error if a folder above cannot be entered
    return not path.is_symlink() and os.path.isdir(path)


def _may_enter(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)


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
        """Return the exercise of this file, or the assignment if the file holds several exercises.

        The name decides (`match_name`). If it names no exercise, the functions and classes at the
        top level of the file decide. Only those count that one exercise alone asks for.

        Args:
            name: the file's name.
            content: its content.
            budget: the limits for the student. The characters that are parsed are subtracted.

        Raises:
            NotPlaced: the file belongs to no exercise, or to several assignments; or so much code
                of this student was parsed before that the budget is exceeded.
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
        source = _source(name, content) if is_promising else NO_TEXT
        budget.code -= len(source.text)
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
        """Return the exercise or the whole assignment that this file name shows, or None.

        The name has no further words (`is_plain`), or holds the id of exactly one exercise, as
        ada_reshape_dance.py does.
        """
        if match := self._by_name(name):
            return match
        stem = f"_{_plain(PurePath(name).stem)}_"
        # ada_reshape_dance
        within = [exercise for exercise in self.course.exercises if f"_{exercise.id}_" in stem]
        return within[0] if len(within) == 1 else None

    def may_be_work(self, path: str) -> bool:
        """Return whether a path that is not graded may be work.

        If so, the student has no score instead of 0 points. Scripts, notebooks, archives, names
        without a dot (folders), and files with the name of an exercise may be work. A note or a
        picture is not, because otherwise a student could avoid 0 points for missing exercises by
        handing in a note. A file that came with the exercises (`is_handed_out`) is not work either.
        """
        name = PurePath(path).name
        if self.is_handed_out(name):
            return False
        is_of_a_kind = "." not in name or name.lower().endswith((*ENDINGS, *ARCHIVES))
        # Systems that hide the last suffix may append a second one: 04_reshape_dance.py.txt.
        return is_of_a_kind or self.match_name(PurePath(name).stem) is not None

    def is_handed_out(self, path: str) -> bool:
        """Return whether a path has the file name of a figure or of recorded tensors.

        Such files come with the exercises.
        """
        return PurePath(path).name in self._handed_out

    def is_plain(self, name: str) -> bool:
        """Return whether a name consists of the name of an exercise or an assignment alone.

        Endings such as (1) or _final do not count as words.
        """
        return self._by_name(name) is not None

    def is_where_expected(self, folders: Sequence[str]) -> bool:
        """Return whether the last two folders are those of an assignment in the repository.

        In the course's repository they are, for example, exercises/multi_head_attention.
        """
        released_folders = (
            assignment.exercises_folder.relative_to(assignment.root).parts
            for assignment in self.course.assignments
        )
        return tuple(folders[-2:]) in released_folders

    def _by_name(self, name: str) -> Exercise | Assignment | None:
        """Return the owner of this file name without at most `_MOST_SUFFIXES` endings, or None."""
        stem = _plain(PurePath(name).stem)
        for _ in range(_MOST_SUFFIXES):
            suffix = _SUFFIX.search(stem, max(0, len(stem) - _SUFFIX_LENGTH))
            if stem in self._names or suffix is None:
                break
            stem = _plain(stem[: suffix.start()])
        return self._names.get(stem)

    @cached_property
    def _names(self) -> dict[str, Exercise | Assignment]:
        """The exercises and assignments by ids and by file names without ending.

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
        """The exercise of each function or class for which no other exercise asks."""
        pairs = [
            (name, exercise) for exercise in self.course.exercises for name in asked_of(exercise)
        ]
        times = Counter(name for name, _ in pairs)
        return {name: exercise for name, exercise in pairs if times[name] == 1}


def assignment_of_file(target: Exercise | Assignment) -> tuple[Assignment, str]:
    """Return the assignment of a file of `target`, and the file's name there without its ending."""
    return (
        (target, target.id) if isinstance(target, Assignment) else (target.assignment, target.stem)
    )


def _source(name: str, content: bytes) -> Source:
    try:
        text = decode_text(content)
        is_notebook = name.lower().endswith(".ipynb")
        return read_notebook(text) if is_notebook else without_magics(Source(name, text))
    except (UnicodeDecodeError, NotebookError):
        return NO_TEXT


def _plain(stem: str) -> str:
    return re.sub(r"[\s_-]+", "_", stem.casefold()).strip("_")
