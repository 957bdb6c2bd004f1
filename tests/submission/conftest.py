"""What these tests share: archives built as platforms build them, and the real course that they are collected for."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from manyheads.submission.collect_downloads import Collected, collect
from manyheads.submission.roster import Roster

DANCE = "def split_heads(x, n_head):\n    return x\n"
Zipped = Callable[..., Path]
Collect = Callable[..., Collected]
There = Callable[[], list[str]]


def zip_bytes(files: Mapping[str, str | bytes], year: int = 2026) -> bytes:
    """A zip archive with these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 11, 20, 12, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


@pytest.fixture(scope="session")
def course(repository: Path) -> Course:
    """The real course."""
    return load_course(repository)


@pytest.fixture
def zipped(tmp_path: Path) -> Zipped:
    """Write a zip archive; a list of names stands for files that begin the reshape dance."""

    def write(files: Mapping[str, str | bytes] | list[str], name: str = "download.zip", year: int = 2026) -> Path:
        contents = files if isinstance(files, Mapping) else dict.fromkeys(files, DANCE)
        (tmp_path / name).write_bytes(zip_bytes(contents, year))
        return tmp_path / name

    return write


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder that is filled."""
    return tmp_path / "submitted"


@pytest.fixture
def run(course: Course, out: Path) -> Collect:
    """Collect downloads."""

    def collect_them(*downloads: Path, roster: Roster | None = None) -> Collected:
        return collect(course, downloads, out, roster)

    return collect_them


@pytest.fixture
def there(out: Path) -> There:
    """The files that were laid out."""
    return lambda: sorted(
        str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path.name != ".collected.jsonl"
    )
