"""What a person may call an exercise: its id, its number, its file where it stands; never a file elsewhere."""

import re
import shutil
from pathlib import Path

import pytest

from manyheads.authoring.stub import STUB
from manyheads.cli.options import exercise_named, exercises_named
from manyheads.course import CourseError, load_course

FILE = "exercises/averages/01_running_mean.py"


@pytest.mark.parametrize(("cwd", "name"), [
    (".", "running_mean"),
    (".", "01"),
    (".", "1"),
    (".", "1_running_mean.py"),
    (".", "01_running_mean"),
    (".", FILE),
    (".", "exercises/averages/01_running_mean.ipynb"),
    ("exercises/averages", "01_running_mean.py"),
    ("..", "tiny/" + FILE),
    ("..", "01_running_mean.py"),  # with --course: no such file here
])  # fmt: skip
def test_an_exercise_has_many_names(tiny_copy: Path, monkeypatch: pytest.MonkeyPatch, cwd: str, name: str) -> None:
    monkeypatch.chdir(tiny_copy / cwd)
    assert [e.id for e in exercises_named(load_course(tiny_copy), [name])] == ["running_mean"]


@pytest.mark.parametrize(("name", "says"), [
    ("runing_mean", "there is no exercise 'runing_mean'; did you mean running_mean? Next: course status"),
    ("01_runing_mean.py", "there is no exercise '01_runing_mean.py'; did you mean running_mean? Next: course status"),
    ("median", "there is no exercise 'median'; there are: running_mean. Next: course status"),
])  # fmt: skip
def test_a_name_that_is_mistyped_is_told_which_one_may_be_meant(tiny_copy: Path, name: str, says: str) -> None:
    with pytest.raises(CourseError) as error:
        exercises_named(load_course(tiny_copy), [name])
    assert str(error.value) == says


def test_an_assignment_is_all_its_exercises(repository: Path) -> None:
    course = load_course(repository)
    assert exercises_named(course, ["attention_in_practice"]) == list(course.assignments[1].exercises)


def test_a_number_of_two_assignments_is_told_with_what_it_may_be(repository: Path) -> None:
    with pytest.raises(CourseError) as error:
        exercise_named(load_course(repository), "01", "hint")
    assert str(error.value) == (
        "'01' may be any of these: attention_scores, cross_attention. Next: course hint attention_scores"
    )


def test_check_takes_of_a_number_of_two_assignments_the_exercise_that_is_begun(repository, tmp_path, run_course):
    shutil.copytree(repository / "exercises", tmp_path / "exercises")
    shutil.copy(repository / "course.yaml", tmp_path)
    begun = tmp_path / "exercises" / "attention_in_practice" / "01_cross_attention.py"

    def checked(name: str) -> list[str]:
        return re.findall("^. 01 (.*?)  ", run_course("check", name, cwd=tmp_path).stdout, re.MULTILINE)

    assert checked("1") == ["Attention scores", "Cross-attention"]
    begun.write_text(begun.read_text(encoding="utf-8").replace(STUB[1], "pass", 1), encoding="utf-8")
    assert checked("1") == ["Cross-attention"]
    assert checked("attention_scores") == ["Attention scores"]


@pytest.mark.parametrize(
    "name", ["Downloads/01_running_mean.py", "running_mean.py", "solutions/averages/01_running_mean.py"]
)
def test_a_file_elsewhere_is_not_taken_for_the_attempt(tiny_copy, monkeypatch, name):
    """It once was: `course check ~/Downloads/01_running_mean.py` spoke about exercises/ without a word."""
    monkeypatch.chdir(tiny_copy)
    Path(name).parent.mkdir(exist_ok=True)
    if not Path(name).exists():
        shutil.copy(FILE, name)
    with pytest.raises(CourseError) as error:
        exercises_named(load_course(tiny_copy), [name])
    folder = tiny_copy / "exercises" / "averages"
    assert str(error.value) == (
        f"{name} is not read: attempts are in {folder}. Next: copy it there, then course check running_mean"
    )
