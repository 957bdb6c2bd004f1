"""Put a student's attention into GPT-2. GPT-2's layers have biases; those of the lesson have none.

The student's class is built with one extra head, and so with hd extra channels. In its input, the
first extra channel is always 1 and the others are 0. So the column of `qkv.weight` for the first
extra channel can hold GPT-2's biases of q, k and v. In the extra head, q and k are 0 and v copies
the 1. The weights of a token add up to 1, so the first number of the head's output is 1. The column
of `proj.weight` for this number holds the bias of GPT-2's projection. The extra channels of the
output are dropped.

`compare_with_own` lets GPT-2 write with these modules, which run in the student's box, and with its
own attention. `gpt2_example` is a call for `course plot`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from ..box.connection import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, InitBlock, Output, Reply, RunBlock, dtype_name
from ..checks.explain_exceptions import kind_name, sanitize
from ..course import CourseError, Exercise
from ..files import CourseFault
from ..judge.redact_hidden_inputs import axes_of
from ..submission import Source
from ..submission.source import in_cells
from .check_and_keep_result import OwnAttempt
from .choose_example_calls import Example, weights_by_call
from .gpt2_model import GPT2, Attention, continue_text
from .gpt2_weights import PublishedGPT2
from .loaded_attempt import (
    AttemptStopped,
    exception_sentence,
    own_loaded_attempt,
)
from .pictures import MOST
from .trace import Followed
from .train_model import SENTENCE

NEW_TOKENS = 30  # that GPT-2 writes after the prompt
PLOTTED_BLOCK = 4  # in the published model, one of its heads looks one token back
ROUNDING = 1e-4  # of the largest logit: float32 computes a right attention in another order
# The limit of one reply. The box allows four times as much for all replies of an attempt together.
# For 1024 tokens, the 12 blocks send 78 MiB as float64, and they do so 31 times: 2.4 GiB.
REPLY_MIB = 640


def widened(x: Tensor, head_dim: int) -> Tensor:
    """Return (B, T, C + hd): the channels, one channel of ones, and channels of zeros."""
    return F.pad(F.pad(x, (0, 1), value=1.0), (0, head_dim - 1))


def block_build(exercise: Exercise, model: GPT2, number: int) -> Build:
    """Return the Build of the student's module with the weights of a block, and one more head."""
    assert exercise.train is not None
    C, wide = model.sizes.n_embd, model.sizes.n_embd + model.sizes.head_dim
    block = f"h.{number}.attn"
    qkv = torch.zeros(3, wide, wide)  # for each of q, k and v: rows of outputs, columns of inputs
    qkv[:, :C, :C] = model.weights[f"{block}.c_attn.weight"].T.reshape(3, C, C)
    qkv[:, :C, C] = model.weights[f"{block}.c_attn.bias"].view(3, C)
    qkv[2, C, C] = 1.0  # the new head's v copies the channel of ones
    proj = torch.zeros(wide, wide)
    proj[:C, :C] = model.weights[f"{block}.c_proj.weight"].T
    proj[:C, C] = model.weights[f"{block}.c_proj.bias"]
    sizes = {"n_head": model.sizes.n_head + 1, "block_size": model.sizes.n_positions}
    state = {"qkv.weight": qkv.flatten(0, 1), "proj.weight": proj}
    target = exercise.train.module
    return Build(target, kwargs={"n_embd": wide, **sizes}, state=state, skip_init=True)


@contextmanager
def own_attention(
    box: Box, limits: Limits, source: Source, exercise: Exercise, model: GPT2
) -> Iterator[Attention]:
    """Build the student's module for each block of GPT-2, in a process of the box.

    The yielded function calls the module of a block.

    Args:
        box: The box.
        limits: The limits. That on replies becomes REPLY_MIB.
        source: The attempt.
        exercise: The exercise.
        model: The GPT-2.

    Raises:
        CourseFault: The attempt cannot be imported or its module does not fit, here or later in
            this context. The text has one sentence with the reason and the student's line.
    """
    sizes = model.sizes
    try:
        with own_loaded_attempt(box, replace(limits, reply_mib=REPLY_MIB), source) as attempt:
            for number in range(sizes.n_layer):
                build = block_build(exercise, model, number)
                reply = attempt.reply_to(InitBlock(build), "while it was built for GPT-2")
                if problem := misfit(reply, build, source):
                    raise AttemptStopped(problem)

            def attention(number: int, x: Tensor) -> Tensor:
                at, wide_x = f"in block {number + 1} of GPT-2", widened(x, sizes.head_dim)
                output = attempt.reply_to(RunBlock(number, wide_x), at).outputs[0]
                if problem := _output_problem(output, wide_x):
                    raise AttemptStopped(f"{build.target} returns {problem}, {at}.")
                assert output.tensor is not None
                return output.tensor[..., : sizes.n_embd]

            yield attention
    except AttemptStopped as stopped:
        raise CourseFault(in_cells(str(stopped), source)) from None


def _output_problem(output: Output, x: Tensor) -> str:
    """Return the fault of a module's output for this input, or ""."""
    y = output.tensor
    if y is None:
        return f"{kind_name(output.came)}, where a tensor (B, T, C) is expected"
    if y.shape != x.shape or y.dtype != x.dtype:
        actual, expected = (f"{dtype_name(t.dtype)} {tuple(t.shape)}" for t in (y, x))
        return f"{actual}, where (B, T, C) is expected: {expected}"
    if not y.isfinite().all():
        return "NaN or infinite numbers, and GPT-2 can write nothing with these"
    return ""


def misfit(reply: Reply, build: Build, source: Source) -> str:
    """Return a sentence about the first weight of GPT-2 that a module does not have, or "".

    The module may have the weight in another shape or under another name. The sentence then names
    the parameter and its line.
    """
    state = build.state or {}
    for name in [name for facts in reply.modules for name in facts.unloaded if name in state]:
        shape = tuple(state[name].shape)
        problem = f"GPT-2's weights do not fit: your {build.target} has no {name} "
        problem += f"of the shape {shape}"
        parameters = reply.modules[0].parameters
        candidates = [p for p in parameters if p == name or p not in state]
        candidates.sort(key=lambda p: (p != name, parameters[p].shape != shape))
        for candidate in candidates[:1]:
            problem += f"; it has {sanitize(candidate)} of {parameters[candidate].shape}"
            assigns = re.compile(rf"\bself\.{re.escape(candidate.partition('.')[0])}\s*[:=,]")
            lines = (at for at, code in enumerate(source.lines, 1) if assigns.search(code))
            problem += next((f", which is written on line {line}" for line in lines), "")
        width = build.kwargs["n_embd"]
        return f"{problem}. Here C is {width}, with one extra head for GPT-2's biases."
    return ""


@dataclass(frozen=True)
class Comparison:
    """A text that GPT-2 wrote with its own attention, and one with the student's.

    Attributes:
        expected: The text with GPT-2's own attention. It begins with the prompt.
        actual: The text with the student's.
        difference: The largest difference of the logits on `expected`, between both attentions.
        is_rounding: Whether the difference is as small as rounding.
    """

    expected: str
    actual: str
    difference: float
    is_rounding: bool


@torch.no_grad()
def compare_with_own(
    box: Box, attempt: OwnAttempt, published: PublishedGPT2, prompt: str
) -> Comparison:
    """Let GPT-2 write after a prompt, with its own attention and with the student's.

    Raises CourseFault if the prompt has no tokens or too many, or if the attempt fails.
    """
    model = published.model
    ids: list[int] = published.tokenizer.encode(prompt).ids
    free = model.sizes.n_positions - len(ids)
    if not ids or free < 1:
        limit = f"GPT-2 can continue 1 to {model.sizes.n_positions - 1}"
        raise CourseError(f"the prompt has {len(ids)} tokens; {limit}. Next: course gpt2")

    count = min(NEW_TOKENS, free)
    expected_ids = continue_text(model, ids, count, model.attention)
    expected_logits = model.logits(model.hidden(torch.tensor([expected_ids]), model.attention))
    limits = attempt.course.limits.for_worker()
    with own_attention(box, limits, attempt.source, attempt.exercise, model) as attention:
        logits = model.logits(model.hidden(torch.tensor([expected_ids]), attention))  # (1, T, V)
        if not logits.isfinite().all():
            raise AttemptStopped("With your attention, GPT-2's logits are NaN or infinite.")
        actual_ids = continue_text(model, ids, count, attention)
    difference = float((logits - expected_logits).abs().max())
    is_rounding = difference <= ROUNDING * float(expected_logits.abs().max())
    expected, actual = map(published.tokenizer.decode, (expected_ids, actual_ids))
    return Comparison(expected, actual, difference, is_rounding)


@torch.no_grad()
def gpt2_example(exercise: Exercise, published: PublishedGPT2) -> Example:
    """Return an example for a picture of all heads of one block, with the tokens of SENTENCE.

    Its call builds the student's module with the weights of the block, and gives it the input that
    the block has in the model with GPT-2's own attention.
    """
    assert exercise.train is not None
    model = published.model
    sizes, number = model.sizes, min(PLOTTED_BLOCK, model.sizes.n_layer - 1)
    ids = published.tokenizer.encode(SENTENCE).ids[:MOST]
    inputs: list[Tensor] = []

    def note_input(block: int, x: Tensor) -> Tensor:
        inputs.append(x)
        return model.attention(block, x)

    model.hidden(torch.tensor([ids]), note_input)
    x = inputs[number]
    expected = F.pad(model.attention(number, x), (0, sizes.head_dim))  # zeros in the new channels
    build = block_build(exercise, model, number)
    build = replace(build, attributes=exercise.train.shown_with)
    call = Call(build, args=(widened(x, sizes.head_dim),), dtype="float32")
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    signature = signatures[build.target][0]
    axes = axes_of(signature, call, expected.shape, signatures)
    assert axes is not None
    return Example(
        call,
        expected,
        compares_values=True,
        signature=signature,
        axes=axes,
        tokens=tuple(published.tokenizer.decode([id_]).strip() or "·" for id_ in ids),
        description=f"“{SENTENCE}”, block {number + 1} of {sizes.n_layer} of GPT-2",
        heads=sizes.n_head,
    )


def plot_problem(followed: Followed, source: Source) -> str:
    """Return a sentence that says why no heads of GPT-2 are drawn, or why they are wrong, or ""."""
    for example, traced in followed.traced_examples:
        if not example.heads or not isinstance(example.call.subject, Build):
            continue
        if raised := traced.reply.raised:
            return in_cells(exception_sentence(raised, "in GPT-2"), source)
        if problem := misfit(traced.reply, example.call.subject, source):
            return in_cells(problem, source)
        if weights_by_call(example, traced)[0] is None:
            return (
                "No heads of GPT-2 are drawn: your module makes no table of weights for each head. "
                "It can still be right."
            )
    return ""
