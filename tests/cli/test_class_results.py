"""Commands that show the results of a class: report, export, feedback and overrides.

They agree on titles, due dates, decisions of the instructor and the roster. A file that could not
be read or graded gets a blank score, never a 0.
"""

import codecs
import csv
import io
import json
import re
import shutil
import unicodedata
import zipfile
from functools import partial

import pytest

from manyheads.course.course_yaml_schema import moment
from manyheads.report.score_exports import FORMATS
from manyheads.result import Diagnosed, HandedIn, write_result
from manyheads.submission.intake_journal import read_journal
from tests import make
from tests.cli.conftest import one_line_of
from tests.make import TINY, call_course

COURSE = """\
title: Averages
time_zone: UTC
late: {per_day: 10%, at_most: 50%}
assignments:
  - id: averages
    title: Averages
    due: 2026-12-01 18:00
    exercises:
      - {id: mean, title: The mean, points: 4, hint: Count.}
      - {id: median, title: The median, points: 6, hint: Sort first.}
"""
OVERRIDES = """\
- {student: bela, assignment: averages, due: 2026-12-08 18:00, by: Dr. X, comment: ill}
- {student: chen, exercise: median, excused: true}
- {student: dara, assignment: averages, excused: true}
- {student: '=ewa', exercise: mean, score: 1.5, by: Dr. X}
"""
LATE = "1 day 18 hours after 18:00: 2 days late, −20% (10% a day, at most 50%)"
# final points of 10, after the late penalty and overrides.yaml
SCORES = {"ada": 7.2, "bela": 9, "chen": 2.4, "dara": 0, "=ewa": 6.3}
# the score columns of gradebooks: chen has 2.4 of the 4 points that count, which are 6 of 10
EXPORTED = {"ada": "7.2", "bela": "9", "chen": "6", "=ewa": "6.3"}


def late_result(student, **fields):
    """Return a result with 3 of 4 and 6 of 6 points, handed in two days late.

    fields: values that replace fields of the result.
    """
    values = make.check("values", 2, 3, title="has the values", evidence="1 differs")
    mean = make.exercise("mean", make.check("shape", 1, title="has the shape"), values)
    median = make.exercise("median", make.check("odd", 6, 6, title="odd lengths"))
    handed_in = HandedIn(source="clones", time=moment("2026-12-03T12:00Z"))
    return make.result(student, mean, median, **{"handed_in": handed_in, **fields})


@pytest.fixture
def course_with_decisions(tmp_path):
    """Write a course with an overrides.yaml and the results of five students; return its folder."""
    (tmp_path / "course.yaml").write_text(COURSE)
    (tmp_path / "overrides.yaml").write_text(OVERRIDES)
    (tmp_path / "solutions").mkdir()
    for student in SCORES:
        write_result(late_result(student), tmp_path / "results")
    return tmp_path


@pytest.fixture
def run_here(tmp_path):
    """Return a function that runs a command in the folder of the course."""
    return partial(call_course, cwd=tmp_path)


@pytest.fixture
def export(run_here):
    """Return a function that runs `course export results` with a format and options."""
    return lambda name, *options: run_here("export", "results", "--format", name, *options)


def rows_of(completed):
    """Return the rows of a CSV file that a command printed."""
    assert completed.returncode == 0, completed.stderr
    return list(csv.DictReader(io.StringIO(completed.stdout)))


def output_words(completed):
    """Return stdout and stderr as one line."""
    return one_line_of(completed.stdout + completed.stderr)


@pytest.mark.usefixtures("course_with_decisions")
def test_csv_export_has_final_scores_and_the_decisions_behind_them(export):
    rows = rows_of(export("csv"))
    sums = dict.fromkeys(SCORES, 0.0)
    for row in rows:
        sums[row["student"].lstrip("'")] += float(row["score"] or 0)
    assert sums == pytest.approx(SCORES)
    decisions = {(row["student"], row["exercise"]): row["decided"] for row in rows}
    assert decisions["ada", "mean"] == f"{LATE} (9 → 7.2)"
    assert decisions["bela", "median"] == "extension until 2026-12-08 18:00 UTC by Dr. X: ill"
    assert decisions["chen", "median"] == f"{LATE} (3 → 2.4); excused: counts for nothing (4.8 → 0)"
    assert decisions["'=ewa", "mean"].endswith("score set to 1.5 by Dr. X (3 → 1.5)")
    assert [row["max_score"] for row in rows if row["student"] == "chen"] == ["4", ""]
    dara_rows = [row for row in rows if row["student"] == "dara"]
    assert {(row["score"], row["max_score"], row["group"]) for row in dara_rows} == {("", "", "")}
    assert all("excused: counts for nothing" in row["decided"] for row in dara_rows)


@pytest.mark.usefixtures("course_with_decisions")
@pytest.mark.parametrize(
    ("export_format", "heading", "dara_score", "excuse_note"),
    [
        ("canvas", {"Student": "Averages", "    Points Possible": "10"}, "EX", ""),
        ("moodle", {"Username": "Averages"}, "", "Moodle has no word for that: its cell is blank."),
    ],
)
def test_gradebook_exports_scale_scores_to_all_points_and_print_decisions_on_stderr(
    export, export_format, heading, dara_score, excuse_note
):
    completed = export(export_format)
    table = {row[0].lstrip("'"): row[-1] for row in csv.reader(io.StringIO(completed.stdout))}
    assert table == {**heading, **EXPORTED, "dara": dara_score}
    assert "\n'=ewa," in completed.stdout
    assert f"decided: ada: Averages: {LATE} (9 → 7.2)\n" in completed.stderr
    assert completed.stderr.count("has no word") == bool(excuse_note)
    if excuse_note:
        assert f"excused: dara: Averages is excused, and {excuse_note}" in completed.stderr


@pytest.mark.parametrize(
    ("export_format", "has_bom"), [("csv", True), ("canvas", False), ("moodle", False)]
)
def test_only_the_csv_export_begins_with_a_byte_order_mark(
    export, course_with_decisions, export_format, has_bom
):
    assert export(export_format, "--out", "grades.csv").returncode == 0
    assert (course_with_decisions / "grades.csv").read_bytes().startswith(
        codecs.BOM_UTF8
    ) is has_bom


def test_gradescope_export_omits_the_score_of_an_excused_student(export, course_with_decisions):
    completed = export("gradescope", "--out", "files")
    assert completed.returncode == 0
    assert (
        "excused: dara: Averages is excused, and Gradescope has no word for that: no score is "
        "entered. Next: "
    ) in completed.stderr
    ada, dara = (
        json.loads(
            (course_with_decisions / "files" / student / "averages" / "results.json").read_text()
        )
        for student in ("ada", "dara")
    )
    assert ada["score"] == 7.2
    assert f"Averages: {LATE} (9 → 7.2)" in ada["output"].splitlines()
    assert dara.keys() == {"output", "output_format"}
    assert "excused: counts for nothing" in dara["output"]


def test_report_shows_decisions_in_the_terminal_and_on_its_pages(run_here, course_with_decisions):
    completed = run_here("report", "results", "--students")
    assert completed.returncode == 0, completed.stderr
    lines = [line.split() for line in completed.stdout.splitlines()]
    assert ["chen", "2.4*", "ex", "2.4/4"] in [line[:4] for line in lines]
    assert ["dara", "ex", "ex", "0/0"] in [line[:4] for line in lines]
    assert f"decided: ada: Averages: {LATE} (9 → 7.2)" in completed.stdout
    pages = course_with_decisions / "results" / "report"
    index, ada = ((pages / name).read_text() for name in ("index.html", "students/ada.html"))
    assert "Dates and decisions" in index
    assert f"<td>{LATE} (9 → 7.2)</td>" in index
    assert f"<li>{LATE} (9 → 7.2)</li>" in ada
    assert "7.2 / 10" in ada
    assert "Dr. X" not in ada  # students do not see who decided


def test_feedback_shows_excused_instead_of_points(run_here, course_with_decisions):
    assert run_here("feedback", "results", "--out", "home").returncode == 0
    chen, dara = (
        course_with_decisions / "home" / "feedback" / name / "averages" for name in ("chen", "dara")
    )
    assert "| 02 The median | excused |" in (chen / "averages.md").read_text()
    assert '<span class="points">excused</span>' in (chen / "averages.html").read_text()
    text = (dara / "averages.md").read_text()
    assert text.startswith("## Averages: excused\n")
    assert text.count(" | excused |") == 2


def test_export_includes_a_roster_student_who_handed_in_nothing(export, course_with_decisions):
    (course_with_decisions / "overrides.yaml").write_text(
        "- {student: zoe, exercise: median, score: 5, comment: on paper}\n"
    )
    (course_with_decisions / "roster.csv").write_text("id\nada\nzoe\n")
    assert "there is no student 'zoe'" in export("csv").stderr
    rows = rows_of(export("csv", "--roster", "roster.csv"))
    zoe_rows = [row for row in rows if row["student"] == "zoe"]
    assert [(row["exercise"], row["score"], row["decided"]) for row in zoe_rows] == [
        ("mean", "0", ""),
        ("median", "5", "score set to 5: on paper (0 → 5)"),
    ]


def test_report_and_export_use_the_roster_named_in_course_yaml(run_here, course_with_decisions):
    (course_with_decisions / "overrides.yaml").unlink()
    (course_with_decisions / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    (course_with_decisions / "roster.csv").write_text("id\nada\nzoe\n")
    assert "Handed in nothing: 1 of 2 on the roster: zoe" in run_here("report", "results").stdout
    assert "zoe" in run_here("export", "results", "--format", "canvas").stdout


@pytest.mark.parametrize("command", ["report", "export"])
@pytest.mark.parametrize(
    ("roster", "ending"),
    [
        pytest.param("id\nyves\n", ", or --roster none\n", id="it knows nobody"),
        pytest.param(None, "(roster: FILE) or by --roster\n", id="it is missing"),
    ],
)
def test_roster_none_disables_an_unusable_roster_from_course_yaml(
    run_here, course_with_decisions, command, roster, ending
):
    (course_with_decisions / "overrides.yaml").unlink()
    (course_with_decisions / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    if roster:
        (course_with_decisions / "roster.csv").write_text(roster)
    assert run_here(command, "results").stderr.endswith(ending)
    assert run_here(command, "results", "--roster", "none").returncode == 0


def test_section_option_limits_report_export_and_feedback(run_here, export, course_with_decisions):
    (course_with_decisions / "overrides.yaml").unlink()
    (course_with_decisions / "roster.csv").write_text(
        "id,name,section,github\nada,Ada,A,\nb,Bela,B,Bela\nchen,Chen,b,\nzoe,Zoe,B,\n"
    )
    assert run_here("report", "results", "--roster", "roster.csv").returncode == 0
    section = ("--roster", "roster.csv", "--section", "B")
    completed = run_here("report", "results", "--students", *section)
    lines = [line.split()[0] for line in completed.stdout.splitlines() if "/10" in line]
    assert lines == ["b", "chen", "zoe"], "bela is b's account on GitHub"
    assert "Handed in nothing: 1 of 3 on the roster: Zoe\n" in completed.stdout
    pages = course_with_decisions / "results" / "report"
    index = (pages / "index.html").read_text()
    assert "Zoe" in index
    assert "ada" not in index  # who is in section A
    assert (pages / "students" / "ada.html").exists(), "pages of other sections stay"
    assert {row["student"] for row in rows_of(export("csv", *section))} == {"b", "chen", "zoe"}
    assert run_here("feedback", "results", *section).returncode == 0
    assert sorted(
        path.name for path in (course_with_decisions / "home" / "feedback").iterdir()
    ) == [
        "b",
        "chen",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            "--section A",
            "--section needs a roster with sections. Next: the same with --roster FILE",
            id="no roster",
        ),
        pytest.param(
            "--section C --roster roster.csv",
            "there is no section 'C'; there are: A, B. Next: the same with --section A",
            id="no such section",
        ),
        pytest.param(
            "--section B --roster roster.csv",
            "nobody of section B has a result. Next: course grade SUBMITTED",
            id="no result of the section",
        ),
        pytest.param(
            "--roster twice.csv",
            "bela and chen are one student by the roster. Next: take the results that do not "
            "count out of the folder",
            id="two results of one student",
        ),
    ],
)
def test_report_refuses_an_unusable_section_or_roster_in_one_line(
    run_here, course_with_decisions, options, message
):
    (course_with_decisions / "overrides.yaml").unlink()
    (course_with_decisions / "roster.csv").write_text("id,section\nada,A\nzoe,B\n")
    (course_with_decisions / "twice.csv").write_text("id,github\nbela,Chen\n")
    completed = run_here("report", "results", *options.split())
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr == f"course: {message}\n"


def test_report_prints_one_line_for_the_same_decision_about_several_students(
    run_here, course_with_decisions
):
    (course_with_decisions / "overrides.yaml").unlink()
    output = run_here("report", "results").stdout
    (line,) = [line for line in output.splitlines() if line.startswith("decided: ")]
    assert line == f"decided: =ewa, ada, bela, chen, dara: Averages: {LATE} (9 → 7.2)"


def test_export_without_course_yaml_warns_that_no_decision_is_applied(
    export, course_with_decisions
):
    (course_with_decisions / "course.yaml").unlink()
    completed = export("csv")
    assert "ada,averages,mean,3,4" in completed.stdout
    assert completed.stderr.startswith(
        "course: no course.yaml is near: due dates and overrides.yaml are not applied. Next: "
    )


def test_export_finds_the_course_beside_the_results_folder(course_with_decisions, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    completed = call_course(
        "export", course_with_decisions / "results", "--format", "canvas", cwd=elsewhere
    )
    assert "\nada,,,ada,,7.2\n" in completed.stdout


def test_report_suggests_collect_once_if_a_submission_time_is_unknown(
    run_here, course_with_decisions
):
    write_result(late_result("ada", handed_in=None), course_with_decisions / "results")
    output = output_words(run_here("report", "results"))
    assert (
        "none of them counts as late: ada. Next: a score in "
        "overrides.yaml for whoever was late; of downloads from Moodle or Canvas, course collect "
        "DOWNLOAD --times LIST"
    ) in output
    assert output.count("course collect") == 1


def test_overrides_command_lists_decisions_and_refuses_an_incomplete_row(
    run_here, course_with_decisions
):
    completed = run_here("overrides")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith(
        "Averages: due 2026-12-01 18:00 UTC; late: 10% a day, at most 50%, after a grace of 15 min"
    )
    assert "1 bela Averages due 2026-12-08 18:00 UTC Dr. X ill 2 chen" in output_words(completed)
    (course_with_decisions / "overrides.yaml").write_text("- {student: ada}")
    completed = run_here("overrides")
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "overrides.yaml:1: a row has one of" in completed.stderr


def test_overrides_command_reports_an_unknown_student(run_here, course_with_decisions):
    with (course_with_decisions / "overrides.yaml").open("a") as file:
        file.write("- {student: belaa, exercise: mean, score: 1}\n")
    completed = run_here("overrides")
    assert completed.returncode == 2
    assert "overrides.yaml:5: there is no student 'belaa' (is 'bela' meant?)" in output_words(
        completed
    )
    assert re.search(r"belaa .*score 1", completed.stdout)


def test_overrides_command_without_results_compares_students_with_the_roster(
    run_here, course_with_decisions
):
    shutil.rmtree(course_with_decisions / "results")
    completed = run_here("overrides")
    assert completed.returncode == 0
    assert "Whether these students exist is not known here, without a roster" in completed.stdout
    (course_with_decisions / "roster.csv").write_text("id\nada\nbela\nchen\ndara\n")
    (course_with_decisions / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    completed = run_here("overrides")
    assert completed.returncode == 2
    assert "there is no student '=ewa'" in output_words(completed)


def test_overrides_command_refuses_a_group_and_names_its_members(run_here, course_with_decisions):
    (course_with_decisions / "roster.csv").write_text(
        "id,group\nada,red\nbela,red\nchen,\ndara,\n=ewa,\n"
    )
    (course_with_decisions / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    (course_with_decisions / "submitted" / "red").mkdir(parents=True)
    (course_with_decisions / "overrides.yaml").write_text(
        "- {student: red, exercise: mean, score: 1}\n"
    )
    completed = run_here("overrides")
    assert completed.returncode == 2
    assert (
        "overrides.yaml:1: 'red' is a group, with ada and bela. Next: `group: red`"
    ) in output_words(completed)


ROWS_ABOUT_SEVERAL = """\
- {section: A, assignment: averages, due: 2026-12-02 18:00Z, comment: The lab had no power.}
- {group: red, exercise: mean, score: 4, by: Dr. X}
- {student: [bela, chen], exercise: median, excused: true}
- {student: ada, extra: 3 days, comment: As agreed.}
- {section: C, exercise: mean, score: 1}
"""
APPLIED_ROWS = """\
student  assignment  due                 other              by line  in place of
ada      Averages    2026-12-05 18:00    score 4: 01 The    1, 2, 4
                     UTC                 mean
bela     Averages    2026-12-02 18:00    excused: 02 The    1, 3
                     UTC                 median
chen     Averages                        score 4: 01 The    2, 3     5
                                         mean, excused: 02
                                         The median
"""


@pytest.fixture
def course_with_rows_about_several(course_with_decisions):
    """Write a roster and rows about a section, a group, a list and more time; return the folder."""
    (course_with_decisions / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    (course_with_decisions / "overrides.yaml").write_text(ROWS_ABOUT_SEVERAL)
    (course_with_decisions / "roster.csv").write_text(
        "id,section,group\nada,A,red\nbela,A,\nchen,C,red\ndara,B,\n=ewa,B,\nzoe,B,red\n"
    )
    return course_with_decisions


def test_overrides_command_lists_what_holds_for_each_student(
    run_here, course_with_rows_about_several
):
    roster = course_with_rows_about_several / "roster.csv"
    roster.write_text(roster.read_text().replace("zoe,B,red\n", ""))
    completed = run_here("overrides", COLUMNS="80")
    assert completed.returncode == 0, completed.stderr
    title, _, text = completed.stdout.partition("What holds for each student:\n")
    assert "\n1     section A   Averages  " in title
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines == APPLIED_ROWS.splitlines()
    assert max(map(len, lines)) <= 80


def test_export_and_report_apply_rows_about_several_students(
    run_here, export, course_with_rows_about_several
):
    rows = rows_of(export("csv"))
    points = {(row["student"], row["exercise"]): row["score"] for row in rows}
    assert points[("ada", "mean")] == "4"
    assert points[("ada", "median")] == "6", "more time until after the hand-in"
    assert points[("bela", "mean")] == "2.7", "one day late after the section's extension"
    assert points[("dara", "mean")] == "2.4", "two days late"
    assert points[("zoe", "mean")] == "4", "a group's score reaches who handed in nothing"
    report = run_here("report", "results", "--students")
    assert "3 days more, until 2026-12-05 18:00 UTC: As agreed." in output_words(report)


def test_overrides_command_says_that_no_row_is_about_the_assignment(
    run_here, course_with_rows_about_several
):
    course_yaml = course_with_rows_about_several / "course.yaml"
    second = "  - id: spread\n    title: Spread\n    exercises:\n"
    exercise = "      - {id: variance, title: Variance, points: 2, hint: Square it.}\n"
    course_yaml.write_text(course_yaml.read_text() + second + exercise)
    completed = run_here("overrides", "--assignment", "spread")
    assert completed.returncode == 0
    assert "overrides.yaml: no row is about Spread" in output_words(completed)


@pytest.mark.parametrize("command", ["overrides", "export results --format csv", "report results"])
def test_a_row_about_a_section_without_a_roster_is_refused(
    run_here, course_with_rows_about_several, command
):
    (course_with_rows_about_several / "course.yaml").write_text(COURSE)
    completed = run_here(*command.split())
    assert (completed.returncode, completed.stdout) == (2, "")
    assert one_line_of(completed.stderr).endswith(
        "overrides.yaml:1: section A needs a roster with a column `section`. Next: `roster: FILE` "
        "in course.yaml"
    )


# a decision whose texts hold escape codes, direction marks and half of a surrogate pair
CONTROL_CHARACTERS = r"""
- {student: ada, exercise: median, score: 4, by: "Dr. \u202eX",
   comment: "\e[2J\x9b1m\u2066محمد\u200cرضا\ud83d"}
"""


@pytest.mark.parametrize(
    "command",
    [
        "overrides",
        "report results --students --roster roster.csv",
        *(f"export results --format {name} --roster roster.csv" for name in sorted(FORMATS)),
    ],
)
def test_outputs_remove_control_characters_from_names_and_comments(
    run_here, course_with_decisions, command
):
    (course_with_decisions / "overrides.yaml").write_text(CONTROL_CHARACTERS)
    row = "ada,\u202eLovelace\x1b]0;title\x07 محمد\u200cرضا,A\x1b[1m\u2028B\n"
    (course_with_decisions / "roster.csv").write_text(f"id,name,section\n{row}", encoding="utf-8")
    completed = run_here(*command.split())
    pages = course_with_decisions.glob("results/report/**/*.html")
    output = completed.stdout + completed.stderr + "".join(page.read_text() for page in pages)
    assert "ada" in output
    controls = {c for c in output if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert controls - {"\n", "\u200b"} <= {"\u200c"}, "and names lose no letter"
    assert "محمد\u200cرضا" in output


TWO_ASSIGNMENTS = """\
title: Numbers
assignments:
  - id: z_sums
    title: Adding up
    exercises:
      - {id: one_total, title: The total, points: 2, hint: Add.}
      - {id: sub_totals, title: Subtotals, points: 2, hint: Add.}
  - id: a_means
    title: The middle
    exercises:
      - {id: one_mean, title: The mean, points: 2, hint: Divide.}
"""
IDS = ("z_sums", "a_means", "one_total", "sub_totals", "one_mean", "no_division", "by_two")
TITLES = ["Adding up", "01 The total", "02 Subtotals", "The middle", "01 The mean"]
BY_HAND = (
    "- {student: ada, exercise: sub_totals, score: 2, by: Dr. X}\n"
    "- {student: ben, exercise: one_mean, score: 1}\n"
)
NO_DIVISION = Diagnosed(
    id="no_division",
    title="You did not divide.",
    hint="?",
    alternatives=("by_two",),
    alternative_titles=("You divided by two.",),
)


@pytest.fixture
def two_assignment_course(tmp_path):
    """Write a course whose assignments are not in the alphabetical order of their ids."""
    (tmp_path / "course.yaml").write_text(TWO_ASSIGNMENTS)
    (tmp_path / "overrides.yaml").write_text(BY_HAND)
    (tmp_path / "solutions").mkdir()
    check = make.check("values", 0, 2, title="has the values")
    total, subtotal, mean = (
        make.exercise(id_, check, diagnosis=(NO_DIVISION,)) for id_ in IDS[2:5]
    )
    for student in ("ada", "ben"):
        # the exercises are in the order of an older course
        result = make.result(student, subtotal, total, assignment="z_sums")
        write_result(result, tmp_path / "results")
    write_result(make.result("ben", mean, assignment="a_means"), tmp_path / "results")
    return tmp_path


def visible_text(page):
    """Return the text of a page's <main> element, with the labels of its images and links."""
    main = page.read_text(encoding="utf-8").partition("<main")[2]
    labelled = re.sub(r'<[^>]* (?:aria-label|alt|title)="([^"]*)"[^>]*>', r" \1 ", main)
    return re.sub("<[^>]*>", " ", labelled)


def assert_in_order(text, titles):
    """Assert that the text contains these titles in this order, and no id."""
    positions = [text.find(title) for title in titles]
    assert -1 not in positions, text
    assert positions == sorted(positions), text
    assert [id_ for id_ in IDS if id_ in text] == []


@pytest.mark.usefixtures("two_assignment_course")
@pytest.mark.parametrize(
    ("command", "titles"),
    [
        ("report results", TITLES),
        ("report results --students", TITLES),
        ("overrides", ["Adding up", "The middle", "02 Subtotals", "01 The mean"]),
    ],
)
def test_terminal_output_shows_titles_in_course_order(run_here, command, titles):
    completed = run_here(*command.split(), COLUMNS="80")
    assert completed.returncode == 0, completed.stderr
    assert_in_order(completed.stdout, titles)
    if command == "overrides":  # its table fits the width of the terminal
        assert max(map(len, completed.stdout.splitlines())) <= 80


def test_pages_and_feedback_show_titles_in_course_order(run_here, two_assignment_course):
    assert run_here("report", "results").returncode == 0
    pages = two_assignment_course / "results" / "report"
    for page in (pages / "index.html", pages / "students" / "ben.html"):
        assert_in_order(visible_text(page), ["Adding up", "Subtotals", "The middle", "The mean"])
    assert run_here("feedback", "results").returncode == 0
    for name, titles in (("z_sums", TITLES[:3]), ("a_means", TITLES[3:])):
        folder = two_assignment_course / "home" / "feedback" / "ben" / name
        markdown = (folder / f"{name}.md").read_text()
        assert [title for title in titles if title not in markdown] == []
        assert_in_order(visible_text(folder / f"{name}.html"), [])


@pytest.mark.usefixtures("two_assignment_course")
@pytest.mark.parametrize(
    ("command", "name", "shown", "hidden"),
    [
        pytest.param("report results", "a_means", "The middle", "Adding up", id="by its id"),
        pytest.param(
            "report results --students", "adding UP", "Adding up", "The middle", id="by its title"
        ),
        pytest.param("export results", "midd", "a_means", "z_sums", id="by a part of its title"),
        pytest.param("overrides", "The middle", "The middle", "Adding up", id="of overrides"),
    ],
)
def test_assignment_option_limits_the_output_to_one_assignment(
    run_here, command, name, shown, hidden
):
    completed = run_here(*command.split(), "--assignment", name)
    assert completed.returncode == 0, completed.stderr
    assert shown in completed.stdout
    assert hidden not in completed.stdout


def test_collect_for_one_assignment_counts_the_files_it_leaves_out(run_here, two_assignment_course):
    folder = two_assignment_course / "download" / "ada"
    folder.mkdir(parents=True)
    for name in ("01_one_total.py", "01_one_mean.py"):
        (folder / name).write_text("def f():\n    pass\n")
    completed = run_here("collect", "download", "--assignment", "adding")
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "note: of other assignments, and left out: 1\n" in completed.stdout
    submitted = two_assignment_course / "submitted"
    collected = [path.relative_to(submitted).as_posix() for path in submitted.glob("*/*/*.py")]
    assert collected == ["ada/z_sums/01_one_total.py"]


@pytest.fixture
def results_of_two_students(tmp_path):
    """Write the results of ada, whose attempt is right, and ben, whose attempt is wrong."""
    shutil.copy(TINY / "course.yaml", tmp_path)
    for student, score in (("ada", 2.0), ("ben", 0.0)):
        check = make.check("mean", score, 2, title="averages")
        result = make.result(student, make.exercise("running_mean", check))
        write_result(result, tmp_path / "results")
    return tmp_path / "results"


def test_report_prints_class_totals_student_rows_and_the_path_of_its_pages(
    run_here, results_of_two_students
):
    completed = run_here("report", "results")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert (
        "Averages\n01 The running mean                       2 attempts, 1 full, mean 1.00 / 2"
    ) in completed.stdout
    assert completed.stdout.endswith(
        "2 submissions, isolation: namespaces\nPages: results/report/index.html\n"
    )
    pages = sorted(
        path.name for path in (results_of_two_students / "report" / "students").iterdir()
    )
    assert pages == ["ada.html", "ben.html"]
    students = run_here("report", "results", "--students", "--html", "web/heads").stdout
    row_of_ben = ["ben", "0", "0/2"]
    assert row_of_ben not in [line.split() for line in completed.stdout.splitlines()]
    assert row_of_ben in [line.split() for line in students.splitlines()]
    assert students.endswith("Pages: web/heads/index.html\n")
    assert (results_of_two_students.parent / "web" / "heads" / "students" / "ada.html").is_file()


def test_report_names_an_unreadable_result_and_includes_the_others(
    run_here, results_of_two_students
):
    (results_of_two_students / "ben" / "averages.json").write_text('{"student": "ben", ')
    completed = run_here("report", "results")
    assert completed.returncode == 2
    assert completed.stderr == (
        "course: results/ben/averages.json is no result of this version. Next: course grade "
        "again, or remove it\n"
    )
    assert "1 submission, isolation: namespaces" in completed.stdout
    page = (results_of_two_students / "report" / "index.html").read_text()
    assert "results/ben/averages.json is no result of this version." in page
    assert not (results_of_two_students / "report" / "students" / "ben.html").exists()
    (results_of_two_students / "ada" / "averages.json").write_text("")
    assert run_here("report", "results", "--html", "web").stdout == ""
    assert not (results_of_two_students.parent / "web").exists(), (
        "without a readable result there are no pages"
    )


def test_report_exits_with_2_if_it_cannot_write_its_pages(run_here, results_of_two_students):
    (results_of_two_students.parent / "taken").write_text("")
    completed = run_here("report", "results", "--html", "taken/here")
    assert completed.returncode == 2
    assert "2 submissions" in completed.stdout
    assert completed.stderr.endswith("Next: course report --html ANOTHER_FOLDER\n")


@pytest.mark.bwrap
def test_report_with_submitted_option_draws_pictures_of_wrong_answers(
    run_course, results_of_two_students, tiny_copy
):
    for student, divided_by in (("ada", "torch.arange(1, len(x) + 1)"), ("ben", "len(x)")):
        folder = results_of_two_students.parent / "handed in" / student / "averages"
        folder.mkdir(parents=True)
        source = f"import torch\ndef running_mean(x):\n    return x.cumsum(0) / {divided_by}\n"
        (folder / "01_running_mean.py").write_text(source)
    completed = run_course("report", "results", "--submitted", "handed in", "--course", tiny_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "\n1 of 1 wrong attempt has pictures, drawn in " in completed.stdout
    ada, ben = (
        (results_of_two_students / "report" / "students" / f"{student}.html").read_text()
        for student in ("ada", "ben")
    )
    assert "running_mean(x): the largest difference is " in ben
    assert "<figure" not in ada


def test_report_refuses_a_submitted_folder_without_students_of_the_results(
    run_here, results_of_two_students, tiny_copy
):
    submitted = tiny_copy / "handed in"
    (submitted / "zoe" / "averages").mkdir(parents=True)
    completed = run_here(
        "report", results_of_two_students, "--submitted", submitted, "--course", tiny_copy
    )
    assert completed.returncode == 2
    assert (
        f"course: {submitted} has no submission of these results. Next: course report "
    ) in completed.stderr
    assert not (results_of_two_students / "report").exists()


def test_report_lists_a_misconception_that_came_back_in_a_later_exercise(
    run_here, results_of_two_students
):
    diagnosis = (
        Diagnosed(id="axis", title="You averaged over the wrong axis.", hint="Which one?"),
    )
    check = make.check("mean", 0, 2, title="averages")
    exercises = [
        make.exercise(id_, check, diagnosis=diagnosis) for id_ in ("running_mean", "later")
    ]
    write_result(make.result("ben", *exercises), results_of_two_students)
    assert (
        "Came back for 1, in later after 01 The running mean: You averaged over the wrong axis."
    ) in run_here("report", "results").stdout
    page = (results_of_two_students / "report" / "index.html").read_text()
    assert "Misconceptions that came back" in page
    assert "<td>01 The running mean</td><td>later</td>" in page


# a script that runs and scores 0
MEAN = "def running_mean(x):\n    return x\n"
FILE = "01_running_mean.py"
RAR = "bartokbela_12346_678902_work.rar"
UNREADABLE = f"not graded: bela: handed in, not readable: {RAR}"


@pytest.fixture
def run_on_canvas_class(run_course, tiny_copy):
    """Return a function that runs a command line on a download from Canvas.

    ada handed in a script, bela an archive that cannot be opened, and cleo nothing.
    """
    with zipfile.ZipFile(tiny_copy / "submissions.zip", "w") as archive:
        archive.writestr(f"lovelaceada_12345_678901_{FILE}", MEAN)
        archive.writestr(RAR, b"Rar!")
    (tiny_copy / "roster.csv").write_text(
        "id,name,canvas_id\nada,Ada,12345\nbela,Bela,12346\ncleo,Cleo,12347\n"
    )
    course_file = tiny_copy / "course.yaml"
    course_file.write_text(f"not_handed_in: zero\nroster: roster.csv\n{course_file.read_text()}")

    def run(line):
        words = line.split()
        # only `grade` needs a process of its own
        run_command = run_course if words[0] == "grade" else call_course
        return run_command(*words, cwd=tiny_copy)

    return run


COLLECT, GRADE = "collect submissions.zip", "grade submitted --jobs 1 --no-lines --seed 1"


def canvas_scores(run_on_canvas_class):
    """Return the scores of the Canvas export by the students' ids."""
    rows = csv.reader(io.StringIO(run_on_canvas_class("export --format canvas").stdout))
    return {row[3]: row[-1] for row in rows if row[3]}


def test_no_command_gives_a_zero_for_an_unreadable_file(run_on_canvas_class, tiny_copy):
    run_on_canvas_class(COLLECT)
    completed = run_on_canvas_class(GRADE)
    assert completed.returncode == 1
    assert f"{UNREADABLE} (every exercise)" in completed.stdout
    assert "Handed in nothing: 1 of 3 on the roster: Cleo\n" in completed.stdout
    table = {"SIS Login ID": "Averages", "ada": "0", "bela": "", "cleo": "0"}
    assert canvas_scores(run_on_canvas_class) == table
    exported = run_on_canvas_class("export")
    assert exported.returncode == 1
    assert "bela,averages,running_mean,,4" in exported.stdout
    assert UNREADABLE in exported.stderr
    assert "There are no points for that: its cells are blank. Next: " in exported.stderr
    files = run_on_canvas_class("export --format gradescope --out files")
    assert "There are no points for that. Next: " in files.stderr
    assert UNREADABLE in run_on_canvas_class("report").stdout
    page = (tiny_copy / "results" / "report" / "students" / "bela.html").read_text()
    assert "what you handed in cannot be read" in page
    assert "not graded" in page
    override = "- {student: bela, exercise: running_mean, score: 3}\n"
    (tiny_copy / "overrides.yaml").write_text(override)
    assert canvas_scores(run_on_canvas_class) == {**table, "bela": "3"}, (
        "a score of the instructor counts"
    )
    assert run_on_canvas_class("export").returncode == 0


@pytest.mark.bwrap
def test_a_file_that_the_instructor_adds_replaces_an_unreadable_one(run_on_canvas_class, tiny_copy):
    run_on_canvas_class(COLLECT)
    submitted = tiny_copy / "submitted"
    shutil.rmtree(submitted / "bela")  # copies often lack empty folders
    run_on_canvas_class(GRADE)
    assert canvas_scores(run_on_canvas_class)["bela"] == ""
    shutil.copytree(submitted / "ada" / "averages", submitted / "bela" / "averages")
    collected_again = run_on_canvas_class(COLLECT)
    assert collected_again.returncode == 0
    assert "what you have laid into bela/averages/ is graded in its place" in collected_again.stdout
    assert run_on_canvas_class(GRADE).returncode == 0
    assert canvas_scores(run_on_canvas_class)["bela"] == "0"  # as ada's wrong attempt


def test_a_new_submission_replaces_an_unreadable_one(run_on_canvas_class, tiny_copy):
    run_on_canvas_class(COLLECT)
    with zipfile.ZipFile(tiny_copy / "submissions.zip", "w") as archive:
        archive.writestr(f"bartokbela_12346_678999_{FILE}", MEAN)
    completed = run_on_canvas_class(COLLECT)
    assert completed.returncode == 0
    assert f"note: bela: {RAR} could not be read, and counts no more" in completed.stdout
    assert read_journal(tiny_copy / "submitted").not_readable == {"bela": {"averages": []}}


def test_no_export_format_gives_a_zero_for_a_file_that_is_not_graded(
    run_on_canvas_class, tiny_copy
):
    # only ada's file can be graded: a wrong name, a subfolder, and a text named like an archive
    files = {"ada": FILE, "bela": "1_running_mean.py", "cleo": f"src/{FILE}", "dora": "work.zip"}
    with (tiny_copy / "roster.csv").open("a") as roster:
        roster.write("dora,Dora,12348\n")
    for student, name in files.items():
        path = tiny_copy / "submitted" / student / "averages" / name
        path.parent.mkdir(parents=True)
        path.write_text(MEAN)
    completed = run_on_canvas_class(f"{GRADE} --gradebook sqlite:///g.db")
    assert completed.returncode == 1
    assert run_on_canvas_class("report").returncode == 0
    for student, name in [*files.items()][1:]:
        path = f"{student}/averages/{name.partition('/')[0]}"
        message = f"not graded: {student}: handed in, not graded as it is: {path}"
        assert message in completed.stdout
        page = (tiny_copy / "results" / "report" / "students" / f"{student}.html").read_text()
        assert f"cannot be graded as it is: {path}" in page
    for export_format in ("canvas", "moodle", "csv"):
        for source in ("", "--gradebook sqlite:///g.db"):
            exported = run_on_canvas_class(f"export --format {export_format} {source}")
            rows = [*csv.reader(io.StringIO(exported.stdout))]
            ungraded_rows = [row for row in rows if {"bela", "cleo", "dora"} & {*row}]
            assert (exported.returncode, len(ungraded_rows)) == (1, 3), (export_format, source)
            assert [row for row in ungraded_rows if "0" in row] == [], (export_format, source)
            assert exported.stderr.count("not graded: ") == 3
    (tiny_copy / "submitted" / "bela" / "averages" / FILE).write_text(MEAN)
    graded = run_on_canvas_class(GRADE)
    assert graded.returncode == 1
    assert "not graded: bela/averages/1_running_mean.py" in output_words(graded), (
        "the file with the wrong name is still reported"
    )
    assert canvas_scores(run_on_canvas_class)["bela"] == "0"


def test_collect_keeps_and_names_a_file_that_was_changed_after_collection(
    run_on_canvas_class, tiny_copy
):
    with zipfile.ZipFile(tiny_copy / "submissions.zip", "w") as archive:
        archive.writestr(f"lovelaceada_12345_678901_{FILE}", MEAN)
    assert run_on_canvas_class(COLLECT).returncode == 0
    (tiny_copy / "submitted" / "ada" / "averages" / FILE).write_text(f"{MEAN}# mended\n")
    collected_again = run_on_canvas_class(COLLECT)
    assert collected_again.returncode == 1
    assert (
        f"not taken: ada/averages/{FILE}: what is there was not collected, or was changed since. "
        "Next: "
    ) in output_words(collected_again)
