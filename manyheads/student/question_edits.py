"""Questions about an edit of the student's code: what comes of it, and which of four edits comes to one thing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..diagnosis.reached_parts import name_of
from .question import Observe, Option, Question, Version, ask
from .question_lines import ChangedLine, nodes_of
from .question_versions import Material
from .small_calls import Small

SAME_TO = 1e-5  # the largest difference of numbers that count as the same, relative to the largest of them

# What an edit of one line does.

RAISES, SHAPE, NUMBERS, NOTHING = (
    "an exception",
    "a result of another shape",
    "the same shape with other numbers",
    "the same result as before",
)
_WHY_NOT = {
    RAISES: "It would raise if sizes met that do not fit.",
    SHAPE: "The shape would change if the result had other axes, or one of another size.",
    NUMBERS: "Numbers would change if others were computed, or the same stood elsewhere.",
    NOTHING: "It would stay the same if the line did not matter for this call.",
}


_TRIVIAL = frozenset(
    {"NameError", "UnboundLocalError", "AttributeError", "TypeError"}
)  # no tensor is needed to see these


def outcome(reply: Reply | None, own: Reply) -> str:
    """Return what becomes of the first result beside the student's own; "" where it is nothing of these."""
    if reply is None:
        return ""
    if reply.raised is not None:
        return "" if reply.raised.type in _TRIVIAL else RAISES
    mine, theirs = own.outputs[0].tensor, reply.outputs[0].tensor if len(reply.outputs) == len(own.outputs) else None
    if mine is None or theirs is None or (mine.dim() and not theirs.dim()):  # no tensor: a list, or a number
        return ""
    if mine.shape != theirs.shape:
        return SHAPE
    return NUMBERS if not is_same(mine, theirs) else NOTHING if mine.dtype == theirs.dtype else ""


def is_same(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors of one shape hold the same numbers, to rounding."""
    a, b = a.double(), b.double()
    largest = max(float(a[a.isfinite()].abs().max()) if a.isfinite().any() else 0.0, 1.0)
    return bool(torch.allclose(a, b, rtol=0.0, atol=SAME_TO * largest, equal_nan=True))


def _outcome_of(call: Call) -> Observe:
    def observe(version: Version, own: Version) -> str:
        return outcome(version.reply(call), own.reply(call))

    return observe


def _outcomes(material: Material, small: Small) -> dict[str, list[ChangedLine]]:
    """Return the versions by what they do to this call."""
    replies = material.replies(small.call, [v.edit.after for v in small.versions])
    found: dict[str, list[ChangedLine]] = {}
    for version, reply in zip(small.versions, replies, strict=True):
        found.setdefault(outcome(reply, small.reply), []).append(version)
    unset = (NUMBERS, NOTHING) if leaves_unset(material) else ()
    return {seen: some for seen, some in found.items() if seen and seen not in unset}


def leaves_unset(material: Material) -> bool:
    """Return whether an edit may leave memory that is not set: its numbers are chance."""
    called = (name_of(node) for node in nodes_of(material.source.source) if isinstance(node, ast.Call))
    return any("empty" in name for name in called)


def becomes(version: ChangedLine) -> str:
    """Return an edit in words."""
    return f"line {version.number} becomes `{version.after}`"


def _counts(small: Small) -> str:
    return " Only its first result counts." if len(small.reply.outputs) > 1 else ""


def edit_outcome(material: Material) -> Iterator[Question | None]:
    """Ask what one edit of the code changes."""
    for small in material.smalls:
        outcomes = _outcomes(material, small)
        for seen, versions in outcomes.items():
            for version in versions[:3]:
                observe = _outcome_of(small.call)
                right = Option(
                    seen, "That was seen when your code was run with that edit.", version.edit, observe=observe
                )
                wrong = [
                    Option(other, f"{why} Here it comes to {seen}.") for other, why in _WHY_NOT.items() if other != seen
                ]
                text = f"{small.runs} In your code {becomes(version)}. What comes of it?{_counts(small)}"
                yield ask("edit_outcome", text, right, wrong, material.rng, material.line(version.number))


_ASKED_OUTCOMES = {
    RAISES: "raises an exception",
    SHAPE: "gives a result of another shape",
    NUMBERS: "keeps the shape and gives other numbers",
    NOTHING: "gives the same result as before",
}


def edit_with_outcome(material: Material) -> Iterator[Question | None]:
    """Ask which of four edits has one outcome."""
    for small in material.smalls:
        observe, outcomes = _outcome_of(small.call), _outcomes(material, small)
        options = {
            seen: [
                Option(f"L{becomes(v)[1:]}", f"With that edit it {words}.", v.edit, observe=observe, shows=seen)
                for v in outcomes.get(seen, ())
            ]
            for seen, words in _ASKED_OUTCOMES.items()
        }
        for wanted in (seen for seen, some in options.items() if some):
            wrong = [option for seen, some in options.items() if seen != wanted for option in some]
            material.rng.shuffle(wrong)
            text = f"{small.runs} Which of these edits of your code {_ASKED_OUTCOMES[wanted]}?{_counts(small)}"
            yield ask("edit_with_outcome", text, options[wanted][0], wrong, material.rng)
