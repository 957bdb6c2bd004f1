"""Whose folder a person's files go to: the roster's id, else the name that the platform gives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from . import is_noise, is_reserved, is_student
from .download import ALONE, Person, person_called
from .roster import Roster, Student, folded

UNSAFE = re.compile(r'[\x00-\x1f/\\:*?"<>|]')


class NoFolder(Exception):
    """No folder can have this person's name. The text says why."""


@dataclass
class Folders:
    """Gives each person a folder, and no two persons the same.

    taken: the person's key for each folder given, also by earlier runs; by the folder's name as no file system tells two apart.
    """

    roster: Roster | None = None
    taken: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)  # sentences, by person
    found: bool = False  # whether the roster knows anybody

    def of(self, platform: str, person: Person) -> str:
        """Return the name of this person's folder. Raises NoFolder."""
        key, row = f"{platform} {person.key}", self._row(person)
        if row is not None:
            self.found = True
            before = next((folder for folder, taken in self.taken.items() if taken == key), None)
            if before is not None and before != folded(row.id):
                said = f"was collected as {before!a} before, without this roster. Next: remove that folder"
                self.said[row.id] = said
            # The roster says whose it is, whatever an earlier run took it for.
            self.taken[folded(row.id)] = f"roster {row.id}"
            return row.id
        name = UNSAFE.sub("_", person.folder).strip(" .")
        if not is_student(name) or is_noise(name) or is_reserved(name):
            said = "is of somebody whose name cannot be a folder's. Next: give --roster a file with that person"
            raise NoFolder(said)
        before = self.taken.setdefault(folded(name), key)
        if before != key and not before.startswith(f"{key}{ALONE}") and not key.startswith(f"{before}{ALONE}"):
            apart = "Next: give --roster a file that tells them apart, or all archives at once"
            raise NoFolder(f"would go to {name!a}, where the files of somebody else are. {apart}")
        if self.roster is not None:
            self.said[name] = "is not on the roster: no id, e-mail address or name fits. Next: complete the roster"
            if same := ", ".join(row.id for row in self.roster.named(person.name)):
                said = f"several on the roster have this name ({same}). Next: rename the folder to the right id"
                self.said[name] = f"is not known: {said}"
        return name

    def is_known(self, name: str) -> bool:
        """Return whether somebody on the roster has this id or name."""
        return self._row(person_called(name)) is not None

    def _row(self, person: Person) -> Student | None:
        """Return the person's row of the roster, if there is one and only one."""
        roster, ids = self.roster, dict(person.ids)
        if roster is None:
            return None
        parts = ids.get("github", "").split("-")  # a repository's name may end with the user's: hw1-ada-l is of ada-l
        users = ("-".join(parts[i:]) for i in range(1, len(parts)))
        found = roster.with_id(**ids) or roster.with_id(id=person.folder)
        found = found or next((row for user in users if (row := roster.with_id(github=user))), None)
        if found is None and len(named := roster.named(person.name)) == 1:
            found = named[0]
        if found is not None:
            return found
        # A school's id or a login before the name, as Brightspace writes both: 23304308 Lovelace, al1 Ada Lovelace. A word
        # without a digit may be the name of somebody else: then the rest has to be that student's name.
        word, _, rest = person.name.partition(" ")
        student = roster.with_id(id=word, sis_id=word, login=word) if rest else None
        is_id = student is None or any(letter.isdigit() for letter in word) or student in roster.named(rest)
        return student if is_id else None
