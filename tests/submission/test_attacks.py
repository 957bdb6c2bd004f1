"""A student cannot submit files for another student, with downloads of twelve platforms."""

import pytest

from manyheads.submission.roster_and_times import Roster, Student
from tests.make import cases

from .conftest import (
    ADA,
    BEN,
    CLASS,
    DANCE,
    DANCED,
    EVE,
    FILE,
    PLATFORMS,
    platform_download,
    zip_bytes,
)

platforms = pytest.mark.parametrize("platform", PLATFORMS)


@platforms
def test_files_go_to_students_of_the_roster(collect_zip, there, out_folder, platform):
    collected = collect_zip(platform_download(platform, ADA, BEN), roster=CLASS)
    assert (collected.platforms, collected.not_taken) == ({"download.zip": [platform]}, [])
    assert {path: (out_folder / path).read_text()[-1] for path in there()} == {
        f"ada/{DANCED}": "1",
        f"ben/{DANCED}": "2",
    }


@platforms
def test_two_accounts_that_match_one_roster_row_are_both_refused(collect_zip, there, platform):
    """The impostor has another id of Ada's row as login, or only her name."""
    rows = (
        Student("ada", "Ada Lovelace", login="al1", sis_id="x3", github="al1"),
        CLASS.students[1],
    )
    impostor = (3, "ada" if platform == "clones" else "x3", "Ada Lovelace")
    collected = collect_zip(platform_download(platform, ADA, BEN, impostor), roster=Roster(rows))
    assert there() == [f"ben/{DANCED}"]
    (message,) = collected.not_taken
    assert all(PLATFORMS[platform](*person) in message for person in (ADA, impostor))
    assert "are of 2 persons, and each of them would be 'ada': none is taken. Next: " in message


@platforms
def test_a_login_that_ends_in_another_login_is_another_student(collect_zip, there, platform):
    collected = collect_zip(
        platform_download(platform, (3, "m_al1", "Eve Mallory"), (4, "x-al1", "Max Mallory"), BEN),
        roster=CLASS,
    )
    assert f"ben/{DANCED}" in there()
    assert not [path for path in there() if path.startswith("ada/")]
    assert len(there()) == 3, collected.not_taken
    assert sum("is not on the roster" in note for note in collected.notes) == 2


@platforms
@pytest.mark.parametrize("container", ["an archive", "a folder"])
def test_a_forged_download_in_a_submission_replaces_no_other_students_file(
    collect_zip, out_folder, platform, container
):
    """Eve's submission looks like a newer download of the same platform, with files of Ada and
    Ben.
    """
    forged = {
        f"x/{name}": solution for name, solution in platform_download(platform, ADA, BEN).items()
    } | platform_download(platform, ADA, BEN)
    eve_file = PLATFORMS[platform](*EVE)
    archive = {eve_file.replace(FILE, "work.zip"): zip_bytes(forged, year=2030)}
    folder = {
        f"{eve_file.removesuffix(FILE)}{name}": f"{DANCE}# forged"
        for name in forged
        if "/" in eve_file
    }
    files = platform_download(platform, ADA, BEN, EVE)
    del files[eve_file]
    roster = Roster((*CLASS.students, Student("eve", "Eve Mallory", login="m_al1", github="m_al1")))
    collect_zip({**files, **(archive if container == "an archive" else folder)}, roster=roster)
    assert [(out_folder / student / DANCED).read_text()[-1] for student in ("ada", "ben")] == [
        "1",
        "2",
    ]
    assert {path.name for path in out_folder.iterdir() if path.is_dir()} <= {"ada", "ben", "eve"}


@platforms
@cases("roster", {"no roster": None, "a roster": CLASS})
def test_an_archive_among_several_belongs_to_the_student_in_its_name(
    collect_files, write_zip, there, out_folder, platform, roster
):
    """mallory.zip has the layout of a download of the platform, and is newer."""
    honest = [
        write_zip({f"hw/{FILE}": f"{DANCE}# {name}"}, f"{name}.zip") for name in ("ada", "ben")
    ]
    collect_files(
        *honest,
        write_zip(platform_download(platform, ADA, BEN), "mallory.zip", year=2030),
        roster=roster,
    )
    assert [
        (out_folder / student / DANCED).read_text().split()[-1] for student in ("ada", "ben")
    ] == [
        "ada",
        "ben",
    ]
    assert {path.name for path in out_folder.iterdir() if path.is_dir()} <= {
        "ada",
        "ben",
        "mallory",
    }


@platforms
def test_a_forged_download_is_refused_if_all_others_submitted_tables(
    collect_zip, out_folder, platform
):
    """Only Eve's folder has scripts, so it could be mistaken for the folder of the download."""
    forged = {
        f"m_al1/{name}": solution for name, solution in platform_download(platform, ADA).items()
    }
    collect_zip({**forged, "al1/data.csv": "1", "bo2/data.csv": "2"}, roster=CLASS)
    assert not list(out_folder.glob("ada/*/*.py"))


@platforms
def test_a_single_archive_named_after_a_student_belongs_to_that_student(
    collect_files, write_zip, out_folder, platform
):
    collect_files(write_zip(platform_download(platform, ADA, EVE), "bo2.zip"), roster=CLASS)
    assert {path.name for path in out_folder.iterdir() if path.is_dir()} <= {"ben"}


ROSTER = Roster(
    (
        Student("s1", "Ada Lovelace"),
        Student("s2", "Bela Bartok", sis_id="S200"),
        Student("s3", "Cleo"),
    )
)


def solution(value: int) -> str:
    """Return a solution that differs for each value."""
    return f"def split_heads(x, n_head):\n    return x + {value}\n"


@pytest.mark.parametrize("folder", ["homework", "homework/multi_head_attention", "a/b"])
def test_archives_with_the_same_folder_go_to_the_students_in_their_names(
    collect_files, write_zip, there, out_folder, folder
):
    texts = {"ada": solution(0), "bela": solution(1), "cleo": solution(2)}
    zips = [write_zip({f"{folder}/{FILE}": code}, f"{name}.zip") for name, code in texts.items()]
    assert collect_files(*zips).not_taken == []
    assert there() == [f"{name}/{DANCED}" for name in texts]
    assert {name: (out_folder / name / DANCED).read_text() for name in texts} == texts
    assert {file.state.name for file in collect_files(*zips).candidates} == {"SAME"}


def test_a_later_archive_with_the_same_folder_replaces_no_files(
    collect_files, write_zip, there, out_folder
):
    first, second = (
        write_zip({f"homework/{FILE}": solution(i)}, f"{name}.zip")
        for i, name in enumerate(("ada", "bela"))
    )
    collect_files(first)
    (message,) = collect_files(second).not_taken
    assert "would go to 'homework', where the files of somebody else are" in message
    assert (out_folder / "homework" / DANCED).read_text() == solution(0)
    assert collect_files(first, second).not_taken == []
    assert there() == [f"{name}/{DANCED}" for name in ("ada", "bela", "homework")]


def test_downloads_of_two_assignments_go_to_the_students_in_them(collect_files, write_zip, there):
    zips = []
    for homework in ("hw1", "hw2"):
        files = {f"{homework}/{name}/{FILE}": solution(0) for name in ("ada", "bela")}
        zips.append(write_zip(files, f"{homework}.zip"))
    collect_files(*zips)
    assert there() == [f"ada/{DANCED}", f"bela/{DANCED}"]


@cases(
    "names",
    {"one name": ("ada.zip", "late/ada.zip"), "both on the roster": ("s1.zip", "Ada Lovelace.zip")},
)
def test_two_archives_for_the_same_student_are_both_refused(
    collect_files, write_zip, there, tmp_path, names
):
    (tmp_path / "late").mkdir()
    first = write_zip({f"homework/{FILE}": solution(0)}, names[0], year=2025)
    second = write_zip({f"homework/{FILE}": solution(1)}, names[1], year=2026)
    roster = ROSTER if names[0] == "s1.zip" else None
    collected = collect_files(first, second, roster=roster)
    assert there() == []
    id_ = "s1" if roster else "ada"
    next_step = (
        "Next: the same without what is not that student's, or with --roster and a file that "
        "tells them apart"
    )
    reason = (
        f"{first} and {second} are of 2 persons, and each of them would be {id_!r}: none is taken"
    )
    assert collected.not_taken == [f"{names[0].rpartition('/')[2]}: {reason}. {next_step}"]
    assert collect_files(second, roster=roster).not_taken == []


def test_archives_named_after_assignments_go_to_students_of_their_folders(
    collect_files, write_zip, there
):
    script = "01_cross_attention.py"
    zips = [
        write_zip([f"ada/{FILE}"], "multi-head-attention.zip"),
        write_zip([f"ada/{script}"], "attention_in_practice.zip"),
    ]
    assert collect_files(*zips).not_taken == []
    assert there() == [f"ada/attention_in_practice/{script}", f"ada/{DANCED}"]


def test_a_download_inside_a_folder_is_read_beside_another_download(
    collect_files, write_zip, there, tmp_path
):
    (tmp_path / "hw1").mkdir()
    write_zip([f"ada_1_10_{FILE}", f"ben_2_11_{FILE}"], "hw1/submissions.zip")
    collect_files(tmp_path / "hw1", write_zip([f"cat_3_12_{FILE}", f"dan_4_13_{FILE}"], "more.zip"))
    assert there() == [f"{student}/{DANCED}" for student in ("ada_1", "ben_2", "cat_3", "dan_4")]
