"""Submissions that are links, folders, sockets, archives or odd notebooks: only text is graded."""

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

Submit = Callable[[Path], object]


def solution_of(folder: Path) -> Path:
    """Return the path of the solution, in the course beside the submissions."""
    return folder.parents[2] / "course" / "solutions" / "averages" / FILE


def hands_in_notebook(*cells: dict, **fields: object) -> Submit:
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **fields}
    return hands_in(json.dumps(document), NOTEBOOK)


def code_cell(source: str, outputs: tuple = (), **metadata: object) -> dict:
    """Return a code cell of a notebook."""
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": list(outputs)}


def submit_folder(folder: Path) -> None:
    (folder / FILE).mkdir()
    (folder / FILE / "__init__.py").write_text(RIGHT)


def submit_socket(folder: Path) -> None:
    # from within the folder, because a socket's path has at most 108 bytes
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as sock:
        sock.bind(FILE)


def submit_zip_with_outside_paths(folder: Path) -> None:
    with zipfile.ZipFile(folder / "01_running_mean.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"../../aaa_honest/averages/{FILE}", WRONG)
        archive.writestr("/tmp/manyheads_hostile", "unpacked")
        archive.writestr(FILE, "\n" * (64 << 20))


def submit_names_with_outside_paths(folder: Path) -> None:
    for name in (f"..\\..\\{FILE}", f"{FILE}\n", os.fsdecode(b"\xff" + FILE.encode())):
        (folder / name).write_text(RIGHT)


def submit_files_that_tools_would_run(folder: Path) -> None:
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


def submit_a_course(folder: Path) -> None:
    inner = folder / "grader" / "checks"
    inner.mkdir(parents=True)
    (inner / "test_running_mean.py").write_text(PLANTED)


LINK = "is not a file that can be read: hand in the file itself, not a link"
UNREAD = "is not graded as it is"  # the folder holds something that is not graded
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
# For each trick with files: its points of 4, a pattern of the evidence, its submission.
TRICKS: dict[str, tuple[float, str, Submit]] = {
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
    "folder_in_place_of_a_file": (0, NO_FILE, submit_folder),
    "unix_socket": (0, NO_FILE, submit_socket),
    "coding_cookie_of_another_world": (
        0,
        "It raised (SyntaxError|LookupError|RuntimeError)",
        hands_in("# -*- coding: rot13 -*-\nqrs ehaavat_zrna(k): cnff\n"),
    ),
    "zip_with_a_way_out": (0, UNREAD, submit_zip_with_outside_paths),
    "file_name_with_a_way_out": (0, UNREAD, submit_names_with_outside_paths),
    "files_that_python_and_pytest_would_run": (0, WRONG_SHAPE, submit_files_that_tools_would_run),
    "a_course_of_its_own_inside": (0, UNREAD, submit_a_course),
    "notebook_nested_without_end": (
        0,
        NO_NOTEBOOK,
        hands_in('{"cells":' + "[" * 200_000, NOTEBOOK),
    ),
    "notebook_whose_solution_was_deleted": (
        0,
        UNDEFINED,
        hands_in_notebook(code_cell("import torch")),
    ),
    "notebook_with_edited_metadata": (
        0,
        WRONG_SHAPE,
        hands_in_notebook(
            code_cell(WRONG, nbgrader=GRADED, tags=["skip-execution"], deletable=False),
            metadata={"score": 100},
        ),
    ),
    "notebook_with_an_input_transformer": (
        0,
        f"{WRONG_SHAPE}|It raised",
        hands_in_notebook(
            code_cell(TRANSFORM), code_cell("!touch /tmp/manyheads_hostile"), code_cell(WRONG)
        ),
    ),
    "honest_cell_that_is_tagged_to_be_skipped": (
        4,
        "",
        hands_in_notebook(code_cell(RIGHT, tags=["skip-execution"])),
    ),
    "honest_notebook_with_a_script_in_its_outputs": (
        4,
        "",
        hands_in_notebook(code_cell(RIGHT, outputs=(HTML,))),
    ),
    "nothing_at_all": (0, MISSING, lambda folder: None),
}


DEVICE = "endless_zeros"  # the student who submits a device file like /dev/zero


def make_device(folder: Path) -> None:
    """Submit a device file from which one can read zeros forever."""
    os.mknod(folder / FILE, stat.S_IFCHR | 0o666, os.makedev(1, 5))


@pytest.fixture(scope="module")
def graded_tricks(classes, tmp_path_factory):
    """Return the run of all tricks with files, and of a device file if this user may make one."""
    tricks = {name: submit for name, (_, _, submit) in TRICKS.items()}
    with contextlib.suppress(OSError):
        make_device(tmp_path_factory.mktemp("device"))
        tricks[DEVICE] = make_device
    return classes.tricks("files", tricks)


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_with_files_earns_the_listed_points(graded_tricks, name):
    most_points, evidence_pattern, _ = TRICKS[name]
    graded_tricks.assert_earned(name, most_points, evidence_pattern)


def test_tricks_with_files_change_no_honest_result(graded_tricks, classes):
    classes.assert_untouched(graded_tricks)
    # 1, because files beside the attempts are not graded, and the output lists them
    assert graded_tricks.status == 1, graded_tricks.text
    assert "manyheads_leak" not in graded_tricks.text + "".join(graded_tricks.results.values()), (
        "outputs of a notebook are in no result"
    )


def test_a_device_is_not_read(graded_tricks):
    if DEVICE not in graded_tricks.results:
        pytest.skip("only root makes devices, and not on every machine")
    graded_tricks.assert_earned(DEVICE, 0, NO_FILE)


ORDINARY = 61_234  # a user id that no machine uses


def submit_with_mode(mode: int, level: int) -> Submit:
    """Submit a correct attempt, and set the mode of one path.

    Args:
        mode: the permissions to set.
        level: 0 for the file, 1 for the assignment's folder, 2 for the student's folder.
    """

    def submit(folder: Path) -> None:
        (folder / FILE).write_text(RIGHT)
        [folder / FILE, folder, folder.parent][level].chmod(mode)

    return submit


# how each student's folder is written; a student's name says which path has which mode
UNREADABLE: dict[str, Submit] = {
    "student_000": submit_with_mode(0, 2),
    "student_644": submit_with_mode(0o644, 2),
    "assignment_000": submit_with_mode(0, 1),
    "assignment_644": submit_with_mode(0o644, 1),
    "file_000": submit_with_mode(0, 0),
}


@pytest.fixture(scope="module")
def run_as_ordinary_user(classes):
    """Return the run in which an ordinary user grades files that this user may not read."""
    if os.geteuid():
        pytest.skip("these tests run as an ordinary user already")
    python = [sys.executable, "-c", "import torch, manyheads"]
    import_check = subprocess.run(
        python, cwd="/", user=ORDINARY, group=ORDINARY, extra_groups=[], capture_output=True
    )
    if import_check.returncode:
        pytest.skip("an ordinary user may not read this installation")

    def grade_as_ordinary(_: Path) -> Run:
        # other users may not enter pytest's temporary folders
        with tempfile.TemporaryDirectory(prefix="ordinary-", dir="/tmp") as root:
            return grade_class(Path(root), among_honest(UNREADABLE), user=ORDINARY)

    return classes.get("files_of_an_ordinary_user", grade_as_ordinary)


@pytest.mark.parametrize("student", UNREADABLE)
def test_an_unreadable_file_has_no_score_and_the_output_names_a_remedy(
    run_as_ordinary_user, student
):
    result = json.loads(run_as_ordinary_user.results[student])
    assert result["score"] is None
    assert {check["outcome"] for check in result["exercises"][0]["checks"]} == {"skipped"}
    lines = [
        line
        for line in run_as_ordinary_user.text.splitlines()
        if line.startswith(f"not graded: {student}")
    ]
    assert any(
        "may not be read by who runs this. Next: chmod -R u+rwX " in line for line in lines
    ), lines
    assert run_as_ordinary_user.status == 1, run_as_ordinary_user.text


def test_an_unreadable_file_changes_no_honest_result(run_as_ordinary_user, classes):
    classes.assert_untouched(run_as_ordinary_user)
