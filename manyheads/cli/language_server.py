"""Serve an editor: what `course check` says as diagnostics, hints as code actions, the shapes of `course trace` as inlay hints.

It looks at what is saved, never at what is being typed. Imports pygls, which manyheads[editor] brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from ..box.level import Box
from ..course import Course, CourseError, Exercise, find_course, load_course
from ..errors import CourseFault
from ..evidence import ExerciseEvidence, FunctionEvidence, HintEvidence, LineEvidence
from ..report.called import as_called
from ..submission import AttemptSource
from .own import own_attempt
from .own_evidence import check_evidence, hint_evidence, trace_evidence

HINT, EXPLAIN = "course.hint", "course.explain"


def exercise_in(uri: str) -> tuple[Course, Exercise] | None:
    """Return the exercise whose script this is, with its course; None for any other file."""
    path = Path(to_fs_path(uri) or "").resolve()
    try:
        course = load_course(find_course(path.parent))
    except (CourseError, OSError):
        return None
    return next(((course, exercise) for exercise in course.exercises if exercise.script.resolve() == path), None)


def diagnostics_of(told: ExerciseEvidence, uri: str, hint: HintEvidence | None = None) -> Iterator[types.Diagnostic]:
    """Yield what is wrong, at its line, with the hint as related information.

    hint: the last that was asked for, which stands in place of the first.
    """
    for each in told.wrong:
        said = [f"Hint {hint.step} of {hint.steps}: {hint.hint}"] if hint else [f"Hint: {each.hint}"] * bool(each.hint)
        place = _range(each)
        related = [types.DiagnosticRelatedInformation(types.Location(uri, place), sentence) for sentence in said]
        error = types.DiagnosticSeverity.Error
        yield types.Diagnostic(place, each.sentence, error, source="course", related_information=related)
        hint = None  # it is about the first


def shapes_of(told: ExerciseEvidence, first: int, last: int) -> Iterator[types.InlayHint]:
    """Yield what each of these lines makes in the first call that comes to it: the shape that its last operation gives.

    What a line does in a loop of its own, as in a list's brackets, is not what it makes.
    """
    shown: dict[int, LineEvidence] = {}
    for call in told.calls:
        made: dict[int, LineEvidence] = {}
        for line in call.lines:
            if line.operations and line.depth <= made.get(line.line, line).depth:
                made[line.line] = line
        shown = made | shown
    for line in (line for number, line in sorted(shown.items()) if first <= number <= last):
        warnings = "\n".join(operation.warning for operation in line.operations if operation.warning)
        end, gives = types.Position(line.line - 1, line.end_column - 1), line.operations[-1].gives
        yield types.InlayHint(end, f"→ {gives}", padding_left=True, tooltip=warnings or None)


def explanation_of(told: ExerciseEvidence, line: int) -> str:
    """Return all that `course check` says of what is wrong on this line; of all that is wrong, where lines have moved since."""
    if not told.wrong:
        return f"{told.title}: nothing is wrong any more."
    parts: list[str] = []
    for each in [each for each in told.wrong if each.line == line] or told.wrong:
        head = ": ".join(filter(None, (each.name, each.says)))
        parts += filter(None, (head, each.check, each.evidence, each.own_check, each.also))
    return "\n".join(parts)


def _range(each: FunctionEvidence) -> types.Range:
    line = max(each.line, 1) - 1
    return types.Range(types.Position(line, each.column - 1), types.Position(line, each.end_column - 1))


@dataclass
class _Editor:
    """Answers one editor. One thing is run at a time, for an attempt may need all of the machine."""

    server: LanguageServer
    box: Box
    lock: Lock = field(default_factory=Lock)
    hints: dict[str, tuple[AttemptSource, HintEvidence]] = field(
        default_factory=dict
    )  # by uri, with the text that it is about
    traces: dict[str, tuple[AttemptSource, ExerciseEvidence]] = field(default_factory=dict)

    def publish(self, uri: str) -> None:
        """Check what is saved, and publish what is wrong; nothing where the student works in the notebook."""
        if (found := exercise_in(uri)) is None:
            return
        course, exercise = found
        with self.lock:
            told = check_evidence(course, exercise, self.box)
        source, hint = self.hints.get(uri, (None, None))
        hint = hint if source == own_attempt(course, exercise) else None
        wrong = list(diagnostics_of(told, uri, hint)) if Path(told.file).name == exercise.script.name else []
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, wrong))

    def hint(self, uri: str) -> None:
        """Show the next hint, and let the diagnostic have it."""
        if (found := exercise_in(uri)) is None:
            return
        course, exercise = found
        with self.lock:
            hint = hint_evidence(course, exercise, self.box).hint
        if hint is None:
            self.say(f"{exercise.id} needs no hint: every check passes.")
            return
        self.hints[uri] = (own_attempt(course, exercise), hint)
        self.say(f"{hint.title}\nHint {hint.step} of {hint.steps}: {hint.hint}")
        self.publish(uri)

    def explain(self, uri: str, line: int) -> None:
        """Show all that is said of what is wrong on a line."""
        if (found := exercise_in(uri)) is not None:
            with self.lock:
                told = check_evidence(*found, self.box)
            self.say(explanation_of(told, line))

    def shapes(self, uri: str, lines: types.Range) -> list[types.InlayHint]:
        """Return the shapes of what is saved. A file that has not changed is traced once."""
        if (found := exercise_in(uri)) is None:
            return []
        course, exercise = found
        with self.lock:
            source = own_attempt(course, exercise)
            if self.traces.get(uri, (None,))[0] != source:
                self.traces[uri] = (source, trace_evidence(course, exercise, box=self.box))
        told = self.traces[uri][1]
        return list(shapes_of(told, lines.start.line + 1, lines.end.line + 1)) if told.file.endswith(".py") else []

    def say(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message."""
        self.server.window_show_message(types.ShowMessageParams(kind, as_called(text)))

    def call(self, method: Any, *arguments: Any) -> Any:
        """Call one of these, and show a fault of the course as a message."""
        try:
            return method(*arguments)
        except CourseFault as error:
            self.say(f"course: {error}", types.MessageType.Error)
            return None


def server_for(box: Box) -> LanguageServer:
    """Return the server, which runs attempts in this box."""
    server = LanguageServer("course", version("manyheads"))
    editor = _Editor(server, box)

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        editor.call(editor.publish, params.text_document.uri)

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        editor.call(editor.publish, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        ours = [each for each in params.context.diagnostics if each.source == "course"]
        actions = [("Explain", EXPLAIN, [uri, each.range.start.line + 1], each) for each in ours]
        actions += [("Next hint", HINT, [uri], each) for each in ours[:1]]
        quick = types.CodeActionKind.QuickFix
        return [
            types.CodeAction(title, quick, [about], command=types.Command(title, name, arguments=arguments))
            for title, name, arguments, about in actions
        ]

    @server.thread()
    @server.command(HINT)
    def hint(uri: str) -> None:
        editor.call(editor.hint, uri)

    @server.thread()
    @server.command(EXPLAIN)
    def explain(uri: str, line: int) -> None:
        editor.call(editor.explain, uri, line)

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        return editor.call(editor.shapes, params.text_document.uri, params.range) or []

    return server
