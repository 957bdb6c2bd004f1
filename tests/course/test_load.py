"""course.yaml: what is right is read; what is wrong is named with its file and line. And what stands beside it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Course, CourseError, find_course, load_course
from manyheads.course.load import course_secret
from manyheads.course.model import UnknownAssignment, assignment_named, with_neighbours

GOOD = """\
title: Averages
limits:
  seconds_per_call: 2
assignments:
  - id: averages
    title: Averages
    due: 2026-12-01 18:00:00 +01:00
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
DATE = "is no date and time of 1990 to 2100, such as "


def write(folder: Path, text: str | bytes) -> Path:
    (folder / "course.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def test_a_good_file_becomes_a_course_with_its_defaults_filled_in(tmp_path: Path) -> None:
    course = load_course(write(tmp_path, GOOD))
    (assignment,) = course.assignments
    assert [e.id for e in assignment.exercises] == ["running_mean", "median"]
    assert assignment.points == 6.5
    assert (course.limits.seconds_per_call, course.limits.seconds_per_attempt) == (2, 20)
    median = assignment.exercises[1]
    paths = [median.solution, median.script, median.notebook, median.fingerprints, median.checks, median.misconceptions]
    assert [str(path.relative_to(course.root)) for path in paths] == [
        "solutions/averages/02_median.py", "exercises/averages/02_median.py", "exercises/averages/02_median.ipynb",
        "exercises/averages/fingerprints/02_median.safetensors", "grader/checks/test_median.py",
        "grader/misconceptions/median.py",
    ]  # fmt: skip


def test_the_box_is_told_every_limit_but_the_one_on_the_source_and_leaves_room_for_cuda(tmp_path: Path) -> None:
    limits = load_course(write(tmp_path, GOOD)).limits
    here, there = limits.for_worker(), limits.for_worker("cuda")
    assert {**vars(here), "source_kib": limits.source_kib} == {**limits.model_dump(), "device": "cpu"}
    assert there.device == "cuda"
    for more in ("memory_mib", "processes", "open_files"):
        assert getattr(there, more) > getattr(here, more)
    assert (there.seconds_per_call, there.files_mib) == (here.seconds_per_call, here.files_mib)


@pytest.mark.parametrize(("old", "new", "line", "says"), [
    pytest.param("title: Averages\nl", "l", 1, "title: Field required", id="a course without a title"),
    pytest.param("_per_call: 2", "_per_cal: 2", 3, "limits.seconds_per_cal: Extra inputs are not permitted (input: 2)", id="a misspelt limit"),
    pytest.param("id: averages", "id: ../Averages", 5, "String should match pattern '^[a-z][a-z0-9_]*$'", id="an id that is a path"),
    pytest.param("id: median", "id: running_mean", 13, "the exercise running_mean occurs twice", id="two equal ids"),
    pytest.param("points: 4", "points: !!int ''", 11, "'' cannot be read as int", id="an empty int"),
    pytest.param("hint: Sort first.", "hint: \"\\U00110000\"", None, "cannot be read as YAML", id="a character that there is not"),
    pytest.param("hint: Sort first.", "hint: 'open", 16, "found unexpected end of stream", id="a quote that is never closed"),
    pytest.param("title: Averages\nl", "title: 3\nl", 1, "title: Input should be a valid string (input: 3)", id="a number as a title"),
    pytest.param("title: Averages\nl", "title: A\ntitle: B\nl", 2, 'found duplicate key "title"', id="a key twice"),
    pytest.param("      - id: median", "     - id: median", 13, "expected <block end>", id="a row one column to the left"),
    pytest.param(" +01:00", "", 7, "2026-12-01 18:00:00 has no zone", id="no zone"),
    pytest.param("2026-12-01 18:00:00 +01:00", "!!timestamp x", 7, "due: Input should be a valid string", id="a timestamp by its tag"),
    pytest.param("title: Averages\nl", "title: A\ntime_zone: Berlin\nl", 2, "'Berlin' is no time zone that is known here", id="no such zone"),
])  # fmt: skip
def test_a_bad_file_is_refused_with_the_line(tmp_path: Path, old: str, new: str, line: int | None, says: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(CourseError) as error:
        load_course(write(tmp_path, GOOD.replace(old, new)))
    message = str(error.value)
    place = tmp_path / "course.yaml"
    assert message.startswith(f"{place}:{line}: " if line else f"{place}: "), message
    assert says in message
    assert message.endswith(". Next: mend that line, then course verify")


@pytest.mark.parametrize(("text", "says"), [
    pytest.param("", ":1: the file: ", id="an empty file"),
    pytest.param("title: T\nassignments:\n  - {id: a, title: A, exercises: []}\n", ":3: exercises: ", id="an assignment without exercises"),
    pytest.param(b"title: T\nwhy: caf\xe9\n", ":2: is not UTF-8 (byte 17)", id="Latin-1"),
    pytest.param("title: a\n\0b\n", ":2: a character that YAML does not know", id="a NUL byte"),
    pytest.param("title: &a [*a]\n", ":1: title: ", id="a list that holds itself"),
    pytest.param("title: " + "[" * 3000, "cannot be read as YAML", id="brackets in brackets"),
    pytest.param("title: !!python/object:os.system x\n", ":1: title: Input should be a valid string", id="a Python tag"),
    pytest.param(GOOD + GOOD[GOOD.index("  - id: averages") :], ":17: id: the assignment averages occurs twice", id="two equal ids"),
])  # fmt: skip
def test_a_file_of_the_wrong_kind_is_refused(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(CourseError) as error:
        load_course(write(tmp_path, text))
    assert says in str(error.value)
    assert ". Next: " in str(error.value)


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"course.yaml cannot be read .*Next: pass --course FOLDER$"):
        load_course(tmp_path)
    (tmp_path / "course.yaml").mkdir()
    with pytest.raises(CourseError, match=r"cannot be read \(Is a directory\)"):
        load_course(tmp_path)


def test_the_nearest_course_above_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "inner" / "exercises"
    inner.mkdir(parents=True)
    with pytest.raises(CourseError, match=r"^no course.yaml in .* or above it\. Next: change to the course's folder"):
        find_course(inner)
    write(tmp_path, GOOD)
    assert find_course(inner) == find_course(tmp_path) == tmp_path.resolve()
    write(inner.parent, GOOD)
    assert find_course(inner) == inner.parent.resolve()


@pytest.fixture
def heads(tmp_path: Path) -> Course:
    """A course of three assignments."""
    titles = {"heads": "Multi-head attention", "practice": "Attention in practice", "heads_2": "More heads"}
    rows = [
        f"  - {{id: {id_}, title: {title}, exercises: [{{id: e_{id_}, title: E, points: 1, hint: H}}]}}\n"
        for id_, title in titles.items()
    ]
    return load_course(write(tmp_path, "title: T\nassignments:\n" + "".join(rows)))


@pytest.mark.parametrize(("name", "found"), [
    ("heads", "heads"), ("HEADS_2", "heads_2"), ("attention in practice", "practice"), ("multi", "heads"), ("2", "heads_2"),
])  # fmt: skip
def test_an_id_a_title_or_a_part_that_no_other_has_is_enough(heads: Course, name: str, found: str) -> None:
    assert assignment_named(heads, name, in_part=True).id == found


@pytest.mark.parametrize(("name", "in_part", "says"), [
    ("attention", True, "'attention' may be any of these assignments: heads, practice."),
    ("haeds", True, "there is no assignment 'haeds'; did you mean heads?"),
    ("tails", True, "there is no assignment 'tails'; there are: heads, practice, heads_2."),
    ("multi", False, "there is no assignment 'multi'; there are: heads, practice, heads_2."),  # as a file names one
    (None, True, "of which assignment? There are: heads, practice, heads_2."),
])  # fmt: skip
def test_what_is_not_clear_is_one_sentence(heads: Course, name: str | None, in_part: bool, says: str) -> None:
    with pytest.raises(UnknownAssignment) as caught:
        assignment_named(heads, name, in_part=in_part)
    assert str(caught.value) == says


def test_the_only_one_need_not_be_named(averages, tiny) -> None:
    assert assignment_named(tiny, None) == averages


def test_neighbours_are_those_that_are_imported_whether_directly_or_not(tmp_path: Path) -> None:
    texts = {
        "test_a.py": "from ._shared import x\nfrom . import _other\nimport torch", "_shared.py": "from ._below import x",
        "_below.py": "x = 1", "_unused.py": "", "_other.py": "from ._shared import x", "broken.py": "from ._shared import (",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = with_neighbours(tmp_path / "test_a.py")
    assert [path.name for path in found] == ["test_a.py", "_below.py", "_other.py", "_shared.py"]
    for name in ("broken.py", "missing.py"):
        assert with_neighbours(tmp_path / name) == [tmp_path / name]


def test_the_secret_is_made_on_first_use_stays_and_is_its_owners_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first = course_secret(tmp_path / "a")
    assert len(first) >= 32
    assert course_secret(tmp_path / "a") == first != course_secret(tmp_path / "b")
    folder = tmp_path / "a" / ".course"
    assert (folder.stat().st_mode & 0o777, (folder / "secret").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize(("spoil", "says"), [
    *(pytest.param(lambda path, mode=mode: path.chmod(mode), r"can be read by others\. Next: chmod 600 .*/secret$", id=oct(mode))
        for mode in (0o640, 0o604, 0o620, 0o666)),
    *(pytest.param(lambda path, text=text: path.write_text(text), r"holds no secret\. Next: rm ", id=repr(text))
        for text in ("", "\n", "short")),
    pytest.param(lambda path: (path.unlink(), path.parent.rmdir(), path.parent.write_text("in the way")),
        r"can be neither read nor made .*Next: ", id="a file in the place of its folder"),
])  # fmt: skip
def test_a_secret_that_is_none_is_refused(tmp_path: Path, spoil: Callable[[Path], object], says: str) -> None:
    course_secret(tmp_path)
    spoil(tmp_path / ".course" / "secret")
    with pytest.raises(CourseError, match=says):
        course_secret(tmp_path)
