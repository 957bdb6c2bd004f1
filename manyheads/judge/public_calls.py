"""Put the public calls of an exercise to an attempt, and keep its replies.

`ask_public_calls` makes the calls, for `course check` and `course grade` alike.
`name_misconceptions` has `diagnosis` name the mistakes. `attribution` says which function has them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from ..box.connection import AttemptEnded, End
from ..box.worker.messages import Call, Raised, Reply
from ..checks.asserts import label
from ..checks.explain_exceptions import describe_exception
from ..checks.hidden_check import AttemptRaised, CheckFailed, CheckOutcome, Layer
from ..checks.runner import LocalRecordingRunner, target_of
from ..course import Exercise
from ..course.course_yaml_schema import Signature
from ..diagnosis.bank import NOTHING, Bank, Diagnosis, diagnosis_of, misconception_in_words
from ..diagnosis.diagnose import diagnose
from ..diagnosis.fault_dictionary import FaultDictionary, PublicCheck, differs
from ..diagnosis.observed_reply import ObservedReply, observe_reply, summarise_copies
from ..diagnosis.oracles import Violation, first_violation, groups_of
from ..result import Outcome
from ..submission.source import INTERFACE, UNTOUCHED, Source
from .attempt_runner import AttemptRunner
from .definition_faults import in_another_order
from .nontrivial_answers import failed_precondition
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
    def passes(self) -> bool:
        """Whether the replies violate no oracle. A precondition may still fail."""
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
        is_complete: Whether all public calls were made, or were to be made when the process ended.
            If False, only those of the visible checks were made: all of these pass on a student's
            machine, or nothing is written.
        right_by_name: Replies of functions that take their arguments in another order, and are
            right if the arguments are passed by name.
        failed_preconditions: For each function that does not meet its preconditions, the reason.
        in_single: Calls that were made in float32 although any dtype would do. Their dtype shows
            nothing.
        seed_dependent: Calls that return another number with another seed.
        signatures: The signatures of each function, if they are known.
    """

    dictionary: FaultDictionary
    source: Source
    observations: Mapping[int, ObservedReply]
    visible: tuple[VisibleCheck, ...]
    is_graded: bool
    is_complete: bool
    right_by_name: Mapping[int, ObservedReply]
    failed_preconditions: Mapping[str, str]
    in_single: Set[int]
    seed_dependent: Set[int]
    signatures: Signatures

    def _functions_of(self, calls: Sequence[int]) -> list[str]:
        """Return the functions that these calls call, each once, in the order of the calls."""
        return list(dict.fromkeys(target_of(self.dictionary.calls[i]) for i in calls))

    def outcomes(self) -> list[CheckOutcome]:
        """Return the outcomes of the visible checks that were run, those that failed first."""
        outcomes = [self._outcome(visible) for visible in self.visible]
        return sorted(outcomes, key=lambda outcome: outcome.outcome == "passed")

    def _outcome(self, visible: VisibleCheck) -> CheckOutcome:
        """Return the outcome of a check.

        The first of these decides it:

        1. The process ended during a call: "timeout" or "crashed".
        2. An oracle is violated: "error" if the attempt raised, otherwise "failed".
        3. A function of `check.all_calls` (its own calls and those with which it compares them)
           does not meet a precondition: "failed".
        4. The check passed.

        The outcome names the function at which the process ended or the check failed. If the check
        passed, it names the only function of `check.calls`; "" if there are several.
        """
        if visible.ended is not None:
            outcome: Outcome = "timeout" if visible.ended is End.TIMEOUT else "crashed"
            return public_outcome(visible.check, outcome, visible.evidence_of_end, visible.ended_in)
        if visible.violation is not None:
            evidence, raised = evidence_of(visible.violation.error)
            # The last call is the one at fault. The others only give the values to compare with.
            function = target_of(self.dictionary.calls[visible.violation.calls[-1]])
            if raised is None:
                evidence = name_arguments(evidence, self.signatures.get(function, ()))
            outcome = "failed" if raised is None else "error"
            return public_outcome(visible.check, outcome, evidence, function)
        for function in self._functions_of(visible.check.all_calls):
            if function in self.failed_preconditions:
                return public_outcome(
                    visible.check, "failed", self.failed_preconditions[function], function
                )
        functions = self._functions_of(visible.check.calls)
        function = functions[0] if len(functions) == 1 else ""
        return public_outcome(visible.check, "passed", "", function)


def _is_untouched(source: Source, visible: Sequence[VisibleCheck]) -> bool:
    """Return whether the text is available, nothing in it is written, and no check passed."""
    nothing_passed = not any(check.passes for check in visible)
    return not source.missing and nothing_passed and source.is_unwritten


def public_outcome(
    check: PublicCheck, outcome: Outcome, evidence: str, function: str = ""
) -> CheckOutcome:
    """Return this outcome of a visible check, with its title, layer, points and hint."""
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
        return describe_exception(error.raised, error.requirement, is_shown=is_shown), error.raised
    return str(error), None


@dataclass
class PublicCalls:
    """Makes the public calls of an exercise to one attempt.

    Attributes:
        dictionary: The fault dictionary of the exercise.
        attempt: The attempt.
        explain_timeout: Returns a sentence about a call that took too long; "" if there is none.
        observations: The replies, by the index of the call.
    """

    dictionary: FaultDictionary
    attempt: Attempt
    explain_timeout: Callable[[Call], str] = lambda call: ""
    observations: dict[int, ObservedReply] = field(default_factory=dict)

    def checks_in_order(self) -> list[PublicCheck]:
        """Return the visible checks in the order in which they are run."""
        return sorted(self.dictionary.visible, key=lambda check: (check.is_last, check.layer))

    def run_visible_checks(self, ids: Sequence[str] = ()) -> Iterator[VisibleCheck]:
        """Make the calls of the visible checks, and yield each check once its calls are made.

        Checks that are marked as last come after the others, and only while all checks pass.

        Args:
            ids: The ids of the checks to run; empty for all.
        """
        all_passed = True
        for check in self.checks_in_order():
            if (all_passed or not check.is_last) and (not ids or check.id in ids):
                visible = self._run_visible_check(check)
                all_passed = all_passed and visible.passes
                yield visible

    def _run_visible_check(self, check: PublicCheck) -> VisibleCheck:
        """Make the calls of one visible check, and return it with the first violated oracle.

        If the attempt's process ends during a call, the check has the end in place of a violation,
        with the sentence of `explain_timeout` if there is one.
        """
        self.attempt.check = check.id
        check_observations = {}
        try:
            for index in check.all_calls:
                check_observations[index] = self.observe(index)
        except AttemptEnded as ended:
            call = self.attempt.ended.get(check.id)
            sentence = ""
            if call is not None and ended.end is End.TIMEOUT:
                sentence = self.explain_timeout(call)
            ended_in = target_of(call) if call is not None else ""
            return VisibleCheck(
                check, ended=ended.end, ended_in=ended_in, evidence_of_end=sentence or str(ended)
            )
        groups = groups_of(check, check_observations)
        return VisibleCheck(check, first_violation(groups, check_observations))

    def observe(self, index: int) -> ObservedReply:
        """Make a recorded call, and return the observed reply. Raises AttemptEnded."""
        call, fingerprint = self.dictionary.calls[index], self.dictionary.expected_reply(index)
        reply = summarise_copies(call, self.attempt.execute(call))
        observation = observe_reply(call, fingerprint, self.dictionary.expected[index], reply)
        self.observations[index] = observation
        return observation

    def observe_other_calls(self) -> Iterator[tuple[int, ObservedReply]]:
        """Make the calls that were not made yet, and yield their replies. Raises AttemptEnded.

        They decide no visible check, but give the diagnosis more evidence.
        """
        for index in self._all_calls():
            if index not in self.observations:
                yield index, self.observe(index)

    def _all_calls(self) -> list[int]:
        """Return the calls of all checks, not only of visible ones."""
        return [index for check in self.dictionary.checks for index in check.calls]

    def ask_ahead(self, *, is_graded: bool) -> None:
        """Send the calls that `ask_public_calls` is going to make first, in one message.

        These are the calls of the visible checks, without checks that are marked as last. In
        grading, they are followed by all other calls. Nothing is sent to a local runner, which
        makes its calls when they are needed.
        """
        early_checks = [check for check in self.checks_in_order() if not check.is_last]
        indices = [i for check in early_checks for i in check.all_calls]
        if is_graded:
            indices += self._all_calls()
        if isinstance(self.attempt, AttemptRunner):
            self.attempt.ask_ahead([self.dictionary.calls[i] for i in dict.fromkeys(indices)])

    def find_failed_preconditions(self, visible: Sequence[VisibleCheck]) -> dict[str, str]:
        """Return the reasons why functions do not meet their preconditions, by function.

        A function is tested if it has a wrong reply and a check that calls it passes. Only
        functions that do not meet their preconditions have an entry.
        """
        wrong_functions = {
            target_of(observation.call)
            for i, observation in self.observations.items()
            if differs(self.dictionary, i, observation.actual)
        }
        passed = [check.check for check in visible if check.passes]
        called = {target_of(self.dictionary.calls[i]) for check in passed for i in check.all_calls}
        reasons = {
            function: failed_precondition(
                self.dictionary, self.attempt, function, self.observations
            )
            for function in sorted(called & wrong_functions)
        }
        return {function: reason for function, reason in reasons.items() if reason}

    def seed_dependent_calls(
        self, visible: Sequence[VisibleCheck], failed_preconditions: Container[str]
    ) -> frozenset[int]:
        """Return the calls that return one number, and another number with another seed.

        The calls of two kinds of checks are made once more. The first kind fails by a wrong answer,
        and not by an exception. The second kind passes, but calls a function with a failed
        precondition. A repeated call that ends the process does not count.

        Args:
            visible: The visible checks.
            failed_preconditions: The functions that do not meet their preconditions.
        """
        calls = set[int]()
        for check in visible:
            functions = (target_of(self.dictionary.calls[i]) for i in check.check.all_calls)
            is_trivial = check.passes and any(
                function in failed_preconditions for function in functions
            )
            error = None if check.violation is None else check.violation.error
            is_wrong_answer = error is not None and not isinstance(error, AttemptRaised)
            if is_trivial or is_wrong_answer:
                calls.update(check.check.all_calls)
        seed_dependent = set[int]()
        for i in calls & self.observations.keys():
            call, number = self.observations[i].call, _single_number(self.observations[i].reply)
            if number is None:
                continue
            with contextlib.suppress(AttemptEnded):
                reply = self.attempt.execute(replace(call, seed=call.seed + 1))
                if _single_number(reply) not in (None, number):
                    seed_dependent.add(i)
        return frozenset(seed_dependent)

    def replies_right_by_name(
        self, source: Source, signatures: Signatures
    ) -> dict[int, ObservedReply]:
        """Return the replies of functions that are right if their arguments are passed by name.

        Only functions whose definition has the arguments in another order are tried
        (`in_another_order`). All its calls that the reference answers are made once more. If all
        outputs are right then, the replies get the expected fingerprint as the actual one, so that
        the numbers show no other mistake. If the process ends, no replies of the function are
        returned.
        """
        corrected = {}
        for function, function_signatures in signatures.items():
            names = expected_arguments(function_signatures)
            if not in_another_order(source, function, names):
                continue
            calls = {
                i: observation
                for i, observation in self.observations.items()
                if target_of(observation.call) == function and observation.expected.raised is None
            }
            replies_by_name: dict[int, ObservedReply] = {}
            with contextlib.suppress(AttemptEnded):
                replies_by_name = {i: self._call_by_name(calls[i], names) for i in calls}
            repeated = replies_by_name.values()
            if all(o.actual.agrees(o.expected, ("outputs",)) for o in repeated):
                for i, observation in replies_by_name.items():
                    corrected[i] = replace(
                        observation, call=calls[i].call, actual=observation.expected
                    )
        return corrected

    def _call_by_name(self, observation: ObservedReply, names: Sequence[str]) -> ObservedReply:
        """Repeat a call with all arguments passed by name, and return the observed reply.

        No gradients are asked for. Raises AttemptEnded.
        """
        kwargs = {
            **dict(zip(names, observation.call.args, strict=False)),
            **observation.call.kwargs,
        }
        # gradients are requested by the position of an argument
        call = replace(observation.call, args=(), kwargs=kwargs, cotangent=None, second=False)
        reply = summarise_copies(call, self.attempt.execute(call))
        return observe_reply(call, observation.expected, observation.expected_outputs, reply)


def ask_public_calls(
    calls: PublicCalls,
    source: Source,
    exercise: Exercise | None,
    *,
    is_graded: bool = False,
) -> PublicReplies:
    """Make the calls of the visible checks. In grading, or if a check fails, make all public calls.

    If nothing is written, only the calls of the visible checks are made. If the process ends, the
    earlier replies are kept. Preconditions are tested on a student's machine only.

    Args:
        calls: The calls, and the attempt.
        source: The attempt's text. `source.missing` is true if the text is not available.
        exercise: The exercise, if it is available.
        is_graded: Whether a hidden check has failed in grading. Then a mistake is looked for even
            if every visible check passes.
    """
    calls.ask_ahead(is_graded=is_graded)
    signatures = {name: exercise.signatures(name) for name in exercise.shapes} if exercise else {}
    visible = tuple(calls.run_visible_checks())
    has_mistake = is_graded or not all(check.passes for check in visible)
    is_complete = has_mistake and not _is_untouched(source, visible)
    right_by_name: dict[int, ObservedReply] = {}
    if is_complete:
        with contextlib.suppress(AttemptEnded):
            list(calls.observe_other_calls())
        right_by_name = calls.replies_right_by_name(source, signatures)
    # in grading, hidden checks test the preconditions
    failed_preconditions = {} if is_graded else calls.find_failed_preconditions(visible)
    indices = calls.observations.keys()
    return PublicReplies(
        dictionary=calls.dictionary,
        source=source,
        observations=calls.observations,
        visible=visible,
        is_graded=is_graded,
        is_complete=is_complete,
        right_by_name=right_by_name,
        failed_preconditions=failed_preconditions,
        in_single={i for i in indices if id(calls.dictionary.calls[i]) in calls.attempt.in_single},
        seed_dependent=calls.seed_dependent_calls(visible, failed_preconditions),
        signatures=signatures,
    )


def name_misconceptions(replies: PublicReplies, bank: Bank | None = None) -> Diagnosis:
    """Return the misconceptions that the replies show. `attribution` adds their functions later.

    An attempt that is not written has UNTOUCHED alone. There are no misconceptions if not all
    public calls were made (`PublicReplies.is_complete`). If functions are right when their
    arguments are passed by name, INTERFACE comes first, and then the misconceptions that all other
    replies show.

    Args:
        replies: The replies to the public calls.
        bank: The mutants of the exercise, which can be combined in pairs. None on a student's
            machine, which has no mutants.
    """
    if _is_untouched(replies.source, replies.visible):
        return diagnosis_of(replies.dictionary.words, UNTOUCHED)
    if not replies.is_complete:
        return NOTHING
    observations = {**replies.observations, **replies.right_by_name}
    diagnosis = diagnose(replies.dictionary, observations, replies.source, bank)
    if not replies.right_by_name:
        return diagnosis
    another_order = misconception_in_words(replies.dictionary.words, INTERFACE)
    return Diagnosis(
        named=(another_order, *diagnosis.named),
        also=diagnosis.also,
        together=diagnosis.together,
        answers=diagnosis.answers,
    )


def _single_number(reply: Reply) -> float | None:
    """Return the number of a reply, or None if the reply is NaN or anything but one real number."""
    tensors = [output.tensor for output in reply.outputs]
    if len(tensors) != 1 or tensors[0] is None or tensors[0].dim() or tensors[0].is_complex():
        return None
    number = float(tensors[0])
    return None if math.isnan(number) else number


def name_arguments(sentence: str, signatures: Sequence[Signature]) -> str:
    """Return a sentence that calls a function's arguments by their names, not by their positions.

    For example, "the fourth argument" becomes "`block_q`".

    Args:
        sentence: The sentence about the function, with phrases of `label`.
        signatures: The signatures of the function; the first one has the names. If there are
            none, the sentence does not change.
    """
    parameters = signatures[0].call if signatures else ()
    for position, parameter in enumerate(parameters):
        sentence = sentence.replace(label(f"args.{position}"), f"`{parameter.name}`")
    return sentence


def expected_arguments(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments by its first signature.

    Returns () for a class, or if there is no signature.
    """
    if not signatures or signatures[0].build is not None:
        return ()
    return tuple(parameter.name for parameter in signatures[0].call)
