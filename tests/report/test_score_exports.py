"""Every export: what stands in it, and what the other side reads by its own rules, which are
written here anew.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyheads.report.class_summary import NOT_HELD, UNEXPLAINED, ClassList, ClassView
from manyheads.report.report_content import Labels
from manyheads.report.score_exports import FORMATS, gradescope_files
from manyheads.report.score_exports import cell as cell_of
from manyheads.result import (
    Adjustment,
    CheckResult,
    Diagnosed,
    FunctionResult,
    Outcome,
    ProvedLine,
    Result,
    write_result,
)
from manyheads.submission.roster_and_times import Roster, Student
from tests import make
from tests.conftest import Run
from tests.make import TINY

VIEW = Diagnosed(
    id="wrong_view", title="You viewed straight to the shape.", hint="Which axis first?"
)


def check(
    id_: str,
    score: float,
    most: float,
    outcome: Outcome = "failed",
    evidence: str = "head 0 differs",
):
    explanation = {} if score == most else {"evidence": evidence, "hint": "Look again."}
    return make.check(id_, score, most, outcome, title=f"checks {id_}", **explanation)


def result_of(
    student: str,
    *checks: CheckResult,
    assignment: str = "heads",
    named: tuple[Diagnosed, ...] = (),
    **fields,
):
    exercise = make.exercise(f"{assignment}_1", *checks, diagnosis=named, **fields)
    return make.result(student, exercise, assignment=assignment)


ADA = result_of("ada", check("split", 1.25, 1.25), check("merge", 2, 2))
BEN = result_of(
    "ben", check("split", 0, 1.25), check("merge", 2, 2), named=(VIEW,), note="The .py counts."
)
CAT = result_of(
    "cat",
    check("a", 0, 1, "timeout"),
    check("b", 0, 1, "crashed"),
    check("c", 0, 1, "skipped"),
    check("d", 0, 1),
)
LINED = result_of(
    "ben", check("split", 0, 1), named=(VIEW,), lines=(ProvedLine(line=23, edit="secret → edit"),)
)
TWO = Roster(
    (
        Student("ada", "Ada Lovelace", "A", "ada@example.org", "alovelace", "S100", "12345"),
        Student("ben", "Ben Bitdiddle", "B", email="ben@example.org"),
    )
)


def rows(
    format_: str, *results: Result, roster: Roster = TWO, zero: bool = False
) -> list[list[str]]:
    return list(
        csv.reader(io.StringIO(FORMATS[format_](ClassView(results, ClassList(roster, zero)))))
    )


def test_of_a_wrong_attempt_in_a_gradebook_csv_does_not_say_that_nothing_explains_it() -> None:
    table = rows("csv", CAT, CAT.model_copy(update={"isolation": NOT_HELD}), roster=Roster())
    assert [row[-1] for row in table] == ["group", UNEXPLAINED, "not in the gradebook"]


def test_the_line_that_is_wrong_is_told_and_no_format_has_the_edit() -> None:
    texts = [
        *gradescope_files(ClassView([LINED])).values(),
        *(to(ClassView([LINED])) for to in FORMATS.values()),
    ]
    assert "You viewed straight to the shape (line 23)." in texts[0]
    assert "secret" not in "".join(texts)


def test_a_check_is_told_what_was_found_in_its_own_function_alone() -> None:
    functions = tuple(
        FunctionResult(name=name, state="wrong", check=f"checks {name}")
        for name in ("split", "merge")
    )
    checks = [
        check(name, 0, 1).model_copy(update={"function": name}) for name in ("split", "merge")
    ]
    named = (VIEW.model_copy(update={"function": "merge"}),)
    (text,) = gradescope_files(
        ClassView([result_of("cat", *checks, named=named, functions=functions)])
    ).values()
    assert text.count(VIEW.title) == 1
    assert text.index("checks merge") < text.index(VIEW.title)


def test_scores_keep_their_digits_and_canvas_leaves_blank_what_a_student_has_no_result_for() -> (
    None
):
    third = result_of("ada", check("split", 1234.5625, 2000))
    assert [rows("csv", third)[1][3], rows("canvas", third)[2][-1]] == ["1234.5625", "1234.5625"]
    dan = ADA.model_copy(update={"assignment": "tails", "student": "dan"})
    table = rows("canvas", BEN, dan, roster=Roster())
    assert [[row[0], row[3], *row[5:]] for row in table[2:]] == [
        ["ben", "ben", "2", ""],
        ["dan", "dan", "", "3.25"],
    ]
    nameless = Roster((Student("ben"),))
    assert rows("canvas", BEN, roster=nameless)[2][0] == "ben"


@pytest.mark.parametrize(("zero", "cell"), [(False, ""), (True, "0")])
def test_gradebooks_get_their_ids_and_a_row_for_whoever_handed_in_nothing(
    zero: bool, cell: str
) -> None:
    assert rows("canvas", ADA, zero=zero) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "heads"],
        ["    Points Possible", "", "", "", "", "3.25"],
        ["Ada Lovelace", "12345", "S100", "alovelace", "A", "3.25"],
        ["Ben Bitdiddle", "", "", "ben", "B", cell],
    ]
    assert rows("moodle", ADA, zero=zero) == [
        ["Username", "ID number", "Email address", "heads"],
        ["alovelace", "S100", "ada@example.org", "3.25"],
        ["ben", "", "ben@example.org", cell],
    ]
    tails = [result_of(name, check("split", 3, 4), assignment="tails") for name in ("ada", "ben")]
    assert [row[:1] + row[2:5] for row in rows("csv", ADA, *tails, zero=zero)[1:]] == [
        ["ada", "heads_1", "3.25", "3.25"],
        ["ben", "heads_1", cell, "3.25"],
        ["ada", "tails_1", "3", "4"],
        ["ben", "tails_1", "3", "4"],
    ]


@pytest.mark.parametrize("format_", ["canvas", "moodle"])
def test_who_is_no_longer_on_the_roster_is_in_no_platforms_file(format_: str) -> None:
    dropped = ADA.model_copy(update={"student": "dropped"})
    assert "dropped" not in str(rows(format_, ADA, dropped))
    assert "dropped" in str(rows(format_, ADA, dropped, roster=Roster())), (
        "without a roster everybody is"
    )
    assert "dropped" in str(rows("csv", ADA, dropped))


def test_gradescope_gets_what_was_seen_the_name_and_the_hint() -> None:
    files = gradescope_files(ClassView([ADA, BEN]))
    assert list(files) == [Path("ada/heads/results.json"), Path("ben/heads/results.json")]
    ben = json.loads(files[Path("ben/heads/results.json")])
    assert ben["score"] == 2 == sum(test["score"] for test in ben["tests"])
    assert "The .py counts." in ben["output"]
    assert [(test["status"], test["number"], test["output"]) for test in ben["tests"]] == [
        (
            "failed",
            "1.1",
            "head 0 differs\nYou viewed straight to the shape.\nhint: Which axis first?",
        ),
        ("passed", "1.2", ""),
    ]
    (unnamed,) = gradescope_files(ClassView([result_of("ada", check("split", 0, 1))])).values()
    assert json.loads(unnamed)["tests"][0]["output"] == "head 0 differs"


def test_the_command_writes_a_file_or_for_gradescope_a_folder(
    run_course: Run, tmp_path: Path
) -> None:
    for result in (ADA, BEN):
        write_result(result, tmp_path / "results")
    assert (
        run_course("export", "results", "--format", "canvas", "--out", "to/grades.csv").returncode
        == 0
    )
    assert (tmp_path / "to" / "grades.csv").read_text() == FORMATS["canvas"](ClassView([ADA, BEN]))
    assert (
        run_course(
            "export", "results", "--format", "gradescope", "--out", "to/gradescope"
        ).returncode
        == 0
    )
    written = {
        p.relative_to(tmp_path / "to" / "gradescope"): p.read_text()
        for p in tmp_path.glob("to/*/*/*/*")
    }
    assert written == gradescope_files(ClassView([ADA, BEN]))


@pytest.mark.parametrize(
    ("arguments", "says", "next_"),
    [
        pytest.param(
            ["nowhere"],
            "nowhere holds no results",
            "course grade SUBMITTED --out nowhere",
            id="no results",
        ),
        pytest.param(
            ["results", "--format", "gradescope"],
            "Gradescope reads a file for each submission",
            "the same with --out FOLDER",
            id="Gradescope without a folder",
        ),
        pytest.param(
            ["results", "--out", "results"],
            "results cannot be written",
            "give --out another path",
            id="a folder in place of a file",
        ),
        pytest.param(
            ["--gradebook", "sqlite:///none.db", "--course", str(TINY)],
            "there is no none.db",
            "course grade SUBMITTED --gradebook sqlite:///none.db",
            id="no gradebook",
        ),
    ],
)
def test_wrong_usage_is_one_sentence_and_a_next_command(
    run_course, tmp_path, arguments, says, next_
):
    write_result(ADA, tmp_path / "results")
    completed = run_course("export", *arguments)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert says in completed.stderr
    assert completed.stderr.endswith(f"Next: {next_}\n")
    assert not (tmp_path / "none.db").exists()


SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe63"
BLANKS = ("", " ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\t", "\r", "\x00")
FORMULAS = [f"{blank}{sign}1+1" for blank in BLANKS for sign in SIGNS]
INNER = [
    "ada;=1+1",
    "ada\t=1+1",
    'ada";=1+1',
    "ada;\u00a0@x",
    "ada|+1",
    "ada,=1+1",
    "ada\n=1+1",
    "ada;;-1",
]
PLAIN = [
    "Ada",
    "ada",
    "ADA",
    "e\u0301",
    "\u00e9",
    "Ben-Gurion, O'Neil =x",
    'Jo "Q" Doe',
    "x" * 120,
    "report",
    "..",
    "CON",
    "nul.txt",
    "a.",
    "محمد\u200cرضا",
    "ශ්\u200dරී",
    "עדה",
    "Points Possible",
    "    Points Possible",
    "Muted",
    "Student",
    "ID",
    "12",
    "007",
    "<b>ada</b>",
    "student",
    "-",
    "Zoë Ødegård; Dr.",
    "a\\b",
    "ada [1]",
    "results.json",
]
UNSEEN = ["\u202ezed", "z\x1b[2Jed", "z\u2066ada\u2069", "zed\x9b1m"]
NAMES = [*FORMULAS, *INNER, *PLAIN, *UNSEEN]
TITLES = {
    "sums": "Adding up",
    "means": "Final Points of the middle",
    "maxima": "Adding Up",
    "two": "Homework (2)",
}
LABELS = Labels(TITLES, {f"{id_}_1": ("01", f"The {id_}") for id_ in TITLES})


def score_of(name: str, assignment: str) -> float:
    return NAMES.index(name) + list(TITLES).index(assignment) / 4


def graded_result(name: str, assignment: str, outcome: Outcome = "failed") -> Result:
    check = make.check(
        "c", score_of(name, assignment), 1000, outcome, title="has the values", evidence=name
    )
    return make.result(name, make.exercise(f"{assignment}_1", check), assignment=assignment)


CLASS = [
    graded_result(name, assignment)
    for name in NAMES
    for assignment in ("means", "sums", "two", "maxima")
]
ROSTER = Roster(
    tuple(
        Student(name, name, name, f"s{i}@example.org", f"login{i}", f"S{i}", str(900 + i))
        for i, name in enumerate(NAMES)
    )
)


def export_scores(format_: str, members: ClassList) -> str:
    return FORMATS[format_](ClassView(CLASS, members, LABELS))


def cells_in(text: str) -> Iterator[str]:
    """Every cell that a spreadsheet of any country may make of it: a quote that does not begin a
    cell is a letter like any other.
    """
    for separator in ",;\t|":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            yield from row


def test_a_sign_with_a_stroke_over_it_is_still_a_sign() -> None:
    """U+0338 makes one letter of both, ≠, in a text that is normalised as a whole."""
    assert cell_of("=\u03381+1") == "'=\u03381+1"


def is_formula(cell: str) -> bool:
    """Whether it begins with a sign of a formula: as it is, behind blanks and what cannot be seen,
    or full-width.
    """
    visible = [letter for letter in cell if unicodedata.category(letter)[0] not in "CZ"]
    return (
        bool(visible)
        and visible[0] in SIGNS
        and cell.strip() != "-"
        and not re.fullmatch(r"-?[\d.]+", cell)
    )


@pytest.mark.parametrize(
    "members", [ClassList(ROSTER), ClassList()], ids=["with a roster", "without one"]
)
@pytest.mark.parametrize("format_", sorted(FORMATS))
def test_a_spreadsheet_finds_no_formula_whatever_separates_its_cells(
    format_: str, members: ClassList
) -> None:
    assert [cell for cell in cells_in(export_scores(format_, members)) if is_formula(cell)] == []


@pytest.mark.parametrize(
    "members", [ClassList(ROSTER), ClassList()], ids=["with a roster", "without one"]
)
@pytest.mark.parametrize("format_", sorted(FORMATS))
def test_nothing_in_a_table_moves_a_cursor_or_turns_a_line_around(
    format_: str, members: ClassList
) -> None:
    assert unseen_in(export_scores(format_, members)) == set()


def test_nothing_in_gradescopes_files_moves_a_cursor_or_turns_a_line_around() -> None:
    adjustment = Adjustment(rule="score", words="set to 3 by \u202eX: \x1b[2Jgone")
    view = ClassView(
        [result.model_copy(update={"adjustments": (adjustment,)}) for result in CLASS],
        labels=LABELS,
    )
    for text in gradescope_files(view).values():
        result = json.loads(text)
        texts = [
            result["output"],
            *(test[key] for test in result["tests"] for key in ("name", "output")),
        ]
        assert unseen_in("".join(texts)) == set()


def unseen_in(text: str) -> set[str]:
    """The characters that change how others are shown. Joiners are letters' own."""
    controls = {
        letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    return controls - {"\n", "\t", "\u200c", "\u200d"}


def test_csv_has_everybodys_score() -> None:
    rows = list(csv.DictReader(io.StringIO(export_scores("csv", ClassList()), newline="")))
    assert {(as_typed(row["student"]), row["assignment"]): float(row["score"]) for row in rows} == {
        (as_typed(r.student), r.assignment): r.score for r in CLASS
    }
    assert {len(row) for row in rows} == {13}
    assert {*PLAIN} - {"-"} <= {row["student"] for row in rows}, "what is no formula is untouched"
    assert [*dict.fromkeys(row["assignment_title"] for row in rows)] == list(TITLES.values())


def as_typed(name: str) -> str:
    """A name as somebody reads it in the spreadsheet, where the quote that makes it text does not
    show.
    """
    without_quotes = re.sub(r"(^|(?<=[;\t|]))'", "", name)
    return re.sub(
        r"[\u200b\ufeff\u202e\u2066\u2069]",
        "",
        re.sub(r"[\x00-\x1f\x80-\x9f]", " ", without_quotes),
    )


COMPUTED = re.compile(
    "Current Score|Current Points|Current Grade|Final Score|Final Points|Final Grade|Override "
)


def column_counts(lines: list[str], delimiter: str) -> set[int]:
    return {len(next(csv.reader([line], delimiter=delimiter), [])) for line in lines}


def as_canvas_reads(
    text: str, find: Callable[[list[str]], str | None]
) -> dict[str, dict[str, str]]:
    """Whose grade lib/gradebook_importer.rb takes for which assignment. find: whose row it is, by
    ID, SIS User ID, SIS Login ID or name.
    """
    head = text.splitlines()[:3]
    semicolons, commas = column_counts(head, ";"), column_counts(head, ",")
    assert not (len(semicolons) == 1 and min(semicolons) > min(commas)), (
        "it would be read as separated by semicolons"
    )
    header, *rows = [
        row for row in csv.reader(io.StringIO(text, newline="")) if "".join(row).strip("; ,")
    ]
    assert header[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    columns = {
        column: title
        for column, title in enumerate(header)
        if column > 4 and not COMPUTED.search(title)
    }
    assert len(columns) == len(header) - 5, "a column is passed over"
    assert not [title for title in columns.values() if re.search(r"\(\d+\)\s*$", title)], (
        "it is taken for an id"
    )
    assert len({title.casefold() for title in columns.values()}) == len(columns)
    grades: dict[str, dict[str, str]] = {}
    points = [row for row in rows if "Points Possible" in row[0]]
    assert len(points) == 1, "a student changes the points"
    assert {points[0][column] for column in columns} == {"1000"}, "a student changes the points"
    for row in (row for row in rows if "Points Possible" not in row[0]):
        if any(not re.fullmatch(r"(?i)\s*(Muted|Manual Posting.*)?\s*", cell) for cell in row):
            student = find(row)
            assert student is not None, row
            assert student not in grades, row
            grades[student] = {title: row[column].strip() for column, title in columns.items()}
    return grades


CANVAS_TITLES = {
    "sums": "Adding up [sums]",
    "means": "means",
    "maxima": "Adding Up [maxima]",
    "two": "Homework (2) [two]",
}


def test_canvas_gives_everybody_the_own_scores() -> None:
    student_ids = {student.canvas_id: student.id for student in ROSTER.students}
    grades = as_canvas_reads(
        export_scores("canvas", ClassList(ROSTER)), lambda row: student_ids.get(row[1])
    )
    scores = {
        (name, title): score_of(name, id_) for name in NAMES for id_, title in CANVAS_TITLES.items()
    }
    assert {
        (name, title): float(score) for name, row in grades.items() for title, score in row.items()
    } == scores


@pytest.mark.parametrize(
    ("column", "field"),
    [("Username", "login"), ("ID number", "sis_id"), ("Email address", "email")],
)
def test_moodle_gives_everybody_the_own_scores(column: str, field: str) -> None:
    """As in grade/import/csv/classes/load_data.php: the instructor says which column identifies,
    and which is whose grade.
    """
    header, *rows = csv.reader(io.StringIO(export_scores("moodle", ClassList(ROSTER)), newline=""))
    header = [title.strip() for title in header]
    assert len(set(header)) == len(header) == 3 + len(TITLES)
    assert {len(row) for row in rows} == {len(header)}
    users = {getattr(student, field): student.id for student in ROSTER.students}
    grades = {users[row[header.index(column)]]: row for row in rows}
    assert len(grades) == len(rows) == len(NAMES)
    for name, row in grades.items():
        values = [None if cell in ("", "-") else float(cell) for cell in row[3:]]
        assert values == [score_of(name, id_) for id_ in TITLES]


FORMS = {"text", "html", "simple_format", "md", "ansi"}
WHENS = {"hidden", "after_due_date", "after_published", "visible"}


def as_gradescope_reads(text: str) -> tuple[float, list[tuple[str, float, float]]]:
    """The score of a submission, and of each of its tests, by the specification of autograders."""
    data = json.loads(text)
    assert set(data) <= {
        "score",
        "execution_time",
        "output",
        "output_format",
        "test_output_format",
        "test_name_format",
        "visibility",
        "stdout_visibility",
        "extra_data",
        "tests",
        "leaderboard",
    }
    assert {data.get("output_format", "text")} <= FORMS
    assert {data.get("visibility", "visible"), data.get("stdout_visibility", "hidden")} <= WHENS
    tests = []
    for test in data["tests"]:
        assert set(test) <= {
            "score",
            "max_score",
            "status",
            "name",
            "name_format",
            "number",
            "output",
            "output_format",
            "tags",
            "visibility",
            "extra_data",
        }
        assert test["status"] in ("passed", "failed")
        assert {test["output_format"], test["name_format"]} <= FORMS
        assert isinstance(test["number"], str)
        assert 0 <= test["score"] <= test["max_score"]
        tests.append((test["name"], test["score"], test["max_score"]))
    return data["score"], tests


def test_gradescope_gets_a_file_for_every_submission_on_every_file_system() -> None:
    files = gradescope_files(ClassView(CLASS, labels=LABELS))
    assert len(files) == len(CLASS)
    folded = {unicodedata.normalize("NFC", path.as_posix()).casefold() for path in files}
    assert len(folded) == len(files)
    assert {(path.is_absolute(), len(path.parts)) for path in files} == {(False, 3)}
    for component in {component for path in files for component in path.parts[:2]}:
        assert component == component.strip().rstrip(".")
        assert not re.search(
            r'[<>:"|?*\x00-\x1f\\]|(?i:^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$)', component
        )
        assert len(component.encode()) <= 255


def test_gradescope_reads_every_score_under_the_exercises_title() -> None:
    for result, text in zip(
        CLASS, gradescope_files(ClassView(CLASS, labels=LABELS)).values(), strict=True
    ):
        tests = [(f"01 The {result.assignment}: has the values", result.score, 1000)]
        assert as_gradescope_reads(text) == (result.score, tests)
