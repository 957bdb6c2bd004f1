"""Serve an editor by the Language Server Protocol.

The results of `course check` become diagnostics, hints become code actions, and the shapes of
`course trace` become inlay hints. The server reads saved files, never unsaved text. It needs pygls,
which the extra manyheads[editor] installs.
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

from ..box.connection import Box
from ..course import CourseError, find_course, load_course
from ..files import CourseFault
from ..report.command_name import as_called
from ..report.report_content import Problem, problems
from ..student.check_and_keep_result import Checks, OwnAttempt, read_own_attempt
from ..student.hints import next_hint
from ..student.trace import Explained, TraceLine, explain_example, follow_own
from .student import result_with_hint

HINT = "course.hint"
SOURCE = "course"


def diagnostic_of(problem: Problem, uri: str, last_hint: str) -> types.Diagnostic:
    """Return a problem with its evidence, at its line.

    The related information is the student's last hint or, if there is none, the problem's first
    hint.
    """
    start, end = (
        types.Position(problem.line - 1, column - 1)
        for column in (problem.column, problem.end_column)
    )
    span = types.Range(start, end)
    report = problem.report
    hint = last_hint or (report.hint and f"Hint: {report.hint}")
    check = ("check", report.check)
    details = (
        text
        for category, text, _ in report.details
        if category in ("evidence", "also") or (category, text) == check
    )
    related = [types.DiagnosticRelatedInformation(types.Location(uri, span), hint)] if hint else []
    message = "\n".join(filter(None, (report.head, *details)))
    return types.Diagnostic(
        span, message, types.DiagnosticSeverity.Error, source=SOURCE, related_information=related
    )


def shapes_of(
    calls: Sequence[Explained], texts: Sequence[str], lines: range
) -> Iterator[types.InlayHint]:
    """Yield for each line the shape that its last operation returns.

    Only the first call that reaches the line counts. Operations in a loop within the line,
    such as a list comprehension, do not count.
    """
    first_lines: dict[int, TraceLine] = {}
    for call in calls:
        call_lines: dict[int, TraceLine] = {}
        for line in call.entries:
            if (
                isinstance(line, TraceLine)
                and line.operations
                and line.depth <= call_lines.get(int(line.label), line).depth
            ):
                call_lines[int(line.label)] = line
        first_lines = call_lines | first_lines
    for number in sorted(first_lines.keys() & {*lines}):
        operations = first_lines[number].operations
        end = types.Position(number - 1, len(texts[number - 1].rstrip()))
        warnings = "\n".join(operation.warning for operation in operations if operation.warning)
        yield types.InlayHint(
            end, f"→ {operations[-1].gives}", padding_left=True, tooltip=warnings or None
        )


class Editor:
    """Answer one editor, one request at a time, because an attempt may need the whole machine."""

    def __init__(self, server: LanguageServer, box: Box) -> None:
        self._server = server
        self._box = box
        self._lock = Lock()
        self._hints: dict[OwnAttempt, str] = {}  # the last hint of each attempt
        self._traces: dict[OwnAttempt, list[Explained]] = {}

    def publish(self, uri: str, attempt: OwnAttempt) -> None:
        """Check the saved script, and publish its problems.

        There are none if the student works in the notebook.
        """
        result = result_with_hint(Checks(attempt.course, self._box), attempt)
        attempt_problems = (
            problems(result, attempt.source)
            if result and attempt.source.name == attempt.exercise.script.name
            else ()
        )
        last_hint = self._hints.get(attempt, "")  # it is about the first problem
        diagnostics = [
            diagnostic_of(problem, uri, "" if index else last_hint)
            for index, problem in enumerate(attempt_problems)
        ]
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics)
        )

    def hint(self, uri: str, attempt: OwnAttempt) -> None:
        """Show the next hint, and add it to the diagnostic."""
        shown_hint = next_hint(
            attempt, Checks(attempt.course, self._box, looks=True).result(attempt)
        )
        self._hints[attempt] = shown_hint.sentence
        self.publish(uri, attempt)
        self.say(f"{shown_hint.title}\n{shown_hint.sentence}".strip())

    def shapes(self, uri: str, attempt: OwnAttempt, lines: types.Range) -> list[types.InlayHint]:
        """Return the shapes of a saved file. A file that has not changed is traced only once."""
        if (
            attempt.source.name != attempt.exercise.script.name
            or attempt.source.problem
            or not attempt.is_started
        ):
            return []
        if attempt not in self._traces:
            followed = follow_own(attempt, None, "trace", (), self._box)
            self._traces[attempt] = [
                explain_example(*call, attempt.source) for call in followed.traced_examples
            ]
        line_numbers = range(lines.start.line + 1, lines.end.line + 2)
        return list(shapes_of(self._traces[attempt], attempt.source.lines, line_numbers))

    def say(self, text: str, message_type: types.MessageType = types.MessageType.Info) -> None:
        """Show a message."""
        self._server.window_show_message(types.ShowMessageParams(message_type, as_called(text)))

    def ask(self, method: Callable[..., Any], uri: str, *arguments: Any) -> Any:
        """Call a method of this class for an exercise's script, or return None for another file.

        A fault of the course is shown as a message.
        """
        path = Path(to_fs_path(uri) or "").resolve()
        try:
            course = load_course(find_course(path.parent))
        except (CourseError, OSError):  # a file of no course
            return None
        matches = [exercise for exercise in course.exercises if exercise.script.resolve() == path]
        if not matches:
            return None
        try:
            with self._lock:
                return method(uri, read_own_attempt(course, matches[0]), *arguments)
        except CourseFault as error:
            self.say(f"course: {error}", types.MessageType.Error)


def server_for(box: Box) -> LanguageServer:
    """Return a server that runs attempts in this box."""
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
        for diagnostic in params.context.diagnostics:
            if diagnostic.source == SOURCE:
                command = types.Command("Next hint", HINT, arguments=[params.text_document.uri])
                quick_fix = types.CodeActionKind.QuickFix
                return [types.CodeAction(command.title, quick_fix, [diagnostic], command=command)]
        return []

    @server.thread()
    @server.command(HINT)
    def hint(uri: str) -> None:
        editor.ask(editor.hint, uri)

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        return editor.ask(editor.shapes, params.text_document.uri, params.range) or []

    return server
