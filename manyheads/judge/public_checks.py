"""Put the public calls of an exercise to an attempt, and report what its answers show.

The report has the results of the visible checks, the state of each function, and the
misconceptions.
`course check` and `course grade` make the same calls in the same order, and report the answers
alike.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from ..box.connection import AttemptEnded, End
from ..box.worker.messages import Build, Raised, Reply
from ..checks.explain import (
    describe_exception,
    is_shape_fault,
    is_undefined,
    joined,
    kind_of,
    sanitize,
    says_unwritten,
)
from ..checks.hidden_check import AttemptRaised, CheckFailed, CheckOutcome
from ..checks.runner import LocalRecordingRunner, target_of
from ..course import Exercise
from ..course.signatures import Signature
from ..diagnosis.bank import NOTHING, Bank, Diagnosis, named, naming
from ..diagnosis.diagnose import diagnose
from ..diagnosis.evidence import UNREGISTERED, proven_by_answer
from ..diagnosis.fault_dictionary import FaultDictionary, PublicCheck, Response, differs
from ..diagnosis.nondeterminism import proven_by_chance
from ..diagnosis.observed_reply import ObservedReply, first_of, observed, settled
from ..diagnosis.oracles import first_broken, groups_of
from ..result import CheckResult, Diagnosed, FunctionResult, Outcome, ProvedLine
from ..submission.source import INTERFACE, UNTOUCHED, Source
from .attempt_runner import AttemptRunner
from .describe_wrong_numbers import what_stands_out
from .exception_advice import loop_fault, suggest
from .function_states import (
    FunctionSummary,
    in_another_order,
    returned_in_another_order,
    states_of,
)
from .nontrivial_answers import without_unmet_conditions
from .redact_hidden_inputs import Axes, Signatures, axes_of, name_sizes

# For each misconception, those that follow from it in the same function. If forward makes a layer,
# or the module does not own it, the layer stays float32 and on the CPU when the module is moved.
CONSEQUENCES: Mapping[str, Set[str]] = {UNREGISTERED: {"hard_coded_dtype", "hard_coded_device"}}
UNSTEADY = (
    "Asked again with the same inputs, it returned another number: something random is at work"
)


@dataclass
class Answers:
    """An attempt's answers to the public calls, and the data that interprets them.

    Attributes:
        recording: The fault dictionary of the exercise.
        observations: The answers, by the index of the call.
        in_single: Calls that were made in float32 although any dtype would do. Their dtype shows
            nothing.
        source: The attempt's text.
        signatures: The signatures of each function, if they are known.
        is_graded: Whether this is grading. Then messages of exceptions are not shown.
        unsteady: Calls that return another number when they are repeated.
    """

    recording: FaultDictionary
    observations: Mapping[int, ObservedReply]
    in_single: Set[int]
    source: Source
    signatures: Signatures
    is_graded: bool
    unsteady: Set[int] = frozenset()

    def __post_init__(self) -> None:
        recording, observations = self.recording, self.observations
        single = {i: e for i, e in observations.items() if i in self.in_single}
        retyped = {
            i: replace(e, actual=replace(e.actual, dtype=e.expected.dtype))
            for i, e in single.items()
        }
        # Mutants are compared only on calls for which reply fields are recorded.
        compared = {i: e for i, e in {**observations, **retyped}.items() if i in recording.facets}
        self._row = Response(recording, compared, compared, {*compared})
        self.wrong = defaultdict[str, list[int]](list)
        self._right = defaultdict[str, list[int]](list)
        for i, observation in compared.items():
            is_wrong = differs(recording, i, observation.actual)
            calls = self.wrong if is_wrong else self._right
            calls[target_of(observation.call)].append(i)
        # for each misconception, the functions whose calls prove it
        self.proven = defaultdict[str, set[str]](set)
        for i, observation in observations.items():
            for id_ in self.proven_by(i):
                self.proven[id_].add(target_of(observation.call))
        different = {i: compared[i] for indices in self.wrong.values() for i in indices}
        response = Response(recording, compared, different, {*compared})
        for i, id_ in proven_by_chance(response).items():
            self.proven[id_].add(target_of(compared[i].call))

    def proven_by(self, call: int) -> Iterator[str]:
        """Yield the misconceptions that an exception or an answer proves by itself."""
        observation = self.observations[call]
        raised = observation.reply.raised
        error_kind = kind_of(raised) if raised and observation.expected.raised is None else None
        if error_kind and error_kind.misconception:
            yield error_kind.misconception
        if id_ := proven_by_answer(self.recording, call, observation):
            yield id_

    def observations_of(self, function: str) -> list[ObservedReply]:
        """Return the observed replies of a function."""
        return [
            observation
            for observation in self.observations.values()
            if target_of(observation.call) == function
        ]

    def exchanged_pair(self, function: str) -> str:
        """Return a sentence if the function returns a pair in the other order; "" otherwise."""
        forms = [signature.form for signature in self.signatures.get(function, ())]
        return returned_in_another_order(self.source, function, forms[0]) if forms else ""

    def is_seen(self, id_: str, calls: Sequence[int]) -> bool:
        """Return whether a mutant answers one of these calls as the attempt did."""
        return any(
            self._is_alike(m, i) for m in self._mutants(id_) for i in calls if i in self._row.calls
        )

    def is_also_in(self, id_: str, function: str) -> bool:
        """Return whether the function has the misconception, too.

        That is so if evidence proves it there, or if one mutant answers every call of the function
        as the attempt did.
        """
        if function in self.proven[id_]:
            return True
        mutants = self._mutants(id_) if self.wrong[function] else ()
        return any(self._matches(m, function) for m in mutants)

    def answer_alike(self, id_: str, other_id: str, functions: Container[str]) -> bool:
        """Return whether mutants of both misconceptions answer the calls of these functions alike.

        Only mutants that explain a wrong answer of the attempt are compared.
        """
        calls = [i for i, call in enumerate(self.recording.calls) if target_of(call) in functions]
        if not calls:
            return True
        return not self._answers_of(id_, calls).isdisjoint(self._answers_of(other_id, calls))

    def function_of(self, id_: str, wrong_functions: Sequence[str]) -> str:
        """Return the wrong function that has the misconception.

        Returns "" if the misconception concerns the whole file.
        """
        if id_ == UNTOUCHED:
            return ""
        proven = self.proven[id_]
        evident = [
            name
            for name in wrong_functions
            if name in proven or self.is_seen(id_, self.wrong[name])
        ]
        # The file may lack a proven function. If one function has two faults, a mutant with one
        # fault does not answer as the attempt does. Then a mutant is enough that fails one of the
        # same calls.
        detecting = (name for name in wrong_functions if self._detects(name, id_))
        return next(chain(evident, sorted(proven), detecting, wrong_functions), "")

    def _mutants(self, id_: str) -> list[int]:
        return [m for m, mutant in enumerate(self.recording.mutants) if mutant.id == id_]

    def _matches(self, mutant: int, function: str) -> bool:
        """Return whether the mutant answers each call of the function as the attempt did."""
        return all(self._is_alike(mutant, i) for i in self.wrong[function]) and all(
            self._row.survives(mutant, i) for i in self._right[function]
        )

    def _detects(self, function: str, id_: str) -> bool:
        """Return whether a mutant of this misconception fails a call that the attempt fails."""
        mutants, calls = self._mutants(id_), self.wrong[function]
        return any(not self._row.survives(m, i) for m in mutants for i in calls)

    def _answers_of(self, id_: str, calls: Sequence[int]) -> set[tuple[int | None, ...]]:
        """Return the answers to these calls by each mutant that explains a wrong call."""
        answers = set[tuple[int | None, ...]]()
        for m in self._mutants(id_):
            if any(self._is_alike(m, i) for i in self._row.syndrome):
                answers.add(tuple(self.recording.mutants[m].answers[i] for i in calls))
        return answers

    def _is_alike(self, mutant: int, call: int) -> bool:
        return not self._row.survives(mutant, call) and self._row.explains(mutant, call)


def attribute_to_functions(
    diagnosis: Diagnosis,
    wrong_functions: Sequence[str],
    answers: Answers,
    settled: Container[str] = (),
) -> Diagnosis:
    """Return the diagnosis with functions and titles of alternatives, without consequences.

    A misconception is left out if it may be a consequence of another wrong function, or if it
    follows from another misconception of the same function.

    Args:
        diagnosis: The diagnosis, without functions.
        wrong_functions: The wrong functions, without those that are not written or not defined.
        answers: The attempt's answers.
        settled: Functions whose text shows the mistake, so that no alternative is left.
    """
    source, words = answers.source, answers.recording.words
    # functions that use no other wrong function
    independent = [
        name
        for name in wrong_functions
        if len(wrong_functions) == 1 or not {*wrong_functions} & source.uses(name)
    ]
    empty = source.unwritten_names

    def attributed(misconceptions: tuple[Diagnosed, ...]) -> tuple[Diagnosed, ...]:
        functions = [
            answers.function_of(misconception.id, wrong_functions)
            for misconception in misconceptions
        ]
        unnamed = [name for name in wrong_functions if name not in functions]
        updated = []
        for misconception, function in zip(misconceptions, functions, strict=True):
            other_functions = (
                n
                for n in unnamed
                if misconception.id != UNTOUCHED
                and (n in independent or misconception.id == INTERFACE)
            )
            also_in = tuple(n for n in other_functions if answers.is_also_in(misconception.id, n))
            alike = [
                a
                for a in misconception.alternatives
                if a in words
                and function not in settled
                and answers.answer_alike(misconception.id, a, empty)
            ]
            titles = tuple(words[a].title for a in alike)
            updated.append(
                misconception.model_copy(
                    update={"function": function, "also_in": also_in, "alternative_titles": titles}
                )
            )
        return tuple(updated)

    located_diagnosis = diagnosis.changed(attributed)
    unexplained = {*wrong_functions}.difference(
        *(
            (misconception.function, *misconception.also_in)
            for misconception in located_diagnosis.misconceptions
        )
    )

    # whether another wrong function, which no misconception explains, may be the cause
    def may_be_a_consequence(misconception: Diagnosed) -> bool:
        return (
            not answers.proven[misconception.id]
            and bool(misconception.function)
            and not unexplained.isdisjoint(source.uses(misconception.function))
        )

    def follows(misconception: Diagnosed) -> bool:
        sibling_ids = (
            sibling.id
            for sibling in located_diagnosis.misconceptions
            if sibling.function == misconception.function
        )
        return any(misconception.id in CONSEQUENCES.get(id_, ()) for id_ in sibling_ids)

    return located_diagnosis.changed(
        lambda misconceptions: tuple(
            misconception
            for misconception in misconceptions
            if not may_be_a_consequence(misconception) and not follows(misconception)
        )
    )


def evidence_of(error: CheckFailed, *, is_shown: bool = True) -> tuple[str, Raised | None]:
    """Return the evidence of a failed check, and its exception.

    The exception is None if the check did not fail because of one.
    """
    if isinstance(error, AttemptRaised):
        return describe_exception(error.raised, error.due, is_shown=is_shown), error.raised
    return str(error), None


def arguments_due(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments; () for a class."""
    return tuple(parameter.name for s in signatures[:1] if s.build is None for parameter in s.call)


@dataclass(frozen=True)
class Attribution:
    """The findings about an attempt, each attributed to a function.

    Attributes:
        functions: The state of each function.
        checks: The results of the visible checks.
        diagnosis: The misconceptions.
        lines: The proved lines.
    """

    functions: tuple[FunctionResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    diagnosis: Diagnosis = NOTHING
    lines: tuple[ProvedLine, ...] = ()


@dataclass(frozen=True)
class _Failure:
    """The reason why a function fails a check.

    Attributes:
        check: The check.
        evidence: What was observed.
        raised: The exception, if there was one.
        suggestion: The usual repair for the exception.
        calls: The calls that violate the oracle.
        means: The misconception that the violation implies; "" if it implies none.
        besides: Whether the values differ, in a check that is about an edit of the input (oracle
            "moves").
    """

    check: PublicCheck
    evidence: str
    raised: Raised | None = None
    suggestion: str = ""
    calls: tuple[int, ...] = ()
    means: str = ""
    besides: bool = False


def functions_of(
    answers: Answers, checks: Sequence[CheckResult], diagnosis: Diagnosis
) -> Attribution:
    """Return the state of each function, with checks and misconceptions attributed to functions.

    A check stops at the first function that fails it, but all of its calls were made.
    """
    recording, source = answers.recording, answers.source
    names = dict.fromkeys(map(target_of, recording.calls))  # in the order of their definitions
    failures = {name: [*_failures(answers, checks, name)] for name in names}
    # A function may pass its visible checks although its answers show a misconception, which then
    # breaks the functions that use it.
    diagnosed_functions = set[str]()
    for misconception in diagnosis.named:
        shown_in = (n for n in names if answers.is_seen(misconception.id, answers.wrong[n]))
        diagnosed_functions.add(next(shown_in, ""))
    bad = [name for name in names if failures[name] or name in diagnosed_functions]
    # A late check runs only if all checks before it pass. Until then, its functions are right only
    # so far.
    check_ids = {check.id for check in checks}
    asks = (ask for check in recording.visible if check.id not in check_ids for ask in check.asks)
    later = {target_of(recording.calls[group[-1]]) for ask in asks for group in ask.calls}
    summaries = [
        _summary_of(answers, name, name in bad, bad[0] if bad and name in later else "")
        for name in names
    ]
    empty = source.unwritten_names
    wrong_functions = [
        summary.name
        for summary in summaries
        if summary.is_wrong and not summary.is_undefined and summary.name not in empty
    ]
    settled = {name for name in names if _has_loop_fault(failures[name], source)}
    diagnosis = attribute_to_functions(diagnosis, wrong_functions, answers, settled)
    summaries = [
        _choose_evidence(summary, failures[summary.name], diagnosis, answers)
        for summary in summaries
    ]
    functions = states_of(
        summaries, source, {misconception.function for misconception in diagnosis.misconceptions}
    )
    wrong_functions = [function.name for function in functions if function.state == "wrong"]
    return Attribution(
        functions,
        tuple(_with_cause(check, wrong_functions, failures) for check in checks),
        diagnosis,
    )


def _summary_of(answers: Answers, name: str, is_wrong: bool, stopped_at: str) -> FunctionSummary:
    observations = answers.observations_of(name)
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
        arguments=arguments_due(answers.signatures.get(name, ())),
    )


def _failures(answers: Answers, checks: Sequence[CheckResult], name: str) -> Iterator[_Failure]:
    results, observations = {check.id: check for check in checks}, answers.observations
    failed = (
        c
        for c in answers.recording.visible
        if c.id in results and results[c.id].outcome != "passed"
    )
    for check in sorted(failed, key=lambda c: c.layer):
        result = results[check.id]
        groups = [
            group
            for group in groups_of(check, observations)
            if target_of(observations[group[1][-1]].call) == name
        ]
        # A student knows which methods are not written yet, so other failures come first.
        groups.sort(
            key=lambda group: any(says_unwritten(observations[i].reply.raised) for i in group[1])
        )
        if result.function == name and result.outcome in ("timeout", "crashed"):
            yield _Failure(check, result.evidence)
        elif broken := first_broken(groups, observations):
            evidence, raised = evidence_of(broken.error, is_shown=not answers.is_graded)
            besides = broken.ask.oracle == "values" and any(
                ask.oracle == "moves" for ask in check.asks
            )
            mends = answers.exchanged_pair(name)
            if raised and not mends:
                mends = suggest(answers.source, raised)
            yield _Failure(check, evidence, raised, mends, broken.calls, broken.ask.means, besides)


def _has_loop_fault(failures: Sequence[_Failure], source: Source) -> bool:
    """Return whether the text shows that only one round of a loop reaches a line that raised."""
    exceptions = [failure.raised for failure in failures if failure.raised]
    return any(loop_fault(source, raised) for raised in exceptions)


def _choose_evidence(
    function: FunctionSummary, failures: Sequence[_Failure], diagnosis: Diagnosis, answers: Answers
) -> FunctionSummary:
    """Return the function with the evidence to print between a misconception's title and its hint.

    The first failure of this list gives the evidence: the one that ended the process; one that
    shows the first misconception of the function; one that shows no misconception; any other. The
    word that the call was given is added. If shapes do not fit, so are the call's sizes that the
    exception's message contains.
    """
    if not failures:
        return function
    diagnosed_ids = [
        misconception.id
        for misconception in diagnosis.named
        if function.name in (misconception.function, *misconception.also_in)
    ]

    def shows(id_: str, failure: _Failure) -> bool:
        is_proven = id_ == failure.means or any(id_ in answers.proven_by(i) for i in failure.calls)
        return is_proven or answers.is_seen(id_, failure.calls)

    def rank(failure: _Failure) -> tuple[int, int, bool]:
        shown_ids = [id_ for id_ in diagnosed_ids if shows(id_, failure)]
        preference = 2 * (diagnosed_ids[0] not in shown_ids) if shown_ids else 1
        return preference, failure.check.layer, failure.besides

    failure = min(failures, key=rank) if failures[0].calls else failures[0]
    raised, word_note, sizes = failure.raised, "", ""
    at = next(
        (
            answers.observations[i]
            for i in failure.calls
            if raised and answers.observations[i].reply.raised
        ),
        None,
    )
    if raised and at:
        arguments = (*getattr(at.call.subject, "args", ()), *at.call.args)
        # A check may make the call for several words.
        word_note = next(
            (f'That was for "{word}".' for word in arguments if isinstance(word, str)), ""
        )
        if is_shape_fault(raised) or "is invalid for input of size" in raised.message:
            sizes = _sizes_in(
                raised, [at, *answers.observations_of(function.name)], answers.signatures
            )
    outstanding = _outstanding(failure, answers, has_name=bool(diagnosed_ids))
    evidence = joined(failure.evidence, outstanding, word_note, sizes, failure.suggestion)
    return replace(function, check=failure.check.title, evidence=evidence, raised=raised)


def _outstanding(failure: _Failure, answers: Answers, *, has_name: bool) -> str:
    """Return what stands out in the wrong numbers of a call; "" if nothing does.

    For a tensor, only if its mistake has no name.
    """
    if failure.raised:
        return ""
    if not answers.unsteady.isdisjoint(failure.calls):
        return UNSTEADY
    if not any(says in failure.evidence for says in ("values differ", "a single number")):
        return ""
    for observation in (answers.observations[i] for i in failure.calls):
        if renamed := _renamed(observation):
            return renamed
        actual = next(iter(observation.reply.outputs), None)
        expected = first_of(observation.expected_outputs)
        if actual is None or actual.tensor is None or expected is None:
            continue
        if has_name and expected.dim():
            continue
        if sentence := what_stands_out(actual.tensor, expected):
            return sentence
    return ""


def _renamed(observation: ObservedReply) -> str:
    """Return which expected parameter a module lacks, and which one it has in its place.

    Returns "" if there is no such pair.
    """
    expected, actual = observation.expected.parameters, observation.actual.parameters
    missing = sorted(
        expected.keys() - actual.keys(), key=lambda name: (name.endswith("bias"), name)
    )
    extra = sorted(actual.keys() - expected.keys())
    alike = [name for name in extra if missing and actual[name] == expected[missing[0]]]
    return sanitize(f"It has no parameter {missing[0]}, and has {alike[0]}") if alike else ""


def _sizes_in(raised: Raised, calls: Sequence[ObservedReply], signatures: Signatures) -> str:
    """Return which sizes of the first call are in the message of its exception; "" if none.

    Other calls that raised on the same line must agree.
    """
    messages: list[tuple[Axes | None, str]] = []
    for observation, message in (
        (e, r.message) for e in calls if (r := e.reply.raised) and r.line == raised.line
    ):
        returned = next(
            (tensor.shape for tensor in observation.expected_outputs if tensor is not None), ()
        )
        listed = signatures.get(target_of(observation.call), ())
        axes = next(
            filter(
                None,
                (
                    axes_of(signature, observation.call, returned, signatures)
                    for signature in listed
                ),
            ),
            None,
        )
        messages.append((axes, message))
    size_names = (
        name_sizes([(axes, message) for axes, message in messages if axes])
        if messages[0][0]
        else ""
    )
    return size_names and f"{size_names}."


def _with_cause(
    check: CheckResult, wrong_functions: Sequence[str], failures: Mapping[str, Sequence[_Failure]]
) -> CheckResult:
    """Return the check, attributed to the first wrong function that fails it.

    A check may stop at a function that only waits for the wrong one.
    """
    if check.outcome not in ("failed", "error"):
        return check
    causes = (
        (name, failure)
        for name in wrong_functions
        for failure in failures[name]
        if failure.check.id == check.id
    )
    for name, failure in causes:
        if check.function not in wrong_functions or (name == check.function and failure.raised):
            return check.model_copy(
                update={"function": name, "evidence": joined(failure.evidence, failure.suggestion)}
            )
    return check


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """Return the diagnosis, with the exercise's own hint if nothing is written yet.

    That hint is about how to start.
    """
    return tuple(
        d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis
    )


Attempt = AttemptRunner | LocalRecordingRunner


def answer_public_calls(
    recording: FaultDictionary,
    attempt: Attempt,
    source: Source,
    exercise: Exercise | None = None,
    bank: Bank | None = None,
) -> Attribution:
    """Return the results of the visible checks, the state of each function, and the misconceptions.

    If a visible check fails, all public calls are made.

    Args:
        recording: The fault dictionary of the exercise.
        attempt: The attempt.
        source: The attempt's text; it is missing if it is not available.
        exercise: The exercise, if it is available.
        bank: The mutants, if a hidden check has failed in grading. Then a mistake is looked for
            even if every visible check passes, and messages of exceptions are not shown.
    """
    is_graded = bank is not None
    if isinstance(attempt, AttemptRunner):
        early = [
            i
            for c in sorted(recording.visible, key=lambda c: c.layer)
            if not c.is_last
            for i in c.all_calls
        ]
        later = [i for check in recording.checks for i in check.calls] if is_graded else []
        attempt.ask_ahead([recording.calls[i] for i in dict.fromkeys([*early, *later])])
    signatures = {name: exercise.signatures(name) for name in exercise.shapes} if exercise else {}
    observations: dict[int, ObservedReply] = {}
    checks = list(visible_results(recording, attempt, observations))
    outcomes = {check.outcome for check in checks}
    diagnosis = Diagnosis()
    if not source.missing and "passed" not in outcomes and source.is_unwritten:
        diagnosis = naming(recording.words, UNTOUCHED)
    elif is_graded or outcomes - {"passed"}:
        # Calls that decide no visible check give the diagnosis more evidence.
        with contextlib.suppress(AttemptEnded):
            for index in (
                i for check in recording.checks for i in check.calls if i not in observations
            ):
                observations[index] = see(recording, index, attempt)
        by_name = _right_by_name(attempt, observations, source, signatures)
        diagnosis = diagnose(recording, {**observations, **by_name}, source, bank)
        if by_name:
            diagnosis = replace(
                diagnosis, named=(named(recording.words, INTERFACE), *diagnosis.named)
            )
    wrong_functions = {
        target_of(observation.call)
        for i, observation in observations.items()
        if differs(recording, i, observation.actual)
    }
    if wrong_functions and not is_graded:  # in grading, hidden checks test the conditions
        checks = without_unmet_conditions(recording, attempt, checks, observations, wrong_functions)
    failed = {check.id for check in checks if check.outcome == "failed"}
    unsteady = _unsteady_calls(recording, attempt, failed, observations)
    in_single = {i for i in observations if id(recording.calls[i]) in attempt.in_single}
    results = sorted(checks, key=lambda check: check.outcome == "passed")
    return functions_of(
        Answers(recording, observations, in_single, source, signatures, is_graded, unsteady),
        results,
        diagnosis,
    )


def _unsteady_calls(
    recording: FaultDictionary,
    attempt: Attempt,
    failed: Container[str],
    observations: Mapping[int, ObservedReply],
) -> set[int]:
    """Return the calls of failed checks that return another number with another seed."""
    calls = {i for check in recording.visible if check.id in failed for i in check.all_calls}
    unsteady = set[int]()
    for i in calls & observations.keys():
        call, number = observations[i].call, _plain_number(observations[i].reply)
        with contextlib.suppress(AttemptEnded):
            if number is not None:
                reply = attempt.execute(replace(call, seed=call.seed + 1))
                if _plain_number(reply) not in (None, number):
                    unsteady.add(i)
    return unsteady


def _plain_number(reply: Reply) -> float | None:
    """Return the only number of a reply. Anything else, or NaN, gives None."""
    tensors = [output.tensor for output in reply.outputs]
    if len(tensors) != 1 or tensors[0] is None or tensors[0].dim() or tensors[0].is_complex():
        return None
    number = float(tensors[0])
    return None if math.isnan(number) else number


def visible_results(
    recording: FaultDictionary,
    attempt: Attempt,
    observations: dict[int, ObservedReply],
    ids: Sequence[str] = (),
) -> Iterator[CheckResult]:
    """Yield the results of the visible checks, the late ones only if all before them pass.

    Args:
        recording: The fault dictionary of the exercise.
        attempt: The attempt.
        observations: Every observed reply is added to it.
        ids: The ids of the checks to run; empty for all.
    """
    visible, passed = [c for c in recording.visible if not ids or c.id in ids], True
    early_checks = [c for c in visible if not c.is_last]
    late_checks = [c for c in visible if c.is_last]
    for check in (*sorted(early_checks, key=lambda c: c.layer), *late_checks):
        if passed or not check.is_last:
            result = _check(recording, check, attempt, observations)
            passed = passed and result.outcome == "passed"
            yield result


def _check(
    recording: FaultDictionary,
    check: PublicCheck,
    attempt: Attempt,
    observations: dict[int, ObservedReply],
) -> CheckResult:
    attempt.check = check.id
    targets = list(dict.fromkeys(target_of(recording.calls[index]) for index in check.calls))
    check_observations = {}
    try:
        for index in check.all_calls:
            check_observations[index] = observations[index] = see(recording, index, attempt)
    except AttemptEnded as ended:
        call = attempt.ended.get(check.id)
        function = target_of(call) if call else ""
        return check_result(
            check, "timeout" if ended.end is End.TIMEOUT else "crashed", str(ended), function
        )
    if broken := first_broken(groups_of(check, check_observations), check_observations):
        evidence, raised = evidence_of(broken.error)
        # The last call is the one at fault. The others only give the values to compare with.
        function = target_of(recording.calls[broken.calls[-1]])
        return check_result(check, "failed" if raised is None else "error", evidence, function)
    return check_result(check, "passed", "", targets[0] if len(targets) == 1 else "")


def _right_by_name(
    attempt: Attempt,
    observations: Mapping[int, ObservedReply],
    source: Source,
    signatures: Signatures,
) -> dict[int, ObservedReply]:
    """Return the calls of functions that are right if their arguments are passed by name.

    Such a function takes its arguments in another order.
    """
    corrected: dict[int, ObservedReply] = {}
    argument_names = {name: arguments_due(listed) for name, listed in signatures.items()}
    for name in (
        name for name, names in argument_names.items() if in_another_order(source, name, names)
    ):
        calls = {
            i: observation
            for i, observation in observations.items()
            if target_of(observation.call) == name and observation.expected.raised is None
        }
        again: dict[int, ObservedReply] = {}
        with contextlib.suppress(AttemptEnded):
            again = {
                i: _by_name(attempt, observation, argument_names[name])
                for i, observation in calls.items()
            }
        if all(
            observation.actual.agrees(observation.expected, ("outputs",))
            for observation in again.values()
        ):
            corrected |= {
                i: replace(observation, call=calls[i].call, actual=observation.expected)
                for i, observation in again.items()
            }
    return corrected


def _by_name(attempt: Attempt, observation: ObservedReply, names: Sequence[str]) -> ObservedReply:
    kwargs = {**dict(zip(names, observation.call.args, strict=False)), **observation.call.kwargs}
    # gradients are requested by the position of an argument
    call = replace(observation.call, args=(), kwargs=kwargs, cotangent=None, second=False)
    return observed(
        call,
        observation.expected,
        observation.expected_outputs,
        settled(call, attempt.execute(call)),
    )


def see(recording: FaultDictionary, index: int, attempt: Attempt) -> ObservedReply:
    """Put a recorded call, and return the observed reply. Raises AttemptEnded."""
    call, fingerprint = recording.calls[index], recording.expected_reply(index)
    return observed(
        call, fingerprint, recording.expected[index], settled(call, attempt.execute(call))
    )


def check_result(
    check: PublicCheck | CheckOutcome, outcome: Outcome, evidence: str, function: str = ""
) -> CheckResult:
    """Return the result of a check."""
    passed = outcome == "passed"
    score = check.points if passed else 0.0
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome=outcome,
        score=score,
        max_score=check.points,
        evidence=sanitize(evidence),
        hint="" if passed else check.hint,
        function=function,
    )
