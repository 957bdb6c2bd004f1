"""What somebody is told whose hidden checks or mutants are not there."""

from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.judge.run_checks import GraderFault, collect_checks


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
