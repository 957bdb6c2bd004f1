"""File names and folders as each platform writes them lead to the right student and exercise.

In the tables, | separates file names, * is the file 04_reshape_dance.py, and ** is that file in
its assignment's folder.
"""

from dataclasses import replace

import pytest

from manyheads.submission.roster_and_times import Roster, Student
from tests.make import cases

from .conftest import DANCE, DANCED, FILE, listed, zip_bytes

FILES_AND_STUDENTS = {
    "Canvas": {
        "lovelaceada_12345_678901_04_reshape_dance-2.py": "lovelaceada_12345",
        "lovelaceada_LATE_12345_678901_*": "lovelaceada_12345",
        "anon_aB3x9_678901_*": "anon_aB3x9",
        "LATE_anon_aB3x9_678901_*": "anon_aB3x9",
        "projectgroup3_77_678901_*": "projectgroup3_77",
        "o_neil_12345_678901_*": "o_neil_12345",
        "ødegårdzoë_12345_678901_*": "ødegårdzoë_12345",
        "lovelaceada_12345_678901_my_1_2_reshape_dance.py": "lovelaceada_12345",
        "_12345_678901_*": "_12345",
        # an archive that was unpacked in place
        "lovelaceada_12345_678901_hw1/*": "lovelaceada_12345",
        "smithjo_1_10_* | smithjo_2_11_*": "smithjo_1 | smithjo_2",
    },
    "Moodle": {
        "Ada Lovelace_123_assignsubmission_file/*": "Ada Lovelace_123",
        "Ada Lovelace_123_assignsubmission_file_/src/*": "Ada Lovelace_123",
        "Ada Lovelace_123_assignsubmission_file_*": "Ada Lovelace_123",
        "Participant_123_assignsubmission_file_/*": "Participant_123",
        "Default group_assignsubmission_file_/*": "Default group",
        "李 雷_123_assignsubmission_file_/*": "李 雷_123",
    },
    "folders": {
        "ada/**": "ada",
        "ada/Multi-Head Attention/*": "ada",
        "class/ada/**": "ada",
        "class/ada/*": "ada",
        "multi_head_attention/ada/*": "ada",
        "04_reshape_dance/ada/*": "ada",
        "ada/reshape_dance/*": "ada",
        "04_reshape_dance/*": "download",  # the archive is the student's
        "multi_head_attention/*": "download",
        "*": "download",
        "ada/04_reshape_dance - Copy.py | bo/*": "ada | bo",
        "class/hw1/ada/* | class/hw1/bela/x/*": "ada | bela",
        "Student Work/Submitted files/Ada L/HW1/* | Student Work/Submitted files/Bo/HW1/*": (
            "Ada L | Bo"  # of Teams
        ),
        "HW1/Abgaben/Team 7/Li_Bo_bo_127/* | HW1/Abgaben/Team 8/Li_Bo_bo_128/*": "Team 7 | Team 8",
    },
}
ROWS = [(platform, *row) for platform, rows in FILES_AND_STUDENTS.items() for row in rows.items()]


@pytest.mark.parametrize(("platform", "names", "students"), ROWS)
def test_files_go_to_the_students_in_their_names(collect_zip, there, platform, names, students):
    collected = collect_zip(listed(names))
    assert (collected.platforms, collected.not_taken) == ({"download.zip": [platform]}, [])
    assert there() == [f"{student}/{DANCED}" for student in listed(students)]
    assert all(file.origin.late is ("LATE" in file.origin.path) for file in collected.candidates)


@cases(
    "names, students",
    {
        "Canvas": ("adal_1_678901_* | adal_1_678909_* | boli_2_3_*", "adal_1 | boli_2"),
        "OpenOLAT": ("ada/2_submissions/* | ada/4_revisions_1/* | bo/2_submissions/*", "ada | bo"),
        "Brightspace": (
            "7-9 - Ada L - Nov 20, 2026 1102 AM - * | 7-9 - Ada L - Nov 21, 2026 902 PM - * |"
            "8-9 - Bo Li - Nov 20, 2026 1102 AM - *",
            "Ada L_7-9 | Bo Li_8-9",
        ),
        "Brightspace, in folders": (
            "7-9 - Ada L - 9 November, 2026 902 PM/* | 7-9 - Ada L - 21 November, 2026 902 PM/* |"
            "8-9 - Bo Li - 20 November, 2026 1102 AM/* | index.html",
            "Ada L_7-9 | Bo Li_8-9",
        ),
        "Blackboard": (
            "HW_1_ada_attempt_2026-11-20-10-11-12_* | HW_1_ada_attempt_2026-11-21-09-11-12_* |"
            "HW_1_bo_li_attempt_2026-11-20-10-11-12_*",
            "ada | bo_li",
        ),
        "Blackboard Ultra, in folders": (
            "Ada L_ada_attempt_2026-11-20-10-11-12/* | Ada L_ada_attempt_2026-11-21-10-11-12/* |"
            "Bo_bo_attempt_2026-11-20-10-11-12/*",
            "Ada L_ada | Bo_bo",
        ),
        "Schoology": (
            "HW1/Lovelace, Ada - s100/Revision 9 - On time/* |"
            "HW1/Lovelace, Ada - s100/Revision 10 - Late/* |"
            "HW1/O'Neil-Li, Bo - s200/Revision 1 - On time/*",
            "s100 | s200",
        ),
        "Schoology, without ids": (
            "Abel, Ada/Revision 1 - On time/my work/* | Abel, Ada/Revision 2 - On time/* |"
            "Li, Bo/Revision 1 - Late/*",
            "Abel, Ada | Li, Bo",
        ),
        "ILIAS": (
            "HW1/Submissions/Li_Bo_bo.li_124/* |"
            "HW1/Submissions/Li_Bo_bo.li_124/04_reshape_dance (2).py |"
            "HW1/Submissions/Lovelace_Ada_al1_123/Late Submission - * | HW1/HW1.xlsx",
            "Li_Bo_bo.li_124 | Lovelace_Ada_al1_123",
        ),
    },
)
def test_a_newer_attempt_of_the_same_student_replaces_the_older_one(
    collect_zip, there, out_folder, names, students
):
    """The first two files are attempts of the same student; the first is the older one."""
    collected = collect_zip({name: f"{DANCE}# {i}" for i, name in enumerate(listed(names))})
    first, second = listed(students)
    assert there() == [f"{first}/{DANCED}", f"{second}/{DANCED}"]
    assert "# 1" in (out_folder / first / DANCED).read_text()
    assert sorted(file.state.name for file in collected.candidates) == ["NEW", "NEW", "OLDER"]


EXTRA_SUFFIXES = "ada_1_2_*.txt | ada_1_2_*-1.txt | ada/03.py.txt | ada/* (2).txt | ada/*.download"
EXTRA_NOTEBOOK_SUFFIXES = "ada/04_reshape_dance.ipynb.json | ada/04_reshape_dance.ipynb.txt"


@pytest.mark.parametrize("name", listed(f"{EXTRA_SUFFIXES} | {EXTRA_NOTEBOOK_SUFFIXES}"))
def test_file_name_suffixes_of_browsers_and_mail_are_ignored(collect_zip, there, name):
    collected = collect_zip([name, name.replace("ada", "bo").replace("_1_2_", "_2_3_")])
    assert collected.not_taken == []
    file = DANCED.replace(".py", ".ipynb") if ".ipynb" in name else DANCED
    assert [path.partition("/")[2] for path in there()] == [file, file]


METADATA = """\
submission_987654:
  :submitters:
  - :name: Ada Lovelace
    :sid: '100'
    :email: ada@example.org
  :created_at: !ruby/object:ActiveSupport::TimeWithZone 2026-11-20 10:11:12.345678000 Z
  :score: 3.5
  :results: &1 {tests: []}
submission_987655:
  :submitters:
  - :name: Bela B
    :sid:
    :email: bela@example.org
  - :name: Chen C
    :sid: '102'
    :email: chen@example.org
  :created_at: 2026-11-20 11:00:00 Z
  :results: *1
"""


def test_gradescopes_metadata_file_names_the_owner_of_each_folder(collect_zip, there):
    folders = ("submission_987654", "submission_987655/deep", "submission_1")
    files = {f"export/{folder}/04_reshape_dance.py": DANCE for folder in folders}
    collected = collect_zip({"export/submission_metadata.yml": METADATA, **files})
    assert collected.platforms == {"download.zip": ["Gradescope"]}
    assert there() == [f"{name}/{DANCED}" for name in ("100", "102", "bela@example.org")]
    (message,) = collected.not_taken
    assert (
        "submission_1/04_reshape_dance.py is of no submission that submission_metadata.yml lists"
        in message
    )


def test_gradescopes_metadata_file_is_found_below_another_table(collect_zip, there):
    files = {
        "report.csv": "Name,SID\n",
        "export/submission_metadata.yml": METADATA,
        "export/submission_987654/04_reshape_dance.py": DANCE,
    }
    collect_zip(files)
    assert f"100/{DANCED}" in there()


def test_the_later_of_two_gradescope_submissions_counts(collect_zip, out_folder):
    row = "\n  :submitters:\n  - :sid: '100'\n  :created_at: 2026-11-"
    listed = f"submission_9:{row}20 10:00:00 Z\nsubmission_10:{row}19 23:00:00 -08:00\n"
    files = {f"submission_{i}/04_reshape_dance.py": f"{DANCE}# {i}" for i in (9, 10)}
    collect_zip({"submission_metadata.yml": listed, **files})
    assert (out_folder / "100" / DANCED).read_text().endswith("# 9")


ALIASES = "".join(
    f"{c}: &{c} {{<<: [*{p}, *{p}, *{p}, *{p}]}}\n"
    for p, c in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
)


@cases(
    "bomb",
    {
        "deep": "[" * 100_000,
        "wide": f"a: &a {{x: 1}}\n{ALIASES}",
        "an object": "!!python/object/apply:os.system ['touch /tmp/owned']",
        "no text": b"\xff\xfe",
        "no YAML": "a: b: c",
    },
)
def test_a_hostile_metadata_file_is_ignored(collect_zip, there, bomb):
    collected = collect_zip(
        {"submission_metadata.yml": bomb, "submission_1/04_reshape_dance.py": DANCE}
    )
    assert (there(), bool(collected.not_taken)) == ([], True)


@cases(
    "folder, names, students",
    {
        "by the assignment's name": ("all", "multi-head-attention-ada-l/exercises/**", "ada-l"),
        "by what they have in common": (
            "all",
            "hw3-ada-l/exercises/** | hw3-bela/exercises/**",
            "ada-l | bela",
        ),
        "of one beginning": ("all", "hw-ada/exercises/** | hw-adam/exercises/**", "ada | adam"),
        "of nothing in common": ("all", "ada/exercises/** | bela/exercises/**", "ada | bela"),
        # By the folder that Classroom makes.
        "deeper": ("hw1-submissions", "hw1-ada/* | hw1-bela/src/*", "ada | bela"),
        "by one that has it": (
            "hw1-submissions",
            "hw1-anna-l/a.py | hw1-anna-m/exercises/**",
            "anna-l | anna-m",
        ),
        "alone": ("hw1-submissions", "hw1-ada/*", "ada"),
    },
)
def test_clones_of_repositories_go_to_the_students_in_their_names(
    collect_files, tmp_path, there, folder, names, students
):
    for name in listed(names):
        repository = name.partition("/")[0]
        for path in (name, f"{repository}/README.md", f"{repository}/.git/x.py"):
            (tmp_path / folder / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / path).write_text(DANCE)
    collected = collect_files(tmp_path / folder)
    assert (collected.platforms, collected.not_taken) == ({folder: ["clones"]}, [])
    assert there() == [f"{student}/{DANCED}" for student in listed(students)]


def test_githubs_zip_files_of_repositories_go_to_their_users(collect_files, tmp_path, there):
    (tmp_path / "all").mkdir()
    for user in ("ada", "bela"):
        name = f"hw1-{user}-main"
        files = {
            f"{name}/exercises/{DANCED}": DANCE,
            f"{name}/README.md": "",
            f"{name}/old/{FILE}": "#",
        }
        (tmp_path / "all" / f"{name}.zip").write_bytes(zip_bytes(files))
    collected = collect_files(tmp_path / "all")
    assert (collected.platforms, collected.not_taken) == ({"all": ["clones"]}, [])
    assert there() == [f"ada/{DANCED}", f"bela/{DANCED}"]


ROSTER = Roster(
    (
        Student(
            "al",
            name="Ada King Lovelace",
            canvas_id="12345",
            email="ada@example.org",
            github="ada-l",
        ),
        Student("bb", name="Bela Bart\u00f3k", login="bela"),
        Student("dd", name="Dora Day", sis_id="23304308"),
        Student("c1", name="Chen C"),
        Student("c2", name="Chen C"),
    )
)


@cases(
    "name, student",
    {
        "by Canvas' id": ("x_12345_9_*", "al"),
        "by Canvas' form of the name": ("lovelaceadaking_77_9_*", "al"),
        "an accent apart": ("Bela Barto\u0301k_5_assignsubmission_file_/*", "bb"),
        "no accent": ("BARTOK Bela_5_assignsubmission_file_/*", "BARTOK Bela_5"),
        "a name with a comma": ("Bart\u00f3k, Bela_5_assignsubmission_file_/*", "bb"),
        "two of the name": ("Chen C_5_assignsubmission_file_/*", "Chen C_5"),
        "by a school's id before it": ("1-2 - 23304308 Day - 05 March 2026 612 PM/*", "dd"),
        "by a login before it": ("1-2 - bela Bela Bart\u00f3k - 05 March 2026 612 PM/*", "bb"),
        "a first name as a login": ("1-2 - Bela Berg - 05 March 2026 612 PM/*", "Bela Berg_1-2"),
        "by a login behind the name": ("Bela Bart\u00f3k_bela_attempt_2026-11-20-10-11-12/*", "bb"),
        "a login behind another name": (
            "Somebody_bela_attempt_2026-11-20-10-11-12/*",
            "Somebody_bela",
        ),
        "by a repository of an assignment's name": (
            "multi-head-attention-ada-l/exercises/**",
            "al",
        ),
        "not by the end of the repository's name": ("hw1-ada-l/exercises/**", "hw1-ada-l"),
        "an account with another's login": ("multi-head-attention-bela/exercises/**", "bela"),
        "an account with another's name": (
            "multi-head-attention-Dora-Day/exercises/**",
            "Dora-Day",
        ),
    },
)
def test_a_roster_maps_files_to_students(collect_files, write_zip, there, name, student):
    # a roster that knows nobody stops the command
    enrolled_zip = write_zip(["x_12345_8_02_causal_mask.py"], "known.zip")
    collected = collect_files(write_zip(listed(name)), enrolled_zip, roster=ROSTER)
    assert [path for path in there() if path.endswith(DANCED)] == [f"{student}/{DANCED}"]
    is_a_stranger = student not in {"al", "bb", "dd"}
    assert any("is not on the roster" in note for note in collected.notes) is is_a_stranger


RED_TEAM = tuple(
    Student(
        f"s{number}",
        name=name,
        group="Red team",
        email=f"{login}@x.org",
        login=login,
        sis_id=f"S{number}",
        canvas_id=f"5002{number}",
        github=login,
    )
    for number, name, login in ((0, "Ada Lovelace", "al1"), (1, "Ben Okri", "bo2"))
)
BLUE_STUDENT = Student(
    "s2",
    name="Cleo Dane",
    group="Blue team",
    login="cd3",
    sis_id="S2",
    canvas_id="50022",
    github="cd3",
)


@cases(
    "name",
    {
        "Canvas, where the number is one member's": "{compact}_{number}_1_04_reshape_dance.py",
        "Moodle": "{name}_7{number}_assignsubmission_file_/04_reshape_dance.py",
        "Sakai": "{name}(7a{number})/Submission attachment(s)/04_reshape_dance.py",
        "Brightspace": "7-{number} - {name} - Nov 20, 2026 1102 AM - 04_reshape_dance.py",
        "Blackboard": "hw_{name}_attempt_2026-11-20-10-11-12_04_reshape_dance.py",
        "OpenOLAT": "{name}/2_submissions/04_reshape_dance.py",
        "ILIAS": "HW1/Abgaben/{name}/Okri_Ben_bo2_{number}/04_reshape_dance.py",
        "GitHub Classroom": "hw1-{slug}/exercises/multi_head_attention/04_reshape_dance.py",
        "folders": "{name}/04_reshape_dance.py",
    },
)
def test_a_groups_file_goes_to_each_member_on_the_roster(collect_zip, there, name):
    groups = [
        {"name": "Red team", "compact": "redteam", "slug": "red-team", "number": 50020},
        {"name": "Blue team", "compact": "blueteam", "slug": "blue-team", "number": 50022},
    ]
    collected = collect_zip(
        [name.format(**group) for group in groups], roster=Roster((*RED_TEAM, BLUE_STUDENT))
    )
    assert there() == [f"s{number}/{DANCED}" for number in range(3)]
    assert (collected.not_taken, collected.notes) == ([], [])


def test_a_file_of_one_group_member_goes_to_that_member_only(collect_zip, there):
    collect_zip([f"lovelaceada_50020_1_{FILE}"], roster=Roster(RED_TEAM))
    assert there() == [f"s0/{DANCED}"]


def test_an_id_that_looks_like_a_groups_name_is_one_student(collect_zip, there):
    row = "submission_{0}:\n  :submitters:\n  - :sid: {1}\n"
    files = {f"submission_{number}/{FILE}": DANCE for number in (7, 8)}
    files["submission_metadata.yml"] = row.format(7, "red-team") + row.format(8, "S0")
    collect_zip(files, roster=Roster(RED_TEAM))
    assert there() == [f"red-team/{DANCED}", f"s0/{DANCED}"]


def test_a_student_with_a_groups_name_does_not_submit_for_the_group(collect_zip, there):
    """Students can choose the name that Canvas shows; the number in the file name decides."""
    collect_zip([f"redteam_50022_1_{FILE}"], roster=Roster((*RED_TEAM, BLUE_STUDENT)))
    assert there() == [f"s2/{DANCED}"]


CANVAS_FILE = "{}_50020_1_*"
TEAM_WITHOUT_GROUPS = [replace(student, group="") for student in RED_TEAM]


@cases(
    "name, platform, students, is_reported",
    {
        "a group, where the roster has none": ("redteam", CANVAS_FILE, TEAM_WITHOUT_GROUPS, True),
        "the student": ("lovelaceada", CANVAS_FILE, TEAM_WITHOUT_GROUPS, False),
        "a part of the name": ("kinglovelaceaugusta", CANVAS_FILE, TEAM_WITHOUT_GROUPS, False),
        "another group": ("greenteam", CANVAS_FILE, RED_TEAM, True),
        "the student, whose group is known": ("lovelaceada", CANVAS_FILE, RED_TEAM, False),
        "another platform": ("greenteam", "HW/{}(al1)/Submission attachment(s)/*", RED_TEAM, False),
    },
)
def test_a_file_name_that_may_be_a_groups_is_reported(
    collect_zip, name, platform, students, is_reported
):
    """A gradebook of Canvas, if used as the roster, has no groups."""
    collected = collect_zip(listed(platform.format(name)), roster=Roster(students))
    message = (
        f"s0: the files are named {name!r}, as a group's are, and count for this student alone. "
        "Next: if a group handed in, give --roster a file that has its members in a column `group`"
    )
    assert [file.student for file in collected.candidates] == ["s0"]
    assert collected.notes == [message] * is_reported


def test_moodle_files_with_group_and_member_go_to_the_member(collect_zip, there):
    names = [
        f"Red team-{student.name}_{number}_assignsubmission_file_/{FILE}"
        for number, student in enumerate(RED_TEAM)
    ]
    collected = collect_zip(names, roster=Roster((*RED_TEAM, BLUE_STUDENT)))
    assert there() == [f"s0/{DANCED}", f"s1/{DANCED}"]
    assert (collected.not_taken, collected.notes) == ([], [])


SAKAI = "HW 1/Lovelace, Ada(al1)/"
BLACKBOARD = "hw_{}_attempt_2026-11-20-10-11-12"


@cases(
    "submitted, returned, notes, students",
    {
        "Sakai": (
            f"{SAKAI}Submission attachment(s)/* |"
            "HW 1/Li, Bo(bo@uni.edu)/Submission attachment(s)/*",
            f"{SAKAI}Feedback Attachment(s)/*",
            f"HW 1/grades.csv | {SAKAI}comments.txt |{SAKAI}Lovelace, Ada(al1)_submissionText.html",
            "al1 | bo@uni.edu",
        ),
        "Sakai, one student": (
            f"{SAKAI}Submission attachment(s)/*",
            f"{SAKAI}Feedback Attachment(s)/*",
            "HW 1/grades.csv",
            "al1",
        ),
        "Sakai, flat": (
            "Lovelace, Ada(al1)_Submission attachment(s)_* |"
            "Li, Bo(bo)_Submission attachment(s)_reshape_dance-1.py",
            "",
            "",
            "al1 | bo",
        ),
        "OpenOLAT": (
            "ada/2_submissions/* | bo/2_submissions/*",
            "",
            "ada/1_task/* | ada/3_corrections/* | ada/5_solutions/*",
            "ada | bo",
        ),
        "Moodle": (
            "Ada L_1_assignsubmission_file_/* | Bo_2_assignsubmission_file_/*",
            "Ada L_1_assignfeedback_file_/*",
            "",
            "Ada L_1 | Bo_2",
        ),
        "Blackboard": (
            f"{BLACKBOARD.format('ada')}_* | {BLACKBOARD.format('bo')}_*",
            "",
            f"{BLACKBOARD.format('ada')}.txt | {BLACKBOARD.format('bo')}.txt",
            "ada | bo",
        ),
    },
)
def test_returned_feedback_never_replaces_a_submission(
    collect_zip, there, out_folder, submitted, returned, notes, students
):
    """The feedback is the last file of the archive, and therefore the newest."""
    files = dict.fromkeys(listed(submitted), f"{DANCE}# handed in")
    files |= dict.fromkeys(listed(returned), f"{DANCE}# went back")
    collected = collect_zip(files | dict.fromkeys(listed(notes), ""))
    assert there() == [f"{student}/{DANCED}" for student in listed(students)]
    assert all("# handed in" in (out_folder / path).read_text() for path in there())
    assert collected.not_taken == []
    message = "download.zip: left out as feedback that went back to students: 1"
    assert [note for note in collected.notes if "went back" in note] == [message] * bool(returned)


NO_FILES = {
    "Sakai": f"{SAKAI}Lovelace, Ada(al1)_submissionText.html |"
    "HW 1/Li, Bo(bo)/Submission attachment(s)/*",
    "Blackboard": f"{BLACKBOARD.format('ada')}.txt | {BLACKBOARD.format('bo')}_*",
    "Canvas": "b_LATE_4_link.html | a_1_2_*",
    "Moodle": "Bo_3_assignsubmission_onlinetext_/x.html | Ada_2_assignsubmission_file_/*",
}


@pytest.mark.parametrize(("platform", "names"), NO_FILES.items())
def test_typed_text_or_links_instead_of_a_file_are_reported(collect_zip, there, platform, names):
    collected = collect_zip(listed(names))
    reason = (
        f"is text or a link typed into {platform}, or a note, and no file. Next: ask for the file"
    )
    assert collected.not_taken == [f"download.zip: {listed(names)[0]} {reason}"]
    assert len(there()) == 1


LOOSE_FILE_MESSAGE = "is in no student's folder. Next: put it into one"
TYPED_TEXT = "Ada Lovelace_123_assignsubmission_onlinetext_/onlinetext.html"


@cases(
    "names, collected_files, reason",
    {
        "a file beside a folder makes no two students one": (
            "Mails/Ada Lovelace - * | Mails/Bela/*",
            "Bela/**",
            LOOSE_FILE_MESSAGE,
        ),
        "folders of exercises are no students": (
            "01_attention_scores/ada/01_attention_scores.py |"
            "01_attention_scores/bela/01_attention_scores.py |"
            "04_reshape_dance/ada/* | 04_reshape_dance/bela/*",
            "ada/multi_head_attention/01_attention_scores.py | ada/** |"
            "bela/multi_head_attention/01_attention_scores.py | bela/**",
            "",
        ),
        "a solution alone, of OpenOLAT": (
            "ada/2_submissions/* | bo/2_submissions/* | zoe/5_solutions/*",
            "ada/** | bo/**",
            "lies where OpenOLAT puts tasks and corrections",
        ),
        "feedback alone, of Moodle": ("Ada_1_assignfeedback_file_/*", "", ""),
        "feedback alone, of Sakai": (f"{SAKAI}Feedback Attachment(s)/*", "", ""),
        "a folder that is named as feedback": (
            "ada/bo_return/* | ada/x/Feedback Attachment(s)/* | bo/*",
            "ada/** | bo/**",
            "",
        ),
        "text beside the same student's file": (
            f"Ada Lovelace_123_assignsubmission_file_/* | {TYPED_TEXT}",
            "Ada Lovelace_123/**",
            "",
        ),
    },
)
def test_files_without_a_student_are_reported_or_ignored(
    collect_zip, there, names, collected_files, reason
):
    collected = collect_zip(listed(names))
    assert there() == listed(collected_files)
    assert [reason in message for message in collected.not_taken] == [True] * bool(reason)
    left_out_message = (
        "download.zip: left out as text or a note beside a file that was handed in: 1"
    )
    assert (left_out_message in collected.notes) is (TYPED_TEXT in names)


def test_a_mixed_download_is_read_by_the_layout_of_each_file(collect_zip, there):
    names = listed("ada_1_2_* | Bela_3_assignsubmission_file_/* | chen/hw/* | dora/exercises/**")
    collected = collect_zip([*names, "04_loose.py"])
    assert there() == listed("Bela_3/** | ada_1/** | chen/** | dora/**")
    assert f"04_loose.py {LOOSE_FILE_MESSAGE}" in "".join(collected.not_taken)
    assert collected.platforms == {"download.zip": ["Moodle", "Canvas", "clones", "folders"]}
