"""The text in a terminal or a notebook: reports of attempts, traces, progress, next commands."""

import html
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Group
from rich.text import Text

from manyheads.course import Course
from manyheads.course.course_yaml_schema import CourseFile
from manyheads.notebook import combine_views, report_view
from manyheads.report.command_name import next_alone
from manyheads.report.report_content import attempt_words
from manyheads.report.terminal import Hanging, exercise_report, ladder
from manyheads.report.trace_text import LEGEND, crop_lines, trace_report
from manyheads.result import (
    Diagnosed,
    FunctionResult,
    ProvedLine,
)
from manyheads.student.choose_example_calls import OriginRow, OriginTable
from manyheads.student.hints import Rung, after_done, going_on
from manyheads.student.trace import Explained, Operation, Repeated, TraceLine
from tests import make
from tests.make import TINY
from tests.report.conftest import dance_exercise


def report_of(result, width=100):
    """Return the lines of the report of one exercise in a terminal of this width."""
    return make.printed_lines(exercise_report(result), width)


def check_of_heads(id_, score=0, max_score=2, outcome="failed", evidence="", **fields):
    """Return the result of a check; split and merge have a title that differs from the id."""
    title = {"split": "splits channels into heads", "merge": "is undone by merge"}.get(id_, id_)
    return make.check(id_, score, max_score, outcome, title=title, evidence=evidence, **fields)


def function(name, state, check="", evidence=""):
    """Return the result of one function. check: the title of the check that shows it is wrong."""
    return FunctionResult(name=name, state=state, check=check, evidence=evidence)


VIEW = Diagnosed(
    id="wrong_view", title="You viewed straight to (B, nh, T, hd).", hint="view never moves data."
)
SCALE = Diagnosed(
    id="scale_missing", title="You did not scale.", hint="How large are they?", function="scores"
)
AXIS = Diagnosed(
    id="axis", title="You took the wrong axis.", hint="Which sums to 1?", function="weights"
)
ROOT = Diagnosed(
    id="no_sqrt",
    title="You divided by hd.",
    hint="Not shown.",
    alternatives=("twice",),
    alternative_titles=("You scaled twice.",),
)
STUB = Diagnosed(id="stub_untouched", title="Nothing is written here yet.", hint="Draw it first.")
KEYS = VIEW.model_copy(
    update={
        "title": "You took the keys.",
        "alternatives": ("no",),
        "alternative_titles": (ROOT.title,),
    }
)
REFUSED = Diagnosed(
    id="unchecked", title="You did not refuse 5 heads.", hint="64 / 5?", function="split"
)
ENDLESS = check_of_heads(
    "split",
    outcome="timeout",
    evidence="It was still in the loop on line 62: does it end?",
    function="split",
)
UNWRITTEN_SPLIT = check_of_heads(
    "split", outcome="error", evidence="raised NotImplementedError", function="split_heads"
)
FAILED_SPLIT = check_of_heads("split", evidence="head 0 differs", hint="not shown")
FOUR_CHECKS = (
    check_of_heads("shape", 0, 1, evidence="raised NotImplementedError", function="attend"),
    check_of_heads("scales", evidence="too large", function="scores"),
    check_of_heads("shares", evidence="not 1", function="weights"),
    check_of_heads("simple", 1, 1),
)
FOUR_FUNCTIONS = (
    function("simple", "right"),
    function("scores", "wrong", "scales", "too large"),
    function("weights", "wrong", "shares", "not 1"),
    function("attend", "unwritten"),
)


@pytest.mark.parametrize(
    ("attempt", "report"),
    [
        pytest.param(
            dance_exercise(check_of_heads("split", 2), check_of_heads("merge", 4, 4)),
            "✓ dance 6 / 6",
            id="a full score is one line",
        ),
        pytest.param(
            dance_exercise(
                FAILED_SPLIT,
                check_of_heads("merge", 0, 1, evidence="not shown"),
                check_of_heads("shape", 3, 3),
                named=(VIEW,),
            ),
            (
                "✗ dance 3 / 6 | You viewed straight to (B, nh, T, hd). | splits channels into "
                "heads 0 / 2 | head 0 differs | hint: view never moves data. | is undone by merge "
                "0 / 1 | 1 check passes 3 / 3"
            ),
            id="misconception, failed checks, evidence, hint and passed checks",
        ),
        pytest.param(
            dance_exercise(*FOUR_CHECKS, named=(SCALE, AXIS), functions=FOUR_FUNCTIONS),
            (
                "✗ dance 1 / 6 | ✓ simple | ✗ scores: You did not scale. | scales 0 / 2 | too "
                "large | hint: How large are they? | ✗ weights: You took the wrong axis. | shares "
                "0 / 2 | not 1 | hint: Which sums to 1? | · attend: not written yet | 1 check "
                "waits for what is not right or written yet 0 / 1 | 1 check passes 1 / 1"
            ),
            id="each function has its own misconception and hint",
        ),
        pytest.param(
            dance_exercise(FAILED_SPLIT),
            "✗ dance 0 / 2 | splits channels into heads 0 / 2 | head 0 differs",
            id="without a misconception there is no hint",
        ),
        pytest.param(
            dance_exercise(FAILED_SPLIT, named=(VIEW, ROOT)),
            (
                "✗ dance 0 / 2 | 2 mistakes: | 1. You viewed straight to (B, nh, T, hd). | 2. You "
                "divided by hd. Or: You scaled twice. | splits channels into heads 0 / 2 | head 0 "
                "differs | hint: view never moves data."
            ),
            id="two misconceptions, one hint, an alternative",
        ),
        pytest.param(
            dance_exercise(
                FAILED_SPLIT, named=(KEYS, ROOT.model_copy(update={"alternative_titles": ()}))
            ),
            (
                "✗ dance 0 / 2 | 2 mistakes: | 1. You took the keys. | 2. You divided by hd. | "
                "splits channels into heads 0 / 2 | head 0 differs | hint: view never moves data."
            ),
            id="an alternative that is the other misconception is left out",
        ),
        pytest.param(
            dance_exercise(
                ENDLESS,
                named=(REFUSED,),
                functions=(function("split", "wrong", ENDLESS.title, "no end"),),
            ),
            (
                "✗ dance 0 / 2 | ✗ split: not right yet | splits channels into heads 0 / 2 | no "
                "end | Also: You did not refuse 5 heads. That may not be the only mistake."
            ),
            id="a misconception that explains no timeout comes last",
        ),
        pytest.param(
            dance_exercise(
                UNWRITTEN_SPLIT, named=(STUB,), functions=(function("split_heads", "unwritten"),)
            ),
            (
                "… dance 0 / 2 | · split_heads: not written yet | hint: Draw it first. | 1 check "
                "waits for what is not right or written yet 0 / 2"
            ),
            id="an unwritten function is not called wrong",
        ),
        pytest.param(
            dance_exercise(
                check_of_heads("split", 2),
                functions=(function("a", "right"), function("b", "unwritten")),
            ),
            "… dance 2 / 2 | ✓ a | · b: not written yet | 1 check passes 2 / 2",
            id="with an unwritten function the exercise is not done",
        ),
        pytest.param(
            dance_exercise(
                check_of_heads("split", 2),
                max_score=2.25,
                unseen=0.25,
                unseen_checks=("drops weights",),
            ),
            "✓ dance 2 / 2.25",
            id="hidden checks are not mentioned",
        ),
        pytest.param(
            dance_exercise(
                *(
                    check_of_heads(f"c{i}", 0, 0.5, "error", "It raised SyntaxError.")
                    for i in range(4)
                )
            ),
            "✗ dance 0 / 2 | It raised SyntaxError. | 4 checks fail here 0 / 2",
            id="checks with the same evidence are one line",
        ),
        pytest.param(
            dance_exercise(
                *(check_of_heads(f"c{i}", 0, 0.5, "failed", f"{i % 2} differ") for i in range(4))
            ),
            "✗ dance 0 / 2 | c0 0 / 0.5 | 0 differ | and 3 other checks fail here 0 / 1.5",
            id="further failed checks are counted",
        ),
    ],
)
def test_the_report_of_an_attempt_has_this_text(attempt, report):
    assert " | ".join(" ".join(line.split()) for line in report_of(attempt)) == report


def test_evidence_is_indented_and_points_are_right_aligned():
    lines = report_of(dance_exercise(FAILED_SPLIT, check_of_heads("shape", 3, 3), named=(VIEW,)))
    assert lines[0] == f"{'✗ dance':<54}     3 / 5"
    assert lines[2:4] == [f"{'  splits channels into heads':<54}     0 / 2", "    head 0 differs"]
    assert attempt_words(dance_exercise(FAILED_SPLIT)).next_command == "course trace dance"


@pytest.mark.parametrize(
    ("lines", "location"),
    [
        ([ProvedLine(line=23, edit="a → b")], "line 23"),
        ([ProvedLine(line=23), ProvedLine(line=31)], "line 23, or line 31"),
        ([ProvedLine(line=40, cell=3, line_in_cell=5)], "line 5 of code cell 3"),
    ],
    ids=["one line", "two lines", "a line of a cell"],
)
def test_the_report_names_the_wrong_line_but_not_the_edit(lines, location):
    report = report_of(dance_exercise(FAILED_SPLIT, named=(VIEW,), lines=tuple(lines)))
    assert report[1] == f"  You viewed straight to (B, nh, T, hd) ({location})."
    assert "→" not in "".join(report)  # the sign of an edit, which would give the answer away


def test_text_that_looks_like_markup_is_shown_unchanged():
    markup = "[red]x[/red] [0, 1] [/] :smile:"
    named = (Diagnosed(id="x", title=markup, hint=markup),)
    report = report_of(dance_exercise(check_of_heads(markup, evidence=markup), named=named))
    assert "\n".join(report).count(markup) == 4


@pytest.mark.parametrize("width", [40, 60, 100])
def test_points_are_in_one_column_at_every_terminal_width(width):
    long = check_of_heads("is right with as many channels out as in, a full context", 0, 0.25)
    lines = [
        line
        for line in report_of(dance_exercise(long, check_of_heads("split")), width)
        if " / " in line
    ]
    columns = [line.index(" / ") for line in lines]
    assert columns == columns[:1] * 3
    assert max(map(len, lines)) <= width


def course_with(*changes: dict[str, object], assignment: str = "A") -> Course:
    """Return a course with one exercise for each of these changes of a default exercise.

    assignment: the title of its only assignment.
    """
    rows = [
        {"id": f"e{n}", "title": "E", "points": 1, "hint": "h", **change}
        for n, change in enumerate(changes)
    ]
    file = {"title": "T", "assignments": [{"id": "a", "title": assignment, "exercises": rows}]}
    return Course(Path(), CourseFile.model_validate(file))


SCORES, MASK, HEADS_ROW = course_with(
    {"title": "Scores", "points": 5},
    {"title": "The mask", "points": 4},
    {"title": "Heads", "points": 6},
    assignment="Heads",
).exercises
(TAIL_ROW,) = course_with({"title": "A tail", "points": 6}, assignment="Tails").exercises
MASK_PASSED, NAN_FAILED = make.check("masks", 1), make.check("gives no NaN")
MASK_CHECK_TITLES = [(check.id, check.title) for check in (MASK_PASSED, NAN_FAILED)]


def mask_rung(**changes):
    """Return the row of the exercise "The mask", with one of two checks passed."""
    return Rung(
        MASK,
        MASK_CHECK_TITLES,
        make.exercise("e1", MASK_PASSED, NAN_FAILED, **{"score": 1.5, **changes}),
    )


DONE_RUNG = Rung(SCORES, [("scales", "scales")], make.exercise("e0", make.check("scales", 5, 5)))
STARTED_RUNG, UNTOUCHED_RUNG = mask_rung(), Rung(HEADS_ROW, [("splits", "splits")])


def progress_lines(*rungs, width=80):
    """Return the lines of `course status` for exercises in these states."""
    return make.printed_lines(ladder(rungs), width)


def test_status_lists_exercises_and_the_checks_of_the_first_unfinished_one():
    assert progress_lines(DONE_RUNG, STARTED_RUNG, UNTOUCHED_RUNG) == [
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


def test_status_lists_the_exercises_of_each_assignment_below_its_title():
    assert progress_lines(DONE_RUNG, STARTED_RUNG, Rung(TAIL_ROW, []))[:6] == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "Tails",
        "·  01 A tail  – / 6  untouched",
        "1 of 3 done, 6.5 of 15 points by the visible checks",
    ]


def test_status_marks_missing_files_and_omits_the_checklist_when_all_is_done():
    assert "?  03 Heads  – / 6  missing" in progress_lines(UNTOUCHED_RUNG._replace(is_missing=True))
    total_line = "1 of 1 done, 5 of 5 points by the visible checks"
    assert progress_lines(DONE_RUNG) == ["Heads", "✓  01 Scores  5 / 5  done", total_line]


def test_status_wraps_long_lines_in_a_narrow_terminal():
    long = STARTED_RUNG._replace(
        check_titles=[("past", "lets every token see itself and the past")]
    )
    assert progress_lines(DONE_RUNG, long, width=40) == [
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


def test_status_says_how_many_points_only_hidden_checks_can_give():
    lines = progress_lines(DONE_RUNG, mask_rung(unseen=0.5))
    assert lines[2:4] == [
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "1 of 2 done, 6.5 of 9 points by the visible checks; only grading can give 0.5 of",
    ]


TRAIN = {"module": "Heads", "arguments": {"n_embd": "C"}}


def test_a_finished_exercise_shows_its_reason_and_training_if_the_course_has_them():
    plain, with_reason, trained = course_with(
        {}, {"why": "Rows sum to 1."}, {"train": TRAIN}
    ).exercises
    asks = "Five questions on your own code: course ask"
    assert after_done(plain) == [f"{asks} e0"]
    assert after_done(with_reason) == ["Why it works: Rows sum to 1.", f"{asks} e1"]
    assert after_done(trained) == ["It can learn to write now: course train e2", f"{asks} e2"]


@pytest.mark.parametrize(
    ("finished", "after", "next_id"), [("e1 e2", 1, "e3"), ("e1 e2 e3", 3, "e0")]
)
def test_the_next_exercise_is_the_first_unfinished_one_after_this(finished, after, next_id):
    course = course_with({}, {}, {}, {})
    done = {exercise for exercise in course.exercises if exercise.id in finished.split()}
    next_step = going_on(course, done, course.exercises[after])
    assert next_step.endswith(f"{next_id}.py, then: course check {next_id}")


def test_after_the_last_unfinished_exercise_the_course_is_done():
    course = course_with({}, {})
    assert going_on(course, {*course.exercises}, after=course.exercises[0]) == "All done."


VIEW_OPERATION = Operation("view", "(B, T, C)", "(B, T, nh, hd)", "view")
TRANSPOSE_OPERATION = Operation(
    "transpose", "(B, T, nh, hd)", "(B, nh, T, hd)", "view, not contiguous"
)


def trace_lines(explained):
    """Return the lines that `course trace` prints for this call."""
    return make.printed_lines(trace_report(explained), soft_wrap=True, color_system=None)


def test_typical_trace_lines_and_the_legend_fit_into_80_columns():
    transpose = Operation("transpose", "(B, nh, T, hd)", "(B, nh, hd, T)", "view, not contiguous")
    explanation = explained_call(
        traced_line("k.transpose(-2, -1)", VIEW_OPERATION, transpose, number="134")
    )
    assert max(map(len, [*trace_lines(explanation), LEGEND])) <= 80


def explained_call(*entries, sizes="", **fields):
    """Return a traced call f(x) with these lines. sizes: the sizes of named axes as text."""
    return Explained("f(x)", sizes, entries, **fields)


def traced_line(code, *operations, depth=0, number="4", **fields):
    """Return a source line with its tensor operations. depth: 1 in a function that is called."""
    return TraceLine(depth, number, code, operations, **fields)


SLICED_READ = Operation(
    "index", "(B, T, C)", "(B, T, hd)", "view", slices="axis 2, round by round: 0–1, 2–3"
)
FAILED_VIEW = Operation("view", "(B, T, nh, hd)", "", raised=True)
CROP = torch.tensor([[0.5, float("-inf")], [1.0, -2.25]])
SUSPICIOUS_VIEW = Operation(
    "view",
    "(B, T, C)",
    "(B, nh, T, hd)",
    "view",
    "T is no longer T",
    crop=CROP,
    full_shape=(1, 2, 5, 2),
)
WRONG_ORIGINS = OriginTable(
    "head 0",
    (OriginRow("token 0", [0, 1], [0, 1]), OriginRow("token 1", [2, -1], [100, 101])),
    "by its address in x",
    2,
)


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        pytest.param(
            explained_call(
                traced_line("x = x.view(B, T, n_head, -1)", VIEW_OPERATION, number="9"),
                traced_line("return x.transpose(1, 2)", TRANSPOSE_OPERATION, number="10"),
                sizes="B = 2, T = 5",
                returned="returns (B, nh, T, hd): the right numbers",
                is_right=True,
            ),
            [
                "  B = 2, T = 5",
                "   9  x = x.view(B, T, n_head, -1)",
                "        view          (B, T, C) → (B, T, nh, hd)          view",
                "  10  return x.transpose(1, 2)",
                "        transpose     (B, T, nh, hd) → (B, nh, T, hd)     view, not contiguous",
                "  ✓ returns (B, nh, T, hd): the right numbers",
            ],
            id="lines, operations and the verdict",
        ),
        pytest.param(
            explained_call(traced_line("q = x[..., at]", SLICED_READ)),
            [
                "  4  q = x[..., at]",
                "       index         (B, T, C) → (B, T, hd)              view",
                "         axis 2, round by round: 0–1, 2–3",
            ],
            id="slices that each loop iteration reads",
        ),
        pytest.param(
            explained_call(
                traced_line("y = half(x)", number="9"),
                traced_line("return x / 2", VIEW_OPERATION, depth=1),
                Repeated(1, "4", "4", 7, False),
                dropped=3,
            ),
            [
                "  9  y = half(x)",
                "  4    return x / 2",
                "         view          (B, T, C) → (B, T, nh, hd)          view",
                "       … 7 more like this, with other shapes (line 4)",
                "  … and 3 more operations",
            ],
            id="helpers are indented and loop iterations counted",
        ),
        pytest.param(
            explained_call(
                traced_line("y.view(B, T, C)", FAILED_VIEW), raised="It raised RuntimeError."
            ),
            [
                "  4  y.view(B, T, C)",
                "       ✗ view        (B, T, nh, hd)",
                "  ✗ It raised RuntimeError.",
            ],
            id="an exception is marked at its operation",
        ),
        pytest.param(
            explained_call(traced_line("x.view()", SUSPICIOUS_VIEW)),
            [
                "  4  x.view()",
                "       view          (B, T, C) → (B, nh, T, hd)          view",
                "       ! T is no longer T",
                "         [0, 0]",
                "          0.50    −∞",
                "          1.00 -2.25",
                "         …",
            ],
            id="a warning and numbers below the operation",
        ),
        pytest.param(
            explained_call(traced_line("x.view()", proved=True)),
            ["  4  x.view()", "       ! one small change of this line makes every check pass"],
            id="a line that is proved to be wrong",
        ),
        pytest.param(
            explained_call(tables=(WRONG_ORIGINS,)),
            [
                "  by its address in x",
                "  head 0   yours       should be",
                "  token 0    0   1  ✓    0   1",
                "  token 1    2   ?  ✗  100 101",
                "  … and 2 more heads",
            ],
            id="wrong numbers beside the expected ones",
        ),
        pytest.param(
            explained_call(tables=(OriginTable("", (OriginRow("token 0", [0, 1], [0, 1]),)),)),
            ["  token 0  0 1"],
            id="all numbers are right",
        ),
        pytest.param(
            explained_call(traced_line("y = x[:, 0]  # [bold]not markup[/bold] [link=x]")),
            ["  4  y = x[:, 0]  # [bold]not markup[/bold] [link=x]"],
            id="markup in a student's code is not interpreted",
        ),
    ],
)
def test_the_trace_of_a_call_has_these_lines(call, lines):
    assert trace_lines(call) == ["f(x)", *lines]


def test_a_wide_trace_table_shows_the_columns_that_are_wrong():
    table = OriginTable("", (OriginRow("token 0", [*range(38), 5, 39], [*range(40)]),))
    *_, row = trace_lines(explained_call(tables=(table,)))
    assert " 37  5 39  ✗ " in row


@pytest.mark.parametrize(
    ("crop", "lines"),
    [
        pytest.param(torch.tensor([True, False]), ["True    ·"], id="bools"),
        pytest.param(torch.tensor([1.0, -20.0]), ["  1 -20"], id="whole numbers"),
        pytest.param(torch.tensor([0.125, float("nan")]), ["0.12  nan"], id="no number"),
        pytest.param(torch.tensor(7.0), ["7"], id="no axis"),
    ],
)
def test_traced_numbers_are_printed_as_short_as_possible(crop, lines):
    assert crop_lines(crop, tuple(crop.shape)) == lines


CHECK = make.check(
    "view", 0, 2, title="splits <b>channels</b>", evidence="a & b", hint="look <i>here</i>"
)
WRONG = Diagnosed(
    id="wrong_view", title="You viewed straight.", hint="view <never> moves", alternatives=()
)


def collapsed_and_visible_text(text):
    """Return the text inside collapsed <details> elements, and the rest of the text."""
    collapsed = "".join(re.findall(r"<details.*?</details>", text))
    visible = re.sub(r"<details.*?</details>", "", text)
    return [html.unescape(re.sub(r"<[^>]+>", "", part)) for part in (collapsed, visible)]


def reshape_result(*diagnosis, **fields):
    """Return a result with the failed CHECK and these misconceptions."""
    return make.exercise("reshape_dance", CHECK, diagnosis=diagnosis, **fields)


def test_a_notebook_report_collapses_hints_and_escapes_markup():
    view = combine_views(report_view(reshape_result(WRONG)))
    assert set(re.findall(r"<(\w+)", view.html)) == {"div", "pre", "span", "details", "summary"}
    collapsed, visible = collapsed_and_visible_text(view.html)
    assert collapsed == "hintview <never> moves"
    assert view.html.index("You viewed straight.") < view.html.index("<details")
    assert "splits <b>channels</b>" in visible
    assert "a & b" in visible
    assert "moves" not in visible  # a word of the hint
    lines = view.text.splitlines()  # the same report as plain text, for a terminal
    assert lines[0].startswith("✗ reshape_dance")
    assert "  hint: view <never> moves" in lines


def test_without_a_misconception_there_is_no_hint():
    assert "<details" not in report_view(reshape_result()).html


def test_a_list_item_is_indented_also_where_its_text_repeats_itself():
    words = "one two three four five six seven"
    assert make.printed_lines(Hanging("✗ ", f"{words}\n{words}"), 22) == [
        "✗ one two three four",
        "  five six seven",
        "  one two three four",
        "     five six seven",
    ]


def test_a_notebook_wraps_long_sentences_but_not_reports():
    long = "word " * 60
    assert "white-space:pre-wrap" in combine_views(Text(long)).html
    assert "white-space:pre-wrap" not in combine_views(Group(Text("a"))).html
    assert combine_views(Text(long)).text == long.strip()


def test_each_hint_names_its_function_and_follows_its_misconception():
    names = ("split", "merge")
    functions = tuple(function(name, "wrong", CHECK.title) for name in names)
    named = (WRONG.model_copy(update={"function": name, "hint": f"see {name}"}) for name in names)
    view = report_view(reshape_result(*named, functions=functions))
    assert (
        collapsed_and_visible_text(view.html)[0] == "hint for splitsee splithint for mergesee merge"
    )
    order = ["split: You", "hint for split", "merge: You", "hint for merge"]
    assert sorted(order, key=view.html.index) == order


ACTION_THEN_COMMAND = "Fill it.\nNext: course check scores"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        pytest.param(
            "Next: fill it, then: course check scores",
            ACTION_THEN_COMMAND,
            id="a step by hand before it",
        ),
        pytest.param(
            "Next: fill it, then course check scores", ACTION_THEN_COMMAND, id="without a colon"
        ),
        pytest.param(
            "It is wrong. Next: course hint scores",
            "It is wrong.\nNext: course hint scores",
            id="a sentence before it",
        ),
        pytest.param("Gone.\nNext: git add 'a b.py'", "Gone.\nNext: git add 'a b.py'", id="alone"),
        pytest.param("Next: make room, then go", "Next: make room, then go", id="no command"),
        pytest.param("A link. Next: ask for it", "A link. Next: ask for it", id="no new line"),
        pytest.param(
            "Gone. Next: /a/b/course status", "Gone.\nNext: /a/b/course status", id="by its path"
        ),
        pytest.param("Next: save it, then %ask", "Save it.\nNext: %ask", id="a magic"),
        pytest.param("Nothing.", "Nothing.", id="nothing"),
    ],
)
def test_the_next_command_gets_a_line_of_its_own(message, shown):
    assert next_alone(message) == shown


BIN = Path(sys.executable).parent


@pytest.mark.parametrize("is_activated", [False, True])
def test_the_printed_next_command_can_be_run_as_it_is(tmp_path, is_activated):
    """If the shell would not find `course`, the command is printed with its path, both on
    standard output and on standard error.
    """
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "course").write_text("#!/bin/sh\nexit 9\n")
    (folder / "course").chmod(0o755)  # another command with the same name
    path = os.pathsep.join([str(BIN if is_activated else folder), "/usr/bin", "/bin"])
    name = "course" if is_activated else str(BIN / "course")

    def run(*command):
        return make.run(*command, "--course", TINY, cwd=tmp_path, PATH=path, COLUMNS="300")

    assert run(BIN / "course", "status").stdout.endswith(f"\nNext: {name} check running_mean\n")
    refused = run(BIN / "course", "check", "median").stderr
    assert f"Next: {name} status" in refused
    assert run(*refused.partition("Next: ")[2].split()).returncode == 0
