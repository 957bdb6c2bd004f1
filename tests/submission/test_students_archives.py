"""Archives that students made, collected at once: the archive's own name says whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.submission.roster import Roster, Student

from .conftest import Collect, There, Zipped

DANCED = "multi_head_attention/04_reshape_dance.py"
FILE = "04_reshape_dance.py"
CLASS = Roster((Student("s1", "Ada Lovelace"), Student("s2", "Bela Bartok", sis_id="S200"), Student("s3", "Cleo")))


def text(value: int) -> str:
    return f"def split_heads(x, n_head):\n    return x + {value}\n"


@pytest.mark.parametrize("folder", ["homework", "homework/multi_head_attention", "a/b"])
def test_several_archives_with_the_same_folder_are_of_the_students_that_they_are_named_after(
    run: Collect, zipped: Zipped, there: There, out: Path, folder: str
) -> None:
    names = ["ada", "bela", "cleo"]
    zips = [zipped({f"{folder}/{FILE}": text(i)}, f"{name}.zip") for i, name in enumerate(names)]
    done = run(*zips)
    assert done.not_taken == []
    assert there() == [f"{name}/{DANCED}" for name in names]
    assert [(out / name / DANCED).read_text() for name in names] == [text(i) for i in range(3)]
    assert {each.state.name for each in run(*zips).laid} == {"SAME"}


def test_an_archive_of_somebody_else_with_the_same_folder_takes_nobodys_place(
    run: Collect, zipped: Zipped, there: There, out: Path
) -> None:
    first, second = (zipped({f"homework/{FILE}": text(i)}, f"{name}.zip") for i, name in enumerate(("ada", "bela")))
    run(first)
    (said,) = run(second).not_taken
    assert "would go to 'homework', where the files of somebody else are" in said
    assert (out / "homework" / DANCED).read_text() == text(0)
    assert run(first, second).not_taken == []
    assert there() == [f"{name}/{DANCED}" for name in ("ada", "bela", "homework")]


def test_downloads_of_classes_stay_the_students_that_are_in_them(run: Collect, zipped: Zipped, there: There) -> None:
    zips = [zipped({f"{hw}/{name}/{FILE}": text(0) for name in ("ada", "bela")}, f"{hw}.zip") for hw in ("hw1", "hw2")]
    run(*zips)
    assert there() == [f"ada/{DANCED}", f"bela/{DANCED}"]


@pytest.mark.parametrize(
    "names", [("ada.zip", "late/ada.zip"), ("s1.zip", "Ada Lovelace.zip")], ids=["one name", "both on the roster"]
)
def test_two_archives_that_claim_one_student_are_both_named_and_none_is_taken(
    run: Collect, zipped: Zipped, there: There, out: Path, tmp_path: Path, names: tuple[str, str]
) -> None:
    (tmp_path / "late").mkdir()
    first = zipped({f"homework/{FILE}": text(0)}, names[0], year=2025)
    second = zipped({f"homework/{FILE}": text(1)}, names[1], year=2026)
    roster = CLASS if names[0] == "s1.zip" else None
    done = run(first, second, roster=roster)
    assert there() == []
    who, apart = "s1" if roster else "ada", "Next: the same without what is not that student's"
    said = f"{first} and {second} are of 2 persons, and each of them would be {who!r}: none is taken"
    assert done.not_taken == [f"{names[0].rpartition('/')[2]}: {said}. {apart}"]
    assert run(second, roster=roster).not_taken == []


def test_archives_that_are_named_after_assignments_are_of_whom_their_folders_say(
    run: Collect, zipped: Zipped, there: There
) -> None:
    other = "01_cross_attention.py"
    zips = [zipped([f"ada/{FILE}"], "multi-head-attention.zip"), zipped([f"ada/{other}"], "attention_in_practice.zip")]
    assert run(*zips).not_taken == []
    assert there() == [f"ada/attention_in_practice/{other}", f"ada/{DANCED}"]


def test_a_folder_around_a_download_is_seen_through_and_what_comes_after_it_is_read(
    run: Collect, zipped: Zipped, there: There, tmp_path: Path
) -> None:
    (tmp_path / "hw1").mkdir()
    zipped([f"ada_1_10_{FILE}", f"ben_2_11_{FILE}"], "hw1/submissions.zip")
    run(tmp_path / "hw1", zipped([f"cat_3_12_{FILE}", f"dan_4_13_{FILE}"], "more.zip"))
    assert there() == [f"{who}/{DANCED}" for who in ("ada_1", "ben_2", "cat_3", "dan_4")]
