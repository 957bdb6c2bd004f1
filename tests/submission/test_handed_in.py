"""The time of a submission comes from platforms, names or commits, never from the file itself."""

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from manyheads.course import Course
from manyheads.result import HandedIn
from manyheads.submission import collect_downloads, find_submissions
from manyheads.submission.collect_downloads import collect
from manyheads.submission.intake_journal import IntakeJournal, Origin, handed_in, read_journal
from tests.make import cases, git

from .conftest import DANCE, FILE, listed, zip_bytes

TIMES = (
    "2026-11-20 10:11:12.345678000 -08:00",
    "2026-11-20 10:11:12",
    "2026-11-20 18:11:12.345678000 Z",
)
ROW = "submission_{}:\n  :submitters:\n  - :sid: {}\n  :created_at: {}\n"
GRADESCOPE = "".join(map(ROW.format, (1, 2, 3), ("ada", "bela", "chen"), TIMES))


@pytest.fixture(scope="session")
def course_of_one_assignment(real_course: Course) -> Course:
    """Return the real course with its first assignment only."""
    only = real_course.file.assignments[:1]
    return replace(real_course, file=real_course.file.model_copy(update={"assignments": only}))


@pytest.fixture
def submission_times(
    course_of_one_assignment: Course, out_folder: Path
) -> Callable[..., dict[str, tuple[str, str]]]:
    """Return a function that gives the time of each student's submission, and its source."""

    def find_times() -> dict[str, tuple[str, str]]:
        times = handed_in(
            find_submissions(course_of_one_assignment, out_folder)[0], read_journal(out_folder)
        )
        return {submission.student: _time_and_source(time) for submission, time in times.items()}

    return find_times


def _time_and_source(time: HandedIn) -> tuple[str, str]:
    """Return the time as text, and who reported it, for example a platform."""
    if time.late:
        return "late", time.source
    return f"{time.time:%Y-%m-%dT%H:%M:%S}" if time.time else "in time", time.source


def write_dance(out: Path, student: str, stamp: str = "") -> Path:
    """Write a submission of reshape_dance. stamp: the text of timestamp.txt, if any."""
    folder = out / student / "multi_head_attention"
    folder.mkdir(parents=True)
    (folder / "04_reshape_dance.py").write_text(DANCE)
    if stamp:
        (folder / "timestamp.txt").write_text(stamp)
    return folder


def test_the_modification_time_of_a_file_is_not_used(out_folder, submission_times):
    os.utime(write_dance(out_folder, "ada") / "04_reshape_dance.py", (0, 0))
    assert submission_times() == {}


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("2026-12-01 18:00:00.123456 UTC\n", "2026-12-01T18:00:00"),
        ("2026-12-01 18:00:00 Europe/Berlin", "2026-12-01T17:00:00"),
        ("2026-12-01 18:00:00 +0100", "2026-12-01T17:00:00"),
        ("2026-12-01 18:00:00", "2026-12-01T18:00:00"),
        ("the dog ate it", None),
        ("2026-12-01 18:00:00 CEST", None),  # CEST is not a unique time zone
        ("9999-99-99", None),
    ],
)
def test_the_time_in_nbgraders_timestamp_file_is_used(out_folder, submission_times, stamp, time):
    write_dance(out_folder, "ada", stamp)
    assert submission_times() == ({} if time is None else {"ada": (time, "timestamp.txt")})


def test_gradescopes_time_is_used_if_it_has_a_time_zone(collect_zip, submission_times):
    files = {f"submission_{i}/04_reshape_dance.py": DANCE for i in (1, 2, 3)}
    collect_zip({"submission_metadata.yml": GRADESCOPE, **files})
    expected = ("2026-11-20T18:11:12", "Gradescope")
    assert submission_times() == {"ada": expected, "chen": expected}, (
        "Ruby writes UTC as a Z after a blank"
    )


def test_canvas_marks_late_files_and_all_others_are_in_time(collect_zip, submission_times):
    collect_zip(listed("ada_LATE_1_10_* | bela_2_11_*"))
    assert submission_times() == {"ada_1": ("late", "Canvas"), "bela_2": ("in time", "Canvas")}


def test_the_latest_time_of_several_files_counts_with_its_platform(
    course_of_one_assignment, out_folder
):
    write_dance(out_folder, "ada")
    (submission,) = find_submissions(course_of_one_assignment, out_folder)[0]
    origins = {
        "04_reshape_dance.py": Origin(platform="Gradescope", handed_in="2026-11-20T18:00Z"),
        "01_attention_scores.py": Origin(platform="Moodle", handed_in="2026-11-21T18:00Z"),
    }
    journal = IntakeJournal(
        out_folder / "journal",
        files={f"ada/multi_head_attention/{name}": origin for name, origin in origins.items()},
    )
    time = handed_in([submission], journal)[submission]
    assert _time_and_source(time) == ("2026-11-21T18:00:00", "Moodle")


TEN, ELEVEN = "2026-11-20T10:00:00+01:00", "2026-11-20T11:00:00+01:00"


def forge_commit(clone: Path, commit: str, change: Callable[[str], str]) -> None:
    """Replace the head of main by a copy of this commit whose text is changed."""
    text = change(git(clone, "cat-file", "commit", commit))
    command = ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    new_commit = subprocess.run(
        command, cwd=clone, input=text, capture_output=True, text=True, check=True
    ).stdout
    assert new_commit.strip() != git(clone, "rev-parse", commit)
    (clone / ".git" / "refs" / "heads" / "main").write_text(new_commit)


@pytest.fixture
def student_clone(tmp_path: Path) -> Path:
    """Return a student's repository: the attempt is committed at 10:00, the README at 11:00."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    folder = tmp_path / "all-submissions" / "hw-ada"
    write_dance(folder, "exercises")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "done", at=TEN)
    (folder / "README.md").write_text("mine")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "more", at=ELEVEN)
    return folder


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_last_commit_that_changed_an_attempt_gives_a_clones_time(
    collect_files, student_clone, tmp_path, submission_times, is_packed
):
    if is_packed:
        git(student_clone, "gc")
        git(student_clone, "pack-refs", "--all")
    collect_files(student_clone.parent)
    assert submission_times() == {"hw-ada": ("2026-11-20T09:00:00", "clones")}


def test_a_shallow_clone_has_the_time_of_its_only_commit(
    collect_files, student_clone, tmp_path, submission_times
):
    (tmp_path / "shallow").mkdir()
    git(
        tmp_path,
        "clone",
        "--depth",
        "1",
        f"file://{student_clone}",
        str(tmp_path / "shallow" / "hw-ada"),
    )
    collect_files(tmp_path / "shallow")
    assert submission_times() == {"hw-ada": ("2026-11-20T10:00:00", "clones")}


def test_programs_in_a_clones_git_configuration_are_not_run(
    collect_files, student_clone, tmp_path, submission_times
):
    witness, program = tmp_path / "witness", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {witness}\n")
    program.chmod(0o755)
    signed = "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n"
    forge_commit(student_clone, "HEAD", lambda text: text.replace("\n\n", signed, 1))
    configuration = (
        f"[log]\n showSignature = true\n[gpg]\n program = {program}\n[core]\n"
        f" fsmonitor = {program}\n"
    )
    with (student_clone / ".git" / "config").open("a") as file:
        file.write(f"{configuration} pager = {program}\n")
    subprocess.run(["git", "log", "-1"], cwd=student_clone, capture_output=True, check=False)
    assert witness.exists()  # plain git runs the program
    witness.unlink()
    collect_files(student_clone.parent)
    assert submission_times() == {"hw-ada": ("2026-11-20T09:00:00", "clones")}
    assert not witness.exists()


@pytest.mark.parametrize(
    "head", ["", "ref: refs/heads/../../../secret", "ref: refs/heads/none", "0" * 40, "x" * 5000]
)
def test_an_invalid_clone_has_no_submission_time(collect_files, tmp_path, submission_times, head):
    folder = tmp_path / "all" / "hw-ada"
    write_dance(folder, "exercises")
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    collect_files(tmp_path / "all")
    assert submission_times() == {}


def test_reading_commit_times_stops_after_the_time_limit(student_clone, monkeypatch):
    last_arguments, clock = (
        list[str](),
        itertools.count(0, 8),
    )  # seconds; each reading of the clock is 8 later

    def run_git(command: Sequence[str], **_: object) -> SimpleNamespace:
        last_arguments.append(command[-1])
        return SimpleNamespace(stdout="2026-11-20T10:00:00+01:00\n", returncode=0)

    monkeypatch.setattr(subprocess, "run", run_git)
    monkeypatch.setattr(collect_downloads, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    times = [
        collect_downloads.commit_time(student_clone.parent, ("hw-ada", str(i)), 60)
        for i in range(9)
    ]
    assert last_arguments == ["HEAD", "0", "HEAD", "1", "HEAD", "2"]
    assert times[2:4] == ["2026-11-20T10:00:00+01:00", ""]


@cases(
    "names, time",
    {
        "Blackboard": (
            "hw_ada_attempt_2026-11-20-10-11-12_* | hw_bo_attempt_2026-11-21-10-00-00_*",
            "2026-11-20T09:11:12",
        ),
        "Brightspace": (
            "7-9 - ada - Nov 20, 2026 1102 AM - * | 8-9 - bo - 21 November, 2026 902 PM/*",
            "2026-11-20T10:02:00",
        ),
        "nbgrader": (
            "ada+multi_head_attention+2026-11-20 10:11:12.5 UTC+x/* |"
            "bo+multi_head_attention+2026-11-20 10:11:12 UTC+y/*",
            "2026-11-20T10:11:12",
        ),
        "no time": (
            "hw_ada_attempt_9999-11-20-10-11-12_* | hw_bo_attempt_2026-99-99-10-00-00_*",
            None,
        ),
    },
)
def test_a_time_in_a_file_name_is_in_the_courses_time_zone(
    course_of_one_assignment, write_zip, out_folder, submission_times, names, time
):
    course_in_berlin = replace(
        course_of_one_assignment,
        file=course_of_one_assignment.file.model_copy(update={"time_zone": "Europe/Berlin"}),
    )
    collected = collect(course_in_berlin, [write_zip(listed(names))], out_folder)
    times = {student[:3]: stamp for student, (stamp, _) in submission_times().items()}
    assert times.get("ada") == time, collected
    assert len(times) == (0 if time is None else 2)


@pytest.mark.parametrize(
    "date", ["253402300800 +0000", "1795175000 +9999", "-1 +0000", "99999999999999 +0000"]
)
def test_an_invalid_commit_date_does_not_prevent_collecting(
    collect_files, student_clone, submission_times, date
):
    forge_commit(
        student_clone,
        "HEAD~",
        lambda text: re.sub(r"(?m)^(committer .*>) .*$", rf"\1 {date}", text),
    )
    assert collect_files(student_clone.parent).not_taken == []
    assert submission_times() == {}


def test_nbgraders_timestamps_are_kept_when_its_folder_is_collected(
    collect_files, tmp_path, submission_times
):
    """`course grade` suggests to collect such a folder if it has an archive."""
    folder = write_dance(tmp_path / "tree", "ada", "2026-12-01 19:00:00 UTC")
    (folder / "work.zip").write_bytes(
        zip_bytes({"work/02_causal_mask.py": "def causal_mask(T):\n    pass\n"})
    )
    write_dance(tmp_path / "tree", "bela")
    collect_files(tmp_path / "tree")
    assert submission_times() == {"ada": ("2026-12-01T19:00:00", "folders")}


@cases(
    "names, time_and_source",
    {
        "a mark": ("adal_LATE_1_11_* | eveb_LATE_2_12_*", ("late", "Canvas")),
        "a time": (
            "ada+multi_head_attention+2026-12-01 19:00:00.5 UTC+1/* |"
            "eve+multi_head_attention+2026-12-01 19:00:00.5 UTC+1/*",
            ("2026-12-01T19:00:00", "nbgrader"),
        ),
    },
)
def test_times_are_kept_when_a_collected_folder_is_collected_again(
    course_of_one_assignment,
    collect_files,
    write_zip,
    tmp_path,
    out_folder,
    submission_times,
    names,
    time_and_source,
):
    collect(course_of_one_assignment, [write_zip(listed(names))], tmp_path / "first")
    collect_files(tmp_path / "first")
    assert set(submission_times().values()) == {time_and_source}
    first, second = read_journal(tmp_path / "first").files, read_journal(out_folder).files
    assert {path: origin.named for path, origin in first.items()} == {
        path: origin.named for path, origin in second.items()
    }


def test_unreadable_files_are_kept_when_a_folder_is_collected_again(
    course_of_one_assignment, collect_files, write_zip, tmp_path, out_folder
):
    files = {f"lovelaceada_1_11_{FILE}": DANCE, "bartokbela_2_12_work.rar": b"Rar!"}
    collect(course_of_one_assignment, [write_zip(files)], tmp_path / "first")
    collect_files(tmp_path / "first")
    not_readable = read_journal(out_folder).not_readable
    assert not_readable == {"bartokbela_2": {"multi_head_attention": ["bartokbela_2_12_work.rar"]}}
