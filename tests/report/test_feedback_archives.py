"""Feedback finds its way home: folders as nbgrader reads them, archives as Moodle's and Canvas' own
importers do.
"""

import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.result import Result, write_result
from manyheads.submission.collect_downloads import collect
from manyheads.submission.roster_and_times import read_roster
from tests import make
from tests.conftest import Run

COURSE = """\
title: Averages
assignments:
  - id: averages
    title: Averages
    exercises:
      - {id: mean, title: The mean, points: 4, hint: Count.}
      - {id: median, title: The median, points: 6, hint: Sort first.}
"""
MEAN = "def mean(x):\n    return x.mean()\n"
HOSTILE = [
    "=1+2",
    "+1",
    "-1",
    "@x",
    "＝1",
    "  =1",
    "report",
    "results",
    "index",
    "gradebook",
    "CON",
    "Ada",
    "ada",
    "e\u0301",
    "\u00e9",
    "feedback",
    "students",
    "not_graded",
    "<script>alert(1)<script>",
    "a&b",
    "*",
    "[x]",
]


def graded_result(student: str) -> Result:
    passing_check = make.check("values", 4, 4, title="has the values")
    failing_check = make.check(
        "odd", 0, 6, title="odd lengths", evidence="the middle is missed", hint="Sort."
    )
    return make.result(
        student, make.exercise("mean", passing_check), make.exercise("median", failing_check)
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A course."""
    (tmp_path / "course.yaml").write_text(COURSE)
    return tmp_path


def send(
    run_course: Run, here: Path, *students: str, files: dict[str, str | bytes] | None = None
) -> str:
    """Collect a download of these files, grade these students and whoever handed those in, and
    write their feedback.
    """
    if files is not None:
        with zipfile.ZipFile(here / "download.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        collect(load_course(here), [here / "download.zip"], here / "submitted")
        students = tuple(path.name for path in (here / "submitted").iterdir() if path.is_dir())
    for student in students:
        write_result(graded_result(student), here / "results")
    completed = run_course("feedback", "results", "--out", "home")
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def archive_of(here: Path, name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(here / "home" / name) as archive:
        return {member: archive.read(member) for member in archive.namelist()}


def test_a_folder_for_each_student_as_nbgrader_names_it_has_what_counts(run_course, here):
    (here / "overrides.yaml").write_text(
        "- {student: ada, exercise: median, score: 5, by: Dr. X, comment: on paper}\n"
    )
    handed_in = here / "submitted" / "ada" / "averages"
    handed_in.mkdir(parents=True)
    (handed_in / "timestamp.txt").write_text("2026-12-01 18:00 UTC")
    (handed_in / "submission_secret.txt").write_text("secret")
    assert send(run_course, here, "ada") == "1 student: home/feedback/\n"
    folder = here / "home" / "feedback" / "ada" / "averages"
    assert sorted(path.name for path in folder.iterdir()) == [
        "01_mean.html",
        "02_median.html",
        "averages.html",
        "averages.md",
        "submission_secret.txt",
        "timestamp.txt",
    ]
    texts = {path.name: path.read_text() for path in folder.glob("*.[hm]*")}
    for phrase in ("the middle is missed", "score set to 5 by Dr. X: on paper (0 → 5)"):
        assert [name for name in sorted(texts) if phrase in texts[name]] == [
            "02_median.html",
            "averages.html",
            "averages.md",
        ]
    assert "9 / 10" in texts["averages.html"]
    assert "script-src" not in texts["averages.html"]
    assert texts["averages.md"].startswith("## Averages: 9 / 10\n")


def test_whatever_students_are_called_nobodys_feedback_or_result_is_lost(run_course, here):
    send(run_course, here, *HOSTILE)
    pages = {
        path.parts[-3]: path.read_text()
        for path in (here / "home" / "feedback").glob("*/*/averages.html")
    }
    assert len({name.casefold() for name in pages}) == len(HOSTILE), (
        "where case does not count, too"
    )
    assert {"Ada", "ada", "e\u0301", "CON"}.isdisjoint(pages), (
        "which are one folder on some system, or none"
    )
    assert not [name for name, page in pages.items() if "<script>alert" in page]
    original = {path: path.read_bytes() for path in (here / "results").glob("*/*.json")}
    assert len(original) == len(HOSTILE)
    for _ in range(2):
        assert run_course("report", "results").returncode == 0
    assert {path: path.read_bytes() for path in (here / "results").glob("*/*.json")} == original
    assert sorted(path.name for path in (here / "results" / "report").iterdir()) == [
        "averages.json"
    ]
    pages = list((here / "results" / "report-pages" / "students").iterdir())
    assert len({path.name.casefold() for path in pages}) == len(HOSTILE)
    assert not any(path.stem.casefold() == "con" for path in pages)


def as_moodle_reads(path: str, participants: set[int]) -> tuple[int, str] | None:
    """What is_valid_filename_for_import of mod/assign/feedback/file/importziplib.php makes of a
    path, step by step.
    """
    segments = path.split("/")
    if segments[-1].startswith((".", "~")):
        return None
    while segments:
        info = segments.pop(0).split("_", 4)
        if len(info) < 4 or not info[1].isdecimal() or int(info[1]) not in participants:
            continue
        if (info[2], info[3]) != ("assignsubmission", "file"):
            continue
        return int(info[1]), "/".join([info[4] if len(info) > 4 else "", *segments]).lstrip("/")
    return None


@pytest.mark.parametrize(
    "form",
    [
        "{0}_assignsubmission_file/01_mean.py",
        "{0}_assignsubmission_file_/01_mean.py",
        "{0}_assignsubmission_file_01_mean.py",
    ],
)
def test_moodle_finds_each_participant(run_course, here, form):
    names = ["Ada Lovelace_123", "ada lovelace_124", "=cmd|calc'!A0_7", "Zoë Ødegård_9"]
    output = send(run_course, here, files={form.format(name): MEAN for name in names})
    assert output.endswith("home/moodle-averages.zip\n")
    files = archive_of(here, "moodle-averages.zip")
    read = {path: as_moodle_reads(path, {7, 9, 123, 124}) for path in files}
    assert sorted(target for target in read.values() if target) == [
        (number, f"averages_feedback.{ending}")
        for number in (7, 9, 123, 124)
        for ending in ("html", "md")
    ]
    ada = next(path for path, target in read.items() if target == (124, "averages_feedback.html"))
    assert "<bdi>ada lovelace_124</bdi>" in files[ada].decode()
    assert len({path.casefold() for path in files}) == len(files)  # where case does not count, too
    assert not [path for path in files if path.startswith("/") or ".." in path.split("/")]


def test_whose_files_could_not_be_read_is_said(run_course, here):
    files: dict[str, str | bytes] = {
        "Ada_1_assignsubmission_file_/01_mean.py": MEAN,
        "Bela_2_assignsubmission_file_/work.rar": b"Rar!",
    }
    output = send(run_course, here, files=files)
    unread = "no file could be read, and feedback goes back under a file's name"
    bela = next(
        path.name for path in (here / "submitted").iterdir() if path.name.startswith("Bela")
    )
    assert (
        f"not in a zip: {bela}: {unread}. Next: give this student the page in "
        "feedback/STUDENT/averages/"
    ) in output.replace("\n", " ")
    assert output.count("not in a zip") == 1
    assert {path.split("/")[0] for path in archive_of(here, "moodle-averages.zip")} == {
        "Ada_1_assignsubmission_file_"
    }


def test_whom_moodle_cannot_find_is_said(run_course, here):
    files = {f"{name}_assignsubmission_file_/01_mean.py": MEAN for name in ("Participant", "Ada_1")}
    output = send(run_course, here, files=files)
    assert (
        "not in a zip: Participant: Moodle cannot find this student by what was collected. Next: "
        in output
    )
    assert {path.split("/")[0] for path in archive_of(here, "moodle-averages.zip")} == {
        "Ada_1_assignsubmission_file_"
    }


def as_canvas_reads(name: str, attachments: dict[int, str]) -> tuple[str, int] | None:
    """What infer_comment_context_from_filename of app/models/abstract_assignment.rb makes of a
    name. attachments: whose each is.
    """
    fields = [field for field in name.rpartition("/")[2].split("_") if field != "LATE"]
    if fields[-1].startswith("link") or name.startswith("._"):
        return None
    ids = (
        fields[1:3]
        if fields[0] == "anon"
        else [field for field in fields if re.fullmatch(r"\d+", field)][:2]
    )
    if len(ids) < 2 or attachments.get(int(ids[1])) != ids[0]:
        return None
    return ids[0], int(ids[1])


def test_canvas_finds_each_attachment_and_gets_the_feedback_in_the_form_of_its_file(
    run_course, here
):
    for archive_format in ("zip", "gztar"):
        for name in ("01_mean.py", "02_median.py")[archive_format == "zip" :]:
            (here / archive_format).mkdir(exist_ok=True)
            (here / archive_format / name).write_text(MEAN)
        shutil.make_archive(str(here / "work"), archive_format, here / archive_format)
    names = {
        "lovelaceada_LATE_1_10_01_mean.py": MEAN,
        "lovelaceada_1_11_02_median-2.py": "# coding: utf-8\ndef median(x):\n    return x\n",
        "bartokbela_2_20_01_mean.ipynb": make.notebook(MEAN),
        "chenchen_3_30_work.zip": (here / "work.zip").read_bytes(),
        "danadan_5_50_work.tar.gz": (here / "work.tar.gz").read_bytes(),
        "anon_aB3x9_40_01_mean.py": MEAN,
        "LATE_anon_aB3x9_41_02_median.py": MEAN.replace("mean", "median"),
    }
    send(run_course, here, files=names)
    files = archive_of(here, "canvas-averages.zip")
    owners = {10: "1", 11: "1", 20: "2", 30: "3", 40: "aB3x9", 41: "aB3x9", 50: "5"}
    assert {as_canvas_reads(name, owners) for name in files} == {
        (user, file) for file, user in owners.items()
    }
    feedback = files.pop("danadan_5_50_work.tar.gz.txt").decode()
    assert {*files, "danadan_5_50_work.tar.gz"} == set(names)
    assert feedback.startswith("## Averages: "), "a text, of all its exercises, which is called one"
    ada = files["lovelaceada_1_11_02_median-2.py"].decode()
    assert "# the middle is missed" in ada.replace("#   ", "# ").replace("#  ", "# ")
    compile(ada, "02_median.py", "exec")
    assert "the middle is missed" not in files["lovelaceada_LATE_1_10_01_mean.py"].decode()
    bela = json.loads(files["bartokbela_2_20_01_mean.ipynb"])
    assert [cell["cell_type"] for cell in bela["cells"]] == ["markdown"]
    assert bela["cells"][0]["source"].startswith("## Averages: 4 / 4")
    with zipfile.ZipFile(io.BytesIO(files["chenchen_3_30_work.zip"])) as chen:
        assert chen.namelist() == ["averages_feedback.html", "averages_feedback.md"]


def test_again_writes_the_same_bytes(run_course, here):
    def send_and_read() -> dict[str, bytes]:
        send(run_course, here, files={"ada_1_10_01_mean.py": MEAN, "bela_2_20_01_mean.py": MEAN})
        return make.content(here / "home")

    assert send_and_read() == send_and_read()


ROSTER = """\
id,name,group,canvas_id
ada,Ada Lovelace,Red team,50020
bela,Bela Bartok,Red team,50021
chen,Chen Li,Solo,50022
"""
OF_TEAM = "redteam_50020_10_01_mean.py"


def send_to_groups(
    run_course: Run, here: Path, files: list[str], overrides: str = "", *options: str
) -> str:
    """Collect a download of groups' files with a roster, grade everybody alike, and write the
    feedback.
    """
    (here / "roster.csv").write_text(ROSTER)
    if overrides:
        (here / "overrides.yaml").write_text(overrides)
    with zipfile.ZipFile(here / "download.zip", "w") as archive:
        for name in files:
            archive.writestr(name, MEAN)
    collect(
        load_course(here),
        [here / "download.zip"],
        here / "submitted",
        read_roster(here / "roster.csv"),
    )
    for student in ("ada", "bela", "chen"):
        if (here / "submitted" / student).is_dir():
            write_result(graded_result(student), here / "results")
    completed = run_course(
        "feedback", "results", "--out", "home", "--roster", "roster.csv", *options
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_what_goes_to_a_group_in_canvas_names_no_member(run_course, here):
    send_to_groups(run_course, here, [OF_TEAM])
    feedback = archive_of(here, "canvas-averages.zip")[OF_TEAM].decode()
    assert feedback.startswith("# ## Averages")
    assert [
        name for name in ("ada", "bela", "lovelace", "bartok") if name in feedback.lower()
    ] == []


def test_where_one_member_alone_has_something_the_group_gets_nothing_of_it(run_course, here):
    decided = "- {student: ada, exercise: median, score: 5, by: Dr. X, comment: was ill}\n"
    output = send_to_groups(run_course, here, [OF_TEAM, "lichen_50022_11_01_mean.py"], decided)
    assert [*archive_of(here, "canvas-averages.zip")] == ["lichen_50022_11_01_mean.py"]
    assert (
        "not in a zip: ada, bela: Canvas gives one file to the whole group, and their feedback "
        "differs. Next: give each member the page in feedback/STUDENT/averages/"
    ) in output
    assert (
        "was ill" in (here / "home" / "feedback" / "ada" / "averages" / "averages.md").read_text()
    )
    assert (
        "was ill"
        not in (here / "home" / "feedback" / "bela" / "averages" / "averages.md").read_text()
    )


@pytest.mark.parametrize("name", ["Red team", "Solo"])
def test_the_number_of_a_group_in_moodle_is_no_participants(run_course, here, name):
    output = send_to_groups(run_course, here, [f"{name}_7_assignsubmission_file_/01_mean.py"])
    members = "ada, bela" if name == "Red team" else "chen"
    assert not (here / "home" / "moodle-averages.zip").exists()
    assert (
        f"not in a zip: {members}: Moodle's folder has the number of their group, which is no "
        "participant's. Next: "
    ) in output


def test_moodles_folder_for_each_member_goes_back_to_each(run_course, here):
    names = [
        f"Red team-{name}_{number}" for name, number in (("Ada Lovelace", 7), ("Bela Bartok", 8))
    ]
    send_to_groups(
        run_course, here, [f"{name}_assignsubmission_file_/01_mean.py" for name in names]
    )
    assert {path.split("/")[0] for path in archive_of(here, "moodle-averages.zip")} == {
        f"{name}_assignsubmission_file_" for name in names
    }
