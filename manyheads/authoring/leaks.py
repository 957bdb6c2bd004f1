"""Find anything hidden in released files: a line of a solution, the course's secret, a hidden path."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

from ..course import Course
from ..course.secret import FOLDER
from .stub import solution_parts, strip

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


def normalised(text: str) -> str:
    """Return the tokens, separated by blanks: line breaks, also those that JSON escapes, and the kind of quotes mean nothing."""
    return f" {' '.join(_TOKEN.findall(text.replace(chr(92) + 'n', ' ').replace(chr(39), chr(34))))} "


@dataclass(frozen=True)
class Hidden:
    """What may not be released. lines: of solutions, unless a stub has them, too; as they are written, with their file, by their tokens."""

    lines: Mapping[str, tuple[str, str]]
    secret: bytes | None

    def sentence(self, name: str, content: bytes) -> str | None:
        """Return one sentence if this file, or one in this wheel, reveals something hidden; else None."""
        return next(self._sentences(name, content), None)

    def _sentences(self, name: str, content: bytes) -> Iterator[str]:
        if name.startswith(INSTRUCTORS):
            yield f"{name} is the instructor's alone"
        if self.secret is not None and self.secret in content:
            yield f"{name} holds the course's secret"
        if name.endswith(".whl"):
            with zipfile.ZipFile(BytesIO(content)) as wheel:
                for member in wheel.namelist():
                    yield from self._sentences(f"{name}: {member}", wheel.read(member))
            return
        if name.endswith(".safetensors"):  # what follows its header is numbers
            content = content[8 : 8 + int.from_bytes(content[:8], "little")]
        text = normalised(content.decode("utf-8", "replace"))
        for form in self.lines:
            if form in text:
                line, path = self.lines[form]
                yield f"{name} holds a hidden line: {line!r} of {path}"


def hidden_of(course: Course) -> Hidden:
    """Return what a release of this course may not contain."""
    sources = {
        str(e.solution.relative_to(course.root)): e.solution.read_text(encoding="utf-8") for e in course.exercises
    }
    stubs = "".join(normalised(strip(text, path)) for path, text in sources.items())
    lines = {}
    for path, text in sources.items():
        for line in solution_parts(text):
            form = normalised(line.split("#")[0])
            is_short = len(form.replace(" ", "")) < SHORTEST
            if not is_short and not form[1:].startswith(_NOTHING) and form not in stubs:
                lines[form] = line, path
    secret = course.root / FOLDER / "secret"
    return Hidden(lines, secret.read_bytes().strip() if secret.exists() else None)


def leaks(course: Course, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence for every released file that contains something hidden."""
    hidden = hidden_of(course)
    return tuple(s for name, content in files.items() if (s := hidden.sentence(name, content)) is not None)
