"""course.yaml: what is right is read, its shapes too; what is wrong is named with its line; its
schema says the same. And what stands beside it.
"""

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from docs.site.schemas import SCHEMAS, schema_text
from manyheads.box.worker.result_form import Form
from manyheads.course import Course, CourseError, find_course, load_course
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

from .conftest import COURSE

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


def write(folder: Path, text: str | bytes) -> Path:
    (folder / "course.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def test_a_good_file_becomes_a_course_with_its_defaults_filled_in(tmp_path):
    course = load_course(write(tmp_path, GOOD))
    (assignment,) = course.assignments
    assert [e.id for e in assignment.exercises] == ["running_mean", "median"]
    assert assignment.points == 6.5
    assert (course.limits.seconds_per_call, course.limits.seconds_per_attempt) == (2, 20)
    median = assignment.exercises[1]
    paths = [
        median.solution,
        median.script,
        median.notebook,
        median.fingerprints,
        median.checks,
        median.misconceptions,
    ]
    assert [str(path.relative_to(course.root)) for path in paths] == [
        "solutions/averages/02_median.py",
        "exercises/averages/02_median.py",
        "exercises/averages/02_median.ipynb",
        "exercises/averages/fingerprints/02_median.safetensors",
        "grader/checks/test_median.py",
        "grader/misconceptions/median.py",
    ]


def test_the_box_is_told_every_limit_but_the_one_on_the_source_and_leaves_room_for_cuda(
    tmp_path,
):
    limits = load_course(write(tmp_path, GOOD)).limits
    here, on_cuda = limits.for_worker(), limits.for_worker("cuda")
    assert {**vars(here), "source_kib": limits.source_kib} == {
        **limits.model_dump(),
        "device": "cpu",
    }
    assert on_cuda.device == "cuda"
    for field in ("memory_mib", "processes", "open_files"):
        assert getattr(on_cuda, field) > getattr(here, field)
    assert (on_cuda.seconds_per_call, on_cuda.files_mib) == (here.seconds_per_call, here.files_mib)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        pytest.param(
            "title: Averages\nl", "l", 1, "title is missing", id="a course without a title"
        ),
        pytest.param(
            "_per_call: 2",
            "_per_cal: 2",
            3,
            "limits.seconds_per_cal: there is no such key; did you mean seconds_per_call?",
            id="a misspelt limit",
        ),
        pytest.param(
            "points: 4",
            "points: 4\n        deadline: 2026-12-01",
            12,
            "deadline: there is no such key; there are id, title, was, points, hint",
            id="a key of no exercise",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: A\nlate: {pr_day: 10%}\nl",
            2,
            "late.pr_day: there is no such key; did you mean per_day?",
            id="a key of a part that may be missing",
        ),
        pytest.param(
            "id: averages",
            "id: ../Averages",
            5,
            (
                "id: '../Averages' should be a letter and then letters, digits and underscores, "
                "all in lower case"
            ),
            id="an id that is a path",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: A\nlate: {per_day: 10 points}\nl",
            2,
            "late.per_day: '10 points' should be a share such as 10%",
            id="points for a share",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: A\nlate: {at_most: 50}\nl",
            2,
            "late.at_most: 50 should be a share such as 10%",
            id="a number for a share",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: A\nlate: {grace: soon}\nl",
            2,
            "late.grace: 'soon' should be a time such as 30 min, 2 h or 7 days",
            id="a word for a time",
        ),
        pytest.param(
            "points: 4",
            "points: 4\n        was: [Mean 1]",
            12,
            "'Mean 1' should be letters, digits and underscores",
            id="an earlier name",
        ),
        pytest.param(
            "id: median",
            "id: running_mean",
            13,
            "the exercise running_mean occurs twice",
            id="two equal ids",
        ),
        pytest.param(
            "points: 4", "points: !!int ''", 11, "'' cannot be read as int", id="an empty int"
        ),
        pytest.param(
            "hint: Sort first.",
            'hint: "\\U00110000"',
            None,
            "cannot be read as YAML",
            id="a character that there is not",
        ),
        pytest.param(
            "hint: Sort first.",
            "hint: 'open",
            16,
            "found unexpected end of stream",
            id="a quote that is never closed",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: 3\nl",
            1,
            "title: should be a text: write it in quotes (input: 3)",
            id="a number as a title",
        ),
        pytest.param(
            "title: Averages\nl",
            "title:\nl",
            1,
            "title: nothing is written after it",
            id="a title without a text",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: ''\nl",
            1,
            "title: the text is empty (input: '')",
            id="a title that is an empty text",
        ),
        pytest.param(
            "points: 4",
            "points: 0",
            11,
            "points: should be more than 0 (input: 0)",
            id="no points",
        ),
        pytest.param(
            "points: 4",
            "points: four",
            11,
            "points: should be a number (input: 'four')",
            id="points in letters",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: A\ntitle: B\nl",
            2,
            'found duplicate key "title"',
            id="a key twice",
        ),
        pytest.param(
            "      - id: median",
            "     - id: median",
            13,
            "expected <block end>",
            id="a row one column to the left",
        ),
        pytest.param(" +01:00", "", 7, "2026-12-01 18:00:00 has no zone", id="no zone"),
        pytest.param(
            "2026-12-01 18:00:00 +01:00",
            "!!timestamp x",
            7,
            "due: should be a text: write it in quotes",
            id="a timestamp by its tag",
        ),
        pytest.param(
            "title: Averages\nl",
            "title: A\ntime_zone: Berlin\nl",
            2,
            "'Berlin' is no time zone that is known here",
            id="no such zone",
        ),
    ],
)
def test_a_bad_file_is_refused_with_the_line(tmp_path, old, new, line, says):
    assert GOOD.count(old) == 1
    with pytest.raises(CourseError) as error:
        load_course(write(tmp_path, GOOD.replace(old, new)))
    message = str(error.value)
    course_yaml = tmp_path / "course.yaml"
    assert message.startswith(f"{course_yaml}:{line}: " if line else f"{course_yaml}: "), message
    assert says in message
    assert message.endswith(". Next: mend that line, then course status")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            "",
            ":1: the file: it is empty, and needs `title:` and `assignments:`",
            id="an empty file",
        ),
        pytest.param(
            "# to do\n", ":1: the file: it is empty, and needs `title:`", id="remarks alone"
        ),
        pytest.param(
            "- title: T\n", ":1: the file: it has no keys, and needs `title:`", id="a list"
        ),
        pytest.param(
            "title: T\nassignments:\n  - {id: a, title: A, exercises: []}\n",
            ":3: exercises: should have at least 1 row",
            id="an assignment without exercises",
        ),
        pytest.param(
            "title: T\nassignments:\n  id: a\n",
            ":2: assignments should be a list: each row begins with a dash",
            id="one assignment without a dash",
        ),
        pytest.param(b"title: T\nwhy: caf\xe9\n", ":2: is not UTF-8 (byte 17)", id="Latin-1"),
        pytest.param("title: a\n\0b\n", ":2: a character that YAML does not know", id="a NUL byte"),
        pytest.param("title: &a [*a]\n", ":1: title: ", id="a list that holds itself"),
        pytest.param("title: " + "[" * 3000, "cannot be read as YAML", id="brackets in brackets"),
        pytest.param(
            "title: !!python/object:os.system x\n",
            ":1: title: should be a text: write it in quotes",
            id="a Python tag",
        ),
        pytest.param(
            GOOD + GOOD[GOOD.index("  - id: averages") :],
            ":17: id: the assignment averages occurs twice",
            id="two equal ids",
        ),
    ],
)
def test_a_file_of_the_wrong_kind_is_refused(tmp_path, text, says):
    with pytest.raises(CourseError) as error:
        load_course(write(tmp_path, text))
    assert says in str(error.value)
    assert ". Next: " in str(error.value)


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path):
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
    write(tmp_path, GOOD)
    assert find_course(inner) == find_course(tmp_path) == tmp_path.resolve()
    write(inner.parent, GOOD)
    assert find_course(inner) == inner.parent.resolve()


@pytest.fixture
def heads(tmp_path: Path) -> Course:
    """A course of three assignments."""
    titles = {
        "heads": "Multi-head attention",
        "practice": "Attention in practice",
        "heads_2": "More heads",
    }
    rows = [
        (
            f"  - {{id: {id_}, title: {title}, exercises: [{{id: e_{id_}, title: E, points: 1, "
            f"hint: H}}]}}\n"
        )
        for id_, title in titles.items()
    ]
    return load_course(write(tmp_path, "title: T\nassignments:\n" + "".join(rows)))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("heads", "heads"),
        ("HEADS_2", "heads_2"),
        ("attention in practice", "practice"),
        ("multi", "heads"),
        ("2", "heads_2"),
    ],
)
def test_an_id_a_title_or_a_part_that_no_other_has_is_enough(heads, name, found):
    assert assignment_named(heads, name, in_part=True).id == found


@pytest.mark.parametrize(
    ("name", "in_part", "says"),
    [
        ("attention", True, "'attention' may be any of these assignments: heads, practice."),
        ("haeds", True, "there is no assignment 'haeds'; did you mean heads?"),
        ("tails", True, "there is no assignment 'tails'; there are: heads, practice, heads_2."),
        # as a file names one
        ("multi", False, "there is no assignment 'multi'; there are: heads, practice, heads_2."),
        (None, True, "of which assignment? There are: heads, practice, heads_2."),
    ],
)
def test_what_is_not_clear_is_one_sentence(heads, name, in_part, says):
    with pytest.raises(UnknownAssignment) as caught:
        assignment_named(heads, name, in_part=in_part)
    assert str(caught.value) == says


def test_neighbours_are_those_that_are_imported_whether_directly_or_not(tmp_path):
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
    neighbours = with_neighbours(tmp_path / "test_a.py")
    assert [path.name for path in neighbours] == [
        "test_a.py",
        "_below.py",
        "_other.py",
        "_shared.py",
    ]
    for name in ("broken.py", "missing.py"):
        assert with_neighbours(tmp_path / name) == [tmp_path / name]


def test_the_secret_is_made_on_first_use_stays_and_is_its_owners_alone(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    secret = course_secret(tmp_path / "a")
    assert len(secret) >= 32
    assert course_secret(tmp_path / "a") == secret != course_secret(tmp_path / "b")
    folder = tmp_path / "a" / ".course"
    assert (folder.stat().st_mode & 0o777, (folder / "secret").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        *(
            pytest.param(
                lambda path, mode=mode: path.chmod(mode),
                r"can be read by others\. Next: chmod 600 .*/secret$",
                id=oct(mode),
            )
            for mode in (0o640, 0o604, 0o620, 0o666)
        ),
        *(
            pytest.param(
                lambda path, text=text: path.write_text(text),
                r"holds no secret\. Next: rm ",
                id=repr(text),
            )
            for text in ("", "\n", "short")
        ),
        pytest.param(
            lambda path: (path.unlink(), path.parent.rmdir(), path.parent.write_text("in the way")),
            r"can be neither read nor made .*Next: ",
            id="a file in the place of its folder",
        ),
    ],
)
def test_a_secret_that_is_none_is_refused(tmp_path, spoil, says):
    course_secret(tmp_path)
    spoil(tmp_path / ".course" / "secret")
    with pytest.raises(CourseError, match=says):
        course_secret(tmp_path)


B, T_AXIS, NH, HD = (Axis((name,)) for name in ("B", "T", "nh", "hd"))
STATE = Form("tuple", ("y", "state"), (Form(), Form("opaque")))


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
            "(mask: (B, T) | None, scale: float) -> (T,)",
            Signature(
                (Parameter("mask", (B, T_AXIS), may_lack=True), Parameter("scale")), (T_AXIS,)
            ),
        ),
        (
            "(mha: {n_head: nh, head_dim: hd}) -> ()",
            Signature((Parameter("mha", attributes=(("n_head", NH), ("head_dim", HD))),), ()),
        ),
        (
            "(x: (B, T), state: opaque) -> (y: (B, T), state: opaque)",
            Signature(
                (Parameter("x", (B, T_AXIS)), Parameter("state", may_lack=True)),
                (B, T_AXIS),
                None,
                STATE,
                (((0,), (B, T_AXIS)),),
            ),
        ),
    ],
)
def test_a_signature_has_axes(text, signature):
    assert parse_signature(text) == signature


@pytest.mark.parametrize(
    ("returned", "form"),
    [
        ("((B, T), (B,))", Form("tuple", (), (Form(), Form()))),
        ("[(B, T), opaque]", Form("tuple", (), (Form(), Form("opaque")))),
        ("(mean: (T,), last: (T,) | None)", Form("tuple", ("mean", "last"), (Form(), Form()))),
        (
            "(y: (T,), parts: ((), None))",
            Form("tuple", ("y", "parts"), (Form(), Form("tuple", (), (Form(), Form())))),
        ),
        ("opaque", Form("opaque")),
    ],
)
def test_what_is_returned_may_be_any_structure(returned, form):
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
        "(x: " + "(" * 5000 + ") -> ()",
    ],
)
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="is not a signature with named axes, such as"):
        parse_signature(text)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            '"(x: (T,)) -> (T,)"',
            '["(x: (T,)) -> (T,)", "(x: (T,)) -> ((T,), ())"]',
            "the signatures of running_mean return different",
        ),
        ("(x: (T,)) -> (T,)", "(x: (T,)", "is not a signature"),
    ],
)
def test_course_yaml_is_told_the_line(tiny_copy, old, new, says):
    path = tiny_copy / "course.yaml"
    text = path.read_text().replace(old, new, 1)
    path.write_text(text)
    line = text[: text.index(new)].count("\n") + 1
    with pytest.raises(CourseError, match=f"course.yaml:({line}|{line - 1}): .*{says}"):
        load_course(tiny_copy)


COURSE_SCHEMA = next(path for path in SCHEMAS if path.name == "course.schema.json")


def errors(course: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(
        json.loads(COURSE_SCHEMA.read_text(encoding="utf-8"))
    )
    return [error.message for error in validator.iter_errors(course)]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_the_file_is_what_the_model_says_and_a_json_schema(path):
    assert path.read_text(encoding="utf-8") == schema_text(SCHEMAS[path]), (
        "Next: python -m docs.site.schemas"
    )
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["course.yaml", "tests/tiny_course/course.yaml"])
def test_our_courses_are_valid(repository, name):
    assert errors(yaml.safe_load((repository / name).read_text(encoding="utf-8"))) == []


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
def test_a_bad_course_is_found_by_the_schema(old, new):
    good = COURSE.replace("18:00", "18:00 Z")
    assert errors(yaml.safe_load(good)) == []
    assert errors(yaml.safe_load(good.replace(old, new, 1)))


def test_course_yaml_names_its_schema_so_that_editors_find_it(repository):
    first_line = (repository / "course.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert repository / first_line.removeprefix("# yaml-language-server: $schema=") == COURSE_SCHEMA


ROWS = (
    "- {student: ada, exercise: mean, score: 4, by: X}\n"
    "- {student: bela, assignment: averages, due: 2026-12-03 18:00}\n"
)
ROSTER = "id,name,section,email\nada,Ada Lovelace,A,ada@example.org\nbela,Béla,B,\n"
PARTS = (
    "!!int ''",
    "!!float x",
    "!!bool x",
    "!!timestamp x",
    "!!binary é",
    "!!set [a]",
    "!!omap a",
    "!!map x",
    "!x y",
    "0x_",
    "0b_",
    "9" * 5000,
    "1e999",
    ".inf",
    ".nan",
    "9999-12-31 23:58:20 -14:00",
    "0001-01-01 00:00:00 +14:00",
    "2026-13-45",
    "190:20:30",
    "&a [*a]",
    "*a",
    "<<: 3",
    "? [a]\n",
    "[" * 400,
    "{",
    "}",
    '"\\ud800"',
    '"\\U00110000"',
    "'",
    "|",
    "\t",
    "\0",
    "\ufeff",
    "\x85",
    "\r",
    "null",
    "~",
    "-1",
    "%YAML 3.0\n---\n",
    "\n---\n",
    "1: x",
    "a: b: c",
    ",,,",
    "'\"",
    "=1+1",
    "../x",
    "é",
)


def change_text(text: str, chance: random.Random) -> bytes:
    """The text with one to four values, cuts or bytes of another kind."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 5, 20)))
        text = text[:start] + chance.choice(("", " ", *PARTS)) + text[end:]
    return (
        text.encode()
        if chance.random() < 0.9
        else text.encode()[:-1] + bytes([chance.randrange(256)])
    )


def overrides(folder: Path) -> None:
    (folder / "course.yaml").write_text(COURSE)
    Decisions.of_course(load_course(folder))


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        pytest.param(
            "course.yaml",
            COURSE,
            lambda folder: Decisions.of_course(load_course(folder)),
            id="course.yaml",
        ),
        pytest.param(NAME, ROWS, overrides, id="overrides.yaml"),
        pytest.param(
            "roster.csv", ROSTER, lambda folder: read_roster(folder / "roster.csv"), id="a roster"
        ),
    ],
)
def test_whatever_stands_there_is_read_or_refused_in_a_sentence(tmp_path, name, text, read):
    chance, refused = random.Random(3), []
    for _ in range(60):
        (tmp_path / name).write_bytes(change_text(text, chance))
        try:
            read(tmp_path)
        except CourseFault as fault:
            refused.append(str(fault))
    assert len(refused) > 5
    assert [
        message
        for message in refused
        if f"{tmp_path / name}" not in message or "Next: " not in message or "\n" in message
    ] == []
