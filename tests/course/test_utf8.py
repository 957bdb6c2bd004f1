"""An author's file that is not in UTF-8 is refused before anything uses it."""

import pytest

from manyheads.course import CourseError, demand_utf8, load_course


def append_latin_1(path) -> str:
    """Append a Latin-1 character to a file, and return the beginning of the expected message."""
    text = path.read_bytes()
    path.write_bytes(text + b"# by M\xfcller\n")
    line = text.count(b"\n") + 1
    return f"{path}:{line}: is not UTF-8 (byte {len(text) + 6})"


@pytest.mark.parametrize(
    "name",
    [
        "solutions/averages/01_running_mean.py",
        "grader/checks/test_running_mean.py",
        "grader/right/running_mean/loop.py",
        "grader/wrong/running_mean/median.py",
    ],
)
def test_a_source_in_latin_1_is_reported_with_its_line(tiny_copy, name):
    message_start = append_latin_1(tiny_copy / name)
    with pytest.raises(CourseError) as error:
        demand_utf8(load_course(tiny_copy))
    assert str(error.value).startswith(message_start)


@pytest.mark.parametrize("command", ["release", "verify"])
def test_release_and_verify_refuse_a_file_in_latin_1(run_course, tiny_copy, command):
    message_start = append_latin_1(tiny_copy / "grader/misconceptions/running_mean.py")
    refused = run_course(command, cwd=tiny_copy)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"course: {message_start}")
    assert refused.stderr.endswith("Next: mend that line, then the same command again\n")
