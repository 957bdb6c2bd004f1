"""Delegating to the fused function where the math is to be written out: everything else is earned, that check is not.

Watching which operations run can be dodged. The check also asks for what the fused function alone cannot give.
"""

import json
import shutil
from pathlib import Path

import pytest

from manyheads.course import load_course
from tests.make import REPOSITORY

ATTEMPTS = sorted((Path(__file__).parent / "attempts" / "delegating").glob("*.py"))
DELEGATES = [path.stem for path in ATTEMPTS if path.stem != "written_out"]
EXERCISE, CHECK = "fused_qkv", "written_out"


@pytest.fixture(scope="module")
def exercises(classes):
    """Each attempt's exercise, graded on a copy of the real course."""

    def plant(course: Path) -> None:
        for name in ("course.yaml", "solutions", "grader"):
            source, target = REPOSITORY / name, course / name
            target.parent.mkdir(parents=True, exist_ok=True)
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copy(source, target) if source.is_file() else shutil.copytree(source, target, ignore=ignored)

    loaded = load_course(REPOSITORY)
    exercise = next(e for e in loaded.exercises if e.id == EXERCISE)
    name = f"{exercise.stem}.py"

    def place(path: Path):
        return lambda folder: (folder / name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8") and None

    students = {path.stem: place(path) for path in ATTEMPTS}
    run = classes.on_another_course("delegating", students, plant, exercise.assignment.id, EXERCISE)
    assert run.status == 0, run.text
    return {student: json.loads(result)["exercises"][0] for student, result in run.results.items()}


def test_written_out_math_earns_all(exercises):
    assert exercises["written_out"]["score"] == exercises["written_out"]["max_score"], exercises["written_out"]


@pytest.mark.parametrize("trick", DELEGATES)
def test_delegating_is_found_and_costs_its_check_alone(exercises, trick):
    lost = [check["id"] for check in exercises[trick]["checks"] if check["outcome"] != "passed"]
    assert lost == [CHECK]
    assert "delegated" in [found["id"] for found in exercises[trick]["diagnosis"]]
