"""What chance proves: an attempt that gives two answers to one question, where the reference gives
one.

Its numbers say nothing of a mutant's. But where it is wrong, and where by chance, tells which
mutants can be meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import combinations

import torch
from torch import Tensor

from ..box.worker.form import OPAQUE
from ..box.worker.messages import Build
from ..checks.runner import target_of
from .observe import ObservedReply, first_of, is_of_copies
from .row import Response

SAME = 1e-6  # of the largest number
WIDTH = 1e-3  # of a ratio that is the same for all numbers


def proven_by_chance(row: Response) -> dict[int, str]:
    """By the number of a call that chance answers.

    The misconception of all mutants that are wrong in the same calls as the attempt, and in these
    by chance; in another function, which may work around it, chance may be at work for them alone.
    Nothing where there are several such misconceptions, or none; nor where most calls are wrong:
    there noise and a dropout that never sleeps look alike.
    """
    calls = {
        i: observation
        for i, observation in row.written.items()
        if i in row.calls and not _is_of_dropout(observation)
    }
    by_chance = _by_chance(calls)
    wrong_calls = by_chance | (row.syndrome.keys() & calls.keys())
    mutants = range(
        len(row.recording.mutants) if by_chance and 2 * len(wrong_calls) <= len(calls) else 0
    )
    names = {row.id(m) for m in mutants if _is_wrong_alike(row, m, calls, wrong_calls, by_chance)}
    return dict.fromkeys(sorted(by_chance), names.pop()) if len(names) == 1 else {}


def due_to_chance(row: Response) -> tuple[Set[int], Sequence[str]]:
    """Return the calls that only the attempt lets chance decide, and the misconceptions that do
    this and nothing else.

    None where there is none, or several would do. Where chance decides more than one of them lets
    it, and what it leaves of copies is a dropout's, all that fit in the function where it is seen
    are at work together. Beside them another mistake may explain all other calls.
    """
    calls = {i: observation for i, observation in row.written.items() if i in row.calls}
    by_chance = _by_chance(
        {i: observation for i, observation in calls.items() if not _is_of_dropout(observation)}
    )
    plain = [i for i, observation in calls.items() if not is_of_copies(observation.call)]
    functions = {target_of(calls[i].call) for i in by_chance}
    fitting = dict[tuple[frozenset[int], str], None]()
    for m in range(len(row.recording.mutants) if by_chance else 0):
        decided = frozenset(i for i in plain if row.recording.mutants[m].answers[i] is None)
        if any(target_of(calls[i].call) in functions for i in decided) and all(
            row.survives(m, i) for i in plain
        ):
            fitting[decided, row.id(m)] = None
    alone = [(decided, name) for decided, name in fitting if by_chance <= decided]
    if alone:
        names = dict.fromkeys(name for _, name in alone)
        return min((decided for decided, _ in alone), key=len), [*names] if len(names) == 1 else []
    numbers = {
        i
        for i, e in row.syndrome.items()
        if row.structure(i, e.actual) == row.structure(i, e.expected)
    }
    names = dict.fromkeys(name for decided, name in fitting if decided <= numbers)
    drops = any(map(_drops, calls.values())) and not all(_is_multiple(calls[i]) for i in by_chance)
    return (numbers, [*names]) if names and drops else (frozenset(), [])


def _drops(observation: ObservedReply) -> bool:
    """Return whether the ranges of the numbers over all copies are those of the reference's
    dropout, times one number.

    So they are at any rate, where a position sees one alone; of noise they are not, nor of other
    weights.
    """
    expected, outputs = first_of(observation.expected_outputs), _outputs(observation)
    if (
        not _is_of_dropout(observation)
        or expected is None
        or not outputs
        or outputs[0].shape != expected.shape
    ):
        return False
    return bool(_is_constant((outputs[0][1] - outputs[0][0]) / (expected[1] - expected[0])).any())


def _is_multiple(observation: ObservedReply) -> bool:
    expected, outputs = first_of(observation.expected_outputs), _outputs(observation)
    if expected is None or not outputs or outputs[0].shape != expected.shape:
        return False
    return bool(_is_constant((outputs[0] / expected).flatten()))


def _is_constant(numbers: Tensor) -> Tensor:
    return (numbers.amax(-1) - numbers.amin(-1)) <= WIDTH * numbers.amin(-1)


def _is_wrong_alike(
    row: Response,
    mutant: int,
    calls: Mapping[int, ObservedReply],
    wrong_calls: Set[int],
    by_chance: Set[int],
) -> bool:
    functions = {target_of(calls[index].call) for index in by_chance}
    for index, observation in calls.items():
        varies = row.recording.mutants[mutant].answers[index] is None
        if varies and index not in wrong_calls and target_of(observation.call) not in functions:
            continue
        passes = not varies and row.survives(mutant, index)
        if passes is (index in wrong_calls) or (
            index in by_chance and not varies and not is_of_copies(observation.call)
        ):
            return False
    return True


def _is_of_dropout(comparison: ObservedReply) -> bool:
    """Return whether dropout is due: of many copies, where the reference's answer is not always the
    same.
    """
    expected = first_of(comparison.expected_outputs)
    return (
        is_of_copies(comparison.call)
        and expected is not None
        and not torch.equal(expected[0], expected[1])
    )


def _by_chance(calls: Mapping[int, ObservedReply]) -> set[int]:
    """Return the calls that the attempt answers in more than one way: run twice, at two seeds, or
    of many copies.
    """
    varying_calls = {i for i, observation in calls.items() if _varies(observation)}
    asked_of = {
        i: (e.call.runs, e.call.around, e.call.dtype, *e.call.inputs)
        for i, e in calls.items()
        if e.call.random
    }
    drawn = ((i, calls[i], question) for i, question in asked_of.items())
    for (i, observation, question), (j, repetition, again) in combinations(drawn, 2):
        alike = len(question) == len(again) and all(map(are_alike, question, again))
        if alike and _are_apart(_outputs(observation), _outputs(repetition)):
            varying_calls |= {i, j}
    return varying_calls


def _varies(comparison: ObservedReply) -> bool:
    outputs, runs = _outputs(comparison), comparison.call.runs
    if comparison.reply.mutated or not outputs:
        return False
    if is_of_copies(comparison.call):
        return outputs[0].dim() > 1 and _are_apart([outputs[0][0]], [outputs[0][1]])
    count = len(outputs) // runs
    return any(
        _are_apart(outputs[:count], outputs[run * count : (run + 1) * count])
        for run in range(1, runs)
    )


def _outputs(comparison: ObservedReply) -> list[Tensor]:
    """Return the tensors of an answer; none if it raised, or if something else stands in the place
    of one.

    What only the attempt can read, such as its cache, is no such place.
    """
    read = [output.tensor for output in comparison.reply.outputs if output.kind != OPAQUE]
    tensors = [tensor for tensor in read if tensor is not None]
    return tensors if comparison.reply.raised is None and len(tensors) == len(read) else []


def _are_apart(some: list[Tensor], other_outputs: list[Tensor]) -> bool:
    pairs = [
        (a, b)
        for a, b in zip(some, other_outputs, strict=False)
        if a.shape == b.shape and a.is_floating_point()
    ]
    comparable = (
        (a, b) for a, b in pairs if a.numel() and bool((a.isfinite() & b.isfinite()).all())
    )
    return any(bool(((a - b).abs() > SAME * a.abs().max()).any()) for a, b in comparable)


def are_alike(a: object, b: object) -> bool:
    """Return whether two arguments of calls are the same."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.is_meta and b.is_meta:
        return a.shape == b.shape and a.dtype == b.dtype  # there are no numbers
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return (
            isinstance(a, Tensor)
            and isinstance(b, Tensor)
            and a.device == b.device
            and torch.equal(a, b)
        )
    if isinstance(a, Build) and isinstance(b, Build):
        state, two = (build.state or {} for build in (a, b))
        names = ("target", "args", "kwargs", "training", "attributes")
        same = all(getattr(a, name) == getattr(b, name) for name in names)
        return (
            same
            and state.keys() == two.keys()
            and all(are_alike(state[name], two[name]) for name in state)
        )
    return type(a) is type(b) and isinstance(a, int | float | str | None) and a == b
