"""Make the student's starting point from the solution, as a script and as a notebook.

`stub_of` replaces the lines between BEGIN and END SOLUTION. It is stricter than nbgrader's
ClearSolutions, which ignores a stray END SOLUTION. If both accept a source, both give the same
text. `leaks` finds hidden content in released files: these lines, the course's secret and the
instructors' files.

`stub_notebook` makes the notebook with jupytext, stable cell ids and nbgrader's metadata. `nbgrader
generate_assignment` writes the same bytes, including its checksums. So nbgrader can validate and
autograde a notebook from `course release` as its own.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from io import BytesIO
from itertools import groupby, islice
from operator import attrgetter
from typing import NamedTuple

from ..checks.hidden_check import CheckOutcome
from ..course import Course, CourseError, Exercise
from ..course.final_scores import dates_of
from ..course.model import FOLDER
from ..files import CourseFault
from ..submission.read import METADATA_KEY

# jupytext and nbformat, imported in a third of the time.
#
# Both import jsonschema, which imports `rfc3987_syntax` if that is installed (Jupyter installs it).
# Its import builds the grammar of internationalised web addresses, which takes one to two seconds
# in every process. No notebook's schema has such an address. So the module counts as not installed
# here, which jsonschema allows.

GRAMMAR = "rfc3987_syntax"

# None in sys.modules makes the import raise ModuleNotFoundError.
sys.modules.setdefault(GRAMMAR, None)  # type: ignore[arg-type]
try:
    import jupytext
    import nbformat
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell
finally:
    if sys.modules[GRAMMAR] is None:
        del sys.modules[GRAMMAR]

# for modules that need jupytext, too
__all__ = ["NotebookNode", "jupytext", "nbformat", "new_code_cell"]

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
# nbgrader's text, with a message added to the exception
STUB = ("# YOUR CODE HERE", 'raise NotImplementedError("write this part")')
SHORTEST = 16  # characters without blanks: shorter lines, such as `else:`, are in every course
INSTRUCTORS = ("solutions/", "grader/", f"{FOLDER}/")  # folders of which no file is released
_TOKEN = re.compile(r"\w+|[^\w\s\\]")  # without the backslash, which JSON puts before quotes
# A line that begins like this reveals nothing.
_NOTHING = ("import ", "from ", "def ", "class ", "super ( ) . __init__", '" " "')

PREDICT = "predict"  # tags a cell that answers a question after the reader has guessed
CHECK = "check"  # tags a cell that shows a student whether a function is right
# The tags of a lesson's cells that have a meaning here. Other tags are kept.
TAGS = ("setup", "solution", CHECK, PREDICT)
_TAGS = re.compile(r"# %%.*\btags\s*=\s*(\[.*?\]|\S+)")  # as jupytext writes them


class HiddenLine(NamedTuple):
    """A line of a solution that no student may read, and the file that it is in."""

    text: str
    path: str


Lines = Mapping[str, HiddenLine]  # the keys are the tokens of the lines


def stub_of(exercise: Exercise) -> str:
    """Return the text of the student's script, made from the solution.

    Raises CourseFault if the solution is missing, or if its markers or tags are faulty.
    """
    path = exercise.solution
    try:
        source = path.read_text(encoding="utf-8")
    except OSError:
        problem = f"{path} is missing, which course.yaml requires"
        raise CourseError(f"{problem}. Next: write it, or mend course.yaml") from None
    name = str(path.relative_to(exercise.root))
    _demand_tags(source, name)
    return strip(source, name)


def _demand_tags(solution: str, name: str) -> None:
    """Raise CourseFault for tags that jupytext would lose, or that look like a misspelt one."""
    for number, line in enumerate(solution.splitlines(), 1):
        written = _TAGS.match(line)
        if written is None:
            continue
        try:
            tags = json.loads(written[1])
        except ValueError:
            such_as = 'they are a list of texts, such as tags=["check"]'
            raise _fault(name, number, f"tags={written[1]} cannot be read; {such_as}") from None
        for tag in tags:
            near = get_close_matches(str(tag), TAGS, 1)
            if near and tag not in TAGS:
                raise _fault(
                    name, number, f'the tag "{tag}" means nothing: "{near[0]}" may be meant'
                )


def strip(solution: str, name: str) -> str:
    """Return the text with the lines of STUB in place of every solution part.

    Raises CourseFault if a marker is faulty, or if there is no solution part.

    Args:
        solution: The source of the solution.
        name: The name of its file, for the message.
    """
    return "\n".join(_parts_of(solution, name).stub) + "\n"


class _Parts(NamedTuple):
    """The two parts of a solution.

    Attributes:
        stub: The lines of the stub.
        hidden: The hidden lines, without indentation.
    """

    stub: list[str]
    hidden: list[str]


def _parts_of(solution: str, name: str) -> _Parts:
    """Return the stub of a solution and its hidden lines. Raises CourseFault."""
    stub_lines, hidden, opened = list[str](), list[str](), 0
    for number, line in enumerate(solution.splitlines(), 1):
        marker = line.strip()
        if marker == BEGIN and not opened:
            opened = number
            stub_lines += [line.replace(BEGIN, text).rstrip() for text in STUB]
        elif marker == END and opened:
            opened = 0
        elif "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            begun = f"{BEGIN} inside the part that began on line {opened}"
            problems = {BEGIN: begun, END: f"{END} without {BEGIN}"}
            problem = problems.get(marker, "a marker that is not alone on its line")
            raise _fault(name, number, problem)
        elif opened:
            hidden.append(marker)
        else:
            stub_lines.append(line)
    if opened:
        raise _fault(name, opened, f"{BEGIN} is never closed")
    if STUB[0] not in map(str.strip, stub_lines):
        raise _fault(name, 1, "no solution part at all")
    return _Parts(stub_lines, hidden)


def _fault(name: str, line: int, problem: str) -> CourseFault:
    return CourseFault(f"{name}:{line}: {problem}. Next: mend it, then course release")


def finished_modules(course: Course) -> dict[str, str]:
    """Return the solutions that students may read now, by their paths in the class repository.

    These are the solutions of assignments with `show_solutions` and no due date in the future. The
    markers of solution parts are left out.
    """
    dates, today = dates_of(course), datetime.now(UTC)
    finished = dict[str, str]()
    for assignment in course.assignments:
        is_open = assignment.id in dates and dates[assignment.id].due_date >= today
        if is_open or not assignment.row.show_solutions:
            continue
        for exercise in assignment.exercises:
            lines = exercise.solution.read_text(encoding="utf-8").splitlines(keepends=True)
            finished[f"model-solutions/{assignment.id}/{exercise.solution.name}"] = "".join(
                line for line in lines if line.strip() not in (BEGIN, END)
            )
    return finished


def leaks(course: Course, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence for every released file that contains something hidden.

    Hidden are lines of solutions, the course's secret, and the instructors' files. Wheels are
    searched inside.

    Args:
        course: The course.
        files: The contents of the released files by their paths.
    """
    path = course.root / FOLDER / "secret"
    secret = path.read_bytes().strip() if path.exists() else None
    lines, sentences = hidden_lines(course), list[str]()
    for name, content in files.items():
        sentences += islice(_sentences(name, content, lines, secret), 1)
    return tuple(sentences)


def hidden_lines(course: Course) -> Lines:
    """Return the hidden lines of solutions that reveal something, by their tokens.

    Lines that also occur in a stub or in a finished module are left out. So are lines of fewer than
    SHORTEST characters, imports, and the beginnings of definitions.
    """
    public, lines = list(finished_modules(course).values()), dict[str, HiddenLine]()
    for exercise in course.exercises:
        name = str(exercise.solution.relative_to(course.root))
        solution = _parts_of(exercise.solution.read_text(encoding="utf-8"), name)
        public.append("\n".join(solution.stub))
        for line in solution.hidden:
            lines[_normalised_text(line.split("#")[0])] = HiddenLine(line, name)
    public_text = "".join(map(_normalised_text, public))
    for tokens in list(lines):
        is_short = len(tokens.replace(" ", "")) < SHORTEST
        if is_short or tokens[1:].startswith(_NOTHING) or tokens in public_text:
            del lines[tokens]
    return lines


def _normalised_text(text: str) -> str:
    """Return the tokens of a text with a blank before and after each.

    Line breaks make no difference, even if JSON escapes them, nor does the kind of quotes.
    """
    without_breaks = text.replace("\\n", " ")
    return f" {' '.join(_TOKEN.findall(without_breaks.replace(chr(39), chr(34))))} "


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
    if name.endswith(".safetensors"):  # only the header is text
        content = content[8 : 8 + int.from_bytes(content[:8], "little")]
    text = _normalised_text(content.decode("utf-8", "replace"))
    for tokens, line in lines.items():
        if tokens in text:
            yield f"{name} holds a hidden line: {line.text!r} of {line.path}"


LOCKED = frozenset((CHECK, PREDICT))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

# The text is one statement, so that a grader recognises all its lines even if the metadata of the
# cell is lost (`submission/read.py`). It is short, because Validate shows it above its output.
_VISIBLE = """\
# What your answers show, before anybody grades them. In a terminal: course check EXERCISE
try:
    from manyheads.notebook import check_notebook
except ModuleNotFoundError:
    import sys
    print("To check your answers here, install the engine: %pip install ../../manyheads-*.whl",
          "(on Colab: the lines in the class repository's README.md)", file=sys.stderr)
else:
    check_notebook("EXERCISE")"""

MAGICS = "magics"  # ends the grade id of a notebook's first cell, which a script does not have
# A grader recognises this statement, too. All other cells also run without the engine.
_FIRST = """\
# Run this first. Then, in any cell: %check; once the notebook is saved, also %course hint, \
%course trace or %ask
try:
    from manyheads.notebook import load_magics
except ModuleNotFoundError:
    print("%check needs the engine; the last cells say how to install it.")
else:
    load_magics("EXERCISE")"""


def stub_notebook(stub: str, exercise: str, hidden: Iterable[CheckOutcome]) -> str:
    """Return the notebook of a stub as text. The same stub gives the same text.

    Its cells are one that loads the magics, those of the stub, one that runs the visible checks,
    and one for each layer of hidden checks, which lists their titles.

    Args:
        stub: The stub, or the source of a solution, which nbgrader then strips.
        exercise: The id of the exercise.
        hidden: The checks of the exercise. All checks of a layer share one autograded cell.
    """
    notebook = jupytext.reads(stub, fmt="py:percent")
    for index, cell in enumerate(notebook.cells):
        tags = {*cell.metadata.get("tags", [])}
        role = "locked" if tags & LOCKED else ""
        _finish(cell, f"{exercise}-{index}", "solution" if "solution" in tags else role)
    # This cell loads the magics, and passes them the exercise of this notebook.
    magics_cell = _finish(
        new_code_cell(_FIRST.replace("EXERCISE", exercise)), f"{exercise}-{MAGICS}", "locked"
    )
    # This cell is autograded, with zero points, because `nbgrader validate` runs only autograded
    # cells. If the engine is missing, its message goes to stderr: `nbgrader validate` takes output
    # on stderr as a failure, and a printed line as a success.
    visible_cell = new_code_cell(_VISIBLE.replace("EXERCISE", exercise))
    visible = _finish(visible_cell, f"{exercise}-visible", "locked", 0, visible=True)
    by_layer = groupby(sorted(hidden, key=attrgetter("layer")), key=attrgetter("layer"))
    graded = [
        _graded_cell(f"{exercise}-{layer.name.lower()}", list(checks)) for layer, checks in by_layer
    ]
    notebook.cells = [magics_cell, *notebook.cells, visible, *graded]
    notebook.metadata = NotebookNode(kernelspec=KERNEL)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return str(nbformat.writes(notebook)) + "\n"


def _graded_cell(id_: str, checks: Sequence[CheckOutcome]) -> NotebookNode:
    """Return the autograded cell of these checks, a comment with their titles and points."""
    points = sum(check.points for check in checks)
    head = f"# Graded, {points:g} points. `course grade` runs these checks on this notebook's code:"
    cell: NotebookNode = new_code_cell(
        "\n".join([head, *(f"#   {check.title}" for check in checks)])
    )
    return _finish(cell, id_, "locked", points, checks=[check.id for check in checks])


def _finish(
    cell: NotebookNode, id_: str, role: str = "", points: float | None = None, **metadata: object
) -> NotebookNode:
    """Give a cell its id, and nbgrader's metadata (schema 3). Return the cell.

    All other metadata is removed. nbgrader notices edits by the checksum. It is computed here, so a
    release needs no nbgrader.

    Args:
        cell: The cell, which is changed.
        id_: Its id.
        role: "solution" if students write in the cell, "locked" if it is read-only, "" for a cell
            that nbgrader does not know.
        points: The points of an autograded cell, or None for any other cell.
        metadata: Further metadata, which a grader reads.
    """
    cell["id"], cell.metadata = id_.replace("_", "-"), NotebookNode()
    if role:
        marks = {
            "grade": points is not None,
            "solution": role == "solution",
            "locked": role == "locked",
        }
        worth = {} if points is None else {"points": points}
        hashed = [cell.source, cell.cell_type, *marks.values(), id_, *map(float, worth.values())]
        text = "".join(map(str, hashed)).encode()
        fields = {
            **marks,
            "grade_id": id_,
            "checksum": hashlib.md5(text, usedforsecurity=False).hexdigest(),
            "cell_type": cell.cell_type,
            "task": False,
            "schema_version": 3,
            **worth,
        }
        cell.metadata = NotebookNode(nbgrader=fields, deletable=False)
        if role == "locked":
            cell.metadata["editable"] = False
        if metadata:
            cell.metadata[METADATA_KEY] = metadata
    return cell
