"""Clones of students' repositories: <assignment>-<username>/, as GitHub Classroom names them, mostly with exercises/ in them.

`gh classroom clone student-repos` puts them into <assignment>-submissions/ (github/gh-classroom): then that says what stands before the
user's name. Else it is what all the repositories have in common. The assignment's name there need not be one of the course's. GitHub's
zip of a repository has its branch behind its name, and so has the folder in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..course import Course
from ..submission import ENDINGS
from .found import Found
from .platform import Contents, Download, HandedIn, Person, unwrapped

FOLDER = "exercises"
_ALL = "-submissions"
_BRANCHES = ("-main", "-master")


class Clones:
    """Repositories."""

    name = "clones"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """What stands below exercises/<assignment>/ of each repository, and nothing else of it; of those that Classroom put
        into one folder, and that have no exercises/, every script and notebook."""
        ids = {assignment.id for assignment in course.assignments}
        found: list[tuple[str, Found]] = []
        repositories: set[tuple[str, ...]] = set()
        for file in files:
            at = _exercises_at(file, download, ids)
            if at is not None:
                repositories.add(file.path[:at])
                if file.closed or file.name.lower().endswith(ENDINGS):
                    name = file.path[min(at - 1, download.parting)] if at else download.name
                    found.append((_repository(name), file))
        loose = [(_below_all(file, download), file) for file in files if not _is_of(file, repositories)]
        for at, file in ((at, file) for at, file in loose if at is not None):
            repositories.add(file.path[: at + 1])
            if file.closed or file.name.lower().endswith(ENDINGS):
                found.append((_repository(file.path[at]), file))
        prefix = _prefix([repository for repository, _ in found], ids, _names_of_all(download))
        handed_in = [HandedIn(_person(name, prefix), file, file.name) for name, file in found]
        return Contents(handed_in, nobodys=[file for file in files if _is_of(file, repositories)])


def _exercises_at(file: Found, download: Download, ids: set[str]) -> int | None:
    """Where exercises/ stands, directly in a repository, or in the one folder of GitHub's zip of it."""
    last = min(len(file.path) - 2, download.parting + 3)
    at = next((i for i in range(last) if file.path[i] == FOLDER and file.path[i + 1] in ids), None)
    if at is None or at <= download.parting + 1:
        return at
    archive = file.path[download.parting]
    return at if unwrapped(archive) != archive and file.path[at - 1] == unwrapped(archive) else None


def _below_all(file: Found, download: Download) -> int | None:
    """Where the repository stands that this file is in, if it and the folder around it have the names that Classroom gives."""
    around = (download.name, *file.path)
    for at in range(min(len(file.path) - 1, download.parting + 1)):
        before = around[at].removesuffix(_ALL)
        if before != around[at] and file.path[at].startswith(f"{before}-"):
            return at
    return None


def _names_of_all(download: Download) -> list[str]:
    """What may stand before the user's name: what a folder of all repositories says."""
    shared = download.files[0].path[: download.parting] if download.files else ()
    return [f"{name.removesuffix(_ALL)}-" for name in (download.name, *shared) if name.endswith(_ALL)]


def _repository(name: str) -> str:
    """The repository's name, without an archive's ending and the branch that GitHub puts before that."""
    plain = unwrapped(name)
    branch = next((each for each in _BRANCHES if plain != name and plain.endswith(each)), "")
    return plain.removesuffix(branch)


def _is_of(file: Found, repositories: set[tuple[str, ...]]) -> bool:
    """Whether the file is in one of these repositories: what the class repository itself holds is nobody's."""
    return any(file.path[:i] in repositories for i in range(len(file.path)))


def _prefix(repositories: Sequence[str], ids: set[str], before: Sequence[str]) -> str:
    """What stands before the user's name: what the folder of all says, an assignment's id, or what all have in common; else nothing."""
    names = sorted(set(repositories))
    slugs = [slug for id_ in sorted(ids, key=len, reverse=True) for slug in (f"{id_}-", f"{id_.replace('_', '-')}-")]
    for slug in (*before, *slugs):
        if all(name.lower().startswith(slug.lower()) and len(name) > len(slug) for name in names):
            return slug
    if len(names) < 2:
        return ""
    first, last = names[0], names[-1]  # of sorted names these differ first
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("-", 0, same) + 1]


def _person(repository: str, prefix: str) -> Person:
    user = repository[len(prefix) :]
    return Person(folder=user, key=f"repository {user.casefold()}", github=user)
