"""The ladder: how far, how many points, and what is left to do in the next exercise."""

from __future__ import annotations

import io

from rich.console import Console

from manyheads.report.ladder import Rung, ladder

DONE = Rung("01_scores", "Scores", "done", 5, 5, (("scales", True),))
STARTED = Rung("02_mask", "The mask", "in progress", 1.5, 4, (("masks", True), ("gives no NaN", False)))
UNTOUCHED = Rung("03_heads", "Heads", "untouched", 0, 6, (("splits", False),))


def text(*rungs: Rung, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, color_system=None).print(ladder(rungs))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_ladder_and_the_checklist_of_the_first_that_is_not_done() -> None:
    assert text(DONE, STARTED, UNTOUCHED) == [
        "✓  01_scores  Scores      5 / 5  done",
        "…  02_mask    The mask  1.5 / 4  in progress, 1 of 2 checks",
        "·  03_heads   Heads       – / 6  untouched",
        "1 of 3 done, 6.5 of 15 points by the visible checks",
        "",
        "The checklist of 02_mask: it …",
        "  ✓ masks",
        "  ☐ gives no NaN",
    ]


def test_a_missing_file_is_what_is_next() -> None:
    assert "?  03_heads  Heads  – / 6  missing" in text(
        Rung("03_heads", "Heads", "missing", 0, 6, (("splits", False),))
    )


def test_when_all_is_done_nothing_is_left() -> None:
    assert text(DONE) == ["✓  01_scores  Scores  5 / 5  done", "1 of 1 done, 5 of 5 points by the visible checks"]


def test_a_narrow_terminal_has_no_room_for_titles_and_folds_the_checklist_below_itself() -> None:
    long = Rung("02_mask", "The mask", "in progress", 1.5, 4, (("lets every token see itself and the past", False),))
    assert text(DONE, long, width=40) == [
        "✓  01_scores    5 / 5  done",
        "…  02_mask    1.5 / 4  0 of 1 checks",
        "1 of 2 done, 6.5 of 9 points by the",
        "visible checks",
        "",
        "The checklist of 02_mask: it …",
        "  ☐ lets every token see itself and the",
        "    past",
    ]
