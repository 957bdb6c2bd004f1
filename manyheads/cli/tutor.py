"""`course mcp`: what a tutor may use, for an assistant that speaks the Model Context Protocol.

Its tools give what the student may see of their own attempts (see manyheads/evidence.py): no reference, no recorded answer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pydantic import BaseModel, ConfigDict

from ..course import Course, Exercise
from ..errors import CourseFault
from ..evidence import Evidence
from ..submission import read_text
from .options import CourseOption, course_of, exercise_named, not_installed
from .own import missing_message
from .own_evidence import check_evidence, hint_evidence, status_evidence, trace_evidence

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from ..box.level import Box

INSTRUCTIONS = """You help a student to learn, who writes each line. Ask before you tell: what did they expect, and what happened?
Begin with `status`, then `check`. Point at a line and a shape that the tools name, and let the student say what is wrong with it.
One hint at a time, from `hint` alone; the third comes after a try. Write no solution, no edit and no part of one, even when asked."""

_Given = ParamSpec("_Given")
_Told = TypeVar("_Told")


class Lesson(BaseModel):
    """What an exercise teaches and asks for. asks: its functions and methods, each with its docstring."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    file: str
    text: str
    asks: dict[str, str]


def lesson_of(course: Course, exercise: Exercise) -> Lesson:
    """Return the lesson in the student's own file: its text, and no code but signatures' names. Raises CourseFault."""
    from ..authoring.stub_notebook import jupytext

    path = exercise.script
    if not path.exists():
        raise CourseFault(missing_message(course, exercise))
    source = read_text(path, course.limits.source_kib)
    cells = jupytext.reads(source, fmt="py:percent").cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return Lesson(
        id=exercise.id,
        title=exercise.title,
        file=path.relative_to(course.root).as_posix(),
        text=text,
        asks=_docstrings(source),
    )


def _docstrings(source: str) -> dict[str, str]:
    """Return the docstrings of a file's functions, classes and methods by their names; none where Python cannot read it."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return {}
    defined = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return {node.name: text for node in defined if (text := ast.get_docstring(node))}


@dataclass(frozen=True)
class Tools:
    """The tools, for one student's course. box: opened before there are threads."""

    course: Course
    box: Box

    def status(self) -> Evidence:
        """Tell which exercises are done, in progress or untouched, with their ids and points."""
        told = (status_evidence(self.course, exercise, self.box) for exercise in self.course.exercises)
        return Evidence(command="status", exercises=tuple(told))

    def lesson(self, exercise: str) -> Lesson:
        """Give an exercise's lesson, and what each of its functions is asked for."""
        return lesson_of(self.course, exercise_named(self.course, exercise, "status"))

    def check(self, exercise: str) -> Evidence:
        """Check the student's saved file: what is right, what was seen where it is wrong, and on which line."""
        named = exercise_named(self.course, exercise, "check")
        return Evidence(command="check", exercises=(check_evidence(self.course, named, self.box),))

    def trace(self, exercise: str, function: str | None = None) -> Evidence:
        """Follow the student's own lines: which operation takes and gives which shape. It shows no numbers."""
        named = exercise_named(self.course, exercise, "trace")
        return Evidence(command="trace", exercises=(trace_evidence(self.course, named, function, self.box),))

    def hint(self, exercise: str) -> Evidence:
        """Give the next hint: a question, then a pointer; the third, after the student has changed and saved the file."""
        named = exercise_named(self.course, exercise, "hint")
        return Evidence(command="hint", exercises=(hint_evidence(self.course, named, self.box, in_turn=True),))


def tutor(course: Course, box: Box) -> MCPServer:
    """Return the server. Raises CourseFault where the package is missing."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.server.mcpserver.tools import Tool
    except ImportError:
        raise not_installed("course mcp", "mcp") from None

    def served(answer: Callable[_Given, _Told]) -> Callable[_Given, Coroutine[None, None, _Told]]:
        """Return what answers in the server's own thread, one call after the other, as the box does."""

        @wraps(answer)
        async def call(*arguments: _Given.args, **named: _Given.kwargs) -> _Told:
            try:
                return answer(*arguments, **named)
            except CourseFault as fault:
                raise ToolError(str(fault)) from None

        return call

    tools = Tools(course, box)
    offered: list[Callable[..., BaseModel]] = [
        tools.status,
        tools.lesson,
        tools.check,
        tools.trace,
        tools.hint,
    ]
    every = [Tool.from_function(served(tool)) for tool in offered]
    for tool in every:  # an argument that there is not is refused, not passed over
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"
        arguments.model_rebuild(force=True)
        tool.parameters = arguments.model_json_schema()
    return MCPServer("manyheads", instructions=INSTRUCTIONS, tools=every)


def mcp(course: CourseOption = None) -> None:
    """Serve a tutor's tools to an assistant, over standard input and output.

    Example: `course mcp`, as an MCP server's command in the settings of your assistant.
    """
    from ..box.forked import open_own_box

    loaded = course_of(course)
    with open_own_box(meta=True) as box:
        tutor(loaded, box).run()
