"""Find the wrong functions from the public replies, and choose the evidence: `attribute`.

`attribution` adds what only the hidden checks show. On a student's machine nothing is added.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from ..box.worker.messages import Build, Raised
from ..checks.explain import (
    LIMIT,
    is_left_open,
    is_shape_fault,
    is_undefined,
    joined,
    kind_of,
    missing_name,
    sanitize,
    says_unwritten,
)
from ..checks.runner import target_of
from ..diagnosis.bank import Diagnosis
from ..diagnosis.fault_dictionary import PublicCheck
from ..diagnosis.observed_reply import ObservedReply, first_of
from ..diagnosis.oracles import Violation, first_broken, groups_of
from ..result import State
from ..submission.source import DEFINITIONS, NO_TEXT, Source
from .definition_faults import (
    definition_fault,
    ineffective_refusal_advice,
    missing_device_advice,
    return_order_advice,
)
from .describe_wrong_numbers import origin_of_numbers, what_stands_out
from .exception_advice import loop_fault, suggest
from .locate_misconceptions import LocatedMisconception, RepliesByFunction, locate_misconceptions
from .public_calls import PublicReplies, arguments_due, evidence_of
from .redact_hidden_inputs import Axes, Signatures, axes_of, name_sizes

STUB_ENDS = "the stub's raise"  # The evidence about a left-over raise begins with these words.
FINE = ("right", "unseen", "so_far")
UNSTEADY = (
    "Asked again with the same inputs, it returned another number: something random is at work"
)


@dataclass(frozen=True)
class FunctionVerdict:
    """The decisions about one function. The fields are those of `FunctionResult`."""

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
    """Return what the public calls show about each function.

    Args:
        replies: The replies to the public calls.
        diagnosis: The misconceptions that they show.
    """
    by_function = RepliesByFunction(replies)
    names = list(dict.fromkeys(map(target_of, replies.dictionary.calls)))  # as they are defined
    failures = {name: _failures_of(name, replies, by_function) for name in names}
    wrong_functions = _wrong_functions(names, failures, diagnosis, by_function)
    first_wrong, not_yet_checked = next(iter(wrong_functions), ""), _not_yet_checked(replies)
    summaries = [
        _summary_of(
            name,
            by_function,
            is_wrong=name in wrong_functions,
            stopped_at=first_wrong if name in not_yet_checked else "",
        )
        for name in names
    ]
    empty = replies.source.unwritten_names
    written_and_wrong = [
        summary.name
        for summary in summaries
        if summary.is_wrong and not summary.is_undefined and summary.name not in empty
    ]
    settled = [name for name in names if _has_loop_fault(failures[name], replies.source)]
    explaining, proved_only = locate_misconceptions(
        diagnosis, written_and_wrong, by_function, settled
    )
    explained = {misconception.function for misconception in (*explaining, *proved_only)}
    chosen = {
        name: _choose_failure(name, failures[name], explaining, by_function)
        for name in names
        if failures[name]
    }
    return Attribution(
        verdicts=verdicts_of(summaries, chosen, explained, replies.source),
        explaining=explaining,
        proved_only=proved_only,
        failures=failures,
    )


@dataclass(frozen=True)
class Failure:
    """The reason why a function fails a visible check.

    Attributes:
        check: The check.
        evidence: What was observed.
        raised: The exception, if there was one.
        advice: The usual repair for the exception; "" if there is none.
        calls: The calls that violate the oracle.
        means: The misconception that the violation implies; "" if it implies none.
        is_beside: Whether the values differ, in a check that is about an edit of the input (oracle
            "moves").
        origin: The sentence of `origin_of_numbers` about a wrong call; "" if there is none.
    """

    check: PublicCheck
    evidence: str
    raised: Raised | None = None
    advice: str = ""
    calls: tuple[int, ...] = ()
    means: str = ""
    is_beside: bool = False
    origin: str = ""


def _failures_of(
    name: str, replies: PublicReplies, by_function: RepliesByFunction
) -> list[Failure]:
    """Return the failures of a function, in the order of their checks' layers.

    A check stops at the first function that fails it, but all of its calls were made.
    """
    observations = replies.observations
    failed = [visible for visible in replies.visible if not visible.passed]
    failures = []
    for visible in sorted(failed, key=lambda visible: visible.check.layer):
        check = visible.check
        if visible.ended is not None and visible.ended_in == name:
            failures.append(Failure(check, visible.evidence_of_end))
            continue
        groups = [
            group
            for group in groups_of(check, observations)
            if target_of(observations[group[1][-1]].call) == name
        ]
        # A student knows which methods are not written yet, so other failures come first.
        groups.sort(
            key=lambda group: any(says_unwritten(observations[i].reply.raised) for i in group[1])
        )
        violation = first_broken(groups, observations)
        if violation is not None:
            failures.append(_failure(name, check, violation, replies))
    return failures


def _failure(
    name: str, check: PublicCheck, violation: Violation, replies: PublicReplies
) -> Failure:
    """Return the failure of a function that violates an oracle of a check."""
    evidence, raised = evidence_of(violation.error, is_shown=not replies.is_graded)
    oracle = violation.ask.oracle
    forms = [signature.form for signature in replies.signatures.get(name, ())]
    advice = return_order_advice(replies.source, name, forms[0]) if forms else ""
    if raised and not advice:
        advice = suggest(replies.source, raised)
    wrong_calls = (replies.observations[i] for i in violation.calls)
    origins = (origin_of_numbers(call) for call in wrong_calls) if oracle == "values" else ()
    return Failure(
        check,
        evidence,
        raised,
        advice,
        violation.calls,
        violation.ask.means,
        is_beside=oracle == "values" and any(ask.oracle == "moves" for ask in check.asks),
        origin=next(filter(None, origins), ""),
    )


def _wrong_functions(
    names: Sequence[str],
    failures: Mapping[str, Sequence[Failure]],
    diagnosis: Diagnosis,
    by_function: RepliesByFunction,
) -> list[str]:
    """Return the functions that fail a visible check, or in which a misconception is seen first.

    A function may pass its visible checks although its answers show a misconception, which then
    breaks the functions that use it.
    """
    diagnosed_functions = set[str]()
    for misconception in diagnosis.named:
        seen_in = (n for n in names if by_function.is_seen(misconception.id, by_function.wrong[n]))
        diagnosed_functions.add(next(seen_in, ""))
    return [name for name in names if failures[name] or name in diagnosed_functions]


def _not_yet_checked(replies: PublicReplies) -> set[str]:
    """Return the functions of late checks that were not run.

    A late check runs only if all checks before it pass. Until then, its functions are right only so
    far.
    """
    run_check_ids = {visible.check.id for visible in replies.visible}
    asks = (
        ask
        for check in replies.dictionary.visible
        if check.id not in run_check_ids
        for ask in check.asks
    )
    # The last call of a group is the one that is checked. It is compared with those before it.
    checked_calls = {group[-1] for ask in asks for group in ask.calls}
    return {target_of(replies.dictionary.calls[i]) for i in checked_calls}


def _has_loop_fault(failures: Sequence[Failure], source: Source) -> bool:
    """Return whether the text shows that only one round of a loop reaches a line that raised."""
    exceptions = [failure.raised for failure in failures if failure.raised]
    return any(loop_fault(source, raised) for raised in exceptions)


@dataclass(frozen=True)
class FunctionSummary:
    """The observations about one function.

    Attributes:
        name: The function.
        is_asked: Whether it was called.
        is_undefined: Whether the file does not define it.
        is_empty: Whether it was called, and has no code yet.
        is_wrong: Whether it fails a check, or its answers show a misconception.
        stopped_at: The first wrong function, if it stopped a check that tests this one further.
        is_class: Whether the exercise asks for a class.
        arguments: The names of the arguments in the exercise, if they are known.
    """

    name: str
    is_asked: bool = False
    is_undefined: bool = False
    is_empty: bool = False
    is_wrong: bool = False
    stopped_at: str = ""
    is_class: bool = False
    arguments: tuple[str, ...] = ()


def _summary_of(
    name: str, by_function: RepliesByFunction, *, is_wrong: bool, stopped_at: str
) -> FunctionSummary:
    observations = by_function.observations_of(name)
    raised = [observation.reply.raised for observation in observations]
    return FunctionSummary(
        name,
        is_asked=bool(observations),
        # Another name may be undefined, too: an argument of the call.
        is_undefined=any(
            r and is_undefined(r) and r.message.startswith(f"{name} ") for r in raised
        ),
        is_empty=bool(observations) and all(map(says_unwritten, raised)),
        is_wrong=is_wrong,
        stopped_at=stopped_at,
        is_class=any(isinstance(observation.call.subject, Build) for observation in observations),
        arguments=arguments_due(by_function.replies.signatures.get(name, ())),
    )


@dataclass(frozen=True)
class ChosenFailure:
    """The failure of a function that is shown, with its evidence in full.

    Attributes:
        check: The title of the check.
        evidence: The observation, with a sentence about wrong numbers and the usual repair.
        raised: The exception, if there was one.
    """

    check: str
    evidence: str
    raised: Raised | None = None


NO_FAILURE = ChosenFailure("", "")


def _choose_failure(
    name: str,
    failures: Sequence[Failure],
    explaining: Sequence[LocatedMisconception],
    by_function: RepliesByFunction,
) -> ChosenFailure:
    """Return the failure to show between a misconception's title and its hint.

    The first of this list: the one that ended the process; one that shows the first misconception
    of the function; one that shows no misconception; any other. If several show the first
    misconception, one that shows where the wrong numbers came from is preferred.

    Args:
        name: The function.
        failures: Its failures; at least one.
        explaining: The misconceptions that explain the replies.
        by_function: The replies of the attempt.
    """
    ids = [misconception.id for misconception in explaining if name in misconception.functions]

    def shows(id_: str, failure: Failure) -> bool:
        is_proven = id_ == failure.means or any(
            id_ in by_function.proven_by(i) for i in failure.calls
        )
        return is_proven or by_function.is_seen(id_, failure.calls)

    def rank(failure: Failure) -> tuple[int, bool, int, bool]:
        shown_ids = [id_ for id_ in ids if shows(id_, failure)]
        preference = 2 * (ids[0] not in shown_ids) if shown_ids else 1
        lacks_origin = preference > 0 or not failure.origin
        return preference, lacks_origin, failure.check.layer, failure.is_beside

    failure = min(failures, key=rank) if failures[0].calls else failures[0]
    word, sizes = _word_and_sizes(name, failure, by_function)
    stands_out = _what_stands_out(failure, by_function.replies, has_name=bool(ids))
    evidence = joined(failure.evidence, stands_out, word, sizes, failure.advice)
    return ChosenFailure(failure.check.title, evidence, failure.raised)


def _word_and_sizes(name: str, failure: Failure, by_function: RepliesByFunction) -> tuple[str, str]:
    """Return the word that a call which raised was given, and the sizes that its message names.

    Sizes are named only if shapes do not fit.
    """
    raised, observations = failure.raised, by_function.replies.observations
    raising = (observations[i] for i in failure.calls if observations[i].reply.raised)
    observation = next(raising, None)
    if raised is None or observation is None:
        return "", ""
    arguments = (*getattr(observation.call.subject, "args", ()), *observation.call.args)
    # A check may make the call for several words.
    words = (f'That was for "{word}".' for word in arguments if isinstance(word, str))
    sizes = ""
    if is_shape_fault(raised) or "is invalid for input of size" in raised.message:
        calls = [observation, *by_function.observations_of(name)]
        sizes = _sizes_in(raised, calls, by_function.replies.signatures)
    return next(words, ""), sizes


def _what_stands_out(failure: Failure, replies: PublicReplies, *, has_name: bool) -> str:
    """Return what stands out in the wrong numbers of a call; "" if nothing does.

    For a tensor whose mistake has a name, only where its numbers came from.
    """
    if failure.raised:
        return ""
    if not replies.unsteady.isdisjoint(failure.calls):
        return UNSTEADY
    if not any(says in failure.evidence for says in ("values differ", "a single number")):
        return ""
    for observation in (replies.observations[i] for i in failure.calls):
        if sentence := _renamed_parameter(observation):
            return sentence
        actual = next(iter(observation.reply.outputs), None)
        expected = first_of(observation.expected_outputs)
        if actual is None or actual.tensor is None or expected is None:
            continue
        if has_name and expected.dim():
            continue
        if sentence := what_stands_out(actual.tensor, expected):
            return sentence
    return failure.origin


def _renamed_parameter(observation: ObservedReply) -> str:
    """Return which expected parameter a module lacks, and which extra one has the same shape.

    Only the first missing parameter is considered, weights before biases. Returns "" if no
    parameter is missing, or no extra one has its shape.
    """
    expected, actual = observation.expected.parameters, observation.actual.parameters
    missing = sorted(
        expected.keys() - actual.keys(), key=lambda name: (name.endswith("bias"), name)
    )
    if not missing:
        return ""
    first_missing, extra = missing[0], sorted(actual.keys() - expected.keys())
    same_shape = [name for name in extra if actual[name] == expected[first_missing]]
    if not same_shape:
        return ""
    return sanitize(f"It has no parameter {first_missing}, and has {same_shape[0]}")


def _sizes_in(raised: Raised, calls: Sequence[ObservedReply], signatures: Signatures) -> str:
    """Return which sizes of the first call are in the message of its exception; "" if none.

    Other calls that raised on the same line must agree.
    """
    messages: list[tuple[Axes | None, str]] = []
    for observation in calls:
        exception = observation.reply.raised
        if exception is not None and exception.line == raised.line:
            messages.append((_axes_of_call(observation, signatures), exception.message))
    first_axes, _ = messages[0]
    if not first_axes:
        return ""
    sizes = name_sizes([(axes, message) for axes, message in messages if axes])
    return f"{sizes}." if sizes else ""


def _axes_of_call(observation: ObservedReply, signatures: Signatures) -> Axes | None:
    """Return the axes of a call by the first signature that fits, or None."""
    shapes = (tensor.shape for tensor in observation.expected_outputs if tensor is not None)
    returned = next(shapes, ())
    listed = signatures.get(target_of(observation.call), ())
    fitting = (axes_of(s, observation.call, returned, signatures) for s in listed)
    return next(filter(None, fitting), None)


def verdicts_of(
    summaries: Sequence[FunctionSummary],
    chosen: Mapping[str, ChosenFailure],
    explained: Collection[str],
    source: Source,
) -> tuple[FunctionVerdict, ...]:
    """Return the verdict on each function, in the order of the file.

    Args:
        summaries: The observations about each function, in the order of the file.
        chosen: The failure to show of each function that has one.
        explained: The functions with a misconception. Their failures do not follow from other
            functions alone.
        source: The attempt's text.
    """
    # if all functions are right, the text need not be read
    if all(summary.is_asked and not summary.is_wrong for summary in summaries):
        source = NO_TEXT
    verdicts: dict[str, FunctionVerdict] = {}
    for summary in summaries:
        failure = chosen.get(summary.name, NO_FAILURE)
        needed = _needed_by(summary, failure, source)
        blockers = [n for n in verdicts if n in needed and verdicts[n].state not in FINE]
        is_explained = summary.name in explained
        is_waiting = (
            bool(blockers)
            and not is_explained
            and not _stopped_before(summary.name, failure.raised, source, blockers)
        )
        state = _state(summary, failure, source, is_waiting=is_waiting, is_explained=is_explained)
        waits_for = {"waiting": next(iter(blockers), ""), "so_far": summary.stopped_at}
        near = ""
        if state == "undefined":
            near = _near(summary.name, source, [s.name for s in summaries])
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
    """Return the functions on which a failure may depend."""
    line = _line_of(failure.raised)
    definitions = [s for s in source.statements if isinstance(s, DEFINITIONS)]
    raised_in = {definition.name for definition in definitions if _holds(definition, line)}
    return {*source.uses(summary.name), missing_name(failure.raised), *raised_in}


def _state(
    summary: FunctionSummary,
    failure: ChosenFailure,
    source: Source,
    *,
    is_waiting: bool,
    is_explained: bool,
) -> State:
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
        is_empty = summary.is_empty or (says_unwritten(raised) and not is_explained)
        return "unwritten" if is_empty else "wrong"
    if not summary.is_asked:
        return "unseen"
    return "so_far" if summary.stopped_at else "right"


def _stopped_before(
    name: str, raised: Raised | None, source: Source, blockers: Sequence[str]
) -> bool:
    """Return whether a function raised before it came to use any of these.

    Then its exception does not follow from them.
    """
    if raised and (error_kind := kind_of(raised)) and error_kind.at_call:
        return True
    line, definition = _line_of(raised), source.definitions.get(name)
    if (
        not isinstance(definition, ast.FunctionDef)
        or missing_name(raised)
        or not _holds(definition, line)
    ):
        return False
    nodes = [node for statement in definition.body for node in ast.walk(statement)]
    if any(isinstance(node, ast.For | ast.While) and _holds(node, line) for node in nodes):
        return False  # it may have used them in an earlier round
    used_names = {n.id for n in nodes if isinstance(n, ast.Name) and n.lineno <= line}
    return (used_names | source.uses(*used_names)).isdisjoint(blockers)


def _line_of(raised: Raised | None) -> int:
    return (raised and raised.line) or 0


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _near(name: str, source: Source, required_names: Sequence[str]) -> str:
    """Return the function of the file that may be meant by a name; "" if there is none."""
    other_names = [defined for defined in source.names_used if defined not in required_names]
    same = [other_name for other_name in other_names if other_name.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, other_names, 1)), "")


def _evidence(
    summary: FunctionSummary, failure: ChosenFailure, source: Source, state: State
) -> str:
    """Return the evidence to show with a state; "" if the state needs none."""
    if state == "unwritten":
        return _evidence_of_unwritten(summary.name, source)
    if state not in ("wrong", "waiting"):
        return ""
    explanation = definition_fault(
        source, summary.name, failure.raised, summary.arguments, is_class=summary.is_class
    )
    if "device" in failure.evidence:  # the message mentions the device
        explanation = explanation or missing_device_advice(source, summary.name)
    explanation = explanation or ineffective_refusal_advice(source, summary.name)
    # two LIMITs: one for the message of an exception, one for the rest
    return joined(sanitize(failure.evidence, 2 * LIMIT), explanation)


def _evidence_of_unwritten(name: str, source: Source) -> str:
    """Return which parts of the stub are left beside the student's code; "" if none are."""
    if leftover := source.left_over_raise(name):
        position = "below" if leftover.is_below else "above"
        return (
            f"{STUB_ENDS} on line {leftover.line} still stands {position} code of yours: take that "
            "line out once the rest is written"
        )
    methods = source.unwritten_methods(name)
    verb = "are" if len(methods) > 1 else "is"
    return f"its {' and '.join(methods)} {verb} not written yet" if methods else ""
