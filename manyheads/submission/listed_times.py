"""Times of hand-in, from the list that a platform gives beside a download.

The downloads of Moodle and Canvas do not say when something was handed in. Moodle's grading
worksheet (CSV) and Canvas' list of submissions (JSON, from its API) do. Both know a hand-in by a
number that also stands in the names of the download:

    Identifier,Full name,…,Last modified (submission),…
    Participant 123456,Ada Lovelace,…,"Friday, 20 November 2026, 10:11 AM",…
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ..course import Course
from ..course.course_yaml import read_moment
from ..course_fault import CourseFault
from .find import printable_name
from .platforms import Person
from .roster import DELIMITERS, rows_of_table, text_of_table

MOODLE, CANVAS = "Moodle", "Canvas"
IDENTIFIER, MODIFIED = "Identifier", "Last modified (submission)"  # columns of Moodle's worksheet
NOTHING = ("", "-")  # in place of a time, if nothing was handed in
MOST_COLUMNS = 12  # that one sentence names
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
_NO_FILE = "Next: give --times a file that can be read"
_IN_ENGLISH = "Next: set your language in Moodle to English, and download the worksheet again"


@dataclass
class ListedTimes:
    """The times in lists, and the persons whose time was asked for.

    Attributes:
        times: the time for each platform and number of a person, or None if it cannot be read.
        files: the name of the list, by platform.
        unread: sentences about lines with a time that cannot be read.
    """

    times: dict[tuple[str, str], datetime | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    _matched: set[str] = field(default_factory=set)  # platforms with at least one person in a list
    _missing: dict[Person, None] = field(default_factory=dict)  # in the order in which they came

    def time_of(self, person: Person) -> datetime | None:
        """Return the time of this person's hand-in, or None if no list has it."""
        if person.platform not in self.files:
            return None
        number = person.key.rpartition("_")[2]
        if (person.platform, number) in self.times:
            self._matched.add(person.platform)
        else:
            self._missing[person] = None
        return self.times.get((person.platform, number))

    def problems(self) -> Iterator[str]:
        """Yield a sentence about each time that is not known, once everybody was asked for."""
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
                yield (
                    f"{file} has no time of {printable_name(person.key)}. Next: get the list from "
                    f"{platform} again, then the same command again"
                )


def read_times(paths: Iterable[Path], course: Course) -> ListedTimes:
    """Read lists of Moodle and Canvas. Raises CourseFault."""
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
    """Take in a grading worksheet, with times in this time zone."""
    rows = rows_of_table(text, max(DELIMITERS, key=text.partition("\n")[0].count), path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    if IDENTIFIER not in header or MODIFIED not in header:
        columns = ", ".join(repr(name) for name in header[:MOST_COLUMNS] if name)
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
        if written in NOTHING:
            continue
        when = _english_moment(written, zone)
        number = re.fullmatch(r"\D*(\d{1,18})", cells[IDENTIFIER].strip())
        if number is not None:
            listed.times[MOODLE, number[1]] = when
        if number is None or when is None:
            problem = f"{cells[IDENTIFIER]!a:.40} with the time {written!a:.60} is not read"
            listed.unread.append(
                f"{printable_name(path.name)}, line {line}: {problem}. {_IN_ENGLISH}"
            )


def _english_moment(text: str, zone: str) -> datetime | None:
    """Return the moment of an ISO date, or of one that Moodle writes in English."""
    date = _ENGLISH_DATE.fullmatch(text)
    if date is None:
        return read_moment(text, zone)
    month, hour = (date["month"] or date["us_month"]).lower(), int(date["hour"])
    if month not in MONTHS or (date["half"] and not 1 <= hour <= 12):
        return None
    if date["half"]:
        hour = hour % 12 + 12 * (date["half"].lower() == "pm")
    day = f"{date['year']}-{MONTHS.index(month) + 1:02}-{int(date['day'] or date['us_day']):02}"
    return read_moment(f"{day} {hour:02}:{date['minute']}", zone)


def _read_canvas(path: Path, text: str, listed: ListedTimes) -> None:
    """Take in the answer of the API to …/assignments/ID/submissions."""
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
        when = listed.times[CANVAS, str(number)] = read_moment(str(written))
        if when is None:
            listed.unread.append(
                f"{printable_name(path.name)}: the time {written!a:.60} of user {number!a:.20} is"
                " not read. Next: get the list from Canvas again"
            )
