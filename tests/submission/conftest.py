"""Shared helpers: downloads as each platform builds them, and fixtures that collect them."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from manyheads.course import Course
from manyheads.submission.collect_downloads import Collected, collect
from manyheads.submission.roster_and_times import Roster, Student

FILE = "04_reshape_dance.py"
DANCED = f"multi_head_attention/{FILE}"
DANCE = "def split_heads(x, n_head):\n    return x\n"
GOOD, PLACED = f"a_1_2_{FILE}", f"a_1/{DANCED}"
Path_ = Callable[[int, str, str], str]

# For each platform, the path of a student's file in a download, from number, login and name.
PLATFORMS: dict[str, Path_] = {
    "Canvas": lambda i, login, name: f"{name.replace(' ', '').lower()}_{i}_{900 + i}_{FILE}",
    "Moodle": lambda i, login, name: f"{name}_{i}_assignsubmission_file_/{FILE}",
    "Blackboard": lambda i, login, name: f"hw_{login}_attempt_2026-11-20-10-11-12_{FILE}",
    "Brightspace": lambda i, login, name: f"{i}-9 - {name} - Nov 20, 2026 1102 AM - {FILE}",
    "ILIAS": lambda i, login, name: (
        f"HW1/Submissions/{'_'.join(reversed(name.split()))}_{login}_{i}/{FILE}"
    ),
    "OpenOLAT": lambda i, login, name: f"{login}/2_submissions/{FILE}",
    "Sakai": lambda i, login, name: f"HW 1/{name}({login})/Submission attachment(s)/{FILE}",
    "Schoology": lambda i, login, name: f"HW1/{name} - s{i}/Revision 1 - On time/{FILE}",
    "folders": lambda i, login, name: f"{login}/{FILE}" if i > 2 else f"{name}/{FILE}",
    "nbgrader": lambda i, login, name: (
        f"{login}+multi_head_attention+2026-11-20 10:11:12.5 UTC+{i}/{FILE}"
    ),
    "clones": lambda i, login, name: f"hw1-{login}/exercises/{DANCED}",
    "Gradescope": lambda i, login, name: f"submission_{i}/{FILE}",
}
ADA, BEN, EVE = (1, "al1", "Ada Lovelace"), (2, "bo2", "Ben Okri"), (3, "m_al1", "Eve Mallory")
ROWS = ("ada", "Ada Lovelace", "al1"), ("ben", "Ben Okri", "bo2")
CLASS = Roster(tuple(Student(id_, name, login=login, github=login) for id_, name, login in ROWS))


def platform_download(
    platform: str, *people: tuple[int, str, str], **extra_files: str | bytes
) -> dict[str, str | bytes]:
    """Return the files in a download of this platform; each file ends with its owner's number.

    people: the number, login and name of each student.
    """
    files: dict[str, str | bytes] = {
        PLATFORMS[platform](*person): f"{DANCE}# {person[0]}" for person in people
    }
    if platform == "Gradescope":
        rows = (
            f"submission_{i}:\n  :submitters:\n  - :name: {name}\n    :sid: {login}\n"
            for i, login, name in people
        )
        files["submission_metadata.yml"] = "".join(rows)
    return files | extra_files


def listed(text: str) -> list[str]:
    """Split a text at | into file names.

    A * stands for the exercise's file, ** for the assignment's folder and that file.
    """
    names = text.replace("**", DANCED).replace("*", FILE).split("|") if text else []
    return [name.strip() for name in names]


class Member(NamedTuple):
    """A member of an archive. type: a type of tar members; zip_bytes supports ZIP_MODES only."""

    name: str
    content: str | bytes = DANCE
    type: bytes = tarfile.REGTYPE
    minute: int = 0


Files = Mapping[str, str | bytes] | Iterable[Member]
ZIP_MODES = {
    tarfile.REGTYPE: 0,
    tarfile.SYMTYPE: stat.S_IFLNK | 0o777,
    tarfile.FIFOTYPE: stat.S_IFIFO,
    tarfile.CHRTYPE: stat.S_IFCHR,
}


def members_of(files: Files) -> Iterable[Member]:
    """Return the members of an archive with these files."""
    return starmap(Member, files.items()) if isinstance(files, Mapping) else files


def zip_bytes(files: Files, year: int = 2026) -> bytes:
    """Return a zip archive with these files, written in this year."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member in members_of(files):
            info = zipfile.ZipInfo(member.name, (year, 11, 20, 12, member.minute, 0))
            info.create_system, info.external_attr = 3, ZIP_MODES[member.type] << 16
            archive.writestr(info, member.content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tar_bytes(files: Files, mode: str = "w:gz", **pax_headers: str) -> bytes:
    """Return a tar archive with these files; links point to /etc/passwd."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content, member_type, _ in members_of(files):
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.type, info.linkname = member_type, "/etc/passwd"
            info.size, info.pax_headers = len(data) if info.isreg() else 0, pax_headers
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def write_zip(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes an archive and returns its path.

    If files is a list of names, each file contains DANCE, a solution of `reshape_dance`.
    """

    def write(
        files: Files | list[str] | bytes, name: str = "download.zip", year: int = 2026
    ) -> Path:
        if isinstance(files, list) and isinstance(files[0], str):
            files = dict.fromkeys(files, DANCE)
        data = files if isinstance(files, bytes) else zip_bytes(files, year)
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


@pytest.fixture
def out_folder(tmp_path: Path) -> Path:
    """Return the folder that `course collect` writes to."""
    return tmp_path / "submitted"


@pytest.fixture
def collect_files(real_course: Course, out_folder: Path) -> Callable[..., Collected]:
    """Return a function that collects downloads of the real course into out_folder."""

    def collect_them(*downloads: Path, roster: Roster | None = None, **options: Any) -> Collected:
        return collect(real_course, downloads, out_folder, roster, **options)

    return collect_them


@pytest.fixture
def collect_zip(
    collect_files: Callable[..., Collected], write_zip: Callable[..., Path]
) -> Callable[..., Collected]:
    """Return a function that collects one zip archive with the given files."""
    return lambda files, **options: collect_files(write_zip(files), **options)


@pytest.fixture
def there(out_folder: Path) -> Callable[[], list[str]]:
    """Return a function that lists the collected files in out_folder."""
    return lambda: sorted(
        str(path.relative_to(out_folder))
        for path in out_folder.rglob("*")
        if path.is_file() and path.name != ".collected.jsonl"
    )
