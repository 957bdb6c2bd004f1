"""Find the failures of a function in visible checks, and choose the one to show.

`failures_of` returns a failure for each visible check that fails because of the function. A failure
has the observation and the usual repair. `choose_failure` takes the one that shows the function's
misconception best, and adds sentences about its numbers, its words and its sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..box.worker.messages import Raised
from ..checks.explain import is_shape_fault, joined, sanitize, says_unwritten
from ..checks.runner import target_of
from ..diagnosis.fault_dictionary import PublicCheck
from ..diagnosis.observed_reply import ObservedReply, first_of
from ..diagnosis.oracles import Group, Violation, first_violation, groups_of
from .definition_faults import call_of_helper, return_order_advice
from .describe_wrong_numbers import describe_wrong_numbers, origin_of_numbers
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

    It has at most one failure of each failed check: that a call of the function ended the process,
    or else the first violated oracle that is applied to the function. A check may fail because of
    several functions, and is then a failure of each.
    """
    observations = replies.observations

    def meets_unwritten(group: Group) -> bool:
        _, calls = group
        return any(says_unwritten(observations[i].reply.raised) for i in calls)

    failures = []
    for visible in replies.visible:
        if visible.passed:
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

    Its advice is about the order of a returned pair, or else about the exception. For an exception,
    the call of the helper that raised comes before it. `is_off_topic` and `origin` are about values
    that differ. Sentences name the arguments as the exercise does.
    """
    source, signatures = replies.source, replies.signatures.get(name, ())
    evidence, raised = evidence_of(violation.error, is_shown=not replies.is_graded)
    advice = return_order_advice(source, name, signatures[0].form) if signatures else ""
    if raised is None:
        evidence = name_arguments(evidence, signatures)
    else:
        advice = advice or suggest(source, raised)
        advice = joined(call_of_helper(source, name, raised.line or 0), advice)
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

    The first failure is shown if it ended the process. Otherwise the best one is shown. These
    rules decide, and each but the first only between failures that are equal by those above it:

    1. A failure that shows the function's first misconception is best. One that shows none of its
       misconceptions is better than one that shows only another one.
    2. If they show the first misconception: a failure with an `origin` of the wrong numbers.
    3. The earliest layer.
    4. A failure that is about the topic of its check.

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
        is_proven = id_ == failure.implied_misconception or any(
            id_ in replies_by_function.proven_by(i) for i in failure.calls
        )
        return is_proven or replies_by_function.is_seen(id_, failure.calls)

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
    evidence = joined(failure.evidence, numbers, word_and_sizes, failure.advice)
    return ChosenFailure(failure.check.title, evidence, failure.raised)


def _about_word_and_sizes(
    name: str, failure: Failure, replies_by_function: RepliesByFunction
) -> str:
    """Return up to two sentences about the first call of a failure that raised; "" if none did.

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
    return joined(next(words, ""), sizes)


def _about_numbers(failure: Failure, replies: PublicReplies, *, has_misconception: bool) -> str:
    """Return a sentence about the wrong numbers of a failure; "" if there is nothing to say.

    It is the first of these:

    1. Another seed gives another number.
    2. In one of the calls, a parameter of the module has another name, or the numbers can be
       described (`describe_wrong_numbers`). A tensor is not described if the function has a
       misconception.
    3. The origin of the numbers.

    The last two need evidence that numbers differ. There is no sentence beside an exception.
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
    """Return a sentence if a module has another parameter of the shape of a missing one, or "".

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
    """Return a sentence on the sizes of a call that are in the message of its exception, or "".

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
