"""What an attempt returned for an example, in words, and whether it is right."""

from __future__ import annotations

from ..box.worker.answers import Output, Reply
from ..checks.answer import Answer
from ..checks.failed import CheckFailed
from ..diagnosis.fingerprint import tensor_fingerprint
from .example import Example


def is_right(example: Example, reply: Reply) -> bool:
    """Whether the attempt returned what the example asks for, in every output."""
    if reply.raised is not None:
        return False
    try:
        Answer(example.call, reply).must_return()
    except CheckFailed:
        return False
    return all(returned(each, reply.outputs[each.place])[1] for each in example.every)


def returned(example: Example, output: Output) -> tuple[str, bool]:
    """What is said of one output, and whether it is right."""
    if output.tensor is None:
        return f"{output.kind}, not a tensor", False
    shape, wanted = (example.axes.shape(each.shape) for each in (output.tensor, example.expected))
    if output.tensor.shape != example.expected.shape:
        return f"{shape}; {wanted} is asked", False
    what = shape if output.tensor.dim() else f"{float(output.tensor):.3g}"
    if not example.compares_values:
        return what, True
    alike = output.tensor.is_floating_point() == example.expected.is_floating_point()
    right = alike and tensor_fingerprint(output.tensor).agrees(tensor_fingerprint(example.expected))
    return f"{what}: {'the right numbers' if right else 'the right shape, other numbers'}", right
