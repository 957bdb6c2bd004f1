"""Brightspace: "12345-678 - Ada Lovelace - Nov 20, 2026 1102 AM - 04_reshape_dance.py", of files or of folders.

The numbers are kept whole: what they count is not documented, and two students of one name stay two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from ..course import Course
from .found import Found
from .platform import Contents, Download, HandedIn, Person, unwrapped

_TIME = r"(?:\d{1,2}\.? \w+|\w+ \d{1,2}),? \d{4} \d{1,2}:?\d{2}(?: ?[AaPp]\.?[Mm]\.?)?"
_PART = re.compile(
    rf"(?P<number>\d{{1,18}}-\d{{1,18}}) ?- (?P<name>.+?) ?- (?P<time>{_TIME})(?: ?- (?P<file>.+))?", re.DOTALL
)
_LIST = "index.html"  # Brightspace's own, of what was handed in
_FORMS = ("%b %d %Y %I%M %p", "%B %d %Y %I%M %p", "%d %B %Y %I%M %p", "%d %b %Y %I%M %p", "%d %B %Y %H%M")


class Brightspace:
    """Brightspace."""

    name = "Brightspace"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by their own names, or by those of their folders."""
        contents = Contents()
        for file in files:
            match = next(filter(None, map(_PART.fullmatch, map(unwrapped, download.trusted(file)))), None)
            if match is not None:
                contents.handed_in.append(_handed_in(file, match))
        if contents.handed_in:
            contents.nobodys = [file for file in files if file.name == _LIST and len(file.path) - 1 <= download.parting]
        return contents


def _handed_in(file: Found, match: re.Match[str]) -> HandedIn:
    folder = f"{match['name']}_{match['number']}"
    own = match["file"] if match["file"] and match.string == file.name else file.name
    person = Person(folder=folder, key=f"user {folder}", name=match["name"])
    return HandedIn(person, file, own, order=_seconds(match["time"]))


def _seconds(time: str) -> float:
    """For the order alone; 0 where the platform writes months in another language."""
    text = re.sub(r"[,.:]", "", time)
    if re.search(r" \d{3}(?: |$)", text):  # 902 PM
        text = re.sub(r" (\d{3})(?= |$)", r" 0\1", text)
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    return 0.0
