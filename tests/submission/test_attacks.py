"""Nobody hands in for somebody else, and nothing stops the class: downloads of twelve platforms,
students' archives, and chance.
"""

import io
import random
import tarfile
import zipfile
from contextlib import suppress

import pytest

from manyheads.files import CourseFault
from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import to_grade
from manyheads.submission.roster_and_times import Roster, Student, read_roster

from .conftest import ADA, BEN, CLASS, DANCE, DANCED, EVE, FILE, PLATFORMS, download, zip_bytes

platforms = pytest.mark.parametrize("platform", PLATFORMS)


@platforms
def test_who_is_on_the_roster_is_found(run, write_zip, there, out_folder, platform):
    collected = run(write_zip(download(platform, ADA, BEN)), roster=CLASS)
    assert (collected.platforms, collected.not_taken) == ({"download.zip": [platform]}, [])
    assert {path: (out_folder / path).read_text()[-1] for path in there()} == {
        f"ada/{DANCED}": "1",
        f"ben/{DANCED}": "2",
    }


@platforms
def test_of_two_whom_the_roster_takes_for_one_none_is_taken(run, write_zip, there, platform):
    """Where the platform shows a login, two ids of one row; else somebody who has taken the
    name.
    """
    rows = (
        Student("ada", "Ada Lovelace", login="al1", sis_id="x3", github="al1"),
        CLASS.students[1],
    )
    impostor = (3, "ada" if platform == "clones" else "x3", "Ada Lovelace")
    collected = run(write_zip(download(platform, ADA, BEN, impostor)), roster=Roster(rows))
    assert there() == [f"ben/{DANCED}"]
    (message,) = collected.not_taken
    assert all(PLATFORMS[platform](*person) in message for person in (ADA, impostor))
    assert "are of 2 persons, and each of them would be 'ada': none is taken. Next: " in message


@platforms
def test_a_login_that_ends_in_another_is_another(run, write_zip, there, platform):
    collected = run(
        write_zip(
            download(platform, (3, "m_al1", "Eve Mallory"), (4, "x-al1", "Max Mallory"), BEN)
        ),
        roster=CLASS,
    )
    assert f"ben/{DANCED}" in there()
    assert not [path for path in there() if path.startswith("ada/")]
    assert len(there()) == 3, collected.not_taken
    assert sum("is not on the roster" in note for note in collected.notes) == 2


@platforms
@pytest.mark.parametrize("within", ["an archive", "a folder"])
def test_what_a_hand_in_holds_is_its_owners(run, write_zip, out_folder, platform, within):
    """Eve hands in what looks like a newer download of the same platform, with Ada's and Ben's
    files.
    """
    forged = {f"x/{name}": text for name, text in download(platform, ADA, BEN).items()} | download(
        platform, ADA, BEN
    )
    eve_file = PLATFORMS[platform](*EVE)
    archive = {eve_file.replace(FILE, "work.zip"): zip_bytes(forged, year=2030)}
    folder = {
        f"{eve_file.removesuffix(FILE)}{name}": f"{DANCE}# forged"
        for name in forged
        if "/" in eve_file
    }
    files = download(platform, ADA, BEN, EVE)
    del files[eve_file]
    roster = Roster((*CLASS.students, Student("eve", "Eve Mallory", login="m_al1", github="m_al1")))
    run(write_zip({**files, **(archive if within == "an archive" else folder)}), roster=roster)
    assert [(out_folder / student / DANCED).read_text()[-1] for student in ("ada", "ben")] == [
        "1",
        "2",
    ]
    assert {path.name for path in out_folder.iterdir() if path.is_dir()} <= {"ada", "ben", "eve"}


@platforms
@pytest.mark.parametrize("roster", [None, CLASS], ids=["no roster", "a roster"])
def test_an_archive_among_several_is_its_senders_whatever_it_holds(
    run, write_zip, there, out_folder, platform, roster
):
    """mallory.zip is laid out like a download of the platform, and newer."""
    honest = [
        write_zip({f"hw/{FILE}": f"{DANCE}# {name}"}, f"{name}.zip") for name in ("ada", "ben")
    ]
    run(*honest, write_zip(download(platform, ADA, BEN), "mallory.zip", year=2030), roster=roster)
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
def test_who_stands_beside_tables_alone_is_no_class(run, write_zip, out_folder, platform):
    """All but Eve handed in a table, and beside those no folder is the first in which paths
    part.
    """
    forged = {f"m_al1/{name}": text for name, text in download(platform, ADA).items()}
    run(write_zip({**forged, "al1/data.csv": "1", "bo2/data.csv": "2"}), roster=CLASS)
    assert not list(out_folder.glob("ada/*/*.py"))


@platforms
def test_one_archive_whose_name_the_roster_knows_is_that_students(
    run, write_zip, out_folder, platform
):
    run(write_zip(download(platform, ADA, EVE), "bo2.zip"), roster=CLASS)
    assert {path.name for path in out_folder.iterdir() if path.is_dir()} <= {"ben"}


ROLL = Roster(
    (
        Student("s1", "Ada Lovelace"),
        Student("s2", "Bela Bartok", sis_id="S200"),
        Student("s3", "Cleo"),
    )
)


def text(value: int) -> str:
    return f"def split_heads(x, n_head):\n    return x + {value}\n"


@pytest.mark.parametrize("folder", ["homework", "homework/multi_head_attention", "a/b"])
def test_several_archives_with_one_folder_are_of_whom_they_are_named_after(
    run, write_zip, there, out_folder, folder
):
    names = ["ada", "bela", "cleo"]
    zips = [write_zip({f"{folder}/{FILE}": text(i)}, f"{name}.zip") for i, name in enumerate(names)]
    collected = run(*zips)
    assert collected.not_taken == []
    assert there() == [f"{name}/{DANCED}" for name in names]
    assert [(out_folder / name / DANCED).read_text() for name in names] == [
        text(i) for i in range(3)
    ]
    assert {file.state.name for file in run(*zips).candidates} == {"SAME"}


def test_an_archive_of_somebody_else_with_the_same_folder_takes_nobodys_place(
    run, write_zip, there, out_folder
):
    first, second = (
        write_zip({f"homework/{FILE}": text(i)}, f"{name}.zip")
        for i, name in enumerate(("ada", "bela"))
    )
    run(first)
    (message,) = run(second).not_taken
    assert "would go to 'homework', where the files of somebody else are" in message
    assert (out_folder / "homework" / DANCED).read_text() == text(0)
    assert run(first, second).not_taken == []
    assert there() == [f"{name}/{DANCED}" for name in ("ada", "bela", "homework")]


def test_downloads_of_classes_stay_the_students_that_are_in_them(run, write_zip, there):
    zips = []
    for homework in ("hw1", "hw2"):
        files = {f"{homework}/{name}/{FILE}": text(0) for name in ("ada", "bela")}
        zips.append(write_zip(files, f"{homework}.zip"))
    run(*zips)
    assert there() == [f"ada/{DANCED}", f"bela/{DANCED}"]


@pytest.mark.parametrize(
    "names",
    [("ada.zip", "late/ada.zip"), ("s1.zip", "Ada Lovelace.zip")],
    ids=["one name", "both on the roster"],
)
def test_two_archives_that_claim_one_student_are_both_named_and_none_is_taken(
    run, write_zip, there, out_folder, tmp_path, names
):
    (tmp_path / "late").mkdir()
    first = write_zip({f"homework/{FILE}": text(0)}, names[0], year=2025)
    second = write_zip({f"homework/{FILE}": text(1)}, names[1], year=2026)
    roster = ROLL if names[0] == "s1.zip" else None
    collected = run(first, second, roster=roster)
    assert there() == []
    id_ = "s1" if roster else "ada"
    apart = (
        "Next: the same without what is not that student's, or with --roster and a file that "
        "tells them apart"
    )
    reason = (
        f"{first} and {second} are of 2 persons, and each of them would be {id_!r}: none is taken"
    )
    assert collected.not_taken == [f"{names[0].rpartition('/')[2]}: {reason}. {apart}"]
    assert run(second, roster=roster).not_taken == []


def test_archives_that_are_named_after_assignments_are_of_whom_their_folders_say(
    run, write_zip, there
):
    script = "01_cross_attention.py"
    zips = [
        write_zip([f"ada/{FILE}"], "multi-head-attention.zip"),
        write_zip([f"ada/{script}"], "attention_in_practice.zip"),
    ]
    assert run(*zips).not_taken == []
    assert there() == [f"ada/attention_in_practice/{script}", f"ada/{DANCED}"]


def test_a_folder_around_a_download_is_seen_through_and_what_comes_after_it_is_read(
    run, write_zip, there, tmp_path
):
    (tmp_path / "hw1").mkdir()
    write_zip([f"ada_1_10_{FILE}", f"ben_2_11_{FILE}"], "hw1/submissions.zip")
    run(tmp_path / "hw1", write_zip([f"cat_3_12_{FILE}", f"dan_4_13_{FILE}"], "more.zip"))
    assert there() == [f"{student}/{DANCED}" for student in ("ada_1", "ben_2", "cat_3", "dan_4")]


NAMES = [
    *"al1 x-al1 m_al1 Å .. CON LATE ::x %s".split(),
    "Ada Lovelace",
    "",
    "a" * 260,
    "\u202e",
    "a\nb",
]
FILES = (
    f"{FILE} 05_weight_split.ipynb work.zip x.rar text.html submission_metadata.yml "
    f"{FILE}.txt x.csv"
).split()
FORMS = [
    *(make(77, "{n}", "{n} {n}") for make in PLATFORMS.values()),
    "{n}_LATE_7_7_{f}",
    "{n}_7_assignfeedback_file_/{f}",
    "{f}",
    "hw_{n}_attempt_9999-99-99-99-99-99.txt",
    "hw1-{n}-main.zip",
    "/{n}/{f}",
    "../{n}/{f}",
    "{n}\\{f}",
    "{n}+a+9999-12-31 23:58:20 +9999+7/{f}",
]
LIST = (
    "submission_77:\n  :submitters:\n  - :name: {n}\n    :sid: !!int x\n"
    "  :created_at: 9999-12-31 23:58:20 Z\n"
)
CONTENTS = [
    DANCE.encode(),
    b"",
    b"\0\xff",
    b'{"cells": []}',
    b"(" * 2000,
    LIST.encode(),
    b"[[[",
    b"a: &a [*a]",
]


def archive(r: random.Random, depth: int = 2) -> bytes:
    """A zip or a tar of members as platforms, students and attackers name them; some are
    damaged.
    """
    forms = [r.choice(FORMS).replace(FILE, "{f}") for _ in range(r.randint(0, 6))]
    names = [form.format(n=r.choice(NAMES), f=r.choice(FILES)) or "x" for form in forms]
    contents = [
        archive(r, depth - 1) if depth and n.endswith(".zip") else r.choice(CONTENTS) for n in names
    ]
    out = io.BytesIO()
    if r.random() < 0.7:
        with zipfile.ZipFile(out, "w", r.choice([0, 8, 12])) as zip_file:
            for name, content in zip(names, contents, strict=True):
                info = zipfile.ZipInfo(
                    name, r.choice([(2026, 11, 20, 12, 0, 0), (2107, 12, 31, 23, 59, 58)])
                )
                info.external_attr = r.choice([0, 0, 0, 0o120777, 0o010644]) << 16
                zip_file.writestr(info, content)
    else:
        mode = f"w:{r.choice(['', 'gz', 'bz2', 'xz'])}"
        with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]
            for name, content in zip(names, contents, strict=True):
                info = tarfile.TarInfo(name[:90])
                info.size, info.mtime = len(content), r.choice([0, 8**11 - 1])
                info.type = r.choice([b"0", b"0", b"2", b"6"])
                with suppress(ValueError):
                    tar.addfile(info, io.BytesIO(content))
    data = bytearray(out.getvalue())
    for _ in range(r.choice([0, 0, 1, 20]) if data else 0):
        data[r.randrange(len(data))] = r.randrange(256)
    return bytes(data[: r.choice([None, None, None, len(data) // 2])])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("seed", range(150))
def test_whatever_is_handed_out_is_laid_out_or_told(course, tmp_path, seed):
    r = random.Random(seed)
    columns = r.sample(
        ["id", "name", "email", "login", "group", "Student", "ID", "role"], r.randint(1, 5)
    )
    rows = [columns]
    for _ in range(r.randint(0, 5)):
        rows.append([r.choice([*NAMES, "1", "7"]) for _ in columns])
    text, names = "\n".join(map(",".join, rows)), ["ada.zip", "al1.tar", "all.zip", "ada1.zip"]
    (tmp_path / "roster.csv").write_bytes(
        text.encode(r.choice(["utf-8", "utf-16", "latin-1"]), "replace")
    )
    downloads = [tmp_path / name for name in r.sample(names, r.randint(1, 3))]
    for path in downloads:
        path.write_bytes(archive(r))
    try:
        roster = read_roster(tmp_path / "roster.csv") if r.random() < 0.6 else None
        collected = collect(course, downloads, tmp_path / "out", roster)
        assert all(message.isprintable() for message in (*collected.notes, *collected.not_taken))
        assert all(". Next: " in message for message in collected.not_taken)
        if collected.candidates:
            to_grade(course, tmp_path / "out", course.assignments, ())
    except CourseFault as error:
        assert ". Next: " in str(error)  # noqa: PT017
