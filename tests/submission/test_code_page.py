"""Names in zip archives as old Windows writes them, in the code page of its country and without saying which."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from .conftest import DANCE, Collect

There = Callable[[], list[str]]
DANCED = "multi_head_attention/04_reshape_dance.py"

CLASSES = [
    pytest.param("gbk", ["王伟", "李娜", "张敏"], id="GBK"),
    pytest.param("gbk", ["2026001_王伟", "2026002_欧阳娜"], id="GBK, behind a number"),
    pytest.param("cp932", ["田中太郎", "鈴木花子", "ソフト表"], id="Shift-JIS, a backslash in a letter"),
    pytest.param("cp932", ["ソフト表", "ソニー"], id="Shift-JIS, two that begin with that letter"),
    pytest.param("big5", ["許功蓋", "許大文"], id="Big5, a backslash in a letter"),
    pytest.param("cp949", ["김민준", "이서연"], id="Korean"),
    pytest.param("cp866", ["Иван Петров", "Ольга Смирнова"], id="Cyrillic"),
    pytest.param("cp1251", ["Иван Петров", "Ольга Смирнова"], id="Cyrillic, Windows"),
    pytest.param("cp437", ["Jörg Müller", "Tim Höfer", "Weiß"], id="cp437"),
    pytest.param("cp850", ["João Conceição", "Åsa Øberg", "José Ávila"], id="cp850"),
    pytest.param("cp852", ["Łukasz Żak", "Dvořák Jiří"], id="Central Europe"),
]


def legacy_zip(path: Path, names: Sequence[str], page: str) -> Path:
    """Write an archive with these names in a code page, without the flag of UTF-8."""
    raws = [f"{name}/04_reshape_dance.py".encode(page) for name in names]
    stand_ins = [f"{i}".ljust(len(raw), "x") for i, raw in enumerate(raws)]
    with zipfile.ZipFile(path, "w") as archive:
        for stand_in, name in zip(stand_ins, names, strict=True):
            archive.writestr(stand_in, f"{DANCE}# {name}")
    data = path.read_bytes()
    for stand_in, raw in zip(stand_ins, raws, strict=True):
        data = data.replace(stand_in.encode(), raw)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(("page", "names"), CLASSES)
def test_names_are_read_in_the_code_page_that_wrote_them(
    run: Collect, tmp_path: Path, there: There, out: Path, page: str, names: Sequence[str]
) -> None:
    done = run(legacy_zip(tmp_path / "download.zip", names, page))
    assert there() == sorted(f"{name}/{DANCED}" for name in names)
    assert all(f"# {name}" in (out / name / DANCED).read_text(encoding="utf-8") for name in names)
    note = (
        f"download.zip: names in it do not say how they are written, and are read as {page} (archives: 1). "
        "Next: where they look wrong, unpack it by hand, then course collect that folder"
    )
    assert done.said == ([] if page in ("cp437", "cp850") else [note])


def test_the_name_in_utf_8_that_archivers_add_counts(run: Collect, tmp_path: Path, there: There) -> None:
    plain, real = "Ad_/04_reshape_dance.py", "Adé/04_reshape_dance.py"
    body = struct.pack("<BL", 1, zlib.crc32(plain.encode())) + real.encode()
    wrong = struct.pack("<BL", 1, 7) + b"bela/04_reshape_dance.py"  # of another name: it is old
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        for name, extra in ((plain, body), ("chen/04_reshape_dance.py", wrong)):
            info = zipfile.ZipInfo(name)
            info.extra = struct.pack("<HH", 0x7075, len(extra)) + extra
            archive.writestr(info, DANCE)
    run(tmp_path / "download.zip")
    assert there() == [f"Adé/{DANCED}", f"chen/{DANCED}"]
