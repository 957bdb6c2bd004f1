"""What a person reads in a terminal or a notebook: of one attempt, of a followed call, and of how
far they are.
"""

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
    return make.printed_lines(exercise_report(result), width)


def check_of_heads(id_, score=0, max_score=2, outcome="failed", evidence="", **fields):
    title = {"split": "splits channels into heads", "merge": "is undone by merge"}.get(id_, id_)
    return make.check(id_, score, max_score, outcome, title=title, evidence=evidence, **fields)


def function(name, state, check="", evidence=""):
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
RAISED = check_of_heads(
    "split", outcome="error", evidence="raised NotImplementedError", function="split_heads"
)
SPLIT = check_of_heads("split", evidence="head 0 differs", hint="not shown")
FOUR = (
    check_of_heads("shape", 0, 1, evidence="raised NotImplementedError", function="attend"),
    check_of_heads("scales", evidence="too large", function="scores"),
    check_of_heads("shares", evidence="not 1", function="weights"),
    check_of_heads("simple", 1, 1),
)
OF_FOUR = (
    function("simple", "right"),
    function("scores", "wrong", "scales", "too large"),
    function("weights", "wrong", "shares", "not 1"),
    function("attend", "unwritten"),
)


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        pytest.param(
            dance_exercise(check_of_heads("split", 2), check_of_heads("merge", 4, 4)),
            "✓ dance 6 / 6",
            id="one that passes is one line",
        ),
        pytest.param(
            dance_exercise(
                SPLIT,
                check_of_heads("merge", 0, 1, evidence="not shown"),
                check_of_heads("shape", 3, 3),
                named=(VIEW,),
            ),
            (
                "✗ dance 3 / 6 | You viewed straight to (B, nh, T, hd). | splits channels into "
                "heads 0 / 2 | head 0 differs | hint: view never moves data. | is undone by merge "
                "0 / 1 | 1 check passes 3 / 3"
            ),
            id="check, evidence, misconception, hint, the rest",
        ),
        pytest.param(
            dance_exercise(*FOUR, named=(SCALE, AXIS), functions=OF_FOUR),
            (
                "✗ dance 1 / 6 | ✓ simple | ✗ scores: You did not scale. | scales 0 / 2 | too "
                "large | hint: How large are they? | ✗ weights: You took the wrong axis. | shares "
                "0 / 2 | not 1 | hint: Which sums to 1? | · attend: not written yet | 1 check "
                "waits for what is not right or written yet 0 / 1 | 1 check passes 1 / 1"
            ),
            id="by function, each with its own",
        ),
        pytest.param(
            dance_exercise(SPLIT),
            "✗ dance 0 / 2 | splits channels into heads 0 / 2 | head 0 differs",
            id="without a misconception no hint",
        ),
        pytest.param(
            dance_exercise(SPLIT, named=(VIEW, ROOT)),
            (
                "✗ dance 0 / 2 | 2 mistakes: | 1. You viewed straight to (B, nh, T, hd). | 2. You "
                "divided by hd. Or: You scaled twice. | splits channels into heads 0 / 2 | head 0 "
                "differs | hint: view never moves data."
            ),
            id="a pair with one hint and what is the same",
        ),
        pytest.param(
            dance_exercise(SPLIT, named=(KEYS, ROOT.model_copy(update={"alternative_titles": ()}))),
            (
                "✗ dance 0 / 2 | 2 mistakes: | 1. You took the keys. | 2. You divided by hd. | "
                "splits channels into heads 0 / 2 | head 0 differs | hint: view never moves data."
            ),
            id="of two neither stands again as what the other may be",
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
            id="what runs on for ever is not headed by a mistake that does not",
        ),
        pytest.param(
            dance_exercise(
                RAISED, named=(STUB,), functions=(function("split_heads", "unwritten"),)
            ),
            (
                "… dance 0 / 2 | · split_heads: not written yet | hint: Draw it first. | 1 check "
                "waits for what is not right or written yet 0 / 2"
            ),
            id="where nothing is written nothing is called wrong",
        ),
        pytest.param(
            dance_exercise(
                check_of_heads("split", 2),
                functions=(function("a", "right"), function("b", "unwritten")),
            ),
            "… dance 2 / 2 | ✓ a | · b: not written yet | 1 check passes 2 / 2",
            id="what is not written keeps it from being done",
        ),
        pytest.param(
            dance_exercise(
                check_of_heads("split", 2),
                max_score=2.25,
                unseen=0.25,
                unseen_checks=("drops weights",),
            ),
            "✓ dance 2 / 2.25",
            id="what only grading sees is not said under every answer",
        ),
        pytest.param(
            dance_exercise(
                *(
                    check_of_heads(f"c{i}", 0, 0.5, "error", "It raised SyntaxError.")
                    for i in range(4)
                )
            ),
            "✗ dance 0 / 2 | It raised SyntaxError. | 4 checks fail here 0 / 2",
            id="what could not begin is one line",
        ),
        pytest.param(
            dance_exercise(
                *(check_of_heads(f"c{i}", 0, 0.5, "failed", f"{i % 2} differ") for i in range(4))
            ),
            "✗ dance 0 / 2 | c0 0 / 0.5 | 0 differ | and 3 other checks fail here 0 / 1.5",
            id="checks that saw other things are folded",
        ),
    ],
)
def test_an_attempt_is_told(attempt, says):
    assert " | ".join(" ".join(line.split()) for line in report_of(attempt)) == says


def test_evidence_stands_deeper_and_points_at_the_right():
    lines = report_of(dance_exercise(SPLIT, check_of_heads("shape", 3, 3), named=(VIEW,)))
    assert lines[0] == f"{'✗ dance':<54}     3 / 5"
    assert lines[2:4] == [f"{'  splits channels into heads':<54}     0 / 2", "    head 0 differs"]
    assert attempt_words(dance_exercise(SPLIT)).next_command == "course trace dance"


@pytest.mark.parametrize(
    ("lines", "location"),
    [
        ([ProvedLine(line=23, edit="a → b")], "line 23"),
        ([ProvedLine(line=23), ProvedLine(line=31)], "line 23, or line 31"),
        ([ProvedLine(line=40, cell=3, line_in_cell=5)], "line 5 of code cell 3"),
    ],
    ids=["one line", "two lines", "a line of a cell"],
)
def test_the_misconception_has_the_wrong_line_and_no_edit(lines, location):
    report = report_of(dance_exercise(SPLIT, named=(VIEW,), lines=tuple(lines)))
    assert report[1] == f"  You viewed straight to (B, nh, T, hd) ({location})."
    assert "→" not in "".join(report)


def test_a_text_like_markup_is_shown_unchanged():
    markup = "[red]x[/red] [0, 1] [/] :smile:"
    named = (Diagnosed(id="x", title=markup, hint=markup),)
    report = report_of(dance_exercise(check_of_heads(markup, evidence=markup), named=named))
    assert "\n".join(report).count(markup) == 4


@pytest.mark.parametrize("width", [40, 60, 100])
def test_points_stand_in_one_column_however_narrow_the_terminal(width):
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
    """A course with an exercise for each of these."""
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
(TAIL,) = course_with({"title": "A tail", "points": 6}, assignment="Tails").exercises
MASKED, LEFT = make.check("masks", 1), make.check("gives no NaN")
MASKS = [(check.id, check.title) for check in (MASKED, LEFT)]


def started(**changes):
    return Rung(MASK, MASKS, make.exercise("e1", MASKED, LEFT, **{"score": 1.5, **changes}))


DONE = Rung(SCORES, [("scales", "scales")], make.exercise("e0", make.check("scales", 5, 5)))
STARTED, UNTOUCHED = started(), Rung(HEADS_ROW, [("splits", "splits")])


def ladder_text(*rungs, width=80):
    return make.printed_lines(ladder(rungs), width)


def test_the_ladder_and_the_checklist_of_the_first_that_is_not_done():
    assert ladder_text(DONE, STARTED, UNTOUCHED) == [
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


def test_each_assignment_has_its_own_list_below_its_title():
    assert ladder_text(DONE, STARTED, Rung(TAIL, []))[:6] == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "Tails",
        "·  01 A tail  – / 6  untouched",
        "1 of 3 done, 6.5 of 15 points by the visible checks",
    ]


def test_a_missing_file_is_what_is_next_and_when_all_is_done_nothing_is():
    assert "?  03 Heads  – / 6  missing" in ladder_text(UNTOUCHED._replace(is_missing=True))
    of_all = "1 of 1 done, 5 of 5 points by the visible checks"
    assert ladder_text(DONE) == ["Heads", "✓  01 Scores  5 / 5  done", of_all]


def test_a_narrow_terminal_has_shorter_lines_and_folds_the_checklist_below_itself():
    long = STARTED._replace(check_titles=[("past", "lets every token see itself and the past")])
    assert ladder_text(DONE, long, width=40) == [
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


def test_points_that_only_grading_can_give_are_no_promise():
    lines = ladder_text(DONE, started(unseen=0.5))
    assert lines[2:4] == [
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "1 of 2 done, 6.5 of 9 points by the visible checks; only grading can give 0.5 of",
    ]


TRAIN = {"module": "Heads", "arguments": {"n_embd": "C"}}


def test_it_says_why_it_works_and_offers_to_train_as_far_as_the_course_has_that():
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
def test_the_next_exercise_is_the_first_below_that_is_not_done(finished, after, next_id):
    course = course_with({}, {}, {}, {})
    done = {exercise for exercise in course.exercises if exercise.id in finished.split()}
    next_step = going_on(course, done, course.exercises[after])
    assert next_step.endswith(f"{next_id}.py, then: course check {next_id}")


def test_after_the_last_exercise_all_is_done():
    course = course_with({}, {})
    assert going_on(course, {*course.exercises}, after=course.exercises[0]) == "All done."


VIEWED = Operation("view", "(B, T, C)", "(B, T, nh, hd)", "view")
TURN = Operation("transpose", "(B, T, nh, hd)", "(B, nh, T, hd)", "view, not contiguous")


def trace_lines(explained):
    return make.printed_lines(trace_report(explained), soft_wrap=True, color_system=None)


def test_the_usual_lines_and_the_legend_fit_into_80_columns():
    turn = Operation("transpose", "(B, nh, T, hd)", "(B, nh, hd, T)", "view, not contiguous")
    explanation = explained_call(traced_line("k.transpose(-2, -1)", VIEWED, turn, number="134"))
    assert max(map(len, [*trace_lines(explanation), LEGEND])) <= 80


def explained_call(*entries, sizes="", **fields):
    """A call of f."""
    return Explained("f(x)", sizes, entries, **fields)


def traced_line(code, *operations, depth=0, number="4", **fields):
    return TraceLine(depth, number, code, operations, **fields)


READ = Operation(
    "index", "(B, T, C)", "(B, T, hd)", "view", slices="axis 2, round by round: 0–1, 2–3"
)
RAISES = Operation("view", "(B, T, nh, hd)", "", raised=True)
CROP = torch.tensor([[0.5, float("-inf")], [1.0, -2.25]])
ODD = Operation(
    "view",
    "(B, T, C)",
    "(B, nh, T, hd)",
    "view",
    "T is no longer T",
    crop=CROP,
    full_shape=(1, 2, 5, 2),
)
STRAYED = OriginTable(
    "head 0",
    (OriginRow("token 0", [0, 1], [0, 1]), OriginRow("token 1", [2, -1], [100, 101])),
    "by its address in x",
    2,
)


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        pytest.param(
            explained_call(
                traced_line("x = x.view(B, T, n_head, -1)", VIEWED, number="9"),
                traced_line("return x.transpose(1, 2)", TURN, number="10"),
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
            id="a line, its operations and the verdict",
        ),
        pytest.param(
            explained_call(traced_line("q = x[..., at]", READ)),
            [
                "  4  q = x[..., at]",
                "       index         (B, T, C) → (B, T, hd)              view",
                "         axis 2, round by round: 0–1, 2–3",
            ],
            id="what each round reads",
        ),
        pytest.param(
            explained_call(
                traced_line("y = half(x)", number="9"),
                traced_line("return x / 2", VIEWED, depth=1),
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
            id="helpers stand deeper and rounds are counted",
        ),
        pytest.param(
            explained_call(
                traced_line("y.view(B, T, C)", RAISES), raised="It raised RuntimeError."
            ),
            [
                "  4  y.view(B, T, C)",
                "       ✗ view        (B, T, nh, hd)",
                "  ✗ It raised RuntimeError.",
            ],
            id="an error is marked where it happened and told below",
        ),
        pytest.param(
            explained_call(traced_line("x.view()", ODD)),
            [
                "  4  x.view()",
                "       view          (B, T, C) → (B, nh, T, hd)          view",
                "       ! T is no longer T",
                "         [0, 0]",
                "          0.50    −∞",
                "          1.00 -2.25",
                "         …",
            ],
            id="what is odd and the numbers stand below the operation",
        ),
        pytest.param(
            explained_call(traced_line("x.view()", proved=True)),
            ["  4  x.view()", "       ! one small change of this line makes every check pass"],
            id="a line that is proved to be wrong",
        ),
        pytest.param(
            explained_call(tables=(STRAYED,)),
            [
                "  by its address in x",
                "  head 0   yours       should be",
                "  token 0    0   1  ✓    0   1",
                "  token 1    2   ?  ✗  100 101",
                "  … and 2 more heads",
            ],
            id="numbers that strayed beside those that should be there",
        ),
        pytest.param(
            explained_call(tables=(OriginTable("", (OriginRow("token 0", [0, 1], [0, 1]),)),)),
            ["  token 0  0 1"],
            id="nothing strayed",
        ),
        pytest.param(
            explained_call(traced_line("y = x[:, 0]  # [bold]not markup[/bold] [link=x]")),
            ["  4  y = x[:, 0]  # [bold]not markup[/bold] [link=x]"],
            id="a student's text is text",
        ),
    ],
)
def test_a_call_is_told(told, lines):
    assert trace_lines(told) == ["f(x)", *lines]


def test_of_a_wide_table_the_part_that_is_wrong_is_shown():
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
def test_numbers_are_as_short_as_they_can_be(crop, lines):
    assert crop_lines(crop, tuple(crop.shape)) == lines


CHECK = make.check(
    "view", 0, 2, title="splits <b>channels</b>", evidence="a & b", hint="look <i>here</i>"
)
WRONG = Diagnosed(
    id="wrong_view", title="You viewed straight.", hint="view <never> moves", alternatives=()
)


def folded_and_visible(text):
    """Return the text that is folded away, and the rest."""
    folded = "".join(re.findall(r"<details.*?</details>", text))
    visible = re.sub(r"<details.*?</details>", "", text)
    return [html.unescape(re.sub(r"<[^>]+>", "", part)) for part in (folded, visible)]


def reshape_result(*diagnosis, **fields):
    return make.exercise("reshape_dance", CHECK, diagnosis=diagnosis, **fields)


def test_a_hint_is_folded_away_and_nothing_is_markup():
    view = combine_views(report_view(reshape_result(WRONG)))
    assert set(re.findall(r"<(\w+)", view.html)) == {"div", "pre", "span", "details", "summary"}
    folded, visible = folded_and_visible(view.html)
    assert folded == "hintview <never> moves"
    assert view.html.index("You viewed straight.") < view.html.index("<details")
    assert "splits <b>channels</b>" in visible
    assert "a & b" in visible
    assert "moves" not in visible
    lines = view.text.splitlines()  # for a terminal
    assert lines[0].startswith("✗ reshape_dance")
    assert "  hint: view <never> moves" in lines


def test_without_a_misconception_there_is_no_hint():
    assert "<details" not in report_view(reshape_result()).html


def test_a_line_of_a_list_hangs_also_if_it_is_the_first_line_once_more():
    words = "one two three four five six seven"
    assert make.printed_lines(Hanging("✗ ", f"{words}\n{words}"), 22) == [
        "✗ one two three four",
        "  five six seven",
        "  one two three four",
        "     five six seven",
    ]


def test_a_sentence_goes_on_in_the_next_line_and_a_report_does_not():
    long = "word " * 60
    assert "white-space:pre-wrap" in combine_views(Text(long)).html
    assert "white-space:pre-wrap" not in combine_views(Group(Text("a"))).html
    assert combine_views(Text(long)).text == long.strip()


def test_a_hint_names_its_function_and_stands_below_it():
    names = ("split", "merge")
    functions = tuple(function(name, "wrong", CHECK.title) for name in names)
    named = (WRONG.model_copy(update={"function": name, "hint": f"see {name}"}) for name in names)
    view = report_view(reshape_result(*named, functions=functions))
    assert folded_and_visible(view.html)[0] == "hint for splitsee splithint for mergesee merge"
    order = ["split: You", "hint for split", "merge: You", "hint for merge"]
    assert sorted(order, key=view.html.index) == order


BY_HAND = "Fill it.\nNext: course check scores"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        pytest.param(
            "Next: fill it, then: course check scores", BY_HAND, id="a step by hand before it"
        ),
        pytest.param("Next: fill it, then course check scores", BY_HAND, id="without a colon"),
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
def test_the_next_command_is_alone_on_the_last_line(message, shown):
    assert next_alone(message) == shown


BIN = Path(sys.executable).parent


@pytest.mark.parametrize("is_activated", [False, True])
def test_the_next_command_can_be_copied(tmp_path, is_activated):
    """It has the path of the command if the shell does not find it, on both streams."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "course").write_text("#!/bin/sh\nexit 9\n")
    (folder / "course").chmod(0o755)  # another command
    path = os.pathsep.join([str(BIN if is_activated else folder), "/usr/bin", "/bin"])
    name = "course" if is_activated else str(BIN / "course")

    def run(*command):
        return make.run(*command, "--course", TINY, cwd=tmp_path, PATH=path, COLUMNS="300")

    assert run(BIN / "course", "status").stdout.endswith(f"\nNext: {name} check running_mean\n")
    refused = run(BIN / "course", "check", "median").stderr
    assert f"Next: {name} status" in refused
    assert run(*refused.partition("Next: ")[2].split()).returncode == 0
