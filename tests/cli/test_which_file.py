"""Internal: the names of exercises, which every command reads with `exercises_named`.

Which exercise a name, a number or a path means, and which of several files is checked: the script,
the notebook or a copy under another name.
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
STUB_PATH = "exercises/averages/01_running_mean.py"
SCRIPT, NOTEBOOK, COPY = f"{STEM}.py", f"{STEM}.ipynb", f"{STEM}-Copy1.ipynb"
BOTH = f"Both {SCRIPT} and {NOTEBOOK} were worked on: the .py counts."
UNTOUCHED = "is as it was handed out"


def write_attempt(folder: Path, name: str, code: str | None) -> None:
    """Write an attempt, or delete it if its code is None."""
    path = folder / "exercises" / "averages" / name
    if code is None:
        path.unlink()
    else:
        path.write_text(notebook(code) if name.endswith(".ipynb") else code, encoding="utf-8")


@pytest.mark.parametrize(
    # files: the code of each written file, None if it is deleted; named: argument of `check`
    ("files", "named", "note"),
    [
        pytest.param(
            {SCRIPT: RIGHT},
            NOTEBOOK,
            f"{SCRIPT} is judged, for {NOTEBOOK} {UNTOUCHED}.",
            id="an untouched notebook",
        ),
        pytest.param(
            {NOTEBOOK: RIGHT},
            SCRIPT,
            f"{NOTEBOOK} is judged, for {SCRIPT} {UNTOUCHED}.",
            id="an untouched script",
        ),
        pytest.param(
            {NOTEBOOK: RIGHT, SCRIPT: None},
            SCRIPT,
            f"{NOTEBOOK} is judged, for {SCRIPT} is not here.",
            id="a deleted script",
        ),
        pytest.param(
            {SCRIPT: RIGHT, NOTEBOOK: WRONG},
            NOTEBOOK,
            BOTH,
            id="a script and a notebook that were both edited",
        ),
        pytest.param(
            {SCRIPT: RIGHT, COPY: WRONG},
            COPY,
            f"{SCRIPT} is judged, for {COPY} is not called as an attempt is.",
            id="a copy beside a script",
        ),
        pytest.param(
            {SCRIPT: RIGHT},
            COPY,
            f"{SCRIPT} is judged, for {COPY} is not here.",
            id="a copy that does not exist",
        ),
        pytest.param(
            {SCRIPT: RIGHT, "running_mean.py": WRONG},
            "exercises/averages/running_mean.py",
            f"{SCRIPT} is judged, for running_mean.py is not called as an attempt is.",
            id="a copy without a number",
        ),
        pytest.param({SCRIPT: RIGHT}, SCRIPT, "", id="the script itself"),
        pytest.param({SCRIPT: RIGHT}, "running_mean", "", id="the id of the exercise"),
    ],
)
def test_check_says_which_file_it_judges(run_course, student_copy, files, named, note):
    for name, code in files.items():
        write_attempt(student_copy, name, code)
    completed = run_course("check", named, cwd=student_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    output = " ".join(completed.stdout.split())
    assert output.count(note or ".ipynb") == bool(note)
    assert output.count(" is judged, for ") == note.count(" is judged, for ")


def test_status_says_whether_script_or_notebook_counts(run_course, student_copy):
    write_attempt(student_copy, SCRIPT, RIGHT)
    assert "note:" not in run_course("status", cwd=student_copy).stdout
    write_attempt(student_copy, NOTEBOOK, WRONG)
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
def test_commands_name_a_finished_copy_beside_an_untouched_stub(run_course, student_copy, command):
    write_attempt(student_copy, COPY, RIGHT)
    completed = run_course(*command, cwd=student_copy)
    assert completed.returncode == (1 if command[0] == "check" else 2)
    assert (completed.stdout + completed.stderr).removeprefix("course: ") == (
        f"{SCRIPT} {UNTOUCHED}, and {COPY} is not read.\n"
        f"Put it in the place of {NOTEBOOK}.\nNext: course check running_mean\n"
    )
    assert (
        f"note: {SCRIPT} {UNTOUCHED}, and {COPY} is not read.\n"
        in run_course("status", cwd=student_copy).stdout
    )


@pytest.mark.parametrize(
    ("script", "copy"),
    [
        pytest.param(
            None,
            (TINY / "exercises" / "averages" / SCRIPT).read_text(encoding="utf-8"),
            id="a copy of the stub",
        ),
        pytest.param(
            None, "def another(x):\n    return x\n", id="another function in another file"
        ),
        pytest.param(RIGHT, WRONG, id="a copy beside an edited script"),
    ],
)
def test_check_does_not_mention_an_irrelevant_copy(run_course, student_copy, script, copy):
    write_attempt(student_copy, "scratch.py" if "another" in copy else f"{STEM}_old.py", copy)
    if script is not None:
        write_attempt(student_copy, SCRIPT, script)
    completed = run_course("check", cwd=student_copy)
    assert completed.returncode == 0
    assert "not read" not in completed.stdout  # the note about files that are left out
    assert ("Nothing is begun yet" in completed.stdout) == (script is None)


@pytest.mark.parametrize(
    ("name", "old", "new", "change"),
    [
        pytest.param(
            STUB_PATH,
            "# %% [markdown]",
            "# %% [markdown]\n# More.",
            f"{STEM}'s lesson",
            id="a lesson",
        ),
        pytest.param(
            STUB_PATH,
            "import torch\n",
            "import torch\nX = 1\n",
            f"{STEM}'s stub",
            id="a stub",
        ),
        pytest.param("NEWS", "", "new", "other files", id="another file"),
    ],
)
def test_check_lists_changes_that_were_fetched_but_not_merged(
    run_course, student_copy, tmp_path, name, old, new, change
):
    clone = tmp_path / "clone"

    def commit():
        git(student_copy, "add", "-A")
        git(student_copy, "commit", "-qm", "class")

    def check():
        return run_course("check", cwd=clone).stdout

    git(student_copy, "init", "-q")
    (student_copy / "NEWS").touch()
    commit()
    git(tmp_path, "clone", "-q", str(student_copy), str(clone))
    write_attempt(clone, SCRIPT, RIGHT)
    assert "newer" not in check()
    path = student_copy / name
    path.write_text(path.read_text().replace(old, new, 1))
    commit()
    assert "newer" not in check(), "check does not fetch"
    git(clone, "fetch", "-q")
    note = f"note: the class repository is newer: {change}. Your work stays: git pull\n"
    assert check().count(note) == 1


@pytest.mark.parametrize(
    ("cwd", "names"),
    [
        (".", "running_mean"),
        (".", "01"),
        (".", "1"),
        (".", "1_running_mean.py"),
        (".", "01_running_mean"),
        (".", STUB_PATH),
        (".", "exercises/averages/01_running_mean.ipynb"),
        ("exercises/averages", "01_running_mean.py"),
        ("..", f"tiny/{STUB_PATH}"),
        ("..", "01_running_mean.py"),  # as with --course: this folder has no such file
        (".", "exercises/averages/"),
        ("exercises/averages", "."),
        (".", "running_mean 01"),  # two names of one exercise
        (".", "averages running_mean"),
        (".", "running_mean running_mean"),
    ],
)
def test_an_exercise_can_be_named_by_id_number_file_or_folder(tiny_copy, monkeypatch, cwd, names):
    monkeypatch.chdir(tiny_copy / cwd)
    exercises = exercises_named(load_course(tiny_copy), names.split())
    assert [exercise.id for exercise in exercises] == ["running_mean"]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("runing_mean", "did you mean running_mean?"),
        ("01_runing_mean.py", "did you mean running_mean?"),
        ("median", "there are: running_mean."),
        ("/", "there are: running_mean."),
    ],
)
def test_a_mistyped_name_is_refused_with_a_suggestion(tiny, name, suggestion):
    with pytest.raises(CourseError) as error:
        exercises_named(tiny, [name])
    assert str(error.value) == f"there is no exercise '{name}'; {suggestion} Next: course status"


def test_an_assignment_name_selects_all_its_exercises(repository):
    course = load_course(repository)
    assignment = course.assignments[1]
    assert exercises_named(course, ["attention_in_practice"]) == list(assignment.exercises)


def test_an_ambiguous_number_is_refused_with_the_exercises_it_may_mean(repository):
    with pytest.raises(CourseError) as error:
        exercise_named(load_course(repository), "01", "hint")
    assert str(error.value) == (
        "'01' may be any of these: attention_scores, cross_attention. Next: course hint "
        "attention_scores"
    )


def test_check_prefers_the_started_exercise_for_an_ambiguous_number(
    repository, tmp_path, run_course
):
    shutil.copytree(repository / "exercises", tmp_path / "exercises")
    shutil.copy(repository / "course.yaml", tmp_path)

    def checked_titles(name):
        output = run_course("check", name, cwd=tmp_path).stdout
        return re.findall("^. 01 (.*?)  ", output, re.MULTILINE)

    assert checked_titles("1") == ["Attention scores", "Cross-attention"]
    started = tmp_path / "exercises" / "attention_in_practice" / "01_cross_attention.py"
    text = started.read_text(encoding="utf-8")
    started.write_text(text.replace(STUB[1], "pass", 1), encoding="utf-8")
    assert checked_titles("1") == ["Cross-attention"]
    assert checked_titles("attention_scores") == ["Attention scores"]


@pytest.mark.parametrize(
    "name",
    ["Downloads/01_running_mean.py", "running_mean.py", "solutions/averages/01_running_mean.py"],
)
def test_a_file_outside_the_exercises_folder_is_refused(tiny_copy, monkeypatch, name):
    """`course check ~/Downloads/01_running_mean.py` once silently checked exercises/ instead."""
    monkeypatch.chdir(tiny_copy)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).touch()
    with pytest.raises(CourseError) as error:
        exercises_named(load_course(tiny_copy), [name])
    folder = tiny_copy / "exercises" / "averages"
    assert str(error.value) == (
        f"{name} is not read: attempts are in {folder}. Next: copy it there, then course "
        "check running_mean"
    )
