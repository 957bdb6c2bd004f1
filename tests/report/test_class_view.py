"""What is counted of a class, and how a terminal shows it; what the grader could not judge has no
points anywhere.
"""

import csv
import io
import re
from typing import Any

import pytest

from manyheads.platforms.grade_pull_request import verdict, why_not_on_a_gpu
from manyheads.report.class_summary import (
    NOT_IMPORTED,
    UNEXPLAINED,
    AssignmentView,
    ClassList,
    ClassMisconception,
    ClassView,
    Column,
    not_graded,
)
from manyheads.report.markdown import feedback_markdown, one_exercise, results_section
from manyheads.report.pages import student_page, write_pages
from manyheads.report.report_content import Labels
from manyheads.report.score_exports import FORMATS
from manyheads.report.terminal import class_exercises, class_table, exercise_report
from manyheads.result import Adjustment, Diagnosed, ExerciseResult, Outcome, ProvedLine, Result
from manyheads.submission.roster_and_times import Roster, Student
from manyheads.submission.source import LOAD_ERROR, UNTOUCHED
from tests import make

LABELS = Labels(
    {"heads": "Heads", "tails": "Tails"}, {"a": ("01", "A"), "b": ("02", "B"), "c": ("01", "C")}
)
VIEW = Diagnosed(id="wrong_view", title="You viewed straight.", hint="")
AXIS = Diagnosed(id="axis", title="You took the wrong axis.", hint="")


def exercise(
    id_: str, *named: Diagnosed, score: float = 0, outcome: Outcome = "failed", **fields: Any
) -> ExerciseResult:
    """Of 4 points."""
    return make.exercise(id_, make.check("split", score, 4, outcome), diagnosis=named, **fields)


def graded_result(student: str, *exercises: ExerciseResult, assignment: str = "heads") -> Result:
    return make.result(student, *exercises, assignment=assignment)


def part_of(*results: Result, roster: tuple[str, ...] = (), zero: bool = False) -> AssignmentView:
    members = ClassList(Roster(tuple(Student(id_) for id_ in roster)), zero)
    (assignment,) = ClassView(results, members, LABELS).assignments
    return assignment


def column_of(*exercises: ExerciseResult) -> Column:
    (column,) = part_of(
        *(graded_result(f"student{i}", attempt) for i, attempt in enumerate(exercises))
    ).columns
    return column


def table(*results: Result, **options: Any) -> list[list[str]]:
    """The words of every line that has a total."""
    lines = make.printed_lines(class_table(ClassView(results, labels=LABELS, **options)), 80)
    return [line.split() for line in lines if "/" in line]


RIGHT = exercise("a", score=4)
FAILED = exercise("a")
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
    ("exercises", "counted"),
    [
        pytest.param(
            [FAILED],
            {"attempts": 1, "mean": 0, "groups": {UNEXPLAINED: 1}},
            id="a failure without a name is unexplained",
        ),
        pytest.param(
            [RIGHT.model_copy(update={"score": 1.0})],
            {"mean": 1, "groups": {}},
            id="a right one that a human lowered is not wrong",
        ),
        pytest.param(
            [RIGHT, exercise("a", outcome="missing")],
            {"attempts": 1, "mean": 4, "full": 1},
            id="the mean is that of attempts",
        ),
        pytest.param(
            [exercise("a", outcome="missing")],
            {"attempts": 0, "mean": None},
            id="nobody has a mean",
        ),
        pytest.param(
            [RIGHT, LOST],
            {"attempts": 2, "mean": 4, "full": 1, "not_graded": 1, "spread": [0, 0, 0, 0, 0, 1]},
            id="what is not graded is in no mean",
        ),
        pytest.param([RIGHT, EXCUSED], {"attempts": 1, "mean": 4}, id="nor is what is excused"),
        pytest.param(
            [
                exercise("a", VIEW.model_copy(update={"id": LOAD_ERROR}), outcome="error"),
                exercise("a", VIEW, outcome="crashed"),
            ],
            {"groups": {NOT_IMPORTED: 1}},
            id="what is in a group has no name",
        ),
    ],
)
def test_of_an_exercise_there_is_counted(exercises, counted):
    column = column_of(*exercises)
    assert {key: getattr(column, key) for key in counted} == counted


@pytest.mark.parametrize(
    ("score", "where"), [(0, 0), (0.5, 1), (1, 1), (1.1, 2), (2, 2), (3, 3), (3.9, 4), (4, 5)]
)
def test_a_score_counts_among_the_shares_that_it_reaches(score, where):
    assert [i for i, count in enumerate(column_of(exercise("a", score=score)).spread) if count] == [
        where
    ]


def test_totals_are_those_that_there_are_of_who_counts():
    half, lost = graded_result("ben", exercise("a", score=2)), graded_result("cat", LOST)
    excused, stranger = graded_result("dan", EXCUSED), graded_result("eve", FAILED)
    assignment = part_of(
        graded_result("ada", RIGHT),
        half,
        lost,
        excused,
        stranger,
        roster=("ada", "ben", "cat", "dan", "zoe"),
    )
    assert (assignment.mean, assignment.median, assignment.max_score) == (3, 3, 4)
    assert [(name, count) for name, count in assignment.totals if count] == [
        ("all", 1),
        ("50–60 %", 1),
        ("not graded", 1),
    ]
    assert (assignment.strangers, assignment.absent) == (["eve"], ["zoe"])
    assert (assignment.columns[0].attempts, assignment.columns[0].mean) == (3, 3)
    assert assignment.not_graded == [("cat", "01 A: the grader failed")]
    assert part_of(graded_result("dan", UNREAD)).not_graded == [
        ("dan", "handed in, not readable: work.rar (every exercise)")
    ]
    nobody = part_of(lost)
    assert (nobody.mean, nobody.median) == (None, None)


def test_more_students_come_first_then_more_attempts():
    rare, common = (VIEW.model_copy(update={"id": id_}) for id_ in ("rare", "common"))
    ada = graded_result("ada", exercise("a", rare), exercise("b", AXIS), exercise("c", AXIS))
    assignment = part_of(
        ada,
        graded_result("ben", exercise("a", common)),
        graded_result("cat", exercise("a", common)),
    )
    counts = [
        (misconception.id, len(misconception.names), misconception.attempts)
        for misconception in assignment.misconceptions
    ]
    assert counts == [("common", 2, 2), ("axis", 1, 2), ("rare", 1, 1)]
    assert part_of(graded_result("ada", RIGHT)).misconceptions == []


def test_a_misconception_lists_its_titles_its_alternatives_and_those_named_with_it():
    either = VIEW.model_copy(update={"alternative_titles": ("You mixed.",), "title": "You viewed."})
    assignment = part_of(
        graded_result("ada", exercise("a", either), exercise("b", VIEW)),
        graded_result("ben", exercise("a", either, AXIS)),
        graded_result("cat", exercise("a", VIEW)),
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
    ("attempts", "wrong_line"),
    [
        ([("x = a  # by Bo → x = b  # by Bo", [VIEW])], "x = a"),
        ([("f('#', a)  # by Bo → x", [VIEW])], "f('#', a)"),
        ([('f("""# by Bo → x', [VIEW])], 'f("""'),
        ([("", [VIEW]), ("x = a → x = b", [VIEW])], "x = a"),
        ([("x = a → x = b", [VIEW, AXIS])], ""),
        ([("x = a → y = 1 x = a", [VIEW])], ""),
    ],
    ids=["comment", "string", "part", "of any attempt", "of one mistake", "of no line"],
)
def test_a_misconception_has_a_line_of_wrong_code(attempts, wrong_line):
    results = []
    for edit, named in attempts:
        lines = (ProvedLine(line=1, edit=edit),)
        results.append(graded_result("ada", exercise("a", *named, lines=lines)))
    assert part_of(*results).misconceptions[0].wrong_line == wrong_line


def test_every_count_is_about_the_same_attempts():
    wrong = exercise("a", VIEW)
    missing = exercise("a", outcome="missing")
    assignment = part_of(
        *(graded_result(student, wrong) for student in ("ada", "ben")),
        graded_result("cat", FAILED),
        graded_result("dan", missing, exercise("b")),
        graded_result("eve", EXCUSED.model_copy(update={"diagnosis": (VIEW,)}), exercise("b")),
        graded_result("mal", wrong),
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


def test_what_is_named_again_in_a_later_exercise_came_back():
    untouched = VIEW.model_copy(update={"id": UNTOUCHED})
    results = [
        graded_result(
            "ada", exercise("c", AXIS), assignment="tails"
        ),  # in whichever order results come
        graded_result("ada", exercise("a", AXIS), exercise("b")),
        graded_result("ben", exercise("a", AXIS), exercise("b", AXIS)),
        graded_result("ben", exercise("c", AXIS), assignment="tails"),
        graded_result("cat", exercise("a", AXIS), exercise("b", VIEW)),
        graded_result("dan", exercise("b", AXIS)),
        graded_result("eve", exercise("a", untouched), exercise("b", untouched)),
    ]
    assert ClassView(results, labels=LABELS).came_back == [
        (AXIS.title, "a", "c", ["ada", "ben"]),
        (AXIS.title, "a", "b", ["ben"]),
    ]


def test_attempts_that_nothing_explains_and_that_answer_alike_are_one_group(tmp_path):
    def wrong_result(student: str, answers: str, *named: Diagnosed) -> Result:
        return graded_result(student, exercise("a", *named, answers=answers))

    results = [
        *(wrong_result(student, "f00") for student in ("ada", "ben", "bob")),
        wrong_result("cat", "bad"),
        wrong_result("col", "bad"),
        wrong_result("dan", "f00", VIEW),
        *(wrong_result(student, "") for student in ("eve", "fay", "gil")),
    ]
    assert part_of(*results).alike == [("a", "f00", ["ada", "ben", "bob"])], "two are no group"
    page = write_pages(ClassView(results, labels=LABELS), tmp_path).read_text(encoding="utf-8")
    says = (
        "<b>3</b> answer alike in 01 A, and no misconception explains them. Look at one: <a "
        'href="students/ada'
    )
    assert says in page
    assert '- {answers: "f00", assignment: heads, exercise: a, comment: ' in page


def test_the_class_is_listed_by_name_with_scores_and_first_misconceptions():
    wrong_exercise = exercise("b", VIEW, score=1)
    assert table(
        graded_result("mia", RIGHT, wrong_exercise),
        graded_result("ada", RIGHT),
        graded_result("ben", LOST, wrong_exercise),
    ) == [
        ["ada", "4", "4/4"],
        ["ben", "?", "1", "?/8", "02:", *VIEW.title.split()],
        ["mia", "4", "1", "5/8", "02:", *VIEW.title.split()],
    ]
    lines = make.printed_lines(
        class_table(ClassView([graded_result("mia", RIGHT, wrong_exercise)], labels=LABELS))
    )
    assert lines[-2:] == ["Misconceptions in this class", f" 1  {VIEW.title}"]
    assert "Misconceptions in this class" not in make.printed_lines(
        class_table(ClassView([graded_result("ada", RIGHT)]))
    )
    assert make.printed_lines(class_table(ClassView([]))) == []


@pytest.mark.parametrize(
    ("attempt", "cell"),
    [
        (exercise("a", outcome="crashed"), "0!"),
        (exercise("a", outcome="timeout"), "0∞"),
        (exercise("a", outcome="missing"), "–"),
        (exercise("a", outcome="missing", adjustments=(LATE,)), "–"),
        (exercise("a", outcome="missing", adjustments=(BY_HAND,)), "0"),
        (FAILED, "0"),
        (exercise("a", outcome="error"), "0"),
        (LOST, "?"),
        (EXCUSED, "ex"),
        (make.exercise("a", max_score=4), "0"),
    ],
)
def test_a_score_says_how_an_attempt_ended_and_what_has_none_has_a_mark(attempt, cell):
    (row,) = table(graded_result("ada", attempt))
    assert row[:2] == ["ada", cell]


@pytest.mark.parametrize(
    ("zero", "cells"), [(False, ["zoe", "–", "–/4"]), (True, ["zoe", "–", "0/4"])]
)
def test_who_handed_in_nothing_has_a_row(zero, cells):
    members = ClassList(Roster((Student("ada"), Student("zoe"))), zero)
    assert table(graded_result("ada", RIGHT), members=members) == [["ada", "4", "4/4"], cells]


@pytest.mark.parametrize(
    "name",
    ["x" * 120, "😀" * 40, "a" + "\u0301" * 119, "[red]x[/red] [/] :smile:"],
    ids=["letters", "wide signs", "accents", "markup"],
)
def test_on_a_narrow_terminal_a_misconception_is_cut_and_no_score_nor_an_exercises_title(
    name,
):
    long = VIEW.model_copy(update={"title": "You divided by the root of a full width, " * 3})
    titles = {
        f"p{i}": (f"{i:02d}", title)
        for i, title in enumerate(["One", "The second part of all there is"] * 4)
    }
    exercises = [exercise(id_, long, score=2.25) for id_ in titles]
    output = make.printed_lines(
        class_table(
            ClassView(
                [graded_result("ada", *exercises), graded_result(name, *exercises)],
                labels=Labels(exercises=titles),
            )
        ),
        80,
    )
    lines = [line for line in output if "2.25" in line]
    assert [line.count("2.25") for line in lines] == [8, 8]
    assert all("18/32" in line and line.endswith("…") for line in lines)
    assert any(name.split()[0][:12] in line for line in output)
    for words in titles.values():
        assert any(" ".join(words) in line for line in output)


@pytest.mark.parametrize(
    ("count", "last"), [(12, [" and 2 more: course report there"]), (10, [f" 1  {VIEW.title}"])]
)
def test_of_many_misconceptions_the_rest_is_counted_with_the_command_that_shows_it(count, last):
    exercises = [
        exercise(f"part_{i}", VIEW.model_copy(update={"id": f"m{i}"})) for i in range(count)
    ]
    assert (
        make.printed_lines(
            class_table(ClassView([graded_result("ada", *exercises)]), "course report there")
        )[-1:]
        == last
    )


EITHER = VIEW.model_copy(update={"alternative_titles": ("You mixed.",)})


@pytest.mark.parametrize(
    ("attempts", "lines"),
    [
        pytest.param(
            [exercise("a", VIEW), exercise("a", EITHER), FAILED, LOST],
            [
                "01 A 4 attempts, 0 full, mean 0.00 / 4",
                f"2 {VIEW.title} (or You mixed., 1 of 2)",
                "1 wrong in a way that no misconception explains",
                "1 not graded",
            ],
            id="what explains it, and where another does, too",
        ),
        pytest.param(
            [exercise("a", EITHER)],
            ["01 A 1 attempt, 0 full, mean 0.00 / 4", f"1 {VIEW.title} (or You mixed.)"],
            id="in all of them",
        ),
        pytest.param(
            [LOST], ["01 A 1 attempt, 0 full, mean ? / 4", "1 not graded"], id="not graded"
        ),
        pytest.param(
            [exercise("a", outcome="missing")],
            ["01 A 0 attempts, 0 full, mean – / 4"],
            id="not handed in",
        ),
    ],
)
def test_an_exercise_over_the_class_says(attempts, lines):
    view = ClassView(
        [graded_result(f"student{i}", attempt) for i, attempt in enumerate(attempts)], labels=LABELS
    )
    assert [" ".join(line.split()) for line in make.printed_lines(class_exercises(view), 80)] == [
        "Heads",
        *lines,
    ]


SAID = "Not graded: the grader itself failed here. That is not your fault."


def two_checks(id_: str, score: float | None = 2) -> ExerciseResult:
    """Of 2 points. None: a check could not be run, and the other one passed."""
    evidence = "" if score == 2 else "The grader itself failed here; this is not your fault."
    late = make.check(
        "merge", (score or 1) - 1, 1, "skipped" if score is None else "failed", evidence=evidence
    )
    return make.exercise(id_, make.check("split", 1), late, score=score)


def ungraded_result(student: str, dance: float | None, mask: float | None) -> Result:
    return make.result(
        student, two_checks("dance", dance), two_checks("mask", mask), assignment="heads", seed=7
    )


ADA, BEN = ungraded_result("ada", 2, None), ungraded_result("ben", 2, 1)


def test_a_result_with_such_an_exercise_has_no_total():
    assert [(r.score, r.max_score, r.not_graded) for r in (ADA, BEN)] == [
        (None, 4, ("mask",)),
        (3, 4, ()),
    ]
    assert Result.model_validate_json(ADA.model_dump_json()) == ADA
    excused = make.result(
        "ada", two_checks("dance"), two_checks("mask", None).model_copy(update={"excused": True})
    )
    assert (excused.score, excused.max_score, excused.not_graded) == (2, 2, ()), (
        "one that is excused counts for nothing"
    )
    assert [one_exercise(ADA, id_).score for id_ in ("dance", "mask")] == [2, None]


def test_exercises_of_one_reason_are_told_in_one_sentence():
    reason = "the grader itself failed here"
    assert [*not_graded(ADA)] == [f"mask: {reason}"]
    assert [*not_graded(ungraded_result("ada", None, None))] == [f"every exercise: {reason}"]
    three = make.result("ada", *(two_checks(id_, None) for id_ in "ab"), two_checks("c"))
    assert [*not_graded(three)] == [f"a, b: {reason}"]


@pytest.mark.parametrize("results", [[ADA, BEN], [ADA]], ids=["with others", "alone"])
def test_the_class_page_says_so_and_has_no_points_for_it(results, tmp_path):
    page = write_pages(ClassView(results), tmp_path / "report").read_text(encoding="utf-8")
    assert "Not graded: 1." in page
    (row,) = re.findall(
        r'<tr data-section=""><th scope="row"><a href="students/ada.html">.*?</tr>', page
    )
    assert [re.sub("<[^>]*>", "", cell) for cell in row.split("<td")[1:]] == [
        ' class="s5">2',
        ">?",
        ">?",
    ]


def test_a_student_reads_that_it_is_not_graded_and_not_why():
    page = student_page(ClassView([ADA]), [ADA])
    text = " ".join(re.sub("<[^>]*>", " ", page.partition("<main")[2]).split())
    assert "heads points not graded: 1 of 2 exercises done 1 of 2" in text
    assert f"mask not graded {SAID}" in text
    assert "does" not in text.partition("? mask")[2]
    report = " ".join(" ".join(make.printed_lines(exercise_report(ADA.exercises[1]), 80)).split())
    assert report.startswith(f"? mask ? / 2 {SAID}")
    markdown = results_section("Heads", [ADA])
    assert markdown.startswith("## Heads: not graded: 1 of 2\n")
    assert "| ? | mask | not graded |" in markdown
    assert "0 / " not in markdown
    assert "not graded: 1 of 2" in feedback_markdown(ADA)


@pytest.mark.parametrize(
    ("result", "unwritten", "says"),
    [
        pytest.param(ADA, set(), ("neutral", "not graded: 1 of 2"), id="nor right"),
        pytest.param(
            ungraded_result("ada", 1, None),
            set(),
            ("failure", "not graded: 1 of 2"),
            id="wrong beside it",
        ),
        pytest.param(ADA, {("heads", "mask")}, ("success", "not graded: 1 of 2"), id="not started"),
    ],
)
def test_a_pull_request_is_not_wrong_for_it(result, unwritten, says):
    assert verdict([result], "none", unwritten) == says
    assert why_not_on_a_gpu([result], ()) == "", "one of its checks passed"


@pytest.mark.parametrize(
    ("format_", "rows"),
    [
        (
            "csv",
            [
                ["ada", "heads", "dance", "2"],
                ["ada", "heads", "mask", ""],
                ["ben", "heads", "dance", "2"],
                ["ben", "heads", "mask", "1"],
            ],
        ),
        ("canvas", [["ada", "", "", "ada", "", ""], ["ben", "", "", "ben", "", "3"]]),
        ("moodle", [["ada", "", "", ""], ["ben", "", "", "3"]]),
    ],
)
def test_a_gradebooks_cell_is_blank(format_, rows):
    table = list(csv.reader(io.StringIO(FORMATS[format_](ClassView([ADA, BEN])))))
    assert [row[: len(rows[0])] for row in table[-len(rows) :]] == rows
    assert format_ != "canvas" or table[1][-1] == "4"
