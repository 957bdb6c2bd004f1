"""Decide the state, the evidence, the misconceptions and the location of each function: `assemble`.

Theory of operation
-------------------
Input: the attempt's text; the outcomes of the hidden checks (`HiddenRun`), or none on a student's
machine; the replies to the public calls; the misconceptions that they show; the proved lines. None
of these is changed here. Output: the result of the attempt.

Steps of `assemble`:

1. `attribute`, in `public_findings`: the failures of each function, the function that has each
   misconception, the failure to show, and the state of each function. A function that uses a wrong
   one may only wait for it.
2. `_verdicts_with_hidden`: a function that passes everything public and fails a hidden check is
   wrong, too.
3. `_misconceptions_with_hidden`: the misconceptions that only a hidden check proves.
4. `result_parts`: the parts of the result, with lines and cells.

On a student's machine there are no hidden checks. Then `_home_checks` stands in place of steps 2
and 3: it attributes each visible check to a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..box.worker.messages import Call
from ..checks.explain import joined, sanitize
from ..checks.hidden_check import CheckOutcome
from ..checks.runner import Exchange, namespace_of, target_of
from ..course import Exercise
from ..diagnosis import load_bank
from ..diagnosis.bank import NOTHING, Diagnosis, named
from ..diagnosis.evidence import REFUSES, UNDIVIDED, can_cause
from ..diagnosis.fault_dictionary import FaultDictionary
from ..diagnosis.fingerprint import asks_for_a_gpu, is_comparable
from ..result import CheckResult, ExerciseResult, ProvedLine
from ..submission.source import UNTOUCHED, Source
from .locate_misconceptions import LocatedMisconception
from .public_calls import PublicReplies
from .public_findings import NOT_WRONG, Attribution, FunctionVerdict, attribute
from .result_parts import (
    ResultParts,
    check_result,
    diagnosed_result,
    function_result,
    graded_result,
    home_result,
)


@dataclass(frozen=True)
class HiddenRun:
    """The hidden checks of an exercise, run on an attempt.

    Attributes:
        outcomes: The outcomes of the checks, in their order.
        transcript: The calls of the checks, with the attempt's replies.
        ended: The call that ended the attempt's process, by the id of its check.
        is_right: Returns whether the reply of an exchange is the reference's.
    """

    outcomes: Sequence[CheckOutcome]
    transcript: Sequence[Exchange]
    ended: Mapping[str, Call]
    is_right: Callable[[Exchange], bool]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(outcome.outcome == "passed" for outcome in self.outcomes)

    @property
    def called(self) -> set[str]:
        """The functions that the checks called, also if the call got no reply."""
        calls = [*(exchange.call for exchange in self.transcript), *self.ended.values()]
        return {target_of(call) for call in calls}


def assemble(
    exercise: Exercise | None,
    source: Source,
    dictionary: FaultDictionary | None,
    replies: PublicReplies | None,
    diagnosis: Diagnosis = NOTHING,
    lines: tuple[ProvedLine, ...] = (),
    *,
    hidden: HiddenRun | None = None,
    note: str = "",
) -> ExerciseResult:
    """Return the result of an attempt that was loaded and called.

    Args:
        exercise: The exercise. None if only its fault dictionary is known, as in a notebook.
        source: The attempt's text; it is missing if it is not available.
        dictionary: The fault dictionary of the exercise, or None if it has no current one.
        replies: The replies to the public calls, or None if none were made.
        diagnosis: The misconceptions that the replies show.
        lines: The lines at which one small edit makes every check pass.
        hidden: The hidden checks. None on a student's machine.
        note: A message to the student about parts of the file that did not run.
    """
    findings = attribute(replies, diagnosis) if replies is not None else Attribution()
    explaining, proved_only = findings.explaining, findings.proved_only
    if lines:  # One edit makes every check pass, so there is only one mistake.
        explaining, proved_only = [m for m in explaining if not m.needs_another], []
    verdicts = findings.verdicts
    if hidden is None:
        assert replies is not None
        checks = _home_checks(replies, findings, source)
    else:
        functions = {outcome.id: _function_to_blame(outcome, hidden) for outcome in hidden.outcomes}
        verdicts = verdicts or _all_right(exercise, hidden)
        verdicts = _verdicts_with_hidden(verdicts, hidden, functions, source)
        if not hidden.passed:
            explaining, proved_only = _misconceptions_with_hidden(
                exercise, explaining, proved_only, hidden, functions, verdicts, dictionary
            )
        checks = tuple(
            check_result(outcome, functions[outcome.id], source) for outcome in hidden.outcomes
        )
    function_results = tuple(function_result(verdict, source) for verdict in verdicts)
    result_parts = ResultParts(
        functions=function_results,
        diagnosis=tuple(diagnosed_result(m, function_results, exercise) for m in explaining),
        also=tuple(diagnosed_result(m, function_results, exercise) for m in proved_only),
        lines=lines,
    )
    if hidden is None:
        assert replies is not None
        return home_result(exercise, source, replies.dictionary, checks, result_parts, note)
    return graded_result(exercise, source, checks, result_parts, note, diagnosis.answers)


def assemble_uncalled(
    exercise: Exercise | None,
    source: Source,
    outcomes: Sequence[CheckOutcome],
    misconception: str = "",
    *,
    dictionary: FaultDictionary | None = None,
) -> ExerciseResult:
    """Return the result of an attempt of which no function could be called.

    Args:
        exercise: The exercise, if it is known.
        source: The attempt.
        outcomes: The outcomes of all hidden checks, or of all visible ones on a student's machine.
        misconception: The id of the misconception that says why, or "".
        dictionary: The fault dictionary on a student's machine. In grading it is None.
    """
    checks = tuple(check_result(outcome, outcome.function, source) for outcome in outcomes)
    words = load_bank(exercise).texts if dictionary is None else dictionary.words
    located = [LocatedMisconception(named(words, misconception))] if misconception else []
    result_parts = ResultParts(diagnosis=tuple(diagnosed_result(m, (), exercise) for m in located))
    if dictionary is None:
        return graded_result(exercise, source, checks, result_parts)
    return home_result(exercise, source, dictionary, checks, result_parts)


def _all_right(exercise: Exercise | None, hidden: HiddenRun) -> list[FunctionVerdict]:
    """Return the verdict "right" on each function that the hidden checks called.

    The solution gives the order.
    """
    assert exercise is not None
    called_functions = hidden.called
    names = (name for name in namespace_of(exercise.solution) if name in called_functions)
    return [FunctionVerdict(name, "right") for name in names]


def _function_to_blame(outcome: CheckOutcome, hidden: HiddenRun) -> str:
    """Return the function of a hidden check; "" for a passed check of several functions.

    A check failed at the function that it names, or at the one that ended the process. Otherwise it
    failed at the last function that it called, or at the first one with a wrong answer if the last
    one answered right.
    """
    exchanges = [exchange for exchange in hidden.transcript if exchange.check == outcome.id]
    called_functions = [target_of(exchange.call) for exchange in exchanges]
    if outcome.outcome == "passed":
        return called_functions[0] if len({*called_functions}) == 1 else ""
    if outcome.function:
        return outcome.function
    if outcome.id in hidden.ended:
        return target_of(hidden.ended[outcome.id])
    if not exchanges:
        return ""
    last_function = called_functions[-1]
    wrong_functions = [target_of(e.call) for e in exchanges if _is_wrong_exchange(e, hidden)]
    if not wrong_functions or last_function in wrong_functions:
        return last_function
    return wrong_functions[0]


def _is_wrong_exchange(exchange: Exchange, hidden: HiddenRun) -> bool:
    """Return whether a reply to a hidden check is wrong; False if that cannot be judged.

    A call that changes its inputs is wrong. The numbers of some replies cannot be compared with the
    reference's, but an exception can.
    """
    if exchange.reply.mutated:
        return True
    can_be_judged = is_comparable(exchange.call) or (
        exchange.reply.raised is not None and not asks_for_a_gpu(exchange.call)
    )
    return can_be_judged and not hidden.is_right(exchange)


def _failed(hidden: HiddenRun) -> list[CheckOutcome]:
    """Return the outcomes of the checks that ran and did not pass."""
    return [o for o in hidden.outcomes if o.outcome not in ("passed", "skipped")]


def _verdicts_with_hidden(
    public_verdicts: Sequence[FunctionVerdict],
    hidden: HiddenRun,
    functions: Mapping[str, str],
    source: Source,
) -> list[FunctionVerdict]:
    """Return the verdicts, in which a function is wrong, too, if it fails a hidden check.

    If it uses another function that is wrong, it waits for that one.

    Args:
        public_verdicts: The verdicts from the public calls.
        hidden: The hidden checks.
        functions: The function of each check, by the check's id.
        source: The attempt's text.
    """
    first_failures = {functions[outcome.id]: outcome for outcome in reversed(_failed(hidden))}
    verdicts: list[FunctionVerdict] = []
    for verdict in public_verdicts:
        failure = first_failures.get(verdict.name)
        if failure is None or verdict.state not in NOT_WRONG:
            verdicts.append(verdict)
            continue
        used = source.uses(verdict.name)
        blockers = [v.name for v in verdicts if v.state not in NOT_WRONG and v.name in used]
        verdicts.append(
            FunctionVerdict(
                name=verdict.name,
                state="waiting" if blockers else "wrong",
                waits_for=next(iter(blockers), ""),
                check=failure.title,
                evidence=sanitize(failure.evidence),
            )
        )
    return verdicts


def _misconceptions_with_hidden(
    exercise: Exercise | None,
    explaining: Sequence[LocatedMisconception],
    proved_only: Sequence[LocatedMisconception],
    hidden: HiddenRun,
    functions: Mapping[str, str],
    verdicts: Sequence[FunctionVerdict],
    dictionary: FaultDictionary | None,
) -> tuple[list[LocatedMisconception], list[LocatedMisconception]]:
    """Return `explaining` and `proved_only`, with the misconceptions that hidden checks prove.

    They are added to `proved_only` if they cannot be the reason why the checks fail.

    Args:
        exercise: The exercise.
        explaining: The misconceptions that explain the public replies.
        proved_only: The misconceptions that a public reply proves, and that do not explain them.
        hidden: The hidden checks.
        functions: The function of each check, by the check's id.
        verdicts: The verdicts on the functions.
        dictionary: The fault dictionary of the exercise, if it has a current one.
    """
    assert exercise is not None
    words = load_bank(exercise).texts
    failed_by = dictionary.failed_by if dictionary is not None else {}
    failed = _failed(hidden)
    # A stub has no misconception.
    written = {v.name for v in verdicts if v.state not in ("unwritten", "undefined")}
    known_ids = _known_ids((*explaining, *proved_only))
    proven: dict[str, str] = {}  # the function of each misconception
    for outcome in failed:
        function = functions[outcome.id]
        # A misconception that is known already may fail this check, too.
        is_explained = any(
            outcome.id in failed_checks
            for misconception in explaining
            for failed_checks in failed_by.get(misconception.id, ())
        )
        is_new = bool(outcome.suspect) and outcome.suspect not in known_ids
        if is_new and not is_explained and function in written:
            proven.setdefault(outcome.suspect, function)
    new = [LocatedMisconception(named(words, id_), function) for id_, function in proven.items()]
    suspects = {o.id: o.suspect for o in failed if not o.trivial_answer}
    unexplained = {id_ for id_, suspect in suspects.items() if not suspect}
    if explaining or can_cause([*proven], unexplained, {*suspects}, lambda: failed_by):
        together = sorted((*explaining, *new), key=lambda m: m.id == UNTOUCHED)
        return together, list(proved_only)
    return list(explaining), [*proved_only, *new]


def _known_ids(misconceptions: Sequence[LocatedMisconception]) -> set[str]:
    """Return the ids of these misconceptions and their alternatives."""
    ids = {id_ for m in misconceptions for id_ in (m.id, *m.diagnosed.alternatives)}
    if REFUSES in ids:
        ids.add(UNDIVIDED)  # both are about the same guard
    return ids


def _home_checks(
    replies: PublicReplies, findings: Attribution, source: Source
) -> tuple[CheckResult, ...]:
    """Return the results of the visible checks, each with the function that is to blame.

    A check may stop at a function that only waits for the wrong one. It is attributed to the first
    wrong function that fails it.
    """
    wrong_functions = [v.name for v in findings.verdicts if v.state == "wrong"]
    checks = []
    for outcome in replies.outcomes():
        function, evidence = outcome.function, ""
        causes = [
            (name, failure)
            for name in wrong_functions
            for failure in findings.failures.get(name, ())
            if failure.check.id == outcome.id
        ]
        if outcome.outcome not in ("failed", "error"):
            causes = []
        for name, failure in causes:
            # the failure of the same function adds only the repair of its exception
            if function not in wrong_functions or (name == function and failure.raised):
                function, evidence = name, joined(failure.evidence, failure.advice)
                break
        checks.append(check_result(outcome, function, source, evidence))
    return tuple(checks)
