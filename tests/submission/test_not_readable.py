"""A file that cannot be read counts as handed in by its student, for an assignment."""

import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from manyheads.files import CourseFault
from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import read_journal, to_grade
from manyheads.submission.roster_and_times import Roster, Student
from tests.make import cases

from .conftest import ADA, BEN, CLASS, DANCE, DANCED, FILE, PLATFORMS, platform_download, zip_bytes

ROSTER = Roster((Student("A", name="Ada", canvas_id="1"), Student("B", name="Bela", canvas_id="2")))
ASSIGNMENT = "multi_head_attention"


NOT_OPENED = "is not opened: it is damaged, or neither zip nor tar. Next: open it by hand"


def unreadable_files(out: Path) -> dict[str, dict[str, list[str]]]:
    """Return the unreadable files of each student and assignment in the journal."""
    return read_journal(out).not_readable


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_unreadable_file_counts_as_submitted_by_its_student(collect_zip, out_folder, platform):
    unreadable = PLATFORMS[platform](*BEN).replace(FILE, "work.rar")
    files = platform_download(platform, ADA, BEN, **{unreadable: b"Rar!"})
    del files[PLATFORMS[platform](*BEN)]
    (message,) = collect_zip(files, roster=CLASS).not_taken
    assert unreadable_files(out_folder) == {"ben": {ASSIGNMENT: [unreadable]}}
    assert f"ben: handed in, not readable: download.zip: {unreadable} {NOT_OPENED}" in message
    assert (
        f", and put the files into {out_folder}/ben/{ASSIGNMENT}/; or ask for the files" in message
    )


MANY_ARCHIVES = {f"bela_2_{i}_work.rar": b"Rar!" for i in range(100, 130)}


@cases(
    "files, names, reason",
    {
        "an archive beside a folder": (
            {f"Ada/{FILE}": DANCE, "Bela.7z": b"7z"},
            ["Bela.7z"],
            NOT_OPENED,
        ),
        "beside an archive": (
            {"Ada.zip": zip_bytes({FILE: DANCE}), "Bela.7z": b"7z"},
            ["Bela.7z"],
            NOT_OPENED,
        ),
        "flat": (
            {
                f"Ada_1_assignsubmission_file_{FILE}": DANCE,
                "Bela_2_assignsubmission_file_Bela.7z": b"7z",
            },
            ["Bela_2_assignsubmission_file_Bela.7z"],
            NOT_OPENED,
        ),
        "larger than grading reads": (
            {f"ada_1_10_{FILE}": DANCE, f"bela_2_11_{FILE}": "#" * 2**21},
            [f"bela_2_11_{FILE}"],
            "is larger than 1,024 KiB. Next: open it by hand",
        ),
        "a long list, which is cut": (
            {f"ada_1_10_{FILE}": DANCE, **MANY_ARCHIVES},
            [*sorted(MANY_ARCHIVES)[:10], "20 more"],
            NOT_OPENED,
        ),
    },
)
def test_unreadable_files_are_assigned_to_students_of_the_roster(
    collect_zip, out_folder, files, names, reason
):
    collected = collect_zip(files, roster=ROSTER)
    assert unreadable_files(out_folder) == {"B": {ASSIGNMENT: names}}
    assert reason in collected.not_taken[0]


OTHER_ASSIGNMENT = "attention_in_practice"


@cases(
    "other_file, only, assignments",
    {
        "the assignment of the other files": (FILE, None, [ASSIGNMENT]),
        "every assignment": ("x.txt", None, [ASSIGNMENT, OTHER_ASSIGNMENT]),
        "the assignment that is asked for": ("x.txt", 0, [ASSIGNMENT]),
    },
)
def test_an_unreadable_file_counts_for_the_likely_assignments(
    collect_files, real_course, write_zip, out_folder, other_file, only, assignments
):
    assignment = None if only is None else real_course.assignments[only]
    download = write_zip({f"ada_1_10_{other_file}": DANCE, "bela_2_11_work.rar": b"Rar!"})
    collected = collect_files(download, roster=ROSTER, only=assignment)
    assert list(unreadable_files(out_folder)["B"]) == assignments
    target_folder = "/".join([str(out_folder), "B", *assignments[: len(assignments) == 1]])
    assert any(
        f"put the files into {target_folder}/; or" in message for message in collected.not_taken
    )


def test_an_unreadable_download_named_after_a_student_is_that_students(
    collect_files, write_zip, out_folder
):
    downloads = [write_zip(b"Rar!", name) for name in ("Bela.rar", "class.rar")]
    messages = collect_files(*downloads, roster=ROSTER).not_taken
    assert list(unreadable_files(out_folder)) == ["B"]
    assert sorted(message.partition(":")[0] for message in messages) == ["B", "class.rar"]


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Work in this folder as an unprivileged user, also if the tests run as root."""
    is_root = os.geteuid() == 0
    with chdir(folder):
        if is_root:
            os.setresuid(65534, 65534, 0)  # the user nobody
        try:
            yield
        finally:
            if is_root:
                os.setresuid(0, 0, 0)


@pytest.mark.parametrize(
    ("locked_path", "mode", "students"),
    [
        *(("bela/", mode, ["ada"]) for mode in (0o000, 0o644, 0o311)),
        ("bela/deep/", 0, ["ada", "bela"]),
        (f"bela/{FILE}", 0, ["ada"]),
    ],
)
def test_a_path_without_permission_is_reported_with_its_student(
    real_course, tmp_path, locked_path, mode, students
):
    for folder in ("all/ada", "all/bela/deep", "out"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("ada", "bela"):
        (tmp_path / "all" / name / FILE).write_text(DANCE)
    (tmp_path / "out").chmod(0o777)
    tmp_path.chmod(0o755)
    locked = tmp_path / "all" / locked_path
    old_mode = locked.stat().st_mode
    locked.chmod(mode)
    with as_nobody(tmp_path):
        collected = collect(real_course, [Path("all")], Path("out/in"))
    locked.chmod(old_mode)
    assert {file.student for file in collected.candidates} == {*students}
    advice = f"chmod -R u+rwX {Path('all', locked_path)} changes that. Next"
    reason = f"is not read: Permission denied; {advice}"
    assert collected.not_taken[0].startswith(
        f"bela: handed in, not readable: all: {locked_path} {reason}"
    )
    assert unreadable_files(tmp_path / "out" / "in") == {"bela": {ASSIGNMENT: [locked_path]}}
    with as_nobody(tmp_path):
        collected = collect(real_course, [Path("all")], Path("out/in"))
    assert (len(collected.candidates), collected.not_taken) == (2, [])


def test_a_download_folder_without_permission_is_refused(real_course, tmp_path):
    (tmp_path / "all").mkdir(mode=0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out").chmod(0o777)
    tmp_path.chmod(0o755)
    expected = r"^all cannot be read \(Permission denied\)\. Next: download it again$"
    with as_nobody(tmp_path), pytest.raises(CourseFault, match=expected):
        collect(real_course, [Path("all")], Path("out/in"))


def test_a_download_that_the_system_cannot_open_is_refused(collect_files, tmp_path):
    download = tmp_path / "class.zip"
    download.symlink_to(download)
    with pytest.raises(CourseFault, match=r"class\.zip cannot be read \(Too many levels"):
        collect_files(download)


@pytest.mark.parametrize("only", ["", "ada"])
@cases(
    "entry, name",
    {
        "another number": (f"{ASSIGNMENT}/4_reshape_dance.py", ""),
        "hyphens": (f"{ASSIGNMENT}/04-reshape-dance.py", ""),
        "capitals": (f"{ASSIGNMENT}/04_reshape_dance.PY", ""),
        "a copy": (f"{ASSIGNMENT}/Copy of {FILE}", ""),
        "a folder deeper": (f"{ASSIGNMENT}/src/{FILE}", f"{ASSIGNMENT}/src"),
        "an archive": (f"{ASSIGNMENT}/work.zip", ""),
        "another folder's name": (f"Multi-Head Attention/{FILE}", "Multi-Head Attention"),
        "no folder": (FILE, ""),
        "a text of a word processor": (f"{ASSIGNMENT}/04_reshape_dance.docx", ""),
        "a print of it, beside the folder": ("reshape_dance.pdf", ""),
    },
)
def test_a_file_with_another_name_is_not_graded_but_counts_as_submitted(
    real_course, out_folder, entry, name, only
):
    for path in (f"ada/{entry}", f"bela/{DANCED}"):
        (out_folder / path).parent.mkdir(parents=True)
        (out_folder / path).write_text(DANCE)
    work = to_grade(real_course, out_folder, real_course.assignments, (), only)
    path_text = f"ada/{name or entry}"
    (unreadable,) = work.not_readable.items()
    assert (unreadable[0].student, unreadable[0].assignment.id) == ("ada", ASSIGNMENT)
    assert unreadable[1] == (f"{path_text}, which is not graded as it is",)
    assert unreadable[0] in work.submissions
    assert [file.path for file in work.not_graded] == ([] if only else [path_text])


def test_an_empty_folder_does_not_count_as_submitted(real_course, out_folder):
    (out_folder / "ada" / ASSIGNMENT / "src").mkdir(parents=True)
    (out_folder / "bela" / ASSIGNMENT).mkdir(parents=True)
    assert to_grade(real_course, out_folder, real_course.assignments, ()).not_readable == {}


@pytest.mark.parametrize("name", ["solution.py", "Untitled12.ipynb", "04_reshape_dance.docx"])
def test_a_file_that_collect_skips_still_counts_as_submitted(
    collect_zip, real_course, out_folder, name
):
    files = {f"ada_1_11_{FILE}": DANCE, f"bela_2_12_{name}": "x = 1\n"}
    (message,) = collect_zip(files, roster=ROSTER).not_taken
    assert f"download.zip: bela_2_12_{name} " in message
    (unreadable,) = to_grade(
        real_course, out_folder, real_course.assignments, ()
    ).not_readable.items()
    assert unreadable[0].student == "B"
    assert unreadable[1] == (f"bela_2_12_{name}, which is not graded as it is",)


def test_files_of_the_course_do_not_count_as_submitted(collect_zip, real_course, out_folder):
    """A student who zips the whole folder submits figures of exercises, too. These must not count
    as attempts at exercises without a script.
    """
    course_files = (
        "figures/04_reshape_dance.svg",
        "fingerprints/04_reshape_dance.safetensors",
        "trained/05_weight_split.safetensors",
    )
    folder = zip_bytes(
        {f"{ASSIGNMENT}/{name}": DANCE for name in ("01_attention_scores.py", *course_files)}
    )
    collected = collect_zip(
        {"ada_1_11_work.zip": folder, f"bela_2_12_{FILE}": DANCE}, roster=ROSTER
    )
    assert collected.not_taken == []
    assert "left out as what came with the exercises: 3" in collected.notes
    assert to_grade(real_course, out_folder, real_course.assignments, ()).not_readable == {}
