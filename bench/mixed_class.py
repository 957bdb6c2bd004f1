"""A class for the whole course: attempts as students hand them in, right ones or half of them with
a fault.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis import load_bank

from .names import text_of, text_of_pair

REPOSITORY = Path(__file__).resolve().parents[1]
GOLDEN = REPOSITORY / "tests" / "golden" / "examples.json"
EXAMPLES = REPOSITORY / "examples" / "submitted"

# How the faulty half is made, in parts of twenty.
KINDS = {
    "a mutant": 10,
    "two faults at once": 2,
    "a slip in a right attempt": 4,
    "one that no misconception describes": 2,
    "one of examples/submitted": 1,
    "nothing written": 1,
}
# A slip of the hand: what stood there, what stands there now.
SLIPS = (
    ("dim=-1", "dim=-2"),
    ("dim=-1", "dim=1"),
    (".tril(", ".triu("),
    (".triu(", ".tril("),
    ("diagonal=1", "diagonal=0"),
    ("math.sqrt(", "("),
    ("** -0.5", "** 0.5"),
    ("** 0.5", ""),
    ('float("-inf")', "-10.0"),
    ('float("-inf")', "0.0"),
    ('float("-inf")', 'float("inf")'),
    (".transpose(1, 2)", ""),
    (".transpose(-2, -1)", ".T"),
    ("is_causal=True", "is_causal=False"),
    ("self.training", "True"),
    ("raise ValueError", "print"),
    ("super().__init__()", "pass"),
    ("torch.softmax", "torch.sofmax"),
    ("return ", "retrun "),
)


@dataclass(frozen=True)
class File:
    """An attempt as a file."""

    text: str
    ending: str = ".py"
    # such as an untouched stub: another line would make it something else
    is_as_given: bool = False

    def add_signature(self, student: str) -> File:
        """With a line that makes its text the student's own."""
        return (
            self
            if self.is_as_given
            else File(f'{self.text}\n\nHANDED_IN_BY = "{student}"\n', self.ending)
        )


def class_of(
    root: Path, size: int, faulty: float, seed: int = 0
) -> Iterator[tuple[str, dict[str, File]]]:
    """So many students, each a file for every exercise, and as large a share of faulty attempts as
    is asked for.
    """
    course = load_course(root)
    chance = random.Random(seed)
    assignment = course.assignments[0]
    makers = {exercise.id: _Attempts(course, exercise) for exercise in assignment.exercises}
    attempts = size * len(assignment.exercises)
    flags = [i < round(faulty * attempts) for i in range(attempts)]
    chance.shuffle(flags)
    for number in range(size):
        student = f"s{number:04d}"
        files = {}
        for exercise in assignment.exercises:
            maker = makers[exercise.id]
            file = maker.wrong_file(chance) if flags.pop() else maker.right_file(chance)
            files[exercise.stem] = file.add_signature(student)
        yield student, files


class _Attempts:
    """Attempts at one exercise, to draw from."""

    def __init__(self, course: Course, exercise: Exercise) -> None:
        paths = [exercise.solution, *exercise.right_attempts()]
        self._right = [path.read_text(encoding="utf-8") for path in paths]
        wrong_folder = course.root / "grader" / "wrong" / exercise.id
        self._unlisted = [
            path.read_text(encoding="utf-8") for path in sorted(wrong_folder.glob("*.py"))
        ]
        self._untouched = exercise.script.read_text(encoding="utf-8")
        self._exercise, self._bank = exercise, load_bank(exercise)
        self._examples = list(_examples(exercise))
        self._kinds: Mapping[str, Callable[[random.Random], File]] = {
            "a mutant": lambda chance: File(text_of(exercise, chance.choice(self._bank.mutants))),
            "two faults at once": self._two,
            "a slip in a right attempt": self._slip,
            "one that no misconception describes": lambda chance: File(
                chance.choice(self._unlisted)
            ),
            "one of examples/submitted": self._example,
            "nothing written": lambda chance: File(self._untouched, is_as_given=True),
        }

    def right_file(self, chance: random.Random) -> File:
        """One of those that must score full."""
        return File(chance.choice(self._right))

    def wrong_file(self, chance: random.Random) -> File:
        """One that should not."""
        (fault_kind,) = chance.choices(list(KINDS), list(KINDS.values()))
        return self._kinds[fault_kind](chance)

    def _two(self, chance: random.Random) -> File:
        while True:
            first, second = chance.sample(self._bank.mutants, 2)
            if not first.faults.keys() & second.faults.keys() and bool(first.edited_text) == bool(
                second.edited_text
            ):
                text = text_of_pair(self._exercise, self._bank, first, second)
                if text is not None:
                    return File(text)

    def _slip(self, chance: random.Random) -> File:
        while True:
            text, (was, is_now) = chance.choice(self._right), chance.choice(SLIPS)
            if was in text:
                return File(text.replace(was, is_now))

    def _example(self, chance: random.Random) -> File:
        return chance.choice(self._examples) if self._examples else self._slip(chance)


def _examples(exercise: Exercise) -> Iterator[File]:
    """Those of examples/submitted that do not score full, without endless loops: what one costs is
    a setting.
    """
    for student, exercises in json.loads(GOLDEN.read_text()).items():
        result = exercises[exercise.id]
        if result["score"] < exercise.points and "timeout" not in result["not passed"]:
            for path in (EXAMPLES / student / exercise.assignment.id).glob(f"{exercise.stem}.*"):
                yield File(path.read_text(encoding="utf-8"), path.suffix, is_as_given=True)
