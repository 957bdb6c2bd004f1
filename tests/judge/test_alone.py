"""A folder of results is one run's at a time, and its files are the run's own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.make import hand_in

MEAN = "def running_mean(x):\n    return x\n"
HOLD = """
import sys, time
from pathlib import Path
from manyheads.judge.record_results import alone_in
with alone_in(Path(sys.argv[1]), []):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    return hand_in(tmp_path / "submitted", dict.fromkeys(("ada", "bela"), MEAN))


@pytest.fixture
def grade(run_course, tiny_copy, submitted, tmp_path):
    out = tmp_path / "out"
    return lambda: run_course("grade", submitted, "--out", out, "--jobs", "1", "--no-lines", cwd=tiny_copy)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the folder."""
    holding = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True)
    assert holding.stdout.readline() == "held\n"
    yield holding
    holding.kill()
    holding.wait()


def test_the_second_run_into_a_folder_says_so_and_one_that_died_holds_nothing(grade, other, tmp_path):
    done = grade()
    assert (done.returncode, done.stdout) == (2, "")
    said = f"course: another course grade (process {other.pid}) is writing to {tmp_path / 'out'}. "
    assert done.stderr == f"{said}Next: wait for its end, or give --out another folder\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
    other.kill()
    other.wait()
    assert grade().returncode == 0


@pytest.mark.parametrize(
    "name", ["bela", "bela/averages.json", ".journal", ".lock", "not-graded.json", ".points-changed"]
)
@pytest.mark.parametrize("is_link", [True, False], ids=["a link", "a folder"])
def test_links_and_folders_in_place_of_files_are_refused_before_anybody_is_graded(grade, tmp_path, name, is_link):
    path, elsewhere = tmp_path / "out" / name, tmp_path / "elsewhere"
    path.parent.mkdir(parents=True)
    then = "is to be written. Next: move it elsewhere, or give --out another folder"
    if is_link:
        path.symlink_to(elsewhere)
        said = f"{path} is a link, and nothing is written through it. Next: remove it"
    elif name == "bela":
        path.write_text("")
        said = f"{path} is a file, where a folder {then}"
    else:
        path.mkdir()
        said = f"{path} is a folder, where a file {then}"
    done = grade()
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"course: {said}\n")
    assert not elsewhere.exists()
    assert not (tmp_path / "out" / "ada").exists()


def test_what_is_written_whole_follows_no_link_that_waits_for_it(tmp_path: Path) -> None:
    from manyheads.whole import write_whole

    (tmp_path / f"a.json.{os.getpid()}.partial").symlink_to(tmp_path / "elsewhere")
    write_whole(tmp_path / "a.json", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_bytes() == b"1"
