"""Fingerprints of replies: enough to recognise a reply, without the full values of mutants."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from torch import Tensor

from ..box.worker.messages import Build, Call, Output, Raised, Reply
from ..checks.answer import TABLES
from ..checks.explain import KINDS, is_refusal, kind_of
from ..checks.projection import project

# Relative to a tensor's norm. A projection adds up the rounding errors of many values.
PROJECTION_TOLERANCE = 1e-4
# For two replies of which only one is stored: a reply that agrees with one agrees with the other.
SAME = PROJECTION_TOLERANCE / 2
STORED = 2 * PROJECTION_TOLERANCE  # for two stored replies, which were both rounded to sixteen bits
# A smaller norm counts as this one. If numbers cancel, the remainder differs between processors.
SMALLEST = 5e-3

ReplyField = str  # a name of REPLY_FIELDS
# the sizes in a message: 12, and both numbers of 10x12
SIZES = re.compile(r"(?<![\w.])\d{1,6}(?=\b|x)|(?<=x)\d{1,6}\b")
_READ, _MOST = 300, 8  # characters of a message, and numbers


@dataclass(frozen=True, slots=True)
class TensorFingerprint:
    """A tensor's shape and a few random projections.

    Tensors with the same fingerprint are the same to rounding.
    """

    kind: str
    shape: tuple[int, ...] | None = None
    extremes: str = ""
    projections: tuple[float, ...] = ()
    norm: float = 0.0

    def agrees(self, other: TensorFingerprint, tolerance: float = PROJECTION_TOLERANCE) -> bool:
        """Return whether both are fingerprints of the same values, to rounding."""
        if (self.kind, self.shape, self.extremes) != (other.kind, other.shape, other.extremes):
            return False
        # a tensor on the meta device has no projections
        if len(self.projections) != len(other.projections):
            return False
        finite = math.isfinite(self.norm) and math.isfinite(other.norm)
        if not finite and not _is_near(self.norm, other.norm, 0.0):
            return False
        bound = tolerance * max(self.norm, other.norm, SMALLEST) if finite else 0.0
        pairs = zip(self.projections, other.projections, strict=True)
        return all(abs(a - b) <= bound or _is_near(a, b, bound) for a, b in pairs)


def _is_near(a: float, b: float, bound: float) -> bool:
    """Return whether two numbers differ by at most `bound`.

    NaN and infinities equal only themselves.
    """
    if math.isfinite(a) and math.isfinite(b):
        return abs(a - b) <= bound
    return a == b or (math.isnan(a) and math.isnan(b))


def _parameters(reply: Reply) -> dict[str, tuple[int, ...]]:
    return (
        {name: entry.shape for name, entry in reply.modules[0].parameters.items()}
        if reply.modules
        else {}
    )


def _attributes(reply: Reply) -> dict[str, str]:
    """Return the requested attributes of the first module, and its state after the call."""
    if not reply.modules:
        return {}
    facts, operations = reply.modules[0], reply.operations
    attributes = {name: str(value) for name, value in facts.attributes.items()}
    if attributes:
        attributes |= {
            "its mode": f"training={facts.training}",
            "its weights": f"changed={facts.changed}",
        }
        attributes["gradients"] = f"recorded={bool(operations and operations.recorded)}"
    return attributes


def _makes_a_square(reply: Reply) -> bool:
    """Return whether an intermediate tensor is as large as a (T, T) matrix of scores.

    T is the longest axis of the outputs. Such a tensor has two axes of T or T + 1, or one axis that
    is a multiple of T².
    """
    sizes = [size for output in reply.outputs for size in output.shape or ()]
    T = max(sizes, default=0)
    if reply.operations is None or T < 2:
        return False
    for shape in reply.operations.shapes:
        if sum(size in (T, T + 1) for size in shape) > 1:
            return True
        if any(size and size % T**2 == 0 for size in shape):
            return True
    return False


Evidence = str | tuple[str, str]


def _plain(reader: Callable[[Reply], object], default: Any = None, evidence: Evidence = "") -> Any:
    """Declare a field of a fingerprint that is compared by equality.

    No other code is needed to record it, to compare it, or to use it as an oracle.

    Args:
        reader: returns the field's value for a reply.
        default: the value for a reply without the field, or None for an empty mapping.
        evidence: the message to a student whose reply has another value, or "" if `aspects` writes
            a better one. With two messages, the first one is for a field that is empty or False in
            the reference's reply, and the second one is for all others.
    """
    metadata = {"of": reader, "evidence": evidence}
    return (
        field(default_factory=dict, metadata=metadata)
        if default is None
        else field(default=default, metadata=metadata)
    )


@dataclass(frozen=True)
class ReplyFingerprint:
    """The fingerprint of a reply, field by field.

    Attributes:
        raised: None, "refused", "other", or "kind N" with the sizes in the message, because the
            sizes that did not fit show where the exception comes from.
        undefined: whether an output contains NaN. Then the way in which the formula is written
            decides which gradients are NaN.
        mutated: the arguments that the call has changed.
        fused: whether PyTorch's fused attention ran.
        softmax: whether PyTorch's softmax ran.
        square: whether an intermediate tensor was as large as a matrix of scores.
    """

    raised: str | None = None
    outputs: tuple[TensorFingerprint, ...] = ()
    gradients: Mapping[str, TensorFingerprint | None] = field(default_factory=dict)
    undefined: bool = False
    dtype: tuple[str | None, ...] = _plain(
        lambda reply: tuple(output.dtype for output in reply.outputs), ()
    )
    mutated: tuple[str, ...] = _plain(lambda reply: reply.mutated, ())
    parameters: Mapping[str, tuple[int, ...]] = _plain(_parameters)
    attributes: Mapping[str, str] = _plain(_attributes)
    fused: bool = _plain(
        lambda reply: bool(reply.operations and reply.operations.fused),
        False,
        (
            "PyTorch's fused attention is used where the math should be written out",
            "PyTorch's fused attention is not used",
        ),
    )
    softmax: bool = _plain(
        lambda reply: bool(
            reply.operations and any("softmax" in name for name in reply.operations.kernels)
        ),
        False,
        (
            "PyTorch's softmax is used where it should be written out",
            "PyTorch's softmax is not used",
        ),
    )
    square: bool = _plain(
        _makes_a_square,
        False,
        "on the way a tensor is made in which two axes are as long as the sequence",
    )

    def agrees(self, other: ReplyFingerprint, facets: tuple[ReplyField, ...]) -> bool:
        """Return whether both agree in these fields.

        An exception of unknown kind agrees with nothing.
        """
        if self.raised or other.raised:
            return self.raised == other.raised != "other"
        return all(self._agrees_in(facet, other) for facet in facets)

    def is_same(
        self,
        other: ReplyFingerprint,
        facets: tuple[ReplyField, ...] | None = None,
        tolerance: float = SAME,
    ) -> bool:
        """Return whether it is enough to store one of the two.

        They must be equal in these fields, or in all. Numbers are equal to rounding.
        """
        if self is other:
            return True
        if self.raised or other.raised:
            return self.raised == other.raised
        return all(self._agrees_in(facet, other, tolerance) for facet in facets or REPLY_FIELDS)

    def _agrees_in(
        self, facet: ReplyField, other: ReplyFingerprint, tolerance: float = PROJECTION_TOLERANCE
    ) -> bool:
        if facet == "outputs":
            pairs = zip(self.outputs, other.outputs, strict=False)
            return len(self.outputs) == len(other.outputs) and all(
                a.agrees(b, tolerance) for a, b in pairs
            )
        if facet in ("gradients", "argument_gradients"):
            if self.undefined and other.undefined:
                return True
            names = {n for n in self.gradients if facet == "gradients" or is_argument(n)}
            other_names = {n for n in other.gradients if facet == "gradients" or is_argument(n)}
            return names == other_names and all(
                _same_gradient(self.gradients[name], other.gradients[name], self, tolerance)
                for name in names
            )
        return bool(getattr(self, facet) == getattr(other, facet))


PLAIN: Mapping[str, Callable[[Reply], object]] = {
    facet.name: facet.metadata["of"] for facet in fields(ReplyFingerprint) if "of" in facet.metadata
}
EVIDENCE: Mapping[str, Evidence] = {
    facet.name: text
    for facet in fields(ReplyFingerprint)
    if (text := facet.metadata.get("evidence"))
}
# In the order in which a release adds them to a check to tell mutants apart: first the returned
# values, then the way in which they were computed.
REPLY_FIELDS: tuple[ReplyField, ...] = tuple(
    dict.fromkeys(["outputs", "dtype", "gradients", "argument_gradients", *PLAIN])
)


def fingerprint_of(reply: Reply) -> ReplyFingerprint:
    """Return the fingerprint of a reply."""
    facets: dict[str, Any] = {name: reader(reply) for name, reader in PLAIN.items()}
    outputs = tuple(_tensor_fingerprint(o.kind, o.tensor, o.shape) for o in reply.outputs)
    odd = [
        o.tensor
        for o, fingerprint in zip(reply.outputs, outputs, strict=True)
        if fingerprint.extremes and o.tensor is not None
    ]
    gradients = {
        name: None if g is None else tensor_fingerprint(g) for name, g in reply.gradients.items()
    }
    return ReplyFingerprint(
        raised=None if reply.raised is None else _raised(reply.raised),
        outputs=outputs,
        gradients=gradients,
        undefined=any(bool(tensor.isnan().any()) for tensor in odd),
        **facets,
    )


def has_no_numbers(reply: ReplyFingerprint) -> bool:
    """Return whether an answer is on the meta device."""
    return any(output.shape is not None and not output.projections for output in reply.outputs)


def as_due(reply: Reply, expected: ReplyFingerprint) -> Reply:
    """Return the reply without the numbers of an unexpected ndarray, list or text.

    Only the type of such an output is evidence.
    """
    alien = TABLES.difference(output.kind for output in expected.outputs)
    return replace(
        reply, outputs=tuple(Output(o.kind) if o.kind in alien else o for o in reply.outputs)
    )


def fingerprint_beside(expected: ReplyFingerprint, call: Call, reply: Reply) -> ReplyFingerprint:
    """Return the fingerprint of an attempt's or a mutant's reply.

    A RuntimeError counts as a refusal if the reference refuses the call: a mask that is too small
    for T is refused in this way. If the reference's answer has no numbers and the reply has some,
    all numbers count as equal: only the fact that there are numbers is compared, because another
    mistake may have changed them.
    """
    fingerprint, raised = fingerprint_of(as_due(reply, expected)), reply.raised
    late = raised is not None and raised.stage == "call" and "RuntimeError" in raised.bases
    if late and isinstance(call.subject, Build) and expected.raised == "refused":
        return replace(fingerprint, raised="refused")
    if has_no_numbers(expected):
        bare = (
            TensorFingerprint(o.kind, o.shape, projections=(0.0,)) if o.projections else o
            for o in fingerprint.outputs
        )
        return replace(fingerprint, outputs=tuple(bare))
    return fingerprint


def is_argument(name: str) -> bool:
    """Return whether a gradient belongs to a tensor argument.

    Its name is args.0 or then.0.args.0, and not args.0.weight.
    """
    return re.fullmatch(r"(then\.\d+\.)?args\.\d+", name) is not None


def _same_gradient(
    a: TensorFingerprint | None,
    b: TensorFingerprint | None,
    reply: ReplyFingerprint,
    tolerance: float,
) -> bool:
    if a is None or b is None:
        return a is b
    largest = max((g.norm for g in reply.gradients.values() if g is not None), default=0.0)
    # Relative to the largest gradient: one that is zero in exact arithmetic has only rounding.
    return replace(a, norm=largest).agrees(b, tolerance)


def _raised(raised: Raised) -> str:
    if is_refusal(raised):
        return "refused"
    error_kind = kind_of(raised)
    if error_kind is None:
        return "other"
    return " ".join(
        [f"kind {KINDS.index(error_kind)}", *SIZES.findall(raised.message[:_READ])[:_MOST]]
    )


def tensor_fingerprint(tensor: Tensor) -> TensorFingerprint:
    """Return the fingerprint of a tensor."""
    return _tensor_fingerprint("tensor", tensor, None)


def _tensor_fingerprint(
    kind: str, tensor: Tensor | None, shape: tuple[int, ...] | None
) -> TensorFingerprint:
    if tensor is None:
        return TensorFingerprint(kind=kind, shape=shape)
    projection = project(tensor)
    return TensorFingerprint(
        kind=kind,
        shape=tuple(tensor.shape),
        extremes=projection.extremes,
        projections=projection.numbers,
        norm=projection.norm,
    )
