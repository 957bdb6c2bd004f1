"""Run an attempt on examples in a process of its own, trace it, and say what it returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.level import Box
from ..box.loading import load
from ..box.replies import read_traced
from ..box.worker.answers import Output, Reply, Traced
from ..box.worker.limits import Limits
from ..box.worker.messages import Call, TraceCall
from ..checks.answer import Answer
from ..checks.cast import cast
from ..checks.explain import describe_exception, explain, is_undefined
from ..checks.outcome import CheckFailed
from ..checks.sanitize import kind_name, sanitize
from ..diagnosis.fingerprint import tensor_fingerprint
from ..judge.cures import stopped_parts
from ..submission import AttemptSource
from ..submission.standing import in_cells
from .choose_example import examples_named, with_twin
from .example import Example
from .own_attempt import Own
from .sentence import sentence_examples

# How much of each operation's output a picture needs: all heads of the first sequence, also if they
# are computed one after the other. 41: the characters of the lesson's sentence.
TABLES, TIMES = (8, 41, 41), 8
# which a trace takes for one another
FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})


def is_right(example: Example, reply: Reply) -> bool:
    """Return whether the attempt returned what the example asks for, in every output."""
    if reply.raised is not None:
        return False
    try:
        Answer(example.call, reply).must_return()
    except CheckFailed:
        return False
    return all(
        returned(output_example, reply.outputs[output_example.output_index])[1]
        for output_example in example.all_outputs
    )


def returned(example: Example, output: Output) -> tuple[str, bool]:
    """Return what is said of one output, and whether it is right."""
    expected, foreign = ("ndarray", "tensor") if example.call.arrays else ("tensor", "ndarray")
    if output.tensor is None or output.kind == foreign:
        return f"{output.kind}, not {kind_name(expected)}", False
    shape, expected_shape = (
        example.axes.shape(tensor.shape) for tensor in (output.tensor, example.expected)
    )
    if output.tensor.shape != example.expected.shape:
        return f"{shape}; {expected_shape} is asked", False
    description = shape if output.tensor.dim() else _number(output.tensor)
    if not example.compares_values:
        return description, True
    dtype, expected = (
        str(tensor.dtype).removeprefix("torch.") for tensor in (output.tensor, example.expected)
    )
    if dtype != expected and not {dtype, expected} <= FLOATS:
        return f"{description} of {dtype}; {expected} is asked", False
    agrees = tensor_fingerprint(output.tensor).agrees(tensor_fingerprint(example.expected))
    difference = (
        "the right shape, other numbers"
        if output.tensor.dim()
        else f"{_number(example.expected)} is asked"
    )
    return f"{description}: {'the right numbers' if agrees else difference}", agrees


def _number(value: Tensor) -> str:
    return f"{float(value):.{3 if float(value) % 1 else 15}g}"


def most_telling(example: Example, ask: Callable[[Call], Reply]) -> Example:
    """Return the example, or the first of those in its place that the attempt does not get right.

    ask: put a call to the attempt; here in float32.
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
    """The traced calls, in their order, with the examples that were shown.

    `ended`: why the attempt ended early, if it did.
    """

    traced_examples: tuple[tuple[Example, Traced], ...]
    ended: str = ""


def follow(
    box: Box,
    limits: Limits,
    source: AttemptSource,
    examples: Sequence[Example],
    crop: tuple[int, ...] = (),
    times: int = 1,
    names_sizes: bool = True,
) -> Followed:
    """Trace each example in float32, or one in its place that is wrong.

    crop, times: of TraceCall. names_sizes: its twin, too.
    """
    traced_examples: list[tuple[Example, Traced]] = []
    at, connection = "while it was imported", None

    try:
        loaded = load(box, limits, source.load())
        connection = loaded.connection
        trace = partial(connection.ask_for, read_traced, seconds=limits.seconds_per_call)
        if loaded.raised is not None:
            message = sanitize(loaded.raised.message)
            return Followed(
                (),
                (
                    f"{source.name} cannot be imported: it {explain(loaded.raised)}. Python says: "
                    f"{message}"
                ),
            )
        for example in examples:
            at = f"in {example.target}"
            telling = most_telling(
                example, lambda call: loaded.connection.ask(call, limits.seconds_per_call)
            )
            traced = trace(TraceCall(cast(telling.call, "float32"), crop, times))
            raised = traced.reply.raised
            if loaded.stopped and raised is not None and is_undefined(raised):
                reason = stopped_parts(source, loaded.stopped, describe_exception)
                return Followed(tuple(traced_examples), in_cells(reason, source))
            traced_examples.append((telling, traced))
            if names_sizes:
                traced_examples[-1] = (
                    with_twin(
                        telling, (example, *example.instead), lambda call: trace(TraceCall(call))
                    ),
                    traced,
                )
    except AttemptEnded as ended:
        return Followed(tuple(traced_examples), f"{ended} That was {at}.")
    finally:
        if connection is not None:
            connection.close()
    return Followed(tuple(traced_examples))


def follow_own(
    attempt: Own,
    function: str | None,
    command: str,
    crop: tuple[int, ...] | None = None,
    box: Box | None = None,
) -> Followed:
    """Trace what a student has written on its recorded calls, of this function alone, or of all.

    Raises CourseFault.

    crop: how many numbers of each output are kept; None: all that pictures need, and the sentence
        of the lesson is traced, too.
    box: one that is open; None: one of its own.
    """
    attempt.must_run(command)
    from ..box.forked import open_own_box

    # which may fork this process, so before any operation
    with nullcontext(box) if box else open_own_box() as opened:
        chosen = examples_named(attempt.exercise, attempt.recording, function, f"course {command}")
        if crop is None and function is None:
            chosen += sentence_examples(attempt.exercise)
        trace_limits = (TABLES, TIMES) if crop is None else (crop, 1)
        return follow(
            opened,
            attempt.course.limits.for_worker(),
            attempt.source,
            chosen,
            *trace_limits,
            names_sizes=crop is not None,
        )
