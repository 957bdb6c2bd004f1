"""What a person reads in a terminal."""

import pytest
from rich.console import RenderableType

from manyheads.report.terminal import exercise_report, next_after
from manyheads.report.words import points
from manyheads.result import CheckResult, Diagnosed, ExerciseResult, FunctionResult, Outcome, ProvedLine
from tests import make


def text(rendered: RenderableType, width: int = 100) -> str:
    return "\n".join(make.printed(rendered, width))


def check(
    id_: str, score: float, of: float, outcome: Outcome = "failed", evidence: str = "", hint: str = ""
) -> CheckResult:
    title = {"split": "splits channels into heads", "merge": "is undone by merge"}.get(id_, id_)
    return make.check(id_, score, of, outcome, title=title, evidence=evidence, hint=hint)


def exercise(*checks: CheckResult, diagnosis: tuple[Diagnosed, ...] = (), id_: str = "reshape_dance") -> ExerciseResult:
    return make.exercise(id_, *checks, diagnosis=diagnosis)


VIEW = Diagnosed(id="wrong_view", title="You viewed straight to (B, nh, T, hd).", hint="view never moves data.")


@pytest.mark.parametrize(("value", "written"), [(4.0, "4"), (2.5, "2.5"), (0.0, "0"), (0.1 + 0.2, "0.3")])
def test_points_are_written_as_a_person_would(value: float, written: str) -> None:
    assert points(value) == written


def test_an_attempt_that_passes_is_one_line() -> None:
    report = text(exercise_report(exercise(check("split", 2, 2), check("merge", 4, 4))))
    assert report == "✓ reshape_dance                                            6 / 6"


def test_a_failure_shows_the_check_its_evidence_the_misconception_a_hint_and_then_the_rest() -> None:
    failed = exercise(
        check("split", 0, 2, evidence="head 0 holds channels 4…7", hint="not shown"),
        check("merge", 0, 1, evidence="not shown"),
        check("shape", 3, 3),
        diagnosis=(VIEW,),
    )
    assert text(exercise_report(failed)).splitlines() == [
        "✗ reshape_dance                                            3 / 6",
        "  You viewed straight to (B, nh, T, hd).",
        "  splits channels into heads                               0 / 2",
        "    head 0 holds channels 4…7",
        "  hint: view never moves data.",
        "  is undone by merge                                       0 / 1",
        "  1 check passes                                           3 / 3",
    ]


def test_the_report_goes_by_function_and_every_misconception_stands_with_its_own() -> None:
    scale = Diagnosed(id="scale_missing", title="You did not scale.", hint="How large are they?", function="scores")
    axis = Diagnosed(id="axis", title="You took the wrong axis.", hint="Which sums to 1?", function="weights")
    checks = (
        check("shape", 0, 1, evidence="raised NotImplementedError").model_copy(update={"function": "attend"}),
        check("scales", 0, 2, evidence="too large").model_copy(update={"function": "scores"}),
        check("shares", 0, 2, evidence="not 1").model_copy(update={"function": "weights"}),
        check("simple", 1, 1),
    )
    functions = (
        FunctionResult(name="simple", state="right"),
        FunctionResult(name="scores", state="wrong", check="scales", evidence="too large"),
        FunctionResult(name="weights", state="wrong", check="shares", evidence="not 1"),
        FunctionResult(name="attend", state="unwritten"),
    )
    failed = exercise(*checks, diagnosis=(scale, axis), id_="attention").model_copy(update={"functions": functions})
    assert text(exercise_report(failed)).splitlines() == [
        "✗ attention                                                1 / 6",
        "  ✓ simple",
        "  ✗ scores: You did not scale.",
        "    scales                                                 0 / 2",
        "      too large",
        "    hint: How large are they?",
        "  ✗ weights: You took the wrong axis.",
        "    shares                                                 0 / 2",
        "      not 1",
        "    hint: Which sums to 1?",
        "  · attend: not written yet",
        "  1 check waits for what is not right or written yet       0 / 1",
        "  1 check passes                                           1 / 1",
    ]


@pytest.mark.parametrize(("lines", "says"), [
    pytest.param((ProvedLine(line=23, edit="a → b"),), "line 23", id="one"),
    pytest.param((ProvedLine(line=23), ProvedLine(line=31)), "line 23, or line 31", id="two"),
    pytest.param((ProvedLine(line=40, cell=3, line_in_cell=5),), "line 5 of code cell 3", id="a cell's"),
])  # fmt: skip
def test_the_line_that_is_wrong_stands_with_the_misconception_and_what_to_write_nowhere(lines, says):
    failed = exercise(check("split", 0, 2, evidence="head 0 differs"), diagnosis=(VIEW,))
    report = text(exercise_report(failed.model_copy(update={"lines": lines})))
    assert report.splitlines()[1] == f"  You viewed straight to (B, nh, T, hd) ({says})."
    assert "→" not in report


def test_without_a_misconception_no_hint_is_shown_but_what_to_do_next() -> None:
    result = exercise(check("split", 0, 2, evidence="it differs", hint="Try arange."))
    assert text(exercise_report(result)).splitlines()[2:] == ["    it differs"]
    assert next_after(result) == "Next: course trace reshape_dance"


def test_a_pair_is_told_with_one_hint_and_the_titles_of_what_gives_the_same_numbers() -> None:
    other = Diagnosed(
        id="no_sqrt",
        title="You divided by hd.",
        hint="Not shown.",
        alternatives=("twice",),
        alternative_titles=("You scaled twice.",),
    )
    report = text(exercise_report(exercise(check("split", 0, 2, evidence="e"), diagnosis=(VIEW, other))))
    assert report.splitlines()[1:] == [
        "  2 mistakes:",
        "  1. You viewed straight to (B, nh, T, hd).",
        "  2. You divided by hd. Or: You scaled twice.",
        "  splits channels into heads                               0 / 2",
        "    e",
        "  hint: view never moves data.",
    ]


def test_of_two_that_are_named_neither_stands_again_as_what_the_other_may_be() -> None:
    keys = Diagnosed(id="keys", title="You shared out over the keys.", hint="Which sums to 1?")
    batch = Diagnosed(id="batch", title="You shared out over the batch.", hint="Which sums to 1?")
    either = keys.model_copy(update={"alternatives": ("batch",), "alternative_titles": (batch.title,)})
    report = text(exercise_report(exercise(check("split", 0, 2, evidence="e"), diagnosis=(either, batch))))
    assert report.splitlines()[2:4] == ["  1. You shared out over the keys.", "  2. You shared out over the batch."]


def test_a_function_that_runs_on_for_ever_is_not_headed_by_a_mistake_that_does_not_do_so() -> None:
    unchecked = Diagnosed(id="unchecked", title="You did not refuse 5 heads.", hint="64 / 5?", function="split")
    endless = check("split", 0, 2, "timeout", "It was still in the loop on line 62 when its time was up: does it end?")
    result = exercise(endless.model_copy(update={"function": "split"}), diagnosis=(unchecked,)).model_copy(
        update={"functions": (FunctionResult(name="split", state="wrong", check=endless.title, evidence="no end"),)}
    )
    assert text(exercise_report(result)).splitlines()[1:] == [
        "  ✗ split: not right yet",
        "    splits channels into heads                             0 / 2",
        "      no end",
        "    Also: You did not refuse 5 heads. That alone does not explain the rest.",
    ]


STUB = Diagnosed(id="stub_untouched", title="Nothing is written here yet.", hint="Draw it first.")


def test_where_nothing_is_written_the_hint_is_about_a_start_and_nothing_is_called_wrong() -> None:
    empty = exercise(
        check("split", 0, 2, "error", "raised NotImplementedError").model_copy(update={"function": "split_heads"}),
        diagnosis=(STUB,),
    ).model_copy(update={"functions": (FunctionResult(name="split_heads", state="unwritten"),)})
    assert text(exercise_report(empty)).splitlines() == [
        "… reshape_dance                                            0 / 2",
        "  · split_heads: not written yet",
        "  hint: Draw it first.",
        "  1 check waits for what is not right or written yet       0 / 2",
    ]


def test_what_is_not_written_yet_keeps_an_attempt_from_being_done() -> None:
    half = exercise(check("split", 2, 2)).model_copy(
        update={"functions": (FunctionResult(name="a", state="right"), FunctionResult(name="b", state="unwritten"))}
    )
    assert not half.is_done
    assert text(exercise_report(half)).splitlines()[:3] == [
        "… reshape_dance                                            2 / 2",
        "  ✓ a",
        "  · b: not written yet",
    ]


def test_beside_the_total_stands_what_only_grading_sees() -> None:
    seen = exercise(check("split", 2, 2)).model_copy(
        update={"max_score": 2.25, "unseen": 0.25, "unseen_checks": ("drops weights",)}
    )
    assert text(exercise_report(seen)).splitlines() == [
        "✓ reshape_dance                                            2 / 2.25",
        "  Only grading can give 0.25 of the 2.25 points: drops weights.",
    ]


MARKUP = "[red]x[/red] [0, 1] [/] :smile:"


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    named = Diagnosed(id="x", title=MARKUP, hint=MARKUP)
    result = exercise(check(MARKUP, 0, 2, evidence=MARKUP), diagnosis=(named,))
    report = text(exercise_report(result))
    assert report.count(MARKUP) == 4, report


def test_what_could_not_begin_is_one_line() -> None:
    gone = [check(f"c{i}", 0, 0.5, outcome="error", evidence="It raised SyntaxError.") for i in range(4)]
    lines = text(exercise_report(exercise(*gone))).splitlines()
    assert [line.split() for line in lines[1:]] == [
        "It raised SyntaxError.".split(),
        "4 checks wait for this 0 / 2".split(),
    ]


@pytest.mark.parametrize("outcome", ["failed", "error"])
def test_checks_that_saw_other_things_are_folded_too(outcome: Outcome) -> None:
    seen = [check(f"c{i}", 0, 0.5, outcome=outcome, evidence=f"{i % 2} differ") for i in range(4)]
    said = "4 checks wait" if outcome == "error" else "and 3 other checks wait"
    assert f"{said} for this" in text(exercise_report(exercise(*seen)))


@pytest.mark.parametrize("width", [40, 60, 100])
def test_points_stand_in_one_column_however_narrow_the_terminal(width: int) -> None:
    checks = [check("is right with as many channels out as in, a full context", 0, 0.25), check("split", 0, 2)]
    lines = [line for line in text(exercise_report(exercise(*checks)), width).splitlines() if " / " in line]
    assert len(lines) == 3
    assert len({line.index(" / ") for line in lines}) == 1
    assert max(map(len, lines)) <= width
