"""From what was found to what counts: dates, overrides.yaml, and each rule, which tells before and
after and leaves the finding alone.
"""

import json
import re
from collections.abc import Callable

import jsonschema
import pytest
import yaml

from docs.site.schemas import SCHEMAS
from manyheads.course import final_scores, load_course
from manyheads.course.course_yaml_schema import (
    LatePolicy,
    duration,
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
from manyheads.result import Result, with_total

from .conftest import exercise as exercise_of
from .conftest import result

Decide = Callable[..., Decisions]
DUE, SECOND_DAY = "2026-12-01T17:00Z", "2026-12-03T12:00Z"  # 18:00 in Berlin
HOW, TEN = "1 day 19 hours after 18:00: 2 days late", "−10% (10% a day, at most 50%)"
TWENTY = TEN.replace("−10", "−20")
MEAN, ALL = "exercise: mean, ", "assignment: averages, "
TOTAL = ALL + "score: 5, by: Dr. X, comment: orally"


@pytest.mark.parametrize(
    ("handed_in", "rows", "points", "most", "says"),
    [
        pytest.param(DUE, [], (9, 3, 6), 10, [], id="on the minute"),
        pytest.param("2026-12-01T17:30Z", [], (9, 3, 6), 10, [], id="within the grace"),
        pytest.param(
            "2026-12-01T17:30:01Z",
            [],
            (8.1, 2.7, 5.4),
            10,
            [f"averages: 30 minutes 1 second after 18:00: 1 day late, {TEN} (9 → 8.1)"],
            id="after the grace",
        ),
        pytest.param(
            "2026-12-02T17:00Z",
            [],
            (8.1, 2.7, 5.4),
            10,
            [f"averages: 1 day after 18:00: 1 day late, {TEN} (9 → 8.1)"],
            id="a day to the second",
        ),
        pytest.param(
            "2026-12-02T17:00:01Z",
            [],
            (7.2, 2.4, 4.8),
            10,
            [f"averages: 1 day 1 second after 18:00: 2 days late, {TWENTY} (9 → 7.2)"],
            id="a second day has begun",
        ),
        pytest.param(
            "2027-02-01T00:00Z",
            [],
            (4.5, 1.5, 3),
            10,
            [
                (
                    "averages: 61 days 7 hours after 18:00: 62 days late, −50% (10% a day, at "
                    "most 50%) (9 → 4.5)"
                )
            ],
            id="at most",
        ),
        pytest.param(
            SECOND_DAY,
            [ALL + "due: 2026-12-03 18:00, by: Dr. X, comment: ill"],
            (9, 3, 6),
            10,
            ["averages: extension until 2026-12-03 18:00 Europe/Berlin by Dr. X: ill"],
            id="an extension",
        ),
        pytest.param(
            SECOND_DAY,
            [ALL + "due: 2026-12-02T12:00:00Z"],
            (8.1, 2.7, 5.4),
            10,
            [
                "averages: extension until 2026-12-02 13:00 Europe/Berlin",
                f"averages: 1 day after 13:00: 1 day late, {TEN} (9 → 8.1)",
            ],
            id="an extension that ends, too",
        ),
        pytest.param(
            SECOND_DAY,
            [MEAN + "score: 4, by: Dr. X, comment: a right idea"],
            (8.8, 4, 4.8),
            10,
            [
                f"averages: {HOW}, {TWENTY} (10 → 8.8)",
                "mean: score set to 4 by Dr. X: a right idea (3 → 4)",
            ],
            id="a score is the score",
        ),
        pytest.param(
            SECOND_DAY,
            [MEAN + "excused: true, comment: ill"],
            (4.8, 2.4, 4.8),
            6,
            [
                f"averages: {HOW}, {TWENTY} (6 → 4.8)",
                "mean: excused: counts for nothing: ill (2.4 → 0)",
            ],
            id="an exercise is excused",
        ),
        pytest.param(
            SECOND_DAY,
            [ALL + "excused: true"],
            (0, 2.4, 4.8),
            0,
            ["averages: excused: counts for nothing (7.2 → 0)", f"averages: {HOW}"],
            id="everything is excused",
        ),
        pytest.param(
            SECOND_DAY,
            ["exercise: mean, score: 4, student: bela"],
            (7.2, 2.4, 4.8),
            10,
            [f"averages: {HOW}, {TWENTY} (9 → 7.2)"],
            id="somebody else's",
        ),
        pytest.param(
            SECOND_DAY,
            [TOTAL],
            (5, 2, 3),
            10,
            ["averages: total set to 5 by Dr. X: orally (9 → 5)"],
            id="a total, late or not, is shared by the points",
        ),
        pytest.param(
            SECOND_DAY,
            [MEAN + "score: 1", TOTAL],
            (5, 2, 3),
            10,
            ["averages: total set to 5 by Dr. X: orally (9 → 5)", "mean: score set to 1 (3 → 1)"],
            id="a total beside an exercise's score",
        ),
        pytest.param(
            SECOND_DAY,
            [MEAN + "score: 1", "exercise: median, score: 1"],
            (2, 1, 1),
            10,
            [f"averages: {HOW}", "mean: score set to 1 (3 → 1)", "median: score set to 1 (6 → 1)"],
            id="nothing to take from",
        ),
    ],
)
def test_what_counts(decide, handed_in, rows, points, most, says):
    graded, decided = (
        result(handed_in=handed_in),
        ("" if "student" in row else "student: ada, " for row in rows),
    )
    counted = final(
        graded,
        decide(
            "".join(f"- {{{prefix}{row}}}\n" for prefix, row in zip(decided, rows, strict=True))
        ),
    )
    assert (counted.score, *(exercise.score for exercise in counted.exercises)) == points
    assert (counted.max_score, list(sentences(counted))) == (most, says)
    assert [exercise.checks for exercise in counted.exercises] == [
        exercise.checks for exercise in graded.exercises
    ]
    assert (graded.score, graded.exercises[0].score) == (9, 3)


@pytest.mark.parametrize(
    ("late", "words", "named"),
    [
        # of these there may be as many as students
        (False, "handed in at an unknown time: not counted as late", 0),
        # these few an instructor wants to see
        (True, "Canvas says late, and not by how much: nothing is taken off", 1),
    ],
)
def test_an_unknown_time_is_said_and_costs_nothing(decide, late, words, named):
    counted = final(result(late=late), decide())
    assert (counted.score, [adjustment.words for adjustment in counted.adjustments]) == (9, [words])
    assert list(sentences(counted)) == [f"averages: {words}"] * named


def test_what_is_not_decided_about_is_the_same_object(decide):
    unrelated = result().model_copy(update={"assignment": "spread"})
    assert final(unrelated, decide()) is unrelated


def test_a_decision_counts_where_the_assignment_has_no_due_date(decide):
    variance = exercise_of("variance", ("values", 2, 2))
    of_spread = result().model_copy(update={"assignment": "spread", "exercises": (variance,)})
    decisions = decide("- {student: ada, assignment: spread, score: 0.5}\n")
    assert final(of_spread, decisions).score == 0.5


def test_a_gradebook_keeps_its_points_and_takes_the_excuses(decide):
    rows = "- {student: ada, exercise: mean, excused: true}\n"
    rows += "- {student: ada, exercise: median, score: 1}\n"
    late = result(handed_in=SECOND_DAY)
    excused = with_excuses(late, decide(rows))
    assert (excused.score, excused.max_score) == (6, 6)
    assert [exercise.excused for exercise in excused.exercises] == [True, False]
    assert excused.adjustments == ()


def test_who_handed_in_nothing_gets_what_is_decided_and_nobody_else(decide):
    of_bela, of_chen = (
        "student: bela, exercise: mean, score: 3",
        "student: chen, assignment: averages, excused: true",
    )
    decisions = decide(f"- {{{of_bela}}}\n- {{{of_chen}}}\n")
    bela, chen = of_the_absent(result(), decisions, ["bela", "chen", "dara"])
    assert (bela.student, bela.score, bela.max_score) == ("bela", 3, 10)
    assert {check.outcome for exercise in bela.exercises for check in exercise.checks} == {
        "missing"
    }
    assert (chen.student, chen.is_excused, chen.max_score) == ("chen", True, 0)
    assert bela.adjustments == ()
    assert [adjustment.rule for adjustment in chen.adjustments] == ["excused"]


def test_where_an_assignment_has_the_same_points_for_everybody_the_rest_stands_for_the_whole(
    decide,
):
    counted = final(
        result(handed_in=DUE), decide("- {student: ada, exercise: median, excused: true}\n")
    )
    assert (counted.score, counted.max_score, counted.possible, counted.scaled_score) == (
        3,
        4,
        10,
        7.5,
    )


def test_without_a_policy_being_late_is_said_and_costs_nothing(course, decide):
    text = (
        (course / "course.yaml")
        .read_text()
        .replace("late: {grace: 30 min, per_day: 10%, at_most: 50%}\n", "")
    )
    (course / "course.yaml").write_text(text)
    counted = final(result(handed_in=SECOND_DAY), decide())
    assert (counted.score, list(sentences(counted))) == (9, [f"averages: {HOW}"])


def test_one_row_comments_all_who_answer_alike_and_changes_no_points(decide):
    graded = result(handed_in=DUE)
    mean = graded.exercises[0].model_copy(update={"answers": "3f2a"})
    alike = graded.model_copy(update={"exercises": (mean, *graded.exercises[1:])})
    decisions = decide("- {answers: 3f2a, exercise: mean, by: Dr. X, comment: Which sum is it.}\n")
    assert list(sentences(final(alike, decisions))) == ["mean: comment by Dr. X: Which sum is it."]
    assert [adjustment.rule for adjustment in final(alike, decisions).exercises[0].adjustments] == [
        "comment"
    ]
    assert (
        final(alike, decisions).score,
        final(graded, decisions),
        decisions.of_nobody((), ("averages",)),
    ) == (
        9,
        graded,
        [],
    )


def test_each_share_of_a_total_is_marked_and_says_what_it_is(decide):
    counted = final(result(handed_in=SECOND_DAY), decide(f"- {{student: ada, {TOTAL}}}\n"))
    shares = []
    for exercise in counted.exercises:
        adjustments = exercise_adjustments(exercise, counted)
        shares.append([adjustment_text(adjustment) for adjustment in adjustments])
    assert shares == [["its share of the total (3 → 2)"], ["its share of the total (6 → 3)"]]


@pytest.mark.parametrize(
    ("handed_in", "row", "points", "words"),
    [
        pytest.param(
            DUE,
            "",
            (None, None, 6),
            [],
            id="nothing decided leaves it without points and without a total",
        ),
        pytest.param(
            SECOND_DAY,
            "",
            (None, None, 4.8),
            [f"{HOW}, {TWENTY}"],
            id="being late costs what there is and makes no total",
        ),
        pytest.param(DUE, MEAN + "score: 3", (9, 3, 6), [], id="a score by hand gives it points"),
        pytest.param(
            DUE, MEAN + "excused: true", (6, None, 6), [], id="an excuse leaves a total of the rest"
        ),
        pytest.param(
            DUE,
            ALL + "excused: true",
            (0, None, 6),
            ["excused: counts for nothing"],
            id="an excuse for all of it",
        ),
    ],
)
def test_an_exercise_that_is_not_graded(decide, handed_in, row, points, words):
    """6 of 6, and one exercise of 4 whose check `values` could not be run; `shape` gave 1."""
    graded = result(handed_in=handed_in)
    mean, median = graded.exercises
    values = mean.checks[1].model_copy(update={"outcome": "skipped", "score": 0.0})
    mean = mean.model_copy(update={"score": None, "checks": (mean.checks[0], values)})
    ungraded: Result = with_total(graded, (mean, median))
    counted = final(ungraded, decide(f"- {{student: ada, {row}}}\n" if row else ""))
    assert (counted.score, *(exercise.score for exercise in counted.exercises)) == points
    assert [adjustment.words for adjustment in counted.adjustments] == words
    assert all(
        0 not in (a.before, a.after) or a.before == a.after
        for a in counted.exercises[0].adjustments
    )


GOOD = "- {student: ada, exercise: mean, score: 4}\n"


@pytest.mark.parametrize(
    ("row", "line", "says"),
    [
        pytest.param(
            "student: ada, exercise: meen, score: 1",
            3,
            "there is no exercise 'meen'; did you mean mean?",
            id="an exercise",
        ),
        pytest.param(
            "student: ada, assignment: average, excused: true",
            3,
            "there is no assignment 'average'; did you mean averages?",
            id="an assignment",
        ),
        pytest.param(
            "student: ada, assignment: spread, exercise: mean, score: 1",
            3,
            "there is no exercise 'mean'; there are: variance",
            id="of another assignment",
        ),
        pytest.param(
            "student: ada, excused: true",
            3,
            "of which assignment? There are: averages, spread",
            id="no assignment",
        ),
        pytest.param(
            "student: ada, exercise: mean, score: 40",
            3,
            "score 40 is more than the 4 points of mean. Next",
            id="too many points",
        ),
        pytest.param(
            "student: ada, exercise: mean, score: .nan", 3, "finite number", id="no number"
        ),
        pytest.param(
            "student: ada, exercise: mean, score: !!int ''",
            3,
            "cannot be read as int",
            id="an empty int",
        ),
        pytest.param(
            "student: ada, exercise: mean",
            3,
            "a row has one of score, due, excused; this one has none",
            id="nothing",
        ),
        pytest.param(
            "student: ada, exercise: mean, score: 1, excused: true",
            3,
            "this one has score and excused",
            id="two decisions",
        ),
        pytest.param(
            "student: 007, exercise: mean, score: 1",
            3,
            "student: should be a text: write it in quotes (input: 7)",
            id="a number as a name",
        ),
        pytest.param(
            "student: ada, exercise: mean, due: 2026-12-03 18:00",
            3,
            "due is of all exercises",
            id="an extension of one exercise",
        ),
        pytest.param(
            "student: ada, assignment: averages, due: 9999-12-31 23:58:20 -14:00",
            3,
            "is no date and time of 1990 to 2100",
            id="the end of the calendar",
        ),
        pytest.param(
            "student: ada, assignment: spread, due: 2026-12-03 18:00",
            3,
            "spread has no due date to extend",
            id="nothing to extend",
        ),
        pytest.param(
            "student: ada, assignment: averages, due: 2026-11-30 18:00",
            3,
            (
                "2026-11-30 18:00 Europe/Berlin is before the due date of averages, 2026-12-01 "
                "18:00 Europe/Berlin"
            ),
            id="earlier than the class",
        ),
        pytest.param(
            "student: ada, assignment: averages, due: 2027-03-28 02:30",
            3,
            "Europe/Berlin skips",
            id="an hour that is skipped",
        ),
        pytest.param(
            "student: ada, exercise: mean, score: 3",
            3,
            "a second score of the same; the first is in line 2",
            id="twice",
        ),
        pytest.param(
            "studnt: ada, exercise: mean, score: 3",
            3,
            "studnt: there is no such key; did you mean student?",
            id="a key with a slip",
        ),
        pytest.param(
            "student: ada, exercise: mean, points: 3",
            3,
            "points: there is no such key; there are student, ",
            id="a key that there is not",
        ),
        pytest.param("exercise: mean, score: 3", 3, "a row names a student", id="nobody"),
        pytest.param(
            "answers: 3f2a, exercise: mean",
            3,
            "a row with answers has an exercise and a comment",
            id="no comment",
        ),
        pytest.param(
            "student: ada, assignment: averages, score: 11",
            3,
            "score 11 is more than the 10 points of averages",
            id="more than all",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_line(decide, row, line, says):
    with pytest.raises(CourseFault) as raised:
        decide(f"# mine\n{GOOD}- {{{row}}}\n")
    message = str(raised.value)
    assert f"{NAME}:{line}: " in message
    assert says in message
    assert "Next: " in message
    assert "\n" not in message


def test_a_row_that_is_no_list_is_told(decide):
    with pytest.raises(
        CourseFault, match=r":1: the file should be a list: each row begins with a dash"
    ):
        decide("student: ada\nexercise: mean\nscore: 3\n")


def test_without_a_file_nothing_is_decided(course):
    decisions = Decisions.of_course(load_course(course))
    assert (decisions.rows, decisions.zone) == ((), "Europe/Berlin")


def test_a_zone_that_this_system_does_not_know_is_told(course, monkeypatch):
    monkeypatch.setattr(final_scores, "zone_named", lambda name: None)
    with pytest.raises(CourseFault, match=r"^Europe/Berlin is not known here.*pip install tzdata$"):
        dates_of(load_course(course))


def test_an_unknown_student_is_named_with_the_line_and_what_may_be_meant(decide):
    decisions = decide("- {student: adda, exercise: mean, score: 4}\n")
    (message,) = decisions.of_nobody({"ada"}, {"averages"})
    assert (
        ":1: there is no student 'adda' (is 'ada' meant?). Next: mend that line, or add the "
        "student to the roster, which is FILE in `roster: FILE`"
    ) in message
    assert decisions.of_nobody({"ada"}, {"spread"}) == []


def test_a_group_is_no_student_and_its_members_are_named(decide):
    decisions = decide("- {student: red, exercise: mean, score: 4}\n")
    groups = {"red": ["ada", "bela"]}
    (message,) = decisions.of_nobody({"ada", "bela", "red"}, {"averages"}, groups)
    assert message.endswith(
        ":1: 'red' is a group, with ada and bela. Next: a row for each member in place of that line"
    )


def blocks(page: str) -> list[str]:
    """What is indented there, without its indent."""
    return [re.sub(r"(?m)^    ", "", block) for block in re.findall(r"(?m)(?:^    .*\n)+", page)]


def test_the_example_is_read_and_names_what_there_is(repository, tmp_path):
    _, dates, rows, *_ = blocks((repository / "docs" / "decisions.md").read_text(encoding="utf-8"))
    top, _, assignments = dates.partition("assignments:\n")
    text = (repository / "course.yaml").read_text(encoding="utf-8")
    line = "  - id: multi_head_attention\n"
    assert assignments.startswith(line)
    (tmp_path / "course.yaml").write_text(text.replace(line, assignments) + top, encoding="utf-8")
    (tmp_path / NAME).write_text(rows, encoding="utf-8")
    schema = json.loads(
        next(path for path in SCHEMAS if path.name == "overrides.schema.json").read_text("utf-8")
    )
    jsonschema.validate(yaml.safe_load(rows), schema)
    course = load_course(tmp_path)
    decisions = Decisions.of_course(course)
    assert [row.override.decision for row in decisions.rows] == ["due", "score", "excused", "score"]
    assert (
        decisions.dates["multi_head_attention"].due_date.isoformat() == "2026-12-01T17:00:00+00:00"
    )


BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "zone", "iso"),
    [
        ("2026-12-01 18:00", BERLIN, "2026-12-01T17:00:00"),
        ("2026-07-01 18:00", BERLIN, "2026-07-01T16:00:00"),
        ("2026-12-01 18:00+05:30", BERLIN, "2026-12-01T12:30:00"),
        ("2026-12-01T18:00:30Z", "", "2026-12-01T18:00:30"),
        ("2026-12-01 18:00:30.5 Z", "", "2026-12-01T18:00:30.500000"),
        ("2026-12-01 18:00:00.123456 America/New_York", "", "2026-12-01T23:00:00.123456"),
        ("2026-12-01 18:00:00 UTC", BERLIN, "2026-12-01T18:00:00"),
        ("2026-11-20 10:11:12.345678000 -08:00", "", "2026-11-20T18:11:12.345678"),
        ("2026-11-20 10:11:12 +0100", "", "2026-11-20T09:11:12"),
        ("2026-10-25 02:30", BERLIN, "2026-10-25T01:30:00"),  # shown twice: the later
        ("2100-12-31 23:59:59Z", "", "2100-12-31T23:59:59"),
    ],
)
def test_a_date_is_a_moment(text, zone, iso):
    assert moment(text, zone).isoformat() == f"{iso}+00:00"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 December, 6 pm",
        "2026-12-01",
        "20261201",
        "2026-W49-2",
        "2026-13-45 18:00",
        "2026-12-01 18:00 Europe/Berlinn",
        "2026-12-01 18:00 Europe",
        "2026-12-01 18:00 ../UTC",
        "2026-12-01 18:00 +9999",
        "2026-12-01 18:00 UTC\0",
        "1989-12-31 23:59Z",
        "2101-01-01 00:00Z",
        "9999-12-31 23:58:20 UTC",
        "9999-12-31 23:59 -23:59",
        "0001-01-01 00:00 +14",
        "10000-01-01 00:00Z",
        "２０２６-12-01 18:00Z",
        "2026-12-01 18:00" + " " * 1000 + "Z",
    ],
)
def test_what_is_no_moment_is_nothing(text):
    assert read_moment(text, BERLIN) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-12-01 18:00", "has no zone: write "),
        (
            "2026-12-01",
            "is no date and time of 1990 to 2100, such as 2026-12-01 18:00 Europe/Berlin",
        ),
        (
            "2026-03-29 02:30 Europe/Berlin",
            (
                "is an hour that Europe/Berlin skips, where clocks go forward: write an earlier "
                "or a later time"
            ),
        ),
    ],
)
def test_who_writes_none_reads_a_sentence(text, says):
    with pytest.raises(ValueError, match=says):
        moment(text)


def test_a_platform_may_write_an_hour_that_is_skipped():
    assert read_moment("2026-03-29 02:30", BERLIN) == moment("2026-03-29T01:30Z")


def test_a_due_date_in_an_hour_that_is_skipped_is_told_with_its_line(course):
    text = (course / "course.yaml").read_text()
    (course / "course.yaml").write_text(text.replace("2026-12-01 18:00", "2026-03-29 02:30"))
    with pytest.raises(
        CourseFault, match=r"course.yaml:\d+: .*is an hour that Europe/Berlin skips"
    ):
        load_course(course)


def test_it_is_shown_as_the_course_reads_it():
    assert shown_moment(moment("2026-12-01T17:00Z"), BERLIN) == "2026-12-01 18:00 Europe/Berlin"
    assert shown_moment(moment("2026-12-01T17:00Z")) == "2026-12-01 17:00 UTC"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30 min", 1800),
        ("2 h", 7200),
        ("2h", 7200),
        ("1 hour", 3600),
        ("0 m", 0),
        ("7 days", 604800),
    ],
)
def test_durations(text, seconds):
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize(
    ("due", "handed_in", "says"),
    [
        pytest.param(
            "2026-12-01 18:00",
            "2026-12-01 18:00:30",
            "30 seconds after 18:00: 1 day late",
            id="seconds",
        ),
        pytest.param(
            "2026-12-01 18:00",
            "2026-12-01 18:00:00.2",
            "1 second after 18:00: 1 day late",
            id="less than one",
        ),
        pytest.param(
            "2026-10-24 20:00",
            "2026-10-25 19:30",
            "23 hours 30 minutes after 20:00: 1 day late",
            id="a day of 25 hours",
        ),
        pytest.param(
            "2026-10-24 20:00",
            "2026-10-25 20:00",
            "1 day after 20:00: 1 day late",
            id="and its last second",
        ),
        pytest.param(
            "2026-10-24 20:00",
            "2026-10-25 20:00:01",
            "1 day 1 second after 20:00: 2 days late",
            id="the next day",
        ),
        pytest.param(
            "2026-03-28 20:00",
            "2026-03-29 20:00",
            "1 day after 20:00: 1 day late",
            id="a day of 23 hours",
        ),
        pytest.param(
            "2026-10-25T00:30Z",
            "2026-10-25T01:10Z",
            "40 minutes after 02:30: 1 day late",
            id="an hour that is shown twice",
        ),
        pytest.param(
            "2026-10-26 20:00",
            "2026-10-28 20:01",
            "2 days 1 minute after 20:00: 3 days late",
            id="days of 24 hours",
        ),
    ],
)
def test_days_are_counted_by_the_clock_on_the_wall_and_told_with_what_was_late(
    due, handed_in, says
):
    late = Dates(moment(due, BERLIN), LatePolicy(grace="0 min", per_day="1%"), BERLIN).late(
        moment(handed_in, BERLIN)
    )
    assert late.words == says
    assert late.share == pytest.approx(int(says.partition(": ")[2][0]) / 100)
    assert late.costs == f", −{100 * late.share:g}% (1% a day, at most 100%)"


def test_a_quarter_of_an_hour_is_grace_where_the_course_says_nothing():
    dates = Dates(moment("2026-12-01 18:00Z"), LatePolicy())
    assert dates.late(moment("2026-12-01 18:15Z")) is None
    assert dates.late(moment("2026-12-01 18:15:01Z")) is not None
