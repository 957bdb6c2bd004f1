"""Ask a student about the student's running code: the result of a line, or the effect of an edit.

The attempt answers recorded calls of its exercise in the box, and four templates make questions of
the trace: `shape_at_line`, `axis_at_line`, `origin_at_line` and `edit_outcome`. They use the
signatures in course.yaml and the attempt. No line of the reference is shown.
"""

from __future__ import annotations

import ast
import builtins
import io
import random
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import combinations, permutations, zip_longest

import torch
from torch import Tensor

from ..box.connection import AttemptEnded, Box, Connection, Spent, load
from ..box.replies import read_reply, read_traced
from ..box.worker import wire
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, Reply, Step, TraceCall, Traced
from ..checks.runner import cast, map_call, target_of
from ..course import Exercise
from ..diagnosis.fault_dictionary import FaultDictionary
from ..judge.edit_search import candidates
from ..judge.parts_reached_by_calls import LineEdit
from ..judge.redact_hidden_inputs import Axes
from ..judge.single_edits import name_of
from ..submission import Source, proved_line
from ..submission.source import DEFINITIONS, printable
from .choose_example_calls import Example, examples, with_twin
from .question import ASKED, Option, Question, question

CROP = (64, 64, 64, 64)  # numbers along each axis: enough for a whole tensor of a recorded call
SECONDS = 2.0  # for all edits of one call: each needs some milliseconds
FEW = 24  # numbers that a question can list


class Runs:
    """An attempt in one process of the box, and edited attempts in another.

    Each process is started when it is first needed. The edited attempts are loaded one after the
    other in the same process. Call `close` at the end.
    """

    def __init__(self, box: Box, limits: Limits, source: Source) -> None:
        self._box, self._limits, self._source = box, limits, source
        self._own: Connection | None = None
        self._edited: Connection | None = None
        # edited attempts that ended their process, for example by an endless loop
        self._ended: set[Source] = set()

    def trace_of(self, call: Call) -> Traced | None:
        """Return the trace of the attempt in a call, or None if the call does not come back.

        If the attempt raises an exception, the trace has it. After None, the next call is made in a
        new process.
        """
        try:
            self._own = self._own or load(self._box, self._limits, self._source.load()).connection
            return self._own.ask_for(
                read_traced, TraceCall(call, CROP), self._limits.seconds_per_call
            )
        except AttemptEnded:
            self._own = None
            return None

    def replies(self, call: Call, edited_sources: Sequence[Source]) -> list[Reply | None]:
        """Return the reply of each edited attempt to a call, in the order of the attempts.

        The reply is None if the edited attempt cannot be loaded or its call does not come back. All
        edited attempts are asked in one message. If the process ends or takes too long, each is
        asked alone, and one that then ends its process is never asked again.
        """
        pending = [source for source in edited_sources if source not in self._ended]
        try:
            replies = (
                dict(zip(pending, self._ask_together(call, pending, SECONDS), strict=True))
                if pending
                else {}
            )
        except AttemptEnded:
            replies = {source: self._ask_alone(call, source) for source in pending}
        return [replies.get(source) for source in edited_sources]

    def _ask_alone(self, call: Call, source: Source) -> Reply | None:
        try:
            return self._ask_together(call, [source], SECONDS / 2)[0]
        except AttemptEnded:
            self._ended.add(source)
            return None

    def _ask_together(
        self, call: Call, edited_sources: Sequence[Source], seconds: float
    ) -> list[Reply | None]:
        """Return the reply of each edited attempt. All are asked in one message.

        The reply is None if the edited attempt raises an exception while it is loaded. Raises
        AttemptEnded.
        """
        message = wire.encode(call)
        packed = [p for source in edited_sources for p in (wire.encode(source.load()), message)]
        connection, self._edited = self._edited, None
        connection = connection or self._box.attempt(self._limits)
        connection.spent = Spent()
        replies = connection.ask_all(packed, read_reply, seconds)
        self._edited = connection
        return [
            None if loaded.raised else reply
            for loaded, reply in zip(replies[::2], replies[1::2], strict=True)
        ]

    def close(self) -> None:
        """End both processes."""
        for connection in filter(None, (self._own, self._edited)):
            connection.close()


@dataclass(frozen=True)
class Small:
    """A call of one function, in float32, with its trace.

    Attributes:
        example: The call, and its twin if there is one.
        traced: The attempt's trace in this call.
        twin_steps: The twin's axes and the same step of the twin, by the `id()` of each step of
            `traced`.
    """

    example: Example
    traced: Traced
    twin_steps: Mapping[int, tuple[Axes, Step | None]]

    @property
    def runs(self) -> str:
        """The call in words: its title, sizes by name, mode, and the values of some tensors.

        These are tensors of at most FEW integers or truth values; 1 stands for True.
        """
        sizes = ", ".join(f"{name} = {size}" for name, size in self.example.axes.sizes.items())
        mode = ", in eval mode" if isinstance(self.example.call.subject, Build) else ""
        tables = (
            (n, v) for n, v in self.example.arguments.items() if isinstance(v, Tensor) and v.dim()
        )
        sentences = [
            f" {n} is {v.long().tolist()}."
            for n, v in tables
            if not v.is_floating_point() and v.numel() <= FEW
        ]
        return f"{self.example.title} runs with {sizes}{mode}.{''.join(sentences)}"

    def names(self, step: Step) -> list[str]:
        """Return the names of the axes of the step's first output.

        An axis is called by its size if no name fits it in the twin as well, or if the twin has no
        such step.
        """
        twin_axes, twin = self.twin_steps[id(step)]
        shape = step.outputs[0].shape
        twin_shape = twin.outputs[0].shape if twin and twin.outputs else ()
        if twin is step or len(shape) != len(twin_shape):
            return list(map(str, shape))
        return [
            self.example.axes.name(size, twin_axes, same)
            for size, same in zip(shape, twin_shape, strict=True)
        ]


def small_call(runs: Runs, example: Example) -> Small | None:
    """Return the example with the attempt's trace, and with its twin.

    Return None if the call does not come back, raises an exception, or returns no tensor first.
    """
    call = cast(example.call, "float32")
    traced = runs.trace_of(call)
    output = traced.reply.outputs[0].tensor if traced and traced.reply.outputs else None
    if traced is None or traced.reply.raised is not None or output is None:
        return None
    example = with_twin(replace(example, call=call), (example, *example.instead), runs.trace_of)
    return Small(
        example,
        traced,
        dict(zip(map(id, traced.steps), example.twin_steps(traced.steps), strict=True)),
    )


LONGEST = 120  # characters of a line that can be read in a question
EDITS = 16  # the largest number of edits tried on one call
ALIKE = 3  # the largest number of questions about edits of one call with the same effect


def questions_about(
    box: Box,
    limits: Limits,
    exercise: Exercise,
    recording: FaultDictionary,
    source: Source,
    seed: int,
    count: int = ASKED,
) -> list[Question]:
    """Return `count` questions about an attempt, of as many templates and lines as possible.

    There are fewer if the attempt gives no more, for example none if it fails on each call. The
    same text and seed give the same questions. The attempt runs in the box, and so do small edits
    of the attempt.

    Args:
        box: The box.
        limits: The limits of a call and of the attempt.
        exercise: The exercise.
        recording: Its fault dictionary.
        source: The attempt.
        seed: Chooses the questions.
        count: The largest number of questions.
    """
    rng = random.Random(f"{seed} {exercise.id} {source.text}".encode("utf-8", "surrogatepass"))
    by_template: list[list[Question]] = []
    with closing(Runs(box, limits, source)) as runs:
        once = [example for example in examples(exercise, recording) if not example.call.then]
        smalls = [small for example in once if (small := small_call(runs, example))]
        for template in rng.sample(TEMPLATES, len(TEMPLATES)):
            questions = [
                q
                for small in smalls
                for q in template(_QuestionContext(source, small, runs, rng))
                if q is not None
            ]
            rng.shuffle(questions)
            by_template.append(questions)
    in_turn = {
        candidate.text: candidate
        for row in zip_longest(*by_template)
        for candidate in row
        if candidate is not None
    }
    # first one question per line, because a second one could give away the answer
    one_per_line = {candidate.code: candidate for candidate in reversed(in_turn.values())}.values()
    return sorted(in_turn.values(), key=lambda candidate: candidate not in one_per_line)[:count]


@dataclass(frozen=True)
class _ChangedLine:
    edited_source: Source
    number: int
    line: str


def _nodes_of(source: Source) -> list[ast.AST]:
    return [
        node
        for statement in source.tree
        if isinstance(statement, DEFINITIONS)
        for node in ast.walk(statement)
    ]


def _plain_lines(nodes: Sequence[ast.AST]) -> frozenset[int]:
    """Return the lines that consist of one statement with a plain result.

    A call of a function that the file defines, of a builtin or of `append` has no plain result.
    """
    statements = [node for node in nodes if isinstance(node, ast.stmt)]
    starts = [node.lineno for node in statements]
    excluded_names = (
        {node.name for node in nodes if isinstance(node, DEFINITIONS)}
        | set(dir(builtins))
        | {"append"}
    )
    return frozenset(
        node.lineno
        for node in statements
        if node.lineno == node.end_lineno
        and starts.count(node.lineno) == 1
        and _has_plain_result(node, excluded_names)
    )


def _has_plain_result(node: ast.stmt, excluded_names: set[str]) -> bool:
    """Return whether a statement computes one value that a question can be about.

    It is an assignment to names or attributes, a `return`, or an expression; an assignment to an
    element has no result to ask about. Its value is a call, an operation, an element or an
    attribute, without a lambda, and not a call of an excluded function.
    """
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr):
        return False
    targets = getattr(node, "targets", ())
    if not all(isinstance(target, ast.Name | ast.Attribute) for target in targets):
        return False
    if isinstance(getattr(node, "target", None), ast.Subscript):
        return False
    value = node.value
    if isinstance(value, ast.Call) and name_of(value) in excluded_names:
        return False
    operations = ast.Call | ast.BinOp | ast.UnaryOp | ast.Subscript | ast.Attribute | ast.Compare
    has_lambda = any(isinstance(descendant, ast.Lambda) for descendant in ast.walk(node))
    return isinstance(value, operations) and not has_lambda


def _changed_line(edit: LineEdit) -> _ChangedLine | None:
    """Return the line that an edit changes, or None if the edit makes no good question.

    None if the edit changes several lines or none, brings a `self.` into a text without one, leaves
    the shown code the same, or makes a line of more than LONGEST characters.
    """
    old_text, new_text = edit.before.text, edit.after.text
    old_lines, new_lines = old_text.split("\n"), new_text.split("\n")
    if len(old_lines) != len(new_lines) or ("self." in new_text and "self." not in old_text):
        return None
    pairs = zip(old_lines, new_lines, strict=True)
    indices = [index for index, (old, new) in enumerate(pairs) if old != new]
    if len(indices) != 1:
        return None
    index = indices[0]
    old, new = shown_code(old_lines[index]), shown_code(new_lines[index])
    return _ChangedLine(edit.after, index + 1, new) if old != new and len(new) <= LONGEST else None


def shown_code(line: str) -> str:
    """Return a line for a question, without its comment, which might give away the answer."""
    line = line.strip()
    with suppress(tokenize.TokenError, SyntaxError):  # the line is not a whole statement
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.type == tokenize.COMMENT:
                line = line[: token.start[1]]
    return printable(line.strip())


@dataclass(frozen=True)
class _QuestionContext:
    source: Source
    small: Small
    runs: Runs
    rng: random.Random

    def location_of(self, number: int) -> str:
        """Return the name of a line: in a notebook, with its cell."""
        return proved_line(self.source, number).place

    def lines(self, traced: Traced) -> dict[int, Step]:
        """Return the lines to ask about by their numbers, each with its last operation."""
        plain = _plain_lines(_nodes_of(self.source))
        return {number: step for number, step in _visited_lines(traced).items() if number in plain}

    def ask(
        self, number: int, text: str, correct: Option, distractors: Iterator[Option] | list[Option]
    ) -> Question | None:
        """Return a question about a line, after the sentences about the call.

        Return None if there are fewer than three different distractors.
        """
        code = (
            f"{self.location_of(number).capitalize()}: {shown_code(self.source.lines[number - 1])}"
        )
        return question(self.rng, f"{self.small.runs} {text}", code, correct, distractors)


def _with_clue(text: str, cause: str) -> Option:
    """Return an option whose cause is also its clue, to show before a second try.

    So the cause must not compare the option with the right answer.
    """
    return Option(text, cause, clue=cause)


Template = Callable[[_QuestionContext], Iterator[Question | None]]


def _visited_lines(traced: Traced) -> dict[int, Step]:
    """Return the last operation of each line whose result is one tensor with axes.

    A line is left out if its last operation raised, or differs between the runs of the line: in its
    name, in the shapes of its output, or in how its memory relates to its inputs.
    """
    last_steps: dict[int, Step] = {}
    for index, next_index in zip_longest(traced.order, traced.order[1:]):
        step = traced.steps[index]
        # The next step belongs neither to this line nor to a line that it calls.
        if next_index is None or traced.steps[next_index].lines[: len(step.lines)] != step.lines:
            last_steps[step.lines[-1]] = step
    sites = {_site(step) for step in last_steps.values()}
    site_steps = [step for step in traced.steps if _site(step) in sites]
    variants = set()
    for step in site_steps:
        shapes = tuple(output.shape for output in step.outputs)
        variants.add((_site(step), step.name, step.storage, shapes))
    visits = Counter(site[0] for site, *_ in variants)
    return {
        number: step
        for number, step in last_steps.items()
        if visits[number] == 1
        and step.output_count == 1
        and step.outputs
        and step.outputs[0].shape
        and not step.raised
    }


def _site(step: Step) -> tuple[int, int]:
    return step.lines[-1], step.sites[-1]


def shape_at_line(context: _QuestionContext) -> Iterator[Question | None]:
    """Ask which shape a line's result has.

    The wrong options are the shapes of the line's inputs and of other lines' results, and shapes
    with axes exchanged, joined, added or removed.
    """
    lines = context.lines(context.small.traced)
    shapes = {number: step.outputs[0].shape for number, step in lines.items()}
    for number, shape in shapes.items():
        location = context.location_of(number)
        cause = f"That shape goes into the last operation of {location}."
        likely = [
            _with_clue(str(tensor.shape), cause)
            for tensor in lines[number].inputs
            if len(tensor.shape) > 1
        ]
        likely += _reordered_shapes(shape)
        near = {n: o for n, o in shapes.items() if abs(len(o) - len(shape)) <= 1 and len(o) > 1}
        likely += [
            _with_clue(str(o), f"That is the result of {context.location_of(n)}.")
            for n, o in near.items()
        ]
        context.rng.shuffle(likely)
        names = context.small.names(lines[number])
        has_numbers = any(map(str.isdigit, names))
        meaning = "what it has when your code runs" if has_numbers else f"({', '.join(names)})"
        text = f"Which shape does the result of {location} have?"
        yield context.ask(
            number,
            text,
            Option(str(shape), f"That is {meaning}."),
            [*likely, *_joined_shapes(shape)],
        )


def _reordered_shapes(shape: tuple[int, ...]) -> Iterator[Option]:
    for a, b in combinations(range(len(shape)), 2):
        swapped = list(shape)
        swapped[a], swapped[b] = swapped[b], swapped[a]
        yield Option(str(tuple(swapped)), f"There axes {a} and {b} stand the other way round.")


def _joined_shapes(shape: tuple[int, ...]) -> Iterator[Option]:
    for axis in range(len(shape) - 1):
        joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
        yield Option(str(joined), f"There axes {axis} and {axis + 1} are joined into one.")
    yield Option(str((*shape, 1)), "There one axis more is kept, of size 1.")
    yield Option(str((1, *shape)), "There one axis more stands in front, of size 1.")
    yield Option(str(shape[:-1]), "There the last axis is gone.")


def axis_at_line(context: _QuestionContext) -> Iterator[Question | None]:
    """Ask what one axis of a line's result counts, for each axis that has a name."""
    small, sizes = context.small, context.small.example.axes.sizes
    for number, step in context.lines(small.traced).items():
        shape, location = step.outputs[0].shape, context.location_of(number)
        axes = small.names(step)
        for axis, name in enumerate(axes):
            if name not in sizes or len(axes) < 2:
                continue
            other_names = [o for o in sizes if o != name and (o in axes or sizes[o] not in shape)]
            clues = [
                f"{o} is axis {axes.index(o)}" if o in axes else f"No axis is {o} by itself"
                for o in other_names
            ]
            distractors = [
                _with_clue(_count_in_words(small, o), f"{clue} there.")
                for o, clue in zip(other_names, clues, strict=True)
            ]
            context.rng.shuffle(distractors)
            none = Option(
                f"nothing with a name: its size is {shape[axis] + 1}",
                f"Its size is {shape[axis]}.",
            )
            cause = f"The result of {location} has the shape ({', '.join(axes)})."
            text = f"What does axis {axis} of the result of {location} count?"
            yield context.ask(
                number, text, Option(_count_in_words(small, name), cause), [*distractors, none]
            )


def _count_in_words(small: Small, name: str) -> str:
    return f"{name}, {small.example.axes.sizes[name]} of them"


def origin_at_line(context: _QuestionContext) -> Iterator[Question | None]:
    """Ask which number of a counted input is at a position, after lines that only move numbers.

    Each floating-point argument of the call is replaced by the numbers 0, 1, 2, …, and the question
    is about the first of these arguments with at least two axes. A line counts if its result has
    the same numbers in another shape. For calls of a module, there are no such questions.
    """
    tables = (
        (n, v)
        for n, v in context.small.example.arguments.items()
        if isinstance(v, Tensor) and v.dim() > 1
    )
    name, value = next(((n, v) for n, v in tables if v.is_floating_point()), ("", None))
    counted = map_call(context.small.example.call, _counting_tensor)
    traced = (
        context.runs.trace_of(counted)
        if value is not None and isinstance(counted.subject, str)
        else None
    )
    if value is None or traced is None:
        return
    sites = [_site(traced.steps[index]) for index in traced.order]
    for number, step in context.lines(traced).items():
        table = step.crops[0] if step.crops and sites.count(_site(step)) == 1 else None
        if (
            table is None
            or not table.shape == step.outputs[0].shape != value.shape
            or table.dim() < 2
        ):
            continue
        if torch.equal(
            table.flatten().double().sort().values, torch.arange(value.numel(), dtype=torch.double)
        ):
            yield _origin(context, number, name, value.shape, table)


def _counting_tensor(tensor: Tensor) -> Tensor:
    is_counted = tensor.is_floating_point() and tensor.dim()
    return (
        torch.arange(tensor.numel(), dtype=tensor.dtype).view(tensor.shape)
        if is_counted
        else tensor
    )


def _origin(
    context: _QuestionContext, number: int, name: str, input_shape: torch.Size, table: Tensor
) -> Question | None:
    """Return a question about one index of a line's result, or None without enough distractors.

    Args:
        context: The attempt and its call.
        number: The number of the line.
        name: The name of the input.
        input_shape: The shape of the input.
        table: The result of the line if the input holds 0, 1, 2, … in order.
    """
    location, sizes = context.location_of(number), table.shape
    index = tuple(  # not 0 along most axes
        context.rng.randrange(min(1, size - 1), size) if axis or table.dim() == 2 else 0
        for axis, size in enumerate(sizes)
    )
    value, flat = int(table[index]), torch.arange(table.numel()).view(sizes)
    viewed = "That stands there if the numbers are only read in other axes: a view moves nothing."
    alternatives = [(position, f"at {list(position)}") for position in permutations(index)]
    axis = table.dim() - 2
    for step, why in ((1, "further"), (-1, "back")):
        alternatives.append(
            (
                (*index[:axis], index[axis] + step, *index[axis + 1 :]),
                f"one {why} along axis {axis}",
            )
        )
    inside = [(at, why) for at, why in alternatives if _is_inside(at, sizes)]
    distractors = [_with_clue(str(int(flat[index])), viewed)]
    distractors += [
        _with_clue(str(int(table[position])), f"That stands {why}.") for position, why in inside
    ]
    text = (
        f"{name}, of shape {tuple(input_shape)!s}, holds 0, 1, 2, … in order. "
        f"Which number stands at {list(index)} of the result of {location}?"
    )
    correct = Option(str(value), f"Row by row {name} is counted; {location} brings {value} there.")
    return context.ask(number, text, correct, distractors)


def _is_inside(position: Sequence[int], sizes: Sequence[int]) -> bool:
    return all(0 <= i < size for i, size in zip(position, sizes, strict=True))


_WHY_NOT = {
    "an exception": "It would raise if sizes met that do not fit.",
    "a result of another shape": (
        "The shape would change if the result had other axes, or one of another size."
    ),
    "the same shape with other numbers": (
        "Numbers would change if others were computed, or the same stood elsewhere."
    ),
    "the same result as before": "It would stay the same if the line did not matter for this call.",
}
RAISES, SHAPE, NUMBERS, NOTHING = _WHY_NOT
# A question about tensors must not have one of these exceptions as its answer.
_TRIVIAL = frozenset({"NameError", "UnboundLocalError", "AttributeError", "TypeError"})
# the largest difference of equal numbers, relative to the largest number or to 1
SAME_TO = 1e-5


def edit_outcome(context: _QuestionContext) -> Iterator[Question | None]:
    """Ask what one edit of a line changes: at most EDITS edits of a call, chosen at random.

    At most ALIKE questions have the same answer.
    """
    source, small = context.source, context.small
    edited_lines = [
        line
        for edit in candidates(source, [target_of(small.example.call)])
        if (line := _changed_line(edit))
    ]
    changed = context.rng.sample(edited_lines, min(EDITS, len(edited_lines)))
    called = [name_of(node) for node in _nodes_of(source) if isinstance(node, ast.Call)]
    # An edit may leave memory uninitialised. Its numbers are then random.
    is_unset = any("empty" in name for name in called)
    unseen = {"", NUMBERS, NOTHING} if is_unset else {""}
    note = " Only its first result counts." if len(small.traced.reply.outputs) > 1 else ""
    counts: Counter[str] = Counter()
    replies = context.runs.replies(small.example.call, [line.edited_source for line in changed])
    for line, reply in zip(changed, replies, strict=True):
        result = outcome(reply, small.traced.reply)
        counts[result] += 1
        if result not in unseen and counts[result] <= ALIKE:
            distractors = [
                _with_clue(alternative, why)
                for alternative, why in _WHY_NOT.items()
                if alternative != result
            ]
            correct = Option(result, "That was seen when your code was run with that edit.")
            text = (
                f"In your code {context.location_of(line.number)} becomes `{line.line}`. "
                f"What comes of it?{note}"
            )
            yield context.ask(line.number, text, correct, distractors)


def outcome(reply: Reply | None, original: Reply) -> str:
    """Return the effect of an edit on the first output: RAISES, SHAPE, NUMBERS or NOTHING.

    Return "" if the effect is no good answer: there is no reply, the exception is trivial, the
    number of outputs changes, the first output is no tensor or becomes a scalar, or only its dtype
    changes.

    Args:
        reply: The reply of the edited text, or None if there is none.
        original: The reply of the student's own text.
    """
    if reply is None:
        return ""
    if reply.raised is not None:
        return "" if reply.raised.type in _TRIVIAL else RAISES
    has_all_outputs = len(reply.outputs) == len(original.outputs)
    unedited = original.outputs[0].tensor
    edited = reply.outputs[0].tensor if has_all_outputs else None
    # no tensor: a list, or a number
    if unedited is None or edited is None or (unedited.dim() and not edited.dim()):
        return ""
    if unedited.shape != edited.shape:
        return SHAPE
    a, b = unedited.double(), edited.double()
    largest = max(float(a[a.isfinite()].abs().max()) if a.isfinite().any() else 0.0, 1.0)
    if not torch.allclose(a, b, rtol=0.0, atol=SAME_TO * largest, equal_nan=True):
        return NUMBERS
    return NOTHING if unedited.dtype == edited.dtype else ""


TEMPLATES: tuple[Template, ...] = (shape_at_line, axis_at_line, origin_at_line, edit_outcome)
