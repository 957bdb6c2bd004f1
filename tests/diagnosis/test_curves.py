"""Internal: a sweep of a small bank shows each condition, which a recorded exercise shows together.

A number that nobody has listed is told by the recorded curve; where no number fits all calls,
nothing is named.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.authoring.choose_recorded_calls import RecordedCall, RecordedCalls
from manyheads.authoring.record_pairs_and_sweeps import recorded_curves
from manyheads.box.worker.messages import Call
from manyheads.checks.runner import LocalRunner
from manyheads.diagnosis.bank import Bank, ParametricMutant, sweeps_from_columns, sweeps_to_columns
from manyheads.diagnosis.fault_dictionary import FaultDictionary, PublicCheck, Response, differs
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.match import on_a_sweep
from manyheads.diagnosis.observed_reply import ObservedReply, observe_reply

Function = Callable[[Tensor], Tensor]


def scaled_scores(x: Tensor, scale: float) -> Tensor:
    return x @ x.mT * scale


def weights(x: Tensor, scale: float, fill: float = -torch.inf) -> Tensor:
    future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
    return scaled_scores(x, scale).masked_fill(future, fill).softmax(-1)


def namespace(
    weigh: Function, score: Function, double: Function = lambda x: 2 * x
) -> dict[str, object]:
    return {"weights": weigh, "scores": score, "double": double}


def names_with_scale(scale: float = 1.0) -> dict[str, object]:
    return namespace(lambda x: weights(x, scale), lambda x: scaled_scores(x, scale))


def names_with_fill(fill: float) -> dict[str, object]:
    return namespace(
        lambda x: weights(x, x.shape[-1] ** -0.5, fill),
        lambda x: scaled_scores(x, x.shape[-1] ** -0.5),
    )


def inputs(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


RIGHT = namespace(
    lambda x: weights(x, x.shape[-1] ** -0.5), lambda x: scaled_scores(x, x.shape[-1] ** -0.5)
)
ASKED = ("weights", 0.3, (2, 5, 3)), ("weights", 0.3, (2, 6, 8)), ("weights", 0.3, (4, 7, 3))
ASKED += ("scores", 10, (2, 5, 3)), ("double", 1, (2, 5, 3)), ("scores", 10, (3, 4, 8))
CALLS = tuple(
    Call(name, (size * inputs(seed, *shape),)) for seed, (name, size, shape) in enumerate(ASKED)
)
WEIGHTS, ONE_SIZE, DOUBLE, SCORES = {0, 1, 2}, {0, 2}, 4, {3, 5}


def replies_of(names: dict[str, object]) -> list[ObservedReply]:
    expected_replies = [LocalRunner(RIGHT).execute(call) for call in CALLS]
    actual_replies = [LocalRunner(names).execute(call) for call in CALLS]
    comparisons = zip(CALLS, expected_replies, actual_replies, strict=True)
    return [
        observe_reply(call, fingerprint_of(expected), (), reply)
        for call, expected, reply in comparisons
    ]


def recording_with_sweeps() -> FaultDictionary:
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
    scale = ParametricMutant("scale_constant", lambda c: {"scale": c}, 1e-4, 1e4, names_with_scale)
    fill = ParametricMutant("mask_weak_fill", lambda c: {"fill": -c}, 0.02, 100.0, names_with_fill)
    bank = Bank(None, (), {}, parametric_mutants=(scale, fill))
    body, columns = sweeps_to_columns(recorded_curves(bank, recorded))
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


def named_faults(names: dict[str, object], call_indices: set[int]) -> list[str]:
    written = dict(enumerate(replies_of(names)))
    syndrome = {
        i: observed_reply
        for i, observed_reply in written.items()
        if i in call_indices and differs(RECORDED, i, observed_reply.actual)
    }
    assert syndrome
    return [fault.id for fault in on_a_sweep(Response(RECORDED, written, syndrome, call_indices))]


def by(scale: Callable[[int], float]) -> dict[str, object]:
    """Return an attempt whose scale depends on the width."""
    return namespace(
        lambda x: weights(x, scale(x.shape[-1])), lambda x: scaled_scores(x, scale(x.shape[-1]))
    )


def test_calls_of_two_widths_are_recorded_and_none_in_which_the_number_does_not_show() -> None:
    scale, fill = RECORDED.sweeps
    assert {1, *SCORES} <= {*scale.calls} <= scale.detected_in == WEIGHTS | SCORES
    assert {*fill.calls} == fill.detected_in == WEIGHTS


def test_a_number_is_found_where_every_answer_may_get_another_form() -> None:
    assert named_faults(names_with_scale(0.3), SCORES) == ["scale_constant"]


@pytest.mark.parametrize("beyond", [-1.5, -0.5, 0.5, 1.5, 9.5])
def test_a_number_is_found_where_one_answer_has_another_form(beyond: float) -> None:
    """Scores below −1000 count as −∞, from some number on."""
    curve = RECORDED.sweeps[0]
    answers = curve.answers[curve.calls.index(3)]
    first_infinite = int(answers.isnan().any(1).int().argmax())
    assert 0 < first_infinite < len(answers) - 20
    assert named_faults(
        names_with_scale(1e-4 * math.exp(curve.step * (first_infinite + beyond))), {0, 1, 2, 3}
    ) == ["scale_constant"]


@pytest.mark.parametrize(
    ("attempt", "asked"),
    [
        pytest.param(by(lambda d: (2 * d) ** -0.5), {0, 1, 2, 3}, id="a root of twice the width"),
        pytest.param(by(lambda d: 3 / d), {0, 1, 2, 3}, id="three by the width"),
        pytest.param(
            names_with_scale(0.3),
            ONE_SIZE,
            id="a number that may depend on the only width that is asked",
        ),
        pytest.param(names_with_fill(-0.3), {1}, id="a number that one call tells"),
        pytest.param(names_with_scale(1e9), WEIGHTS, id="a maximum"),
        pytest.param(names_with_scale(0.0), WEIGHTS, id="averages"),
        pytest.param(names_with_fill(0.3), WEIGHTS, id="a fill above zero"),
        pytest.param(
            namespace(lambda x: scaled_scores(x, 0.3).softmax(-2), lambda x: scaled_scores(x, 0.3)),
            WEIGHTS,
            id="another axis",
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
            id="no answer",
        ),
        pytest.param(
            namespace(lambda x: weights(x, 0.3), lambda x: scaled_scores(x, 0.5)),
            {0, 1, 2, 3},
            id="two numbers",
        ),
        pytest.param(
            {**names_with_scale(0.3), "double": lambda x: 3 * x},
            {0, 1, 2, 3, DOUBLE},
            id="wrong where the number does not show",
        ),
    ],
)
def test_nothing_is_named(attempt: dict[str, object], asked: set[int]) -> None:
    assert named_faults(attempt, asked) == []
