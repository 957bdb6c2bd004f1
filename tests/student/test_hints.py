"""Which hint `course hint` shows next, and the titles and hints for each kind of mistake."""

from types import SimpleNamespace

import pytest

from manyheads.diagnosis.bank import MisconceptionText
from manyheads.report.report_content import function_reports
from manyheads.result import Diagnosed, ExerciseResult, FunctionResult
from manyheads.student.hints import NOTE, Hint, next_hint, next_step, note_shown
from tests import make


def test_each_mistake_counts_its_own_hints(tmp_path):
    """A mistake that comes back continues with its next hint. After both hints: step 3."""
    steps = []
    for request in ["one sum", "one mean", "two sum", "one sum", "two sum", *["one sum"] * 2]:
        steps.append(next_step(tmp_path, *request.split(), 2))
    assert steps == [1, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "damage", ["", "[7", "[]", '{"one": 3}', '{"one": {"about": "sum", "step": 2}}']
)
def test_hints_start_again_if_their_note_is_damaged(tmp_path, damage):
    next_step(tmp_path, "one", "sum", 3)
    (tmp_path / ".course" / NOTE).write_text(damage, encoding="utf-8")
    assert [next_step(tmp_path, "one", "sum", 3) for _ in range(2)] == [1, 2]


WORDS = {
    id_: MisconceptionText(title=f"{id_}.", explanation="", hints=(f"{id_}?", "2", "3"))
    for id_ in "reversed missing interface refuses_allowed mask_not_bool hard_coded_device "
    "params_extra stub_untouched".split()
}


@pytest.fixture
def hint_on(tmp_path):
    """Return a function that returns the next hint about a result."""
    exercise = SimpleNamespace(id="dance", hint="Begin.")
    attempt = SimpleNamespace(
        exercise=exercise,
        fault_dictionary=SimpleNamespace(words=WORDS),
        course=SimpleNamespace(root=tmp_path),
    )
    return lambda result: next_hint(attempt, result)


def wrong_result(*functions: str, evidence: str = "", **misconceptions: str) -> ExerciseResult:
    """Return a result in which these functions are wrong.

    misconceptions: the misconception of a function, by the name of the function.
    """
    checks = [make.check(name, evidence=evidence, function=name) for name in functions]
    states = (
        FunctionResult(name=name, state="wrong", check=name, evidence=evidence)
        for name in functions
    )
    diagnosis = (
        Diagnosed(id=id_, title=f"{id_}.", hint="", function=name)
        for name, id_ in misconceptions.items()
    )
    return make.exercise("dance", *checks, functions=tuple(states), diagnosis=tuple(diagnosis))


TWO_MISTAKES = wrong_result("split", "merge", merge="missing", split="reversed")


def test_the_hint_is_about_the_first_wrong_function(hint_on):
    expected = Hint("split: reversed.", "Hint 1 of 3: reversed?", "course hint dance")
    assert hint_on(TWO_MISTAKES) == expected


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(
            wrong_result("split", split="interface"),
            wrong_result("merge", merge="interface"),
            id="the same mistake in another function",
        ),
        pytest.param(
            wrong_result("split", split="interface", evidence="the output differs"),
            wrong_result(
                "split",
                split="interface",
                evidence="a tensor was expected; yours returned None",
            ),
            id="another variant of the mistake",
        ),
    ],
)
def test_a_new_mistake_begins_with_its_first_hint(hint_on, earlier, later):
    for _ in range(4):
        hint_on(earlier)
    assert hint_on(later).sentence.startswith("Hint 1 of 3: ")


def test_hints_begin_again_after_the_function_was_right(hint_on, tmp_path):
    for _ in range(4):
        hint_on(TWO_MISTAKES)
    note_shown(make.exercise("dance", make.check("split", 1)), tmp_path)
    assert hint_on(TWO_MISTAKES).sentence == "Hint 1 of 3: reversed?"


def test_a_hint_shown_by_course_check_counts_as_the_first(hint_on, tmp_path):
    result = make.exercise(
        "dance",
        make.check("merge", function="merge"),
        functions=(FunctionResult(name="merge", state="wrong", check="merge"),),
        diagnosis=(Diagnosed(id="missing", title="missing.", hint="missing?", function="merge"),),
    )
    note_shown(result, tmp_path)
    assert hint_on(result).sentence.startswith("Hint 2 of 3: ")


@pytest.mark.parametrize(
    ("functions", "title"),
    [
        pytest.param(
            [FunctionResult(name="split", state="undefined", near="splits")],
            "split: the file has no such name; is splits meant?",
            id="a function under another name",
        ),
        pytest.param(
            [
                FunctionResult(name="split", state="unwritten"),
                FunctionResult(
                    name="merge", state="unwritten", evidence="its forward is not written yet"
                ),
            ],
            "merge: its forward is not written yet",
            id="a function that is partly written",
        ),
    ],
)
def test_the_title_names_a_missing_or_unwritten_function(hint_on, functions, title):
    result = make.exercise("dance", make.check("split"), functions=tuple(functions))
    assert hint_on(result).title == title


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
def test_the_general_hint_fits_the_kind_of_failure(hint_on, evidence, hint):
    assert hint in hint_on(wrong_result("split", evidence=evidence)).sentence


def test_each_exception_type_counts_its_own_hints(hint_on):
    steps = []
    for exception in ("NameError on line 3", "TypeError on line 3", "TypeError on line 5"):
        steps.append(
            hint_on(wrong_result("split", evidence=f"raised {exception}: it")).sentence[:11]
        )
    assert steps == ["Hint 1 of 2", "Hint 1 of 2", "Hint 2 of 2"]


@pytest.mark.parametrize(
    ("misconception", "evidence", "title", "hint"),
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
            "raised TypeError: the arguments differ. Did you mean __init__, where it says "
            "__init_ on line 3?",
            "Python does not find its __init__",
            "underscores",
        ),
        (
            "interface",
            "raised TypeError: what was built is not a torch.nn.Module. What it returns is no "
            "module",
            "What it returns is no module.",
            "docstring",
        ),
        (
            "mask_not_bool",
            "raised TypeError: a mask of numbers. `f(b, a)`, written on line 3, exchanges the "
            "arguments of f(a, b)",
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
            "raised RuntimeError on line 193: a reshape to a shape with another number of "
            "elements. Python says: no",
            "It stops on an input that is allowed: sizes do not fit.",
            "which axis",
        ),
        (
            "refuses_allowed",
            "raised ValueError on line 3 of code cell 2: something is taken apart into "
            "another number of parts",
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
def test_the_title_and_the_hint_fit_the_variant_of_the_mistake(
    hint_on, misconception, evidence, title, hint
):
    result = wrong_result("split", split=misconception, evidence=evidence)
    shown_hint, (report,) = hint_on(result), function_reports(result)
    assert shown_hint.title.startswith(title)
    assert report.says.startswith(title)
    assert hint in shown_hint.sentence
    if title != f"{misconception}.":  # otherwise the mistake has no variant
        assert hint in report.hint
