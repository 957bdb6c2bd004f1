"""What authors of checks and mutants import: asserts, edits, and projections of answers."""

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


def value_answer(value: torch.Tensor) -> Answer:
    return Answer(
        Call("f"), Reply(outputs=(Output("tensor", value, "float64", "cpu", tuple(value.shape)),))
    )


def error_answer(exception_type: str, *bases: str, message: str = "") -> Answer:
    return Answer(
        Call("f"),
        Reply(
            raised=Raised(exception_type, (exception_type, *bases, "Exception"), message, "call", 7)
        ),
    )


ONES = torch.ones(2, 3, dtype=torch.float64)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        pytest.param(ONES, ONES, id="equal values"),
        pytest.param(ONES + 5e-6, ONES, id="a difference below the tolerance"),
        pytest.param(
            torch.tensor([-float("inf"), 1.0]),
            torch.tensor([-float("inf"), 1.0]),
            id="equal infinities",
        ),
        pytest.param(torch.zeros(0), torch.zeros(0), id="nothing at all"),
        pytest.param(torch.tensor([True]), torch.tensor([1.0]), id="a bool that means the same"),
    ],
)
def test_it_matches(got, want):
    assert_matches(value_answer(got), want)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        pytest.param(
            ONES[:1], r"should have shape \(2, 3\); yours has \(1, 3\)", id="another shape"
        ),
        pytest.param(ONES * 1.1, "6 of 6 values differ", id="all values differ"),
        pytest.param(
            ONES + 2e-5 * torch.eye(2, 3),
            r"2 of 6 values differ, the most at \(0, 0\)",
            id="two values differ",
        ),
        pytest.param(
            ONES * float("nan"), "values differ, the most at", id="NaN agrees with nothing"
        ),
        pytest.param(
            ONES * float("inf"), "values differ, the most at", id="infinity in place of a number"
        ),
    ],
)
def test_it_does_not_match(got, says):
    with pytest.raises(CheckFailed, match=says):
        assert_matches(value_answer(got), ONES)


def test_evidence_shows_no_expected_value():
    with pytest.raises(CheckFailed) as caught:
        assert_matches(value_answer(ONES), torch.full((2, 3), 41.625, dtype=torch.float64))
    assert "41.6" not in str(caught.value)


def test_a_difference_is_held_against_the_largest_expected_value():
    assert difference(torch.tensor([1.0, 100.0]), torch.tensor([2.0, 100.0])) == pytest.approx(0.01)


def test_an_accepted_argument_is_no_refusal():
    with pytest.raises(CheckFailed, match="C = 7 is accepted in silence") as caught:
        assert_refused(value_answer(ONES), "C = 7", suspect="divisibility_unchecked")
    assert caught.value.suspect == "divisibility_unchecked"


@pytest.mark.parametrize(
    ("answer", "also"),
    [
        (error_answer("ValueError"), ()),
        (error_answer("AssertionError"), ()),
        (error_answer("Mine", "ValueError"), ()),
        (error_answer("RuntimeError"), ("RuntimeError",)),
    ],
)
def test_a_refusal_is_a_value_error_or_an_assert_or_what_the_check_says(answer, also):
    assert_refused(answer, "C = 7", also=also)


@pytest.mark.parametrize(
    ("answer", "also"),
    [
        pytest.param(error_answer("RuntimeError"), (), id="a RuntimeError where none is asked for"),
        pytest.param(
            error_answer("NotImplementedError", "RuntimeError"),
            ("RuntimeError",),
            id="nothing written yet",
        ),
    ],
)
def test_another_exception_is_no_refusal(answer, also):
    with pytest.raises(AttemptRaised):
        assert_refused(answer, "C = 7", also=also)


def test_an_exception_is_not_an_output():
    with pytest.raises(AttemptRaised):
        assert_shape(error_answer("TypeError"), (1,))


def of_kind(output_kind: str) -> Answer:
    return Answer(Call("f"), Reply(outputs=(Output(output_kind),)))


def _with_changed(argument: str) -> Answer:
    return Answer(Call("f"), Reply(outputs=value_answer(ONES).reply.outputs, mutated=(argument,)))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        pytest.param(
            lambda: assert_matches(value_answer(torch.tensor(2.0)), torch.tensor(3.0)),
            "a single number, and not the expected one",
            id="a single number, without a place",
        ),
        pytest.param(
            lambda: assert_finite(of_kind("tuple")), "yours returned a tuple", id="a tuple"
        ),
        pytest.param(
            lambda: assert_finite(of_kind("x0.123::warning")),
            "an object of another type",
            id="their own type",
        ),
        pytest.param(
            lambda: assert_finite(value_answer(torch.tensor([0.0, float("nan")]))),
            r"1 of 2 values are NaN, the first at \(1,\)",
            id="NaN, with its place",
        ),
        pytest.param(
            lambda: assert_unmutated(_with_changed("args.0")),
            "the first argument changed",
            id="an argument that changed",
        ),
        pytest.param(
            lambda: assert_unmutated(_with_changed("args.6")),
            "the 7th argument changed",
            id="a seventh argument, which need not be the last",
        ),
        pytest.param(
            lambda: assert_same(value_answer(ONES), value_answer(ONES * 2), "the past changed"),
            "the past changed",
            id="two answers that differ, with the check's own sentence",
        ),
    ],
)
def test_it_fails_with_a_sentence_for_the_student(ask, says):
    with pytest.raises(CheckFailed, match=says):
        ask()


@pytest.mark.parametrize(
    ("position", "ordinal"),
    [(5, "sixth"), (6, "7th"), (10, "11th"), (20, "21st"), (22, "23rd"), (111, "112th")],
)
def test_the_place_of_an_argument_is_an_ordinal_number(position: int, ordinal: str) -> None:
    assert str(label(f"args.{position}")) == f"the {ordinal} argument"


LESSON = "# divide by / len(x)\n"
SOLUTION = "### BEGIN SOLUTION\ny = x / len(x)\n### END SOLUTION\n"


def test_a_text_that_the_lesson_has_too_is_replaced_in_the_solution():
    edited = edit("/ len(x)", "").apply(LESSON + SOLUTION)
    assert edited == LESSON + SOLUTION.replace(" / len(x)", " ")


def test_a_text_that_stands_once_is_replaced_wherever_it_is():
    assert (
        edit("divide", "share").apply(LESSON + SOLUTION)
        == LESSON.replace("divide", "share") + SOLUTION
    )


@pytest.mark.parametrize("source", [LESSON, LESSON * 2, SOLUTION * 2, LESSON + 2 * SOLUTION])
def test_a_text_that_stands_nowhere_or_in_several_places_is_refused(source):
    with pytest.raises(EditError, match="needs it exactly once"):
        edit("/ len(x)" if source != LESSON else "* len(x)", "").apply(source)


def test_equal_tensors_have_equal_projections_and_others_have_not():
    x = torch.arange(12.0).reshape(3, 4)
    assert tensor_fingerprint(x) == tensor_fingerprint(x.clone())
    assert tensor_fingerprint(x) != tensor_fingerprint(x + 1e-3)
    assert (
        tensor_fingerprint(x.masked_fill(x > 9, torch.nan)).extremes
        != tensor_fingerprint(x).extremes
    )


def test_a_tensor_that_is_larger_than_any_right_answer_is_known_by_its_size_alone(monkeypatch):
    monkeypatch.setattr(fingerprint, "_directions", None)  # no directions are drawn for it
    large = torch.zeros(LARGEST + 1, dtype=torch.uint8)
    assert tensor_fingerprint(large) == tensor_fingerprint(large + 1)
    assert tensor_fingerprint(large) != tensor_fingerprint(
        torch.zeros(LARGEST + 2, dtype=torch.uint8)
    )


def test_what_sizes_a_student_chooses_is_not_kept():
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for length in range(LARGEST - 40, LARGEST):  # 32 MiB of directions each
        tensor_fingerprint(torch.zeros(length))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_before < 400 << 10  # KiB
