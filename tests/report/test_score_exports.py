"""The exported tables of scores: their content, and how each platform imports them.

Functions named `…_as_PLATFORM_reads` repeat the import rules of that platform.
"""

import csv
import io
import json
import re
import unicodedata
from operator import itemgetter
from pathlib import Path

import pytest

from manyheads.report.class_summary import NOT_HELD, UNEXPLAINED, ClassList, ClassView
from manyheads.report.report_content import Labels
from manyheads.report.score_exports import FORMATS, gradescope_files
from manyheads.report.score_exports import cell as cell_of
from manyheads.result import (
    Adjustment,
    Diagnosed,
    FunctionResult,
    ProvedLine,
    write_result,
)
from manyheads.submission.roster_and_times import Roster, Student
from tests import make
from tests.make import TINY, call_course

VIEW = Diagnosed(
    id="wrong_view", title="You viewed straight to the shape.", hint="Which axis first?"
)


def check_with_hint(id_, score, max_score, outcome="failed"):
    """Return the result of a check, with evidence and a hint unless it has all points."""
    explanation = (
        {} if score == max_score else {"evidence": "head 0 differs", "hint": "Look again."}
    )
    return make.check(id_, score, max_score, outcome, title=f"checks {id_}", **explanation)


def result_of_checks(student, *checks, assignment="heads", named=(), **fields):
    """Return a result with one exercise. named: the misconceptions of its diagnosis."""
    exercise = make.exercise(f"{assignment}_1", *checks, diagnosis=named, **fields)
    return make.result(student, exercise, assignment=assignment)


ADA = result_of_checks("ada", check_with_hint("split", 1.25, 1.25), check_with_hint("merge", 2, 2))
BEN = result_of_checks(
    "ben",
    check_with_hint("split", 0, 1.25),
    check_with_hint("merge", 2, 2),
    named=(VIEW,),
    note="The .py counts.",
)
CAT = result_of_checks(
    "cat",
    check_with_hint("a", 0, 1, "timeout"),
    check_with_hint("b", 0, 1, "crashed"),
    check_with_hint("c", 0, 1, "skipped"),
    check_with_hint("d", 0, 1),
)
TWO_STUDENTS = Roster(
    (
        Student("ada", "Ada Lovelace", "A", "ada@example.org", "alovelace", "S100", "12345"),
        Student("ben", "Ben Bitdiddle", "B", email="ben@example.org"),
    )
)


def exported_rows(name, *results, roster=TWO_STUDENTS, zero=False):
    """Return the rows of the exported table.

    Args:
        name: The format, for example canvas.
        zero: Whether a missing result counts 0 points.
    """
    view = ClassView(results, ClassList(roster, zero))
    return list(csv.reader(io.StringIO(FORMATS[name](view))))


def test_csv_marks_unexplained_results_but_not_those_from_a_gradebook():
    table = exported_rows(
        "csv", CAT, CAT.model_copy(update={"isolation": NOT_HELD}), roster=Roster()
    )
    assert [row[-1] for row in table] == ["group", UNEXPLAINED, "not in the gradebook"]


def test_exports_name_the_wrong_line_but_not_the_edit():
    lines = (ProvedLine(line=23, edit="secret → edit"),)
    view = ClassView(
        [result_of_checks("ben", check_with_hint("split", 0, 1), named=(VIEW,), lines=lines)]
    )
    (text,) = gradescope_files(view).values()
    assert "You viewed straight to the shape (line 23)." in text
    assert [name for name in FORMATS if "secret" in FORMATS[name](view)] == []
    assert "secret" not in text


def test_a_check_shows_only_the_misconception_of_its_own_function():
    functions = [
        FunctionResult(name=name, state="wrong", check=f"checks {name}")
        for name in ("split", "merge")
    ]
    checks = [
        check_with_hint(function.name, 0, 1).model_copy(update={"function": function.name})
        for function in functions
    ]
    named = (VIEW.model_copy(update={"function": "merge"}),)
    result = result_of_checks("cat", *checks, named=named, functions=tuple(functions))
    (text,) = gradescope_files(ClassView([result])).values()
    assert text.count(VIEW.title) == 1
    assert text.index("checks merge") < text.index(VIEW.title)


@pytest.mark.parametrize(("name", "cell"), [("csv", (1, 3)), ("canvas", (2, -1))])
def test_scores_are_exported_without_rounding(name, cell):
    table = exported_rows(name, result_of_checks("ada", check_with_hint("split", 1234.5625, 2000)))
    assert table[cell[0]][cell[1]] == "1234.5625"


def test_canvas_has_an_empty_cell_for_an_assignment_without_a_result():
    dan = ADA.model_copy(update={"assignment": "tails", "student": "dan"})
    table = exported_rows("canvas", BEN, dan, roster=Roster())
    assert table[2:] == [
        ["ben", "", "", "ben", "", "2", ""],
        ["dan", "", "", "dan", "", "", "3.25"],
    ]
    nameless = Roster((Student("ben"),))
    assert exported_rows("canvas", BEN, roster=nameless)[2][0] == "ben"


@pytest.mark.parametrize(("zero", "cell"), [(False, ""), (True, "0")])
def test_exports_have_the_platforms_ids_and_rows_for_absent_students(zero, cell):
    tails = [
        result_of_checks(name, check_with_hint("split", 3, 4), assignment="tails")
        for name in ("ada", "ben")
    ]
    texts = [
        *(
            FORMATS[name](ClassView([ADA], ClassList(TWO_STUDENTS, zero)))
            for name in ("canvas", "moodle")
        ),
        *(",".join(row[:1] + row[2:5]) for row in exported_rows("csv", ADA, *tails, zero=zero)[1:]),
    ]
    assert "\n".join(text.rstrip() for text in texts).splitlines() == [
        "Student,ID,SIS User ID,SIS Login ID,Section,heads",
        "    Points Possible,,,,,3.25",
        "Ada Lovelace,12345,S100,alovelace,A,3.25",
        f"Ben Bitdiddle,,,ben,B,{cell}",
        "Username,ID number,Email address,heads",
        "alovelace,S100,ada@example.org,3.25",
        f"ben,,ben@example.org,{cell}",
        "ada,heads_1,3.25,3.25",
        f"ben,heads_1,{cell},3.25",
        "ada,tails_1,3,4",
        "ben,tails_1,3,4",
    ]


@pytest.mark.parametrize(
    ("name", "roster", "has_row"),
    [
        ("canvas", TWO_STUDENTS, False),
        ("moodle", TWO_STUDENTS, False),
        ("csv", TWO_STUDENTS, True),
        pytest.param("canvas", Roster(), True, id="without a roster"),
    ],
)
def test_a_student_missing_from_the_roster_is_left_out_for_platforms(name, roster, has_row):
    dropped = ADA.model_copy(update={"student": "dropped"})
    assert ("dropped" in str(exported_rows(name, ADA, dropped, roster=roster))) is has_row


def test_gradescope_files_contain_evidence_misconception_and_hint():
    files = gradescope_files(ClassView([ADA, BEN]))
    assert [path.as_posix() for path in files] == [
        f"{student}/heads/results.json" for student in ("ada", "ben")
    ]
    ben = json.loads(files[Path("ben/heads/results.json")])
    assert ben["score"] == 2 == sum(test["score"] for test in ben["tests"])
    assert "The .py counts." in ben["output"]
    wrong, right = map(itemgetter("status", "number", "output"), ben["tests"])
    explanation = "head 0 differs\nYou viewed straight to the shape.\nhint: Which axis first?"
    assert (wrong, right) == (("failed", "1.1", explanation), ("passed", "1.2", ""))
    (unnamed,) = gradescope_files(
        ClassView([result_of_checks("ada", check_with_hint("split", 0, 1))])
    ).values()
    assert json.loads(unnamed)["tests"][0]["output"] == "head 0 differs"


def test_export_writes_one_file_or_a_folder_for_gradescope(tmp_path):
    view = ClassView([ADA, BEN])
    for result in view.results:
        write_result(result, tmp_path / "results")
    files = {Path("canvas"): FORMATS["canvas"](view)}
    files |= {"gradescope" / path: text for path, text in gradescope_files(view).items()}
    for name in ("canvas", "gradescope"):
        options = ("--format", name, "--out", f"to/{name}")
        assert call_course("export", "results", *options, cwd=tmp_path).returncode == 0
    written_paths = (path for path in (tmp_path / "to").rglob("*") if path.is_file())
    assert {path.relative_to(tmp_path / "to"): path.read_text() for path in written_paths} == files


@pytest.mark.parametrize(
    ("arguments", "message", "next_step"),
    [
        pytest.param(
            "nowhere",
            "nowhere holds no results",
            "course grade SUBMITTED --out nowhere",
            id="no results",
        ),
        pytest.param(
            "results --format gradescope",
            "Gradescope reads a file for each submission",
            "the same with --out FOLDER",
            id="Gradescope without a folder",
        ),
        pytest.param(
            "results --out results",
            "results cannot be written",
            "give --out another path",
            id="a folder in place of a file",
        ),
        pytest.param(
            f"--gradebook sqlite:///none.db --course {TINY}",
            "there is no none.db",
            "course grade SUBMITTED --gradebook sqlite:///none.db",
            id="no gradebook",
        ),
    ],
)
def test_wrong_usage_ends_with_a_sentence_and_a_next_command(
    tmp_path, arguments, message, next_step
):
    write_result(ADA, tmp_path / "results")
    completed = call_course("export", *arguments.split(), cwd=tmp_path)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert message in completed.stderr
    assert completed.stderr.endswith(f"Next: {next_step}\n")
    assert not (tmp_path / "none.db").exists()


FORMULA_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe63"
BLANKS = ("", " ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\t", "\r", "\x00")
FORMULAS = [f"{blank}{sign}1+1" for blank in BLANKS for sign in FORMULA_SIGNS]
FORMULAS_AFTER_A_SEPARATOR = ["ada\n=1+1"]
FORMULAS_AFTER_A_SEPARATOR += r"""
ada;=1+1
ada	=1+1
ada";=1+1
ada; @x
ada|+1
ada,=1+1
ada;;-1
""".split("\n")[1:-1]
HARMLESS_NAMES = [
    "e\u0301",
    "\u00e9",
    "محمد\u200cرضا",
    "ශ්\u200dරී",
    "    Points Possible",
    "x" * 120,
]
HARMLESS_NAMES += r"""
Ada
ada
ADA
Ben-Gurion, O'Neil =x
Jo "Q" Doe
report
..
CON
nul.txt
a.
עדה
Points Possible
Muted
Student
ID
12
007
<b>ada</b>
student
-
Zoë Ødegård; Dr.
a\b
ada [1]
results.json
""".split("\n")[1:-1]
CONTROL_CHARACTER_NAMES = ["\u202ezed", "z\x1b[2Jed", "z\u2066ada\u2069", "zed\x9b1m"]
NAMES = [*FORMULAS, *FORMULAS_AFTER_A_SEPARATOR, *HARMLESS_NAMES, *CONTROL_CHARACTER_NAMES]
TITLES = {
    "sums": "Adding up",
    "means": "Final Points of the middle",
    "maxima": "Adding Up",
    "two": "Homework (2)",
}
LABELS = Labels(TITLES, {f"{id_}_1": ("01", f"The {id_}") for id_ in TITLES})


def score_of(name, assignment):
    """Return a score that no other student and assignment has."""
    return NAMES.index(name) + list(TITLES).index(assignment) / 4


def result_with_score(name, assignment):
    """Return a result with that score; its evidence is the student's name."""
    score = score_of(name, assignment)
    check = make.check("c", score, 1000, title="has the values", evidence=name)
    return make.result(name, make.exercise(f"{assignment}_1", check), assignment=assignment)


CLASS = [
    result_with_score(name, assignment)
    for name in NAMES
    for assignment in ("means", "sums", "two", "maxima")
]
ROSTER = Roster(
    tuple(
        Student(name, name, name, f"s{i}@example.org", f"login{i}", f"S{i}", str(900 + i))
        for i, name in enumerate(NAMES)
    )
)


def export_scores(name, members):
    """Return the scores of the class in the format with this name."""
    return FORMATS[name](ClassView(CLASS, members, LABELS))


def table_of(name, members):
    """Return the rows of the exported table of the class in the format with this name."""
    return list(csv.reader(io.StringIO(export_scores(name, members), newline="")))


def cells_in(text):
    """Yield every cell that a spreadsheet may see, with any separator of any country.

    A quote inside a cell is an ordinary character.
    """
    for separator in ",;\t|":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            yield from row


def test_an_equals_sign_with_a_combining_stroke_is_still_escaped():
    """Unicode normalisation would join "=" and U+0338 to the single character ≠."""
    assert cell_of("=\u03381+1") == "'=\u03381+1"


def is_formula(cell):
    """Return whether the cell begins with a formula sign, also full-width or after blanks."""
    visible = [letter for letter in cell if unicodedata.category(letter)[0] not in "CZ"]
    is_number = cell.strip() == "-" or re.fullmatch(r"-?[\d.]+", cell)
    return visible[:1] != [] and visible[0] in FORMULA_SIGNS and not is_number


@pytest.mark.parametrize(
    "members", [ClassList(ROSTER), ClassList()], ids=["with a roster", "without one"]
)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_table_has_no_formula_and_no_control_character(name, members):
    text = export_scores(name, members)
    assert [cell for cell in cells_in(text) if is_formula(cell)] == []
    assert control_characters_in(text) == set()


def test_gradescope_files_have_no_control_character():
    decided = (Adjustment(rule="score", words="set to 3 by \u202eX: \x1b[2Jgone"),)
    results = [result.model_copy(update={"adjustments": decided}) for result in CLASS]
    for text in gradescope_files(ClassView(results, labels=LABELS)).values():
        result = json.loads(text)
        texts = [result["output"], *(test["name"] + test["output"] for test in result["tests"])]
        assert control_characters_in("".join(texts)) == set()


def control_characters_in(text):
    """Return the characters that change how others are displayed, without joiners of letters."""
    controls = {
        letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    return controls - {"\n", "\t", "\u200c", "\u200d"}


def test_csv_has_each_students_score():
    header, *table = table_of("csv", ClassList())
    rows = [dict(zip(header, row, strict=True)) for row in table]
    scores = {
        (name_without_escapes(row["student"]), row["assignment"]): float(row["score"])
        for row in rows
    }
    assert scores == {(name_without_escapes(r.student), r.assignment): r.score for r in CLASS}
    assert len(header) == 13
    assert {*HARMLESS_NAMES} - {"-"} <= {row["student"] for row in rows}, (
        "a text without a formula stays"
    )
    assert [*dict.fromkeys(row["assignment_title"] for row in rows)] == list(TITLES.values())


def name_without_escapes(name):
    """Return a name as the spreadsheet shows it: without escaping quotes and control characters."""
    without_quotes = re.sub(r"(^|(?<=[;\t|]))'", "", name)
    return re.sub(
        r"[\u200b\ufeff\u202e\u2066\u2069]",
        "",
        re.sub(r"[\x00-\x1f\x80-\x9f]", " ", without_quotes),
    )


COMPUTED = re.compile(
    "Current Score|Current Points|Current Grade|Final Score|Final Points|Final Grade|Override "
)


def column_counts(lines, delimiter):
    """Return the set of the numbers of columns in these lines."""
    return {len(next(csv.reader([line], delimiter=delimiter), [])) for line in lines}


def grades_as_canvas_reads(text, find_student):
    """Return the grades of each student by assignment, by the rules of lib/gradebook_importer.rb.

    find_student: a function that returns the student of a row.
    """
    head = text.splitlines()[:3]
    semicolons, commas = column_counts(head, ";"), column_counts(head, ",")
    assert len(semicolons) > 1 or min(semicolons) <= min(commas), "semicolons would separate"
    table = csv.reader(io.StringIO(text, newline=""))
    header, *rows = [row for row in table if "".join(row).strip("; ,")]
    assert header[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    titles = header[5:]
    assert [title for title in titles if COMPUTED.search(title)] == [], "a column is passed over"
    assert [title for title in titles if re.search(r"\(\d+\)\s*$", title)] == [], "that is an id"
    assert len({title.casefold() for title in titles}) == len(titles)
    (points,) = [row for row in rows if "Points Possible" in row[0]]
    assert {*points[5:]} == {"1000"}, "a student changes the points"
    rows.remove(points)
    grades = {}
    for row in rows:
        if any(not re.fullmatch(r"(?i)\s*(Muted|Manual Posting.*)?\s*", cell) for cell in row):
            student = find_student(row)
            assert student is not None, row
            assert student not in grades, row
            grades[student] = dict(zip(titles, map(str.strip, row[5:]), strict=True))
    return grades


CANVAS_TITLES = {
    "sums": "Adding up [sums]",
    "means": "means",
    "maxima": "Adding Up [maxima]",
    "two": "Homework (2) [two]",
}


def test_canvas_imports_the_right_scores_for_each_student():
    student_ids = {student.canvas_id: student.id for student in ROSTER.students}
    text = export_scores("canvas", ClassList(ROSTER))
    grades = grades_as_canvas_reads(text, lambda row: student_ids.get(row[1]))
    assert grades.keys() == {*NAMES}
    for name, row in grades.items():
        assert row == {title: f"{score_of(name, id_):g}" for id_, title in CANVAS_TITLES.items()}


@pytest.mark.parametrize(
    ("column", "field"),
    [("Username", "login"), ("ID number", "sis_id"), ("Email address", "email")],
)
def test_moodle_imports_the_right_scores_for_each_student(column, field):
    """As in grade/import/csv/classes/load_data.php, the instructor chooses the column that
    identifies students.
    """
    header, *rows = table_of("moodle", ClassList(ROSTER))
    header = [title.strip() for title in header]
    assert len(set(header)) == len(header) == 3 + len(TITLES)
    users = {getattr(student, field): student.id for student in ROSTER.students}
    grades = {users[row[header.index(column)]]: [*map(float, row[3:])] for row in rows}
    assert len(grades) == len(rows)
    assert grades.keys() == {*NAMES}
    for name, scores in grades.items():
        assert scores == [score_of(name, id_) for id_ in TITLES]


OUTPUT_FORMATS = {"text", "html", "simple_format", "md", "ansi"}
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}


FIELDS = """score execution_time output output_format test_output_format test_name_format
    visibility stdout_visibility extra_data tests leaderboard""".split()
TEST_FIELDS = """score max_score status name name_format number output output_format tags visibility
    extra_data""".split()


def score_and_tests_as_gradescope_reads(text):
    """Check the file by Gradescope's specification.

    Returns:
        The score, and the (name, score, maximum) of each test.
    """
    data = json.loads(text)
    assert data.keys() <= {*FIELDS}
    assert data.get("output_format", "text") in OUTPUT_FORMATS
    assert {
        data.get("visibility", "visible"),
        data.get("stdout_visibility", "hidden"),
    } <= VISIBILITIES
    for test in data["tests"]:
        assert test.keys() <= {*TEST_FIELDS}
        assert test["status"] in ("passed", "failed")
        assert {test["output_format"], test["name_format"]} <= OUTPUT_FORMATS
        assert isinstance(test["number"], str)
        assert 0 <= test["score"] <= test["max_score"]
    tests = [(test["name"], test["score"], test["max_score"]) for test in data["tests"]]
    return data["score"], tests


def test_gradescope_file_names_are_valid_and_distinct_on_all_systems():
    files = gradescope_files(ClassView(CLASS, labels=LABELS))
    case_folded_paths = {unicodedata.normalize("NFC", path.as_posix()).casefold() for path in files}
    assert len(case_folded_paths) == len(files) == len(CLASS)
    reserved = r'[<>:"|?*\x00-\x1f\\]|(?i:^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$)'
    for path in files:
        assert (path.is_absolute(), len(path.parts)) == (False, 3)
        for component in path.parts[:2]:
            assert component == component.strip().rstrip(".")
            assert not re.search(reserved, component)
            assert len(component.encode()) <= 255


def test_gradescope_shows_each_score_with_the_title_of_its_exercise():
    texts = gradescope_files(ClassView(CLASS, labels=LABELS)).values()
    for result, text in zip(CLASS, texts, strict=True):
        tests = [(f"01 The {result.assignment}: has the values", result.score, 1000)]
        assert score_and_tests_as_gradescope_reads(text) == (result.score, tests)
