"""Downloads in which a folder says whose the files are: Moodle, ILIAS, OpenOLAT, Sakai, Schoology."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found_files import Found, Refused
from .platform import Contents, Download, HandedIn, Person, own_part, platform, user

# Moodle: "Download all submissions" gives a zip of folders, such as "Ada Lovelace_123456_assignsubmission_file_/".
#
# Without "Download submissions in folders" the same stands before each file's own name (moodle,
# mod/assign/classes/downloader.php). The number is the participant's in this one assignment; a group has its name and
# number, blind marking "Participant".

_PART = re.compile(
    r"(?P<name>[^_]+)(?:_(?P<number>\d{1,18}))?_assign(?P<kind>submission|feedback)_(?P<plugin>[a-z]+)(?:_(?P<file>.*))?",
    re.DOTALL,
)


@platform("Moodle")
def moodle(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by their folders' names, or their own."""
    contents = Contents()
    for file in files:
        match = download.match(_PART, file)
        if match is not None and match["kind"] == "feedback":
            contents.feedback.append(file)
        elif match is not None and match["plugin"] == "onlinetext":
            said = "is text typed into Moodle, and no file. Next: ask for the file"
            contents.others.append(Refused(file.path, said))
        elif match is not None:
            contents.handed_in.append(_moodle_handed_in(file, match))
    return contents


def _moodle_handed_in(file: Found, match: re.Match[str]) -> HandedIn:
    name, number = match["name"], match["number"]
    folder = f"{name}_{number}" if number else name
    named = match.string[: match.start("file")] if match["file"] else match.string  # without the file's own name
    person = Person(folder=folder, key=f"participant {folder}", name=name)
    return HandedIn(person, file, own_part(file, match), named=named)


# ILIAS: "HW1/Submissions/Lovelace_Ada_alovelace_123/04_reshape_dance (2).py", beside a table, "HW1/HW1.xlsx".
#
# Where a student uploads a name again, ILIAS keeps both, and counts from 2; before a late file's name it puts words.

_ILIAS_WHO = re.compile(r"(?P<name>.+_.+)_(?P<login>[^_]+)_\d{1,18}", re.DOTALL)
_LATE = re.compile(
    r"(?:Late Submission|Verspaetete Abgabe|Versp.tete Abgabe) - (?P<file>.+)", re.DOTALL | re.IGNORECASE
)
_AGAIN = re.compile(r".* \((?P<number>\d{1,4})\)(?:\.[^.]*)?", re.DOTALL)
_TABLES = (".xlsx", ".xls", ".csv")


@platform("ILIAS")
def ilias(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by their students' folders: where the paths part ways, for names like these are not ILIAS' alone.

    Teams are folders of their own, and are read as folders.
    """
    contents = Contents()
    # The table lies beside the folder of all submissions, and says nothing of where students part ways.
    at = Download(download.name, tuple(f for f in download.files if not f.name.endswith(_TABLES))).parting
    for file in files:
        if len(file.path) > at + 1 and (match := _ILIAS_WHO.fullmatch(file.path[at])):
            contents.handed_in.append(_ilias_handed_in(file, file.path[at], match))
    if contents.handed_in:
        contents.nobodys = [file for file in files if len(file.path) <= at + 1 and file.name.endswith(_TABLES)]
    return contents


def _ilias_handed_in(file: Found, folder: str, match: re.Match[str]) -> HandedIn:
    late, again = _LATE.fullmatch(file.name), _AGAIN.fullmatch(file.name)
    person = user(folder, match["name"].replace("_", " "), login=match["login"])
    own = late["file"] if late else file.name
    return HandedIn(person, file, own, order=float(again["number"]) if again else 0.0, late=bool(late))


# OpenOLAT: a folder for each student, and in it one for each step: 1_task, 2_submissions, 3_corrections,
# 4_revisions_1, …
#
# Older ones give two folders for each student: "ada_drop" is what was handed in, "ada_return" what went back.

_STEP = re.compile(r"(?P<number>\d{1,3})_(?P<step>task|submissions|corrections|revisions|solutions?)(?:_.*)?")
_HANDED_IN = ("submissions", "revisions")
_BOX = re.compile(r"(?P<who>.+)_(?P<box>drop|return)(?:box)?", re.DOTALL)


@platform("OpenOLAT")
def open_olat(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by the folders of their steps, or by their boxes; none where nothing was handed in by such a name."""
    for read in (_by_step, _by_box):
        contents = Contents()
        for file in files:
            read(file, download, contents)
        if contents.handed_in:
            return contents
    return Contents()


def _by_step(file: Found, download: Download, contents: Contents) -> None:
    if found := download.match_below(_STEP, file, first=0):
        at, match = found
        if match["step"] in _HANDED_IN:
            who = file.path[at - 1] if at else download.name
            contents.handed_in.append(HandedIn(_openolat_user(who), file, file.name, order=float(match["number"])))
        elif match["step"] == "corrections":
            contents.feedback.append(file)
        else:
            contents.nobodys.append(file)


def _by_box(file: Found, download: Download, contents: Contents) -> None:
    """Where students' folders part ways the box's name says whose it is; below, the folder above it does."""
    if found := download.match_below(_BOX, file, first=0):
        at, match = found
        who = match["who"] if at <= download.parting else file.path[at - 1]
        if match["box"] == "drop":
            contents.handed_in.append(HandedIn(_openolat_user(who), file, file.name))
        else:
            contents.feedback.append(file)


def _openolat_user(who: str) -> Person:
    return user(who, who.replace("_", " "))


# Sakai: "Download All" gives "HW 1/Lovelace, Ada(al1)/Submission attachment(s)/04_reshape_dance.py"; flat, with "_"
# between the last three.
#
# Beside the attachments stand what the student typed, and what went back: a comment, a text, "Feedback
# Attachment(s)/".

_ATTACHMENTS = re.compile(r"(?P<kind>submission|feedback) attachment\(s\)", re.IGNORECASE)
_FLAT = re.compile(r"(?P<who>.+\([^()]+\))_submission attachment\(s\)_(?P<file>.+)", re.DOTALL | re.IGNORECASE)
_SAKAI_WHO = re.compile(r"(?P<name>.+?) ?\((?P<id>[^()]+)\)", re.DOTALL)
_TEXT = "_submissiontext.html"
_OWN = ("comments.txt", "feedbacktext.html", "grades.csv", "grades.xls", "grades.xlsx", "timestamp.txt")


@platform("Sakai")
def sakai(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by the folder above their attachments' folder, or by their own names."""
    contents, typed = Contents(), list[tuple[Person, Found]]()
    for file in files:
        if flat := _FLAT.fullmatch(download.trusted(file)[-1]):
            contents.handed_in.append(HandedIn(_sakai_user(flat["who"]), file, own_part(file, flat)))
        elif found := download.match_below(_ATTACHMENTS, file):
            at, match = found
            if match["kind"].casefold() == "submission":
                contents.handed_in.append(HandedIn(_sakai_user(file.path[at - 1]), file, file.name))
            else:
                contents.feedback.append(file)
    if not contents.handed_in and not contents.feedback:
        return contents
    for file in files:
        if file.name.casefold().endswith(_TEXT):
            typed.append((_sakai_user(file.path[-2] if len(file.path) > 1 else ""), file))
        elif file.name.casefold() in _OWN and len(file.path) - 2 <= download.parting:
            contents.nobodys.append(file)
    contents.add_beside(typed, "is text typed into Sakai, and no file. Next: ask for the file")
    return contents


def _sakai_user(who: str) -> Person:
    match = _SAKAI_WHO.fullmatch(who)
    folder, name = (match["id"], match["name"]) if match else (who, who)
    return user(folder, name, email=folder if "@" in folder else "")


# Schoology: "HW1/Lovelace, Ada - s100/Revision 2 - Late/04_reshape_dance.py". Each time that somebody hands in is a
# revision.

_REVISION = re.compile(r"Revision (?P<number>\d{1,9})(?: ?- ?(?P<status>.*))?", re.IGNORECASE | re.DOTALL)
_SCHOOLOGY_WHO = re.compile(r"(?P<name>.*\S) - (?P<id>\S+)", re.DOTALL)  # a school that gives no ids has the name alone


@platform("Schoology")
def schoology(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by the folder above their revision's."""
    contents = Contents()
    for file in files:
        if found := download.match_below(_REVISION, file):
            at, match = found
            late = (match["status"] or "").strip().casefold() == "late"
            person, order = _schoology_user(file.path[at - 1]), float(match["number"])
            contents.handed_in.append(HandedIn(person, file, file.name, order, late))
    return contents


def _schoology_user(folder: str) -> Person:
    match = _SCHOOLOGY_WHO.fullmatch(folder)
    return user(match["id"], match["name"], sis_id=match["id"]) if match else user(folder)
