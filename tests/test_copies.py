"""A copy of a course holds what is the course's, and nothing that another test has there for a moment."""

from pathlib import Path

from tests.make import copy_course


def test_what_a_run_has_there_for_a_moment_is_not_copied(tmp_path: Path) -> None:
    for name in ("course.yaml", ".canary-1e4c", ".course/secret", ".git/config", "grader/checks/__pycache__/a.pyc"):
        path = tmp_path / "course" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    copied = copy_course(tmp_path / "course", tmp_path / "copy")
    assert [path.name for path in copied.rglob("*") if path.is_file()] == ["course.yaml"]
