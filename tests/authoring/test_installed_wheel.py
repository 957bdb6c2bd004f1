"""With the installed wheel alone, an empty folder becomes a class that is graded."""

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

FOREIGN = re.compile(r"\b(attention|heads?|channels?)\b|−∞|-inf\b", re.IGNORECASE)
COURSES = REPOSITORY / "tests" / "courses"


@pytest.fixture(scope="module")
def installed_course(once: Callable[..., Path]) -> Run:
    """The command of a wheel that pip installed, with everything it needs, and nothing of this
    repository.
    """

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
    """Write a course as its author does: a skeleton in place of the example, and all filled.
    Returns what was said.
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
    head, id_, _ = settings.read_text().partition(f"      - id: {name}\n")
    settings.write_text(f"{head}{id_}        {(folder / 'row.yaml').read_text()}")
    return output


def class_of_three(
    folder: Path, name: str, mistake: tuple[str, str], type_change: tuple[str, str]
) -> dict[str, str]:
    """Hand in: who is right, who has a mistake that the author knows, who returns another type.
    Returns their texts.
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
    ("name", "mistake", "id_", "other", "says"),
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
def test_a_course_without_a_tensor_goes_on_to_a_class_that_is_graded(
    installed_course, tmp_path, name, mistake, id_, other, says
):
    course_root, handed_out = tmp_path / "mine", tmp_path / "class"
    output = write_course(installed_course, course_root, name)
    texts = class_of_three(course_root / "submitted", name, mistake, other)
    for command in (
        f"release --out {handed_out} --owner @ada",
        "grade submitted",
        "report results",
    ):
        completed = installed_course(course_root, *command.split())
        assert (completed.returncode, besides_progress(completed.stderr)) == (0, ""), (
            completed.stdout
        )
        output += completed.stdout
    if name == "softmax":  # of a loop that does not end every edit takes its seconds
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
    assert [misconception["id"] for misconception in results[1]["diagnosis"]] == [id_]
    assert says in [check["evidence"] for check in results[2]["checks"]]
    # behind it stands the line, where that is proved
    title = results[1]["diagnosis"][0]["title"].rstrip(".")
    assert title in (course_root / "results" / "report" / "students" / "ben.html").read_text()
    assert not (handed_out / "solutions").exists()

    for student, status, phrase in (("ben", 1, title), ("cat", 1, says), ("ada", 0, "✓")):
        (handed_out / "exercises" / "basics" / f"01_{name}.py").write_text(texts[student])
        checked = installed_course(handed_out, "check", "01")
        assert (checked.returncode, phrase in checked.stdout) == (status, True), checked.stdout
        output += checked.stdout
    output += "".join(
        installed_course(handed_out, *arguments.split()).stdout
        for arguments in ("--help", "status", "trace 01")
    )
    read = [
        path
        for path in handed_out.rglob("*")
        if path.is_file() and path.suffix in (".md", ".py", ".yaml", "")
    ]
    assert not FOREIGN.findall(output + "".join(path.read_text() for path in read))
