"""Internal: `course verify --changed` tries the claims again that failed, or whose files changed.

The claims about files are one group, and the claims about the mutants and attempts of an exercise
are another. A group that passed and is unchanged is skipped, and a line says so.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from manyheads.authoring import remembered_steps
from manyheads.authoring.verify import remembered_passes, run_claims
from manyheads.authoring.verify.remembered_passes import ClaimGroup, claim_groups
from manyheads.authoring.verify.run_claims import Line, verify_course
from manyheads.course import load_course
from manyheads.files import CourseFault, write_whole
from tests.authoring.conftest import release_course
from tests.make import TINY, add, cases, copy_course, edit, with_last_mean, write

FILES, FIRST, SECOND = "files", "running_mean", "last_mean"
SKIPPED = re.compile(
    r"· (\w+) +claims about [\w ]+? +unchanged since they passed on \d{4}-\d\d-\d\d \d\d:\d\d"
)
ONE_MORE_CHECK = '''

@check(points=1, layer="hygiene")
def test_anything(attempt, draw):
    """gives anything"""
    attempt.running_mean(draw(3)).must_return()
'''
FEW = ("--seeds", "1", "--pairs", "1")


def claim_line(subject: str, *failures: str) -> Line:
    """Return the outcome of a claim with one case, which fails if there is a failure."""
    return Line(subject, "holds", "course release", 1.0, total=1, failures=[*failures])


class RecordedRun:
    """Stands for pytest: notes which claims would run, and returns their lines.

    Attributes:
        failing: the subjects with a broken claim.
        tried: the subjects of the last run. The claims about files have the subject "files".
    """

    def __init__(self, failing: Iterable[str] = ()) -> None:
        self.failing = {*failing}
        self.tried = set[str]()

    def __call__(self, arguments: list[str], show_line: Callable[[Line], object]) -> list[Line]:
        options = [argument.partition("=") for argument in arguments]
        ids = {value for name, _, value in options if name == "--exercise"}
        ids -= {value for name, _, value in options if name == "--unchanged"}
        files = [Path(argument).name for argument in arguments]
        self.tried = ids if "test_bank.py" in files and "test_attempts.py" in files else set()
        if "test_files.py" in files:
            self.tried |= {FILES}
        return [
            claim_line(subject, *(["fails"] if subject in self.failing else []))
            for subject in sorted(self.tried)
        ]


@pytest.fixture(scope="module")
def released_means(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a released course with two exercises. Tests must not write to it."""
    folder = copy_course(TINY, tmp_path_factory.mktemp("changed") / "tiny")
    with_last_mean(folder)
    release_course(folder)
    return folder


@pytest.fixture
def folder(released_means: Path, tmp_path: Path) -> Path:
    """The folder of a released course with two exercises, to write to."""
    return copy_course(released_means, tmp_path / "tiny")


@pytest.fixture
def recorded_run(monkeypatch: pytest.MonkeyPatch) -> RecordedRun:
    """A run that stands for pytest, in which every claim holds."""
    run = RecordedRun()
    monkeypatch.setattr(run_claims, "run_claims", run)
    return run


def verify_changed(folder: Path, run: RecordedRun, *ids: str, seeds: int = 5) -> set[str]:
    """Verify the changed parts of a course, and return the subjects of the claims that were tried.

    ids: the exercises, or none for all.
    """
    course = load_course(folder)
    exercises = [e for e in course.exercises if not ids or e.id in ids]
    run.tried = set()
    verify_course(course, exercises, lambda line: None, seeds=seeds, only_changed=True)
    return run.tried


def groups_of(folder: Path) -> list[ClaimGroup]:
    course = load_course(folder)
    return claim_groups(course, course.exercises, 5, 40)


@pytest.mark.journey
def test_the_command_skips_claims_that_passed_and_says_since_when(run_course, tiny_copy):
    assert run_course("release", cwd=tiny_copy).returncode == 0
    passed = run_course("verify", *FEW, cwd=tiny_copy)
    assert (passed.returncode, "unchanged" in passed.stdout) == (0, False)
    again = run_course("verify", "--changed", *FEW, cwd=tiny_copy)
    *lines, summary = again.stdout.splitlines()
    assert [SKIPPED.fullmatch(line)[1] for line in lines] == [FILES, FIRST]
    assert (again.returncode, summary) == (0, "Every claim holds.")
    add("exercises/averages/01_running_mean.py", "x = 1\n")(tiny_copy)
    for _ in range(2):  # a failure is not remembered
        failed = run_course("verify", "--changed", "01", *FEW, cwd=tiny_copy)
        skipped, *lines, summary = failed.stdout.splitlines()
        assert SKIPPED.fullmatch(skipped)[1] == FIRST
        assert len(lines) > 10
        assert (failed.returncode, summary) == (1, "1 claim does not hold.")


def test_a_second_run_tries_nothing(folder, recorded_run):
    assert verify_changed(folder, recorded_run) == {FILES, FIRST, SECOND}
    assert verify_changed(folder, recorded_run) == set()
    assert (folder / ".course").stat().st_mode & 0o077 == 0


def test_a_run_without_the_option_tries_everything_and_remembers_it(folder, recorded_run):
    course = load_course(folder)
    for _ in range(2):
        verify_course(course, course.exercises, lambda line: None)
        assert recorded_run.tried == {FILES, FIRST, SECOND}
    assert verify_changed(folder, recorded_run) == set()


@cases(
    "change, tried",
    {
        "the reference": (
            add("solutions/averages/01_running_mean.py", "# why\n"),
            {FILES, FIRST},
        ),
        "the checks": (add("grader/checks/test_running_mean.py", "# why\n"), {FILES, FIRST}),
        "the mutants": (add("grader/misconceptions/running_mean.py", "# why\n"), {FILES, FIRST}),
        "a right attempt": (add("grader/right/running_mean/loop.py", "# why\n"), {FILES, FIRST}),
        "a wrong attempt": (add("grader/wrong/running_mean/median.py", "# why\n"), {FILES, FIRST}),
        "a new right attempt": (
            write("grader/right/running_mean/new.py", "import torch\n"),
            {FILES, FIRST},
        ),
        "a right attempt less": (
            lambda folder: (folder / "grader/right/running_mean/loop.py").unlink(),
            {FILES, FIRST},
        ),
        "a file of all checks": (
            add("grader/checks/conftest.py", "# why\n"),
            {FILES, FIRST, SECOND},
        ),
        "the recording": (
            add("exercises/averages/fingerprints/01_running_mean.safetensors", " "),
            {FILES, FIRST},
        ),
        "the stub": (add("exercises/averages/01_running_mean.py", "# why\n"), {FILES}),
        "the notebook": (add("exercises/averages/01_running_mean.ipynb", " "), {FILES}),
        "the words of misconceptions": (add("grader/texts.yaml", "# why\n"), {FILES}),
        "a page of docs/": (lambda folder: write_whole(folder / "docs/why.md", b"why"), {FILES}),
        "a folder of no exercise": (
            lambda folder: (folder / "grader/right/mean").mkdir(),
            {FILES},
        ),
        "an exercise's row of course.yaml": (
            edit("course.yaml", "title: The running mean", "title: A running mean"),
            {FILES, FIRST},
        ),
        "the limits of course.yaml": (
            edit("course.yaml", "seconds_per_call: 2", "seconds_per_call: 3"),
            {FILES, FIRST, SECOND},
        ),
    },
)
def test_changed_files_are_verified_again(folder, recorded_run, change, tried):
    verify_changed(folder, recorded_run)
    change(folder)
    assert verify_changed(folder, recorded_run) == tried


def test_another_engine_is_verified_again(folder, recorded_run, monkeypatch, tmp_path):
    verify_changed(folder, recorded_run)
    engine = copy_course(remembered_steps.ENGINE, tmp_path / "engine")
    monkeypatch.setattr(remembered_steps, "ENGINE", engine)
    for name in ("box/wire.py", "checks/kinds.yaml"):
        remembered_steps.environment_digest.cache_clear()
        add(name, "\n")(engine)
        assert verify_changed(folder, recorded_run) == {FILES, FIRST, SECOND}
        assert verify_changed(folder, recorded_run) == set()
    remembered_steps.environment_digest.cache_clear()


def test_another_number_of_seeds_or_another_exercise_is_verified_again(folder, recorded_run):
    assert verify_changed(folder, recorded_run, FIRST) == {FILES, FIRST}
    assert verify_changed(folder, recorded_run, FIRST) == set()
    assert verify_changed(folder, recorded_run) == {FILES, SECOND}, "some claims need all"
    assert verify_changed(folder, recorded_run, seeds=6) == {FIRST, SECOND}


@cases(
    "failing, tried",
    {
        "an exercise": ({FIRST}, {FILES, FIRST}),
        "files": ({FILES}, {FILES}),
        "all": ({FILES, FIRST, SECOND}, {FILES, FIRST, SECOND}),
    },
)
def test_a_failure_is_verified_again_and_then_remembered(folder, recorded_run, failing, tried):
    verify_changed(folder, recorded_run)
    course = load_course(folder)
    recorded_run.failing = failing
    verify_course(course, course.exercises, lambda line: None)  # a failure forgets what passed
    assert verify_changed(folder, recorded_run) == tried
    recorded_run.failing = set()
    assert verify_changed(folder, recorded_run) == tried
    assert verify_changed(folder, recorded_run) == set()


def test_an_error_forgets_what_passed(folder, recorded_run, monkeypatch):
    def end(*arguments: object) -> None:
        raise CourseFault("a process ended. Next: course verify")

    verify_changed(folder, recorded_run)
    course = load_course(folder)
    with monkeypatch.context() as patch:
        patch.setattr(run_claims, "run_claims", end)
        with pytest.raises(CourseFault):
            verify_course(course, course.exercises, lambda line: None)
    assert verify_changed(folder, recorded_run) == {FILES, FIRST, SECOND}


def test_an_exercise_with_a_stale_recording_is_not_remembered(folder, recorded_run):
    """The claims about its mutants are not tried."""
    add("grader/right/running_mean/loop.py", "SIZE = 3\n")(folder)
    assert verify_changed(folder, recorded_run) == {FILES, FIRST, SECOND}
    assert verify_changed(folder, recorded_run) == {FIRST}


def test_if_points_do_not_add_up_no_exercise_is_remembered(folder, recorded_run):
    add("grader/checks/test_running_mean.py", ONE_MORE_CHECK)(folder)
    assert verify_changed(folder, recorded_run) == set(), "only two claims about points are tried"
    assert not any(group.passed_at() for group in groups_of(folder)[1:])


@cases(
    "content",
    {
        "nothing": b"",
        "no UTF-8": b"\xff\xfe",
        "half of it": None,
        "another digest": b"0" * 64 + b" 2026-12-01 03:00",
    },
)
def test_a_damaged_memory_remembers_nothing(folder, recorded_run, content):
    verify_changed(folder, recorded_run)
    for group in groups_of(folder):
        half = group.path.read_bytes()[:32]
        group.path.write_bytes(half if content is None else content)
    assert verify_changed(folder, recorded_run) == {FILES, FIRST, SECOND}


def test_a_course_that_cannot_be_written_is_verified_anyway(folder, recorded_run, monkeypatch):
    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(remembered_passes, "write_whole", refuse)
    assert verify_changed(folder, recorded_run) == {FILES, FIRST, SECOND}
    assert verify_changed(folder, recorded_run) == {FILES, FIRST, SECOND}
