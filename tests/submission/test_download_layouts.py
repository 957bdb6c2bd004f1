"""Each platform's names, as its own source makes them, lead to the right student and exercise; what
stands beside them to nobody.
"""

from dataclasses import replace

import pytest

from manyheads.submission.roster_and_times import Roster, Student

from .conftest import DANCE, DANCED, FILE, zip_bytes


@pytest.mark.parametrize(
    ("platform", "names", "students"),
    [
        ("Canvas", ["lovelaceada_12345_678901_04_reshape_dance-2.py"], ["lovelaceada_12345"]),
        ("Canvas", [f"lovelaceada_LATE_12345_678901_{FILE}"], ["lovelaceada_12345"]),
        ("Canvas", [f"anon_aB3x9_678901_{FILE}"], ["anon_aB3x9"]),
        ("Canvas", [f"LATE_anon_aB3x9_678901_{FILE}"], ["anon_aB3x9"]),
        ("Canvas", [f"projectgroup3_77_678901_{FILE}"], ["projectgroup3_77"]),
        ("Canvas", [f"o_neil_12345_678901_{FILE}"], ["o_neil_12345"]),
        ("Canvas", [f"ødegårdzoë_12345_678901_{FILE}"], ["ødegårdzoë_12345"]),
        ("Canvas", ["lovelaceada_12345_678901_my_1_2_reshape_dance.py"], ["lovelaceada_12345"]),
        ("Canvas", [f"_12345_678901_{FILE}"], ["_12345"]),
        # an archive that was unpacked in place
        ("Canvas", [f"lovelaceada_12345_678901_hw1/{FILE}"], ["lovelaceada_12345"]),
        ("Canvas", [f"smithjo_1_10_{FILE}", f"smithjo_2_11_{FILE}"], ["smithjo_1", "smithjo_2"]),
        ("Moodle", [f"Ada Lovelace_123_assignsubmission_file/{FILE}"], ["Ada Lovelace_123"]),
        ("Moodle", [f"Ada Lovelace_123_assignsubmission_file_/src/{FILE}"], ["Ada Lovelace_123"]),
        ("Moodle", [f"Ada Lovelace_123_assignsubmission_file_{FILE}"], ["Ada Lovelace_123"]),
        ("Moodle", [f"Participant_123_assignsubmission_file_/{FILE}"], ["Participant_123"]),
        ("Moodle", [f"Red team_7_assignsubmission_file_/{FILE}"], ["Red team_7"]),
        ("Moodle", [f"Default group_assignsubmission_file_/{FILE}"], ["Default group"]),
        ("Moodle", [f"李 雷_123_assignsubmission_file_/{FILE}"], ["李 雷_123"]),
        ("folders", [f"ada/multi_head_attention/{FILE}"], ["ada"]),
        ("folders", [f"ada/Multi-Head Attention/{FILE}"], ["ada"]),
        ("folders", [f"class/ada/multi_head_attention/{FILE}"], ["ada"]),
        ("folders", [f"class/ada/{FILE}"], ["ada"]),
        ("folders", [f"multi_head_attention/ada/{FILE}"], ["ada"]),
        ("folders", [f"04_reshape_dance/ada/{FILE}"], ["ada"]),
        ("folders", [f"ada/reshape_dance/{FILE}"], ["ada"]),
        ("folders", [f"04_reshape_dance/{FILE}"], ["download"]),  # the archive is the student's
        ("folders", [f"multi_head_attention/{FILE}"], ["download"]),
        ("folders", [FILE], ["download"]),
        ("folders", ["ada/04_reshape_dance - Copy.py", f"bo/{FILE}"], ["ada", "bo"]),
        ("folders", [f"class/hw1/ada/{FILE}", f"class/hw1/bela/x/{FILE}"], ["ada", "bela"]),
        # of Teams
        (
            "folders",
            [f"Student Work/Submitted files/{student}/HW1/{FILE}" for student in ("Ada L", "Bo")],
            ["Ada L", "Bo"],
        ),
        # of ILIAS
        (
            "folders",
            [f"HW1/Abgaben/Team {i}/Li_Bo_bo_12{i}/{FILE}" for i in (7, 8)],
            ["Team 7", "Team 8"],
        ),
    ],
)
def test_files_are_of_whom_the_names_say(run, write_zip, there, platform, names, students):
    collected = run(write_zip(names))
    assert (collected.platforms, collected.not_taken) == ({"download.zip": [platform]}, [])
    assert there() == [f"{student}/{DANCED}" for student in students]
    assert all(file.origin.late is ("LATE" in file.origin.path) for file in collected.candidates)


@pytest.mark.parametrize(
    ("names", "students"),
    [
        pytest.param(
            [f"adal_1_67890{i}_{FILE}" for i in (1, 9)] + [f"boli_2_3_{FILE}"],
            ["adal_1", "boli_2"],
            id="Canvas",
        ),
        pytest.param(
            [f"ada/{step}/{FILE}" for step in ("2_submissions", "4_revisions_1")]
            + [f"bo/2_submissions/{FILE}"],
            ["ada", "bo"],
            id="OpenOLAT",
        ),
        pytest.param(
            [
                f"7-9 - Ada L - Nov {d}, 2026 {t} - {FILE}"
                for d, t in ((20, "1102 AM"), (21, "902 PM"))
            ]
            + [f"8-9 - Bo Li - Nov 20, 2026 1102 AM - {FILE}"],
            ["Ada L_7-9", "Bo Li_8-9"],
            id="Brightspace",
        ),
        pytest.param(
            [f"7-9 - Ada L - {d} November, 2026 902 PM/{FILE}" for d in (9, 21)]
            + [f"8-9 - Bo Li - 20 November, 2026 1102 AM/{FILE}", "index.html"],
            ["Ada L_7-9", "Bo Li_8-9"],
            id="Brightspace, in folders",
        ),
        pytest.param(
            [
                f"HW_1_{prefix}-11-12_{FILE}"
                for prefix in (
                    "ada_attempt_2026-11-20-10",
                    "ada_attempt_2026-11-21-09",
                    "bo_li_attempt_2026-11-20-10",
                )
            ],
            ["ada", "bo_li"],
            id="Blackboard",
        ),
        pytest.param(
            [
                f"{prefix}-10-11-12/{FILE}"
                for prefix in (
                    "Ada L_ada_attempt_2026-11-20",
                    "Ada L_ada_attempt_2026-11-21",
                    "Bo_bo_attempt_2026-11-20",
                )
            ],
            ["Ada L_ada", "Bo_bo"],
            id="Blackboard Ultra, in folders",
        ),
        pytest.param(
            [
                f"HW1/{folder}/{FILE}"
                for folder in (
                    "Lovelace, Ada - s100/Revision 9 - On time",
                    "Lovelace, Ada - s100/Revision 10 - Late",
                    "O'Neil-Li, Bo - s200/Revision 1 - On time",
                )
            ],
            ["s100", "s200"],
            id="Schoology",
        ),
        pytest.param(
            [
                f"{folder}/{FILE}"
                for folder in (
                    "Abel, Ada/Revision 1 - On time/my work",
                    "Abel, Ada/Revision 2 - On time",
                    "Li, Bo/Revision 1 - Late",
                )
            ],
            ["Abel, Ada", "Li, Bo"],
            id="Schoology, without ids",
        ),
        pytest.param(
            [
                f"HW1/Submissions/{prefix}04_reshape_dance{again}.py"
                for prefix, again in (
                    ("Li_Bo_bo.li_124/", ""),
                    ("Li_Bo_bo.li_124/", " (2)"),
                    ("Lovelace_Ada_al1_123/Late Submission - ", ""),
                )
            ]
            + ["HW1/HW1.xlsx"],
            ["Li_Bo_bo.li_124", "Lovelace_Ada_al1_123"],
            id="ILIAS",
        ),
    ],
)
def test_names_with_times_are_of_as_many_students_as_they_name(
    run, write_zip, there, out_folder, names, students
):
    """Two attempts are one student's; the first in the archive is the older one."""
    collected = run(write_zip({name: f"{DANCE}# {i}" for i, name in enumerate(names)}))
    assert there() == [f"{student}/{DANCED}" for student in students]
    assert "# 1" in (out_folder / students[0] / DANCED).read_text()
    assert sorted(file.state.name for file in collected.candidates) == ["NEW", "NEW", "OLDER"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("ada_1_2_04_reshape_dance.py.txt", f"ada_1/{DANCED}"),
        ("ada_1_2_04_reshape_dance.py-1.txt", f"ada_1/{DANCED}"),
        ("ada/03.py.txt", f"ada/{DANCED}"),
        ("ada/04_reshape_dance.py (2).txt", f"ada/{DANCED}"),
        ("ada/04_reshape_dance.py.download", f"ada/{DANCED}"),
        ("ada/04_reshape_dance.ipynb.json", f"ada/{DANCED[:-2]}ipynb"),
        ("ada/04_reshape_dance.ipynb.txt", f"ada/{DANCED[:-2]}ipynb"),
    ],
)
def test_an_ending_that_browsers_and_mail_put_behind_is_seen_through(
    run, write_zip, there, name, path
):
    collected = run(write_zip([name, name.replace("ada", "bo").replace("_1_2_", "_2_3_")]))
    assert collected.not_taken == []
    assert path in there()
    assert len(there()) == 2


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


def test_gradescope_says_in_a_list_whose_a_folder_is(run, write_zip, there):
    folders = ("submission_987654", "submission_987655/deep", "submission_1")
    files = {f"export/{folder}/04_reshape_dance.py": DANCE for folder in folders}
    collected = run(write_zip({"export/submission_metadata.yml": METADATA, **files}))
    assert collected.platforms == {"download.zip": ["Gradescope"]}
    assert there() == [f"{name}/{DANCED}" for name in ("100", "102", "bela@example.org")]
    (message,) = collected.not_taken
    assert (
        "submission_1/04_reshape_dance.py is of no submission that submission_metadata.yml lists"
        in message
    )


def test_a_table_above_gradescopes_list_is_in_no_folder_of_it(run, write_zip, there):
    files = {
        "report.csv": "Name,SID\n",
        "export/submission_metadata.yml": METADATA,
        "export/submission_987654/04_reshape_dance.py": DANCE,
    }
    run(write_zip(files))
    assert f"100/{DANCED}" in there()


def test_of_two_gradescope_submissions_of_one_student_the_later_wins(run, write_zip, out_folder):
    row = "\n  :submitters:\n  - :sid: '100'\n  :created_at: 2026-11-"
    listed = f"submission_9:{row}20 10:00:00 Z\nsubmission_10:{row}19 23:00:00 -08:00\n"
    files = {f"submission_{i}/04_reshape_dance.py": f"{DANCE}# {i}" for i in (9, 10)}
    run(write_zip({"submission_metadata.yml": listed, **files}))
    assert (out_folder / "100" / DANCED).read_text().endswith("# 9")


ALIASES = "".join(
    f"{c}: &{c} {{<<: [*{p}, *{p}, *{p}, *{p}]}}\n"
    for p, c in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
)


@pytest.mark.parametrize(
    "bomb",
    [
        "[" * 100_000,
        f"a: &a {{x: 1}}\n{ALIASES}",
        "!!python/object/apply:os.system ['touch /tmp/owned']",
        b"\xff\xfe",
        "a: b: c",
    ],
    ids=["deep", "wide", "an object", "no text", "no YAML"],
)
def test_a_list_that_is_hostile_is_read_as_none(run, write_zip, there, bomb):
    collected = run(
        write_zip({"submission_metadata.yml": bomb, "submission_1/04_reshape_dance.py": DANCE})
    )
    assert (there(), bool(collected.not_taken)) == ([], True)


E = f"exercises/{DANCED}"


@pytest.mark.parametrize(
    ("all_of_them", "names", "students"),
    [
        ("all", [f"multi-head-attention-ada-l/{E}"], ["ada-l"]),  # by the assignment's name
        (
            "all",
            [f"hw3-ada-l/{E}", f"hw3-bela/{E}"],
            ["ada-l", "bela"],
        ),  # by what they have in common
        ("all", [f"hw-ada/{E}", f"hw-adam/{E}"], ["ada", "adam"]),
        ("all", [f"ada/{E}", f"bela/{E}"], ["ada", "bela"]),
        # By the folder that Classroom makes.
        ("hw1-submissions", [f"hw1-ada/{FILE}", f"hw1-bela/src/{FILE}"], ["ada", "bela"]),
        ("hw1-submissions", ["hw1-anna-l/a.py", f"hw1-anna-m/{FILE}"], ["anna-l", "anna-m"]),
        ("hw1-submissions", [f"hw1-ada/{FILE}"], ["ada"]),
        ("hw1-submissions", [f"hw1-anna-l/{E}", "hw1-anna-m/a.py"], ["anna-l", "anna-m"]),
    ],
)
def test_clones(run, tmp_path, there, all_of_them, names, students):
    for name in names:
        repository = name.partition("/")[0]
        for path in (name, f"{repository}/README.md", f"{repository}/.git/x.py"):
            (tmp_path / all_of_them / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / all_of_them / path).write_text(DANCE)
    collected = run(tmp_path / all_of_them)
    assert (collected.platforms, collected.not_taken) == ({all_of_them: ["clones"]}, [])
    assert there() == [f"{student}/{DANCED}" for student in students]


def test_githubs_zips_of_repositories_are_their_users(run, tmp_path, there):
    (tmp_path / "all").mkdir()
    for user in ("ada", "bela"):
        name = f"hw1-{user}-main"
        files = {
            f"{name}/exercises/{DANCED}": DANCE,
            f"{name}/README.md": "",
            f"{name}/old/{FILE}": "#",
        }
        (tmp_path / "all" / f"{name}.zip").write_bytes(zip_bytes(files))
    collected = run(tmp_path / "all")
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


@pytest.mark.parametrize(
    ("name", "student"),
    [
        pytest.param("x_12345_9_04_reshape_dance.py", "al", id="by Canvas' id"),
        pytest.param(
            "lovelaceadaking_77_9_04_reshape_dance.py", "al", id="by Canvas' form of the name"
        ),
        pytest.param(
            "Bela Barto\u0301k_5_assignsubmission_file_/04_reshape_dance.py",
            "bb",
            id="an accent apart",
        ),
        pytest.param(
            "BARTOK Bela_5_assignsubmission_file_/04_reshape_dance.py",
            "BARTOK Bela_5",
            id="no accent",
        ),
        pytest.param(
            "Chen C_5_assignsubmission_file_/04_reshape_dance.py", "Chen C_5", id="two of the name"
        ),
        pytest.param(
            f"1-2 - 23304308 Day - 05 March 2026 612 PM/{FILE}",
            "dd",
            id="by a school's id before it",
        ),
        pytest.param(
            f"1-2 - bela Bela Bart\u00f3k - 05 March 2026 612 PM/{FILE}",
            "bb",
            id="by a login before it",
        ),
        pytest.param(
            f"1-2 - Bela Berg - 05 March 2026 612 PM/{FILE}",
            "Bela Berg_1-2",
            id="a first name as a login",
        ),
        pytest.param(
            f"multi-head-attention-ada-l/exercises/{DANCED}",
            "al",
            id="by a repository of an assignment's name",
        ),
        pytest.param(
            "hw1-ada-l/exercises/multi_head_attention/04_reshape_dance.py",
            "hw1-ada-l",
            id="not by its end",
        ),
        pytest.param(
            f"multi-head-attention-bela/exercises/{DANCED}",
            "bela",
            id="an account with another's login",
        ),
        pytest.param(
            f"multi-head-attention-Dora-Day/exercises/{DANCED}",
            "Dora-Day",
            id="an account with another's name",
        ),
    ],
)
def test_a_roster_says_whose_a_file_is(run, write_zip, there, name, student):
    # a roster that knows nobody stops the command
    enrolled_zip = write_zip(["x_12345_8_02_causal_mask.py"], "known.zip")
    collected = run(write_zip([name]), enrolled_zip, roster=ROSTER)
    assert [path for path in there() if path.endswith(DANCED)] == [f"{student}/{DANCED}"]
    is_a_stranger = student not in {"al", "bb", "dd"}
    assert any("is not on the roster" in note for note in collected.notes) is is_a_stranger


@pytest.mark.parametrize(
    "name",
    [
        "projectgroup3_77_9_04_reshape_dance.py",
        "Project Group 3_7_assignsubmission_file_/04_reshape_dance.py",
        "HW1/Abgaben/Project Group 3/Li_Bo_bo_7/04_reshape_dance.py",
        "project-group-3/04_reshape_dance.py",
    ],
)
def test_what_a_group_hands_in_is_of_each_member(run, write_zip, there, name):
    rows = [
        Student(student, group="Project Group 3" if student < "c" else "")
        for student in ("ada", "ben", "cat")
    ]
    collected = run(
        write_zip(
            [
                name,
                name.replace("roup 3", "roup 4")
                .replace("roup3_77", "roup4_78")
                .replace("-3", "-4"),
            ]
        ),
        roster=Roster(tuple(rows)),
    )
    assert [path for path in there() if not path.startswith(("P", "p"))] == [
        f"ada/{DANCED}",
        f"ben/{DANCED}",
    ]
    assert collected.not_taken == []


TEAM = tuple(
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
OTHER = Student(
    "s2",
    name="Cleo Dane",
    group="Blue team",
    login="cd3",
    sis_id="S2",
    canvas_id="50022",
    github="cd3",
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "{compact}_{number}_1_04_reshape_dance.py",
            id="Canvas, where the number is one member's",
        ),
        pytest.param("{name}_7{number}_assignsubmission_file_/04_reshape_dance.py", id="Moodle"),
        pytest.param("{name}(7a{number})/Submission attachment(s)/04_reshape_dance.py", id="Sakai"),
        pytest.param(
            "7-{number} - {name} - Nov 20, 2026 1102 AM - 04_reshape_dance.py", id="Brightspace"
        ),
        pytest.param("hw_{name}_attempt_2026-11-20-10-11-12_04_reshape_dance.py", id="Blackboard"),
        pytest.param("{name}/2_submissions/04_reshape_dance.py", id="OpenOLAT"),
        pytest.param("HW1/Abgaben/{name}/Okri_Ben_bo2_{number}/04_reshape_dance.py", id="ILIAS"),
        pytest.param(
            "hw1-{slug}/exercises/multi_head_attention/04_reshape_dance.py", id="GitHub Classroom"
        ),
        pytest.param("{name}/04_reshape_dance.py", id="folders"),
    ],
)
def test_a_full_roster_gives_what_a_group_hands_in_to_each_member(run, write_zip, there, name):
    groups = [
        {"name": "Red team", "compact": "redteam", "slug": "red-team", "number": 50020},
        {"name": "Blue team", "compact": "blueteam", "slug": "blue-team", "number": 50022},
    ]
    collected = run(
        write_zip([name.format(**group) for group in groups]), roster=Roster((*TEAM, OTHER))
    )
    assert there() == [f"s{number}/{DANCED}" for number in range(3)]
    assert (collected.not_taken, collected.notes) == ([], [])


def test_a_member_who_hands_in_alone_is_not_the_group(run, write_zip, there):
    run(write_zip([f"lovelaceada_50020_1_{FILE}"]), roster=Roster(TEAM))
    assert there() == [f"s0/{DANCED}"]


def test_the_number_of_a_stranger_to_the_group_is_that_students(run, write_zip, there):
    """Students choose the name that Canvas shows: nobody hands in for a group by taking its
    name.
    """
    run(write_zip([f"redteam_50022_1_{FILE}"]), roster=Roster((*TEAM, OTHER)))
    assert there() == [f"s2/{DANCED}"]


NO_GROUPS = Roster(tuple(replace(student, group="") for student in TEAM))


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        pytest.param("redteam", True, id="a group"),
        pytest.param("lovelaceada", False, id="the student"),
        pytest.param("kinglovelaceaugusta", False, id="a part of the name"),
    ],
)
def test_where_the_roster_has_no_groups_a_name_that_may_be_one_is_told(
    run, write_zip, name, is_told
):
    """Canvas' own gradebook, as a roster, says nothing of groups."""
    collected = run(write_zip([f"{name}_50020_1_{FILE}"]), roster=NO_GROUPS)
    next_step = (
        "Next: if a group handed in, give --roster a file that has its members in a column `group`"
    )
    sentence = (
        "s0: the files are named 'redteam', as a group's are, and count for this student alone. "
    )
    assert collected.notes == [f"{sentence}{next_step}"] * is_told


def test_moodles_name_of_a_group_before_a_members_is_that_member(run, write_zip, there):
    names = [
        f"Red team-{student.name}_{number}_assignsubmission_file_/{FILE}"
        for number, student in enumerate(TEAM)
    ]
    collected = run(write_zip(names), roster=Roster((*TEAM, OTHER)))
    assert there() == [f"s0/{DANCED}", f"s1/{DANCED}"]
    assert (collected.not_taken, collected.notes) == ([], [])


SAKAI, SUBMITTED = "HW 1/Lovelace, Ada(al1)/{}", f"Submission attachment(s)/{FILE}"
NOTES = [
    "HW 1/grades.csv",
    SAKAI.format("comments.txt"),
    SAKAI.format("Lovelace, Ada(al1)_submissionText.html"),
]
STUDENTS = [
    pytest.param(
        [SAKAI.format(SUBMITTED), f"HW 1/Li, Bo(bo@uni.edu)/{SUBMITTED}"],
        [SAKAI.format(f"Feedback Attachment(s)/{FILE}")],
        NOTES,
        ["al1", "bo@uni.edu"],
        id="Sakai",
    ),
    pytest.param(
        [SAKAI.format(SUBMITTED)],
        [SAKAI.format(f"Feedback Attachment(s)/{FILE}")],
        NOTES[:1],
        ["al1"],
        id="Sakai, one student",
    ),
    pytest.param(
        [
            f"Lovelace, Ada(al1)_Submission attachment(s)_{FILE}",
            "Li, Bo(bo)_Submission attachment(s)_reshape_dance-1.py",
        ],
        [],
        [],
        ["al1", "bo"],
        id="Sakai, flat",
    ),
    pytest.param(
        [f"ada/2_submissions/{FILE}", f"bo/2_submissions/{FILE}"],
        [],
        [f"ada/{step}/{FILE}" for step in ("1_task", "3_corrections", "5_solutions")],
        ["ada", "bo"],
        id="OpenOLAT",
    ),
    pytest.param(
        [f"Ada L_1_assignsubmission_file_/{FILE}", f"Bo_2_assignsubmission_file_/{FILE}"],
        [f"Ada L_1_assignfeedback_file_/{FILE}"],
        [],
        ["Ada L_1", "Bo_2"],
        id="Moodle",
    ),
    pytest.param(
        [f"hw_{student}_attempt_2026-11-20-10-11-12_{FILE}" for student in ("ada", "bo")],
        [],
        [f"hw_{student}_attempt_2026-11-20-10-11-12.txt" for student in ("ada", "bo")],
        ["ada", "bo"],
        id="Blackboard",
    ),
    pytest.param(
        [
            f"{i}-9 - {student} - Nov 20, 2026 1102 AM - {FILE}"
            for i, student in ((1, "Ada"), (2, "Bo"))
        ],
        [],
        ["index.html"],
        ["Ada_1-9", "Bo_2-9"],
        id="Brightspace",
    ),
]


@pytest.mark.parametrize(("handed_in", "returned", "own", "students"), STUDENTS)
def test_what_went_back_never_competes(
    run, write_zip, there, out_folder, handed_in, returned, own, students
):
    """What went back stands last in the archive, and so is the newest file."""
    attempts = dict.fromkeys(handed_in, f"{DANCE}# handed in")
    collected = run(
        write_zip(
            {**attempts, **dict.fromkeys(returned, f"{DANCE}# went back"), **dict.fromkeys(own, "")}
        )
    )
    assert there() == [f"{student}/{DANCED}" for student in students]
    assert all("# handed in" in (out_folder / path).read_text() for path in there())
    assert collected.not_taken == []
    notes = [f"download.zip: left out as feedback that went back to students: {len(returned)}"]
    assert [sentence for sentence in collected.notes if "went back" in sentence] == (
        notes if returned else []
    )


@pytest.mark.parametrize(
    ("platform", "names"),
    [
        (
            "Sakai",
            [
                SAKAI.format("Lovelace, Ada(al1)_submissionText.html"),
                f"HW 1/Li, Bo(bo)/{SUBMITTED}",
            ],
        ),
        (
            "Blackboard",
            ["hw_ada_attempt_2026-11-20-10-11-12.txt", f"hw_bo_attempt_2026-11-20-10-11-12_{FILE}"],
        ),
        ("Canvas", ["b_LATE_4_link.html", f"a_1_2_{FILE}"]),
        (
            "Moodle",
            ["Bo_3_assignsubmission_onlinetext_/x.html", f"Ada_2_assignsubmission_file_/{FILE}"],
        ),
    ],
)
def test_what_nobody_handed_in_as_a_file_is_named(run, write_zip, there, platform, names):
    collected = run(write_zip(names))
    reason = (
        f"is text or a link typed into {platform}, or a note, and no file. Next: ask for the file"
    )
    assert (collected.not_taken, len(there())) == ([f"download.zip: {names[0]} {reason}"], 1)


SCORED, LOOSE = (
    "multi_head_attention/01_attention_scores.py",
    "is in no student's folder. Next: put it into one",
)
BESIDE = "download.zip: left out as text or a note beside a file that was handed in: 1"
MOODLE = "Ada Lovelace_123_assignsubmission"
EACH = [
    f"{stem}/{student}/{stem}.py"
    for stem in ("01_attention_scores", FILE[:-3])
    for student in ("ada", "bela")
]
MIXED = [
    f"ada_1_2_{FILE}",
    f"Bela_3_assignsubmission_file_/{FILE}",
    f"chen/hw/{FILE}",
    f"dora/exercises/{DANCED}",
]
MIXED += ["04_loose.py"]


@pytest.mark.parametrize(
    ("names", "laid", "told"),
    [
        pytest.param(
            ["Mails/Ada Lovelace - 04_reshape_dance.py", f"Mails/Bela/{FILE}"],
            [f"Bela/{DANCED}"],
            LOOSE,
            id="a file beside a folder makes no two students one",
        ),
        pytest.param(
            EACH,
            [f"{student}/{path}" for student in ("ada", "bela") for path in (SCORED, DANCED)],
            "",
            id="folders of exercises are no students",
        ),
        pytest.param(
            MIXED,
            [f"{name}/{DANCED}" for name in ("Bela_3", "ada_1", "chen", "dora")],
            f"04_loose.py {LOOSE}",
            id="thrown together",
        ),
        pytest.param(
            [
                f"{student}/{step}/{FILE}"
                for student, step in (
                    ("ada", "2_submissions"),
                    ("bo", "2_submissions"),
                    ("zoe", "5_solutions"),
                )
            ],
            [f"{student}/{DANCED}" for student in ("ada", "bo")],
            "lies where OpenOLAT puts tasks and corrections",
            id="a solution alone, of OpenOLAT",
        ),
        pytest.param(
            [f"Ada_1_assignfeedback_file_/{FILE}"], [], "", id="feedback alone, of Moodle"
        ),
        pytest.param(
            [f"{SAKAI.format('Feedback Attachment(s)')}/{FILE}"],
            [],
            "",
            id="feedback alone, of Sakai",
        ),
        pytest.param(
            [f"ada/bo_return/{FILE}", f"ada/x/Feedback Attachment(s)/{FILE}", f"bo/{FILE}"],
            [f"ada/{DANCED}", f"bo/{DANCED}"],
            "",
            id="a folder that is named as feedback",
        ),
        pytest.param(
            [f"{MOODLE}_file_/{FILE}", f"{MOODLE}_onlinetext_/onlinetext.html"],
            [f"Ada Lovelace_123/{DANCED}"],
            "",
            id="text beside the same student's file",
        ),
    ],
)
def test_nobodys_files_are_told_and_nobodys_place_is_taken(
    run, write_zip, there, names, laid, told
):
    collected = run(write_zip(names))
    assert there() == laid
    assert [told in message for message in collected.not_taken] == [True] * bool(told)
    assert (BESIDE in collected.notes) is any("onlinetext" in name for name in names)
    assert names != MIXED or collected.platforms == {
        "download.zip": ["Moodle", "Canvas", "clones", "folders"]
    }
