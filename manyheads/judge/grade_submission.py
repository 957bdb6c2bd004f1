"""Grade one submission: run the checks of each exercise on the attempt, then diagnose it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

from ..box.connection import AttemptEnded, End
from ..box.level import Box
from ..box.worker.limits import MIB
from ..box.worker.messages import Call
from ..checks.implementation import LocalRunner
from ..checks.local import namespace_of
from ..checks.outcome import DIED, FAILED_ITSELF, CheckOutcome
from ..checks.sanitize import joined, sanitize
from ..checks.transcript import Exchange, target_of
from ..course import Course, Exercise
from ..diagnosis import load_bank
from ..diagnosis.agree import agree, asks_for_a_gpu, is_comparable
from ..diagnosis.diagnosis import NOTHING, AllWords, Diagnosis, named, naming
from ..diagnosis.guards import REFUSES, UNDIVIDED
from ..diagnosis.proofs import can_cause
from ..diagnosis.recording import Recording
from ..diagnosis.recording_file import current
from ..errors import CourseFault
from ..lines.find_lines import OutOfTime
from ..result import ExerciseResult, FunctionResult, Outcome, ProvedLine, Result, total_of
from ..submission import AttemptSource, Submission, code_digest, proved_line, read_exercise
from ..submission.standing import told_of_file
from ..submission.unwritten import UNTOUCHED
from .attempt_runner import AttemptRunner, Memory, RememberingRunner
from .cures import are_the_cause, as_note, cure, explain_text, stopped_parts
from .function_states import FINE, uses
from .prove_line import EditedAttempts, IsRight
from .public_checks import Findings, answer_public_calls, check_result, with_start
from .record_results import Settings as Settings
from .record_results import versions_of
from .run_checks import CheckRun, GraderFault, HiddenChecks, cpu_budget, points_fault

RECORDED_VERSIONS = ("torch", "numpy", "pytest", "manyheads")
RESULTS = 1000  # how many texts' results are remembered
# of all exercises together: the 14 of the course take 70 with right attempts
REMEMBERED = 192 * MIB
DIGITS = 12  # of a file's digest in a result


def result_of(
    exercise: Exercise, outcomes: Sequence[CheckOutcome], found: Findings, note: str = ""
) -> ExerciseResult:
    """Return the result of an exercise.

    Where a check with points could not be run, nothing is said of the attempt.
    """
    checks = tuple(check_result(o, o.outcome, o.evidence, o.place) for o in outcomes)
    is_graded = not any(c.outcome == "skipped" and c.max_score for c in checks)
    found = found if is_graded else Findings()
    return ExerciseResult(
        id=exercise.id,
        score=sum(c.score for c in checks) if is_graded else None,
        max_score=sum(c.max_score for c in checks),
        checks=checks,
        diagnosis=with_start(found.diagnosis.named, exercise.hint),
        also=found.diagnosis.also,
        answers=found.diagnosis.answers,
        lines=found.lines,
        note=note,
        functions=found.functions,
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
        self._recording = cache(current)  # each read once
        self._results: dict[tuple[str, int, str], ExerciseResult] = {}  # by exercise, seed and text
        # by exercise: for the seed that was asked for last
        self._memories: dict[str, tuple[int, Memory]] = {}
        self._versions = {"python": platform.python_version(), **versions_of(RECORDED_VERSIONS)}
        self.faults: list[str] = []

    def demand_points(self) -> None:
        """Raise GraderFault where an exercise's checks do not give the points that course.yaml
        says.
        """
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

        only: ids of exercises; empty: all. given_up: ids of those at which judges died: they are
            not graded.
        """
        assignment, wanted = submission.assignment, only or self._settings.exercises
        results = [
            self._all_ended(e, "skipped", DIED)
            if e.id in given_up
            else self._grade_exercise(submission, e)
            for e in assignment.exercises
            if not wanted or e.id in wanted
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
        with cpu_budget():  # past which this judge is replaced, as one that died
            source = read_exercise(
                submission.folder, exercise, untouched, self._course.limits.source_kib
            )
            return self.grade_attempt(submission.student, exercise, source)

    def grade_attempt(
        self, student: str, exercise: Exercise, source: AttemptSource, seed: int | None = None
    ) -> ExerciseResult:
        """Grade one attempt. seed: for its inputs, in place of the run's seed."""
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
        return told_of_file(result.model_copy(update={"note": note, "digest": digest}), source)

    def _all_ended(self, exercise: Exercise, outcome: Outcome, sentence: str) -> ExerciseResult:
        unattempted = self._checks.unattempted(exercise.checks)
        diagnosis = (
            naming(load_bank(exercise).texts, "load_error") if outcome == "error" else NOTHING
        )
        ended = [replace(o, outcome=outcome, evidence=sentence) for o in unattempted]
        return result_of(exercise, ended, Findings(diagnosis=diagnosis))

    def _judge_once(self, exercise: Exercise, source: AttemptSource, seed: int) -> ExerciseResult:
        """As `_judge`; what another student has handed in word for word has the same result, as
        long as it ran well.
        """
        key = (exercise.id, seed, source.digest)
        if key in self._results:
            return self._results[key]
        result, is_certain = self._judge(exercise, source, seed)
        if is_certain and not any(
            check.outcome in ("timeout", "crashed", "skipped") for check in result.checks
        ):
            self._results[key] = result  # else the machine may have had its part in it
            if len(self._results) > RESULTS:
                del self._results[next(iter(self._results))]
        return result

    def _judge(
        self, exercise: Exercise, source: AttemptSource, seed: int
    ) -> tuple[ExerciseResult, bool]:
        """Return the result of an attempt, and whether no process ended while it was loaded."""
        if source.missing:
            return self._all_ended(exercise, "missing", f"{source.name} was not handed in."), True
        if source.problem:
            return self._all_ended(exercise, "error", source.problem), True
        memory, settings = self._memory(exercise, seed), self._settings
        named = LocalRunner(namespace_of(exercise.solution))
        attempt = AttemptRunner(
            self._box,
            source,
            self._limits,
            settings.device,
            settings.dtype,
            memory,
            reference=named,
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
                said = joined(
                    f"It {explain_text(source, raised)}", cure(source.source, raised) or " "
                ).rstrip()
                return self._all_ended(exercise, "error", said), True
            outcomes = self._checks.run(exercise.checks, run)
        is_certain = not any(part.ended for part in attempt.stopped)
        note = stopped_parts(attempt.source, attempt.stopped, partial(explain_text, attempt.source))
        if are_the_cause(attempt.source, attempt.stopped, attempt.transcript):
            return self._all_ended(exercise, "error", note), is_certain
        return self._told(exercise, attempt, run, outcomes, as_note(note)), is_certain

    def _told(
        self,
        exercise: Exercise,
        attempt: AttemptRunner,
        run: CheckRun,
        outcomes: Sequence[CheckOutcome],
        note: str,
    ) -> ExerciseResult:
        """Return the result of checks that were run, with the line, the functions and the
        misconceptions.
        """
        self.faults += [o.fault for o in outcomes if o.fault]
        lines = self._lines(exercise, attempt, run, outcomes)
        source, transcript, ended = attempt.source, attempt.transcript, attempt.ended
        outcomes = with_places(
            outcomes, transcript, ended, lambda e: agree(e.reply, run.reference.execute(e.call))
        )
        asked = {target_of(call) for call in (*(e.call for e in transcript), *ended.values())}
        names = (name for name in namespace_of(exercise.solution) if name in asked)
        found = Findings(tuple(FunctionResult(name=name, state="right") for name in names))
        if any(o.outcome != "passed" for o in outcomes):
            recording = self._recording(exercise)
            if recording and self._settings.diagnoses:
                with self._noting(f"{source.name}: what it is told"):
                    found = self._public(exercise, attempt, recording) or found
            if lines:
                found = replace(found, lines=lines, diagnosis=found.diagnosis.of_one_mistake())
            failed_by = recording.failed_by if recording else {}
            found = with_hidden_checks(
                found, outcomes, source.source, load_bank(exercise).texts, failed_by
            )
        return result_of(exercise, outcomes, found, note)

    def _lines(
        self,
        exercise: Exercise,
        attempt: AttemptRunner,
        run: CheckRun,
        outcomes: Sequence[CheckOutcome],
    ) -> tuple[ProvedLine, ...]:
        """Return the lines where one small edit makes every check pass.

        Not on a GPU, where a process takes seconds to start.
        """
        skipped = {o.id for o in outcomes if o.outcome == "skipped"}

        def is_right(call: Call) -> IsRight | None:
            right = run.reference.execute(call) if is_comparable(call) else None
            return (lambda reply: agree(reply, right)) if right else None

        def do_pass(edited: AttemptRunner, ids: Sequence[str]) -> bool:
            found = self._checks.run(exercise.checks, replace(run, attempt=edited), ids)
            if any(o.outcome == "timeout" for o in found):
                raise OutOfTime
            return all(o.outcome == "passed" or o.id in skipped for o in found)

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
        self, exercise: Exercise, judged: AttemptRunner, recording: Recording
    ) -> Findings | None:
        """Return what the attempt's answers to the public calls show; None where it does not answer
        them.

        They are put to a process of their own, which has met no hidden input and can put none into
        a message. So what is told of its answers needs no guard.
        """
        for call in recording.calls:
            judged.memory.hold_as_it_is(call)
        source, memory, in_both = judged.source, judged.memory, judged.in_both
        attempt = AttemptRunner(self._box, source, self._limits, memory=memory, in_both=in_both)
        with closing(attempt), suppress(AttemptEnded):
            if attempt.load() is None:
                return answer_public_calls(
                    recording, attempt, source.source, exercise, load_bank(exercise)
                )
        return None

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        """Note what breaks in the block as a fault of the grader: the points stand without it."""
        try:
            yield
        except Exception as error:
            self.faults.append(sanitize(f"{what}: {type(error).__name__}: {error}"))

    def _memory(self, exercise: Exercise, seed: int) -> Memory:
        if exercise.id not in self._memories or self._memories[exercise.id][0] != seed:
            self._memories[exercise.id] = (seed, Memory())
        memory = self._memories[exercise.id][1]
        memory.begin_attempt()
        others = sorted(
            (each for _, each in self._memories.values() if each is not memory),
            key=lambda m: m.size,
        )
        while others and memory.size + sum(other.size for other in others) > REMEMBERED:
            others.pop().forget()
        return memory


def with_places(
    outcomes: Sequence[CheckOutcome],
    transcript: Sequence[Exchange],
    ended: Mapping[str, Call],
    is_right: Callable[[Exchange], bool],
) -> list[CheckOutcome]:
    """Return the outcomes, each with its function; "" where it asks several and passed.

    A check failed at the last function that it called, or at one that gave this a wrong
    answer. transcript: what the checks asked. ended: the call that ended the process, by the id of
    the check.
    """

    def is_wrong(each: Exchange) -> bool:  # whether it raises can be judged, where numbers cannot
        can_be_judged = is_comparable(each.call) or (
            each.reply.raised and not asks_for_a_gpu(each.call)
        )
        return bool(each.reply.mutated) or (bool(can_be_judged) and not is_right(each))

    def place(outcome: CheckOutcome) -> str:
        own = [exchange for exchange in transcript if exchange.check == outcome.id]
        targets = [target_of(exchange.call) for exchange in own]
        if outcome.outcome == "passed":
            return targets[0] if len({*targets}) == 1 else ""
        if outcome.place or not own or outcome.id in ended:
            return outcome.place or (target_of(ended[outcome.id]) if outcome.id in ended else "")
        wrong = [target_of(exchange.call) for exchange in own if is_wrong(exchange)]
        return wrong[0] if wrong and targets[-1] not in wrong else targets[-1]

    return [replace(outcome, place=place(outcome)) for outcome in outcomes]


def with_hidden_checks(
    told: Findings,
    outcomes: Sequence[CheckOutcome],
    source: str,
    words: AllWords,
    failed_by: Mapping[str, list[frozenset[str]]],
) -> Findings:
    """Return what is told, with what only the hidden checks show.

    A function that fails one of them and passes what is public is wrong. A misconception that a
    failed check proves by itself stands with the others; beside them, where it can not be why the
    checks fail.
    """
    failed = [o for o in outcomes if o.outcome not in ("passed", "skipped")]
    first = {outcome.place: outcome for outcome in reversed(failed)}
    functions: dict[str, FunctionResult] = {}
    for each in told.functions:
        if each.name in first and each.state in FINE:
            others = [
                o.name
                for o in functions.values()
                if o.state not in FINE and o.name in uses(source, each.name)
            ]
            each = FunctionResult(
                name=each.name,
                state="waiting" if others else "wrong",
                waits_for=next(iter(others), ""),
                check=first[each.name].title,
                evidence=sanitize(first[each.name].evidence),
            )
        functions[each.name] = each
    # A stub does nothing that it should not.
    written = {
        name for name, each in functions.items() if each.state not in ("unwritten", "undefined")
    }
    proven: dict[str, str] = {}
    for outcome in failed:
        if outcome.place in written and _is_news(outcome, told.diagnosis, failed_by):
            proven.setdefault(outcome.suspect, outcome.place)
    new = tuple(
        named(words, id_).model_copy(update={"function": place}) for id_, place in proven.items()
    )
    diagnosis, by_themselves = told.diagnosis, {o.id: o.suspect for o in failed if not o.unmet}
    unexplained = {id_ for id_, suspect in by_themselves.items() if not suspect}
    if diagnosis.named or can_cause([*proven], unexplained, {*by_themselves}, lambda: failed_by):
        diagnosis = replace(
            diagnosis,
            named=tuple(sorted((*diagnosis.named, *new), key=lambda d: d.id == UNTOUCHED)),
        )
    else:
        diagnosis = replace(diagnosis, also=(*diagnosis.also, *new))
    return replace(told, functions=tuple(functions.values()), diagnosis=diagnosis)


def _is_news(
    outcome: CheckOutcome, diagnosis: Diagnosis, failed_by: Mapping[str, list[frozenset[str]]]
) -> bool:
    """Return whether a failed check proves a misconception that does not follow from what is
    named.
    """
    known = {id_ for each in diagnosis.every for id_ in (each.id, *each.alternatives)}
    if REFUSES in known:
        known.add(UNDIVIDED)  # the same guard, seen from the other side
    follows = any(
        outcome.id in checks for each in diagnosis.named for checks in failed_by.get(each.id, ())
    )
    return bool(outcome.suspect) and outcome.suspect not in known and not follows
