"""Several files of one student, of one exercise: one counts where a rule says so; else none does, and that is said."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.submission.roster import Roster, Student

from .conftest import DANCE, Collect, There, Zipped

DANCED = "multi_head_attention/04_reshape_dance.py"
FILE = "04_reshape_dance.py"
WRITTEN, OTHER = "def split_heads(x, n_head):\n    return x.mT\n", "def split_heads(x, n_head):\n    return x.mT.mT\n"
STUB = 'def split_heads(x, n_head):\n    """To do."""\n    raise NotImplementedError\n'


@pytest.mark.parametrize("names", [
    pytest.param([f"ada/a/{FILE}", f"ada/b/{FILE}"], id="in two folders"),
    pytest.param([f"ada/{FILE}", "ada/04_reshape_dance (1).py"], id="a browser's number"),
    pytest.param(["ada/one.py", "ada/two.py"], id="of no name"),
])  # fmt: skip
def test_where_no_rule_says_which_counts_none_is_taken(
    run: Collect, zipped: Zipped, there: There, out: Path, names: Sequence[str]
) -> None:
    bela = names[0].replace("ada", "bela")
    download = zipped({names[0]: WRITTEN, names[1]: OTHER, bela: WRITTEN})
    done = run(download)
    assert there() == [f"bela/{DANCED}"]
    said = f"{' and '.join(sorted(names))} are of the same exercise, and nothing says which of them counts"
    next_ = f"copy that one to {out / 'ada' / DANCED}, then the same command again"
    assert done.not_taken == [f"download.zip: {said}. Next: {next_}"]

    (out / "ada" / DANCED).parent.mkdir(parents=True)
    (out / "ada" / DANCED).write_text(OTHER)  # as it says; and it holds, however often
    for _ in range(2):
        done = run(download)
        assert done.not_taken == []
        assert sorted(each.state.name for each in done.laid if each.student == "ada") == ["OTHER", "SAME"]
        assert (out / "ada" / DANCED).read_text() == OTHER


@pytest.mark.parametrize(("files", "counts"), [
    pytest.param({f"ada/class/{FILE}": STUB, f"ada/{FILE}": WRITTEN}, WRITTEN, id="a stub does not"),
    pytest.param({f"ada/{FILE}": WRITTEN, "ada/scratch.py": OTHER}, WRITTEN, id="the one with the exercise's name"),
    pytest.param({f"ada/{FILE}": WRITTEN, f"ada/copy/{FILE}": WRITTEN}, WRITTEN, id="both are the same"),
    pytest.param({f"ada/solutions/{DANCED}": OTHER, f"ada/main/exercises/{DANCED}": WRITTEN,
        f"ada/old/{DANCED}": OTHER}, WRITTEN, id="of a whole repository the one in exercises"),
])  # fmt: skip
def test_where_a_rule_says_which_counts_that_one_is_taken(
    run: Collect, zipped: Zipped, out: Path, files: dict[str, str | bytes], counts: str
) -> None:
    done = run(zipped({**files, f"bela/{FILE}": OTHER}))
    assert done.not_taken == []
    assert (out / "ada" / DANCED).read_text() == counts


@pytest.mark.parametrize(("minutes", "taken"), [(10, True), (0, False)])
def test_the_time_is_a_rule_where_files_were_not_written_at_once(
    run: Collect, tmp_path: Path, there: There, minutes: int, taken: bool
) -> None:
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"ada/old/{FILE}", (2026, 11, 20, 12, 0, 0)), WRITTEN)
        archive.writestr(zipfile.ZipInfo(f"ada/{FILE}", (2026, 11, 20, 12, minutes, 40)), OTHER)
        archive.writestr(zipfile.ZipInfo(f"bela/{FILE}", (2026, 11, 20, 12, 0, 0)), OTHER)
    done = run(tmp_path / "download.zip")
    assert (there() == [f"ada/{DANCED}", f"bela/{DANCED}"], not done.not_taken) == (taken, taken)


@pytest.mark.parametrize("names", [
    pytest.param(["report/s1@ada@04_reshape_dance.py", "report/s2@bela@04_reshape_dance.py"], id="ids in the names"),
    pytest.param(["ada@uni.edu_1_handin.py", "bela@uni.edu_1_handin.py"], id="no exercise's name"),
    pytest.param([FILE, "bela_reshape_dance.py"], id="one of them has the exercise's name"),
])  # fmt: skip
def test_loose_files_of_several_students_are_not_taken_for_one(
    run: Collect, tmp_path: Path, there: There, names: Sequence[str]
) -> None:
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        for day, name in enumerate(names, 1):
            archive.writestr(zipfile.ZipInfo(name, (2026, 11, day, 12, 0, 0)), f"{DANCE}# {day}")
    done = run(tmp_path / "download.zip")
    assert there() == []
    assert [said.partition(" are of ")[2] for said in done.not_taken] == [
        "the same exercise, and may be of several students. Next: give each student a folder, there"
    ]


def test_a_roster_with_both_numbers_tells_two_of_one_name_apart(run: Collect, zipped: Zipped, there: There) -> None:
    roster = Roster(tuple(Student(id_, name="Ada Lovelace", canvas_id=n) for id_, n in (("ada", "11"), ("ada2", "22"))))
    run(zipped({f"lovelaceada_11_900_{FILE}": WRITTEN, f"lovelaceada_22_901_{FILE}": OTHER}), roster=roster)
    assert there() == [f"ada/{DANCED}", f"ada2/{DANCED}"]
