"""Internal: a small bank tests one condition of the match with a sweep at a time.

A wrong constant (a scale, a fill value) is recognised by a recorded sweep, which holds the replies
of one mutant for many values of its constant. If no value fits all calls of the attempt, no
misconception is named.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.authoring.choose_recorded_calls import RecordedCall, RecordedCalls
from manyheads.authoring.record_pairs_and_sweeps import recorded_curves
from manyheads.authoring.remembered_steps import RememberedSteps
from manyheads.box.worker.messages import Call
from manyheads.checks.runner import LocalRunner
from manyheads.course import load_course
from manyheads.diagnosis.bank import Bank, ParametricMutant, sweeps_from_columns, sweeps_to_columns
from manyheads.diagnosis.fault_dictionary import FaultDictionary, PublicCheck, Response, differs
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.match import on_a_sweep
from manyheads.diagnosis.observed_reply import ObservedReply, observe_reply
from tests.make import TINY

Function = Callable[[Tensor], Tensor]


def scaled_scores(x: Tensor, scale: float) -> Tensor:
    """Return x @ xᵀ times the scale."""
    return x @ x.mT * scale


def weights(x: Tensor, scale: float, fill: float = -torch.inf) -> Tensor:
    """Return causal attention weights with this scale; fill replaces the scores of the future."""
    future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
    return scaled_scores(x, scale).masked_fill(future, fill).softmax(-1)


def namespace(
    weigh: Function, score: Function, double: Function = lambda x: 2 * x
) -> dict[str, object]:
    """Return an attempt: its three functions by name."""
    return {"weights": weigh, "scores": score, "double": double}


def attempt_with_scale(scale: float = 1.0) -> dict[str, object]:
    """Return an attempt that multiplies its scores by this constant."""
    return namespace(lambda x: weights(x, scale), lambda x: scaled_scores(x, scale))


def attempt_with_fill(fill: float) -> dict[str, object]:
    """Return an attempt that scales correctly and hides the future with this number."""
    return namespace(
        lambda x: weights(x, x.shape[-1] ** -0.5, fill),
        lambda x: scaled_scores(x, x.shape[-1] ** -0.5),
    )


def random_input(seed: int, *shape: int) -> Tensor:
    """Return normal random numbers of this shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


RIGHT = namespace(
    lambda x: weights(x, x.shape[-1] ** -0.5), lambda x: scaled_scores(x, x.shape[-1] ** -0.5)
)
# each call: the function, a factor of its random input, and the input's shape
FUNCTION_FACTOR_SHAPE = (
    ("weights", 0.3, (2, 5, 3)),
    ("weights", 0.3, (2, 6, 8)),
    ("weights", 0.3, (4, 7, 3)),
)
FUNCTION_FACTOR_SHAPE += (
    ("scores", 10, (2, 5, 3)),
    ("double", 1, (2, 5, 3)),
    ("scores", 10, (3, 4, 8)),
)
CALLS = tuple(
    Call(name, (factor * random_input(seed, *shape),))
    for seed, (name, factor, shape) in enumerate(FUNCTION_FACTOR_SHAPE)
)
# indices in CALLS; the inputs of ONE_WIDTH are all 3 wide
WEIGHTS, ONE_WIDTH, DOUBLE, SCORES = {0, 1, 2}, {0, 2}, 4, {3, 5}


def replies_of(attempt: dict[str, object]) -> list[ObservedReply]:
    """Return the replies of this attempt to CALLS, next to the expected ones."""
    expected_replies = [LocalRunner(RIGHT).execute(call) for call in CALLS]
    actual_replies = [LocalRunner(attempt).execute(call) for call in CALLS]
    comparisons = zip(CALLS, expected_replies, actual_replies, strict=True)
    return [
        observe_reply(call, fingerprint_of(expected), (), reply)
        for call, expected, reply in comparisons
    ]


def recording_with_sweeps() -> FaultDictionary:
    """Return a recording with a sweep of the scale and one of the fill value, and no mutants."""
    observations = replies_of(RIGHT)
    ids = tuple(f"check {i}" for i in range(len(CALLS)))
    recorded = RecordedCalls(
        (),
        ids,
        tuple(map(RecordedCall, CALLS)),
        tuple(observation.expected for observation in observations),
        (),
        {},
    )
    scale = ParametricMutant(
        "scale_constant", lambda c: {"scale": c}, 1e-4, 1e4, attempt_with_scale
    )
    fill = ParametricMutant(
        "mask_weak_fill", lambda c: {"fill": -c}, 0.02, 100.0, attempt_with_fill
    )
    bank = Bank(None, (), {}, parametric_mutants=(scale, fill))
    steps = RememberedSteps(load_course(TINY).exercises[0])  # of any exercise: it remembers nothing
    body, columns = sweeps_to_columns(recorded_curves(bank, recorded, steps))
    checks = tuple(
        PublicCheck(
            id=id_,
            title="",
            layer=1,
            hint="",
            points=1,
            calls=(i,),
            reply_fields=("outputs", "dtype"),
            oracle_uses=(),
        )
        for i, id_ in enumerate(ids)
    )
    replies = [(observation.expected,) for observation in observations]
    return FaultDictionary(
        "any", "", checks, CALLS, (), replies, (), {}, sweeps=sweeps_from_columns(body, columns)
    )


RECORDED = recording_with_sweeps()


def named_faults(attempt: dict[str, object], call_indices: set[int]) -> list[str]:
    """Return the misconceptions that the sweeps name from the attempt's replies to these calls."""
    replies = dict(enumerate(replies_of(attempt)))
    syndrome = {
        i: observed_reply
        for i, observed_reply in replies.items()
        if i in call_indices and differs(RECORDED, i, observed_reply.actual)
    }
    assert syndrome
    return [fault.id for fault in on_a_sweep(Response(RECORDED, replies, syndrome, call_indices))]


def attempt_with_scale_of_width(scale: Callable[[int], float]) -> dict[str, object]:
    """Return an attempt whose scale is this function of the input's width."""
    return namespace(
        lambda x: weights(x, scale(x.shape[-1])), lambda x: scaled_scores(x, scale(x.shape[-1]))
    )


def test_a_sweep_records_calls_of_two_widths_that_depend_on_its_constant() -> None:
    scale, fill = RECORDED.sweeps
    assert {1, *SCORES} <= {*scale.calls} <= scale.detected_in == WEIGHTS | SCORES
    assert {*fill.calls} == fill.detected_in == WEIGHTS


def test_a_wrong_scale_is_named_from_the_scores_alone() -> None:
    assert named_faults(attempt_with_scale(0.3), SCORES) == ["scale_constant"]


@pytest.mark.parametrize("steps_beyond", [-1.5, -0.5, 0.5, 1.5, 9.5])
def test_a_wrong_scale_is_named_if_some_scores_count_as_infinite(steps_beyond: float) -> None:
    """Scores below −1000 count as −∞, and from some scale on the recorded ones are that low.

    steps_beyond: the distance of the attempt's scale from the first such scale, in steps.
    """
    curve = RECORDED.sweeps[0]
    answers = curve.answers[curve.calls.index(3)]
    first_infinite = int(answers.isnan().any(1).int().argmax())
    assert 0 < first_infinite < len(answers) - 20
    assert named_faults(
        attempt_with_scale(1e-4 * math.exp(curve.step * (first_infinite + steps_beyond))),
        {0, 1, 2, 3},
    ) == ["scale_constant"]


@pytest.mark.parametrize(
    ("attempt", "call_indices"),
    [
        pytest.param(
            attempt_with_scale_of_width(lambda d: (2 * d) ** -0.5),
            {0, 1, 2, 3},
            id="a root of twice the width",
        ),
        pytest.param(
            attempt_with_scale_of_width(lambda d: 3 / d),
            {0, 1, 2, 3},
            id="three divided by the width",
        ),
        pytest.param(
            attempt_with_scale(0.3),
            ONE_WIDTH,
            id="only one width, so the scale may depend on it",
        ),
        pytest.param(attempt_with_fill(-0.3), {1}, id="a fill value seen in only one call"),
        pytest.param(
            attempt_with_scale(1e9), WEIGHTS, id="a scale so large that the softmax is a maximum"
        ),
        pytest.param(attempt_with_scale(0.0), WEIGHTS, id="a scale of zero"),
        pytest.param(attempt_with_fill(0.3), WEIGHTS, id="a fill above zero"),
        pytest.param(
            namespace(lambda x: scaled_scores(x, 0.3).softmax(-2), lambda x: scaled_scores(x, 0.3)),
            WEIGHTS,
            id="softmax over another axis",
        ),
        pytest.param(
            namespace(lambda x: weights(x, 0.3).flatten(1), lambda x: scaled_scores(x, 0.3)),
            {0, 1, 2, 3},
            id="another shape",
        ),
        pytest.param(
            namespace(lambda x: weights(x, 0.3).float(), lambda x: scaled_scores(x, 0.3)),
            {0, 1, 2, 3},
            id="another dtype too",
        ),
        pytest.param(
            namespace(
                lambda x: weights(x, 0.3), lambda x: scaled_scores(x, 0.3).tril() - torch.inf
            ),
            {0, 1, 2, 3},
            id="scores that are all infinite",
        ),
        pytest.param(
            namespace(lambda x: weights(x, 0.3), lambda x: scaled_scores(x, 0.5)),
            {0, 1, 2, 3},
            id="two different scales",
        ),
        pytest.param(
            {**attempt_with_scale(0.3), "double": lambda x: 3 * x},
            {0, 1, 2, 3, DOUBLE},
            id="also a function without the scale is wrong",
        ),
    ],
)
def test_no_constant_is_named(attempt: dict[str, object], call_indices: set[int]) -> None:
    assert named_faults(attempt, call_indices) == []
