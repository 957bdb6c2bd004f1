"""Files that are not what they seem: a submission is data, read once, and never more than a file of text."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.submission import find_submissions
from tests.make import RIGHT, TINY

from .conftest import Run, among_honest, grade

FILE, NOTEBOOK = "01_running_mean.py", "01_running_mean.ipynb"
WRONG = "import torch\n\n\ndef running_mean(x):\n    return torch.zeros(())\n"
PLANTED = "open('/tmp/manyheads_hostile', 'w').write('ran')\n"

Place = Callable[[Path], None]
TRICKS: dict[str, tuple[float, str, Place]] = {}


def trick(earns: float, says: str) -> Callable[[Place], Place]:
    """A trick with files: what it earns of 4, and what a lost check says."""

    def keep(place: Place) -> Place:
        TRICKS[place.__name__] = (earns, says, place)
        return place

    return keep


def course_of(folder: Path) -> Path:
    return folder.parents[2] / "course"


def notebook(folder: Path, *cells: dict, **more: object) -> None:
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **more}
    (folder / NOTEBOOK).write_text(json.dumps(whole), encoding="utf-8")


def code(source: str, outputs: tuple = (), **metadata: object) -> dict:
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": list(outputs)}


@trick(0, "is not a file that can be read: hand in the file itself, not a link")
def symlink_to_the_solution(folder):
    (folder / FILE).symlink_to(course_of(folder) / "solutions" / "averages" / FILE)


@trick(0, "is not a file that can be read: hand in the file itself, not a link")
def symlink_to_a_neighbour(folder):
    (folder / FILE).symlink_to(f"../../aaa_honest/averages/{FILE}")


@trick(0, "is not a file that can be read: hand in the file itself, not a link")
def symlink_to_itself(folder):
    (folder / FILE).symlink_to(FILE)


@trick(0, "is a hard link: hand in the file itself")
def hard_link_to_the_solution(folder):
    os.link(course_of(folder) / "solutions" / "averages" / FILE, folder / FILE)


@trick(0, "is not a (file that can be read|regular file)")
def fifo_that_nobody_writes_to(folder):
    os.mkfifo(folder / FILE)


@trick(0, "is not a (file that can be read|regular file)")
def folder_in_place_of_a_file(folder):
    (folder / FILE).mkdir()
    (folder / FILE / "__init__.py").write_text(RIGHT)


@trick(0, "is not a (file that can be read|regular file)")
def unix_socket(folder):
    there = os.open(".", os.O_RDONLY)
    os.chdir(folder)  # a socket's path is at most 108 bytes long
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(FILE)
    finally:
        os.fchdir(there)
        os.close(there)


@trick(0, "is larger than 1024 KiB")
def source_of_100_mb(folder):
    with (folder / FILE).open("wb") as file:
        file.truncate(100 << 20)


@trick(0, "is larger than 8192 KiB. Clear its outputs")
def notebook_of_100_mb(folder):
    with (folder / NOTEBOOK).open("wb") as file:
        file.truncate(100 << 20)


@trick(0, "is not a notebook that can be read")
def notebook_of_two_million_brackets(folder):
    with (folder / NOTEBOOK).open("wb") as file:
        file.write(b"[" * (2 << 20))


@trick(0, "is not UTF-8 text \\(line 2\\)")
def contents_that_are_not_utf_8(folder):
    (folder / FILE).write_bytes(b"# a comment\n# caf\xe9\n" + RIGHT.encode())


@trick(0, "contains NUL bytes|is not UTF-8")
def nul_bytes(folder):
    (folder / FILE).write_bytes(RIGHT.encode() + b"\0\0")


@trick(0, "contains NUL bytes|is not UTF-8|is UTF-16")
def source_in_utf_16(folder):
    (folder / FILE).write_bytes(RIGHT.encode("utf-16"))


@trick(0, "It raised (SyntaxError|LookupError|RuntimeError)")
def coding_cookie_of_another_world(folder):
    (folder / FILE).write_text("# -*- coding: rot13 -*-\nqrs ehaavat_zrna(k): cnff\n")


@trick(0, "was not handed in")
def zip_with_a_way_out(folder):
    with zipfile.ZipFile(folder / "01_running_mean.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"../../aaa_honest/averages/{FILE}", WRONG)
        archive.writestr("/tmp/manyheads_hostile", "unpacked")
        archive.writestr(FILE, "\n" * (64 << 20))


@trick(0, "was not handed in")
def file_name_with_a_way_out(folder):
    (folder / f"..\\..\\{FILE}").write_text(RIGHT)
    (folder / f"{FILE}\n").write_text(RIGHT)
    (folder / os.fsdecode(b"\xff" + FILE.encode())).write_text(RIGHT)


@trick(0, "yours has \\(\\)")
def files_that_python_and_pytest_would_run(folder):
    (folder / FILE).write_text(WRONG)
    for name in (
        "conftest.py",
        "sitecustomize.py",
        "usercustomize.py",
        "torch.py",
        "math.py",
        "__init__.py",
        "grader.py",
    ):
        (folder / name).write_text(PLANTED)
        (folder.parent / name).write_text(PLANTED)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p manyheads_hostile\n")
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--collect-only"\n')
    (folder / "course.yaml").write_text("title: mine\nlimits:\n  seconds_per_call: 999\n")
    (folder / "manyheads_hostile.pth").write_text(f"import os; {PLANTED}")


@trick(0, "was not handed in")
def a_course_of_its_own_inside(folder):
    inner = folder / "grader" / "checks"
    inner.mkdir(parents=True)
    (inner / "test_running_mean.py").write_text(PLANTED)


@trick(0, "is not a notebook that can be read")
def notebook_that_is_not_json(folder):
    (folder / NOTEBOOK).write_text("{'cells': [")


@trick(0, "is not a notebook that can be read")
def notebook_that_is_a_number(folder):
    (folder / NOTEBOOK).write_text("1" * 5000)


@trick(0, "is not a notebook that can be read")
def notebook_nested_without_end(folder):
    (folder / NOTEBOOK).write_text('{"cells":' + "[" * 200_000)


@trick(0, "is not a notebook that can be read")
def notebook_whose_cells_are_a_name(folder):
    (folder / NOTEBOOK).write_text('{"cells": "running_mean"}')


@trick(0, "is not a notebook that can be read")
def notebook_with_half_a_character(folder):
    (folder / NOTEBOOK).write_text('{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}')


@trick(0, "has 60000 cells; at most 2000 are read|is larger than")
def notebook_of_very_many_cells(folder):
    (folder / NOTEBOOK).write_text('{"cells":[' + ",".join(["{}"] * 60_000).replace("{}", '{"cell_type":""}') + "]}")


@trick(0, "is not a notebook that can be read")
def notebook_of_a_million_cells(folder):
    (folder / NOTEBOOK).write_text('{"cells":[' + ",".join(["{}"] * 1_000_000) + "]}")


@trick(0, "a name that the exercise asks for is not defined")
def notebook_whose_solution_was_deleted(folder):
    notebook(folder, code("import torch"))


@trick(0, "a name that the exercise asks for is not defined")
def notebook_whose_solution_is_markdown(folder):
    notebook(folder, code("import torch"), {"cell_type": "markdown", "source": RIGHT, "metadata": {}})


@trick(0, "yours has \\(\\)")
def notebook_with_edited_metadata(folder):
    graded = {"grade": True, "points": 100, "grade_id": "running_mean", "locked": False, "schema_version": 3}
    notebook(folder, code(WRONG, nbgrader=graded, tags=["skip-execution"], deletable=False), metadata={"score": 100})


@trick(0, "yours has \\(\\)|It raised")
def notebook_with_an_input_transformer(folder):
    transform = (
        "try:\n    get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])\n"
        "except NameError:\n    pass\n"
    )
    notebook(folder, code(f"%%capture\n{transform}"), code("!touch /tmp/manyheads_hostile"), code(WRONG))


@trick(4, "")
def honest_cell_that_is_tagged_to_be_skipped(folder):
    notebook(folder, code(RIGHT, tags=["skip-execution"]))


@trick(4, "")
def honest_notebook_with_a_script_in_its_outputs(folder):
    html = {"output_type": "display_data", "data": {"text/html": "<script>manyheads_leak()</script>"}, "metadata": {}}
    notebook(folder, code(RIGHT, outputs=(html,)))


@trick(4, "")
def honest_file_with_a_bom_and_crlf(folder):
    (folder / FILE).write_bytes(b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode())


@trick(4, "")
def honest_file_with_old_line_ends(folder):
    (folder / FILE).write_bytes(RIGHT.replace("\n", "\r").encode())


@trick(0, "was not handed in")
def nothing_at_all(folder):
    pass


@trick(0, "a name that the exercise asks for is not defined")
def empty_file(folder):
    (folder / FILE).write_text("")


NAMES = {  # of a student's folder: whether it is graded
    "-rf": True,
    "--out=..": True,
    "%2e%2e%2faaa_honest": True,
    "a b; touch manyheads_hostile": True,
    "$(touch manyheads_hostile)": True,
    "[red]x[-]": True,
    "Zoë": True,
    "new\nline": False,
    "\x1b[31mred": False,
    "\x9b31mred": False,
    "evil\u202egnp": False,
    "line\u2028separator": False,
    "::stop-commands::x": False,
    "back\\slash": False,
    "x" * 200: False,
    b"caf\xe9": False,
}


DEVICE = "endless_zeros"


def device(folder: Path) -> None:
    os.mknod(folder / FILE, stat.S_IFCHR | 0o666, os.makedev(1, 5))


@pytest.fixture(scope="module")
def run(classes, tmp_path_factory):
    """All tricks with files, graded, and a device where this machine makes some."""
    tricks = {name: place for name, (_, _, place) in TRICKS.items()}
    with contextlib.suppress(OSError):
        device(tmp_path_factory.mktemp("device"))
        tricks[DEVICE] = device
    return classes.tricks("files", tricks)


@pytest.fixture(scope="module")
def named(classes):
    """Students whose folders have such names, graded."""

    def right(folder: Path) -> None:
        (folder / FILE).write_text(RIGHT)

    return classes.tricks("names", dict.fromkeys(NAMES, right), neighbours=False)


@pytest.mark.parametrize("name", TRICKS)
def test_earns_what_its_text_earns(run, name):
    earns, says, _ = TRICKS[name]
    run.assert_earned(name, earns, says)


def test_neighbours_and_the_world_are_as_if_nobody_was_hostile(run, classes):
    classes.assert_untouched(run)


def test_no_file_is_a_fault_of_the_grader(run):
    assert run.status == 1, run.text  # what lies beside the attempts is not graded, and named


def test_outputs_of_a_notebook_are_nowhere_in_a_result(run):
    assert "manyheads_leak" not in run.text + "".join(run.results.values())


@pytest.mark.parametrize(("name", "graded"), NAMES.items(), ids=[ascii(name)[:40] for name in NAMES])
def test_a_name_is_graded_as_it_stands_or_refused_in_a_sentence(named, name, graded):
    text = os.fsdecode(name)
    assert (text in named.results) is graded
    if graded:
        assert json.loads(named.results[text])["student"] == text
    else:
        refused = [line for line in named.text.splitlines() if line.startswith("not graded: ")]
        assert any(text in line or ascii(text)[1:20] in line for line in refused), refused


def test_refused_names_are_said_and_touch_nobody(named, classes):
    assert named.status in (1, 2)
    classes.assert_untouched(named)
    assert "\x1b" not in named.text
    assert "\x9b" not in named.text
    assert not [line for line in named.text.splitlines() if line.lstrip(" │").startswith("::")]


@pytest.mark.parametrize("level", ["student", "assignment"])
def test_a_folder_that_is_a_link_is_no_submission(tmp_path, level):
    course = load_course(TINY)
    honest = tmp_path / "submitted" / "honest" / "averages"
    honest.mkdir(parents=True)
    hostile = tmp_path / "submitted" / "hostile"
    if level == "student":
        hostile.symlink_to(honest.parent)
    else:
        hostile.mkdir()
        (hostile / "averages").symlink_to(course.root / "solutions" / "averages")
    (honest / FILE).touch()
    found, (link,) = find_submissions(course, tmp_path / "submitted")
    assert [submission.student for submission in found] == ["honest"]
    assert link.path == {"student": "hostile", "assignment": "hostile/averages"}[level]
    assert "is a link" in link.reason


def test_a_device_is_not_read(run):
    if DEVICE not in run.results:
        pytest.skip("only root makes devices, and not on every machine")
    run.assert_earned(DEVICE, 0, "is not a (file that can be read|regular file)")


ORDINARY = 61_234  # a user whom no machine has


def closes(mode: int, level: int) -> Place:
    """Hand in a right attempt, and give the file (level 0), its folder (1) or the student's (2) this mode."""

    def place(folder: Path) -> None:
        (folder / FILE).write_text(RIGHT)
        [folder / FILE, folder, folder.parent][level].chmod(mode)

    return place


CLOSED: dict[str, Place] = {
    "student_000": closes(0, 2),
    "student_644": closes(0o644, 2),
    "assignment_000": closes(0, 1),
    "assignment_644": closes(0o644, 1),
    "file_000": closes(0, 0),
}


@pytest.fixture(scope="module")
def ordinary(classes):
    """All tricks with files, and what an ordinary user may not read, graded by one."""
    if os.geteuid():
        pytest.skip("these tests run as an ordinary user already")
    python = [sys.executable, "-c", "import torch, manyheads"]
    may = subprocess.run(python, cwd="/", user=ORDINARY, group=ORDINARY, extra_groups=[], capture_output=True)
    if may.returncode:
        pytest.skip("an ordinary user may not read this installation")
    tricks = {name: place for name, (_, _, place) in TRICKS.items()} | CLOSED

    def graded(_: Path) -> Run:
        with tempfile.TemporaryDirectory(prefix="ordinary-", dir="/tmp") as made:  # pytest's are closed to others
            return grade(Path(made), among_honest(tricks), user=ORDINARY)

    return classes.get("files_of_an_ordinary_user", graded)


@pytest.mark.parametrize("name", TRICKS)
def test_for_an_ordinary_user_it_earns_the_same(ordinary, name):
    earns, says, _ = TRICKS[name]
    ordinary.assert_earned(name, earns, says)


@pytest.mark.parametrize("name", CLOSED)
def test_what_may_not_be_read_has_no_points_and_is_named_with_what_to_do(ordinary, name):
    result = json.loads(ordinary.results[name])
    assert result["score"] is None
    assert {check["outcome"] for check in result["exercises"][0]["checks"]} == {"skipped"}
    said = [line for line in ordinary.text.splitlines() if line.startswith(f"not graded: {name}")]
    assert any("may not be read by who runs this. Next: chmod -R u+rwX " in line for line in said), said
    assert ordinary.status == 1, ordinary.text


def test_of_what_may_not_be_read_nobody_else_knows(ordinary, classes):
    classes.assert_untouched(ordinary)
