"""Archives: hostile and damaged members are refused with a message, and limits hold."""

import os
import struct
import tarfile
import zipfile

import pytest

from manyheads.submission.intake_journal import State, read_journal
from manyheads.submission.read import IntakeLimits
from tests.make import cases

from .conftest import DANCE, GOOD, PLACED, Member, tar_bytes, zip_bytes

BOTH_FORMATS = pytest.mark.parametrize("pack", [zip_bytes, tar_bytes])
BAD_NAMES = {
    "../b_1_2_04_reshape_dance.py": "leads out of the archive",
    "x/../../b_1_2_04_reshape_dance.py": "leads out of the archive",
    "..\\b_1_2_04_reshape_dance.py": "leads out of the archive",
    "/etc/b_1_2_04_reshape_dance.py": "has an absolute path",
    "C:\\b_1_2_04_reshape_dance.py": "has an absolute path",
    "\\\\host\\b_1_2_04_reshape_dance.py": "has an absolute path",
    "b_1_2_04_\x1b[2Jreshape_dance.py": "cannot be shown",
    "b_1_2_04_\u202ereshape_dance.py": "cannot be shown",
    "x/" * 50 + "b_1_2_04_reshape_dance.py": "too long",
    "./.": "too long or empty",
}
BAD_TYPES = {
    tarfile.SYMTYPE: "is a link",
    tarfile.FIFOTYPE: "is no regular file",
    tarfile.CHRTYPE: "is no regular file",
}
ONLY_IN_A_TAR = {tarfile.LNKTYPE: "is a link", tarfile.GNUTYPE_SPARSE: "is no regular file"}
OTHER = GOOD.replace("a_1", "b_1")
BAD_MEMBERS = [(Member(name), reason) for name, reason in BAD_NAMES.items()]
BAD_MEMBERS += [(Member(OTHER, type=type_), reason) for type_, reason in BAD_TYPES.items()]
IN_A_ZIP = [*BAD_MEMBERS, (Member(f"b_1_2_{'x' * 60_000}.py"), "too long")]
IN_A_TAR = [
    *BAD_MEMBERS,
    *((Member(OTHER, "", type_), why) for type_, why in ONLY_IN_A_TAR.items()),
]
REFUSED = {
    f"in a {kind}, it {reason}: {member.name[:50]}, type {member.type}": (pack, member, reason)
    for kind, pack, members in (("zip", zip_bytes, IN_A_ZIP), ("tar", tar_bytes, IN_A_TAR))
    for member, reason in members
}


@cases(("pack", "member", "reason"), REFUSED)
def test_a_hostile_member_is_refused_and_other_members_are_collected(
    collect_files, write_zip, tmp_path, there, pack, member, reason
):
    download = write_zip(pack([Member(GOOD), member]))
    (message,) = collect_files(download).not_taken
    assert reason in message
    assert len(message) < 500
    assert message.isprintable()
    assert "Next: " in message
    assert there() == [PLACED]
    assert {*tmp_path.iterdir()} == {download, tmp_path / "submitted"}


def test_an_encrypted_member_is_refused(collect_zip, there):
    data = bytearray(zip_bytes({GOOD: DANCE}))
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.find(signature) + offset] |= 1
    assert "is encrypted" in collect_zip(bytes(data)).not_taken[0]
    assert there() == []


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_last_member_with_the_same_name_counts(collect_zip, out_folder):
    collected = collect_zip([Member(GOOD, f"{DANCE}# first"), Member(GOOD, f"{DANCE}# last")])
    assert "stands in the archive once more, and the last one counts" in collected.not_taken[0]
    assert (out_folder / PLACED).read_text().endswith("last")


def test_names_that_differ_only_in_unicode_form_are_one_student(collect_zip, there):
    exercises = ["Zoe\u0308/04_reshape_dance.py", "Zo\u00eb/05_weight_split.py"]
    collect_zip([*exercises, "x/04_reshape_dance.py"])
    assert {path.split("/")[0] for path in there()} == {"Zo\u00eb", "x"}


ODD_NAMES = "=1+2|+1|-rf|@x|\uff1dcmd|report|[bold]x|%s|O'Brien; rm -rf ~|ab::c|CON|...".split("|")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_unusual_name_becomes_a_folder_or_is_refused(collect_zip, there, name):
    collected = collect_zip([f"{name}/04_reshape_dance.py", "x/04_reshape_dance.py"])
    students = {path.split("/")[0] for path in there()}
    if name.replace(":", "_") not in students:
        assert "cannot be a folder's" in collected.not_taken[0]
    assert "x" in students


@pytest.mark.parametrize(("name", "code"), [("Zß", "utf-8"), ("Jörg Müßig", "cp437")])
def test_names_without_a_utf8_flag_are_decoded_as_utf8_or_cp437(collect_zip, there, name, code):
    placeholder = "X" * len(name.encode(code))
    data = zip_bytes({f"{placeholder}/04_reshape_dance.py": DANCE, "bo/04_reshape_dance.py": DANCE})
    collect_zip(data.replace(placeholder.encode(), name.encode(code)))
    assert f"{name}/multi_head_attention/04_reshape_dance.py" in there()


SMALL_LIMITS = IntakeLimits(attempt=10_000, size=50_000, members=20)
TOO_MANY = "not opened: it has more files than are read here"
EXERCISES = {f"{i}_04_reshape_dance.py": b"#" * 9_000 for i in range(9)}


@cases(
    "inner, reason",
    {
        "a bomb": (zip_bytes(EXERCISES), "unpacks to more"),
        "a bomb, packed as tar": (
            tar_bytes({"a.bin": bytes(30_000_000)}),
            "unpacks to more than is read here",
        ),
        "one big file": (
            zip_bytes({"04_reshape_dance.py": b"#" * 40_000_000}),
            "is larger than 9 KiB",
        ),
        "many files": (zip_bytes({f"{i}.txt": b"" for i in range(30)}), TOO_MANY),
        "nothing to take": (
            zip_bytes({"../x.py": b""}),
            "not opened: a file in it has a path that leads out",
        ),
        "no zip": (b"PK\3\4 nothing", "damaged"),
        "empty": (b"", "damaged, or neither zip nor tar"),
    },
)
def test_a_students_archive_beyond_the_limits_is_not_opened(
    collect_files, write_zip, out_folder, there, inner, reason
):
    download = write_zip({GOOD: DANCE, "b_1_3_work.zip": inner})
    (message,) = collect_files(download, limits=SMALL_LIMITS).not_taken
    assert reason in message
    assert there() == [PLACED]
    assert list(read_journal(out_folder).not_readable) == ["b_1"], "the student would get 0 points"


@pytest.mark.parametrize(
    "environment", [".venv/lib", "venv/lib/python3.11/site-packages", "env/Lib/site-packages"]
)
def test_files_of_a_virtual_environment_do_not_count_for_limits(
    collect_files, write_zip, there, environment
):
    modules = {f"work/{environment}/torch/{i}.py": "import os" for i in range(60)}
    work = zip_bytes({"work/exercises/04_reshape_dance.py": DANCE, **modules})
    download = write_zip({"b_1_3_work.zip": work, GOOD: DANCE})
    assert collect_files(download, limits=SMALL_LIMITS).not_taken == []
    assert there() == [PLACED, PLACED.replace("a", "b", 1)]


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_student_with_only_an_editors_backup_is_reported(
    collect_files, write_zip, tmp_path, there, is_zip
):
    backup = "ben/.ipynb_checkpoints/04_reshape_dance-checkpoint.ipynb"
    download = write_zip({"ada/04_reshape_dance.py": DANCE, backup: "{}"})
    if not is_zip:
        zipfile.ZipFile(download).extractall(tmp_path / "class")
        download = tmp_path / "class"
    assert "ben holds nothing but what editors" in "".join(collect_files(download).not_taken)
    assert there() == [PLACED.replace("a_1", "ada")]


@pytest.mark.parametrize("name", ["late.zip", "late.tgz"])
def test_a_damaged_archive_does_not_change_how_others_are_read(
    collect_files, write_zip, there, name
):
    damaged = write_zip(b"PKbroken", name)
    assert "is not opened" in collect_files(damaged, write_zip([GOOD, OTHER])).not_taken[0]
    assert there() == [PLACED, PLACED.replace("a_1", "b_1")]


def test_many_archives_of_one_student_do_not_use_up_the_limits(collect_zip, there):
    two_files = zip_bytes({f"{i}/04_reshape_dance.py": "#" * 9_000 for i in range(2)})
    members = zip_bytes({f"{i}.txt": "" for i in range(9)})
    many = {
        f"b_1_{i}_work{i}.zip": inner for i, inner in enumerate([two_files] * 8 + [members] * 8)
    }
    collected = collect_zip({**many, GOOD: DANCE}, limits=SMALL_LIMITS)
    assert "b_1_7_work7.zip is not opened: it unpacks to more than is read here" in "".join(
        collected.not_taken
    )
    assert PLACED in there()


@cases("offset", {"in its content": 28, "in its length": 10})
def test_a_damaged_member_is_refused(collect_zip, offset):
    data = bytearray(zip_bytes({GOOD: DANCE * 9, OTHER: DANCE}))
    data[data.find(GOOD.encode()) + len(GOOD) + offset] ^= 0xFF
    assert "is damaged" in collect_zip(bytes(data)).not_taken[0]


@pytest.mark.parametrize("mtime", ["nan", "inf", "-1e300", "1e300"])
def test_a_tar_with_an_invalid_time_is_the_same_file_in_the_next_run(
    collect_files, write_zip, there, mtime
):
    download = write_zip(tar_bytes([Member(GOOD)], "w", mtime=mtime))
    assert mtime.encode() in download.read_bytes()
    collect_files(download)
    assert [file.state for file in collect_files(download).candidates] == [State.SAME]
    assert there() == [PLACED]


@pytest.mark.parametrize(
    ("suffix", "mode"),
    [("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar.bz2", "w:bz2"), ("tar.xz", "w:xz"), ("tar", "w")],
)
def test_tar_archives_are_read(collect_files, write_zip, there, suffix, mode):
    assert (
        collect_files(write_zip(tar_bytes([Member(GOOD)], mode), f"download.{suffix}")).not_taken
        == []
    )
    assert there() == [PLACED]


def test_a_tar_with_a_negative_size_does_not_loop_forever(collect_zip, there):
    data = bytearray(tar_bytes({GOOD: DANCE, "x.txt": ""}, "w"))
    # the size of the second member leads back to the beginning; then its checksum
    data[1024 + 124 : 1024 + 136] = b"\xff" * 10 + struct.pack(">h", -1536)
    data[1024 + 148 : 1024 + 156] = b" " * 8
    data[1024 + 148 : 1024 + 156] = b"%06o\0 " % sum(data[1024:1536])
    collect_zip(bytes(data))
    assert there() == [PLACED]


def test_links_and_pipes_in_a_folder_are_reported_and_not_followed(collect_files, tmp_path, there):
    folder = tmp_path / "all" / "ada"
    folder.mkdir(parents=True)
    (tmp_path / "secret.py").write_text("secret")
    (folder / "04_reshape_dance.py").symlink_to(tmp_path / "secret.py")
    os.mkfifo(folder / "05_weight_split.py")
    (tmp_path / "all" / "bela").symlink_to(tmp_path)
    messages = collect_files(tmp_path / "all").not_taken
    reasons = [message.split(" ", 2)[2].partition(".")[0] for message in messages]
    assert sorted(reasons) == ["is a link", "is a link", "is no regular file"]
    assert there() == []


def test_a_link_that_is_alone_in_a_folder_is_not_followed(
    collect_files, write_zip, tmp_path, there
):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "submissions.zip").symlink_to(write_zip([GOOD], "elsewhere.zip"))
    assert "submissions.zip is a link. Next: " in collect_files(tmp_path / "all").not_taken[0]
    assert there() == []
