"""The numbers of a fault dictionary in compact columns, and sketches of the replies of pairs.

Every student downloads the file, tens of thousands of short rows. Most inputs are drawn again
instead of stored. Outputs have 23 bits, and projections sixteen. Columns are not compressed, so
that a version control system stores only the changes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..box.worker.messages import Reply, dtype_name
from ..checks.explain_exceptions import is_refusal, kind_of
from ..checks.hidden_check import Drawn
from .fingerprint import TensorFingerprint, tensor_fingerprint

_INTEGERS = (torch.int8, torch.int16, torch.int32)
BITS = 23  # bits of an output's number, including its sign
_LOW_BITS = 8  # the lower bits of such a number have their own column
_ALWAYS = torch.tensor([0.0, 1.0, math.inf, -math.inf, math.nan])  # the start of the pool
_NAN = _ALWAYS[-1]
_ROUNDED = -1  # the start of a run whose numbers are rounded and not in the pool
# A shorter run takes more bytes than its numbers. An output uses shorter runs as well, because
# numbers in the pool are exact.
_MIN_RUN = 4
_MAX_INDICES = 8  # indices that are tried if a number is in the pool many times


class _EqualRun(NamedTuple):
    """Numbers of the pool, each `step` entries after the one before.

    If `start` is _ROUNDED, it is a run of rounded numbers that are not in the pool.
    """

    start: int
    step: int
    length: int


class TensorColumns:
    """Tensors of any shape, stored as runs of numbers in a pool.

    The pool begins with the random draws. Numbers that it does not have are added.

    Attributes:
        specs: for each tensor its dtype, its shape, the exponent of its rounded numbers and its
            number of runs.
    """

    def __init__(self, drawn: Sequence[Drawn] = ()) -> None:
        """Begin with a pool of these draws."""
        self.specs: list[list[Any]] = []
        self._rounded: list[Tensor] = []
        self._runs: list[_EqualRun] = []
        self._known: dict[tuple[object, ...], int] = {}  # the indices of stored tensors
        self._pool: list[int] = []  # the bits of float32 numbers
        self._indices: dict[int, list[int]] = {}  # the indices of a number in the pool, by its bits
        for bits in _bits(torch.cat([_ALWAYS, *(draw.numbers().float() for draw in drawn)])):
            self._extend(bits)
        self._first_raw = len(self._pool)

    def add(self, tensor: Tensor, rounded: bool = False) -> int:
        """Add a tensor, with floats in float32, and return its index; an equal one is stored once.

        Args:
            tensor: the tensor.
            rounded: whether its floats are rounded to `BITS` bits, relative to the largest.

        Raises:
            ValueError: an integer has more than 24 bits.
        """
        is_float, flat = tensor.is_floating_point(), tensor.detach().reshape(-1).float()
        if not is_float and not torch.equal(flat.to(tensor.dtype), tensor.reshape(-1)):
            raise ValueError("a whole number is too large")
        rounded = rounded and is_float
        dtype = dtype_name(torch.float32 if is_float else tensor.dtype)
        key = (dtype, tuple(tensor.shape), rounded, flat.numpy().tobytes())
        if key not in self._known:
            self._known[key] = len(self.specs)
            runs, exponent = self._runs_of(flat, rounded)
            self._runs += runs
            self.specs.append([dtype, list(tensor.shape), exponent, len(runs)])
        return self._known[key]

    def _runs_of(self, flat: Tensor, rounded: bool) -> tuple[list[_EqualRun], int]:
        """Return the runs of these numbers, and the exponent of the rounded ones.

        The pool has the numbers that runs may refer to. If `rounded`, a number that is not in the
        pool is rounded and added to `_rounded`, the column of rounded numbers. Otherwise it is
        added to the pool.
        """
        integers, exponent = _rounded_to_integers(flat, rounded)
        original_bits = stored_bits = _bits(flat)
        if rounded:  # a number that is not in the pool becomes its rounded value
            rounded_bits = _bits((integers.double() * 2.0**exponent).float())
            stored_bits = [
                original if original in self._indices else restored
                for original, restored in zip(original_bits, rounded_bits, strict=True)
            ]
        runs = _join_runs(self._find_runs(stored_bits, rounded))
        lengths = torch.tensor([run.length for run in runs], dtype=torch.long)
        is_rounded = torch.tensor([run.start == _ROUNDED for run in runs], dtype=torch.bool)
        self._rounded.append(integers[torch.repeat_interleave(is_rounded, lengths)])
        return runs, exponent

    def _extend(self, bits: int) -> None:
        """Add a number to the pool."""
        indices = self._indices.setdefault(bits, [])
        if len(indices) < _MAX_INDICES:
            indices.append(len(self._pool))
        self._pool.append(bits)

    def _find_runs(self, numbers_as_bits: list[int], rounded: bool) -> Iterator[_EqualRun]:
        """Split numbers into runs, each the longest in the pool that equals the next numbers.

        If the longest run is shorter than _MIN_RUN, the next number is added to the pool and is a
        run of one. With `rounded`, any run is long enough. A number that the pool lacks is then a
        run of one with the start _ROUNDED; the caller stores the number.
        """
        min_length = 1 if rounded else _MIN_RUN
        position = 0
        while position < len(numbers_as_bits):
            run = self._longest_run(numbers_as_bits, position)
            if run is None or run.length < min_length:
                start = _ROUNDED if rounded else len(self._pool)  # the index that it will have
                run = _EqualRun(start, step=1, length=1)
                if not rounded:
                    self._extend(numbers_as_bits[position])
            yield run
            position += run.length

    def _longest_run(self, numbers_as_bits: list[int], position: int) -> _EqualRun | None:
        """Return the longest run in the pool that equals the numbers from a position on.

        Return None if the pool does not have the first number. Only the first _MAX_INDICES places
        of the first and of the second number in the pool are tried. If the pool does not have the
        second number, the run has one number.
        """
        starts = self._indices.get(numbers_as_bits[position], [])
        if not starts:
            return None
        next_numbers = numbers_as_bits[position + 1 : position + 2]  # none after the last one
        seconds = self._indices.get(next_numbers[0], []) if next_numbers else []
        pairs = product(starts, seconds)
        runs = (
            self._run(numbers_as_bits, position, start, second - start) for start, second in pairs
        )
        of_one_number = _EqualRun(starts[0], step=0, length=1)
        return max(runs, key=lambda run: run.length, default=of_one_number)

    def _run(self, numbers_as_bits: list[int], position: int, start: int, step: int) -> _EqualRun:
        """Return the longest run at `start` with the numbers at a position and after it.

        The first two numbers are known to be equal.
        """
        length, index = 2, start + 2 * step
        while position + length < len(numbers_as_bits) and 0 <= index < len(self._pool):
            if self._pool[index] != numbers_as_bits[position + length]:
                break
            length, index = length + 1, index + step
        return _EqualRun(start, step, length)

    def columns(self) -> dict[str, Tensor]:
        """Return the columns by name.

        They are the numbers that were added to the pool, the rounded ones in a high and a low part,
        and the runs.
        """
        rounded = torch.cat(self._rounded) if self._rounded else torch.zeros(0, dtype=torch.long)
        columns = {
            "numbers.raw": torch.tensor(self._pool[self._first_raw :], dtype=torch.int32).view(
                torch.float32
            ),
            "numbers.high": (rounded >> _LOW_BITS).to(torch.int16),
            "numbers.low": (rounded % 2**_LOW_BITS).to(torch.uint8),
        }
        runs = torch.tensor(self._runs, dtype=torch.long).view(-1, 3).T
        return columns | {
            f"runs.{n}": narrow(column) for n, column in zip(_EqualRun._fields, runs, strict=True)
        }


def _rounded_to_integers(flat: Tensor, rounded: bool) -> tuple[Tensor, int]:
    """Return numbers as integers of `BITS` bits, and the exponent of their unit, a power of two.

    With `rounded`, the exponent is such that the largest number just fits. Without, or if no number
    is finite, the exponent is 0. Numbers that are not finite become 0.
    """
    finite, exponent = flat[flat.isfinite()].double(), 0
    if rounded and len(finite):
        _, largest_exponent = math.frexp(float(finite.abs().max()))
        exponent = largest_exponent - BITS + 1
    limit = 2 ** (BITS - 1) - 1
    scaled = flat.double().nan_to_num(0, 0, 0) / 2.0**exponent
    return scaled.round().clamp(-limit, limit).long(), exponent


def _bits(numbers: Tensor) -> list[int]:
    """Return the bits of float32 numbers, the same for every NaN."""
    numbers = torch.where(numbers.isnan(), _NAN, numbers)  # NaN has many bit patterns
    bits: list[int] = numbers.contiguous().view(torch.int32).tolist()
    return bits


def _join_runs(runs: Iterator[_EqualRun]) -> list[_EqualRun]:
    """Return the runs. A run that continues the previous one is joined with it."""
    joined: list[_EqualRun] = []
    for run in runs:
        if joined and _continues(run, joined[-1]):
            previous = joined[-1]
            joined[-1] = previous._replace(length=previous.length + run.length)
        else:
            joined.append(run)
    return joined


def _continues(run: _EqualRun, previous: _EqualRun) -> bool:
    """Return whether a run begins at the next entry after the previous one, with the same step."""
    if run.step != previous.step:
        return False
    if previous.start == _ROUNDED:
        return run.start == _ROUNDED
    return run.start == previous.start + previous.step * previous.length


def read_tensors(
    columns: dict[str, Tensor], drawn: Sequence[Drawn], specs: Sequence[Sequence[Any]]
) -> list[Tensor]:
    """Return the tensors that `TensorColumns` stored, with floats in float32.

    Raises ValueError, LookupError, RuntimeError or AttributeError if the file is damaged.
    """
    pool = torch.cat([_ALWAYS, *(draw.numbers().float() for draw in drawn), columns["numbers.raw"]])
    rounded = columns["numbers.high"].double() * 2**_LOW_BITS + columns["numbers.low"]
    start, step, length = (columns[f"runs.{name}"].long() for name in _EqualRun._fields)
    sizes = torch.tensor([math.prod(shape) for _, shape, _, _ in specs], dtype=torch.long)
    if int(length.sum()) != int(sizes.sum()) or bool((length < 0).any()):
        raise ValueError("the runs have other lengths than the tensors")
    run = torch.repeat_interleave(torch.arange(len(length)), length)
    within = torch.arange(len(run)) - (length.cumsum(0) - length)[run]
    is_rounded = (start == _ROUNDED)[run]
    flat = pool[torch.where(is_rounded, 0, start[run] + step[run] * within)]
    exponents = torch.tensor([float(exponent) for _, _, exponent, _ in specs], dtype=torch.float64)
    units = torch.exp2(torch.repeat_interleave(exponents, sizes)[is_rounded])
    flat[is_rounded] = (rounded * units).float()
    chunks = flat.split(sizes.tolist())
    return [
        chunk.to(getattr(torch, dtype)).view(shape)
        for chunk, (dtype, shape, _, _) in zip(chunks, specs, strict=True)
    ]


def frozen(value: Any) -> Any:
    """Return a JSON value with tuples in place of lists, also inside it."""
    if isinstance(value, list):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return {name: frozen(entry) for name, entry in value.items()}
    return value


def narrow(values: Tensor) -> Tensor:
    """Return the integers in the narrowest dtype of `_INTEGERS` that fits."""
    low, high = (int(values.min()), int(values.max())) if values.numel() else (0, 0)
    return values.to(
        next(d for d in _INTEGERS if torch.iinfo(d).min <= low and high <= torch.iinfo(d).max)
    )


_MAX_INT16 = 32767


def to_rows(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return (N, V) integers of 16 bits, and (N,) sizes as `to_sizes` stores them.

    The integers are the numbers of a row relative to the size of its largest one.
    """
    sizes = to_sizes(numbers.abs().amax(1))
    largest = from_sizes(sizes).masked_fill(sizes == _ZERO, 1.0)
    scaled = numbers.double() / largest[:, None] * _MAX_INT16
    return scaled.round().clamp(-_MAX_INT16, _MAX_INT16).to(torch.int16), sizes


def from_rows(integers: Tensor, sizes: Tensor) -> Tensor:
    """Return the (N, V) numbers that `to_rows` stored, in float64."""
    return integers.double() / _MAX_INT16 * from_sizes(sizes)[:, None]


STEPS_PER_DOUBLING = 8  # a stored size is an exponent of 2 in eighths
# The stored size of zero. Other sizes count as at least 2^-15.9, so that most fit in a byte.
_ZERO = -128


def to_sizes(sizes: Tensor) -> Tensor:
    """Return numbers that are not negative as small integers: their exponents of 2, in eighths.

    An exponent is rounded up to an eighth, so that a number grows by a tenth at most. Zero, which
    has no exponent, is _ZERO.
    """
    positive = sizes.double().clamp_min(1e-300)  # no logarithm of 0
    logarithms = torch.log2(positive) * STEPS_PER_DOUBLING
    # 1e-6 is subtracted so that a size that was read from a file is not rounded up again.
    rounded_up = (logarithms - 1e-6).ceil().clamp_min(_ZERO + 1)
    return narrow(torch.where(sizes > 0, rounded_up, float(_ZERO)).long())


def from_sizes(stored: Tensor) -> Tensor:
    """Return the numbers that `to_sizes` stored, in float64."""
    return torch.where(stored == _ZERO, 0.0, torch.exp2(stored.double() / STEPS_PER_DOUBLING))


UNKNOWN = 0  # the structure of an exception of unknown kind, which agrees with nothing
HEAD = 2  # numbers of a reply that a sketch keeps
TOLERANCE = 1e-4  # relative to a tensor's norm; a pair that agrees is only a candidate


@dataclass(frozen=True)
class ReplySketch:
    """Sketches of N replies: a few numbers of each, which tell most replies apart.

    Attributes:
        structure: (N,) int64, the hash of everything but the numbers; UNKNOWN for an exception of
            unknown kind.
        numbers: (N, HEAD).
        scales: (N, 1), the scale to which differences are relative.
    """

    structure: Tensor
    numbers: Tensor
    scales: Tensor

    def rows_at(self, rows: Tensor | list[int]) -> ReplySketch:
        """Return the sketches in these rows."""
        return ReplySketch(self.structure[rows], self.numbers[rows], self.scales[rows])

    def agree_with(self, sketch: ReplySketch) -> Tensor:
        """Return (N,) bool: which of these agree with the single reply in `sketch`.

        Structures must be equal, and not UNKNOWN.
        """
        scales = torch.maximum(self.scales, sketch.scales)
        near = (self.numbers - sketch.numbers).abs() <= TOLERANCE * scales.clamp_min(1e-9)
        return (self.structure == sketch.structure) & (self.structure != UNKNOWN) & near.all(1)


def sketch_reply(reply: Reply) -> ReplySketch:
    """Return the sketch of one reply. Its numbers are weighted sums over all returned tensors.

    A single tensor is not enough, because a mistake may not be visible in it, such as the first of
    three chunks, or y without lse. The scale is the norm of the weighted norms. Without returned
    tensors, numbers and scale are 0.
    """
    structure, returned = _structure_of(reply)
    scale = math.hypot(*(weight * tensor.norm for weight, tensor in enumerate(returned, 1)))
    return ReplySketch(
        torch.tensor([structure], dtype=torch.int64),
        sketch_numbers([tensor.projections for tensor in returned]),
        torch.tensor([[scale]], dtype=torch.float32),
    )


def sketch_numbers(projections: Sequence[Sequence[float]]) -> Tensor:
    """Return (1, HEAD): the numbers of a sketch, from the projections of each returned tensor.

    They are the weighted sums of the first HEAD projections. The weights are 1, 2, 3, …
    """
    weighted = [
        weight * number
        for weight, projection in enumerate(projections, 1)
        for number in projection[:HEAD]
    ]
    return torch.tensor(weighted, dtype=torch.float32).view(-1, HEAD).sum(0, keepdim=True)


def _structure_of(reply: Reply) -> tuple[int, list[TensorFingerprint]]:
    """Return the hash of a reply without its numbers, and fingerprints of the returned tensors.

    If the call raised, the hash is made from the exception's kind, or UNKNOWN, without tensors.
    """
    if reply.raised is not None:
        if is_refusal(reply.raised):
            return _hash("refused"), []
        error_kind = kind_of(reply.raised)
        return (UNKNOWN if error_kind is None else _hash(f"kind {error_kind.meaning}")), []
    words, returned = [], []
    for out in reply.outputs:
        if out.tensor is None:
            words.append(out.kind)
            continue
        returned.append(tensor_fingerprint(out.tensor))
        words.append(f"{tuple(out.tensor.shape)} {returned[-1].extremes}")
    for name, gradient in sorted(reply.gradients.items()):
        words.append(
            f"{name} {'none' if gradient is None else tensor_fingerprint(gradient).extremes}"
        )
    return _hash("; ".join(words)), returned


def _hash(text: str) -> int:
    """Return a hash of 32 bits that is never UNKNOWN."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") + 1


@dataclass(frozen=True)
class Pairs:
    """P pairs of mutants, each with the reply of both together to one call.

    Attributes:
        first, second: (P,) int16, the indices of the two mutants.
        probe: (P,) int16, the index of a call that detects both.
        answers: the P replies of the combinations to these calls.
    """

    first: Tensor
    second: Tensor
    probe: Tensor
    answers: ReplySketch

    def rows_at(self, rows: Tensor) -> Pairs:
        """Return the pairs in these rows."""
        return Pairs(
            self.first[rows], self.second[rows], self.probe[rows], self.answers.rows_at(rows)
        )


def no_pairs() -> Pairs:
    """Return zero pairs."""
    none, empty = torch.zeros(0, dtype=torch.int16), torch.zeros(0, HEAD)
    return Pairs(
        none, none, none, ReplySketch(torch.zeros(0, dtype=torch.int64), empty, torch.zeros(0, 1))
    )


def pairs_to_columns(pairs: Pairs) -> dict[str, Tensor]:
    """Return the pairs as columns of a file. Each structure is stored once, scales are not."""
    structures, structure = pairs.answers.structure.unique(return_inverse=True)
    integers, sizes = to_rows(pairs.answers.numbers)
    columns = {
        "first": pairs.first,
        "second": pairs.second,
        "probe": pairs.probe,
        "structure": structure,
    }
    return {
        **{f"pairs.{name}": narrow(column.long()) for name, column in columns.items()},
        "pairs.structures": structures,
        "pairs.sizes": sizes,
        "pairs.numbers": integers.T,
    }


def pairs_from_columns(columns: Mapping[str, Tensor]) -> Pairs:
    """Return the pairs of a file, with scales of 0.

    Raises LookupError or RuntimeError if the file is damaged.
    """
    structure = columns["pairs.structures"][columns["pairs.structure"].long()]
    numbers = from_rows(columns["pairs.numbers"].T, columns["pairs.sizes"]).float()
    # Scales are not stored: differences are relative to the scale of the attempt's reply.
    answers = ReplySketch(structure, numbers, torch.zeros(len(structure), 1))
    first, second, probe = (
        columns[f"pairs.{name}"].to(torch.int16) for name in ("first", "second", "probe")
    )
    return Pairs(first, second, probe, answers)
