"""What cannot be read is of the student who handed it in, whatever the platform, and of an assignment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.submission.archives import Limits
from manyheads.submission.collect_downloads import Collected, collect
from manyheads.submission.lay_out import read_memory
from manyheads.submission.roster import Roster, Student

from .conftest import DANCE, Collect, Zipped, zip_bytes

FILE = "04_reshape_dance.py"
ROSTER = Roster(
    (Student("A", name="Ada", canvas_id="1", github="ada"), Student("B", name="Bela", canvas_id="2", github="bela"))
)
ONE = "multi_head_attention"
LISTS = "".join(f"submission_{i}:\n  :submitters:\n  - :name: {name}\n" for i, name in ((1, "Ada"), (2, "Bela")))


def kept(out: Path) -> dict[str, dict[str, list[str]]]:
    return read_memory(out).not_readable


@pytest.mark.parametrize("names", [
    pytest.param((f"ada_1_10_{FILE}", "bela_2_11_work.rar"), id="Canvas"),
    pytest.param((f"Ada_1_assignsubmission_file_/{FILE}", "Bela_2_assignsubmission_file_/work.rar"), id="Moodle"),
    pytest.param((f"Ada_1_assignsubmission_file_{FILE}", "Bela_2_assignsubmission_file_work.rar"), id="flat Moodle"),
    pytest.param((f"1-9 - Ada - Nov 20, 2026 1102 AM - {FILE}", "2-9 - Bela - Nov 20, 2026 1102 AM - work.rar"), id="Brightspace"),
    pytest.param((f"HW/Ada(A)/Submission attachment(s)/{FILE}", "HW/Bela(B)/Submission attachment(s)/work.rar"), id="Sakai"),
    pytest.param((f"submission_1/{FILE}", "submission_2/work.rar"), id="Gradescope"),
    pytest.param((f"hw-ada/exercises/{ONE}/{FILE}", f"hw-bela/exercises/{ONE}/work.rar"), id="clones"),
    pytest.param((f"Ada/{FILE}", "Bela/work.rar"), id="folders"),
    pytest.param((f"Ada/{FILE}", "Bela.7z"), id="beside a folder"),
    pytest.param((f"Ada.zip/{FILE}", "Bela.rar"), id="beside an archive"),
])  # fmt: skip
def test_it_is_of_the_student_who_handed_it_in(run: Collect, zipped: Zipped, out: Path, names: tuple[str, str]) -> None:
    files: dict[str, str | bytes] = {"submission_metadata.yml": LISTS} if "submission_1" in names[0] else {}
    archive, _, inner = names[0].partition(".zip/")
    files |= {f"{archive}.zip": zip_bytes({inner: DANCE})} if inner else {names[0]: DANCE}
    done = run(zipped({**files, names[1]: b"Rar!"}), roster=ROSTER)
    assert kept(out) == {"B": {ONE: [names[1]]}}
    (said,) = done.not_taken
    assert said.startswith(f"B: handed in, not readable: download.zip: {names[1]} is not opened: it is of a kind")
    assert said.endswith(f"Next: open it by hand, and put the files into {out}/B/{ONE}/; or ask for the files")


OTHER = "attention_in_practice"


@pytest.mark.parametrize(("name", "beside", "only", "assignments"), [
    pytest.param("work.rar", FILE, None, [ONE], id="as what else is there"),
    pytest.param("attention-in-practice.rar", FILE, None, [OTHER], id="by its name"),
    pytest.param("01_cross_attention (1).rar", FILE, None, [OTHER], id="by an exercise's"),
    pytest.param("work.rar", "x.txt", None, [ONE, OTHER], id="of every one"),
    pytest.param("work.rar", "x.txt", 0, [ONE], id="of the one that is asked for"),
    pytest.param("attention_in_practice.rar", "x.txt", 0, [], id="of another than is asked for"),
])  # fmt: skip
def test_it_is_of_an_assignment(
    course: Course, zipped: Zipped, out: Path, name: str, beside: str, only: int | None, assignments: list[str]
) -> None:
    asked = None if only is None else course.assignments[only]
    download = zipped({f"ada_1_10_{beside}": DANCE, f"bela_2_11_{name}": b"Rar!"})
    done = collect(course, [download], out, ROSTER, only=asked)
    assert list(kept(out).get("B", {})) == assignments
    assert ("of other assignments, and left out: 1" in done.said) is (not assignments)
    into = "/".join([str(out), "B", *assignments[: len(assignments) == 1]])
    assert any(f"put the files into {into}/; or" in said for said in done.not_taken) is bool(assignments)


@pytest.mark.parametrize(("name", "content", "reason"), [
    pytest.param("work.zip", b"PK\3\4 nothing", "it is damaged", id="damaged"),
    pytest.param("work.zip", zip_bytes({f"{i}.txt": b"" for i in range(60)}), "more files than are read", id="too many files"),
    pytest.param(FILE, b"#" * 20_000, "is larger than 9 KiB", id="too large a file"),
    pytest.param("work.zip", zip_bytes({FILE: b"#" * 20_000}), "is larger than 9 KiB", id="too large a file within"),
])  # fmt: skip
def test_so_is_whatever_else_was_not_opened(
    course: Course, zipped: Zipped, out: Path, name: str, content: bytes, reason: str
) -> None:
    limits = Limits(attempt=10_000, members=20)
    done = collect(course, [zipped({f"bela_2_11_{name}": content, f"ada_1_10_{FILE}": DANCE})], out, ROSTER, limits)
    assert list(kept(out)) == ["B"]
    assert reason in done.not_taken[0]


def test_a_download_that_cannot_be_opened_is_a_students_where_the_roster_knows_its_name(
    run: Collect, tmp_path: Path, out: Path
) -> None:
    for name in ("Bela.rar", "class.rar"):
        (tmp_path / name).write_bytes(b"Rar!")
    done: Collected = run(tmp_path / "Bela.rar", tmp_path / "class.rar", roster=ROSTER)
    assert list(kept(out)) == ["B"]
    assert sorted(said.partition(":")[0] for said in done.not_taken) == ["B", "class.rar"]


def test_a_long_list_of_files_is_cut(run: Collect, zipped: Zipped, out: Path) -> None:
    unread = {f"bela_2_{i}_work.rar": b"Rar!" for i in range(100, 130)}
    run(zipped({f"ada_1_10_{FILE}": DANCE, **unread}), roster=ROSTER)
    assert kept(out)["B"][ONE] == [*sorted(unread)[:10], "20 more"]


DANCED = f"multi_head_attention/{FILE}"
PROGRAM = """
import json, os, sys
from pathlib import Path
from manyheads.submission.collect_downloads import collect
from manyheads.course import load_course
course = load_course(Path(sys.argv[1]))
os.chdir(sys.argv[2])
if os.geteuid() == 0:
    os.setuid(65534)
done = collect(course, [Path("all")], Path("out/in"))
print(json.dumps([done.not_taken, sorted(each.path for each in done.laid)]))
"""


def collected(repository: Path, folder: Path) -> list[list[str]]:
    """Collect a folder as an ordinary user: what is not taken, and what is laid out."""
    program = [sys.executable, "-c", PROGRAM, str(repository), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("place", "mode", "told", "laid"), [
    *(("bela", mode, "bela/", ["ada"]) for mode in (0o000, 0o644, 0o311)),
    ("bela/deep", 0, "bela/deep/", ["ada", "bela"]),
    (f"bela/{FILE}", 0, f"bela/{FILE}", ["ada"]),
])  # fmt: skip
def test_what_is_closed_is_named_with_the_student_and_the_others_are_collected(
    repository: Path, tmp_path: Path, place: str, mode: int, told: str, laid: list[str]
) -> None:
    for folder in ("all/ada", "all/bela/deep", "out"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("ada", "bela"):
        (tmp_path / "all" / name / FILE).write_text(DANCE)
    (tmp_path / "out").chmod(0o777)
    tmp_path.chmod(0o755)
    locked = tmp_path / "all" / place
    before = locked.stat().st_mode
    locked.chmod(mode)
    (said,), found = collected(repository, tmp_path)
    locked.chmod(before)
    assert found == [f"{name}/{DANCED}" for name in laid]
    why = f"is not read: Permission denied; chmod -R u+rwX all/{place} changes that. Next: "
    assert said.startswith(f"bela: handed in, not readable: all: {told} {why}")
    assert read_memory(tmp_path / "out" / "in").not_readable == {"bela": {"multi_head_attention": [told]}}
    assert collected(repository, tmp_path)[1] == [f"{name}/{DANCED}" for name in ("ada", "bela")]
