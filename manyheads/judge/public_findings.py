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
    always_true_advice,
    call_of_helper,
    definition_fault,
    ineffective_refusal_advice,
    missing_device_advice,
    return_order_advice,
    unused_result_advice,
)
from .describe_wrong_numbers import origin_of_numbers, what_stands_out
from .exception_advice import loop_fault, suggest
from .locate_misconceptions import LocatedMisconception, RepliesByFunction, locate_misconceptions
from .public_calls import PublicReplies, evidence_of, expected_arguments, name_arguments
from .redact_hidden_inputs import Axes, Signatures, axes_of, name_sizes

STUB_ENDS = "the stub's raise"  # The evidence about a left-over raise begins with these words.
NOT_WRONG = ("right", "unseen", "so_far")  # states of functions in which no fault was observed
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
    """Return what the replies to the public calls and their diagnosis show about each function."""
    replies_by_function = RepliesByFunction(replies)
    names = list(dict.fromkeys(map(target_of, replies.dictionary.calls)))  # as they are defined
    failures = {name: _failures_of(name, replies, replies_by_function) for name in names}
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
        name: _choose_failure(name, failures[name], explaining, replies_by_function)
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


@dataclass(frozen=True)
class Failure:
    """The reason why a function fails a visible check.

    Attributes:
        check: The check.
        evidence: What was observed.
        raised: The exception, if there was one.
        advice: The usual repair for the exception; "" if there is none.
        calls: The calls that violate the oracle.
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


def _failures_of(
    name: str, replies: PublicReplies, replies_by_function: RepliesByFunction
) -> list[Failure]:
    """Return the failures of a function, in the order in which the checks were run.

    That is the order of their layers. A check may fail because of several functions, and is then a
    failure of each.
    """
    observations = replies.observations
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
            (ask, calls)
            for ask, calls in groups_of(check, observations)
            if target_of(observations[calls[-1]].call) == name
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
    signatures = replies.signatures.get(name, ())
    forms = [signature.form for signature in signatures]
    advice = return_order_advice(replies.source, name, forms[0]) if forms else ""
    if raised and not advice:
        advice = suggest(replies.source, raised)
    if raised is None:
        evidence = name_arguments(evidence, signatures)
    else:
        advice = joined(call_of_helper(replies.source, name, raised.line or 0), advice)
    wrong_calls = (replies.observations[i] for i in violation.calls)
    is_off_topic, origin = False, ""
    if oracle == "values":
        is_off_topic = any(ask.oracle == "moves" for ask in check.asks)
        origin = next(filter(None, map(origin_of_numbers, wrong_calls)), "")
        origin = name_arguments(origin, signatures)
    return Failure(
        check,
        evidence,
        raised,
        advice,
        violation.calls,
        implied_misconception=violation.ask.means,
        is_off_topic=is_off_topic,
        origin=origin,
    )


def _wrong_functions(
    names: Sequence[str],
    failures: Mapping[str, Sequence[Failure]],
    diagnosis: Diagnosis,
    replies_by_function: RepliesByFunction,
) -> list[str]:
    """Return the functions that fail a visible check, or in which a misconception is seen first.

    A function may pass its visible checks although its answers show a misconception, which then
    breaks the functions that use it. So only the first function with these answers is wrong.
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
    waiting = [check for check in replies.dictionary.visible if check.id not in run_ids]
    asks = (ask for check in waiting for ask in check.asks)
    # The last call of a group is the one that is checked. It is compared with those before it.
    checked_calls = {group[-1] for ask in asks for group in ask.calls}
    return {target_of(replies.dictionary.calls[i]) for i in checked_calls}


def _has_loop_fault(failures: Sequence[Failure], source: Source) -> bool:
    """Return whether the text shows that only one round of a loop reaches a line that raised."""
    return any(failure.raised and loop_fault(source, failure.raised) for failure in failures)


@dataclass(frozen=True)
class FunctionSummary:
    """The observations about one function.

    Attributes:
        name: The function.
        is_asked: Whether it was called.
        is_undefined: Whether the file does not define it.
        is_empty: Whether it was called, and has no code yet.
        is_wrong: Whether it fails a check, or its answers show a misconception.
        stopped_at: The first wrong function, if a further check of this one waits for it; or "".
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
    name: str, replies_by_function: RepliesByFunction, *, is_wrong: bool, stopped_at: str
) -> FunctionSummary:
    """Return the observations about a function, with `is_wrong` and `stopped_at` as given."""
    observations = replies_by_function.observations_of(name)
    exceptions = [observation.reply.raised for observation in observations]
    undefined = [exception for exception in exceptions if exception and is_undefined(exception)]
    return FunctionSummary(
        name,
        is_asked=bool(observations),
        # The message may be about another name: an argument of the call.
        is_undefined=any(exception.message.startswith(f"{name} ") for exception in undefined),
        is_empty=bool(observations) and all(map(says_unwritten, exceptions)),
        is_wrong=is_wrong,
        stopped_at=stopped_at,
        is_class=any(isinstance(observation.call.subject, Build) for observation in observations),
        arguments=expected_arguments(replies_by_function.replies.signatures.get(name, ())),
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
    replies_by_function: RepliesByFunction,
) -> ChosenFailure:
    """Return the failure of a function to show between a misconception's title and its hint.

    The first failure is shown if it ended the process. Otherwise, a failure that shows the
    function's first misconception is best, then one that shows no misconception. If several
    are as good, the earliest layer is best. But if they show the first misconception, one that
    shows where the wrong numbers came from is preferred.
    """
    ids = [misconception.id for misconception in explaining if name in misconception.functions]

    def shows(id_: str, failure: Failure) -> bool:
        is_proven = id_ == failure.implied_misconception or any(
            id_ in replies_by_function.proven_by(i) for i in failure.calls
        )
        return is_proven or replies_by_function.is_seen(id_, failure.calls)

    def rank(failure: Failure) -> tuple[int, bool, int, bool]:
        shown_ids = [id_ for id_ in ids if shows(id_, failure)]
        rank_of_misconception = 1
        if shown_ids:
            rank_of_misconception = 0 if ids[0] in shown_ids else 2
        lacks_origin = rank_of_misconception > 0 or not failure.origin
        return rank_of_misconception, lacks_origin, failure.check.layer, failure.is_off_topic

    # a failure without calls is the end of the process
    failure = min(failures, key=rank) if failures[0].calls else failures[0]
    word, sizes = _word_and_sizes(name, failure, replies_by_function)
    numbers = _about_numbers(failure, replies_by_function.replies, has_misconception=bool(ids))
    evidence = joined(failure.evidence, numbers, word, sizes, failure.advice)
    return ChosenFailure(failure.check.title, evidence, failure.raised)


def _word_and_sizes(
    name: str, failure: Failure, replies_by_function: RepliesByFunction
) -> tuple[str, str]:
    """Return two sentences about a failure with an exception; "" in place of each that is missing.

    The first has the string that the call was given as an argument. The second says which sizes of
    the call are in the exception's message, if shapes do not fit.
    """
    raised, observations = failure.raised, replies_by_function.replies.observations
    raising = (observations[i] for i in failure.calls if observations[i].reply.raised)
    observation = next(raising, None)  # the first call that raised
    if raised is None or observation is None:
        return "", ""
    arguments = (*getattr(observation.call.subject, "args", ()), *observation.call.args)
    # A check may make the call for several words, so the student needs to know which one failed.
    words = (f'That was for "{word}".' for word in arguments if isinstance(word, str))
    sizes = ""
    if is_shape_fault(raised) or "is invalid for input of size" in raised.message:
        calls = [observation, *replies_by_function.observations_of(name)]
        sizes = _sizes_in(raised, calls, replies_by_function.replies.signatures)
    return next(words, ""), sizes


def _about_numbers(failure: Failure, replies: PublicReplies, *, has_misconception: bool) -> str:
    """Return a sentence about the wrong numbers of a failure; "" if nothing stands out in them.

    They may be random, or a parameter may have another name. If the function has a misconception
    with a name, a wrong tensor is not described: only the origin of its numbers is shown.
    """
    if failure.raised:
        return ""
    if not replies.unsteady.isdisjoint(failure.calls):
        return UNSTEADY
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
        if sentence := what_stands_out(actual.tensor, expected):
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
    """Return which sizes of the first call are in the message of its exception; "" if none.

    Other calls of the function that raised on the same line must agree.
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
    """Return the axes of a call by the first signature that fits, or None."""
    shapes = (tensor.shape for tensor in observation.expected_outputs if tensor is not None)
    returned = next(shapes, ())
    for signature in signatures.get(target_of(observation.call), ()):
        if axes := axes_of(signature, observation.call, returned, signatures):
            return axes
    return None


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
        explained: The functions with a misconception. They do not wait for another function.
        source: The attempt's text.
    """
    # if all functions are right, the text need not be read
    if all(summary.is_asked and not summary.is_wrong for summary in summaries):
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
            and not _stopped_before(summary.name, failure.raised, source, blockers)
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
    """Return the functions on which a failure may depend.

    These are the functions that the failing one uses, the name that its exception lacks, and the
    function or class with the line that raised.
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
    """Return the state of a function.

    It is waiting if another wrong function may be the reason of its failure. It is explained if it
    has a misconception.
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
        is_empty = summary.is_empty or (says_unwritten(raised) and not is_explained)
        return "unwritten" if is_empty else "wrong"
    if not summary.is_asked:
        return "unseen"
    return "so_far" if summary.stopped_at else "right"


def _stopped_before(
    name: str, raised: Raised | None, source: Source, blockers: Sequence[str]
) -> bool:
    """Return whether a function raised before it came to use any of the blockers.

    Then its exception does not follow from them.
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
    used_names = {n.id for n in nodes if isinstance(n, ast.Name) and n.lineno <= line}
    return (used_names | source.uses(*used_names)).isdisjoint(blockers)


def _line_of(raised: Raised | None) -> int:
    """Return the line that raised; 0 if it is not known or nothing raised."""
    return (raised and raised.line) or 0


def _contains(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _near(name: str, source: Source, required_names: Sequence[str]) -> str:
    """Return the function of the file that may be meant by an undefined name, or ""."""
    other_names = [defined for defined in source.names_used if defined not in required_names]
    same = [other_name for other_name in other_names if other_name.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, other_names, 1)), "")


def _evidence(
    summary: FunctionSummary, failure: ChosenFailure, source: Source, state: State
) -> str:
    """Return the evidence to show with a state; "" if the state needs none.

    A fault that the text shows is added to the evidence of the failure.
    """
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
    if failure.raised is None:
        explanation = explanation or unused_result_advice(source, summary.name)
        explanation = explanation or always_true_advice(source, summary.name)
    # two LIMITs: one for the message of an exception, one for the rest
    return joined(sanitize(failure.evidence, 2 * LIMIT), explanation)


def _evidence_of_unwritten(name: str, source: Source) -> str:
    """Return which parts of the stub are left in a function with code; "" if none are."""
    if leftover := source.left_over_raise(name):
        position = "below" if leftover.is_below else "above"
        return (
            f"{STUB_ENDS} on line {leftover.line} still stands {position} code of yours: take that "
            "line out once the rest is written"
        )
    methods = source.unwritten_methods(name)
    verb = "are" if len(methods) > 1 else "is"
    return f"its {' and '.join(methods)} {verb} not written yet" if methods else ""
