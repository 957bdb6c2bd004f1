"""Gradescope: "Export Submissions" gives a zip with submission_<number>/ folders, and submission_metadata.yml on whose they are.

That list has Ruby's keys: submission_987654 → :submitters → a list of :name, :sid, :email; :created_at. It is read as nodes, so that
no tag of it makes an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import yaml

from ..course import Course
from ..course.dates import moment
from .platforms import Contents, Download, HandedIn, Person
from .read_download import METADATA, Found, Refused

DEEPEST = 50  # brackets within brackets
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is faster, and not everywhere


def gradescope(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return the files by the list, if it stands above all of them: one in a student's folder is the student's."""
    lists = [file for file in files if file.name == METADATA and len(file.path) - 1 <= download.parting]
    if not lists or lists[0].content is None:
        return Contents()
    listed, root = _read_list(lists[0].content), len(lists[0].path) - 1
    if listed is None:
        said = f"is not placed, for {METADATA} cannot be read. Next: export the submissions again"
        return Contents(others=[Refused(file.path, said) for file in files])
    contents = Contents(nobodys=[lists[0]])
    for file in files:
        entry = _member(listed, file.path[root])
        persons = list(_persons(entry))
        if not persons and file is not lists[0]:
            said = f"is of no submission that {METADATA} lists. Next: look whose it is"
            contents.others.append(Refused(file.path, said))
        created = _text(_member(entry, ":created_at"))
        when, in_order = _moment(created), _moment(created, "UTC")
        time, order = when.isoformat() if when else "", in_order.timestamp() if in_order else 0.0
        contents.handed_in += [HandedIn(person, file, file.name, order, time=time) for person in persons]
    return contents


def _read_list(content: bytes) -> yaml.Node | None:
    """Return the list as nodes; None where it is no YAML, or nested too deeply to be read safely."""
    try:
        text, depth = content.decode("utf-8"), 0
        for event in yaml.parse(text, Loader=_Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return None
        return yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def _persons(entry: yaml.Node | None) -> Iterator[Person]:
    """Everybody who handed in this submission."""
    submitters = _member(entry, ":submitters")
    for each in submitters.value if isinstance(submitters, yaml.SequenceNode) else ():
        name, sid, email = (_text(_member(each, key)) for key in (":name", ":sid", ":email"))
        if folder := sid or email or name:
            yield Person(folder, name, (("sis_id", sid), ("email", email)))


def _member(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if isinstance(name, yaml.ScalarNode) and name.value == key), None)


def _text(node: yaml.Node | None) -> str:
    value = node.value if isinstance(node, yaml.ScalarNode) else ""
    return "" if value in ("null", "~") else str(value).strip()


def _moment(text: str, zone: str = "") -> datetime | None:
    """Return the time of a submission, such as 2026-11-20 10:11:12.345678000 -08:00; None where it says none, or no zone."""
    try:
        return moment(text, zone)
    except (ValueError, OverflowError):
        return None
