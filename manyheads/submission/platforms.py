"""The table of platforms: how each names what it lets an instructor download, as expressions over a file's path.

A path begins with the download's own name. A student decides on the names within what they handed in, and could name a folder in it as
a platform names another student's. So the group `who` has to end where the download's files part ways, or above: there the platform
itself, or the instructor, named them. Other groups: `name` and `id` of the person; `order`, by which attempts are ordered, or `time`;
`late`; `file`, the student's own name of the file; `named`, by which the platform knows a file again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from os.path import commonprefix

from ..course import Course
from .read_download import Found, Refused

ALONE = " alone in "  # in a person's key, before the archive that holds one folder only


@dataclass(frozen=True)
class Person:
    """A student, or a group that hands in as one, as a platform names them.

    folder: the name of the student's folder where no roster knows better; nobody else on the platform has it.
    ids: what the platform knows of them, by the roster's columns.
    alone_in: the archive that holds this folder only: another archive may have one of the same name.
    """

    folder: str
    name: str = ""
    ids: tuple[tuple[str, str], ...] = ()
    alone_in: str = ""

    @property
    def key(self) -> str:
        """What is this person's alone on the platform."""
        return f"{self.folder}{ALONE}{self.alone_in}" if self.alone_in else self.folder


def person_called(name: str, alone_in: str = "") -> Person:
    """Return the person of a folder or an archive that people named: it may be any id of the roster, or a name."""
    return Person(name, name, tuple((column, name) for column in ("sis_id", "email", "login")), alone_in)


@dataclass(frozen=True)
class HandedIn:
    """A file that a person handed in.

    name: as the student named it, without what the platform put before it.
    order: the platform's own order of attempts, the newest last; equal where it has none.
    named: what the platform calls it, by which it knows whose feedback is: Canvas' file, Moodle's folder.
    archive: the archive whose own name says who the person is.
    time: when it was handed in, in ISO 8601, where the platform says; late: whether it says late.
    """

    person: Person
    file: Found
    name: str
    order: float = 0.0
    late: bool = False
    time: str = ""
    named: str = ""
    archive: str = ""


@dataclass(frozen=True)
class Download:
    """A download that has been read.

    name: its own. is_of_one: whether it is one of several archives, each of which is one student's.
    is_known: whether somebody on the roster has this id or name.
    """

    name: str
    files: tuple[Found, ...]
    is_of_one: bool = False
    is_known: Callable[[str], bool] = field(default=lambda name: False, repr=False, compare=False)

    @cached_property
    def parting(self) -> int:
        """How many folders all files have in common: the first place where their paths differ."""
        return parting(self.files)


def parting(files: Sequence[Found]) -> int:
    """Return how many folders these files have in common."""
    if len(files) < 2:
        return max((len(file.path) - 1 for file in files), default=0)
    shortest = min(len(file.path) for file in files)
    differ = (i for i in range(shortest) if len({file.path[i] for file in files}) > 1)
    return next(differ, shortest - 1)


@dataclass
class Contents:
    """What a platform makes of a download.

    others: what is not taken, with the reason. nobodys: what was not handed in, such as the rest of a class repository.
    feedback: what went back to students; a student's older file may be in it.
    """

    handed_in: list[HandedIn] = field(default_factory=list)
    others: list[Refused] = field(default_factory=list)
    nobodys: list[Found] = field(default_factory=list)
    feedback: list[Found] = field(default_factory=list)

    @property
    def closed_of_nobody(self) -> list[Refused]:
        """What cannot be read, and nobody handed in."""
        handed_in = {item.file.path for item in self.handed_in}
        return [Refused(f.path, f.closed) for f in self.nobodys if f.closed and f.path not in handed_in]

    @property
    def paths(self) -> set[tuple[str, ...]]:
        """Of all files that this says something of."""
        files = (*(item.file for item in self.handed_in), *self.nobodys, *self.feedback)
        return {file.path for file in files} | {other.path for other in self.others}


Read = Callable[[Sequence[Found], Download, Course], Contents]


def in_common(names: Iterable[str], sign: str) -> str:
    """Return what all these names begin with, up to its last sign; "" where there are not two names."""
    different = list(set(names))
    shared = commonprefix(different) if len(different) > 1 else ""  # noqa: RUF071, letter by letter is what is meant
    return shared[: shared.rfind(sign) + 1]


ARCHIVE = r"(?i:\.(?:zip|tgz|7z|rar|tar(?:\.gz|\.bz2|\.xz)?))"


def unwrapped(name: str) -> str:
    """Return a folder's name; of an archive that stands for a folder, without its suffix."""
    return re.sub(rf"{ARCHIVE}\Z", "", name)


def matched(expressions: Sequence[str], path: Sequence[str], at: int) -> re.Match[str] | None:
    """Return the match of a path by the first expression whose `who` ends at this part of the path, or above."""
    text = "/".join(path)
    found = (re.compile(expression, re.DOTALL).fullmatch(text) for expression in expressions)
    return next((match for match in found if match and text.count("/", 0, match.end("who")) <= at), None)


_ANY = r"(?:[^/]+/)*?"  # the folders above, or none
_IN = r"[^/]+/(?:[^/]+/)*?"  # the download, and the folders above
_REST = r"(?:/.*)?"
_ASK = "and no file. Next: ask for the file"
_TIME = r"(?:\d{1,2}\.? \w+|\w+ \d{1,2}),? \d{4} \d{1,2}:?\d{2}(?: ?[AaPp]\.?[Mm]\.?)?"
_ATTEMPT = r"(?P<who>[^/]+?)_attempt_(?P<order>\d{4}(?:-\d{2}){5})"
_MOODLES = r"(?P<who>(?P<name>[^_/]+)(?:_(?P<id>\d{1,18}))?)"
_SAKAIS = r"(?P<who>(?P<name>[^/]+?) ?\((?P<id>[^()/]+)\)|[^/]+?)"
_CANVAS = r"(?:LATE_)?(?P<who>anon_[A-Za-z0-9]{5}|[^/]*?_(?:LATE_)?\d{1,18})"


@dataclass(frozen=True)
class Platform:
    """A row of the table; each expression is tried in its order.

    handed_in: files that students handed in. feedback: what went back to them. beside: what is nobody's.
    said: what was handed in and is no file, each with a sentence; said_alone: only of who handed in no file.
    folder: of the student, from `name` and `id`; else `who`. column: the roster's, which `id` is of.
    prefixed: all `who` of a download begin with the assignment's name. exact: `who` stands where the files part ways, no higher.
    sure: what looks like feedback is that, even where nothing was handed in.
    """

    name: str
    handed_in: tuple[str, ...]
    feedback: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    said_alone: bool = False
    folder: str = ""
    column: str = ""
    prefixed: bool = False
    exact: bool = False
    sure: bool = True

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """Return what this platform knows of these files of the download."""
        contents, at = Contents(), download.parting + 1
        if self.exact:  # a table beside the folder of all submissions says nothing of where students part ways
            own = [file for file in download.files if not matched(self.beside, (download.name, *file.path), 99)]
            at = parting(own) + 1
        taken: list[tuple[re.Match[str], Found]] = []
        typed: list[tuple[re.Match[str], Found, str]] = []
        for file in files:
            path = (download.name, *file.path)
            if match := matched(self.handed_in, path[at:], 0) if self.exact else matched(self.handed_in, path, at):
                taken.append((match, file))
            elif matched(self.feedback, path, at):
                contents.feedback.append(file)
            elif matched(self.beside, path, at):
                contents.nobodys.append(file)
            else:
                said = ((matched((expression,), path, at), sentence) for expression, sentence in self.said)
                typed += [(match, file, sentence) for match, sentence in said if match]
        if not taken and not (contents.feedback and self.sure):
            typed = [] if self.said_alone else typed
            return Contents(others=[Refused(file.path, sentence) for _, file, sentence in typed])
        whose = [match["who"] for match, _ in taken] + [match["who"] for match, _, _ in typed]
        before = in_common(whose, "_") if self.prefixed else ""
        contents.handed_in = [self._handed_in(match, file, before) for match, file in taken]
        have_handed_in = {item.person for item in contents.handed_in} if self.said_alone else set()
        for match, file, sentence in typed:
            if self._person(match, before) in have_handed_in:
                contents.nobodys.append(file)
            else:
                contents.others.append(Refused(file.path, sentence))
        return contents

    def _person(self, match: re.Match[str], before: str) -> Person:
        group = match.groupdict().get
        who, name, id_ = match["who"].removeprefix(before), group("name"), group("id")
        folder = self.folder.format(name=name, id=id_) if self.folder and id_ else who
        return Person(folder, name or who, ((self.column, id_),) if self.column and id_ else ())

    def _handed_in(self, match: re.Match[str], file: Found, before: str) -> HandedIn:
        group = match.groupdict().get
        own = match["file"] if group("file") and match.end() == match.end("file") else file.name
        order = float(re.sub(r"\D", "", group("order") or "") or _seconds(group("time") or ""))
        late, named = bool(group("late")), group("named") or ""
        return HandedIn(self._person(match, before), file, own, order, late, named=named)


def _seconds(time: str) -> float:
    """For the order alone; 0 where the platform writes months in another language."""
    text = re.sub(r"([A-Za-z]{3})[a-z]+", r"\1", re.sub(r"[,.:]", "", time))  # Nov 20 2026 1102 AM, 5 Mar 2026 612 PM
    text = re.sub(r" (\d{3})(?= |$)", r" 0\1", text)
    for form in ("%b %d %Y %I%M %p", "%d %b %Y %I%M %p", "%d %b %Y %H%M"):
        with suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    return 0.0


PLATFORMS = (
    Platform(
        "Moodle",  # mod/assign/classes/downloader.php; without "Download submissions in folders" all of it stands before a file's name
        (rf"{_IN}(?P<named>{_MOODLES}_assignsubmission_(?!onlinetext)[a-z]+_?)(?P<file>[^/]*){_REST}",),
        feedback=(rf"{_IN}{_MOODLES}_assignfeedback_[^/]*{_REST}",),
        said=((rf"{_IN}{_MOODLES}_assignsubmission_onlinetext[^/]*{_REST}", f"is text typed into Moodle, {_ASK}"),),
    ),
    Platform(
        "Canvas",  # lib/content_zipper.rb takes digits between underscores out of names: the first two numbers are the ids
        (
            rf"{_IN}(?P<named>(?P<late>LATE_)?(?P<who>anon_(?=\d{{0,4}}[A-Za-z])[A-Za-z0-9]{{5}})_(?P<order>\d{{1,18}})_(?P<file>[^/]+)){_REST}",
            rf"{_IN}(?P<named>(?P<who>(?P<name>[^/]*?)_(?P<late>LATE_)?(?P<id>\d{{1,18}}))_(?P<order>\d{{1,18}})_(?P<file>[^/]+)){_REST}",
        ),
        said=(
            (rf"{_IN}{_CANVAS}_text\.html", f"is text typed into Canvas, {_ASK}"),
            (rf"{_IN}{_CANVAS}_link\.html", f"is a link handed in to Canvas, {_ASK}"),
        ),
        folder="{name}_{id}",
        column="canvas_id",
    ),
    Platform(
        "Brightspace",  # what its numbers count is not documented: they are kept whole, and two students of one name stay two
        (
            rf"{_IN}(?P<who>(?P<id>\d{{1,18}}-\d{{1,18}}) ?- (?P<name>[^/]+?)) ?- (?P<time>{_TIME})(?: ?- (?P<file>[^/]+)|{ARCHIVE})?{_REST}",
        ),
        beside=(rf"{_IN}(?P<who>index\.html)",),
        folder="{name}_{id}",
    ),
    Platform(
        "Blackboard",  # of a single name nobody can tell the assignment's from the user's, and it stays whole
        (rf"{_IN}{_ATTEMPT}(?:_(?P<file>[^/]+)|{ARCHIVE})?{_REST}",),
        said=(
            (
                rf"{_IN}{_ATTEMPT}\.txt",
                "is Blackboard's note on an attempt without a file. Next: read it, and ask for the file",
            ),
        ),
        said_alone=True,
        prefixed=True,
    ),
    Platform(
        "Sakai",
        (
            rf"{_IN}{_SAKAIS}/(?i:submission attachment\(s\))/.*",
            rf"{_IN}{_SAKAIS}_(?i:submission attachment\(s\))_(?P<file>[^/]+){_REST}",
        ),
        feedback=(rf"{_IN}(?P<who>[^/]+)/(?i:feedback attachment\(s\))/.*",),
        beside=(rf"{_ANY}(?P<who>[^/]+)/(?i:comments\.txt|feedbacktext\.html|grades\.(?:csv|xlsx?))",),
        said=((rf"{_IN}{_SAKAIS}/(?i:[^/]*_submissiontext\.html)", f"is text typed into Sakai, {_ASK}"),),
        said_alone=True,
        folder="{id}",
        column="email",
    ),
    Platform(
        "OpenOLAT",  # older ones give two folders for each student: "ada_drop" is what was handed in, "ada_return" what went back
        (
            rf"{_ANY}(?P<who>[^/]+)/(?P<order>\d{{1,3}})_(?:submissions|revisions)(?:_[^/]*)?/.*",
            rf"{_IN}(?P<who>[^/]+)_drop(?:box)?/.*",
            rf"{_IN}(?P<who>[^/]+)/[^/]+_drop(?:box)?/.*",
        ),
        feedback=(
            rf"{_ANY}(?P<who>[^/]+)/\d{{1,3}}_corrections(?:_[^/]*)?/.*",
            rf"{_IN}(?P<who>[^/]+)(?:/[^/]+)?_return(?:box)?/.*",
        ),
        beside=(rf"{_ANY}(?P<who>[^/]+)/\d{{1,3}}_(?:task|solutions?)(?:_[^/]*)?/.*",),
        sure=False,
    ),
    Platform(
        "Schoology",  # each time that somebody hands in is a revision; a school that gives no ids has the name alone
        (
            rf"{_IN}(?P<who>(?P<name>[^/]*[^/\s]) - (?P<id>[^/\s]+)|[^/]+)/(?i:revision (?P<order>\d{{1,9}})(?: ?- ?(?:(?P<late>late)|[^/]*))?)/.*",
        ),
        folder="{id}",
        column="sis_id",
    ),
)
# What repositories are called may look the same: clones come before it.
ILIAS = Platform(
    "ILIAS",  # where a student uploads a name again, it keeps both, and counts from 2; teams are folders, and read as folders
    (
        r"(?P<who>(?P<name>[^/]+_[^/]+)_(?P<id>[^_/]+)_\d{1,18})/(?:[^/]+/)*"
        r"(?:(?P<late>(?i:late submission|versp[^/]{1,2}tete abgabe)) - )?(?P<file>[^/]+?(?: \((?P<order>\d{1,4})\))?(?:\.[^./]*)?)",
    ),
    beside=(rf"{_ANY}(?P<who>[^/]+)/[^/]+\.(?:xlsx?|csv)",),
    column="login",
    exact=True,
)
