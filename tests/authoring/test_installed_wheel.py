"""From an empty folder to a graded class, with nothing but the installed wheel."""

import json
import os
import re
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from manyheads.authoring.class_repository import engine_wheel
from tests.conftest import Run
from tests.make import REPOSITORY, besides_progress, edit_text

pytestmark = pytest.mark.journey

WORDS_OF_THE_REAL_COURSE = re.compile(r"\b(attention|heads?|channels?)\b|−∞|-inf\b", re.IGNORECASE)
COURSES = REPOSITORY / "tests" / "courses"


@pytest.fixture(scope="module")
def installed_course(once: Callable[..., Path]) -> Run:
    """Return a function that runs `course` of an installed wheel, without this repository."""

    def install(target: Path) -> None:
        venv.create(target / "venv", with_pip=False)
        schemes = sysconfig.get_paths(
            vars={"base": str(target / "venv"), "platbase": str(target / "venv")}
        )
        (Path(schemes["purelib"]) / "everything.pth").write_text(
            f"{sysconfig.get_path('purelib')}\n"
        )
        for name, content in engine_wheel(templates=True).items():
            (target / name).write_bytes(content)
        script = [
            "sh",
            str(REPOSITORY / "tools" / "install-engine"),
            str(target / "venv" / "bin" / "python"),
        ]
        subprocess.run(script, cwd=target, check=True)

    root = once("installed", install)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }

    def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        command: Sequence[str] = [str(root / "venv" / "bin" / "course"), *map(str, arguments)]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    return run


def write_course(course: Run, folder: Path, name: str) -> str:
    """Create a course, replace its example by a new exercise, and fill in all files.

    Returns:
        The output of the commands.
    """
    options = ["--instead", "averages", *["--numpy"] * (name == "softmax")]
    created = course(folder.parent, "init", folder, "--title", "Basics: one")
    output = created.stdout + course(folder, "new", f"basics/{name}", *options).stdout
    settings, texts = folder / "course.yaml", folder / "grader" / "texts.yaml"
    names = ("README.md", "Makefile", ".github/workflows/grade.yml", "engine.sha256")
    for path in (*names, "constraints.txt", "tools/build-venv", "docs/writing-exercises.md"):
        assert (folder / path).is_file(), path
    assert ".course/" in (folder / ".gitignore").read_text().splitlines()
    assert settings.read_text().startswith('title: "Basics: one"\n')
    assert "running_mean" not in "".join([settings.read_text(), *map(str, folder.rglob("*"))])
    assert re.findall(r"^\w+", texts.read_text(), re.MULTILINE) == [
        f"{name}_unchanged",
        f"{name}_too_short",
    ]
    shutil.copytree(COURSES / name, folder, dirs_exist_ok=True)
    head, misconception_id, _ = settings.read_text().partition(f"      - id: {name}\n")
    settings.write_text(f"{head}{misconception_id}        {(folder / 'row.yaml').read_text()}")
    return output


def submit_three_attempts(
    folder: Path, name: str, mistake: tuple[str, str], type_change: tuple[str, str]
) -> dict[str, str]:
    """Write a right attempt, one with a known mistake and one that returns another type.

    Args:
        mistake: An edit of the solution: the old and the new text.
        type_change: A function, and a template that converts its result to another type.

    Returns:
        The text of each student's attempt.
    """
    correct = (COURSES / name / "grader" / "right" / name / "another_way.py").read_text()
    solution = (COURSES / name / "solutions" / "basics" / f"01_{name}.py").read_text()
    plain = (
        f"\n\nplain = {type_change[0]}\n\n\ndef {type_change[0]}(*given):\n"
        f"    return {type_change[1].format('plain(*given)')}\n"
    )
    texts = {"ada": correct, "ben": edit_text(solution, mistake), "cat": correct + plain}
    for student, text in texts.items():
        path = folder / student / "basics" / f"01_{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return texts


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "mistake", "misconception_id", "type_change", "evidence"),
    [
        (
            "softmax",
            ("sum(axis=-1", "sum(axis=0"),
            "shares_by_column",
            ("softmax", "{}.tolist()"),
            "an ndarray was expected; yours returned a list",
        ),
        (
            "merge_sort",
            (" + left + right", ""),
            "rest_forgotten",
            ("merge_sort", "tuple({})"),
            "a list was expected; yours returned a tuple",
        ),
        (
            "tokenizer",
            ("(words)}", "(words, 1)}"),
            "counts_from_one",
            ("encode", "tuple({})"),
            "a list was expected; yours returned a tuple",
        ),
    ],
)
def test_a_course_without_tensors_can_be_written_released_and_graded(
    installed_course, tmp_path, name, mistake, misconception_id, type_change, evidence
):
    course_root, class_folder = tmp_path / "mine", tmp_path / "class"
    output = write_course(installed_course, course_root, name)
    texts = submit_three_attempts(course_root / "submitted", name, mistake, type_change)
    for command in (
        f"release --out {class_folder} --owner @ada",
        "grade submitted",
        "report results",
    ):
        completed = installed_course(course_root, *command.split())
        assert (completed.returncode, besides_progress(completed.stderr)) == (0, ""), (
            completed.stdout
        )
        output += completed.stdout
    if name == "softmax":  # in the others, edits cause endless loops, which are slow to test
        verified = installed_course(course_root, "verify", "--seeds", "1", "--pairs", "1").stdout
        assert "✓" in verified
        assert all("the line of a small fault" in claim for claim in re.findall("✗.*", verified)), (
            verified
        )
    results = [
        json.loads((course_root / "results" / student / "basics.json").read_text())["exercises"][0]
        for student in texts
    ]
    assert results[0]["score"] == results[0]["max_score"] > results[1]["score"]
    assert [misconception["id"] for misconception in results[1]["diagnosis"]] == [misconception_id]
    assert evidence in [check["evidence"] for check in results[2]["checks"]]
    # the title is followed by the wrong line if that is proved
    title = results[1]["diagnosis"][0]["title"].rstrip(".")
    assert title in (course_root / "results" / "report" / "students" / "ben.html").read_text()
    assert not (class_folder / "solutions").exists()

    for student, status, phrase in (("ben", 1, title), ("cat", 1, evidence), ("ada", 0, "✓")):
        (class_folder / "exercises" / "basics" / f"01_{name}.py").write_text(texts[student])
        checked = installed_course(class_folder, "check", "01")
        assert (checked.returncode, phrase in checked.stdout) == (status, True), checked.stdout
        output += checked.stdout
    output += "".join(
        installed_course(class_folder, *arguments.split()).stdout
        for arguments in ("--help", "status", "trace 01")
    )
    read = [
        path
        for path in class_folder.rglob("*")
        if path.is_file() and path.suffix in (".md", ".py", ".yaml", "")
    ]
    assert not WORDS_OF_THE_REAL_COURSE.findall(output + "".join(path.read_text() for path in read))
