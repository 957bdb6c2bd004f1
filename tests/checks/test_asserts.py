"""Assert functions for checks, edits for mutants, and fingerprints of tensors."""

import resource

import pytest
import torch

from manyheads.box.worker.messages import Call, Output, Raised, Reply
from manyheads.checks.answer import Answer
from manyheads.checks.asserts import (
    assert_finite,
    assert_matches,
    assert_refused,
    assert_same,
    assert_shape,
    assert_unmutated,
    difference,
    label,
)
from manyheads.checks.hidden_check import AttemptRaised, CheckFailed, EditError, edit
from manyheads.diagnosis import fingerprint
from manyheads.diagnosis.fingerprint import LARGEST, tensor_fingerprint
from tests.make import cases

INF, NAN = float("inf"), float("nan")
ONES = torch.ones(2, 3, dtype=torch.float64)


def answer_with(*outputs: Output, **reply: object) -> Answer:
    """Return an answer with these outputs and other fields of the reply."""
    return Answer(Call("f"), Reply(outputs=outputs, **reply))


def tensor_answer(value: torch.Tensor, **reply: object) -> Answer:
    return answer_with(Output("tensor", value, "float64", "cpu", tuple(value.shape)), **reply)


def error_answer(*types: str) -> Answer:
    """Return an answer that raised an exception: its type, and then its base classes."""
    return answer_with(raised=Raised(types[0], (*types, "Exception"), "", "call", 7))


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        pytest.param(ONES + 5e-6, ONES, id="a difference below the tolerance"),
        pytest.param(torch.tensor([-INF, 1.0]), torch.tensor([-INF, 1.0]), id="equal infinities"),
        pytest.param(torch.zeros(0), torch.zeros(0), id="empty tensors"),
        pytest.param(torch.tensor([True]), torch.tensor([1.0]), id="a bool equal to a number"),
    ],
)
def test_answers_that_match(actual, expected):
    assert_matches(tensor_answer(actual), expected)


def test_the_evidence_contains_no_expected_value():
    with pytest.raises(CheckFailed) as caught:
        assert_matches(tensor_answer(ONES), ONES * 41.625)
    # the expected value must stay secret
    assert "41.6" not in str(caught.value)


def test_a_difference_is_relative_to_the_largest_expected_value():
    assert difference(torch.tensor([1.0, 100.0]), torch.tensor([2.0, 100.0])) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("exception_types", "also"),
    [
        (["ValueError"], ()),
        (["AssertionError"], ()),
        (["Mine", "ValueError"], ()),
        (["RuntimeError"], ("RuntimeError",)),
    ],
)
def test_exceptions_that_count_as_a_refusal(exception_types, also):
    assert_refused(error_answer(*exception_types), "C = 7", also=also)


@pytest.mark.parametrize(
    ("exception_types", "also"),
    [(["RuntimeError"], ()), (["NotImplementedError", "RuntimeError"], ("RuntimeError",))],
)
def test_other_exceptions_are_passed_on(exception_types, also):
    with pytest.raises(AttemptRaised):
        assert_refused(error_answer(*exception_types), "C = 7", also=also)
    with pytest.raises(AttemptRaised):
        assert_shape(error_answer(*exception_types), (1,))


def test_an_accepted_argument_fails_the_check():
    with pytest.raises(CheckFailed, match="C = 7 is accepted in silence") as caught:
        assert_refused(tensor_answer(ONES), "C = 7", suspect="divisibility_unchecked")
    assert caught.value.suspect == "divisibility_unchecked"


@cases(
    ("check", "answers", "message_pattern"),
    {
        "another shape": (
            assert_matches,
            [tensor_answer(ONES[:1]), ONES],
            r"should have shape \(2, 3\); yours has \(1, 3\)",
        ),
        "every value": (assert_matches, [tensor_answer(ONES * 1.1), ONES], "6 of 6 values differ"),
        "a few values, by little": (
            assert_matches,
            [tensor_answer(ONES + 2e-5 * torch.eye(2, 3)), ONES],
            r"2 of 6 values differ, the most at \(0, 0\)",
        ),
        "NaN": (assert_matches, [tensor_answer(ONES * NAN), ONES], "values differ, the most at"),
        "infinity": (
            assert_matches,
            [tensor_answer(ONES * INF), ONES],
            "values differ, the most at",
        ),
        "one number": (
            assert_matches,
            [tensor_answer(ONES.sum()), ONES[0, 0]],
            "a single number, and not the expected one",
        ),
        "a tuple": (assert_finite, [answer_with(Output("tuple"))], "yours returned a tuple"),
        "a type whose name is a text of the student's": (
            assert_finite,
            [answer_with(Output("x0.123::warning"))],
            "an object of another type",
        ),
        "NaN where numbers must be finite": (
            assert_finite,
            [tensor_answer(torch.tensor([0.0, NAN]))],
            r"1 of 2 values are NaN, the first at \(1,\)",
        ),
        "the first argument is changed": (
            assert_unmutated,
            [tensor_answer(ONES, mutated=("args.0",))],
            "the first argument changed",
        ),
        "the seventh argument is changed": (
            assert_unmutated,
            [tensor_answer(ONES, mutated=("args.6",))],
            "the 7th argument changed",
        ),
        "two answers that should be equal": (
            assert_same,
            [tensor_answer(ONES), tensor_answer(ONES * 2), "the past changed"],
            "the past changed",
        ),
    },
)
def test_a_failed_assert_has_a_message_for_the_student(check, answers, message_pattern):
    with pytest.raises(CheckFailed, match=message_pattern):
        check(*answers)


@pytest.mark.parametrize(
    ("position", "ordinal"),
    [(5, "sixth"), (6, "7th"), (10, "11th"), (20, "21st"), (22, "23rd"), (111, "112th")],
)
def test_the_position_of_an_argument_is_an_ordinal_number(position: int, ordinal: str) -> None:
    assert str(label(f"args.{position}")) == f"the {ordinal} argument"


LESSON = "# divide by / len(x)\n"
SOLUTION = "### BEGIN SOLUTION\ny = x / len(x)\n### END SOLUTION\n"


def test_an_edit_prefers_the_solution_to_the_lesson():
    text = LESSON + SOLUTION
    assert edit("/ len(x)", "").apply(text) == LESSON + SOLUTION.replace(" / len(x)", " ")
    assert edit("divide", "share").apply(text) == text.replace("divide", "share")


@pytest.mark.parametrize("source", ["", LESSON * 2, SOLUTION * 2, LESSON + 2 * SOLUTION])
def test_an_edit_of_missing_or_repeated_text_is_refused(source):
    with pytest.raises(EditError, match="needs it exactly once"):
        edit("/ len(x)", "").apply(source)


def test_only_equal_tensors_have_equal_fingerprints():
    x = torch.arange(12.0).reshape(3, 4)
    assert tensor_fingerprint(x) == tensor_fingerprint(x.clone())
    assert tensor_fingerprint(x) != tensor_fingerprint(x + 1e-3)
    masked = tensor_fingerprint(x.masked_fill(x > 9, torch.nan))
    assert masked.extremes != tensor_fingerprint(x).extremes


def test_the_fingerprint_of_a_too_large_tensor_is_its_size(monkeypatch):
    # random directions are drawn only for smaller tensors
    monkeypatch.setattr(fingerprint, "_directions", None)
    large, larger = (torch.zeros(LARGEST + n, dtype=torch.uint8) for n in (1, 2))
    assert tensor_fingerprint(large) == tensor_fingerprint(large + 1)
    assert tensor_fingerprint(large) != tensor_fingerprint(larger)


def test_fingerprints_of_many_sizes_do_not_fill_memory():
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for length in range(LARGEST - 10, LARGEST):  # each length takes 32 MiB of directions
        tensor_fingerprint(torch.zeros(length))
    growth_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_before
    assert growth_kib < 200 << 10  # 200 MiB
