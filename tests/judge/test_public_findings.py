"""The state of each function, from the failures that the public calls show."""

from collections.abc import Mapping

import pytest

from manyheads.box.worker.messages import Raised
from manyheads.course.course_yaml_schema import parse_signature
from manyheads.judge.attribute_public_replies import FunctionSummary, verdicts_of
from manyheads.judge.choose_failure_of_visible_checks import ChosenFailure
from manyheads.judge.public_calls import name_arguments
from manyheads.submission import Source

UNWRITTEN = Raised("NotImplementedError", ("NotImplementedError", "Exception"), "", "call", 3)
NO_FAILURES: Mapping[str, ChosenFailure] = {}


def failure(raised: Raised) -> ChosenFailure:
    """The failure of a check that the function answers with this exception."""
    return ChosenFailure("check", "", raised)


BEFORE = """
def layer(n): return n
def helper(n): return layer(n)
def make(size) -> layer:
    n = {"a": 1}[size]
    m = helper(n)
    return m[0]
"""


@pytest.mark.parametrize(
    ("line", "text", "state"),
    [
        pytest.param(5, BEFORE, "wrong", id="before it came to use the other"),
        pytest.param(7, BEFORE, "waiting", id="after that"),
        pytest.param(6, BEFORE, "waiting", id="on that line"),
        pytest.param(2, BEFORE, "waiting", id="in the other"),
        pytest.param(
            6,
            BEFORE.replace("    n =", "    while True:\n     n =").replace("    m", "     m"),
            "waiting",
            id="in a loop",
        ),
    ],
)
def test_what_raises_before_it_uses_another_waits_for_none(
    line: int, text: str, state: str
) -> None:
    raised = Raised("KeyError", ("KeyError", "Exception"), "'b'", "call", line)
    summaries = [
        FunctionSummary("layer", is_called=True, is_wrong=True),
        FunctionSummary("make", is_called=True, is_wrong=True),
    ]
    verdicts = verdicts_of(
        summaries, {"make": failure(raised)}, ["layer"], Source("attempt.py", text)
    )
    assert [verdict.state for verdict in verdicts] == ["wrong", state]


TEXT = """
def scores(q): return q
def weights(q): raise NotImplementedError
def attend(q): return weights(scores(q))
"""


SOURCE = Source("attempt.py", TEXT)


def states(
    *summaries: FunctionSummary,
    explained: tuple[str, ...] = (),
    chosen: Mapping[str, ChosenFailure] = NO_FAILURES,
) -> list[str]:
    verdicts = verdicts_of(summaries, chosen, explained, SOURCE)
    return [f"{verdict.state} {verdict.waits_for}".strip() for verdict in verdicts]


def test_what_uses_an_unwritten_function_waits_for_it_unless_it_has_a_mistake_of_its_own() -> None:
    summaries = [
        FunctionSummary("scores", True),
        FunctionSummary("weights", True, is_wrong=True),
        FunctionSummary("attend", True, is_wrong=True),
    ]
    assert states(*summaries) == ["right", "unwritten", "waiting weights"]
    assert states(*summaries, explained=("attend",)) == ["right", "unwritten", "wrong"]


def test_what_uses_a_name_that_is_not_there_waits_for_it() -> None:
    raised = Raised(
        "NameError", ("NameError", "Exception"), "name 'weight' is not defined", "call", 4
    )
    summaries = [
        FunctionSummary("weight", True, is_undefined=True),
        FunctionSummary("attend", True, is_wrong=True),
    ]
    assert states(*summaries, chosen={"attend": failure(raised)}) == [
        "undefined",
        "waiting weight",
    ]


def test_of_what_is_written_beside_the_stubs_exception_that_is_told() -> None:
    summaries = [
        FunctionSummary("scores", True, is_wrong=True, is_empty=True),
        FunctionSummary("weights", True, is_wrong=True),
    ]
    begun = TEXT.replace("return q\n", "\n    raise NotImplementedError()\n    return q\n", 1)
    verdicts = verdicts_of(summaries, NO_FAILURES, (), Source("attempt.py", begun))
    says = (
        "the stub's raise on line 3 still stands above code of yours: take that line out once "
        "the rest is written"
    )
    assert [(verdict.state, verdict.evidence) for verdict in verdicts] == [
        ("unwritten", says),
        ("unwritten", ""),
    ]


def test_a_class_of_which_one_method_is_written_is_not_wrong_and_the_other_is_named() -> None:
    half = Source(
        "attempt.py",
        "class Head:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def forward(self, x):\n        raise NotImplementedError\n",
    )
    summaries, chosen = [FunctionSummary("Head", True, is_wrong=True)], {"Head": failure(UNWRITTEN)}
    (verdict,) = verdicts_of(summaries, chosen, (), half)
    assert (verdict.state, verdict.evidence) == ("unwritten", "its forward is not written yet")
    (verdict,) = verdicts_of(summaries, chosen, ("Head",), half)
    assert verdict.state == "wrong"


def test_a_name_that_is_not_there_is_told_with_one_that_may_be_meant() -> None:
    summaries = [FunctionSummary("score", True, is_undefined=True, is_wrong=True)]
    (verdict,) = verdicts_of(summaries, NO_FAILURES, (), SOURCE)
    assert (verdict.state, verdict.near) == ("undefined", "scores")


def test_a_function_is_right_so_far_if_its_check_was_stopped_and_unseen_if_never_called() -> None:
    assert states(FunctionSummary("scores", True, stopped_at="attend")) + states(
        FunctionSummary("scores")
    ) == [
        "so_far attend",
        "unseen",
    ]


@pytest.mark.parametrize(
    ("signature", "sentence", "says"),
    [
        pytest.param(
            "(q: (T, C), block_q: bq, block_k: bk) -> (T, C)",
            "another value of the third argument in eval mode",
            "another value of `block_k` in eval mode",
            id="a number",
        ),
        pytest.param(
            "(q: (T, C), k: (T, C)) -> (T, C)",
            "no gradient reaches the second argument of call 2",
            "no gradient reaches `k` of call 2",
            id="a tensor of a later call",
        ),
        pytest.param(
            "(C)(x: (T, C)) -> (T, C)",
            "an edit of the first argument in [1:]",
            "an edit of `x` in [1:]",
            id="the argument of forward",
        ),
    ],
)
def test_an_argument_has_its_name_in_the_exercise(signature: str, sentence: str, says: str) -> None:
    assert name_arguments(sentence, [parse_signature(signature)]) == says
    assert name_arguments(sentence, []) == sentence
