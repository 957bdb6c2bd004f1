"""Grade hostile students among honest ones with the real `course grade`.

A run records every watched file, process and kernel setting that changed.
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

import pytest

from manyheads.course import load_course
from manyheads.diagnosis.recording_file import key_of, read, save
from tests.hostile.tricks import TRICKS
from tests.make import COURSE, REPOSITORY, RIGHT, TINY, copy_course
from tests.witness import start_with_witness

FILE = "01_running_mean.py"

LIMITS = {
    "seconds_per_call": 1,
    "seconds_per_attempt": 3,
    "memory_mib": 384,
    "files_mib": 4,
    "processes": 16,
    "reply_mib": 4,
}
CHECKS = 4  # the number of checks in the tiny course
SECONDS_TO_START = 120  # for two interpreters that import torch on a busy machine
# for a new process, the end of the old one, and the diagnosis
SECONDS_FOR_A_DEATH = 1.0 + 2.0 + 1.0
SECONDS_FOR_A_STUDENT = LIMITS["seconds_per_attempt"] + (CHECKS + 1) * SECONDS_FOR_A_DEATH

SECRETS = {  # planted where no attempt may read; no output may contain one
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
SECTIONS = ("exhausting", "wire+tensors+cheats", "stealing+forging")
REACHING_OUT = {"exhausting", "stealing", "forging"}  # these attack more than their own calls
OPEN_TO_ALL = ("/tmp", "/dev/shm", "/var/tmp", "/run", "/dev/mqueue")
MARK = "manyheads_hostile"  # in the name of every file that an attempt makes

Submit = Callable[[Path], None]  # puts something into a submission's folder


@dataclass
class Run:
    """One run of `course grade`: exit status, output, results, and unwanted changes."""

    status: int
    text: str
    results: dict[str, str]  # student -> the text of the file of the result
    changed: list[str] = field(default_factory=list)
    left_running: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    # paths of this machine, which no output may contain
    paths: list[str] = field(default_factory=list)

    def assert_earned(
        self, trick: str, most: float, evidence_pattern: str, least: float | None = None
    ) -> None:
        """Check the score of a trick and the evidence of its lost checks.

        Args:
            trick: the name of the student who submitted it.
            most: the exact score, or the highest score if `least` is given.
            evidence_pattern: a regular expression that some lost check's evidence matches.
        """
        (exercise,) = json.loads(self.results[trick])["exercises"]
        score = exercise["score"] or 0.0  # the score is None if the file could not be read
        if least is None:
            least = most
        assert least <= score <= most, exercise["checks"]
        assert score == sum(check["score"] for check in exercise["checks"])
        lost = [check for check in exercise["checks"] if check["outcome"] != "passed"]
        assert all(check["score"] == 0 for check in lost)
        sentences = [check["evidence"] for check in lost]
        for sentence in sentences:
            assert is_one_plain_sentence(sentence), sentence
            assert not [path for path in self.paths if path in sentence], sentence
            assert "this is not your fault" not in sentence, "a fault of the grader itself"
        if lost:
            assert re.search(evidence_pattern, "\n".join(sentences), re.MULTILINE), sentences


def hands_in(content: str | bytes, name: str = FILE) -> Submit:
    """Return a function that writes one file with this content into a submission folder."""
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / name).write_bytes(data) and None


def honest(student: str) -> Submit:
    """Return a function that submits a correct attempt with a secret.

    The student's name makes the text unique, because equal texts are judged only once.
    """
    secret = SECRETS["a line of a neighbour's attempt"]
    return hands_in(f"# {secret} of {student}\n{RIGHT}")


def plant_tiny_course(root: Path) -> None:
    """Make a copy of the tiny course with LIMITS, full of secrets."""
    copy_course(TINY, root)
    course = root / "course.yaml"
    prefix, _, after = course.read_text(encoding="utf-8").partition("limits:\n")
    rest = after[after.index("assignments:") :]
    course.write_text(f"{prefix}limits: {json.dumps(LIMITS)}\n{rest}")
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
    # the added lines change no answer, so the recorded answers stay valid under the new key
    (exercise,) = load_course(root).exercises
    recorded = replace(read(exercise.fingerprints), key=key_of(exercise))
    exercise.fingerprints.write_bytes(save(recorded))


def digest(folder: Path) -> dict[str, str]:
    """Map each path below a folder to its mode, size and, for files below 4 MiB, a hash."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        fingerprint = f"{status.st_mode:o} {status.st_size}"
        if path.is_file() and not path.is_symlink() and status.st_size < 1 << 22:
            fingerprint += hashlib.sha256(path.read_bytes()).hexdigest()
        entries[repr(path.relative_to(folder))] = fingerprint
    return entries


def outside() -> dict[str, str]:
    """Return kernel settings, and files with the attempts' mark in folders that all may write."""
    kernel = (Path("/proc/sys/kernel", name) for name in KERNEL)
    state = {str(path): path.read_text() for path in kernel if path.exists()}
    for folder in OPEN_TO_ALL:
        for path in Path(folder).glob("*") if os.access(folder, os.R_OK) else ():
            if MARK in path.name:
                state[str(path)] = "there"
    return state


def watched_state(watched: Mapping[str, Path]) -> dict[str, str]:
    """Return the state of every watched file and of the machine, to compare before and after."""
    state = outside()
    for area, folder in watched.items():
        state |= {f"{area}: {name}": entry for name, entry in digest(folder).items()}
    return state


def grade_class(
    root: Path, students: Mapping[str, Submit], *, jobs: int = 1, user: int | None = None
) -> Run:
    """Grade this class below `root`, and compare files and machine before and after.

    Args:
        user: the user who grades and owns the files, if it is not the user of the tests.
    """
    submitted, out, scratch = (root / name for name in ("submitted", "out", "scratch"))
    plant_tiny_course(root / "course")
    scratch.mkdir()
    for name, submit in students.items():
        folder = submitted / name / "averages"
        folder.mkdir(parents=True)
        submit(folder)
    (out / "of_last_week").mkdir(parents=True)
    (out / "of_last_week" / "result.json").write_text('{"score": 1.0}')
    user_options = {}
    if user is not None:
        change_owner(root, user)
        user_options = {"user": user, "group": user, "extra_groups": []}
    watched = {
        "the course": root / "course",
        "the submissions": submitted,
        "an older result": out / "of_last_week",
    }
    before = watched_state(watched)
    log, seconds = root / "output.txt", SECONDS_TO_START + len(students) * SECONDS_FOR_A_STUDENT
    # a fixed seed, because the honest students' results are compared between runs
    options = f"grade submitted --course course --out out --jobs {jobs} --seed 0"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "TMPDIR": str(scratch),
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "200",
        "GITHUB_TOKEN": SECRETS["a token of the environment"],
    }
    command = [*COURSE, *options.split()]
    with start_with_witness(command, log, env=env, **user_options) as run:
        left_running, status = run.leftovers(seconds), run.process.returncode
    after = watched_state(watched)
    user_folders = (f"{folder}/" for folder in (os.path.expanduser("~"), tempfile.gettempdir()))
    return Run(
        status=124 if status is None else status,
        text=log.read_text("utf-8", errors="backslashreplace"),
        results={
            path.parent.name: path.read_text("utf-8")
            for path in sorted(out.glob("*/averages.json"))
        },
        changed=[name for name in {**before, **after} if before.get(name) != after.get(name)],
        left_running=left_running,
        left_behind=[path.name for path in scratch.iterdir()],
        paths=[str(root), str(REPOSITORY), sys.prefix, *user_folders],
    )


def change_owner(root: Path, user: int) -> None:
    """Make a user the owner of a folder and its content, except files with several hard links."""
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1:
            os.chown(path, user, user, follow_symlinks=False)


def is_one_plain_sentence(text: str) -> bool:
    """Return whether a text is one short line without control characters and CI commands (`::`)."""
    return (
        0 < len(text) <= 300
        and "::" not in text
        and not any(unicodedata.category(c)[0] == "C" for c in text)
    )


@dataclass
class Classes:
    """Graded classes of students. The first pytest worker that asks for a class grades it."""

    once: Callable[[str, Callable[[Path], None]], Path]

    def folder_of(self, name: str, make: Callable[[Path], Run]) -> Path:
        """Return the folder in which the class of that name was graded."""

        def write_run(folder: Path) -> None:
            folder.mkdir()
            (folder / "run.json").write_text(json.dumps(asdict(make(folder))))

        return self.once(f"hostile-{name}", write_run)

    def get(self, name: str, make: Callable[[Path], Run]) -> Run:
        """Return the run of that name."""
        return Run(**json.loads((self.folder_of(name, make) / "run.json").read_text()))

    def section_folder(self, section: str) -> Path:
        """Return the folder in which a section was graded among honest students."""
        return self.folder_of(section, lambda root: grade_class(root, attempts_of(section)))

    def section(self, section: str) -> Run:
        """Return the run of a section."""
        return self.get(section, lambda root: grade_class(root, attempts_of(section)))

    def tricks(
        self, name: str, tricks: Mapping[str, Submit], *, jobs: int = 1, interval: int = 1
    ) -> Run:
        """Return the run of these students among honest ones.

        Args:
            interval: an honest student follows each group of this many tricks; 0 for none.
        """
        return self.get(
            name, lambda root: grade_class(root, among_honest(tricks, interval), jobs=jobs)
        )

    def assert_untouched(self, run: Run) -> None:
        """Check that honest results and watched files are as without hostile students."""
        assert (run.changed, run.left_running, run.left_behind) == ([], [], [])
        alone = self.tricks("nobody_hostile", {}).results
        for name, result in run.results.items():
            if name in alone:
                assert result == alone[name]
            elif name.endswith("~honest"):
                renamed = without_digests(result.replace(name, "aaa_honest"))
                assert renamed == without_digests(alone["aaa_honest"]), name


def without_digests(result: str) -> str:
    """Return a result without the digest of its text: each honest student has another text."""
    return re.sub(r'(digest": )"[0-9a-f]+"', r'\1""', result)


def attempts_of(section: str) -> dict[str, Submit]:
    """Return all attempts of a section, with an honest one after every eighth.

    If a section attacks more than its own calls, an honest attempt follows each.
    """
    categories = section.split("+")
    tricks = [trick for category in categories for trick in TRICKS[category].items()]
    assert len(dict(tricks)) == len(tricks), "two tricks of one class with the same name"
    interval = 1 if REACHING_OUT & set(categories) else 8
    return among_honest({name: hands_in(trick.text) for name, trick in tricks}, interval)


def among_honest(tricks: Mapping[str, Submit], interval: int = 1) -> dict[str, Submit]:
    """Return these students, an honest one before and after all, and one after each `interval`."""
    students: dict[str, Submit] = {name: honest(name) for name in ("aaa_honest", "zzz_honest")}
    for number, (name, submit) in enumerate(tricks.items(), 1):
        students[name] = submit
        if interval and number % interval == 0:
            students[f"{name}~honest"] = honest(name)
    return students


@pytest.fixture(scope="session")
def classes(once: Callable[[str, Callable[[Path], None]], Path]) -> Classes:
    """Return the graded classes, shared by all tests of this folder."""
    # there is no box to attack
    assert shutil.which("bwrap"), "bubblewrap (the command bwrap) is not installed"
    return Classes(once)
