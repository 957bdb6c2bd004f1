"""What somebody is told whose hidden checks or mutants are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.errors import CourseFault
from manyheads.judge.catalogue import Catalogue
from manyheads.judge.collect import GraderFault, collect_checks


def test_a_missing_file_of_checks_is_named_with_what_asks_for_it(tiny_copy: Path, capfd: pytest.CaptureFixture) -> None:  # type: ignore[type-arg]
    """pytest would say it in words of its own, and find nothing wrong with the other files."""
    (exercise,) = load_course(tiny_copy).exercises
    exercise.checks.unlink()
    with pytest.raises(GraderFault) as told:
        collect_checks([exercise.checks])
    assert str(told.value) == (
        f"{exercise.checks} is missing, which course.yaml requires. Next: write it, or mend course.yaml"
    )
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["", "MUTANTS = ()\n"], ids=["no file", "an empty tuple"])
def test_without_a_mutant_it_is_said_that_one_is_needed(tiny_copy: Path, text: str) -> None:
    course = load_course(tiny_copy)
    (exercise,) = course.exercises
    exercise.misconceptions.unlink()
    if text:
        exercise.misconceptions.write_text(text, encoding="utf-8")
    tables = Catalogue(course).tables
    for ask in (tables.of, tables.renewed):
        with pytest.raises(CourseFault) as told:
            ask(exercise)
        assert str(told.value) == (
            f"{exercise.misconceptions} lists no mutant, so no mistake can be named. "
            "Next: write one in MUTANTS, then course release running_mean"
        )
