"""Final scores: how due dates, late penalties and rows of overrides.yaml change a result."""

import json
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from docs.site.schemas import SCHEMAS
from manyheads.course import final_scores, load_course
from manyheads.course.course_yaml_schema import (
    LatePolicy,
    duration,
    later_by,
    moment,
    read_moment,
    shown_moment,
)
from manyheads.course.final_scores import (
    NAME,
    Dates,
    Decisions,
    dates_of,
    final,
    of_the_absent,
    with_excuses,
)
from manyheads.files import CourseFault
from manyheads.report.class_summary import sentences
from manyheads.report.report_content import adjustment_text, exercise_adjustments
from manyheads.result import with_total
from manyheads.submission.roster_and_times import Student
from tests import make

from .conftest import BERLIN, COURSE, FUZZ, MEMBERS, result_of_ada

DUE, TWO_DAYS_LATE = "2026-12-01 18:00", "2026-12-03 13:00"
ADA_MEAN, ADA_AVERAGES = "student: ada, exercise: mean, ", "student: ada, assignment: averages, "
TOTAL_OF_5 = ADA_AVERAGES + "score: 5, by: Dr. X, comment: orally"
SECTION_SCORE = "section: A, exercise: mean, score: 4"
GROUP_SCORE = "group: red, exercise: mean, score: 2"
LIST_SCORE = "student: [ada, chen], exercise: mean, score: 1"
LATE_TEXT = "averages: 1 day 19 hours after 18:00: 2 days late"
PENALTY_TEXT = LATE_TEXT + ", −20% (10% a day, at most 50%)"


@pytest.mark.parametrize(
    ("rows", "points", "says"),
    [
        pytest.param(
            [ADA_AVERAGES + "due: 2026-12-03 18:00, by: Dr. X, comment: ill"],
            (9, 10, 3, 6),
            "averages: extension until 2026-12-03 18:00 Europe/Berlin by Dr. X: ill",
            id="an extension",
        ),
        pytest.param(
            [ADA_AVERAGES + "due: 2026-12-02T12:00:00Z"],
            (8.1, 10, 2.7, 5.4),
            "averages: extension until 2026-12-02 13:00 Europe/Berlin\n"
            "averages: 1 day after 13:00: 1 day late, −10% (10% a day, at most 50%) (9 → 8.1)",
            id="an extension that ended before the hand-in",
        ),
        pytest.param(
            [ADA_MEAN + "score: 4, by: Dr. X, comment: a right idea"],
            (8.8, 10, 4, 4.8),
            f"{PENALTY_TEXT} (10 → 8.8)\nmean: score set to 4 by Dr. X: a right idea (3 → 4)",
            id="a manual score has no late penalty",
        ),
        pytest.param(
            [ADA_MEAN + "excused: true, comment: ill"],
            (4.8, 6, 2.4, 4.8),
            f"{PENALTY_TEXT} (6 → 4.8)\nmean: excused: counts for nothing: ill (2.4 → 0)",
            id="an exercise is excused",
        ),
        pytest.param(
            [ADA_AVERAGES + "excused: true"],
            (0, 0, 2.4, 4.8),
            f"averages: excused: counts for nothing (7.2 → 0)\n{LATE_TEXT}",
            id="the assignment is excused",
        ),
        pytest.param(
            ["student: bela, exercise: mean, score: 4"],
            (7.2, 10, 2.4, 4.8),
            f"{PENALTY_TEXT} (9 → 7.2)",
            id="a decision about another student",
        ),
        pytest.param(
            [ADA_MEAN + "score: 1", TOTAL_OF_5],
            (5, 10, 2, 3),
            "averages: total set to 5 by Dr. X: orally (9 → 5)\nmean: score set to 1 (3 → 1)",
            id="a total replaces all scores and penalties",
        ),
        pytest.param(
            [ADA_MEAN + "score: 1", "student: ada, exercise: median, score: 1"],
            (2, 10, 1, 1),
            f"{LATE_TEXT}\nmean: score set to 1 (3 → 1)\nmedian: score set to 1 (6 → 1)",
            id="no late penalty if all scores are manual",
        ),
        pytest.param(
            ["section: a, assignment: averages, due: 2026-12-03 18:00, comment: no power"],
            (9, 10, 3, 6),
            "averages: extension until 2026-12-03 18:00 Europe/Berlin: no power",
            id="an extension for a section, whose case does not count",
        ),
        pytest.param(
            ["group: red, exercise: mean, score: 4, by: Dr. X, comment: a right idea"],
            (8.8, 10, 4, 4.8),
            f"{PENALTY_TEXT} (10 → 8.8)\nmean: score set to 4 by Dr. X: a right idea (3 → 4)",
            id="a score for a group",
        ),
        pytest.param(
            ["student: [bela, ada], exercise: mean, excused: true, comment: ill"],
            (4.8, 6, 2.4, 4.8),
            f"{PENALTY_TEXT} (6 → 4.8)\nmean: excused: counts for nothing: ill (2.4 → 0)",
            id="an excuse for a list of students",
        ),
        pytest.param(
            ["section: B, exercise: mean, score: 4", "group: blue, extra: 9 days"],
            (7.2, 10, 2.4, 4.8),
            f"{PENALTY_TEXT} (9 → 7.2)",
            id="decisions about another section and another group",
        ),
        pytest.param(
            ["student: ada, extra: 48 h, by: Dr. X, comment: as always"],
            (9, 10, 3, 6),
            "averages: 2 days more, until 2026-12-03 18:00 Europe/Berlin by Dr. X: as always",
            id="more time",
        ),
        pytest.param(
            ["section: A, assignment: averages, extra: 1 day"],
            (8.1, 10, 2.7, 5.4),
            "averages: 1 day more, until 2026-12-02 18:00 Europe/Berlin\n"
            "averages: 19 hours after 18:00: 1 day late, −10% (10% a day, at most 50%) (9 → 8.1)",
            id="more time that ended before the hand-in",
        ),
        pytest.param(
            [ADA_AVERAGES + "due: 2026-12-03 18:00", "section: A, extra: 1 day"],
            (9, 10, 3, 6),
            "averages: extension until 2026-12-03 18:00 Europe/Berlin",
            id="an extension that is later than more time",
        ),
        pytest.param(
            [ADA_AVERAGES + "due: 2026-12-02 18:00", "section: A, extra: 2 days"],
            (9, 10, 3, 6),
            "averages: 2 days more, until 2026-12-03 18:00 Europe/Berlin",
            id="more time that is later than an extension",
        ),
        pytest.param(
            ["section: A, assignment: averages, due: 2026-12-02 18:00", "student: ada, extra: 1 d"],
            (9, 10, 3, 6),
            "averages: extension until 2026-12-02 18:00 Europe/Berlin\n"
            "averages: 1 day more, until 2026-12-03 18:00 Europe/Berlin",
            id="more time counts from the date of the section",
        ),
        pytest.param(
            ["student: ada, extra: 1 day", "section: A, extra: 2 days"],
            (9, 10, 3, 6),
            "averages: 2 days more, until 2026-12-03 18:00 Europe/Berlin",
            id="the longer time of a section",
        ),
        pytest.param(
            [
                ADA_AVERAGES + "due: 2026-12-02 18:00",
                "section: A, assignment: averages, due: 2026-12-03 18:00",
            ],
            (9, 10, 3, 6),
            "averages: extension until 2026-12-03 18:00 Europe/Berlin",
            id="the later date of a section",
        ),
        pytest.param(
            ["student: ada, extra: 2 days", "student: ada, assignment: averages, extra: 3 days"],
            (9, 10, 3, 6),
            "averages: 3 days more, until 2026-12-04 18:00 Europe/Berlin",
            id="the longer of two times for one student",
        ),
        pytest.param(
            [SECTION_SCORE, GROUP_SCORE, LIST_SCORE, ADA_MEAN + "score: 0"],
            (4.8, 10, 0, 4.8),
            f"{PENALTY_TEXT} (6 → 4.8)\nmean: score set to 0 (3 → 0)",
            id="a row for one student has precedence over a list",
        ),
        pytest.param(
            [SECTION_SCORE, GROUP_SCORE, LIST_SCORE],
            (5.8, 10, 1, 4.8),
            f"{PENALTY_TEXT} (7 → 5.8)\nmean: score set to 1 (3 → 1)",
            id="a list has precedence over a group",
        ),
        pytest.param(
            [GROUP_SCORE, SECTION_SCORE],
            (6.8, 10, 2, 4.8),
            f"{PENALTY_TEXT} (8 → 6.8)\nmean: score set to 2 (3 → 2)",
            id="a group has precedence over a section",
        ),
    ],
)
def test_an_override_changes_the_score_of_a_late_submission(decide, rows, points, says):
    graded = result_of_ada(TWO_DAYS_LATE)
    counted = final(graded, decide(*rows))
    scores = [exercise.score for exercise in counted.exercises]
    assert (counted.score, counted.max_score, *scores) == points
    assert "\n".join(sentences(counted)) == says
    checks = [exercise.checks for exercise in graded.exercises]
    assert [exercise.checks for exercise in counted.exercises] == checks
    assert graded == result_of_ada(TWO_DAYS_LATE)


@pytest.mark.parametrize(
    ("late", "words", "is_reported"),
    [
        # a whole class may have unknown times
        (False, "handed in at an unknown time: not counted as late", False),
        # only a few students: the instructor has to look at them
        (True, "Canvas says late, and not by how much: nothing is taken off", True),
    ],
)
def test_a_submission_with_an_unknown_time_has_no_penalty(decide, late, words, is_reported):
    counted = final(result_of_ada(late=late), decide())
    assert (counted.score, [adjustment.words for adjustment in counted.adjustments]) == (9, [words])
    assert list(sentences(counted)) == [f"averages: {words}"] * is_reported


def test_a_result_without_due_date_and_override_is_returned_unchanged(decide):
    unrelated = result_of_ada().model_copy(update={"assignment": "spread"})
    assert final(unrelated, decide()) is unrelated


def test_an_override_applies_without_a_due_date(decide):
    variance = make.exercise("variance", make.check("values", 2, 2))
    of_spread = result_of_ada().model_copy(
        update={"assignment": "spread", "exercises": (variance,)}
    )
    decisions = decide("student: ada, assignment: spread, score: 0.5")
    assert final(of_spread, decisions).score == 0.5


def test_for_a_gradebook_only_excuses_are_applied(decide):
    decisions = decide(
        "student: ada, exercise: mean, excused: true", "student: ada, exercise: median, score: 1"
    )
    excused = with_excuses(result_of_ada(TWO_DAYS_LATE), decisions)
    assert (excused.score, excused.max_score) == (6, 6)
    assert [exercise.excused for exercise in excused.exercises] == [True, False]
    assert excused.adjustments == ()


def test_an_absent_student_has_a_result_only_with_an_override(decide):
    decisions = decide(
        "student: bela, exercise: mean, score: 3",
        "student: chen, assignment: averages, excused: true",
    )
    bela, chen = of_the_absent(result_of_ada(), decisions, ["bela", "chen", "dara"])
    assert (bela.student, bela.score, bela.max_score) == ("bela", 3, 10)
    checks = [check for exercise in bela.exercises for check in exercise.checks]
    assert {check.outcome for check in checks} == {"missing"}
    assert (chen.student, chen.is_excused, chen.max_score) == ("chen", True, 0)
    assert bela.adjustments == ()
    assert [adjustment.rule for adjustment in chen.adjustments] == ["excused"]


def test_after_an_excuse_the_score_is_scaled_to_all_points(decide):
    counted = final(result_of_ada(DUE), decide("student: ada, exercise: median, excused: true"))
    assert (counted.score, counted.max_score, counted.possible, counted.scaled_score) == (
        3,
        4,
        10,
        7.5,
    )


def test_without_a_late_policy_lateness_is_reported_without_penalty(course_folder, decide):
    """The grace period is 15 minutes."""
    (course_folder / "course.yaml").write_text(re.sub("late: .*\n", "", COURSE))
    decisions = decide()
    assert final(result_of_ada("2026-12-01 18:15"), decisions).adjustments == ()
    assert final(result_of_ada("2026-12-01 18:15:01"), decisions).adjustments
    counted = final(result_of_ada(TWO_DAYS_LATE), decisions)
    assert (counted.score, list(sentences(counted))) == (9, [LATE_TEXT])


def test_a_row_with_answers_comments_on_every_attempt_with_these_answers(decide):
    graded = result_of_ada(DUE)
    mean, median = graded.exercises
    exercises = (mean.model_copy(update={"answers": "3f2a"}), median)
    decisions = decide("answers: 3f2a, exercise: mean, by: Dr. X, comment: Which sum is it.")
    counted = final(graded.model_copy(update={"exercises": exercises}), decisions)
    assert list(sentences(counted)) == ["mean: comment by Dr. X: Which sum is it."]
    assert counted.exercises[0].adjustments[0].rule == "comment"
    assert counted.score == 9
    assert final(graded, decisions) == graded
    assert decisions.of_nobody((), ("averages",)) == []


def test_each_share_of_an_overridden_total_is_labelled(decide):
    counted = final(result_of_ada(TWO_DAYS_LATE), decide(TOTAL_OF_5))
    shares = []
    for exercise in counted.exercises:
        shares += map(adjustment_text, exercise_adjustments(exercise, counted))
    assert shares == ["its share of the total (3 → 2)", "its share of the total (6 → 3)"]


@pytest.mark.parametrize(
    ("handed_in", "row", "points", "words"),
    [
        pytest.param(DUE, "", (None, None, 6), "", id="no total"),
        pytest.param(
            TWO_DAYS_LATE,
            "",
            (None, None, 4.8),
            PENALTY_TEXT.removeprefix("averages: "),
            id="no total, and a late penalty on the other exercise",
        ),
        pytest.param(DUE, ADA_MEAN + "score: 3", (9, 3, 6), "", id="a manual score gives a total"),
        pytest.param(
            DUE,
            ADA_MEAN + "excused: true",
            (6, None, 6),
            "",
            id="an excuse gives a total",
        ),
        pytest.param(
            DUE,
            ADA_AVERAGES + "excused: true",
            (0, None, 6),
            "excused: counts for nothing",
            id="the assignment is excused",
        ),
    ],
)
def test_an_ungraded_exercise_leaves_no_total_unless_overridden(
    decide, handed_in, row, points, words
):
    graded = result_of_ada(handed_in)
    mean, median = graded.exercises
    values = mean.checks[1].model_copy(update={"outcome": "skipped", "score": 0.0})
    mean = mean.model_copy(update={"score": None, "checks": (mean.checks[0], values)})
    counted = final(with_total(graded, (mean, median)), decide(*[row] * bool(row)))
    assert (counted.score, *(exercise.score for exercise in counted.exercises)) == points
    assert "".join(adjustment.words for adjustment in counted.adjustments) == words
    for adjustment in counted.exercises[0].adjustments:
        # an exercise without a score must not be shown as changed from or to 0
        if adjustment.before != adjustment.after:
            assert 0 not in (adjustment.before, adjustment.after)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            "student: ada, exercise: meen, score: 1",
            "there is no exercise 'meen'; did you mean mean?",
        ),
        (
            "student: ada, assignment: average, excused: true",
            "there is no assignment 'average'; did you mean averages?",
        ),
        (
            "student: ada, assignment: spread, exercise: mean, score: 1",
            "there is no exercise 'mean'; there are: variance",
        ),
        ("student: ada, excused: true", "of which assignment? There are: averages, spread"),
        (ADA_MEAN + "score: 40", "score 40 is more than the 4 points of mean. Next"),
        (ADA_AVERAGES + "score: 11", "score 11 is more than the 10 points of averages"),
        (ADA_MEAN + "score: .nan", "finite number"),
        (ADA_MEAN + "score: !!int ''", "cannot be read as int"),
        (ADA_MEAN, "a row has one of score, due, excused, extra; this one has none"),
        (ADA_MEAN + "score: 1, excused: true", "this one has score and excused"),
        (
            "student: 007, exercise: mean, score: 1",
            "student: should be a text: write it in quotes (input: 7)",
        ),
        (ADA_MEAN + "due: 2026-12-03 18:00", "due is of all exercises"),
        (
            ADA_AVERAGES + "due: 9999-12-31 23:58:20 -14:00",
            "is no date and time of 1990 to 2100, such as 2026-12-01 18:00 Europe/Berlin",
        ),
        (
            "student: ada, assignment: spread, due: 2026-12-03 18:00",
            "spread has no due date to extend",
        ),
        (
            ADA_AVERAGES + "due: 2026-11-30 18:00",
            "2026-11-30 18:00 Europe/Berlin is before the due date of averages, 2026-12-01 18:00 "
            "Europe/Berlin",
        ),
        (ADA_AVERAGES + "due: 2027-03-28 02:30", "Europe/Berlin skips"),
        (ADA_MEAN + "score: 3", "a second score of the same; the first is in line 2"),
        (
            "studnt: ada, exercise: mean, score: 3",
            "studnt: there is no such key; did you mean student?",
        ),
        (ADA_MEAN + "points: 3", "points: there is no such key; there are student, "),
        ("exercise: mean, score: 3", "a row names a student"),
        ("section: C, exercise: mean, score: 1", "no section 'C' on the roster; there are: A, B."),
        ("group: rede, exercise: mean, score: 1", "on the roster; did you mean red?"),
        ("student: [ada, chen, ada], exercise: mean, score: 1", "'ada' is in the list twice"),
        ("student: [], exercise: mean, score: 1", "a row names a student or a list"),
        ("student: [ada, 7], exercise: mean, score: 1", "student: should be a text: write it in"),
        ("student: ada, group: red, exercise: mean, score: 1", "a section: one of them"),
        ("section: A, answers: 3f2a, exercise: mean, comment: x", "a row with answers has"),
        ("student: ada, extra: 0 days", "extra should be more than 0"),
        ("student: ada, extra: -1 days", "extra: '-1 days' should be a time such as 30 min"),
        (ADA_MEAN + "extra: 1 day", "extra is of all exercises: name the assignment in place"),
        ("student: ada, assignment: spread, extra: 1 day", "spread has no due date to extend"),
        (ADA_AVERAGES + "extra: 1 day, due: 2026-12-03 18:00", "this one has due and extra"),
        ("answers: 3f2a, exercise: mean", "a row with answers has an exercise and a comment"),
    ],
)
def test_an_invalid_row_is_reported_in_one_line_with_its_line_number(decide, row, says):
    with pytest.raises(CourseFault) as raised:
        decide(ADA_MEAN + "score: 4", row)
    message = str(raised.value)
    assert f"{NAME}:3: " in message
    assert says in message
    assert "Next: " in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("first_row", "second_row", "says"),
    [
        pytest.param(SECTION_SCORE, "section: a, exercise: mean, score: 1", "", id="a section"),
        pytest.param(GROUP_SCORE, GROUP_SCORE, "", id="a group"),
        pytest.param(
            LIST_SCORE,
            "student: [bela, chen], exercise: mean, score: 1",
            " for 'chen'",
            id="a student in two lists",
        ),
        pytest.param(
            "student: ada, extra: 1 day", "student: ada, extra: 2 days", "", id="more time"
        ),
    ],
)
def test_a_second_row_of_the_same_form_about_a_student_is_refused(
    decide, first_row, second_row, says
):
    decision = "extra" if "extra" in first_row else "score"
    with pytest.raises(
        CourseFault,
        match=f":3: a second {decision} of the same{says}; the first is in line 2. Next",
    ):
        decide(first_row, second_row)


def test_a_second_row_in_the_same_line_is_refused(course_folder):
    (course_folder / NAME).write_text(f"[{{{ADA_MEAN}score: 1}}, {{{ADA_MEAN}score: 2}}]\n")
    with pytest.raises(
        CourseFault, match=r":1: a second score of the same; the first is in line 1"
    ):
        Decisions.of_course(load_course(course_folder))


@pytest.mark.parametrize("row", [SECTION_SCORE, GROUP_SCORE])
def test_a_row_about_a_section_or_a_group_needs_a_roster(decide, course_folder, row):
    decide(row)
    ungrouped = [Student("ada"), Student("bela")]
    for members in ((), ungrouped):
        with pytest.raises(CourseFault, match=r":2: (section A|group red) needs a roster.* Next: "):
            Decisions.of_course(load_course(course_folder), members)


def test_a_row_about_equal_answers_says_so(decide):
    (row,) = decide("answers: 3f2a, exercise: mean, comment: Divide by n.").rows
    assert row.override.subject == "who answers 3f2a"


def test_the_late_policy_of_an_assignment_replaces_that_of_the_course(course_folder):
    own_policy = "    due: 2026-12-01 18:00\n    late: {per_day: 40%, at_most: 80%}\n"
    text = COURSE.replace("    due: 2026-12-01 18:00\n", own_policy)
    assert text != COURSE
    (course_folder / "course.yaml").write_text(text)
    decisions = Decisions.of_course(load_course(course_folder))
    assert final(result_of_ada(TWO_DAYS_LATE), decisions).score == pytest.approx(1.8)


def test_a_course_without_a_time_zone_shows_dates_in_utc(course_folder):
    text = re.sub("time_zone: .*\n", "", COURSE).replace("18:00", "18:00Z")
    (course_folder / "course.yaml").write_text(text)
    (course_folder / NAME).write_text(f"- {{{ADA_AVERAGES}due: 2026-12-03 18:00Z}}\n")
    decisions = Decisions.of_course(load_course(course_folder))
    (adjustment,) = final(result_of_ada("2026-12-03T13:00Z"), decisions).adjustments
    assert adjustment.words == "extension until 2026-12-03 18:00 UTC"


def test_more_time_for_all_assignments_needs_a_due_date(course_folder, decide):
    (course_folder / "course.yaml").write_text(re.sub(" *due: .*\n", "", COURSE))
    with pytest.raises(CourseFault, match=r":2: no assignment has a due date to extend: give one"):
        decide("student: ada, extra: 1 day")


def test_more_time_for_all_assignments_leaves_those_without_a_due_date(decide):
    decisions = decide("student: ada, extra: 1 day")
    assert [row.assignment for row in decisions.rows_for("ada", "averages")] == ["averages"]
    assert decisions.rows_for("ada", "spread") == []


def test_a_row_about_a_section_reaches_absent_students_and_gradebooks(decide):
    decisions = decide("section: A, exercise: mean, excused: true", "group: red, extra: 1 day")
    (bela,) = of_the_absent(result_of_ada(), decisions, ["bela", "chen"])
    assert (bela.student, bela.max_score) == ("bela", 6)
    assert with_excuses(result_of_ada(), decisions).max_score == 6


def test_an_overrides_file_without_a_list_is_refused(course_folder):
    (course_folder / NAME).write_text("student: ada\nexercise: mean\nscore: 3\n")
    with pytest.raises(CourseFault, match=r":1: the file should be a list: each row begins with a"):
        Decisions.of_course(load_course(course_folder))


def test_without_an_overrides_file_there_are_no_decisions(course_folder):
    decisions = Decisions.of_course(load_course(course_folder))
    assert (decisions.rows, decisions.zone) == ((), "Europe/Berlin")


def test_a_time_zone_unknown_to_this_system_is_an_error(course_folder, monkeypatch):
    monkeypatch.setattr(final_scores, "zone_named", lambda name: None)
    with pytest.raises(CourseFault, match=r"^Europe/Berlin is not known here.*pip install tzdata$"):
        dates_of(load_course(course_folder))


def test_a_row_about_an_unknown_student_is_reported_with_its_line(decide):
    decisions = decide(
        "student: adda, exercise: mean, score: 4", "student: red, exercise: mean, score: 4"
    )
    unknown, group = decisions.of_nobody({"ada", "red"}, {"averages"}, {"red": ["ada", "bela"]})
    assert (
        ":2: there is no student 'adda' (is 'ada' meant?). Next: mend that line, or add the "
        "student to the roster, which is FILE in `roster: FILE`"
    ) in unknown
    assert group.endswith(
        ":3: 'red' is a group, with ada and bela. Next: `group: red` in that line"
    )
    assert decisions.of_nobody({"ada"}, {"spread"}) == []


def test_unknown_students_in_a_list_are_reported_once(decide):
    decisions = decide("student: [adda, bela, ada], exercise: mean, score: 4", SECTION_SCORE)
    adda_sentence, bela_sentence = decisions.of_nobody({"ada"}, {"averages"})
    assert ":2: there is no student 'adda' (is 'ada' meant?)." in adda_sentence
    assert ":2: there is no student 'bela'. Next" in bela_sentence
    standing = decide("student: adda, extra: 1 day")
    assert len(standing.of_nobody({"ada"}, {"averages", "spread"})) == 1


def test_the_example_in_the_documentation_is_valid(repository, tmp_path):
    page = (repository / "docs" / "decisions.md").read_text(encoding="utf-8")
    indented = re.findall(r"(?m)(?:^    .*\n)+", page)
    _, dates, rows, rows_about_several, *_ = (re.sub(r"(?m)^    ", "", block) for block in indented)
    top, _, assignments = dates.partition("assignments:\n")
    text = (repository / "course.yaml").read_text(encoding="utf-8")
    line = "  - id: multi_head_attention\n"
    assert assignments.startswith(line)
    (tmp_path / "course.yaml").write_text(text.replace(line, assignments) + top, encoding="utf-8")
    (tmp_path / NAME).write_text(rows, encoding="utf-8")
    (schema,) = (path for path in SCHEMAS if path.name == "overrides.schema.json")
    jsonschema.validate(yaml.safe_load(rows), json.loads(schema.read_text("utf-8")))
    decisions = Decisions.of_course(load_course(tmp_path))
    assert [row.override.decision for row in decisions.rows] == ["due", "score", "excused", "score"]
    due_date = decisions.dates["multi_head_attention"].due_date
    assert due_date == datetime(2026, 12, 1, 17, tzinfo=UTC)
    (tmp_path / NAME).write_text(rows_about_several, encoding="utf-8")
    jsonschema.validate(yaml.safe_load(rows_about_several), json.loads(schema.read_text("utf-8")))
    decisions = Decisions.of_course(load_course(tmp_path), MEMBERS)
    assert [row.override.decision for row in decisions.rows] == ["due", "score", "excused", "extra"]


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-12-01 18:00", "2026-12-01T17:00:00"),
        ("2026-07-01 18:00", "2026-07-01T16:00:00"),
        ("2026-12-01 18:00+05:30", "2026-12-01T12:30:00"),
        ("2026-12-01T18:00:30Z", "2026-12-01T18:00:30"),
        ("2026-12-01 18:00:30.5 Z", "2026-12-01T18:00:30.500000"),
        ("2026-12-01 18:00:00.123456 America/New_York", "2026-12-01T23:00:00.123456"),
        ("2026-11-20 10:11:12.345678000 -08:00", "2026-11-20T18:11:12.345678"),
        ("2026-11-20 10:11:12 +0100", "2026-11-20T09:11:12"),
        (
            "2026-10-25 02:30",
            "2026-10-25T01:30:00",
        ),  # shown twice: the later one
        ("2100-12-31 23:59:59Z", "2100-12-31T23:59:59"),
        (f"{'2026-12-01 18:00':100}", "2026-12-01T17:00:00"),
    ],
)
def test_a_date_is_converted_to_utc(text, iso):
    assert moment(text, BERLIN).isoformat() == f"{iso}+00:00"


@FUZZ
@given(
    st.datetimes(datetime(1991, 1, 1), datetime(2100, 1, 1)),
    st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
)
def test_a_displayed_time_is_read_back_as_the_same_time(clock, zone):
    when = clock.replace(second=0, microsecond=0, tzinfo=UTC)
    text = shown_moment(when, zone)
    assert text.endswith(f" {zone}")
    local = when.astimezone(ZoneInfo(zone))
    later = local.replace(fold=1).astimezone(UTC)  # if clocks show this time twice
    assert moment(text) == read_moment(text, BERLIN) == later


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 December, 6 pm",
        "2026-12-01",
        "2026-W49-2",
        "2026-13-45 18:00",
        "2026-12-01 18:00 Europe",
        "2026-12-01 18:00 ../UTC",
        "2026-12-01 18:00 +9999",
        "2026-12-01 18:00 UTC\0",
        "1989-12-31 23:59Z",
        "2101-01-01 00:00Z",
        "9999-12-31 23:59 -23:59",
        "0001-01-01 00:00 +14",
        "２０２６-12-01 18:00Z",
        "2026-12-01 18:00" + " " * 1000 + "Z",
        f"{'2026-12-01 18:00':101}",
    ],
)
def test_a_text_in_another_format_is_not_read_as_a_time(text):
    assert read_moment(text, BERLIN) is None


@FUZZ
@given(st.text() | st.builds("2026-12-01 18:00{}".format, st.text()), st.sampled_from(["", BERLIN]))
def test_any_text_is_read_as_a_time_or_raises_valueerror(text, zone):
    when = read_moment(text, zone)
    if when is None:
        with pytest.raises(ValueError):
            moment(text, zone)
    else:
        assert 1990 <= when.year <= 2100


def test_a_time_in_an_unknown_zone_is_displayed_in_utc():
    when = datetime(2026, 12, 1, 17, tzinfo=UTC)
    assert shown_moment(when, "Nowhere") == shown_moment(when) == "2026-12-01 17:00 UTC"


def test_a_platform_time_within_the_skipped_hour_is_accepted():
    assert read_moment("2026-03-29 02:30", BERLIN) == moment("2026-03-29T01:30Z")


@pytest.mark.parametrize(
    ("units", "seconds"),
    [("d day days", 86400), ("h hour hours", 3600), ("m min minute minutes", 60)],
)
@FUZZ
@given(st.integers(0, 9999), st.sampled_from(["", " "]))
def test_a_duration_is_a_number_and_a_unit(units, seconds, number, space):
    for unit in units.split():
        assert duration(f"{number}{space}{unit}") == timedelta(seconds=number * seconds)


@pytest.mark.parametrize(
    ("due_date", "extra", "later"),
    [
        ("2026-12-01 18:00", "2 days", "2026-12-03 18:00"),
        ("2026-12-01 18:00", "36 h", "2026-12-03 06:00"),
        ("2026-10-24 20:00", "1 day", "2026-10-25 20:00"),  # 25 hours later
        ("2026-10-24 20:00", "10 h", "2026-10-25T04:00Z"),
        ("2026-10-24 02:30", "1 day", "2026-10-25 02:30"),  # shown twice: the later one
        ("2026-03-28 02:30", "1 day", "2026-03-29 03:30"),  # an hour that is skipped
    ],
)
def test_more_time_counts_whole_days_by_the_local_clock(due_date, extra, later):
    assert later_by(duration(extra), moment(due_date, BERLIN), BERLIN) == moment(later, BERLIN)


DATE_ROWS = st.sampled_from(
    ["due: 2026-12-01 18:00", "due: 2026-12-04 12:00", "extra: 1 min", "extra: 36 h", "extra: 9 d"]
)
SUBJECTS = ("student: ada", "student: [bela, ada]", "group: red", "section: A")


@FUZZ
@given(
    st.dictionaries(st.tuples(st.sampled_from(SUBJECTS), st.booleans()), DATE_ROWS),
    st.sampled_from([*MEMBERS]),
)
def test_no_row_takes_time_from_a_student(decide, rows, member):
    """rows: a decision for each subject, and whether the row names the assignment."""
    texts = []
    for (subject, has_assignment), decision in rows.items():
        if has_assignment:
            texts.append(f"{subject}, assignment: averages, {decision}")
        elif decision.startswith("extra"):
            texts.append(f"{subject}, {decision}")
    decisions = decide(*texts)
    dates = decisions.dates["averages"]
    due_dates = [row.due_date for row in decisions.rows_for(member.id, "averages")]
    assert all(due_date >= dates.due_date for due_date in due_dates)
    assert due_dates == sorted(due_dates)
    result = result_of_ada("2026-12-01 18:31").model_copy(update={"student": member.id})
    without_rows = final(result, Decisions(decisions.zone, decisions.dates))
    assert final(result, decisions).score >= without_rows.score
    for row in decisions.rows:
        other_rows = tuple(other for other in decisions.rows if other is not row)
        without_row = Decisions(decisions.zone, decisions.dates, other_rows)
        assert final(result, decisions).score >= final(result, without_row).score


def counted_with(due_date: datetime, policy: LatePolicy, handed_in: datetime | str):
    """Return the final result of a submission, with late days by Berlin's clock."""
    return final(
        result_of_ada(str(handed_in)),
        Decisions(BERLIN, {"averages": Dates(due_date, policy, BERLIN)}),
    )


@FUZZ
@given(
    st.sampled_from([DUE, "2026-10-24 20:00", "2026-10-25T00:30Z", "2026-03-28 20:00"]),
    st.integers(0, 9),
    st.sampled_from([0, 1, 1799, 1800, 1801, 3600, 3601, 82800, 82801]),
    st.tuples(st.sampled_from([0, 30, 9999]), st.integers(0, 99), st.integers(0, 100)),
)
def test_each_late_day_by_the_local_clock_adds_a_penalty(
    deadline, days_later, seconds_later, policy
):
    """Some deadlines are just before clocks change, on 25 October and 29 March.

    policy: minutes of grace, percent per day, and percent at most.
    """
    grace, per_day, at_most = policy
    due_date, delay = moment(deadline, BERLIN), timedelta(days_later, seconds_later)
    late_policy = LatePolicy(grace=f"{grace} min", per_day=f"{per_day}%", at_most=f"{at_most}%")
    counted = counted_with(due_date, late_policy, due_date + delay)
    if delay <= timedelta(minutes=grace):
        assert (counted.score, counted.adjustments) == (9, ())
        return
    start, end = (
        time.astimezone(ZoneInfo(BERLIN)).replace(tzinfo=None)
        for time in (due_date, due_date + delay)
    )
    days = 1
    while start + timedelta(days) < end:
        days += 1
    remaining = 1 - min(days * per_day, at_most) / 100
    scores = [counted.score, *(exercise.score for exercise in counted.exercises)]
    assert scores == pytest.approx([9 * remaining, 3 * remaining, 6 * remaining], abs=1e-5)
    assert f": {days} day{'s' * (days > 1)} late" in counted.adjustments[0].words


@pytest.mark.parametrize(
    ("deadline", "handed_in", "words"),
    [
        ("2026-12-01 18:00", "2026-12-01 18:00:00.2", "1 second after 18:00: 1 day late"),
        (
            "2026-10-24 20:00",
            "2026-10-25 19:30",
            "23 hours 30 minutes after 20:00: 1 day late",  # a day of 25 hours
        ),
        (
            "2026-10-25T00:30Z",
            "2026-10-25T01:10Z",
            "40 minutes after 02:30: 1 day late",  # clocks show this hour twice
        ),
        ("2026-10-26 20:00", "2026-10-28 20:01:05", "2 days 1 minute after 20:00: 3 days late"),
    ],
)
def test_a_delay_is_reported_in_its_two_largest_units(deadline, handed_in, words):
    policy = LatePolicy(grace="0 min", per_day="0%")
    counted = counted_with(moment(deadline, BERLIN), policy, handed_in)
    assert [adjustment.words for adjustment in counted.adjustments] == [words]
