"""Canvas: "Download Submissions" gives one zip of flat names, such as lovelaceada_LATE_12345_678901_04_reshape_dance-2.py.

The name, whether it was late, the user's id, the attachment's id, and the file's own name. Canvas takes digits between
underscores out of names, so that the first two numbers are the ids (canvas-lms, lib/content_zipper.rb).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found, Refused
from .platform import Contents, Download, HandedIn, Person

_ANONYMOUS = r"(?P<anonymous_late>LATE_)?anon_(?P<anonymous>(?=\d{0,4}[A-Za-z])[A-Za-z0-9]{5})"
_NAMED = r"(?P<name>.*?)_(?P<late>LATE_)?(?P<user>\d{1,18})"
_FILE = re.compile(rf"(?:{_ANONYMOUS}|{_NAMED})_(?P<attachment>\d{{1,18}})_(?P<file>.+)")
_TEXT = re.compile(rf"(?:{_ANONYMOUS}|{_NAMED})_(?P<kind>text|link)\.html")
_SAID = {"text": "text typed into Canvas", "link": "a link handed in to Canvas"}


class Canvas:
    """Canvas."""

    name = "Canvas"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by their names, or by the name of the archive that they are in."""
        contents = Contents()
        for file in files:
            match = next(filter(None, map(_FILE.fullmatch, download.trusted(file))), None)
            if match is not None:
                contents.handed_in.append(_handed_in(file, match))
            elif text := _TEXT.fullmatch(download.trusted(file)[-1]):
                said = f"is {_SAID[text['kind']]}, and no file. Next: ask for the file"
                contents.others.append(Refused(file.path, said))
        return contents


def _handed_in(file: Found, match: re.Match[str]) -> HandedIn:
    own = match["file"] if match.string == file.name else file.name  # else the archive has that name, and this is in it
    late = bool(match["late"] or match["anonymous_late"])
    if anonymous := match["anonymous"]:
        person = Person(folder=f"anon_{anonymous}", key=f"anonymous {anonymous}")
    else:
        user, name = match["user"], match["name"]
        person = Person(folder=f"{name}_{user}", key=f"user {user}", name=name, canvas_id=user)
    return HandedIn(person, file, own, float(match["attachment"]), late, named=match.string)
