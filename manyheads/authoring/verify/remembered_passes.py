"""Remember which claims passed, so that `course verify --changed` tries only the others.

Two kinds of claims are remembered. The claims about the mutants and attempts of one exercise pass
together. The claims about files pass together for all exercises of a run: they also read files of
other exercises, for example because no file may contain a line of any solution.

For claims that passed, a file in `.course/verify/` has the time, and a digest of everything that
decides them. A missing or damaged file has another digest, so the claims are tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...course import Course, Exercise
from ...course.model import FOLDER
from ...files import write_whole
from ..release_exercises import recorded_files
from ..remembered_steps import digest_of_texts, environment_digest, file_texts

# `source` is nbgrader's: a folder there decides which files of exercises/ are strays.
_FOLDERS = ("solutions", "grader", "exercises", "docs", "source")


@dataclass(frozen=True)
class ClaimGroup:
    """Claims that are remembered together.

    Attributes:
        exercise: The exercise of the claims, or None for the claims about files.
        path: The file that says whether they passed.
        digest: The digest of everything that decides them.
    """

    exercise: Exercise | None
    path: Path
    digest: str

    def passed_at(self) -> str:
        """Return when the claims passed, or "" if something has changed since, or they failed."""
        try:
            digest, _, time = self.path.read_text(encoding="utf-8").partition(" ")
        except (OSError, ValueError):
            return ""
        return time if digest == self.digest else ""

    def remember(self) -> None:
        """Remember that the claims passed now. In a read-only course, nothing is remembered."""
        time = datetime.now(UTC).astimezone()
        with suppress(OSError):
            # the folder of the course's secret, which others may not read
            self.path.parents[1].mkdir(mode=0o700, exist_ok=True)
            write_whole(self.path, f"{self.digest} {time:%Y-%m-%d %H:%M}".encode())

    def forget(self) -> None:
        """Forget that the claims passed. In a read-only course, nothing is forgotten."""
        with suppress(OSError):
            self.path.unlink()


def claim_groups(
    course: Course, exercises: Sequence[Exercise], seeds: int, pairs: int
) -> list[ClaimGroup]:
    """Return the groups of the claims about these exercises, as their files are now.

    The claims about files are the first group. Their digest has the ids: some of these claims are
    only tried if the whole course is verified. An exercise's group does not need the texts of
    misconceptions: the fault dictionary has those that count.

    Args:
        course: The course.
        exercises: The exercises to verify.
        seeds: The number of seeds. Claims that passed with others are tried again.
        pairs: The number of pairs, as for the seeds.
    """
    folder = course.root / FOLDER / "verify"
    paths = [path for name in _FOLDERS for path in (course.root / name).rglob("*")]
    texts = file_texts(course.root, [*paths, course.root / "course.yaml"])
    files_digest = digest_of_texts(
        environment_digest(), *(exercise.id for exercise in exercises), *texts
    )
    groups = [ClaimGroup(None, folder / "files", files_digest)]
    for exercise in exercises:
        digest = digest_of_texts(
            environment_digest(),
            f"{seeds} seeds, {pairs} pairs, exercise {exercise.number}",
            course.file.model_dump_json(exclude={"assignments"}),
            exercise.row.model_dump_json(),
            *file_texts(course.root, [*exercise.recorded_from(), *recorded_files(exercise)]),
        )
        groups.append(ClaimGroup(exercise, folder / f"{exercise.id}.passed", digest))
    return groups
