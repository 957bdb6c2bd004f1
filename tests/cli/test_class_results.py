"""Dates and overrides.yaml, as every command shows them: one truth, and the results stay what was found."""

import csv
import io
import json
from pathlib import Path

import pytest

from manyheads.course.dates import moment
from manyheads.result import HandedIn, Result, write_result
from tests import make
from tests.conftest import Run

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


def graded(student: str) -> Result:
    """3 of 4 and 6 of 6, on the second day."""
    values = make.check("values", 2, 3, title="has the values", evidence="1 differs")
    mean = make.exercise("mean", make.check("shape", 1, title="has the shape"), values)
    median = make.exercise("median", make.check("odd", 6, 6, title="odd lengths"))
    return make.result(student, mean, median, handed_in=HandedIn(source="clones", time=moment("2026-12-03T12:00Z")))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A course with decisions, and the results of five students."""
    (tmp_path / "course.yaml").write_text(COURSE)
    (tmp_path / "overrides.yaml").write_text(OVERRIDES)
    (tmp_path / "solutions").mkdir()
    for student in SCORES:
        write_result(graded(student), tmp_path / "results")
    return tmp_path


def exported(run_course: Run, format_: str, *more: str) -> str:
    done = run_course("export", "results", "--format", format_, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_csv_has_what_counts_and_by_which_rule(run_course: Run, here: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(run_course, "csv"))))
    sums = {name: sum(float(r["score"] or 0) for r in rows if r["student"].lstrip("'") == name) for name in SCORES}
    assert sums == pytest.approx(SCORES)
    told = {(r["student"], r["exercise"]): r["decided"] for r in rows}
    assert told["ada", "mean"] == f"{LATE} (9 → 7.2)"
    assert told["bela", "median"] == "extension until 2026-12-08 18:00 UTC by Dr. X: ill"
    assert told["chen", "median"] == f"{LATE} (3 → 2.4); excused: counts for nothing (4.8 → 0)"
    assert told["'=ewa", "mean"].endswith("score set to 1.5 by Dr. X (3 → 1.5)")
    assert [r["max_score"] for r in rows if r["student"] == "chen"] == ["4", ""]


def test_canvas_and_moodle_get_a_score_of_all_points_and_say_the_rules_beside(run_course: Run, here: Path) -> None:
    done = run_course("export", "results", "--format", "canvas")
    rows = {row[0]: row[-1] for row in csv.reader(io.StringIO(done.stdout))}
    assert rows == {"Student": "Averages", "    Points Possible": "10", "ada": "7.2", "bela": "9", "chen": "6",
                    "dara": "EX", "'=ewa": "6.3"}  # fmt: skip
    assert f"decided: ada: Averages: {LATE} (9 → 7.2)\n" in done.stderr
    moodle = {row[0]: row[-1] for row in csv.reader(io.StringIO(exported(run_course, "moodle")))}
    assert moodle == {"Username": "Averages", "ada": "7.2", "bela": "9", "chen": "6", "dara": "", "'=ewa": "6.3"}


def test_gradescope_has_score_and_rules(run_course: Run, here: Path) -> None:
    done = run_course("export", "results", "--format", "gradescope")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a file for each submission" in done.stderr
    assert run_course("export", "results", "--format", "gradescope", "--out", here / "files").returncode == 0
    gradescope = json.loads((here / "files" / "ada" / "averages" / "results.json").read_text(encoding="utf-8"))
    assert gradescope["score"] == 7.2
    assert f"Averages: {LATE} (9 → 7.2)" in gradescope["output"].splitlines()


def test_the_report_shows_it_in_the_terminal_and_on_every_page(run_course: Run, here: Path) -> None:
    done = run_course("report", "results", "--students")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line.split()[1:4] for line in done.stdout.splitlines() if line.startswith(tuple(SCORES))}
    assert lines["chen"] == ["2.4*", "ex", "2.4/4"]
    assert lines["dara"] == ["ex", "ex", "0/0"]
    assert f"decided: ada: Averages: {LATE} (9 → 7.2)" in done.stdout
    pages = here / "results" / "report"
    klass = (pages / "index.html").read_text()
    assert "Dates and decisions" in klass
    assert f"<td>{LATE} (9 → 7.2)</td>" in klass
    ada = (pages / "students" / "ada.html").read_text()
    assert f"<li>{LATE} (9 → 7.2)</li>" in ada
    assert "7.2 / 10" in ada
    assert "Dr. X" not in ada


def test_a_result_holds_what_was_found_whatever_is_decided(run_course: Run, here: Path) -> None:
    before = {path: path.read_bytes() for path in here.glob("results/*/*.json")}
    for command in (["report", "results"], ["export", "results"]):
        assert run_course(*command).returncode == 0
    assert {path: path.read_bytes() for path in here.glob("results/*/*.json")} == before


def test_who_is_on_the_roster_may_have_handed_in_nothing(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").write_text("- {student: zoe, exercise: median, score: 5, comment: on paper}\n")
    (here / "roster.csv").write_text("id\nada\nzoe\n")
    assert "there is no student 'zoe'" in run_course("export", "results").stderr
    rows = list(csv.DictReader(io.StringIO(exported(run_course, "csv", "--roster", "roster.csv"))))
    assert [(r["exercise"], r["score"], r["decided"]) for r in rows if r["student"] == "zoe"] == [
        ("mean", "0", ""),
        ("median", "5", "score set to 5: on paper (0 → 5)"),
    ]


def test_course_yaml_says_where_the_roster_is(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").unlink()
    (here / "course.yaml").write_text(f"roster: roster.csv\n{COURSE}")
    (here / "roster.csv").write_text("id\nada\nzoe\n")
    assert "Handed in nothing: 1 of 2 on the roster: zoe" in run_course("report", "results").stdout
    assert "zoe" in exported(run_course, "canvas")
    (here / "roster.csv").write_text("id\nyves\n")
    for text in ("id\nyves\n", ""):
        (here / "roster.csv").write_text(text) if text else (here / "roster.csv").unlink()
        for command in ("report", "export"):
            said = run_course(command, "results").stderr
            assert said.endswith(", or --roster none\n")
            assert run_course(command, "results", "--roster", "none").returncode == 0


def test_who_is_not_on_the_roster_is_in_no_mean_and_no_histogram(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").unlink()
    (here / "roster.csv").write_text("id\nada\nbela\n")
    zero = make.result("chen", *(e.model_copy(update={"score": 0.0}) for e in graded("chen").exercises))
    write_result(zero, here / "results")
    page = here / "results" / "report" / "index.html"
    alone, known = run_course("report", "results"), run_course("report", "results", "--roster", "roster.csv")
    assert "5 attempts" in alone.stdout
    assert "2 attempts, 0 full, mean 2.40 / 4" in known.stdout
    assert "Not on the roster, and in no mean: =ewa, chen, dara" in known.stdout
    text = page.read_text()
    assert "mean <b>7.20</b>" in text
    assert ">3</b> not on the roster, in no mean and no histogram: <bdi>=ewa</bdi>" in text
    assert '<th scope="row">0–10 %</th><td class="number">0</td>' in text


def test_one_section_alone_is_reported_exported_and_sent_home(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").unlink()
    (here / "roster.csv").write_text("id,name,section,github\nada,Ada,A,\nb,Bela,B,Bela\nchen,Chen,b,\nzoe,Zoe,B,\n")
    section = ("--roster", "roster.csv", "--section", "B")
    done = run_course("report", "results", "--students", *section)
    lines = [line.split()[0] for line in done.stdout.splitlines() if "/10" in line]
    assert lines == ["b", "chen", "zoe"], "bela is b's account on GitHub"
    assert "Handed in nothing: 1 of 3 on the roster: zoe\n" in done.stdout
    page = (here / "results" / "report" / "index.html").read_text()
    assert ("Zoe" in page, "ada" in page) == (True, False)
    rows = list(csv.DictReader(io.StringIO(exported(run_course, "csv", *section))))
    assert {row["student"] for row in rows} == {"b", "chen", "zoe"}
    assert run_course("feedback", "results", *section).returncode == 0
    assert sorted(path.name for path in (here / "home" / "feedback").iterdir()) == ["b", "chen"]


@pytest.mark.parametrize(("options", "says"), [
    (["--section", "A"], "--section needs a roster with sections. Next: the same with --roster FILE"),
    (["--section", "C", "--roster", "roster.csv"], "there is no section 'C'; there are: A, B. Next: the same with --section A"),
    (["--section", "B", "--roster", "roster.csv"], "nobody of section B has a result. Next: course grade SUBMITTED"),
    (["--roster", "twice.csv"], "bela and chen are one student by the roster. Next: take the results that do not count out of the folder"),
])  # fmt: skip
def test_a_section_that_there_is_not_is_one_sentence(run_course, here, options, says):
    (here / "overrides.yaml").unlink()
    (here / "roster.csv").write_text("id,section\nada,A\nzoe,B\n")
    (here / "twice.csv").write_text("id,github\nbela,Chen\n")
    done = run_course("report", "results", *options)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"course: {says}\n")


def test_what_is_decided_alike_of_several_is_one_line_in_the_terminal(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").unlink()
    shown = run_course("report", "results").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("decided: ")]
    assert line == f"decided: =ewa, ada, bela, chen, dara: Averages: {LATE} (9 → 7.2)"


def test_where_there_is_no_course_it_is_said_that_nothing_is_applied(run_course: Run, here: Path) -> None:
    (here / "course.yaml").unlink()
    done = run_course("export", "results")
    assert "ada,averages,mean,3,4" in done.stdout
    assert done.stderr.startswith(
        "course: no course.yaml is near: due dates and overrides.yaml are not applied. Next: "
    )


def test_the_course_beside_the_results_is_taken_from_elsewhere(run_course: Run, here: Path, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = run_course("export", here / "results", "--format", "canvas", cwd=elsewhere)
    assert "\nada,,,ada,,7.2\n" in done.stdout


def test_overrides_shows_what_is_decided(run_course: Run, here: Path) -> None:
    done = run_course("overrides")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "Averages: due 2026-12-01 18:00 UTC; late: 10% a day, at most 50%, after a grace of 15 min"
    )
    assert " ".join(done.stdout.splitlines()[2].split()) == "1 bela Averages due 2026-12-08 18:00 UTC Dr. X ill"
    (here / "overrides.yaml").write_text("- {student: ada}")
    done = run_course("overrides")
    assert (done.returncode, done.stdout) == (2, "")
    assert "overrides.yaml:1: a row has one of" in done.stderr


def test_what_a_human_writes_is_no_markup(run_course: Run, here: Path) -> None:
    (here / "overrides.yaml").write_text("- {student: bela, exercise: mean, score: 3, comment: '<b onclick=x>&'}\n")
    assert run_course("report", "results").returncode == 0
    page = (here / "results" / "report" / "students" / "bela.html").read_text()
    assert "<li>score set to 3: &lt;b onclick=x&gt;&amp;</li>" in page
