"""Recognise the downloads of learning platforms by the paths of their files.

Each row of the table `ROWS` describes one platform, with a regular expression for paths. Two cases
come before the table: a download of one student, and a download with Gradescope's list. Files that
match no expression are read as folders of students, at any depth.

Students choose the names within their hand-ins, and could name a folder as a platform names the
folder of another student. So an expression is matched from the top of a path, no deeper than the
level at which the paths of a download differ, and never within a student's archive.

The groups of an expression are listed here. A digit after a name marks a second position.

    `who`            the student or the team; contains `id` and `name`
    `login`          the student's login
    `order`, `time`  decide which attempt is the newest
    `late`           the platform's mark for late hand-ins
    `file`           the student's name of the file
    `named`          the name by which the platform recognises the file later
    `typed`          the file holds text that was typed into the platform
    `back`           the file is feedback that was returned to the student
    `beside`         the file belongs to no student
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from os.path import commonprefix
from shlex import quote
from typing import Any, NamedTuple

import yaml

from ..course import Course
from ..course.course_yaml_schema import read_moment
from . import ENDINGS, is_archive
from .find_submitted_files import Exercises, plain, printable_name
from .intake_journal import Origin
from .read import MIB, Closed
from .read_archives import METADATA, Member, content_of, is_wanted, own_name

_ARCHIVE = r"(?i:\.(?:zip|tgz|7z|rar|tar(?:\.gz|\.bz2|\.xz)?|gz))"
_TABLE = re.compile(r"(?:[^/]+/)?(?:[^/]+\.(?:xlsx?|csv)|index\.html)")
CLONES, FOLDERS = "clones", "folders"
_KINDS = {
    "typed": "text or a note beside a file that was handed in",
    "back": "feedback that went back to students",
    "beside": "nobody's hand-in",
}
_GROUPS = ("who", "id", "name", "login", "order", "time", "late", "file", "named", *_KINDS)
ALONE = " alone in "  # in the key of a person, before the name of an archive with only one folder
_GRADESCOPE = "Gradescope"
_IN_FOLDERS = Origin(platform=FOLDERS)
_LIST_BYTES = 16 * MIB  # of Gradescope's list: as much as of one attempt (`IntakeLimits`)
# levels of nested brackets: far more than the list needs, because the parser recurses into each
_DEEPEST = 50
# Reads all values as texts. The loader of libyaml is faster, but not always installed.
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_NO_NAME = (
    "says of no student whose it is. Next: mkdir STUDENT && mv {} STUDENT/ where it lies, "
    "then: course collect STUDENT"
)
_NO_FOLDER = "is in no student's folder. Next: put it into one, then the same command again"


@dataclass(frozen=True)
class Person:
    """A person or a group on a platform.

    Attributes:
        key: a text that is unique on the platform.
        folder: the name of the person's folder, if the roster gives no other.
        name: the name of the person or the group on the platform; "" if unknown.
        ids: ids that the platform gives, each with its column of the roster.
        logins: texts that may be the login or end with it, the most likely first.
    """

    platform: str
    key: str
    folder: str
    name: str = ""
    ids: tuple[tuple[str, str], ...] = ()
    logins: tuple[str, ...] = ()


@dataclass(frozen=True)
class HandIn:
    """A file of a hand-in. Its name is the student's name of the file."""

    person: Person
    member: Member
    name: str
    origin: Origin


class RefusedFile(NamedTuple):
    """A file of a download that is not taken.

    Attributes:
        path: the path in the download.
        reason: the end of the sentence about the file.
    """

    path: tuple[str, ...]
    reason: str


@dataclass
class Understood:
    """The interpretation of a download.

    Attributes:
        refused: the files that are not taken.
        left_out: the number of files for each text of `_KINDS`.
    """

    platforms: list[str] = field(default_factory=list)
    handed_in: list[HandIn] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Download:
    """A download that has been listed.

    Attributes:
        name: the name of the file or folder, or of the student if one student handed in everything.
        members: the files that are not refused.
        is_of_one: whether all files belong to one student, with `name` as the student's name.
        is_known: returns whether a name is an id or a name on the roster.
    """

    name: str
    members: tuple[Member, ...]
    is_of_one: bool
    is_known: Callable[[str], bool] = field(repr=False, compare=False)

    @cached_property
    def common_depth(self) -> int:
        """The number of folders that all files have in common.

        Tables (CSV, Excel, index.html) do not count if they lie beside or above the folder of all
        hand-ins.
        """
        tables = [m.path[:-1] for m in self.members if _TABLE.fullmatch("/".join(m.path))]
        hand_in_folders = [
            m.path[:-1] for m in self.members if not _TABLE.fullmatch("/".join(m.path))
        ]
        shared = commonprefix(hand_in_folders or tables)  # noqa: RUF071, of folders
        # otherwise a table is part of a hand-in
        is_beside = all(table == shared[: len(table)] for table in tables)
        return len(shared if is_beside else commonprefix(hand_in_folders + tables))  # noqa: RUF071


def name_without_suffix(name: str) -> str:
    """Return the name of an archive without its suffix, such as .zip; another name unchanged."""
    return re.sub(rf"{_ARCHIVE}\Z", "", name)


@dataclass(frozen=True)
class ListingRow:
    """A platform, and how to recognise its downloads.

    Attributes:
        expression: a regular expression for paths; {ids} stands for the ids of assignments.
        folder: the name of a student's folder, if the student has an id.
        columns: the columns of the roster in which `id` may be.
        cut: the character between the login and the text with which all hand-ins begin.
        at_parting: whether `who` is only at the level at which the paths differ.
        repositories: whether `who` is a repository that is named after an account. The account is
            looked up only as a GitHub name, and other files in the folder belong to no student.
    """

    platform: str
    expression: str
    folder: str = "{who}"
    columns: tuple[str, ...] = ()
    cut: str = ""
    at_parting: bool = False
    repositories: bool = False

    def read(
        self, download: Download, members: Sequence[Member], course: Course, parsed: Understood
    ) -> list[Member]:
        """Add the members that this platform recognises to `parsed`, and return the others.

        A hand-in is added to `handed_in`. Typed text is counted in `left_out` if the person also
        handed in a file, and refused otherwise. Returned feedback is counted, too. A file beside
        the hand-ins is refused if it may be an attempt of a person without a hand-in, and counted
        otherwise. If no person has a hand-in, such a file is not recognised.

        Args:
            download: the download.
            members: the files of the download that no other reader has taken.
            course: the course.
            parsed: the interpretation to extend.
        """
        ids = "|".join(re.escape(assignment.id) for assignment in course.assignments)
        expression = re.compile(self.expression.replace("{ids}", ids), re.DOTALL)
        matches = [
            (m, self._groups(expression, (download.name, *m.path), 1 + download.common_depth))
            for m in members
        ]
        have = {
            groups["who"]: groups["root"] for _, groups in matches if groups and not groups["kind"]
        }
        roots = {*have.values()} if self.repositories else set()
        owners = [groups["who"] for _, groups in matches if groups]
        prefixes = _prefixes(owners, self.cut, download, course) if self.cut else []
        unmatched = list[Member]()
        for member, groups in matches:
            category = groups.get("kind", "")
            if have and not groups and _TABLE.fullmatch("/".join(member.path)):
                category = "beside"
            folders = ("/".join((download.name, *member.path[:i])) for i in range(len(member.path)))
            if not roots.isdisjoint(folders) and not (groups and is_wanted(member.name)):
                category = "beside"
            is_alone = bool(groups) and groups["who"] not in have
            if category == "typed" and is_alone:
                problem = (
                    f"is text or a link typed into {self.platform}, or a note, and no file. "
                    "Next: ask for the file"
                )
                parsed.refused.append(RefusedFile(member.path, problem))
            elif category == "beside" and is_alone and have and is_wanted(member.name):
                problem = (
                    f"lies where {self.platform} puts tasks and corrections. Next: look "
                    "whether it was handed in"
                )
                parsed.refused.append(RefusedFile(member.path, problem))
            elif category and (have or category == "back"):
                parsed.left_out[_KINDS[category]] += 1
            elif category or not groups:
                unmatched.append(member)
            else:
                parsed.handed_in.append(
                    self._hand_in(member, groups, prefixes, course.file.time_zone or "")
                )
        return unmatched

    def _groups(self, expression: re.Pattern[str], path: Sequence[str], at: int) -> dict[str, str]:
        """Return the groups of the first match, searched from the top of a path; {} without one.

        No match begins deeper than level `at`, and with `at_parting` none begins above it. Two
        entries are added: "kind", the group of `_KINDS` that matched or "", and "root", the path of
        the person's folder or repository.
        """
        for depth in range(at if self.at_parting else 0, min(at + 1, len(path))):
            if match := expression.fullmatch("/".join(path[depth:])):
                groups = dict.fromkeys(_GROUPS, "")
                groups |= {
                    name.rstrip("0123456789"): text
                    for name, text in match.groupdict().items()
                    if text
                }
                category = next((category for category in _KINDS if groups[category]), "")
                return groups | {
                    "kind": category,
                    "root": "/".join(path[: depth + 1 + ("all" in groups)]),
                }
        return {}

    def _hand_in(
        self, member: Member, groups: Mapping[str, str], prefixes: Sequence[int], zone: str
    ) -> HandIn:
        """Return the hand-in of a file whose path matches the platform's expression.

        Args:
            member: the file.
            groups: the groups of the match, by name (`_groups`).
            prefixes: the possible lengths of the text before the login (`_prefixes`). Empty if the
                platform writes no such text.
            zone: the time zone of the course; "" if it names none.
        """
        owner = name_without_suffix(groups["who"])
        id_ = groups["id"]
        time = _clock(groups["time"])
        logins = (*(owner[length:] for length in prefixes), *filter(None, [groups["login"]]))
        short = owner[prefixes[-1] :] if prefixes else owner
        folder = self.folder.format(who=short, id=id_, name=groups["name"]) if id_ else short
        ids = tuple((column, id_) for column in self.columns if id_)
        called = groups["name"] or short
        if self.repositories:
            ids = tuple(("github", login) for login in logins)
            logins = ()
            called = ""
        person = Person(self.platform, folder if id_ else owner, folder, called, ids, logins)
        name = groups["file"].rpartition("/")[2]
        # otherwise it is the name of an archive that was unpacked in place
        if not (name and member.name.endswith(name)):
            name = member.name
        origin = origin_of(
            self.platform,
            time,
            zone,
            groups["order"],
            late=bool(groups["late"]),
            named=groups["named"],
        )
        return HandIn(person, member, name, origin)


def origin_of(platform: str, time: str, zone: str = "", order: str = "", **fields: Any) -> Origin:
    """Return the origin of a file.

    Args:
        platform: the name of the platform.
        time: the time of the hand-in as text; ignored if it is no ISO 8601 date and time.
        zone: the zone for a time without one. Without any zone, `handed_in` stays empty.
        order: the position in the platform's order, in digits. Without it, the time gives the
            order.
        **fields: other fields of the origin.
    """
    in_order = read_moment(time, "UTC")
    when = read_moment(time, zone)
    number = float(re.sub(r"\D", "", order) or (in_order.timestamp() if in_order else 0))
    return Origin(
        platform=platform, order=number, handed_in=when.isoformat() if when else "", **fields
    )


def _prefixes(owners: Sequence[str], sign: str, download: Download, course: Course) -> list[int]:
    """Return the possible lengths of the text before the logins, the shortest first.

    All owners begin with this text, which ends with `sign`. If the text is the name of an
    assignment, or of a folder NAME-submissions, return its length alone. Otherwise the first length
    is 0.
    """
    starts = [
        f"{assignment.id.replace('_', joint)}{sign}"
        for assignment in course.assignments
        for joint in "_-"
    ]
    folders = (
        download.name,
        *(download.members[0].path[: download.common_depth] if owners else ()),
    )
    starts += [
        f"{name.removesuffix('-submissions')}-" for name in folders if name.endswith("-submissions")
    ]
    for slug in starts if owners else ():
        if all(text.lower().startswith(slug.lower()) and len(text) > len(slug) for text in owners):
            return [len(slug)]
    # Folders that this platform does not recognise count, too.
    siblings = {
        m.path[download.common_depth]
        for m in download.members
        if len(m.path) > download.common_depth
    }
    names = {*owners, *(siblings if siblings.issuperset(owners) else ())}
    # commonprefix compares letters, as needed here, and not parts of a path
    shared = commonprefix(sorted(names)) if len(names) > 1 else ""  # noqa: RUF071
    return [0, *(match.end() for match in re.finditer(re.escape(sign), shared))]


def _clock(text: str) -> str:
    """Return a platform's time as an ISO date and time, without a zone.

    A text of an unknown form is returned unchanged, for example if its month is not in English.
    """
    if re.fullmatch(r"\d{4}(-\d\d){5}", text):
        return f"{text[:10]} {text[11:].replace('-', ':')}"
    # Nov 20 2026 1102 AM, 5 Mar 2026 612 PM
    short = re.sub(r"([A-Za-z]{3})[a-z]+", r"\1", re.sub(r"[,.:]", "", text))
    short = re.sub(r" (\d{3})(?= |$)", r" 0\1", short)
    for form in ("%b %d %Y %I%M %p", "%d %b %Y %I%M %p", "%d %b %Y %H%M") if text else ():
        with suppress(ValueError):
            return datetime.strptime(short, form).replace(tzinfo=UTC).strftime("%Y-%m-%d %H:%M")
    return text


_TIME = r"(?:\d{1,2}\.? \w+|\w+ \d{1,2}),? \d{4} \d{1,2}:?\d{2}(?: ?[AaPp]\.?[Mm]\.?)?"
_SAKAIS = r"(?P<who{0}>(?P<name{0}>[^/]+?) ?\((?P<id{0}>[^()/]+)\)|[^/]+?)"
ROWS = (
    ListingRow(  # nbgrader/exchange/default/submit.py: user+assignment+time+random in inbound/
        "nbgrader",
        (
            r"(?P<who>(?P<login>[^+/]+))\+[^+/]+\+(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^+/]*)"
            r"(?:\+[^+/]*)?/(?P<file>.*)"
        ),
    ),
    # mod/assign/classes/downloader.php; without "Download submissions in folders" the folder's name
    # is a prefix of each file's name
    ListingRow(
        "Moodle",
        (
            r"(?P<named>(?P<who>(?P<name>[^_/]+)(?:_(?P<id>\d{1,18}))?)_assign(?:(?P<back>"
            r"feedback)|submission)_(?:(?P<typed>onlinetext)|[a-z]+)_?)(?P<file>.*)"
        ),
    ),
    # lib/content_zipper.rb takes digits between underscores out of names: the first two numbers are
    # the ids
    ListingRow(
        "Canvas",
        r"(?P<named>(?:(?P<late>LATE_)?(?P<who>anon_(?=\d{0,4}[A-Za-z])[A-Za-z0-9]{5})"
        r"|(?P<name>[^/]*?)_(?P<late2>LATE_)?(?P<who2>(?P<id>\d{1,18})))"
        r"_(?:(?P<typed>(?:text|link)\.html)|(?P<order>\d{1,18})_(?P<file>[^/]+)))(?:/.*)?",
        "{name}_{id}",
        ("canvas_id",),
    ),
    # The meaning of the two numbers is not documented. Both are kept, so two students of one name
    # stay two.
    ListingRow(
        "Brightspace",
        (
            rf"(?P<who>(?P<id>\d{{1,18}}-\d{{1,18}}) ?- (?P<name>[^/]+?)) ?- (?P<time>{_TIME})"
            rf"(?: ?- (?P<file>[^/]+)|{_ARCHIVE})?(?:/.*)?"
        ),
        "{name}_{id}",
    ),
    # If there is only one hand-in, the name of the assignment cannot be separated from the user's,
    # and the text is kept whole.
    ListingRow(
        "Blackboard",
        (
            rf"(?P<who>[^/]+?)_attempt_(?P<time>\d{{4}}(?:-\d\d){{5}})(?:(?P<typed>\.txt)|"
            rf"(?:_(?P<file>[^/]+)|{_ARCHIVE})?(?:/.*)?)"
        ),
        cut="_",
    ),
    ListingRow(
        "Sakai",
        (
            rf"{_SAKAIS.format('')}[/_](?i:(?P<back>feedback)|submission)(?i: attachment\(s\))[/"
            rf"_](?P<file>.*)|{_SAKAIS.format(2)}/(?:(?P<typed>(?i:[^/]*_submissiontext\.html))|"
            r"(?P<beside>(?i:comments\.txt|feedbacktext\.html)))"
        ),
        "{id}",
        ("email", "login", "sis_id"),
    ),
    ListingRow(
        "OpenOLAT",
        (
            r"(?P<who>(?P<login>[^/]+))/(?P<order>\d{1,3})_(?:submissions|revisions|(?P<beside>"
            r"corrections|task|solutions?))(?:_[^/]*)?/(?P<file>.*)"
        ),
    ),
    # Each hand-in is a revision. A school without ids has only the name.
    ListingRow(
        "Schoology",
        r"(?P<who>(?P<name>[^/]*[^/\s]) - (?P<id>[^/\s]+)|[^/]+)/"
        r"(?i:revision (?P<order>\d{1,9})(?: ?- ?(?:(?P<late>late)|[^/]*))?)/(?P<file>.*)",
        "{id}",
        ("sis_id",),
    ),
    # the folder of a repository; GitHub's zip of one, with the branch after its name; or the
    # download of all repositories from Classroom
    ListingRow(
        CLONES,
        rf"(?P<who>[^/]+?)(?:(?:-main|-master)?{_ARCHIVE})?/exercises/(?:{{ids}})/(?P<file>.*)"
        rf"|(?P<who2>[^/]+?)-(?:main|master){_ARCHIVE}"
        rf"|(?P<all>[^/]+)-submissions/(?P<who3>(?P=all)-[^/]+?)(?:{_ARCHIVE})?(?:/(?P<file2>.*))?",
        cut="-",
        repositories=True,
    ),
    # If a student uploads a file name again, ILIAS keeps both files, and counts from 2. Teams are
    # folders, and are read as such.
    ListingRow(
        "ILIAS",
        (
            r"(?P<who>(?P<name>[^_/]+_[^_/]+)_(?P<login>[^/]+)_\d{1,18})/(?:[^/]+/)*(?:(?P<late>"
            r"(?i:late submission|versp[^/]{1,2}tete abgabe)) - )?(?P<file>[^/]+?(?: \((?P<order>"
            r"\d{1,4})\))?(?:\.[^./]*)?)"
        ),
        at_parting=True,
    ),
)


def interpret(download: Download, course: Course) -> Understood:
    """Return the interpretation of a download.

    Each reader takes the members that it recognises, and leaves the others for the next one. The
    last one, for folders of students, takes or refuses all that remain.
    """
    parsed = Understood()
    remaining = [*download.members]
    readers = (
        (FOLDERS, _one_students),
        (_GRADESCOPE, _of_gradescope),
        *((row.platform, row.read) for row in ROWS),
        (FOLDERS, _in_folders),
    )
    for platform, read in readers:
        previous_count = len(remaining)
        remaining = read(download, remaining, course, parsed) if remaining else []
        if len(remaining) < previous_count and platform not in parsed.platforms:
            parsed.platforms.append(platform)
    return parsed


def _one_students(
    download: Download, members: Sequence[Member], course: Course, parsed: Understood
) -> list[Member]:
    """Hand in all members for one student if the whole download is theirs; return the others.

    So the result is empty or holds all members. There must be at least one member. The download
    belongs to one student if `is_of_one` is set, or if the name of the download or of a folder that
    holds all files is on the roster.
    """
    names = map(name_without_suffix, (download.name, *members[0].path[: download.common_depth]))
    known_name = next(
        (name for name in names if download.is_of_one or download.is_known(name)), None
    )
    if known_name is None:
        return [*members]
    parsed.handed_in += [
        HandIn(person_called(known_name), member, member.name, _IN_FOLDERS) for member in members
    ]
    return []


def person_called(name: str, alone_in: str = "") -> Person:
    """Return the person of a folder or an archive with a name that people chose.

    The name may be any id of the roster, or the person's name. If `alone_in` is the name of an
    archive with only this folder, it becomes a part of the key.
    """
    return Person(
        FOLDERS, f"{name}{ALONE}{alone_in}" if alone_in else name, name, name, logins=(name,)
    )


def _in_folders(
    download: Download, members: Sequence[Member], course: Course, parsed: Understood
) -> list[Member]:
    """Take all files in students' folders, which have the same depth, and refuse the others.

    If there are no such folders, and no other reader took a file, all files belong to the student
    after whom the download is named. Files in a folder from which another reader took a file are
    refused. Return [].
    """
    depth = depth_of(download.members, course)
    download_name = name_without_suffix(download.name)
    names = {
        folders[depth] for folders in map(_folders, download.members) if 0 <= depth < len(folders)
    }
    is_one_student = depth < 0 and len(members) == len(download.members)
    # The only folder of an archive is the only sign of the student.
    is_alone = (
        download_name != download.name
        and plain(download_name) not in all_ids(course)
        and len(names) == 1
    )
    claimed_folders = {member.path[:-1] for member in {*download.members} - {*members}}
    for member in members:
        folders = _folders(member)
        if member.path == (download.name,) and not (member.closed and is_archive(download.name)):
            parsed.refused.append(
                RefusedFile(member.path, _NO_NAME.format(quote(printable_name(member.name))))
            )
        elif folders not in claimed_folders and (is_one_student or 0 <= depth < len(folders)):
            name = download_name if is_one_student else name_without_suffix(folders[depth])
            person = person_called(name, alone_in=download.name if is_alone else "")
            parsed.handed_in.append(HandIn(person, member, member.name, _IN_FOLDERS))
        else:
            parsed.refused.append(RefusedFile(member.path, _NO_FOLDER))
    return []


def depth_of(members: Sequence[Member], course: Course) -> int:
    """Return the depth of the students' folders; -1 if the download is a student's folder itself.

    From the top on, the first level decides at which one of these rules holds:

    1. A folder has the name of an assignment, or all have names of exercises or assignments: the
       level above has the students' folders. At the top, the level below has them if every file
       lies deeper, as in <assignment>/<student>/….
    2. There are several folders: they are the students' folders, such as ada and bela in
       class/hw1/ada and class/hw1/bela.
    3. There is an attempt, or no folder: the level above has the students' folders. But if a name
       of an attempt has further words, the folder beside it is a student's, because the attempt may
       belong to another student.
    """
    ids = {plain(a.id) for a in course.assignments}
    exercises = Exercises(course)
    depth = 0
    while True:
        folders = {path[depth] for path in map(_folders, members) if depth < len(path)}
        names = set(map(plain, folders))
        loose = [own_name(m.name) for m in members if len(m.path) == depth + 1]
        loose = [name for name in loose if name.lower().endswith(ENDINGS)]
        if ids & names or (names and names <= all_ids(course)):
            # <assignment>/<student>/…
            is_transposed = depth == 0 and all(
                len(m.path) + is_archive(m.name) > 2 for m in members
            )
            return 1 if is_transposed else depth - 1
        if len(folders) > 1:
            return depth
        if loose or not folders:
            says_more = any(
                exercises.match_name(name) and not exercises.is_plain(name) for name in loose
            )
            return depth if folders and says_more else depth - 1
        depth += 1


def _folders(member: Member) -> tuple[str, ...]:
    """Return the folders of a file. An archive counts as a folder."""
    return member.path if is_archive(member.name) else member.path[:-1]


def all_ids(course: Course) -> set[str]:
    """Return all plain names that the folder of an exercise or of an assignment may have."""
    return {
        plain(name)
        for exercise in course.exercises
        for name in (exercise.id, exercise.stem, exercise.assignment.id)
    }


def _of_gradescope(
    download: Download, members: Sequence[Member], course: Course, parsed: Understood
) -> list[Member]:
    """Take all files by Gradescope's list, if the list lies above all files; otherwise return them.

    "Export Submissions" writes folders submission_<number>/ and this list, which names the students
    of each folder, with Ruby's keys: submission_987654 → :submitters → a list of :name, :sid,
    :email; :created_at. Each of these students gets every file of the folder. A file in a folder
    that is not listed is refused.
    """
    lists = [
        member
        for member in members
        if member.name == METADATA and len(member.path) - 1 <= download.common_depth
    ]
    if not lists:
        return [*members]
    listed = _read_list(lists[0])
    depth = len(lists[0].path) - 1
    for member in members:
        # A table may lie above the list: it is in no folder.
        folder_name = member.path[depth] if len(member.path) > depth else ""
        entry = _dict(listed.get(folder_name))
        submitters = entry.get(":submitters")
        created = _text(entry, ":created_at")
        persons = list[Person]()
        for submitter in map(_dict, submitters if isinstance(submitters, list) else ()):
            name, sid, email = (_text(submitter, key) for key in (":name", ":sid", ":email"))
            if folder := sid or email or name:
                persons.append(
                    Person(_GRADESCOPE, folder, folder, name, (("sis_id", sid), ("email", email)))
                )
        parsed.handed_in += [
            HandIn(person, member, member.name, origin_of(_GRADESCOPE, created))
            for person in persons
        ]
        if member is not lists[0] and not persons:
            problem = (
                f"is of no submission that {METADATA} lists. Next: look whose it is, or "
                "export the submissions again"
            )
            parsed.refused.append(RefusedFile(member.path, problem))
    return []


def _read_list(member: Member) -> dict[Any, Any]:
    """Return Gradescope's list; {} if it is no YAML, too large, or nested too deeply."""
    try:
        text = content_of(member, _LIST_BYTES).decode("utf-8")
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _DEEPEST:
                return {}
        return _dict(yaml.load(text, Loader=_Loader))
    except (yaml.YAMLError, Closed, UnicodeDecodeError, RecursionError, ValueError):
        return {}


def _dict(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(entry: dict[Any, Any], key: str) -> str:
    value = entry.get(key)
    return value.strip() if isinstance(value, str) and value not in ("null", "~") else ""
