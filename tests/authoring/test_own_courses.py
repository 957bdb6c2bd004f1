"""Courses of other subjects, without a tensor: each from `course init` in an empty folder to a class that is graded."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Run
from tests.make import REPOSITORY, edited
from tests.progress_lines import besides_progress

pytestmark = pytest.mark.journey

FOREIGN = re.compile(r"\b(attention|heads?|channels?|tokens?|dropout)\b|−∞|-inf\b", re.IGNORECASE)
COURSES = REPOSITORY / "tests" / "courses"


class Subject(NamedTuple):
    """An exercise. mistake: an edit of its solution, named `id`. other: a function of it, and how its answer becomes another type."""

    exercise: str
    mistake: tuple[str, str]
    id: str
    other: tuple[str, str]
    says: str


SUBJECTS = [
    Subject("softmax", ("sum(axis=-1", "sum(axis=0"), "shares_by_column", ("softmax", "{}.tolist()"),
        "an ndarray was expected; yours returned a list"),
    Subject("merge_sort", (" + left[i:] + right[j:]", ""), "rest_forgotten", ("merge_sort", "tuple({})"),
        "a list was expected; yours returned a tuple"),
    Subject("tokenizer", ("(words)}", "(words, 1)}"), "counts_from_one", ("encode", "tuple({})"),
        "a list was expected; yours returned a tuple"),
]  # fmt: skip


def written(run_course: Run, folder: Path, name: str) -> str:
    """Write a course as its author does: the skeleton, the example taken out, all filled. Returns what the commands said."""
    said = [run_course("init", folder, "--title", "Basics").stdout]
    options = ["--instead", "averages", *["--numpy"] * (name == "softmax")]
    said.append(run_course("new", f"basics/{name}", *options, cwd=folder).stdout)
    settings, texts = folder / "course.yaml", folder / "grader" / "texts.yaml"
    assert "running_mean" not in settings.read_text()
    assert re.findall(r"^\w+", texts.read_text(), re.MULTILINE) == [f"{name}_unchanged", f"{name}_too_short"]
    assert not list(folder.rglob("*running_mean*"))
    shutil.copytree(COURSES / name, folder, dirs_exist_ok=True)
    head, id_, _ = settings.read_text().partition(f"      - id: {name}\n")
    settings.write_text(f"{head}{id_}        {(folder / 'row.yaml').read_text()}")
    return "".join(said)


def class_of_three(folder: Path, subject: Subject) -> dict[str, str]:
    """Hand in: who is right, who has a mistake that the author knows, who returns another type. Returns their texts."""
    name, (function, of_another_type) = subject.exercise, subject.other
    right = (COURSES / name / "grader" / "right" / name / "another_way.py").read_text()
    other = (
        f"\n\nplain = {function}\n\n\ndef {function}(*given):\n    return {of_another_type.format('plain(*given)')}\n"
    )
    solution = (COURSES / name / "solutions" / "basics" / f"01_{name}.py").read_text()
    texts = {"ada": right, "ben": edited(solution, subject.mistake), "cat": right + other}
    for student, text in texts.items():
        path = folder / student / "basics" / f"01_{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return texts


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.exercise)
def test_it_goes_from_an_empty_folder_to_a_class_that_is_graded(run_course: Run, tmp_path: Path, subject: Subject):
    name, mine, handed_out = subject.exercise, tmp_path / "mine", tmp_path / "class"
    said = written(run_course, mine, name)
    released = run_course("release", "--out", handed_out, "--owner", "@ada", cwd=mine)
    assert (released.returncode, besides_progress(released.stderr)) == (0, "")
    texts = class_of_three(mine / "submitted", subject)
    graded = run_course("grade", "submitted", cwd=mine)
    assert (graded.returncode, besides_progress(graded.stderr)) == (0, ""), graded.stdout
    results = {who: json.loads((mine / "results" / who / "basics.json").read_text()) for who in texts}
    (ada, ben, cat) = (result["exercises"][0] for result in results.values())
    assert ada["score"] == ada["max_score"] > ben["score"]
    assert [each["id"] for each in ben["diagnosis"]] == [subject.id]
    assert subject.says in [check["evidence"] for check in cat["checks"]]
    reported = run_course("report", "results", cwd=mine)
    assert reported.returncode == 0, reported.stderr

    script = handed_out / "exercises" / "basics" / f"01_{name}.py"
    script.write_text(texts["ben"])
    wrong = run_course("check", "01", cwd=handed_out)
    assert wrong.returncode == 1, wrong.stderr
    assert ben["diagnosis"][0]["title"] in wrong.stdout
    script.write_text(texts["cat"])
    assert subject.says in run_course("check", "01", cwd=handed_out).stdout
    script.write_text(texts["ada"])
    assert run_course("check", "01", cwd=handed_out).returncode == 0
    shown = [run_course(*command.split(), cwd=handed_out) for command in ("--help", "status", "trace 01", "hint 01")]
    read = [
        path.read_text()
        for path in handed_out.rglob("*")
        if path.suffix in (".md", ".py", ".yaml", "") and path.is_file()
    ]
    said += "".join(
        [released.stdout, graded.stdout, reported.stdout, wrong.stdout, *(done.stdout for done in shown), *read]
    )
    assert not FOREIGN.findall(said)
