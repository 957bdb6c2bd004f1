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
   wrong, too, or waits for an earlier one that has a fault.
3. `_misconceptions_with_hidden`: the misconceptions that only a hidden check proves.
4. `ResultParts`, `graded_result` and `ungraded_result`: the parts of the result, with the final
   texts, and with lines and cells.

On a student's machine there are no hidden checks. Then `_visible_check_results` stands in place of
steps 2 and 3: it attributes each visible check to a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from ..box.worker.messages import Call
from ..checks.explain_exceptions import LIMIT, join_sentences, sanitize
from ..checks.hidden_check import CheckOutcome
from ..checks.runner import Exchange, namespace_of, target_of
from ..course import Exercise
from ..diagnosis import load_bank
from ..diagnosis.bank import NOTHING, Diagnosis, misconception_in_words
from ..diagnosis.evidence import REFUSES, UNDIVIDED, can_cause
from ..diagnosis.fault_dictionary import FaultDictionary
from ..diagnosis.fingerprint import asks_for_a_gpu, is_comparable
from ..result import CheckResult, Diagnosed, ExerciseResult, FunctionResult, ProvedLine
from ..submission.source import (
    INTERFACE,
    UNTOUCHED,
    Source,
    in_cells,
    location_of,
    where_it_is_written,
)
from .attribute_public_replies import NOT_WRONG, Attribution, FunctionVerdict, attribute
from .choose_failure_of_visible_checks import Failure
from .locate_misconceptions import LocatedMisconception
from .public_calls import PublicReplies, public_outcome

DIGITS = 12  # so many digits of the file's digest are in a result


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
    def all_passed(self) -> bool:
        """Whether every check passed."""
        return all(outcome.outcome == "passed" for outcome in self.outcomes)

    @property
    def called_functions(self) -> set[str]:
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

    With `hidden`, it is the result of grading. Without, it is the result on a student's machine,
    and `replies` must be given.

    Args:
        exercise: The exercise. It must be given with `hidden`. None if only its fault dictionary is
            known, as in a notebook.
        source: The attempt's text. `source.missing` is true if the text is not available.
        dictionary: The fault dictionary of the exercise, or None if it has no current one.
        replies: The replies to the public calls, or None if none were made.
        diagnosis: The misconceptions that the replies show.
        lines: The lines at which one small edit makes every check pass. If there are any, there is
            only one mistake: misconceptions of the public replies that need another one, or that do
            not explain the wrong values, are dropped.
        hidden: The hidden checks. None on a student's machine.
        note: A message to the student about parts of the file that did not run.
    """
    attribution = attribute(replies, diagnosis) if replies is not None else Attribution()
    explaining, proved_only = attribution.explaining, attribution.proved_only
    if lines:
        explaining, proved_only = [m for m in explaining if not m.needs_another], []
    verdicts = attribution.verdicts
    if hidden is None:
        assert replies is not None
        checks = _visible_check_results(replies, attribution, source)
    else:
        assert exercise is not None
        function_of = {o.id: _function_to_blame(o, hidden) for o in hidden.outcomes}
        verdicts = verdicts or _verdicts_without_replies(exercise, hidden)
        verdicts = _verdicts_with_hidden(verdicts, hidden, function_of, source)
        if not hidden.all_passed:
            explaining, proved_only = _misconceptions_with_hidden(
                exercise, explaining, proved_only, hidden, function_of, verdicts, dictionary
            )
        checks = tuple(
            check_result(outcome, function_of[outcome.id], source) for outcome in hidden.outcomes
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
        return ungraded_result(exercise, source, replies.dictionary, checks, result_parts, note)
    assert exercise is not None
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
        exercise: The exercise. It must be given in grading.
        source: The attempt.
        outcomes: The outcomes of all hidden checks, or of all visible ones on a student's machine.
        misconception: The id of the misconception that says why, or "".
        dictionary: The fault dictionary on a student's machine. In grading it is None.
    """
    checks = tuple(check_result(outcome, outcome.function, source) for outcome in outcomes)
    words = load_bank(exercise).texts if dictionary is None else dictionary.words
    located = (
        [LocatedMisconception(misconception_in_words(words, misconception))]
        if misconception
        else []
    )
    result_parts = ResultParts(diagnosis=tuple(diagnosed_result(m, (), exercise) for m in located))
    if dictionary is None:
        assert exercise is not None
        return graded_result(exercise, source, checks, result_parts)
    return ungraded_result(exercise, source, dictionary, checks, result_parts)


def _verdicts_without_replies(exercise: Exercise, hidden: HiddenRun) -> list[FunctionVerdict]:
    """Return the verdict "right" on each function of the solution that the hidden checks called.

    They stand in the order of the solution. They say that no public call shows a fault: none was
    made. `_verdicts_with_hidden` then adds the faults that hidden checks show.
    """
    called_functions = hidden.called_functions
    names = (name for name in namespace_of(exercise.solution) if name in called_functions)
    return [FunctionVerdict(name, "right") for name in names]


def _function_to_blame(outcome: CheckOutcome, hidden: HiddenRun) -> str:
    """Return the function to which a hidden check is attributed; "" if there is none.

    A passed check is attributed to the only function that it called; if there are several, to none.
    Any other check is attributed to the first of these:

    1. the function that the outcome names;
    2. the function whose call ended the process;
    3. the last function that it called, if it replied wrongly in the check, or if no function did;
    4. the first function that replied wrongly.
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

    A reply is wrong if the attempt changed an input. Otherwise it can be judged if its values can
    be compared (`is_comparable`), or if it is an exception and the call does not ask for a GPU.
    """
    if exchange.reply.mutated:
        return True
    can_be_judged = is_comparable(exchange.call) or (
        exchange.reply.raised is not None and not asks_for_a_gpu(exchange.call)
    )
    return can_be_judged and not hidden.is_right(exchange)


def _failed_outcomes(hidden: HiddenRun) -> list[CheckOutcome]:
    """Return the outcomes of the checks that ran and did not pass."""
    return [o for o in hidden.outcomes if o.outcome not in ("passed", "skipped")]


def _verdicts_with_hidden(
    public_verdicts: Sequence[FunctionVerdict],
    hidden: HiddenRun,
    function_of: Mapping[str, str],
    source: Source,
) -> list[FunctionVerdict]:
    """Return the verdicts, changed for functions whose faults only hidden checks show.

    A function without a fault so far that fails a hidden check becomes wrong. If it uses an earlier
    function that has a fault, it waits instead. The first check that it fails gives the title and
    the evidence.

    Args:
        public_verdicts: The verdicts from the public calls, in the order of the exercise.
        hidden: The hidden checks.
        function_of: The function of each check, by the check's id.
        source: The attempt's text.
    """
    first_failures: dict[str, CheckOutcome] = {}
    for outcome in _failed_outcomes(hidden):
        first_failures.setdefault(function_of[outcome.id], outcome)
    # If a function also waited for later ones, two that use each other would wait for each other.
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
    exercise: Exercise,
    explaining: Sequence[LocatedMisconception],
    proved_only: Sequence[LocatedMisconception],
    hidden: HiddenRun,
    function_of: Mapping[str, str],
    verdicts: Sequence[FunctionVerdict],
    dictionary: FaultDictionary | None,
) -> tuple[list[LocatedMisconception], list[LocatedMisconception]]:
    """Return `explaining` and `proved_only`, with the misconceptions that only hidden checks prove.

    A failed check of a function that is not written or not defined proves nothing. The new
    misconceptions are added to `explaining` if it is not empty, or if they can cause all failed
    checks without a suspect (`can_cause`). A check that failed only because of trivial answers
    needs no cause. Otherwise the new misconceptions are added to `proved_only`. In `explaining`, an
    untouched stub is named last.

    Args:
        exercise: The exercise.
        explaining: The misconceptions that explain the public replies.
        proved_only: The misconceptions that a public reply proves, and that do not explain them.
        hidden: The hidden checks.
        function_of: The function of each check, by the check's id.
        verdicts: The verdicts on the functions.
        dictionary: The fault dictionary of the exercise, if it has a current one.
    """
    texts = load_bank(exercise).texts
    failed_by = dictionary.failed_by if dictionary is not None else {}
    failed = _failed_outcomes(hidden)
    written = {v.name for v in verdicts if v.state not in ("unwritten", "undefined")}
    failed_and_written = [outcome for outcome in failed if function_of[outcome.id] in written]
    new_evidence = _shown_only_by_hidden_checks(
        failed_and_written, explaining, proved_only, failed_by
    )
    new = [
        LocatedMisconception(misconception_in_words(texts, id_), function_of[check])
        for id_, check in new_evidence.items()
    ]
    nontrivial = [outcome for outcome in failed if not outcome.trivial_answer]
    failed_ids = {outcome.id for outcome in nontrivial}
    unexplained = {outcome.id for outcome in nontrivial if not outcome.suspect}
    if explaining or can_cause(new_evidence, unexplained, failed_ids, lambda: failed_by):
        together = sorted((*explaining, *new), key=lambda m: m.id == UNTOUCHED)
        return together, list(proved_only)
    return [], [*proved_only, *new]


def _shown_only_by_hidden_checks(
    failed: Sequence[CheckOutcome],
    explaining: Sequence[LocatedMisconception],
    proved_only: Sequence[LocatedMisconception],
    failed_by: Mapping[str, Sequence[Set[str]]],
) -> dict[str, str]:
    """Return the misconceptions that only hidden checks prove, each with the first such check.

    A failed check proves the misconception that is its `suspect`, if it has one. It proves nothing
    new in these cases:

    1. The misconception is known from the public replies (`_known_ids`).
    2. A mutant of a misconception in `explaining` fails this check, too.

    Args:
        failed: The failed hidden checks of functions that are written.
        explaining: The misconceptions that explain the public replies.
        proved_only: The misconceptions that a public reply proves, and that do not explain them.
        failed_by: For each misconception, the checks that each of its mutants fails.
    """
    known_ids = _known_ids((*explaining, *proved_only))
    explained = set[str]().union(*(c for m in explaining for c in failed_by.get(m.id, ())))
    new_evidence: dict[str, str] = {}
    for outcome in failed:
        is_new = bool(outcome.suspect) and outcome.suspect not in known_ids
        if is_new and outcome.id not in explained:
            new_evidence.setdefault(outcome.suspect, outcome.id)
    return new_evidence


def _known_ids(misconceptions: Sequence[LocatedMisconception]) -> set[str]:
    """Return the ids of these misconceptions and their alternatives.

    With a guard that refuses allowed inputs (REFUSES), a missing test of divisibility (UNDIVIDED)
    is known, too, because both misconceptions are about the same guard.
    """
    ids = {id_ for m in misconceptions for id_ in (m.id, *m.diagnosed.alternatives)}
    if REFUSES in ids:
        ids.add(UNDIVIDED)
    return ids


def _visible_check_results(
    replies: PublicReplies, attribution: Attribution, source: Source
) -> tuple[CheckResult, ...]:
    """Return the results of the visible checks, each with the function to blame and its evidence.

    The function and the evidence are those of the outcome, unless `_cause_of` returns a function
    and its failure. Then the evidence is the failure's, with the usual repair.
    """
    wrong_functions = [v.name for v in attribution.verdicts if v.state == "wrong"]
    results = []
    for outcome in replies.outcomes():
        function, evidence = outcome.function, ""
        if cause := _cause_of(outcome, wrong_functions, attribution.failures):
            function, failure = cause
            evidence = join_sentences(failure.evidence, failure.advice)
        results.append(check_result(outcome, function, source, evidence))
    return tuple(results)


def _cause_of(
    outcome: CheckOutcome,
    wrong_functions: Sequence[str],
    failures: Mapping[str, Sequence[Failure]],
) -> tuple[str, Failure] | None:
    """Return the function to blame for a failed visible check, with its failure of the check.

    If the function at which the check stopped is wrong, it is to blame itself. Otherwise another
    function may have made it fail: the first wrong function with a failure of this check is to
    blame.

    Returns None if the check passed or the process ended, if no wrong function fails the check, or
    if the wrong function at which it stopped did not raise: then the outcome has the same evidence.
    """
    if outcome.outcome not in ("failed", "error"):
        return None
    stopped_at = outcome.function
    suspects = [stopped_at] if stopped_at in wrong_functions else wrong_functions
    for name in suspects:
        for failure in failures.get(name, ()):
            is_of_check = failure.check.id == outcome.id
            if is_of_check and (name != stopped_at or failure.raised):
                return name, failure
    return None


def check_result(
    outcome: CheckOutcome, function: str, source: Source, evidence: str = ""
) -> CheckResult:
    """Return the result of a check. Its evidence names lines of a notebook by their cells.

    The evidence is cut if it is long. A passed check has no hint.

    Args:
        outcome: The outcome of the check.
        function: The function that it is attributed to, or "".
        source: The attempt's text.
        evidence: The evidence with the usual repair, or "" to show the outcome's evidence.
    """
    passed = outcome.outcome == "passed"
    # The message of an exception may take one LIMIT, and the repair another one.
    text = sanitize(evidence, 2 * LIMIT) or sanitize(outcome.evidence)
    return CheckResult(
        id=outcome.id,
        title=outcome.title,
        outcome=outcome.outcome,
        score=outcome.score,
        max_score=outcome.points,
        evidence=in_cells(text, source),
        hint="" if passed else outcome.hint,
        function=function,
    )


def function_result(verdict: FunctionVerdict, source: Source) -> FunctionResult:
    """Return the result of a function: its verdict, with two changes if the attempt is a file.

    1. If the name of an undefined function is in the text, its location is the evidence. If the
       file has only comments, the function is unwritten instead.
    2. If an unwritten function has no evidence, the evidence is the location of a definition that
       has content and does not count, if there is one (`where_it_is_written`).
    """
    state, evidence, near = verdict.state, verdict.evidence, verdict.near
    if source.name and state == "undefined":
        if location := location_of(source, verdict.name):
            evidence = f"{verdict.name} {location}"
        elif all(line.strip()[:1] in ("", "#") for line in source.lines):
            state, near = "unwritten", ""
    elif source.name and state == "unwritten" and not evidence:
        evidence = where_it_is_written(source, verdict.name)
    return FunctionResult(
        name=verdict.name,
        state=state,
        waits_for=verdict.waits_for,
        check=verdict.check,
        evidence=in_cells(evidence, source),
        near=near,
    )


def diagnosed_result(
    misconception: LocatedMisconception,
    functions: Sequence[FunctionResult],
    exercise: Exercise | None,
) -> Diagnosed:
    """Return a misconception as the result shows it, with the title and hint that fit the attempt.

    If nothing is written yet, the hint is the exercise's, if it has one: it says how to start. If
    the interface is wrong because a function is undefined, but the text has its name, the title
    says so, and the hint is the function's evidence: the location of the name.
    """
    diagnosed = misconception.diagnosed
    title, hint = diagnosed.title, diagnosed.hint
    if misconception.id == UNTOUCHED and exercise is not None and exercise.hint:
        hint = exercise.hint
    locations = {f.name: f.evidence for f in functions if f.state == "undefined" and f.evidence}
    if misconception.id == INTERFACE and misconception.function in locations:
        title = f"{misconception.function} is not there once the file has run."
        hint = locations[misconception.function]  # the usual hint is about a misspelt name
    return Diagnosed(
        id=misconception.id,
        title=title,
        hint=hint,
        alternatives=diagnosed.alternatives,
        alternative_titles=misconception.alternative_titles,
        function=misconception.function,
        also_in=misconception.also_in,
    )


@dataclass(frozen=True)
class ResultParts:
    """The parts of a result that are made alike in grading and on a student's machine.

    Attributes:
        functions: The results of the functions.
        diagnosis: The misconceptions that explain the replies.
        also: Misconceptions that are proved and do not explain the wrong values.
        lines: The proved lines.
    """

    functions: tuple[FunctionResult, ...] = ()
    diagnosis: tuple[Diagnosed, ...] = ()
    also: tuple[Diagnosed, ...] = ()
    lines: tuple[ProvedLine, ...] = ()


def graded_result(
    exercise: Exercise,
    source: Source,
    checks: tuple[CheckResult, ...],
    result_parts: ResultParts,
    note: str = "",
    answers: str = "",
) -> ExerciseResult:
    """Return the result of grading.

    If a check with points could not be run, there is no score. Then `result_parts` and `answers`
    are left out, too, because they might be others if the check had run.

    Args:
        exercise: The exercise.
        source: The attempt.
        checks: The results of all hidden checks.
        result_parts: The parts of the result.
        note: A message about parts of the file that did not run; "" if there are none.
        answers: A digest of the wrong replies, which attempts with the same mistake share.
    """
    score: float | None = sum(check.score for check in checks)
    if any(check.outcome == "skipped" and check.max_score for check in checks):
        score = None
        result_parts = ResultParts()
        answers = ""
    return ExerciseResult(
        id=exercise.id,
        score=score,
        max_score=sum(check.max_score for check in checks),
        checks=checks,
        diagnosis=result_parts.diagnosis,
        also=result_parts.also,
        answers=answers,
        lines=result_parts.lines,
        note=_note(source, note),
        functions=result_parts.functions,
        digest="" if source.missing else source.digest[:DIGITS],
    )


def ungraded_result(
    exercise: Exercise | None,
    source: Source,
    dictionary: FaultDictionary,
    checks: tuple[CheckResult, ...],
    result_parts: ResultParts,
    note: str = "",
) -> ExerciseResult:
    """Return the result on a student's machine.

    It has the visible checks. A check that did not run because an earlier one failed is "skipped",
    and its points can still be got. The maximum is the points of the exercise, or of the visible
    checks if these have more. `unseen` is the maximum without the points of the visible checks.
    `unseen_checks` has the titles of the other checks, without those that a misconception of the
    diagnosis certainly fails.

    Args:
        exercise: The exercise. If None, its points are those of all recorded checks.
        source: The attempt.
        dictionary: The fault dictionary of the exercise.
        checks: The results of the visible checks that were run.
        result_parts: The parts of the result.
        note: A message about parts of the file that did not run; "" if there are none.
    """
    checked_ids = {check.id for check in checks}
    not_run = [check for check in dictionary.visible if check.id not in checked_ids]
    skipped = [check_result(public_outcome(check, "skipped", ""), "", source) for check in not_run]
    visible_checks = (*checks, *skipped)
    visible_ids = {check.id for check in visible_checks}
    visible_points = sum(check.max_score for check in visible_checks)
    points = sum(c.points for c in dictionary.checks) if exercise is None else exercise.points
    max_score = max(visible_points, points)
    diagnosed_ids = [diagnosed.id for diagnosed in result_parts.diagnosis]
    unseen_checks = [
        check.title
        for check in dictionary.checks
        if check.id not in visible_ids and not _certainly_fails(check.id, diagnosed_ids, dictionary)
    ]
    return ExerciseResult(
        id=dictionary.exercise,
        score=sum(check.score for check in visible_checks),
        max_score=max_score,
        checks=visible_checks,
        diagnosis=result_parts.diagnosis,
        also=result_parts.also,
        lines=result_parts.lines,
        note=_note(source, note),
        functions=result_parts.functions,
        unseen=round(max_score - visible_points, 9),
        unseen_checks=tuple(unseen_checks),
    )


def _note(source: Source, note: str) -> str:
    """Return the source's note, on the choice of the file, and then `note`; "" if both are empty.

    Lines of a notebook are named by their cells.
    """
    return in_cells(" ".join(filter(None, (source.note, note))), source)


def _certainly_fails(check: str, ids: Sequence[str], dictionary: FaultDictionary) -> bool:
    """Return whether every mutant of one of these misconceptions fails a hidden check.

    The check's result is then no news to a student.
    """
    for id_ in ids:
        checks_of_mutants = dictionary.failed_by.get(id_, [])
        if checks_of_mutants and all(check in failed for failed in checks_of_mutants):
            return True
    return False
