"""Which step of a hint comes next."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from manyheads.diagnosis.bank import MisconceptionText
from manyheads.report.report_content import function_reports
from manyheads.result import Diagnosed, ExerciseResult, FunctionResult
from manyheads.student.hints import NOTE, Hint, next_hint, next_step, note_shown
from manyheads.submission.source import UNTOUCHED
from tests import make


def test_steps_to_one_mistake_use_up_none_of_another_and_wait_for_its_return_and_the_last_stays(
    tmp_path,
):
    requests = (
        ("one", "sum"),
        ("one", "mean"),
        ("two", "sum"),
        ("one", "sum"),
        ("two", "sum"),
        *[("one", "sum")] * 2,
    )
    assert [next_step(tmp_path, *request, 2) for request in requests] == [1, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "damage", ["", "[7", "[]", '{"one": 3}', '{"one": {"about": "sum", "step": 2}}']
)
def test_a_damaged_note_starts_over(tmp_path, damage):
    next_step(tmp_path, "one", "sum", 3)
    (tmp_path / ".course" / NOTE).write_text(damage, encoding="utf-8")
    assert [next_step(tmp_path, "one", "sum", 3) for _ in range(2)] == [1, 2]


WORDS = {
    name: MisconceptionText(title=f"{name}.", explanation="", hints=(f"{name}?", "2", "3"))
    for name in (
        "reversed",
        "missing",
        "interface",
        "refuses_allowed",
        "mask_not_bool",
        "hard_coded_device",
        "params_extra",
        UNTOUCHED,
    )
}


def two_functions() -> ExerciseResult:
    """Both are wrong, each with a mistake of its own; that of the second stands first in the
    diagnosis.
    """
    named = {"merge": "missing", "split": "reversed"}
    checks = tuple(
        make.check(name, evidence=f"{name} failed.", function=name) for name in ("split", "merge")
    )
    functions = tuple(
        FunctionResult(name=check.id, state="wrong", check=check.title) for check in checks
    )
    diagnosis = tuple(
        Diagnosed(id=id_, title=f"{id_}.", hint="", function=name) for name, id_ in named.items()
    )
    return make.exercise("dance", *checks, functions=functions, diagnosis=diagnosis)


def hint_on(result: ExerciseResult, root: Path) -> Hint:
    exercise, recording = SimpleNamespace(id="dance", hint="Begin."), SimpleNamespace(words=WORDS)
    attempt: Any = SimpleNamespace(
        exercise=exercise, fault_dictionary=recording, course=SimpleNamespace(root=root)
    )
    return next_hint(attempt, result)


def test_it_is_of_the_function_that_check_shows_first(tmp_path):
    assert hint_on(two_functions(), tmp_path) == Hint(
        "split: reversed.", "Hint 1 of 3: reversed?", "course hint dance"
    )


def wrong_in(function: str, evidence: str = "") -> ExerciseResult:
    """The same mistake, in this function."""
    checks = (make.check("one", evidence=evidence, function=function),)
    functions = tuple(
        FunctionResult(name=name, state="wrong" if name == function else "right", check="one")
        for name in ("split", "merge")
    )
    diagnosis = (
        Diagnosed(id="interface", title="interface.", hint="interface?", function=function),
    )
    return make.exercise("dance", *checks, functions=functions, diagnosis=diagnosis)


def test_the_same_mistake_in_another_function_begins_with_its_first_hint(tmp_path):
    for _ in range(4):
        hint_on(wrong_in("split"), tmp_path)
    hint = hint_on(wrong_in("merge"), tmp_path)
    assert (hint.title, hint.sentence) == ("merge: interface.", "Hint 1 of 3: interface?")


def test_another_kind_of_one_mistake_has_texts_of_its_own_and_begins_with_the_first(
    tmp_path,
):
    for _ in range(4):
        hint_on(failed_result("the output differs", named="interface"), tmp_path)
    hint = hint_on(
        failed_result("a tensor was expected; yours returned None", named="interface"), tmp_path
    )
    assert hint.sentence.startswith("Hint 1 of 3: ")


def test_after_a_tick_hints_begin_anew(tmp_path):
    for _ in range(4):
        hint_on(two_functions(), tmp_path)
    result = make.exercise("dance", make.check("split", outcome="passed", score=1.0))
    assert result.is_done
    note_shown(result, tmp_path)
    assert hint_on(two_functions(), tmp_path).sentence == "Hint 1 of 3: reversed?"


def test_the_hint_that_a_check_shows_is_the_first(tmp_path):
    note_shown(wrong_in("merge"), tmp_path)
    assert hint_on(wrong_in("merge"), tmp_path).sentence.startswith("Hint 2 of 3: ")


def test_of_a_function_under_another_name_it_asks_for_the_name(tmp_path):
    gone = FunctionResult(name="split", state="undefined", near="splits")
    result = failed_result("", named="interface").model_copy(update={"functions": (gone,)})
    assert hint_on(result, tmp_path).title == "split: the file has no such name; is splits meant?"


def test_of_what_is_begun_it_is_about_what_the_stub_has_left(tmp_path):
    begun = FunctionResult(
        name="merge", state="unwritten", evidence="its forward is not written yet"
    )
    functions = (FunctionResult(name="split", state="unwritten"), begun)
    checks = tuple(check.model_copy(update={"function": ""}) for check in two_functions().checks)
    result = make.exercise("dance", *checks, functions=functions)
    assert hint_on(result, tmp_path).title == "merge: its forward is not written yet"


def failed_result(evidence: str, *, named: str = "") -> ExerciseResult:
    checks = (make.check("split", outcome="error", evidence=evidence, function="split"),)
    functions = (FunctionResult(name="split", state="wrong", check="split", evidence=evidence),)
    diagnosis = (
        (Diagnosed(id=named, title=f"{named}.", hint="", function="split"),) if named else ()
    )
    return make.exercise("dance", *checks, functions=functions, diagnosis=diagnosis)


@pytest.mark.parametrize(
    ("evidence", "hint"),
    [
        (
            "raised NameError on line 3: a name is used that has no value there",
            "Which name, value or type does Python's",
        ),
        (
            "raised NotImplementedError: a module that has no forward was called",
            "Which name or argument does Python's",
        ),
        (
            "raised RuntimeError on line 3: two tensors whose shapes cannot be multiplied",
            "Which shape, and which numbers,",
        ),
        ("the output (2, 3): 6 of 6 values differ", "Which shape, and which numbers, did you mean"),
    ],
)
def test_a_hint_about_shapes_stands_beside_no_exception_of_another_kind(tmp_path, evidence, hint):
    assert hint in hint_on(failed_result(evidence), tmp_path).sentence


def test_another_exception_in_the_same_check_has_steps_of_its_own(tmp_path):
    messages = (
        "raised NameError on line 3: it",
        "raised TypeError on line 3: it",
        "raised TypeError on line 5: it",
    )
    steps = [hint_on(failed_result(message), tmp_path).sentence[:11] for message in messages]
    assert steps == ["Hint 1 of 2", "Hint 1 of 2", "Hint 2 of 2"]


@pytest.mark.parametrize(
    ("named", "evidence", "title", "hint"),
    [
        (
            "interface",
            "a tensor was expected; yours returned None: is a return missing?",
            "It returns None, as where",
            "no return",
        ),
        (
            "interface",
            "a tensor was expected; yours returned a tuple",
            "It returns something else than",
            "docstring",
        ),
        (
            "interface",
            "raised TypeError: the arguments differ from the ones that the exercise names",
            "Its arguments are not",
            "arguments",
        ),
        (
            "interface",
            "raised TypeError: what was built is not a torch.nn.Module",
            "It is not the kind of thing",
            "def or with class",
        ),
        (
            "interface",
            (
                "raised TypeError: the arguments differ. Did you mean __init__, where it says "
                "__init_ on line 3?"
            ),
            "Python does not find its __init__",
            "underscores",
        ),
        (
            "interface",
            (
                "raised TypeError: what was built is not a torch.nn.Module. What it returns is no "
                "module"
            ),
            "What it returns is no module.",
            "docstring",
        ),
        (
            "mask_not_bool",
            (
                "raised TypeError: a mask of numbers. `f(b, a)`, written on line 3, exchanges the "
                "arguments of f(a, b)"
            ),
            "Two arguments stand in each",
            "order",
        ),
        (
            "hard_coded_device",
            "on cpu. torch.ones, written on line 3, is given no device",
            "You did not hand the device on",
            "without a device",
        ),
        (
            "params_extra",
            "6 of 6 values differ. It has no parameter W_query.weight, and has W_q.weight",
            "A parameter has another name",
            "named_parameters",
        ),
        ("params_extra", "6 of 6 values differ", "params_extra.", "params_extra?"),
        ("interface", "the output differs", "interface.", "interface?"),
        (
            "refuses_allowed",
            (
                "raised RuntimeError on line 193: a reshape to a shape with another number of "
                "elements. Python says: no"
            ),
            "It stops on an input that is allowed: sizes do not fit.",
            "which axis",
        ),
        (
            "refuses_allowed",
            (
                "raised ValueError on line 9: something is taken apart into another number of "
                "parts than it has"
            ),
            "It stops on an input that is allowed: sizes",
            "which axis",
        ),
        (
            "refuses_allowed",
            (
                "raised ValueError on line 3 of code cell 2: something is taken apart into "
                "another number of parts"
            ),
            "It stops on an input that is allowed: sizes",
            "which axis",
        ),
        (
            "refuses_allowed",
            "raised TypeError on line 9: a value of a type that does not fit. Python says: no",
            "It stops with an exception on an input",
            "Python's message",
        ),
        (
            "refuses_allowed",
            "raised ValueError on line 157. Python says: the size T = 4 is too long",
            "refuses_allowed.",
            "refuses_allowed?",
        ),
        (
            "refuses_allowed",
            "raised AssertionError on line 157: an assert that does not hold",
            "refuses_allowed.",
            "refuses_allowed?",
        ),
    ],
)
def test_a_mistake_is_told_in_the_words_of_its_kind(tmp_path, named, evidence, title, hint):
    """In check, in status and in hint."""
    result = failed_result(evidence, named=named)
    shown_hint, (report,) = hint_on(result, tmp_path), function_reports(result)
    assert shown_hint.title.startswith(title)
    assert report.says.startswith(title)
    assert hint in shown_hint.sentence
    if title != f"{named}.":
        assert hint in report.hint
