"""Run an attempt on examples in a separate process, and explain each line of its forward pass.

`follow` makes the calls in the box, which records every torch operation. `explain_example` turns
the record of one call into lines of code with their operations: the shapes that go in and come out,
with names for their sizes, and whether an output shares the memory of an input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from torch import Tensor

from ..box.connection import AttemptEnded, Box, load
from ..box.replies import read_traced
from ..box.worker.limits import Limits
from ..box.worker.messages import (
    SLICES,
    Call,
    Output,
    Reply,
    Slice,
    Step,
    TensorInfo,
    TraceCall,
    Traced,
)
from ..checks.answer import Answer
from ..checks.explain_exceptions import (
    describe_exception,
    explain,
    is_undefined,
    join_sentences,
    kind_name,
    sanitize,
)
from ..checks.hidden_check import CheckFailed
from ..checks.runner import cast
from ..diagnosis.fingerprint import tensor_fingerprint
from ..judge.exception_advice import suggest
from ..judge.explain_file_parts_not_run import stopped_parts
from ..judge.redact_hidden_inputs import Axes
from ..result import ExerciseResult
from ..submission import Source, proved_line
from ..submission.source import in_cells, printable
from .check_and_keep_result import OwnAttempt
from .choose_example_calls import (
    Example,
    OriginTable,
    TwinStep,
    examples_named,
    origins,
    with_twin,
)
from .train_model import sentence_examples

# How much of each operation's output a picture needs: all heads of the first sequence, also if they
# are computed one after the other. 41: the characters of the lesson's sentence.
TABLES, TIMES = (8, 41, 41), 8
# dtypes that a trace does not tell apart
FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})


def is_right(example: Example, reply: Reply) -> bool:
    """Return whether the attempt returned what the example expects, in every output.

    False if it raised an exception.
    """
    if reply.raised is not None:
        return False
    try:
        return all(verdict.is_right for verdict in _verdicts(example, reply))
    except CheckFailed:
        return False


class Verdict(NamedTuple):
    """Whether an output is right, and a description.

    Attributes:
        description: The output in words. It names the first of these that is wrong: kind, shape,
            dtype, numbers.
        is_right: Whether the output is right. If the example does not compare values, an output of
            the expected kind and shape is right.
    """

    description: str
    is_right: bool = False


def _verdicts(example: Example, reply: Reply) -> list[Verdict]:
    """Return a verdict on each output of the example. Raises CheckFailed if outputs are missing."""
    Answer(example.call, reply).must_return()
    return [
        _verdict(output_example, reply.outputs[output_example.output_index])
        for output_example in example.all_outputs
    ]


def _verdict(example: Example, output: Output) -> Verdict:
    actual, expected = output.tensor, example.expected
    asked_kind, foreign = ("ndarray", "tensor") if example.call.arrays else ("tensor", "ndarray")
    if actual is None or output.kind == foreign:
        return Verdict(f"{output.kind}, not {kind_name(asked_kind)}")
    shape = example.axes.shape(actual.shape)
    if actual.shape != expected.shape:
        return Verdict(f"{shape}; {example.axes.shape(expected.shape)} is asked")
    description = shape if actual.dim() else _number(actual)
    if not example.compares_values:
        return Verdict(description, is_right=True)
    dtype, expected_dtype = (str(t.dtype).removeprefix("torch.") for t in (actual, expected))
    if dtype != expected_dtype and not {dtype, expected_dtype} <= FLOATS:
        return Verdict(f"{description} of {dtype}; {expected_dtype} is asked")
    if tensor_fingerprint(actual).agrees(tensor_fingerprint(expected)):
        return Verdict(f"{description}: the right numbers", is_right=True)
    if actual.dim():
        return Verdict(f"{description}: the right shape, other numbers")
    return Verdict(f"{description}: {_number(expected)} is asked")


def _number(value: Tensor) -> str:
    return f"{float(value):.{3 if float(value) % 1 else 15}g}"


def most_telling(example: Example, ask: Callable[[Call], Reply]) -> Example:
    """Return the first of the example and its substitutes that the attempt does not get right.

    If the attempt gets every one right, return the example.

    Args:
        example: The example.
        ask: Makes a call of the attempt and returns its reply. Calls are made in float32.
    """
    if not example.instead:
        return example
    failing = (
        candidate
        for candidate in (example, *example.instead)
        if not is_right(candidate, ask(cast(candidate.call, "float32")))
    )
    return next(failing, example)


@dataclass(frozen=True)
class Followed:
    """The traced calls of an attempt.

    Attributes:
        traced_examples: The examples and their traces, in the order of the calls.
        ended: The reason why some examples were not traced, or "" if all were.
    """

    traced_examples: tuple[tuple[Example, Traced], ...]
    ended: str = ""


def follow(
    box: Box,
    limits: Limits,
    source: Source,
    examples: Sequence[Example],
    crop: tuple[int, ...] = (),
    times: int = 1,
    names_sizes: bool = True,
) -> Followed:
    """Trace each example in float32, or the first of its substitutes that the attempt gets wrong.

    If the attempt cannot be imported, ends its process, or uses a name that a failed statement of
    its file should have defined, the examples after that are not traced, and `ended` says why.

    Args:
        box: The box that runs the attempt.
        limits: The limits of a call and of the attempt.
        source: The attempt.
        examples: The examples.
        crop: How many numbers of each operation's output are kept along its last axes; () keeps
            none.
        times: How many runs of the same operation keep a part of their output.
        names_sizes: Whether to trace the twin of each example as well, which gives names to sizes.
    """
    traced_examples: list[tuple[Example, Traced]] = []
    try:
        loaded = load(box, limits, source.load())
    except AttemptEnded as ended:
        return Followed((), f"{ended} That was while it was imported.")
    ask = partial(loaded.connection.ask, seconds=limits.seconds_per_call)
    trace = partial(loaded.connection.ask_for, read_traced, seconds=limits.seconds_per_call)
    with closing(loaded.connection):
        if loaded.raised is not None:
            why = f"it {explain(loaded.raised)}. Python says: {sanitize(loaded.raised.message)}"
            return Followed((), f"{source.name} cannot be imported: {why}")
        for example in examples:
            try:
                telling = most_telling(example, ask)
                message = TraceCall(cast(telling.call, "float32"), crop, times)
                if telling.heads:
                    bounds = (telling.heads, *TABLES[1:])
                    message = replace(message, crop=bounds, times=telling.heads)
                traced = trace(message)
                raised = traced.reply.raised
                if loaded.stopped and raised is not None and is_undefined(raised):
                    reason = stopped_parts(source, loaded.stopped, describe_exception)
                    return Followed(tuple(traced_examples), in_cells(reason, source))
                traced_examples.append((telling, traced))
                if names_sizes:
                    candidates = (example, *example.instead)
                    with_names = with_twin(telling, candidates, lambda call: trace(TraceCall(call)))
                    traced_examples[-1] = (with_names, traced)
            except AttemptEnded as ended:
                why = f"{ended} That was in {example.target}."
                return Followed(tuple(traced_examples), why)
    return Followed(tuple(traced_examples))


def follow_own(
    attempt: OwnAttempt,
    function: str | None,
    command: str,
    crop: tuple[int, ...] | None = None,
    box: Box | None = None,
    first_example: Callable[[], Example] | None = None,
) -> Followed:
    """Trace the student's attempt on recorded calls of one function, or of all functions.

    Args:
        attempt: The attempt.
        function: The function, or None for all.
        command: The command that needs the trace.
        crop: How many numbers of each output are kept along its last axes. If None, as many as
            pictures need are kept, sizes get no names, and without a function the sentence of the
            lesson is traced as well.
        box: An open box. If None, one is opened and closed again.
        first_example: Makes a further example, once the box is open. It is traced first.

    Raises:
        CourseFault: The attempt has no code to run, there is no such function, or a file of the
            course cannot be read.
    """
    attempt.must_run(command)
    from ..box.without_namespaces import open_own_box

    # Opening a box may fork this process, so it comes before any operation.
    with nullcontext(box) if box else open_own_box() as opened:
        chosen = examples_named(
            attempt.exercise, attempt.fault_dictionary, function, f"course {command}"
        )
        if crop is None and function is None:
            chosen += sentence_examples(attempt.exercise)
        if first_example is not None:
            chosen.insert(0, first_example())
        trace_limits = (TABLES, TIMES) if crop is None else (crop, 1)
        return follow(
            opened,
            attempt.course.limits.for_worker(),
            attempt.source,
            chosen,
            *trace_limits,
            names_sizes=crop is not None,
        )


LONGEST = 60  # the largest number of items in one round of a loop


@dataclass(frozen=True)
class Loop:
    """A loop in a sequence of steps.

    Attributes:
        body: Its first round: steps, and inner loops.
        times: The number of rounds.
        alike: Whether every round has exactly the same items as the first.
    """

    body: tuple[Item, ...]
    times: int
    alike: bool

    def steps(self) -> list[int]:
        """Return the steps of the first round, inner loops unrolled once."""
        return [
            step
            for item in self.body
            for step in (item.steps() if isinstance(item, Loop) else [item])
        ]


Item = int | Loop


def fold(order: Sequence[int], key: Callable[[int], Hashable]) -> tuple[Item, ...]:
    """Return a sequence of steps in which each run of equal rounds is replaced by a Loop.

    Loops with the shortest rounds are folded first, so that they can be part of an outer loop's
    round. Rounds of more than LONGEST items are not recognised.

    Args:
        order: The steps, in the order in which they ran.
        key: A function of a step. Rounds are equal if their steps have the same keys.
    """
    items: list[Item] = list(order)
    length = 1
    while length <= min(LONGEST, len(items) // 2):
        shorter = _rounds(items, [_key_without_rounds(item, key) for item in items], length)
        # If a loop was folded, start again: it may be part of an outer loop's round.
        length = 1 if len(shorter) < len(items) else length + 1
        items = shorter
    return tuple(items)


def _key_without_rounds(item: Item, key: Callable[[int], Hashable]) -> Hashable:
    """Return the key of an item, independent of the number of rounds of a loop.

    A loop of one step has the key of this step: if an inner loop runs once, then twice, then three
    times, its first run is not folded.
    """
    if isinstance(item, int):
        return key(item)
    body = tuple(_key_without_rounds(node, key) for node in item.body)
    return body[0] if len(body) == 1 else body


def _rounds(items: list[Item], keys: list[Hashable], length: int) -> list[Item]:
    """Return the items with every run of two or more equal rounds of this length as a Loop."""
    folded: list[Item] = []
    at = 0
    while at < len(items):
        times = 1
        while keys[at : at + length] == keys[at + times * length : at + (times + 1) * length]:
            times += 1
        if times == 1:
            folded.append(items[at])
            at += 1
            continue
        rounds = [tuple(items[at + n * length : at + (n + 1) * length]) for n in range(times)]
        folded.append(Loop(rounds[0], times, all(body == rounds[0] for body in rounds)))
        at += times * length
    return folded


_READ_ANEW = frozenset("view reshape flatten unflatten reshape_as view_as".split())


def view_warning(step: Step, axes: Axes) -> str:
    """Return a warning about a view or reshape that mixes tokens, or "".

    A view or reshape keeps the order of the numbers. So if an axis of the size of a token axis had
    another stride before than it has after, the axis no longer holds tokens.
    """
    if step.name not in _READ_ANEW or len(step.inputs) != 1 or len(step.outputs) != 1:
        return ""
    shape_in, shape_out = step.inputs[0].shape, step.outputs[0].shape
    for name, size in axes.sizes.items():
        old = [_stride(shape_in, at) for at, extent in enumerate(shape_in) if extent == size]
        new = [_stride(shape_out, at) for at, extent in enumerate(shape_out) if extent == size]
        if name[0] == "T" and size > 1 and old and new and not set(old) & set(new):
            return (
                f"{name} is no longer {name}: a step along it was {axes.name(old[0])} numbers, "
                f"here it is {axes.name(new[0])}"
            )
    return ""


def _stride(shape: Sequence[int], axis: int) -> int:
    return math.prod(shape[axis + 1 :])


_SIGNS = {"div": "/", "mul": "·", "add": "+", "sub": "−", "pow": "^", "mul_": "·", "div_": "/"}
_ROUNDING = 1e-5  # relative: an attempt may compute a number in float32
_PLAIN = ("float32", "float64")  # dtypes that are not shown


@dataclass(frozen=True)
class Operation:
    """One operation of a line.

    Attributes:
        name: The name of the operation in torch.
        takes: The shapes of its inputs, and a number if it has one, for example "(B, T, C) / 2".
        gives: The shapes of its outputs.
        data: How the memory of its output relates to its inputs, for example "view"; "" if the
            memory is new and contiguous.
        warning: A probable mistake, or "".
        slices: The positions of an axis that each round of a loop reads, or "".
        raised: Whether it raised an exception.
        crop: A part of its first output, or None if none was kept.
        full_shape: The shape of its first output.
    """

    name: str
    takes: str
    gives: str
    data: str = ""
    warning: str = ""
    slices: str = ""
    raised: bool = False
    crop: Tensor | None = None
    full_shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class TraceLine:
    """A line of the student's code, and the operations that it ran.

    Attributes:
        depth: The number of lines on the call stack above it.
        label: Its number; in a notebook, its cell and its number within the cell.
        code: Its text.
        operations: Its operations.
        proved: Whether a small change of this line is known to make every check pass.
    """

    depth: int
    label: str
    code: str
    operations: tuple[Operation, ...] = ()
    proved: bool = False


@dataclass(frozen=True)
class Repeated:
    """Lines that ran several times more in a loop.

    Attributes:
        depth: The number of lines on the call stack above them.
        first: The label of the first line.
        last: The label of the last line.
        repeats: How many times they ran after the first round.
        alike: Whether every round had the same operations with the same shapes.
    """

    depth: int
    first: str
    last: str
    repeats: int
    alike: bool


@dataclass(frozen=True)
class Explained:
    """One explained call.

    Attributes:
        title: The call as a student would write it. If the result is wrong, the title also names
            the function of `waits_for`.
        sizes: Its sizes by name, for example "B = 2, T = 5".
        entries: The lines that ran, in order.
        returned: A sentence about the result, or "" if the call raised an exception.
        is_right: Whether the result is right.
        raised: A sentence about the exception, or "".
        dropped: The number of operations that the trace left out.
        waits_for: Another function that must be right first, as the last check has found, or "".
        tables: The origins of the result's numbers; empty if the call does more than move numbers.
    """

    title: str
    sizes: str
    entries: tuple[TraceLine | Repeated, ...]
    returned: str = ""
    is_right: bool = False
    raised: str = ""
    dropped: int = 0
    waits_for: str = ""
    tables: tuple[OriginTable, ...] = ()


def explain_example(
    example: Example, traced: Traced, source: Source, last: ExerciseResult | None = None
) -> Explained:
    """Explain a traced example.

    Args:
        example: The example.
        traced: The trace of the attempt on it.
        source: The attempt.
        last: The result of the last check of the attempt, or None. Its proved lines and the
            functions that wait for others are taken from it.
    """
    proved, waits_for = set[int](), ""
    if last:
        proved = {line.line for line in last.lines}
        waits_for = next((f.waits_for for f in last.functions if f.name == example.target), "")
    items = fold(traced.order, lambda index: (traced.steps[index].lines, traced.steps[index].sites))
    operations = [
        _operation(step, twin_step, example.axes)
        for step, twin_step in zip(traced.steps, example.twin_steps(traced.steps), strict=True)
    ]
    explanation = Explained(
        f"{example.title}, which waits for {waits_for}" if waits_for else example.title,
        ", ".join(f"{name} = {size}" for name, size in example.axes.sizes.items()),
        tuple(_entries(items, traced, operations, source, proved)),
        dropped=traced.dropped,
        waits_for=waits_for,
    )
    raised = traced.reply.raised
    if raised is not None:
        message = join_sentences(f"It {describe_exception(raised)}", suggest(source, raised))
        message = message if message.endswith(("?", ".")) else f"{message}."
        return replace(explanation, raised=in_cells(message, source))
    try:
        verdicts = _verdicts(example, traced.reply)
    except CheckFailed as failed:
        return replace(explanation, returned=f"returns something else: {failed}")
    descriptions = "; ".join(
        f"{output_example.label} {verdict.description}".lstrip()
        for output_example, verdict in zip(example.all_outputs, verdicts, strict=True)
    )
    explanation = replace(explanation, returned=f"returns {descriptions}")
    if all(verdict.is_right for verdict in verdicts):
        explanation = replace(explanation, title=example.title, is_right=True)
    output = traced.reply.outputs[example.output_index].tensor
    if output is None or output.shape != example.expected.shape or not example.compares_values:
        return explanation
    return replace(explanation, tables=origins(example, output))


def shorten(call: Explained, context_lines: int) -> Explained:
    """Return a shorter explanation: the marked lines with their context, and three wrong rows.

    A line is marked if it is proved, or if one of its operations raised or has a warning. If no
    line is marked, the last lines are kept. A line that is not marked keeps only its last
    operation. The rows are the first wrong ones of the first table with a wrong row; if there is
    no such table, all tables are kept.

    Args:
        call: The explanation.
        context_lines: The number of entries kept before each marked line, or at the end if no line
            is marked. Before the first line that is kept, all entries are dropped.
    """
    lines = {index: line for index, line in enumerate(call.entries) if isinstance(line, TraceLine)}
    marked = [at for at, line in lines.items() if _is_marked(line)]
    near = {
        index - back for index in marked or [len(call.entries)] for back in range(context_lines + 1)
    }
    # a "more like this" before the first line refers to nothing
    start = min(near & lines.keys(), default=0)
    brief = {at: replace(line, operations=line.operations[-1:]) for at, line in lines.items()}
    brief |= {at: lines[at] for at in marked}
    entries = tuple(
        brief.get(at, entry) for at, entry in enumerate(call.entries) if at in near and at >= start
    )
    tables = call.tables
    wrong_tables = [table for table in tables if table.wrong_rows]
    if wrong_tables:
        three_rows = wrong_tables[0].wrong_rows[:3]
        tables = (replace(wrong_tables[0], rows=three_rows, legend=tables[0].legend),)
    return replace(call, entries=entries, tables=tables)


def _is_marked(line: TraceLine) -> bool:
    return line.proved or any(o.warning or o.raised for o in line.operations)


def _entries(
    items: Sequence[Item],
    traced: Traced,
    step_operations: Sequence[Operation],
    source: Source,
    proved: Collection[int],
) -> Iterator[TraceLine | Repeated]:
    """Yield the lines of a call in order, with their operations, and repetitions of loops.

    A line that calls another function of the attempt comes before the lines of that function. The
    line of an exception comes last, even if none of its operations ran.

    Args:
        items: The steps of the trace, with folded loops.
        traced: The trace.
        step_operations: The operation of each step.
        source: The attempt.
        proved: The numbers of the proved lines.
    """
    previous, texts = tuple[int, ...](), source.lines

    def label(number: int) -> str:
        location = proved_line(source, number)
        return f"cell {location.cell}, {location.line_in_cell}" if location.cell else str(number)

    def line_of(depth: int, number: int, indices: Sequence[int] = ()) -> TraceLine:
        operations = tuple(step_operations[index] for index in indices)
        code = printable(texts[number - 1].strip()) if 0 < number <= len(texts) else ""
        return TraceLine(depth, label(number), code, operations, bool(indices) and number in proved)

    for line in _lines(items, traced.steps):
        if isinstance(line, Repeated):
            yield replace(line, first=label(int(line.first)), last=label(int(line.last)))
            previous = ()
            continue
        lines, step_indices = line
        for depth, number in enumerate(lines[:-1]):
            if lines[: depth + 1] != previous[: depth + 1]:
                yield line_of(depth, number)
        yield line_of(len(lines) - 1, lines[-1], step_indices)
        previous = lines
    raised = traced.reply.raised
    # the exception came before any operation of its line
    if raised and raised.line and raised.line not in previous[-1:]:
        yield line_of(0, raised.line)


class _StepsOfLine(NamedTuple):
    """Successive steps with the same lines on the call stack.

    Attributes:
        lines: The numbers of these lines.
        step_indices: The indices of the steps.
    """

    lines: tuple[int, ...]
    step_indices: list[int]


def _lines(items: Sequence[Item], steps: Sequence[Step]) -> Iterator[_StepsOfLine | Repeated]:
    """Yield the successive steps of each line.

    For a loop, the lines of its first round are yielded, then a Repeated. The Repeated has numbers
    of lines in place of labels.
    """
    waiting: list[int] = []
    for item in items:
        if waiting and (isinstance(item, Loop) or steps[item].lines != steps[waiting[0]].lines):
            yield _StepsOfLine(steps[waiting[0]].lines, waiting)
            waiting = []
        if isinstance(item, Loop):
            yield from _lines(item.body, steps)
            body = [steps[index] for index in item.steps()]
            depth = min(len(node.lines) for node in body) - 1
            numbers = [node.lines[depth] for node in body]
            yield Repeated(depth, str(min(numbers)), str(max(numbers)), item.times - 1, item.alike)
        else:
            waiting.append(item)
    if waiting:
        yield _StepsOfLine(steps[waiting[0]].lines, waiting)


def _operation(step: Step, twin_step: TwinStep, axes: Axes) -> Operation:
    """Return a traced step in words.

    Args:
        step: The step.
        twin_step: The same step of the twin. A size gets a name only if the name also fits there.
        axes: The axes of the example.
    """
    twin_axes, twin = twin_step
    takes = _shapes(axes, step.inputs, step.input_count, twin_axes, twin.inputs if twin else ())
    if step.name in _SIGNS and len(step.inputs) == 1 and step.numbers:
        twin_number = twin.numbers[0] if twin and twin.numbers else None
        number = number_in_words(axes, step.numbers[0], twin_axes, twin_number)
        takes = f"{takes} {_SIGNS[step.name]} {number}"
    elif "masked_fill" in step.name and step.numbers:
        number = f"{step.numbers[0]:.4g}".replace("-", "−")
        takes = f"{takes}, {number}"
    data = {"same": "the same tensor", "new": ""}.get(step.storage, step.storage)
    if step.outputs and not step.outputs[0].contiguous:
        data = f"{data}, not contiguous" if data else "not contiguous"
    gives = _shapes(axes, step.outputs, step.output_count, twin_axes, twin.outputs if twin else ())
    crop = step.crops[0] if step.crops else None
    return Operation(
        printable(step.name),
        takes,
        gives,
        data,
        view_warning(step, axes),
        slices_in_words(step),
        step.raised,
        crop,
        step.outputs[0].shape if step.outputs else (),
    )


def slices_in_words(step: Step) -> str:
    """Return the positions of an axis that each round of a loop reads.

    Return "" if the step reads no slice, if its slices are along several axes, or if all rounds
    read the same positions.
    """
    axes = {slice_.axis for slice_ in step.slices}
    if len(axes) != 1 or len(set(step.slices)) == 1:
        return ""
    rounds = ", ".join(map(_range_in_words, step.slices))
    unlisted = ", …" if len(step.slices) == SLICES else ""
    return f"axis {axes.pop()}, round by round: {rounds}{unlisted}{_overlap(step.slices)}"


def _range_in_words(slice_: Slice) -> str:
    is_single_position = slice_.stop == slice_.start + 1
    return str(slice_.start) if is_single_position else f"{slice_.start}–{slice_.stop - 1}"


def _overlap(slices: Sequence[Slice]) -> str:
    """Return "; these overlap" if each slice begins inside the previous one; "" otherwise."""
    pairs = itertools.pairwise(slices)
    do_overlap = all(former.start < latter.start < former.stop for former, latter in pairs)
    return "; these overlap" if do_overlap else ""


def _shapes(
    axes: Axes,
    tensors: Sequence[TensorInfo],
    count: int,
    twin_axes: Axes,
    twins: Sequence[TensorInfo],
) -> str:
    """Return the shapes of all inputs of a step, or of all outputs, in words.

    Args:
        axes: The axes of the example.
        tensors: The inputs or outputs that were traced.
        count: The number of inputs or outputs.
        twin_axes: The axes of the twin.
        twins: The inputs or outputs of the same step of the twin. If there are fewer, the last one
            is used again.
    """
    shapes = []
    for index, tensor in enumerate(tensors):
        twin = twins[min(index, len(twins) - 1)] if twins else None
        shapes.append(_tensor(axes, tensor, twin_axes, twin))
    if count > 1 and len(set(shapes)) == 1:
        return f"{count} × {shapes[0]}"
    return ", ".join(shapes) + (", …" if count > len(shapes) else "")


def _tensor(axes: Axes, tensor: TensorInfo, twin_axes: Axes, twin: TensorInfo | None) -> str:
    """Return the shape of a tensor in words, with its dtype if that is not float32 or float64.

    A tensor of one number is shown as this number if the number has a name.
    """
    value_there = twin.value if twin else None
    if tensor.value is not None and "(" in (
        number := number_in_words(axes, tensor.value, twin_axes, value_there)
    ):
        return number
    if twin is None or len(twin.shape) != len(tensor.shape):  # a name would be a coincidence
        shape = f"({', '.join(map(str, tensor.shape))})"
    else:
        shape = axes.shape(tensor.shape, twin_axes, twin.shape)
    return shape if tensor.dtype in _PLAIN else f"{printable(tensor.dtype)} {shape}"


def number_in_words(axes: Axes, value: float, twin_axes: Axes, twin: float | None) -> str:
    """Return a number that an operation gets, with its name if it has one: "2.646 (√hd)".

    A name is a size of the example, its square root, or the inverse of one of these. It must fit
    the number in the twin as well. The number 1 has no name.

    Args:
        axes: The axes of the example.
        value: The number.
        twin_axes: The axes of the twin.
        twin: The number at the same place in the twin, or None.
    """
    twin_numbers = _numbers(twin_axes)
    for name, number in _numbers(axes).items():
        if number == 1 or twin is None or not math.isclose(value, number, rel_tol=_ROUNDING):
            continue
        if math.isclose(twin, twin_numbers[name], rel_tol=_ROUNDING):
            return f"{value:.4g} ({name})"
    return f"{value:.4g}"


def _numbers(axes: Axes) -> dict[str, float]:
    sizes = {f"√{name}": math.sqrt(size) for name, size in axes.sizes.items()} | dict(axes.sizes)
    return sizes | {f"1/{name}": 1 / number for name, number in sizes.items() if number}
