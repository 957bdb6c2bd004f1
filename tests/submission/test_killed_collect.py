"""A collect that is killed at any moment leaves nothing that the next one does not put right, and two at once do not mix."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.submission import lay_out
from manyheads.submission.collect_downloads import LOCK, collect
from manyheads.submission.lay_out import held

from .conftest import DANCE, Collect, There, Zipped

STUDENTS = 12


def class_of(text: str) -> dict[str, str]:
    return {f"s{i}_{i}_{len(text)}{i}_04_reshape_dance.py": f"{DANCE}# {text} {i}" for i in range(100, 100 + STUDENTS)}


def killed(do: Callable[[], object], moment: int) -> bool:
    """Do it in a process that is killed at the nth time that a file is opened, renamed or removed; whether it was."""
    child = os.fork()
    if not child:
        left = itertools.count(moment, -1)

        def count(event: str, _: object) -> None:
            if event in ("open", "os.rename", "os.remove", "os.mkdir") and not next(left):
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            do()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("moment", range(20))
def test_killed_at_any_moment_it_is_finished_by_the_next_one(
    course: Course, run: Collect, zipped: Zipped, out: Path, there: There, moment: int
) -> None:
    monday, friday = zipped(class_of("old"), "monday.zip"), zipped(class_of("later"), "friday.zip")
    of_events = 6 + moment * (7 * STUDENTS // 20)
    assert killed(lambda: collect(course, [monday], out), of_events), "it had ended before"
    assert killed(lambda: collect(course, [friday], out), of_events), "it had ended before"
    done = run(friday)
    assert {each.state.name for each in done.laid} <= {"NEW", "REPLACED", "SAME"}
    assert done.not_taken == []
    assert len(there()) == STUDENTS
    assert all("# later" in (out / path).read_text() for path in there())
    assert {each.state.name for each in run(monday).laid} == {"OLDER"}


def test_two_at_once_do_not_write_to_one_folder(run: Collect, zipped: Zipped, out: Path) -> None:
    with (
        held(out / LOCK, "{}"),
        pytest.raises(
            CourseFault, match=rf"another course collect \(process {os.getpid()}\) is writing to .* Next: wait"
        ),
    ):
        run(zipped(class_of("old")))


@pytest.mark.parametrize(("line", "is_read"), [
    ("", True), ("x", True), ("\x00", True), ('["file", "a", {"ori', True),
    ('["file", "a", {"platform": 1}]', False), ("{}", False), ('["more", 1]', False), ("[" * 9000, False),
])  # fmt: skip
def test_a_journal_is_read_without_what_is_incomplete_or_not_at_all(
    run: Collect, zipped: Zipped, out: Path, line: str, is_read: bool
) -> None:
    run(zipped(class_of("old")))
    with (out / lay_out.NAME).open("a") as journal:
        journal.write(f"\n{line}\n")
    if is_read:
        assert {each.state.name for each in run(zipped(class_of("old"))).laid} == {"SAME"}
        return
    with pytest.raises(CourseFault, match=r"is of another version\. Next: course collect DOWNLOAD --out NEW"):
        run(zipped(class_of("old")))
