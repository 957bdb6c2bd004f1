"""`%load_ext manyheads`: %check, %hint, %trace and %plot, with the output of the commands."""

from __future__ import annotations

import base64
import io
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from rich.text import Text

from ..checks.local import LocalRecordingRunner
from ..errors import CourseFault
from ..public.check import check_attempt
from ..public.heads import read
from ..public.own_checks import printed_lines
from ..report.figures import png
from ..report.notebook import NotebookView, checked, picture, shown
from ..report.trace import LEGEND, trace_report
from ..result import ExerciseResult
from ..tools.calls import Example, examples, with_heads
from ..tools.crops import CROP, TABLES, TIMES
from ..tools.hints import next_hint
from ..tools.plot import summary
from ..tools.sentence import every_band, sentence_examples
from ..tools.trace import explained
from .kernel import Cells, NotebookExercise, find_exercise, preserved_rng_state, source_of, trace_in_kernel

_OPTIONS = {"check": (), "hint": ("--again",), "trace": ("--values",), "plot": ()}


class Magics:
    """The four magics, for one shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def register(self) -> None:
        """Register them with the shell."""
        for name in _OPTIONS:
            self._shell.register_magic_function(self._magic(name), "line", name)

    def _magic(self, name: str) -> Any:
        def magic(line: str) -> None:
            try:
                words, options = _parsed(name, line)
                found = find_exercise(words[0] if words else "", self._shell.user_ns)
                _display(getattr(self, f"_{name}")(found, *words[1:], *options))
            except CourseFault as error:
                _display(shown(Text(f"course: {error}", style="bold red")))

        magic.__doc__ = f"As `course {name}`, for what is defined in this notebook. Example: %{name} reshape_dance"
        return magic

    def _check(self, found: NotebookExercise) -> NotebookView:
        return shown(checked(self._result(found)))

    def _hint(self, found: NotebookExercise, *options: str) -> NotebookView:
        result = self._result(found)
        if result.is_done:
            return shown(Text(f"{found.id} needs no hint: every check passes."))
        note = found.notes / "hints.json"
        hint = next_hint(found.fingerprints.content, result, found.exercise.hint, note, again=bool(options))
        following = f"Next: %{'check' if hint.last else 'hint'} {found.id}"
        return shown(*(Text(line) for line in (hint.title, hint.sentence, following) if line))

    def _trace(self, found: NotebookExercise, *words: str) -> NotebookView:
        names = [word for word in words if not word.startswith("--")]
        crop = CROP if len(names) < len(words) else ()
        cells = self._cells()
        traced = [
            (example, trace_in_kernel(self._shell.user_ns, example, cells, crop))
            for example in _chosen(found, names, "trace")
        ]
        source = cells.source()
        return shown(
            *(trace_report(explained(example, each, source)) for example, each in traced), Text(LEGEND, "bright_black")
        )

    def _plot(self, found: NotebookExercise, *names: str) -> NotebookView:
        cells = self._cells()
        sentence = [] if names else sentence_examples(found.exercise)
        recorded = read(found.exercise.heads)
        chosen = with_heads([*_chosen(found, names, "plot", by_head=True), *sentence], recorded)
        every = every_band(
            chosen, [trace_in_kernel(self._shell.user_ns, example, cells, TABLES, TIMES) for example in chosen]
        )
        data = png(every, f"{found.exercise.title}: expected, yours, difference")
        return shown(picture(base64.b64encode(data).decode(), summary(every)))

    def _result(self, found: NotebookExercise) -> ExerciseResult:
        names = self._shell.user_ns
        with preserved_rng_state(), redirect_stdout(io.StringIO()) as printed:  # a function is called dozens of times
            result = check_attempt(found.fingerprints, LocalRecordingRunner(names), source_of(names), found.exercise)
        return result.model_copy(update={"printed": printed_lines(printed.getvalue())})

    def _cells(self) -> Cells:
        def name_of(file: str) -> str | None:
            named = self._shell.compile.format_code_name(file)
            return None if named is None else named[1]

        return Cells(name_of)


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
    if len(plain) > (2 if name in ("trace", "plot") else 1):
        raise CourseFault(f"%{name} takes one exercise. Next: %{name} {plain[0]}")
    return plain, options


def _chosen(found: NotebookExercise, names: Sequence[str], command: str, *, by_head: bool = False) -> list[Example]:
    every = examples(found.exercise, found.fingerprints, by_head=by_head)
    chosen = [example for example in every if not names or example.target == names[0]]
    if not chosen:
        known = ", ".join(dict.fromkeys(example.target for example in every)) or "none"
        next_ = f"%{command} {found.id}"
        raise CourseFault(f"{found.id} has no {names[0]!r} to {command}; it has: {known}. Next: {next_}")
    return chosen


def _display(what: NotebookView) -> None:
    display({"text/html": what.html, "text/plain": what.text}, raw=True)
