"""Gradescope's autograder: the zip that `course release --gradescope` makes, laid out and run as
Gradescope does it.
"""

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

from tests.make import COURSE, TINY, copy_course, run

SCRIPT, HANDED_IN = "01_running_mean.py", "2026-12-03T10:00:00.365935-08:00"
RIGHT = (TINY / "solutions" / "averages" / SCRIPT).read_bytes()
WRONG = next((TINY / "grader" / "wrong" / "running_mean").glob("*.py")).read_bytes()

pytestmark = pytest.mark.journey

# What https://gradescope-autograders.readthedocs.io/en/latest/specs/ lists.
OF_ALL = {*"score execution_time output output_format visibility stdout_visibility tests".split()}
OF_A_TEST = {*"score max_score status name name_format number output output_format".split()}


@dataclass(frozen=True)
class Container:
    """Gradescope's folders, with a Python that finds what this test's has, and no network."""

    root: Path
    programs: Path  # comes before all others on PATH
    zip: Path

    def unpack(self) -> None:
        """As when the image is built: the zip to source/, run_autograder beside it."""
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
        """Hand these in and run run_autograder, with bash alone on PATH where bubblewrap is not to
        be found. Returns results.json.
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
        return subprocess.run(
            [program], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def built_image() -> Iterator[Container]:
    """The image, built once. It stands where every user may enter, as /autograder does."""
    root = Path(tempfile.mkdtemp(prefix="autograder-"))
    root.chmod(0o755)
    course = copy_course(TINY, root / "tiny")
    (course / "overrides.yaml").write_text("- {student: zoe, exercise: running_mean, score: 1}\n")
    container = Container(root / "autograder", root / "programs", root / "autograder.zip")
    container.root.mkdir(mode=0o755)
    _programs(container.programs)
    run(*COURSE, "release", "--gradescope", container.zip, cwd=course).check_returncode()
    container.unpack()
    container.setup()
    yield container
    shutil.rmtree(root)


def _programs(folder: Path) -> None:
    """bash; an apt-get that installs nothing; a Python whose new environments find what this one
    has.
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
def container(built_image: Container) -> Container:
    """A fresh one, with nothing handed in."""
    built_image.unpack()
    return built_image


@pytest.fixture
def is_root() -> None:
    """Level user needs root, and an environment that another user may enter."""
    if os.geteuid():
        pytest.skip("this is not root, which alone can start a process as another user")
    site = Path(sysconfig.get_path("purelib"))
    if not all(path.stat().st_mode & stat.S_IXOTH for path in (site, *site.parents)):
        pytest.skip(f"no other user may enter {site}")


def test_it_writes_what_gradescope_specifies(container: Container) -> None:
    results, completed = container.grade({SCRIPT: WRONG})
    assert (completed.returncode, completed.stderr) == (0, "")
    assert results.keys() <= OF_ALL
    assert (results["visibility"], results["stdout_visibility"]) == ("visible", "hidden")
    assert all(
        test.keys() == OF_A_TEST and test["status"] in ("passed", "failed")
        for test in results["tests"]
    )
    assert {
        type(entry[name]) for entry in [results, *results["tests"]] for name in ("score", "output")
    } == {float, str}
    assert [test["number"] for test in results["tests"]] == ["1.1", "1.2", "1.3", "1.4"]
    assert results["score"] == sum(test["score"] for test in results["tests"]) < 4
    assert "isolation: namespaces\nYour code ran in a box of its own" in results["output"]
    assert "running_mean" not in "".join(test["name"] for test in results["tests"])


DRAFTS = {
    "draft.py": WRONG,
    "averages/draft.py": WRONG,
    f"averages/{SCRIPT}": RIGHT,
    "plot.py": b"print(1)\n",
    "notes.txt": b"Hello\n",
}


@pytest.mark.parametrize(
    ("files", "score", "says"),
    [
        pytest.param({"running_mean (1).py": RIGHT}, 4, [], id="as a browser calls it"),
        pytest.param({"a/b/solution.py": RIGHT}, 4, [], id="alone in folders"),
        pytest.param(
            DRAFTS,
            4,
            [
                "not graded: draft.py is not graded: another file is of the same exercise",
                "not graded: averages/draft.py is not graded: another file",
                "not graded: plot.py has no exercise's name",
                "1 other file is no script and no notebook",
            ],
            id="the exercise's own file comes first",
        ),
        pytest.param(
            {"work.zip": b"PK no zip"},
            None,
            ["work.zip is not opened: it is damaged", "Next: hand in the files themselves"],
            id="what cannot be read",
        ),
        pytest.param({}, 0, [], id="nothing"),
        pytest.param(
            {"running_mean.docx": b"PK"},
            None,
            ["not graded: running_mean.docx is no script and no notebook"],
            id="a text of a word processor",
        ),
    ],
)
def test_whatever_is_handed_in_is_found_or_named(
    container: Container, files: dict[str, bytes], score: float | None, says: list[str]
) -> None:
    results, completed = container.grade(files)
    assert results.get("score") == score
    assert [phrase for phrase in says if phrase not in results["output"]] == []
    assert "put the files into" not in results["output"], "which is for instructors"
    assert files or completed.returncode == 0


def test_files_of_the_other_assignment_are_named_and_nothing_is_scored(
    container: Container,
) -> None:
    """0 of 40 was once entered without a word, for work that was handed in at the wrong slot."""
    course = container.root / "source" / "course"
    rows, checks = course / "course.yaml", course / "grader" / "checks"
    text, check_text = rows.read_text(), (checks / "test_running_mean.py").read_text()
    for old, new in (
        ("averages", "medians"),
        ("Averages", "Medians"),
        ("running_mean", "running_median"),
    ):
        text, check_text = text.replace(old, new), check_text.replace(old, new)
    rows.write_text(rows.read_text() + text[text.index("  - id: medians") :])
    (checks / "test_running_median.py").write_text(check_text)
    named = "not graded: 01_running_median.py is of Medians, not of this one"
    results, completed = container.grade(
        {"01_running_median.py": b"def running_median(x):\n    return x\n"}
    )
    assert not {"score", "tests"} & results.keys()
    assert results["output"].startswith("Nothing was graded, for no file is of this assignment")
    assert named in results["output"]
    assert completed.returncode == 1
    results, _ = container.grade({SCRIPT: RIGHT})
    assert results["score"] == 4
    assert named in results["output"]


def test_a_late_submission_loses_its_share_once(container: Container) -> None:
    course = container.root / "source" / "course" / "course.yaml"
    dated = course.read_text().replace(
        "id: averages\n", "id: averages\n    due: 2026-12-01 18:00 -08:00\n"
    )
    course.write_text(f"{dated}\nlate: {{per_day: 25%, at_most: 50%}}\n")
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
def test_without_bubblewrap_it_is_another_user_who_reaches_nothing(container: Container) -> None:
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


def test_where_the_grader_fails_the_student_is_told_that_it_is_not_the_code(
    container: Container,
) -> None:
    (container.root / "source" / "course" / "course.yaml").write_text("title: [\n")
    results, completed = container.grade({SCRIPT: RIGHT})
    assert completed.returncode == 2
    assert results["output"].startswith(
        "Nothing was graded. The grader itself failed; your code is not the reason."
    )
    assert "Traceback" not in completed.stderr
    assert "course.yaml" in completed.stderr


def test_where_a_check_fails_by_itself_there_is_no_score_to_enter(container: Container) -> None:
    checks = container.root / "source" / "course" / "grader" / "checks" / "test_running_mean.py"
    original = checks.read_text(encoding="utf-8")
    checks.write_text(
        original.replace("x = draw(draw.integer(5, 9))", "x = 1 / 0"), encoding="utf-8"
    )
    results, completed = container.grade({SCRIPT: RIGHT})
    assert completed.returncode == 1
    assert not {"score", "tests"} & results.keys()
    assert results["output"].startswith(
        "not graded: 01 The running mean: the grader itself failed here\n"
    )
    assert "ZeroDivisionError" in completed.stdout, "which Gradescope shows to instructors alone"


def test_the_zip_holds_the_grader_and_nothing_of_the_class(built_image: Container) -> None:
    with zipfile.ZipFile(built_image.zip) as archive:
        names = archive.namelist()
    assert {
        "setup.sh",
        "run_autograder",
        "engine.sha256",
        "course/solutions/averages/01_running_mean.py",
    } <= set(names)
    assert not [name for name in names if "overrides" in name or name.endswith(".ipynb")]
    assert stat.S_IMODE(built_image.zip.stat().st_mode) == 0o600
