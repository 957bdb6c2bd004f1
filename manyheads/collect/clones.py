"""Clones of students' repositories: <assignment>-<username>/, as GitHub Classroom names them, with exercises/ in them.

`gh classroom clone student-repos` puts them into <assignment>-submissions/ (github/gh-classroom). What comes before the user's name is
the assignment's own name there, which need not be one of the course's: it is what all the repositories have in common.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..course import Course
from ..submission import ENDINGS
from .found import Found
from .platform import Contents, HandedIn, Person, unwrapped

FOLDER = "exercises"


class Clones:
    """Repositories."""

    name = "clones"

    def read(self, files: Sequence[Found], download: str, course: Course) -> Contents | None:
        """What stands below exercises/<assignment>/ of each repository; None where there is no such folder."""
        ids = {assignment.id for assignment in course.assignments}
        found: list[tuple[str, Found]] = []
        for file in files:
            parts = (unwrapped(download), *file.path)
            at = next((i for i in range(1, len(parts) - 2) if parts[i] == FOLDER and parts[i + 1] in ids), None)
            if at is not None and file.name.lower().endswith(ENDINGS):
                found.append((unwrapped(parts[at - 1]), file))
        if not found:
            return None
        prefix = _prefix([repository for repository, _ in found], ids)
        return Contents([HandedIn(_person(name, prefix), file, file.name) for name, file in found], [])


def _prefix(repositories: Sequence[str], ids: set[str]) -> str:
    """What stands before the user's name: an assignment's id, or what all have in common up to a hyphen; else nothing."""
    names = sorted(set(repositories))
    for id_ in sorted(ids, key=len, reverse=True):
        for slug in (f"{id_}-", f"{id_.replace('_', '-')}-"):
            if all(name.lower().startswith(slug) and len(name) > len(slug) for name in names):
                return slug
    if len(names) < 2:
        return ""
    first, last = names[0], names[-1]  # of sorted names these differ first
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("-", 0, same) + 1]


def _person(repository: str, prefix: str) -> Person:
    user = repository[len(prefix) :]
    return Person(folder=user, key=f"repository {user.casefold()}", github=user)
