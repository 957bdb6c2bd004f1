"""Whether proved misconceptions can be why something else is wrong."""

import pytest

from manyheads.box.worker.messages import Raised
from manyheads.diagnosis.evidence import can_cause, misconception_of_exception

REACHED = {
    "unused": [{"use"}],
    "changed": [{"values", "argument"}, {"shape", "values", "argument"}],
}


@pytest.mark.parametrize(
    ("names", "unexplained", "wrong", "expected"),
    [
        pytest.param(
            ["unused"], {"values"}, {"values", "use"}, False, id="no mutant of it has wrong values"
        ),
        pytest.param(
            ["changed"],
            {"values"},
            {"values", "argument"},
            True,
            id="a mutant of it has wrong values",
        ),
        pytest.param(
            ["changed"],
            {"shape", "values"},
            {"shape", "values"},
            False,
            id="mutants that fail what passes say nothing",
        ),
        pytest.param(
            ["unused", "changed"],
            {"values"},
            {"values", "use", "argument"},
            True,
            id="one of several is enough, and the other is a fault of its own",
        ),
        pytest.param(
            ["unlisted"],
            {"values"},
            {"values"},
            False,
            id="without mutants it explains nothing else",
        ),
        pytest.param(["unused"], set(), {"use"}, True, id="nothing else is wrong"),
        pytest.param([], {"values"}, {"values"}, True, id="nothing is proved"),
    ],
)
def test_what_is_proved_can_cause_what_its_mutants_get_wrong(
    names, unexplained, wrong, expected
) -> None:
    assert can_cause(names, unexplained, wrong, lambda: REACHED) is expected


def test_where_nothing_is_recorded_all_may_be_the_cause() -> None:
    assert can_cause(["unused"], {"values"}, {"values", "use"}, dict)


def test_a_complaint_of_autograd_is_no_changed_argument_where_none_changed() -> None:
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation"
    )
    raised = Raised("RuntimeError", ("RuntimeError", "Exception"), message, "gradient", None)
    assert misconception_of_exception(raised, mutates=True) == "input_mutated"
    assert misconception_of_exception(raised, mutates=False) == ""
