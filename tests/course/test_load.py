"""course.yaml: what is right is read; what is wrong is named with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import CourseError, find_course, load_course

GOOD = """\
title: Averages
limits:
  seconds_per_call: 2
assignments:
  - id: averages
    title: Averages
    exercises:
      - id: running_mean
        title: The running mean
        points: 4
        hint: How many?
      - id: median
        title: The median
        points: 2.5
        hint: Sort first.
"""


def write(folder: Path, text: str | bytes) -> Path:
    (folder / "course.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def test_a_good_file_becomes_a_course_with_its_defaults_filled_in(tmp_path: Path) -> None:
    course = load_course(write(tmp_path, GOOD))
    (assignment,) = course.assignments
    assert [e.id for e in assignment.exercises] == ["running_mean", "median"]
    assert assignment.points == 6.5
    assert (course.limits.seconds_per_call, course.limits.seconds_per_attempt) == (2, 20)


def test_files_stand_where_their_number_in_the_assignment_puts_them(tmp_path: Path) -> None:
    course = load_course(write(tmp_path, GOOD))
    assignment = course.assignments[0]
    median = assignment.exercises[1]
    paths = [median.solution, median.script, median.notebook, median.fingerprints, median.checks, median.misconceptions]
    assert [str(path.relative_to(course.root)) for path in paths] == [
        "solutions/averages/02_median.py",
        "exercises/averages/02_median.py",
        "exercises/averages/02_median.ipynb",
        "exercises/averages/fingerprints/02_median.safetensors",
        "grader/checks/test_median.py",
        "grader/misconceptions/median.py",
    ]


def test_the_box_is_told_every_limit_but_the_one_on_the_source(tmp_path: Path) -> None:
    limits = load_course(write(tmp_path, GOOD)).limits
    told = limits.for_worker()
    assert {**vars(told), "source_kib": limits.source_kib} == {**limits.model_dump(), "device": "cpu"}


def test_on_a_gpu_the_limits_leave_room_for_cuda_and_the_times_stay(tmp_path: Path) -> None:
    limits = load_course(write(tmp_path, GOOD)).limits
    here, there = limits.for_worker(), limits.for_worker("cuda")
    assert there.device == "cuda"
    assert there.memory_mib > here.memory_mib
    assert there.processes > here.processes
    assert there.open_files > here.open_files
    assert (there.seconds_per_call, there.files_mib) == (here.seconds_per_call, here.files_mib)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        pytest.param("title: Averages\nl", "l", 1, "title: is missing", id="a course without a title"),
        pytest.param("title: Averages\nl", "title: ''\nl", 1, "title: ", id="an empty title"),
        pytest.param("  seconds_per_call: 2", "  seconds_per_cal: 2", 3, "is no key that is known here. Is it seconds_per_call? There are: files_mib, ", id="a misspelt limit"),
        pytest.param("_call: 2", "_call: 0", 3, "greater than 0", id="no time at all"),
        pytest.param("_call: 2", "_call: soon", 3, "'soon' is no number", id="a word where a number belongs"),
        pytest.param("seconds_per_call: 2", "memory_mib: 1", 3, "at least 256", id="too little memory"),
        pytest.param("seconds_per_call: 2", "open_files: 8", 3, "at least 80", id="too few files"),
        pytest.param("id: averages", "id: Averages", 5, "lower case, digits and underscores", id="an assignment id in upper case"),
        pytest.param("id: averages", "id: ../averages", 5, "lower case, digits and underscores", id="an assignment id that is a path"),
        pytest.param("id: median", "id: 2nd", 12, "lower case, digits and underscores", id="an exercise id that begins with a digit"),
        pytest.param("id: median", "id: a-b", 12, "lower case, digits and underscores", id="an exercise id with a hyphen"),
        pytest.param("id: median", "id: running_mean", 5, "'running_mean' occurs twice", id="two equal ids"),
        pytest.param("points: 4", "points: 0", 10, "greater than 0", id="an exercise worth nothing"),
        pytest.param("points: 4", "points: -1", 10, "greater than 0", id="negative points"),
        pytest.param("        points: 4\n", "", 8, "points: is missing", id="an exercise without points"),
        pytest.param("hint: Sort first.", "hint: ''", 15, "hint: is empty", id="an empty hint"),
        pytest.param("hint: Sort first.", "hunt: Sort first.", 15, "hunt: is no key that is known here. Is it hint?", id="a misspelt hint"),
        pytest.param("hint: Sort first.", "hint: 'open", 15, "a quote that begins here is never closed", id="a quote that is never closed"),
        pytest.param("  - id: averages", "\t- id: averages", 5, "a tab, or a sign", id="a tab as indent"),
        pytest.param("points: 4", "points: '1,5'", 10, "points: '1,5' is no number; write 1.5", id="a decimal comma"),
        pytest.param("title: Averages\nl", "title: 3\nl", 1, "title: 3 is a number where text belongs: put it in quotes", id="a number as a title"),
        pytest.param("title: Averages\nl", "title: A\nrubric: 1\nl", 2, "rubric: is no key that is known here, or it is of another version of the engine", id="a newer key"),
        pytest.param("title: Averages\nl", "title: A\ntitle: B\nl", 2, "title: stands in line 1, too. Keep one of them", id="a key twice"),
        pytest.param("      - id: median", "     - id: median", 12, "its indentation does not fit", id="a row one column to the left"),
        pytest.param("limits:\n  seconds_per_call: 2", "limits: 3", 2, "limits: ", id="a number in place of the limits"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_the_line(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(CourseError) as error:
        load_course(write(tmp_path, GOOD.replace(old, new)))
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'course.yaml'}:{line}: "), message
    assert says in message
    assert ". Next: mend that line" in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "the file: ", id="an empty file"),
        pytest.param("# nothing but a remark\n", "the file: ", id="a file with a remark only"),
        pytest.param("- a\n- b\n", "the file: ", id="a list"),
        pytest.param("just words\n", "the file: ", id="a sentence"),
        pytest.param("title: T\nassignments: []\n", ":2: assignments: ", id="no assignments"),
        pytest.param("title: T\nassignments:\n", ":2: assignments: ", id="assignments left blank"),
        pytest.param("title: T\nassignments:\n  - {id: a, title: A, exercises: []}\n", ":3: exercises: is an empty list", id="an assignment without exercises"),
        pytest.param(b"title: caf\xe9\n", "is not UTF-8 (byte 10)", id="Latin-1"),
        pytest.param("title: a\0b\n", "course.yaml", id="a NUL byte"),
        pytest.param("title: &a [*a]\n", "course.yaml:1: title: ", id="a list that holds itself"),
        pytest.param("title: !!python/object:os.system x\n", ":1: could not determine a constructor", id="a Python tag"),
    ],
)  # fmt: skip
def test_a_file_of_the_wrong_kind_is_refused(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(CourseError) as error:
        load_course(write(tmp_path, text))
    assert says in str(error.value)
    assert ". Next: " in str(error.value)


def test_two_assignments_with_one_id_are_refused(tmp_path: Path) -> None:
    twice = GOOD + GOOD[GOOD.index("  - id: averages") :]
    with pytest.raises(CourseError, match="the assignment 'averages' occurs twice"):
        load_course(write(tmp_path, twice))


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"course.yaml cannot be read .*Next: pass --course FOLDER$"):
        load_course(tmp_path)


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "course.yaml").mkdir()
    with pytest.raises(CourseError, match=r"cannot be read \(Is a directory\)"):
        load_course(tmp_path)


def test_the_course_is_found_from_any_folder_below_it(tmp_path: Path) -> None:
    below = write(tmp_path, GOOD) / "exercises" / "averages"
    below.mkdir(parents=True)
    assert find_course(below) == find_course(tmp_path) == tmp_path.resolve()


def test_the_nearest_of_two_courses_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    write(tmp_path, GOOD), write(inner, GOOD)
    assert find_course(inner) == inner.resolve()


def test_no_course_above_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"^no course.yaml in .* or above it\. Next: change to the course's folder"):
        find_course(tmp_path)


def test_the_real_course_loads(repository: Path) -> None:
    first, second = load_course(repository).assignments
    assert (first.id, len(first.exercises), first.points) == ("multi_head_attention", 8, 40)
    assert second.id == "attention_in_practice"


def test_the_same_exercise_in_two_assignments_is_refused(tmp_path: Path) -> None:
    again = GOOD[GOOD.index("  - id: averages") :].replace("id: averages", "id: more_averages")
    with pytest.raises(CourseError, match="the exercise 'running_mean' occurs twice"):
        load_course(write(tmp_path, GOOD + again))
