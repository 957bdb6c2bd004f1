"""Grade one submission: run the checks of each exercise on the attempt, then diagnose it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

from ..box.connection import AttemptEnded, Box, End
from ..box.worker.limits import MIB
from ..box.worker.messages import Call
from ..checks.explain import joined, sanitize
from ..checks.hidden_check import DIED, FAILED_ITSELF, CheckOutcome
from ..checks.runner import Exchange, LocalRunner, namespace_of, target_of
from ..course import Course, Exercise
from ..course_fault import CourseFault
from ..diagnosis import load_bank
from ..diagnosis.bank import NOTHING, AllWords, Diagnosis, named, naming
from ..diagnosis.evidence import REFUSES, UNDIVIDED, can_cause
from ..diagnosis.fault_dictionary import FaultDictionary
from ..diagnosis.fingerprint import agree, asks_for_a_gpu, is_comparable
from ..diagnosis.recording_file import current
from ..lines.search import OutOfTime
from ..result import ExerciseResult, FunctionResult, Outcome, ProvedLine, Result, total_of
from ..submission import Source, Submission, code_digest, proved_line, read_exercise
from ..submission.source import UNTOUCHED, with_locations
from .attempt_runner import AttemptRunner, RememberingRunner, ReplayCache
from .exception_advice import are_the_cause, as_note, explain_text, stopped_parts, suggest
from .function_states import FINE
from .prove_line import EditedAttempts, IsRight
from .public_checks import Attribution, answer_public_calls, check_result, with_start
from .results_folder import Settings as Settings
from .results_folder import versions_of
from .run_hidden_checks import CheckRun, GraderFault, HiddenChecks, cpu_budget, points_fault

RECORDED_VERSIONS = ("torch", "numpy", "pytest", "manyheads")
RESULTS = 1000  # the number of attempts whose results are remembered
# bytes of all replay caches together: with correct attempts, the 14 exercises of the course need 70
# MiB
REMEMBERED = 192 * MIB
DIGITS = 12  # the length of a file's digest in a result


def result_of(
    exercise: Exercise, outcomes: Sequence[CheckOutcome], attribution: Attribution, note: str = ""
) -> ExerciseResult:
    """Return the result of an exercise.

    If a check with points could not be run, the result has no points and no diagnosis.
    """
    checks = tuple(check_result(o, o.outcome, o.evidence, o.function) for o in outcomes)
    is_graded = not any(c.outcome == "skipped" and c.max_score for c in checks)
    attribution = attribution if is_graded else Attribution()
    return ExerciseResult(
        id=exercise.id,
        score=sum(c.score for c in checks) if is_graded else None,
        max_score=sum(c.max_score for c in checks),
        checks=checks,
        diagnosis=with_start(attribution.diagnosis.named, exercise.hint),
        also=attribution.diagnosis.also,
        answers=attribution.diagnosis.answers,
        lines=attribution.lines,
        note=note,
        functions=attribution.functions,
    )


class Judge:
    """Grades submissions with the checks of a course and a box."""

    def __init__(self, course: Course, box: Box, settings: Settings) -> None:
        """Collect the checks. Raises GraderFault, BrokenReference."""
        self._course, self._box, self._settings = course, box, settings
        self._limits = course.limits.for_worker(settings.device)
        self._exercises = [
            e for e in course.exercises if not settings.exercises or e.id in settings.exercises
        ]
        self._checks = HiddenChecks([e.checks for e in self._exercises], settings.device)
        self._recording = cache(current)  # each fault dictionary is read once
        # keyed by exercise, seed and text
        self._results: dict[tuple[str, int, str], ExerciseResult] = {}
        # for each exercise, the last seed and its replay cache
        self._memories: dict[str, tuple[int, ReplayCache]] = {}
        self._versions = {"python": platform.python_version(), **versions_of(RECORDED_VERSIONS)}
        self.faults: list[str] = []

    def demand_points(self) -> None:
        """Raise GraderFault if the points of an exercise's checks differ from course.yaml."""
        points = (
            (e.id, points_fault(e, self._checks.unattempted(e.checks))) for e in self._exercises
        )
        faults = {id_: fault for id_, fault in points if fault}
        if faults:
            raise GraderFault(
                f"{'; '.join(faults.values())}. Nobody is graded. Next: course verify "
                f"{' '.join(faults)}"
            )

    def grade(
        self, submission: Submission, only: Collection[str] = (), given_up: Collection[str] = ()
    ) -> Result:
        """Grade a submission. Nothing that a student does makes this raise.

        Args:
            submission: The submission.
            only: The ids of the exercises to grade; empty for all.
            given_up: The ids of exercises during which judges died. They are not graded.
        """
        assignment, exercise_ids = submission.assignment, only or self._settings.exercises
        results = [
            self._all_ended(e, "skipped", DIED)
            if e.id in given_up
            else self._grade_exercise(submission, e)
            for e in assignment.exercises
            if not exercise_ids or e.id in exercise_ids
        ]
        return Result(
            student=submission.student,
            assignment=assignment.id,
            score=total_of(r.score for r in results),
            max_score=sum(r.max_score for r in results),
            device=self._settings.device,
            isolation=self._box.level,
            seed=self._settings.seed,
            versions=dict(self._versions),
            exercises=tuple(results),
        )

    def _grade_exercise(self, submission: Submission, exercise: Exercise) -> ExerciseResult:
        stub = exercise.script
        untouched = code_digest(stub.read_text(encoding="utf-8")) if stub.exists() else None
        with cpu_budget():  # after the limit, another judge replaces this process
            source = read_exercise(
                submission.folder, exercise, untouched, self._course.limits.source_kib
            )
            return self.grade_attempt(submission.student, exercise, source)

    def grade_attempt(
        self, student: str, exercise: Exercise, source: Source, seed: int | None = None
    ) -> ExerciseResult:
        """Grade one attempt.

        Args:
            student: The student.
            exercise: The exercise.
            source: The attempt.
            seed: The seed of its inputs. None means the seed of the run.
        """
        try:
            result = self._judge_once(
                exercise, source, self._settings.seed if seed is None else seed
            )
        except CourseFault:
            raise
        # a fault of the grader in one attempt must not cost other students their results
        except Exception as error:
            self.faults.append(
                sanitize(f"{student}: {exercise.id}: {type(error).__name__}: {error}")
            )
            result = self._all_ended(exercise, "skipped", FAILED_ITSELF)
        note = " ".join(filter(None, (source.note, result.note)))
        digest = "" if source.missing else source.digest[:DIGITS]
        return with_locations(result.model_copy(update={"note": note, "digest": digest}), source)

    def _all_ended(self, exercise: Exercise, outcome: Outcome, sentence: str) -> ExerciseResult:
        unattempted = self._checks.unattempted(exercise.checks)
        diagnosis = (
            naming(load_bank(exercise).texts, "load_error") if outcome == "error" else NOTHING
        )
        ended = [replace(o, outcome=outcome, evidence=sentence) for o in unattempted]
        return result_of(exercise, ended, Attribution(diagnosis=diagnosis))

    def _judge_once(self, exercise: Exercise, source: Source, seed: int) -> ExerciseResult:
        """Return the result of an attempt, without running a text again that ran well before.

        Students with the same text have the same result.
        """
        key = (exercise.id, seed, source.digest)
        if key in self._results:
            return self._results[key]
        result, is_certain = self._judge(exercise, source, seed)
        if is_certain and not any(
            check.outcome in ("timeout", "crashed", "skipped") for check in result.checks
        ):
            self._results[key] = result  # otherwise this machine may be the cause
            if len(self._results) > RESULTS:
                del self._results[next(iter(self._results))]
        return result

    def _judge(self, exercise: Exercise, source: Source, seed: int) -> tuple[ExerciseResult, bool]:
        """Return the result of an attempt, and whether no process ended while it was loaded."""
        if source.missing:
            return self._all_ended(exercise, "missing", f"{source.name} was not handed in."), True
        if source.problem:
            return self._all_ended(exercise, "error", source.problem), True
        memory, settings = self._memory(exercise, seed), self._settings
        naming_reference = LocalRunner(namespace_of(exercise.solution))
        attempt = AttemptRunner(
            self._box,
            source,
            self._limits,
            settings.device,
            settings.dtype,
            memory,
            reference=naming_reference,
        )
        # The reference computes on the CPU even if the attempt does not, so that checks compare the
        # devices.
        reference = RememberingRunner(
            namespace_of(exercise.solution), only_values=True, memory=memory
        )
        # All students get the same inputs, so that the same code earns the same points.
        run = CheckRun(
            attempt, reference, settings.secret, (str(seed), exercise.id), memory, exercise.forms
        )
        with closing(attempt):
            try:
                raised = attempt.load()
            except AttemptEnded as end:
                outcome: Outcome = "timeout" if end.end is End.TIMEOUT else "crashed"
                return self._all_ended(
                    exercise, outcome, f"While the file was imported: {end}"
                ), True
            if raised is not None:
                sentence = joined(
                    f"It {explain_text(source, raised)}", suggest(source, raised) or " "
                ).rstrip()
                return self._all_ended(exercise, "error", sentence), True
            outcomes = self._checks.run(exercise.checks, run)
        is_certain = not any(stop.ended for stop in attempt.stopped)
        note = stopped_parts(attempt.source, attempt.stopped, partial(explain_text, attempt.source))
        if are_the_cause(attempt.source, attempt.stopped, attempt.transcript):
            return self._all_ended(exercise, "error", note), is_certain
        return self._diagnosed_result(exercise, attempt, run, outcomes, as_note(note)), is_certain

    def _diagnosed_result(
        self,
        exercise: Exercise,
        attempt: AttemptRunner,
        run: CheckRun,
        outcomes: Sequence[CheckOutcome],
        note: str,
    ) -> ExerciseResult:
        """Return the result of checks that were run, with line, functions and misconceptions."""
        self.faults += [o.fault for o in outcomes if o.fault]
        lines = self._lines(exercise, attempt, run, outcomes)
        source, transcript, ended = attempt.source, attempt.transcript, attempt.ended
        outcomes = with_functions(
            outcomes, transcript, ended, lambda e: agree(e.reply, run.reference.execute(e.call))
        )
        calls = [*(e.call for e in transcript), *ended.values()]
        targets = {target_of(call) for call in calls}
        names = (name for name in namespace_of(exercise.solution) if name in targets)
        attribution = Attribution(tuple(FunctionResult(name=name, state="right") for name in names))
        if any(o.outcome != "passed" for o in outcomes):
            recording = self._recording(exercise)
            if recording and self._settings.diagnoses:
                with self._noting(f"{source.name}: what it is told"):
                    attribution = self._public(exercise, attempt, recording) or attribution
            if lines:
                attribution = replace(
                    attribution, lines=lines, diagnosis=attribution.diagnosis.of_one_mistake()
                )
            failed_by = recording.failed_by if recording else {}
            attribution = with_hidden_checks(
                attribution, outcomes, source, load_bank(exercise).texts, failed_by
            )
        return result_of(exercise, outcomes, attribution, note)

    def _lines(
        self,
        exercise: Exercise,
        attempt: AttemptRunner,
        run: CheckRun,
        outcomes: Sequence[CheckOutcome],
    ) -> tuple[ProvedLine, ...]:
        """Return the lines at which one small edit makes every check pass.

        On a GPU the search is left out, because a process takes seconds to start there.
        """
        skipped = {o.id for o in outcomes if o.outcome == "skipped"}

        def is_right(call: Call) -> IsRight | None:
            expected = run.reference.execute(call) if is_comparable(call) else None
            return (lambda reply: agree(reply, expected)) if expected else None

        def do_pass(edited: AttemptRunner, ids: Sequence[str]) -> bool:
            edited_outcomes = self._checks.run(exercise.checks, replace(run, attempt=edited), ids)
            if any(o.outcome == "timeout" for o in edited_outcomes):
                raise OutOfTime
            return all(o.outcome == "passed" or o.id in skipped for o in edited_outcomes)

        if self._settings.lines and self._settings.device == "cpu":
            with self._noting(f"{attempt.source.name}: a search for its line"):
                edits = EditedAttempts(attempt, outcomes, is_right, do_pass).mended(
                    self._settings.bounds
                )
                return tuple(
                    proved_line(attempt.source, edit.line, edit.described) for edit in edits
                )
        return ()

    def _public(
        self, exercise: Exercise, judged: AttemptRunner, recording: FaultDictionary
    ) -> Attribution | None:
        """Return the findings from the attempt's answers to the public calls.

        The calls are made in a separate process, which has met no hidden input and can put none
        into a message. So its answers need no redaction. Returns None if the attempt cannot be
        loaded or its process ends.
        """
        for call in recording.calls:
            judged.memory.hold_as_it_is(call)
        source, memory, in_both = judged.source, judged.memory, judged.in_both
        attempt = AttemptRunner(self._box, source, self._limits, memory=memory, in_both=in_both)
        with closing(attempt), suppress(AttemptEnded):
            if attempt.load() is None:
                return answer_public_calls(
                    recording, attempt, source, exercise, load_bank(exercise)
                )
        return None

    @contextmanager
    def _noting(self, context: str) -> Iterator[None]:
        """Note an exception in the block as a fault of the grader.

        The points do not depend on the block.
        """
        try:
            yield
        except Exception as error:
            self.faults.append(sanitize(f"{context}: {type(error).__name__}: {error}"))

    def _memory(self, exercise: Exercise, seed: int) -> ReplayCache:
        if exercise.id not in self._memories or self._memories[exercise.id][0] != seed:
            self._memories[exercise.id] = (seed, ReplayCache())
        memory = self._memories[exercise.id][1]
        memory.begin_attempt()
        other_memories = sorted(
            (
                other_memory
                for _, other_memory in self._memories.values()
                if other_memory is not memory
            ),
            key=lambda m: m.size,
        )
        while (
            other_memories
            and memory.size + sum(other_memory.size for other_memory in other_memories) > REMEMBERED
        ):
            other_memories.pop().forget()
        return memory


def with_functions(
    outcomes: Sequence[CheckOutcome],
    transcript: Sequence[Exchange],
    ended: Mapping[str, Call],
    is_right: Callable[[Exchange], bool],
) -> list[CheckOutcome]:
    """Return the outcomes, each with its function; "" for a passed check of several functions.

    A check failed at the last function that it called, or at the first one with a wrong answer if
    the last one answered right.

    Args:
        outcomes: The outcomes.
        transcript: The calls of the checks, with the attempt's replies.
        ended: The call that ended the process, by the id of the check.
        is_right: Returns whether a reply is right.
    """

    # Even if the numbers of a reply cannot be judged, an exception can.
    def is_wrong(exchange: Exchange) -> bool:
        can_be_judged = is_comparable(exchange.call) or (
            exchange.reply.raised and not asks_for_a_gpu(exchange.call)
        )
        return bool(exchange.reply.mutated) or (bool(can_be_judged) and not is_right(exchange))

    def function_of(outcome: CheckOutcome) -> str:
        exchanges = [exchange for exchange in transcript if exchange.check == outcome.id]
        targets = [target_of(exchange.call) for exchange in exchanges]
        if outcome.outcome == "passed":
            return targets[0] if len({*targets}) == 1 else ""
        if outcome.function or not exchanges or outcome.id in ended:
            return outcome.function or (target_of(ended[outcome.id]) if outcome.id in ended else "")
        wrong_targets = [target_of(exchange.call) for exchange in exchanges if is_wrong(exchange)]
        return (
            wrong_targets[0] if wrong_targets and targets[-1] not in wrong_targets else targets[-1]
        )

    return [replace(outcome, function=function_of(outcome)) for outcome in outcomes]


def with_hidden_checks(
    attribution: Attribution,
    outcomes: Sequence[CheckOutcome],
    source: Source,
    words: AllWords,
    failed_by: Mapping[str, list[frozenset[str]]],
) -> Attribution:
    """Return the findings, with those that only the hidden checks show.

    A function is wrong if it fails a hidden check, even if it passes everything public. A
    misconception that a failed hidden check proves is added to the diagnosis. If it cannot be the
    reason why the checks fail, it is added beside the diagnosis.

    Args:
        attribution: The findings from the public calls.
        outcomes: The outcomes of the hidden checks.
        source: The attempt's text.
        words: The texts of the misconceptions.
        failed_by: For each misconception, the sets of checks that its mutants fail.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    first_failures = {outcome.function: outcome for outcome in reversed(failed)}
    functions: dict[str, FunctionResult] = {}
    for function in attribution.functions:
        if function.name in first_failures and function.state in FINE:
            blockers = [
                o.name
                for o in functions.values()
                if o.state not in FINE and o.name in source.uses(function.name)
            ]
            function = FunctionResult(
                name=function.name,
                state="waiting" if blockers else "wrong",
                waits_for=next(iter(blockers), ""),
                check=first_failures[function.name].title,
                evidence=sanitize(first_failures[function.name].evidence),
            )
        functions[function.name] = function
    # A stub has no misconception.
    written = {
        name
        for name, function in functions.items()
        if function.state not in ("unwritten", "undefined")
    }
    proven: dict[str, str] = {}
    for outcome in failed:
        if outcome.function in written and _is_news(outcome, attribution.diagnosis, failed_by):
            proven.setdefault(outcome.suspect, outcome.function)
    new = tuple(
        named(words, id_).model_copy(update={"function": function_name})
        for id_, function_name in proven.items()
    )
    diagnosis = attribution.diagnosis
    suspects = {o.id: o.suspect for o in failed if not o.trivial_answer}
    unexplained = {id_ for id_, suspect in suspects.items() if not suspect}
    if diagnosis.named or can_cause([*proven], unexplained, {*suspects}, lambda: failed_by):
        diagnosis = replace(
            diagnosis,
            named=tuple(sorted((*diagnosis.named, *new), key=lambda d: d.id == UNTOUCHED)),
        )
    else:
        diagnosis = replace(diagnosis, also=(*diagnosis.also, *new))
    return replace(attribution, functions=tuple(functions.values()), diagnosis=diagnosis)


def _is_news(
    outcome: CheckOutcome, diagnosis: Diagnosis, failed_by: Mapping[str, list[frozenset[str]]]
) -> bool:
    """Return whether a failed check proves a misconception that the diagnosis does not have.

    If mutants of a diagnosed misconception fail the check, too, the failure follows from that one.
    """
    diagnosed_ids = {
        id_
        for misconception in diagnosis.misconceptions
        for id_ in (misconception.id, *misconception.alternatives)
    }
    if REFUSES in diagnosed_ids:
        diagnosed_ids.add(UNDIVIDED)  # both are about the same guard
    follows = any(
        outcome.id in checks
        for misconception in diagnosis.named
        for checks in failed_by.get(misconception.id, ())
    )
    return bool(outcome.suspect) and outcome.suspect not in diagnosed_ids and not follows
