"""Collecting again changes nothing, replaces older attempts, and keeps a person's changes."""

import itertools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.files import CourseFault
from manyheads.submission import intake_journal
from manyheads.submission.collect_downloads import LOCK, collect
from manyheads.submission.intake_journal import folder_lock
from manyheads.submission.roster_and_times import Roster, Student
from tests.make import cases

from .conftest import DANCE, FILE, Member, listed

DANCED = "ada_1/multi_head_attention/04_reshape_dance"
FIRST_ATTEMPT, SECOND_ATTEMPT = "ada_1_10_04_reshape_dance.py", "ada_1_20_04_reshape_dance-1.py"


def candidate_states(collected: object) -> list[str]:
    """Return for each file what collecting did with it, for example NEW or OLDER."""
    return [file.state.name for file in collected.candidates]  # type: ignore[attr-defined]


def test_collecting_the_same_download_again_changes_nothing(collect_files, write_zip, out_folder):
    download = write_zip([FIRST_ATTEMPT, "ben_2_11_05_weight_split.py"])
    assert candidate_states(collect_files(download)) == ["NEW", "NEW"]
    original = content_and_times(out_folder)
    assert candidate_states(collect_files(download)) == ["SAME", "SAME"]
    assert content_and_times(out_folder) == original


def content_and_times(folder: Path) -> dict[Path, tuple[bytes, int]]:
    """Return the content and modification time of each file in the folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@cases(
    "monday_files, friday_files, other_states",
    {
        "by the platform's order": (FIRST_ATTEMPT, SECOND_ATTEMPT, []),
        "by the time": ("ada_1/* | x/*", "ada_1/*", ["SAME"]),
    },
)
def test_a_newer_attempt_replaces_an_older_one_but_not_vice_versa(
    collect_files, write_zip, out_folder, monday_files, friday_files, other_states
):
    old = write_zip(listed(monday_files), "monday.zip", year=2025)
    new = write_zip(dict.fromkeys(listed(friday_files), f"{DANCE}# new"), "friday.zip")
    assert set(candidate_states(collect_files(old))) == {"NEW"}
    assert candidate_states(collect_files(new)) == ["REPLACED"]
    assert candidate_states(collect_files(old)) == ["OLDER", *other_states]
    assert candidate_states(collect_files(new)) == ["SAME"]
    assert "# new" in (out_folder / f"{DANCED}.py").read_text()


def test_files_that_a_person_changed_or_added_are_kept(collect_zip, out_folder):
    by_hand = out_folder / f"{DANCED}.py"
    by_hand.parent.mkdir(parents=True)
    by_hand.write_text("by hand")
    assert candidate_states(collect_zip([FIRST_ATTEMPT])) == ["BY_HAND"]
    by_hand.unlink()
    collect_zip([FIRST_ATTEMPT])
    by_hand.write_text("changed")
    assert candidate_states(collect_zip({SECOND_ATTEMPT: f"{DANCE}# new"})) == ["BY_HAND"]
    assert by_hand.read_text() == "changed"


def test_a_script_and_a_notebook_of_the_same_download_are_both_kept(collect_zip, there):
    collect_zip([FIRST_ATTEMPT, "ada_1_11_04_reshape_dance.ipynb"])
    assert there() == [f"{DANCED}.ipynb", f"{DANCED}.py"]


def test_a_notebook_of_a_later_download_replaces_a_script(collect_files, write_zip, there):
    script = write_zip([FIRST_ATTEMPT], "monday.zip")
    notebook = write_zip(["ada_1_11_04_reshape_dance.ipynb"], "friday.zip")
    collect_files(script)
    assert candidate_states(collect_files(notebook)) == ["SUPERSEDED", "NEW"]
    assert there() == [f"{DANCED}.ipynb"]
    assert candidate_states(collect_files(script)) == ["OLDER"]
    assert candidate_states(collect_files(notebook, script)) == ["OLDER", "SAME"]
    assert there() == [f"{DANCED}.ipynb"]


@pytest.mark.parametrize("link_path", ["ada_1", "ada_1/multi_head_attention", f"{DANCED}.py"])
def test_nothing_is_written_through_a_link(collect_zip, out_folder, tmp_path, link_path):
    (tmp_path / "elsewhere").mkdir()
    (out_folder / link_path).parent.mkdir(parents=True)
    (out_folder / link_path).symlink_to(tmp_path / "elsewhere" / "x")
    with pytest.raises(CourseFault, match=r"is a link, and nothing is written through it\. Next: "):
        collect_zip([FIRST_ATTEMPT])
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_roster_added_later_keeps_the_owners_of_collected_files(collect_files, write_zip):
    download = write_zip(["ada/04_reshape_dance.py", "x/04_reshape_dance.py"])
    collect_files(download)
    assert collect_files(download, roster=Roster((Student("ada"), Student("x")))).not_taken == []


@pytest.mark.parametrize("inside", ["", "deep/submitted"])
def test_the_output_folder_cannot_be_inside_the_input_folder(real_course, out_folder, inside):
    (out_folder / inside).mkdir(parents=True)
    with pytest.raises(CourseFault, match=r"which is read\. Next: give --out a folder elsewhere"):
        collect(real_course, [out_folder], out_folder / inside)


DANCE_PATH = "multi_head_attention/04_reshape_dance.py"
ONE_SOLUTION, OTHER_SOLUTION = (
    "def split_heads(x, n_head):\n    return x.mT\n",
    "def split_heads(x, n_head):\n    return x.mT.mT\n",
)


@cases(
    "names",
    {
        "in two folders": "ada/a/* | ada/b/*",
        "a browser's number": "ada/04_reshape_dance (1).py | ada/*",
        "of no name": "ada/one.py | ada/two.py",
    },
)
def test_if_no_rule_chooses_between_two_files_none_is_collected(
    collect_files, write_zip, there, out_folder, names
):
    first, second = listed(names)
    download = write_zip(
        {first: ONE_SOLUTION, second: OTHER_SOLUTION, f"bela/{FILE}": ONE_SOLUTION}
    )
    assert collect_files(download).not_taken == [
        f"download.zip: {first} and {second} are of the same exercise, and nothing says which of "
        f"them counts. Next: copy that one to {out_folder / 'ada' / DANCE_PATH}, then the same "
        "command again"
    ]
    assert there() == [f"bela/{DANCE_PATH}"]
    (out_folder / "ada" / DANCE_PATH).parent.mkdir(parents=True)
    (out_folder / "ada" / DANCE_PATH).write_text(
        OTHER_SOLUTION
    )  # as the message says; the choice is kept
    for _ in range(2):
        collected = collect_files(download)
        assert collected.not_taken == []
        assert sorted(candidate_states(collected)) == ["BY_HAND", "SAME", "SAME"]
        assert (out_folder / "ada" / DANCE_PATH).read_text() == OTHER_SOLUTION


@cases(
    "files, expected_text",
    {
        "the one with the exercise's name": (
            {f"ada/{FILE}": ONE_SOLUTION, "ada/scratch.py": OTHER_SOLUTION},
            ONE_SOLUTION,
        ),
        "the one in exercises": (
            {
                f"ada/main/exercises/{DANCE_PATH}": ONE_SOLUTION,
                f"ada/old/{DANCE_PATH}": OTHER_SOLUTION,
            },
            ONE_SOLUTION,
        ),
    },
)
def test_names_and_folders_decide_between_files_of_the_same_time(
    collect_zip, out_folder, files, expected_text
):
    assert collect_zip({**files, f"bela/{FILE}": OTHER_SOLUTION}).not_taken == []
    assert (out_folder / "ada" / DANCE_PATH).read_text() == expected_text


@cases(
    "minute, text, is_taken",
    {
        "ten minutes later": (10, OTHER_SOLUTION, True),
        "at once": (0, OTHER_SOLUTION, False),
        "at once, with the same text": (0, ONE_SOLUTION, True),
    },
)
def test_the_later_file_counts_unless_times_are_equal_and_texts_differ(
    collect_zip, there, minute, text, is_taken
):
    old, new = Member(f"ada/old/{FILE}", ONE_SOLUTION), Member(f"ada/{FILE}", text, minute=minute)
    collected = collect_zip([old, new, Member(f"bela/{FILE}", OTHER_SOLUTION)])
    assert there() == [f"ada/{DANCE_PATH}"] * is_taken + [f"bela/{DANCE_PATH}"]
    assert bool(collected.not_taken) is not is_taken


@cases(
    "names",
    {
        "ids in the names": "report/s1@ada@* | report/s2@bela@*",
        "no exercise's name": "ada@uni.edu_1_handin.py | bela@uni.edu_1_handin.py",
        "one of them has the exercise's name": "* | bela_reshape_dance.py",
    },
)
@pytest.mark.parametrize("have_same_text", [False, True])
def test_files_of_several_students_in_one_folder_are_not_collected(
    collect_zip, there, names, have_same_text
):
    files = []
    for i, name in enumerate(listed(names)):
        text_number = 0 if have_same_text else i
        files.append(Member(name, f"{DANCE}# {text_number}", minute=10 * i))
    (message,) = collect_zip(files).not_taken
    assert message.endswith(
        " are of the same exercise, and may be of several students. Next: give each student a "
        "folder, there"
    )
    assert there() == []


def test_a_file_beside_files_of_several_students_is_not_collected(collect_zip):
    names = [f"hw/ada_{FILE}", f"hw/bela_{FILE}", "hw/01_attention_scores_chen.py"]
    collected = collect_zip(names)
    assert collected.candidates == []
    assert sorted(message.partition(": ")[2] for message in collected.not_taken) == [
        "hw/01_attention_scores_chen.py may be of one of several students, as the files beside "
        "it. Next: give each student a folder, there",
        f"hw/ada_{FILE} and hw/bela_{FILE} are of the same exercise, and may be of several "
        "students. Next: give each student a folder, there",
    ]


STUDENTS = 12


def class_download(text: str) -> dict[str, str]:
    """Return a download with one file for each of STUDENTS students."""
    return {
        f"s{i}_{i}_{len(text)}{i}_04_reshape_dance.py": f"{DANCE}# {text} {i}"
        for i in range(100, 100 + STUDENTS)
    }


def was_killed(function: Callable[[], object], moment: int) -> bool:
    """Call the function in a child process that is killed at one of its file operations.

    Args:
        moment: The number of files opened, renamed, removed or created before it is killed.

    Returns:
        Whether the process was killed before it ended.
    """
    child = os.fork()
    if not child:
        countdown = itertools.count(moment, -1)

        def count(event: str, _: object) -> None:
            if event in ("open", "os.rename", "os.remove", "os.mkdir") and not next(countdown):
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            function()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("moment", range(0, 20, 3))
def test_the_next_run_completes_a_collection_that_was_killed(
    collect_files, write_zip, out_folder, there, moment
):
    monday_files, friday_files = (
        write_zip(class_download("old"), "monday.zip"),
        write_zip(class_download("later"), "friday.zip"),
    )
    killed_after = 6 + moment * (7 * STUDENTS // 20)
    assert was_killed(lambda: collect_files(monday_files), killed_after), "it had ended before"
    assert was_killed(lambda: collect_files(friday_files), killed_after), "it had ended before"
    collected = collect_files(friday_files)
    assert {*candidate_states(collected)} <= {"NEW", "REPLACED", "SAME"}
    assert collected.not_taken == []
    assert len(there()) == STUDENTS
    assert all("# later" in (out_folder / path).read_text() for path in there())
    assert {*candidate_states(collect_files(monday_files))} == {"OLDER"}


def test_two_commands_cannot_write_to_the_same_folder_at_once(collect_zip, out_folder):
    message = rf"another course collect \(process {os.getpid()}\) is writing to .* Next: wait"
    with folder_lock(out_folder / LOCK, "{}"), pytest.raises(CourseFault, match=message):
        collect_zip(class_download("old"))
    with (
        folder_lock(out_folder / LOCK, "{}"),
        pytest.raises(CourseFault, match=r"^process \d+ writes to results\{1\}$"),
    ):
        folder_lock(out_folder / LOCK, "{} writes to results{1}").__enter__()


@pytest.mark.parametrize("line", ["x", "\x00", '["file", "a", {"ori', "[" * 9000])
def test_an_incomplete_line_of_the_journal_is_skipped(collect_zip, out_folder, line):
    collect_zip(class_download("old"))
    with (out_folder / intake_journal.NAME).open("a") as journal:
        journal.write(f"\n{line}\n")
    assert {*candidate_states(collect_zip(class_download("old")))} == {"SAME"}


@pytest.mark.parametrize("line", ['["file", "a", {"platform": 1}]', "{}"])
def test_a_journal_of_another_version_is_an_error(collect_zip, out_folder, line):
    out_folder.mkdir()
    (out_folder / intake_journal.NAME).write_text(f"{line}\n")
    with pytest.raises(
        CourseFault, match=r"is of another version\. Next: course collect DOWNLOAD --out NEW"
    ):
        collect_zip([FIRST_ATTEMPT])
