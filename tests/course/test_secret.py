"""The course secret: made once, read by its owner alone."""

from pathlib import Path

import pytest

from manyheads.course import CourseError
from manyheads.course.load import course_secret


def test_it_is_made_on_first_use_stays_and_is_its_owners_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first = course_secret(tmp_path / "a")
    assert len(first) >= 32
    assert course_secret(tmp_path / "a") == first != course_secret(tmp_path / "b")
    folder = tmp_path / "a" / ".course"
    assert (folder.stat().st_mode & 0o777, (folder / "secret").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666], ids=oct)
def test_one_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    course_secret(tmp_path)
    path = tmp_path / ".course" / "secret"
    path.chmod(mode)
    with pytest.raises(CourseError, match=rf"can be read by others\. Next: chmod 600 {path}$"):
        course_secret(tmp_path)


@pytest.mark.parametrize("text", ["", "\n", "short"], ids=["empty", "a blank line", "a few letters"])
def test_one_that_holds_no_secret_is_refused(tmp_path: Path, text: str) -> None:
    course_secret(tmp_path)
    (tmp_path / ".course" / "secret").write_text(text)
    with pytest.raises(CourseError, match=r"holds no secret\. Next: rm "):
        course_secret(tmp_path)


def test_a_file_in_the_place_of_its_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".course").write_text("in the way")
    with pytest.raises(CourseError, match=r"can be neither read nor made .*Next: "):
        course_secret(tmp_path)
