"""Clones of students' repositories: <assignment>-<username>/, as GitHub Classroom names them, with exercises/ in them.

`gh classroom clone student-repos` puts them into <assignment>-submissions/ (github/gh-classroom). What comes before the user's name is
the assignment's own name there, which need not be one of the course's: it is what all the repositories have in common.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..course import Course
from ..submission import ENDINGS
from .found import Found
from .platform import Contents, Download, HandedIn, Person, unwrapped

FOLDER = "exercises"


class Clones:
    """Repositories."""

    name = "clones"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """What stands below exercises/<assignment>/ of each repository, and nothing else of it."""
        ids = {assignment.id for assignment in course.assignments}
        found: list[tuple[str, Found]] = []
        repositories: set[tuple[str, ...]] = set()
        for file in files:
            last = min(len(file.path) - 2, download.parting + 2)
            at = next((i for i in range(last) if file.path[i] == FOLDER and file.path[i + 1] in ids), None)
            if at is not None:
                repositories.add(file.path[:at])
                if file.name.lower().endswith(ENDINGS):
                    found.append((unwrapped(file.path[at - 1] if at else download.name), file))
        prefix = _prefix([repository for repository, _ in found], ids)
        handed_in = [HandedIn(_person(name, prefix), file, file.name) for name, file in found]
        return Contents(handed_in, nobodys=[file for file in files if _is_of(file, repositories)])


def _is_of(file: Found, repositories: set[tuple[str, ...]]) -> bool:
    """Whether the file is in one of these repositories: what the class repository itself holds is nobody's."""
    return any(file.path[:i] in repositories for i in range(len(file.path)))


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
