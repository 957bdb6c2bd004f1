"""Attribution: the function that a failed check belongs to, and the evidence shown for it."""

from dataclasses import replace

import pytest

from manyheads.box.worker.messages import Call, Output, Raised, Reply
from manyheads.checks.explain_exceptions import LIMIT, join_sentences
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.checks.runner import Exchange, LocalRecordingRunner
from manyheads.course import load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.bank import diagnosis_of
from manyheads.diagnosis.evidence import REFUSES, UNDIVIDED
from manyheads.diagnosis.recording_file import read
from manyheads.judge.attribute_public_replies import FunctionVerdict
from manyheads.judge.attribution import (
    HiddenRun,
    assemble,
    assemble_uncalled,
    check_result,
    function_result,
)
from manyheads.judge.public_calls import PublicCalls, ask_public_calls, name_misconceptions
from manyheads.submission import Source
from manyheads.submission.source import NO_TEXT, UNTOUCHED
from tests.make import REPOSITORY, cases

REPLIES = {
    "right": Reply((Output("right"),)),
    "wrong": Reply((Output("wrong"),)),
    "raised": Reply(raised=Raised("ValueError", ("ValueError", "Exception"), "no", "call", 4)),
}
FAILED = CheckOutcome("check", "check", Layer.VALUES, 1, "", "failed", evidence="It is 3.")


@cases(
    "replies, fatal_call, function",
    {
        "no call": ("", None, ""),
        "the last call, which is wrong": ("a right, b wrong", None, "b"),
        "the last of two wrong calls": ("a wrong, b wrong", None, "b"),
        "the only wrong call": ("a wrong, b right", None, "a"),
        "the last call, if all are right": ("a right, b right", None, "b"),
        "a call in float32 that raises": ("a raised float32, b right", None, "a"),
        "the last call, if the wrong one is in float32": ("a wrong float32, b right", None, "b"),
        "the call that ended the process": ("a wrong", Call("b"), "b"),
    },
)
def test_a_failed_check_is_attributed_to_one_function(running_mean, replies, fatal_call, function):
    """Each row lists the calls of one check, in order, as "function reply [dtype]".

    `fatal_call` is the call that ended the process, and `function` the one that is blamed.
    """
    exchanges = []
    for reply in filter(None, replies.split(", ")):
        name, kind, *dtype = reply.split()
        call = Call(name, dtype=dtype[0] if dtype else None)
        exchanges.append(Exchange("check", call, REPLIES[kind]))
    hidden = HiddenRun(
        [FAILED],
        exchanges,
        {"check": fatal_call} if fatal_call else {},
        lambda exchange: exchange.reply is REPLIES["right"],
    )
    (check,) = assemble(running_mean, NO_TEXT, None, None, hidden=hidden).checks
    assert check.function == function


def test_a_function_that_fails_only_a_hidden_check_is_wrong(running_mean):
    passed = CheckOutcome("a", "a", Layer.SHAPE, 1, "", "passed")
    exchanges = [Exchange(id_, Call("running_mean"), REPLIES["wrong"]) for id_ in ("a", "check")]
    hidden = HiddenRun([passed, FAILED], exchanges, {}, lambda exchange: False)
    source = Source("a.py", "def running_mean(x): return x\n")
    result = assemble(running_mean, source, None, None, hidden=hidden)
    (function,) = result.functions
    assert result.digest == source.digest[:12]
    assert (function.state, function.check, function.evidence) == ("wrong", "check", "It is 3.")


def result_at_home(exercise, attempt, source):
    """Return the result of `course check`. The attempt, a namespace, runs in this process."""
    dictionary, runner = read(exercise.fingerprints), LocalRecordingRunner(attempt)
    replies = ask_public_calls(PublicCalls(dictionary, runner), source, exercise)
    return assemble(exercise, source, dictionary, replies, name_misconceptions(replies))


def refuse_always(x):
    raise ValueError("no")


@pytest.mark.recorded
@cases(
    "public_misconception, check_id, hidden_misconception, expected_ids",
    {
        "a new misconception": (
            "counts_all",
            "check",
            "empty_unchecked",
            ["counts_all", "empty_unchecked"],
        ),
        "the same misconception": ("counts_all", "check", "counts_all", ["counts_all"]),
        "a misconception of the same guard": (REFUSES, "check", UNDIVIDED, [REFUSES]),
        "a misconception beside an untouched stub": (
            UNTOUCHED,
            "check",
            "counts_all",
            ["counts_all", UNTOUCHED],
        ),
        "a check that the public misconception explains": (
            "counts_all",
            "values",
            "sum_not_mean",
            ["counts_all"],
        ),
    },
)
def test_a_hidden_check_adds_only_a_new_misconception(
    running_mean, public_misconception, check_id, hidden_misconception, expected_ids
):
    dictionary = read(running_mean.fingerprints)
    calls = PublicCalls(dictionary, LocalRecordingRunner({"running_mean": refuse_always}))
    replies = ask_public_calls(calls, NO_TEXT, running_mean)
    outcome = replace(FAILED, id=check_id, suspect=hidden_misconception, function="running_mean")
    hidden = HiddenRun([outcome], [], {}, lambda exchange: False)
    diagnosis = diagnosis_of(load_bank(running_mean).texts, public_misconception)
    result = assemble(running_mean, NO_TEXT, dictionary, replies, diagnosis, hidden=hidden)
    assert [diagnosed.id for diagnosed in result.diagnosis] == expected_ids
    (function,) = result.functions
    assert (function.state, function.check) == ("wrong", "gives as many numbers as it gets")


@pytest.mark.parametrize("hint", ["Count.", ""])
def test_an_untouched_stub_gets_the_hint_of_the_exercise_or_the_usual_one(running_mean, hint):
    exercise = replace(running_mean, row=running_mean.row.model_copy(update={"hint": hint}))
    result = assemble_uncalled(exercise, NO_TEXT, [FAILED], UNTOUCHED)
    (diagnosed,) = result.diagnosis
    usual_hint = load_bank(running_mean).texts[UNTOUCHED].hints[0]
    assert (diagnosed.hint, result.max_score) == (hint or usual_hint, 1)


@pytest.mark.recorded
@cases(
    "mutant_id, function, check, origin",
    {
        "a view in place of a transpose": (
            "wrong_view",
            "split_heads",
            "splits channels into heads",
            "At [0, 0, 1, 0] should be the number that `x` has at [0, 1, 0]; yours "
            "is the one at [0, 0, 6]",
        ),
        "a transpose that is missing": (
            "merge_no_transpose",
            "merge_heads",
            "lays the heads side by side again, in order",
            "At [0, 0, 6] should be the number that `y` has at [0, 1, 0, 0]; yours "
            "is the one at [0, 0, 1, 0]",
        ),
    },
)
def test_the_evidence_names_where_wrong_numbers_come_from(mutant_id, function, check, origin):
    """A check of an earlier layer fails, too, but it cannot name the origin of the numbers."""
    exercise = next(e for e in load_course(REPOSITORY).exercises if e.id == "reshape_dance")
    mutant = next(mutant for mutant in load_bank(exercise).mutants if mutant.id == mutant_id)
    result = result_at_home(exercise, mutant.namespace, NO_TEXT)
    assert mutant_id in [diagnosed.id for diagnosed in result.diagnosis]
    failed = [c for c in result.checks if c.function == function and c.outcome == "failed"]
    assert failed[0].title != check
    (evidence,) = [f for f in result.functions if f.name == function]
    assert evidence.check == check
    assert evidence.evidence.endswith(f". {origin}")


@cases(
    "text, title, hint",
    {
        "inside a class": (
            "class A:\n    def running_mean(x):\n        return x.mean()\n",
            "running_mean is not there once the file has run.",
            "running_mean stands on line 2 inside the `class` on line 1, which keeps it from "
            "being seen. Move it to the left margin.",
        ),
        "under another name": (
            "def running_maen(x):\n    return x.mean()\n",
            "A name, an argument or a return value differs from what the exercise asks for.",
            "",
        ),
    },
)
def test_an_undefined_function_is_explained_if_its_code_is_elsewhere(
    running_mean, text, title, hint
):
    (diagnosed,) = result_at_home(running_mean, {}, Source("a.py", text)).diagnosis
    assert diagnosed.title == title
    assert diagnosed.hint.startswith(hint)


@cases(
    "source, state",
    {
        "an empty file": (Source("a.py", ""), "unwritten"),
        "a comment alone": (Source("a.py", "\n# later\n"), "unwritten"),
        "a line of code": (Source("a.py", "import torch\n"), "undefined"),
        "no text": (NO_TEXT, "undefined"),
    },
)
def test_a_similar_name_is_suggested_only_for_an_undefined_function(source, state):
    verdict = FunctionVerdict("attend", "undefined", near="attent")
    result = function_result(verdict, source)
    near = "attent" if state == "undefined" else ""
    assert (result.state, result.evidence, result.near) == (state, "", near)


def test_code_above_a_stub_is_named_if_there_is_no_other_evidence():
    source = Source(
        "a.py",
        "def mean(x):\n    return x.mean()\n\ndef mean(x):\n    raise NotImplementedError()\n",
    )
    verdict = FunctionVerdict("mean", "unwritten")
    assert function_result(verdict, source).evidence.startswith("what is written on line 1 is not")
    begun = FunctionVerdict("mean", "unwritten", evidence="its forward is not written yet")
    assert function_result(begun, source).evidence == "its forward is not written yet"


def test_a_long_message_does_not_cut_the_suggestion_after_it():
    outcome = CheckOutcome("a", "a", Layer.VALUES, 1, "", "error", "m" * LIMIT)
    evidence = join_sentences(outcome.evidence, "After a transpose write .reshape(…) for .view(…).")
    source = Source("a.py", "")
    assert check_result(outcome, "mean", source, evidence).evidence == evidence
    assert check_result(outcome, "mean", source).evidence == outcome.evidence
    assert len(check_result(outcome, "mean", source, "m" * 3 * LIMIT).evidence) <= 2 * LIMIT


def test_evidence_about_a_notebook_gives_lines_of_its_cells():
    source = Source("a.ipynb", "x = 1\ny = 2\nz = 3\n", cells=(1, 3))
    outcome = CheckOutcome("a", "a", Layer.VALUES, 1, "", "error", "raised ValueError on line 3")
    verdict = FunctionVerdict("mean", "wrong", evidence=outcome.evidence)
    evidence = "raised ValueError on line 1 of code cell 2"
    assert check_result(outcome, "mean", source).evidence == evidence
    assert function_result(verdict, source).evidence == evidence
