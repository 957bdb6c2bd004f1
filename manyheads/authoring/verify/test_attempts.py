"""Claims about attempts: stubs, right ones, and wrong ones that no mutant stands for.

Stubs score 0, right attempts score full, and the wrong ones get no diagnosis. Attempts without an
answer earn nothing, wrong numbers keep points of form, and the line of a fault is found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ...checks.hidden_check import Layer
from ...checks.runner import LocalRecordingRunner, namespace_of
from ...course import Exercise
from ...diagnosis.recording_file import current, read
from ...report.report_content import out_of, score_words
from ...result import ExerciseResult
from ...student.check_attempt import check_attempt
from ...submission import Source
from ..make_stub import stub_of
from .plugin import NOTHING, Report, Verified
from .wrong_programs import SECRET, BehaviourAndText

claim = pytest.mark.claim
FAIR = "let that check ask for no more than the exercise says, or mend the attempt"
ANOTHER = "or add a mutant of its kind"
LINES = "see docs/diagnosis.md, The line"
# The share of the hygiene checks that wrong numbers may fail: some judge dropout by its values.
HYGIENE_SHARE = 0.5
LINE_SHARE = 0.8  # of five faults: two may be mended on three lines


@claim("let these checks ask every function for an answer")
def test_silent(verified_course: Verified, exercise: Exercise, silent: BehaviourAndText) -> None:
    """An attempt that gives no answer passes no check."""
    behaviour, text = silent
    _assert_nothing_earned(
        behaviour,
        verified_course.grade(exercise, text, is_short=behaviour == "never ends", diagnoses=False),
    )


@claim("let these checks ask for an answer that another input changes")
def test_empty(verified_course: Verified, exercise: Exercise, empty: BehaviourAndText) -> None:
    """An attempt whose answers say nothing passes no check."""
    _assert_nothing_earned(empty[0], verified_course.grade(exercise, empty[1], diagnoses=False))


@claim("let these checks ask for no right numbers, or give them Layer.VALUES")
def test_form(verified_course: Verified, exercise: Exercise, misshapen: BehaviourAndText) -> None:
    """An attempt with wrong numbers keeps its points of form."""
    behaviour, text = misshapen
    layers = {check.id: check.layer for check in verified_course.catalogue.checks(exercise)}
    result = verified_course.grade(exercise, text, diagnoses=False)
    failed = [check.id for check in result.checks if check.outcome != "passed"]
    form = [id_ for id_ in failed if layers[id_] in (Layer.SHAPE, Layer.FINITE)]
    lost = [id_ for id_ in failed if layers[id_] == Layer.HYGIENE]
    keeps = not form and len(lost) <= HYGIENE_SHARE * [*layers.values()].count(Layer.HYGIENE)
    assert keeps, f"an attempt that {behaviour} fails {', '.join([*form, *lost])}"


@claim(LINES, share=LINE_SHARE)
def test_line(verified_course: Verified, exercise: Exercise, fault: int) -> None:
    """The line of a small fault is found."""
    label, verdict = _line_verdict(verified_course, exercise, fault)
    assert verdict in ("there", "elsewhere"), f"{label}: {verdict} is told"


@claim(LINES)
def test_no_wrong_line(verified_course: Verified, exercise: Exercise, fault: int) -> None:
    """No line is told where nothing is wrong."""
    label, verdict = _line_verdict(verified_course, exercise, fault)
    assert verdict != "wrong", label


def _line_verdict(verified_course: Verified, exercise: Exercise, number: int) -> tuple[str, str]:
    """Return a description of the fault with this number, and how well a search locates it.

    The case is skipped if the exercise has fewer faults.
    """
    bench = verified_course.faults(exercise)
    if number >= len(bench.undone_faults):
        pytest.skip(NOTHING)
    fault = bench.undone_faults[number]
    location = f"{fault.attempt}, line {fault.edit.line} ({fault.edit.category})"
    return f"{exercise.id}: {location}: {fault.edit.description}", bench.line_verdict(fault)


def _assert_nothing_earned(behaviour: str, result: ExerciseResult) -> None:
    passed = ", ".join(check.id for check in result.checks if check.outcome == "passed")
    assert not passed, (
        f"an attempt that {behaviour} earns {score_words(result.score)} with {passed}"
    )


@claim("leave no verdict of a check to chance")
def test_every_seed(verified_course: Verified, exercise: Exercise, attempt: Path) -> None:
    """A right or unlisted wrong attempt has the same points and names with every seed."""
    names_by_seed = list[set[str]]()
    for seed, reference in enumerate(verified_course.references(exercise)):
        runner = LocalRecordingRunner(namespace_of(attempt))
        ends = verified_course.catalogue.run(
            exercise, runner, reference, SECRET, str(seed), exercise.id
        )
        failed = {end.id: end.suspect for end in ends if end.outcome != "passed"}
        # No misconception counts if a failed check shows none.
        names = () if "" in failed.values() else failed.values()
        names_by_seed.append({*failed, *names})
    by_chance = ", ".join(
        sorted({name for seed_names in names_by_seed for name in seed_names ^ names_by_seed[0]})
    )
    assert not by_chance, f"{attempt.name} fails or is named {by_chance} by the seed"
    names_by_seed[1:] or pytest.skip(NOTHING)


@claim("let the checks ask for what is to be written, or mark it as solution in {solution}")
def test_stub(verified_course: Verified, exercise: Exercise) -> None:
    """The untouched stub scores 0."""
    result = verified_course.grade(exercise, stub_of(exercise))
    names = [d.id for d in result.diagnosis]
    expected = [] if current(exercise) is None else ["stub_untouched"]
    assert (result.score, names) == (0, expected), f"scores {out_of(result)}, named {names}"


@claim(f"let a check tell it from what it is named, {ANOTHER}")
def test_wrong(verified_course: Verified, exercise: Exercise, wrong: Path) -> None:
    """An unlisted wrong attempt fails and gets no diagnosis."""
    _assert_unlisted(wrong, verified_course.grade(exercise, wrong))


@claim(FAIR)
def test_right(verified_course: Verified, exercise: Exercise, right: Path, report: Report) -> None:
    """Every right attempt scores full in float32 and in float64."""
    graded = {  # without a dtype, the judge is the one of other claims, and grades in float64
        "float32": verified_course.grade_right(exercise, right, dtype="float32"),
        "float64": verified_course.grade_right(exercise, right),
    }
    failing = {
        dtype: result for dtype, result in graded.items() if result.score != result.max_score
    }
    report(
        len(graded),
        [f"{right.name}, {dtype}: {_problems(result)}" for dtype, result in failing.items()],
    )


@claim(f"course release; let a check ask what tells it from a right one, {ANOTHER}")
def test_wrong_at_home(exercise: Exercise, wrong: Path) -> None:
    """An unlisted wrong attempt fails `course check` and gets no diagnosis there."""
    _assert_unlisted(wrong, _at_home(exercise, wrong))


@claim(f"course release, then {FAIR}")
def test_right_at_home(exercise: Exercise, right: Path) -> None:
    """Every right attempt passes `course check`."""
    problems = _problems(_at_home(exercise, right))
    assert not problems, f"{right.name}: {problems}"


def _at_home(exercise: Exercise, path: Path) -> ExerciseResult:
    recording = read(exercise.fingerprints)
    source = Source(path.name, path.read_text(encoding="utf-8"))
    return check_attempt(recording, LocalRecordingRunner(namespace_of(path)), source, exercise)


def _assert_unlisted(path: Path, result: ExerciseResult) -> None:
    assert not result.is_done, f"{path.name} passes"
    assert not result.diagnosis, f"{path.name} is named {[d.id for d in result.diagnosis]}"


def _problems(result: ExerciseResult) -> str:
    return "; ".join(
        f"{c.id}: {c.outcome}, {c.evidence}" for c in result.checks if c.outcome != "passed"
    )
