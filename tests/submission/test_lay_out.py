"""Run again it changes nothing; what is newer replaces what was collected, and what a person changed stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import Course
from manyheads.errors import CourseFault
from manyheads.submission import find_submissions
from manyheads.submission.roster import Roster, Student

from .conftest import DANCE, Collect, There, Zipped

DANCED = "ada_1/multi_head_attention/04_reshape_dance"
FIRST, SECOND = "ada_1_10_04_reshape_dance.py", "ada_1_20_04_reshape_dance-1.py"


def states(collected: object) -> list[str]:
    return [each.state.name for each in collected.laid]  # type: ignore[attr-defined]


def test_again_changes_nothing(run: Collect, zipped: Zipped, out: Path) -> None:
    download = zipped([FIRST, "ben_2_11_05_weight_split.py"])
    assert states(run(download)) == ["NEW", "NEW"]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.rglob("*") if path.is_file()}
    assert states(run(download)) == ["SAME", "SAME"]
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.rglob("*") if path.is_file()} == before


def test_a_newer_attempt_replaces_and_an_older_one_does_not(run: Collect, zipped: Zipped, out: Path) -> None:
    old, new = zipped([FIRST], "monday.zip"), zipped({SECOND: f"{DANCE}# new"}, "friday.zip")
    assert [states(run(each)) for each in (old, new, old, new)] == [["NEW"], ["REPLACED"], ["OLDER"], ["SAME"]]
    assert "# new" in (out / f"{DANCED}.py").read_text()


def test_where_a_platform_has_no_order_the_time_counts(run: Collect, zipped: Zipped) -> None:
    name = "ada/04_reshape_dance.py"
    monday = zipped([name, "x/04_reshape_dance.py"], "monday.zip", year=2025)
    friday = zipped({name: f"{DANCE}# new"}, "friday.zip", year=2026)
    runs = [states(run(each)) for each in (monday, friday, monday)]
    assert runs == [["NEW", "NEW"], ["REPLACED"], ["OLDER", "SAME"]]


def test_what_a_person_changed_or_put_there_stays(run: Collect, zipped: Zipped, out: Path) -> None:
    by_hand = out / f"{DANCED}.py"
    by_hand.parent.mkdir(parents=True)
    by_hand.write_text("by hand")
    assert states(run(zipped([FIRST]))) == ["BY_HAND"]
    by_hand.unlink()
    run(zipped([FIRST]))
    by_hand.write_text("changed")
    assert states(run(zipped({SECOND: f"{DANCE}# new"}))) == ["BY_HAND"]
    assert by_hand.read_text() == "changed"


def test_a_script_and_a_notebook_of_one_download_both_stay(run: Collect, zipped: Zipped, there: There) -> None:
    run(zipped([FIRST, "ada_1_11_04_reshape_dance.ipynb"]))
    assert there() == [f"{DANCED}.ipynb", f"{DANCED}.py"]


def test_a_notebook_of_a_later_download_takes_the_place_of_a_script(run: Collect, zipped: Zipped, there: There) -> None:
    script, notebook = zipped([FIRST], "monday.zip"), zipped(["ada_1_11_04_reshape_dance.ipynb"], "friday.zip")
    run(script)
    assert states(run(notebook)) == ["NEW", "SUPERSEDED"]
    assert there() == [f"{DANCED}.ipynb"]
    assert states(run(script)) == ["OLDER"]
    assert there() == [f"{DANCED}.ipynb"]


def test_in_one_run_too(run: Collect, zipped: Zipped, there: There) -> None:
    notebook, script = zipped(["ada_1_11_04_reshape_dance.ipynb"], "friday.zip"), zipped([FIRST], "monday.zip")
    assert sorted(states(run(notebook, script))) == ["NEW", "OLDER"]
    assert there() == [f"{DANCED}.ipynb"]


@pytest.mark.parametrize("where", ["ada_1", "ada_1/multi_head_attention", f"{DANCED}.py"])
def test_nothing_is_written_through_a_link(run: Collect, zipped: Zipped, out: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (out / where).parent.mkdir(parents=True)
    (out / where).symlink_to(tmp_path / "elsewhere" / "x")
    with pytest.raises(CourseFault, match=r"is a link, and nothing is written through it\. Next: "):
        run(zipped([FIRST]))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_two_runs_do_not_mix_two_persons(run: Collect, zipped: Zipped, there: There) -> None:
    run(zipped(["Ada/04_reshape_dance.py", "x/04_reshape_dance.py"]))
    done = run(zipped({"ada/05_weight_split.py": DANCE, "y/05_weight_split.py": DANCE}))
    assert "would go to 'ada', where the files of somebody else are" in done.not_taken[0]
    assert [path.split("/")[0] for path in there()] == ["Ada", "x", "y"]


def test_with_a_roster_what_was_collected_before_is_nobody_elses(run: Collect, zipped: Zipped) -> None:
    download = zipped(["ada/04_reshape_dance.py", "x/04_reshape_dance.py"])
    run(download)
    assert run(download, roster=Roster((Student("ada"), Student("x")))).not_taken == []


@pytest.mark.parametrize("inside", ["", "deep/submitted"])
def test_the_folder_that_is_filled_is_not_read(run: Collect, course: Course, out: Path, inside: str) -> None:
    from manyheads.submission.collect_downloads import collect

    (out / inside).mkdir(parents=True)
    with pytest.raises(CourseFault, match=r"which is read\. Next: give --out a folder elsewhere"):
        collect(course, [out], out / inside)


def test_what_was_laid_out_is_all_graded(run: Collect, zipped: Zipped, course: Course, out: Path) -> None:
    run(zipped([FIRST, "ben_2_11_homework.py", "cat_3_12_04_reshape_dance.ipynb"]))
    found, others = find_submissions(course, out)
    assert ([s.student for s in found], others) == (["ada_1", "ben_2", "cat_3"], [])


def test_who_was_laid_out_without_the_roster_before_is_told(run: Collect, zipped: Zipped, there: There) -> None:
    run(zipped([FIRST]))
    done = run(zipped([FIRST]), roster=Roster((Student("lovelace", canvas_id="1"),)))
    assert [path.split("/")[0] for path in there()] == ["ada_1", "lovelace"]
    assert done.said == ["lovelace: was collected as 'ada_1' before, without this roster. Next: remove that folder"]
