"""Find the failures of a function in visible checks, and choose the one to show.

`failures_of` returns a failure for each visible check that fails because of the function. A failure
has the observation and the usual repair. `choose_failure` takes the one that shows the function's
misconception best, and adds sentences about its numbers, its words and its sizes.

`describe_wrong_numbers` says that numbers are not shares, that a mask is inverted, or that one is
twice as large. The sentence is added to "550 of 550 values differ" if no named misconception
explains the numbers, and to any single wrong number. Only answers to recorded, public calls are
compared. A student reads no digit of an expected number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..box.worker.messages import Raised
from ..checks.asserts import label
from ..checks.explain_exceptions import is_shape_fault, join_sentences, sanitize, says_unwritten
from ..checks.runner import target_of
from ..diagnosis.fault_dictionary import PublicCheck
from ..diagnosis.observed_reply import ObservedReply, first_of
from ..diagnosis.oracles import Group, Violation, first_violation, groups_of
from .definition_faults import call_of_helper, return_order_advice
from .exception_advice import suggest
from .locate_misconceptions import LocatedMisconception, RepliesByFunction
from .public_calls import PublicReplies, evidence_of, name_arguments
from .redact_hidden_inputs import Axes, Signatures, axes_of, name_sizes

SEED_DEPENDENT = (
    "Asked again with the same inputs, it returned another number: something random is at work"
)


@dataclass(frozen=True)
class Failure:
    """The reason why a function fails a visible check.

    Attributes:
        check: The check.
        evidence: The observation, in a sentence.
        raised: The exception, if there was one.
        advice: The usual repair; "" if there is none.
        calls: The calls that violate the oracle; () if the process ended during a call.
        implied_misconception: The misconception that the violation implies; "" if it implies none.
        is_off_topic: Whether it is not about the topic of its check: the values differ, and the
            check is about an edit of the input (oracle "moves").
        origin: The sentence of `origin_of_numbers` about a wrong call; "" if there is none.
    """

    check: PublicCheck
    evidence: str
    raised: Raised | None = None
    advice: str = ""
    calls: tuple[int, ...] = ()
    implied_misconception: str = ""
    is_off_topic: bool = False
    origin: str = ""


def failures_of(name: str, replies: PublicReplies) -> list[Failure]:
    """Return the failures of a function, in the order in which the checks were run.

    Each failed check gives at most one failure: the end of the process in a call of the function,
    or else the first violated oracle that is applied to the function. Groups of calls that
    meet an unwritten function come last. A check may be a failure of several functions.
    """
    observations = replies.observations

    def meets_unwritten(group: Group) -> bool:
        _, calls = group
        return any(says_unwritten(observations[i].reply.raised) for i in calls)

    failures = []
    for visible in replies.visible:
        if visible.passes:
            continue
        check = visible.check
        if visible.ended is not None and visible.ended_in == name:
            failures.append(Failure(check, visible.evidence_of_end))
            continue
        # The last call of a group decides. The others only give the values to compare with.
        groups = [
            (oracle_use, calls)
            for oracle_use, calls in groups_of(check, observations)
            if target_of(observations[calls[-1]].call) == name
        ]
        # A student knows which methods are not written yet, so other failures come first.
        groups.sort(key=meets_unwritten)
        violation = first_violation(groups, observations)
        if violation is not None:
            failures.append(_failure(name, check, violation, replies))
    return failures


def _failure(
    name: str, check: PublicCheck, violation: Violation, replies: PublicReplies
) -> Failure:
    """Return the failure of a function that violates an oracle of a check.

    Its advice is about the order of a returned pair, or else about the exception. If a helper
    raised, the advice begins with the call of the helper. `is_off_topic` and `origin` are set only
    for the oracle "values". Sentences name the arguments as the exercise does.
    """
    source, signatures = replies.source, replies.signatures.get(name, ())
    evidence, raised = evidence_of(violation.error, is_shown=not replies.is_graded)
    advice = return_order_advice(source, name, signatures[0].form) if signatures else ""
    if raised is None:
        evidence = name_arguments(evidence, signatures)
    else:
        advice = advice or suggest(source, raised)
        advice = join_sentences(call_of_helper(source, name, raised.line or 0), advice)
    is_off_topic, origin = False, ""
    if violation.use.oracle == "values":
        is_off_topic = any(oracle_use.oracle == "moves" for oracle_use in check.oracle_uses)
        origins = (origin_of_numbers(replies.observations[i]) for i in violation.calls)
        origin = name_arguments(next(filter(None, origins), ""), signatures)
    return Failure(
        check,
        evidence,
        raised,
        advice,
        violation.calls,
        implied_misconception=violation.use.means,
        is_off_topic=is_off_topic,
        origin=origin,
    )


@dataclass(frozen=True)
class ChosenFailure:
    """The failure of a function that is shown, with its evidence in full.

    Attributes:
        check: The title of the check.
        evidence: The observation; sentences about wrong numbers, or about the word and the sizes of
            the call; the usual repair.
        raised: The exception, if there was one.
    """

    check: str
    evidence: str
    raised: Raised | None = None


NO_FAILURE = ChosenFailure("", "")


def choose_failure(
    name: str,
    failures: Sequence[Failure],
    explaining: Sequence[LocatedMisconception],
    replies_by_function: RepliesByFunction,
) -> ChosenFailure:
    """Return the failure of a function to show between a misconception's title and its hint.

    This is the first failure if the process ended in it. Otherwise it is the first one in this
    order, in which each rule decides between failures that are equal by the rules above it:

    1. Failures that show the function's first misconception; then failures that show none of its
       misconceptions; then failures that show only others.
    2. If they show the first misconception: failures with an `origin` of the wrong numbers.
    3. Failures of an earlier layer.
    4. Failures that are about the topic of their check.

    A failure shows a misconception if its violation implies it, if a call proves it, or if a mutant
    gives the same wrong answer.

    Args:
        name: The function.
        failures: Its failures. There must be one at least.
        explaining: The misconceptions that explain the replies of the attempt.
        replies_by_function: The replies of the attempt.
    """
    ids = [misconception.id for misconception in explaining if name in misconception.functions]

    def shows(id_: str, failure: Failure) -> bool:
        has_evidence = id_ == failure.implied_misconception or any(
            id_ in replies_by_function.misconceptions_shown_by(i) for i in failure.calls
        )
        return has_evidence or replies_by_function.is_seen(id_, failure.calls)

    def rank(failure: Failure) -> tuple[int, bool, int, bool]:
        shows_first = bool(ids) and shows(ids[0], failure)
        rank_of_misconception = 1  # it shows none
        if shows_first:
            rank_of_misconception = 0
        elif any(shows(id_, failure) for id_ in ids):
            rank_of_misconception = 2
        lacks_origin = not (shows_first and failure.origin)
        return rank_of_misconception, lacks_origin, failure.check.layer, failure.is_off_topic

    first_failure = failures[0]
    ended_process = not first_failure.calls
    failure = first_failure if ended_process else min(failures, key=rank)
    numbers = _about_numbers(failure, replies_by_function.replies, has_misconception=bool(ids))
    word_and_sizes = _about_word_and_sizes(name, failure, replies_by_function)
    evidence = join_sentences(failure.evidence, numbers, word_and_sizes, failure.advice)
    return ChosenFailure(failure.check.title, evidence, failure.raised)


def _about_word_and_sizes(
    name: str, failure: Failure, replies_by_function: RepliesByFunction
) -> str:
    """Return up to two sentences about the first call of a failure that raises; "" without one.

    The first sentence has the string that the call was given as an argument. The second says which
    sizes of the call are in the exception's message, if shapes do not fit.
    """
    raised, observations = failure.raised, replies_by_function.replies.observations
    raising_calls = (observations[i] for i in failure.calls if observations[i].reply.raised)
    raising_call = next(raising_calls, None)
    if raised is None or raising_call is None:
        return ""
    arguments = (*getattr(raising_call.call.subject, "args", ()), *raising_call.call.args)
    # A check may make the call for several words, so the student needs to know which one failed.
    words = (f'That was for "{word}".' for word in arguments if isinstance(word, str))
    sizes = ""
    if is_shape_fault(raised) or "is invalid for input of size" in raised.message:
        calls = [raising_call, *replies_by_function.observations_of(name)]
        sizes = _sizes_in(raised, calls, replies_by_function.replies.signatures)
    return join_sentences(next(words, ""), sizes)


def _about_numbers(failure: Failure, replies: PublicReplies, *, has_misconception: bool) -> str:
    """Return a sentence about the wrong numbers of a failure; "" if there is nothing to say.

    It is the first of these:

    1. Another seed gives another number.
    2. In one of the calls, a parameter of the module has another name, or the numbers can be
       described (`describe_wrong_numbers`). A tensor is not described if the function has a
       misconception.
    3. The origin of the numbers.

    Sentences 2 and 3 need evidence that numbers differ. A failure that raised gets no sentence.
    """
    if failure.raised:
        return ""
    if not replies.seed_dependent.isdisjoint(failure.calls):
        return SEED_DEPENDENT
    if not any(phrase in failure.evidence for phrase in ("values differ", "a single number")):
        return ""
    for observation in (replies.observations[i] for i in failure.calls):
        if sentence := _renamed_parameter(observation):
            return sentence
        actual = next(iter(observation.reply.outputs), None)
        expected = first_of(observation.expected_outputs)
        if actual is None or actual.tensor is None or expected is None:
            continue
        if has_misconception and expected.dim():
            continue
        if sentence := describe_wrong_numbers(actual.tensor, expected):
            return sentence
    return failure.origin


def _renamed_parameter(observation: ObservedReply) -> str:
    """Return a sentence if an extra parameter has the shape of a missing one; "" otherwise.

    Only the first missing parameter is considered, weights before biases.
    """
    expected, actual = observation.expected.parameters, observation.actual.parameters
    missing_names = sorted(
        expected.keys() - actual.keys(), key=lambda name: (name.endswith("bias"), name)
    )
    if not missing_names:
        return ""
    missing = missing_names[0]
    extra_names = sorted(actual.keys() - expected.keys())
    same_shape = [name for name in extra_names if actual[name] == expected[missing]]
    if not same_shape:
        return ""
    return sanitize(f"It has no parameter {missing}, and has {same_shape[0]}")


def _sizes_in(raised: Raised, calls: Sequence[ObservedReply], signatures: Signatures) -> str:
    """Return a sentence on the sizes of a call in its exception's message; "" if there are none.

    Args:
        raised: The exception.
        calls: The call with the exception, then all calls of the same function. The calls that
            raised on the same line must agree.
        signatures: The signatures of all functions and classes.
    """
    messages = [
        (_axes_of_call(call, signatures), call.reply.raised.message)
        for call in calls
        if call.reply.raised is not None and call.reply.raised.line == raised.line
    ]
    first_axes, _ = messages[0]
    if not first_axes:
        return ""
    sizes = name_sizes([(axes, message) for axes, message in messages if axes])
    return f"{sizes}." if sizes else ""


def _axes_of_call(observation: ObservedReply, signatures: Signatures) -> Axes | None:
    """Return the axes of a call by the first signature that fits, or None if no signature fits."""
    shapes = (tensor.shape for tensor in observation.expected_outputs if tensor is not None)
    returned = next(shapes, ())
    for signature in signatures.get(target_of(observation.call), ()):
        if axes := axes_of(signature, observation.call, returned, signatures):
            return axes
    return None


ROUNDING = 1e-6  # relative to the larger number
MOST_TIMES = 64  # a larger factor does not show which numbers were counted twice or left out
SUM_ROUNDING = 1e-3  # a row of shares in float32 sums to 1 as nearly as this
SAME_WITHIN = 1e-6  # two numbers that are this close count as the same
VERY_LOW = -1e4  # a lower score counts as −∞


def describe_wrong_numbers(actual: Tensor, expected: Tensor) -> str:
    """Return a sentence that compares wrong numbers with the expected ones; "" if none applies.

    A single number may be a multiple or a fraction of the expected one, or its negative. For a
    tensor the sentence is the first of these: it holds no shares (numbers that sum to 1, as a
    softmax returns) although shares are expected; it hides the scores that should be kept; it holds
    +∞ in place of −∞; it holds shares instead of scores or answers.

    There is no sentence about complex numbers, about another shape, or about a tensor with NaN.

    Args:
        actual: The numbers that the attempt returned.
        expected: The numbers that the reference returns.
    """
    if actual.shape != expected.shape or not expected.numel() or actual.is_complex():
        return ""
    actual, expected = actual.double(), expected.double()
    if not expected.dim():
        return _describe_ratio(float(actual), float(expected))
    if actual.isnan().any():
        return ""
    return (
        _describe_broken_shares(actual, expected)
        or _describe_inverted_mask(actual, expected)
        or _describe_plus_infinity(actual, expected)
        or _describe_shares_for_scores(actual, expected)
    )


def origin_of_numbers(observation: ObservedReply) -> str:
    """Return a sentence about the origin of an answer's first wrong number; "" if it is unknown.

    The origin is known if both the expected and the actual answer consist of numbers of one
    argument, moved to other positions. Only the first output is considered, if it has the expected
    shape and at least one axis.
    """
    actual = next((output.tensor for output in observation.reply.outputs), None)
    expected = first_of(observation.expected_outputs)
    if actual is None or expected is None or actual.shape != expected.shape or not expected.dim():
        return ""
    if actual.is_complex() or expected.is_complex():
        return ""
    is_wrong = (actual.double() - expected.double()).abs() > SAME_WITHIN
    if not is_wrong.any():
        return ""
    position = int(is_wrong.flatten().nonzero()[0])
    for name, argument in observation.call.arguments.items():
        if not isinstance(argument, Tensor) or not argument.is_floating_point():
            continue
        expected_origins = _positions_in(argument, expected)
        actual_origins = _positions_in(argument, actual)
        if expected_origins is not None and actual_origins is not None:
            expected_origin = _index_in(argument, int(expected_origins[position]))
            actual_origin = _index_in(argument, int(actual_origins[position]))
            return (
                f"At {_index_in(expected, position)} should be the number that {label(name)} has "
                f"at {expected_origin}; yours is the one at {actual_origin}"
            )
    return ""


def _index_in(tensor: Tensor, position: int) -> list[int]:
    """Return the index of the number that has this position in the flat tensor."""
    return [int(index) for index in torch.unravel_index(torch.tensor(position), tensor.shape)]


def _positions_in(argument: Tensor, answer: Tensor) -> Tensor | None:
    """Return the position in the flat argument of each number of the flat answer.

    Returns None if the argument lacks one of these numbers, or has less than two numbers.
    """
    sorted_numbers, positions = argument.double().flatten().sort()
    if len(sorted_numbers) < 2:
        return None
    answers = answer.double().flatten()
    # each answer lies between the numbers at `upper - 1` and `upper`, and the nearer one counts
    upper = torch.searchsorted(sorted_numbers, answers).clamp(1, len(sorted_numbers) - 1)
    distance_below = answers - sorted_numbers[upper - 1]
    distance_above = sorted_numbers[upper] - answers
    nearest = torch.where(distance_below < distance_above, upper - 1, upper)
    if not bool(((sorted_numbers[nearest] - answers).abs() <= SAME_WITHIN).all()):
        return None
    return positions[nearest]


def _describe_ratio(actual: float, expected: float) -> str:
    """Return a sentence that compares a wrong number with the expected one; "" if none applies.

    It is one of these:

    1. The number is the negative of the expected one.
    2. One of the two is a multiple of the other one, and they have the same sign. The factor is a
       whole number from 2 to MOST_TIMES.

    There is no sentence if 0 is expected, or if a number is not finite.
    """
    if not expected or not math.isfinite(actual) or not math.isfinite(expected):
        return ""
    if abs(actual + expected) <= ROUNDING * abs(expected):
        return "Its sign is the wrong one"
    larger, smaller = max(abs(actual), abs(expected)), min(abs(actual), abs(expected))
    times = round(larger / smaller) if smaller else 0
    is_multiple = abs(larger - times * smaller) <= ROUNDING * larger
    if actual * expected < 0 or not 1 < times <= MOST_TIMES or not is_multiple:
        return ""
    if abs(actual) > abs(expected):
        return f"It is {times} times the expected number"
    return f"The expected number is {times} times as large"


def _describe_broken_shares(actual: Tensor, expected: Tensor) -> str:
    """Return a sentence if shares are expected and these numbers are no shares; "" otherwise.

    The sentence says that some are negative, or gives the sum that differs most from 1.
    """
    if not _are_shares(expected):
        return ""
    if bool((actual < -SUM_ROUNDING).any()):
        return "Shares between 0 and 1 are expected, and some of these numbers are below 0"
    sums = actual.sum(-1)
    errors = (sums - 1).abs()
    if bool((errors > SUM_ROUNDING).any()):
        worst_sum = float(sums.flatten()[errors.argmax()])
        return f"Shares are expected, and a row of these sums to {worst_sum:.3g} instead of 1"
    return ""


def _describe_shares_for_scores(actual: Tensor, expected: Tensor) -> str:
    """Return a sentence if the numbers are shares although none are expected; "" otherwise.

    If the expected numbers contain −∞, the sentence calls them scores.
    """
    if _are_shares(expected) or not _are_shares(actual):
        return ""
    if bool((expected == -math.inf).any()):
        return "Scores are expected, and these are already shares: each row sums to 1"
    return "Each row sums to 1, as after a softmax, and the expected rows do not"


def _describe_plus_infinity(actual: Tensor, expected: Tensor) -> str:
    """Return a sentence if +∞ is among the numbers, and −∞ but no +∞ is expected; "" otherwise.

    The sentence says more if +∞ stands just where no −∞ is expected.
    """
    is_hidden, is_infinite = expected == -math.inf, actual == math.inf
    if not is_hidden.any() or not is_infinite.any() or bool((expected == math.inf).any()):
        return ""
    if torch.equal(is_infinite, ~is_hidden):
        return "What should be kept is +∞, and what should be hidden is kept"
    return "There is +∞ among these numbers: a score is hidden by −∞"


def _are_shares(numbers: Tensor) -> bool:
    """Return whether the numbers are shares: none is negative, and each row has the sum 1.

    A row must have two numbers at least.
    """
    if numbers.shape[-1] < 2 or bool((numbers < 0).any()):
        return False
    sums = numbers.sum(-1)
    return bool(((sums - 1).abs() <= SUM_ROUNDING).all())


def _describe_inverted_mask(actual: Tensor, expected: Tensor) -> str:
    """Return a sentence if exactly the scores that should be kept are hidden; "" otherwise.

    The scores that should be hidden must be kept, with numbers of the usual size.
    """
    is_hidden = expected == -math.inf
    if not is_hidden.any() or is_hidden.all():
        return ""
    hides_the_others = torch.equal(actual < VERY_LOW, ~is_hidden)
    if hides_the_others and bool((actual[is_hidden].abs() < -VERY_LOW).all()):
        return "What should be hidden is kept, and what should be kept is hidden"
    return ""
