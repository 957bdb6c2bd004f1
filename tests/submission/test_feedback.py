"""What platforms put beside what was handed in: feedback that went back, lists and notes. None of it is an attempt."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import DANCE, Collect, There, Zipped

DANCED = "multi_head_attention/04_reshape_dance.py"
FILE = "04_reshape_dance.py"

SAKAI, SUBMITTED = "HW 1/Lovelace, Ada(al1)/{}", f"Submission attachment(s)/{FILE}"
NOTES = ["HW 1/grades.csv", SAKAI.format("comments.txt"), SAKAI.format("Lovelace, Ada(al1)_submissionText.html")]
STUDENTS = [
    pytest.param([SAKAI.format(SUBMITTED), f"HW 1/Li, Bo(bo@uni.edu)/{SUBMITTED}"],
        [SAKAI.format(f"Feedback Attachment(s)/{FILE}")], NOTES, ["al1", "bo@uni.edu"], id="Sakai"),
    pytest.param([SAKAI.format(SUBMITTED)], [SAKAI.format(f"Feedback Attachment(s)/{FILE}")], NOTES[:1], ["al1"],
        id="Sakai, one student"),
    pytest.param([f"Lovelace, Ada(al1)_Submission attachment(s)_{FILE}", "Li, Bo(bo)_Submission attachment(s)_reshape_dance-1.py"],
        [], [], ["al1", "bo"], id="Sakai, flat"),
    pytest.param([f"Blatt 1/ada_l_drop/{FILE}", f"Blatt 1/bo_drop/{FILE}"], [f"Blatt 1/ada_l_return/{FILE}"], [], ["ada_l", "bo"],
        id="OpenOLAT, an older one"),
    pytest.param([f"Blatt 1/ada/x_drop/{FILE}", f"Blatt 1/bo/y_drop/{FILE}"], [f"Blatt 1/ada/x_return/{FILE}"], [],
        ["ada", "bo"], id="OpenOLAT, boxes in folders"),
    pytest.param([f"ada/2_submissions/{FILE}", f"bo/2_submissions/{FILE}"], [f"ada/3_corrections/{FILE}"],
        ["ada/1_task/task.pdf"], ["ada", "bo"], id="OpenOLAT"),
    pytest.param([f"Ada L_1_assignsubmission_file_/{FILE}", f"Bo_2_assignsubmission_file_/{FILE}"],
        [f"Ada L_1_assignfeedback_file_/{FILE}"], [], ["Ada L_1", "Bo_2"], id="Moodle"),
    pytest.param([f"hw_{who}_attempt_2026-11-20-10-11-12_{FILE}" for who in ("ada", "bo")], [],
        [f"hw_{who}_attempt_2026-11-20-10-11-12.txt" for who in ("ada", "bo")], ["ada", "bo"], id="Blackboard"),
    pytest.param([f"{i}-9 - {who} - Nov 20, 2026 1102 AM - {FILE}" for i, who in ((1, "Ada"), (2, "Bo"))], [],
        ["index.html"], ["Ada_1-9", "Bo_2-9"], id="Brightspace"),
]  # fmt: skip


@pytest.mark.parametrize(("handed_in", "returned", "own", "students"), STUDENTS)
def test_what_went_back_never_competes_with_what_was_handed_in(
    run: Collect, zipped: Zipped, there: There, out: Path,
    handed_in: list[str], returned: list[str], own: list[str], students: list[str],
) -> None:  # fmt: skip
    """What went back stands last in the archive, and so is the newest file."""
    attempts = dict.fromkeys(handed_in, f"{DANCE}# handed in")
    done = run(zipped({**attempts, **dict.fromkeys(returned, f"{DANCE}# went back"), **dict.fromkeys(own, "")}))
    assert there() == [f"{student}/{DANCED}" for student in students]
    assert all("# handed in" in (out / path).read_text() for path in there())
    assert done.not_taken == []
    said = [f"download.zip: left out as feedback that went back to students: {len(returned)}"]
    assert [sentence for sentence in done.said if "went back" in sentence] == (said if returned else [])


@pytest.mark.parametrize("name", ["Ada_1_assignfeedback_file_", SAKAI.format("Feedback Attachment(s)")])
def test_what_went_back_is_no_attempt_where_nobody_handed_in(
    run: Collect, zipped: Zipped, there: There, name: str
) -> None:
    assert run(zipped([f"{name}/{FILE}"])).not_taken == []
    assert there() == []


def test_of_openolats_steps_the_last_revision_counts(run: Collect, zipped: Zipped, there: There, out: Path) -> None:
    steps = ("4_revisions_1", "2_submissions", "3_corrections", "5_corrections_1")
    run(zipped({f"{who}/{step}/{FILE}": f"{DANCE}# {step}" for who in ("ada", "bo") for step in steps}))
    assert there() == [f"ada/{DANCED}", f"bo/{DANCED}"]
    assert "# 4_revisions_1" in (out / there()[0]).read_text()


@pytest.mark.parametrize(("platform", "names"), [
    ("Sakai", [SAKAI.format("Lovelace, Ada(al1)_submissionText.html"), f"HW 1/Li, Bo(bo)/{SUBMITTED}"]),
    ("Blackboard", ["hw_ada_attempt_2026-11-20-10-11-12.txt", f"hw_bo_attempt_2026-11-20-10-11-12_{FILE}"]),
    ("Canvas", ["b_LATE_4_link.html", f"a_1_2_{FILE}"]),
    ("Moodle", ["Bo_3_assignsubmission_onlinetext_/x.html", f"Ada_2_assignsubmission_file_/{FILE}"]),
])  # fmt: skip
def test_what_nobody_handed_in_as_a_file_is_named(
    run: Collect, zipped: Zipped, there: There, platform: str, names: list[str]
) -> None:
    done = run(zipped(names))
    said = f"is text or a link typed into {platform}, or a note, and no file. Next: ask for the file"
    assert (done.not_taken, len(there())) == ([f"download.zip: {names[0]} {said}"], 1)


def test_a_student_who_names_a_folder_as_feedback_alone_hides_nobodys_files(
    run: Collect, zipped: Zipped, there: There
) -> None:
    names = [f"ada/bo_return/{FILE}", f"ada/x/Feedback Attachment(s)/{FILE}", f"bo/{FILE}"]
    run(zipped(names))
    assert there() == [f"ada/{DANCED}", f"bo/{DANCED}"]


def test_text_beside_the_same_students_file_is_counted(run: Collect, zipped: Zipped, there: There) -> None:
    folder = "Ada Lovelace_123_assignsubmission"
    done = run(zipped([f"{folder}_file_/{FILE}", f"{folder}_onlinetext_/onlinetext.html"]))
    assert (len(there()), done.not_taken) == (1, [])
    assert done.said == ["download.zip: left out as text or a note beside a file that was handed in: 1"]
