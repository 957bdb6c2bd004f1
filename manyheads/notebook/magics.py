"""What `%load_ext manyheads` and a notebook's first cell load: %check, %hint, %trace, %plot and %ask, with the output of the commands."""

from __future__ import annotations

import io
import random
import re
import shlex
from contextlib import redirect_stdout, suppress
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from rich.text import Text

from ..box.forked import open_own_box
from ..checks.local import LocalRecordingRunner
from ..errors import CourseFault
from ..report.called import as_called
from ..report.labels import label_of
from ..report.ladder import after_done
from ..report.notebook_html import NotebookView, checked, hanging, pictured, shown
from ..report.question_text import answer_lines, question_lines
from ..report.trace_text import LEGEND, trace_report
from ..result import ExerciseResult
from ..student.ask_questions import questions_about
from ..student.check_attempt import check_attempt
from ..student.choose_example import examples_named
from ..student.crops import TABLES, TIMES
from ..student.example import with_recorded
from ..student.explain_trace import explained
from ..student.hints import next_hint
from ..student.own_checks import printed_lines
from ..student.question import read_letters
from ..student.sentence import every_band, sentence_examples
from ..submission import read_file
from .kernel import Cells, NotebookExercise, find_exercise, preserved_rng_state, source_of, traced_in_kernel

_OPTIONS = {"check": (), "hint": ("--again",), "trace": ("--values",), "plot": (), "ask": ()}
_CROP = (6, 5)  # numbers of a table: fewer than on a terminal, for a notebook's column is narrower
_LETTERS = re.compile(r"[A-Da-d-]{1,20}")  # answers to questions
_OF_FUNCTIONS = ("trace", "plot")  # take the name of a function, too


class Magics:
    """The magics, for one shell."""

    def __init__(self, shell: InteractiveShell, exercise: str = "") -> None:
        """`exercise`: the id of the notebook's exercise; "" where what is defined must tell."""
        self._shell, self._exercise = shell, exercise
        self._seed = random.randrange(1000)  # of questions: the next %ask with letters is about the same

    def register(self) -> None:
        """Register them with the shell."""
        for name in _OPTIONS:
            self._shell.register_magic_function(self._magic(name), "line", name)

    def _magic(self, name: str) -> Any:
        def magic(line: str) -> None:
            try:
                words, options = _parsed(name, line)
                found, names = self._about(name, words)
                _display(getattr(self, f"_{name}")(found, *names, *options))
            except CourseFault as error:
                _display(shown(Text(f"course: {error}", style="bold red")))

        magic.__doc__ = f"As `course {name}`, for what is defined in this notebook. Example: %{name} reshape_dance"
        return magic

    def _about(self, name: str, words: list[str]) -> tuple[NotebookExercise, list[str]]:
        """Return the exercise, and the functions that are named. A single word may be a function of this notebook's exercise.

        Raises CourseFault.
        """
        if name in _OF_FUNCTIONS and len(words) == 1:
            with suppress(CourseFault):
                own = find_exercise(self._exercise, self._shell.user_ns)
                if words[0] in own.exercise.shapes:
                    return own, words
        if name == "ask" and words and _LETTERS.fullmatch(words[0]):
            return find_exercise(self._exercise, self._shell.user_ns), words
        return find_exercise(words[0] if words else self._exercise, self._shell.user_ns), words[1:]

    def _check(self, notebook: NotebookExercise) -> NotebookView:
        result = self._result(notebook)
        return shown(checked(result, _after_done(notebook) if result.is_done else (), label_of(notebook.exercise)))

    def _hint(self, notebook: NotebookExercise, *options: str) -> NotebookView:
        result = self._result(notebook)
        if result.is_done:
            return shown(Text(f"{notebook.id} needs no hint: every check passes."))
        states = {function.state: function.name for function in reversed(result.functions)}
        if "unrun" in states and not states.keys() & {"wrong", "unwritten"} and "right" in states:
            sentence = (
                f"The cell of {states['unrun']} has not run yet, and what has run is right as far as it can be seen."
            )
            return shown(Text(sentence), Text(f"Next: run it, then %check {notebook.id}"))
        note = notebook.notes / "hints.json"
        hint = next_hint(notebook.fingerprints.content, result, notebook.exercise.hint, note, again=bool(options))
        following = f"Next: %{'check' if hint.last else 'hint'} {notebook.id}"
        return shown(*(Text(line) for line in (hint.title, hint.sentence, following) if line))

    def _trace(self, notebook: NotebookExercise, *words: str) -> NotebookView:
        names = [word for word in words if not word.startswith("--")]
        crop = _CROP if len(names) < len(words) else ()
        cells = self._cells()
        chosen = examples_named(notebook.exercise, notebook.fingerprints, next(iter(names), None), "%trace")
        traced = traced_in_kernel(self._shell.user_ns, chosen, cells, crop)
        source = cells.source()
        reports = [trace_report(explained(example, each, source, crop)) for example, each in traced]
        return shown(hanging(*reports, Text(LEGEND, "bright_black")))

    def _plot(self, notebook: NotebookExercise, *names: str) -> NotebookView:
        cells = self._cells()
        exercise, name = notebook.exercise, next(iter(names), None)
        chosen = examples_named(exercise, notebook.fingerprints, name, "%plot", by_head=True)
        chosen = with_recorded([*chosen, *([] if names else sentence_examples(exercise))], exercise)
        return shown(pictured(every_band(traced_in_kernel(self._shell.user_ns, chosen, cells, TABLES, TIMES))))

    def _ask(self, notebook: NotebookExercise, *letters: str) -> NotebookView:
        """Show questions on the notebook as it was saved; with letters, what is said of them."""
        source = read_file(notebook.exercise.notebook, notebook.course.limits.source_kib)
        if not self._result(notebook).is_done:
            raise CourseFault(f"{notebook.id} is not done yet, and questions come after a ✓. Next: %check")
        with open_own_box() as box:
            limits = notebook.course.limits.for_worker()
            questions = questions_about(box, limits, notebook.exercise, notebook.fingerprints, source, self._seed)
        if not questions:
            raise CourseFault(f"nothing in {source.name} as it was saved can be asked about. Next: save it, then %ask")
        given = read_letters(letters[0], len(questions)) if letters else ""
        lines: list[Text] = []
        for number, question in enumerate(questions):
            lines += [Text(" "), *question_lines(number + 1, len(questions), question)]
            lines += answer_lines(question, given[number], shows_right=True) if given else ()
        if given:
            self._seed += 1
        return shown(*lines, Text(" "), Text(f"Next: %ask {'' if given else 'BADCA, with your letters'}".strip()))

    def _result(self, notebook: NotebookExercise) -> ExerciseResult:
        names = self._shell.user_ns
        # A function whose cell has not run counts as its stub, so that those that use it are said to wait for it.
        stubs = [f"def {name}(): raise NotImplementedError" for name in notebook.exercise.shapes if name not in names]
        source = "\n".join([source_of(names), *stubs])
        with preserved_rng_state(), redirect_stdout(io.StringIO()) as printed:  # a function is called dozens of times
            result = check_attempt(
                notebook.fingerprints, LocalRecordingRunner(names), source or None, notebook.exercise
            )
        return _with_unrun(result.model_copy(update={"printed": printed_lines(printed.getvalue())}))

    def _cells(self) -> Cells:
        def name_of(file: str) -> str | None:
            named = self._shell.compile.format_code_name(file)
            return None if named is None else named[1]

        return Cells(name_of)


def _after_done(notebook: NotebookExercise) -> list[str]:
    """Return why it works, and what comes next."""
    every = notebook.course.exercises
    following = every[every.index(notebook.exercise) + 1 :][:1]
    lines = [f"Next: {each.title}, in {each.notebook.name}" for each in following]
    return [
        as_called(line.replace(f"course ask {notebook.id}", "%ask"))
        for line in (*after_done(notebook.exercise), *(lines or ["Next, in a terminal: course status"]))
    ]


def _with_unrun(result: ExerciseResult) -> ExerciseResult:
    """Return the result, in which a function that is not defined in the kernel is one whose cell has not run."""
    missing = {f.name for f in result.functions if f.state == "undefined" and not f.near}
    functions = tuple(f.model_copy(update={"state": "unrun"}) if f.name in missing else f for f in result.functions)
    diagnosis = tuple(diagnosed for diagnosed in result.diagnosis if diagnosed.function not in missing)
    return result.model_copy(update={"functions": functions, "diagnosis": diagnosis})


def _parsed(name: str, line: str) -> tuple[list[str], list[str]]:
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    options = [word for word in words if word.startswith("-")]
    unknown = [word for word in options if word not in _OPTIONS[name]]
    if unknown:
        raise CourseFault(f"%{name} knows no {unknown[0]}. Next: %{name}?")
    plain = [word for word in words if word not in options]
    if len(plain) > (2 if name in _OF_FUNCTIONS else 1):
        raise CourseFault(f"%{name} takes one exercise. Next: %{name} {plain[0]}")
    return plain, options


def _display(what: NotebookView) -> None:
    display({"text/html": what.html, "text/plain": what.text}, raw=True)
