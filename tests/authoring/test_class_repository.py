"""The class repository for students: its files, its documents, and the trial before a release."""

import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from manyheads.authoring import class_repository
from manyheads.authoring.class_repository import (
    bundle,
    hand_over,
    judged_with,
    standalone_command,
    try_out,
)
from manyheads.authoring.make_stub import leaks
from manyheads.authoring.release_exercises import write_release
from manyheads.checks.runner import namespace_of
from manyheads.course import Course, CourseError, load_course
from manyheads.judge.run_hidden_checks import Catalogue
from manyheads.submission.newer_python import MANIFEST, PYTHON, judges_python
from tests.conftest import Run
from tests.make import REPOSITORY, RIGHT, TINY, WRONG, cases, content
from tests.make import run as run_process

pytestmark = pytest.mark.journey

WHEEL = f"manyheads-{version('manyheads')}-py3-none-any.whl"
SCRIPT = "exercises/averages/01_running_mean.py"


INSTRUCTOR_FOLDERS = ("solutions/", "grader/", ".course/", "tests/", "examples/")


def exercise_files(course: Course) -> list[Path]:
    """Return the released files of all exercises."""
    return [
        p
        for p in (course.root / "exercises").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    ]


@pytest.fixture(scope="module")
def repository_files(tiny: Course) -> dict[str, bytes]:
    """Return the files of the tiny course's class repository."""
    return bundle(tiny, exercise_files(tiny), "@school")


@pytest.fixture(scope="module")
def class_folder(
    tiny: Course, repository_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with the class repository. Tests must not write to it."""
    folder = tmp_path_factory.mktemp("whole") / "class"
    hand_over(tiny, folder, repository_files)
    return folder


def test_the_class_repository_has_student_files_but_no_instructor_files(class_folder):
    class_files = content(class_folder)
    for name in (
        "README.md",
        "AGENTS.md",
        "Makefile",
        ".gitignore",
        ".vscode/tasks.json",
        "course.yaml",
        "constraints.txt",
        "engine.sha256",
        WHEEL,
        "tools/build-venv",
        "tools/install-engine",
        SCRIPT,
        SCRIPT.replace(".py", ".ipynb"),
        "exercises/averages/fingerprints/01_running_mean.safetensors",
        ".github/CODEOWNERS",
        ".github/pull_request_template.md",
        ".github/workflows/grade.yml",
    ):
        assert class_files[name], name
    assert len(class_files) < 25  # few files, so that students find theirs
    assert not [
        name for name in class_files if name.startswith(INSTRUCTOR_FOLDERS) or "__pycache__" in name
    ]
    for name in ("course.yaml", SCRIPT):
        assert class_files[name] == (TINY / name).read_bytes()
    assert class_files[".github/workflows/grade.yml"] == judged_with(
        PYTHON, (REPOSITORY / ".github" / "workflows" / "grade.yml").read_bytes()
    )


@pytest.mark.parametrize("python", [PYTHON, "3.99"])
def test_the_grading_workflow_uses_the_documented_python_version(
    tiny, tmp_path, monkeypatch, python
):
    monkeypatch.setattr(class_repository, "PYTHON", python)
    hand_over(tiny, tmp_path, bundle(tiny, [], "@school"))
    workflow = (tmp_path / ".github" / "workflows" / "grade.yml").read_text()
    versions = re.findall(r'^ +python-version: "(.*)"$', workflow, re.MULTILINE)
    assert versions == [python] * 3
    assert judges_python(tmp_path) == python


def test_readme_and_codeowners_are_filled_in_for_the_course(class_folder):
    readme, owners = (
        (class_folder / "README.md").read_text(),
        (class_folder / ".github" / "CODEOWNERS").read_text(),
    )
    assert "# Averages\n" in readme
    assert f"| `{SCRIPT}` | The running mean | 4 |" in readme
    assert "@@" not in readme + (class_folder / "Makefile").read_text() + owners
    owned = [line.split() for line in owners.splitlines() if line and line[0] != "#"]
    assert owned == [["*", "@school"], [f"/{SCRIPT}"], [f"/{SCRIPT.replace('.py', '.ipynb')}"]]


def test_notebooks_and_colab_instructions_install_the_engine_by_its_path(
    class_folder,
):
    notebook = class_folder / SCRIPT.replace(".py", ".ipynb")
    assert "%pip install ../../manyheads-*.whl" in notebook.read_text()
    assert [path.resolve() for path in notebook.parent.glob("../../manyheads-*.whl")] == [
        class_folder / WHEEL
    ]
    readme = (class_folder / "README.md").read_text()
    assert (
        f"%cd class/{notebook.parent.relative_to(class_folder)}\n    %pip install ../../{WHEEL}\n"
        in readme
    )
    assert f"`{notebook.relative_to(class_folder)}`" in readme
    assert readme.count("OWNER/REPO") == 1  # a placeholder that each student replaces


def test_the_readme_lists_student_commands_and_answers_questions(
    class_folder,
):
    readme = bundle(load_course(REPOSITORY), [], "@school")["README.md"].decode()
    exercise_id = "attention_scores"  # two exercises of the real course have the number 01
    commands_with_exercise = (
        f"hint {exercise_id}",
        f"trace {exercise_id}",
        f"plot {exercise_id}",
        "train weight_split",
    )
    for command in ("check --watch", "status", *commands_with_exercise, "bench --quick"):
        assert f"| `course {command}` |" in readme, command
    assert '    args = ["lsp"]' in readme
    assert (
        "**What of dropout, of masks and of refusals is judged?**" in readme
    )  # from the course's grader/questions.md
    assert "An answer has 5 s and an exercise 20 s" in readme
    assert "`course status` says how many points only grading can give" in readme
    without_attention = (class_folder / "README.md").read_text()
    assert "| `course plot 01` |" in without_attention
    assert not any(f"course {command}" in without_attention for command in ("train", "bench"))


def test_the_readme_explains_installation_and_work_before_listing_files(class_folder):
    readme = (class_folder / "README.md").read_text()
    positions = [
        readme.index(passage)
        for passage in (
            "200 MB",
            "make check",
            "activate",
            "## The way through",
            SCRIPT,
            "| file |",
        )
    ]
    assert positions == sorted(positions)
    section = readme[positions[3] : readme.index("## In your editor")]
    assert ".venv/bin" not in section


def test_templates_mention_no_exercise_of_the_real_course():
    course = load_course(REPOSITORY)
    ids = [e.id for e in course.exercises]
    for path in (REPOSITORY / "manyheads" / "authoring" / "templates").rglob("*"):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            assert not [id_ for id_ in ids if id_ in path.read_text()], path


@pytest.mark.parametrize("owner", ["nobody", "@", "@a b", "@a/b/c", "@a\n* @mallory"])
def test_an_invalid_owner_is_refused(tiny, owner):
    with pytest.raises(
        CourseError, match=r"is not a login or team\. Next: course release --out DIR --owner @ada"
    ):
        bundle(tiny, [], owner)


def test_building_a_class_repository_is_reproducible(tiny, repository_files, class_folder):
    assert bundle(tiny, exercise_files(tiny)[::-1], "@school") == repository_files
    assert content(class_folder) == repository_files
    assert judges_python(class_folder) == PYTHON
    listed = json.loads(repository_files[MANIFEST])["files"]
    assert listed.keys() == repository_files.keys() - {MANIFEST}


def unpack_engine(wheel: bytes, folder: Path) -> Path:
    """Unpack the engine of a wheel, changed so that it prints a line when it runs."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        archive.extractall(folder)
    main = folder / "manyheads" / "__main__.py"
    main.write_text("print('the released engine')\n" + main.read_text())
    return folder


@pytest.fixture(scope="module")
def run_in(repository_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a command of the released engine in a folder."""
    engine = unpack_engine(repository_files[WHEEL], tmp_path_factory.mktemp("engine"))

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = standalone_command(engine, *arguments)
        return run_process(*command, cwd=folder, PYTHONPATH="", COLUMNS="100")

    return run


@cases(
    "attempt, exercise, status, message",
    {
        "a stub": (None, "", 0, "Welcome to Averages: one exercise."),
        "a mistake": (WRONG, "", 1, "You divided by the length of x everywhere."),
        "a right attempt": (RIGHT, "running_mean", 0, "✓ 01 The running mean 4 / 4"),
    },
)
def test_course_check_works_in_the_class_repository(
    class_folder, run_in, tmp_path, attempt, exercise, status, message
):
    folder = shutil.copytree(class_folder, tmp_path / "class")
    if attempt:
        (folder / SCRIPT).write_text(attempt)
    completed = run_in(folder, "check", *exercise.split())
    assert (completed.returncode, completed.stderr) == (status, "")
    assert completed.stdout.startswith("the released engine\n")
    assert message in " ".join(completed.stdout.split())


def test_make_check_runs_setup_and_then_course_check(class_folder):
    command = "make --dry-run check EXERCISE=running_mean PYTHON=python3".split()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    commands = subprocess.run(
        command, cwd=class_folder, env=environment, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    assert commands[0].split() == [
        "EXTRAS=[editor]",
        "sh",
        "tools/build-venv",
        '"python3"',
        '".venv"',
        '""',
    ]
    # status 1 means a mistake in an attempt: make must not fail
    assert commands[-1].startswith(".venv/bin/course check running_mean || [ $? -eq 1 ]")


@pytest.mark.parametrize(
    "arguments", [("release", "--out", "elsewhere"), ("verify",), ("grade", "exercises")]
)
def test_instructor_commands_are_refused_in_the_class_repository(class_folder, run_in, arguments):
    completed = run_in(class_folder, *arguments)
    reason = (
        f"course {arguments[0]} needs the instructor's repository, with its solutions/; "
        f"{class_folder} has none"
    )
    assert (completed.returncode, completed.stderr) == (
        2,
        f"course: {reason}. Next: course check\n",
    )


def test_the_real_class_repository_contains_no_line_of_a_solution(repository):
    """This includes the engine: a file of the engine once had such a line, and no class repository
    could be released.
    """
    course = load_course(repository)
    assert leaks(course, bundle(course, exercise_files(course), "@school")) == ()


def remove_module(wheel: bytes, module: str) -> bytes:
    """Return the wheel without this file."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(wheel)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            if name != module:
                target.writestr(name, source.read(name))
    return out.getvalue()


STUB_LINE = b'    raise NotImplementedError("write this part")\n'


STUB_WITH_POINTS = b"    return x.cumsum(0) / torch.arange(1, len(x) + 1)\n"
MISSING_MODULE_MESSAGE = (
    "course check` as it is released: ModuleNotFoundError: No module named 'manyheads.files'"
)


@cases(
    "name, is_handed_over, message",
    {
        "a stub that earns points": (SCRIPT, False, "cannot be released: its stub scores 3"),
        "such a stub, in a later release": (
            SCRIPT,
            True,
            "cannot be released: its stub scores 3",
        ),
        "an engine that lacks a module": (WHEEL, False, MISSING_MODULE_MESSAGE),
        "an engine is not tried again in a later release": (WHEEL, True, ""),
    },
)
def test_a_class_repository_that_does_not_work_is_not_released(
    tiny, repository_files, name, is_handed_over, message
):
    original = repository_files[name]
    spoilt = (
        original.replace(STUB_LINE, STUB_WITH_POINTS)
        if name == SCRIPT
        else remove_module(original, "manyheads/files.py")
    )
    assert spoilt != original
    with pytest.raises(CourseError, match=re.escape(message)) if message else nullcontext():
        try_out(
            tiny, Catalogue(tiny), repository_files | {name: spoilt}, is_handed_over=is_handed_over
        )


@pytest.mark.parametrize("jobs", [1, 2])
def test_visible_checks_that_a_solution_fails_are_not_released(two_means, jobs):
    course = load_course(two_means)
    files = bundle(course, [*write_release(course, Catalogue(course))], "@ada")
    try_out(course, Catalogue(course), files, jobs=jobs)
    path = two_means / "solutions" / "averages" / "02_last_mean.py"
    path.write_text(path.read_text().replace("x.cumsum(0) /", "2 * x.cumsum(0) /"))
    namespace_of.cache_clear()  # as in a process of its own
    with pytest.raises(CourseError, match="`course check` as it is released: ✗ 02 The last mean"):
        try_out(course, Catalogue(course), files, jobs=jobs)


def test_solutions_may_exceed_the_time_limit_of_a_call_in_the_trial(tiny_copy, repository_files):
    path = tiny_copy / "course.yaml"
    path.write_text(path.read_text().replace("seconds_per_call: 2", "seconds_per_call: 0.000001"))
    course = load_course(tiny_copy)
    try_out(course, Catalogue(course), repository_files | {"course.yaml": path.read_bytes()})


def test_solutions_that_take_too_long_are_not_released(tiny, repository_files, monkeypatch):
    monkeypatch.setattr(class_repository, "SECONDS", 0.01)
    with pytest.raises(CourseError, match=r"in 0.01 seconds.* Next: course verify running_mean"):
        try_out(tiny, Catalogue(tiny), repository_files)


def test_course_release_writes_the_class_repository_and_a_next_step(
    run_course, tiny_copy, tmp_path
):
    completed = run_course("release", "--out", tmp_path / "class", cwd=tiny_copy)
    assert completed.returncode == 0, completed.stderr
    folder = tmp_path / "class"
    next_step = f"Next: course release --out {folder} --owner @YOU, for CODEOWNERS names nobody yet"
    assert (
        completed.stdout.splitlines()[1]
        == f"{len(content(folder))} files written to {folder}. {next_step}"
    )
    workflow = yaml.safe_load((folder / ".github" / "workflows" / "grade.yml").read_text())
    assert workflow["name"] == "grade"
