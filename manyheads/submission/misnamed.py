"""Files that look like an exercise under a wrong name: `02_causal_mask (1).ipynb`, `causal_mask_final.py`."""

from __future__ import annotations

from collections.abc import Iterator

from ..course import Exercise
from .find import Submission

ENDINGS = (".py", ".ipynb")


def misnamed(submission: Submission, exercises: tuple[str, ...] = ()) -> Iterator[str]:
    """A sentence for each file whose name contains the id of an exercise that is missing.

    exercises: look only for these ids; empty means all.
    """
    assignment = submission.assignment
    stems = {exercise.id: exercise.stem for exercise in assignment.exercises}
    names = sorted(path.name for path in submission.folder.iterdir())
    known = {stem + ending for stem in stems.values() for ending in ENDINGS}
    strange = [name for name in names if name.lower().endswith(ENDINGS) and name not in known]
    for exercise in assignment.exercises:
        if exercises and exercise.id not in exercises:
            continue
        if not any(stems[exercise.id] + ending in names for ending in ENDINGS):
            yield from (_sentence(submission, name, stems[exercise.id]) for name in strange if _is_of(name, exercise))


def _is_of(name: str, exercise: Exercise) -> bool:
    return exercise.id in name.lower().replace("-", "_").replace(" ", "_")


def _sentence(submission: Submission, name: str, stem: str) -> str:
    where = f"{submission.student}/{submission.assignment.id}"
    return (
        f"{where}: {name!a} should be named {stem}.py or {stem}.ipynb. Next: rename it, then run the same command again"
    )
