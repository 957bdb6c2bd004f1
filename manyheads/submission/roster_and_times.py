"""Read the lists that stand beside a download: the roster (roster.csv), and the times of hand-in.

The roster lists the class, with the ids and names that platforms use for each student. `People`
finds with it the student and the folder of each hand-in.

The downloads of Moodle and Canvas do not say when something was handed in. Moodle's grading
worksheet (CSV) and Canvas' list of submissions (JSON, from its API) do. Both know a hand-in by a
number that also stands in the names of the download:

    Identifier,Full name,…,Last modified (submission),…
    Participant 123456,Ada Lovelace,…,"Friday, 20 November 2026, 10:11 AM",…
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path

from ..course import Course
from ..course.course_yaml_schema import read_moment
from ..files import CourseFault
from ..printable_text import visible_line
from .download_layouts import ALONE, Person, person_called
from .find_submitted_files import is_noise, is_reserved, is_student, plain, printable_name

_MOST_COLUMNS = 12  # column names in one sentence
_PUT = "Next: put it there, or give another in course.yaml (roster: FILE) or by --roster"
LARGEST = 8 * 1024 * 1024  # bytes of the file
DELIMITERS = ",;\t"  # the most frequent one in the first line separates the columns
FORM = (
    "Its first line names its columns: id, and any of name, section, group, email, login, "
    "sis_id, canvas_id, github"
)


@dataclass(frozen=True)
class Student:
    """A row of the roster.

    Attributes:
        id: the name of the student's folder.
        login: Canvas' SIS Login ID, or Moodle's username.
        sis_id: Canvas' SIS User ID, or Moodle's ID number.
        canvas_id: Canvas' ID.
        group: the name of a group that hands in together.
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


_IDS = (
    "id",
    "canvas_id",
    "sis_id",
    "login",
    "email",
    "github",
)  # columns with a value that only one student has
# if a platform's list has no id, the first of these replaces it
_FOLDERS = ("login", "sis_id", "email", "canvas_id")
# The names of these columns in platforms' lists: Canvas' gradebook, Moodle's participants and
# grades, Gradescope's roster, Brightspace's and Blackboard's grades, GitHub Classroom's roster.
_NAMES = """name student full_name
    sis_id sis_user_id sid id_number student_id orgdefinedid
    login sis_login_id username
    email email_address e-mail e-mail_address
    section sections groups
    group group_name
    github github_username
    first_name
    last_name surname
    role roles"""
_CALLED = {column.name: column.name for column in fields(Student)}
_CALLED |= {name: names.split()[0] for names in _NAMES.splitlines() for name in names.split()}
_STAFF = re.compile(r"\b(?:teacher|instructor|ta|teaching assistant|reader|observer|grader)\b")
_MARKED = ("points possible", "student, test")  # names in Canvas' gradebook that are no students
_NUMBER = re.compile(r"_\d{1,18}$")  # ILIAS appends such a number to a login
_OPEN_QUOTE = (
    "a quote that opens in this line is not closed in it, or something stands behind where it "
    "is closed"
)
_IF_A_GROUP = (
    "Next: if a group handed in, give --roster a file that has its members in a column `group`"
)
_UNSAFE = re.compile(r'[\x00-\x1f/\\:*?"<>|]')


@dataclass(frozen=True)
class Roster:
    """The class, in the order of its file.

    Attributes:
        unread: the columns of the file that are not used.
        read_as: a part of a sentence that names the file and the columns that are used.
    """

    students: tuple[Student, ...] = ()
    unread: tuple[str, ...] = ()
    read_as: str = ""

    def knows_nobody(self, students: Sequence[str]) -> str:
        """Return a clause that says that none of these students is on the roster."""
        examples = ", ".join(ascii(name) for name in students[:3]) + (
            " …" if len(students) > 3 else ""
        )
        return (
            f"nobody of {len(students)} who handed in ({examples}) is on the roster, {self.read_as}"
        )

    def students_of(self, person: Person) -> list[Student]:
        """Return the only row that matches the person, or the rows of a group's members.

        If neither a student nor a group matches, return []. If both match, the student counts,
        unless the student is a member of that group and has another name than the person.
        """
        student = self._one_student(person)
        group = self._group_named(person)
        if student is None:
            return group
        # Canvas writes the name of a group with the number of one member. If a student uses the
        # name of another group, the number counts.
        is_a_members_number = student in group and letters(person.name) not in _spellings(
            student.name
        )
        return group if is_a_members_number else [student]

    def _group_named(self, person: Person) -> list[Student]:
        """Return the members of the group with the person's name, or [].

        If the person has no name, the GitHub account counts as name, because GitHub Classroom
        writes the name of the group into the name of the repository.
        """
        accounts = [value for column, value in person.ids if column == "github"]
        for name in (person.name, *(accounts if not person.name else ())):
            if members := self._rows.get(("group", letters(name))):
                return members
        return []

    def _one_student(self, person: Person) -> Student | None:
        """Return the only row that matches the person, or None.

        These are compared with the roster, in this order, until one matches:

        1. the ids that the platform gives, and the folder's name as `id`;
        2. the logins as any id;
        3. the end of a login or of the folder's name as any id, if the name of that student stands
           before it;
        4. the person's name, without the name of a group before it;
        5. the first word of the person's name as an id, if the other words are part of the name of
           that student.
        """
        match = self.with_id(person.ids) or self.with_id([("id", person.folder)])
        match = match or next(filter(None, map(self._with_login, person.logins)), None)
        # If a text ends with a login, it must begin with the name of that student. The longest
        # login is tried first, because m_al1 and al1 are two logins.
        texts = [*person.logins, _NUMBER.sub("", person.folder)] if person.logins else []
        for text in texts:
            for at in (i for i, sign in enumerate(text) if sign == "_" and not match):
                student = self._with_login(text[at + 1 :])
                if student and _bare(text[:at]) in map(_bare, _spellings(student.name)):
                    match = student
        if match is None:
            name = letters(self._without_group(person.name))
            namesakes = self._rows.get(("name", name), [])
            match = namesakes[0] if len(namesakes) == 1 else None
        if match is None:
            # Brightspace writes a school's id or a login before the name: 23304308 Lovelace, al1
            # Ada Lovelace. Students may choose their names, so the words after the id must be part
            # of the name of the student with that id.
            word, _, remainder = person.name.partition(" ")
            student = (
                self.with_id([("id", word), ("sis_id", word), ("login", word)])
                if remainder
                else None
            )
            words = {*map(letters, student.name.replace(",", " ").split())} if student else set()
            match = student if words.issuperset(map(letters, remainder.split())) else None
        return match

    def _without_group(self, name: str) -> str:
        """Return "Ada Lovelace" for "Red team-Ada Lovelace", if she is in that group.

        Other names are returned unchanged. Moodle writes the name of a group before the names of
        its members.
        """
        for hyphen in (index for index, letter in enumerate(name) if letter == "-"):
            for member in self._rows.get(("group", letters(name[:hyphen])), []):
                if letters(name[hyphen + 1 :]) in _spellings(member.name):
                    return name[hyphen + 1 :]
        return name

    def with_id(self, ids: Iterable[tuple[str, str]]) -> Student | None:
        """Return the only student with one of these ids, or None if there is not exactly one.

        Each id comes with its column. Case does not count.
        """
        students = {
            row for column, value in ids for row in self._rows.get((column, fold_case(value)), ())
        }
        return students.pop() if len(students) == 1 else None

    def _with_login(self, login: str) -> Student | None:
        """Return the only student with this text in any column of ids, or None."""
        return self.with_id((column, login) for column in _IDS)

    @cached_property
    def _rows(self) -> dict[tuple[str, str], list[Student]]:
        """The rows by a column and its text: an id, the group, or a spelling of the name."""
        rows = defaultdict[tuple[str, str], list[Student]](list)
        for student in self.students:
            keys = {(column, fold_case(getattr(student, column))) for column in _IDS}
            keys |= {("name", spelling) for spelling in _spellings(student.name)}
            keys.add(("group", letters(student.group)))
            for column, text in keys:
                if text:
                    rows[column, text].append(student)
        return rows


class NoFolder(Exception):
    """A person gets no folder. The message gives the reason and the next step."""


@dataclass
class People:
    """Gives each person a folder, and no two persons the same."""

    roster: Roster | None = None
    # The key of the person to whom this or an earlier run has given each folder. The names of the
    # folders are `folded`, because some file systems ignore case.
    folder_keys: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # sentences, by student
    is_found: bool = False  # whether anybody was found on the roster

    def is_known(self, name: str) -> bool:
        """Return whether a person or a group on the roster has this id or name."""
        return self.roster is not None and bool(self.roster.students_of(person_called(name)))

    def folders_of(self, person: Person) -> tuple[str, ...]:
        """Return the name of the person's folder, or a name for each member of a group.

        The roster gives the names. If the person is not on the roster, the platform's name is used,
        with _ in place of unsafe characters. The folders are kept for this person (`folder_keys`),
        and a note may be added for the instructor (`notes`).

        Raises:
            NoFolder: the name is not allowed, or the folder belongs to another person.
        """
        rows = self.roster.students_of(person) if self.roster else []
        folders = tuple(row.id for row in rows) or (_UNSAFE.sub("_", person.folder).strip(" ."),)
        called = ", ".join(folders)
        try:
            os.fsencode(called)
        except UnicodeEncodeError:
            problem = f"is of {called!a}, whose letters the locale here does not know"
            raise NoFolder(f"{problem}. Next: PYTHONUTF8=1 course collect …") from None
        if rows:
            self.is_found = True
            # The roster decides, even if an earlier run gave the folder to another person.
            self.folder_keys |= {fold_case(id_): f"roster {id_}" for id_ in folders}
            if len(rows) == 1 and _has_another_name(person, rows[0]):
                self.notes[folders[0]] = (
                    f"the files are named {printable_name(person.name)!r}, as a group's are, and "
                    f"count for this student alone. {_IF_A_GROUP}"
                )
            return folders
        name = folders[0]
        key = f"{person.platform} {person.key}"
        if not is_student(name) or is_noise(name) or is_reserved(name):
            problem = (
                "is of somebody whose name cannot be a folder's. Next: give --roster a file "
                "with that person"
            )
            raise NoFolder(problem)
        owner_key = self.folder_keys.setdefault(fold_case(name), key)
        if (
            owner_key != key
            and not owner_key.startswith(f"{key}{ALONE}")
            and not key.startswith(f"{owner_key}{ALONE}")
        ):
            apart = "Next: give --roster a file that tells them apart, or all archives at once"
            raise NoFolder(f"would go to {name!a}, where the files of somebody else are. {apart}")
        if self.roster is not None:
            problem = "is not on the roster: no id, e-mail address or name fits one student alone"
            self.notes[name] = (
                f"{problem}. Next: complete the roster, or rename the folder to the right id"
            )
        return folders


def _has_another_name(person: Person, student: Student) -> bool:
    """Return whether the name in a file of Canvas is neither the student's nor the group's.

    Canvas writes the name of a group with the number of one member.
    """
    name = letters(person.name)
    words = [*map(letters, student.name.replace(",", " ").split())]
    if person.platform != CANVAS or not words or name in ("", letters(student.group)):
        return False
    return not any(word in name for word in words)


def read_roster(path: Path) -> Roster:
    """Return the roster in a CSV file.

    The first line names the columns, with the names of platforms' lists allowed. If several columns
    have the same meaning, the first one counts. Without a column `id`, another id of the student
    becomes the id.

    Raises:
        CourseFault: the file cannot be read, is no CSV, or has no column with ids; or a row has an
            invalid id, or an id of another row. The message names the line.
    """
    text = text_of_table(path, _PUT)
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    rows = rows_of_table(text, delimiter, path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    names = [name.casefold().replace(" ", "_") for name in header]
    aliases = dict[str, str]()
    if "student" in names:  # Canvas' gradebook, where ID is Canvas' own number
        aliases = {"id": "canvas_id"}
    elif "github_username" in names:  # GitHub Classroom's roster
        aliases = {"identifier": "id"}
    columns = [(_CALLED | aliases).get(name, "") for name in names]
    columns = [
        column if column not in columns[:index] else "" for index, column in enumerate(columns)
    ]
    whole_rows = (_without_line_breaks(line, row, columns, delimiter, path) for line, row in rows)
    if not {"id", *_FOLDERS} & {*columns}:
        # repr() keeps the letters of the instructor's language
        listed_names = ", ".join(repr(name) for name in header[:_MOST_COLUMNS] if name)
        raise _fault(
            path, f"has no column `id`; its columns are {listed_names or 'without names'}. {FORM}"
        )
    students = tuple(_students(whole_rows, columns, path))
    read_columns = ", ".join(
        f"{name!r} as {column}" for name, column in zip(header, columns, strict=True) if column
    )
    unread = tuple(
        name for name, column in zip(header, columns, strict=True) if name and not column
    )
    return Roster(students, unread, f"{path}, of which these columns are read: {read_columns}")


def text_of_table(path: Path, if_unreadable: str) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a mark, as spreadsheets write it.

    Args:
        path: the file.
        if_unreadable: the next step for the message, if the file cannot be read.

    Raises:
        CourseFault: the file cannot be read, has another encoding, or has more than LARGEST bytes.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise CourseFault(f"{path} cannot be read ({error.strerror}). {if_unreadable}") from None
    if len(data) > LARGEST:  # before decoding, because the end may be cut within a character
        raise _fault(path, f"is larger than {LARGEST // 1024**2} MiB")
    is_utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        raise CourseFault(f"{path} is not UTF-8. Next: save it as CSV in UTF-8") from None


def rows_of_table(text: str, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each row, also the header, after the number of the line in which it begins.

    Raises CourseFault if the text is no valid CSV. `path` is the file that the message names.
    """
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            is_about_a_quote = "expected after" in str(error) or "unexpected end" in str(error)
            raise _fault(
                path, _OPEN_QUOTE if is_about_a_quote else f"is not CSV ({error})", line
            ) from None
        yield line, row
        line = rows.line_num + 1


def _without_line_breaks(
    line: int, row: list[str], columns: Sequence[str], delimiter: str, path: Path
) -> tuple[int, list[str]]:
    """Return the line and the row unchanged, if no cell contains the lines of other students.

    A quote that is not closed would put these lines into one cell. A note may have line breaks. A
    cell of a column that is read has none, and no line of a note has as many cells as the table.

    Raises:
        CourseFault: a cell breaks these rules.
    """
    for index, cell in enumerate(row):
        lines = re.split(r"\r\n|[\r\n]", cell)
        is_read = index < len(columns) and bool(columns[index])
        has_rows = any(cell_line.count(delimiter) >= len(columns) - 1 > 0 for cell_line in lines)
        if len(lines) > 1 and (is_read or has_rows):
            raise _fault(path, _OPEN_QUOTE, line)
    return line, row


def _students(
    rows: Iterable[tuple[int, Sequence[str]]], columns: Sequence[str], path: Path
) -> Iterator[Student]:
    """Yield the student of each row.

    Rows are left out if they are empty, about staff, or one of the rows in Canvas' gradebook that
    are about no student.

    Args:
        rows: each row with its line.
        columns: the field of `Student` for each column, first_name, last_name or role; "" for a
            column that is not read.
        path: the file that messages name.

    Raises:
        CourseFault: an id cannot be the name of a folder, or two rows have the same id, e-mail
            address, login or account.
    """
    lines_by_id: dict[tuple[str, str], int] = {}
    for line, row in rows:
        # Brightspace writes # before an id, so that no spreadsheet takes it for a number.
        cells = {
            column: text.strip().removeprefix("#")
            for column, text in zip(columns, row, strict=False)
            if column
        }
        # An id is the name of a folder. It is used unchanged or refused.
        cells |= {
            column: visible_line(text).strip() for column, text in cells.items() if column != "id"
        }
        first_name, last_name, role = (
            cells.pop(name, "") for name in ("first_name", "last_name", "role")
        )
        cells["name"] = f"{first_name} {last_name}".strip() or cells.get("name", "")
        if (
            not any(cells.values())
            or cells["name"].casefold() in _MARKED
            or _STAFF.search(role.casefold())
        ):
            continue
        cells.setdefault("id", next((cells[name] for name in _FOLDERS if cells.get(name)), ""))
        if not is_student(cells["id"]) or cells["id"].startswith("."):
            raise _fault(path, f"{cells['id']!a} cannot be a folder's name", line)
        for key in ((column, fold_case(cells.get(column, ""))) for column in _IDS):
            if key[1] and lines_by_id.setdefault(key, line) != line:
                problem = (
                    f"{key[0]} {cells[key[0]]!a} stands in line {lines_by_id[key]}, too (case does "
                    "not count)"
                )
                raise _fault(path, problem, line)
        yield Student(**cells)


def _fault(path: Path, problem: str, line: int = 0) -> CourseFault:
    return CourseFault(
        f"{path}{f':{line}:' if line else ''} {problem}. Next: mend {path}, then the same command "
        "again"
    )


def fold_case(text: str) -> str:
    """Return the text for comparison, without case and with one form of each accent.

    Some file systems, and people, ignore these differences.
    """
    return unicodedata.normalize("NFKC", text).casefold()


def letters(text: str) -> str:
    """Return the letters and digits of a name, without case and with one form of each accent."""
    return plain(unicodedata.normalize("NFKC", text))


def _bare(text: str) -> str:
    """Return the ASCII letters and digits of a name, without accents, as ILIAS writes it."""
    return "".join(
        letter for letter in unicodedata.normalize("NFKD", letters(text)) if letter.isascii()
    )


def _spellings(name: str) -> set[str]:
    """Return the letters of a name in each rotation of its words.

    Ada King Lovelace gives adakinglovelace, kinglovelaceada and lovelaceadaking. Canvas, for
    example, writes the last name first.
    """
    words = name.replace(",", " ").split()
    return {letters("".join(words[i:] + words[:i])) for i in range(len(words))}


MOODLE, CANVAS = "Moodle", "Canvas"
IDENTIFIER, MODIFIED = "Identifier", "Last modified (submission)"  # columns of Moodle's worksheet
FULL_NAME, EMAIL = "Full name", "Email address"  # columns that a worksheet may lack
NOTHING = ("", "-")  # in place of a time, if nothing was handed in
# Canvas writes it before JSON, so that no other page can read the list as a program.
CANVAS_PREFIX = "while(1);"
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
# Friday, 20 November 2026, 10:11 AM; in American English Friday, November 20, 2026, 10:11 AM
_ENGLISH_DATE = re.compile(
    r"(?:[a-z]+day, )?"
    r"(?:(?P<day>\d{1,2}) (?P<month>[a-z]+)|(?P<us_month>[a-z]+) (?P<us_day>\d{1,2}),)"
    r" (?P<year>\d{4}), (?P<hour>\d{1,2}):(?P<minute>\d\d)(?: (?P<half>[ap]m))?",
    re.IGNORECASE,
)
_FOR_A_GROUP = "; for a group, with --roster and a file that has its members in a column `group`"
_NO_FILE = "Next: give --times a file that can be read"
_IN_ENGLISH = "Next: set your language in Moodle to English, and download the worksheet again"


@dataclass
class ListedTimes:
    """The times in lists, and the persons whose time was asked for.

    Attributes:
        times: the time for each platform and number of a person, or None if it cannot be read.
        names: the letters of the full name that the list has beside such a number, or "".
        by_person: for an e-mail address, and for the letters of a full name, the times of all rows
            that have it. A time is None if nothing was handed in, or if it cannot be read.
        files: the name of the list, by platform.
        unread: sentences about lines with a time that cannot be read.
    """

    times: dict[tuple[str, str], datetime | None] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    by_person: dict[str, list[datetime | None]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    _matched: set[str] = field(default_factory=set)  # platforms with at least one person in a list
    _missing: dict[Person, None] = field(default_factory=dict)  # in the order in which they came

    def time_of(self, person: Person, members: Sequence[Student] = ()) -> datetime | None:
        """Return the time of this person's hand-in.

        Return None if no list has the time, or if the time there cannot be read. If the person's
        platform has a list without the person, `problems` reports that.

        Moodle writes the number of a group where a participant's number would be, and both count
        from 1. If the list has the number beside another name, the latest time of the members
        counts.

        Args:
            person: a person or a group of a download.
            members: the rows of the roster that match the person.
        """
        if person.platform not in self.files:
            return None
        key = _key_of(person)
        if key in self.times and self._has_name_of(person):
            self._matched.add(person.platform)
            return self.times[key]
        times = [time for member in members if (time := self._time_of_member(member))]
        if times:
            self._matched.add(person.platform)
            return max(times)
        self._missing[person] = None
        return None

    def _has_name_of(self, person: Person) -> bool:
        """Return whether the list has the person's number, and no other name beside it.

        A list of Canvas, or with blind marking, has no names.
        """
        name = self.names.get(_key_of(person))
        return name is not None and name in letters(person.name)

    def _time_of_member(self, member: Student) -> datetime | None:
        """Return the time of the only row with a student's e-mail address, or else the name.

        Return None if there is no such row, or if the row has no time that can be read.
        """
        for text in filter(None, (fold_case(member.email), *sorted(_spellings(member.name)))):
            times = self.by_person.get(text, [])
            if len(times) == 1:
                return times[0]
        return None

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each hand-in time that a list lacks, or that cannot be read there.

        `time_of` must have been called for all persons of the download. The lines with a time that
        cannot be read come first. Then, for each list, come the persons whose time it lacks. A list
        without any of the persons gets one sentence in place of one for each.
        """
        yield from self.unread
        for platform, file in self.files.items():
            missing = [person for person in self._missing if person.platform == platform]
            if platform not in self._matched:
                yield (
                    f"{file} has nobody whose files are in the download. Next: give the "
                    f"download as {platform} gave it, and the list of that very assignment"
                )
                continue
            for person in missing:
                sentence = (
                    f"{file} has no time of {printable_name(person.key)}. Next: get the list from "
                    f"{platform} again, then the same command again"
                )
                if platform == MOODLE and not self._has_name_of(person):
                    sentence += _FOR_A_GROUP
                yield sentence


def _key_of(person: Person) -> tuple[str, str]:
    """Return the platform and the number in the name of a hand-in."""
    return person.platform, person.key.rpartition("_")[2]


def read_times(paths: Iterable[Path], course: Course) -> ListedTimes:
    """Return the times in Moodle's worksheets and in Canvas' lists of submissions.

    A file that begins like JSON is a list of Canvas.

    Raises:
        CourseFault: a file cannot be read, or has another form; or the course names no time zone
            for the times of Moodle.
    """
    listed = ListedTimes()
    for path in paths:
        text = text_of_table(path, _NO_FILE)
        start = text.lstrip()
        if start.startswith(("[", "{", CANVAS_PREFIX)):
            _read_canvas(path, start.removeprefix(CANVAS_PREFIX), listed)
        else:
            _read_moodle(path, text, course.file.time_zone or "", listed)
    return listed


def _read_moodle(path: Path, text: str, zone: str, listed: ListedTimes) -> None:
    """Add the times of a grading worksheet to `listed`. The times are in the zone `zone`.

    Raises:
        CourseFault: the text is no worksheet in English, or `zone` is "".
    """
    rows = rows_of_table(text, max(DELIMITERS, key=text.partition("\n")[0].count), path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    if IDENTIFIER not in header or MODIFIED not in header:
        columns = ", ".join(repr(name) for name in header[:_MOST_COLUMNS] if name)
        raise CourseFault(
            f"{path} has no columns {IDENTIFIER!r} and {MODIFIED!r}, as Moodle's grading worksheet "
            f"has them; its columns are {columns or 'without names'}. {_IN_ENGLISH}"
        )
    if not zone:
        raise CourseFault(
            f"the times in {path} name no zone. Next: write that of your Moodle into course.yaml, "
            "such as time_zone: Europe/Berlin"
        )
    listed.files[MOODLE] = printable_name(path.name)
    for line, row in rows:
        cells = dict(zip(header, row, strict=False))
        written = " ".join(cells.get(MODIFIED, "").split())  # blanks of every kind
        when = None if written in NOTHING else _english_moment(written, zone)
        name = letters(cells.get(FULL_NAME, ""))
        for text in filter(None, (name, fold_case(cells.get(EMAIL, "").strip()))):
            listed.by_person.setdefault(text, []).append(when)
        identifier = cells.get(IDENTIFIER, "").strip()  # a last line may be empty
        number = re.fullmatch(r"\D*(\d{1,18})", identifier)
        if number is not None:
            listed.names[MOODLE, number[1]] = name
        if written in NOTHING:
            continue
        if number is not None:
            listed.times[MOODLE, number[1]] = when
        if number is None or when is None:
            problem = f"{identifier!a:.40} with the time {written!a:.60} is not read"
            listed.unread.append(
                f"{printable_name(path.name)}, line {line}: {problem}. {_IN_ENGLISH}"
            )


def _english_moment(text: str, zone: str) -> datetime | None:
    """Return the moment of an ISO date, or of a date that Moodle writes in English, or None."""
    date = _ENGLISH_DATE.fullmatch(text)
    if date is None:
        return read_moment(text, zone)
    month = (date["month"] or date["us_month"]).lower()
    hour = int(date["hour"])
    if month not in MONTHS or (date["half"] and not 1 <= hour <= 12):
        return None
    if date["half"]:
        hour %= 12  # 12 AM is midnight, and 12 PM is noon
        if date["half"].lower() == "pm":
            hour += 12
    month_number = MONTHS.index(month) + 1
    day = int(date["day"] or date["us_day"])
    iso_day = f"{date['year']}-{month_number:02}-{day:02}"
    return read_moment(f"{iso_day} {hour:02}:{date['minute']}", zone)


def _read_canvas(path: Path, text: str, listed: ListedTimes) -> None:
    """Add the times in an answer of Canvas' API to …/assignments/ID/submissions to `listed`.

    Raises:
        CourseFault: the text is no JSON list.
    """
    try:
        submissions = json.loads(text)
    except (ValueError, RecursionError):
        submissions = None
    if not isinstance(submissions, list):
        raise CourseFault(
            f"{path} is no list of submissions, as Canvas' API gives it. Next: save what "
            "/api/v1/courses/COURSE/assignments/ASSIGNMENT/submissions?per_page=100 of your "
            "Canvas shows, a file for each page"
        )
    listed.files[CANVAS] = printable_name(path.name)
    for submission in submissions:
        fields = submission if isinstance(submission, Mapping) else {}
        number = fields.get("user_id") or fields.get("anonymous_id")
        written = fields.get("submitted_at")
        if number is None or written is None:  # nothing was handed in
            continue
        listed.names[CANVAS, str(number)] = ""
        when = listed.times[CANVAS, str(number)] = read_moment(str(written))
        if when is None:
            listed.unread.append(
                f"{printable_name(path.name)}: the time {written!a:.60} of user {number!a:.20} is"
                " not read. Next: get the list from Canvas again"
            )
