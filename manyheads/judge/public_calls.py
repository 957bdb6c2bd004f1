"""Put the public calls of an exercise to an attempt, and keep its replies.

`course check` and `course grade` make the same calls in the same order. Nothing is concluded here:
`diagnosis` names the mistakes, and `attribution` says which function has them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from ..box.connection import AttemptEnded, End
from ..box.worker.messages import Call, Raised, Reply
from ..checks.asserts import MAX_ORDINAL, label
from ..checks.explain import describe_exception
from ..checks.hidden_check import AttemptRaised, CheckFailed, CheckOutcome, Layer
from ..checks.runner import LocalRecordingRunner, target_of
from ..course import Exercise
from ..course.signatures import Signature
from ..diagnosis.bank import NOTHING, Bank, Diagnosis, named, naming
from ..diagnosis.diagnose import diagnose
from ..diagnosis.fault_dictionary import FaultDictionary, PublicCheck, differs
from ..diagnosis.observed_reply import ObservedReply, observed, summarise_copies
from ..diagnosis.oracles import Violation, first_broken, groups_of
from ..result import Outcome
from ..submission.source import INTERFACE, UNTOUCHED, Source
from .attempt_runner import AttemptRunner
from .definition_faults import in_another_order
from .nontrivial_answers import unmet_condition
from .redact_hidden_inputs import Signatures

Attempt = AttemptRunner | LocalRecordingRunner


@dataclass(frozen=True)
class VisibleCheck:
    """A visible check whose calls were made.

    Attributes:
        check: The check.
        violation: The first violated oracle, or None.
        ended: How the attempt's process ended during a call of the check, or None.
        ended_in: The function whose call ended it, or "".
        evidence_of_end: The sentence about the end, or "".
    """

    check: PublicCheck
    violation: Violation | None = None
    ended: End | None = None
    ended_in: str = ""
    evidence_of_end: str = ""

    @property
    def passed(self) -> bool:
        """Whether the replies violate no oracle. A precondition may still be unmet."""
        return self.violation is None and self.ended is None


@dataclass(frozen=True)
class PublicReplies:
    """An attempt's replies to the public calls of an exercise.

    Attributes:
        dictionary: The fault dictionary of the exercise.
        source: The attempt's text.
        observations: The replies, by the index of the call.
        visible: The visible checks whose calls were made, in the order of the calls.
        is_graded: Whether this is grading. Then messages of exceptions are not shown.
        is_complete: Whether all public calls were made, unless the process ended. If everything
            visible passes at home, only the visible checks' calls are.
        right_by_name: Replies of functions that take their arguments in another order, and are
            right if the arguments are passed by name.
        unmet: For each function that does not meet its preconditions, the reason.
        in_single: Calls that were made in float32 although any dtype would do. Their dtype shows
            nothing.
        unsteady: Calls that return another number when they are repeated.
        signatures: The signatures of each function, if they are known.
    """

    dictionary: FaultDictionary
    source: Source
    observations: Mapping[int, ObservedReply]
    visible: tuple[VisibleCheck, ...] = ()
    is_graded: bool = False
    is_complete: bool = False
    right_by_name: Mapping[int, ObservedReply] = field(default_factory=dict)
    unmet: Mapping[str, str] = field(default_factory=dict)
    in_single: Set[int] = frozenset()
    unsteady: Set[int] = frozenset()
    signatures: Signatures = field(default_factory=dict)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is written, and so no visible check passes."""
        return _is_untouched(self.source, self.visible)

    def with_argument_names(self, sentence: str, function: str) -> str:
        """Return a sentence about a function with the names of its arguments, not their order.

        "the fourth argument" becomes "`block_q`" if the exercise calls it so.
        """
        signatures = self.signatures.get(function, ())
        for position, parameter in enumerate(
            signatures[0].call[:MAX_ORDINAL] if signatures else ()
        ):
            sentence = sentence.replace(label(f"args.{position}"), f"`{parameter.name}`")
        return sentence

    def _functions_of(self, calls: Sequence[int]) -> list[str]:
        """Return the functions that these calls call, each once, in the order of the calls."""
        return list(dict.fromkeys(target_of(self.dictionary.calls[i]) for i in calls))

    def outcomes(self) -> list[CheckOutcome]:
        """Return the outcomes of the visible checks, those that failed first."""
        outcomes = [self._outcome(visible) for visible in self.visible]
        return sorted(outcomes, key=lambda outcome: outcome.outcome == "passed")

    def _outcome(self, visible: VisibleCheck) -> CheckOutcome:
        """Return the outcome of a check, which also fails if a function misses a precondition."""
        if visible.ended is not None:
            outcome: Outcome = "timeout" if visible.ended is End.TIMEOUT else "crashed"
            return public_outcome(visible.check, outcome, visible.evidence_of_end, visible.ended_in)
        if visible.violation is not None:
            evidence, raised = evidence_of(visible.violation.error)
            # The last call is the one at fault. The others only give the values to compare with.
            function = target_of(self.dictionary.calls[visible.violation.calls[-1]])
            if raised is None:
                evidence = self.with_argument_names(evidence, function)
            outcome = "failed" if raised is None else "error"
            return public_outcome(visible.check, outcome, evidence, function)
        for function in self._functions_of(visible.check.all_calls):
            if function in self.unmet:
                return public_outcome(visible.check, "failed", self.unmet[function], function)
        functions = self._functions_of(visible.check.calls)
        function = functions[0] if len(functions) == 1 else ""
        return public_outcome(visible.check, "passed", "", function)


def _is_untouched(source: Source, visible: Sequence[VisibleCheck]) -> bool:
    """Return whether the text is available, nothing in it is written, and no check passed."""
    nothing_passed = not any(check.passed for check in visible)
    return not source.missing and nothing_passed and source.is_unwritten


def public_outcome(
    check: PublicCheck, outcome: Outcome, evidence: str, function: str = ""
) -> CheckOutcome:
    """Return the outcome of a visible check, or of a check that was not run."""
    return CheckOutcome(
        check.id,
        check.title,
        Layer(check.layer),
        check.points,
        check.hint,
        outcome=outcome,
        evidence=evidence,
        function=function,
    )


def evidence_of(error: CheckFailed, *, is_shown: bool = True) -> tuple[str, Raised | None]:
    """Return the evidence of a failed check, and its exception.

    The exception is None if the check did not fail because of one.

    Args:
        error: The failure.
        is_shown: Whether the message of an exception may be shown.
    """
    if isinstance(error, AttemptRaised):
        return describe_exception(error.raised, error.due, is_shown=is_shown), error.raised
    return str(error), None


def ask_public_calls(
    dictionary: FaultDictionary,
    attempt: Attempt,
    source: Source,
    exercise: Exercise | None = None,
    *,
    is_graded: bool = False,
    explain_timeout: Callable[[Call], str] | None = None,
) -> PublicReplies:
    """Make the calls of the visible checks. In grading, or if one fails, make all public calls.

    Args:
        dictionary: The fault dictionary of the exercise.
        attempt: The attempt.
        source: The attempt's text; it is missing if it is not available.
        exercise: The exercise, if it is available.
        is_graded: Whether a hidden check has failed in grading. Then a mistake is looked for even
            if every visible check passes.
        explain_timeout: Returns a sentence about a call that took too long; "" if there is none.
    """
    if isinstance(attempt, AttemptRunner):
        attempt.ask_ahead(_calls_to_come(dictionary, is_graded=is_graded))
    signatures = {name: exercise.signatures(name) for name in exercise.shapes} if exercise else {}
    observations: dict[int, ObservedReply] = {}
    visible = tuple(run_visible_checks(dictionary, attempt, observations, (), explain_timeout))
    has_mistake = is_graded or not all(check.passed for check in visible)
    is_complete = has_mistake and not _is_untouched(source, visible)
    right_by_name: dict[int, ObservedReply] = {}
    if is_complete:
        _observe_other_calls(dictionary, attempt, observations)
        right_by_name = _replies_right_by_name(attempt, observations, source, signatures)
    unmet: dict[str, str] = {}
    if not is_graded:  # in grading, hidden checks test the preconditions
        unmet = _unmet_conditions(dictionary, attempt, visible, observations)
    return PublicReplies(
        dictionary=dictionary,
        source=source,
        observations=observations,
        visible=visible,
        is_graded=is_graded,
        is_complete=is_complete,
        right_by_name=right_by_name,
        unmet=unmet,
        in_single={i for i in observations if id(dictionary.calls[i]) in attempt.in_single},
        unsteady=_unsteady_calls(dictionary, attempt, visible, observations, unmet),
        signatures=signatures,
    )


def _observe_other_calls(
    dictionary: FaultDictionary, attempt: Attempt, observations: dict[int, ObservedReply]
) -> None:
    """Make the calls that were not made yet, and add their replies to the observations.

    They decide no visible check, but give the diagnosis more evidence. If the attempt's process
    ends, the rest is left out.
    """
    with contextlib.suppress(AttemptEnded):
        for check in dictionary.checks:
            for index in check.calls:
                if index not in observations:
                    observations[index] = observe_call(dictionary, index, attempt)


def name_misconceptions(replies: PublicReplies, bank: Bank | None = None) -> Diagnosis:
    """Return the misconceptions that the replies show, not yet with their functions.

    Args:
        replies: The replies to the public calls.
        bank: The mutants of the exercise, of which two can be combined in one. None on a student's
            machine, which has no mutants.
    """
    if replies.is_untouched:
        return naming(replies.dictionary.words, UNTOUCHED)
    if not replies.is_complete:
        return NOTHING
    observations = {**replies.observations, **replies.right_by_name}
    diagnosis = diagnose(replies.dictionary, observations, replies.source, bank)
    if not replies.right_by_name:
        return diagnosis
    another_order = named(replies.dictionary.words, INTERFACE)
    return replace(diagnosis, named=(another_order, *diagnosis.named))


def run_visible_checks(
    dictionary: FaultDictionary,
    attempt: Attempt,
    observations: dict[int, ObservedReply],
    ids: Sequence[str] = (),
    explain_timeout: Callable[[Call], str] | None = None,
) -> Iterator[VisibleCheck]:
    """Make the calls of the visible checks, and yield each check once its calls are made.

    Checks that are marked as last come after the others, and only while all checks pass.

    Args:
        dictionary: The fault dictionary of the exercise.
        attempt: The attempt.
        observations: Every observed reply is added to it.
        ids: The ids of the checks to run; empty for all.
        explain_timeout: Returns a sentence about a call that took too long; "" if there is none.
    """
    checks = [check for check in dictionary.visible if not ids or check.id in ids]
    early_checks = sorted((c for c in checks if not c.is_last), key=lambda c: c.layer)
    late_checks = [c for c in checks if c.is_last]
    all_passed = True
    for check in (*early_checks, *late_checks):
        if all_passed or not check.is_last:
            visible = _run_visible_check(dictionary, check, attempt, observations, explain_timeout)
            all_passed = all_passed and visible.passed
            yield visible


def _run_visible_check(
    dictionary: FaultDictionary,
    check: PublicCheck,
    attempt: Attempt,
    observations: dict[int, ObservedReply],
    explain_timeout: Callable[[Call], str] | None,
) -> VisibleCheck:
    """Make the calls of one visible check, and return it with the first violated oracle.

    If the attempt's process ends during a call, the check has the end in place of a violation.
    """
    attempt.check = check.id
    check_observations = {}
    try:
        for index in check.all_calls:
            check_observations[index] = observe_call(dictionary, index, attempt)
            observations[index] = check_observations[index]
    except AttemptEnded as ended:
        call = attempt.ended.get(check.id)
        sentence = ""
        if call is not None and ended.end is End.TIMEOUT and explain_timeout is not None:
            sentence = explain_timeout(call)
        ended_in = target_of(call) if call is not None else ""
        return VisibleCheck(
            check, ended=ended.end, ended_in=ended_in, evidence_of_end=sentence or str(ended)
        )
    groups = groups_of(check, check_observations)
    return VisibleCheck(check, first_broken(groups, check_observations))


def observe_call(dictionary: FaultDictionary, index: int, attempt: Attempt) -> ObservedReply:
    """Make a recorded call, and return the observed reply. Raises AttemptEnded."""
    call, fingerprint = dictionary.calls[index], dictionary.expected_reply(index)
    reply = summarise_copies(call, attempt.execute(call))
    return observed(call, fingerprint, dictionary.expected[index], reply)


def _calls_to_come(dictionary: FaultDictionary, *, is_graded: bool) -> list[Call]:
    """Return the calls that `ask_public_calls` is going to make first, in this order."""
    early_checks = sorted((c for c in dictionary.visible if not c.is_last), key=lambda c: c.layer)
    indices = [i for check in early_checks for i in check.all_calls]
    if is_graded:
        indices += [i for check in dictionary.checks for i in check.calls]
    return [dictionary.calls[i] for i in dict.fromkeys(indices)]


def _unmet_conditions(
    dictionary: FaultDictionary,
    attempt: Attempt,
    visible: Sequence[VisibleCheck],
    observations: Mapping[int, ObservedReply],
) -> dict[str, str]:
    """Return the reasons why functions do not meet their preconditions, by function.

    Only functions with a wrong reply are tested, and only if a check that calls them passes.
    """
    wrong_functions = {
        target_of(observation.call)
        for i, observation in observations.items()
        if differs(dictionary, i, observation.actual)
    }
    passed = [check.check for check in visible if check.passed]
    called = {target_of(dictionary.calls[i]) for check in passed for i in check.all_calls}
    reasons = {
        function: unmet_condition(dictionary, attempt, function, observations)
        for function in sorted(called & wrong_functions)
    }
    return {function: reason for function, reason in reasons.items() if reason}


def _unsteady_calls(
    dictionary: FaultDictionary,
    attempt: Attempt,
    visible: Sequence[VisibleCheck],
    observations: Mapping[int, ObservedReply],
    unmet: Container[str],
) -> frozenset[int]:
    """Return the calls of failed checks that return another number with another seed.

    A check that failed with an exception is not tested, and neither is a call that returns a
    tensor.
    """
    calls = set[int]()
    for check in visible:
        functions = (target_of(dictionary.calls[i]) for i in check.check.all_calls)
        is_unmet = check.passed and any(function in unmet for function in functions)
        error = None if check.violation is None else check.violation.error
        is_violated = error is not None and not isinstance(error, AttemptRaised)
        if is_unmet or is_violated:
            calls.update(check.check.all_calls)
    unsteady = set[int]()
    for i in calls & observations.keys():
        call, number = observations[i].call, _single_number(observations[i].reply)
        if number is None:
            continue
        with contextlib.suppress(AttemptEnded):
            reply = attempt.execute(replace(call, seed=call.seed + 1))
            if _single_number(reply) not in (None, number):
                unsteady.add(i)
    return frozenset(unsteady)


def _single_number(reply: Reply) -> float | None:
    """Return the number of a reply, or None if the reply has another form or is NaN."""
    tensors = [output.tensor for output in reply.outputs]
    if len(tensors) != 1 or tensors[0] is None or tensors[0].dim() or tensors[0].is_complex():
        return None
    number = float(tensors[0])
    return None if math.isnan(number) else number


def expected_arguments(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments by its first signature; () for a class."""
    if not signatures or signatures[0].build is not None:
        return ()
    return tuple(parameter.name for parameter in signatures[0].call)


def _replies_right_by_name(
    attempt: Attempt,
    observations: Mapping[int, ObservedReply],
    source: Source,
    signatures: Signatures,
) -> dict[int, ObservedReply]:
    """Return the replies of functions that are right if their arguments are passed by name.

    Such a function takes its arguments in another order. Its replies get the expected fingerprint
    as the actual one, so that its numbers show no other mistake. Expected refusals are left out.
    """
    corrected: dict[int, ObservedReply] = {}
    for function, function_signatures in signatures.items():
        names = expected_arguments(function_signatures)
        if not in_another_order(source, function, names):
            continue
        calls = {
            i: observation
            for i, observation in observations.items()
            if target_of(observation.call) == function and observation.expected.raised is None
        }
        replies_by_name: dict[int, ObservedReply] = {}
        with contextlib.suppress(AttemptEnded):
            replies_by_name = {i: _call_by_name(attempt, calls[i], names) for i in calls}
        replies = replies_by_name.values()
        if all(reply.actual.agrees(reply.expected, ("outputs",)) for reply in replies):
            for i, reply in replies_by_name.items():
                corrected[i] = replace(reply, call=calls[i].call, actual=reply.expected)
    return corrected


def _call_by_name(
    attempt: Attempt, observation: ObservedReply, names: Sequence[str]
) -> ObservedReply:
    """Repeat a call with all arguments passed by name, and return the observed reply."""
    kwargs = {**dict(zip(names, observation.call.args, strict=False)), **observation.call.kwargs}
    # gradients are requested by the position of an argument
    call = replace(observation.call, args=(), kwargs=kwargs, cotangent=None, second=False)
    reply = summarise_copies(call, attempt.execute(call))
    return observed(call, observation.expected, observation.expected_outputs, reply)
