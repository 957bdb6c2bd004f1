"""Random archives and rosters: each is laid out, or told in a sentence, and never a traceback."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.submission.collect_downloads import collect
from manyheads.submission.roster import read_roster
from manyheads.submission.to_grade import to_grade

from .conftest import DANCE
from .test_attacks import FILE, PLATFORMS

NAMES = [
    "Ada Lovelace",
    "al1",
    "x-al1",
    "m_al1",
    "Å",
    "",
    "..",
    "CON",
    "a" * 260,
    "LATE",
    "\u202e",
    "a\nb",
    "::x",
    "%s",
]
FILES = [
    FILE,
    "05_weight_split.ipynb",
    "work.zip",
    "x.rar",
    "text.html",
    "submission_metadata.yml",
    f"{FILE}.txt",
    "x.csv",
]
FORMS = [
    *(make(77, "{n}", "{n} {n}") for make in PLATFORMS.values()), "{n}_LATE_7_7_{f}", "{n}_7_assignfeedback_file_/{f}", "{f}",
    "hw_{n}_attempt_9999-99-99-99-99-99.txt", "hw1-{n}-main.zip", "/{n}/{f}", "../{n}/{f}", "{n}\\{f}",
    "{n}+a+9999-12-31 23:58:20 +9999+7/{f}",
]  # fmt: skip
LIST = "submission_77:\n  :submitters:\n  - :name: {n}\n    :sid: !!int x\n  :created_at: 9999-12-31 23:58:20 Z\n"
CONTENTS = [DANCE.encode(), b"", b"\0\xff", b'{"cells": []}', b"(" * 2000, LIST.encode(), b"[[[", b"a: &a [*a]"]


def archive(r: random.Random, depth: int = 2) -> bytes:
    """A zip or a tar of members as platforms, students and attackers name them; some are damaged."""
    forms = [r.choice(FORMS).replace(FILE, "{f}") for _ in range(r.randint(0, 6))]
    names = [form.format(n=r.choice(NAMES), f=r.choice(FILES)) or "x" for form in forms]
    contents = [archive(r, depth - 1) if depth and n.endswith(".zip") else r.choice(CONTENTS) for n in names]
    out = io.BytesIO()
    if r.random() < 0.7:
        with zipfile.ZipFile(out, "w", r.choice([0, 8, 12])) as made:
            for name, content in zip(names, contents, strict=True):
                info = zipfile.ZipInfo(name, r.choice([(2026, 11, 20, 12, 0, 0), (2107, 12, 31, 23, 59, 58)]))
                info.external_attr = r.choice([0, 0, 0, 0o120777, 0o010644]) << 16
                made.writestr(info, content)
    else:
        with tarfile.open(fileobj=out, mode=f"w:{r.choice(['', 'gz', 'bz2', 'xz'])}") as tar:  # type: ignore[call-overload]
            for name, content in zip(names, contents, strict=True):
                info = tarfile.TarInfo(name[:90])
                info.size, info.mtime, info.type = (
                    len(content),
                    r.choice([0, 8**11 - 1]),
                    r.choice([b"0", b"0", b"2", b"6"]),
                )
                with suppress(ValueError):
                    tar.addfile(info, io.BytesIO(content))
    data = bytearray(out.getvalue())
    for _ in range(r.choice([0, 0, 1, 20]) if data else 0):
        data[r.randrange(len(data))] = r.randrange(256)
    return bytes(data[: r.choice([None, None, None, len(data) // 2])])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("seed", range(150))
def test_whatever_is_handed_out_is_laid_out_or_told(course: Course, tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    columns = r.sample(["id", "name", "email", "login", "group", "Student", "ID", "role"], r.randint(1, 5))
    rows = [columns, *([r.choice([*NAMES, "1", "7"]) for _ in columns] for _ in range(r.randint(0, 5)))]
    text, names = "\n".join(map(",".join, rows)), ["ada.zip", "al1.tar", "all.zip", "ada1.zip"]
    (tmp_path / "roster.csv").write_bytes(text.encode(r.choice(["utf-8", "utf-16", "latin-1"]), "replace"))
    downloads = [tmp_path / name for name in r.sample(names, r.randint(1, 3))]
    for download in downloads:
        download.write_bytes(archive(r))
    try:
        known = read_roster(tmp_path / "roster.csv") if r.random() < 0.6 else None
        done = collect(course, downloads, tmp_path / "out", known)
        assert all(said.isprintable() for said in (*done.said, *done.not_taken))
        assert all(". Next: " in said for said in done.not_taken)
        if done.laid:
            to_grade(course, tmp_path / "out", course.assignments, ())
    except CourseFault as error:
        assert ". Next: " in str(error)  # noqa: PT017
