"""Whether misconceptions that are already proved can also be the cause of other failures."""

import pytest

from manyheads.box.worker.messages import Raised
from manyheads.diagnosis.evidence import can_cause, misconception_of_exception

# for each misconception: the oracles that each of its mutants violates
VIOLATED_BY_MUTANTS = {
    "unused": [{"use"}],
    "changed": [{"values", "argument"}, {"shape", "values", "argument"}],
}


@pytest.mark.parametrize(
    ("proved", "unexplained", "violated", "is_possible_cause"),
    [
        pytest.param(
            ["unused"],
            {"values"},
            {"values", "use"},
            False,
            id="no mutant of the misconception has wrong values",
        ),
        pytest.param(
            ["changed"],
            {"values"},
            {"values", "argument"},
            True,
            id="a mutant of the misconception has wrong values",
        ),
        pytest.param(
            ["changed"],
            {"shape", "values"},
            {"shape", "values"},
            False,
            id="the mutants also fail an oracle that passes here",
        ),
        pytest.param(
            ["unused", "changed"],
            {"values"},
            {"values", "use", "argument"},
            True,
            id="one of two misconceptions is enough",
        ),
        pytest.param(
            ["unlisted"],
            {"values"},
            {"values"},
            False,
            id="a misconception without mutants",
        ),
        pytest.param(["unused"], set(), {"use"}, True, id="nothing else is wrong"),
        pytest.param([], {"values"}, {"values"}, True, id="nothing is proved"),
    ],
)
def test_a_proved_misconception_can_cause_the_failures_of_its_mutants(
    proved, unexplained, violated, is_possible_cause
) -> None:
    assert (
        can_cause(proved, unexplained, violated, lambda: VIOLATED_BY_MUTANTS) is is_possible_cause
    )


def test_any_misconception_can_be_the_cause_if_no_mutants_are_recorded() -> None:
    assert can_cause(["unused"], {"values"}, {"values", "use"}, dict)


def test_an_inplace_error_of_autograd_proves_a_mutation_only_if_an_input_changed() -> None:
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation"
    )
    raised = Raised("RuntimeError", ("RuntimeError", "Exception"), message, "gradient", None)
    assert misconception_of_exception(raised, mutates=True) == "input_mutated"
    assert misconception_of_exception(raised, mutates=False) == ""
