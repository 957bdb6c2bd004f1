"""Supply pytest with the cases of the claims about a course, and with what cases share.

A claim is a test function. Its docstring is the claim, its mark `claim` has the next step if the
claim fails, and its parameters are the cases. Each process of pytest-xdist loads this module as a
plugin. `Verified` holds the objects that several cases need.
"""

from __future__ import annotations

import gc
import itertools
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from ...box import open_box
from ...box.connection import Box
from ...box.level_and_device_names import Level
from ...course import Exercise, load_course
from ...diagnosis import BuiltMutant, load_bank
from ...diagnosis.recording_file import current
from ...files import CourseFault
from ...judge.grade_submission import Judge, Settings
from ...judge.run_hidden_checks import Catalogue
from ...result import ExerciseResult
from ...submission import Source
from ..release_exercises import GARBAGE, texts_of
from .wrong_programs import (
    EMPTY,
    FAULTS,
    SECRET,
    WRONG,
    FaultBench,
    Trials,
    saying_attempts,
    silent_attempts,
)

NUMBERS = 3  # drawn for each parametric mutant
# The share of a parameter's range, on a logarithmic scale, from which numbers are drawn. It lies in
# the middle, because near the limits one mistake turns into another or disappears.
MIDDLE = 0.4
SHORT = {"seconds_per_call": 0.2, "seconds_per_attempt": 0.4}  # for an attempt that never ends


class Verified:
    """The course that is verified, with the objects that its cases share.

    The objects of an exercise are kept only while its cases run, except for texts.

    Attributes:
        course: The course.
        exercises: The exercises to verify.
        unchanged: The ids of exercises of which only the claims about files are tried.
        pairs: The largest number of cases that are drawn for an exercise, or None for all.
        opened: Closes the box at the end.
        judge: Returns a judge for an exercise and settings.
        references: Returns one reference for each seed; each remembers its replies.
        texts: Returns the texts that a release of an exercise writes, by path.
        trials: Returns the trials of an exercise's mutants, or None if the fault dictionary is
            stale.
        faults: Returns the FaultBench of an exercise.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.course = course = load_course(Path(config.getoption("--course")))
        self.exercises = [e for e in course.exercises if e.id in config.getoption("--exercise")]
        self.unchanged = config.getoption("--unchanged")
        seeds, self.pairs = config.getoption("--seeds"), config.getoption("--pairs")
        self.opened = ExitStack()
        self.judge = lru_cache(maxsize=4)(self._judge)
        self.references = lru_cache(maxsize=1)(
            lambda e: [self.catalogue.remembering_reference(e) for _ in range(seeds)]
        )
        self.texts = cache(lambda exercise: texts_of(self.catalogue, exercise))
        self.trials = lru_cache(maxsize=1)(
            lambda e: None if current(e) is None else Trials(self.catalogue, e)
        )
        self.faults = lru_cache(maxsize=1)(lambda exercise: FaultBench(course, self.box, exercise))

    @cached_property
    def catalogue(self) -> Catalogue:
        """The checks and references."""
        return Catalogue(self.course)

    @cached_property
    def box(self) -> Box:
        """A box of the level that grades, opened at the first use."""
        limits = self.course.limits.for_worker()
        return self.opened.enter_context(open_box(Level.NAMESPACES, limits, self.course.root))

    def grade(self, exercise: Exercise, attempt: Path | str, **settings: Any) -> ExerciseResult:
        """Return the result of a file or a text, graded without a search for the line.

        Args:
            exercise: The exercise.
            attempt: The file or the text.
            settings: Settings of the judge, and `is_short` for an attempt that never ends.
        """
        text = attempt if isinstance(attempt, str) else attempt.read_text(encoding="utf-8")
        source = Source(f"{exercise.stem}.py", text)
        return self.judge(exercise, **settings).grade_attempt("verify", exercise, source)

    def grade_right(self, exercise: Exercise, attempt: Path, **settings: Any) -> ExerciseResult:
        """Return the result of a right attempt. The arguments are those of `grade`.

        Raises CourseFault if a check itself raises an exception.
        """
        judge = self.judge(exercise, **settings)
        judge.faults.clear()
        result = self.grade(exercise, attempt, **settings)
        if judge.faults:
            raise CourseFault(
                f"a check of {exercise.id} raises an error of its own, {judge.faults[0]}. Next: "
                f"mend it in {exercise.checks.name}, then course release {exercise.id}"
            )
        return result

    def _judge(self, exercise: Exercise, is_short: bool = False, **settings: Any) -> Judge:
        limits = self.course.limits.model_copy(update=SHORT if is_short else {})
        course = replace(self.course, file=self.course.file.model_copy(update={"limits": limits}))
        return Judge(
            course, self.box, Settings(SECRET, exercises=(exercise.id,), lines=False, **settings)
        )


VERIFIED = pytest.StashKey[Verified]()
Report = Callable[[int, Sequence[str]], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that `verify_course` sets."""
    parser.addoption("--course")
    parser.addoption("--exercise", action="append")
    parser.addoption("--unchanged", action="append", default=[])
    parser.addoption("--seeds", type=int)
    parser.addoption("--pairs", type=lambda text: None if text == "None" else int(text))


def pytest_configure(config: pytest.Config) -> None:
    """Load the course, and keep it in the stash of the configuration."""
    if hasattr(config, "workerinput"):  # this is a process of pytest-xdist
        gc.set_threshold(GARBAGE)
    config.stash[VERIFIED] = Verified(config)


def _sample(
    verified_course: Verified, exercise: Exercise, cases: Sequence[object]
) -> Sequence[object]:
    return random.Random(exercise.id).sample(cases, len(cases))[: verified_course.pairs]


def _pairs(exercise: Exercise) -> list[tuple[BuiltMutant, BuiltMutant]]:
    pairs = itertools.combinations(load_bank(exercise).mutants, 2)
    return [(a, b) for a, b in pairs if a.id != b.id and not a.faults.keys() & b.faults.keys()]


def _modules(exercise: Exercise) -> list[BuiltMutant]:
    return [mutant for mutant in load_bank(exercise).mutants if _has_class(mutant)]


def _has_class(mutant: BuiltMutant) -> bool:
    return any(isinstance(value, type) for value in mutant.namespace.values())


def _numbers(exercise: Exercise) -> Iterable[object]:
    draw = random.Random(exercise.id)
    for family in load_bank(exercise).parametric_mutants:
        low, high = math.log(family.low), math.log(family.high)
        margin = (high - low) * (1 - MIDDLE) / 2
        for _ in range(NUMBERS):
            yield family, family.knobs(math.exp(draw.uniform(low + margin, high - margin)))


# The cases of an exercise, by the name of the claims' parameter for a case.
CASES: dict[str, Callable[[Verified, Exercise], Iterable[object]]] = {
    "mutant": lambda _, exercise: load_bank(exercise).mutants,
    "some_mutant": lambda verified_course, exercise: _sample(
        verified_course, exercise, load_bank(exercise).mutants
    ),
    "module_mutant": lambda verified_course, exercise: _sample(
        verified_course, exercise, _modules(exercise)
    ),
    "pair": lambda verified_course, exercise: _sample(verified_course, exercise, _pairs(exercise)),
    "number": lambda _, exercise: _numbers(exercise),
    "right": lambda _, exercise: [exercise.solution, *exercise.right_attempts()],
    "wrong": lambda _, exercise: exercise.wrong_attempts(),
    "attempt": lambda _, exercise: [
        exercise.solution,
        *exercise.right_attempts(),
        *exercise.wrong_attempts(),
    ],
    "silent": lambda _, exercise: silent_attempts(exercise),
    "empty": lambda _, exercise: saying_attempts(exercise, EMPTY),
    "misshapen": lambda _, exercise: saying_attempts(exercise, WRONG),
    "fault": lambda _, exercise: range(FAULTS),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a claim its cases, each with its exercise.

    If one of the claim's parameters is in CASES, it gets these cases. Without such a parameter, an
    exercise is one case. If an exercise has no cases, one skipped case reports that.
    """
    verified_course, names = metafunc.config.stash[VERIFIED], metafunc.fixturenames
    case = next((name for name in CASES if name in names), None)
    is_about_files, rows = "test_files" in metafunc.module.__name__, []
    for exercise in verified_course.exercises:
        if exercise.id in verified_course.unchanged and not is_about_files:
            continue
        cases = (
            [(exercise, case) for case in CASES[case](verified_course, exercise)]
            if case
            else [(exercise,)]
        )
        rows += [pytest.param(*values, id=f"{exercise.id}-{n}") for n, values in enumerate(cases)]
        if not cases:
            rows.append(
                pytest.param(
                    exercise, None, id=f"{exercise.id}-0", marks=pytest.mark.skip(reason=NOTHING)
                )
            )
    metafunc.parametrize(["exercise", case] if case else ["exercise"], rows)


class _ByExercise(LoadScopeScheduling):  # type: ignore[misc]
    """Group the cases that run in the same process.

    A group is test_files.py as a whole, an exercise's cases of test_bank.py, or, in
    test_attempts.py, an exercise's cases of one claim. The claims about lines share a FaultBench,
    and other claims that need a box share judges. So most runs of one exercise open one box.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, claim, exercise, _ = re.split(r"::(\w+)\[(\w+)-", nodeid, maxsplit=1)
        if file == "test_files.py":
            return file
        if file == "test_bank.py":
            return f"{file} {exercise}"
        return f"{SHARED_BY.get(claim, claim)} {exercise}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Return the scheduler that distributes the cases."""
    return _ByExercise(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Add two properties to each case, which its report then has.

    "line" is the claim: its subject, its sentence, the next step and the share of cases that must
    hold. "is_last" says whether the case is the last one of its claim.
    """
    lines = [_line_of(item) for item in items]
    last_items = dict(zip(lines, items, strict=True))
    for item, line in zip(items, lines, strict=True):
        item.user_properties += [("line", line), ("is_last", last_items[line] is item)]


def _line_of(item: pytest.Function) -> tuple[str, str, str, float]:
    """Return the subject, the sentence, the next step and the share of a case's claim."""
    exercise: Exercise = item.callspec.params["exercise"]  # type: ignore[assignment]
    claim = next(item.iter_markers("claim"))
    says = " ".join(str(item.obj.__doc__).split()).rstrip(".")
    files = {name: getattr(exercise, name) for name in ("solution", "checks", "misconceptions")}
    paths = {name: path.relative_to(exercise.root) for name, path in files.items()}
    next_step = str(claim.args[0]).format(id=exercise.id, **paths)
    subject = claim.kwargs.get("about", exercise.id)
    return subject, says[:1].lower() + says[1:], next_step, claim.kwargs.get("share", 1.0)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[None]:
    """Replace the traceback of a report by one sentence.

    If the exception is a CourseFault, the report also gets the property "fault".
    """
    report: Any = yield
    if call.excinfo is not None:
        error = call.excinfo.value
        is_sentence = isinstance(error, AssertionError | CourseFault | pytest.skip.Exception)
        # without the part that pytest adds if it rewrites assertions
        message = str(error).partition("\nassert ")[0]
        report.longrepr = message if is_sentence else f"{type(error).__name__}: {message}"
        report.user_properties += [("fault", True)] if isinstance(error, CourseFault) else []
    return report  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def verified_course(pytestconfig: pytest.Config) -> Iterator[Verified]:
    """Yield the course with the objects that its cases share."""
    with pytestconfig.stash[VERIFIED].opened:
        yield pytestconfig.stash[VERIFIED]


@pytest.fixture
def trials(verified_course: Verified, exercise: Exercise) -> Trials:
    """Return the trials of an exercise's mutants.

    The case is skipped if the fault dictionary is stale, which another claim reports.
    """
    return verified_course.trials(exercise) or pytest.skip("its recording is stale")


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Report:
    """Return a function for tests that try several cases themselves.

    It takes the number of cases and a sentence for each failure. With failures, it fails the test;
    without cases, it skips the test.
    """

    def say(cases: int, failures: Sequence[str]) -> None:
        if not cases:
            pytest.skip(NOTHING)
        record_property("cases", cases)
        assert not failures, "\n".join(failures)

    return say


# Claims with the same value share a FaultBench, or judges.
SHARED_BY = {"test_line": "lines", "test_no_wrong_line": "lines"} | dict.fromkeys(
    ["test_silent", "test_empty", "test_form", "test_stub", "test_wrong", "test_right"], "box"
)
NOTHING = "nothing to ask"
