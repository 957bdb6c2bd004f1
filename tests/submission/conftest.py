"""What these tests share: archives built as platforms build them, and the real course that they are
collected for.
"""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from manyheads.submission.collect_downloads import Collected, collect
from manyheads.submission.roster_and_times import Roster, Student

FILE = "04_reshape_dance.py"
DANCED = f"multi_head_attention/{FILE}"
DANCE = "def split_heads(x, n_head):\n    return x\n"
Path_ = Callable[[int, str, str], str]

# Where a platform puts a file of somebody: by a number, a login, and a name.
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


def download(
    platform: str, *people: tuple[int, str, str], **extra_files: str | bytes
) -> dict[str, str | bytes]:
    """What a platform gives of people; each file says whose it is."""
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


def zip_bytes(files: Mapping[str, str | bytes], year: int = 2026) -> bytes:
    """A zip archive with these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(
                zipfile.ZipInfo(name, (year, 11, 20, 12, 0, 0)), content, zipfile.ZIP_DEFLATED
            )
    return out.getvalue()


@pytest.fixture(scope="session")
def course(repository: Path) -> Course:
    """The real course."""
    return load_course(repository)


@pytest.fixture
def write_zip(tmp_path: Path) -> Callable[..., Path]:
    """Write a zip archive; a list of names stands for files that begin the reshape dance."""

    def write(
        files: Mapping[str, str | bytes] | list[str], name: str = "download.zip", year: int = 2026
    ) -> Path:
        contents = files if isinstance(files, Mapping) else dict.fromkeys(files, DANCE)
        (tmp_path / name).write_bytes(zip_bytes(contents, year))
        return tmp_path / name

    return write


@pytest.fixture
def out_folder(tmp_path: Path) -> Path:
    """The folder that is filled."""
    return tmp_path / "submitted"


@pytest.fixture
def run(course: Course, out_folder: Path) -> Callable[..., Collected]:
    """Collect downloads."""

    return lambda *downloads, roster=None: collect(course, downloads, out_folder, roster)


@pytest.fixture
def there(out_folder: Path) -> Callable[[], list[str]]:
    """The files that were laid out."""
    return lambda: sorted(
        str(path.relative_to(out_folder))
        for path in out_folder.rglob("*")
        if path.is_file() and path.name != ".collected.jsonl"
    )
