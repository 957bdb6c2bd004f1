"""roster.csv: who is in the class, and what each platform calls them."""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from ..errors import CourseFault
from .find import is_student

LARGEST = 8 * 1024 * 1024  # bytes of the file
FORM = "Its first line names its columns: id, and any of name, section, group, email, login, sis_id, canvas_id, github"


@dataclass(frozen=True)
class Student:
    """A row of the roster.

    id: the name of the student's folder, in submitted/ and in results/.
    group: those who hand in together. login, sis_id, canvas_id: Canvas' SIS Login ID, SIS User ID and ID; the first two are
    Moodle's username and ID number.
    """

    id: str
    name: str = ""
    section: str = ""
    email: str = ""
    login: str = ""
    sis_id: str = ""
    canvas_id: str = ""
    github: str = ""
    group: str = ""


_COLUMNS = tuple(field.name for field in fields(Student))
_IDS = ("id", "canvas_id", "sis_id", "login", "email", "github")  # what one student alone has
_FOLDERS = ("login", "sis_id", "email", "canvas_id")  # the first is a student's id where a platform's list has none
# What platforms call these in the lists that they give: Canvas' gradebook, Moodle's participants and grades, Gradescope's
# roster, Brightspace's and Blackboard's grades, GitHub Classroom's roster.
_NAMES = {
    "name": "student full_name",
    "sis_id": "sis_user_id sid id_number student_id orgdefinedid",
    "login": "sis_login_id username",
    "email": "email_address e-mail e-mail_address",
    "section": "sections groups",
    "group": "group_name",
    "github": "github_username",
    "first_name": "first_name",
    "last_name": "last_name surname",
    "role": "role roles",
}
_CALLED = {name: column for column, names in _NAMES.items() for name in names.split()}
_WORDS = {"canvas_id": "Canvas' id", "sis_id": "SIS id", "email": "e-mail", "github": "GitHub name"}
_STAFF = re.compile(r"\b(?:teacher|instructor|ta|teaching assistant|reader|observer|grader)\b")
_MARKED = ("points possible", "student, test")  # rows of Canvas' gradebook that are nobody's


@dataclass(frozen=True)
class Roster:
    """The class, in the order of its file.

    unread: the columns of the file that say nothing of a student. read_as: the file, and the columns that do, for a sentence.
    """

    students: tuple[Student, ...] = ()
    unread: tuple[str, ...] = ()
    read_as: str = ""

    def knows_nobody(self, students: Sequence[str]) -> str:
        """Return what to say where nobody of these students is on the roster in this file."""
        some = ", ".join(ascii(name) for name in students[:3]) + (" …" if len(students) > 3 else "")
        return f"nobody of {len(students)} who handed in ({some}) is on the roster, {self.read_as}"

    def with_id(self, ids: Iterable[tuple[str, str]]) -> Student | None:
        """Return the one student who has one of these ids, by columns; None if nobody has, or more than one."""
        found = {self._by_id[key] for key in ((column, folded(value)) for column, value in ids) if key in self._by_id}
        return found.pop() if len(found) == 1 else None

    def with_login(self, login: str) -> Student | None:
        """Return the one student whose login this is as a whole, or any other id."""
        return self.with_id((column, login) for column in _IDS)

    def ending_with(self, text: str) -> Student | None:
        """Return the student whose login this text ends with, after the name and an underscore.

        The longest login is tried first. What is before one has to be that student's name: m_al1 is not al1.
        """
        for at in (i for i, sign in enumerate(text) if sign == "_"):
            student = self.with_login(text[at + 1 :])
            if student and _bare(text[:at]) in map(_bare, _spellings(student.name)):
                return student
        return None

    def named(self, name: str) -> list[Student]:
        """Return the students of this name, in whichever order its parts stand and however they are joined."""
        return self._by_name.get(letters(name), [])

    def in_group(self, name: str) -> list[Student]:
        """Return the members of a group."""
        return self._by_group.get(letters(name), [])

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], Student]:
        return {(column, folded(value)): s for s in self.students for column in _IDS if (value := getattr(s, column))}

    @cached_property
    def _by_name(self) -> dict[str, list[Student]]:
        return _sorted_by((name, student) for student in self.students for name in {*_spellings(student.name)})

    @cached_property
    def _by_group(self) -> dict[str, list[Student]]:
        return _sorted_by((letters(student.group), student) for student in self.students if student.group)


def _sorted_by(pairs: Iterable[tuple[str, Student]]) -> dict[str, list[Student]]:
    found: dict[str, list[Student]] = {}
    for key, student in pairs:
        found.setdefault(key, []).append(student)
    return found


def read_roster(path: Path) -> Roster:
    """Read the file. Raises CourseFault, which names the line."""
    rows = _csv_cells(path)
    header = [name.strip() for name in next(rows, (0, []))[1]]
    columns = _columns(header)
    students = tuple(_students(rows, columns, path))
    unread = tuple(name for name, column in zip(header, columns, strict=True) if name and not column)
    said = [f"{name!a} as {_WORDS.get(c, c.replace('_', ' '))}" for name, c in zip(header, columns, strict=True) if c]
    return Roster(students, unread, f"{path}, of which these columns are read: {', '.join(said)}")


def _csv_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row ends, and its cells: the first has the columns' names. Raises CourseFault.

    It is UTF-8, or UTF-16 with its mark, as spreadsheets write it.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise CourseFault(f"{path} cannot be read ({error.strerror}). Next: --roster FILE, or --roster none") from None
    if len(data) > LARGEST:
        said = f"{path} is larger than {LARGEST // 1024**2} MiB"
        raise CourseFault(f"{said}. Next: take other columns out, then the same again")
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        raise CourseFault(f"{path} is not UTF-8. Next: save it as CSV in UTF-8") from None
    rows = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=text.partition("\n")[0].count))
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise CourseFault(f"{path} is not CSV ({error}). {_mend(path)}") from None


def _mend(path: Path) -> str:
    """Return what is to be done next where the file is wrong."""
    return f"Next: mend {path}, then the same command again"


def _columns(header: Sequence[str]) -> list[str]:
    """Return what each column says of a student; "" for one that says nothing."""
    names = [name.casefold().replace(" ", "_") for name in header]
    called = dict(_CALLED)
    if "student" in names:  # Canvas' gradebook, whose ID is Canvas' own
        called["id"] = "canvas_id"
    if "github_username" in names:  # GitHub Classroom's roster
        called["identifier"] = "id"
    columns = [called.get(name) or (name if name in _COLUMNS else "") for name in names]
    return [column if column not in columns[:place] else "" for place, column in enumerate(columns)]


def _students(rows: Iterable[tuple[int, Sequence[str]]], columns: Sequence[str], path: Path) -> Iterator[Student]:
    if not {"id", *_FOLDERS} & {*columns}:
        raise CourseFault(f"{path} has no column `id`. {FORM}. {_mend(path)}")
    taken: dict[tuple[str, str], int] = {}
    for line, row in rows:
        cells = _cells(row, columns)
        if not any(cells.values()) or cells.get("name", "").casefold() in _MARKED:
            continue
        if _STAFF.search(cells.pop("role", "").casefold()):
            continue
        cells.setdefault("id", next((cells[name] for name in _FOLDERS if cells.get(name)), ""))
        if not is_student(cells["id"]) or cells["id"].startswith("."):
            raise CourseFault(f"{path}:{line}: {cells['id']!a} cannot be a folder's name. {_mend(path)}")
        for column in _IDS:
            key = (column, folded(cells.get(column, "")))
            if key[1] and taken.setdefault(key, line) != line:
                said = f"{column} {cells[column]!a} stands in line {taken[key]}, too (case does not count)"
                raise CourseFault(f"{path}:{line}: {said}. {_mend(path)}")
        yield Student(**cells)


def _cells(row: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """Return what a row says of a student. Brightspace writes # before an id, so that no spreadsheet takes it for a number."""
    cells = {column: text.strip().removeprefix("#") for column, text in zip(columns, row, strict=False) if column}
    first, last = cells.pop("first_name", ""), cells.pop("last_name", "")
    if first or last:
        cells["name"] = f"{first} {last}".strip()
    return cells


def folded(text: str) -> str:
    """Return the text without what file systems and people do not tell apart: case, and the form of accents."""
    return unicodedata.normalize("NFKC", text).casefold()


def _spellings(name: str) -> Iterator[str]:
    """Ada King Lovelace as adakinglovelace, kinglovelaceada, lovelaceadaking: Canvas puts the last name first."""
    words = name.replace(",", " ").split()
    for i in range(len(words)):
        yield letters("".join(words[i:] + words[:i]))


def letters(text: str) -> str:
    """Return the letters and digits of a name, without case."""
    return "".join(letter for letter in folded(text) if letter.isalnum())


def _bare(text: str) -> str:
    """Return the letters of a name without accents, as ILIAS writes it."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", letters(text)) if letter.isascii())
