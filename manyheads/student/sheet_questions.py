"""Questions for a class: each student's own, spread over an assignment's exercises, and drawn twice before anybody is asked."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..checks.sanitize import sanitize
from ..course import Assignment, Course, Exercise
from ..diagnosis.recording import Fingerprints
from ..diagnosis.recording_file import read
from ..errors import CourseFault
from ..judge.attempt_runner import AttemptRunner
from ..judge.stopped_parts import explain_import
from ..submission import AttemptSource, Submission, code_digest, read_exercise
from ..submission.unwritten import is_unwritten
from .ask_questions import draw, misconception_of
from .check_attempt import visible_results
from .question import ASKED, Question
from .question_versions import Material, material_of

TRIES = 5  # to draw a sheet that nobody with other code has
LONGEST = 8_000  # characters of a question, its answers and their reasons: a line of code may be as long as its file
_STEP = 1_000_003  # between the seeds of two tries


@dataclass(frozen=True)
class Asked:
    """A question of a sheet. named: for each option the title of the misconception whose code gives it, or ""."""

    exercise: str
    question: Question
    named: tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """One student's questions on one assignment. said: the exercises that gave none, each with the reason."""

    student: str
    assignment: Assignment
    asked: tuple[Asked, ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    is_shared: bool = False  # whether somebody with other code has the same questions

    @property
    def content(self) -> tuple[object, ...]:
        """What two sheets that are the same have in common."""
        return self.assignment.id, *(_shown(each.question) for each in self.asked)


class SheetQuestions:
    """Draws the sheets of a class. The same code is asked the same."""

    def __init__(self, course: Course, box: Box, seed: int) -> None:
        """`box`: a box that has been proved."""
        self._course, self._box, self._seed = course, box, seed
        self._recorded: dict[str, Fingerprints] = {}
        self._known: dict[tuple[object, ...], Sheet] = {}
        self._taken: dict[tuple[object, ...], tuple[str, ...]] = {}  # whose code has which questions
        self._ended: dict[tuple[str, str], str] = {}  # why nothing can be asked, by the exercise and the attempt

    def sheet(self, submission: Submission) -> Sheet:
        """Return the sheet of a submission. Nothing that a student does makes this raise."""
        sources = dict(self._read(submission))
        codes = tuple(code_digest(source.source) for source in sources.values())
        until = time.monotonic() + self._course.limits.seconds_per_attempt * len(sources)
        for number in range(TRIES):
            if number and time.monotonic() > until:
                break
            sheet = self._drawn(submission, sources, self._seed + number * _STEP)
            if not sheet.asked or self._taken.setdefault(sheet.content, codes) == codes:
                return sheet
        return replace(sheet, is_shared=True)

    def _read(self, submission: Submission) -> Iterator[tuple[Exercise, AttemptSource]]:
        for exercise in submission.assignment.exercises:
            if exercise.id not in self._recorded:
                self._recorded[exercise.id] = read(exercise.fingerprints)
            stub = self._recorded[exercise.id].content.stub
            yield exercise, read_exercise(submission.folder, exercise, stub, self._course.limits.source_kib)

    def _drawn(self, submission: Submission, sources: dict[Exercise, AttemptSource], seed: int) -> Sheet:
        key = (submission.assignment.id, seed, *(source.digest for source in sources.values()))
        if key not in self._known:
            self._known[key] = self._draw(submission, sources, seed)
        return replace(self._known[key], student=submission.student)

    def _draw(self, submission: Submission, sources: dict[Exercise, AttemptSource], seed: int) -> Sheet:
        said: list[tuple[str, str]] = []
        ready: list[tuple[bool, float, Exercise, AttemptSource]] = []
        rng = random.Random(f"{seed} {[source.digest for source in sources.values()]}")
        for exercise, source in sources.items():
            reason, is_right, loaded = self._look(exercise, source)
            if reason:
                said.append((exercise.id, reason))
            else:
                ready.append((not is_right, rng.random(), exercise, loaded))
        asked: list[Asked] = []
        ready.sort(key=lambda each: each[:2])
        for place, (_, _, exercise, source) in enumerate(ready):
            count = -(-(ASKED - len(asked)) // (len(ready) - place))
            if count and (reason := self._ended.get((exercise.id, source.digest), "")):
                said.append((exercise.id, reason))
            elif count:
                found, reason = self._questions(exercise, source, seed, count)
                asked += found
                said += [(exercise.id, reason)] if reason else []
        order = [exercise.id for exercise in sources]
        asked.sort(key=lambda each: order.index(each.exercise))
        return Sheet(submission.student, submission.assignment, tuple(asked), tuple(said), seed)

    def _look(self, exercise: Exercise, source: AttemptSource) -> tuple[str, bool, AttemptSource]:
        """Return why nothing can be asked about an attempt, or "", whether its visible checks pass, and what is left of it."""
        if source.missing or source.problem:
            return source.problem or "it was not handed in", False, source
        if is_unwritten(source.source):
            return "nothing is written there yet", False, source
        attempt = AttemptRunner(self._box, source, self._course.limits.for_worker())
        try:
            raised = attempt.load()
            if raised is not None:
                return f"it cannot be imported: it {explain_import(raised)}", False, source
            results = visible_results(self._recorded[exercise.id], attempt, ())
            return "", all(each.outcome == "passed" for each in results), attempt.source
        except AttemptEnded as ended:
            return f"while it was imported: {ended}", False, source
        finally:
            attempt.close()

    def _questions(self, exercise: Exercise, source: AttemptSource, seed: int, count: int) -> tuple[list[Asked], str]:
        """Return the questions that come out the same in two runs, and why there are fewer than could be drawn, or ""."""
        try:
            material, first = self._ask(exercise, source, seed, count)
            again = {_whole(each) for each in self._ask(exercise, source, seed, count)[1]} if first else set()
            same = [each for each in first if _whole(each) in again]
            kept = [each for each in same if len(" ".join(_whole(each))) <= LONGEST]
            until = time.monotonic() + self._course.limits.seconds_per_attempt
            asked = [Asked(exercise.id, each, tuple(_named(material, each, until))) for each in kept]
        except AttemptEnded as ended:
            self._ended[exercise.id, source.digest] = reason = f"while questions were made: {ended}"
            return [], reason
        except CourseFault:
            raise
        except Exception as error:  # a fault of ours in one attempt must not cost other students their sheets
            return [], sanitize(f"the questions themselves failed here: {type(error).__name__}: {error}")
        if not first:
            return [], "no small call of it gives a question"
        left = f"{len(first) - len(same)} of {len(first)} questions came out otherwise in a second run"
        long = f"{len(same) - len(kept)} of {len(first)} questions are longer than {LONGEST:,} characters"
        said = [left] * (len(same) < len(first)) + [long] * (len(kept) < len(same))
        return asked, "; ".join(said)

    def _ask(self, exercise: Exercise, source: AttemptSource, seed: int, count: int) -> tuple[Material, list[Question]]:
        """Draw so many questions, in processes of their own. Raises AttemptEnded."""
        limits, recorded = self._course.limits.for_worker(), self._recorded[exercise.id]
        material = material_of(self._box, limits, exercise, recorded, source, seed, limits.seconds_per_attempt)
        try:
            drawn = draw(material, count)
            material.processes.refuse_late()
            return material, drawn
        finally:
            material.close()


def _named(material: Material, question: Question, until: float) -> Iterator[str]:
    """Yield for each option the title of the misconception whose code gives it, "" where there is none, or no time is left."""
    for place, option in enumerate(question.options):
        named = None
        if place != question.right and option.edit is not None and time.monotonic() < until:
            with suppress(AttemptEnded):
                named = misconception_of(material, option)
        yield named.title if named else ""


def _shown(question: Question) -> tuple[str, ...]:
    return question.text, question.code, *(option.text for option in question.options)


def _whole(question: Question) -> tuple[str, ...]:
    """Return what a second run has to give again: also what is right, and why."""
    return *_shown(question), question.wanted, *(f"{option.shows} {option.cause}" for option in question.options)
