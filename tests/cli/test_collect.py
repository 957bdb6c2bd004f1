"""`course collect` sorts a download into folders by student, which `course grade` then reads."""

import zipfile
from pathlib import Path

import pytest

from manyheads.submission.roster_and_times import FORM
from tests.make import COURSE, RIGHT, call_course, run

MEAN = "def running_mean(x):\n    return x\n"


@pytest.fixture
def canvas_download(tmp_path: Path) -> Path:
    """Write a download from Canvas: two students handed in a file, and one typed a text."""
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr("lovelaceada_LATE_12345_678901_01_running_mean-1.py", MEAN)
        archive.writestr("bartokbela_12346_678902_Untitled (1).py", MEAN)
        archive.writestr("chenc_12347_text.html", "<p>Here it is")
    return tmp_path / "submissions.zip"


def test_verbose_collect_prints_source_and_target_of_each_file(
    run_course, tiny_copy, tmp_path, canvas_download
):
    (tmp_path / "roster.csv").write_text("id,name,canvas_id,Tutor\nada,Ada Lovelace,12345,Dr. X\n")
    completed = run_course(
        "collect",
        canvas_download,
        "--out",
        tmp_path / "in",
        "--roster",
        tmp_path / "roster.csv",
        "--verbose",
        cwd=tiny_copy,
        env={"COLUMNS": "40"},
    )
    assert (completed.returncode, completed.stderr) == (1, "")
    lines = [line.rstrip() for line in completed.stdout.splitlines()]
    assert lines[0] == "'submissions.zip' is read as: Canvas"
    assert lines[1:] == [
        (
            "ada/averages/01_running_mean.py: new (late), from "
            "lovelaceada_LATE_12345_678901_01_running_mean-1.py"
        ),
        (
            "bartokbela_12346/averages/01_running_mean.py: new, from "
            "bartokbela_12346_678902_Untitled (1).py"
        ),
        "2 students: 2 new",
        f"note: {tmp_path / 'roster.csv'}: not read: 'Tutor'. {FORM}.",
        (
            "note: bartokbela_12346: is not on the roster: no id, e-mail address or name fits one "
            "student alone. Next: complete the roster, or rename the folder to the right id"
        ),
        (
            "not taken: submissions.zip: chenc_12347_text.html is text or a link typed into "
            "Canvas, or a note, and no file. Next: ask for the file"
        ),
        f"Next: course grade {tmp_path / 'in'}",
    ]


def test_collect_and_grade_refuse_a_roster_that_matches_no_student(
    tiny_copy, tmp_path, canvas_download
):
    roster = tmp_path / "roster.csv"
    roster.write_text('Student,ID,SIS Login ID,Section\n"Curie, Marie",99,mc1,A\n')
    columns = (
        f"is on the roster, {roster}, of which these columns are read: 'Student' as name, "
        "'ID' as canvas_id, "
    )
    submitted, out = tmp_path / "in", tmp_path / "out"
    collect = ("collect", canvas_download, "--out", submitted)
    completed = call_course(*collect, "--roster", roster, cwd=tiny_copy)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "nobody of 2 who handed in ('bartokbela_12346', 'lovelaceada_12345')" in completed.stderr
    assert columns in completed.stderr
    assert "Next: give --roster a file that has their ids, e-mails or names" in completed.stderr
    assert not submitted.exists()
    call_course(*collect, cwd=tiny_copy)
    completed = call_course("grade", submitted, "--out", out, "--roster", roster, cwd=tiny_copy)
    assert completed.returncode == 2
    assert columns in completed.stderr
    assert not out.exists()


def test_collect_prints_a_line_for_each_student_and_shortens_long_lists(tiny_copy, tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for i in range(30):
            archive.writestr(f"student{i:02d}/01_running_mean.py", MEAN)
            archive.writestr(f"student{i:02d}/notes.pdf", "%PDF")
    collect = ("collect", tmp_path / "class.zip", "--out", tmp_path / "in")
    lines = call_course(*collect, cwd=tiny_copy).stdout.splitlines()
    assert [" ".join(line.split()) for line in lines[1:4]] == [
        "student files now",
        "student00 1 1 new",
        "student01 1 1 new",
    ]
    # the 30 students, then at most 20 files that were not taken
    assert lines[32] == "30 students: 30 new"
    assert lines[33].startswith("not taken: class.zip: student00/notes.pdf ")
    assert lines[53:] == [
        "not taken: and 10 more. Next: the same command with --verbose",
        f"Next: course grade {tmp_path / 'in'}",
    ]
    output = call_course(*collect, "--verbose", cwd=tiny_copy).stdout
    assert output.count("notes.pdf is no script and no notebook") == 30
    assert "more" not in output  # nothing is left out with --verbose


def test_collect_accepts_a_single_file_only_in_a_students_folder(tiny_copy, tmp_path):
    path, out = tmp_path / "bare one.py", tmp_path / "handed in"
    path.write_text(MEAN)
    completed = call_course("collect", path, "--out", out, cwd=tiny_copy)
    assert (completed.returncode, completed.stderr) == (1, "")
    assert not out.exists()
    assert completed.stdout.splitlines()[1:] == [
        "0 students: nothing",
        "not taken: bare one.py: bare one.py says of no student whose it is. Next: mkdir "
        "STUDENT && mv 'bare one.py' STUDENT/ where it lies, then: course collect STUDENT",
        f"Next: course collect DOWNLOAD --out '{out}', with a download that holds what students "
        "wrote",
    ]
    folder = tmp_path / "STUDENT"
    folder.mkdir()
    path.rename(folder / path.name)
    completed = call_course("collect", folder, "--out", out, cwd=tiny_copy)
    assert completed.returncode == 0
    assert "1 student: 1 new" in completed.stdout


def test_collect_reports_and_skips_a_name_that_the_locale_cannot_encode(tiny_copy, tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in ("Åsa", "ben"):
            archive.writestr(f"{name}/01_running_mean.py", MEAN)
    command = (*COURSE, "collect", tmp_path / "class.zip", "--out", tmp_path / "in")
    completed = run(*command, cwd=tiny_copy, LC_ALL="C", PYTHONUTF8="0")
    assert (completed.returncode, completed.stderr) == (1, "")
    assert (
        r"is of '\xc5sa', whose letters the locale here does not know. Next: PYTHONUTF8="
        r"1 course collect"
    ) in completed.stdout
    assert [path.name for path in (tmp_path / "in").iterdir() if path.is_dir()] == ["ben"]


def test_collect_reads_submission_times_from_a_moodle_worksheet(run_course, tiny_copy, tmp_path):
    path = tiny_copy / "course.yaml"
    first_lines = "- id: averages\n    due: 2026-11-20 18:00"
    text = path.read_text(encoding="utf-8").replace("- id: averages", first_lines)
    path.write_text(f"time_zone: Europe/Berlin\nlate: {{per_day: 10%}}\n{text}", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "hw.zip", "w") as archive:
        for name in ("Ada_1", "Bela_2", "Chen_3"):
            archive.writestr(f"{name}_assignsubmission_file/01_running_mean.py", RIGHT)
    (tmp_path / "Grades.csv").write_text(
        'Identifier,"Full name","Last modified (submission)"\n'
        'Participant 1,Ada,"Friday, 20 November 2026, 6:00 PM"\n'
        'Participant 2,Bela,"Saturday, 21 November 2026, 6:00 PM"\n'
        "Participant 3,Chen,-\n"
    )
    collected = run_course(
        "collect",
        tmp_path / "hw.zip",
        "--out",
        tmp_path / "in",
        "--times",
        tmp_path / "Grades.csv",
        cwd=tiny_copy,
    )
    assert (collected.returncode, collected.stderr) == (1, "")
    assert (
        "no time: Grades.csv has no time of Chen_3. Next: get the list from Moodle again, then "
        "the same command again\n"
    ) in collected.stdout
    graded = run_course("grade", tmp_path / "in", "--out", tmp_path / "results", cwd=tiny_copy)
    bela_decision = "decided: Bela_2: Averages: 1 day after 18:00: 1 day late, −10%"
    assert bela_decision in graded.stdout
    assert graded.stdout.count("decided: ") == 1
    assert "none of them counts as late: Chen_3. Next: a score in overrides.yaml" in graded.stdout
