"""Serve an editor: what `course check` says as diagnostics, hints as code actions, the shapes of
`course trace` as inlay hints.

It looks at what is saved, never at what is being typed. Imports pygls, which manyheads[editor]
brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from ..box.level import Box
from ..course import CourseError, find_course, load_course
from ..errors import CourseFault
from ..report.called import as_called
from ..report.words import Problem, problems
from ..student.explain_trace import Explained, TraceLine, explained
from ..student.follow import follow_own
from ..student.hints import next_hint
from ..student.own_attempt import Checks, Own, read_own
from ..submission import lines_of
from .learn import told_of

HINT, SOURCE = "course.hint", "course"


def diagnostic_of(wrong: Problem, uri: str, last: str) -> types.Diagnostic:
    """Return what is wrong, with what was seen, at its line; its hint, or the last that was asked
    for, is related information.
    """
    start, end = (
        types.Position(wrong.line - 1, column - 1) for column in (wrong.column, wrong.end_column)
    )
    place, report = types.Range(start, end), wrong.report
    hint = last or (report.hint and f"Hint: {report.hint}")
    check = ("check", report.check)
    seen = (
        text
        for kind, text, _ in report.told
        if kind in ("evidence", "also") or (kind, text) == check
    )
    related = [types.DiagnosticRelatedInformation(types.Location(uri, place), hint)] if hint else []
    message, error = "\n".join(filter(None, (report.head, *seen))), types.DiagnosticSeverity.Error
    return types.Diagnostic(place, message, error, source=SOURCE, related_information=related)


def shapes_of(
    calls: Sequence[Explained], texts: Sequence[str], lines: range
) -> Iterator[types.InlayHint]:
    """Yield what each of these lines makes in the first call that comes to it: the shape that its
    last operation gives.

    What a line does in a loop of its own, as in a list's brackets, is not what it makes.
    """
    shown: dict[int, TraceLine] = {}
    for call in calls:
        made: dict[int, TraceLine] = {}
        for line in call.entries:
            if (
                isinstance(line, TraceLine)
                and line.operations
                and line.depth <= made.get(int(line.label), line).depth
            ):
                made[int(line.label)] = line
        shown = made | shown
    for number in sorted(shown.keys() & {*lines}):
        operations, end = (
            shown[number].operations,
            types.Position(number - 1, len(texts[number - 1].rstrip())),
        )
        warnings = "\n".join(operation.warning for operation in operations if operation.warning)
        yield types.InlayHint(
            end, f"→ {operations[-1].gives}", padding_left=True, tooltip=warnings or None
        )


class Editor:
    """Answers one editor. One thing is run at a time, for an attempt may need all of the
    machine.
    """

    def __init__(self, server: LanguageServer, box: Box) -> None:
        self._server, self._box, self._lock = server, box, Lock()
        self._hints: dict[Own, str] = {}  # the last that was asked for
        self._traces: dict[Own, list[Explained]] = {}

    def publish(self, uri: str, own: Own) -> None:
        """Check what is saved, and publish what is wrong; nothing where the student works in the
        notebook.
        """
        result = told_of(Checks(own.course, self._box), own)
        wrong = (
            problems(result, own.source)
            if result and own.source.name == own.exercise.script.name
            else ()
        )
        last = self._hints.get(own, "")  # it is about the first
        shown = [
            diagnostic_of(each, uri, "" if place else last) for place, each in enumerate(wrong)
        ]
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown))

    def hint(self, uri: str, own: Own) -> None:
        """Show the next hint, and let the diagnostic have it."""
        given = next_hint(own, Checks(own.course, self._box, looks=True).result(own))
        self._hints[own] = given.sentence
        self.publish(uri, own)
        self.say(f"{given.title}\n{given.sentence}".strip())

    def shapes(self, uri: str, own: Own, lines: types.Range) -> list[types.InlayHint]:
        """Return the shapes of what is saved. A file that has not changed is traced once."""
        if own.source.name != own.exercise.script.name or own.source.problem or not own.is_started:
            return []
        if own not in self._traces:
            followed = follow_own(own, None, "trace", (), self._box)
            self._traces[own] = [explained(*each, own.source) for each in followed.shown]
        wanted = range(lines.start.line + 1, lines.end.line + 2)
        return list(shapes_of(self._traces[own], lines_of(own.source.source), wanted))

    def say(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message."""
        self._server.window_show_message(types.ShowMessageParams(kind, as_called(text)))

    def ask(self, method: Callable[..., Any], uri: str, *about: Any) -> Any:
        """Call one of these about an exercise's script; of another file, None. A fault of the
        course is shown as a message.
        """
        path = Path(to_fs_path(uri) or "").resolve()
        try:
            course = load_course(find_course(path.parent))
        except (CourseError, OSError):  # a file of no course
            return None
        named = [each for each in course.exercises if each.script.resolve() == path]
        try:
            with self._lock:
                return method(uri, read_own(course, named[0]), *about) if named else None
        except CourseFault as error:
            self.say(f"course: {error}", types.MessageType.Error)


def server_for(box: Box) -> LanguageServer:
    """Return the server, which runs attempts in this box."""
    server = LanguageServer(SOURCE, version("manyheads"))
    editor = Editor(server, box)

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_open_or_save(
        params: types.DidOpenTextDocumentParams | types.DidSaveTextDocumentParams,
    ) -> None:
        editor.ask(editor.publish, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        ours = [each for each in params.context.diagnostics if each.source == SOURCE][:1]
        command = types.Command("Next hint", HINT, arguments=[params.text_document.uri])
        return (
            [types.CodeAction(command.title, types.CodeActionKind.QuickFix, ours, command=command)]
            if ours
            else []
        )

    @server.thread()
    @server.command(HINT)
    def hint(uri: str) -> None:
        editor.ask(editor.hint, uri)

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        return editor.ask(editor.shapes, params.text_document.uri, params.range) or []

    return server
