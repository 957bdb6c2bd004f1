"""Put an exercise's recorded, public calls to an attempt: what its visible checks, its functions
and its mistakes are.

`course check` and `course grade` ask the same calls in the same order, and say the same of the
answers.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from ..box.connection import AttemptEnded, End
from ..box.worker.answers import Raised
from ..box.worker.messages import Build
from ..checks.explain import (
    describe_exception,
    is_shape_fault,
    is_undefined,
    kind_of,
    says_unwritten,
)
from ..checks.local import LocalRecordingRunner
from ..checks.outcome import AttemptRaised, CheckFailed, CheckOutcome
from ..checks.sanitize import joined, sanitize
from ..checks.transcript import target_of
from ..course import Exercise
from ..course.shapes import Signature
from ..diagnosis.bank import Bank
from ..diagnosis.broken_aspect import first_broken, groups_of
from ..diagnosis.diagnose import diagnose
from ..diagnosis.diagnosis import NOTHING, Diagnosis, named, naming
from ..diagnosis.observe import Observed, first_of, observed, settled
from ..diagnosis.proofs import UNREGISTERED, proven_by_answer
from ..diagnosis.recording import PublicCheck, Recording, differs
from ..diagnosis.row import Row
from ..diagnosis.varying_answers import proven_by_chance
from ..result import CheckResult, Diagnosed, FunctionResult, Outcome, ProvedLine
from ..submission.standing import INTERFACE
from ..submission.unwritten import UNTOUCHED, is_unwritten, unwritten_names
from .attempt_runner import AttemptRunner
from .axes import Axes, Signatures, axes_of, said_of
from .cures import cure
from .function_states import Seen, in_another_order, states_of, uses
from .public_conditions import without_unmet_conditions
from .telling_numbers import what_stands_out

# By the misconception, those that follow from it in the same function: a layer that is made in
# forward, or that the module does not own, is float32 and on the CPU, whatever the module was moved
# to.
CONSEQUENCES: Mapping[str, Set[str]] = {UNREGISTERED: {"hard_coded_dtype", "hard_coded_device"}}


@dataclass
class Answers:
    """An attempt's answers, with what is needed to tell what they show.

    in_single: the calls that were asked in float32, though any dtype would do: their dtype says
        nothing.
    source, signatures: the text, and of each function its signatures, as far as they are known.
    is_graded: then no exception's message is told.
    """

    recording: Recording
    seen: Mapping[int, Observed]
    in_single: Set[int]
    source: str
    signatures: Signatures
    is_graded: bool

    def __post_init__(self) -> None:
        recording, seen = self.recording, self.seen
        single = {i: e for i, e in seen.items() if i in self.in_single}
        due = {
            i: replace(e, found=replace(e.found, dtype=e.right.dtype)) for i, e in single.items()
        }
        # else mutants are not compared
        compared = {i: e for i, e in {**seen, **due}.items() if i in recording.facets}
        self._row = Row(recording, compared, compared, {*compared})
        self.wrong, self._right = (
            defaultdict[str, list[int]](list),
            defaultdict[str, list[int]](list),
        )
        for i, each in compared.items():
            (self.wrong if differs(recording, i, each.found) else self._right)[
                target_of(each.call)
            ].append(i)
        # by the misconception, the functions that were called
        self.proven = defaultdict[str, set[str]](set)
        for i, each in seen.items():
            for id_ in self.proven_by(i):
                self.proven[id_].add(target_of(each.call))
        different = {i: compared[i] for calls in self.wrong.values() for i in calls}
        for i, id_ in proven_by_chance(Row(recording, compared, different, {*compared})).items():
            self.proven[id_].add(target_of(compared[i].call))

    def proven_by(self, call: int) -> Iterator[str]:
        """Yield the misconceptions that an exception or an answer proves by itself."""
        seen = self.seen[call]
        kind = (
            kind_of(seen.reply.raised) if seen.reply.raised and seen.right.raised is None else None
        )
        yield from filter(
            None, (kind and kind.misconception, proven_by_answer(self.recording, call, seen))
        )

    def of(self, function: str) -> list[Observed]:
        """Return what was seen of a function."""
        return [each for each in self.seen.values() if target_of(each.call) == function]

    def is_seen(self, id_: str, calls: Sequence[int]) -> bool:
        """Return whether a mutant answers one of these calls as the attempt did."""
        return any(
            self._is_alike(m, i) for m in self._mutants(id_) for i in calls if i in self._row.asked
        )

    def is_also_in(self, id_: str, function: str) -> bool:
        """Return whether it is proved there, or one mutant answers every call of the function as
        the attempt did.
        """
        wrong, right = self.wrong[function], self._right[function]
        return function in self.proven[id_] or any(
            bool(wrong)
            and all(self._is_alike(m, i) for i in wrong)
            and all(self._row.silent(m, i) for i in right)
            for m in self._mutants(id_)
        )

    def answer_alike(self, id_: str, other: str, functions: Container[str]) -> bool:
        """Return whether mutants of both that answer a wrong call as the attempt did answer each
        call of these functions alike.
        """
        known, wrong = self.recording, self._row.wrong
        calls = [i for i, call in enumerate(known.calls) if target_of(call) in functions]
        alike = (
            [m for m in self._mutants(of) if any(self._is_alike(m, i) for i in wrong)]
            for of in (id_, other)
        )
        first, second = (
            {tuple(known.mutants[m].answers[i] for i in calls) for m in own} for own in alike
        )
        return not calls or not first.isdisjoint(second)

    def place(self, id_: str, wrong: Sequence[str]) -> str:
        """Return the function where it was found, of those that are wrong; "" where it is about the
        whole file.
        """
        if id_ == UNTOUCHED:
            return ""
        proven = self.proven[id_]
        seen = [name for name in wrong if name in proven or self.is_seen(id_, self.wrong[name])]
        # Of those that are proved some may be a name that the file does not have. Of two faults in
        # one function neither answers as both do: there a mutant that answers anything wrongly will
        # do.
        silent, mutants = self._row.silent, self._mutants(id_)
        can = (
            name
            for name in wrong
            if not all(silent(m, i) for m in mutants for i in self.wrong[name])
        )
        return next(chain(seen, sorted(proven), can, wrong), "")

    def _mutants(self, id_: str) -> list[int]:
        return [m for m, mutant in enumerate(self.recording.mutants) if mutant.id == id_]

    def _is_alike(self, mutant: int, call: int) -> bool:
        return not self._row.silent(mutant, call) and self._row.explains(mutant, call)


def placed(diagnosis: Diagnosis, wrong: Sequence[str], answers: Answers) -> Diagnosis:
    """Return the diagnosis, each misconception with its functions and the titles of its
    alternatives; none that may follow.

    wrong: the functions that are wrong, not those that are not written, or not there.
    """
    source, words = answers.source, answers.recording.words
    # it follows from no other
    own = [name for name in wrong if len(wrong) == 1 or not {*wrong} & uses(source, name)]
    empty = unwritten_names(source)

    def located(found: tuple[Diagnosed, ...]) -> tuple[Diagnosed, ...]:
        places = [answers.place(each.id, wrong) for each in found]
        unnamed = [name for name in wrong if name not in places]
        told = []
        for each, place in zip(found, places, strict=True):
            others = (
                n for n in unnamed if each.id != UNTOUCHED and (n in own or each.id == INTERFACE)
            )
            also_in = tuple(n for n in others if answers.is_also_in(each.id, n))
            alike = [
                a
                for a in each.alternatives
                if a in words and answers.answer_alike(each.id, a, empty)
            ]
            titles = tuple(words[a].title for a in alike)
            told.append(
                each.model_copy(
                    update={"function": place, "also_in": also_in, "alternative_titles": titles}
                )
            )
        return tuple(told)

    found = diagnosis.changed(located)
    left = {*wrong}.difference(*((each.function, *each.also_in) for each in found.every))

    def may_follow(each: Diagnosed) -> bool:  # from another function that is wrong and has no name
        return (
            not answers.proven[each.id]
            and bool(each.function)
            and not left.isdisjoint(uses(source, each.function))
        )

    def follows(each: Diagnosed) -> bool:
        own = (other.id for other in found.every if other.function == each.function)
        return any(each.id in CONSEQUENCES.get(id_, ()) for id_ in own)

    return found.changed(
        lambda every: tuple(each for each in every if not may_follow(each) and not follows(each))
    )


def evidence_of(error: CheckFailed, *, is_shown: bool = True) -> tuple[str, Raised | None]:
    """Return what a student reads of a check that failed, and the exception, if there was one,
    whose message may be shown.
    """
    if isinstance(error, AttemptRaised):
        return describe_exception(error.raised, error.due, is_shown=is_shown), error.raised
    return str(error), None


def arguments_due(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the names of a function's arguments; of a class none."""
    return tuple(each.name for s in signatures[:1] if s.build is None for each in s.call)


@dataclass(frozen=True)
class Findings:
    """What is known of each function; the checks and the misconceptions, each with its function;
    the lines that are wrong.
    """

    functions: tuple[FunctionResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    diagnosis: Diagnosis = NOTHING
    lines: tuple[ProvedLine, ...] = ()


@dataclass(frozen=True)
class _Failure:
    """Why a function fails a check: what was seen, in which calls, the exception, if there was one,
    and what it means.
    """

    check: PublicCheck
    seen: str
    raised: Raised | None = None
    mends: str = ""  # what usually cures the exception
    calls: tuple[int, ...] = ()
    means: str = ""
    besides: bool = False  # the check is about an edit, which does move what it should


def functions_of(answers: Answers, checks: Sequence[CheckResult], diagnosis: Diagnosis) -> Findings:
    """Return what is known of each function.

    A check stops at the first that fails it, but all of its calls were made.
    """
    recording, source = answers.recording, answers.source
    names = dict.fromkeys(map(target_of, recording.calls))  # in the order of their definitions
    failures = {name: [*_failures(answers, checks, name)] for name in names}
    # A misconception may show itself in a function that passes what is visible, and break those
    # that use it.
    first = {
        next((n for n in names if answers.is_seen(each.id, answers.wrong[n])), "")
        for each in diagnosis.named
    }
    bad = [name for name in names if failures[name] or name in first]
    # Checks ask more of some functions, which is put only where all before it passes.
    asked = {check.id for check in checks}
    asks = (ask for check in recording.visible if check.id not in asked for ask in check.asks)
    later = {target_of(recording.calls[group[-1]]) for ask in asks for group in ask.calls}
    found = [
        _seen(answers, name, name in bad, bad[0] if bad and name in later else "") for name in names
    ]
    empty = unwritten_names(source)
    wrong = [
        each.name
        for each in found
        if each.is_wrong and not each.is_undefined and each.name not in empty
    ]
    diagnosis = placed(diagnosis, wrong, answers)
    found = [_told(each, failures[each.name], diagnosis, answers) for each in found]
    functions = states_of(found, source, {part.function for part in diagnosis.every})
    wrong = [function.name for function in functions if function.state == "wrong"]
    return Findings(
        functions, tuple(_with_cause(check, wrong, failures) for check in checks), diagnosis
    )


def _seen(answers: Answers, name: str, is_wrong: bool, stopped_at: str) -> Seen:
    own = answers.of(name)
    raised = [each.reply.raised for each in own]
    return Seen(
        name,
        is_asked=bool(own),
        # What a call is given may be lacking, too.
        is_undefined=any(
            r and is_undefined(r) and r.message.startswith(f"{name} ") for r in raised
        ),
        is_empty=bool(own) and all(map(says_unwritten, raised)),
        is_wrong=is_wrong,
        stopped_at=stopped_at,
        is_class=any(isinstance(each.call.subject, Build) for each in own),
        arguments=arguments_due(answers.signatures.get(name, ())),
    )


def _failures(answers: Answers, checks: Sequence[CheckResult], name: str) -> Iterator[_Failure]:
    told, seen = {check.id: check for check in checks}, answers.seen
    failed = (
        c for c in answers.recording.visible if c.id in told and told[c.id].outcome != "passed"
    )
    for check in sorted(failed, key=lambda c: c.layer):
        result = told[check.id]
        own = [each for each in groups_of(check, seen) if target_of(seen[each[1][-1]].call) == name]
        # That a method is not written yet is no news: what is wrong beside it goes before it.
        own.sort(key=lambda each: any(says_unwritten(seen[i].reply.raised) for i in each[1]))
        if result.function == name and result.outcome in ("timeout", "crashed"):
            yield _Failure(check, result.evidence)
        elif broken := first_broken(own, seen):
            said, raised = evidence_of(broken.error, is_shown=not answers.is_graded)
            besides = broken.ask.aspect == "values" and any(
                ask.aspect == "moves" for ask in check.asks
            )
            mends = cure(answers.source, raised) if raised else ""
            yield _Failure(check, said, raised, mends, broken.calls, broken.ask.means, besides)


def _told(
    function: Seen, failures: Sequence[_Failure], diagnosis: Diagnosis, answers: Answers
) -> Seen:
    """Return the same with what is told of it, which is read between its first misconception's name
    and its hint.

    That is what ended the process; else what shows its first misconception; else what shows none of
    the others; else the first. It says which word the call was given, and where shapes do not fit,
    which sizes of it the exception's numbers are.
    """
    if not failures:
        return function
    named = [each.id for each in diagnosis.named if function.name in (each.function, *each.also_in)]

    # whether it alone would be seen so, as far as is known
    def shows(id_: str, failure: _Failure) -> bool:
        is_proven = id_ == failure.means or any(id_ in answers.proven_by(i) for i in failure.calls)
        return is_proven or answers.is_seen(id_, failure.calls)

    def place(failure: _Failure) -> tuple[int, int, bool]:
        ids = [id_ for id_ in named if shows(id_, failure)]
        return 1 if not ids else 2 * (named[0] not in ids), failure.check.layer, failure.besides

    failure = min(failures, key=place) if failures[0].calls else failures[0]
    raised, which, sizes = failure.raised, "", ""
    at = next(
        (answers.seen[i] for i in failure.calls if raised and answers.seen[i].reply.raised), None
    )
    if raised and at:
        given = (*getattr(at.call.subject, "args", ()), *at.call.args)
        # of several it makes
        which = next((f'That was for "{word}".' for word in given if isinstance(word, str)), "")
        if is_shape_fault(raised) or "is invalid for input of size" in raised.message:
            sizes = _sizes_in(raised, [at, *answers.of(function.name)], answers.signatures)
    outstanding = _outstanding(failure, answers, has_name=bool(named))
    evidence = joined(failure.seen, outstanding, which, sizes, failure.mends)
    return replace(function, check=failure.check.title, evidence=evidence, raised=raised)


def _outstanding(failure: _Failure, answers: Answers, *, has_name: bool) -> str:
    """Return what stands out in the wrong numbers of a call; of several numbers only where their
    mistake has no name.
    """
    if failure.raised or not any(
        says in failure.seen for says in ("values differ", "a single number")
    ):
        return ""
    for seen in (answers.seen[i] for i in failure.calls):
        if renamed := _renamed(seen):
            return renamed
        mine, right = next(iter(seen.reply.outputs), None), first_of(seen.expected)
        if mine is None or mine.tensor is None or right is None or (has_name and right.dim()):
            continue
        if told := what_stands_out(mine.tensor, right):
            return told
    return ""


def _renamed(seen: Observed) -> str:
    """Return which parameter that is due a module lacks, and which it has in its place; "" unless
    both are so.
    """
    due, own = seen.right.parameters, seen.found.parameters
    missing = sorted(due.keys() - own.keys(), key=lambda name: (name.endswith("bias"), name))
    extra = sorted(own.keys() - due.keys())
    alike = [name for name in extra if missing and own[name] == due[missing[0]]]
    return sanitize(f"It has no parameter {missing[0]}, and has {alike[0]}") if alike else ""


def _sizes_in(raised: Raised, calls: Sequence[Observed], signatures: Signatures) -> str:
    """Say which sizes of the first call the numbers of its exception are; others that raised there
    have to agree.
    """
    known: list[tuple[Axes | None, str]] = []
    for seen, message in (
        (e, r.message) for e in calls if (r := e.reply.raised) and r.line == raised.line
    ):
        returned = next((tensor.shape for tensor in seen.expected if tensor is not None), ())
        listed = signatures.get(target_of(seen.call), ())
        axes = next(
            filter(None, (axes_of(each, seen.call, returned, signatures) for each in listed)), None
        )
        known.append((axes, message))
    said = said_of([(axes, message) for axes, message in known if axes]) if known[0][0] else ""
    return said and f"{said}."


def _with_cause(
    check: CheckResult, wrong: Sequence[str], failures: Mapping[str, Sequence[_Failure]]
) -> CheckResult:
    """Return the check with the first function that is wrong and fails it, in place of one that
    only waits for it.
    """
    if check.outcome not in ("failed", "error"):
        return check
    found = ((name, each) for name in wrong for each in failures[name] if each.check.id == check.id)
    for name, failure in found:
        if check.function not in wrong or (name == check.function and failure.raised):
            return check.model_copy(
                update={"function": name, "evidence": joined(failure.seen, failure.mends)}
            )
    return check


def with_start(diagnosis: Sequence[Diagnosed], hint: str) -> tuple[Diagnosed, ...]:
    """Return the same; where nothing is written, the hint is the exercise's own, which is about
    getting started.
    """
    return tuple(
        d.model_copy(update={"hint": hint}) if hint and d.id == UNTOUCHED else d for d in diagnosis
    )


Attempt = AttemptRunner | LocalRecordingRunner


def answer_public_calls(
    recording: Recording,
    attempt: Attempt,
    source: str | None,
    exercise: Exercise | None = None,
    bank: Bank | None = None,
) -> Findings:
    """Return the results of the visible checks, the state of each function, and what is named.

    Where a visible check fails, all public calls are put. source, exercise: None where they are not
    at hand.
    bank: the mutants, in grading, where a hidden check has failed: then a mistake is looked for,
    though every visible check passes, and no exception's message is told.
    """
    text, is_graded = source or "", bank is not None
    if isinstance(attempt, AttemptRunner):
        early = [
            i
            for c in sorted(recording.visible, key=lambda c: c.layer)
            if not c.is_last
            for i in c.asked
        ]
        rest = [i for check in recording.checks for i in check.calls] if is_graded else []
        attempt.ask_ahead([recording.calls[i] for i in dict.fromkeys([*early, *rest])])
    signatures = {name: exercise.signatures(name) for name in exercise.shapes} if exercise else {}
    seen: dict[int, Observed] = {}
    checks = list(visible_results(recording, attempt, seen))
    outcomes = {check.outcome for check in checks}
    diagnosis = Diagnosis()
    if source is not None and "passed" not in outcomes and is_unwritten(source):
        diagnosis = naming(recording.words, UNTOUCHED)
    elif is_graded or outcomes - {"passed"}:
        # the calls that decide no visible check: a diagnosis has more to go by
        with contextlib.suppress(AttemptEnded):
            for index in (i for check in recording.checks for i in check.calls if i not in seen):
                seen[index] = see(recording, index, attempt)
        by_name = _right_by_name(attempt, seen, text, signatures)
        diagnosis = diagnose(recording, {**seen, **by_name}, text, bank)
        if by_name:
            diagnosis = replace(
                diagnosis, named=(named(recording.words, INTERFACE), *diagnosis.named)
            )
    wrong = {target_of(each.call) for i, each in seen.items() if differs(recording, i, each.found)}
    if wrong and not is_graded:  # in grading the hidden checks decide the points
        checks = without_unmet_conditions(recording, attempt, checks, seen, wrong)
    in_single = {i for i in seen if id(recording.calls[i]) in attempt.in_single}
    results = sorted(checks, key=lambda check: check.outcome == "passed")
    return functions_of(
        Answers(recording, seen, in_single, text, signatures, is_graded), results, diagnosis
    )


def visible_results(
    recording: Recording, attempt: Attempt, seen: dict[int, Observed], ids: Sequence[str] = ()
) -> Iterator[CheckResult]:
    """Yield the results of the visible checks; of those that are asked last only where all before
    them pass.

    seen: gets what is seen. ids: of the checks; empty: all.
    """
    visible, passed = [c for c in recording.visible if not ids or c.id in ids], True
    first, last = ([c for c in visible if c.is_last is is_last] for is_last in (False, True))
    for check in (*sorted(first, key=lambda c: c.layer), *last):
        if passed or not check.is_last:
            result = _check(recording, check, attempt, seen)
            passed = passed and result.outcome == "passed"
            yield result


def _check(
    recording: Recording, check: PublicCheck, attempt: Attempt, seen: dict[int, Observed]
) -> CheckResult:
    attempt.check = check.id
    targets = list(dict.fromkeys(target_of(recording.calls[index]) for index in check.calls))
    asked = {}
    try:
        for index in check.asked:
            asked[index] = seen[index] = see(recording, index, attempt)
    except AttemptEnded as ended:
        call = attempt.ended.get(check.id)
        place = target_of(call) if call else ""
        return check_result(
            check, "timeout" if ended.end is End.TIMEOUT else "crashed", str(ended), place
        )
    if broken := first_broken(groups_of(check, asked), asked):
        evidence, raised = evidence_of(broken.error)
        # of which the others are only what it is held against
        place = target_of(recording.calls[broken.calls[-1]])
        return check_result(check, "failed" if raised is None else "error", evidence, place)
    return check_result(check, "passed", "", targets[0] if len(targets) == 1 else "")


def _right_by_name(
    attempt: Attempt, seen: Mapping[int, Observed], source: str, signatures: Signatures
) -> dict[int, Observed]:
    """Return the calls of functions that take their arguments in another order, and are right where
    they are passed by name.
    """
    found: dict[int, Observed] = {}
    due = {name: arguments_due(listed) for name, listed in signatures.items()}
    for name in (name for name, names in due.items() if in_another_order(source, name, names)):
        calls = {
            i: each
            for i, each in seen.items()
            if target_of(each.call) == name and each.right.raised is None
        }
        again: dict[int, Observed] = {}
        with contextlib.suppress(AttemptEnded):
            again = {i: _by_name(attempt, each, due[name]) for i, each in calls.items()}
        if all(each.found.agrees(each.right, ("outputs",)) for each in again.values()):
            found |= {
                i: replace(each, call=calls[i].call, found=each.right) for i, each in again.items()
            }
    return found


def _by_name(attempt: Attempt, seen: Observed, names: Sequence[str]) -> Observed:
    kwargs = {**dict(zip(names, seen.call.args, strict=False)), **seen.call.kwargs}
    # gradients have positions
    call = replace(seen.call, args=(), kwargs=kwargs, cotangent=None, second=False)
    return observed(call, seen.right, seen.expected, settled(call, attempt.execute(call)))


def see(recording: Recording, index: int, attempt: Attempt) -> Observed:
    """Put a recorded call, and return what is seen. Raises AttemptEnded."""
    call, right = recording.calls[index], recording.right(index)
    return observed(call, right, recording.expected[index], settled(call, attempt.execute(call)))


def check_result(
    check: PublicCheck | CheckOutcome, outcome: Outcome, evidence: str, function: str = ""
) -> CheckResult:
    """Return the result of a check."""
    passed = outcome == "passed"
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome=outcome,
        score=check.points if passed else 0.0,
        max_score=check.points,
        evidence=sanitize(evidence),
        hint="" if passed else check.hint,
        function=function,
    )
