"""What is meant by the name of an assignment, and what a file imports from beside it."""

from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from manyheads.course.model import UnknownAssignment, assignment_named, with_neighbours

ROW = "exercises: [{{id: e_{0}, title: E, points: 1, hint: H}}]"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    rows = (("heads", "Multi-head attention"), ("practice", "Attention in practice"), ("heads_2", "More heads"))
    listed = [f"  - {{id: {id_}, title: {title}, {ROW.format(id_)}}}\n" for id_, title in rows]
    (tmp_path / "course.yaml").write_text("title: T\nassignments:\n" + "".join(listed))
    return load_course(tmp_path)


@pytest.mark.parametrize(("name", "found"), [
    ("heads", "heads"), ("HEADS_2", "heads_2"), ("attention in practice", "practice"), ("multi", "heads"),
    ("2", "heads_2"),
])  # fmt: skip
def test_an_id_a_title_or_a_part_that_no_other_has_is_enough(course: Course, name: str, found: str) -> None:
    assert assignment_named(course, name, in_part=True).id == found


@pytest.mark.parametrize(("name", "says"), [
    ("attention", "'attention' may be any of these assignments: heads, practice."),
    ("haeds", "there is no assignment 'haeds'; did you mean heads?"),
    ("tails", "there is no assignment 'tails'; there are: heads, practice, heads_2."),
    (None, "of which assignment? There are: heads, practice, heads_2."),
])  # fmt: skip
def test_what_is_not_clear_is_one_sentence(course: Course, name: str | None, says: str) -> None:
    with pytest.raises(UnknownAssignment) as caught:
        assignment_named(course, name, in_part=True)
    assert str(caught.value) == says


def test_in_a_file_a_part_is_not_enough(course: Course) -> None:
    with pytest.raises(UnknownAssignment, match=r"^there is no assignment 'multi'"):
        assignment_named(course, "multi")


def test_the_only_one_need_not_be_named(averages, tiny) -> None:
    assert assignment_named(tiny, None) == averages


def test_neighbours_are_those_that_are_imported_whether_directly_or_not(tmp_path: Path) -> None:
    texts = {
        "test_a.py": "from ._shared import x\nfrom . import _other\nimport torch",
        "_shared.py": "from ._below import x", "_below.py": "x = 1", "_unused.py": "",
        "_other.py": "from ._shared import x",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = with_neighbours(tmp_path / "test_a.py")
    assert [path.name for path in found] == ["test_a.py", "_below.py", "_other.py", "_shared.py"]


def test_a_file_that_is_missing_or_no_python_has_none(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("from ._shared import (")
    for name in ("broken.py", "missing.py"):
        assert with_neighbours(tmp_path / name) == [tmp_path / name]
