"""The students' class repository: complete by itself, and the same bytes every time."""

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


INSTRUCTORS = ("solutions/", "grader/", ".course/", "tests/", "examples/")


def exercise_files(course: Course) -> list[Path]:
    return [
        p
        for p in (course.root / "exercises").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    ]


@pytest.fixture(scope="module")
def repository_files(tiny: Course) -> dict[str, bytes]:
    """The class repository of the tiny course."""
    return bundle(tiny, exercise_files(tiny), "@school")


@pytest.fixture(scope="module")
def whole(
    tiny: Course, repository_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The class repository in a folder of its own: not to be written to."""
    folder = tmp_path_factory.mktemp("whole") / "class"
    hand_over(tiny, folder, repository_files)
    return folder


def test_it_holds_what_a_student_needs_and_nothing_that_is_the_instructors(whole):
    class_files = content(whole)
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
    assert len(class_files) < 25  # a student sees what is theirs
    assert not [
        name for name in class_files if name.startswith(INSTRUCTORS) or "__pycache__" in name
    ]
    for name in ("course.yaml", SCRIPT):
        assert class_files[name] == (TINY / name).read_bytes()
    assert class_files[".github/workflows/grade.yml"] == judged_with(
        PYTHON, (REPOSITORY / ".github" / "workflows" / "grade.yml").read_bytes()
    )


@pytest.mark.parametrize("python", [PYTHON, "3.99"])
def test_the_workflow_judges_with_the_python_that_students_are_told(
    tiny, tmp_path, monkeypatch, python
):
    monkeypatch.setattr(class_repository, "PYTHON", python)
    hand_over(tiny, tmp_path, bundle(tiny, [], "@school"))
    workflow = (tmp_path / ".github" / "workflows" / "grade.yml").read_text()
    versions = re.findall(r'^ +python-version: "(.*)"$', workflow, re.MULTILINE)
    assert versions == [python] * 3
    assert judges_python(tmp_path) == python


def test_the_students_words_are_about_this_course(whole):
    readme, owners = (
        (whole / "README.md").read_text(),
        (whole / ".github" / "CODEOWNERS").read_text(),
    )
    assert "# Averages\n" in readme
    assert f"| `{SCRIPT}` | The running mean | 4 |" in readme
    assert "@@" not in readme + (whole / "Makefile").read_text() + owners
    owned = [line.split() for line in owners.splitlines() if line and line[0] != "#"]
    assert owned == [["*", "@school"], [f"/{SCRIPT}"], [f"/{SCRIPT.replace('.py', '.ipynb')}"]]


def test_the_engine_is_where_a_notebook_and_the_lines_for_colab_install_it_from(
    whole,
):
    notebook = whole / SCRIPT.replace(".py", ".ipynb")
    assert "%pip install ../../manyheads-*.whl" in notebook.read_text()
    assert [path.resolve() for path in notebook.parent.glob("../../manyheads-*.whl")] == [
        whole / WHEEL
    ]
    readme = (whole / "README.md").read_text()
    assert (
        f"%cd class/{notebook.parent.relative_to(whole)}\n    %pip install ../../{WHEEL}\n"
        in readme
    )
    assert f"`{notebook.relative_to(whole)}`" in readme
    assert readme.count("OWNER/REPO") == 1  # what a student has to fill in


def test_the_readme_names_every_command_of_a_student_and_answers_their_questions(
    whole,
):
    readme = bundle(load_course(REPOSITORY), [], "@school")["README.md"].decode()
    exercise_id = "attention_scores"  # not 01, which is two exercises
    named = (
        f"hint {exercise_id}",
        f"trace {exercise_id}",
        f"plot {exercise_id}",
        "train weight_split",
    )
    for command in ("check --watch", "status", *named, "bench --quick"):
        assert f"| `course {command}` |" in readme, command
    assert '    args = ["lsp"]' in readme
    assert (
        "**What of dropout, of masks and of refusals is judged?**" in readme
    )  # of the course's own grader/questions.md
    assert "An answer has 5 s and an exercise 20 s" in readme
    assert "`course status` says how many points only grading can give" in readme
    without_attention = (whole / "README.md").read_text()
    assert "| `course plot 01` |" in without_attention
    assert not any(f"course {command}" in without_attention for command in ("train", "bench"))


def test_the_readme_says_what_to_install_and_what_to_do_before_what_there_is(whole):
    readme = (whole / "README.md").read_text()
    places = [
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
    assert places == sorted(places)
    section = readme[places[3] : readme.index("## In your editor")]
    assert ".venv/bin" not in section


def test_no_exercise_of_the_real_course_is_named_by_the_templates():
    course = load_course(REPOSITORY)
    ids = [e.id for e in course.exercises]
    for path in (REPOSITORY / "manyheads" / "authoring" / "templates").rglob("*"):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            assert not [id_ for id_ in ids if id_ in path.read_text()], path


@pytest.mark.parametrize("owner", ["nobody", "@", "@a b", "@a/b/c", "@a\n* @mallory"])
def test_an_owner_that_is_none_is_refused(tiny, owner):
    with pytest.raises(
        CourseError, match=r"is not a login or team\. Next: course release --out DIR --owner @ada"
    ):
        bundle(tiny, [], owner)


def test_it_is_the_same_bytes_every_time(tiny, repository_files, whole):
    assert bundle(tiny, exercise_files(tiny)[::-1], "@school") == repository_files
    assert content(whole) == repository_files
    assert judges_python(whole) == PYTHON
    listed = json.loads(repository_files[MANIFEST])["files"]
    assert listed.keys() == repository_files.keys() - {MANIFEST}


def unpack_engine(wheel: bytes, folder: Path) -> Path:
    """The engine of a wheel, which says when it is the one that runs."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        archive.extractall(folder)
    main = folder / "manyheads" / "__main__.py"
    main.write_text("print('the released engine')\n" + main.read_text())
    return folder


@pytest.fixture(scope="module")
def run_in(repository_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The released engine in a folder, in a process that knows of no other."""
    engine = unpack_engine(repository_files[WHEEL], tmp_path_factory.mktemp("engine"))

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = standalone_command(engine, *arguments)
        return run_process(*command, cwd=folder, PYTHONPATH="", COLUMNS="100")

    return run


@cases(
    "attempt, exercise, status, says",
    {
        "a stub": (None, "", 0, "Welcome to Averages: one exercise."),
        "a mistake": (WRONG, "", 1, "You divided by the length of x everywhere."),
        "a right attempt": (RIGHT, "running_mean", 0, "✓ 01 The running mean 4 / 4"),
    },
)
def test_in_it_a_stub_is_untouched_a_mistake_is_named_and_a_right_attempt_passes(
    whole, run_in, tmp_path, attempt, exercise, status, says
):
    folder = shutil.copytree(whole, tmp_path / "class")
    if attempt:
        (folder / SCRIPT).write_text(attempt)
    completed = run_in(folder, "check", *exercise.split())
    assert (completed.returncode, completed.stderr) == (status, "")
    assert completed.stdout.startswith("the released engine\n")
    assert says in " ".join(completed.stdout.split())


def test_make_check_sets_up_and_then_checks(whole):
    command = "make --dry-run check EXERCISE=running_mean PYTHON=python3".split()
    alone = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    says = subprocess.run(
        command, cwd=whole, env=alone, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    assert says[0].split() == [
        "EXTRAS=[editor]",
        "sh",
        "tools/build-venv",
        '"python3"',
        '".venv"',
        '""',
    ]
    # a mistake is no fault of make's
    assert says[-1].startswith(".venv/bin/course check running_mean || [ $? -eq 1 ]")


@pytest.mark.parametrize(
    "arguments", [("release", "--out", "elsewhere"), ("verify",), ("grade", "exercises")]
)
def test_what_needs_the_instructors_repository_says_so(whole, run_in, arguments):
    completed = run_in(whole, *arguments)
    needs = (
        f"course {arguments[0]} needs the instructor's repository, with its solutions/; "
        f"{whole} has none"
    )
    assert (completed.returncode, completed.stderr) == (2, f"course: {needs}. Next: course check\n")


def test_no_file_of_the_real_class_repository_holds_a_hidden_line(repository):
    """Of the engine, too: what warms up the zygote once held one, and no class repository could be
    made.
    """
    course = load_course(repository)
    assert leaks(course, bundle(course, exercise_files(course), "@school")) == ()


def remove_module(wheel: bytes, module: str) -> bytes:
    """The wheel, but for one of its files."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(wheel)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            if name != module:
                target.writestr(name, source.read(name))
    return out.getvalue()


STUB_LINE = b'    raise NotImplementedError("write this part")\n'


STUB_THAT_EARNS = b"    return x.cumsum(0) / torch.arange(1, len(x) + 1)\n"
LACKS_ERRORS = (
    "course check` as it is released: ModuleNotFoundError: No module named 'manyheads.files'"
)


@cases(
    "name, is_handed_over, says",
    {
        "a stub that earns points": (SCRIPT, False, "cannot be released: its stub scores 3"),
        "such a stub, where the rest was handed over before": (
            SCRIPT,
            True,
            "cannot be released: its stub scores 3",
        ),
        "an engine that lacks a module": (WHEEL, False, LACKS_ERRORS),
        "such an engine, which was handed over before, is not tried again": (WHEEL, True, ""),
    },
)
def test_one_that_would_not_do_is_not_released(tiny, repository_files, name, is_handed_over, says):
    original = repository_files[name]
    spoilt = (
        original.replace(STUB_LINE, STUB_THAT_EARNS)
        if name == SCRIPT
        else remove_module(original, "manyheads/files.py")
    )
    assert spoilt != original
    with pytest.raises(CourseError, match=re.escape(says)) if says else nullcontext():
        try_out(
            tiny, Catalogue(tiny), repository_files | {name: spoilt}, is_handed_over=is_handed_over
        )


@pytest.mark.parametrize("jobs", [1, 2])
def test_visible_checks_that_a_solution_fails_are_not_released_whatever_process_tries_them(
    two_means, jobs
):
    course = load_course(two_means)
    files = bundle(course, [*write_release(course, Catalogue(course))], "@ada")
    try_out(course, Catalogue(course), files, jobs=jobs)
    path = two_means / "solutions" / "averages" / "02_last_mean.py"
    path.write_text(path.read_text().replace("x.cumsum(0) /", "2 * x.cumsum(0) /"))
    namespace_of.cache_clear()  # as in a process of its own
    with pytest.raises(CourseError, match="`course check` as it is released: ✗ 02 The last mean"):
        try_out(course, Catalogue(course), files, jobs=jobs)


def test_a_busy_machine_does_not_stop_a_release(tiny_copy, repository_files):
    path = tiny_copy / "course.yaml"
    path.write_text(path.read_text().replace("seconds_per_call: 2", "seconds_per_call: 0.000001"))
    course = load_course(tiny_copy)
    try_out(course, Catalogue(course), repository_files | {"course.yaml": path.read_bytes()})


def test_solutions_that_take_too_long_are_not_released(tiny, repository_files, monkeypatch):
    monkeypatch.setattr(class_repository, "SECONDS", 0.01)
    with pytest.raises(CourseError, match=r"in 0.01 seconds.* Next: course verify running_mean"):
        try_out(tiny, Catalogue(tiny), repository_files)


def test_course_release_makes_it_and_says_what_is_next(run_course, tiny_copy, tmp_path):
    completed = run_course("release", "--out", tmp_path / "class", cwd=tiny_copy)
    assert completed.returncode == 0, completed.stderr
    folder = tmp_path / "class"
    then = f"Next: course release --out {folder} --owner @YOU, for CODEOWNERS names nobody yet"
    assert (
        completed.stdout.splitlines()[1]
        == f"{len(content(folder))} files written to {folder}. {then}"
    )
    workflow = yaml.safe_load((folder / ".github" / "workflows" / "grade.yml").read_text())
    assert workflow["name"] == "grade"
