"""Fingerprints of replies: enough to recognise a reply, without code and without the full values of mutants."""

from __future__ import annotations

import math
import re
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from torch import Tensor

from ..box.worker.answers import Raised, Reply
from ..box.worker.messages import Build, Call
from ..checks.explain import KINDS, is_refusal, kind_of
from ..checks.projection import project

TOLERANCE = 1e-4  # of a tensor's norm: a projection adds up the rounding errors of many values
TWIN = "its twin"  # the attribute of a module that differs from its twin in weights only
SMALLEST = 5e-3  # the norm of what is as good as zero: what is left of numbers that cancel differs by processor

Facet = Literal[
    "outputs", "dtype", "gradients", "argument_gradients", "mutated", "parameters", "attributes", "fused", "softmax", "square"
]  # fmt: skip
_FACETS: tuple[Facet, ...] = get_args(Facet)
_SELDOM = ("softmax", "square", "undefined")


class TensorFingerprint(BaseModel):
    """A tensor's shape and a few random projections. Tensors with the same fingerprint are the same to rounding."""

    model_config = ConfigDict(frozen=True)
    kind: str
    shape: tuple[int, ...] | None = None
    extremes: str = ""
    projections: tuple[float, ...] = ()
    norm: float = 0.0

    def agrees(self, other: TensorFingerprint) -> bool:
        """Whether both are fingerprints of the same values, to rounding."""
        if (self.kind, self.shape, self.extremes) != (other.kind, other.shape, other.extremes):
            return False
        if len(self.projections) != len(other.projections):  # one of them is on the meta device and has no values
            return False
        finite = math.isfinite(self.norm) and math.isfinite(other.norm)
        if not finite and not _is_near(self.norm, other.norm, 0.0):
            return False
        bound = TOLERANCE * max(self.norm, other.norm, SMALLEST) if finite else 0.0
        return all(_is_near(a, b, bound) for a, b in zip(self.projections, other.projections, strict=True))


def _is_near(a: float, b: float, bound: float) -> bool:
    """Whether two numbers differ by at most `bound`. NaN and infinities equal only themselves."""
    if math.isfinite(a) and math.isfinite(b):
        return abs(a - b) <= bound
    return a == b or (math.isnan(a) and math.isnan(b))


class ReplyFingerprint(BaseModel):
    """The fingerprint of a reply, facet by facet."""

    model_config = ConfigDict(frozen=True)
    raised: str | None = None  # "refused", "kind N" or "other"
    outputs: tuple[TensorFingerprint, ...] = ()
    dtype: tuple[str | None, ...] = ()
    gradients: dict[str, TensorFingerprint | None] = {}
    mutated: tuple[str, ...] = ()
    parameters: dict[str, tuple[int, ...]] = {}
    attributes: dict[str, str] = {}
    fused: bool = False
    softmax: bool = False  # whether a kernel of softmax, or of its logarithm, did the work
    square: bool = False  # whether a tensor was made on the way that has the longest axis of the answers twice
    undefined: bool = False  # whether NaN is among the answers: which gradients are NaN depends on how that is written

    @model_serializer(mode="wrap")
    def _without_what_is_seldom(self, serialize: SerializerFunctionWrapHandler) -> dict[str, object]:
        """In a file, what few replies have stands with these alone."""
        found: dict[str, object] = serialize(self)
        return {name: value for name, value in found.items() if value or name not in _SELDOM}

    def agrees(self, other: ReplyFingerprint, facets: tuple[Facet, ...]) -> bool:
        """Whether both agree in these facets. An exception of unknown kind agrees with nothing."""
        if self.raised or other.raised:
            return self.raised == other.raised != "other"
        return all(self._agrees_in(facet, other) for facet in facets)

    def is_same(self, other: ReplyFingerprint) -> bool:
        """Whether both are the same in every facet, numbers to rounding, so that storing one of them suffices."""
        if self is other:
            return True
        if self.raised or other.raised:
            return self.raised == other.raised
        return all(self._agrees_in(facet, other) for facet in _FACETS)

    def _agrees_in(self, facet: Facet, other: ReplyFingerprint) -> bool:
        if facet == "outputs":
            pairs = zip(self.outputs, other.outputs, strict=False)
            return len(self.outputs) == len(other.outputs) and all(a.agrees(b) for a, b in pairs)
        if facet in ("gradients", "argument_gradients"):
            if self.undefined and other.undefined:
                return True
            names, others = (
                [name for name in each.gradients if facet == "gradients" or is_argument(name)] for each in (self, other)
            )
            return {*names} == {*others} and all(
                _same_gradient(self.gradients[name], other.gradients[name], self) for name in names
            )
        return bool(getattr(self, facet) == getattr(other, facet))


def fingerprint_of(reply: Reply) -> ReplyFingerprint:
    """The fingerprint of a reply."""
    facts = reply.modules[0] if reply.modules else None
    return ReplyFingerprint(
        raised=None if reply.raised is None else _raised(reply.raised),
        outputs=tuple(_tensor_fingerprint(o.kind, o.tensor, o.shape) for o in reply.outputs),
        dtype=tuple(o.dtype for o in reply.outputs),
        gradients={
            name: None if g is None else _tensor_fingerprint("tensor", g, None) for name, g in reply.gradients.items()
        },
        mutated=reply.mutated,
        parameters={} if facts is None else {name: entry.shape for name, entry in facts.parameters.items()},
        attributes=attributes_of(reply),
        undefined=any(o.tensor is not None and bool(o.tensor.isnan().any()) for o in reply.outputs),
        **operations_of(reply),
    )


def operations_of(reply: Reply) -> dict[str, bool]:
    """What a fingerprint has of the operations that ran."""
    seen = reply.operations
    return {
        "fused": bool(seen and seen.fused),
        "softmax": bool(seen and any("softmax" in name for name in seen.kernels)),
        "square": _makes_a_square(reply),
    }


def _makes_a_square(reply: Reply) -> bool:
    """Whether a tensor on the way has two axes of the length of the longest one in the answers, or one more, or one that
    holds both."""
    sizes = [size for output in reply.outputs for size in output.shape or ()]
    if reply.operations is None or not sizes:
        return False
    T = max(sizes)
    shapes = reply.operations.shapes
    return T > 1 and any(
        sum(size in (T, T + 1) for size in shape) > 1 or any(size and size % T**2 == 0 for size in shape)
        for shape in shapes
    )


def has_no_numbers(reply: ReplyFingerprint) -> bool:
    """Whether an answer is on the meta device."""
    return any(output.shape is not None and not output.projections for output in reply.outputs)


def attributes_of(reply: Reply) -> dict[str, str]:
    """The attributes of the first module that were asked for, with whatever else says how it was left; and whether it
    is as its twin."""
    if not reply.modules:
        return {}
    facts, seen = reply.modules[0], reply.operations
    found = {name: str(value) for name, value in facts.attributes.items()}
    if found:
        found |= {"its mode": f"training={facts.training}", "its weights": f"changed={facts.changed}"}
        found["gradients"] = f"recorded={bool(seen and seen.recorded)}"
    return found | ({TWIN: "alike"} if facts.alike else {})


def fingerprint_beside(right: ReplyFingerprint, call: Call, reply: Reply) -> ReplyFingerprint:
    """The fingerprint of an attempt's or a mutant's reply.

    A RuntimeError counts as a refusal if the reference refuses the call: a mask that is too small for T is refused in this way.
    Where the reference's answer has no numbers, of one that has some it counts that it has: another mistake made them.
    """
    found, raised = fingerprint_of(reply), reply.raised
    late = raised is not None and raised.stage == "call" and "RuntimeError" in raised.bases
    if late and isinstance(call.subject, Build) and right.raised == "refused":
        return found.model_copy(update={"raised": "refused"})
    if has_no_numbers(right):
        return found.model_copy(update={"outputs": tuple(_without_numbers(each) for each in found.outputs)})
    return found


def _without_numbers(output: TensorFingerprint) -> TensorFingerprint:
    if not output.projections:
        return output
    return TensorFingerprint(kind=output.kind, shape=output.shape, projections=(0.0,))


def is_argument(name: str) -> bool:
    """Whether a gradient is that of a tensor that is passed: args.0 or then.0.args.0, and not args.0.weight."""
    return re.fullmatch(r"(then\.\d+\.)?args\.\d+", name) is not None


def _same_gradient(a: TensorFingerprint | None, b: TensorFingerprint | None, whole: ReplyFingerprint) -> bool:
    if a is None or b is None:
        return a is b
    largest = max((g.norm for g in whole.gradients.values() if g is not None), default=0.0)
    floor = a.model_copy(
        update={"norm": largest}
    )  # so that a gradient that is zero in exact arithmetic is compared absolutely
    return floor.agrees(b)


def _raised(raised: Raised) -> str:
    if is_refusal(raised):
        return "refused"
    kind = kind_of(raised)
    return "other" if kind is None else f"kind {KINDS.index(kind)}"


def tensor_fingerprint(tensor: Tensor) -> TensorFingerprint:
    """The fingerprint of a tensor."""
    return _tensor_fingerprint("tensor", tensor, None)


def _tensor_fingerprint(kind: str, tensor: Tensor | None, shape: tuple[int, ...] | None) -> TensorFingerprint:
    if tensor is None:
        return TensorFingerprint(kind=kind, shape=shape)
    seen = project(tensor)
    return TensorFingerprint(
        kind=kind, shape=tuple(tensor.shape), extremes=seen.extremes, projections=seen.numbers, norm=seen.norm
    )
