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
from ..diagnosis.observe import Observed
from ..diagnosis.recording import RecordedCondition, Recording
from ..result import CheckResult
from .require_answer import Asked, expect_something


def without_unmet_conditions(
    recording: Recording,
    attempt: Runner,
    checks: Sequence[CheckResult],
    seen: Mapping[int, Observed],
    wrong: Collection[str],
) -> list[CheckResult]:
    """Return the checks' results, without the passes of those that ask a function whose conditions
    are not met.

    seen: the answers to recorded calls. wrong: the functions that give a wrong answer somewhere; a
    right one is asked nothing more.
    """
    calls = {check.id: check.asked for check in recording.visible}
    asked = {
        id_: {target_of(recording.calls[i]) for i in indices} for id_, indices in calls.items()
    }
    passed = [check for check in checks if check.outcome == "passed"]
    needed = {function for check in passed for function in asked[check.id] if function in wrong}
    unmet = {
        function: why
        for function in sorted(needed)
        if (why := _unmet(recording, attempt, function, seen))
    }

    def held_to(check: CheckResult) -> CheckResult:
        function = next((name for name in asked[check.id] if name in unmet), "")
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
    recording: Recording, attempt: Runner, function: str, seen: Mapping[int, Observed]
) -> str:
    """Return why a function does not meet its conditions, "" if it does."""
    conditions = [condition for condition in recording.conditions if condition.function == function]
    try:
        for condition in conditions:
            if condition.rule == "answers":
                _expect_answers(condition, attempt, seen)
        others = [
            _judged(condition, each, attempt)
            for condition in conditions
            if (each := condition.rule) != "answers"
        ]
        return first_unmet(others)
    except AttemptRaised as error:
        return describe_exception(error.raised, error.due)
    except (CheckFailed, AttemptEnded) as error:
        return str(error)


def _judged(condition: RecordedCondition, rule: Rule, attempt: Runner) -> Judged:
    answer = Implementation(attempt).ask(condition.calls[0])
    asked = Condition(rule, answer, condition.message, condition.left_out, condition.least)
    return judged_beside_numbers(asked, condition.expected[0])


def _expect_answers(
    condition: RecordedCondition, attempt: Runner, seen: Mapping[int, Observed]
) -> None:
    """Fail where the function says nothing, as `require_answer` does in grading."""
    rights = tuple(_reply_with(tensor) for tensor in condition.expected)
    if len(condition.calls) > 1:
        answers = [(attempt.execute(condition.calls[0]), rights[0])]
    else:  # a function that is given sizes alone: its answers to several sizes are held together
        answers = list(_answers_of(condition.function, seen))
    asked = Asked(condition.calls, rights, tuple(answers))
    if not all(has_numbers(mine) for mine, _ in answers) or not asked.is_right:
        expect_something(Implementation(attempt), condition.function, asked)


def _answers_of(function: str, seen: Mapping[int, Observed]) -> Iterator[tuple[Reply, Reply]]:
    for observed in seen.values():
        expected = observed.expected[0] if observed.expected else None
        if (
            target_of(observed.call) == function
            and expected is not None
            and has_numbers(observed.reply)
        ):
            yield observed.reply, _reply_with(expected)


def _reply_with(tensor: Tensor) -> Reply:
    return Reply(outputs=(Output("tensor", tensor, shape=tuple(tensor.shape)),))
