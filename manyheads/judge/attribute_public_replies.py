"""Decide from the public replies which functions are wrong, and why: `attribute`.

The result has a verdict on each function, and each misconception with its function. In grading,
`attribution` adds the faults that only hidden checks show.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from ..box.worker.messages import Build, Raised
from ..checks.explain_exceptions import (
    LIMIT,
    is_left_open,
    is_undefined,
    join_sentences,
    kind_of,
    missing_name,
    sanitize,
    says_unwritten,
)
from ..checks.runner import target_of
from ..diagnosis.bank import Diagnosis
from ..result import State
from ..submission.source import DEFINITIONS, NO_TEXT, Source
from .choose_failure_of_visible_checks import (
    NO_FAILURE,
    ChosenFailure,
    Failure,
    choose_failure,
    failures_of,
)
from .definition_faults import (
    always_true_advice,
    definition_fault,
    ineffective_refusal_advice,
    missing_device_advice,
    unused_result_advice,
)
from .exception_advice import loop_fault
from .locate_misconceptions import LocatedMisconception, RepliesByFunction, locate_misconceptions
from .public_calls import PublicReplies, expected_arguments
from .slips_in_function_text import slip_behind_answer

STUBS_RAISE = "the stub's raise"  # The evidence about a left-over raise begins with these words.
NOT_WRONG = ("right", "unseen", "so_far")  # states of functions in which no fault was observed


@dataclass(frozen=True)
class FunctionVerdict:
    """The verdict on one function, before its evidence names cells and locations of the attempt.

    The fields mean the same as in `FunctionResult`, which `attribution.function_result` makes.
    """

    name: str
    state: State
    waits_for: str = ""
    check: str = ""
    evidence: str = ""
    near: str = ""


@dataclass(frozen=True)
class Attribution:
    """The findings from the public calls, each attributed to a function.

    Attributes:
        verdicts: The verdict on each function.
        explaining: The misconceptions that explain the replies.
        proved_only: Misconceptions that are proved and do not explain the wrong values.
        failures: For each function, its failures of visible checks.
    """

    verdicts: Sequence[FunctionVerdict] = ()
    explaining: Sequence[LocatedMisconception] = ()
    proved_only: Sequence[LocatedMisconception] = ()
    failures: Mapping[str, Sequence[Failure]] = field(default_factory=dict)


def attribute(replies: PublicReplies, diagnosis: Diagnosis) -> Attribution:
    """Return the verdict on each function, and the misconceptions with their functions.

    The functions are in the order of the exercise. A misconception of a function that is "unrun" is
    not in `explaining`.

    Args:
        replies: The replies to the public calls.
        diagnosis: The misconceptions that the replies show, without functions.
    """
    replies_by_function = RepliesByFunction(replies)
    # recorded calls are in the order in which the solution defines their functions
    names = list(dict.fromkeys(map(target_of, replies.dictionary.calls)))
    failures = {name: failures_of(name, replies) for name in names}
    wrong_functions = _wrong_functions(names, failures, diagnosis, replies_by_function)
    first_wrong = next(iter(wrong_functions), "")
    not_yet_checked = _not_yet_checked(replies)
    summaries = [
        _summary_of(
            name,
            replies_by_function,
            is_wrong=name in wrong_functions,
            stopped_at=first_wrong if name in not_yet_checked else "",
        )
        for name in names
    ]
    defined_and_wrong = [s.name for s in summaries if s.is_wrong and not s.is_undefined]
    unwritten_names = replies.source.unwritten_names
    written_and_wrong = [name for name in defined_and_wrong if name not in unwritten_names]
    shown_by_text = [name for name in names if _has_loop_fault(failures[name], replies.source)]
    explaining, proved_only = locate_misconceptions(
        diagnosis, written_and_wrong, replies_by_function, shown_by_text
    )
    explained = {misconception.function for misconception in (*explaining, *proved_only)}
    chosen = {
        name: choose_failure(name, failures[name], explaining, replies_by_function)
        for name in names
        if failures[name]
    }
    verdicts = verdicts_of(summaries, chosen, explained, replies.source)
    unrun = {verdict.name for verdict in verdicts if verdict.state == "unrun"}
    return Attribution(
        verdicts=verdicts,
        explaining=[m for m in explaining if m.function not in unrun],
        proved_only=proved_only,
        failures=failures,
    )


def _wrong_functions(
    names: Sequence[str],
    failures: Mapping[str, Sequence[Failure]],
    diagnosis: Diagnosis,
    replies_by_function: RepliesByFunction,
) -> list[str]:
    """Return the functions that fail a visible check, or in which a misconception is seen first.

    Only misconceptions of `diagnosis.named` count. A function may pass its visible checks although
    its answers show a misconception, which then breaks the functions that use it. So only the
    first function with these answers is wrong.
    """
    diagnosed_functions = set[str]()
    for misconception in diagnosis.named:
        functions_with_it = (
            name
            for name in names
            if replies_by_function.is_seen(misconception.id, replies_by_function.wrong[name])
        )
        diagnosed_functions.add(next(functions_with_it, ""))
    return [name for name in names if failures[name] or name in diagnosed_functions]


def _not_yet_checked(replies: PublicReplies) -> set[str]:
    """Return the functions of visible checks that were not run.

    Some checks run only if all others pass. Until then, their functions are right only so far.
    """
    run_ids = {visible.check.id for visible in replies.visible}
    not_run = [check for check in replies.dictionary.visible if check.id not in run_ids]
    oracle_uses = (oracle_use for check in not_run for oracle_use in check.oracle_uses)
    # The last call of a group is the one that is checked. It is compared with those before it.
    checked_calls = {group[-1] for oracle_use in oracle_uses for group in oracle_use.calls}
    return {target_of(replies.dictionary.calls[i]) for i in checked_calls}


def _has_loop_fault(failures: Sequence[Failure], source: Source) -> bool:
    """Return whether the text shows that only one round of a loop reaches a line that raised."""
    return any(failure.raised and loop_fault(source, failure.raised) for failure in failures)


@dataclass(frozen=True)
class FunctionSummary:
    """The observations about one function.

    Attributes:
        name: The function.
        is_called: Whether it was called.
        is_undefined: Whether a call says that the file does not define it.
        is_empty: Whether it was called, and each call says that it is an empty stub.
        is_wrong: Whether it fails a check, or its answers show a misconception.
        stopped_at: The first wrong function, if a further check of this one waits for it; or "".
        is_class: Whether the exercise asks for a class. False if it was not called.
        arguments: The names of the arguments in the exercise, if they are known.
    """

    name: str
    is_called: bool = False
    is_undefined: bool = False
    is_empty: bool = False
    is_wrong: bool = False
    stopped_at: str = ""
    is_class: bool = False
    arguments: tuple[str, ...] = ()


def _summary_of(
    name: str, replies_by_function: RepliesByFunction, *, is_wrong: bool, stopped_at: str
) -> FunctionSummary:
    """Return the observations about a function, with `is_wrong` and `stopped_at` as given."""
    observations = replies_by_function.observations_of(name)
    exceptions = [observation.reply.raised for observation in observations]
    undefined = [exception for exception in exceptions if exception and is_undefined(exception)]
    return FunctionSummary(
        name,
        is_called=bool(observations),
        # The message may be about another name: an argument of the call.
        is_undefined=any(exception.message.startswith(f"{name} ") for exception in undefined),
        is_empty=bool(observations) and all(map(says_unwritten, exceptions)),
        is_wrong=is_wrong,
        stopped_at=stopped_at,
        is_class=any(isinstance(observation.call.subject, Build) for observation in observations),
        arguments=expected_arguments(replies_by_function.replies.signatures.get(name, ())),
    )


def verdicts_of(
    summaries: Sequence[FunctionSummary],
    chosen: Mapping[str, ChosenFailure],
    explained: Collection[str],
    source: Source,
) -> tuple[FunctionVerdict, ...]:
    """Return the verdict on each function, in the order of the summaries.

    A function waits for the first earlier function that has a fault and on which its failure may
    depend. It does not wait if it has a misconception, or if it raised before it used any such
    function.

    An undefined function of a running notebook is "unrun", because its cell may not have run. If
    another function of the notebook has a similar name, it is "undefined".

    Args:
        summaries: The observations about each function, in the order of the exercise.
        chosen: The failure to show of each function that has one.
        explained: The functions with a misconception.
        source: The attempt's text.
    """
    # Parsing the text takes time, and it adds nothing if all functions are right.
    if all(summary.is_called and not summary.is_wrong for summary in summaries):
        source = NO_TEXT
    verdicts: dict[str, FunctionVerdict] = {}
    for summary in summaries:
        failure = chosen.get(summary.name, NO_FAILURE)
        needed = _needed_by(summary, failure, source)
        blockers = [n for n in verdicts if n in needed and verdicts[n].state not in NOT_WRONG]
        is_explained = summary.name in explained
        is_waiting = (
            bool(blockers)
            and not is_explained
            and not _raised_before_use(summary.name, failure.raised, source, blockers)
        )
        state = _state(summary, failure, source, is_waiting=is_waiting, is_explained=is_explained)
        waits_for = {"waiting": next(iter(blockers), ""), "so_far": summary.stopped_at}
        near = ""
        if state == "undefined":
            near = _near(summary.name, source, [s.name for s in summaries])
            if source.from_kernel and not near:
                state = "unrun"
        verdicts[summary.name] = FunctionVerdict(
            name=summary.name,
            state=state,
            waits_for=waits_for.get(state, ""),
            check=failure.check if state in ("wrong", "waiting") else "",
            evidence=_evidence(summary, failure, source, state),
            near=near,
        )
    return tuple(verdicts.values())


def _needed_by(summary: FunctionSummary, failure: ChosenFailure, source: Source) -> set[str]:
    """Return the names on which the failure of a function may depend.

    These are the functions and classes that it uses, the name that its exception reports as missing
    ("" if it reports none), and the function or class that contains the line that raised.
    """
    line = _line_of(failure.raised)
    definitions = [s for s in source.statements if isinstance(s, DEFINITIONS)]
    raised_in = {definition.name for definition in definitions if _contains(definition, line)}
    return {*source.uses(summary.name), missing_name(failure.raised), *raised_in}


def _state(
    summary: FunctionSummary,
    failure: ChosenFailure,
    source: Source,
    *,
    is_waiting: bool,
    is_explained: bool,
) -> State:
    """Return the state of a function: the first of these that holds.

    1. "undefined": the file does not define it.
    2. "unwritten": it has no content. Or it is wrong, and a `raise` of the stub was reached beside
       the student's code.
    3. If it is wrong: "waiting" if it waits. Otherwise "unwritten" if each call says so, or if the
       failure says so and no misconception explains the function. Otherwise "wrong".
    4. "unseen": it was not called.
    5. "so_far": a visible check of the function was not run yet, because another function is wrong.
    6. "right".

    Args:
        summary: The observations about the function.
        failure: The failure to show, or NO_FAILURE.
        source: The attempt's text.
        is_waiting: Whether an earlier function with a fault may be the reason of its failure.
        is_explained: Whether it has a misconception.
    """
    raised = failure.raised
    if summary.is_undefined:
        return "undefined"
    if summary.name in source.unwritten_names:
        return "unwritten"
    if summary.is_wrong and is_left_open(raised) and source.left_over_raise(summary.name):
        return "unwritten"
    if summary.is_wrong:
        if is_waiting:
            return "waiting"
        is_unwritten = summary.is_empty or (says_unwritten(raised) and not is_explained)
        return "unwritten" if is_unwritten else "wrong"
    if not summary.is_called:
        return "unseen"
    return "so_far" if summary.stopped_at else "right"


def _raised_before_use(
    name: str, raised: Raised | None, source: Source, blockers: Sequence[str]
) -> bool:
    """Return whether a function raised before it used any of the blockers.

    Then its exception does not follow from them. Return True if the call itself was refused. Names
    on the line that raised count as used. Return False if the text cannot show this: `name` is a
    class, the exception reports a missing name, or it was raised in another function or in a loop.
    """
    error_kind = kind_of(raised) if raised else None
    if error_kind and error_kind.at_call:  # the call itself was refused
        return True
    line, definition = _line_of(raised), source.definitions.get(name)
    if (
        not isinstance(definition, ast.FunctionDef)
        or missing_name(raised)
        or not _contains(definition, line)
    ):
        return False
    nodes = [node for statement in definition.body for node in ast.walk(statement)]
    if any(isinstance(node, ast.For | ast.While) and _contains(node, line) for node in nodes):
        return False  # it may have used a blocker in an earlier round
    names_above = {n.id for n in nodes if isinstance(n, ast.Name) and n.lineno <= line}
    return (names_above | source.uses(*names_above)).isdisjoint(blockers)


def _line_of(raised: Raised | None) -> int:
    """Return the line that raised; 0 if it is not known or nothing raised."""
    return (raised and raised.line) or 0


def _contains(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _near(name: str, source: Source, required_names: Sequence[str]) -> str:
    """Return the function of the file that may be meant by an undefined name, or "".

    A name that differs only in upper and lower case comes first. A function that the exercise asks
    for is never meant.
    """
    other_names = [defined for defined in source.definitions if defined not in required_names]
    same = [other_name for other_name in other_names if other_name.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, other_names, 1)), "")


def _evidence(
    summary: FunctionSummary, failure: ChosenFailure, source: Source, state: State
) -> str:
    """Return the evidence to show with a state; "" if the state needs none.

    For "unwritten" it is the rest of the stub. For "wrong" and "waiting" it is the evidence of the
    failure, with the first fault that the text shows. Some faults are only looked for if the
    evidence mentions the device, or if there was no exception.
    """
    if state == "unwritten":
        return _evidence_of_unwritten(summary.name, source)
    if state not in ("wrong", "waiting"):
        return ""
    explanation = definition_fault(
        source, summary.name, failure.raised, summary.arguments, is_class=summary.is_class
    )
    if "device" in failure.evidence:
        explanation = explanation or missing_device_advice(source, summary.name)
    explanation = explanation or ineffective_refusal_advice(source, summary.name)
    if failure.raised is None:
        explanation = explanation or unused_result_advice(source, summary.name)
        explanation = explanation or always_true_advice(source, summary.name)
        explanation = explanation or slip_behind_answer(
            source.definition(summary.name), failure.evidence
        )
    # The message of an exception may take one LIMIT, and the rest another one.
    return join_sentences(sanitize(failure.evidence, 2 * LIMIT), explanation)


def _evidence_of_unwritten(name: str, source: Source) -> str:
    """Return a sentence about the parts of the stub that are left in a function with code, or "".

    The sentence is about a left-over `raise`, or else about the methods of a class that are not
    written.
    """
    if leftover := source.left_over_raise(name):
        position = "below" if leftover.is_below else "above"
        return (
            f"{STUBS_RAISE} on line {leftover.line} still stands {position} code of yours: take "
            "that line out once the rest is written"
        )
    methods = source.unwritten_methods(name)
    verb = "are" if len(methods) > 1 else "is"
    return f"its {' and '.join(methods)} {verb} not written yet" if methods else ""
