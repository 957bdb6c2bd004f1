"""`course ask`: questions about a student's own running code."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ..course import Course, CourseError, Exercise
from ..evidence import ExerciseEvidence, QuestionEvidence
from ..student.question import ASKED, LETTERS
from ..submission import AttemptSource
from .last_check import fingerprint_path, last_result
from .options import Console, CourseOption, JsonOption, course_of, exercise_named, open_console
from .own import check_one, done_exercises, own_attempt
from .own_evidence import print_evidence, status_evidence
from .progress import waiting

if TYPE_CHECKING:
    from ..box.level import Box
    from ..student.question import Question
    from ..student.question_versions import Material


class NoQuestions(CourseError):
    """Nothing can be asked about the student's attempt: it is not done, say."""


DONE_LAST = "the one that was done last"
_STOP = "Q"
_LARGEST_SEED = 1_000_000


def ask(
    exercise: Annotated[str | None, typer.Argument(help="Its id or file.", show_default=DONE_LAST)] = None,
    course: CourseOption = None,
    *,
    count: Annotated[int, typer.Option(min=1, max=20, help="How many questions.")] = ASKED,
    seed: Annotated[int | None, typer.Option(min=0, help="The same questions again [default: others].")] = None,
    letters: Annotated[str | None, typer.Option(help="Your answers, such as BADCA, in place of being asked.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions about your own code: what each line makes, and what an edit of it would do.

    Example: `course ask reshape_dance`
    """
    console = open_console()
    loaded = course_of(course)
    wanted = _exercise_asked(loaded, exercise)
    seed = random.randrange(_LARGEST_SEED) if seed is None else seed
    right, asked = _ask_student(console, loaded, wanted, seed, count, letters, as_json=as_json)
    if right < asked and letters is not None:
        raise typer.Exit(1)


def _ask_student(
    console: Console, course: Course, exercise: Exercise, seed: int, count: int, letters: str | None, *, as_json: bool
) -> tuple[int, int]:
    """Ask. Returns how many answers were right at the first try, and how many questions there were."""
    from ..box.forked import open_own_box

    with open_own_box(meta=True) as box, ExitStack() as stack:
        if as_json:
            try:
                told = ask_evidence(course, exercise, seed, count, letters, box)
            except NoQuestions as problem:
                known = status_evidence(course, exercise, box)
                print_evidence("ask", [known.model_copy(update={"problem": str(problem)})])
                raise typer.Exit(2) from None
            print_evidence("ask", [told])
            return sum(each.right is True for each in told.questions), len(told.questions)
        with waiting(console, "reading your code"):
            material, questions = stack.enter_context(own_questions(course, exercise, seed, count, box))
        right = _Asking(console, material, questions).ask_all(letters)
    same = f"course ask {exercise.id} --seed {seed}"
    console.tell(f"{right} of {len(questions)} at the first try. The same questions again: {same}")
    return right, len(questions)


def _exercise_asked(course: Course, name: str | None) -> Exercise:
    """Return the exercise with this name; without one, that which was done last. Raises CourseError."""
    if name is not None:
        return exercise_named(course, name, "ask")
    done = done_exercises(course)
    if not done:
        raise CourseError("no exercise is done yet, and questions come after a ✓. Next: course check")
    return max(done, key=lambda e: max(p.stat().st_mtime_ns for p in (e.script, e.notebook) if p.exists()))


@contextmanager
def own_questions(
    course: Course, exercise: Exercise, seed: int, count: int, box: Box
) -> Iterator[tuple[Material, list[Question]]]:
    """Make questions about the student's attempt. Raises NoQuestions where it is not done, or its code gives none."""
    source = own_attempt(course, exercise)
    _refuse_undone(course, exercise, source, box)
    from ..box.connection import AttemptEnded
    from ..diagnosis.recording_file import read
    from ..student.ask_questions import draw
    from ..student.question_versions import material_of

    fingerprints, limits = read(fingerprint_path(exercise)), course.limits.for_worker()
    try:
        material = material_of(box, limits, exercise, fingerprints, source, seed)
        with closing(material):
            questions = draw(material, count)
            if not questions:
                raise NoQuestions(f"no question fits your code of {exercise.id}. Next: course trace {exercise.id}")
            yield material, questions
    except AttemptEnded as ended:
        raise NoQuestions(f"{ended} Next: course check {exercise.id} --fresh") from None


def ask_evidence(
    course: Course, exercise: Exercise, seed: int, count: int, letters: str | None, box: Box
) -> ExerciseEvidence:
    """Return questions about the student's attempt; with letters, which of them are right, and why others are not.

    No right answer is told. Raises CourseFault.
    """
    from ..student.ask_questions import answered, read_letters

    with own_questions(course, exercise, seed, count, box) as (material, questions):
        given = [""] * len(questions) if letters is None else read_letters(letters, len(questions))
        said = [answered(material, question, letter) for question, letter in zip(questions, given, strict=True)]
    told = tuple(
        QuestionEvidence(
            code=question.code,
            text=question.text,
            options={letter: option.text for letter, option in zip(LETTERS, question.options, strict=True)},
            answer=answer.letter,
            right=answer.is_right if answer.letter else None,
            why=answer.why,
        )
        for question, answer in zip(questions, said, strict=True)
    )
    known = status_evidence(course, exercise, box)
    return known.model_copy(update={"functions": (), "checks": (), "questions": told, "seed": seed})


def _refuse_undone(course: Course, exercise: Exercise, source: AttemptSource, box: Box) -> None:
    result = None if source.missing else last_result(exercise, source) or check_one(course, exercise, source, box)
    if result is None or not result.is_done:
        raise NoQuestions(
            f"{exercise.id} is not done yet, and questions come after a ✓. Next: course check {exercise.id}"
        )


class _Asking:
    """Questions on a terminal."""

    def __init__(self, console: Console, material: Material, questions: list[Question]) -> None:
        self._console, self._material, self._all = console, material, questions

    def ask_all(self, letters: str | None) -> int:
        """Ask each question, a second time after a wrong answer; letters: the answers, in place of being asked.

        Returns how many were right at the first try. Raises CourseFault.
        """
        from ..student.ask_questions import read_letters

        given = None if letters is None else read_letters(letters, len(self._all))
        right = 0
        for number, question in enumerate(self._all, 1):
            self._show(number, question)
            letter = self._letter() if given is None else given[number - 1]
            first = self._tell(question, letter, shows_right=letter == "-" or given is not None)
            right += first
            if given is None and letter not in ("-", _STOP) and not first:
                letter = self._letter()
                self._tell(question, letter, shows_right=True)
            if letter == _STOP:
                break
        return right

    def _show(self, number: int, question: Question) -> None:
        from ..report.question_text import question_lines

        self._console.print()
        self._console.tell(*question_lines(number, len(self._all), question))

    def _letter(self) -> str:
        while True:
            self._console.print("A, B, C or D (Enter: show it, q: stop): ", end="")
            try:
                said = input().strip().upper()
            except EOFError:
                return _STOP
            if said in ("", _STOP, *LETTERS):
                return said or "-"

    def _tell(self, question: Question, letter: str, *, shows_right: bool) -> bool:
        """Say what there is to say of an answer. Returns whether it is right."""
        from ..report.question_text import answer_lines
        from ..student.ask_questions import answered

        answer = answered(self._material, question, letter)
        self._console.tell(*answer_lines(question, answer, shows_right=shows_right))
        return answer.is_right
