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

from ..box.worker.messages import Around, Build
from ..box.worker.result_form import OPAQUE
from .fault_dictionary import Response
from .observed_reply import ObservedReply, first_of, is_of_copies

SAME = 1e-6  # relative to the largest number: two answers are equal
WIDTH = 1e-3  # relative range of a ratio that is the same for all numbers
_MINIMUM, _MAXIMUM = 0, 1  # the first rows of an answer to many copies (`summarise_copies`)


def misconceptions_of_nondeterminism(response: Response) -> dict[int, str]:
    """Return the misconception that explains nondeterminism, by nondeterministic call.

    It is the misconception of all mutants that fail in the same calls as the attempt
    (`_has_same_failures`). Calls in which the reference's dropout is active do not count.

    Return none if there are no nondeterministic calls or no such mutants, or if these mutants have
    several misconceptions. Return none also if the attempt fails in more than half of the calls:
    then noise and a dropout that is always active look the same.
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


def explained_nondeterminism(response: Response) -> tuple[Set[int], Sequence[str]]:
    """Return the calls that nondeterminism explains, and its misconceptions.

    A second mistake may explain all other calls. Calls in which the reference's dropout is active
    do not count as nondeterministic. The first of these cases decides, for the mutants that fit
    (`_fitting_mutants`):

    1. Some are nondeterministic in all calls in which the attempt is. Return their misconception,
       or none if they have several. The calls are the nondeterministic ones of the mutant that has
       the fewest.
    2. Several dropouts may be active at once: some mutants are nondeterministic only in wrong calls
       in which only numbers differ; the answers to some call vary as dropout makes them vary; and
       some nondeterministic answer is no mere multiple of the right one. Return the misconceptions
       of these mutants, and all wrong calls in which only numbers differ.
    3. Otherwise return no calls and no misconceptions.
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
    is_dropout = any(map(_varies_like_dropout, calls.values()))
    if not names or not is_dropout or all(_is_multiple(calls[i]) for i in random_calls):
        return frozenset(), []
    return differ_in_numbers, [*names]


def _fitting_mutants(
    response: Response, calls: Mapping[int, ObservedReply], functions: Set[str]
) -> list[tuple[frozenset[int], str]]:
    """Return the nondeterministic calls and the misconception of each mutant that fits.

    A mutant fits if it is nondeterministic in some call of these functions, and replies as the
    reference does to all calls in which it is deterministic. Calls with many copies do not count: a
    mutant's recorded extremes need not be random. Equal entries are returned once.
    """
    without_copies = [i for i, observation in calls.items() if not is_of_copies(observation.call)]
    fitting = dict[tuple[frozenset[int], str], None]()
    for m in response.mutants:
        answers = response.recording.mutants[m].answers
        # None stands for a nondeterministic reply
        varying = frozenset(i for i in without_copies if answers[i] is None)
        is_of_functions = any(calls[i].function in functions for i in varying)
        # A mutant also survives the calls in which it is nondeterministic.
        if is_of_functions and all(response.survives(m, i) for i in without_copies):
            fitting[varying, response.id(m)] = None
    return [*fitting]


def _varies_like_dropout(observation: ObservedReply) -> bool:
    """Return whether the answers to one call vary over its copies as dropout makes them vary.

    The range of a number is its maximum minus its minimum over all copies. The attempt's ranges are
    divided by the reference's. In at least one row of the last axis, all quotients must be the
    same, and above 0. With dropout of any rate, this is so at a position that attends to only one
    position. With noise or other weights, it is not. Return False if the reference's dropout is not
    active in the call.
    """
    tensors = _first_outputs(observation)
    if tensors is None or not _is_of_dropout(observation):
        return False
    # The first two rows are the minimum and the maximum over all copies.
    (minimum, maximum, *_), (expected_minimum, expected_maximum, *_) = tensors
    ratios = (maximum - minimum) / (expected_maximum - expected_minimum)
    return bool(_constant_rows(ratios).any())


def _is_multiple(observation: ObservedReply) -> bool:
    """Return whether the first output is the reference's times one positive factor."""
    tensors = _first_outputs(observation)
    if tensors is None:
        return False
    actual, expected = tensors
    return bool(_constant_rows((actual / expected).flatten()))


def _first_outputs(observation: ObservedReply) -> tuple[Tensor, Tensor] | None:
    """Return the attempt's first output and the reference's, or None if their shapes differ.

    Return None also if an output is missing, or has no numbers and is left out by `_outputs`.
    """
    expected, outputs = first_of(observation.expected_outputs), _outputs(observation)
    if expected is None or not outputs:
        return None
    actual, *_ = outputs
    return (actual, expected) if actual.shape == expected.shape else None


def _constant_rows(numbers: Tensor) -> Tensor:
    """Return for each row of the last axis whether its numbers are equal, and above 0."""
    smallest = numbers.amin(-1)
    return (smallest > 0) & (numbers.amax(-1) - smallest <= WIDTH * smallest)


def _has_same_failures(
    response: Response,
    mutant: int,
    calls: Mapping[int, ObservedReply],
    wrong_calls: Set[int],
    random_calls: Set[int],
) -> bool:
    """Return whether a mutant fails in exactly the calls in which the attempt fails.

    A mutant fails in a call if its reply is nondeterministic, or differs from the reference's.

    1. One exception: the mutant may be nondeterministic in calls that the attempt answers rightly
       if no reply of the attempt to their function is nondeterministic. The attempt may avoid the
       effect there.
    2. If the attempt is nondeterministic in a call, the mutant must be, too. In a call with many
       copies it need only differ: the extremes over all copies are recorded, and these need not be
       random.

    Args:
        response: The response.
        mutant: The mutant.
        calls: The replies that are compared, by call.
        wrong_calls: The calls in which the attempt fails, with the nondeterministic ones.
        random_calls: The calls in which the attempt is nondeterministic.
    """
    random_functions = {calls[index].function for index in random_calls}
    for index, observation in calls.items():
        # None stands for a nondeterministic reply
        is_random = response.recording.mutants[mutant].answers[index] is None
        is_wrong = index in wrong_calls
        if is_random and not is_wrong and observation.function not in random_functions:
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
        and not torch.equal(expected[_MINIMUM], expected[_MAXIMUM])
    )


def _nondeterministic_calls(calls: Mapping[int, ObservedReply]) -> set[int]:
    """Return the calls that the attempt answers in more than one way.

    The answers differ between two runs of the call, between many copies of one input (`_varies`),
    or between two random calls that differ only in their seed.
    """
    varying_calls = {i for i, observation in calls.items() if _varies(observation)}
    questions = dict[int, tuple[object, ...]]()  # everything but the seed
    for i, observation in calls.items():
        call = observation.call
        if call.random:
            questions[i] = (call.runs, call.around, call.dtype, *call.inputs)
    for (i, question), (j, repetition) in combinations(questions.items(), 2):
        are_equal = len(question) == len(repetition) and all(map(are_alike, question, repetition))
        if are_equal and _are_apart(_outputs(calls[i]), _outputs(calls[j])):
            varying_calls |= {i, j}
    return varying_calls


def _varies(observation: ObservedReply) -> bool:
    """Return whether the runs of a call, or its copies of one input, get different answers.

    The answers to many copies differ if the minimum of their extremes is not the maximum. Return
    False if the attempt does not answer, or if it changes its arguments: then the runs have
    different inputs.
    """
    outputs, runs = _outputs(observation), observation.call.runs
    if observation.reply.mutated or not outputs:
        return False
    if is_of_copies(observation.call):
        extremes = outputs[0]
        return extremes.dim() > 1 and _are_apart([extremes[_MINIMUM]], [extremes[_MAXIMUM]])
    first_run = outputs[: len(outputs) // runs]
    return runs > 1 and _are_apart(first_run * runs, outputs)


def _outputs(observation: ObservedReply) -> list[Tensor]:
    """Return the tensors of an answer, or none if the call raised or if an output is no tensor.

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

    Only outputs of the same shape with finite floats are compared.
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
    """Return whether two arguments of calls are the same.

    Arguments of other types than tensors, modules to build, numbers, texts, `Call.around` and None
    are never the same.
    """
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.is_meta and b.is_meta:  # there are no numbers
            return a.shape == b.shape and a.dtype == b.dtype
        return a.device == b.device and torch.equal(a, b)
    if isinstance(a, Build) and isinstance(b, Build):
        state_a, state_b = a.state or {}, b.state or {}
        if _settings(a) != _settings(b) or state_a.keys() != state_b.keys():
            return False
        return all(are_alike(state_a[name], state_b[name]) for name in state_a)
    return type(a) is type(b) and isinstance(a, int | float | str | Around | None) and a == b
