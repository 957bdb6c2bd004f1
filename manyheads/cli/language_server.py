"""Serve an editor: what `course check` says as diagnostics, hints as code actions, the shapes of `course trace` as inlay hints.

It looks at what is saved, never at what is being typed. Imports pygls, which manyheads[editor] brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from ..box.level import Box
from ..course import CourseError, find_course, load_course
from ..diagnosis.recording_file import read
from ..errors import CourseFault
from ..report.called import as_called
from ..report.words import Problem, problems
from ..student.choose_example import examples_named
from ..student.explain_trace import Explained, TraceLine, explained
from ..student.follow import Source, follow
from ..student.hints import Hint
from ..student.own_attempt import Checks, Own, read_own, recorded_path
from ..submission import lines_of
from .learn import check_own, hint_on

HINT, SOURCE = "course.hint", "course"


def diagnostics_of(wrong: Iterable[Problem], uri: str, hint: Hint | None = None) -> Iterator[types.Diagnostic]:
    """Yield what is wrong, with what was seen, at its line; the hint is related information.

    hint: the last that was asked for, which is about the first and stands in place of the first one's own.
    """
    for report, line, *columns in wrong:
        start, end = (types.Position(line - 1, column - 1) for column in columns)
        place, said = types.Range(start, end), hint.sentence if hint else report.hint and f"Hint: {report.hint}"
        related = [types.DiagnosticRelatedInformation(types.Location(uri, place), said)] if said else []
        check = ("check", report.check)
        seen = (text for kind, text, _ in report.told if kind in ("evidence", "also") or (kind, text) == check)
        message, error = "\n".join(filter(None, (report.head, *seen))), types.DiagnosticSeverity.Error
        yield types.Diagnostic(place, message, error, source=SOURCE, related_information=related)
        hint = None


def shapes_of(calls: list[Explained], texts: list[str], first: int, last: int) -> Iterator[types.InlayHint]:
    """Yield what each of these lines makes in the first call that comes to it: the shape that its last operation gives.

    What a line does in a loop of its own, as in a list's brackets, is not what it makes.
    """
    shown: dict[int, TraceLine] = {}
    for call in calls:
        made: dict[int, TraceLine] = {}
        for line in call.entries:
            if isinstance(line, TraceLine) and line.operations and line.depth <= made.get(int(line.label), line).depth:
                made[int(line.label)] = line
        shown = made | shown
    for number, line in ((number, line) for number, line in sorted(shown.items()) if first <= number <= last):
        warnings = "\n".join(operation.warning for operation in line.operations if operation.warning)
        end, gives = types.Position(number - 1, len(texts[number - 1].rstrip())), line.operations[-1].gives
        yield types.InlayHint(end, f"→ {gives}", padding_left=True, tooltip=warnings or None)


class Editor:
    """Answers one editor. One thing is run at a time, for an attempt may need all of the machine."""

    def __init__(self, server: LanguageServer, box: Box) -> None:
        self._server, self._box, self._lock = server, box, Lock()
        self._hints: dict[str, tuple[Own, Hint]] = {}  # by uri, with the text that it is about
        self._traces: dict[str, tuple[Own, list[Explained]]] = {}

    def publish(self, uri: str, own: Own) -> None:
        """Check what is saved, and publish what is wrong; nothing where the student works in the notebook."""
        result = check_own(Checks(own.course, self._box), own)
        of, hint = self._hints.get(uri, (None, None))
        found = problems(result, own.source) if result and own.source.name.endswith(".py") else ()
        wrong = list(diagnostics_of(found, uri, hint if of == own else None))
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, wrong))

    def hint(self, uri: str, own: Own) -> None:
        """Show the next hint, and let the diagnostic have it."""
        result = Checks(own.course, self._box, looks=True).result(own) if own.is_started else None
        start = Hint("Nothing is written here yet.", own.exercise.hint, True)
        if (hint := hint_on(own, result) if result else start) is not None:
            self._hints[uri] = (own, hint)
            self.publish(uri, own)
        self.say(f"{hint.title}\n{hint.sentence}" if hint else f"{own.exercise.id} needs no hint: every check passes.")

    def shapes(self, uri: str, own: Own, lines: types.Range) -> list[types.InlayHint]:
        """Return the shapes of what is saved. A file that has not changed is traced once."""
        if own.source.name != own.exercise.script.name or own.why_unstarted("trace"):
            return []
        texts = list(lines_of(own.source.source))
        if uri not in self._traces or self._traces[uri][0] != own:
            chosen = examples_named(own.exercise, read(recorded_path(own.exercise)), None, "course trace")
            followed = follow(self._box, own.course.limits.for_worker(), own.source, chosen)
            shown = [explained(each, traced, Source(tuple(texts))) for each, traced in followed.shown]
            self._traces[uri] = (own, shown)
        return list(shapes_of(self._traces[uri][1], texts, lines.start.line + 1, lines.end.line + 1))

    def say(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message."""
        self._server.window_show_message(types.ShowMessageParams(kind, as_called(text)))

    def ask(self, method: Callable[..., Any], uri: str, *about: Any) -> Any:
        """Call one of these about an exercise's script; of another file, None. A fault of the course is shown as a message."""
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
    def did_open_or_save(params: types.DidOpenTextDocumentParams | types.DidSaveTextDocumentParams) -> None:
        editor.ask(editor.publish, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        ours = [each for each in params.context.diagnostics if each.source == SOURCE][:1]
        command = types.Command("Next hint", HINT, arguments=[params.text_document.uri])
        return [types.CodeAction(command.title, types.CodeActionKind.QuickFix, ours, command=command)] if ours else []

    @server.thread()
    @server.command(HINT)
    def hint(uri: str) -> None:
        editor.ask(editor.hint, uri)

    @server.thread()
    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        return editor.ask(editor.shapes, params.text_document.uri, params.range) or []

    return server
