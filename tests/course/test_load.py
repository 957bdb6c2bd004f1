"""course.yaml: a valid file is loaded, and an invalid one is refused, also by the schema."""

import json
import re

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from docs.site.schemas import SCHEMAS, schema_text
from manyheads.box.worker.result_form import Form
from manyheads.course import CourseError, find_course, load_course
from manyheads.course.course_yaml_schema import Axis, Parameter, Signature, parse_signature
from manyheads.course.final_scores import NAME, Decisions
from manyheads.course.model import (
    UnknownAssignment,
    assignment_named,
    course_secret,
    with_neighbours,
)
from manyheads.files import CourseFault
from manyheads.submission.roster_and_times import read_roster

from .conftest import COURSE, FUZZ

VALID_COURSE = """\
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


@pytest.fixture
def load_content(tmp_path):
    """Return a function that writes a course.yaml and loads it."""

    def load_text(text):
        (tmp_path / "course.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_course(tmp_path)

    return load_text


def test_a_valid_file_is_loaded_with_default_values(load_content):
    course = load_content(VALID_COURSE)
    (assignment,) = course.assignments
    assert [exercise.id for exercise in assignment.exercises] == ["running_mean", "median"]
    assert assignment.points == 6.5
    assert (course.limits.seconds_per_call, course.limits.seconds_per_attempt) == (2, 20)
    median = assignment.exercises[1]
    for path, name in [
        (median.solution, "solutions/averages/02_median.py"),
        (median.script, "exercises/averages/02_median.py"),
        (median.notebook, "exercises/averages/02_median.ipynb"),
        (median.fingerprints, "exercises/averages/fingerprints/02_median.safetensors"),
        (median.checks, "grader/checks/test_median.py"),
        (median.misconceptions, "grader/misconceptions/median.py"),
    ]:
        assert path == course.root / name


def test_the_worker_limits_follow_the_course_with_more_for_cuda(load_content):
    """The limit on the size of the source is not passed to the worker."""
    limits = load_content(VALID_COURSE).limits
    cpu, cuda = limits.for_worker(), limits.for_worker("cuda")
    expected = {**limits.model_dump(), "device": "cpu"}
    assert {**vars(cpu), "source_kib": limits.source_kib} == expected
    assert cuda.device == "cuda"
    for field in ("memory_mib", "processes", "open_files"):
        assert getattr(cuda, field) > getattr(cpu, field)
    assert (cuda.seconds_per_call, cuda.files_mib) == (cpu.seconds_per_call, cpu.files_mib)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("title: Averages\nl", "l", 1, "title is missing"),
        (
            "_per_call: 2",
            "_per_cal: 2",
            3,
            "limits.seconds_per_cal: there is no such key; did you mean seconds_per_call?",
        ),
        (
            "points: 4",
            "points: 4\n        deadline: 2026-12-01",
            12,
            "deadline: there is no such key; there are id, title, was, points, hint",
        ),
        ("limits:", '"\\x1b[2J\\na": 1\nlimits:', 2, "[2J a: there is no such key"),
        (
            "limits:",
            "late: {pr_day: 10%}\nlimits:",
            2,
            "late.pr_day: there is no such key; did you mean per_day?",
        ),
        (
            "id: averages",
            "id: ../Averages",
            5,
            "id: '../Averages' should be a letter and then letters, digits and underscores, "
            "all in lower case",
        ),
        (
            "limits:",
            "late: {at_most: 50}\nlimits:",
            2,
            "late.at_most: 50 should be a share such as 10%",
        ),
        (
            "limits:",
            "late: {grace: soon}\nlimits:",
            2,
            "late.grace: 'soon' should be a time such as 30 min, 2 h or 7 days",
        ),
        (
            "points: 4",
            "points: 4\n        was: [Mean 1]",
            12,
            "'Mean 1' should be letters, digits and underscores",
        ),
        ("id: median", "id: running_mean", 13, "the exercise running_mean occurs twice"),
        ("hint: Sort first.", "hint: 'open", 16, "found unexpected end of stream"),
        ("title: Averages\nl", "title:\nl", 1, "title: nothing is written after it"),
        ("title: Averages\nl", "title: ''\nl", 1, "title: the text is empty (input: '')"),
        ("points: 4", "points: 0", 11, "points: should be more than 0 (input: 0)"),
        ("points: 4", "points: four", 11, "points: should be a number (input: 'four')"),
        ("limits:", "title: B\nlimits:", 2, 'found duplicate key "title"'),
        ("      - id: median", "     - id: median", 13, "expected <block end>"),
        (
            " +01:00",
            "",
            7,
            "2026-12-01 18:00:00 has no zone: write +01:00 after it, or give the course a "
            "time_zone",
        ),
        (
            "2026-12-01 18:00:00 +01:00",
            "2026-03-29 02:30 Europe/Berlin",
            7,
            "is an hour that Europe/Berlin skips, where clocks go forward: write an earlier or a "
            "later time",
        ),
        (
            "2026-12-01 18:00:00 +01:00",
            "!!timestamp x",
            7,
            "due: should be a text: write it in quotes",
        ),
        (
            "limits:",
            "time_zone: Berlin\nlimits:",
            2,
            "'Berlin' is no time zone that is known here",
        ),
    ],
)
def test_an_invalid_value_is_reported_with_its_line(load_content, tmp_path, old, new, line, says):
    assert VALID_COURSE.count(old) == 1
    with pytest.raises(CourseError) as error:
        load_content(VALID_COURSE.replace(old, new))
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'course.yaml'}:{line}: ")
    assert says in message
    assert message.endswith(". Next: mend that line, then course status")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1: the file: it is empty, and needs `title:` and `assignments:`. Next: "),
        ("- title: T\n", ":1: the file: it has no keys, and needs `title:`"),
        (
            "title: T\nassignments:\n  - {id: a, title: A, exercises: []}\n",
            ":3: exercises: should have at least 1 row",
        ),
        (
            "title: T\nassignments:\n  id: a\n",
            ":2: assignments should be a list: each row begins with a dash",
        ),
        (b"title: T\nwhy: caf\xe9\n", ":2: is not UTF-8 (byte 17)"),
        ("title: a\n\0b\n", ":2: a character that YAML does not know"),
        ('title: "\\U00110000"', "course.yaml: cannot be read as YAML"),
        ("title: &a [*a]\n", ":1: title: "),
        pytest.param("title: " + "[" * 1000, "cannot be read as YAML", id="1000 open brackets"),
        (
            "title: !!python/object:os.system x\n",
            ":1: title: should be a text: write it in quotes",
        ),
        pytest.param(
            VALID_COURSE + VALID_COURSE[VALID_COURSE.index("  - id: averages") :],
            ":17: id: the assignment averages occurs twice",
            id="an assignment occurs twice",
        ),
    ],
)
def test_a_file_that_is_not_a_course_is_refused(load_content, text, says):
    with pytest.raises(CourseError, match=re.escape(says)):
        load_content(text)


def test_a_missing_file_or_a_folder_in_its_place_is_refused(tmp_path):
    with pytest.raises(
        CourseError, match=r"course.yaml cannot be read .*Next: change to .*, then: course status$"
    ):
        load_course(tmp_path)
    (tmp_path / "course.yaml").mkdir()
    with pytest.raises(CourseError, match=r"cannot be read \(Is a directory\)"):
        load_course(tmp_path)


def test_the_nearest_course_above_is_found(tmp_path):
    inner = tmp_path / "inner" / "exercises"
    inner.mkdir(parents=True)
    with pytest.raises(
        CourseError,
        match=r"^no course.yaml in .* or above it\. Next: change to the course's folder",
    ):
        find_course(inner)
    for folder in (tmp_path, inner.parent):
        (folder / "course.yaml").touch()
        assert find_course(inner) == find_course(folder) == folder.resolve()


@pytest.mark.parametrize(
    ("name", "in_part", "answer"),
    [
        ("heads", True, "heads"),
        ("HEADS_2", True, "heads_2"),
        ("attention in practice", True, "practice"),
        ("multi", True, "heads"),
        ("2", True, "heads_2"),
        ("attention", True, "'attention' may be any of these assignments: heads, practice."),
        ("haeds", True, "there is no assignment 'haeds'; did you mean heads?"),
        ("tails", True, "there is no assignment 'tails'; there are: heads, practice, heads_2."),
        # files name an assignment by its full id
        ("multi", False, "there is no assignment 'multi'; there are: heads, practice, heads_2."),
        (None, True, "of which assignment? There are: heads, practice, heads_2."),
    ],
)
def test_an_assignment_is_found_by_id_title_or_unique_part(load_content, name, in_part, answer):
    text = "title: T\nassignments:\n"
    for id_, title in [
        ("heads", "Multi-head attention"),
        ("practice", "Attention in practice"),
        ("heads_2", "More heads"),
    ]:
        exercises = f"[{{id: e_{id_}, title: E, points: 1, hint: H}}]"
        text += f"  - {{id: {id_}, title: {title}, exercises: {exercises}}}\n"
    try:
        actual = assignment_named(load_content(text), name, in_part=in_part).id
    except UnknownAssignment as error:
        actual = str(error)
    assert actual == answer


def test_neighbours_are_all_files_imported_directly_or_indirectly(tmp_path):
    texts = {
        "test_a.py": "from ._shared import x\nfrom . import _other\nimport torch",
        "_shared.py": "from ._below import x",
        "_below.py": "x = 1",
        "_unused.py": "",
        "_other.py": "from ._shared import x",
        "broken.py": "from ._shared import (",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    names = [path.name for path in with_neighbours(tmp_path / "test_a.py")]
    assert names == ["test_a.py", "_below.py", "_other.py", "_shared.py"]
    for name in ("broken.py", "missing.py"):
        assert with_neighbours(tmp_path / name) == [tmp_path / name]


def test_the_secret_is_created_on_first_use_and_is_private(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    secret = course_secret(tmp_path / "a")
    assert len(secret) >= 32
    assert course_secret(tmp_path / "a") == secret != course_secret(tmp_path / "b")
    folder = tmp_path / "a" / ".course"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_secret_that_others_can_read_or_write_is_refused(tmp_path, mode):
    course_secret(tmp_path)
    (tmp_path / ".course" / "secret").chmod(mode)
    with pytest.raises(CourseError, match=r"can be read by others\. Next: chmod 600 .*/secret$"):
        course_secret(tmp_path)


@pytest.mark.parametrize("text", ["", "\n", "short"])
def test_a_short_secret_is_refused(tmp_path, text):
    course_secret(tmp_path)
    (tmp_path / ".course" / "secret").write_text(text)
    with pytest.raises(CourseError, match=r"holds no secret\. Next: rm "):
        course_secret(tmp_path)


def test_a_file_in_place_of_the_secrets_folder_is_an_error(tmp_path):
    (tmp_path / ".course").write_text("in the way")
    with pytest.raises(CourseError, match=r"can be neither read nor made .*Next: "):
        course_secret(tmp_path)


B, T_AXIS, NH, HD = (Axis((name,)) for name in ("B", "T", "nh", "hd"))
PAIR = (Form(), Form())


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        (
            "(x: (B, T), n_head: nh) -> (B, nh, T, hd)",
            Signature(
                (Parameter("x", (B, T_AXIS)), Parameter("n_head", axis=NH)), (B, NH, T_AXIS, HD)
            ),
        ),
        (
            "(n_embd: nh * hd, T)(x: (3 * B,)) -> ()",
            Signature(
                (Parameter("x", (Axis((3, "B")),)),),
                (),
                (Parameter("n_embd", axis=Axis(("nh", "hd"))), Parameter("T", axis=T_AXIS)),
            ),
        ),
        (
            "(mask: (B,) | None, scale: float, mha: {n_head: nh}) -> (T,)",
            Signature(
                (
                    Parameter("mask", (B,), may_lack=True),
                    Parameter("scale"),
                    Parameter("mha", attributes=(("n_head", NH),)),
                ),
                (T_AXIS,),
            ),
        ),
        (
            "(x: (B,), state: opaque) -> (y: (B,), state: opaque)",
            Signature(
                (Parameter("x", (B,)), Parameter("state", may_lack=True)),
                (B,),
                None,
                Form("tuple", ("y", "state"), (Form(), Form("opaque"))),
                (((0,), (B,)),),
            ),
        ),
    ],
)
def test_a_signature_is_parsed_with_its_axes(text, signature):
    assert parse_signature(text) == signature


@pytest.mark.parametrize(
    ("returned", "form"),
    [
        ("((B, T), (B,))", Form("tuple", (), PAIR)),
        ("[(B, T), opaque]", Form("tuple", (), (Form(), Form("opaque")))),
        ("(mean: (T,), last: (T,) | None)", Form("tuple", ("mean", "last"), PAIR)),
        (
            "(y: (T,), parts: ((), None))",
            Form("tuple", ("y", "parts"), (Form(), Form("tuple", (), PAIR))),
        ),
        ("opaque", Form("opaque")),
    ],
)
def test_a_signature_may_return_any_structure(returned, form):
    assert parse_signature(f"(x: (B, T)) -> {returned}").form == form


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "(x: (B, T)",
        "(x: (B, T))",
        "(x: (B, T)) -> T",
        "(x: (B, T)) -> []",
        "(x: (B, T)) -> {mean: (T,)}",
        "(x: (B, T)) -> Stats(mean=(T,))",
        "(x: (B, T)) -> (y: (B,), z)",
        "(x)(y)(z) -> ()",
        "(x: (B, T + 1)) -> (T,)",
        "(x: ('B',)) -> (B,)",
        "(*x: (B,)) -> (B,)",
        "(x: (B,) = 1) -> (B,)",
        "(x: print('!')) -> (B,)",
        "f(x) -> (B,)",
        "(x: (B,)) junk -> (B,)",
        "(x: (B,)) -> (B,): pass\nimport os\ndef g()",
        pytest.param("(x: " + "(" * 5000 + ") -> ()", id="5000 open brackets"),
    ],
)
def test_an_invalid_signature_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="is not a signature with named axes, such as"):
        parse_signature(text)


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (
            '["(x: (T,)) -> (T,)", "(x: (T,)) -> ((T,), ())"]',
            "the signatures of running_mean return different",
        ),
        ('"(x: (T,)"', "is not a signature"),
    ],
)
def test_an_invalid_signature_in_course_yaml_is_reported_with_its_line(tiny_copy, new, says):
    path = tiny_copy / "course.yaml"
    head, old, tail = path.read_text().partition('"(x: (T,)) -> (T,)"')
    assert old
    path.write_text(head + new + tail)
    line = head.count("\n") + 1
    with pytest.raises(CourseError, match=f"course.yaml:({line}|{line - 1}): .*{says}"):
        load_course(tiny_copy)


(COURSE_SCHEMA,) = (path for path in SCHEMAS if path.name == "course.schema.json")


def schema_errors(text: str) -> list[object]:
    """Return the errors of a course.yaml by the schema, which editors show."""
    schema = json.loads(COURSE_SCHEMA.read_text(encoding="utf-8"))
    return [*jsonschema.Draft202012Validator(schema).iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_each_schema_file_matches_its_model(path):
    text = path.read_text(encoding="utf-8")
    assert text == schema_text(SCHEMAS[path]), "Next: python -m docs.site.schemas"
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("name", ["course.yaml", "tests/tiny_course/course.yaml"])
def test_our_courses_are_valid_by_the_schema(repository, name):
    assert schema_errors((repository / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: Averages\n", ""),
        ("points: 4", "points: 0"),
        ("points: 4", "points: four"),
        ("id: mean", "id: A-B"),
        ("hint: Count.", "hint: ''"),
        ("hint: Count.", "hint: H, extra: 1"),
        ("10%", "200%"),
        ("30 min", "soon"),
    ],
)
def test_the_schema_rejects_an_invalid_course(old, new):
    valid_text = COURSE.replace("18:00", "18:00 Z")
    assert schema_errors(valid_text) == []
    assert schema_errors(valid_text.replace(old, new, 1))


def test_course_yaml_names_its_schema_for_editors(repository):
    first_line = (repository / "course.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert repository / first_line.removeprefix("# yaml-language-server: $schema=") == COURSE_SCHEMA


OVERRIDES = """\
- {student: ada, exercise: mean, score: 4, by: X}
- {student: bela, assignment: averages, due: 2026-12-03 18:00}
"""
ROSTER = "id,name,section,email\nada,Ada Lovelace,A,ada@example.org\nbela,Béla,B,\n"
# YAML values with special meanings or errors, one per line
UNUSUAL_VALUES = """\
!!int ''
!!float x
!!bool x
!!timestamp x
!!binary é
!!set [a]
!!omap a
!!map x
!x y
0x_
0b_
1e999
.inf
.nan
9999-12-31 23:58:20 -14:00
0001-01-01 00:00:00 +14:00
2026-13-45
190:20:30
&a [*a]
*a
<<: 3
"\\ud800"
"\\U00110000"
null
~
-1
1: x
a: b: c
=1+1
../x
é""".split("\n")
UNUSUAL_TEXTS = ["? [a]\n", "%YAML 3.0\n---\n", "\n---\n", "[" * 400, "9" * 5000]
REPLACEMENTS = st.sampled_from(
    [*UNUSUAL_VALUES, *UNUSUAL_TEXTS, *"{}[]'\"|,:\t\r\0\ufeff\x85"]
) | st.text(max_size=5)


@st.composite
def changed_bytes(draw, text):
    """Return a strategy for arbitrary bytes, and for the text with one to four parts replaced."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.binary() | st.text().map(str.encode))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.sampled_from([0, 0, 1, 5, 20]))
        text = text[:start] + draw(REPLACEMENTS) + text[end:]
    return text.encode()


@pytest.mark.parametrize(
    ("name", "text"),
    [("course.yaml", COURSE), (NAME, OVERRIDES), ("roster.csv", ROSTER)],
    ids=["course.yaml", "overrides.yaml", "a roster"],
)
@FUZZ
@given(st.data())
def test_any_file_is_read_or_refused_in_one_line(tmp_path, name, text, data):
    (tmp_path / "course.yaml").write_text(COURSE)
    (tmp_path / name).write_bytes(data.draw(changed_bytes(text)))
    fault = None
    try:
        if name == "roster.csv":
            read_roster(tmp_path / name)
        else:
            Decisions.of_course(load_course(tmp_path))
    except CourseFault as error:
        fault = error
    if fault is not None:
        assert isinstance(fault, CourseError) == (name == "course.yaml")
        assert str(tmp_path / name) in str(fault)
        assert "Next: " in str(fault)
        assert "\n" not in str(fault)
