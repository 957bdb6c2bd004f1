"""Files in disguise: a submission is data, read once, and never more than a file of text."""

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

from tests.hostile.conftest import FILE, Run, among_honest, grade_class, hands_in
from tests.make import RIGHT

NOTEBOOK = "01_running_mean.ipynb"
WRONG = "import torch\n\n\ndef running_mean(x):\n    return torch.zeros(())\n"
PLANTED = "open('/tmp/manyheads_hostile', 'w').write('ran')\n"

Place = Callable[[Path], object]


def solution_of(folder: Path) -> Path:
    return folder.parents[2] / "course" / "solutions" / "averages" / FILE


def hands_in_notebook(*cells: dict, **fields: object) -> Place:
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **fields}
    return hands_in(json.dumps(document), NOTEBOOK)


def code(source: str, outputs: tuple = (), **metadata: object) -> dict:
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": list(outputs)}


def a_folder(folder: Path) -> None:
    (folder / FILE).mkdir()
    (folder / FILE / "__init__.py").write_text(RIGHT)


def a_socket(folder: Path) -> None:
    # whose path is at most 108 bytes long
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as sock:
        sock.bind(FILE)


def a_zip_with_a_way_out(folder: Path) -> None:
    with zipfile.ZipFile(folder / "01_running_mean.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"../../aaa_honest/averages/{FILE}", WRONG)
        archive.writestr("/tmp/manyheads_hostile", "unpacked")
        archive.writestr(FILE, "\n" * (64 << 20))


def names_with_a_way_out(folder: Path) -> None:
    for name in (f"..\\..\\{FILE}", f"{FILE}\n", os.fsdecode(b"\xff" + FILE.encode())):
        (folder / name).write_text(RIGHT)


def what_python_and_pytest_would_run(folder: Path) -> None:
    (folder / FILE).write_text(WRONG)
    for name in "conftest sitecustomize usercustomize torch math __init__ grader".split():
        (folder / f"{name}.py").write_text(PLANTED)
        (folder.parent / f"{name}.py").write_text(PLANTED)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p manyheads_hostile\n")
    (folder / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\naddopts = "--collect-only"\n'
    )
    (folder / "course.yaml").write_text("title: mine\nlimits:\n  seconds_per_call: 999\n")
    (folder / "manyheads_hostile.pth").write_text(f"import os; {PLANTED}")


def a_course_inside(folder: Path) -> None:
    inner = folder / "grader" / "checks"
    inner.mkdir(parents=True)
    (inner / "test_running_mean.py").write_text(PLANTED)


LINK = "is not a file that can be read: hand in the file itself, not a link"
UNREAD = "is not graded as it is"  # something lies there that is no part of what is graded
NO_FILE = "is not a (file that can be read|regular file)"
NO_NOTEBOOK, UNDEFINED = (
    "is not a notebook that can be read",
    "a name that the exercise asks for is not defined",
)
MISSING, WRONG_SHAPE = "was not handed in", "yours has \\(\\)"
GRADED = {
    "grade": True,
    "points": 100,
    "grade_id": "running_mean",
    "locked": False,
    "schema_version": 3,
}
HTML = {
    "output_type": "display_data",
    "data": {"text/html": "<script>manyheads_leak()</script>"},
    "metadata": {},
}
TRANSFORM = (
    "%%capture\ntry:\n    get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])\n"
    "except NameError:\n    pass\n"
)
# A trick with files: what it earns of 4, and what a lost check says.
TRICKS: dict[str, tuple[float, str, Place]] = {
    "symlink_to_the_solution": (
        0,
        LINK,
        lambda folder: (folder / FILE).symlink_to(solution_of(folder)),
    ),
    "symlink_to_a_neighbour": (
        0,
        LINK,
        lambda folder: (folder / FILE).symlink_to(f"../../aaa_honest/averages/{FILE}"),
    ),
    "hard_link_to_the_solution": (
        0,
        "is a hard link: hand in the file itself",
        lambda folder: os.link(solution_of(folder), folder / FILE),
    ),
    "folder_in_place_of_a_file": (0, NO_FILE, a_folder),
    "unix_socket": (0, NO_FILE, a_socket),
    "coding_cookie_of_another_world": (
        0,
        "It raised (SyntaxError|LookupError|RuntimeError)",
        hands_in("# -*- coding: rot13 -*-\nqrs ehaavat_zrna(k): cnff\n"),
    ),
    "zip_with_a_way_out": (0, UNREAD, a_zip_with_a_way_out),
    "file_name_with_a_way_out": (0, UNREAD, names_with_a_way_out),
    "files_that_python_and_pytest_would_run": (0, WRONG_SHAPE, what_python_and_pytest_would_run),
    "a_course_of_its_own_inside": (0, UNREAD, a_course_inside),
    "notebook_nested_without_end": (
        0,
        NO_NOTEBOOK,
        hands_in('{"cells":' + "[" * 200_000, NOTEBOOK),
    ),
    "notebook_whose_solution_was_deleted": (0, UNDEFINED, hands_in_notebook(code("import torch"))),
    "notebook_with_edited_metadata": (
        0,
        WRONG_SHAPE,
        hands_in_notebook(
            code(WRONG, nbgrader=GRADED, tags=["skip-execution"], deletable=False),
            metadata={"score": 100},
        ),
    ),
    "notebook_with_an_input_transformer": (
        0,
        f"{WRONG_SHAPE}|It raised",
        hands_in_notebook(code(TRANSFORM), code("!touch /tmp/manyheads_hostile"), code(WRONG)),
    ),
    "honest_cell_that_is_tagged_to_be_skipped": (
        4,
        "",
        hands_in_notebook(code(RIGHT, tags=["skip-execution"])),
    ),
    "honest_notebook_with_a_script_in_its_outputs": (
        4,
        "",
        hands_in_notebook(code(RIGHT, outputs=(HTML,))),
    ),
    "nothing_at_all": (0, MISSING, lambda folder: None),
}


DEVICE = "endless_zeros"


def make_device(folder: Path) -> None:
    os.mknod(folder / FILE, stat.S_IFCHR | 0o666, os.makedev(1, 5))


@pytest.fixture(scope="module")
def graded_tricks(classes, tmp_path_factory):
    """All tricks with files, graded, and a device where this machine makes some."""
    tricks = {name: submit for name, (_, _, submit) in TRICKS.items()}
    with contextlib.suppress(OSError):
        make_device(tmp_path_factory.mktemp("device"))
        tricks[DEVICE] = make_device
    return classes.tricks("files", tricks)


@pytest.mark.parametrize("name", TRICKS)
def test_earns_what_its_text_earns(graded_tricks, name):
    earns, says, _ = TRICKS[name]
    graded_tricks.assert_earned(name, earns, says)


def test_neighbours_and_the_world_are_untouched_and_no_file_is_a_fault_of_the_grader(
    graded_tricks, classes
):
    classes.assert_untouched(graded_tricks)
    assert graded_tricks.status == 1, (
        graded_tricks.text
    )  # what lies beside the attempts is not graded, and named
    assert "manyheads_leak" not in graded_tricks.text + "".join(graded_tricks.results.values()), (
        "outputs of a notebook are in no result"
    )


def test_a_device_is_not_read(graded_tricks):
    if DEVICE not in graded_tricks.results:
        pytest.skip("only root makes devices, and not on every machine")
    graded_tricks.assert_earned(DEVICE, 0, NO_FILE)


ORDINARY = 61_234  # a user whom no machine has


def closes(mode: int, level: int) -> Place:
    """Hand in a right attempt, with this mode of its file (level 0) or of a folder above it."""

    def submit(folder: Path) -> None:
        (folder / FILE).write_text(RIGHT)
        [folder / FILE, folder, folder.parent][level].chmod(mode)

    return submit


CLOSED: dict[str, Place] = {
    "student_000": closes(0, 2),
    "student_644": closes(0o644, 2),
    "assignment_000": closes(0, 1),
    "assignment_644": closes(0o644, 1),
    "file_000": closes(0, 0),
}


@pytest.fixture(scope="module")
def ordinary(classes):
    """What an ordinary user may not read, graded by one."""
    if os.geteuid():
        pytest.skip("these tests run as an ordinary user already")
    python = [sys.executable, "-c", "import torch, manyheads"]
    may = subprocess.run(
        python, cwd="/", user=ORDINARY, group=ORDINARY, extra_groups=[], capture_output=True
    )
    if may.returncode:
        pytest.skip("an ordinary user may not read this installation")

    def grade_as_ordinary(_: Path) -> Run:
        # pytest's are closed to others
        with tempfile.TemporaryDirectory(prefix="ordinary-", dir="/tmp") as root:
            return grade_class(Path(root), among_honest(CLOSED), user=ORDINARY)

    return classes.get("files_of_an_ordinary_user", grade_as_ordinary)


@pytest.mark.parametrize("name", CLOSED)
def test_a_file_that_may_not_be_read_has_no_points_and_is_named_with_a_remedy(ordinary, name):
    result = json.loads(ordinary.results[name])
    assert result["score"] is None
    assert {check["outcome"] for check in result["exercises"][0]["checks"]} == {"skipped"}
    lines = [line for line in ordinary.text.splitlines() if line.startswith(f"not graded: {name}")]
    assert any(
        "may not be read by who runs this. Next: chmod -R u+rwX " in line for line in lines
    ), lines
    assert ordinary.status == 1, ordinary.text


def test_a_file_that_may_not_be_read_concerns_no_other_student(ordinary, classes):
    classes.assert_untouched(ordinary)
