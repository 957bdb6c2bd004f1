"""Grade one submission: run the checks of each exercise on the attempt, then diagnose it."""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from ..box.connection import AttemptEnded, End
from ..box.level import Box
from ..box.worker.limits import MIB, Limits
from ..checks.explain import explain
from ..checks.local import namespace_of
from ..checks.outcome import DIED, FAILED_ITSELF, CheckOutcome
from ..checks.sanitize import sanitize
from ..checks.transcript import target_of
from ..course import Assignment, Course, Exercise
from ..diagnosis import load_bank
from ..diagnosis.agree import agree
from ..diagnosis.diagnosis import naming
from ..diagnosis.recording_file import current
from ..errors import CourseFault
from ..result import ExerciseResult, FunctionResult, Outcome, ProvedLine, Result, total_of
from ..submission import AttemptSource, Submission, code_digest, read_exercise
from ..submission.standing import told_of_file
from .attempt_runner import AttemptRunner
from .cures import are_the_cause, as_note, cure, stopped_parts
from .function_results import Functions, with_start
from .keys import Settings as Settings
from .keys import versions_of
from .memory import Memory, RememberingRunner
from .process_ties import cpu_budget
from .prove_line import Failure, RunChecks, prove_lines
from .public_checks import check_result
from .run_checks import CheckRun, GraderFault, HiddenChecks, points_fault
from .tell_failed import ask_public_calls, places_of, with_hidden_checks

RECORDED_VERSIONS = ("torch", "numpy", "pytest", "manyheads")
VERDICTS = 1000  # how many texts' verdicts are remembered
REMEMBERED = 512 * MIB  # of all exercises together: eight at their own limit
DIGITS = 12  # of a file's digest in a result


@dataclass(frozen=True)
class Verdict:
    """What is found about one attempt.

    places: the function of each check, by the check's id; "" where it asks several and passed.
    note: what the student should know about parts of the file.
    is_certain: whether no process ended while it was loaded; else the machine may have had its part in it.
    """

    outcomes: Sequence[CheckOutcome]
    told: Functions = field(default_factory=Functions)
    places: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[ProvedLine, ...] = ()
    note: str = ""
    is_certain: bool = True

    def result(self, exercise: Exercise, note: str) -> ExerciseResult:
        """Return the result of this exercise. Where a check with points could not be run, nothing is said of the attempt.

        note: what the student should know of the file that was read.
        """
        checks = tuple(check_result(o, o.outcome, o.evidence, self.places.get(o.id, "")) for o in self.outcomes)
        is_graded = not any(c.outcome == "skipped" and c.max_score for c in checks)
        told = self.told if is_graded else Functions()
        return ExerciseResult(
            id=exercise.id,
            score=sum(c.score for c in checks) if is_graded else None,
            max_score=sum(c.max_score for c in checks),
            checks=checks,
            diagnosis=with_start(told.diagnosis.named, exercise.hint),
            also=told.diagnosis.also,
            answers=told.diagnosis.answers,
            lines=self.lines if is_graded else (),
            note=" ".join(filter(None, (note, self.note))),
            functions=told.functions,
        )


def all_ended(unattempted: Sequence[CheckOutcome], outcome: Outcome, sentence: str) -> list[CheckOutcome]:
    """Return the outcomes where the whole attempt ended in the same way."""
    return [replace(check, outcome=outcome, evidence=sentence) for check in unattempted]


class Judge:
    """Grades submissions with the checks of a course and a box."""

    def __init__(self, course: Course, box: Box, settings: Settings) -> None:
        """Collect the checks. Raises GraderFault, BrokenReference."""
        self._course, self._box, self._settings = course, box, settings
        files = [e.checks for a in course.assignments for e in self.selected(a)]
        self._checks = HiddenChecks(files, settings.device)
        self._recording = cache(current)  # each read once
        self._verdicts: dict[tuple[str, int, str], Verdict] = {}  # by exercise, seed and text
        self._memories: dict[str, tuple[int, Memory]] = {}  # by exercise: for the seed that was asked for last
        self._versions = {"python": platform.python_version(), **versions_of(RECORDED_VERSIONS)}
        self.faults: list[str] = []

    def selected(self, assignment: Assignment) -> Sequence[Exercise]:
        """Return the exercises of the assignment that this run grades."""
        return [e for e in assignment.exercises if e.id in (self._settings.exercises or (e.id,))]

    def demand_points(self) -> None:
        """Raise GraderFault where an exercise's checks do not give the points that course.yaml says."""
        exercises = [e for a in self._course.assignments for e in self.selected(a)]
        faults = {e.id: fault for e in exercises if (fault := points_fault(e, self._checks.unattempted(e.checks)))}
        if faults:
            raise GraderFault(f"{'; '.join(faults.values())}. Nobody is graded. Next: course verify {' '.join(faults)}")

    def grade(self, submission: Submission, only: Collection[str] = (), given_up: Collection[str] = ()) -> Result:
        """Grade a submission. Nothing that a student does makes this raise.

        only: ids of exercises; empty: all. given_up: ids of those at which judges died: they are not graded.
        """
        assignment = submission.assignment
        results = [
            self._not_graded(exercise, DIED).result(exercise, "")
            if exercise.id in given_up
            else self.grade_exercise(submission.student, exercise, submission.folder)
            for exercise in self.selected(assignment)
            if not only or exercise.id in only
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

    def grade_exercise(self, student: str, exercise: Exercise, folder: Path) -> ExerciseResult:
        """Grade one exercise of the submission in this folder."""
        stub = exercise.script
        untouched = code_digest(stub.read_text(encoding="utf-8")) if stub.exists() else None
        with cpu_budget():  # past which this judge is replaced, as one that died
            source = read_exercise(folder, exercise, untouched, self._course.limits.source_kib)
            return self.grade_attempt(student, exercise, source)

    def grade_attempt(
        self, student: str, exercise: Exercise, source: AttemptSource, seed: int | None = None
    ) -> ExerciseResult:
        """Grade one attempt. seed: for its inputs, in place of the run's seed."""
        try:
            verdict = self._judge_once(exercise, source, self._settings.seed if seed is None else seed)
        except CourseFault:
            raise
        except Exception as error:  # a fault of the grader in one attempt must not cost other students their results
            self.faults.append(sanitize(f"{student}: {exercise.id}: {type(error).__name__}: {error}"))
            verdict = self._not_graded(exercise, FAILED_ITSELF)
        result = told_of_file(verdict.result(exercise, source.note), source)
        return result if source.missing else result.model_copy(update={"digest": source.digest[:DIGITS]})

    def _not_graded(self, exercise: Exercise, sentence: str) -> Verdict:
        return Verdict(all_ended(self._checks.unattempted(exercise.checks), "skipped", sentence))

    def _judge_once(self, exercise: Exercise, source: AttemptSource, seed: int) -> Verdict:
        """As `_judge`; what another student has handed in word for word has the same verdict, as long as it ran well."""
        key = (exercise.id, seed, source.digest)
        if key not in self._verdicts:
            verdict = self._judge(exercise, source, seed)
            ended = any(outcome.outcome in ("timeout", "crashed", "skipped") for outcome in verdict.outcomes)
            if ended or not verdict.is_certain:
                return verdict  # the machine may have had its part in it
            self._verdicts[key] = verdict
            if len(self._verdicts) > VERDICTS:
                del self._verdicts[next(iter(self._verdicts))]
        return self._verdicts[key]

    def _judge(self, exercise: Exercise, source: AttemptSource, seed: int) -> Verdict:
        path = exercise.checks
        unattempted = self._checks.unattempted(path)
        if source.missing:
            return Verdict(all_ended(unattempted, "missing", f"{source.name} was not handed in."))
        bank = load_bank(exercise)
        unloadable = Functions(diagnosis=naming(bank.texts, "load_error"))
        if source.problem:
            return Verdict(all_ended(unattempted, "error", source.problem), unloadable)
        limits = self._course.limits.for_worker(self._settings.device)
        memory = self._memory(exercise, seed)
        attempt = AttemptRunner(self._box, source, limits, self._settings.device, self._settings.dtype, memory)
        try:
            raised = attempt.load()
            if raised is not None:
                said = f"It {explain(raised)}. {cure(source.source, raised)}".rstrip()
                return Verdict(all_ended(unattempted, "error", said), unloadable)
            source = attempt.source
            note = stopped_parts(source, attempt.stopped, explain)
            # The reference computes on the CPU even if the attempt does not, so that checks compare the devices.
            names = namespace_of(exercise.solution)
            reference = RememberingRunner(names, only_values=True, memory=memory)
            # All students get the same inputs, so that the same code earns the same points.
            parts = (str(seed), exercise.id)
            asking = CheckRun(attempt, reference, self._settings.secret, parts, memory, exercise.forms)

            def run(runner: AttemptRunner, only: Sequence[str] = ()) -> list[CheckOutcome]:
                return self._checks.run(path, replace(asking, attempt=runner), only)

            outcomes = run(attempt)
            is_certain = not any(part.ended for part in attempt.stopped)
            if are_the_cause(source, attempt.stopped, attempt.transcript):
                return Verdict(all_ended(unattempted, "error", note), unloadable, is_certain=is_certain)
            seen, ended, dtype = list(attempt.transcript), dict(attempt.ended), attempt.dtype
        except AttemptEnded as end:
            outcome: Outcome = "timeout" if end.end is End.TIMEOUT else "crashed"
            return Verdict(all_ended(unattempted, outcome, f"While the file was imported: {end}"))
        finally:
            attempt.close()
        self.faults += [o.fault for o in outcomes if o.fault]
        lines = self._lines(Failure(source, outcomes, seen, dtype), limits, reference, run)
        places = places_of(outcomes, seen, ended, lambda e: agree(e.reply, reference.execute(e.call)))
        targets = {target_of(call) for call in (*(e.call for e in seen), *ended.values())}
        told = Functions(tuple(FunctionResult(name=name, state="right") for name in names if name in targets))
        if any(o.outcome != "passed" for o in outcomes):
            told = self._told(exercise, source, limits, memory) or told
            told = replace(told, diagnosis=told.diagnosis.of_one_mistake()) if lines else told
            failed_by = recorded.failed_by if (recorded := self._recording(exercise)) else {}
            told = with_hidden_checks(told, outcomes, places, source.source, bank.texts, failed_by)
        return Verdict(outcomes, told, places, lines, as_note(note), is_certain)

    def _told(self, exercise: Exercise, source: AttemptSource, limits: Limits, memory: Memory) -> Functions | None:
        """Return what the answers to public calls show; None where nothing current is recorded of them."""
        recording = self._recording(exercise) if self._settings.diagnoses else None
        if recording is None:
            return None
        with self._noting(f"{source.name}: what it is told"):
            return ask_public_calls(recording, self._box, limits, source, exercise, memory)
        return None

    def _lines(
        self, failure: Failure, limits: Limits, reference: RememberingRunner, run: RunChecks
    ) -> tuple[ProvedLine, ...]:
        """Return the lines where the attempt goes wrong. Not on a GPU, where a process takes seconds to start."""
        if self._settings.lines and self._settings.device == "cpu":
            with self._noting(f"{failure.source.name}: a search for its line"):
                return prove_lines(self._box, limits, failure, reference, run, self._settings.bounds)
        return ()

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
        others = sorted((each for _, each in self._memories.values() if each is not memory), key=lambda m: m.size)
        while others and memory.size + sum(other.size for other in others) > REMEMBERED:
            others.pop().forget()
        return memory
