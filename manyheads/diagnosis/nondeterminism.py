"""Find mutants that explain nondeterminism: different answers to one call, or to equal calls.

The numbers of such an attempt are no evidence. But the calls in which it is wrong, and the calls in
which it is nondeterministic, show which mutants are possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from operator import attrgetter

import torch
from torch import Tensor

from ..box.worker.messages import Build
from ..box.worker.result_structure import OPAQUE
from .fault_dictionary import Response
from .observed_reply import ObservedReply, first_of, is_of_copies

SAME = 1e-6  # relative to the largest number: two answers are equal
WIDTH = 1e-3  # relative range of a ratio that is the same for all numbers


def proven_by_chance(response: Response) -> dict[int, str]:
    """Return the nondeterministic calls, mapped to the misconception that explains them.

    It is the misconception of all mutants that are wrong in the same calls as the attempt, and
    nondeterministic in the same ones. A mutant may also be nondeterministic in another function,
    because that function may avoid the effect in the attempt.

    Return none if these mutants have several misconceptions, if there are no such mutants, or if
    most calls are wrong: then noise and a dropout that is always active look the same.
    """
    calls = {
        i: observation
        for i, observation in response.written.items()
        if i in response.calls and not _is_of_dropout(observation)
    }
    random_calls = _nondeterministic_calls(calls)
    wrong_calls = random_calls | (response.syndrome.keys() & calls.keys())
    if not random_calls or 2 * len(wrong_calls) > len(calls):
        return {}
    names = {
        response.id(m)
        for m in response.mutants
        if _has_same_failures(response, m, calls, wrong_calls, random_calls)
    }
    return dict.fromkeys(sorted(random_calls), names.pop()) if len(names) == 1 else {}


def due_to_chance(response: Response) -> tuple[Set[int], Sequence[str]]:
    """Return calls to leave out, and the misconceptions of nondeterminism that explain these.

    The attempt is nondeterministic in a call that has one right answer. A mutant fits if it is
    nondeterministic in calls of the same function, and otherwise replies as the reference does. If
    mutants explain all nondeterministic calls, return their misconception, or none if they have
    several.

    Otherwise several dropouts may be active at once. If the training answers are those of a dropout
    (and not all are mere multiples of the right ones), return all misconceptions that fit, and all
    calls in which only numbers differ. If nothing fits, return no calls and no misconceptions.

    A second mistake may explain all other calls.
    """
    calls = {i: observation for i, observation in response.written.items() if i in response.calls}
    random_calls = _nondeterministic_calls(
        {i: observation for i, observation in calls.items() if not _is_of_dropout(observation)}
    )
    if not random_calls:
        return frozenset(), []
    fitting = _fitting_mutants(response, calls, {calls[i].function for i in random_calls})
    sufficient = [(varying, name) for varying, name in fitting if random_calls <= varying]
    if sufficient:
        names = dict.fromkeys(name for _, name in sufficient)
        fewest = min((varying for varying, _ in sufficient), key=len)
        return fewest, [*names] if len(names) == 1 else []
    differ_in_numbers = {i for i in response.syndrome if response.has_expected_structure(i)}
    names = dict.fromkeys(name for varying, name in fitting if varying <= differ_in_numbers)
    is_dropout = any(map(_drops, calls.values()))
    if not names or not is_dropout or all(_is_multiple(calls[i]) for i in random_calls):
        return frozenset(), []
    return differ_in_numbers, [*names]


def _fitting_mutants(
    response: Response, calls: Mapping[int, ObservedReply], functions: Set[str]
) -> list[tuple[frozenset[int], str]]:
    """Return the nondeterministic calls and the misconception of each mutant that fits.

    Calls with many copies are left out: in these a mutant's recorded extremes need not be random. A
    mutant fits if it is nondeterministic in a call of these functions, and replies to all other
    calls as the reference does.
    """
    without_copies = [i for i, observation in calls.items() if not is_of_copies(observation.call)]
    fitting = dict[tuple[frozenset[int], str], None]()
    for m in response.mutants:
        answers = response.recording.mutants[m].answers
        varying = frozenset(i for i in without_copies if answers[i] is None)
        is_of_functions = any(calls[i].function in functions for i in varying)
        # A mutant also survives the calls in which it is nondeterministic.
        if is_of_functions and all(response.survives(m, i) for i in without_copies):
            fitting[varying, response.id(m)] = None
    return [*fitting]


def _drops(observation: ObservedReply) -> bool:
    """Return whether the numbers vary as the reference's dropout makes them vary, times one factor.

    The ranges over all copies are compared in the rows of the last axis; one row is enough. At each
    rate this holds for a position that attends to a single other one. It does not hold for noise or
    for other weights.
    """
    tensors = _first_outputs(observation)
    if tensors is None or not _is_of_dropout(observation):
        return False
    # The first two rows are the minimum and the maximum over all copies.
    (minimum, maximum, *_), (expected_minimum, expected_maximum, *_) = tensors
    ratios = (maximum - minimum) / (expected_maximum - expected_minimum)
    return bool(_is_constant(ratios).any())


def _is_multiple(observation: ObservedReply) -> bool:
    """Return whether the numbers are the reference's numbers times one factor."""
    tensors = _first_outputs(observation)
    return tensors is not None and bool(_is_constant((tensors[0] / tensors[1]).flatten()))


def _first_outputs(observation: ObservedReply) -> tuple[Tensor, Tensor] | None:
    """Return the attempt's first output and the reference's, or None if their shapes differ."""
    expected, outputs = first_of(observation.expected_outputs), _outputs(observation)
    if expected is None or not outputs or outputs[0].shape != expected.shape:
        return None
    return outputs[0], expected


def _is_constant(numbers: Tensor) -> Tensor:
    """Return for each row of the last axis whether its numbers are equal, and positive."""
    return (numbers.amax(-1) - numbers.amin(-1)) <= WIDTH * numbers.amin(-1)


def _has_same_failures(
    response: Response,
    mutant: int,
    calls: Mapping[int, ObservedReply],
    wrong_calls: Set[int],
    random_calls: Set[int],
) -> bool:
    """Return whether a mutant is wrong, and nondeterministic, in the same calls as the attempt.

    It may also be nondeterministic in other functions. In a call with copies it is enough that the
    mutant is wrong: its recorded extremes need not be random.
    """
    functions = {calls[index].function for index in random_calls}
    for index, observation in calls.items():
        is_random = response.recording.mutants[mutant].answers[index] is None
        is_wrong = index in wrong_calls
        if is_random and not is_wrong and observation.function not in functions:
            continue
        fails = is_random or not response.survives(mutant, index)
        if fails != is_wrong:
            return False
        if index in random_calls and not is_random and not is_of_copies(observation.call):
            return False
    return True


def _is_of_dropout(observation: ObservedReply) -> bool:
    """Return whether the call gives many copies, and the reference's dropout changes them."""
    expected = first_of(observation.expected_outputs)
    return (
        is_of_copies(observation.call)
        and expected is not None
        and not torch.equal(expected[0], expected[1])
    )


def _nondeterministic_calls(calls: Mapping[int, ObservedReply]) -> set[int]:
    """Return the calls that the attempt answers in more than one way.

    It does so in two runs, with two seeds, or for many copies of one input.
    """
    varying_calls = {i for i, observation in calls.items() if _varies(observation)}
    questions = dict[int, tuple[object, ...]]()  # everything but the seed
    for i, observation in calls.items():
        call = observation.call
        if call.random:
            questions[i] = (call.runs, call.around, call.dtype, *call.inputs)
    for (i, question), (j, repetition) in combinations(questions.items(), 2):
        alike = len(question) == len(repetition) and all(map(are_alike, question, repetition))
        if alike and _are_apart(_outputs(calls[i]), _outputs(calls[j])):
            varying_calls |= {i, j}
    return varying_calls


def _varies(observation: ObservedReply) -> bool:
    """Return whether the runs, or the copies of one input, get different answers.

    If the call changes its arguments, the runs have different inputs: then return False.
    """
    outputs, runs = _outputs(observation), observation.call.runs
    if observation.reply.mutated or not outputs:
        return False
    if is_of_copies(observation.call):
        extremes = outputs[0]
        return extremes.dim() > 1 and _are_apart([extremes[0]], [extremes[1]])
    first_run = outputs[: len(outputs) // runs]
    return _are_apart(first_run * runs, outputs)


def _outputs(observation: ObservedReply) -> list[Tensor]:
    """Return the tensors of an answer, or none if it raised or if an output is no tensor.

    Opaque parts, which only the attempt can read (such as its cache), are left out.
    """
    if observation.reply.raised is not None:
        return []
    tensors = list[Tensor]()
    for output in observation.reply.outputs:
        if output.kind == OPAQUE:
            continue
        if output.tensor is None:
            return []
        tensors.append(output.tensor)
    return tensors


def _are_apart(outputs: list[Tensor], other_outputs: list[Tensor]) -> bool:
    """Return whether some numbers of two answers differ.

    Only finite floats of the same shape are compared.
    """
    for a, b in zip(outputs, other_outputs, strict=False):
        if a.shape != b.shape or not a.is_floating_point() or not a.numel():
            continue
        if not bool((a.isfinite() & b.isfinite()).all()):
            continue
        if bool(((a - b).abs() > SAME * a.abs().max()).any()):
            return True
    return False


# all that decides a module's replies, except for its weights
_settings = attrgetter("target", "args", "kwargs", "training", "attributes")


def are_alike(a: object, b: object) -> bool:
    """Return whether two arguments of calls are the same."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.is_meta and b.is_meta:  # there are no numbers
            return a.shape == b.shape and a.dtype == b.dtype
        return a.device == b.device and torch.equal(a, b)
    if isinstance(a, Build) and isinstance(b, Build):
        state_a, state_b = a.state or {}, b.state or {}
        if _settings(a) != _settings(b) or state_a.keys() != state_b.keys():
            return False
        return all(are_alike(state_a[name], state_b[name]) for name in state_a)
    return type(a) is type(b) and isinstance(a, int | float | str | None) and a == b
