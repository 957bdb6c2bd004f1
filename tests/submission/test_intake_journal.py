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
FIRST, SECOND = "ada_1_10_04_reshape_dance.py", "ada_1_20_04_reshape_dance-1.py"


def candidate_states(collected: object) -> list[str]:
    return [file.state.name for file in collected.candidates]  # type: ignore[attr-defined]


def test_again_changes_nothing(collect_files, write_zip, out_folder):
    download = write_zip([FIRST, "ben_2_11_05_weight_split.py"])
    assert candidate_states(collect_files(download)) == ["NEW", "NEW"]
    original = content_and_times(out_folder)
    assert candidate_states(collect_files(download)) == ["SAME", "SAME"]
    assert content_and_times(out_folder) == original


def content_and_times(folder: Path) -> dict[Path, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@cases(
    "monday, friday, others",
    {
        "by the platform's order": (FIRST, SECOND, []),
        "else by the time": ("ada_1/* | x/*", "ada_1/*", ["SAME"]),
    },
)
def test_a_newer_attempt_replaces_and_an_older_one_does_not(
    collect_files, write_zip, out_folder, monday, friday, others
):
    old = write_zip(listed(monday), "monday.zip", year=2025)
    new = write_zip(dict.fromkeys(listed(friday), f"{DANCE}# new"), "friday.zip")
    assert set(candidate_states(collect_files(old))) == {"NEW"}
    assert candidate_states(collect_files(new)) == ["REPLACED"]
    assert candidate_states(collect_files(old)) == ["OLDER", *others]
    assert candidate_states(collect_files(new)) == ["SAME"]
    assert "# new" in (out_folder / f"{DANCED}.py").read_text()


def test_what_a_person_changed_or_put_there_stays(collect_zip, out_folder):
    by_hand = out_folder / f"{DANCED}.py"
    by_hand.parent.mkdir(parents=True)
    by_hand.write_text("by hand")
    assert candidate_states(collect_zip([FIRST])) == ["BY_HAND"]
    by_hand.unlink()
    collect_zip([FIRST])
    by_hand.write_text("changed")
    assert candidate_states(collect_zip({SECOND: f"{DANCE}# new"})) == ["BY_HAND"]
    assert by_hand.read_text() == "changed"


def test_a_script_and_a_notebook_of_one_download_both_stay(collect_zip, there):
    collect_zip([FIRST, "ada_1_11_04_reshape_dance.ipynb"])
    assert there() == [f"{DANCED}.ipynb", f"{DANCED}.py"]


def test_a_notebook_of_a_later_download_takes_the_place_of_a_script(
    collect_files, write_zip, there
):
    script = write_zip([FIRST], "monday.zip")
    notebook = write_zip(["ada_1_11_04_reshape_dance.ipynb"], "friday.zip")
    collect_files(script)
    assert candidate_states(collect_files(notebook)) == ["SUPERSEDED", "NEW"]
    assert there() == [f"{DANCED}.ipynb"]
    assert candidate_states(collect_files(script)) == ["OLDER"]
    assert candidate_states(collect_files(notebook, script)) == ["OLDER", "SAME"]
    assert there() == [f"{DANCED}.ipynb"]


@pytest.mark.parametrize("where", ["ada_1", "ada_1/multi_head_attention", f"{DANCED}.py"])
def test_nothing_is_written_through_a_link(collect_zip, out_folder, tmp_path, where):
    (tmp_path / "elsewhere").mkdir()
    (out_folder / where).parent.mkdir(parents=True)
    (out_folder / where).symlink_to(tmp_path / "elsewhere" / "x")
    with pytest.raises(CourseFault, match=r"is a link, and nothing is written through it\. Next: "):
        collect_zip([FIRST])
    assert not list((tmp_path / "elsewhere").iterdir())


def test_with_a_roster_what_was_collected_before_is_nobody_elses(collect_files, write_zip):
    download = write_zip(["ada/04_reshape_dance.py", "x/04_reshape_dance.py"])
    collect_files(download)
    assert collect_files(download, roster=Roster((Student("ada"), Student("x")))).not_taken == []


@pytest.mark.parametrize("inside", ["", "deep/submitted"])
def test_the_folder_that_is_filled_is_not_read(real_course, out_folder, inside):
    (out_folder / inside).mkdir(parents=True)
    with pytest.raises(CourseFault, match=r"which is read\. Next: give --out a folder elsewhere"):
        collect(real_course, [out_folder], out_folder / inside)


OF_ADA = "multi_head_attention/04_reshape_dance.py"
WRITTEN, OTHER = (
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
def test_where_no_rule_says_which_counts_none_is_taken(
    collect_files, write_zip, there, out_folder, names
):
    first, second = listed(names)
    download = write_zip({first: WRITTEN, second: OTHER, f"bela/{FILE}": WRITTEN})
    assert collect_files(download).not_taken == [
        f"download.zip: {first} and {second} are of the same exercise, and nothing says which of "
        f"them counts. Next: copy that one to {out_folder / 'ada' / OF_ADA}, then the same command "
        "again"
    ]
    assert there() == [f"bela/{OF_ADA}"]
    (out_folder / "ada" / OF_ADA).parent.mkdir(parents=True)
    (out_folder / "ada" / OF_ADA).write_text(OTHER)  # as it says; and it holds, however often
    for _ in range(2):
        collected = collect_files(download)
        assert collected.not_taken == []
        assert sorted(candidate_states(collected)) == ["BY_HAND", "SAME", "SAME"]
        assert (out_folder / "ada" / OF_ADA).read_text() == OTHER


@cases(
    "files, counts",
    {
        "the one with the exercise's name": (
            {f"ada/{FILE}": WRITTEN, "ada/scratch.py": OTHER},
            WRITTEN,
        ),
        "the one in exercises": (
            {f"ada/main/exercises/{OF_ADA}": WRITTEN, f"ada/old/{OF_ADA}": OTHER},
            WRITTEN,
        ),
    },
)
def test_of_files_of_one_time_that_one_is_taken(collect_zip, out_folder, files, counts):
    assert collect_zip({**files, f"bela/{FILE}": OTHER}).not_taken == []
    assert (out_folder / "ada" / OF_ADA).read_text() == counts


@cases(
    "minute, text, is_taken",
    {
        "ten minutes later": (10, OTHER, True),
        "at once": (0, OTHER, False),
        "at once, with the same text": (0, WRITTEN, True),
    },
)
def test_the_time_is_a_rule_where_files_were_not_written_at_once(
    collect_zip, there, minute, text, is_taken
):
    old, new = Member(f"ada/old/{FILE}", WRITTEN), Member(f"ada/{FILE}", text, minute=minute)
    collected = collect_zip([old, new, Member(f"bela/{FILE}", OTHER)])
    assert there() == [f"ada/{OF_ADA}"] * is_taken + [f"bela/{OF_ADA}"]
    assert bool(collected.not_taken) is not is_taken


@cases(
    "names",
    {
        "ids in the names": "report/s1@ada@* | report/s2@bela@*",
        "no exercise's name": "ada@uni.edu_1_handin.py | bela@uni.edu_1_handin.py",
        "one of them has the exercise's name": "* | bela_reshape_dance.py",
    },
)
@pytest.mark.parametrize("are_alike", [False, True])
def test_loose_files_of_several_students_are_not_taken_for_one(
    collect_zip, there, names, are_alike
):
    numbered = enumerate(listed(names))
    texts = [Member(name, f"{DANCE}# {i * (not are_alike)}", minute=10 * i) for i, name in numbered]
    (message,) = collect_zip(texts).not_taken
    assert message.endswith(
        " are of the same exercise, and may be of several students. Next: give each student a "
        "folder, there"
    )
    assert there() == []


def test_beside_files_of_several_students_no_name_with_other_words_is_taken(collect_zip):
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


def class_of(text: str) -> dict[str, str]:
    return {
        f"s{i}_{i}_{len(text)}{i}_04_reshape_dance.py": f"{DANCE}# {text} {i}"
        for i in range(100, 100 + STUDENTS)
    }


def was_killed(do: Callable[[], object], moment: int) -> bool:
    """Do it in a process that is killed at the nth time that a file is opened, renamed or removed;
    whether it was.
    """
    child = os.fork()
    if not child:
        countdown = itertools.count(moment, -1)

        def count(event: str, _: object) -> None:
            if event in ("open", "os.rename", "os.remove", "os.mkdir") and not next(countdown):
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            do()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("moment", range(0, 20, 3))
def test_killed_at_any_moment_it_is_finished_by_the_next_one(
    collect_files, write_zip, out_folder, there, moment
):
    monday, friday = (
        write_zip(class_of("old"), "monday.zip"),
        write_zip(class_of("later"), "friday.zip"),
    )
    of_events = 6 + moment * (7 * STUDENTS // 20)
    assert was_killed(lambda: collect_files(monday), of_events), "it had ended before"
    assert was_killed(lambda: collect_files(friday), of_events), "it had ended before"
    collected = collect_files(friday)
    assert {*candidate_states(collected)} <= {"NEW", "REPLACED", "SAME"}
    assert collected.not_taken == []
    assert len(there()) == STUDENTS
    assert all("# later" in (out_folder / path).read_text() for path in there())
    assert {*candidate_states(collect_files(monday))} == {"OLDER"}


def test_two_at_once_do_not_write_to_one_folder(collect_zip, out_folder):
    message = rf"another course collect \(process {os.getpid()}\) is writing to .* Next: wait"
    with folder_lock(out_folder / LOCK, "{}"), pytest.raises(CourseFault, match=message):
        collect_zip(class_of("old"))
    with (
        folder_lock(out_folder / LOCK, "{}"),
        pytest.raises(CourseFault, match=r"^process \d+ writes to results\{1\}$"),
    ):
        folder_lock(out_folder / LOCK, "{} writes to results{1}").__enter__()


@pytest.mark.parametrize("line", ["x", "\x00", '["file", "a", {"ori'])
def test_a_journal_is_read_without_what_is_incomplete(collect_zip, out_folder, line):
    collect_zip(class_of("old"))
    with (out_folder / intake_journal.NAME).open("a") as journal:
        journal.write(f"\n{line}\n")
    assert {*candidate_states(collect_zip(class_of("old")))} == {"SAME"}


@pytest.mark.parametrize("line", ['["file", "a", {"platform": 1}]', "{}", "[" * 9000])
def test_a_journal_of_another_version_is_not_read(collect_zip, out_folder, line):
    out_folder.mkdir()
    (out_folder / intake_journal.NAME).write_text(f"{line}\n")
    with pytest.raises(
        CourseFault, match=r"is of another version\. Next: course collect DOWNLOAD --out NEW"
    ):
        collect_zip([FIRST])
