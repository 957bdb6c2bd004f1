"""Check an exercise in a student's notebook kernel, with `check_notebook` or with magics.

The visible checks compare the kernel's functions with the recorded answers beside the notebook.
The notebook hides nothing and grades nothing: the student's code runs in the student's kernel. A
report in a notebook has the same sentences as in a terminal, with commands in the form that a cell
can run. Its HTML is escaped, and hints are collapsed.
"""

from __future__ import annotations

import html
import inspect
import io
import os
import random
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from sys import modules
from types import FunctionType
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from .box.without_namespaces import open_own_box
from .checks.runner import LocalRecordingRunner
from .course import Course, Exercise, find_course, load_course
from .course.model import exercises_called, unknown
from .diagnosis.recording_file import read
from .files import CourseFault
from .report.command_name import CALLED_AS, NOTEBOOK, as_called, next_alone, text_as_called
from .report.report_content import attempt_words, label_of
from .report.terminal import HintLine, exercise_report
from .result import ExerciseResult
from .student.ask_about_own_code import questions_about
from .student.check_attempt import check_attempt
from .student.hints import after_done, note_shown
from .student.question import answer_lines, question_lines, read_letters
from .submission import Source, read_file
from .submission.source import NO_TEXT


class VisibleCheckFailed(AssertionError):
    """A visible check failed, or could not run. The text is complete without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows.

        The stack is left out, because it shows nothing about the student's code.
        """
        return str(self).splitlines()


def check_notebook(exercise: str, namespace: Mapping[str, object] | None = None) -> None:
    """Check the functions and classes that this notebook defines, and print the report.

    The recorded answers are read from the folder `fingerprints` in the working folder.

    Args:
        exercise: The id of the exercise.
        namespace: The functions and classes by name, or None for all names of the kernel.

    Raises:
        VisibleCheckFailed: A check did not pass, and the text is the report. Or the recorded
            answers are missing.
        CourseError: The recorded answers cannot be read.

    Example: `check_notebook("reshape_dance")`
    """
    recorded = sorted((Path.cwd() / "fingerprints").glob(f"[0-9][0-9]_{exercise}.safetensors"))
    if not recorded:
        missing = f"fingerprints/…{exercise}.safetensors is not in this notebook's folder: "
        raise VisibleCheckFailed(
            f"{missing}open it where the class repository has it, and run this cell again."
        )
    names = vars(modules["__main__"]) if namespace is None else namespace
    attempt = LocalRecordingRunner(names)
    result = check_attempt(read(recorded[0]), attempt, source_of(names))
    # The label does not depend on a course, because the notebook may be in any folder.
    view = report_view(result, recorded[0].stem.replace("_", " "))
    next_step = attempt_words(result).next_command
    text = f"{view.text}\nNext: {as_called(next_step, NOTEBOOK)}" if next_step else view.text
    if any(check.outcome != "passed" for check in result.checks):
        raise VisibleCheckFailed(text)
    print(text)


def source_of(namespace: Mapping[str, object], stubs: Sequence[str] = ()) -> Source:
    """Return the text of the functions and classes that this kernel defines, and the stubs below.

    Imported ones are left out, and those whose text Python cannot find. If the result is empty,
    return NO_TEXT.

    Args:
        namespace: The kernel's objects by name.
        stubs: The texts of further functions.
    """
    texts = []
    for value in dict(namespace).values():
        if isinstance(value, FunctionType | type) and value.__module__ == "__main__":
            # For a class, inspect walks the syntax tree of its cell, which may be too deep.
            with suppress(OSError, TypeError, RecursionError):
                texts.append(textwrap.dedent(inspect.getsource(value)))
    text = "\n".join([*texts, *stubs])
    return Source("", text, from_kernel=True) if text else NO_TEXT


def load_magics(exercise: str) -> None:
    """Register %check, %ask and %course for this exercise with the shell of IPython.

    Outside IPython, nothing happens.

    Example: `load_magics("reshape_dance")`
    """
    from IPython.core.getipython import get_ipython

    if (shell := get_ipython()) is not None:
        Magics(shell, exercise)


# Commands about one exercise: %course inserts the notebook's if the line names none.
_OF_ONE = {"check", "hint", "trace", "plot", "ask", "train"}
# options of these commands that a value follows; the value of --assignment names exercises
_WITH_VALUE = {"--course", "--format", "--letters", "--seed", "--steps"}


class Magics:
    """The magics %check, %ask and %course of one shell, for one exercise."""

    def __init__(self, shell: InteractiveShell, exercise: str) -> None:
        """Register the magics.

        Args:
            shell: the shell of the kernel.
            exercise: the id of the notebook's exercise.
        """
        self._shell = shell
        self._exercise = exercise
        # chooses the questions; it stays the same until an %ask with letters has answered them
        self._seed = random.randrange(1000)
        for name, answer in (("check", self._check), ("ask", self._ask), ("course", self._course)):
            self._shell.register_magic_function(self._magic(answer), "line", name)

    def _magic(self, answer: Callable[[list[str]], NotebookView | None]) -> Any:
        """Return a magic that splits its line into words and displays the view of `answer`.

        A CourseFault is displayed instead of raised, because a student cannot use its traceback.
        """

        def magic(line: str) -> None:
            # a text in double quotes is one word
            words = [text or word for text, word in re.findall(r'"([^"]+)"|(\S+)', line)]
            try:
                view = answer(words)
            except CourseFault as error:
                problem = as_called(f"course: {error}", NOTEBOOK)
                view = combine_views(Text(next_alone(problem), style="bold red"))
            if view is not None:
                display({"text/html": view.html, "text/plain": view.text}, raw=True)

        magic.__doc__ = answer.__doc__
        return magic

    def _find(self) -> tuple[Course, Exercise]:
        """Return the course of the working folder, and this notebook's exercise.

        Raises CourseFault if there is no such course or exercise.
        """
        course = load_course(find_course(Path.cwd()))
        for exercise in exercises_called(course.exercises, self._exercise):
            return course, exercise
        raise CourseFault(f"{unknown(course.exercises, self._exercise)} Next: %course status")

    def _check(self, words: list[str]) -> NotebookView:
        """Check the functions and classes that this notebook's cells have defined.

        Example: `%check`.
        """
        course, exercise = self._find()
        result = self._result(exercise)
        note_shown(result, course.root)
        report = attempt_words(result)
        lines = []
        if report.first_wrong and not report.next_command:
            lines.append("With the notebook saved, there is more.")
        if report.first_wrong:
            lines.append(f"Next: {report.next_command or '%course hint'}")
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
        return combine_views(report_view(result, label_of(exercise)), *map(Text, texts))

    def _course(self, words: list[str]) -> NotebookView | None:
        """Run a command of `course` on the saved notebook, and print its output.

        `%course ask` is the same as %ask. Example: `%course hint`.
        """
        if words in (["ask"], ["ask", self._exercise]):  # a command cannot read letters in a cell
            return self._ask([])
        names_none = all(
            word.startswith("-") or previous in _WITH_VALUE for previous, word in pairwise(words)
        )
        if words and words[0] in _OF_ONE and names_none:
            words.insert(1, self._exercise)
        plain = {
            "COLUMNS": str(WIDTH),
            "FORCE_COLOR": "",
            "PYTHONUNBUFFERED": "1",
            "PYTHONUTF8": "1",
            CALLED_AS: NOTEBOOK,
        }
        with Popen(
            [sys.executable, "-m", "manyheads", *words],
            env=os.environ | plain,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            encoding="utf-8",
        ) as running:
            for line in running.stdout or ():
                print(line, end="")
        return None

    def _ask(self, words: list[str]) -> NotebookView:
        """Ask questions about your code in the saved notebook, once its check has passed.

        With one letter for each question, show the right answers. The next %ask then has other
        questions. Example: `%ask BADCA`.
        """
        course, exercise = self._find()
        source = read_file(exercise.notebook, course.limits.source_kib)
        if not self._result(exercise).is_done:
            raise CourseFault(
                f"{exercise.id} is not done yet, and questions come after a ✓. Next: %check"
            )
        recording = read(exercise.fingerprints)
        limits = course.limits.for_worker()
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
            if letters:
                lines += answer_lines(question, letters[number], shows_right=True)
        lines.append(Text(" "))
        if letters:
            self._seed += 1
            lines.append(Text("Next: %ask"))
        else:
            example = "A" * len(questions)
            lines += (Text("Answer with your letters."), Text(f"Next: %ask {example}"))
        return combine_views(*lines)

    def _result(self, exercise: Exercise) -> ExerciseResult:
        """Return the result of the visible checks of the functions that the kernel has now."""
        names = self._shell.user_ns
        # A function whose cell has not run is replaced by a stub. Then the report can say that
        # other functions wait for it.
        stubs = [
            f"def {name}(): raise NotImplementedError"
            for name in exercise.shapes
            if name not in names
        ]
        # A call sets torch's seed, but the student's random state must stay. A function is called
        # dozens of times, so its output is discarded.
        with torch.random.fork_rng(devices=[]), redirect_stdout(io.StringIO()):
            return check_attempt(
                read(exercise.fingerprints),
                LocalRecordingRunner(names),
                source_of(names, stubs),
                exercise,
            )


WIDTH = 62  # columns that fit beside an open file browser
# black, red, green, yellow, blue, magenta, cyan and grey, with a contrast of at least 4.5 : 1 on
# white
_DARK = [
    (0, 0, 0),
    (176, 0, 32),
    (0, 104, 55),
    (122, 82, 0),
    (0, 72, 160),
    (128, 0, 112),
    (0, 96, 110),
    (87, 87, 87),
]
_THEME = TerminalTheme((255, 255, 255), (31, 35, 40), _DARK, [_DARK[-1], *_DARK[1:]])
_BOX = (
    "background:#fff;color:#1f2328;padding:0.6em 0.9em;border:1px solid "
    "#d0d7de;border-radius:4px;overflow-x:auto"
)
_WORDS = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_FONT = (
    f"margin:0;font-size:12px;line-height:1.35;word-break:normal;overflow-wrap:break-word;{_WORDS}"
)


@dataclass(frozen=True)
class NotebookView:
    """The output of a cell: HTML, and the same as text for a front end without HTML."""

    html: str
    text: str


def combine_views(*renderables: RenderableType | NotebookView) -> NotebookView:
    """Return one view with a frame around these parts, one below the other."""
    views = [
        renderable if isinstance(renderable, NotebookView) else _render(renderable)
        for renderable in renderables
    ]
    inside = "".join(view.html for view in views)
    return NotebookView(
        f'<div style="{_BOX}">{inside}</div>', "\n".join(view.text for view in views)
    )


def report_view(result: ExerciseResult, label: str = "") -> NotebookView:
    """Return the report of `course check` about an attempt, with collapsed hints in its HTML.

    Each hint is below the function that it belongs to.

    Args:
        result: The result of the attempt.
        label: The name of the exercise in the report's first line.
    """
    report = exercise_report(result, label=label)
    inside = [
        "".join(map(_fold_line, renderables)) if is_hint else _render(Group(*renderables)).html
        for is_hint, renderables in groupby(
            report.renderables, lambda renderable: isinstance(renderable, HintLine)
        )
    ]
    return NotebookView("".join(inside), _render(report).text)


class _NotebookConsole(Console):
    """Renders every text with commands in the form that a cell can run."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render a renderable. In a text, commands are first changed to the form for a cell."""
        if isinstance(renderable, Text):
            renderable = text_as_called(renderable, NOTEBOOK)
        return super().render(renderable, options)


def _fold_line(line: Any) -> str:
    """Return the HTML of a collapsed hint."""
    label = f"hint for {line.function}" if line.function else "hint"
    summary = f'<summary style="cursor:pointer">{html.escape(label)}</summary>'
    return (
        '<details style="margin:0.2em 0 0.4em '
        f'{line.indent}ch;font-size:12px;{_WORDS}">'
        f"{summary}{html.escape(as_called(line.hint, NOTEBOOK))}</details>"
    )


def _render(renderable: RenderableType) -> NotebookView:
    """Return a part as HTML and as text.

    In HTML, a Text wraps at the width of the page. Any other part keeps its columns.
    """
    is_sentence = isinstance(renderable, Text)
    console = _NotebookConsole(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        emoji=False,
        force_jupyter=False,
        legacy_windows=False,
    )
    console.print(renderable, soft_wrap=is_sentence)
    text = "\n".join(
        line.rstrip() for line in console.export_text(clear=False).rstrip().splitlines()
    )
    code = f'<pre style="{_FONT};white-space:{"pre-wrap" if is_sentence else "pre"}">{{code}}</pre>'
    return NotebookView(
        console.export_html(theme=_THEME, code_format=code, inline_styles=True), text
    )
