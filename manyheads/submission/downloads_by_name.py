"""Downloads in which a file's own name says whose it is: Canvas, Blackboard, Brightspace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from ..course import Course
from .found_files import Found, Refused
from .platform import Contents, Download, HandedIn, Person, in_common, own_part, platform, unwrapped, user

# Canvas: "Download Submissions" gives one zip of flat names, such as
# lovelaceada_LATE_12345_678901_04_reshape_dance-2.py.
#
# The name, whether it was late, the user's id, the attachment's id, and the file's own name. Canvas takes digits
# between underscores out of names, so that the first two numbers are the ids (canvas-lms, lib/content_zipper.rb).

_ANONYMOUS = r"(?P<anonymous_late>LATE_)?anon_(?P<anonymous>(?=\d{0,4}[A-Za-z])[A-Za-z0-9]{5})"
_NAMED = r"(?P<name>.*?)_(?P<late>LATE_)?(?P<user>\d{1,18})"
_FILE = re.compile(rf"(?:{_ANONYMOUS}|{_NAMED})_(?P<attachment>\d{{1,18}})_(?P<file>.+)")
_TEXT = re.compile(rf"(?:{_ANONYMOUS}|{_NAMED})_(?P<kind>text|link)\.html")
_SAID = {"text": "text typed into Canvas", "link": "a link handed in to Canvas"}


@platform("Canvas")
def canvas(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by their names, or by the name of the archive that they are in."""
    contents = Contents()
    for file in files:
        if match := download.match(_FILE, file):
            contents.handed_in.append(_canvas_handed_in(file, match))
        elif text := _TEXT.fullmatch(download.trusted(file)[-1]):
            said = f"is {_SAID[text['kind']]}, and no file. Next: ask for the file"
            contents.others.append(Refused(file.path, said))
    return contents


def _canvas_handed_in(file: Found, match: re.Match[str]) -> HandedIn:
    late = bool(match["late"] or match["anonymous_late"])
    if anonymous := match["anonymous"]:
        person = Person(folder=f"anon_{anonymous}", key=f"anonymous {anonymous}")
    else:
        id_, name = match["user"], match["name"]
        person = Person(folder=f"{name}_{id_}", key=f"user {id_}", name=name, canvas_id=id_)
    return HandedIn(person, file, own_part(file, match), float(match["attachment"]), late, named=match.string)


# Blackboard: names such as HW1_ada_attempt_2026-11-20-10-11-12_04_reshape_dance.py, of files or of folders.
#
# What comes before the user's name is the assignment's: it is what all the names of a download have in common, up to
# the last underscore. Of a single name nobody can tell the two apart, and it stays whole. Beside each attempt's files
# stands a note on it, the same name with ".txt".

_BLACKBOARD_PART = re.compile(
    r"(?P<who>.+?)_attempt_(?P<time>\d{4}(?:-\d{2}){5})(?:_(?P<file>.+)|(?P<note>\.txt))?", re.DOTALL
)


@platform("Blackboard")
def blackboard(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by their own names, or by those of their folders."""
    found = [(file, match) for file in files if (match := download.match(_BLACKBOARD_PART, file, unwrapped))]
    prefix = in_common((match["who"] for _, match in found), "_")
    whose = [(user(match["who"].removeprefix(prefix)), file, match) for file, match in found]
    contents = Contents(
        [
            HandedIn(person, file, own_part(file, match), order=float(match["time"].replace("-", "")))
            for person, file, match in whose
            if not match["note"]
        ]
    )
    said = "is Blackboard's note on an attempt without a file. Next: read it, and ask for the file"
    contents.add_beside(((person, file) for person, file, match in whose if match["note"]), said)
    return contents


# Brightspace: "12345-678 - Ada Lovelace - Nov 20, 2026 1102 AM - 04_reshape_dance.py", of files or of folders.
#
# The numbers are kept whole: what they count is not documented, and two students of one name stay two.

_TIME = r"(?:\d{1,2}\.? \w+|\w+ \d{1,2}),? \d{4} \d{1,2}:?\d{2}(?: ?[AaPp]\.?[Mm]\.?)?"
_BRIGHTSPACE_PART = re.compile(
    rf"(?P<number>\d{{1,18}}-\d{{1,18}}) ?- (?P<name>.+?) ?- (?P<time>{_TIME})(?: ?- (?P<file>.+))?", re.DOTALL
)
_LIST = "index.html"  # Brightspace's own, of what was handed in
_FORMS = ("%b %d %Y %I%M %p", "%B %d %Y %I%M %p", "%d %B %Y %I%M %p", "%d %b %Y %I%M %p", "%d %B %Y %H%M")


@platform("Brightspace")
def brightspace(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by their own names, or by those of their folders."""
    contents = Contents()
    for file in files:
        if match := download.match(_BRIGHTSPACE_PART, file, unwrapped):
            person = user(f"{match['name']}_{match['number']}", match["name"])
            contents.handed_in.append(HandedIn(person, file, own_part(file, match), order=_seconds(match["time"])))
    if contents.handed_in:
        contents.nobodys = [file for file in files if file.name == _LIST and len(file.path) - 1 <= download.parting]
    return contents


def _seconds(time: str) -> float:
    """For the order alone; 0 where the platform writes months in another language."""
    text = re.sub(r"[,.:]", "", time)
    if re.search(r" \d{3}(?: |$)", text):  # 902 PM
        text = re.sub(r" (\d{3})(?= |$)", r" 0\1", text)
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    return 0.0
