"""Find anything hidden in released files: a line of a solution that is not shown, the course's secret, a hidden path."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from io import BytesIO

from ..course import Course
from ..course.decisions import dates_of
from ..course.load import FOLDER
from .stub import BEGIN, END, solution_parts, strip

SHORTEST = 16  # characters without blanks: shorter lines, such as `else:`, are in every course
INSTRUCTORS = ("solutions/", "grader/", f"{FOLDER}/")
_TOKEN = re.compile(r"\w+|[^\w\s\\]")  # without the backslash, which JSON puts before quotes
_NOTHING = (
    "import ",
    "from ",
    "def ",
    "class ",
    "super ( ) . __init__",
    '" " "',
)  # how lines begin that reveal nothing

Lines = Mapping[str, tuple[str, str]]  # each as it is written, with its file, by its tokens


def finished_modules(course: Course) -> dict[str, str]:
    """Return the solutions that students may read now, by their paths in the class repository: `show_solutions` says so."""
    dates, now = dates_of(course), datetime.now(UTC)
    shown = (a for a in course.assignments if a.row.show_solutions and (a.id not in dates or dates[a.id].due < now))
    solutions = [(f"model-solutions/{a.id}/{e.solution.name}", e.solution) for a in shown for e in a.exercises]
    lines = {name: path.read_text(encoding="utf-8").splitlines(keepends=True) for name, path in solutions}
    return {name: "".join(line for line in text if line.strip() not in (BEGIN, END)) for name, text in lines.items()}


def leaks(course: Course, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence for every released file that contains something hidden."""
    path = course.root / FOLDER / "secret"
    lines, secret = hidden_lines(course), path.read_bytes().strip() if path.exists() else None
    found = (next(_sentences(name, content, lines, secret), None) for name, content in files.items())
    return tuple(filter(None, found))


def hidden_lines(course: Course) -> Lines:
    """Return the lines of solutions that reveal something, without those that a stub or a finished module has, too."""
    paths = {str(e.solution.relative_to(course.root)): e.solution for e in course.exercises}
    sources = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    public = [*(strip(text, name) for name, text in sources.items()), *finished_modules(course).values()]
    stubs = "".join(map(_normalised, public))
    written = ((line, name) for name, text in sources.items() for line in solution_parts(text))
    forms = {_normalised(line.split("#")[0]): (line, name) for line, name in written}
    return {form: each for form, each in forms.items() if _is_hidden(form) and form not in stubs}


def _is_hidden(form: str) -> bool:
    return len(form.replace(" ", "")) >= SHORTEST and not form[1:].startswith(_NOTHING)


def _normalised(text: str) -> str:
    """Return the tokens, separated by blanks: line breaks, also those that JSON escapes, and the kind of quotes mean nothing."""
    return f" {' '.join(_TOKEN.findall(text.replace(chr(92) + 'n', ' ').replace(chr(39), chr(34))))} "


def _sentences(name: str, content: bytes, lines: Lines, secret: bytes | None) -> Iterator[str]:
    """Yield a sentence for everything hidden in a file, or in a member of this wheel."""
    if name.startswith(INSTRUCTORS):
        yield f"{name} is the instructor's alone"
    if secret is not None and secret in content:
        yield f"{name} holds the course's secret"
    if name.endswith(".whl"):
        with zipfile.ZipFile(BytesIO(content)) as wheel:
            for member in wheel.namelist():
                yield from _sentences(f"{name}: {member}", wheel.read(member), lines, secret)
        return
    if name.endswith(".safetensors"):  # what follows its header is numbers
        content = content[8 : 8 + int.from_bytes(content[:8], "little")]
    text = _normalised(content.decode("utf-8", "replace"))
    yield from (
        f"{name} holds a hidden line: {line!r} of {path}" for form, (line, path) in lines.items() if form in text
    )
