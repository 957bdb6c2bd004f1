"""Archives come from students: nothing is written outside OUT, memory is bounded, and what is
refused has a sentence.
"""

import io
import os
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import State, read_journal
from manyheads.submission.read import IntakeLimits

from .conftest import DANCE, zip_bytes

GOOD = "a_1_2_04_reshape_dance.py"
PLACED = "a_1/multi_head_attention/04_reshape_dance.py"


def tar_of(path: Path, *members: tarfile.TarInfo, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info in members:
            if info.isreg():
                info.size = len(DANCE)
            archive.addfile(info, io.BytesIO(DANCE.encode()) if info.isreg() else None)
    return path


def tar_entry(name: str, member_type: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = member_type, target
    return info


def entry(name: str, mode: int = 0, flags: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr, info.flag_bits = 3, mode << 16, flags
    return info


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (entry("../b_1_2_04_reshape_dance.py"), "leads out of the archive"),
        (entry("x/../../b_1_2_04_reshape_dance.py"), "leads out of the archive"),
        (entry("..\\b_1_2_04_reshape_dance.py"), "leads out of the archive"),
        (entry("/etc/b_1_2_04_reshape_dance.py"), "has an absolute path"),
        (entry("C:\\b_1_2_04_reshape_dance.py"), "has an absolute path"),
        (entry("\\\\host\\b_1_2_04_reshape_dance.py"), "has an absolute path"),
        (entry("b_1_2_04_\x1b[2Jreshape_dance.py"), "cannot be shown"),
        (entry("b_1_2_04_\u202ereshape_dance.py"), "cannot be shown"),
        (entry("b_1_2_" + "x" * 60_000 + ".py"), "too long"),
        (entry("./."), "too long or empty"),
        (entry("x/" * 50 + "b_1_2_04_reshape_dance.py"), "too long"),
        (entry("b_1_2_04_reshape_dance.py", stat.S_IFLNK | 0o777), "is a link"),
        (entry("b_1_2_04_reshape_dance.py", stat.S_IFIFO), "is no regular file"),
        (entry("b_1_2_04_reshape_dance.py", stat.S_IFCHR), "is no regular file"),
        (tar_entry("../b_1_2_04_reshape_dance.py"), "leads out of the archive"),
        (tar_entry("/tmp/b_1_2_04_reshape_dance.py"), "has an absolute path"),
        (tar_entry("b_1_2_04_reshape_dance.py", tarfile.SYMTYPE, "/etc/passwd"), "is a link"),
        (tar_entry("b_1_2_04_reshape_dance.py", tarfile.LNKTYPE, GOOD), "is a link"),
        (tar_entry("b_1_2_04_reshape_dance.py", tarfile.CHRTYPE), "is no regular file"),
        (tar_entry("b_1_2_04_reshape_dance.py", tarfile.FIFOTYPE), "is no regular file"),
        (tar_entry("b_1_2_04_reshape_dance.py", tarfile.GNUTYPE_SPARSE), "is no regular file"),
    ],
)
def test_a_hostile_member_is_refused_and_the_others_are_taken(run, tmp_path, there, info, reason):
    path = tmp_path / "download.zip"
    if isinstance(info, tarfile.TarInfo):
        path = tar_of(tmp_path / "download.tar.gz", tar_entry(GOOD), info)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(GOOD, DANCE)
            archive.writestr(info, DANCE)
    original_paths = {file for file in tmp_path.rglob("*") if "submitted" not in file.parts}
    (message,) = run(path).not_taken
    assert reason in message
    assert len(message) < 500
    assert message.isprintable()
    assert "Next: " in message
    assert there() == [PLACED]
    assert {file for file in tmp_path.rglob("*") if "submitted" not in file.parts} == original_paths


def test_an_encrypted_member_is_refused(run, write_zip, there):
    path = write_zip([GOOD])
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.find(signature) + offset] |= 1
    path.write_bytes(data)
    assert "is encrypted" in run(path).not_taken[0]
    assert there() == []


def test_of_equal_names_the_last_counts(run, tmp_path, out_folder):
    path = tmp_path / "download.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(GOOD, "def split_heads(): ...  # first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(GOOD, "def split_heads(): ...  # last")
    assert "stands in the archive once more, and the last one counts" in run(path).not_taken[0]
    assert "last" in (out_folder / PLACED).read_text()


def test_names_that_differ_in_their_unicode_form_are_one(run, write_zip, there):
    run(
        write_zip(
            [
                "Zoe\u0308/04_reshape_dance.py",
                "Zo\u00eb/05_weight_split.py",
                "x/04_reshape_dance.py",
            ]
        )
    )
    assert {path.split("/")[0] for path in there()} == {"Zo\u00eb", "x"}


@pytest.mark.parametrize(
    "name",
    [
        "=1+2",
        "+1",
        "-rf",
        "@x",
        "\uff1dcmd",
        "report",
        "[bold]x",
        "%s",
        "O'Brien; rm -rf ~",
        "ab::c",
        "CON",
        "...",
    ],
)
def test_an_odd_name_is_a_folder_or_refused_in_a_sentence(run, write_zip, there, name):
    collected = run(write_zip([f"{name}/04_reshape_dance.py", "x/04_reshape_dance.py"]))
    students = {path.split("/")[0] for path in there()}
    assert name.replace(":", "_") in students or "cannot be a folder's" in collected.not_taken[0]
    assert "x" in students


@pytest.mark.parametrize(
    ("name", "code"), [("Zß", "utf-8"), ("Jörg Müßig", "cp437"), ("René", "cp437")]
)
def test_names_without_a_flag_are_read_as_macs_or_the_format_write_them(
    run, tmp_path, there, name, code
):
    path, stands = tmp_path / "download.zip", "X" * len(name.encode(code))
    data = zip_bytes({f"{stands}/04_reshape_dance.py": DANCE, "bo/04_reshape_dance.py": DANCE})
    path.write_bytes(data.replace(stands.encode(), name.encode(code)))
    run(path)
    assert f"{name}/multi_head_attention/04_reshape_dance.py" in there()


SMALL = IntakeLimits(attempt=10_000, size=50_000, members=20)


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        pytest.param(
            zip_bytes({f"{i}_04_reshape_dance.py": b"#" * 9_000 for i in range(9)}),
            "unpacks to more",
            id="bomb",
        ),
        pytest.param(
            zip_bytes({"04_reshape_dance.py": b"#" * 40_000_000}),
            "is larger than 9 KiB",
            id="one big file",
        ),
        pytest.param(
            zip_bytes({f"{i}.txt": b"" for i in range(30)}),
            "more files than are read",
            id="many files",
        ),
        pytest.param(
            zip_bytes({f"{i:0200}": b"" for i in range(60)}),
            "more files than are read",
            id="many long names",
        ),
        pytest.param(
            zip_bytes({"../x.py": b""}),
            "not opened: a file in it has a path that leads out",
            id="nothing to take",
        ),
        pytest.param(b"PK\3\4 nothing", "damaged", id="no zip"),
        pytest.param(b"", "damaged, or neither zip nor tar", id="empty"),
    ],
)
def test_a_students_archive_that_is_too_much_is_not_opened(
    course, write_zip, out_folder, there, inner, reason
):
    download = write_zip({GOOD: DANCE, "b_1_3_work.zip": inner})
    collected = collect(course, [download], out_folder, limits=SMALL)
    assert len(collected.not_taken) == 1
    assert reason in collected.not_taken[0]
    assert there() == [PLACED]
    assert list(read_journal(out_folder).not_readable) == ["b_1"], (
        "and it is no 0 of whoever handed it in"
    )


def test_a_long_list_of_members_is_not_read_whatever_they_are(course, write_zip, out_folder):
    noise = zip_bytes({f"__MACOSX/{i:0200}": b"" for i in range(5_000)})
    collected = collect(
        course,
        [write_zip({GOOD: DANCE, "b_1_3_work.zip": noise})],
        out_folder,
        limits=IntakeLimits(members=20),
    )
    assert "work.zip is not opened: it has more files than are read here" in collected.not_taken[0]


@pytest.mark.parametrize(
    "environment", [".venv/lib", "venv/lib/python3.11/site-packages", "env/Lib/site-packages"]
)
def test_a_virtual_environment_counts_for_no_limit(
    course, write_zip, out_folder, there, environment
):
    modules = {f"work/{environment}/torch/{i}.py": "import os" for i in range(60)}
    work = zip_bytes({f"work/exercises/{PLACED.partition('/')[2]}": DANCE, **modules})
    collected = collect(
        course,
        [write_zip({"b_1_3_work.zip": work, "c_1_4_04_reshape_dance.py": DANCE})],
        out_folder,
        limits=SMALL,
    )
    assert collected.not_taken == []
    assert there() == [PLACED.replace("a", "b", 1), PLACED.replace("a", "c", 1)]


@pytest.mark.parametrize("is_zip", [True, False])
def test_whoever_handed_in_what_an_editor_left_alone_is_named(
    run, write_zip, tmp_path, there, is_zip
):
    files = {
        "ada/04_reshape_dance.py": DANCE,
        "ben/.ipynb_checkpoints/04_reshape_dance-checkpoint.ipynb": "{}",
    }
    download = write_zip(files)
    if not is_zip:
        archive, download = download, tmp_path / "class"
        zipfile.ZipFile(archive).extractall(download)
    assert [
        message
        for message in run(download).not_taken
        if "ben holds nothing but what editors" in message
    ]
    assert there() == [PLACED.replace("a_1", "ada")]


@pytest.mark.parametrize("names", ["late.zip", "late.tgz"])
def test_an_archive_that_cannot_be_opened_makes_no_student_of_a_class(
    run, write_zip, tmp_path, there, names
):
    damaged = tmp_path / names
    damaged.write_bytes(b"PKbroken")
    class_download = write_zip({GOOD: DANCE, GOOD.replace("a_1", "b_1"): DANCE}, "canvas.zip")
    assert "is not opened" in run(damaged, class_download).not_taken[0]
    assert there() == [PLACED, PLACED.replace("a_1", "b_1")]


def test_an_archive_that_is_too_much_stops_nobody_else(course, write_zip, out_folder, there):
    many = write_zip({f"{i}.txt": "" for i in range(600)}, "mallory.zip")
    collected = collect(course, [write_zip([PLACED], "ada.zip"), many], out_folder, limits=SMALL)
    assert (
        "mallory.zip is not opened: it has more files than are read here" in collected.not_taken[0]
    )
    assert there() == [PLACED.replace("a_1", "ada")]


def test_many_archives_of_one_student_leave_room_for_everybody_elses_files(
    course, write_zip, out_folder, there
):
    two = zip_bytes({f"{i}/04_reshape_dance.py": "#" * 9_000 for i in range(2)})
    members = zip_bytes({f"{i}.txt": "" for i in range(9)})
    many = {f"b_1_{i}_work{i}.zip": inner for i, inner in enumerate([two] * 8 + [members] * 8)}
    collected = collect(course, [write_zip({**many, GOOD: DANCE})], out_folder, limits=SMALL)
    assert "b_1_7_work7.zip is not opened: it unpacks to more than is read here" in "".join(
        collected.not_taken
    )
    assert PLACED in there()


@pytest.mark.parametrize("where", [28, 10])
def test_a_damaged_member_is_refused(run, write_zip, where):
    path = write_zip({GOOD: DANCE * 9, "c_1_2_04_reshape_dance.py": DANCE})
    data = bytearray(path.read_bytes())
    data[data.find(GOOD.encode()) + len(GOOD) + where] ^= 0xFF
    path.write_bytes(data)
    assert "is damaged" in run(path).not_taken[0]


@pytest.mark.parametrize("mtime", ["nan", "inf", "-1e300", "1e300"])
def test_a_tar_whose_time_is_no_time_leaves_the_next_run_its_memory(run, tmp_path, there, mtime):
    info = tar_entry(GOOD)
    info.pax_headers = {"mtime": mtime}
    download = tar_of(tmp_path / "download.tar", info, mode="w")
    assert mtime.encode() in download.read_bytes()
    run(download)
    assert [file.state for file in run(download).candidates] == [State.SAME]
    assert there() == [PLACED]


@pytest.mark.parametrize(
    ("suffix", "mode"),
    [("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar.bz2", "w:bz2"), ("tar.xz", "w:xz"), ("tar", "w")],
)
def test_tar_archives_are_read(run, tmp_path, there, suffix, mode):
    assert run(tar_of(tmp_path / f"download.{suffix}", tar_entry(GOOD), mode=mode)).not_taken == []
    assert there() == [PLACED]


def test_a_tar_that_leads_back_to_its_beginning_ends(run, tmp_path, there):
    path = tar_of(tmp_path / "download.tar", tar_entry(GOOD), tar_entry("x.txt"), mode="w")
    data = bytearray(path.read_bytes())
    # the second member's size
    data[1024 + 124 : 1024 + 136] = b"\xff" * 10 + struct.pack(">h", -1536)
    data[1024 + 148 : 1024 + 156] = b" " * 8
    data[1024 + 148 : 1024 + 156] = b"%06o\0 " % sum(data[1024:1536])
    path.write_bytes(data)
    run(path)
    assert there() == [PLACED]


def test_a_tar_bomb_is_not_unpacked(course, tmp_path, out_folder):
    for name in ("ada", "ben"):
        (tmp_path / "all" / name).mkdir(parents=True)
    (tmp_path / "all" / "ada" / "04_reshape_dance.py").write_text(DANCE)
    info = tar_entry("a.bin")
    info.size = 30_000_000
    with tarfile.open(tmp_path / "all" / "ben" / "b.tar.gz", "w:gz") as archive:
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    collected = collect(course, [tmp_path / "all"], out_folder, limits=SMALL)
    assert "unpacks to more than is read here" in collected.not_taken[0]


def tar_with(path: Path, header_type: bytes, header: str) -> None:
    """A tar with a header about headers, and a file of an exercise."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, type_, text in (
            ("pax", header_type, header),
            ("ada/04_reshape_dance.py", tarfile.REGTYPE, DANCE),
        ):
            info = tar_entry(name, type_)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    ("kind", "keys", "refused"),
    [
        pytest.param(tarfile.XGLTYPE, 200_000, True, id="of every member"),
        pytest.param(tarfile.XHDTYPE, 200_000, True, id="of one member"),
        pytest.param(tarfile.XGLTYPE, 5, False, id="as git archive writes it"),
    ],
)
def test_a_header_about_headers_may_not_be_long(run, tmp_path, there, kind, keys, refused):
    """The library reads it into memory, and copies what it says of every member to each: megabytes
    a file.
    """
    (tmp_path / "all").mkdir()
    tar_with(tmp_path / "all" / "ada.tar", kind, "".join(f"15 key{i:06d}=v\n" for i in range(keys)))
    collected = run(tmp_path / "all")
    assert (
        any(
            "headers are longer than any that are needed" in message
            for message in collected.not_taken
        )
        is refused
    )
    assert bool(there()) is not refused


def test_links_and_devices_in_a_folder_are_named_and_not_followed(run, tmp_path, there):
    folder = tmp_path / "all" / "ada"
    folder.mkdir(parents=True)
    (tmp_path / "secret.py").write_text("secret")
    (folder / "04_reshape_dance.py").symlink_to(tmp_path / "secret.py")
    os.mkfifo(folder / "05_weight_split.py")
    (tmp_path / "all" / "bela").symlink_to(tmp_path)
    reasons = [
        sentence.split(" ", 2)[2].partition(".")[0] for sentence in run(tmp_path / "all").not_taken
    ]
    assert sorted(reasons) == ["is a link", "is a link", "is no regular file"]
    assert there() == []


def test_a_link_that_stands_alone_in_a_folder_is_not_followed(run, write_zip, tmp_path, there):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "submissions.zip").symlink_to(write_zip([GOOD], "elsewhere.zip"))
    assert "submissions.zip is a link. Next: " in run(tmp_path / "all").not_taken[0]
    assert there() == []
