"""A file that cannot be read counts as handed in by its student, for an assignment."""

import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import read_journal, to_grade
from manyheads.submission.roster_and_times import Roster, Student
from tests.make import cases

from .conftest import ADA, BEN, CLASS, DANCE, DANCED, FILE, PLATFORMS, platform_download, zip_bytes

ROSTER = Roster((Student("A", name="Ada", canvas_id="1"), Student("B", name="Bela", canvas_id="2")))
ONE = "multi_head_attention"


OPENED = "is not opened: it is damaged, or neither zip nor tar. Next: open it by hand"


def unreadable_files(out: Path) -> dict[str, dict[str, list[str]]]:
    return read_journal(out).not_readable


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_is_of_the_student_who_handed_it_in(collect_zip, out_folder, platform):
    unread = PLATFORMS[platform](*BEN).replace(FILE, "work.rar")
    files = platform_download(platform, ADA, BEN, **{unread: b"Rar!"})
    del files[PLATFORMS[platform](*BEN)]
    (message,) = collect_zip(files, roster=CLASS).not_taken
    assert unreadable_files(out_folder) == {"ben": {ONE: [unread]}}
    assert f"ben: handed in, not readable: download.zip: {unread} {OPENED}" in message
    assert f", and put the files into {out_folder}/ben/{ONE}/; or ask for the files" in message


MANY = {f"bela_2_{i}_work.rar": b"Rar!" for i in range(100, 130)}


@cases(
    "files, names, why",
    {
        "an archive beside a folder": (
            {f"Ada/{FILE}": DANCE, "Bela.7z": b"7z"},
            ["Bela.7z"],
            OPENED,
        ),
        "beside an archive": (
            {"Ada.zip": zip_bytes({FILE: DANCE}), "Bela.7z": b"7z"},
            ["Bela.7z"],
            OPENED,
        ),
        "flat": (
            {
                f"Ada_1_assignsubmission_file_{FILE}": DANCE,
                "Bela_2_assignsubmission_file_Bela.7z": b"7z",
            },
            ["Bela_2_assignsubmission_file_Bela.7z"],
            OPENED,
        ),
        "larger than grading reads": (
            {f"ada_1_10_{FILE}": DANCE, f"bela_2_11_{FILE}": "#" * 2**21},
            [f"bela_2_11_{FILE}"],
            "is larger than 1,024 KiB. Next: open it by hand",
        ),
        "a long list, which is cut": (
            {f"ada_1_10_{FILE}": DANCE, **MANY},
            [*sorted(MANY)[:10], "20 more"],
            OPENED,
        ),
    },
)
def test_what_a_roster_knows_is_its_students(collect_zip, out_folder, files, names, why):
    collected = collect_zip(files, roster=ROSTER)
    assert unreadable_files(out_folder) == {"B": {ONE: names}}
    assert why in collected.not_taken[0]


OTHER = "attention_in_practice"


@cases(
    "beside, only, assignments",
    {
        "as what else is there": (FILE, None, [ONE]),
        "of every one": ("x.txt", None, [ONE, OTHER]),
        "of the one that is asked for": ("x.txt", 0, [ONE]),
    },
)
def test_it_is_of_an_assignment(
    collect_files, real_course, write_zip, out_folder, beside, only, assignments
):
    assignment = None if only is None else real_course.assignments[only]
    download = write_zip({f"ada_1_10_{beside}": DANCE, "bela_2_11_work.rar": b"Rar!"})
    collected = collect_files(download, roster=ROSTER, only=assignment)
    assert list(unreadable_files(out_folder)["B"]) == assignments
    into = "/".join([str(out_folder), "B", *assignments[: len(assignments) == 1]])
    assert any(f"put the files into {into}/; or" in message for message in collected.not_taken)


def test_a_download_that_cannot_be_opened_is_a_students_where_the_roster_knows_its_name(
    collect_files, write_zip, out_folder
):
    downloads = [write_zip(b"Rar!", name) for name in ("Bela.rar", "class.rar")]
    messages = collect_files(*downloads, roster=ROSTER).not_taken
    assert list(unreadable_files(out_folder)) == ["B"]
    assert sorted(message.partition(":")[0] for message in messages) == ["B", "class.rar"]


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """In this folder, as an ordinary user, whom root is not."""
    is_root = os.geteuid() == 0
    with chdir(folder):
        if is_root:
            os.setresuid(65534, 65534, 0)
        try:
            yield
        finally:
            if is_root:
                os.setresuid(0, 0, 0)


@pytest.mark.parametrize(
    ("place", "mode", "laid"),
    [
        *(("bela/", mode, ["ada"]) for mode in (0o000, 0o644, 0o311)),
        ("bela/deep/", 0, ["ada", "bela"]),
        (f"bela/{FILE}", 0, ["ada"]),
    ],
)
def test_what_is_closed_is_named_with_the_student(real_course, tmp_path, place, mode, laid):
    for folder in ("all/ada", "all/bela/deep", "out"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("ada", "bela"):
        (tmp_path / "all" / name / FILE).write_text(DANCE)
    (tmp_path / "out").chmod(0o777)
    tmp_path.chmod(0o755)
    locked = tmp_path / "all" / place
    old_mode = locked.stat().st_mode
    locked.chmod(mode)
    with as_nobody(tmp_path):
        collected = collect(real_course, [Path("all")], Path("out/in"))
    locked.chmod(old_mode)
    assert {file.student for file in collected.candidates} == {*laid}
    why = f"is not read: Permission denied; chmod -R u+rwX {Path('all', place)} changes that. Next"
    assert collected.not_taken[0].startswith(f"bela: handed in, not readable: all: {place} {why}")
    assert unreadable_files(tmp_path / "out" / "in") == {"bela": {ONE: [place]}}
    with as_nobody(tmp_path):
        collected = collect(real_course, [Path("all")], Path("out/in"))
    assert (len(collected.candidates), collected.not_taken) == (2, [])


@pytest.mark.parametrize("only", ["", "ada"])
@cases(
    "entry, name",
    {
        "another number": (f"{ONE}/4_reshape_dance.py", ""),
        "another sign": (f"{ONE}/04-reshape-dance.py", ""),
        "capitals": (f"{ONE}/04_reshape_dance.PY", ""),
        "a copy": (f"{ONE}/Copy of {FILE}", ""),
        "a folder deeper": (f"{ONE}/src/{FILE}", f"{ONE}/src"),
        "an archive": (f"{ONE}/work.zip", ""),
        "another folder's name": (f"Multi-Head Attention/{FILE}", "Multi-Head Attention"),
        "no folder": (FILE, ""),
        "a text of a word processor": (f"{ONE}/04_reshape_dance.docx", ""),
        "a print of it, beside the folder": ("reshape_dance.pdf", ""),
    },
)
def test_what_is_named_and_not_graded_in_a_folder_is_handed_in(
    real_course, out_folder, entry, name, only
):
    for path in (f"ada/{entry}", f"bela/{DANCED}"):
        (out_folder / path).parent.mkdir(parents=True)
        (out_folder / path).write_text(DANCE)
    work = to_grade(real_course, out_folder, real_course.assignments, (), only)
    told = f"ada/{name or entry}"
    (unread,) = work.not_readable.items()
    assert (unread[0].student, unread[0].assignment.id) == ("ada", ONE)
    assert unread[1] == (f"{told}, which is not graded as it is",)
    assert unread[0] in work.submissions
    assert [file.path for file in work.not_graded] == ([] if only else [told])


def test_an_empty_folder_is_nothing_that_was_handed_in(real_course, out_folder):
    (out_folder / "ada" / ONE / "src").mkdir(parents=True)
    (out_folder / "bela" / ONE).mkdir(parents=True)
    assert to_grade(real_course, out_folder, real_course.assignments, ()).not_readable == {}


@pytest.mark.parametrize("name", ["solution.py", "Untitled12.ipynb", "04_reshape_dance.docx"])
def test_what_collect_does_not_take_is_handed_in_all_the_same(
    collect_zip, real_course, out_folder, name
):
    files = {f"ada_1_11_{FILE}": DANCE, f"bela_2_12_{name}": "x = 1\n"}
    (message,) = collect_zip(files, roster=ROSTER).not_taken
    assert f"download.zip: bela_2_12_{name} " in message
    (unread,) = to_grade(real_course, out_folder, real_course.assignments, ()).not_readable.items()
    assert unread[0].student == "B"
    assert unread[1] == (f"bela_2_12_{name}, which is not graded as it is",)


def test_what_came_with_the_exercises_is_nothing_that_was_handed_in(
    collect_zip, real_course, out_folder
):
    """Who zipped the whole folder had no points, and no 0, for an exercise that was not in it: its
    figure was.
    """
    course_files = (
        "figures/04_reshape_dance.svg",
        "fingerprints/04_reshape_dance.safetensors",
        "trained/05_weight_split.safetensors",
    )
    folder = zip_bytes(
        {f"{ONE}/{name}": DANCE for name in ("01_attention_scores.py", *course_files)}
    )
    collected = collect_zip(
        {"ada_1_11_work.zip": folder, f"bela_2_12_{FILE}": DANCE}, roster=ROSTER
    )
    assert collected.not_taken == []
    assert "left out as what came with the exercises: 3" in collected.notes
    assert to_grade(real_course, out_folder, real_course.assignments, ()).not_readable == {}
