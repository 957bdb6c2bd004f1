"""Run again it changes nothing; what is newer replaces what was collected, and what a person
changed stays.
"""

import itertools
import os
import signal
import sys
import zipfile
from collections.abc import Callable

import pytest

from manyheads.files import CourseFault
from manyheads.submission import intake_journal
from manyheads.submission.collect_downloads import LOCK, collect
from manyheads.submission.intake_journal import folder_lock
from manyheads.submission.roster_and_times import Roster, Student

from .conftest import DANCE, FILE

DANCED = "ada_1/multi_head_attention/04_reshape_dance"
FIRST, SECOND = "ada_1_10_04_reshape_dance.py", "ada_1_20_04_reshape_dance-1.py"


def states(collected: object) -> list[str]:
    return [file.state.name for file in collected.candidates]  # type: ignore[attr-defined]


def test_again_changes_nothing(run, write_zip, out_folder):
    download = write_zip([FIRST, "ben_2_11_05_weight_split.py"])
    assert states(run(download)) == ["NEW", "NEW"]
    snapshot = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in out_folder.rglob("*")
        if path.is_file()
    }
    assert states(run(download)) == ["SAME", "SAME"]
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in out_folder.rglob("*")
        if path.is_file()
    } == snapshot


@pytest.mark.parametrize(
    ("monday", "friday", "others"),
    [
        pytest.param([FIRST], SECOND, [], id="by the platform's order"),
        pytest.param(
            [f"ada_1/{FILE}", f"x/{FILE}"], f"ada_1/{FILE}", ["SAME"], id="else by the time"
        ),
    ],
)
def test_a_newer_attempt_replaces_and_an_older_one_does_not(
    run, write_zip, out_folder, monday, friday, others
):
    old, new = (
        write_zip(monday, "monday.zip", year=2025),
        write_zip({friday: f"{DANCE}# new"}, "friday.zip"),
    )
    assert states(run(old)) == ["NEW"] * len(monday)
    assert [states(run(download)) for download in (new, old, new)] == [
        ["REPLACED"],
        ["OLDER", *others],
        ["SAME"],
    ]
    assert "# new" in (out_folder / f"{DANCED}.py").read_text()


def test_what_a_person_changed_or_put_there_stays(run, write_zip, out_folder):
    by_hand = out_folder / f"{DANCED}.py"
    by_hand.parent.mkdir(parents=True)
    by_hand.write_text("by hand")
    assert states(run(write_zip([FIRST]))) == ["BY_HAND"]
    by_hand.unlink()
    run(write_zip([FIRST]))
    by_hand.write_text("changed")
    assert states(run(write_zip({SECOND: f"{DANCE}# new"}))) == ["BY_HAND"]
    assert by_hand.read_text() == "changed"


def test_a_script_and_a_notebook_of_one_download_both_stay(run, write_zip, there):
    run(write_zip([FIRST, "ada_1_11_04_reshape_dance.ipynb"]))
    assert there() == [f"{DANCED}.ipynb", f"{DANCED}.py"]


def test_a_notebook_of_a_later_download_takes_the_place_of_a_script(run, write_zip, there):
    script, notebook = (
        write_zip([FIRST], "monday.zip"),
        write_zip(["ada_1_11_04_reshape_dance.ipynb"], "friday.zip"),
    )
    run(script)
    assert states(run(notebook)) == ["SUPERSEDED", "NEW"]
    assert there() == [f"{DANCED}.ipynb"]
    assert [states(run(script)), states(run(notebook, script))] == [["OLDER"], ["OLDER", "SAME"]]
    assert there() == [f"{DANCED}.ipynb"]


@pytest.mark.parametrize("where", ["ada_1", "ada_1/multi_head_attention", f"{DANCED}.py"])
def test_nothing_is_written_through_a_link(run, write_zip, out_folder, tmp_path, where):
    (tmp_path / "elsewhere").mkdir()
    (out_folder / where).parent.mkdir(parents=True)
    (out_folder / where).symlink_to(tmp_path / "elsewhere" / "x")
    with pytest.raises(CourseFault, match=r"is a link, and nothing is written through it\. Next: "):
        run(write_zip([FIRST]))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_two_runs_do_not_mix_two_persons(run, write_zip, there):
    run(write_zip(["Ada/04_reshape_dance.py", "x/04_reshape_dance.py"]))
    collected = run(write_zip({"ada/05_weight_split.py": DANCE, "y/05_weight_split.py": DANCE}))
    assert "would go to 'ada', where the files of somebody else are" in collected.not_taken[0]
    assert [path.split("/")[0] for path in there()] == ["Ada", "x", "y"]


def test_with_a_roster_what_was_collected_before_is_nobody_elses(run, write_zip):
    download = write_zip(["ada/04_reshape_dance.py", "x/04_reshape_dance.py"])
    run(download)
    assert run(download, roster=Roster((Student("ada"), Student("x")))).not_taken == []


@pytest.mark.parametrize("inside", ["", "deep/submitted"])
def test_the_folder_that_is_filled_is_not_read(run, course, out_folder, inside):
    (out_folder / inside).mkdir(parents=True)
    with pytest.raises(CourseFault, match=r"which is read\. Next: give --out a folder elsewhere"):
        collect(course, [out_folder], out_folder / inside)


OF_ADA = "multi_head_attention/04_reshape_dance.py"
WRITTEN, OTHER = (
    "def split_heads(x, n_head):\n    return x.mT\n",
    "def split_heads(x, n_head):\n    return x.mT.mT\n",
)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([f"ada/a/{FILE}", f"ada/b/{FILE}"], id="in two folders"),
        pytest.param([f"ada/{FILE}", "ada/04_reshape_dance (1).py"], id="a browser's number"),
        pytest.param(["ada/one.py", "ada/two.py"], id="of no name"),
    ],
)
def test_where_no_rule_says_which_counts_none_is_taken(run, write_zip, there, out_folder, names):
    bela = names[0].replace("ada", "bela")
    download = write_zip({names[0]: WRITTEN, names[1]: OTHER, bela: WRITTEN})
    collected = run(download)
    assert there() == [f"bela/{OF_ADA}"]
    reason = (
        f"{' and '.join(sorted(names))} are of the same exercise, and nothing says which of "
        "them counts"
    )
    next_ = f"copy that one to {out_folder / 'ada' / OF_ADA}, then the same command again"
    assert collected.not_taken == [f"download.zip: {reason}. Next: {next_}"]

    (out_folder / "ada" / OF_ADA).parent.mkdir(parents=True)
    (out_folder / "ada" / OF_ADA).write_text(OTHER)  # as it says; and it holds, however often
    for _ in range(2):
        collected = run(download)
        assert collected.not_taken == []
        assert sorted(
            file.state.name for file in collected.candidates if file.student == "ada"
        ) == [
            "BY_HAND",
            "SAME",
        ]
        assert (out_folder / "ada" / OF_ADA).read_text() == OTHER


@pytest.mark.parametrize(
    ("files", "counts"),
    [
        pytest.param(
            {f"ada/{FILE}": WRITTEN, "ada/scratch.py": OTHER},
            WRITTEN,
            id="the one with the exercise's name",
        ),
        pytest.param(
            {f"ada/main/exercises/{OF_ADA}": WRITTEN, f"ada/old/{OF_ADA}": OTHER},
            WRITTEN,
            id="the one in exercises",
        ),
    ],
)
def test_of_files_of_one_time_that_one_is_taken(run, write_zip, out_folder, files, counts):
    assert run(write_zip({**files, f"bela/{FILE}": OTHER})).not_taken == []
    assert (out_folder / "ada" / OF_ADA).read_text() == counts


@pytest.mark.parametrize(
    ("minutes", "other", "taken"), [(10, OTHER, True), (0, OTHER, False), (0, WRITTEN, True)]
)
def test_the_time_is_a_rule_where_files_were_not_written_at_once(
    run, tmp_path, there, minutes, other, taken
):
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"ada/old/{FILE}", (2026, 11, 20, 12, 0, 0)), WRITTEN)
        archive.writestr(zipfile.ZipInfo(f"ada/{FILE}", (2026, 11, 20, 12, minutes, 40)), other)
        archive.writestr(zipfile.ZipInfo(f"bela/{FILE}", (2026, 11, 20, 12, 0, 0)), OTHER)
    collected = run(tmp_path / "download.zip")
    assert (there() == [f"ada/{OF_ADA}", f"bela/{OF_ADA}"], not collected.not_taken) == (
        taken,
        taken,
    )


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(
            ["report/s1@ada@04_reshape_dance.py", "report/s2@bela@04_reshape_dance.py"],
            id="ids in the names",
        ),
        pytest.param(
            ["ada@uni.edu_1_handin.py", "bela@uni.edu_1_handin.py"], id="no exercise's name"
        ),
        pytest.param([FILE, "bela_reshape_dance.py"], id="one of them has the exercise's name"),
    ],
)
@pytest.mark.parametrize("are_alike", [False, True])
def test_loose_files_of_several_students_are_not_taken_for_one(
    run, tmp_path, there, names, are_alike
):
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        for day, name in enumerate(names, 1):
            archive.writestr(
                zipfile.ZipInfo(name, (2026, 11, day, 12, 0, 0)),
                DANCE + f"# {day}" * (not are_alike),
            )
    collected = run(tmp_path / "download.zip")
    assert there() == []
    assert [message.partition(" are of ")[2] for message in collected.not_taken] == [
        "the same exercise, and may be of several students. Next: give each student a folder, there"
    ]


def test_beside_files_of_several_students_no_name_with_other_words_is_taken(run, write_zip):
    names = [f"hw/ada_{FILE}", f"hw/bela_{FILE}", "hw/01_attention_scores_chen.py"]
    collected = run(write_zip(names))
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


@pytest.mark.parametrize("moment", range(20))
def test_killed_at_any_moment_it_is_finished_by_the_next_one(
    course, run, write_zip, out_folder, there, moment
):
    monday, friday = (
        write_zip(class_of("old"), "monday.zip"),
        write_zip(class_of("later"), "friday.zip"),
    )
    of_events = 6 + moment * (7 * STUDENTS // 20)
    assert was_killed(lambda: collect(course, [monday], out_folder), of_events), (
        "it had ended before"
    )
    assert was_killed(lambda: collect(course, [friday], out_folder), of_events), (
        "it had ended before"
    )
    collected = run(friday)
    assert {file.state.name for file in collected.candidates} <= {"NEW", "REPLACED", "SAME"}
    assert collected.not_taken == []
    assert len(there()) == STUDENTS
    assert all("# later" in (out_folder / path).read_text() for path in there())
    assert {file.state.name for file in run(monday).candidates} == {"OLDER"}


def test_two_at_once_do_not_write_to_one_folder(run, write_zip, out_folder):
    message = rf"another course collect \(process {os.getpid()}\) is writing to .* Next: wait"
    with folder_lock(out_folder / LOCK, "{}"), pytest.raises(CourseFault, match=message):
        run(write_zip(class_of("old")))
    with (
        folder_lock(out_folder / LOCK, "{}"),
        pytest.raises(CourseFault, match=r"^process \d+ writes to results\{1\}$"),
    ):
        folder_lock(out_folder / LOCK, "{} writes to results{1}").__enter__()


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ("", True),
        ("x", True),
        ("\x00", True),
        ('["file", "a", {"ori', True),
        ('["file", "a", {"platform": 1}]', False),
        ("{}", False),
        ('["more", 1]', False),
        ("[" * 9000, False),
    ],
)
def test_a_journal_is_read_without_what_is_incomplete_or_not_at_all(
    run, write_zip, out_folder, line, is_read
):
    run(write_zip(class_of("old")))
    with (out_folder / intake_journal.NAME).open("a") as journal:
        journal.write(f"\n{line}\n")
    if is_read:
        assert {file.state.name for file in run(write_zip(class_of("old"))).candidates} == {"SAME"}
        return
    with pytest.raises(
        CourseFault, match=r"is of another version\. Next: course collect DOWNLOAD --out NEW"
    ):
        run(write_zip(class_of("old")))
