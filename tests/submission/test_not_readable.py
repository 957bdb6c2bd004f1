"""What cannot be read is of the student who handed it in, whatever the platform, and of an
assignment.
"""

import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from manyheads.submission.collect_downloads import Collected, collect
from manyheads.submission.intake_journal import read_journal, to_grade
from manyheads.submission.roster_and_times import Roster, Student

from .conftest import ADA, BEN, CLASS, DANCE, DANCED, FILE, PLATFORMS, download, zip_bytes

ROSTER = Roster((Student("A", name="Ada", canvas_id="1"), Student("B", name="Bela", canvas_id="2")))
ONE = "multi_head_attention"


def unreadable_files(out: Path) -> dict[str, dict[str, list[str]]]:
    return read_journal(out).not_readable


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_is_of_the_student_who_handed_it_in(run, write_zip, out_folder, platform):
    unread = PLATFORMS[platform](*BEN).replace(FILE, "work.rar")
    files = download(platform, ADA, BEN, **{unread: b"Rar!"})
    del files[PLATFORMS[platform](*BEN)]
    (message,) = run(write_zip(files), roster=CLASS).not_taken
    assert unreadable_files(out_folder) == {"ben": {ONE: [unread]}}
    assert message.startswith(
        f"ben: handed in, not readable: download.zip: {unread} is not opened: it is"
    )
    assert message.endswith(
        f"Next: open it by hand, and put the files into {out_folder}/ben/{ONE}/; "
        f"or ask for the files"
    )


OPENED = "is not opened: it is damaged, or neither zip nor tar. Next: open it by hand"
MANY = {f"bela_2_{i}_work.rar": b"Rar!" for i in range(100, 130)}


@pytest.mark.parametrize(
    ("files", "names", "why"),
    [
        pytest.param(
            {f"Ada/{FILE}": DANCE, "Bela.7z": b"7z"},
            ["Bela.7z"],
            OPENED,
            id="an archive beside a folder",
        ),
        pytest.param(
            {"Ada.zip": zip_bytes({FILE: DANCE}), "Bela.7z": b"7z"},
            ["Bela.7z"],
            OPENED,
            id="beside an archive",
        ),
        pytest.param(
            {
                f"Ada_1_assignsubmission_file_{FILE}": DANCE,
                "Bela_2_assignsubmission_file_Bela.7z": b"7z",
            },
            ["Bela_2_assignsubmission_file_Bela.7z"],
            OPENED,
            id="flat",
        ),
        pytest.param(
            {f"ada_1_10_{FILE}": DANCE, f"bela_2_11_{FILE}": "#" * 2**21},
            [f"bela_2_11_{FILE}"],
            "is larger than 1,024 KiB. Next: open it by hand",
            id="larger than grading reads",
        ),
        pytest.param(
            {f"ada_1_10_{FILE}": DANCE, **MANY},
            [*sorted(MANY)[:10], "20 more"],
            OPENED,
            id="a long list, which is cut",
        ),
    ],
)
def test_what_a_roster_knows_is_its_students(run, write_zip, out_folder, files, names, why):
    collected = run(write_zip(files), roster=ROSTER)
    assert unreadable_files(out_folder) == {"B": {ONE: names}}
    assert why in collected.not_taken[0]


OTHER = "attention_in_practice"


@pytest.mark.parametrize(
    ("beside", "only", "assignments"),
    [
        pytest.param(FILE, None, [ONE], id="as what else is there"),
        pytest.param("x.txt", None, [ONE, OTHER], id="of every one"),
        pytest.param("x.txt", 0, [ONE], id="of the one that is asked for"),
    ],
)
def test_it_is_of_an_assignment(course, write_zip, out_folder, beside, only, assignments):
    assignment = None if only is None else course.assignments[only]
    download = write_zip({f"ada_1_10_{beside}": DANCE, "bela_2_11_work.rar": b"Rar!"})
    collected = collect(course, [download], out_folder, ROSTER, only=assignment)
    assert list(unreadable_files(out_folder)["B"]) == assignments
    into = "/".join([str(out_folder), "B", *assignments[: len(assignments) == 1]])
    assert any(f"put the files into {into}/; or" in message for message in collected.not_taken)


def test_a_download_that_cannot_be_opened_is_a_students_where_the_roster_knows_its_name(
    run, tmp_path, out_folder
):
    for name in ("Bela.rar", "class.rar"):
        (tmp_path / name).write_bytes(b"Rar!")
    collected: Collected = run(tmp_path / "Bela.rar", tmp_path / "class.rar", roster=ROSTER)
    assert list(unreadable_files(out_folder)) == ["B"]
    assert sorted(message.partition(":")[0] for message in collected.not_taken) == [
        "B",
        "class.rar",
    ]


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
    ("place", "mode", "told", "laid"),
    [
        *(("bela", mode, "bela/", ["ada"]) for mode in (0o000, 0o644, 0o311)),
        ("bela/deep", 0, "bela/deep/", ["ada", "bela"]),
        (f"bela/{FILE}", 0, f"bela/{FILE}", ["ada"]),
    ],
)
def test_what_is_closed_is_named_with_the_student(course, tmp_path, place, mode, told, laid):
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
        collected = collect(course, [Path("all")], Path("out/in"))
    locked.chmod(old_mode)
    assert sorted(file.path for file in collected.candidates) == [
        f"{name}/{DANCED}" for name in laid
    ]
    why = f"is not read: Permission denied; chmod -R u+rwX all/{place} changes that. Next: "
    assert collected.not_taken[0].startswith(f"bela: handed in, not readable: all: {told} {why}")
    assert unreadable_files(tmp_path / "out" / "in") == {"bela": {ONE: [told]}}
    with as_nobody(tmp_path):
        collected = collect(course, [Path("all")], Path("out/in"))
    assert (len(collected.candidates), collected.not_taken) == (2, [])


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        pytest.param(
            f"{ONE}/4_reshape_dance.py", [f"ada/{ONE}/4_reshape_dance.py"], id="another number"
        ),
        pytest.param(
            f"{ONE}/04-reshape-dance.py", [f"ada/{ONE}/04-reshape-dance.py"], id="another sign"
        ),
        pytest.param(
            f"{ONE}/04_reshape_dance.PY", [f"ada/{ONE}/04_reshape_dance.PY"], id="capitals"
        ),
        pytest.param(f"{ONE}/Copy of {FILE}", [f"ada/{ONE}/Copy of {FILE}"], id="a copy"),
        pytest.param(f"{ONE}/src/{FILE}", [f"ada/{ONE}/src"], id="a folder deeper"),
        pytest.param(f"{ONE}/work.zip", [f"ada/{ONE}/work.zip"], id="an archive"),
        pytest.param(
            "Multi-Head Attention/04_reshape_dance.py",
            ["ada/Multi-Head Attention"],
            id="another folder's name",
        ),
        pytest.param(FILE, [f"ada/{FILE}"], id="no folder"),
        pytest.param("work.zip", ["ada/work.zip"], id="an archive beside the folder"),
        pytest.param(
            f"{ONE}/04_reshape_dance.docx",
            [f"ada/{ONE}/04_reshape_dance.docx"],
            id="a text of a word processor",
        ),
        pytest.param(
            "reshape_dance.pdf", ["ada/reshape_dance.pdf"], id="a print of it, beside the folder"
        ),
    ],
)
@pytest.mark.parametrize("only", ["", "ada"])
def test_what_is_named_and_not_graded_in_a_folder_is_handed_in(
    course, out_folder, entry, names, only
):
    for path in (f"ada/{entry}", f"bela/{DANCED}"):
        (out_folder / path).parent.mkdir(parents=True)
        (out_folder / path).write_text(DANCE)
    work = to_grade(course, out_folder, course.assignments, (), only)
    unread = {
        (submission.student, submission.assignment.id): kept_names
        for submission, kept_names in work.not_readable.items()
    }
    assert unread == {
        ("ada", ONE): tuple(f"{name}, which is not graded as it is" for name in names)
    }
    assert ("ada", ONE) in {
        (submission.student, submission.assignment.id) for submission in work.submissions
    }
    assert [file.path for file in work.not_graded] == ([] if only else names)


def test_an_empty_folder_is_nothing_that_was_handed_in(course, out_folder):
    (out_folder / "ada" / ONE / "src").mkdir(parents=True)
    (out_folder / "bela" / ONE).mkdir(parents=True)
    assert to_grade(course, out_folder, course.assignments, ()).not_readable == {}


@pytest.mark.parametrize("name", ["solution.py", "Untitled12.ipynb", "04_reshape_dance.docx"])
def test_what_collect_does_not_take_is_handed_in_all_the_same(
    course, run, write_zip, out_folder, name
):
    files = {f"ada_1_11_{FILE}": DANCE, f"bela_2_12_{name}": "x = 1\n"}
    (message,) = run(write_zip(files), roster=ROSTER).not_taken
    assert f"download.zip: bela_2_12_{name} " in message
    work = to_grade(course, out_folder, course.assignments, ())
    unread = {submission.student: names for submission, names in work.not_readable.items()}
    assert unread == {"B": (f"bela_2_12_{name}, which is not graded as it is",)}


def test_what_came_with_the_exercises_is_nothing_that_was_handed_in(
    course, run, write_zip, out_folder
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
    collected = run(
        write_zip({"ada_1_11_work.zip": folder, f"bela_2_12_{FILE}": DANCE}), roster=ROSTER
    )
    assert collected.not_taken == []
    assert "left out as what came with the exercises: 3" in collected.notes
    assert to_grade(course, out_folder, course.assignments, ()).not_readable == {}
