"""OpenOLAT: a folder for each student, and in it one for each step: 1_task, 2_submissions, 3_corrections, 4_revisions_1, …

Older ones give two folders for each student: "ada_drop" is what was handed in, "ada_return" what went back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found
from .platform import Contents, Download, HandedIn, Person

_STEP = re.compile(r"(?P<number>\d{1,3})_(?P<step>task|submissions|corrections|revisions|solutions?)(?:_.*)?")
_HANDED_IN = ("submissions", "revisions")
_BOX = re.compile(r"(?P<who>.+)_(?P<box>drop|return)(?:box)?", re.DOTALL)


class OpenOlat:
    """OpenOLAT."""

    name = "OpenOLAT"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by the folders of their steps, or by their boxes; none where nothing was handed in by such a name."""
        for read in (_by_step, _by_box):
            contents = Contents()
            for file in files:
                read(file, download, contents)
            if contents.handed_in:
                return contents
        return Contents()


def _by_step(file: Found, download: Download, contents: Contents) -> None:
    for at in range(min(len(file.path) - 1, download.parting + 2)):
        if match := _STEP.fullmatch(file.path[at]):
            if match["step"] in _HANDED_IN:
                who = file.path[at - 1] if at else download.name
                contents.handed_in.append(HandedIn(_person(who), file, file.name, order=float(match["number"])))
            elif match["step"] == "corrections":
                contents.feedback.append(file)
            else:
                contents.nobodys.append(file)
            return


def _by_box(file: Found, download: Download, contents: Contents) -> None:
    """Where students' folders part ways the box's name says whose it is; below, the folder above it does."""
    for at in range(min(len(file.path) - 1, download.parting + 2)):
        if match := _BOX.fullmatch(file.path[at]):
            who = match["who"] if at <= download.parting else file.path[at - 1]
            if match["box"] == "drop":
                contents.handed_in.append(HandedIn(_person(who), file, file.name))
            else:
                contents.feedback.append(file)
            return


def _person(who: str) -> Person:
    return Person(folder=who, key=f"user {who}", name=who.replace("_", " "))
