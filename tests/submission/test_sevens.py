"""7z archives, where py7zr is installed: read as zips are, and as bounded."""

from __future__ import annotations

import io
import struct
import subprocess
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.submission.collect_downloads import collect
from manyheads.submission.found_files import Limits
from manyheads.submission.lay_out import read_memory

from .conftest import DANCE, Collect, Zipped, zip_bytes

There = Callable[[], list[str]]
py7zr = pytest.importorskip("py7zr")
FILE = "04_reshape_dance.py"
DANCED = f"multi_head_attention/{FILE}"
SMALL = Limits(attempt=10_000, inner=50_000, inner_members=20, inner_listed=30)


def seven(files: Mapping[str, bytes], password: str | None = None) -> bytes:
    """A 7z archive with these files."""
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w", password=password) as archive:
        archive.set_encoded_header_mode(password is not None)
        for name, content in files.items():
            archive.writestr(content, name)
    return out.getvalue()


def test_a_students_archive_is_opened(run: Collect, zipped: Zipped, there: There, out: Path) -> None:
    work = seven({f"work/{FILE}": DANCE.encode(), "work/notes.txt": b"notes", "work/empty.py": b""})
    done = run(zipped({"bela_2_11_work.7z": work, f"ada_1_10_{FILE}": DANCE}))
    assert there() == [f"ada_1/{DANCED}", f"bela_2/{DANCED}"]
    assert (out / "bela_2" / DANCED).read_text() == DANCE
    assert sorted(said.partition("work.7z/")[2].partition(" ")[0] for said in done.not_taken) == [
        "work/empty.py",
        "work/notes.txt",
    ]


def test_several_of_them_are_of_the_students_that_they_are_named_after(
    run: Collect, tmp_path: Path, there: There
) -> None:
    for name in ("ada", "bela"):
        (tmp_path / f"{name}.7z").write_bytes(seven({f"homework/{FILE}": f"{DANCE}# {name}".encode()}))
    assert run(tmp_path / "ada.7z", tmp_path / "bela.7z").not_taken == []
    assert there() == [f"ada/{DANCED}", f"bela/{DANCED}"]


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        pytest.param(b"7z", "damaged, or no 7z at all", id="no 7z"),
        pytest.param(seven({FILE: DANCE.encode()})[:-9], "damaged, or no 7z at all", id="cut off"),
        pytest.param(seven({FILE: DANCE.encode()}, "secret"), "it is encrypted", id="encrypted"),
        pytest.param(seven({f"{i}.py": b"#" * 9_000 for i in range(9)}), "unpacks to more than is read", id="bomb"),
        pytest.param(seven({FILE: b"#" * 40_000_000}), "unpacks to more than is read", id="a large file"),
        pytest.param(seven({f"{i}.txt": b"" for i in range(60)}), "has more files than are read", id="many files"),
    ],
)
def test_one_that_cannot_be_opened_is_not_readable(
    course: Course, zipped: Zipped, out: Path, there: There, work: bytes, reason: str
) -> None:
    done = collect(course, [zipped({"bela_2_11_work.7z": work, f"ada_1_10_{FILE}": DANCE})], out, limits=SMALL)
    (said,) = done.not_taken
    assert reason in said
    assert list(read_memory(out).not_readable) == ["bela_2"]
    assert there() == [f"ada_1/{DANCED}"]


def renamed(archive: bytes, before: str, after: str) -> bytes:
    """The archive with another name in its list, and with checksums that fit."""
    data = bytearray(archive.replace(before.encode("utf-16-le"), after.encode("utf-16-le")))
    offset, size = struct.unpack_from("<QQ", data, 12)
    struct.pack_into("<L", data, 28, zlib.crc32(data[32 + offset : 32 + offset + size]))
    struct.pack_into("<L", data, 8, zlib.crc32(data[12:32]))
    return bytes(data)


@pytest.mark.parametrize("name", ["../a_1_2_x.py", "/tmp/a_1_2.py"])
def test_nothing_is_written_where_a_member_says(
    run: Collect, zipped: Zipped, tmp_path: Path, there: There, name: str
) -> None:
    honest = "x" * len(name)
    bad = renamed(seven({honest: DANCE.encode()}), honest, name)
    assert name.encode("utf-16-le") in bad
    done = run(zipped({"bela_2_11_work.7z": bad, f"ada_1_10_{FILE}": DANCE}))
    assert len(done.not_taken) == 1
    assert there() == [f"ada_1/{DANCED}"]
    assert not list(tmp_path.rglob("a_1_2*"))


def test_of_many_in_one_hand_in_a_few_are_opened(run: Collect, zipped: Zipped, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    real = subprocess.run
    monkeypatch.setattr(
        "manyheads.submission.tars.subprocess.run",
        lambda *given, **named: (started.append(given), real(*given, **named))[1],
    )
    many = {f"{number}.7z": seven({"notes.txt": b"notes"}) for number in range(40)}
    junk = {f"junk{number}.7z": b"no 7z" for number in range(40)}
    done = run(zipped({"bela_2_11_work.zip": zip_bytes({**junk, **many}), f"ada_1_10_{FILE}": DANCE}))
    assert len(started) <= 3
    assert sum("more 7z archives are in one hand-in than are opened" in said for said in done.not_taken) >= 70
