"""Put the recorded conditions to an attempt: on a student's machine, too, an empty answer earns no
points of form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.worker.answers import Output, Reply
from ..checks.answer import has_numbers
from ..checks.conditions import Condition, Judged, Rule, first_unmet, judged_beside_numbers
from ..checks.explain import describe_exception
from ..checks.implementation import Implementation, Runner
from ..checks.outcome import AttemptRaised, CheckFailed
from ..checks.transcript import target_of
from ..diagnosis.observe import ObservedReply
from ..diagnosis.recording import FaultDictionary, RecordedCondition
from ..result import CheckResult
from .require_answer import Asked, require_nontrivial


def without_unmet_conditions(
    recording: FaultDictionary,
    attempt: Runner,
    checks: Sequence[CheckResult],
    observations: Mapping[int, ObservedReply],
    wrong_functions: Collection[str],
) -> list[CheckResult]:
    """Return the checks' results, without the passes of those that ask a function whose conditions
    are not met.

    observations: the answers to recorded calls. wrong_functions: the functions that give a wrong
    answer somewhere; a right one is asked nothing more.
    """
    calls = {check.id: check.all_calls for check in recording.visible}
    targets = {
        id_: {target_of(recording.calls[i]) for i in indices} for id_, indices in calls.items()
    }
    passed = [check for check in checks if check.outcome == "passed"]
    needed = {
        function
        for check in passed
        for function in targets[check.id]
        if function in wrong_functions
    }
    unmet = {
        function: why
        for function in sorted(needed)
        if (why := _unmet(recording, attempt, function, observations))
    }

    def held_to(check: CheckResult) -> CheckResult:
        function = next((name for name in targets[check.id] if name in unmet), "")
        if check.outcome != "passed" or not function:
            return check
        return check.model_copy(
            update={
                "outcome": "failed",
                "score": 0.0,
                "evidence": unmet[function],
                "function": function,
            }
        )

    return [held_to(check) for check in checks]


def _unmet(
    recording: FaultDictionary,
    attempt: Runner,
    function: str,
    observations: Mapping[int, ObservedReply],
) -> str:
    """Return why a function does not meet its conditions, "" if it does."""
    conditions = [condition for condition in recording.conditions if condition.function == function]
    try:
        for condition in conditions:
            if condition.rule == "answers":
                _expect_answers(condition, attempt, observations)
        judgements = [
            _judged(condition, rule, attempt)
            for condition in conditions
            if (rule := condition.rule) != "answers"
        ]
        return first_unmet(judgements)
    except AttemptRaised as error:
        return describe_exception(error.raised, error.due)
    except (CheckFailed, AttemptEnded) as error:
        return str(error)


def _judged(condition: RecordedCondition, rule: Rule, attempt: Runner) -> Judged:
    answer = Implementation(attempt).ask(condition.calls[0])
    actual = Condition(rule, answer, condition.message, condition.left_out, condition.least)
    return judged_beside_numbers(actual, condition.expected[0])


def _expect_answers(
    condition: RecordedCondition, attempt: Runner, observations: Mapping[int, ObservedReply]
) -> None:
    """Fail where the function says nothing, as `require_answer` does in grading."""
    rights = tuple(_reply_with(tensor) for tensor in condition.expected)
    if len(condition.calls) > 1:
        answers = [(attempt.execute(condition.calls[0]), rights[0])]
    else:  # a function that is given sizes alone: its answers to several sizes are held together
        answers = list(_answers_of(condition.function, observations))
    probe = Asked(condition.calls, rights, tuple(answers))
    if not all(has_numbers(actual) for actual, _ in answers) or not probe.is_right:
        require_nontrivial(Implementation(attempt), condition.function, probe)


def _answers_of(
    function: str, observations: Mapping[int, ObservedReply]
) -> Iterator[tuple[Reply, Reply]]:
    for observed in observations.values():
        expected = observed.expected_outputs[0] if observed.expected_outputs else None
        if (
            target_of(observed.call) == function
            and expected is not None
            and has_numbers(observed.reply)
        ):
            yield observed.reply, _reply_with(expected)


def _reply_with(tensor: Tensor) -> Reply:
    return Reply(outputs=(Output("tensor", tensor, shape=tuple(tensor.shape)),))
