"""What a person reads in a terminal of one attempt, and of how far they are."""

from typing import Any

import pytest

from manyheads.report.terminal import exercise_report, next_after
from manyheads.report.words import points
from manyheads.result import CheckResult, Diagnosed, ExerciseResult, FunctionResult, Outcome, ProvedLine
from tests import make


def shown(result: ExerciseResult, width: int = 100) -> list[str]:
    return make.printed(exercise_report(result), width)


def check(id_: str, score: float = 0, of: float = 2, outcome: Outcome = "failed", evidence: str = "", **more: Any) -> CheckResult:  # fmt: skip
    title = {"split": "splits channels into heads", "merge": "is undone by merge"}.get(id_, id_)
    return make.check(id_, score, of, outcome, title=title, evidence=evidence, **more)


def exercise(
    *checks: CheckResult, named: tuple[Diagnosed, ...] = (), id_: str = "dance", **more: Any
) -> ExerciseResult:
    return make.exercise(id_, *checks, diagnosis=named, **more)


def function(name: str, state: str, check: str = "", evidence: str = "") -> FunctionResult:
    return FunctionResult.model_validate({"name": name, "state": state, "check": check, "evidence": evidence})


VIEW = Diagnosed(id="wrong_view", title="You viewed straight to (B, nh, T, hd).", hint="view never moves data.")
SCALE = Diagnosed(id="scale_missing", title="You did not scale.", hint="How large are they?", function="scores")
AXIS = Diagnosed(id="axis", title="You took the wrong axis.", hint="Which sums to 1?", function="weights")
ROOT = Diagnosed(id="no_sqrt", title="You divided by hd.", hint="Not shown.", alternatives=("twice",), alternative_titles=("You scaled twice.",))  # fmt: skip
STUB = Diagnosed(id="stub_untouched", title="Nothing is written here yet.", hint="Draw it first.")
KEYS = VIEW.model_copy(
    update={"title": "You took the keys.", "alternatives": ("no",), "alternative_titles": (ROOT.title,)}
)
REFUSED = Diagnosed(id="unchecked", title="You did not refuse 5 heads.", hint="64 / 5?", function="split")
ENDLESS = check(
    "split", outcome="timeout", evidence="It was still in the loop on line 62: does it end?", function="split"
)
RAISED = check("split", outcome="error", evidence="raised NotImplementedError", function="split_heads")
SPLIT = check("split", evidence="head 0 differs", hint="not shown")
FOUR = (
    check("shape", 0, 1, evidence="raised NotImplementedError", function="attend"),
    check("scales", evidence="too large", function="scores"), check("shares", evidence="not 1", function="weights"), check("simple", 1, 1),
)  # fmt: skip
OF_FOUR = (
    function("simple", "right"), function("scores", "wrong", "scales", "too large"),
    function("weights", "wrong", "shares", "not 1"), function("attend", "unwritten"),
)  # fmt: skip


@pytest.mark.parametrize(("attempt", "says"), [
    pytest.param(exercise(check("split", 2), check("merge", 4, 4)), "✓ dance 6 / 6", id="one that passes is one line"),
    pytest.param(exercise(SPLIT, check("merge", 0, 1, evidence="not shown"), check("shape", 3, 3), named=(VIEW,)),
        "✗ dance 3 / 6 | You viewed straight to (B, nh, T, hd). | splits channels into heads 0 / 2 | head 0 differs | hint: view never "
        "moves data. | is undone by merge 0 / 1 | 1 check passes 3 / 3", id="check, evidence, misconception, hint, the rest"),
    pytest.param(exercise(*FOUR, named=(SCALE, AXIS), functions=OF_FOUR),
        "✗ dance 1 / 6 | ✓ simple | ✗ scores: You did not scale. | scales 0 / 2 | too large | hint: How large are they? | ✗ weights: "
        "You took the wrong axis. | shares 0 / 2 | not 1 | hint: Which sums to 1? | · attend: not written yet | "
        "1 check waits for what is not right or written yet 0 / 1 | 1 check passes 1 / 1", id="by function, each with its own"),
    pytest.param(exercise(SPLIT), "✗ dance 0 / 2 | splits channels into heads 0 / 2 | head 0 differs", id="without a misconception no hint"),
    pytest.param(exercise(SPLIT, named=(VIEW, ROOT)),
        "✗ dance 0 / 2 | 2 mistakes: | 1. You viewed straight to (B, nh, T, hd). | 2. You divided by hd. Or: You scaled twice. | "
        "splits channels into heads 0 / 2 | head 0 differs | hint: view never moves data.", id="a pair with one hint and what is the same"),
    pytest.param(exercise(SPLIT, named=(KEYS, ROOT.model_copy(update={"alternative_titles": ()}))),
        "✗ dance 0 / 2 | 2 mistakes: | 1. You took the keys. | 2. You divided by hd. | splits channels into heads 0 / 2 | head 0 differs | "
        "hint: view never moves data.", id="of two neither stands again as what the other may be"),
    pytest.param(exercise(ENDLESS, named=(REFUSED,), functions=(function("split", "wrong", ENDLESS.title, "no end"),)),
        "✗ dance 0 / 2 | ✗ split: not right yet | splits channels into heads 0 / 2 | no end | Also: You did not refuse 5 heads. "
        "That alone does not explain the rest.", id="what runs on for ever is not headed by a mistake that does not"),
    pytest.param(exercise(RAISED, named=(STUB,), functions=(function("split_heads", "unwritten"),)),
        "… dance 0 / 2 | · split_heads: not written yet | hint: Draw it first. | 1 check waits for what is not right or written yet 0 / 2",
        id="where nothing is written nothing is called wrong"),
    pytest.param(exercise(check("split", 2), functions=(function("a", "right"), function("b", "unwritten"))),
        "… dance 2 / 2 | ✓ a | · b: not written yet | 1 check passes 2 / 2", id="what is not written keeps it from being done"),
    pytest.param(exercise(check("split", 2), max_score=2.25, unseen=0.25, unseen_checks=("drops weights",)),
        "✓ dance 2 / 2.25 | Only grading can give 0.25 of the 2.25 points: drops weights.", id="what only grading sees"),
    pytest.param(exercise(*(check(f"c{i}", 0, 0.5, "error", "It raised SyntaxError.") for i in range(4))),
        "✗ dance 0 / 2 | It raised SyntaxError. | 4 checks wait for this 0 / 2", id="what could not begin is one line"),
    pytest.param(exercise(*(check(f"c{i}", 0, 0.5, "failed", f"{i % 2} differ") for i in range(4))),
        "✗ dance 0 / 2 | c0 0 / 0.5 | 0 differ | and 3 other checks wait for this 0 / 1.5", id="checks that saw other things are folded"),
])  # fmt: skip
def test_an_attempt_is_told(attempt: ExerciseResult, says: str) -> None:
    assert " | ".join(" ".join(line.split()) for line in shown(attempt)) == says


def test_what_is_seen_stands_deeper_and_points_at_the_right() -> None:
    lines = shown(exercise(SPLIT, check("shape", 3, 3), named=(VIEW,)))
    assert lines[0] == f"{'✗ dance':<54}     3 / 5"
    assert lines[2:4] == [f"{'  splits channels into heads':<54}     0 / 2", "    head 0 differs"]
    assert next_after(exercise(SPLIT)) == "Next: course trace dance"


@pytest.mark.parametrize(("value", "written"), [(4.0, "4"), (2.5, "2.5"), (0.0, "0"), (0.1 + 0.2, "0.3")])
def test_points_are_written_as_a_person_would(value: float, written: str) -> None:
    assert points(value) == written


@pytest.mark.parametrize(("lines", "says"), [
    pytest.param((ProvedLine(line=23, edit="a → b"),), "line 23", id="one"),
    pytest.param((ProvedLine(line=23), ProvedLine(line=31)), "line 23, or line 31", id="two"),
    pytest.param((ProvedLine(line=40, cell=3, line_in_cell=5),), "line 5 of code cell 3", id="a cell's"),
])  # fmt: skip
def test_the_line_that_is_wrong_stands_with_the_misconception_and_what_to_write_nowhere(lines, says):
    report = shown(exercise(SPLIT, named=(VIEW,), lines=lines))
    assert report[1] == f"  You viewed straight to (B, nh, T, hd) ({says})."
    assert "→" not in "".join(report)


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    markup = "[red]x[/red] [0, 1] [/] :smile:"
    named = Diagnosed(id="x", title=markup, hint=markup)
    assert "\n".join(shown(exercise(check(markup, evidence=markup), named=(named,)))).count(markup) == 4


@pytest.mark.parametrize("width", [40, 60, 100])
def test_points_stand_in_one_column_however_narrow_the_terminal(width: int) -> None:
    checks = [check("is right with as many channels out as in, a full context", 0, 0.25), check("split")]
    lines = [line for line in shown(exercise(*checks), width) if " / " in line]
    assert len(lines) == 3
    assert len({line.index(" / ") for line in lines}) == 1
    assert max(map(len, lines)) <= width
