"""Make the pictures of `course plot`: an output beside the expected one, and attention weights.

A picture is a few tables side by side, with a description for readers who cannot see them.
`pictures` makes them of traced examples. For the pages of a class, `draw_wrong` runs wrong attempts
again in the box, on the calls that `course plot` shows to a student. No hidden call is made or
shown.

`svg` draws one table for a page of HTML. The SVG has no script, style or network access, and uses
the colours of the page, which are those of the lessons: blue for numbers above 0 and for visible
positions, orange for numbers below 0, hatching for hidden positions, and a colour for each head.
The opacity of a colour shows the size of a number, so pages look right in dark mode, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ..box.connection import Box
from ..box.worker.messages import Raised, Traced
from ..checks.explain_exceptions import explain, is_undefined, says_unwritten
from ..course import Course, Exercise
from ..diagnosis.recording_file import read
from ..result import Result
from ..submission import Source, read_exercise
from .choose_example_calls import Addresses, Example, addresses, examples, weights_by_call
from .trace import follow

HIDDEN = -1e4  # a score this low counts as −∞
NONE = 1e-4  # a difference this small counts as rounding
ALIKE = 1e-3  # the same limit for a trained model's output
ALIKE_SHARES = 2e-3  # the same limit for weights, which are kept in half precision
HEADS = 4  # the largest number of heads shown
BESIDE = 2  # the largest number of heads shown beside the expected ones
DRAWN = 4  # the largest number of pictures of one attempt on a student's page
MOST = 12  # the largest number of rows and columns of a table of addresses or words
Key = tuple[str, str, str]  # student, assignment, exercise
Kind = Literal["numbers", "weights", "mask", "difference", "addresses"]
_SIDES = ("query position", "key position")
_AXES = {"T_q": "query position", "T_k": "key position", "T": "token", "nh": "head"}


@dataclass(frozen=True)
class Panel:
    """A table to draw.

    Attributes:
        title: The text above the table.
        values: Its numbers, (rows, columns).
        kind: How they are drawn.
        heads: If the numbers are addresses, the head that each belongs to, or −1.
    """

    title: str
    values: Tensor
    kind: Kind = "numbers"
    heads: Tensor | None = None


@dataclass(frozen=True)
class Picture:
    """Panels side by side. In panels of one kind, a colour stands for the same number.

    Attributes:
        title: The title.
        words: A description of what the panels show.
        panels: The panels.
        rows: The name of the rows' axis.
        columns: The name of the columns' axis.
        differs: Whether the student's numbers differ from the expected ones.
        start: The index of the first row and of the first column within the whole table.
        tokens: The labels of the rows, which are also those of the columns. Empty if rows and
            columns are numbered.
    """

    title: str
    words: str
    panels: tuple[Panel, ...]
    rows: str
    columns: str
    differs: bool = False
    start: tuple[int, int] = (0, 0)
    tokens: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """The title and the description."""
        return f"{self.title}: {self.words}"


def pictures(traced_examples: Sequence[tuple[Example, Traced]]) -> list[Picture]:
    """Return the pictures of all traced examples, those for a sentence first."""
    ordered = sorted(traced_examples, key=lambda pair: not pair[0].tokens)
    return [picture for example, traced in ordered for picture in pictures_of(example, traced)]


def pictures_of(example: Example, traced: Traced) -> list[Picture]:
    """Return the pictures of one example.

    The attention weights of a module come first, one picture for each step of the call, and then
    one picture for each output that is no scalar. The example of a sentence has no pictures of
    outputs.
    """
    output_examples = () if example.tokens else example.all_outputs
    return [
        *_heads(example, traced),
        *(
            _of_output(output_example, traced)
            for output_example in output_examples
            if output_example.expected.dim()
        ),
    ]


def _heads(example: Example, traced: Traced) -> Iterator[Picture]:
    """Yield a picture of the attention weights for each step of the call that computed any.

    If an output is wrong and weights differ from the reference's, the picture has the heads that
    differ most, each beside the expected one. Otherwise it has the first heads of the attempt, or
    as many as the example asks for.
    Nothing is yielded if the call raised an exception, or if the example has no heads.
    """
    if not (example.axes.packed and example.expected.dim()) or traced.reply.raised is not None:
        return
    is_right = _outputs_are_right(example, traced)
    head_count = example.heads or example.axes.sizes.get("nh", 1)
    for step, weights in enumerate(weights_by_call(example, traced)):
        if weights is None:
            continue
        picture = _empty_picture_of_step(example, step)
        expected = example.shares[step] if step < len(example.shares) else None
        strayed = [] if expected is None else _wrong_heads(weights, expected)
        # A right attempt may compute other tables, for example weights with their axes exchanged.
        if expected is not None and strayed and not is_right:
            yield _heads_beside(picture, weights, expected, strayed, head_count)
            continue
        verdict = "" if expected is None or strayed else ", as expected"
        if example.tokens:
            verdict = f", and the output is {'' if is_right else 'not '}as expected"
        drawn = weights[: example.heads or HEADS]
        panels = tuple(Panel(f"head {h}", table, "weights") for h, table in enumerate(drawn))
        heads_text = _heads_text(len(panels), head_count)
        yield replace(picture, words=heads_text + verdict, panels=panels)


def _outputs_are_right(example: Example, traced: Traced) -> bool:
    """Return whether all outputs of the call are the expected ones, up to ALIKE."""
    outputs = traced.reply.outputs
    for output_example in example.all_outputs:
        if output_example.output_index >= len(outputs):
            return False
        output = outputs[output_example.output_index].tensor
        if output is None or not _is_none(output, output_example.expected, ALIKE):
            return False
    return True


def _empty_picture_of_step(example: Example, step: int) -> Picture:
    """Return the picture of the weights in one step of a call, without words and panels."""
    if example.call.then:
        title = f"your weights in {example.target}, call {step + 1}"
        return Picture(title, "", (), "new query", "key so far")
    title = example.title if example.tokens else f"your weights in {example.title}"
    return Picture(title, "", (), *_SIDES, tokens=example.tokens)


def _heads_text(count: int, total: int) -> str:
    if total == 1:
        return "1 head"
    return f"{count} heads" if count == total else f"{count} of {total} heads"


def _wrong_heads(weights: Tensor, expected: Tensor) -> list[int]:
    """Return the heads whose weights differ from the reference's, the largest difference first.

    A head that the attempt has not computed comes first. If the tables have another shape, all
    heads differ.
    """
    count = min(len(weights), len(expected))
    apart = torch.full((len(expected),), torch.inf)
    if weights.shape[1:] == expected.shape[1:]:
        both = difference(weights[:count], expected[:count]).abs().flatten(1)
        apart[:count] = both.nan_to_num(nan=1.0).amax(1).float()
    return [h for h in apart.argsort(descending=True).tolist() if apart[h] > ALIKE_SHARES]


def _heads_beside(
    picture: Picture, weights: Tensor, expected: Tensor, strayed: Sequence[int], total: int
) -> Picture:
    """Return the picture of the first BESIDE of the wrong heads, each beside the expected one.

    Args:
        picture: The picture without words and panels.
        weights: The student's weights.
        expected: The expected weights.
        strayed: The heads that differ, the largest difference first.
        total: The number of heads of the call. Weights of more than eight are not traced.
    """
    panels = []
    for head in sorted(strayed[:BESIDE]):
        if head < len(weights):
            panels += [Panel(f"head {head}, expected", expected[head], "weights")]
            panels += [Panel(f"head {head}, yours", weights[head], "weights")]
        else:
            panels += [
                Panel(f"head {head}, expected, and none of yours", expected[head], "weights")
            ]
    if total == 1:
        words = "the weights are not as expected"
    elif len(expected) == total:
        words = f"the weights of {len(strayed)} of {total} heads are not as expected"
    else:
        compared_heads = f"among the first {len(expected)} of {total} heads"
        words = f"{compared_heads}, the weights of {len(strayed)} are not as expected"
    return replace(picture, words=words, panels=tuple(panels), differs=True)


def _of_output(example: Example, traced: Traced) -> Picture:
    """Return the picture of an output's first wrong table, or of the first if all are right.

    If there is no output of the expected shape, the picture has the expected table only, and its
    description gives the reason.
    """
    raised, outputs, expected = traced.reply.raised, traced.reply.outputs, example.expected
    title = example.title + (f": {example.label}" if example.label else "")
    actual = (
        None
        if raised is not None or len(outputs) <= example.output_index
        else outputs[example.output_index].tensor
    )
    expected_addresses, sides = addresses(example, expected), _names(example)
    if actual is None or actual.shape != expected.shape:
        note = (
            "yours is no tensor"
            if actual is None
            else f"yours has the shape {example.axes.shape(actual.shape)}"
        )
        note = note if raised is None else _exception_title(raised)
        if expected_addresses is not None:
            return _picture_of_moves(
                title, expected_addresses.table_at(0), expected_addresses.table_at(0), *sides, note
            )
        return Picture(
            title, note, (Panel("expected", _tables(expected)[0], _kind(expected)),), *sides
        )
    differs = [
        not _is_none(actual_table, expected_table)
        for actual_table, expected_table in zip(_tables(actual), _tables(expected), strict=True)
    ]
    at = differs.index(True) if any(differs) else 0
    sequence, head = divmod(at, expected.shape[1] if expected.dim() == 4 else 1)
    title += f", sequence {sequence}" if sequence else ""
    title += f", head {head}" if expected.dim() == 4 else ""
    actual_addresses = addresses(example, actual if any(differs) else expected)
    if actual_addresses is None or expected_addresses is None:
        return compare_tables(
            title, _tables(expected)[at], _tables(actual)[at], *sides, kind=_kind(expected)
        )
    return _picture_of_moves(
        title, expected_addresses.table_at(at), actual_addresses.table_at(at), *sides
    )


def compare_tables(
    title: str, expected: Tensor, actual: Tensor, rows: str, columns: str, kind: Kind = "numbers"
) -> Picture:
    """Return the picture of a table: the expected one, the student's, and their difference.

    If the student's table is right, only that one is shown. If it is wrong, the description gives
    the first of these that applies: how many cells of a mask differ, how many numbers are −∞ in one
    table only, how many of the student's numbers are NaN, the largest difference.

    Args:
        title: The title.
        expected: The expected table, (rows, columns).
        actual: The student's table, of the same shape.
        rows: The name of the rows' axis.
        columns: The name of the columns' axis.
        kind: How the numbers of both tables are drawn.
    """
    if _is_none(actual, expected):
        return Picture(title, "as expected", (Panel("yours", actual, kind),), rows, columns)
    apart, hidden = difference(actual, expected), (actual < HIDDEN) != (expected < HIDDEN)
    if kind == "mask":
        words = f"{int(apart.count_nonzero())} of {apart.numel()} differ"
    elif hidden.any():
        words = f"{int(hidden.sum())} of {hidden.numel()} numbers are −∞ in one of the two only"
    elif actual.isnan().any():
        words = f"{int(actual.isnan().sum())} of {actual.numel()} numbers are NaN"
    else:
        words = f"the largest difference is {float(apart.abs().max()):.2g}"
    panels = (
        Panel("expected", expected, kind),
        Panel("yours", actual, kind),
        Panel("yours − expected", apart, "difference"),
    )
    return Picture(title, words, panels, rows, columns, differs=True)


def _picture_of_moves(
    title: str, expected: Addresses, actual: Addresses, rows: str, columns: str, note: str = ""
) -> Picture:
    """Return the picture of numbers that the call should only move.

    Each number is shown as the address it comes from, in the colour of its head. If all addresses
    are as expected, one table is enough. If a table is large, MOST rows and columns around the
    first wrong number are shown.

    Args:
        title: The title.
        expected: The expected addresses.
        actual: The student's addresses, or the expected ones if `note` is given.
        rows: The name of the rows' axis.
        columns: The name of the columns' axis.
        note: The reason why there is no output of the student.
    """
    strayed = actual.positions != expected.positions
    foreign = int((actual.positions < 0).sum())  # numbers that are not in the argument
    sides = {"expected" if note else "yours": actual}
    words = note or "as expected"
    if strayed.any():
        sides = {"expected": expected, "yours": actual}
        how = f"not among {expected.argument}'s" if foreign else "in the wrong place"
        count = foreign or int(strayed.sum())
        words = f"{count} of {strayed.numel()} numbers are {how}"
    shape = strayed.shape
    start = strayed.nonzero()[0].tolist() if strayed.any() else [0, 0]  # the first wrong number
    row, column = (max(0, min(at - 2, size - MOST)) for at, size in zip(start, shape, strict=True))
    cut = slice(row, row + MOST), slice(column, column + MOST)
    range_text = (
        f", columns {column} to {column + MOST - 1} of {shape[1]}" if shape[1] > MOST else ""
    )
    panels = tuple(
        Panel(label + range_text, side.positions[cut], "addresses", side.heads[cut])
        for label, side in sides.items()
    )
    return Picture(title, words, panels, rows, columns, bool(strayed.any()), (row, column))


def difference(actual: Tensor, expected: Tensor) -> Tensor:
    """Return actual − expected in float64, with zero for two hidden numbers and NaN for one.

    A number below HIDDEN is hidden.
    """
    a, b = actual.double(), expected.double()
    one_hidden = (a < HIDDEN) != (b < HIDDEN)
    return torch.where(one_hidden, torch.nan, torch.where(a < HIDDEN, 0.0, a - b))


def _is_none(actual: Tensor, expected: Tensor, rounding: float = NONE) -> bool:
    return actual.shape == expected.shape and bool(
        (difference(actual, expected).abs() <= rounding).all()
    )


def _exception_title(raised: Raised) -> str:
    if is_undefined(raised):
        return "not defined yet"
    if says_unwritten(raised):
        return f"nothing is written {f'on line {raised.line}' if raised.line else 'here'} yet"
    return f"your code {explain(raised)}"


def _tables(values: Tensor) -> Tensor:
    return values.reshape(-1, *(values.shape[-2:] if values.dim() > 1 else (1, len(values))))


def _names(example: Example) -> tuple[str, str]:
    row, column = (["", "", *(str(axis.factors[0]) for axis in example.returns)])[-2:]
    return (
        _SIDES
        if row == column != ""
        else (_AXES.get(row, row and "row"), _AXES.get(column, "channel"))
    )


def _kind(values: Tensor) -> Kind:
    if values.dtype is torch.bool:
        return "mask"
    sums = values.double().sum(-1)
    weights = bool((values >= 0).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-3))
    return "weights" if weights else "numbers"


@dataclass(frozen=True)
class Drawable:
    """An attempt for which a picture may help, and the folder of its submission."""

    key: Key
    folder: Path
    exercise: Exercise


def drawable(
    course: Course, results: Sequence[Result], folders: Mapping[tuple[str, str], Path]
) -> list[Drawable]:
    """Return the attempts that failed a check without crashing or running out of time.

    Args:
        course: The course.
        results: The results of submissions. A submission without a folder is left out.
        folders: The folder of each submission, by student and assignment.
    """
    exercises = {(e.assignment.id, e.id): e for e in course.exercises}
    attempts = []
    for result in results:
        folder = folders.get((result.student, result.assignment))
        for attempt in result.exercises if folder else ():
            exercise = exercises.get((result.assignment, attempt.id))
            outcomes = {check.outcome for check in attempt.checks}
            has_failed = bool(outcomes & {"failed", "error"})
            if folder and exercise and has_failed and not outcomes & {"crashed", "timeout"}:
                key = (result.student, result.assignment, attempt.id)
                attempts.append(Drawable(key, folder, exercise))
    return attempts


def draw_wrong(
    course: Course, box: Box, attempts: Sequence[Drawable]
) -> Iterator[tuple[Key, tuple[Picture, ...]]]:
    """Yield the key of each attempt, with pictures of its wrong outputs and weights.

    There are at most DRAWN pictures of an attempt. There are none if its outputs on the example
    calls are right, or if its file is missing, cannot be read or is untouched. Attempts with the
    same text are run once. Nothing that an attempt does makes this function raise.

    Args:
        course: The course.
        box: A box whose isolation is proved.
        attempts: The attempts.

    Raises:
        CourseError: A fault dictionary cannot be read.
    """
    by_exercise: dict[str, tuple[str, list[Example]]] = {}
    drawn: dict[tuple[str, str], tuple[Picture, ...]] = {}
    for attempt in attempts:
        if (id_ := attempt.exercise.id) not in by_exercise:
            recording = read(attempt.exercise.fingerprints)
            by_exercise[id_] = recording.stub, examples(attempt.exercise, recording)
        untouched, chosen = by_exercise[id_]
        source = read_exercise(
            attempt.folder, attempt.exercise, untouched, course.limits.source_kib
        )
        if source.missing or source.problem or source.code_digest == untouched:
            yield attempt.key, ()
            continue
        if (id_, source.digest) not in drawn:
            drawn[id_, source.digest] = _draw(box, course, source, chosen)
        yield attempt.key, drawn[id_, source.digest]


def _draw(
    box: Box, course: Course, source: Source, chosen: Sequence[Example]
) -> tuple[Picture, ...]:
    """Run an attempt on these examples, and return its first DRAWN wrong pictures.

    A picture is wrong if it differs from the reference's. Return () if tensors cannot be drawn.
    """
    followed = follow(box, course.limits.for_worker(), source, chosen, names_sizes=False)
    try:
        return tuple(
            [picture for picture in pictures(followed.traced_examples) if picture.differs][:DRAWN]
        )
    except (RuntimeError, ValueError, TypeError, IndexError):  # tensors that cannot be drawn
        return ()


# the style's names; the lessons have the first two
HEAD_COLOURS = ("--s3", "--bad", "--good", "--grave", "--error", "--s1")
# the colours of numbers above 0, of numbers below 0, and of numbers that belong to no head
MORE, LESS, NO_HEAD = "--s0", "--less", "--none"
_SHADES = 40  # how many shades; cells of one shade are one path
# All lengths below are in units of the SVG, which are pixels at scale 1.
# the most width and height of a table: three stand side by side on a student's page
_WIDE, _HIGH = 208.0, 264.0
_TOKEN = 5.5  # a cell's width and height: four heads of a sentence stand side by side
_WORD = 13.0  # the same for words: the height of their letters
_DIGIT, _MARK = 5.5, 10.5  # the widths of a digit of an address, and of the mark behind it
_ROW = 18.0  # the height of a row of addresses
_LEFT, _TOP, _BELOW, _RIGHT = 18.0, 18.0, 16.0, 8.0  # the margins around the cells
_NAMED = 40.0  # the margin on the left where rows have names
_LEAST = 150.0  # the least width: a title has room
# the width of the page of `course plot` in pixels, and of the gap between two tables
_PAGE, _GAP = 1100.0, 8.0
_LABEL = 9  # the size of a label
_SMALLEST = 1.4  # the smallest scale: labels are then 12.6 pixels high, which can be read
_LARGEST = 2.0  # the largest scale: one small table need not fill the page


def page_scale(picture: Picture) -> float:
    """Return the scale at which a picture's tables fill the page of `course plot` side by side.

    Each row of the page has the same number of tables: the largest number that leaves a scale of at
    least _SMALLEST, at which labels can be read. So two wrong heads become two rows of two tables,
    the expected one and the student's. If even one table is too wide, return _SMALLEST. No scale is
    above _LARGEST.
    """
    widest = max(_size(picture, panel)[0] for panel in picture.panels)
    counts = range(len(picture.panels), 0, -1)
    for count in (count for count in counts if len(picture.panels) % count == 0):
        scale = (_PAGE - _GAP * (count - 1)) / (count * widest)
        if scale >= _SMALLEST:
            return min(scale, _LARGEST)
    return _SMALLEST


def _size(picture: Picture, panel: Panel) -> tuple[float, float]:
    """Return the width and height of a table with its margins."""
    rows, columns = panel.values.shape
    width, height = _cell(picture, panel)
    margin = _NAMED if picture.tokens else _LEFT
    bottom = _NAMED if _has_words(picture) else _BELOW
    return max(margin + columns * width + _RIGHT, _LEAST), _TOP + rows * height + bottom


def _has_words(picture: Picture) -> bool:
    """Return whether each row and each column is a word, and the table is small enough for them."""
    return all(picture.tokens) and 0 < len(picture.tokens) <= MOST


def svg(picture: Picture, panel: Panel, scale: float = 1.0) -> str:
    """Return an SVG element with one table of a picture, and with a label for screen readers.

    Args:
        picture: The picture.
        panel: The table, one of the picture's panels.
        scale: The factor by which the table and its labels are enlarged.
    """
    width, height = _cell(picture, panel)
    margin = _NAMED if picture.tokens else _LEFT
    wide, high = _size(picture, panel)
    label = escape(f"{picture.title}: {panel.title}", quote=True)
    return (
        f'<svg viewBox="0 0 {wide:g} {high:g}" width="{wide * scale:g}" role="img" '
        f'aria-label="{label}" '
        f'font-size="{_LABEL}" '
        f'fill="currentColor" text-anchor="middle"><g transform="translate({margin:g} {_TOP:g})">'
        f"{''.join(_table(picture, panel, width, height))}</g></svg>"
    )


def legend(picture: Picture) -> str:
    """Return a text that explains the picture's rows, columns and colours."""
    sentences = [f"Rows: {picture.rows}, columns: {picture.columns}."] if picture.rows else []
    of_other = "10000·sequence + " if _largest_size(picture) >= 10_000 else ""
    for panel_kind in dict.fromkeys(panel.kind for panel in picture.panels):
        largest = f"{_full_colour(picture, panel_kind):.2g}"
        sentences.append(
            {
                "numbers": f"Blue: up to {largest}, orange: down to −{largest}.",
                "weights": "Blue: up to 1.",
                "mask": "Blue: seen.",
                "difference": f"Difference: blue up to {largest}, orange down to −{largest}.",
                "addresses": (
                    f"Numbers are addresses, {of_other}100·{picture.rows} + channel; colours "
                    "are heads."
                ),
            }[panel_kind]
        )
    if any(
        _is_hidden(value, panel)
        for panel in picture.panels
        for value in panel.values.flatten().tolist()
    ):
        sentences.append("Hatched: hidden, or no number.")
    return " ".join(sentences)


def _table(picture: Picture, panel: Panel, width: float, height: float) -> Iterator[str]:
    """Yield the SVG elements of a table whose cells have this width and height.

    These are the hatching, one path for all cells of one colour and opacity, the frame, the title,
    the addresses if there are any, and the labels of rows and columns.
    """
    rows, columns = panel.values.shape
    largest, table = _full_colour(picture, panel.kind), panel.values.double().tolist()
    cells: dict[str, list[str]] = defaultdict(list)
    for i in range(rows):
        for j in range(columns):
            corner = f"M{j * width:g} {i * height:g}"
            if panel.heads is not None:
                head = int(panel.heads[i, j])
                colour = HEAD_COLOURS[head % len(HEAD_COLOURS)] if head >= 0 else NO_HEAD
                cells[f'fill="var({colour})"'].append(corner)
            elif _is_hidden(table[i][j], panel):
                cells["hatch"].append(f"M{j * width:g} {(i + 1) * height:g}l{width:g} -{height:g}")
            elif share := _share(table[i][j] / largest, panel):
                cells[
                    f'fill="var({MORE if table[i][j] > 0 else LESS})" fill-opacity="{share:g}"'
                ].append(corner)
    yield (
        '<path fill="none" stroke="currentColor" stroke-width=".5" '
        f'd="{"".join(cells.pop("hatch", []))}"/>'
    )
    for paint, corners in cells.items():
        path = "".join(f"{corner}h{width:g}v{height:g}h-{width:g}z" for corner in corners)
        yield f'<path {paint} shape-rendering="crispEdges" d="{path}"/>'
    across, down = columns * width, rows * height
    yield (
        f'<rect width="{across:g}" height="{down:g}" fill="none" stroke="currentColor" '
        'stroke-width=".6"/>'
    )
    yield f'<text x="{across / 2:g}" y="-6" font-size="11">{escape(panel.title)}</text>'
    if panel.kind == "addresses":
        yield from _numbers(picture, panel, width, height)
    yield from _labels(picture, panel, width, height)


def _labels(picture: Picture, panel: Panel, width: float, height: float) -> Iterator[str]:
    """Yield the labels of rows and columns: numbers or tokens. Words of columns stand upright."""
    rows, columns = panel.values.shape
    for axis, count, step in ((0, rows, height), (1, columns, width)):
        for k in range(0, count, 1 if picture.tokens or step >= 13 else 5):
            text = escape(picture.tokens[k]) if picture.tokens else k + picture.start[axis]
            at = (k + 0.5) * step
            if axis == 0:
                position = f'x="-4" y="{at + 3:g}" text-anchor="end"'
            elif _has_words(picture):
                corner = f"translate({at + 3:g} {rows * height + 4:g})"
                position = f'transform="{corner} rotate(-90)" text-anchor="end"'
            else:
                position = f'x="{at:g}" y="{rows * height + 11:g}"'
            yield f"<text {position}>{text}</text>" if text != "" else ""


def _numbers(picture: Picture, panel: Panel, width: float, height: float) -> Iterator[str]:
    """Yield the address in each cell, marked if another address is expected."""
    expected = picture.panels[0].values.tolist()
    for i, row in enumerate(panel.values.tolist()):
        for j, address in enumerate(row):
            number = "?" if address < 0 else address
            text = f"{number}{'' if address == expected[i][j] else '✗'}"
            yield f'<text x="{(j + 0.5) * width:g}" y="{(i + 0.5) * height + 3:g}">{text}</text>'


def _share(value: float, panel: Panel) -> float:
    """Return the opacity of a cell, from 0 to 1 in steps of 1/_SHADES.

    In weights and differences small numbers matter, too, so the opacity is the square root there.

    Args:
        value: The number of the cell, as a part of the number that has the full colour.
        panel: The table.
    """
    share = min(abs(value), 1.0) ** (1 if panel.kind == "numbers" else 0.5)
    return round(share * _SHADES) / _SHADES


def _is_hidden(value: float, panel: Panel) -> bool:
    return value != value or value < HIDDEN or (panel.kind == "mask" and not value)


def _largest_size(picture: Picture) -> int:
    return max(
        (int(panel.values.max()) for panel in picture.panels if panel.kind == "addresses"),
        default=0,
    )


def _full_colour(picture: Picture, panel_kind: str) -> float:
    """Return the number that has the full colour in a picture's panels of this kind.

    It is 1 for weights and masks, and otherwise the largest absolute value that is not hidden (1 if
    all are 0).
    """
    if panel_kind in ("weights", "mask"):
        return 1.0
    values = [
        value
        for panel in picture.panels
        if panel.kind == panel_kind
        for value in panel.values.flatten().tolist()
    ]
    return max((abs(value) for value in values if HIDDEN < value < -HIDDEN), default=0.0) or 1.0


def _cell(picture: Picture, panel: Panel) -> tuple[float, float]:
    """Return the width and height of a cell: a square if there is room."""
    rows, columns = panel.values.shape
    if picture.tokens:
        side = _WORD if _has_words(picture) else _TOKEN
        return side, side
    if panel.kind == "addresses":
        return _DIGIT * len(str(_largest_size(picture))) + _MARK, _ROW
    width = min(_WIDE / columns, 32.0)
    height = min(max(width, 14.0), 24.0, _HIGH / rows)
    return int(2 * width) / 2, int(2 * height) / 2  # sharp at halves
