"""The zip of `course release --gradescope`, unpacked and run as Gradescope does it."""

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.make import COURSE, TINY, add, copy_course, edit_text, replace, run

SCRIPT, HANDED_IN = "01_running_mean.py", "2026-12-03T10:00:00.365935-08:00"
RIGHT = (TINY / "solutions" / "averages" / SCRIPT).read_bytes()
WRONG = next((TINY / "grader" / "wrong" / "running_mean").glob("*.py")).read_bytes()

pytestmark = pytest.mark.journey

# The keys that https://gradescope-autograders.readthedocs.io/en/latest/specs/ allows.
RESULT_KEYS = {
    *"score execution_time output output_format visibility stdout_visibility tests".split()
}
TEST_KEYS = {*"score max_score status name name_format number output output_format".split()}


@dataclass(frozen=True)
class FakeContainer:
    """A stand-in for Gradescope's container: a temporary folder with its folders and programs."""

    root: Path
    programs: Path  # comes before all others on PATH
    zip: Path

    def unpack(self) -> None:
        """Unpack the zip into source/ and copy run_autograder beside it, as an image build does."""
        for name in ("source", "submission", "results"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).mkdir(mode=0o755)
        with zipfile.ZipFile(self.zip) as archive:
            for member in archive.infolist():
                mode = member.external_attr >> 16
                Path(archive.extract(member, self.root / "source")).chmod(mode)
        shutil.copy2(self.root / "source" / "run_autograder", self.root)

    def setup(self) -> None:
        """Run setup.sh."""
        self._run(
            self.root / "source" / "setup.sh", f"{self.programs}:{os.environ['PATH']}"
        ).check_returncode()

    def grade(
        self, files: Mapping[str, bytes], has_bubblewrap: bool = True
    ) -> tuple[dict, subprocess.CompletedProcess[str]]:
        """Submit files, run run_autograder, and return results.json and the completed process.

        Args:
            files: the content of each submitted file by name.
            has_bubblewrap: False hides bubblewrap, by a PATH with bash alone.
        """
        metadata = {
            "id": 1,
            "created_at": HANDED_IN,
            "users": [{"email": "ada@example.org", "id": 7, "name": "Ada"}],
        }
        (self.root / "submission_metadata.json").write_text(json.dumps(metadata))
        for name, content in files.items():
            target = self.root / "submission" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        path = os.environ["PATH"] if has_bubblewrap else str(self.programs)
        completed = self._run(self.root / "run_autograder", path)
        return json.loads((self.root / "results" / "results.json").read_text()), completed

    def _run(self, program: Path, path: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "AUTOGRADER_ROOT": str(self.root),
            "PATH": path,
            "PIP_NO_INDEX": "1",
            "PYTHON": str(self.programs / "python"),
        }
        streams = {"capture_output": True, "text": True}
        return subprocess.run([program], cwd=self.root, env=environment, check=False, **streams)

    @property
    def course(self) -> Path:
        """Return the folder of the course in the container."""
        return self.root / "source" / "course"


@pytest.fixture(scope="module")
def built_container() -> Iterator[FakeContainer]:
    """Build the stand-in once: unpack the zip and run setup.sh, in a folder such as /autograder.

    Every user may enter it.
    """
    root = Path(tempfile.mkdtemp(prefix="autograder-"))
    root.chmod(0o755)
    course = copy_course(TINY, root / "tiny")
    # it names a student, so it must not be in the zip
    (course / "overrides.yaml").write_text("- {student: zoe, exercise: running_mean, score: 1}\n")
    container = FakeContainer(root / "autograder", root / "programs", root / "autograder.zip")
    container.root.mkdir(mode=0o755)
    write_programs(container.programs)
    run(*COURSE, "release", "--gradescope", container.zip, cwd=course).check_returncode()
    container.unpack()
    container.setup()
    yield container
    shutil.rmtree(root)


def write_programs(folder: Path) -> None:
    """Write the programs of the container.

    They are bash, an apt-get that installs nothing, and a Python whose new virtual environments
    find the packages of the current one.
    """
    folder.mkdir(mode=0o755)
    (folder / "bash").symlink_to(shutil.which("bash") or "/bin/bash")
    site = sysconfig.get_path("purelib")
    inner = Path(sysconfig.get_path("purelib", vars={"base": "", "platbase": ""})).relative_to("/")
    python = (
        "#!/bin/sh\n"
        'if [ "$1 $2" = "-m venv" ]; then\n'
        f'    {sys.executable} -m venv --without-pip "$3"; echo {site} '
        f'>"$3/{inner}/everything.pth"; exit\n'
        f'fi\nexec {sys.executable} "$@"\n'
    )
    for name, text in (("python", python), ("apt-get", "#!/bin/sh\nexit 1\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


@pytest.fixture
def container(built_container: FakeContainer) -> FakeContainer:
    """Return the container in its initial state, with nothing submitted."""
    built_container.unpack()
    return built_container


@pytest.fixture
def is_root() -> None:
    """Skip the test unless it can start a process as another user.

    This needs root, and an environment that another user may enter.
    """
    if os.geteuid():
        pytest.skip("this is not root, which alone can start a process as another user")
    site = Path(sysconfig.get_path("purelib"))
    if not all(path.stat().st_mode & stat.S_IXOTH for path in (site, *site.parents)):
        pytest.skip(f"no other user may enter {site}")


def test_results_json_follows_the_gradescope_specification(container: FakeContainer) -> None:
    results, completed = container.grade({SCRIPT: WRONG})
    tests = results["tests"]
    assert (completed.returncode, completed.stderr) == (0, "")
    assert results.keys() <= RESULT_KEYS
    assert (results["visibility"], results["stdout_visibility"]) == ("visible", "hidden")
    for entry in tests:
        assert entry.keys() == TEST_KEYS
        assert entry["status"] in ("passed", "failed")
        assert "running_mean" not in entry["name"]
    for entry in [results, *tests]:
        assert isinstance(entry["score"], float)
        assert isinstance(entry["output"], str)
    assert [test["number"] for test in tests] == ["1.1", "1.2", "1.3", "1.4"]
    assert results["score"] == sum(test["score"] for test in tests) < 4
    assert "isolation: namespaces\nYour code ran in a box of its own" in results["output"]


DRAFTS = {
    "draft.py": WRONG,
    "averages/draft.py": WRONG,
    f"averages/{SCRIPT}": RIGHT,
    "plot.py": b"print(1)\n",
    "notes.txt": b"Hello\n",
}


# row: (submitted files, score, phrases in the output)
HAND_INS = {
    "a name with a number added by a browser": ({"running_mean (1).py": RIGHT}, 4, []),
    "a single script in nested folders": ({"a/b/solution.py": RIGHT}, 4, []),
    "the exercise's own file comes first": (
        DRAFTS,
        4,
        [
            "not graded: draft.py is not graded: another file is of the same exercise",
            "not graded: averages/draft.py is not graded: another file",
            "not graded: plot.py has no exercise's name",
            "1 other file is no script and no notebook",
        ],
    ),
    "a damaged zip": (
        {"work.zip": b"PK no zip"},
        None,
        ["work.zip is not opened: it is damaged", "Next: hand in the files themselves"],
    ),
    "no file": ({}, 0, []),
    "a text of a word processor": (
        {"running_mean.docx": b"PK"},
        None,
        ["not graded: running_mean.docx is no script and no notebook"],
    ),
}


@pytest.mark.parametrize(
    ("files", "score", "phrases"),
    HAND_INS.values(),
    ids=HAND_INS,
)
def test_each_submitted_file_is_graded_or_reported(
    container: FakeContainer, files: dict[str, bytes], score: float | None, phrases: list[str]
) -> None:
    results, completed = container.grade(files)
    assert results.get("score") == score
    assert [phrase for phrase in phrases if phrase not in results["output"]] == []
    assert "put the files into" not in results["output"], "this advice is for instructors"
    if not files:
        assert completed.returncode == 0


def add_assignment_of_medians(course: Path) -> None:
    """Add a second assignment, Medians: a copy of the first one under other names."""
    course_yaml = (course / "course.yaml").read_text()
    new_names = ("averages", "medians"), ("Averages", "Medians"), ("running_mean", "running_median")
    renamed = edit_text(course_yaml, *new_names)
    second_assignment = renamed[renamed.index("  - id: medians") :]
    (course / "course.yaml").write_text(course_yaml + second_assignment)
    checks = course / "grader" / "checks" / "test_running_mean.py"
    renamed_checks = checks.read_text().replace("running_mean", "running_median")
    checks.with_name("test_running_median.py").write_text(renamed_checks)


def test_files_of_another_assignment_are_reported_without_a_score(container: FakeContainer) -> None:
    """Work submitted to the wrong assignment was once scored 0 of 40 without an explanation."""
    add_assignment_of_medians(container.course)
    reason = "not graded: 01_running_median.py is of Medians, not of this one"
    results, completed = container.grade(
        {"01_running_median.py": b"def running_median(x):\n    return x\n"}
    )
    assert not {"score", "tests"} & results.keys()
    assert results["output"].startswith("Nothing was graded, for no file is of this assignment")
    assert reason in results["output"]
    assert completed.returncode == 1
    # the file of Medians is still among the submitted files
    results, _ = container.grade({SCRIPT: RIGHT})
    assert results["score"] == 4
    assert reason in results["output"]


def test_the_late_penalty_is_applied_only_once(container: FakeContainer) -> None:
    with_due_date = "id: averages\n    due: 2026-12-01 18:00 -08:00\n"
    replace(container.course / "course.yaml", "id: averages\n", with_due_date)
    add("course.yaml", "\nlate: {per_day: 25%, at_most: 50%}\n")(container.course)
    results, _ = container.grade({SCRIPT: RIGHT})
    assert (sum(test["score"] for test in results["tests"]), results["score"]) == (4, 2)
    assert "2 days late, −50%" in results["output"]


STEALING = """
import contextlib
for path in ("results/results.json", "results/mine", "source/mine", "venv/mine", "run_autograder"):
    with contextlib.suppress(OSError):
        open({root!r} + "/" + path, "w").close()
exec(open({root!r} + "/source/course/solutions/averages/01_running_mean.py").read())
"""


@pytest.mark.usefixtures("is_root")
def test_without_bubblewrap_code_runs_as_a_user_without_access(container: FakeContainer) -> None:
    original = (container.root / "run_autograder").read_bytes()
    results, completed = container.grade(
        {SCRIPT: STEALING.format(root=str(container.root)).encode()}, has_bubblewrap=False
    )
    assert (results["score"], completed.returncode) == (0, 0)
    assert "isolation: user\nYour code ran as a user of its own" in results["output"]
    assert [path.name for path in (container.root / "results").iterdir()] == ["results.json"]
    assert (container.root / "run_autograder").read_bytes() == original
    assert not list(container.root.glob("*/mine"))
    assert container.grade({SCRIPT: RIGHT}, has_bubblewrap=False)[0]["score"] == 4


def test_a_grader_failure_is_not_blamed_on_the_student(container: FakeContainer) -> None:
    (container.course / "course.yaml").write_text("title: [\n")
    results, completed = container.grade({SCRIPT: RIGHT})
    assert completed.returncode == 2
    assert results["output"].startswith(
        "Nothing was graded. The grader itself failed; your code is not the reason."
    )
    assert "Traceback" not in completed.stderr
    assert "course.yaml" in completed.stderr


def test_no_score_is_reported_if_a_check_itself_crashes(container: FakeContainer) -> None:
    checks = container.course / "grader" / "checks" / "test_running_mean.py"
    replace(checks, "x = draw(draw.integer(5, 9))", "x = 1 / 0")
    results, completed = container.grade({SCRIPT: RIGHT})
    assert completed.returncode == 1
    assert not {"score", "tests"} & results.keys()
    assert results["output"].startswith(
        "not graded: 01 The running mean: the grader itself failed here\n"
    )
    assert "ZeroDivisionError" in completed.stdout, "Gradescope shows it to instructors only"


def test_the_zip_contains_the_grader_but_no_class_data(built_container: FakeContainer) -> None:
    with zipfile.ZipFile(built_container.zip) as archive:
        names = {*archive.namelist()}
    assert names > {
        "setup.sh",
        "run_autograder",
        "engine.sha256",
        f"course/solutions/averages/{SCRIPT}",
    }
    # overrides.yaml names students, and grading needs no notebook
    assert not [name for name in names if "overrides" in name or name.endswith(".ipynb")]
    assert stat.S_IMODE(built_container.zip.stat().st_mode) == 0o600
