"""What a notebook's first cell loads: %check, %ask and %course."""

from __future__ import annotations

import io
import os
import random
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from rich.text import Text

from ..box.forked import open_own_box
from ..checks.local import LocalRecordingRunner
from ..course import Course, Exercise, find_course, load_course
from ..course.model import exercises_called, unknown
from ..diagnosis.recording_file import read
from ..errors import CourseFault
from ..report.called import CALLED_AS, NOTEBOOK, as_called, next_alone
from ..report.labels import label_of
from ..report.notebook_html import WIDTH, NotebookView, checked, combine_views
from ..report.words import attempt_words
from ..result import ExerciseResult
from ..student.ask_questions import questions_about
from ..student.check_attempt import check_attempt
from ..student.hints import note_shown
from ..student.how_far import after_done
from ..student.question import answer_lines, question_lines, read_letters
from ..submission import read_file

# commands about one exercise: here, the notebook's
_OF_ONE = {"check", "hint", "trace", "plot", "ask", "train"}


class Magics:
    """The magics, registered with one shell."""

    def __init__(
        self, shell: InteractiveShell, exercise: str, source_of: Callable[[dict[str, object]], str]
    ) -> None:
        """`exercise`: the id of the notebook's exercise.

        `source_of`: the text of what a kernel defines.
        """
        self._shell, self._exercise, self._source_of = shell, exercise, source_of
        # of questions: the next %ask with letters is about the same
        self._seed = random.randrange(1000)
        for name, answer in (("check", self._check), ("ask", self._ask), ("course", self._course)):
            self._shell.register_magic_function(self._magic(answer), "line", name)

    def _magic(self, answer: Callable[[list[str]], NotebookView | None]) -> Any:
        def magic(line: str) -> None:
            try:
                view = answer(line.split())
            except CourseFault as error:
                problem = as_called(f"course: {error}", NOTEBOOK)
                view = combine_views(Text(next_alone(problem), style="bold red"))
            if view is not None:
                display({"text/html": view.html, "text/plain": view.text}, raw=True)

        magic.__doc__ = answer.__doc__
        return magic

    def _find(self) -> tuple[Course, Exercise]:
        course = load_course(find_course(Path.cwd()))
        for exercise in exercises_called(course.exercises, self._exercise):
            return course, exercise
        raise CourseFault(f"{unknown(course.exercises, self._exercise)} Next: %course status")

    def _check(self, words: list[str]) -> NotebookView:
        """Check what is defined in this notebook. Example: `%check`."""
        course, exercise = self._find()
        result = self._result(exercise)
        note_shown(result, course.root)
        report = attempt_words(result)
        lines = ["With the notebook saved, there is more."] * bool(
            report.first_wrong and not report.next
        )
        lines += [f"Next: {report.next or '%course hint'}"] * bool(report.first_wrong)
        if result.is_done:
            later = course.exercises[course.exercises.index(exercise) + 1 :]
            goes_on = (
                f"Go on with {later[0].title}, in {later[0].notebook.name}."
                if later
                else "Next: %course status"
            )
            lines = [*after_done(exercise), goes_on]
        lines = [line.replace(f"course ask {exercise.id}", "%ask") for line in lines]
        texts = (
            re.sub(rf"(?<!%)course (trace|train) {exercise.id}\b", r"%course \1", line)
            for line in lines
        )
        return combine_views(checked(result, label_of(exercise)), *map(Text, texts))

    def _course(self, words: list[str]) -> NotebookView | None:
        """Run a command of `course` on the notebook as it was saved. Example: `%course hint`."""
        if words in (["ask"], ["ask", self._exercise]):  # a command cannot read letters in a cell
            return self._ask([])
        if {*words[:1]} & _OF_ONE and all(word.startswith("-") for word in words[1:]):
            words.insert(1, self._exercise)
        plain = {
            "COLUMNS": str(WIDTH),
            "FORCE_COLOR": "",
            "PYTHONUNBUFFERED": "1",
            "PYTHONUTF8": "1",
        }
        plain[CALLED_AS] = NOTEBOOK
        pipes: dict[str, Any] = {
            "stdin": DEVNULL,
            "stdout": PIPE,
            "stderr": STDOUT,
            "encoding": "utf-8",
        }
        with Popen(
            [sys.executable, "-m", "manyheads", *words], env=os.environ | plain, **pipes
        ) as running:
            for line in running.stdout or ():
                print(line, end="")
        return None

    def _ask(self, words: list[str]) -> NotebookView:
        """Ask about your code, in the notebook as it was saved; with letters, say what is right.

        Example: `%ask BADCA`.
        """
        course, exercise = self._find()
        source = read_file(exercise.notebook, course.limits.source_kib)
        if not self._result(exercise).is_done:
            raise CourseFault(
                f"{exercise.id} is not done yet, and questions come after a ✓. Next: %check"
            )
        recording, limits = read(exercise.fingerprints), course.limits.for_worker()
        with open_own_box() as box:
            questions = questions_about(box, limits, exercise, recording, source, self._seed)
        if not questions:
            raise CourseFault(
                f"nothing in {source.name} as it was saved can be asked about. Next: save it, "
                "then %ask"
            )
        letters = read_letters(words[0], len(questions), "%ask") if words else ""
        lines: list[Text] = []
        for number, question in enumerate(questions):
            lines += [Text(" "), *question_lines(number + 1, len(questions), question)]
            lines += answer_lines(question, letters[number], shows_right=True) if letters else ()
        self._seed += bool(letters)
        next_lines = (
            ["Next: %ask"]
            if letters
            else ["Answer with your letters.", f"Next: %ask {'A' * len(questions)}"]
        )
        return combine_views(*lines, Text(" "), *map(Text, next_lines))

    def _result(self, exercise: Exercise) -> ExerciseResult:
        names = self._shell.user_ns
        # A function whose cell has not run counts as its stub, so that those that use it are said
        # to wait for it.
        stubs = [
            f"def {name}(): raise NotImplementedError"
            for name in exercise.shapes
            if name not in names
        ]
        source = "\n".join([self._source_of(names), *stubs])
        # A call sets the seed, which is the student's; and a function is called dozens of times,
        # whatever it prints.
        with torch.random.fork_rng(devices=[]), redirect_stdout(io.StringIO()):
            result = check_attempt(
                read(exercise.fingerprints), LocalRecordingRunner(names), source or None, exercise
            )
        missing = {f.name for f in result.functions if f.state == "undefined" and not f.near}
        functions = tuple(
            f.model_copy(update={"state": "unrun"}) if f.name in missing else f
            for f in result.functions
        )
        diagnosis = tuple(
            diagnosed for diagnosed in result.diagnosis if diagnosed.function not in missing
        )
        return result.model_copy(update={"functions": functions, "diagnosis": diagnosis})
