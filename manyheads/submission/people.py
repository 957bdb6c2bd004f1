"""Whose a hand-in is: a person of a platform becomes a student, or the members of a group, each with a folder of their own."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from . import is_noise, is_reserved, is_student
from .folders import ALONE, person_called
from .platforms import Person
from .roster import Roster, Student, folded, letters

_UNSAFE = re.compile(r'[\x00-\x1f/\\:*?"<>|]')


class NoFolder(Exception):
    """No folder can have this person's name. The text says why, and what comes next."""


@dataclass
class People:
    """Gives each person a folder, and no two persons the same.

    taken: the person's key for each folder given, also by earlier runs; by the folder's name as no file system tells two apart.
    """

    roster: Roster | None = None
    taken: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)  # sentences, by student
    is_found: bool = False  # whether the roster knows anybody

    def __post_init__(self) -> None:
        self._known: dict[Person, tuple[str, ...] | NoFolder] = {}

    def of(self, person: Person) -> tuple[str, ...]:
        """Return the folders that get this person's files: one, or one for each member of a group. Raises NoFolder."""
        if person not in self._known:
            try:
                self._known[person] = self._folders(person)
            except NoFolder as error:
                self._known[person] = error
        folders = self._known[person]
        if isinstance(folders, NoFolder):
            raise folders
        return folders

    def is_known(self, name: str) -> bool:
        """Return whether a person or a group on the roster has this id or name."""
        return bool(self._rows(person_called(name)))

    def _folders(self, person: Person) -> tuple[str, ...]:
        key, rows = f"{person.platform} {person.key}", self._rows(person)
        if rows:
            self.is_found = True
            before = next((folder for folder, taken in self.taken.items() if taken == key), None)
            for row in rows:
                if before is not None and before != folded(row.id):
                    said = f"was collected as {before!a} before, without this roster. Next: remove that folder"
                    self.said[row.id] = said
                # The roster says whose it is, whatever an earlier run took it for.
                self.taken[folded(row.id)] = f"roster {row.id}"
            return tuple(_writable(row.id) for row in rows)
        name = _UNSAFE.sub("_", person.folder).strip(" .")
        if not is_student(name) or is_noise(name) or is_reserved(name):
            said = "is of somebody whose name cannot be a folder's. Next: give --roster a file with that person"
            raise NoFolder(said)
        before = self.taken.setdefault(folded(_writable(name)), key)
        if before != key and not before.startswith(f"{key}{ALONE}") and not key.startswith(f"{before}{ALONE}"):
            apart = "Next: give --roster a file that tells them apart, or all archives at once"
            raise NoFolder(f"would go to {name!a}, where the files of somebody else are. {apart}")
        if self.roster is not None:
            same = ", ".join(row.id for row in self.roster.named(person.name))
            several = (
                f"is not known: several on the roster have this name ({same}). Next: rename the folder to the right id"
            )
            nobody = "is not on the roster: no id, e-mail address or name fits. Next: complete the roster"
            self.said[name] = several if same else nobody
        return (name,)

    def _rows(self, person: Person) -> list[Student]:
        """Return the person's row of the roster, where there is one and only one; of a group, those of its members."""
        roster = self.roster
        if roster is None:
            return []
        found = roster.with_id(person.ids) or roster.with_id([("id", person.folder)])
        found = found or next((row for login in person.logins if (row := roster.with_login(login))), None)
        found = found or roster.ending_with(person.ends)
        if found is None and len(named := roster.named(person.name)) == 1:
            found = named[0]
        if found is None:
            # A school's id or a login before the name, as Brightspace writes both: 23304308 Lovelace, al1 Ada Lovelace. Students
            # may choose their names: the rest has to be of the name of whose id it is.
            word, _, rest = person.name.partition(" ")
            student = roster.with_id([("id", word), ("sis_id", word), ("login", word)]) if rest else None
            words = {*map(letters, student.name.replace(",", " ").split())} if student else set()
            found = student if words.issuperset(map(letters, rest.split())) else None
        return [found] if found else roster.in_group(person.name)


def _writable(name: str) -> str:
    """Return a folder's name. Raises NoFolder where this process can write no such letters."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise NoFolder(
            f"is of {name!a}, whose letters the locale here does not know. Next: PYTHONUTF8=1 course collect …"
        ) from None
    return name
