"""Whatever lies in the submitted folder is graded, or named with its reason and with what to do next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from manyheads.submission import find_submissions, read_not_graded, write_not_graded
from manyheads.submission.left_over import NotGraded

COLLECT = "Next: course collect "
Hand = Callable[..., dict[str, str]]


@pytest.fixture
def named(tiny: Course, tmp_path: Path) -> Hand:
    """Hand in files (a path ending with / is a folder); what is named of them, by its path."""

    def hand(*paths: str) -> dict[str, str]:
        for path in ("good/averages/01_running_mean.py", *paths):
            target = tmp_path / path
            (target if path.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                target.touch()
        return {each.path: each.reason for each in find_submissions(tiny, tmp_path)[1]}

    return hand


@pytest.mark.parametrize(
    ("handed_in", "path", "reason"),
    [
        pytest.param("ada/01_running_mean.py", "ada/01_running_mean.py", "outside an assignment's folder", id="loose"),
        pytest.param("ada/Averages/01_running_mean.py", "ada/Averages", "should be named averages", id="another case"),
        pytest.param("ada/a-verages/x.py", "ada/a-verages", "should be named averages", id="another spelling"),
        pytest.param("ada/hw1/averages/01_running_mean.py", "ada/hw1", "one folder too deep", id="too deep"),
        pytest.param("ada/hw1/a/b/running.ipynb", "ada/hw1", "one folder too deep, or more", id="much too deep"),
        pytest.param("ada/hw1.zip", "ada/hw1.zip", "is an archive", id="an archive"),
        pytest.param("ada/averages/hw1.tar.gz", "ada/averages/hw1.tar.gz", "is an archive", id="in the right place"),
        pytest.param("class.zip", "class.zip", "is an archive", id="a class's archive"),
        pytest.param("01_running_mean.py", "01_running_mean.py", "nobody can tell whose it is", id="nobody's"),
        pytest.param("ada/averages", "ada/averages", "is a file where a folder should be", id="a file for a folder"),
        pytest.param("ada/averages/deep/x.py", "ada/averages/deep", "not looked into", id="a folder within"),
    ],
)  # fmt: skip
def test_what_collect_can_lay_out_is_sent_there(named: Hand, handed_in: str, path: str, reason: str) -> None:
    said = named(handed_in)
    assert list(said) == [path]
    assert reason in said[path]
    assert any(step in said[path] for step in (COLLECT, "Next: rename it", "Next: move it into a folder averages"))


@pytest.mark.parametrize(("handed_in", "path", "reason"), [
    pytest.param("ada/", "ada", "is empty", id="an empty student"),
    pytest.param("ada/averages/", "ada/averages", "is empty: every exercise counts as missing", id="assignment"),
    pytest.param("ada/hw1/", "ada/hw1", "is an empty folder", id="another folder"),
    pytest.param("ada/hw1/notes.md", "ada/hw1", "is no assignment of this course (there are: averages)", id="hw1"),
    pytest.param("ada/notes.md", "ada/notes.md", "is of no assignment", id="a student's other file"),
    pytest.param("notes.md", "notes.md", "is no student's folder", id="another file"),
    pytest.param(".ada/averages/x.py", ".ada", "begins with a dot", id="a student with a dot"),
    pytest.param("ada/.averages/x.py", "ada/.averages", "should be named averages", id="an assignment with a dot"),
    pytest.param("ada/averages/helpers.py", "ada/averages/helpers.py", "has no exercise's name", id="a helper"),
    pytest.param("ada/averages/.x.py", "ada/averages/.x.py", "has no exercise's name", id="a file with a dot"),
])  # fmt: skip
def test_the_rest_is_named_with_what_to_do(named: Hand, handed_in: str, path: str, reason: str) -> None:
    said = named(handed_in)
    assert list(said) == [path]
    assert reason in said[path]
    assert ". Next: " in said[path]


@pytest.mark.parametrize("name", [
    "running_mean.py", "01_running_mean (1).ipynb", "1_running_mean.py", "01_Running_Mean.py", "01-running-mean.py",
    "01 running mean final.py", "01_running_mean.PY",
])  # fmt: skip
def test_an_exercise_under_another_name_is_told_its_own(named: Hand, name: str) -> None:
    assert named(f"ada/averages/{name}") == {
        f"ada/averages/{name}": "should be named 01_running_mean.py or 01_running_mean.ipynb. "
        "Next: rename it, then run the same command again"
    }


def test_a_copy_beside_the_proper_file_is_named_as_one(named: Hand) -> None:
    said = named("ada/averages/01_running_mean.ipynb", "ada/averages/01_running_mean (1).ipynb")
    assert said == {
        "ada/averages/01_running_mean (1).ipynb": "is not graded, for 01_running_mean.ipynb stands beside it. "
        "Next: remove the one that does not count"
    }


def test_a_student_without_an_assignment_has_one_sentence_for_all_of_it(named: Hand) -> None:
    said = named("ada/notes.md", "ada/01_running_mean.py", "ada/.bashrc")
    assert list(said) == ["ada/01_running_mean.py"]
    assert said["ada/01_running_mean.py"].startswith(
        "is not graded, nor is what lies beside it (2 more): it lies outside an assignment's folder. "
    )


@pytest.mark.parametrize("where", ["", "ada/averages/", "ada/"], ids=["at the top", "an assignment's", "a student's"])
def test_of_a_thousand_files_a_few_are_named_and_the_rest_is_counted(tiny: Course, tmp_path: Path, where: str) -> None:
    (tmp_path / "ada" / "averages").mkdir(parents=True)
    (tmp_path / "ada" / "averages" / "01_running_mean.py").write_text("")
    for i in range(1000):
        (tmp_path / f"{where}{i:03d}.txt").write_text("")
    found, others = find_submissions(tiny, tmp_path)
    assert len(found) == 1
    assert [each.path for each in others] == [*(f"{where}{i:03d}.txt" for i in range(20)), where.rstrip("/") or "."]
    assert others[-1].reason.startswith("holds 980 more that are not graded. Next: course collect ")


def test_links_are_named_wherever_they_stand(tiny: Course, tmp_path: Path) -> None:
    folder = tmp_path / "ada" / "averages"
    folder.mkdir(parents=True)
    (folder / "01_running_mean.py").touch()
    for link in (tmp_path / "ben", tmp_path / "ada" / "other", folder / "helper.py"):
        link.symlink_to(folder)
    found, others = find_submissions(tiny, tmp_path)
    assert [s.student for s in found] == ["ada"]
    assert {each.path for each in others} == {"ben", "ada/other", "ada/averages/helper.py"}
    assert {each.reason.split(",")[0] for each in others} == {"is a link"}


@pytest.mark.parametrize(
    "name",
    [".DS_Store", "__MACOSX/x", "desktop.ini", "__pycache__/x.pyc", ".ipynb_checkpoints/a-checkpoint.ipynb",
     "._01_running_mean.py", ".git/config", "Thumbs.db"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["", "good/", "good/averages/"])
def test_what_systems_and_editors_leave_is_nothing(named: Hand, where: str, name: str) -> None:
    assert named(where + name) == {}


def test_what_nbgrader_and_the_release_put_there_is_nothing(named: Hand) -> None:
    assert named("good/averages/timestamp.txt", "good/averages/fingerprints/01_running_mean.safetensors") == {}


def test_assignments_that_nbgrader_alone_grades_are_its_own(tiny_copy: Path, tmp_path: Path) -> None:
    (tiny_copy / "source" / "ps1").mkdir(parents=True)
    for student in ("ada", "ben"):
        (tmp_path / "in" / student / "ps1").mkdir(parents=True)
    (tmp_path / "in" / "ada" / "averages").mkdir()
    (tmp_path / "in" / "ada" / "averages" / "01_running_mean.py").touch()
    found, others = find_submissions(load_course(tiny_copy), tmp_path / "in")
    assert ([s.student for s in found], others) == (["ada"], [])


def test_names_that_could_break_a_terminal_or_a_log_are_shown_harmlessly(named: Hand) -> None:
    (path,) = named("ada/averages/running_mean\n::error::\x1b[2J\u202e.py")
    assert path.isascii()
    assert path.isprintable()
    assert r"\x1b[2J" in path


def test_students_whose_names_differ_in_case_or_in_unicode_form_are_each_graded(tiny: Course, tmp_path: Path) -> None:
    names = ["Ada", "ada", "Zoe\u0308", "Zo\u00eb"]
    for name in names:
        (tmp_path / name / "averages").mkdir(parents=True)
        (tmp_path / name / "averages" / "01_running_mean.py").touch()
    found, others = find_submissions(tiny, tmp_path)
    assert (sorted(s.student for s in found), others) == (sorted(names), [])


def test_the_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_not_graded(tmp_path) == []
    said = [NotGraded(path="Zoë/a.zip", reason="is an archive. Next: course collect x")]
    write_not_graded(said, tmp_path)
    assert read_not_graded(tmp_path) == said
