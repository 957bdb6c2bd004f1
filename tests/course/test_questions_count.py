"""What answers to questions about the own code take off, where course.yaml says that they count."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.course import CourseError, load_course
from manyheads.course.decisions import Decisions
from manyheads.course.final import final
from manyheads.course.overrides_file import NAME
from manyheads.report.adjustments import sentences
from manyheads.result import Answered, Result

from .conftest import COURSE, result

COUNTING = COURSE.replace("late:", "questions: {share: 20%}\nlate:", 1)


def counted(folder: Path, course: str, found: Result, overrides: str = "") -> Result:
    (folder / "course.yaml").write_text(course)
    (folder / NAME).write_text(overrides)
    return final(found, Decisions.of_course(load_course(folder)))


@pytest.fixture
def ada() -> Result:
    return result(student="ada").model_copy(update={"questions": Answered(right=4, asked=5)})


def test_without_a_share_they_count_for_nothing(tmp_path: Path, ada: Result) -> None:
    assert counted(tmp_path, COURSE, ada).score == ada.score


def test_a_share_is_lost_as_far_as_answers_are_wrong_and_one_sentence_says_so(tmp_path: Path, ada: Result) -> None:
    found = counted(tmp_path, COUNTING, ada)
    assert ada.score
    assert found.score == pytest.approx(ada.score * (1 - 0.2 + 0.2 * 4 / 5))
    assert [other.score for other in found.exercises] == pytest.approx([0.96 * (e.score or 0) for e in ada.exercises])
    said = [each for each in sentences(found) if "questions" in each]
    assert said == [
        f"averages: 4 of 5 questions about the own code right: −4% (questions count 20%) ({ada.score:g} → {found.score:g})"
    ]


def test_who_is_right_in_all_loses_nothing_and_who_was_not_asked_neither(tmp_path: Path, ada: Result) -> None:
    right = ada.model_copy(update={"questions": Answered(right=5, asked=5)})
    found = counted(tmp_path, COUNTING, right)
    assert (found.score, [each.words for each in found.adjustments if each.rule == "questions"]) == (
        ada.score,
        ["5 of 5 questions about the own code right"],
    )
    assert counted(tmp_path, COUNTING, ada.model_copy(update={"questions": None})).score == ada.score


def test_a_score_by_hand_is_the_last_word(tmp_path: Path, ada: Result) -> None:
    row = "- {student: ada, assignment: averages, score: 7, by: Dr. X}"
    assert counted(tmp_path, COUNTING, ada, row).score == 7


def test_what_is_late_loses_both_shares_and_each_is_told(tmp_path: Path, ada: Result) -> None:
    row = "- {student: ada, assignment: averages, handed_in: 2026-12-02 12:00}"
    found = counted(tmp_path, COUNTING, ada, row)
    assert found.score == pytest.approx((ada.score or 0) * 0.96 * 0.9)
    asked, late = (each for each in found.adjustments if each.rule in ("questions", "late"))
    assert (asked.before, asked.after, late.after) == pytest.approx((ada.score, late.before, found.score))


def test_an_assignment_may_have_its_own_share(tmp_path: Path, ada: Result) -> None:
    own = COUNTING.replace("    due:", "    questions: {share: 0%}\n    due:", 1)
    assert counted(tmp_path, own, ada).score == ada.score


def test_a_share_of_more_than_everything_is_refused(tmp_path: Path, ada: Result) -> None:
    with pytest.raises(CourseError, match="120% is more than 100%"):
        counted(tmp_path, COUNTING.replace("20%", "120%"), ada)
