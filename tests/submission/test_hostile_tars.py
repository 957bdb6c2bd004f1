"""One student's archive, or a thousand copies, end `course collect` for nobody: all that is read is
counted, and nothing is held.
"""

import bz2
import gzip
import io
import lzma
import resource
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest

from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import read_journal
from manyheads.submission.read import IntakeLimits

from .conftest import DANCE, zip_bytes

GOOD = "a_1_2_04_reshape_dance.py"
PLACED = "a_1/multi_head_attention/04_reshape_dance.py"
MIB = 1024 * 1024
END = bytes(1024)
LIMITS = IntakeLimits(size=MIB, members=500)


def header(name: str, member_type: bytes, size: int = 0) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = member_type, size
    return info.tobuf(tarfile.USTAR_FORMAT)


def member(name: str, member_type: bytes, content: bytes) -> bytes:
    return header(name, member_type, len(content)) + content + bytes(-len(content) % 512)


def pax(**records: str) -> bytes:
    """A pax header about the next member. A dot in a keyword is written as two underscores."""
    lines = []
    for keyword, value in records.items():
        record = f" {keyword.replace('__', '.')}={value}\n"
        length = next(n for n in count(len(record)) if n == len(str(n)) + len(record))
        lines.append(f"{length}{record}")
    return member("pax", tarfile.XHDTYPE, "".join(lines).encode())


def sparse_map(numbers: int) -> bytes:
    """A file in GNU's sparse format 1.0, which is empty, and whose map has so many numbers."""
    content = f"{numbers // 2}\n".encode() + b"0\n" * numbers
    pax_header = pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="0")
    return pax_header + member("04_reshape_dance.py", tarfile.REGTYPE, content)


def old_sparse(blocks: int) -> bytes:
    """A file in GNU's old sparse format, which is empty, and whose map has so many blocks."""
    start = bytearray(header("04_reshape_dance.py", tarfile.GNUTYPE_SPARSE))
    start[482] = 1
    start[148:156] = b" " * 8
    start[148:156] = b"%06o\0 " % sum(start)
    block = bytearray(512)
    block[504] = 1
    return bytes(start) + bytes(block) * blocks + bytes(512)


def folders(how_many: int) -> bytes:
    return header("folder", tarfile.DIRTYPE) * how_many


def zipped_folders(how_many: int) -> bytes:
    return zip_bytes({f"{i}/": b"" for i in range(how_many)})


TOO_MANY, TOO_LARGE = "it has more files than are read here", "it unpacks to more than is read here"
TOO_LONG = "its headers are longer than any that are needed"
DANCE_IN_TAR = member("04_reshape_dance.py", tarfile.REGTYPE, DANCE.encode())


@pytest.mark.parametrize(
    ("name", "inner", "reason"),
    [
        pytest.param(
            "work.tar.gz",
            gzip.compress(sparse_map(2_000_000) + END),
            TOO_LARGE,
            id="a map of a sparse file",
        ),
        pytest.param(
            "work.tar.gz",
            gzip.compress(old_sparse(5_000) + END),
            TOO_MANY,
            id="a map in the old sparse format",
        ),
        pytest.param(
            "work.tar.gz", gzip.compress(folders(200_000) + END), TOO_MANY, id="folders, gz"
        ),
        pytest.param(
            "work.tar.bz2", bz2.compress(folders(200_000) + END), TOO_MANY, id="folders, bz2"
        ),
        pytest.param(
            "work.tar.xz", lzma.compress(folders(200_000) + END), TOO_MANY, id="folders, xz"
        ),
        pytest.param("work.zip", zipped_folders(9_000), TOO_MANY, id="folders in a zip"),
        pytest.param(
            "work.zip",
            zip_bytes({f"{i}.tar": folders(900) + DANCE_IN_TAR for i in range(9)}),
            TOO_LARGE,
            id="folders in archives in an archive",
        ),
        pytest.param(
            "work.tar",
            member("x", tarfile.GNUTYPE_LONGNAME, b"name") * 900 + DANCE_IN_TAR,
            TOO_LONG,
            id="long names about long names",
        ),
        pytest.param(
            "work.tar",
            member("x", tarfile.GNUTYPE_LONGLINK, b"name") * 900 + DANCE_IN_TAR,
            TOO_LONG,
            id="long links about long links",
        ),
        pytest.param(
            "work.tar",
            pax(path="04_reshape_dance.py") * 900 + DANCE_IN_TAR,
            TOO_LONG,
            id="pax headers about pax headers",
        ),
        pytest.param(
            "work.tar",
            member("x", tarfile.XGLTYPE, b"9 a=bcde\n") * 900 + DANCE_IN_TAR,
            TOO_LONG,
            id="global headers",
        ),
    ],
)
def test_every_header_counts_and_no_map_is_read(
    course, write_zip, out_folder, there, name, inner, reason
):
    download = write_zip({GOOD: DANCE, f"b_1_3_{name}": inner})
    tracemalloc.start()
    collected = collect(course, [download], out_folder, limits=LIMITS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [reason in message for message in collected.not_taken] == [True]
    assert there() == [PLACED]
    assert list(read_journal(out_folder).not_readable) == ["b_1"], (
        "and it is no 0 of whoever handed it in"
    )
    assert peak < 16 * MIB


@pytest.mark.parametrize("sparse", [sparse_map(2_000), old_sparse(3)], ids=["1.0", "old"])
def test_behind_a_sparse_file_the_others_are_read(course, write_zip, out_folder, there, sparse):
    script = member("05_weight_split.py", tarfile.REGTYPE, b"def split_weights(): ...\n")
    collected = collect(
        course,
        [write_zip({GOOD: DANCE, "b_1_3_work.tar": sparse + script + END})],
        out_folder,
        limits=LIMITS,
    )
    assert ["is no regular file" in message for message in collected.not_taken] == [True]
    assert there() == [PLACED, "b_1/multi_head_attention/05_weight_split.py"]


def test_a_long_name_and_a_large_time_in_headers_are_read(run, write_zip, there):
    folder = "x" * 120
    as_gnu = member("x", tarfile.GNUTYPE_LONGNAME, f"{folder}/04_reshape_dance.py\0".encode())
    as_pax = pax(path=f"{folder}/05_weight_split.py", mtime="1764000000.5", size=str(len(DANCE)))
    second = header("short", tarfile.REGTYPE, 0) + DANCE.encode() + bytes(-len(DANCE) % 512)
    first = member("short", tarfile.REGTYPE, DANCE.encode())
    assert (
        run(
            write_zip({"b_1_3_work.tar": as_gnu + first + as_pax + second + END, GOOD: DANCE})
        ).not_taken
        == []
    )
    assert [path.rpartition("/")[2] for path in there()] == [
        "04_reshape_dance.py",
        "04_reshape_dance.py",
        "05_weight_split.py",
    ]


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A clock that goes on by a second each time that somebody looks at it."""
    seconds = count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    return seconds


def empty_streams(compress: Callable[[bytes], bytes]) -> bytes:
    """A megabyte that unpacks to nothing."""
    stream = compress(b"")
    return stream * (MIB // len(stream))


@pytest.mark.usefixtures("slow_clock")
@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("work.tar.gz", empty_streams(lambda data: gzip.compress(data, mtime=0))),
        ("work.tar.bz2", empty_streams(bz2.compress)),
        ("work.tar.xz", empty_streams(lzma.compress)),
        (
            "work.tar.gz",
            gzip.compress(header("a.bin", tarfile.REGTYPE, 100 * MIB) + bytes(100 * MIB), 1),
        ),
    ],
)
def test_the_clock_is_looked_at_within_an_archive(
    course, write_zip, out_folder, there, name, packed
):
    collected = collect(course, [write_zip({GOOD: DANCE, f"b_1_3_{name}": packed})], out_folder)
    assert ["it takes longer than is read here" in message for message in collected.not_taken] == [
        True
    ]
    assert there() == [PLACED]


def with_large_dictionary(packed: bytes) -> bytes:
    """The same xz file, whose header asks for a dictionary of 4 GiB."""
    block = bytearray(packed[12 : 12 + 4 * (packed[12] + 1)])
    block[4] = 40
    block[-4:] = struct.pack("<I", zlib.crc32(block[:-4]))
    return packed[:12] + bytes(block) + packed[12 + len(block) :]


def test_an_archive_that_asks_for_too_much_memory_is_closed_alone(
    repository, write_zip, out_folder, there
):
    work = with_large_dictionary(lzma.compress(DANCE_IN_TAR + END, check=lzma.CHECK_CRC32))
    download = write_zip({GOOD: DANCE, "b_1_3_work.tar.xz": work})
    command = [
        sys.executable,
        "-m",
        "manyheads",
        "collect",
        download,
        "--out",
        out_folder,
        "--course",
        repository,
    ]
    most = 3 * 1024 * MIB  # of address space, as in a small container
    completed = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        cwd=repository,
    )
    assert (completed.returncode, completed.stderr) == (1, "")
    assert "work.tar.xz is not opened: it is damaged" in completed.stdout
    assert there() == [PLACED]


def copies(how_many: int, size: int) -> Iterable[tuple[str, bytes]]:
    """Different texts for one exercise, as one student can lay them into a folder."""
    for i in range(how_many):
        yield f"ben/{i:03}/04_reshape_dance.py", f"{DANCE}# {i}\n#".encode() + b"x" * size


def class_zip(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ada/04_reshape_dance.py", DANCE)
        for name, content in files:
            archive.writestr(name, content)
    return path.with_suffix(".zip")


def class_tar(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    with tarfile.open(path.with_suffix(".tgz"), "w:gz", compresslevel=1) as archive:
        for name, content in (
            ("ada/04_reshape_dance.py", DANCE.encode()),
            *files,
            ("cat/x.py", DANCE.encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path.with_suffix(".tgz")


@pytest.mark.parametrize("packed", [class_zip, class_tar])
def test_copies_of_one_exercise_are_not_held_in_memory(course, tmp_path, out_folder, there, packed):
    download = packed(tmp_path / "class", copies(150, MIB // 2))
    tracemalloc.start()
    collect(course, [download], out_folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * MIB
    assert "ada/multi_head_attention/04_reshape_dance.py" in there()


@pytest.mark.parametrize("packed", [class_zip, class_tar])
@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (IntakeLimits(members=50), "50 files and 128 MiB"),
        (IntakeLimits(size=MIB), "5,000 files and 1 MiB"),
    ],
)
def test_what_one_person_hands_in_counts_against_that_person(
    course, tmp_path, out_folder, there, packed, limits, most
):
    download = packed(tmp_path / "class", copies(100, 100_000))
    collected = collect(course, [download], out_folder, limits=limits)
    (message,) = [
        message
        for message in collected.not_taken
        if "ben: handed in, not readable" in message and " more: each " in message
    ]
    assert f"more: each is not read: of one person's files, {most} are read" in message
    assert [
        message for message in collected.not_taken if "ada/" in message or "cat/" in message
    ] == []
    assert "ada/multi_head_attention/04_reshape_dance.py" in there()
    assert len(collected.not_taken) < 10


def test_of_too_many_files_the_newest_is_read(course, tmp_path, out_folder):
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ada/04_reshape_dance.py", DANCE)
        for i in range(60):
            info = zipfile.ZipInfo(f"ben/{i:03}/04_reshape_dance.py", (2026, 11, 20, 12, i, 0))
            archive.writestr(info, f"{DANCE}# {i}\n")
    collect(course, [path], out_folder, limits=IntakeLimits(members=20))
    assert (
        (out_folder / "ben/multi_head_attention/04_reshape_dance.py").read_text().endswith("# 59\n")
    )


def test_the_large_files_of_one_person_close_no_class(course, tmp_path, out_folder, there):
    files = [*copies(60, 900_000), ("dan/04_reshape_dance.py", DANCE.encode())]
    collected = collect(
        course, [class_tar(tmp_path / "class", files)], out_folder, limits=IntakeLimits(size=MIB)
    )
    assert "ben/" in "".join(collected.not_taken)
    assert {path.split("/")[0] for path in there()} >= {"ada", "ben", "dan"}
