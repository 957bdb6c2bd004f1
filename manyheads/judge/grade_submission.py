"""Grade one submission: run the checks of each exercise on the attempt, then explain the failures.

A `Judge` has a course and a box, and grades any number of submissions in turn. The attempt runs in
two processes of the box. The first one gets the hidden inputs, and its replies decide the points.
The second one gets the public calls only, and its replies decide the misconceptions.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

from ..box.connection import AttemptEnded, Box, End
from ..box.worker.limits import MIB
from ..box.worker.messages import Call
from ..checks.explain_exceptions import join_sentences, sanitize
from ..checks.hidden_check import DIED, FAILED_ITSELF, CheckOutcome
from ..checks.runner import LocalRunner, namespace_of
from ..course import Course, Exercise
from ..diagnosis import load_bank
from ..diagnosis.fault_dictionary import FaultDictionary
from ..diagnosis.fingerprint import is_comparable, replies_agree
from ..diagnosis.recording_file import current
from ..files import CourseFault
from ..result import ExerciseResult, Outcome, ProvedLine, Result, total_of
from ..submission import Source, Submission, proved_line, read_exercise
from ..submission.source import LOAD_ERROR, NO_TEXT
from .attempt_runner import AttemptRunner, RememberingRunner, ReplayCache
from .attribution import HiddenRun, assemble, assemble_uncalled
from .collect_checks import CheckRun, GraderFault, points_fault
from .edit_search import OutOfTime
from .exception_advice import suggest
from .explain_file_parts_not_run import are_the_cause, as_note, explain_text, stopped_parts
from .prove_line import EditedAttempts, IsRight
from .public_calls import PublicCalls, PublicReplies, ask_public_calls, name_misconceptions
from .results_folder import Settings as Settings
from .results_folder import versions_of
from .run_hidden_checks import HiddenChecks, cpu_budget

RECORDED_VERSIONS = ("torch", "numpy", "pytest", "manyheads")
MAX_RESULTS = 1000  # the number of attempts whose results are remembered
# The bytes of all replay caches together. With correct attempts, the 14 exercises need 70 MiB.
MAX_CACHE_BYTES = 192 * MIB
# This machine may be the cause of such an outcome, and another run may give another one.
UNCERTAIN = ("timeout", "crashed", "skipped")
# the id of an exercise and a seed; then the digest, the note and the cells not run of an attempt
ResultKey = tuple[str, int, str, str, tuple[tuple[str, str], ...]]


class Judge:
    """Grades submissions with the checks of a course and a box.

    Attributes:
        faults: Sentences about faults of the grader itself, which are added during grading.
    """

    def __init__(self, course: Course, box: Box, settings: Settings) -> None:
        """Collect the checks. Raises GraderFault, BrokenReference."""
        self._course, self._box, self._settings = course, box, settings
        self._limits = course.limits.for_worker(settings.device)
        self._exercises = [
            e for e in course.exercises if not settings.exercises or e.id in settings.exercises
        ]
        self._checks = HiddenChecks([e.checks for e in self._exercises], settings.device)
        self._dictionary_of = cache(current)  # each fault dictionary is read once
        self._results: dict[ResultKey, ExerciseResult] = {}
        # by exercise and seed
        self._caches = defaultdict[tuple[str, int], ReplayCache](ReplayCache)
        self._versions = {"python": platform.python_version(), **versions_of(RECORDED_VERSIONS)}
        self.faults: list[str] = []

    def demand_points(self) -> None:
        """Raise GraderFault if the points of an exercise's checks differ from course.yaml."""
        faults = {}
        for exercise in self._exercises:
            fault = points_fault(exercise, self._checks.initial_outcomes(exercise.checks))
            if fault:
                faults[exercise.id] = fault
        if faults:
            raise GraderFault(
                f"{'; '.join(faults.values())}. Nobody is graded. Next: course verify "
                f"{' '.join(faults)}"
            )

    def grade(
        self, submission: Submission, only: Collection[str] = (), given_up: Collection[str] = ()
    ) -> Result:
        """Grade a submission. Nothing that a student does makes this raise.

        Raises CourseFault if the course's own files cannot be read.

        Args:
            submission: The submission.
            only: The ids of the exercises to grade; empty for all of this run.
            given_up: The ids of exercises during which judges died. They are not graded.
        """
        assignment, exercise_ids = submission.assignment, only or self._settings.exercises
        results = []
        for exercise in assignment.exercises:
            if exercise_ids and exercise.id not in exercise_ids:
                continue
            if exercise.id in given_up:
                results.append(self._result_without_calls(exercise, NO_TEXT, "skipped", DIED))
            else:
                results.append(self._grade_exercise(submission, exercise))
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
        """Read the attempt at an exercise, and grade it. Raises CourseFault."""
        stub = exercise.script
        stub_digest = None
        if stub.exists():
            stub_digest = Source("", stub.read_text(encoding="utf-8")).code_digest
        with cpu_budget():  # after the limit, another judge replaces this process
            source = read_exercise(
                submission.folder, exercise, stub_digest, self._course.limits.source_kib
            )
            return self.grade_attempt(submission.student, exercise, source)

    def grade_attempt(
        self, student: str, exercise: Exercise, source: Source, seed: int | None = None
    ) -> ExerciseResult:
        """Grade one attempt. Hidden checks decide the points; public calls decide the explanation.

        The result is remembered if another run would give the same. So students with the same text
        have the same result. If the grader itself breaks, the exercise is skipped, and the fault is
        noted. A CourseFault is raised, because it concerns every attempt.

        Args:
            student: The student.
            exercise: The exercise.
            source: The attempt.
            seed: The seed of its inputs. None means the seed of the run.
        """
        run_seed = self._settings.seed if seed is None else seed
        # texts, because a Source would keep its syntax tree as long as the result
        not_run = tuple((cell.source.text, cell.why) for cell in source.not_run)
        key = (exercise.id, run_seed, source.digest, source.note, not_run)
        if key in self._results:
            return self._results[key]
        try:
            result, is_certain = self._grade_once(exercise, source, run_seed)
        except CourseFault:
            raise
        # a fault of the grader in one attempt must not cost other students their results
        except Exception as error:
            fault = f"{student}: {exercise.id}: {type(error).__name__}: {error}"
            self.faults.append(sanitize(fault))
            return self._result_without_calls(exercise, source, "skipped", FAILED_ITSELF)
        if is_certain:
            self._remember(key, result)
        return result

    def _grade_once(
        self, exercise: Exercise, source: Source, seed: int
    ) -> tuple[ExerciseResult, bool]:
        """Run an attempt, and return its result and whether another run would give the same.

        All checks have the same outcome in five cases: the attempt is missing; its text cannot be
        graded; its import ends the process; its import raises; or no call was answered, because
        parts of the file stopped. The result is uncertain if the process ended while the file was
        imported, or if the outcome of a check is UNCERTAIN.
        """
        if source.missing:
            sentence = f"{source.name} was not handed in."
            return self._result_without_calls(exercise, source, "missing", sentence), True
        if source.problem:
            return self._result_without_calls(exercise, source, "error", source.problem), True
        run = self._check_run(exercise, source, seed)
        attempt = run.attempt
        assert isinstance(attempt, AttemptRunner)
        with closing(attempt):  # the first process: it sees hidden inputs
            try:
                raised = attempt.load()
            except AttemptEnded as end:
                outcome: Outcome = "timeout" if end.end is End.TIMEOUT else "crashed"
                sentence = f"While the file was imported: {end}"
                return self._result_without_calls(exercise, source, outcome, sentence), False
            if raised is not None:
                advice = suggest(source, raised) or " "
                sentence = join_sentences(f"It {explain_text(source, raised)}", advice).rstrip()
                return self._result_without_calls(exercise, source, "error", sentence), True
            outcomes = self._checks.run(exercise.checks, run)
        source = attempt.source  # with the parts that are not run again
        is_certain = not any(stop.ended for stop in attempt.stopped)
        stopped = stopped_parts(source, attempt.stopped, partial(explain_text, source))
        if are_the_cause(source, attempt.stopped, attempt.transcript):
            return self._result_without_calls(exercise, source, "error", stopped), is_certain
        hidden = HiddenRun(
            outcomes,
            attempt.transcript,
            attempt.ended,
            lambda e: replies_agree(e.reply, run.reference.execute(e.call)),
        )
        self.faults += [outcome.fault for outcome in outcomes if outcome.fault]
        is_certain = is_certain and not any(o.outcome in UNCERTAIN for o in outcomes)
        return self._explain(exercise, attempt, run, hidden, as_note(stopped)), is_certain

    def _explain(
        self,
        exercise: Exercise,
        attempt: AttemptRunner,
        run: CheckRun,
        hidden: HiddenRun,
        note: str,
    ) -> ExerciseResult:
        """Return the result of hidden checks, explained by small edits and public calls.

        If all checks passed, nothing is explained. Only edits explain the result if there is no
        fault dictionary, if the run does not diagnose, if the attempt cannot be loaded again, or if
        the diagnosis breaks.

        Args:
            exercise: The exercise.
            attempt: The runner of the attempt, which has run the hidden checks.
            run: The data that the checks share.
            hidden: The outcomes of the hidden checks.
            note: A sentence about parts of the file that stopped, or "".
        """
        source = attempt.source
        if hidden.all_passed:
            return assemble(exercise, source, None, None, hidden=hidden, note=note)
        lines = self._prove_lines(exercise, attempt, run, hidden.outcomes)
        dictionary = self._dictionary_of(exercise)
        finish = partial(
            assemble, exercise, source, dictionary, lines=lines, hidden=hidden, note=note
        )
        if dictionary is not None and self._settings.diagnoses:
            # the points stay if the explanation fails
            with self._note_fault(f"{source.name}: what it is told"):
                replies = self._ask_public_calls(exercise, attempt, dictionary)
                if replies is not None:
                    diagnosis = name_misconceptions(replies, load_bank(exercise))
                    return finish(replies=replies, diagnosis=diagnosis)
        return finish(replies=None)

    def _check_run(self, exercise: Exercise, source: Source, seed: int) -> CheckRun:
        """Return the data that the hidden checks of one attempt share. Raises BrokenReference."""
        memory, settings = self._replay_cache(exercise, seed), self._settings
        namespace = namespace_of(exercise.solution)
        attempt = AttemptRunner(
            self._box,
            source,
            self._limits,
            settings.device,
            settings.dtype,
            memory,
            reference=LocalRunner(namespace),
        )
        # The reference computes on the CPU even if the attempt does not, so that checks compare the
        # devices.
        reference = RememberingRunner(namespace, only_values=True, memory=memory)
        # All students get the same inputs, so that the same code earns the same points.
        seed_parts = (str(seed), exercise.id)
        return CheckRun(attempt, reference, settings.secret, seed_parts, memory, exercise.forms)

    def _result_without_calls(
        self, exercise: Exercise, source: Source, outcome: Outcome, sentence: str
    ) -> ExerciseResult:
        """Return the result of an attempt of which no function was called.

        Every check has this outcome, with the sentence as its evidence. An "error" is attributed
        to the misconception LOAD_ERROR.
        """
        outcomes = [
            replace(unattempted, outcome=outcome, evidence=sentence)
            for unattempted in self._checks.initial_outcomes(exercise.checks)
        ]
        misconception = LOAD_ERROR if outcome == "error" else ""
        return assemble_uncalled(exercise, source, outcomes, misconception)

    def _remember(self, key: ResultKey, result: ExerciseResult) -> None:
        """Remember a result. The oldest one is forgotten if there are too many."""
        self._results[key] = result
        if len(self._results) > MAX_RESULTS:
            del self._results[next(iter(self._results))]

    def _prove_lines(
        self,
        exercise: Exercise,
        attempt: AttemptRunner,
        run: CheckRun,
        outcomes: Sequence[CheckOutcome],
    ) -> tuple[ProvedLine, ...]:
        """Return the lines at which one small edit makes every check pass.

        There are none if the run does not search for lines, or if the search breaks. There are none
        on a GPU either, because a process takes seconds to start there.
        """
        skipped_ids = {o.id for o in outcomes if o.outcome == "skipped"}

        def is_right(call: Call) -> IsRight | None:
            """Return a function that compares a reply with the reference's.

            Returns None if replies to this call cannot be compared.
            """
            if not is_comparable(call):
                return None
            expected = run.reference.execute(call)
            return lambda reply: replies_agree(reply, expected)

        def checks_pass(edited: AttemptRunner, ids: Sequence[str]) -> bool:
            """Return whether an edited attempt passes the checks with these ids; [] means all.

            A check that the attempt itself skipped need not pass. Raises OutOfTime if a check has a
            timeout.
            """
            edited_outcomes = self._checks.run(exercise.checks, replace(run, attempt=edited), ids)
            if any(o.outcome == "timeout" for o in edited_outcomes):
                raise OutOfTime
            return all(o.outcome == "passed" or o.id in skipped_ids for o in edited_outcomes)

        if not self._settings.lines or self._settings.device != "cpu":
            return ()
        with self._note_fault(f"{attempt.source.name}: a search for its line"):
            edits = EditedAttempts(attempt, outcomes, is_right, checks_pass)
            proved_edits = edits.proved_edits(self._settings.bounds)
            return tuple(proved_line(attempt.source, e.line, e.description) for e in proved_edits)
        return ()

    def _ask_public_calls(
        self, exercise: Exercise, judged: AttemptRunner, dictionary: FaultDictionary
    ) -> PublicReplies | None:
        """Return the attempt's replies to the public calls.

        The calls are made in a second process, which has met no hidden input and can put none into
        a message. So its replies need no redaction. Returns None if the attempt cannot be loaded
        there or its process ends.
        """
        # The dictionary outlives the cache and never changes, so its calls need not be copied.
        for call in dictionary.calls:
            judged.memory.hold_as_it_is(call)
        # Both runners use the same cache. No process of the attempt can read it.
        attempt = AttemptRunner(
            self._box,
            judged.source,
            self._limits,
            memory=judged.memory,
            causes_in_both_dtypes=judged.causes_in_both_dtypes,
        )
        with closing(attempt), suppress(AttemptEnded):
            if attempt.load() is None:
                calls = PublicCalls(dictionary, attempt)
                return ask_public_calls(calls, judged.source, exercise, is_graded=True)
        return None

    @contextmanager
    def _note_fault(self, context: str) -> Iterator[None]:
        """Note an exception in the block as a fault of the grader, and suppress it.

        The points do not depend on the block. The context is the beginning of the fault's sentence.
        """
        try:
            yield
        except Exception as error:
            self.faults.append(sanitize(f"{context}: {type(error).__name__}: {error}"))

    def _replay_cache(self, exercise: Exercise, seed: int) -> ReplayCache:
        """Return the cache of an exercise for the next attempt with this seed.

        If all caches together exceed MAX_CACHE_BYTES, the largest other ones are emptied.
        """
        cache = self._caches[exercise.id, seed]
        cache.begin_attempt()
        other_caches = [c for c in self._caches.values() if c is not cache]
        other_caches.sort(key=lambda other_cache: other_cache.size)
        while other_caches and cache.size + sum(c.size for c in other_caches) > MAX_CACHE_BYTES:
            other_caches.pop().forget()
        return cache
