"""The command `course feedback`: folders for nbgrader, and archives to upload to Moodle or Canvas.

Functions named `…_as_PLATFORM_reads` repeat the import rules of that platform.
"""

import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.result import write_result
from manyheads.submission.collect_downloads import collect
from manyheads.submission.roster_and_times import read_roster
from tests import make
from tests.make import call_course

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
MOODLE = "_assignsubmission_file_/01_mean.py"
HOSTILE = """=1+2 +1 -1 @x ＝1 report results index gradebook CON Ada ada feedback students
    not_graded <script>alert(1)<script> a&b * [x]""".split()
HOSTILE += ["  =1", "e\u0301", "\u00e9"]


def write_result_for(student, here):
    """Write a result with a right and a wrong exercise below `here`."""
    right = make.check("values", 4, 4, title="has the values")
    evidence = {"evidence": "the middle is missed", "hint": "Sort."}
    wrong = make.check("odd", 0, 6, title="odd lengths", **evidence)
    exercises = make.exercise("mean", right), make.exercise("median", wrong)
    write_result(make.result(student, *exercises), here / "results")


@pytest.fixture
def feedback_course(tmp_path: Path) -> Path:
    """Return the folder of a course with two exercises."""
    (tmp_path / "course.yaml").write_text(COURSE)
    return tmp_path


def run_feedback(here, *options):
    """Run `course feedback` on all results, and return its output."""
    completed = call_course("feedback", "results", "--out", "home", *options, cwd=here)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def collect_and_grade(here, files, *roster):
    """Collect a download of these files, and write a result for each student.

    files: the content of each file in the download by its name.
    """
    with zipfile.ZipFile(here / "download.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    collect(load_course(here), [here / "download.zip"], here / "submitted", *roster)
    for path in (here / "submitted").iterdir():
        if path.is_dir():
            write_result_for(path.name, here)


def collect_grade_and_feedback(here, files):
    """Collect the files, grade all students, and return the output of `course feedback`."""
    collect_and_grade(here, files)
    return run_feedback(here)


def files_in(here, name):
    """Return the content of each file in this archive of feedback."""
    with zipfile.ZipFile(here / "home" / name) as archive:
        return {member: archive.read(member) for member in archive.namelist()}


def folders_in(here, name):
    """Return the top folders in this archive of feedback."""
    return {path.split("/")[0] for path in files_in(here, name)}


def test_feedback_folders_are_named_as_in_nbgrader_and_have_overridden_scores(feedback_course):
    (feedback_course / "overrides.yaml").write_text(
        "- {student: ada, exercise: median, score: 5, by: Dr. X, comment: on paper}\n"
    )
    submission_folder = feedback_course / "submitted" / "ada" / "averages"
    submission_folder.mkdir(parents=True)
    (submission_folder / "timestamp.txt").write_text("2026-12-01 18:00 UTC")
    (submission_folder / "submission_secret.txt").write_text("secret")
    write_result_for("ada", feedback_course)
    assert run_feedback(feedback_course) == "1 student: home/feedback/\n"
    folder = feedback_course / "home" / "feedback" / "ada" / "averages"
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    pages_with_all_details = ["02_median.html", "averages.html", "averages.md"]
    assert sorted(texts) == [
        "01_mean.html",
        *pages_with_all_details,
        "submission_secret.txt",
        "timestamp.txt",
    ]
    for phrase in ("the middle is missed", "score set to 5 by Dr. X: on paper (0 → 5)"):
        assert sorted(name for name in texts if phrase in texts[name]) == pages_with_all_details
    assert "9 / 10" in texts["averages.html"]
    assert "script-src" not in texts["averages.html"]
    assert texts["averages.md"].startswith("## Averages: 9 / 10\n")


def test_students_with_hostile_names_lose_no_feedback_and_no_result(feedback_course):
    for name in HOSTILE:
        write_result_for(name, feedback_course)
    run_feedback(feedback_course)
    files = (feedback_course / "home" / "feedback").glob("*/*/averages.html")
    pages = {path.parts[-3]: path.read_text() for path in files}
    assert len({name.casefold() for name in pages}) == len(HOSTILE), "if case does not count, too"
    # on some systems these are the same folder, or not a valid name
    assert {"Ada", "ada", "e\u0301", "CON"}.isdisjoint(pages)
    assert [name for name, page in pages.items() if "<script>alert" in page] == []
    results = feedback_course / "results"
    original = {path: path.read_bytes() for path in results.glob("*/*.json")}
    assert len(original) == len(HOSTILE)
    for _ in range(2):
        assert call_course("report", "results", cwd=feedback_course).returncode == 0
    assert {path: path.read_bytes() for path in results.glob("*/*.json")} == original
    assert [path.name for path in (results / "report").iterdir()] == ["averages.json"]
    stems = {path.stem.casefold() for path in (results / "report-pages" / "students").iterdir()}
    assert len(stems) == len(HOSTILE)
    assert "con" not in stems


def target_as_moodle_reads(path: str, participants: set[int]) -> tuple[int, str] | None:
    """Return the (participant, file name) for a path in an archive, or None if it is ignored.

    These are the steps of is_valid_filename_for_import in
    mod/assign/feedback/file/importziplib.php.
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
    "folder_name",
    [
        "{0}_assignsubmission_file/01_mean.py",
        "{0}_assignsubmission_file_/01_mean.py",
        "{0}_assignsubmission_file_01_mean.py",
    ],
)
def test_moodle_assigns_feedback_to_each_participant(feedback_course, folder_name):
    names = ["Ada Lovelace_123", "ada lovelace_124", "=cmd|calc'!A0_7", "Zoë Ødegård_9"]
    output = collect_grade_and_feedback(
        feedback_course, {folder_name.format(name): MEAN for name in names}
    )
    assert output.endswith("home/moodle-averages.zip\n")
    files = files_in(feedback_course, "moodle-averages.zip")
    participants = {7, 9, 123, 124}
    targets = {path: target_as_moodle_reads(path, participants) for path in files}
    assert sorted(target for target in targets.values() if target) == [
        (number, f"averages_feedback.{ending}")
        for number in sorted(participants)
        for ending in ("html", "md")
    ]
    ada = next(
        path for path, target in targets.items() if target == (124, "averages_feedback.html")
    )
    assert "<bdi>ada lovelace_124</bdi>" in files[ada].decode()
    assert len({path.casefold() for path in files}) == len(files), "if case does not count, too"
    assert [path for path in files if path.startswith("/") or ".." in path.split("/")] == []


def test_a_student_without_a_readable_file_gets_no_archive_entry_but_a_message(feedback_course):
    files = {f"Ada_1{MOODLE}": MEAN, "Bela_2_assignsubmission_file_/work.rar": b"Rar!"}
    output = collect_grade_and_feedback(feedback_course, files).replace("\n", " ")
    (bela,) = (feedback_course / "submitted").glob("Bela*")
    assert (
        f"not in a zip: {bela.name}: no file could be read, and feedback goes back under a file's "
        "name. Next: give this student the page in feedback/STUDENT/averages/"
    ) in output
    assert output.count("not in a zip") == 1
    assert folders_in(feedback_course, "moodle-averages.zip") == {"Ada_1_assignsubmission_file_"}


def test_a_student_unknown_to_moodle_gets_no_archive_entry_but_a_message(feedback_course):
    output = collect_grade_and_feedback(
        feedback_course, {f"{name}{MOODLE}": MEAN for name in ("Participant", "Ada_1")}
    )
    assert (
        "not in a zip: Participant: Moodle cannot find this student by what was collected. Next: "
    ) in output
    assert folders_in(feedback_course, "moodle-averages.zip") == {"Ada_1_assignsubmission_file_"}


def attachment_as_canvas_reads(name: str, attachments: dict[int, str]) -> tuple[str, int] | None:
    """Return the (user, attachment) for a file name, or None if it is ignored.

    These are the steps of infer_comment_context_from_filename in
    app/models/abstract_assignment.rb. attachments: the owner of each attachment.
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


def test_canvas_gets_feedback_for_each_attachment_in_the_same_file_type(
    feedback_course,
):
    for archive_format in ("zip", "gztar"):
        for name in ("01_mean.py", "02_median.py")[archive_format == "zip" :]:
            (feedback_course / archive_format).mkdir(exist_ok=True)
            (feedback_course / archive_format / name).write_text(MEAN)
        shutil.make_archive(
            str(feedback_course / "work"), archive_format, feedback_course / archive_format
        )
    names = {
        "lovelaceada_LATE_1_10_01_mean.py": MEAN,
        "lovelaceada_1_11_02_median-2.py": "# coding: utf-8\ndef median(x):\n    return x\n",
        "bartokbela_2_20_01_mean.ipynb": make.notebook(MEAN),
        "chenchen_3_30_work.zip": (feedback_course / "work.zip").read_bytes(),
        "danadan_5_50_work.tar.gz": (feedback_course / "work.tar.gz").read_bytes(),
        "anon_aB3x9_40_01_mean.py": MEAN,
        "LATE_anon_aB3x9_41_02_median.py": MEAN.replace("mean", "median"),
    }
    collect_grade_and_feedback(feedback_course, names)
    files = files_in(feedback_course, "canvas-averages.zip")
    owners = {10: "1", 11: "1", 20: "2", 30: "3", 40: "aB3x9", 41: "aB3x9", 50: "5"}
    assert {attachment_as_canvas_reads(name, owners) for name in files} == {
        (user, file) for file, user in owners.items()
    }
    text = files.pop("danadan_5_50_work.tar.gz.txt").decode()
    assert {*files, "danadan_5_50_work.tar.gz"} == set(names)
    assert text.startswith("## Averages: "), "a tar archive is answered by one text file"
    ada = files["lovelaceada_1_11_02_median-2.py"].decode()
    assert "# the middle is missed" in ada.replace("#   ", "# ").replace("#  ", "# ")
    compile(ada, "02_median.py", "exec")
    assert "the middle is missed" not in files["lovelaceada_LATE_1_10_01_mean.py"].decode()
    bela = json.loads(files["bartokbela_2_20_01_mean.ipynb"])
    assert [cell["cell_type"] for cell in bela["cells"]] == ["markdown"]
    assert bela["cells"][0]["source"].startswith("## Averages: 4 / 4")
    with zipfile.ZipFile(io.BytesIO(files["chenchen_3_30_work.zip"])) as chen:
        assert chen.namelist() == ["averages_feedback.html", "averages_feedback.md"]


def test_the_same_results_give_byte_identical_feedback(feedback_course):
    collect_and_grade(feedback_course, {"ada_1_10_01_mean.py": MEAN, "bela_2_20_01_mean.py": MEAN})
    run_feedback(feedback_course)
    first_content = make.content(feedback_course / "home")
    run_feedback(feedback_course)
    assert make.content(feedback_course / "home") == first_content


ROSTER = """\
id,name,group,canvas_id
ada,Ada Lovelace,Red team,50020
bela,Bela Bartok,Red team,50021
chen,Chen Li,Solo,50022
"""
TEAM_FILE = "redteam_50020_10_01_mean.py"


def collect_grade_and_feedback_groups(here, *names):
    """Collect files of groups with a roster, give all students the same result, and return the
    output of `course feedback`.
    """
    (here / "roster.csv").write_text(ROSTER)
    collect_and_grade(here, dict.fromkeys(names, MEAN), read_roster(here / "roster.csv"))
    return run_feedback(here, "--roster", "roster.csv")


def test_feedback_to_a_group_in_canvas_names_no_member(feedback_course):
    collect_grade_and_feedback_groups(feedback_course, TEAM_FILE)
    text = files_in(feedback_course, "canvas-averages.zip")[TEAM_FILE].decode()
    assert text.startswith("# ## Averages")
    names = ("ada", "bela", "lovelace", "bartok")
    assert [name for name in names if name in text.lower()] == []


def test_a_group_gets_no_archive_entry_if_its_members_feedback_differs(feedback_course):
    (feedback_course / "overrides.yaml").write_text(
        "- {student: ada, exercise: median, score: 5, by: Dr. X, comment: was ill}\n"
    )
    output = collect_grade_and_feedback_groups(
        feedback_course, TEAM_FILE, "lichen_50022_11_01_mean.py"
    )
    assert [*files_in(feedback_course, "canvas-averages.zip")] == ["lichen_50022_11_01_mean.py"]
    assert (
        "not in a zip: ada, bela: Canvas gives one file to the whole group, and their feedback "
        "differs. Next: give each member the page in feedback/STUDENT/averages/"
    ) in output
    feedback_folder = feedback_course / "home" / "feedback"
    ada, bela = (
        (feedback_folder / student / "averages" / "averages.md").read_text()
        for student in ("ada", "bela")
    )
    assert ("was ill" in ada, "was ill" in bela) == (True, False)


@pytest.mark.parametrize(("name", "members"), [("Red team", "ada, bela"), ("Solo", "chen")])
def test_moodle_feedback_is_not_sent_to_the_number_of_a_group(feedback_course, name, members):
    output = collect_grade_and_feedback_groups(feedback_course, f"{name}_7{MOODLE}")
    assert not (feedback_course / "home" / "moodle-averages.zip").exists()
    assert (
        f"not in a zip: {members}: Moodle's folder has the number of their group, which is no "
        "participant's. Next: "
    ) in output


def test_group_members_with_moodle_folders_of_their_own_get_feedback(feedback_course):
    names = [f"Red team-{member}" for member in ("Ada Lovelace_7", "Bela Bartok_8")]
    collect_grade_and_feedback_groups(feedback_course, *(f"{name}{MOODLE}" for name in names))
    expected = {f"{name}_assignsubmission_file_" for name in names}
    assert folders_in(feedback_course, "moodle-averages.zip") == expected
