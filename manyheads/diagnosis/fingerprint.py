"""Fingerprints of replies, and the comparison of two replies up to rounding.

A fingerprint is enough to recognise a reply, without code and without the full values of mutants.
It has a few random projections of each tensor. They identify equal values up to rounding, and
reveal little else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import torch
from torch import Tensor

from ..box.worker.messages import (
    Build,
    Call,
    DeviceArgument,
    Operations,
    Output,
    Raised,
    Reply,
)
from ..checks.answer import TABLES
from ..checks.asserts import TOLERANCE, difference
from ..checks.explain_exceptions import KINDS, is_refusal, kind_of

PROJECTIONS = 3
# More elements than any right answer has. This limits the time that a wrong answer costs the judge.
LARGEST = 1 << 20
# length -> how many sets of directions of at most this length are cached. The longest take 25 MB
# each, and 0.1 s to draw.
_CACHE_SIZES = {1 << 14: 512, 1 << 16: 16, LARGEST: 3}
FLOOR = -1e3  # scores are within ±50: after a softmax, anything below this is the same as -inf
# Anything above this counts as inf: it is near the limit of float32, and sums of squares must not
# overflow.
CEILING = 1e30
TINY = 1e-10  # a smaller projection or norm is only rounding


def with_infinities(tensor: Tensor) -> Tensor:
    """Return the tensor with values beyond FLOOR or CEILING replaced by infinities of their sign.

    A projection treats these values in the same way.
    """
    infinite = tensor.double().masked_fill(tensor <= FLOOR, -torch.inf)
    return infinite.masked_fill(tensor >= CEILING, torch.inf)


def _rounded_number(number: float) -> float:
    """Return the number rounded to six digits, or 0 if its size is at most TINY.

    Machines add in different orders, but all should record the same numbers.
    """
    return 0.0 if abs(number) <= TINY else float(f"{number:.6g}")


def _directions(length: int) -> Tensor:
    """Return (length, PROJECTIONS) pseudo-random numbers, the same in every run and machine.

    They are cached. The length is at most LARGEST.
    """
    cached_functions = _DIRECTIONS_UP_TO.items()
    return next(directions(length) for longest, directions in cached_functions if length <= longest)


def _draw_directions(length: int) -> Tensor:
    """Return (length, PROJECTIONS) pseudo-random numbers, newly drawn. See `_directions`."""
    # The seed is a hash of the length: any two machines draw the same numbers.
    seed = int.from_bytes(hashlib.sha256(str(length).encode()).digest()[:4], "big")
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(length, PROJECTIONS, generator=generator, dtype=torch.float64)


# for each length of _CACHE_SIZES the cached function for lengths up to it
_DIRECTIONS_UP_TO = {
    longest: lru_cache(maxsize=size)(_draw_directions) for longest, size in _CACHE_SIZES.items()
}

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
# A student writes messages: so much of one, and so many sizes in it, are recorded.
_MAX_CHARACTERS, _MAX_SIZES = 300, 8


@dataclass(frozen=True, slots=True)
class TensorFingerprint:
    """The fingerprint of an output or a gradient: its shape and a few random projections.

    Tensors with the same fingerprint are the same to rounding.

    Attributes:
        kind: "tensor", or the type of an output that is no tensor.
        shape: None if the output has no shape.
        extremes: a short hash of the positions of NaN, values above CEILING and values below FLOOR,
            or "" if there are none. For a tensor that is too large, its number of values.
        projections: projections of the other values. An output without numbers has none, such as a
            tensor on the meta device.
        norm: the Euclidean norm of the other values.
    """

    kind: str
    shape: tuple[int, ...] | None = None
    extremes: str = ""
    projections: tuple[float, ...] = ()
    norm: float = 0.0

    def agrees(self, other: TensorFingerprint, tolerance: float = PROJECTION_TOLERANCE) -> bool:
        """Return whether both have the same kind, shape and extremes, and nearly equal projections.

        Projections may differ by the tolerance, relative to the larger norm (at least SMALLEST).
        """
        if (self.kind, self.shape, self.extremes) != (other.kind, other.shape, other.extremes):
            return False
        if len(self.projections) != len(other.projections):
            return False
        bound = tolerance * max(self.norm, other.norm, SMALLEST)
        pairs = zip(self.projections, other.projections, strict=True)
        return all(abs(a - b) <= bound for a, b in pairs)


def tensor_fingerprint(tensor: Tensor, kind: str = "tensor") -> TensorFingerprint:
    """Return the fingerprint of a tensor of any dtype.

    If the tensor has more values than LARGEST, the fingerprint has only their number.
    """
    shape = tuple(tensor.shape)
    if tensor.numel() > LARGEST:
        return TensorFingerprint(kind, shape, f"{tensor.numel()} numbers", (0.0,) * PROJECTIONS)
    values = tensor.double().flatten()
    ordinary = (values > FLOOR) & (values < CEILING)  # NaN is neither
    extremes = ""
    if not bool(ordinary.all()):
        marks = ordinary.char() + 2 * values.isnan().char() + 4 * (values >= CEILING).char()
        extremes = hashlib.sha256(bytes(marks.tolist())).hexdigest()[:8]
        values = values.masked_fill(~ordinary, 0.0)
    projections = (values @ _directions(values.numel())).tolist()
    norm = _rounded_number(float(torch.linalg.vector_norm(values)))
    return TensorFingerprint(kind, shape, extremes, tuple(map(_rounded_number, projections)), norm)


def _parameters(reply: Reply) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the first module's parameters by name, or none without a module."""
    if not reply.modules:
        return {}
    return {name: entry.shape for name, entry in reply.modules[0].parameters.items()}


def _attributes(reply: Reply) -> dict[str, str]:
    """Return the requested attributes of the first module, and its state after the call, as texts.

    The state is its mode, whether its weights changed, and whether gradients were recorded. Return
    {} if the call requests no attributes or builds no module.
    """
    if not reply.modules:
        return {}
    facts = reply.modules[0]
    attributes = {name: str(value) for name, value in facts.attributes.items()}
    if attributes:
        attributes |= {
            "its mode": f"training={facts.training}",
            "its weights": f"changed={facts.changed}",
            "gradients": f"recorded={_operations(reply).recorded}",
        }
    return attributes


def _operations(reply: Reply) -> Operations:
    """Return the operations that ran, or an empty record if the call did not watch them."""
    return reply.operations or Operations(fused=False)


def _makes_a_square(reply: Reply) -> bool:
    """Return whether an intermediate tensor has the shape of a (T, T) matrix of scores.

    T is the longest axis of the outputs, and at least 2. Such a tensor has two axes of T or T + 1,
    or one axis that is a multiple of T².
    """
    sizes = [size for output in reply.outputs for size in output.shape or ()]
    T = max(sizes, default=0)
    if T < 2:
        return False
    for shape in _operations(reply).shapes:
        if sum(size in (T, T + 1) for size in shape) > 1:
            return True
        if any(size and size % T**2 == 0 for size in shape):
            return True
    return False


@dataclass(frozen=True)
class ReplyFingerprint:
    """The fingerprint of a reply, field by field.

    Attributes:
        raised: None, "refused", "other", or "kind N" with the sizes in the message, because the
            sizes that did not fit show where the exception comes from.
        outputs: the fingerprint of each output.
        gradients: the fingerprint of each gradient that the call asks for, by name. None if the
            gradient is None.
        has_nan: whether an output contains NaN. Then the way in which the formula is written
            decides which gradients are NaN.
        dtype: the dtype of each output, or None.
        mutated: the arguments that the call has changed.
        parameters: the shapes of the first module's parameters.
        attributes: the requested attributes of the first module, and its state after the call.
        fused: whether PyTorch's fused attention ran.
        softmax: whether PyTorch's softmax ran.
        square: whether an intermediate tensor had the shape of a matrix of scores.
    """

    raised: str | None = None
    outputs: tuple[TensorFingerprint, ...] = ()
    gradients: Mapping[str, TensorFingerprint | None] = field(default_factory=dict)
    has_nan: bool = False
    dtype: tuple[str | None, ...] = ()
    mutated: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    fused: bool = False
    softmax: bool = False
    square: bool = False

    @property
    def output_kinds(self) -> list[str]:
        """The kinds of all outputs, for example a tensor and a number."""
        return [output.kind for output in self.outputs]

    def agrees(self, other: ReplyFingerprint, fields: tuple[ReplyField, ...]) -> bool:
        """Return whether both agree in these fields, or raised the same.

        A reply that raised agrees only with an exception of the same kind and sizes. An exception
        of unknown kind ("other") agrees with nothing.
        """
        if self.raised or other.raised:
            return self.raised == other.raised != "other"
        return all(self._agrees_in(field_name, other) for field_name in fields)

    def is_same(
        self,
        other: ReplyFingerprint,
        fields: tuple[ReplyField, ...] | None = None,
        tolerance: float = SAME,
    ) -> bool:
        """Return whether two replies are the same, so that it is enough to store one.

        They must be equal in these fields, or in all if `fields` is None. Numbers are equal to
        rounding. Exceptions are the same if their `raised` is equal, also "other".
        """
        if self is other:
            return True
        if self.raised or other.raised:
            return self.raised == other.raised
        return all(
            self._agrees_in(field_name, other, tolerance) for field_name in fields or REPLY_FIELDS
        )

    def _agrees_in(
        self,
        field_name: ReplyField,
        other: ReplyFingerprint,
        tolerance: float = PROJECTION_TOLERANCE,
    ) -> bool:
        """Return whether both agree in one field.

        Outputs and gradients agree if they are equal to rounding, other fields if they are equal.
        If both replies have NaN in an output, their gradients agree in any case.
        """
        if field_name == "outputs":
            pairs = zip(self.outputs, other.outputs, strict=False)
            return len(self.outputs) == len(other.outputs) and all(
                a.agrees(b, tolerance) for a, b in pairs
            )
        if field_name in ("gradients", "argument_gradients"):
            if self.has_nan and other.has_nan:
                return True
            names = self._gradient_names(field_name)
            return names == other._gradient_names(field_name) and all(
                _same_gradient(self.gradients[name], other.gradients[name], self, tolerance)
                for name in names
            )
        return bool(getattr(self, field_name) == getattr(other, field_name))

    def _gradient_names(self, field_name: ReplyField) -> set[str]:
        """Return the names of all gradients, or those of tensor arguments for that field."""
        return {name for name in self.gradients if field_name == "gradients" or is_argument(name)}


# the fields that are compared by equality
PLAIN: tuple[ReplyField, ...] = (
    "dtype",
    "mutated",
    "parameters",
    "attributes",
    "fused",
    "softmax",
    "square",
)
# In the order in which a release adds them to a check to tell mutants apart: first the returned
# values, then the way in which they were computed.
REPLY_FIELDS: tuple[ReplyField, ...] = tuple(
    dict.fromkeys(["outputs", "dtype", "gradients", "argument_gradients", *PLAIN])
)


def fingerprint_of(reply: Reply) -> ReplyFingerprint:
    """Return the fingerprint of a reply."""
    outputs = []
    for output in reply.outputs:
        if output.tensor is None:
            outputs.append(TensorFingerprint(output.kind, output.shape))
        else:
            outputs.append(tensor_fingerprint(output.tensor, output.kind))
    gradients = {
        name: None if g is None else tensor_fingerprint(g) for name, g in reply.gradients.items()
    }
    operations = _operations(reply)
    return ReplyFingerprint(
        raised=None if reply.raised is None else _exception_fingerprint(reply.raised),
        outputs=tuple(outputs),
        gradients=gradients,
        has_nan=_has_nan(reply),
        dtype=tuple(output.dtype for output in reply.outputs),
        mutated=reply.mutated,
        parameters=_parameters(reply),
        attributes=_attributes(reply),
        fused=operations.fused,
        softmax=any("softmax" in name for name in operations.kernels),
        square=_makes_a_square(reply),
    )


def _has_nan(reply: Reply) -> bool:
    """Return whether an output contains NaN."""
    tensors = (output.tensor for output in reply.outputs)
    return any(tensor is not None and bool(tensor.isnan().any()) for tensor in tensors)


def has_no_numbers(reply: ReplyFingerprint) -> bool:
    """Return whether some output has a shape but no numbers: a tensor on the meta device."""
    return any(output.shape is not None and not output.projections for output in reply.outputs)


def without_unexpected_tables(reply: Reply, expected: ReplyFingerprint) -> Reply:
    """Return the reply with nothing but the type of each unexpected table.

    A table is an ndarray, a list, a tuple or a text (TABLES). It is unexpected if the reference
    returns none of this type. Then only its type is evidence.
    """
    unexpected = TABLES.difference(expected.output_kinds)
    outputs = (Output(o.kind) if o.kind in unexpected else o for o in reply.outputs)
    return replace(reply, outputs=tuple(outputs))


def comparable_fingerprint(
    expected: ReplyFingerprint, call: Call, reply: Reply
) -> ReplyFingerprint:
    """Return the fingerprint of an attempt's or a mutant's reply, to be compared with `expected`.

    It differs from `fingerprint_of` in three cases:

    1. An unexpected table has only its type (`without_unexpected_tables`).
    2. If the reference refuses a call of a module, a RuntimeError in the call counts as a refusal,
       too: PyTorch refuses a mask that is too small for T in this way. A RuntimeError while the
       module is built is not a refusal.
    3. If an output of the reference has no numbers (it is on the meta device), each output with
       numbers has the projection 0. So it is compared only whether there are numbers: another
       mistake may have changed them.
    """
    fingerprint, raised = fingerprint_of(without_unexpected_tables(reply, expected)), reply.raised
    is_refused_module = isinstance(call.subject, Build) and expected.raised == "refused"
    exception_types = raised.bases if raised is not None and raised.stage == "call" else ()
    if is_refused_module and "RuntimeError" in exception_types:
        return replace(fingerprint, raised="refused")
    if not has_no_numbers(expected):
        return fingerprint
    outputs = (
        TensorFingerprint(o.kind, o.shape, projections=(0.0,)) if o.projections else o
        for o in fingerprint.outputs
    )
    return replace(fingerprint, outputs=tuple(outputs))


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
    """Return whether two gradients are the same, or both None.

    Args:
        a: a gradient of the reply, or None.
        b: the gradient of the same tensor in another reply, or None.
        reply: the reply. Differences are relative to the largest norm of its gradients.
        tolerance: the largest relative difference.
    """
    if a is None or b is None:
        return a is b
    largest = max((g.norm for g in reply.gradients.values() if g is not None), default=0.0)
    # A gradient that is zero in exact arithmetic has only rounding.
    return replace(a, norm=largest).agrees(b, tolerance)


def _exception_fingerprint(raised: Raised) -> str:
    """Return the value of `ReplyFingerprint.raised` for an exception.

    At most _MAX_SIZES sizes are read, from the first _MAX_CHARACTERS of the message.
    """
    exception_kind = _exception_kind(raised)
    if exception_kind in ("refused", "other"):
        return exception_kind
    sizes = SIZES.findall(raised.message[:_MAX_CHARACTERS])
    return " ".join([exception_kind, *sizes[:_MAX_SIZES]])


def _exception_kind(raised: Raised) -> str:
    """Return "refused", "kind N" for a known kind of exceptions, or "other"."""
    if is_refusal(raised):
        return "refused"
    error_kind = kind_of(raised)
    return "other" if error_kind is None else f"kind {KINDS.index(error_kind)}"


def is_comparable(call: Call) -> bool:
    """Return whether the values of a reply to this call can be compared with a mutant's.

    They can unless the call has one of these properties:

    1. It is random, only builds a module, or builds one in training mode.
    2. It sets a dtype, uses autocast, the meta device or a GPU, or measures memory.
    3. A module draws its own weights, which depend on the order in which it makes its layers.
    """
    if call.random or call.only_build or call.dtype or call.autocast or call.memory:
        return False
    for value in call.inputs:
        if isinstance(value, Build) and (value.training or value.device == "meta"):
            return False
        if isinstance(value, Tensor) and value.is_meta:
            return False
    return not asks_for_a_gpu(call) and not has_own_weights(call)


def replies_agree(a: Reply, b: Reply) -> bool:
    """Return whether two replies are the same to rounding, or raise the same kind of exception.

    An exception of unknown kind agrees with nothing. Gradients are not compared if an output of `b`
    contains NaN.
    """
    if a.raised is not None and b.raised is not None:
        return _exception_kind(a.raised) == _exception_kind(b.raised) != "other"
    if a.raised is not None or b.raised is not None:
        return False
    if len(a.outputs) != len(b.outputs) or not all(map(_same_output, a.outputs, b.outputs)):
        return False
    if a.gradients.keys() != b.gradients.keys():
        return False
    # If an output contains NaN, the way in which the formula is written decides which gradients
    # are NaN, too.
    return _has_nan(b) or _same_gradients(a, b)


def has_own_weights(call: Call) -> bool:
    """Return whether the call builds a module without giving its weights."""
    return any(isinstance(value, Build) and value.state is None for value in call.inputs)


def asks_for_a_gpu(call: Call) -> bool:
    """Return whether the call passes a GPU as an argument, or builds a module on one.

    The judge has none, so it cannot make the same call to trusted code.
    """
    for value in call.inputs:
        if isinstance(value, DeviceArgument) and value.name == "cuda":
            return True
        if isinstance(value, Build) and value.device == "cuda":
            return True
    return False


def _same_output(a: Output, b: Output) -> bool:
    """Return whether two outputs are tensors with the same values, or no tensors of one type."""
    return _same_values(a.tensor, b.tensor) and (b.tensor is not None or a.kind == b.kind)


def _same_gradients(a: Reply, b: Reply) -> bool:
    """Return whether each gradient of `a` equals the gradient of `b` with its name, to rounding.

    Differences are relative to the largest number in the gradients of `b`.
    """
    gradients = [g for g in b.gradients.values() if g is not None and g.numel()]
    scale = max((float(g.double().nan_to_num().abs().max()) for g in gradients), default=0.0)
    return all(
        _same_values(gradient, b.gradients[name], scale or None)
        for name, gradient in a.gradients.items()
    )


def _same_values(a: Tensor | None, b: Tensor | None, scale: float | None = None) -> bool:
    """Return whether two tensors are the same to rounding, or both are None.

    NaN must stand in the same places. A very low number counts as −inf (`with_infinities`).

    Args:
        a: a tensor, or None.
        b: a tensor, or None.
        scale: the number to which differences are relative, or None for the default one.
    """
    if a is None or b is None or a.shape != b.shape:
        return a is b
    # A mask may be filled with a finite minimum in place of −inf. That is correct.
    a, b = with_infinities(a), with_infinities(b)
    nan = b.isnan()
    if not torch.equal(a.isnan(), nan):
        return False
    return difference(a.masked_fill(nan, 0.0), b.masked_fill(nan, 0.0), scale) <= TOLERANCE
