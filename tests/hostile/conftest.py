"""Grade hostile students with the real `course grade`, among honest ones, and note all that
changed.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from manyheads.course import load_course
from manyheads.diagnosis.recording_file import key_of, read, save
from tests.hostile.tricks import sources
from tests.make import COURSE, REPOSITORY, RIGHT, TINY, copy_course
from tests.witness import start_with_witness

HERE = Path(__file__).parent
FILE = "01_running_mean.py"

LIMITS = {
    "seconds_per_call": 1,
    "seconds_per_attempt": 3,
    "memory_mib": 384,
    "files_mib": 4,
    "processes": 16,
    "reply_mib": 4,
}
CHECKS = 4  # of the tiny course
SECONDS_TO_START = 120  # two interpreters that import torch, on a busy machine
# a fresh process, the kernel taking the old one down, the diagnosis
SECONDS_FOR_A_DEATH = 1.0 + 2.0 + 1.0
SECONDS_FOR_A_STUDENT = LIMITS["seconds_per_attempt"] + (CHECKS + 1) * SECONDS_FOR_A_DEATH

SECRETS = {  # planted where no attempt may read; none may stand in any output
    "the course secret": "5ec2e75ec2e75ec2e75ec2e7manyheads_marker_of_the_secret_file_0000",
    "a line of the solution": "manyheads_marker_of_the_solution",
    "a line of the hidden checks": "manyheads_marker_of_the_checks",
    "a line of the mutants": "manyheads_marker_of_the_mutants",
    "a token of the environment": "manyheads_marker_of_the_environment",
    "a token of .git/config": "manyheads_marker_of_git",
    "a line of a neighbour's attempt": "manyheads_marker_of_a_neighbour",
}
KERNEL = "core_pattern hostname modprobe randomize_va_space shmmax pid_max printk".split()
# the slowest first; some are graded together
SECTIONS = ("exhausting", "wire", "stealing+forging", "tensors+cheats")
REACHING_OUT = {"exhausting", "stealing", "forging"}  # beyond the attempt's own calls
OPEN_TO_ALL = ("/tmp", "/dev/shm", "/var/tmp", "/run", "/dev/mqueue")
MARK = "manyheads_hostile"  # in the name of every file that an attempt makes

Place = Callable[[Path], None]  # puts something into a submission's folder


@dataclass
class Run:
    """One `course grade`: how it ended, what it wrote, and what it changed that it should not
    have.
    """

    status: int
    text: str
    results: dict[str, str]  # student -> the result as it stands in its file
    changed: list[str] = field(default_factory=list)
    left_running: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    # of the machine, for whoever looks for them in the output
    paths: list[str] = field(default_factory=list)

    def exercise(self, student: str) -> dict[str, Any]:
        """The only exercise's part of a student's result."""
        return dict(json.loads(self.results[student])["exercises"][0])

    def assert_earned(self, trick: str, most: float, says: str, least: float | None = None) -> None:
        """The trick earned that much and no more; each lost check says why in one plain sentence,
        one of them this.
        """
        exercise = self.exercise(trick)
        score = exercise["score"] or 0.0  # None where something lies there that nobody read
        assert (most if least is None else least) <= score <= most, exercise["checks"]
        assert score == sum(check["score"] for check in exercise["checks"])
        lost = [check for check in exercise["checks"] if check["outcome"] != "passed"]
        assert all(check["score"] == 0 for check in lost)
        for check in lost:
            assert is_one_plain_sentence(check["evidence"]), check["evidence"]
            assert not [path for path in self.paths if path in check["evidence"]], check["evidence"]
            assert "this is not your fault" not in check["evidence"], (
                "a student made the grader itself fail"
            )
        assert not lost or any(re.search(says, check["evidence"]) for check in lost), [
            c["evidence"] for c in lost
        ]


def hands_in(content: str | bytes, name: str = FILE) -> Place:
    """Put one file with this content into the submission."""
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / name).write_bytes(data) and None


def honest() -> Place:
    """A right attempt, with a secret of its own."""
    secret = SECRETS["a line of a neighbour's attempt"]
    return hands_in(f"# {secret}\n{RIGHT}")


def plant_tiny_course(root: Path) -> None:
    """A copy of the tiny course with LIMITS, full of secrets."""
    copy_course(TINY, root)
    listed = "".join(f"  {name}: {value}\n" for name, value in LIMITS.items())
    text = (root / "course.yaml").read_text(encoding="utf-8")
    prefix, _, after = text.partition("limits:\n")
    (root / "course.yaml").write_text(
        f"{prefix}limits:\n{listed}\n{after[after.index('assignments:') :]}"
    )
    for path, secret in (
        ("solutions/averages/01_running_mean.py", "a line of the solution"),
        ("grader/checks/test_running_mean.py", "a line of the hidden checks"),
        ("grader/misconceptions/running_mean.py", "a line of the mutants"),
    ):
        with (root / path).open("a", encoding="utf-8") as file:
            file.write(f"\nMARKER = '{SECRETS[secret]}'\n")
    for secret, path in (
        ("the course secret", ".course/secret"),
        ("a token of .git/config", ".git/config"),
    ):
        (root / path).parent.mkdir(mode=0o700)
        (root / path).write_text(SECRETS[secret])
        (root / path).chmod(0o600)
    (exercise,) = load_course(root).exercises  # whose answers are what they were
    recorded = replace(read(exercise.fingerprints), key=key_of(exercise))
    exercise.fingerprints.write_bytes(save(recorded))


def digest(folder: Path) -> dict[str, str]:
    """Every name below a folder, with what it is and what it holds (of a large file its size)."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        fingerprint = f"{status.st_mode:o} {status.st_size}"
        if path.is_file() and not path.is_symlink() and status.st_size < 1 << 22:
            fingerprint += hashlib.sha256(path.read_bytes()).hexdigest()
        entries[repr(path.relative_to(folder))] = fingerprint
    return entries


def outside() -> dict[str, str]:
    """The machine, as far as an attempt might have changed it."""
    kernel = (Path("/proc/sys/kernel", name) for name in KERNEL)
    state = {str(path): path.read_text() for path in kernel if path.exists()}
    for folder in OPEN_TO_ALL:
        for path in Path(folder).glob("*") if os.access(folder, os.R_OK) else ():
            if MARK in path.name:
                state[str(path)] = "there"
    return state


def grade(
    root: Path, students: Mapping[str, Place], *, jobs: int = 1, user: int | None = None
) -> Run:
    """Grade this class below `root`, and compare the world before and after.

    user: who grades, and has all of it; else whoever runs the tests.
    """
    course, submitted, out, scratch = (
        root / name for name in ("course", "submitted", "out", "scratch")
    )
    plant_tiny_course(course)
    scratch.mkdir()
    for name, submit in students.items():
        folder = submitted / name / "averages"
        folder.mkdir(parents=True)
        submit(folder)
    (out / "of_last_week").mkdir(parents=True)
    (out / "of_last_week" / "result.json").write_text('{"score": 1.0}')
    if user is not None:
        give(root, user)
    watched = {
        "the course": course,
        "the submissions": submitted,
        "an older result": out / "of_last_week",
    }
    before = {area: digest(folder) for area, folder in watched.items()} | {"the machine": outside()}
    log, seconds = root / "said.txt", SECONDS_TO_START + len(students) * SECONDS_FOR_A_STUDENT
    command = [
        *COURSE,
        "grade",
        "submitted",
        "--course",
        "course",
        "--out",
        "out",
        "--jobs",
        str(jobs),
    ]
    command += ["--seed", "0"]  # what neighbours get is compared from run to run
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "TMPDIR": str(scratch),
        "PYTHONPATH": str(REPOSITORY),
    }
    env |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "200",
        "GITHUB_TOKEN": SECRETS["a token of the environment"],
    }
    user_options = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    with start_with_witness(command, log, env=env, **user_options) as run:
        left_running, status = run.leftovers(seconds), run.process.returncode
    after = {area: digest(folder) for area, folder in watched.items()} | {"the machine": outside()}
    return Run(
        status=124 if status is None else status,
        text=log.read_text("utf-8", errors="backslashreplace"),
        results={
            path.parent.name: path.read_text("utf-8")
            for path in sorted(out.glob("*/averages.json"))
        },
        changed=[
            f"{area}: {name}"
            for area in before
            for name in changed_names(before[area], after[area])
        ],
        left_running=left_running,
        left_behind=[path.name for path in scratch.iterdir()],
        paths=[
            str(root),
            str(REPOSITORY),
            sys.prefix,
            os.path.expanduser("~") + "/",
            tempfile.gettempdir() + "/",
        ],
    )


def give(root: Path, user: int) -> None:
    """Let a user have a folder and all that is in it, but for hard links, whose file may stand
    elsewhere.
    """
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1:
            os.chown(path, user, user, follow_symlinks=False)


def changed_names(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Names that came, went or hold something else."""
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def is_one_plain_sentence(text: str) -> bool:
    """Not empty, one line, short, without control or formatting characters, and no command for a
    CI.
    """
    return (
        0 < len(text) <= 300
        and "::" not in text
        and not any(unicodedata.category(c)[0] == "C" for c in text)
    )


@dataclass
class Classes:
    """Classes that were graded, each once, whichever of pytest's workers asks for it first."""

    once: Callable[[str, Callable[[Path], None]], Path]

    def folder_of(self, name: str, make: Callable[[Path], Run]) -> Path:
        """Where the class of that name was graded."""

        def write_run(folder: Path) -> None:
            folder.mkdir()
            (folder / "run.json").write_text(json.dumps(asdict(make(folder))))

        return self.once(f"hostile-{name}", write_run)

    def get(self, name: str, make: Callable[[Path], Run]) -> Run:
        """The run of that name."""
        return Run(**json.loads((self.folder_of(name, make) / "run.json").read_text()))

    def section(self, section: str) -> Run:
        """All attempts of a section, each with an honest student before and after it."""
        return self.get(section, lambda root: grade(root, attempts_of(section)))

    def tricks(
        self, name: str, tricks: Mapping[str, Place], *, jobs: int = 1, neighbours: bool = True
    ) -> Run:
        """These students among honest ones."""
        return self.get(
            name, lambda root: grade(root, among_honest(tricks, int(neighbours)), jobs=jobs)
        )

    def assert_untouched(self, run: Run) -> None:
        """The neighbours' results and the world are what they would have been without a hostile
        student.
        """
        assert run.changed == []
        assert run.left_running == []
        assert run.left_behind == []
        alone = self.tricks("nobody_hostile", {})
        for name in ("aaa_honest", "zzz_honest"):
            assert run.results[name] == alone.results[name]
        for name in run.results:
            if name.endswith("~honest"):
                assert (
                    run.results[name].replace(name, "aaa_honest") == alone.results["aaa_honest"]
                ), name


def attempts_of(section: str) -> dict[str, Place]:
    """All attempts of a section among honest ones: after each where machine or memory is attacked,
    else after some.
    """
    categories = section.split("+")
    texts = [trick for category in categories for trick in sorted(texts_of(category).items())]
    assert len(dict(texts)) == len(texts), "two tricks of one class with the same name"
    return among_honest(
        {name: hands_in(text) for name, text in texts}, 1 if REACHING_OUT & set(categories) else 8
    )


def texts_of(category: str) -> dict[str, str]:
    """The hostile attempts of a part as they are handed in: each stands below its name, or is one
    line.
    """
    text = (HERE / "attempts" / f"{category}.py").read_text(encoding="utf-8")
    head, *chunks = re.split(r"(?m)^# (\w+): .*\n(?:# .*\n)*", text)
    return {
        name: head + body for name, body in zip(chunks[::2], chunks[1::2], strict=True)
    } | sources(category, head)


def among_honest(tricks: Mapping[str, Place], interval: int = 1) -> dict[str, Place]:
    """These students, an honest one before and after them all, and one after so many; after none
    for 0.
    """
    students: dict[str, Place] = {"aaa_honest": honest(), "zzz_honest": honest()}
    for number, (name, submit) in enumerate(tricks.items(), 1):
        students[name] = submit
        if interval and number % interval == 0:
            students[f"{name}~honest"] = honest()
    return students


@pytest.fixture(scope="session")
def classes(once: Callable[[str, Callable[[Path], None]], Path]) -> Classes:
    """Every class that a test of this folder asks for."""
    # there is no box to attack
    assert shutil.which("bwrap"), "bubblewrap (the command bwrap) is not installed"
    return Classes(once)
