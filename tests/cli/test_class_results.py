"""A class by its results, as every command shows it: titles, dates, decisions and roster are one
truth, and what is not readable no 0.
"""

import codecs
import csv
import io
import json
import re
import shutil
import subprocess
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course.course_yaml_schema import moment
from manyheads.report.score_exports import FORMATS
from manyheads.result import Diagnosed, HandedIn, Result, write_result
from manyheads.submission.intake_journal import read_journal
from tests import make
from tests.conftest import Run
from tests.make import TINY

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
SCORES = {"ada": 7.2, "bela": 9, "chen": 2.4, "dara": 0, "=ewa": 6.3}


def late_result(student: str) -> Result:
    """3 of 4 and 6 of 6, on the second day."""
    values = make.check("values", 2, 3, title="has the values", evidence="1 differs")
    mean = make.exercise("mean", make.check("shape", 1, title="has the shape"), values)
    median = make.exercise("median", make.check("odd", 6, 6, title="odd lengths"))
    return make.result(
        student, mean, median, handed_in=HandedIn(source="clones", time=moment("2026-12-03T12:00Z"))
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A course with decisions, and the results of five students."""
    (tmp_path / "course.yaml").write_text(COURSE)
    (tmp_path / "overrides.yaml").write_text(OVERRIDES)
    (tmp_path / "solutions").mkdir()
    for student in SCORES:
        write_result(late_result(student), tmp_path / "results")
    return tmp_path


def export_results(run_course: Run, format_: str, *options: str) -> str:
    completed = run_course("export", "results", "--format", format_, *options)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_csv_has_what_counts_and_by_which_rule(run_course: Run, here: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(export_results(run_course, "csv"))))
    sums = {}
    for name in SCORES:
        of_student = (row for row in rows if row["student"].lstrip("'") == name)
        sums[name] = sum(float(row["score"] or 0) for row in of_student)
    assert sums == pytest.approx(SCORES)
    decisions = {(r["student"], r["exercise"]): r["decided"] for r in rows}
    assert decisions["ada", "mean"] == f"{LATE} (9 → 7.2)"
    assert decisions["bela", "median"] == "extension until 2026-12-08 18:00 UTC by Dr. X: ill"
    assert decisions["chen", "median"] == f"{LATE} (3 → 2.4); excused: counts for nothing (4.8 → 0)"
    assert decisions["'=ewa", "mean"].endswith("score set to 1.5 by Dr. X (3 → 1.5)")
    assert [r["max_score"] for r in rows if r["student"] == "chen"] == ["4", ""]


def test_canvas_and_moodle_get_a_score_of_all_points_and_say_the_rules_beside(
    run_course: Run, here: Path
) -> None:
    completed = run_course("export", "results", "--format", "canvas")
    rows = {row[0]: row[-1] for row in csv.reader(io.StringIO(completed.stdout))}
    assert rows == {
        "Student": "Averages",
        "    Points Possible": "10",
        "ada": "7.2",
        "bela": "9",
        "chen": "6",
        "dara": "EX",
        "'=ewa": "6.3",
    }
    assert f"decided: ada: Averages: {LATE} (9 → 7.2)\n" in completed.stderr
    moodle = {
        row[0]: row[-1] for row in csv.reader(io.StringIO(export_results(run_course, "moodle")))
    }
    assert moodle == {
        "Username": "Averages",
        "ada": "7.2",
        "bela": "9",
        "chen": "6",
        "dara": "",
        "'=ewa": "6.3",
    }


def test_a_file_of_csv_says_to_spreadsheets_that_it_is_utf_8(run_course: Run, here: Path) -> None:
    for format_, starts_with_mark in (("csv", True), ("canvas", False), ("moodle", False)):
        assert (
            run_course(
                "export", "results", "--format", format_, "--out", here / "grades.csv"
            ).returncode
            == 0
        )
        assert (here / "grades.csv").read_bytes().startswith(codecs.BOM_UTF8) is starts_with_mark, (
            format_
        )


NO_WORD = "dara: Averages is excused, and {} has no word for that"


def test_an_excuse_means_the_same_in_every_book_or_it_is_said(run_course: Run, here: Path) -> None:
    completed = run_course("export", "results", "--format", "gradescope", "--out", here / "files")
    assert (
        f"excused: {NO_WORD.format('Gradescope')}: no score is entered. Next: " in completed.stderr
    )
    gradescope = json.loads(
        (here / "files" / "dara" / "averages" / "results.json").read_text(encoding="utf-8")
    )
    assert (gradescope.keys(), completed.returncode) == ({"output", "output_format"}, 0)
    assert "excused: counts for nothing" in gradescope["output"]
    completed = run_course("export", "results", "--format", "moodle")
    assert f"excused: {NO_WORD.format('Moodle')}: its cell is blank. Next: " in completed.stderr
    rows = [
        row
        for row in csv.DictReader(io.StringIO(export_results(run_course, "csv")))
        if row["student"] == "dara"
    ]
    assert {(row["score"], row["max_score"]) for row in rows} == {("", "")}
    assert all("excused: counts for nothing" in row["decided"] for row in rows)
    assert "no word" not in run_course("export", "results", "--format", "canvas").stderr


def test_gradescope_has_score_and_rules(run_course: Run, here: Path) -> None:
    assert (
        run_course(
            "export", "results", "--format", "gradescope", "--out", here / "files"
        ).returncode
        == 0
    )
    gradescope = json.loads(
        (here / "files" / "ada" / "averages" / "results.json").read_text(encoding="utf-8")
    )
    assert gradescope["score"] == 7.2
    assert f"Averages: {LATE} (9 → 7.2)" in gradescope["output"].splitlines()


def test_the_report_shows_it_in_the_terminal_and_on_every_page(run_course: Run, here: Path) -> None:
    completed = run_course("report", "results", "--students")
    assert completed.returncode == 0, completed.stderr
    lines = {
        line.split()[0]: line.split()[1:4]
        for line in completed.stdout.splitlines()
        if line.startswith(tuple(SCORES))
    }
    assert lines["chen"] == ["2.4*", "ex", "2.4/4"]
    assert lines["dara"] == ["ex", "ex", "0/0"]
    assert f"decided: ada: Averages: {LATE} (9 → 7.2)" in completed.stdout
    pages = here / "results" / "report"
    klass = (pages / "index.html").read_text()
    assert "Dates and decisions" in klass
    assert f"<td>{LATE} (9 → 7.2)</td>" in klass
    ada = (pages / "students" / "ada.html").read_text()
    assert f"<li>{LATE} (9 → 7.2)</li>" in ada
    assert "7.2 / 10" in ada
    assert "Dr. X" not in ada


@pytest.mark.usefixtures("here")
def test_a_student_reads_excused_in_place_of_points_that_do_not_count(
    run_course: Run, tmp_path: Path
) -> None:
    assert run_course("feedback", "results", "--out", "home").returncode == 0
    chen, dara = (
        tmp_path / "home" / "feedback" / student / "averages" for student in ("chen", "dara")
    )
    assert "| 02 The median | excused |" in (chen / "averages.md").read_text()
    assert '<span class="points">excused</span>' in (chen / "averages.html").read_text()
    text = (dara / "averages.md").read_text()
    assert text.startswith("## Averages: excused\n")
    assert text.count(" | excused |") == 2
    groups = csv.DictReader(io.StringIO(export_results(run_course, "csv")))
    assert not any(row["group"] for row in groups if row["student"] == "dara")


def test_who_is_on_the_roster_may_have_handed_in_nothing(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").write_text(
        "- {student: zoe, exercise: median, score: 5, comment: on paper}\n"
    )
    (here / "roster.csv").write_text("id\nada\nzoe\n")
    assert "there is no student 'zoe'" in run_course("export", "results").stderr
    rows = list(
        csv.DictReader(io.StringIO(export_results(run_course, "csv", "--roster", "roster.csv")))
    )
    assert [(r["exercise"], r["score"], r["decided"]) for r in rows if r["student"] == "zoe"] == [
        ("mean", "0", ""),
        ("median", "5", "score set to 5: on paper (0 → 5)"),
    ]


def test_course_yaml_says_where_the_roster_is(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").unlink()
    (here / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    (here / "roster.csv").write_text("id\nada\nzoe\n")
    assert "Handed in nothing: 1 of 2 on the roster: zoe" in run_course("report", "results").stdout
    assert "zoe" in export_results(run_course, "canvas")
    (here / "roster.csv").write_text("id\nyves\n")
    for text in ("id\nyves\n", ""):
        (here / "roster.csv").write_text(text) if text else (here / "roster.csv").unlink()
        for command in ("report", "export"):
            stderr = run_course(command, "results").stderr
            assert stderr.endswith((", or --roster none\n", "(roster: FILE) or by --roster\n"))
            assert run_course(command, "results", "--roster", "none").returncode == 0


def test_one_section_alone_is_reported_exported_and_sent_home(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").unlink()
    (here / "roster.csv").write_text(
        "id,name,section,github\nada,Ada,A,\nb,Bela,B,Bela\nchen,Chen,b,\nzoe,Zoe,B,\n"
    )
    section = ("--roster", "roster.csv", "--section", "B")
    completed = run_course("report", "results", "--students", *section)
    lines = [line.split()[0] for line in completed.stdout.splitlines() if "/10" in line]
    assert lines == ["b", "chen", "zoe"], "bela is b's account on GitHub"
    assert "Handed in nothing: 1 of 3 on the roster: Zoe\n" in completed.stdout
    page = (here / "results" / "report" / "index.html").read_text()
    assert ("Zoe" in page, "ada" in page) == (True, False)
    rows = list(csv.DictReader(io.StringIO(export_results(run_course, "csv", *section))))
    assert {row["student"] for row in rows} == {"b", "chen", "zoe"}
    assert run_course("feedback", "results", *section).returncode == 0
    assert sorted(path.name for path in (here / "home" / "feedback").iterdir()) == ["b", "chen"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--section", "A"],
            "--section needs a roster with sections. Next: the same with --roster FILE",
        ),
        (
            ["--section", "C", "--roster", "roster.csv"],
            "there is no section 'C'; there are: A, B. Next: the same with --section A",
        ),
        (
            ["--section", "B", "--roster", "roster.csv"],
            "nobody of section B has a result. Next: course grade SUBMITTED",
        ),
        (
            ["--roster", "twice.csv"],
            (
                "bela and chen are one student by the roster. Next: take the results that do not "
                "count out of the folder"
            ),
        ),
    ],
)
def test_a_section_that_there_is_not_is_one_sentence(run_course, here, options, says):
    (here / "overrides.yaml").unlink()
    (here / "roster.csv").write_text("id,section\nada,A\nzoe,B\n")
    (here / "twice.csv").write_text("id,github\nbela,Chen\n")
    completed = run_course("report", "results", *options)
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        2,
        "",
        f"course: {says}\n",
    )


def test_what_is_decided_alike_of_several_is_one_line_in_the_terminal(
    run_course: Run, here: Path
) -> None:
    (here / "overrides.yaml").unlink()
    output = run_course("report", "results").stdout
    (line,) = [line for line in output.splitlines() if line.startswith("decided: ")]
    assert line == f"decided: =ewa, ada, bela, chen, dara: Averages: {LATE} (9 → 7.2)"


def test_where_there_is_no_course_it_is_said_that_nothing_is_applied(
    run_course: Run, here: Path
) -> None:
    (here / "course.yaml").unlink()
    completed = run_course("export", "results")
    assert "ada,averages,mean,3,4" in completed.stdout
    says = "course: no course.yaml is near: due dates and overrides.yaml are not applied. Next: "
    assert completed.stderr.startswith(says)


def test_the_course_beside_the_results_is_taken_from_elsewhere(run_course, here, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    completed = run_course("export", here / "results", "--format", "canvas", cwd=elsewhere)
    assert "\nada,,,ada,,7.2\n" in completed.stdout


def test_overrides_shows_what_is_decided(run_course: Run, here: Path) -> None:
    completed = run_course("overrides")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith(
        "Averages: due 2026-12-01 18:00 UTC; late: 10% a day, at most 50%, after a grace of 15 min"
    )
    assert (
        " ".join(completed.stdout.splitlines()[2].split())
        == "1 bela Averages due 2026-12-08 18:00 UTC Dr. X ill"
    )
    (here / "overrides.yaml").write_text("- {student: ada}")
    completed = run_course("overrides")
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "overrides.yaml:1: a row has one of" in completed.stderr


UNSEEN = r"""
- {student: ada, exercise: median, score: 4, by: "Dr. \u202eX",
   comment: "\e[2J\x9b1m\u2066محمد\u200cرضا\ud83d"}
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["overrides"],
        ["report", "results", "--students", "--roster", "roster.csv"],
        *(
            ["export", "results", "--format", format_, "--roster", "roster.csv"]
            for format_ in sorted(FORMATS)
        ),
    ],
)
def test_what_people_wrote_moves_no_cursor_and_turns_no_line_around(
    run_course: Run, here: Path, arguments
) -> None:
    (here / "overrides.yaml").write_text(UNSEEN)
    row = "ada,\u202eLovelace\x1b]0;title\x07 محمد\u200cرضا,A\x1b[1m\u2028B\n"
    (here / "roster.csv").write_text(f"id,name,section\n{row}", encoding="utf-8")
    completed = run_course(*arguments)
    pages = "".join(
        page.read_text(encoding="utf-8") for page in here.glob("results/report/**/*.html")
    )
    output = completed.stdout + completed.stderr + pages
    assert "ada" in output
    control_letters = {
        letter
        for letter in output
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    assert control_letters - {"\n", "\u200b"} <= {"\u200c"}, "and of a name nothing is lost"
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


def result_of(student: str, assignment: str, **scores: float) -> Result:
    named = (
        Diagnosed(
            id="no_division",
            title="You did not divide.",
            hint="?",
            alternatives=("by_two",),
            alternative_titles=("You divided by two.",),
        ),
    )
    checks = {
        id_: make.check("values", score, 2, title="has the values") for id_, score in scores.items()
    }
    exercises = (make.exercise(id_, check, diagnosis=named) for id_, check in checks.items())
    return make.result(student, *exercises, assignment=assignment)


@pytest.fixture
def two_assignments(tmp_path: Path) -> Path:
    (tmp_path / "course.yaml").write_text(TWO_ASSIGNMENTS)
    (tmp_path / "overrides.yaml").write_text(BY_HAND)
    (tmp_path / "solutions").mkdir()
    for student in ("ada", "ben"):
        # of an old course
        write_result(result_of(student, "z_sums", sub_totals=0, one_total=0), tmp_path / "results")
    write_result(result_of("ben", "a_means", one_mean=0), tmp_path / "results")
    return tmp_path


def visible_text(page: Path) -> str:
    """What a reader sees or hears of a page's main part: its text and the labels of what it
    shows.
    """
    main = page.read_text(encoding="utf-8").partition("<main")[2]
    return re.sub(
        "<[^>]*>", " ", re.sub(r'<[^>]* (?:aria-label|alt|title)="([^"]*)"[^>]*>', r" \1 ", main)
    )


def in_order(text: str, titles: list[str]) -> bool:
    """Whether the text has these titles, the first of each in this order, and no id."""
    places = [text.find(title) for title in titles]
    return -1 not in places and places == sorted(places) and not [id_ for id_ in IDS if id_ in text]


@pytest.mark.parametrize(
    ("command", "titles"),
    [
        (["report", "results"], TITLES),
        (["report", "results", "--students"], TITLES),
        (["overrides"], ["Adding up", "The middle", "02 Subtotals", "01 The mean"]),
    ],
)
def test_a_terminal_has_each_assignment_in_the_courses_order_by_titles(
    run_course, two_assignments, command, titles
):
    completed = run_course(*command, cwd=two_assignments, env={"COLUMNS": "80"})
    assert completed.returncode == 0, completed.stderr
    assert in_order(completed.stdout, titles), completed.stdout
    assert max(map(len, completed.stdout.splitlines())) <= 80 or command[0] == "report"


def test_so_have_the_pages_and_the_feedback(run_course: Run, two_assignments: Path) -> None:
    assert run_course("report", "results", cwd=two_assignments).returncode == 0
    pages = two_assignments / "results" / "report"
    for page in (pages / "index.html", pages / "students" / "ben.html"):
        assert in_order(visible_text(page), ["Adding up", "Subtotals", "The middle", "The mean"]), (
            visible_text(page)
        )
    assert run_course("feedback", "results", cwd=two_assignments).returncode == 0
    for name, titles in (("z_sums", TITLES[:3]), ("a_means", TITLES[3:])):
        folder = two_assignments / "home" / "feedback" / "ben" / name
        assert set(titles) <= set(
            re.split(
                r": [\d.]+ / \d\n| \| |\n", (folder / f"{name}.md").read_text().removeprefix("## ")
            )
        )
        assert not [id_ for id_ in IDS if id_ in visible_text(folder / f"{name}.html")]


@pytest.mark.parametrize(
    ("command", "name", "shown", "hidden"),
    [
        (["report", "results"], "a_means", "The middle", "Adding up"),
        (["report", "results", "--students"], "adding UP", "Adding up", "The middle"),
        (["export", "results"], "midd", "a_means", "z_sums"),
        (["overrides"], "The middle", "The middle", "Adding up"),
    ],
)
def test_one_assignment_is_named_by_its_id_its_title_or_a_part(
    run_course, two_assignments, command, name, shown, hidden
):
    completed = run_course(*command, "--assignment", name, cwd=two_assignments)
    assert completed.returncode == 0, completed.stderr
    assert shown in completed.stdout
    assert hidden not in completed.stdout


def test_collect_takes_the_files_of_one_and_counts_the_others(
    run_course: Run, two_assignments: Path
) -> None:
    for name in ("01_one_total.py", "01_one_mean.py"):
        (two_assignments / "download" / "ada").mkdir(parents=True, exist_ok=True)
        (two_assignments / "download" / "ada" / name).write_text("def f():\n    pass\n")
    completed = run_course("collect", "download", "--assignment", "adding", cwd=two_assignments)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "note: of other assignments, and left out: 1\n" in completed.stdout
    assert [
        path.relative_to(two_assignments).as_posix()
        for path in two_assignments.glob("submitted/*/*/*.py")
    ] == ["submitted/ada/z_sums/01_one_total.py"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results of ada, who is right, and ben, who is not."""
    shutil.copy(TINY / "course.yaml", tmp_path)
    for student, score in (("ada", 2.0), ("ben", 0.0)):
        check = make.check("mean", score, 2, title="averages")
        write_result(
            make.result(student, make.exercise("running_mean", check)), tmp_path / "results"
        )
    return tmp_path / "results"


def test_report_shows_the_class_and_its_students_and_says_where_the_pages_are(
    run_course, results, tmp_path
):
    completed = run_course("report", "results")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert (
        "Averages\n01 The running mean                       2 attempts, 1 full, mean 1.00 / 2"
        in completed.stdout
    )
    assert completed.stdout.endswith(
        "2 submissions, isolation: namespaces\nPages: results/report/index.html\n"
    )
    assert sorted(path.name for path in (results / "report" / "students").iterdir()) == [
        "ada.html",
        "ben.html",
    ]
    students = run_course("report", "results", "--students", "--html", "web/heads").stdout
    row_of_ben = ["ben", "0", "0/2"]
    assert row_of_ben not in [line.split() for line in completed.stdout.splitlines()]
    assert row_of_ben in [line.split() for line in students.splitlines()]
    assert students.endswith("Pages: web/heads/index.html\n")
    assert (tmp_path / "web" / "heads" / "students" / "ada.html").is_file()


def test_a_result_that_cannot_be_read_is_named_and_the_report_is_made_from_the_others(
    run_course, results
):
    (results / "ben" / "averages.json").write_text('{"student": "ben", ')
    completed = run_course("report", "results")
    assert completed.returncode == 2
    says = (
        "course: results/ben/averages.json is no result of this version. Next: course grade "
        "again, or remove it\n"
    )
    assert completed.stderr == says
    assert "1 submission, isolation: namespaces" in completed.stdout
    page = (results / "report" / "index.html").read_text()
    assert "results/ben/averages.json is no result of this version." in page
    assert not (results / "report" / "students" / "ben.html").exists()
    (results / "ada" / "averages.json").write_text("")
    assert run_course("report", "results", "--html", "web").stdout == "", (
        "where none can be read no page is written"
    )
    assert not (results.parent / "web").exists()


def test_a_folder_that_cannot_be_written_is_status_2_after_the_view(run_course, results, tmp_path):
    (tmp_path / "taken").write_text("")
    completed = run_course("report", "results", "--html", "taken/here")
    assert completed.returncode == 2
    assert "2 submissions" in completed.stdout
    assert completed.stderr.endswith("Next: course report --html ANOTHER_FOLDER\n")


def test_submitted_draws_wrong_answers_beside_the_expected_ones(
    run_course, results, tmp_path, tiny_copy
):
    for student, divided_by in (("ada", "torch.arange(1, len(x) + 1)"), ("ben", "len(x)")):
        folder = tmp_path / "handed in" / student / "averages"
        folder.mkdir(parents=True)
        source = f"import torch\ndef running_mean(x):\n    return x.cumsum(0) / {divided_by}\n"
        (folder / "01_running_mean.py").write_text(source)
    completed = run_course("report", "results", "--submitted", "handed in", "--course", tiny_copy)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "\n1 of 1 wrong attempt has pictures, drawn in " in completed.stdout
    page = (results / "report" / "students" / "ben.html").read_text(encoding="utf-8")
    assert "running_mean(x): the largest difference is " in page
    assert "<figure" not in (results / "report" / "students" / "ada.html").read_text(
        encoding="utf-8"
    )


def test_a_folder_that_holds_nobody_of_these_results_is_named(
    run_course: Run, results: Path, tiny_copy: Path
) -> None:
    submitted = tiny_copy / "handed in"
    (submitted / "zoe" / "averages").mkdir(parents=True)
    completed = run_course("report", results, "--submitted", submitted, "--course", tiny_copy)
    assert completed.returncode == 2
    assert (
        f"course: {submitted} has no submission of these results. Next: course report "
        in completed.stderr
    )
    assert not (results / "report").exists()


def test_a_misconception_that_comes_back_is_told_on_the_terminal_and_on_the_class_page(
    run_course, results
):
    named = (Diagnosed(id="axis", title="You averaged over the wrong axis.", hint="Which one?"),)
    check = make.check("mean", 0, 2, title="averages")
    exercises = [make.exercise(id_, check, diagnosis=named) for id_ in ("running_mean", "later")]
    write_result(make.result("ben", *exercises), results)
    completed = run_course("report", "results")
    assert (
        "Came back for 1, in later after 01 The running mean: You averaged over the wrong axis."
        in completed.stdout
    )
    page = (results / "report" / "index.html").read_text()
    assert "Misconceptions that came back" in page
    assert "<td>01 The running mean</td><td>later</td>" in page


MEAN = "def running_mean(x):\n    return x\n"
WORK = "bartokbela_12346_678902_work.rar"


@pytest.fixture
def canvas_class(
    run_course: Run, tiny_copy: Path, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command on what Canvas gives for Ada, Bela, whose archive nobody opens, and Cleo, who
    handed in nothing.
    """
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("lovelaceada_12345_678901_01_running_mean.py", MEAN)
        archive.writestr(WORK, b"Rar!")
    (tmp_path / "roster.csv").write_text(
        "id,name,canvas_id\nada,Ada,12345\nbela,Bela,12346\ncleo,Cleo,12347\n"
    )
    (tiny_copy / "course.yaml").write_text(
        f"not_handed_in: zero\n{(tiny_copy / 'course.yaml').read_text()}"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        places = {
            "IN": tmp_path / "in",
            "OUT": tmp_path / "out",
            "ZIP": tmp_path / "submissions.zip",
        }
        resolved = [places.get(argument, argument) for argument in arguments]
        return run_course(*resolved, "--roster", tmp_path / "roster.csv", cwd=tiny_copy)

    return run


def grade_all(canvas_class: Run) -> subprocess.CompletedProcess[str]:
    return canvas_class("grade", "IN", "--out", "OUT", "--jobs", "1", "--no-lines", "--seed", "1")


def canvas(canvas_class: Run) -> dict[str, str]:
    rows = csv.reader(io.StringIO(canvas_class("export", "OUT", "--format", "canvas").stdout))
    return {row[3]: row[-1] for row in rows if row[3]}


def test_nobody_who_reads_results_has_a_zero_for_it(canvas_class: Run, tmp_path: Path) -> None:
    canvas_class("collect", "ZIP", "--out", "IN")
    completed = grade_all(canvas_class)
    assert completed.returncode == 1
    assert f"not graded: bela: handed in, not readable: {WORK} (every exercise)" in completed.stdout
    assert "Handed in nothing: 1 of 3 on the roster: Cleo\n" in completed.stdout
    assert canvas(canvas_class) == {"SIS Login ID": "Averages", "ada": "0", "bela": "", "cleo": "0"}
    exported = canvas_class("export", "OUT")
    assert (exported.returncode, "bela,averages,running_mean,,4" in exported.stdout) == (1, True)
    assert f"not graded: bela: handed in, not readable: {WORK}" in exported.stderr
    assert "There are no points for that: its cells are blank. Next: " in exported.stderr
    files = canvas_class(
        "export", "OUT", "--format", "gradescope", "--out", str(tmp_path / "files")
    )
    assert "There are no points for that. Next: " in files.stderr
    assert (
        f"not graded: bela: handed in, not readable: {WORK}" in canvas_class("report", "OUT").stdout
    )
    page = (tmp_path / "out" / "report" / "students" / "bela.html").read_text()
    assert "what you handed in cannot be read" in page
    assert "not graded" in page


def test_what_is_put_into_the_folder_by_hand_is_graded_in_its_place(
    canvas_class: Run, tmp_path: Path
) -> None:
    canvas_class("collect", "ZIP", "--out", "IN")
    shutil.copy(
        tmp_path / "in" / "ada" / "averages" / "01_running_mean.py",
        tmp_path / "in" / "bela" / "averages",
    )
    again = canvas_class("collect", "ZIP", "--out", "IN")
    assert again.returncode == 0
    assert "what you have laid into bela/averages/ is graded in its place" in again.stdout
    assert grade_all(canvas_class).returncode == 0
    assert canvas(canvas_class)["bela"] == "0"


def test_what_a_human_decides_counts(canvas_class: Run, tiny_copy: Path, tmp_path: Path) -> None:
    canvas_class("collect", "ZIP", "--out", "IN")
    (tiny_copy / "overrides.yaml").write_text(
        "- {student: bela, exercise: running_mean, score: 3}\n"
    )
    assert (grade_all(canvas_class).returncode, canvas(canvas_class)["bela"]) == (0, "3")


def test_it_counts_no_more_once_the_student_has_handed_in_a_file(
    canvas_class: Run, tmp_path: Path
) -> None:
    canvas_class("collect", "ZIP", "--out", "IN")
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("bartokbela_12346_678999_01_running_mean.py", MEAN)
    completed = canvas_class("collect", "ZIP", "--out", "IN")
    assert completed.returncode == 0
    assert f"note: bela: {WORK} could not be read, and counts no more" in completed.stdout
    assert read_journal(tmp_path / "in").not_readable == {"bela": {"averages": []}}


def test_it_holds_where_the_empty_folder_was_not_copied_along(
    canvas_class: Run, tmp_path: Path
) -> None:
    canvas_class("collect", "ZIP", "--out", "IN")
    shutil.rmtree(tmp_path / "in" / "bela")
    grade_all(canvas_class)
    assert canvas(canvas_class)["bela"] == ""


@pytest.mark.parametrize("name", ["1_running_mean.py", "src/01_running_mean.py", "work.zip"])
def test_nobody_has_a_zero_for_what_lies_there_and_is_not_graded(canvas_class, tmp_path, name):
    for path in ("ada/averages/01_running_mean.py", f"bela/averages/{name}"):
        (tmp_path / "in" / path).parent.mkdir(parents=True)
        (tmp_path / "in" / path).write_text(MEAN)
    named = f"bela/averages/{name.partition('/')[0]}"
    completed = canvas_class(
        "grade",
        "IN",
        "--out",
        "OUT",
        "--jobs",
        "1",
        "--no-lines",
        "--gradebook",
        f"sqlite:///{tmp_path}/g.db",
    )
    assert completed.returncode == 1
    assert f"not graded: bela: handed in, not graded as it is: {named}" in completed.stdout
    for format_ in ("canvas", "moodle", "csv"):
        for source in (["OUT"], ["OUT", "--gradebook", f"sqlite:///{tmp_path}/g.db"]):
            completed = canvas_class("export", *source, "--format", format_)
            (row,) = [row for row in csv.reader(io.StringIO(completed.stdout)) if "bela" in row]
            assert (completed.returncode, "0" in row) == (1, False), (format_, source)
            assert "not graded: bela: " in completed.stderr
    page = (
        canvas_class("report", "OUT")
        and (tmp_path / "out" / "report" / "students" / "bela.html").read_text()
    )
    assert f"cannot be graded as it is: {named}" in page
    (tmp_path / "in" / "bela" / "averages" / "01_running_mean.py").write_text(MEAN)
    assert grade_all(canvas_class).returncode == 1  # the other is still named
    assert canvas(canvas_class)["bela"] == "0"


def test_a_file_that_was_changed_after_it_was_collected_is_named_with_status_1(
    canvas_class: Run, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("lovelaceada_12345_678901_01_running_mean.py", MEAN)
    assert canvas_class("collect", "ZIP", "--out", "IN").returncode == 0
    (tmp_path / "in" / "ada" / "averages" / "01_running_mean.py").write_text(f"{MEAN}# mended\n")
    again = canvas_class("collect", "ZIP", "--out", "IN")
    assert again.returncode == 1
    message = (
        "not taken: ada/averages/01_running_mean.py: what is there was not collected, or was "
        "changed since. Next: "
    )
    assert message in " ".join(again.stdout.split())


def test_overrides_names_a_student_whom_nobody_knows(run_course: Run, here: Path) -> None:
    assert run_course("overrides", cwd=here).returncode == 0
    (here / "overrides.yaml").write_text(
        f"{OVERRIDES}- {{student: belaa, exercise: mean, score: 1}}\n"
    )
    completed = run_course("overrides", cwd=here)
    assert completed.returncode == 2
    output = " ".join((completed.stdout + completed.stderr).split())
    assert "overrides.yaml:5: there is no student 'belaa' (is 'bela' meant?)" in output
    assert re.search(r"belaa .*score 1", completed.stdout)


def test_where_nobody_is_known_overrides_are_shown_alone(run_course: Run, here: Path) -> None:
    shutil.rmtree(here / "results")
    completed = run_course("overrides", cwd=here)
    assert completed.returncode == 0
    assert "Whether these students exist is not known here, without a roster" in completed.stdout
    (here / "roster.csv").write_text("id\nada\nbela\nchen\ndara\n")
    (here / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    completed = run_course("overrides", cwd=here)
    assert (
        completed.returncode,
        "there is no student '=ewa'" in " ".join((completed.stdout + completed.stderr).split()),
    ) == (2, True)


def test_a_report_of_one_section_keeps_the_pages_of_the_others(run_course: Run, here: Path) -> None:
    (here / "roster.csv").write_text("id,section\nada,A\nbela,B\nchen,A\ndara,B\n=ewa,B\n")
    for section in ((), ("--section", "A")):
        assert (
            run_course("report", "results", "--roster", "roster.csv", *section, cwd=here).returncode
            == 0
        )
        pages = {path.stem for path in (here / "results" / "report" / "students").glob("*.html")}
        assert {"ada", "bela", "chen", "dara"} <= pages, section


def test_an_unknown_time_leads_in_no_circle(run_course: Run, here: Path) -> None:
    write_result(late_result("ada").model_copy(update={"handed_in": None}), here / "results")
    output = " ".join(run_course("report", "results", cwd=here).stdout.split())
    assert (
        "none of them counts as late: ada. Next: a score in "
        "overrides.yaml for whoever was late; of downloads from Moodle or Canvas, course collect "
        "DOWNLOAD --times LIST" in output
    )
    assert output.count("course collect") == output.count("course collect DOWNLOAD --times LIST")


def test_overrides_names_the_members_of_a_group(run_course: Run, here: Path) -> None:
    (here / "roster.csv").write_text("id,group\nada,red\nbela,red\nchen,\ndara,\n=ewa,\n")
    (here / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    (here / "submitted" / "red").mkdir(parents=True)
    (here / "overrides.yaml").write_text("- {student: red, exercise: mean, score: 1}\n")
    completed = run_course("overrides", cwd=here)
    assert completed.returncode == 2
    output = " ".join((completed.stdout + completed.stderr).split())
    assert "overrides.yaml:1: 'red' is a group, with ada and bela. Next: a row for each" in output
