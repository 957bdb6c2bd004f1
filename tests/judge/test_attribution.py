"""The function that a failure belongs to, and the parts of the result: evidence and locations."""

import pytest

from manyheads.box.worker.messages import Call, Output, Raised, Reply
from manyheads.checks.explain_exceptions import LIMIT, join_sentences
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.checks.runner import Exchange, LocalRecordingRunner
from manyheads.course import Exercise, load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.recording_file import read
from manyheads.judge.attribute_public_replies import FunctionVerdict
from manyheads.judge.attribution import (
    HiddenRun,
    assemble,
    check_result,
    diagnosed_result,
    function_result,
)
from manyheads.judge.locate_misconceptions import LocatedMisconception
from manyheads.judge.public_calls import PublicCalls, ask_public_calls, name_misconceptions
from manyheads.result import Diagnosed
from manyheads.submission import Source
from manyheads.submission.source import NO_TEXT
from tests.make import REPOSITORY

RIGHT, WRONG = Reply((Output("right"),)), Reply((Output("wrong"),))


def failed_in(
    exercise: Exercise,
    *named_replies: tuple[str, Reply],
    ended: Call | None = None,
    **fields: str,
) -> str:
    """Return the function at which a check with these calls failed.

    Args:
        exercise: Any exercise.
        named_replies: The functions that the check called, with their replies.
        ended: The call that ended the process, or None.
        fields: Fields of the first call.
    """
    outcome = CheckOutcome("check", "check", Layer.VALUES, 1, "", "failed")
    calls = [Call(name, **(fields if not i else {})) for i, (name, _) in enumerate(named_replies)]
    exchanges = [
        Exchange("check", call, reply)
        for call, (_, reply) in zip(calls, named_replies, strict=True)
    ]
    hidden = HiddenRun(
        [outcome],
        exchanges,
        {"check": ended} if ended else {},
        lambda exchange: exchange.reply.outputs == RIGHT.outputs,
    )
    (check,) = assemble(exercise, NO_TEXT, None, None, hidden=hidden).checks
    return check.function


@pytest.mark.parametrize(
    ("exchanges", "place"),
    [
        pytest.param([], "", id="no call"),
        pytest.param([("split", RIGHT), ("merge", WRONG)], "merge", id="it stopped at the last"),
        pytest.param(
            [("split", WRONG), ("merge", WRONG)],
            "merge",
            id="the first may be wrong in what is not asked",
        ),
        pytest.param(
            [("split", WRONG), ("merge", RIGHT)],
            "split",
            id="the last was given what the first got wrong",
        ),
        pytest.param(
            [("split", RIGHT), ("merge", RIGHT)], "merge", id="what was asked is no number"
        ),
    ],
)
def test_a_check_fails_where_it_stops_or_where_that_comes_from(
    running_mean: Exercise, exchanges: list[tuple[str, Reply]], place: str
) -> None:
    assert failed_in(running_mean, *exchanges) == place


def test_whoever_raises_where_numbers_cannot_be_compared_is_where_its_check_failed(
    running_mean: Exercise,
) -> None:
    raised = Reply(raised=Raised("ValueError", ("ValueError", "Exception"), "no", "call", 4))
    layer = ("layer", RIGHT)
    assert failed_in(running_mean, ("make", raised), layer, dtype="float32") == "make"
    assert failed_in(running_mean, ("make", WRONG), layer, dtype="float32") == "layer"


def test_a_call_that_ended_the_process_is_where_its_check_failed(running_mean: Exercise) -> None:
    assert failed_in(running_mean, ("split", WRONG), ended=Call("merge")) == "merge"


FAILED = CheckOutcome("b", "Checks the mean.", Layer.VALUES, 1, "", "failed", evidence="It is 3.")


def test_a_function_that_fails_a_hidden_check_alone_is_wrong(running_mean: Exercise) -> None:
    passed = CheckOutcome("a", "a", Layer.SHAPE, 1, "", "passed")
    exchanges = [Exchange(id_, Call("running_mean"), WRONG) for id_ in ("a", "b")]
    hidden = HiddenRun([passed, FAILED], exchanges, {}, lambda exchange: False)
    source = Source("a.py", "def running_mean(x): return x\n")
    (function,) = assemble(running_mean, source, None, None, hidden=hidden).functions
    assert (function.state, function.check) == ("wrong", "Checks the mean.")
    assert function.evidence == "It is 3."


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("mutant_id", "function", "check", "origin"),
    [
        pytest.param(
            "wrong_view",
            "split_heads",
            "splits channels into heads",
            "At [0, 0, 1, 0] should be the number that `x` has at [0, 1, 0]; yours "
            "is the one at [0, 0, 6]",
            id="a view in place of a transpose",
        ),
        pytest.param(
            "merge_no_transpose",
            "merge_heads",
            "lays the heads side by side again, in order",
            "At [0, 0, 6] should be the number that `y` has at [0, 1, 0, 0]; yours "
            "is the one at [0, 0, 1, 0]",
            id="a transpose that is missing",
        ),
    ],
)
def test_of_failures_that_show_the_named_mistake_one_that_shows_an_origin_is_evidence(
    mutant_id: str, function: str, check: str, origin: str
) -> None:
    """A check of an earlier layer fails, too, and cannot say where the numbers came from."""
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == "reshape_dance")
    dictionary = read(exercise.fingerprints)
    mutant = next(mutant for mutant in load_bank(exercise).mutants if mutant.id == mutant_id)
    attempt = LocalRecordingRunner(mutant.namespace)
    replies = ask_public_calls(PublicCalls(dictionary, attempt), NO_TEXT, exercise)
    diagnosis = name_misconceptions(replies)
    result = assemble(exercise, NO_TEXT, dictionary, replies, diagnosis)
    assert mutant_id in [diagnosed.id for diagnosed in result.diagnosis]
    failed = [c for c in result.checks if c.function == function and c.outcome == "failed"]
    assert failed[0].title != check
    evidence = {f.name: (f.check, f.evidence) for f in result.functions}[function]
    assert evidence[0] == check
    assert evidence[1].endswith(f". {origin}")


IN_A_CLASS = "class A:\n    def mean(x):\n        return x.mean()\n"
STANDS = (
    "mean stands on line 2 inside the `class` on line 1, which keeps it from being seen. Move it "
    "to the left margin."
)
INTERFACE = Diagnosed(
    id="interface", title="A name differs.", hint="Letter by letter?", function="mean"
)
TWO_CELLS = Source("a.ipynb", "x = 1\ny = 2\nz = 3\n", cells=(1, 3))


def test_a_name_that_is_written_rightly_is_not_said_to_differ() -> None:
    undefined = [FunctionVerdict(name, "undefined") for name in ("mean", "total")]
    located = LocatedMisconception(INTERFACE, function="mean")
    source = Source("a.py", IN_A_CLASS)
    functions = [function_result(verdict, source) for verdict in undefined]
    assert [function.evidence for function in functions] == [STANDS, ""]
    diagnosed = diagnosed_result(located, functions, None)
    assert (diagnosed.title, diagnosed.hint) == (
        "mean is not there once the file has run.",
        STANDS,
    )
    elsewhere = [function_result(verdict, Source("a.py", "x = 1\n")) for verdict in undefined]
    assert diagnosed_result(located, elsewhere, None) == INTERFACE


@pytest.mark.parametrize(
    ("text", "state"),
    [
        pytest.param("", "unwritten", id="an empty file"),
        pytest.param("\n# later\n", "unwritten", id="a remark alone"),
        pytest.param("import torch\n", "undefined", id="a file with a line of code"),
    ],
)
def test_in_an_empty_file_nothing_is_renamed(text: str, state: str) -> None:
    verdict = FunctionVerdict("attend", "undefined", near="attent")
    result = function_result(verdict, Source("a.py", text))
    assert result.state == state
    assert result.near == ("attent" if state == "undefined" else "")


def test_without_a_text_an_undefined_function_stays_undefined() -> None:
    verdict = FunctionVerdict("attend", "undefined", near="attent")
    result = function_result(verdict, Source("", missing=True))
    assert (result.state, result.evidence, result.near) == ("undefined", "", "attent")


def test_what_is_written_beside_a_stub_is_told_if_no_other_evidence_is() -> None:
    source = Source(
        "a.py",
        "def mean(x):\n    return x.mean()\n\ndef mean(x):\n    raise NotImplementedError()\n",
    )
    verdict = FunctionVerdict("mean", "unwritten")
    assert function_result(verdict, source).evidence.startswith("what is written on line 1 is not")
    begun = FunctionVerdict("mean", "unwritten", evidence="its forward is not written yet")
    assert function_result(begun, source).evidence == "its forward is not written yet"


def test_the_usual_repair_is_whole_beside_a_long_message() -> None:
    outcome = CheckOutcome("a", "a", Layer.VALUES, 1, "", "error", "m" * LIMIT)
    evidence = join_sentences(outcome.evidence, "After a transpose write .reshape(…) for .view(…).")
    source = Source("a.py", "")
    assert check_result(outcome, "mean", source, evidence).evidence == evidence
    assert check_result(outcome, "mean", source).evidence == outcome.evidence


def test_lines_in_the_evidence_of_a_notebook_are_lines_of_its_cells() -> None:
    outcome = CheckOutcome("a", "a", Layer.VALUES, 1, "", "error", "raised ValueError on line 3")
    in_its_cell = "raised ValueError on line 1 of code cell 2"
    assert check_result(outcome, "mean", TWO_CELLS).evidence == in_its_cell
    verdict = FunctionVerdict("mean", "wrong", evidence=outcome.evidence)
    assert function_result(verdict, TWO_CELLS).evidence == in_its_cell
