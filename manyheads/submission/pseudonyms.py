"""Pseudonyms for `course grade --anonymous`: which student each stands for is kept beside the course's secret, and nowhere else."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import CourseFault
from .find import Submission
from .left_over import NotGraded

FOLDER, NAME = ".course", "pseudonyms.json"


@dataclass
class Pseudonyms:
    """The pseudonyms of a course. The same student keeps the same one in every run."""

    path: Path
    students: dict[str, str] = field(default_factory=dict)  # by pseudonym

    def of(self, student: str) -> str:
        """Return the student's pseudonym; a new one is drawn, so that nothing can be computed from it."""
        known = next((name for name, each in self.students.items() if each == student), None)
        while known is None:
            drawn = f"student-{secrets.token_hex(3)}"
            if drawn not in self.students:
                self.students[drawn], known = student, drawn
        return known

    def hide(self, submissions: Iterable[Submission]) -> list[Submission]:
        """Return the submissions under pseudonyms, in their order."""
        return sorted((replace(s, student=self.of(s.student)) for s in submissions), key=lambda s: s.student)

    def hide_others(self, others: Iterable[NotGraded]) -> list[NotGraded]:
        """Return what is not graded, under pseudonyms and without names of files, which may be telling."""
        hidden = []
        for other in others:
            first, _, rest = other.path.partition("/")
            hidden.append(other.model_copy(update={"path": self.of(first) + ("/…" if rest else "")}))
        return sorted(hidden, key=lambda other: other.path)

    def write(self) -> None:
        """Write the list, for its owner alone. Raises CourseFault."""
        partial = self.path.with_name(f"{self.path.name}.partial")
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            partial.unlink(missing_ok=True)
            with os.fdopen(
                os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
            ) as file:
                json.dump(self.students, file, indent=1, ensure_ascii=False)
            partial.replace(self.path)
        except OSError as error:
            said = f"{self.path} cannot be written ({error.strerror}). Next: mend that, then course grade again"
            raise CourseFault(said) from None


def read_pseudonyms(root: Path) -> Pseudonyms:
    """Return the pseudonyms of the course in this folder; none if there are none yet. Raises CourseFault."""
    path = root / FOLDER / NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Pseudonyms(path)
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in data.values()):
        raise CourseFault(f"{path} cannot be read. Next: bring it back from a backup, or move it away to draw new ones")
    return Pseudonyms(path, data)
