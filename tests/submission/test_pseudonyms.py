"""A pseudonym stays a student's, tells nothing of the name, and is resolved from one file that its owner alone can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.submission import NotGraded, find_submissions
from manyheads.submission.pseudonyms import read_pseudonyms


def test_the_same_student_has_the_same_one_in_every_run(tmp_path: Path) -> None:
    first = read_pseudonyms(tmp_path)
    names = [first.of(student) for student in ("ada", "bela", "ada")]
    first.write()
    assert names[0] == names[2] != names[1]
    assert [read_pseudonyms(tmp_path).of(student) for student in ("bela", "ada")] == [names[1], names[0]]


def test_it_cannot_be_computed_from_the_name(tmp_path: Path) -> None:
    names = {read_pseudonyms(tmp_path).of("ada") for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("student-") and name[8:].isalnum() for name in names)


def test_its_owner_alone_can_read_the_list(tmp_path: Path) -> None:
    found = read_pseudonyms(tmp_path)
    for student in ("ada", "bela"):
        found.of(student)
        found.write()
        assert found.path.stat().st_mode & 0o777 == 0o600
        assert found.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["{", "[]", '{"student-1": 2}'])
def test_a_broken_list_is_an_error_and_never_a_new_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".course" / "pseudonyms.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(CourseFault, match=r"cannot be read\. Next: bring it back from a backup"):
        read_pseudonyms(tmp_path)
    assert path.read_text() == text


def test_submissions_are_hidden_in_an_order_of_their_own(tiny: Course, tmp_path: Path) -> None:
    for student in "abcdefgh":
        (tmp_path / student / "averages").mkdir(parents=True)
    found = read_pseudonyms(tmp_path)
    hidden = found.hide(find_submissions(tiny, tmp_path)[0])
    assert [s.student for s in hidden] == sorted(found.students)
    assert {found.students[s.student]: s.folder.parent.name for s in hidden} == dict(
        zip("abcdefgh", "abcdefgh", strict=True)
    )


def test_what_is_not_graded_tells_no_name(tmp_path: Path) -> None:
    found = read_pseudonyms(tmp_path)
    others = [NotGraded(path=path, reason="why") for path in ("ada lovelace.zip", "ada/averages/lovelace.py")]
    hidden = found.hide_others(others)
    assert [found.students[each.path.removesuffix("/…")] for each in hidden] == [
        found.students[name] for name in sorted(found.students)
    ]
    assert not any("lovelace" in str(each) or "ada" in str(each) for each in hidden)
