"""A large or hostile archive of one student never stops `course collect` for the others."""

import bz2
import gzip
import lzma
import struct
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count

import pytest

from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import read_journal
from manyheads.submission.read import IntakeLimits
from tests.make import COURSE, cases
from tests.make import run as run_process

from .conftest import DANCE, GOOD, PLACED, Member, tar_bytes, zip_bytes

MIB = 1024 * 1024
END_OF_TAR = bytes(1024)
LIMITS = IntakeLimits(size=MIB, members=500)
# bytes of a tar header and of a block of a sparse map; `isextended` says that a block follows
CHECKSUM = slice(148, 156)
IS_EXTENDED_IN_HEADER = 482
IS_EXTENDED_IN_BLOCK = 504


def header(name: str, member_type: bytes, size: int = 0) -> bytes:
    """Return a tar header."""
    info = tarfile.TarInfo(name)
    info.type, info.size = member_type, size
    return info.tobuf(tarfile.USTAR_FORMAT)


def member(name: str, member_type: bytes, content: bytes) -> bytes:
    """Return a tar member: its header and its padded content."""
    return header(name, member_type, len(content)) + content + bytes(-len(content) % 512)


def pax(**records: str) -> bytes:
    """Return a pax header for the next member; two underscores in a keyword stand for a dot."""
    lines = []
    for keyword, value in records.items():
        record = f" {keyword.replace('__', '.')}={value}\n"
        length = next(n for n in count(len(record)) if n == len(str(n)) + len(record))
        lines.append(f"{length}{record}")
    return member("pax", tarfile.XHDTYPE, "".join(lines).encode())


def sparse_map(numbers: int) -> bytes:
    """Return an empty file in GNU's sparse format 1.0, with this many numbers in its map."""
    content = f"{numbers // 2}\n".encode() + b"0\n" * numbers
    pax_header = pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="0")
    return pax_header + member("04_reshape_dance.py", tarfile.REGTYPE, content)


def old_sparse(blocks: int) -> bytes:
    """Return an empty file in GNU's old sparse format, with this many blocks in its map."""
    start = bytearray(header("04_reshape_dance.py", tarfile.GNUTYPE_SPARSE))
    start[IS_EXTENDED_IN_HEADER] = 1
    # the checksum is computed as if its own field were blank
    start[CHECKSUM] = b" " * 8
    start[CHECKSUM] = b"%06o\0 " % sum(start)
    block = bytearray(512)
    block[IS_EXTENDED_IN_BLOCK] = 1
    return bytes(start) + bytes(block) * blocks + bytes(512)


def folder_headers(number: int) -> bytes:
    """Return this many tar headers of empty folders."""
    return header("folder", tarfile.DIRTYPE) * number


TOO_MANY, TOO_LARGE = "it has more files than are read here", "it unpacks to more than is read here"
TOO_LONG = "its headers are longer than any that are needed"
DANCE_IN_TAR = member("04_reshape_dance.py", tarfile.REGTYPE, DANCE.encode())


FOLDERS = folder_headers(40_000) + END_OF_TAR
LONG_HEADER = member("x", tarfile.XGLTYPE, b"15 key=v\n" * 100_000)


def headers_before_attempt(header: bytes) -> bytes:
    """Return a tar with 900 copies of this header, then an attempt."""
    return header * 900 + DANCE_IN_TAR


NAME_OF_NEXT = {"long names": tarfile.GNUTYPE_LONGNAME, "long links": tarfile.GNUTYPE_LONGLINK}
HEADERS = {description: member("x", type_, b"name") for description, type_ in NAME_OF_NEXT.items()}
HEADERS["pax headers"] = pax(path="04_reshape_dance.py")
HEADERS["global headers"] = member("x", tarfile.XGLTYPE, b"9 a=bcde\n")


@cases(
    "name, make_archive, reason",
    {
        "a map of a sparse file": (
            "work.tar.gz",
            lambda: gzip.compress(sparse_map(1_000_000) + END_OF_TAR),
            TOO_LARGE,
        ),
        "a map in the old sparse format": (
            "work.tar.gz",
            lambda: gzip.compress(old_sparse(5_000) + END_OF_TAR),
            TOO_MANY,
        ),
        "one long header": (
            "work.tar.gz",
            lambda: gzip.compress(
                member("x", tarfile.XGLTYPE, b"15 key=v\n" * 100_000) + DANCE_IN_TAR
            ),
            TOO_LONG,
        ),
        "files that are left out": (
            "work.zip",
            lambda: zip_bytes({f"__MACOSX/{i}": b"" for i in range(5_000)}),
            TOO_MANY,
        ),
        "folders, gz": ("work.tar.gz", lambda: gzip.compress(FOLDERS), TOO_MANY),
        "folders, bz2": ("work.tar.bz2", lambda: bz2.compress(FOLDERS), TOO_MANY),
        "folders, xz": ("work.tar.xz", lambda: lzma.compress(FOLDERS, preset=0), TOO_MANY),
        "folders in a zip": (
            "work.zip",
            lambda: zip_bytes({f"{i}/": b"" for i in range(9_000)}),
            TOO_MANY,
        ),
        "folders in archives in an archive": (
            "work.zip",
            lambda: zip_bytes({f"{i}.tar": folder_headers(900) + DANCE_IN_TAR for i in range(9)}),
            TOO_LARGE,
        ),
        **{
            f"{description} about {description}": (
                "work.tar",
                partial(headers_before_attempt, header),
                TOO_LONG,
            )
            for description, header in HEADERS.items()
        },
    },
)
def test_headers_count_for_the_limits_and_sparse_maps_are_not_read(
    real_course, write_zip, out_folder, there, name, make_archive, reason
):
    download = write_zip({GOOD: DANCE, f"b_1_3_{name}": make_archive()})
    collected, peak = collect_and_measure(real_course, download, out_folder, LIMITS)
    (message,) = collected.not_taken
    assert reason in message
    assert there() == [PLACED]
    assert list(read_journal(out_folder).not_readable) == ["b_1"], "the student would get 0 points"
    assert peak < 16 * MIB


def collect_and_measure(course, download, out_folder, limits=None):
    """Collect a download, and return the result and the peak memory in bytes."""
    tracemalloc.start()
    collected = collect(course, [download], out_folder, limits=limits or IntakeLimits())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return collected, peak


@cases("sparse", {"1.0": sparse_map(2_000), "old": old_sparse(3)})
def test_members_after_a_sparse_file_are_read(collect_zip, there, sparse):
    script = member("05_weight_split.py", tarfile.REGTYPE, b"def split_weights(): ...\n")
    (message,) = collect_zip(
        {GOOD: DANCE, "b_1_3_work.tar": sparse + script + END_OF_TAR}
    ).not_taken
    assert "is no regular file" in message
    assert there() == [PLACED, "b_1/multi_head_attention/05_weight_split.py"]


def test_comments_long_names_and_pax_headers_are_supported(collect_zip, there):
    """The tar has a comment as git archive writes it, long names, a time and a size."""
    folder = "x" * 120
    comment = member("pax_global_header", tarfile.XGLTYPE, b"16 comment=0123\n")
    as_gnu = member("x", tarfile.GNUTYPE_LONGNAME, f"{folder}/04_reshape_dance.py\0".encode())
    as_pax = pax(path=f"{folder}/05_weight_split.py", mtime="1764000000.5", size=str(len(DANCE)))
    second = header("short", tarfile.REGTYPE, 0) + DANCE.encode() + bytes(-len(DANCE) % 512)
    first = member("short", tarfile.REGTYPE, DANCE.encode())
    work = comment + as_gnu + first + as_pax + second + END_OF_TAR
    assert collect_zip({"b_1_3_work.tar": work, GOOD: DANCE}).not_taken == []
    assert [path.rpartition("/")[2][:2] for path in there()] == ["04", "04", "05"]


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Patch the monotonic clock: it advances by one second each time that it is read."""
    seconds = count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    return seconds


def empty_streams(compress: Callable[[bytes], bytes]) -> bytes:
    """Return a megabyte of compressed streams that unpack to nothing."""
    stream = compress(b"")
    return stream * (MIB // len(stream))


TAR_WITH_LARGE_MEMBER = header("a.bin", tarfile.REGTYPE, 40 * MIB) + bytes(40 * MIB)


@pytest.mark.usefixtures("slow_clock")
@cases(
    "name, packed",
    {
        "empty streams, gz": ("work.tar.gz", empty_streams(partial(gzip.compress, mtime=0))),
        "empty streams, bz2": ("work.tar.bz2", empty_streams(bz2.compress)),
        "empty streams, xz": ("work.tar.xz", empty_streams(lzma.compress)),
        "a large member": ("work.tar.gz", gzip.compress(TAR_WITH_LARGE_MEMBER, 1)),
    },
)
def test_the_time_limit_is_checked_within_an_archive(collect_zip, there, name, packed):
    (message,) = collect_zip({GOOD: DANCE, f"b_1_3_{name}": packed}).not_taken
    assert "it takes longer than is read here" in message
    assert there() == [PLACED]


def with_large_dictionary(packed: bytes) -> bytes:
    """Return the same xz file, but with a header that requests a dictionary of 4 GiB."""
    block = bytearray(packed[12 : 12 + 4 * (packed[12] + 1)])
    block[4] = 40  # the code of a dictionary of 4 GiB
    block[-4:] = struct.pack("<I", zlib.crc32(block[:-4]))
    return packed[:12] + bytes(block) + packed[12 + len(block) :]


def test_an_archive_that_requests_too_much_memory_is_refused_alone(
    repository, write_zip, out_folder, there
):
    work = with_large_dictionary(lzma.compress(DANCE_IN_TAR + END_OF_TAR, check=lzma.CHECK_CRC32))
    download = write_zip({GOOD: DANCE, "b_1_3_work.tar.xz": work})
    kib = 3 * 1024 * 1024  # of address space, as in a small container
    shell_script = f'ulimit -v {kib}; exec "$@"'
    command = (*COURSE, "collect", download, "--out", out_folder, "--course", repository)
    completed = run_process("sh", "-c", shell_script, "sh", *command)
    assert (completed.returncode, completed.stderr) == (1, "")
    assert "work.tar.xz is not opened: it is damaged" in completed.stdout
    assert there() == [PLACED]


def copies(number: int, size: int) -> Iterable[Member]:
    """Yield many different attempts of ben at one exercise, and one each of ada and dan.

    size: the number of characters in each attempt of ben.
    """
    yield Member("ada/04_reshape_dance.py")
    for i in range(number):
        yield Member(
            f"ben/{i:03}/04_reshape_dance.py", f"{DANCE}# {i}\n#{'x' * size}", minute=i % 60
        )
    yield Member("dan/04_reshape_dance.py")


BOTH_FORMATS = pytest.mark.parametrize("pack", [zip_bytes, tar_bytes])
COLLECTED_PATH = "{}/multi_head_attention/04_reshape_dance.py"


@BOTH_FORMATS
def test_many_copies_of_one_exercise_need_little_memory(
    real_course, write_zip, out_folder, there, pack
):
    download = write_zip(pack(copies(48, MIB // 2)))
    assert collect_and_measure(real_course, download, out_folder)[1] < 16 * MIB
    assert COLLECTED_PATH.format("ada") in there()


@BOTH_FORMATS
@pytest.mark.parametrize(
    ("limits", "limit_text"),
    [
        (IntakeLimits(members=50), "50 files and 128 MiB"),
        (IntakeLimits(size=MIB), "5,000 files and 1 MiB"),
    ],
)
def test_limits_apply_to_each_student_separately(
    collect_files, write_zip, there, pack, limits, limit_text
):
    download = write_zip(pack(copies(100, 300_000)))
    messages = collect_files(download, limits=limits).not_taken
    (message,) = [message for message in messages if " more: each " in message]
    assert message.startswith("ben: handed in, not readable")
    assert f"more: each is not read: of one person's files, {limit_text} are read" in message
    assert not [message for message in messages if "ada/" in message or "dan/" in message]
    assert {COLLECTED_PATH.format("ada"), COLLECTED_PATH.format("dan")} <= {*there()}
    assert len(messages) < 10


def test_the_newest_of_too_many_files_is_collected(collect_files, write_zip, out_folder):
    download = write_zip(zip_bytes(copies(60, 0)))
    collect_files(download, limits=IntakeLimits(members=20))
    assert (out_folder / COLLECTED_PATH.format("ben")).read_text().endswith("# 59\n#")


def test_an_archive_of_a_student_is_not_counted_beside_its_content(collect_files, write_zip):
    inner = zip_bytes([Member("04_reshape_dance.py", f"{DANCE}#{'x' * (MIB * 3 // 4)}")])
    download = write_zip(zip_bytes({"ada_1_2_work.zip": inner}))
    assert collect_files(download, limits=IntakeLimits(size=MIB)).not_taken == []


@cases(
    ("header_bytes", "is_read"),
    {"at the limit": (64 * 1024, True), "above it": (64 * 1024 + 1, False)},
)
def test_headers_of_a_tar_member_have_a_length_limit(
    collect_files, write_zip, header_bytes, is_read
):
    comment = "x" * (header_bytes - tarfile.BLOCKSIZE - len("65024 comment=\n"))
    content = pax(comment=comment) + member(GOOD, tarfile.REGTYPE, DANCE.encode()) + END_OF_TAR
    collected = collect_files(write_zip(content, "class.tar"))
    assert bool(collected.candidates) is is_read


def test_a_pax_header_gives_the_time_of_a_file(collect_files, write_zip):
    moment = 1_764_500_000.5
    content = pax(mtime=str(moment)) + member(
        "ada/04_reshape_dance.py", tarfile.REGTYPE, DANCE.encode()
    )
    (candidate,) = collect_files(write_zip(content + END_OF_TAR, "class.tar")).candidates
    assert candidate.origin.modified == moment
