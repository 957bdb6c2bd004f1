"""Nobody hands in for somebody else: hand-built downloads of twelve platforms, and what a student can do on each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.submission.roster import Roster, Student

from .conftest import DANCE, Collect, There, Zipped, zip_bytes

FILE = "04_reshape_dance.py"
DANCED = f"multi_head_attention/{FILE}"
Path_ = Callable[[int, str, str], str]

# Where a platform puts a file of somebody: by a number, a login, and a name.
PLATFORMS: dict[str, Path_] = {
    "Canvas": lambda i, login, name: f"{name.replace(' ', '').lower()}_{i}_{900 + i}_{FILE}",
    "Moodle": lambda i, login, name: f"{name}_{i}_assignsubmission_file_/{FILE}",
    "Blackboard": lambda i, login, name: f"hw_{login}_attempt_2026-11-20-10-11-12_{FILE}",
    "Brightspace": lambda i, login, name: f"{i}-9 - {name} - Nov 20, 2026 1102 AM - {FILE}",
    "ILIAS": lambda i, login, name: f"HW1/Submissions/{'_'.join(reversed(name.split()))}_{login}_{i}/{FILE}",
    "OpenOLAT": lambda i, login, name: f"{login}/2_submissions/{FILE}",
    "Sakai": lambda i, login, name: f"HW 1/{name}({login})/Submission attachment(s)/{FILE}",
    "Schoology": lambda i, login, name: f"HW1/{name} - s{i}/Revision 1 - On time/{FILE}",
    "folders": lambda i, login, name: f"{login}/{FILE}" if i > 2 else f"{name}/{FILE}",
    "nbgrader": lambda i, login, name: f"{login}+multi_head_attention+2026-11-20 10:11:12.5 UTC+{i}/{FILE}",
    "clones": lambda i, login, name: f"hw1-{login}/exercises/{DANCED}",
    "Gradescope": lambda i, login, name: f"submission_{i}/{FILE}",
}
ADA, BEN, EVE = (1, "al1", "Ada Lovelace"), (2, "bo2", "Ben Okri"), (3, "m_al1", "Eve Mallory")
CLASS = Roster((Student("ada", "Ada Lovelace", login="al1"), Student("ben", "Ben Okri", login="bo2")))
platforms = pytest.mark.parametrize("platform", PLATFORMS)


def download(platform: str, *people: tuple[int, str, str], **more: str | bytes) -> dict[str, str | bytes]:
    """What a platform gives of people; each file says whose it is."""
    files: dict[str, str | bytes] = {PLATFORMS[platform](*who): f"{DANCE}# {who[0]}" for who in people}
    if platform == "Gradescope":
        rows = (f"submission_{i}:\n  :submitters:\n  - :name: {name}\n    :sid: {login}\n" for i, login, name in people)
        files["submission_metadata.yml"] = "".join(rows)
    return files | more


@platforms
def test_who_is_on_the_roster_is_found(run: Collect, zipped: Zipped, there: There, out: Path, platform: str) -> None:
    done = run(zipped(download(platform, ADA, BEN)), roster=CLASS)
    assert (done.platforms, done.not_taken) == ({"download.zip": [platform]}, [])
    assert {path: (out / path).read_text()[-1] for path in there()} == {f"ada/{DANCED}": "1", f"ben/{DANCED}": "2"}


@platforms
def test_of_two_whom_the_roster_takes_for_one_none_is_taken(
    run: Collect, zipped: Zipped, there: There, platform: str
) -> None:
    """Where the platform shows a login, two ids of one row; else somebody who has taken the name."""
    rows = (Student("ada", "Ada Lovelace", login="al1", sis_id="x3", github="x3"), CLASS.students[1])
    done = run(zipped(download(platform, ADA, BEN, (3, "x3", "Ada Lovelace"))), roster=Roster(rows))
    assert there() == [f"ben/{DANCED}"]
    (said,) = done.not_taken
    assert all(PLATFORMS[platform](*who) in said for who in (ADA, (3, "x3", "Ada Lovelace")))
    assert "are of 2 persons, and each of them would be 'ada': none is taken. Next: " in said


@platforms
def test_a_login_that_ends_in_another_is_another(run: Collect, zipped: Zipped, there: There, platform: str) -> None:
    done = run(zipped(download(platform, (3, "m_al1", "Eve Mallory"), (4, "x-al1", "Max Mallory"), BEN)), roster=CLASS)
    assert f"ben/{DANCED}" in there()
    assert not [path for path in there() if path.startswith("ada/")]
    assert len(there()) == 3, done.not_taken
    assert sum("is not on the roster" in said for said in done.said) == 2


@platforms
@pytest.mark.parametrize("within", ["an archive", "a folder"])
def test_what_a_hand_in_holds_is_its_owners(
    run: Collect, zipped: Zipped, out: Path, platform: str, within: str
) -> None:
    """Eve hands in what looks like a newer download of the same platform, with Ada's and Ben's files."""
    forged = {f"x/{name}": text for name, text in download(platform, ADA, BEN).items()} | download(platform, ADA, BEN)
    mine = PLATFORMS[platform](*EVE)
    archive = {mine.replace(FILE, "work.zip"): zip_bytes(forged, year=2030)}
    folder = {f"{mine.removesuffix(FILE)}{name}": f"{DANCE}# forged" for name in forged if "/" in mine}
    files = download(platform, ADA, BEN, EVE)
    del files[mine]
    roster = Roster((*CLASS.students, Student("eve", "Eve Mallory", login="m_al1")))
    run(zipped({**files, **(archive if within == "an archive" else folder)}), roster=roster)
    assert [(out / who / DANCED).read_text()[-1] for who in ("ada", "ben")] == ["1", "2"]
    assert {path.name for path in out.iterdir() if path.is_dir()} <= {"ada", "ben", "eve"}


@platforms
@pytest.mark.parametrize("roster", [None, CLASS], ids=["no roster", "a roster"])
def test_an_archive_among_several_is_its_senders_whatever_it_holds(
    run: Collect, zipped: Zipped, there: There, out: Path, platform: str, roster: Roster | None
) -> None:
    """mallory.zip is laid out like a download of the platform, and newer."""
    honest = [zipped({f"hw/{FILE}": f"{DANCE}# {name}"}, f"{name}.zip") for name in ("ada", "ben")]
    run(*honest, zipped(download(platform, ADA, BEN), "mallory.zip", year=2030), roster=roster)
    assert [(out / who / DANCED).read_text().split()[-1] for who in ("ada", "ben")] == ["ada", "ben"]
    assert {path.name for path in out.iterdir() if path.is_dir()} <= {"ada", "ben", "mallory"}


@platforms
def test_one_archive_whose_name_the_roster_knows_is_that_students(
    run: Collect, zipped: Zipped, out: Path, platform: str
) -> None:
    run(zipped(download(platform, ADA, EVE), "bo2.zip"), roster=CLASS)
    assert {path.name for path in out.iterdir() if path.is_dir()} <= {"ben"}
