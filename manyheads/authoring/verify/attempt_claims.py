"""Claims about attempts, run in the box: stubs score 0, right attempts full, and the order of layers decides nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from unittest import mock

from torch import nn

from ...box.level import Box
from ...checks.local import LocalRecordingRunner, namespace_of
from ...course import Course, Exercise
from ...diagnosis import Bank
from ...diagnosis.family import Namespace
from ...diagnosis.recording_file import current, read
from ...judge.grade_submission import Judge, Settings
from ...report.words import out_of
from ...result import ExerciseResult
from ...student.check_attempt import check_attempt
from ...submission import AttemptSource
from ..stub import stub_of
from .claim import SECRET, Claim, Told, Trial

DTYPES = ("float64", "float32")
FAIR = "let that check ask for no more than the exercise says, or mend the attempt"


def verify_attempts(course: Course, box: Box, exercise: Exercise, seeds: int) -> Iterator[Claim]:
    """Yield the claims about an exercise's right, untouched and unlisted wrong attempts."""
    judge = Judge(course, box, Settings(SECRET, exercises=(exercise.id,), lines=False))
    yield _stub(judge, exercise)
    says = "an unlisted wrong attempt fails, gets no diagnosis, and has the same points with every seed"
    mend = "let a check tell it from what it is named, and leave no verdict to chance"
    graded = [[_grade(judge, exercise, path, seed) for path in exercise.wrong_attempts()] for seed in range(seeds)]
    yield _wrong(exercise, says, graded, mend)
    says = "an unlisted wrong attempt fails `course check` and gets no diagnosis there"
    mend = "course release; let a check ask what tells it from a right one"
    yield _wrong(exercise, says, [[_at_home(exercise, path) for path in exercise.wrong_attempts()]], mend)
    yield _checked(exercise)
    for dtype in DTYPES:
        judge = Judge(course, box, Settings(SECRET, exercises=(exercise.id,), dtype=dtype))
        yield _right(judge, exercise, seeds, dtype)


def _stub(judge: Judge, exercise: Exercise) -> Claim:
    source = AttemptSource(f"{exercise.stem}.py", stub_of(exercise))
    result = judge.grade_attempt("stub", exercise, source)
    names = [d.id for d in result.diagnosis]
    is_right = result.score == 0 and (names == ["stub_untouched"] or current(exercise) is None)  # else nothing is named
    failures = [] if is_right else [f"scores {out_of(result)}, named {names}"]
    hide = f"let the checks ask for what is to be written, or mark it as solution in {exercise.solution.name}"
    return Claim.but_for(failures, exercise.id, "the untouched stub scores 0", 1, hide)


def _right(judge: Judge, exercise: Exercise, seeds: int, dtype: str) -> Claim:
    paths = right_paths(exercise)
    graded = [(path, seed, _grade(judge, exercise, path, seed)) for seed in range(seeds) for path in paths]
    failures = [f"{path.name}, seed {seed}: {_problems(it)}" for path, seed, it in graded if it.score != it.max_score]
    says = f"every right attempt scores full ({len(paths)} attempts, {seeds} seeds, {dtype})"
    return Claim.but_for(failures, exercise.id, says, len(paths) * seeds, FAIR)


def _checked(exercise: Exercise) -> Claim:
    """Return the claim about what `course check` reports for right attempts. In the box they are graded."""
    paths = right_paths(exercise)
    failures = [f"{path.name}: {problems}" for path in paths if (problems := _problems(_at_home(exercise, path)))]
    says = "every right attempt passes `course check`"
    return Claim.but_for(failures, exercise.id, says, len(paths), f"course release, then {FAIR}")


def _wrong(exercise: Exercise, says: str, graded: Sequence[Sequence[ExerciseResult]], mend: str) -> Claim:
    """Return the claim about the results of unlisted wrong attempts, with each seed."""
    failures = []
    for path, results in zip(exercise.wrong_attempts(), zip(*graded, strict=True), strict=True):
        if any(all(check.outcome == "passed" for check in result.checks) for result in results):
            failures.append(f"{path.name} passes")
        elif named := next((result.diagnosis for result in results if result.diagnosis), None):
            failures.append(f"{path.name} is named {[d.id for d in named]}")
        elif len(told := {out_of(result) for result in results}) > 1:
            failures.append(f"{path.name} has {' or '.join(sorted(told))}, by the seed")
    return Claim.but_for(failures, exercise.id, says, len(graded[0]), f"{mend}, or add a mutant of its kind")


def _grade(judge: Judge, exercise: Exercise, path: Path, seed: int = 0) -> ExerciseResult:
    return judge.grade_attempt(path.name, exercise, source_of(path), seed)


def _at_home(exercise: Exercise, path: Path) -> ExerciseResult:
    recording, source = read(exercise.fingerprints), path.read_text(encoding="utf-8")
    return check_attempt(recording, LocalRecordingRunner(namespace_of(path)), source, exercise)


def right_paths(exercise: Exercise) -> list[Path]:
    """Return the paths of the solution and of the right attempts beside it."""
    return [exercise.solution, *exercise.right_attempts()]


def source_of(path: Path) -> AttemptSource:
    """Return a file as an attempt."""
    return AttemptSource(path.name, path.read_text(encoding="utf-8"))


def _problems(result: ExerciseResult) -> str:
    return "; ".join(f"{c.id}: {c.outcome}, {c.evidence}" for c in result.checks if c.outcome != "passed")


HOLDERS = ("_modules", "_buffers", "_parameters")  # of a module, each in the order in which it was filled


def verify_order(
    exercise: Exercise, bank: Bank, trial: Trial, usual: Mapping[int, Told], count: int | None
) -> Iterator[Claim]:
    """Yield the claim, tried with `count` mutants that are modules, all where it is None. None where there is no such mutant.

    usual: what is told of the mutants, by their ids.
    """
    modules = [mutant for mutant in bank.mutants if _modules_of(mutant.namespace)]
    if not modules:
        return
    chosen = random.Random(exercise.id).sample(modules, len(modules))[:count]
    failures = []
    for mutant in chosen:
        with made_in_another_order(mutant.namespace):
            then = trial(mutant.namespace).names
        first = usual[id(mutant)].names
        if then != first and then != trial(mutant.namespace).names:  # what it keeps from call to call may be why
            failures.append(f"{mutant.id} is named {first}, then {then}")
    says = "every mutant has the same names if its layers are made in another order"
    mend = f"let no check compare weights that nobody gave, then course verify {exercise.id}"
    yield Claim.but_for(failures, exercise.id, says, len(chosen), mend)


@contextmanager
def made_in_another_order(namespace: Namespace) -> Iterator[None]:
    """Let every module of these classes hold its layers and buffers in the reverse order, with weights drawn in it."""
    with ExitStack() as patches:
        for module in _modules_of(namespace):
            patches.enter_context(mock.patch.object(module, "__init__", _reversed(module.__init__)))
        yield


def _reversed(init: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor, and then the other order. What it raises it raises here, too."""

    @wraps(init)
    def made(self: nn.Module, *arguments: object, **named: object) -> None:
        init(self, *arguments, **named)
        for name in HOLDERS:
            held = vars(self).get(name) or {}
            again = list(reversed(held.items()))
            held.clear()
            held.update(again)
        for layer in self.children() if "_modules" in vars(self) else ():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    return made


def _modules_of(namespace: Namespace) -> list[type[nn.Module]]:
    found = {value for value in namespace.values() if isinstance(value, type) and issubclass(value, nn.Module)}
    return sorted(found, key=lambda module: module.__qualname__)
