"""Record what each function must do before its checks count, as calls with the reference's
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..checks.cast import rounded
from ..checks.conditions import Condition
from ..checks.draw import Draw, input_seed
from ..checks.implementation import Implementation
from ..checks.transcript import Exchange, target_of
from ..course import Exercise
from ..diagnosis.recording import RecordedCondition
from ..judge.require_answer import asked_of
from ..judge.run_checks import Catalogue

PUBLIC = b"public inputs: drawn without the course's secret"  # in place of the secret


def recorded_conditions(
    catalogue: Catalogue, exercise: Exercise, transcript: Sequence[Exchange]
) -> tuple[RecordedCondition, ...]:
    """Return the conditions of an exercise's functions.

    transcript: what its checks asked the reference.
    """
    reference = catalogue.reference(exercise)
    implementation = Implementation(reference, forms=exercise.forms)
    functions = dict.fromkeys(target_of(exchange.call) for exchange in transcript)
    conditions: list[RecordedCondition] = []
    for function in functions:
        exchanges = [exchange for exchange in transcript if target_of(exchange.call) == function]
        chosen = asked_of(exchanges, reference, lambda call, make: make(call))
        if chosen is not None:
            calls = tuple(rounded(call) for call in chosen.calls)
            expected = tuple(first_tensor(reference.execute(call)) for call in calls)
            conditions.append(RecordedCondition(function, "answers", calls, expected))
    for function, make in catalogue.conditions(exercise).items():
        draw = Draw(input_seed(PUBLIC, exercise.id, function))
        conditions.extend(_of_function(function, make, implementation, draw))
    return tuple(conditions)


def _of_function(
    function: str, make: Callable[..., Iterable[Condition]], reference: Implementation, draw: Draw
) -> Iterator[RecordedCondition]:
    for condition in make(reference, draw):
        call = rounded(condition.answer.call)
        expected = first_tensor(reference.runner.execute(call))
        yield RecordedCondition(
            function,
            condition.rule,
            (call,),
            (expected,),
            condition.message,
            condition.left_out,
            condition.least,
        )


def first_tensor(reply: Reply) -> Tensor:
    """Return the first tensor of a reply; an empty one if there is none."""
    tensors = (output.tensor for output in reply.outputs if output.tensor is not None)
    return next(tensors, torch.zeros(0))
