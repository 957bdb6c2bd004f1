"""Whose folder a person's files go to: the roster's id, else the name that the platform gives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from . import is_noise, is_reserved, is_student
from .platform import ALONE, Person, person_called
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
        row = self._row(person)
        if row is not None:
            self.found = True
            before = next((folder for folder, key in self.taken.items() if key == f"{platform} {person.key}"), None)
            if before is not None and before != folded(row.id):
                said = f"was collected as {before!a} before, without this roster. Next: remove that folder"
                self.said[row.id] = said
            self.taken[folded(row.id)] = (
                f"roster {row.id}"  # which says whose it is, whatever an earlier run took it for
            )
            return row.id
        name = UNSAFE.sub("_", person.folder).strip(" .")
        usable = is_student(name) and not is_noise(name) and not is_reserved(name)
        if not usable:
            raise NoFolder(
                "is of somebody whose name cannot be a folder's. Next: give --roster a file with that person"
            )
        self._take(name, f"{platform} {person.key}")
        if self.roster is not None:
            self.said[name] = self._why_unknown(person.name)
        return name

    def _why_unknown(self, name: str) -> str:
        """Return why somebody of this name is nobody on the roster."""
        assert self.roster is not None
        if same := ", ".join(row.id for row in self.roster.named(name)):
            return (
                f"is not known: several on the roster have this name ({same}). Next: rename the folder to the right id"
            )
        return "is not on the roster: no id, e-mail address or name fits. Next: complete the roster"

    def is_known(self, name: str) -> bool:
        """Return whether somebody on the roster has this id or name."""
        return self._row(person_called(name)) is not None

    def _take(self, folder: str, key: str) -> None:
        """Note whose the folder is. Raises NoFolder if it is somebody else's."""
        before = self.taken.setdefault(folded(folder), key)
        if before != key and not before.startswith(f"{key}{ALONE}") and not key.startswith(f"{before}{ALONE}"):
            raise NoFolder(
                f"would go to {folder!a}, where the files of somebody else are. Next: give --roster a file that tells them apart, or all archives at once"
            )

    def _row(self, person: Person) -> Student | None:
        """Return the person's row of the roster, if there is one and only one."""
        if self.roster is None:
            return None
        names = ("canvas_id", "sis_id", "email", "github", "login")
        ids = {name: getattr(person, name) for name in names}
        found = self.roster.with_id(**ids) or self.roster.with_id(id=person.folder) or self._by_end(person.github)
        if found is None and person.sis_id:
            found = self.roster.with_id(id=person.sis_id)
        if found is None and len(named := self.roster.named(person.name)) == 1:
            found = named[0]
        return found or self._by_first_word(person.name)

    def _by_first_word(self, name: str) -> Student | None:
        """By a school's id or a login before the name, as Brightspace writes both: 23304308 Lovelace, al1 Ada Lovelace.

        A word without a digit may be the name of somebody else: then the rest has to be that student's name.
        """
        assert self.roster is not None
        word, _, rest = name.partition(" ")
        student = self.roster.with_id(id=word, sis_id=word, login=word) if rest else None
        if student is None or any(letter.isdigit() for letter in word) or student in self.roster.named(rest):
            return student
        return None

    def _by_end(self, repository: str) -> Student | None:
        """By the end of a repository's name: hw1-ada-l is of ada-l."""
        parts = repository.split("-")
        ends = ("-".join(parts[i:]) for i in range(1, len(parts)))
        assert self.roster is not None
        return next((row for end in ends if (row := self.roster.with_id(github=end))), None)
