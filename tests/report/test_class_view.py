"""The statistics of a class, and the table of the class in a terminal.

An exercise that the grader could not judge ("not graded") has no points in any report.
"""

import csv
import io
import re

import pytest

from manyheads.platforms.grade_pull_request import verdict, why_not_on_a_gpu
from manyheads.report.class_summary import (
    NOT_IMPORTED,
    UNEXPLAINED,
    ClassList,
    ClassMisconception,
    ClassView,
    not_graded,
)
from manyheads.report.markdown import feedback_markdown, one_exercise, results_section
from manyheads.report.pages import student_page, write_pages
from manyheads.report.report_content import Labels
from manyheads.report.score_exports import FORMATS
from manyheads.report.terminal import class_exercises, class_table, exercise_report
from manyheads.result import Adjustment, Diagnosed, ProvedLine, Result
from manyheads.submission.roster_and_times import Roster, Student
from manyheads.submission.source import LOAD_ERROR, UNTOUCHED
from tests import make
from tests.report.conftest import heads_result

LABELS = Labels(
    {"heads": "Heads", "tails": "Tails"}, {"a": ("01", "A"), "b": ("02", "B"), "c": ("01", "C")}
)
VIEW = Diagnosed(id="wrong_view", title="You viewed straight.", hint="")
AXIS = Diagnosed(id="axis", title="You took the wrong axis.", hint="")


def exercise_of_four_points(id_, *named, score=0, outcome="failed", **fields):
    """Return the result of an exercise of 4 points with one check.

    named: the misconceptions of its diagnosis.
    """
    return make.exercise(id_, make.check("split", score, 4, outcome), diagnosis=named, **fields)


def results_of(*exercises):
    """Return one result for each of these exercises, each of another student."""
    return [heads_result(f"student{i}", attempt) for i, attempt in enumerate(exercises)]


def assignment_view(*results, roster=()):
    """Return the statistics of the only assignment in these results.

    roster: the ids of the students on the roster; empty for a class without one.
    """
    members = ClassList(Roster(tuple(map(Student, roster))))
    (assignment,) = ClassView(results, members, LABELS).assignments
    return assignment


def exercise_view(*exercises):
    """Return the statistics of one exercise, which each student did once."""
    return assignment_view(*results_of(*exercises)).columns[0]


def total_rows(*results, **options):
    """Return the rows of the class table that have a total, with single spaces."""
    lines = make.printed_lines(class_table(ClassView(results, labels=LABELS, **options)), 80)
    return [" ".join(line.split()) for line in lines if "/" in line]


RIGHT = exercise_of_four_points("a", score=4)
FAILED = exercise_of_four_points("a")
MISSING = exercise_of_four_points("a", outcome="missing")
LOST = make.exercise(
    "a",
    make.check("split", 1),
    make.check("merge", 0, 3, "skipped", evidence="The grader failed; retry."),
    score=None,
)
EXCUSED = RIGHT.model_copy(update={"score": 0.0, "excused": True})
LATE = Adjustment(rule="late", words="1 day late, −10%", before=0, after=0)
BY_HAND = Adjustment(rule="score", words="score set to 0", before=0, after=0)
UNREAD = LOST.model_copy(update={"not_readable": ("work.rar",)})


@pytest.mark.parametrize(
    ("exercises", "counts"),
    [
        pytest.param(
            [FAILED],
            {"attempts": 1, "mean": 0, "groups": {UNEXPLAINED: 1}},
            id="a failure without a misconception is unexplained",
        ),
        pytest.param(
            [RIGHT.model_copy(update={"score": 1.0})],
            {"mean": 1, "groups": {}},
            id="a right attempt whose score a person lowered is not wrong",
        ),
        pytest.param(
            [RIGHT, MISSING],
            {"attempts": 1, "mean": 4, "full": 1},
            id="a missing attempt is in no mean",
        ),
        pytest.param(
            [MISSING], {"attempts": 0, "mean": None}, id="without attempts there is no mean"
        ),
        pytest.param(
            [RIGHT, LOST],
            {"attempts": 2, "mean": 4, "full": 1, "not_graded": 1, "spread": [0, 0, 0, 0, 0, 1]},
            id="an ungraded attempt is in no mean",
        ),
        pytest.param(
            [RIGHT, EXCUSED], {"attempts": 1, "mean": 4}, id="an excused attempt is in no mean"
        ),
        pytest.param(
            [
                exercise_of_four_points(
                    "a", VIEW.model_copy(update={"id": LOAD_ERROR}), outcome="error"
                ),
                exercise_of_four_points("a", VIEW, outcome="crashed"),
            ],
            {"groups": {NOT_IMPORTED: 1}},
            id="an attempt that could not be imported has no misconception",
        ),
    ],
)
def test_an_exercise_counts_attempts_scores_and_misconceptions(exercises, counts):
    column = exercise_view(*exercises)
    assert {key: getattr(column, key) for key in counts} == counts


def test_scores_are_counted_in_ranges_of_the_possible_points():
    scores = (0, 0.5, 1, 1.1, 2, 2, 3, 3.9, 3.9, 3.9, 4)
    column = exercise_view(*(exercise_of_four_points("a", score=score) for score in scores))
    assert column.spread == [1, 2, 3, 1, 3, 1]


def test_totals_count_only_graded_students_on_the_roster():
    assignment = assignment_view(
        heads_result("ada", RIGHT),
        heads_result("ben", exercise_of_four_points("a", score=2)),
        heads_result("cat", LOST),
        heads_result("dan", EXCUSED),
        heads_result("eve", FAILED),
        roster=("ada", "ben", "cat", "dan", "zoe"),
    )
    assert (assignment.mean, assignment.median, assignment.max_score) == (3, 3, 4)
    totals = {name: count for name, count in assignment.totals if count}
    assert totals == {"all": 1, "50–60 %": 1, "not graded": 1}
    assert (assignment.strangers, assignment.absent) == (["eve"], ["zoe"])
    assert (assignment.columns[0].attempts, assignment.columns[0].mean) == (3, 3)
    assert assignment.not_graded == [("cat", "01 A: the grader failed")]


def test_without_a_graded_result_there_is_no_mean():
    assignment = assignment_view(heads_result("dan", UNREAD))
    assert (assignment.mean, assignment.median) == (None, None)
    unread = "handed in, not readable: work.rar (every exercise)"
    assert assignment.not_graded == [("dan", unread)]


def test_misconceptions_are_sorted_by_number_of_students_then_attempts():
    rare, common = (VIEW.model_copy(update={"id": id_}) for id_ in ("rare", "common"))
    assignment = assignment_view(
        heads_result(
            "ada",
            exercise_of_four_points("a", rare),
            exercise_of_four_points("b", AXIS),
            exercise_of_four_points("c", AXIS),
        ),
        *results_of(exercise_of_four_points("a", common), exercise_of_four_points("a", common)),
    )
    assert [(m.id, len(m.names), m.attempts) for m in assignment.misconceptions] == [
        ("common", 2, 2),
        ("axis", 1, 2),
        ("rare", 1, 1),
    ]
    assert assignment_view(heads_result("ada", RIGHT)).misconceptions == []


def test_a_misconception_lists_titles_alternatives_and_co_occurring_ones():
    either = VIEW.model_copy(update={"alternative_titles": ("You mixed.",), "title": "You viewed."})
    assignment = assignment_view(
        heads_result(
            "ada", exercise_of_four_points("a", either), exercise_of_four_points("b", VIEW)
        ),
        heads_result("ben", exercise_of_four_points("a", either, AXIS)),
        heads_result("cat", exercise_of_four_points("a", VIEW)),
    )
    view, axis = assignment.misconceptions
    assert view.wrong_line == axis.wrong_line == "", "no line is proved"
    exercises, alternatives, together = {"a": 3, "b": 1}, [("You mixed.", 2)], [(AXIS.title, 1)]
    names = ["ada", "ben", "cat"]
    assert view == ClassMisconception(
        "wrong_view", ["You viewed.", VIEW.title], names, 4, exercises, alternatives, together
    )
    assert (axis.alternatives, axis.together) == ([], [("You viewed.", 1)])


@pytest.mark.parametrize(
    ("edit", "named", "wrong_line"),
    [
        pytest.param("x = a  # by Bo → x = b  # by Bo", [VIEW], "x = a", id="no comment"),
        pytest.param("f('#', a)  # by Bo → x", [VIEW], "f('#', a)", id="a sign in a string"),
        pytest.param('f("""# by Bo → x', [VIEW], 'f("""', id="a part of a string"),
        pytest.param("x = a → x = b", [VIEW, AXIS], "", id="none of two misconceptions"),
        pytest.param("x = a → y = 1 x = a", [VIEW], "", id="none if code is added"),
    ],
)
def test_a_misconception_shows_the_wrong_line_without_its_comment(edit, named, wrong_line):
    attempts = [
        exercise_of_four_points("a", *named, lines=(ProvedLine(line=1, edit=text),))
        for text in ("", edit)
    ]
    assert assignment_view(*results_of(*attempts)).misconceptions[0].wrong_line == wrong_line


def test_exercise_counts_exclude_excused_missing_and_unlisted_students():
    wrong = exercise_of_four_points("a", VIEW)
    assignment = assignment_view(
        heads_result("ada", wrong),
        heads_result("ben", wrong),
        heads_result("cat", FAILED),
        heads_result("dan", MISSING, exercise_of_four_points("b")),
        heads_result(
            "eve", EXCUSED.model_copy(update={"diagnosis": (VIEW,)}), exercise_of_four_points("b")
        ),
        heads_result("mal", wrong),
        roster=("ada", "ben", "cat", "dan", "eve", "zoe"),
    )
    column = assignment.columns[0]
    assert (column.attempts, sum(column.spread), column.spread[0]) == (3, 3, 3)
    assert [named.names for named in assignment.misconceptions] == [["ada", "ben"]]
    assert column.misconceptions == assignment.misconceptions
    assert column.groups == {UNEXPLAINED: 1}
    assert assignment.groups == [(UNEXPLAINED, {"cat": ["01 A"], "dan": ["02 B"], "eve": ["02 B"]})]
    assert column.checks == [("split", "split", 0)]
    assert sum(count for _, count in assignment.totals) == 5


def test_a_misconception_in_a_later_exercise_too_is_reported_as_recurring():
    untouched = VIEW.model_copy(update={"id": UNTOUCHED})
    results = [
        heads_result(
            "ada", exercise_of_four_points("c", AXIS), assignment="tails"
        ),  # in whichever order results come
        heads_result("ada", exercise_of_four_points("a", AXIS), exercise_of_four_points("b")),
        heads_result("ben", exercise_of_four_points("a", AXIS), exercise_of_four_points("b", AXIS)),
        heads_result("ben", exercise_of_four_points("c", AXIS), assignment="tails"),
        heads_result("cat", exercise_of_four_points("a", AXIS), exercise_of_four_points("b", VIEW)),
        heads_result("dan", exercise_of_four_points("b", AXIS)),
        heads_result(
            "eve", exercise_of_four_points("a", untouched), exercise_of_four_points("b", untouched)
        ),
    ]
    assert ClassView(results, labels=LABELS).came_back == [
        (AXIS.title, "a", "c", ["ada", "ben"]),
        (AXIS.title, "a", "b", ["ben"]),
    ]


def test_unexplained_attempts_with_the_same_answers_form_a_group(tmp_path):
    attempts = [
        ("f00", "ada ben bob", ()),
        ("bad", "cat col", ()),
        ("f00", "dan", (VIEW,)),
        ("", "eve fay gil", ()),
    ]
    results = [
        heads_result(student, exercise_of_four_points("a", *named, answers=answers))
        for answers, students, named in attempts
        for student in students.split()
    ]
    assert assignment_view(*results).alike == [("a", "f00", ["ada", "ben", "bob"])], (
        "two are no group"
    )
    page = write_pages(ClassView(results, labels=LABELS), tmp_path).read_text(encoding="utf-8")
    assert (
        "<b>3</b> answer alike in 01 A, and no misconception explains them. Look at one: <a "
        'href="students/ada'
    ) in page
    assert '- {answers: "f00", assignment: heads, exercise: a, comment: ' in page


def test_the_class_table_is_sorted_by_name_and_shows_first_misconceptions():
    wrong = exercise_of_four_points("b", VIEW, score=1)
    results = [
        heads_result("mia", RIGHT, wrong),
        heads_result("ada", RIGHT),
        heads_result("ben", LOST, wrong),
    ]
    assert total_rows(*results) == [
        "ada 4 4/4",
        f"ben ? 1 ?/8 02: {VIEW.title}",
        f"mia 4 1 5/8 02: {VIEW.title}",
    ]
    heading = "Misconceptions in this class"
    lines = make.printed_lines(class_table(ClassView(results[:1], labels=LABELS)))
    assert lines[-2:] == [heading, f" 1  {VIEW.title}"]
    assert heading not in make.printed_lines(class_table(ClassView(results[1:2])))
    assert make.printed_lines(class_table(ClassView([]))) == []


@pytest.mark.parametrize(
    ("attempt", "cell"),
    [
        pytest.param(exercise_of_four_points("a", outcome="crashed"), "0!", id="crashed"),
        pytest.param(exercise_of_four_points("a", outcome="timeout"), "0∞", id="out of time"),
        pytest.param(MISSING, "–", id="missing"),
        pytest.param(
            exercise_of_four_points("a", outcome="missing", adjustments=(LATE,)), "–", id="late"
        ),
        pytest.param(
            exercise_of_four_points("a", outcome="missing", adjustments=(BY_HAND,)),
            "0",
            id="decided",
        ),
        pytest.param(FAILED, "0", id="failed"),
        pytest.param(LOST, "?", id="not graded"),
        pytest.param(EXCUSED, "ex", id="excused"),
        pytest.param(make.exercise("a", max_score=4), "0", id="without checks"),
    ],
)
def test_a_table_cell_shows_the_outcome_of_an_attempt(attempt, cell):
    assert total_rows(heads_result("ada", attempt))[0].startswith(f"ada {cell} ")


@pytest.mark.parametrize(("zero", "total"), [(False, "–"), (True, "0")])
def test_an_absent_student_has_a_row(zero, total):
    members = ClassList(Roster((Student("ada"), Student("zoe"))), zero)
    lines = total_rows(heads_result("ada", RIGHT), members=members)
    assert lines == ["ada 4 4/4", f"zoe – {total}/4"]


@pytest.mark.parametrize(
    "name",
    ["x" * 120, "😀" * 40, "a" + "\u0301" * 119, "[red]x[/red] [/] :smile:"],
    ids=["letters", "wide signs", "accents", "markup"],
)
def test_a_narrow_terminal_truncates_only_misconceptions(name):
    long = VIEW.model_copy(update={"title": "You divided by the root of a full width, " * 3})
    titles = {
        f"p{i}": (f"{i:02d}", title)
        for i, title in enumerate(["One", "The second part of all there is"] * 4)
    }
    exercises = [exercise_of_four_points(id_, long, score=2.25) for id_ in titles]
    results = [heads_result(student, *exercises) for student in ("ada", name)]
    view = ClassView(results, labels=Labels(exercises=titles))
    output = make.printed_lines(class_table(view), 80)
    lines = [line for line in output if "2.25" in line]
    assert [line.count("2.25") for line in lines] == [8, 8]
    assert all("18/32" in line and line.endswith("…") for line in lines)
    text = "\n".join(output)
    assert name.split()[0][:12] in text
    assert [title for title in titles.values() if " ".join(title) not in text] == []


@pytest.mark.parametrize(
    ("count", "last"), [(12, " and 2 more: course report there"), (10, f" 1  {VIEW.title}")]
)
def test_the_table_lists_ten_misconceptions_and_counts_the_rest(count, last):
    exercises = [
        exercise_of_four_points(f"part_{i}", VIEW.model_copy(update={"id": f"m{i}"}))
        for i in range(count)
    ]
    view = ClassView([heads_result("ada", *exercises)])
    assert make.printed_lines(class_table(view, "course report there"))[-1] == last


EITHER = VIEW.model_copy(update={"alternative_titles": ("You mixed.",)})


@pytest.mark.parametrize(
    ("attempts", "lines"),
    [
        pytest.param(
            [
                exercise_of_four_points("a", VIEW),
                exercise_of_four_points("a", EITHER),
                FAILED,
                LOST,
            ],
            [
                "01 A 4 attempts, 0 full, mean 0.00 / 4",
                f"2 {VIEW.title} (or You mixed., 1 of 2)",
                "1 wrong in a way that no misconception explains",
                "1 not graded",
            ],
            id="every kind of attempt",
        ),
        pytest.param(
            [exercise_of_four_points("a", EITHER)],
            ["01 A 1 attempt, 0 full, mean 0.00 / 4", f"1 {VIEW.title} (or You mixed.)"],
            id="an alternative in all attempts",
        ),
        pytest.param(
            [LOST], ["01 A 1 attempt, 0 full, mean ? / 4", "1 not graded"], id="not graded"
        ),
        pytest.param([MISSING], ["01 A 0 attempts, 0 full, mean – / 4"], id="not handed in"),
    ],
)
def test_an_exercise_has_a_summary_over_the_class(attempts, lines):
    summary = class_exercises(ClassView(results_of(*attempts), labels=LABELS))
    printed = [" ".join(line.split()) for line in make.printed_lines(summary, 80)]
    assert printed == ["Heads", *lines]


NOT_GRADED_MESSAGE = "Not graded: the grader itself failed here. That is not your fault."


def two_checks(id_, score=2):
    """Return the result of an exercise with two checks of 1 point each.

    score: None means that the second check could not be run; the first one passes always.
    """
    evidence = "" if score == 2 else "The grader itself failed here; this is not your fault."
    outcome = "skipped" if score is None else "failed"
    second_check = make.check("merge", (score or 1) - 1, 1, outcome, evidence=evidence)
    return make.exercise(id_, make.check("split", 1), second_check, score=score)


def result_of_two(student, dance, mask):
    """Return a result with these scores in the exercises dance and mask; None is "not graded"."""
    exercises = two_checks("dance", dance), two_checks("mask", mask)
    return make.result(student, *exercises, assignment="heads", seed=7)


ADA, BEN = result_of_two("ada", 2, None), result_of_two("ben", 2, 1)


def test_a_result_with_an_ungraded_exercise_has_no_total():
    assert (ADA.score, ADA.max_score, ADA.not_graded) == (None, 4, ("mask",))
    assert (BEN.score, BEN.max_score, BEN.not_graded) == (3, 4, ())
    assert Result.model_validate_json(ADA.model_dump_json()) == ADA
    excused_mask = two_checks("mask", None).model_copy(update={"excused": True})
    excused = make.result("ada", two_checks("dance"), excused_mask)
    assert (excused.score, excused.max_score, excused.not_graded) == (2, 2, ())
    assert [one_exercise(ADA, id_).score for id_ in ("dance", "mask")] == [2, None]


def test_ungraded_exercises_with_the_same_reason_share_one_sentence():
    two_of_three_ungraded = make.result(
        "ada", *(two_checks(id_, None) for id_ in "ab"), two_checks("c")
    )
    results = (ADA, result_of_two("ada", None, None), two_of_three_ungraded)
    assert [list(not_graded(result)) for result in results] == [
        [f"{exercises}: the grader itself failed here"]
        for exercises in ("mask", "every exercise", "a, b")
    ]


@pytest.mark.parametrize("results", [[ADA, BEN], [ADA]], ids=["with others", "alone"])
def test_the_class_page_shows_no_points_for_an_ungraded_exercise(results, tmp_path):
    page = write_pages(ClassView(results), tmp_path / "report").read_text(encoding="utf-8")
    assert "Not graded: 1." in page
    start = '<tr data-section=""><th scope="row"><a href="students/ada.html">'
    row = page.partition(start)[2].partition("</tr>")[0]
    cells = [re.sub("<[^>]*>", "", f"<td{cell}") for cell in row.split("<td")[1:]]
    assert cells == ["2", "?", "?"]


def test_reports_to_students_do_not_describe_the_grader_failure():
    page = student_page(ClassView([ADA]), [ADA])
    text = " ".join(re.sub("<[^>]*>", " ", page.partition("<main")[2]).split())
    assert "heads points not graded: 1 of 2 exercises done 1 of 2" in text
    assert f"mask not graded {NOT_GRADED_MESSAGE}" in text
    # the page lists no check of this exercise, because a title would say what the check does
    assert "does" not in text.partition("? mask")[2]
    report = " ".join(make.printed_lines(exercise_report(ADA.exercises[1]), 80))
    assert " ".join(report.split()).startswith(f"? mask ? / 2 {NOT_GRADED_MESSAGE}")
    markdown = results_section("Heads", [ADA])
    assert markdown.startswith("## Heads: not graded: 1 of 2\n")
    assert "| ? | mask | not graded |" in markdown
    assert "0 / " not in markdown
    assert "not graded: 1 of 2" in feedback_markdown(ADA)


@pytest.mark.parametrize(
    ("result", "unstarted", "state"),
    [
        pytest.param(ADA, set(), "neutral", id="alone"),
        pytest.param(result_of_two("ada", 1, None), set(), "failure", id="beside a wrong one"),
        pytest.param(ADA, {("heads", "mask")}, "success", id="not started"),
    ],
)
def test_an_ungraded_exercise_does_not_fail_a_pull_request(result, unstarted, state):
    assert verdict([result], "none", unstarted) == (state, "not graded: 1 of 2")
    assert why_not_on_a_gpu([result], ()) == "", "one of its checks passed"


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("csv", ["ada,heads,dance,2", "ada,heads,mask,", "ben,heads,dance,2", "ben,heads,mask,1"]),
        ("canvas", ["    Points Possible,,,,,4", "ada,,,ada,,", "ben,,,ben,,3"]),
        ("moodle", ["ada,,,", "ben,,,3"]),
    ],
)
def test_the_score_of_an_ungraded_exercise_is_blank_in_exports(name, rows):
    columns = rows[0].count(",") + 1
    table = csv.reader(io.StringIO(FORMATS[name](ClassView([ADA, BEN]))))
    assert [",".join(row[:columns]) for row in table][-len(rows) :] == rows
