"""The ladder: how far, how many points, and what is left to do in the next exercise."""

import io

from rich.console import Console

from manyheads.report.ladder import Rung, ladder

DONE = Rung("Heads", "01 Scores", "done", 5, 5, (("scales", True),))
STARTED = Rung("Heads", "02 The mask", "in progress", 1.5, 4, (("masks", True), ("gives no NaN", False)))
UNTOUCHED = Rung("Heads", "03 Heads", "untouched", 0, 6, (("splits", False),))


def text(*rungs: Rung, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, color_system=None).print(ladder(rungs))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_ladder_and_the_checklist_of_the_first_that_is_not_done() -> None:
    assert text(DONE, STARTED, UNTOUCHED) == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "·  03 Heads       – / 6  untouched",
        "1 of 3 done, 6.5 of 15 points by the visible checks",
        "",
        "The checklist of 02 The mask: it …",
        "  ✓ masks",
        "  ☐ gives no NaN",
    ]


def test_each_assignment_has_its_own_list_below_its_title() -> None:
    assert text(DONE, STARTED, Rung("Tails", "01 A tail", "untouched", 0, 6))[:6] == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "Tails",
        "·  01 A tail  – / 6  untouched",
        "1 of 3 done, 6.5 of 15 points by the visible checks",
    ]


def test_a_missing_file_is_what_is_next() -> None:
    assert "?  03 Heads  – / 6  missing" in text(Rung("Heads", "03 Heads", "missing", 0, 6, (("splits", False),)))


def test_when_all_is_done_nothing_is_left() -> None:
    assert text(DONE) == ["Heads", "✓  01 Scores  5 / 5  done", "1 of 1 done, 5 of 5 points by the visible checks"]


def test_a_narrow_terminal_has_shorter_lines_and_folds_the_checklist_below_itself() -> None:
    long = Rung("Heads", "02 The mask", "in progress", 1.5, 4, (("lets every token see itself and the past", False),))
    assert text(DONE, long, width=40) == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  0 of 1 checks",
        "1 of 2 done, 6.5 of 9 points by the",
        "visible checks",
        "",
        "The checklist of 02 The mask: it …",
        "  ☐ lets every token see itself and the",
        "    past",
    ]


def test_what_grading_asks_more_is_no_promise() -> None:
    lines = text(DONE, Rung("Heads", "02 The mask", "in progress", 1.5, 4, unseen=0.5))
    assert lines[2:4] == ["…  02 The mask  1.5 / 4  0 of 0 checks",
                          "1 of 2 done, 6.5 of 9 points by the visible checks; only grading can give 0.5 of"]  # fmt: skip
