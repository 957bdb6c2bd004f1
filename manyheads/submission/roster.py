"""roster.csv: who is in the class, and what each platform calls them."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from ..errors import CourseFault
from .find import is_student

LARGEST = 8 * 1024 * 1024  # bytes
FORM = "Its first line names its columns: id, and any of name, section, email, login, sis_id, canvas_id, github"


class RosterError(CourseFault):
    """The roster is missing or wrong. The text ends with what to do next."""


@dataclass(frozen=True)
class Student:
    """A row of the roster.

    id: the name of the student's folder, in submitted/ and in results/.
    login, sis_id, canvas_id: Canvas' SIS Login ID, SIS User ID and ID; the first two are Moodle's username and ID number.
    """

    id: str
    name: str = ""
    section: str = ""
    email: str = ""
    login: str = ""
    sis_id: str = ""
    canvas_id: str = ""
    github: str = ""


_COLUMNS = tuple(field.name for field in fields(Student))
_IDS = ("id", "canvas_id", "sis_id", "login", "email", "github")  # what one student alone has


@dataclass(frozen=True)
class Roster:
    """The class, in the order of its file. unread: the columns of the file that have another name than a student's."""

    students: tuple[Student, ...] = ()
    unread: tuple[str, ...] = ()

    def with_id(self, **ids: str) -> Student | None:
        """The one student who has one of these ids; None if nobody has, or more than one."""
        wanted = {(column, folded(value)) for column, value in ids.items() if value}
        found = [s for s in self.students if any(folded(getattr(s, column)) == value for column, value in wanted)]
        return found[0] if len(found) == 1 else None

    def named(self, name: str) -> list[Student]:
        """The students of this name, in whichever order its parts stand and however they are joined."""
        letters = _letters(name)
        return [student for student in self.students if letters and letters in set(_spellings(student.name))]


def read_roster(path: Path) -> Roster:
    """Read the file. Raises RosterError, which names the line."""
    again = f"Next: mend {path}, then the same command again"
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise RosterError(f"{path} cannot be read ({error.strerror}). Next: give --roster another file") from None
    except UnicodeDecodeError:
        raise RosterError(f"{path} is not UTF-8. Next: save it as CSV in UTF-8") from None
    if len(data) > LARGEST:
        raise RosterError(f"{path} is larger than {LARGEST // 1024 // 1024} MiB. Next: give --roster another file")
    try:
        rows = _rows(text)
        students = tuple(_students(rows, path, again))
        return Roster(students, tuple(name for name in rows.fieldnames or () if name and name not in _COLUMNS))
    except csv.Error as error:
        raise RosterError(f"{path} is not CSV ({error}). {again}") from None


def _rows(text: str) -> csv.DictReader[str]:
    first = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ",")
    rows.fieldnames = [name.strip().casefold().replace(" ", "_") for name in rows.fieldnames or ()]
    return rows


def _students(rows: csv.DictReader[str], path: Path, again: str) -> Iterator[Student]:
    if "id" not in (rows.fieldnames or ()):
        raise RosterError(f"{path} has no column `id`. {FORM}. {again}")
    taken: dict[tuple[str, str], int] = {}
    for row in rows:
        cells = {name: (row.get(name) or "").strip() for name in _COLUMNS}
        if not any(cells.values()):
            continue
        if not is_student(cells["id"]) or cells["id"].startswith("."):
            raise RosterError(f"{path}:{rows.line_num}: {cells['id']!a} cannot be a folder's name. {again}")
        for column in _IDS:
            key = (column, folded(cells[column]))
            if cells[column] and taken.setdefault(key, rows.line_num) != rows.line_num:
                said = f"{column} {cells[column]!a} stands in line {taken[key]}, too (case does not count)"
                raise RosterError(f"{path}:{rows.line_num}: {said}. {again}")
        yield Student(**cells)


def folded(text: str) -> str:
    """The text without what file systems and people do not tell apart: case, and the form of accents."""
    return unicodedata.normalize("NFKC", text).casefold()


def _spellings(name: str) -> Iterator[str]:
    """Ada King Lovelace as adakinglovelace, kinglovelaceada, lovelaceadaking: Canvas puts the last name first."""
    words = name.replace(",", " ").split()
    for i in range(len(words)):
        yield _letters("".join(words[i:] + words[:i]))


def _letters(text: str) -> str:
    return "".join(letter for letter in folded(text) if letter.isalnum())
