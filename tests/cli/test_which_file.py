"""Which exercise is meant and which file is judged: names, numbers and paths; a script, a notebook,
and copies under other names.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from manyheads.authoring.make_stub import STUB
from manyheads.cli.options import exercise_named, exercises_named
from manyheads.course import CourseError, load_course
from tests.make import RIGHT, TINY, WRONG, git, notebook

STEM = "01_running_mean"
SCRIPT, NOTEBOOK, COPY = f"{STEM}.py", f"{STEM}.ipynb", f"{STEM}-Copy1.ipynb"
BOTH = f"Both {SCRIPT} and {NOTEBOOK} were worked on: the .py counts."
GIVEN = "is as it was handed out"


def write(folder: Path, name: str, code: str | None) -> None:
    """Write an attempt, or delete it."""
    path = folder / "exercises" / "averages" / name
    if code is None:
        path.unlink()
    else:
        path.write_text(notebook(code) if name.endswith(".ipynb") else code, encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "named", "says"),
    [
        pytest.param(
            {SCRIPT: RIGHT},
            NOTEBOOK,
            f"{SCRIPT} is judged, for {NOTEBOOK} {GIVEN}.",
            id="a notebook beside a script",
        ),
        pytest.param(
            {NOTEBOOK: RIGHT},
            SCRIPT,
            f"{NOTEBOOK} is judged, for {SCRIPT} {GIVEN}.",
            id="a script beside a notebook",
        ),
        pytest.param(
            {NOTEBOOK: RIGHT, SCRIPT: None},
            SCRIPT,
            f"{NOTEBOOK} is judged, for {SCRIPT} is not here.",
            id="a script that is gone",
        ),
        pytest.param({SCRIPT: RIGHT, NOTEBOOK: WRONG}, NOTEBOOK, BOTH, id="one of two"),
        pytest.param(
            {SCRIPT: RIGHT, NOTEBOOK: WRONG}, "running_mean", BOTH, id="by its id, one of two"
        ),
        pytest.param(
            {SCRIPT: RIGHT, COPY: WRONG},
            COPY,
            f"{SCRIPT} is judged, for {COPY} is not called as an attempt is.",
            id="a copy",
        ),
        pytest.param(
            {SCRIPT: RIGHT},
            COPY,
            f"{SCRIPT} is judged, for {COPY} is not here.",
            id="a copy that is gone",
        ),
        pytest.param(
            {SCRIPT: RIGHT, "running_mean.py": WRONG},
            "exercises/averages/running_mean.py",
            f"{SCRIPT} is judged, for running_mean.py is not called as an attempt is.",
            id="a copy without a number",
        ),
        pytest.param({SCRIPT: RIGHT}, SCRIPT, "", id="the script itself"),
        pytest.param({SCRIPT: RIGHT}, "1_running_mean.py", "", id="the script, in short"),
        pytest.param({SCRIPT: RIGHT}, "running_mean", "", id="by its id"),
    ],
)
def test_check_says_which_file_it_judges(run_course, student_copy, files, named, says):
    for name, code in files.items():
        write(student_copy, name, code)
    completed = run_course("check", named, cwd=student_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    output = " ".join(completed.stdout.split())
    assert output.count(says or ".ipynb") == bool(says)
    assert output.count(" is judged, for ") == says.count(" is judged, for ")


def test_status_says_which_of_two_counts(run_course, student_copy):
    write(student_copy, SCRIPT, RIGHT)
    assert "note:" not in run_course("status", cwd=student_copy).stdout
    write(student_copy, NOTEBOOK, WRONG)
    assert f"note: {BOTH}\n" in run_course("status", cwd=student_copy).stdout
    (exercise,) = json.loads(run_course("status", "--json", cwd=student_copy).stdout)["exercises"]
    assert (exercise["note"], {check["outcome"] for check in exercise["checks"]}) == (
        BOTH,
        {"passed"},
    )


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["check", "1"],
        ["hint", "1"],
        ["trace", "1"],
        ["check", NOTEBOOK],
        ["check", COPY],
        ["check", f"exercises/averages/{COPY}"],
        ["hint", f"exercises/averages/{COPY}"],
    ],
)
def test_a_finished_copy_beside_an_untouched_stub_is_found_and_named(
    run_course, student_copy, command
):
    write(student_copy, COPY, RIGHT)
    completed = run_course(*command, cwd=student_copy)
    assert completed.returncode == (1 if command[0] == "check" else 2)
    assert (completed.stdout + completed.stderr).removeprefix("course: ") == (
        f"{SCRIPT} {GIVEN}, and {COPY} is not read.\n"
        f"Put it in the place of {NOTEBOOK}.\nNext: course check running_mean\n"
    )
    assert (
        f"note: {SCRIPT} {GIVEN}, and {COPY} is not read.\n"
        in run_course("status", cwd=student_copy).stdout
    )


@pytest.mark.parametrize(
    ("script", "copy"),
    [
        pytest.param(
            None,
            (TINY / "exercises" / "averages" / SCRIPT).read_text(encoding="utf-8"),
            id="in which nothing is written",
        ),
        pytest.param(
            None, "def another(x):\n    return x\n", id="of something else, under another name"
        ),
        pytest.param(RIGHT, WRONG, id="beside what is written"),
    ],
)
def test_nothing_is_said_of_a_copy(run_course, student_copy, script, copy):
    write(student_copy, "scratch.py" if "another" in copy else f"{STEM}_old.py", copy)
    if script is not None:
        write(student_copy, SCRIPT, script)
    completed = run_course("check", cwd=student_copy)
    assert (
        completed.returncode,
        "not read" in completed.stdout,
        "Nothing is begun yet" in completed.stdout,
    ) == (
        0,
        False,
        not script,
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda text: text.replace(
                "# %% [markdown]", "# %% [markdown]\n# One sentence more.", 1
            ),
            f"{STEM}'s lesson",
        ),
        (lambda text: f"{text}\nMORE = 1\n", f"{STEM}'s stub"),
        (None, "other files"),
    ],
    ids=["a lesson", "a stub", "something else"],
)
def test_check_says_what_git_has_fetched_of_the_class_repository(
    run_course, student_copy, tmp_path, change, says
):
    git(student_copy, "init", "-q")
    for words in (["add", "-A"], ["commit", "-qm", "class"]):
        git(student_copy, *words)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(student_copy), str(clone))
    write(clone, SCRIPT, RIGHT)
    assert "newer" not in run_course("check", cwd=clone).stdout
    script = student_copy / "exercises" / "averages" / SCRIPT
    if change:
        script.write_text(change(script.read_text()))
    else:
        (student_copy / "NEWS").write_text("new")
    for words in (["add", "-A"], ["commit", "-qm", "newer"]):
        git(student_copy, *words)
    assert "newer" not in run_course("check", cwd=clone).stdout, "nothing is fetched by a check"
    git(clone, "fetch", "-q")
    note = f"note: the class repository is newer: {says}. Your work stays: git pull\n"
    assert run_course("check", cwd=clone).stdout.count(note) == 1


FILE = "exercises/averages/01_running_mean.py"


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
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
    ],
)
def test_an_exercise_has_many_names(tiny_copy, monkeypatch, cwd, name):
    monkeypatch.chdir(tiny_copy / cwd)
    assert [e.id for e in exercises_named(load_course(tiny_copy), [name])] == ["running_mean"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "runing_mean",
            "there is no exercise 'runing_mean'; did you mean running_mean? Next: course status",
        ),
        (
            "01_runing_mean.py",
            (
                "there is no exercise '01_runing_mean.py'; did you mean running_mean? Next: "
                "course status"
            ),
        ),
        ("median", "there is no exercise 'median'; there are: running_mean. Next: course status"),
    ],
)
def test_a_name_that_is_mistyped_is_told_which_one_may_be_meant(tiny_copy, name, says):
    with pytest.raises(CourseError) as error:
        exercises_named(load_course(tiny_copy), [name])
    assert str(error.value) == says


@pytest.mark.parametrize(
    ("cwd", "name"), [(".", "exercises/averages/"), ("exercises/averages", ".")]
)
def test_the_folder_of_an_assignment_is_all_its_exercises(tiny_copy, monkeypatch, cwd, name):
    monkeypatch.chdir(tiny_copy / cwd)
    assert [e.id for e in exercises_named(load_course(tiny_copy), [name])] == ["running_mean"]
    with pytest.raises(CourseError, match="there is no exercise"):
        exercises_named(load_course(tiny_copy), ["/"])


@pytest.mark.parametrize(
    "names", [["running_mean", "01"], ["averages", "running_mean"], ["running_mean"] * 2]
)
def test_an_exercise_that_is_named_twice_is_checked_once(tiny, names):
    assert [e.id for e in exercises_named(tiny, names)] == ["running_mean"]


def test_an_assignment_is_all_its_exercises(repository):
    course = load_course(repository)
    assert exercises_named(course, ["attention_in_practice"]) == list(
        course.assignments[1].exercises
    )


def test_a_number_of_two_assignments_is_told_with_what_it_may_be(repository):
    with pytest.raises(CourseError) as error:
        exercise_named(load_course(repository), "01", "hint")
    assert str(error.value) == (
        "'01' may be any of these: attention_scores, cross_attention. Next: course hint "
        "attention_scores"
    )


def test_check_takes_of_a_number_of_two_assignments_the_exercise_that_is_begun(
    repository, tmp_path, run_course
):
    shutil.copytree(repository / "exercises", tmp_path / "exercises")
    shutil.copy(repository / "course.yaml", tmp_path)
    begun = tmp_path / "exercises" / "attention_in_practice" / "01_cross_attention.py"

    def checked_titles(name: str) -> list[str]:
        return re.findall(
            "^. 01 (.*?)  ", run_course("check", name, cwd=tmp_path).stdout, re.MULTILINE
        )

    assert checked_titles("1") == ["Attention scores", "Cross-attention"]
    begun.write_text(
        begun.read_text(encoding="utf-8").replace(STUB[1], "pass", 1), encoding="utf-8"
    )
    assert checked_titles("1") == ["Cross-attention"]
    assert checked_titles("attention_scores") == ["Attention scores"]


@pytest.mark.parametrize(
    "name",
    ["Downloads/01_running_mean.py", "running_mean.py", "solutions/averages/01_running_mean.py"],
)
def test_a_file_elsewhere_is_not_taken_for_the_attempt(tiny_copy, monkeypatch, name):
    """It once was: `course check ~/Downloads/01_running_mean.py` spoke about exercises/ without a
    word.
    """
    monkeypatch.chdir(tiny_copy)
    Path(name).parent.mkdir(exist_ok=True)
    if not Path(name).exists():
        shutil.copy(FILE, name)
    with pytest.raises(CourseError) as error:
        exercises_named(load_course(tiny_copy), [name])
    folder = tiny_copy / "exercises" / "averages"
    assert str(error.value) == (
        f"{name} is not read: attempts are in {folder}. Next: copy it there, then course "
        "check running_mean"
    )
