"""Remove numbers and names from a report if an attempt can have chosen them by its hidden inputs.

`redact` shows a number in the evidence of a check only if the calls of the check or common mistakes
make such numbers. The numbers are values of the evidence: no sentence is searched for them. A text
with digits is shown only if it is written out in the engine or in a file of checks.

`with_known_names` repeats the name of a parameter only if it is allowed: the check uses it, the
reference has it, or a process that has met no other call has exactly these names. All other names
are replaced by a number, so that a check can still count them.

`axes_of` and `name_sizes` find the names of sizes, such as (B, T, C) for (2, 5, 12).
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

from torch import Tensor

from ..box.worker.messages import Build, Call, Reply, StandIn
from ..box.worker.result_form import PartPath
from ..checks.explain_exceptions import SafeText
from ..checks.hidden_check import (
    Evidence,
    Number,
    Percent,
    Shown,
    is_check_file,
    shape_text,
)
from ..checks.runner import Exchange, target_of
from ..course.course_yaml_schema import Axis, Parameter, Signature

ANOTHER_NAME = "another name"


def builds_in(call: Call) -> list[Build]:
    """Return the modules that the call builds, in the order in which the reply reports on them."""
    return [value for value in call.inputs if isinstance(value, Build)]


def names_in(reply: Reply) -> frozenset[str]:
    """Return the names of the parameters in a reply, and of all tensors with a gradient."""
    return frozenset(reply.gradients).union(*(facts.parameters for facts in reply.modules))


def names_given(call: Call) -> frozenset[str]:
    """Return the names of a call's arguments, of weights in them, and of the weights that it loads.

    Each argument, and each weight in one, also has a name for its second gradient: "second.args.0".
    """
    arguments = changeable_arguments(call)
    states = (build.state or () for build in builds_in(call))
    return frozenset(arguments | {f"second.{name}" for name in arguments}).union(*states)


def changeable_arguments(call: Call) -> set[str]:
    """Return the names under which the worker reports changes to a call's arguments.

    Examples: "args.0", and for a module (StandIn) also the weight of each layer, which has no bias:
    "args.0.proj.weight".
    """
    modules = [
        (name, value) for name, value in call.arguments.items() if isinstance(value, StandIn)
    ]
    return {
        *call.arguments,
        *(f"{name}.{layer}.weight" for name, module in modules for layer in module.linears),
    }


def without_tensors(call: Call) -> Call | None:
    """Return a call that builds the same module without its weights and without a report on it.

    Returns None if the call does more than build one module, or if an argument or attribute of the
    module is not a truth value, a number, a text or None.
    """
    build = call.subject
    if not isinstance(build, Build) or not call.only_build or call.arguments:
        return None
    arguments = (*build.args, *build.kwargs.values(), *build.attributes.values())
    if not all(isinstance(value, bool | int | float | str | None) for value in arguments):
        return None
    return Call(
        replace(build, state=None, report=()), only_build=True, dtype=call.dtype, device=call.device
    )


def with_known_names(reply: Reply, allowed_names: Collection[str]) -> Reply:
    """Return the reply with ANOTHER_NAME and a number in place of each name that is not allowed.

    Names of parameters and gradients are replaced.
    """
    unknown_names = sorted(names_in(reply).difference(allowed_names))
    replacements = {
        name: f"{ANOTHER_NAME} {number}" for number, name in enumerate(unknown_names, 1)
    }
    modules = []
    for facts in reply.modules:
        parameters = {
            replacements.get(name, name): entry for name, entry in facts.parameters.items()
        }
        modules.append(replace(facts, parameters=parameters))
    gradients = {
        replacements.get(name, name): gradient for name, gradient in reply.gradients.items()
    }
    return replace(reply, modules=tuple(modules), gradients=gradients)


Signatures = Mapping[str, Sequence[Signature]]
# The numbers in a message of PyTorch: "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)".
# PyTorch gives no other access to these sizes. Only messages that public calls cause are read.
_NUMBERS = re.compile(r"(?<![\w.])\d{1,6}(?=\b|x)|(?<=x)\d{1,6}\b")
# In such a message, these numbers are not sizes.
_POSITIONS = re.compile(r"\b(?:dimension|dim|axis|tensor number|argument|position) \d+")
ANOTHER_SIZE, REDACTED_NUMBER, CUT = "another size", "some number", "…"
REDACTED_TEXT = "the numbers of this sentence are not shown"
_ENGINE = Path(__file__).parents[1]
_LARGEST_SHARE = 10.0  # 1,000 %; a larger percentage may be a message
NEAR = 0.006  # the relative error of a factor that is written with three digits
# A shape may have so many more axes than the call's tensors and the expected one. One axis too many
# is a mistake, ten may be a message.
_MORE_AXES = 2
MOST_SIZES = 12  # The most sizes of a call from which factors are made: more would allow a message.
_MAX_SIZE_IN_PRODUCT = 1 << 20  # exclusive; a larger number in a call is no size
_PACKED_LAYERS = (2, 3, 4)  # so many layers may be packed into one weight


@dataclass(frozen=True)
class Axes:
    """The size of each named axis.

    Attributes:
        sizes: The sizes, by the name of the axis.
        neighbours: Pairs of axes that are adjacent in some tensor.
        packed: Axes in which q, k and v may be packed.
    """

    sizes: Mapping[str, int]
    neighbours: frozenset[tuple[str, str]] = frozenset()
    packed: frozenset[str] = frozenset()

    def name(self, size: int, twin_axes: Axes | None = None, twin: int = 0) -> str:
        """Return the name of the axis with this size, or the number if it has no name.

        Names of axes are tried first, then packed ones such as 3·C, then products such as nh·hd. A
        size has no name if several names of the same sort fit, or if it is 1.

        Args:
            size: The size.
            twin_axes: The axes of another call with other sizes, if there is one.
            twin: The size in the same position of that call, which must have the same name. In one
                call, the size 2 may be equal to B by chance; in both, it is B.
        """
        for named_sizes in (list(self.sizes.items()), self.packings, self.joined_axes):
            names = [name for name, axis_size in named_sizes if axis_size == size > 1]
            if twin_axes is not None:
                names = [name for name in names if twin_axes.size(name) == twin]
            if names:
                return names[0] if len(names) == 1 else str(size)
        return str(size)

    def shape(
        self, shape: Sequence[int], twin_axes: Axes | None = None, twin: Sequence[int] = ()
    ) -> str:
        """Return a shape with the names of its axes: (B, T, C) for (2, 5, 12).

        Args:
            shape: The shape.
            twin_axes: The axes of another call with other sizes, if there is one.
            twin: The shape in the same position of that call. It counts if it has as many axes.
        """
        if twin_axes is not None and len(twin) == len(shape):
            pairs = zip(shape, twin, strict=True)
            names = [self.name(size, twin_axes, twin_size) for size, twin_size in pairs]
        else:
            names = [self.name(size) for size in shape]
        return f"({', '.join(names)})"

    def size(self, name: str) -> int:
        """Return the size of an axis, or of a product, by its name."""
        return math.prod(
            int(factor) if factor.isdigit() else self.sizes[factor] for factor in name.split("·")
        )

    @property
    def packings(self) -> list[tuple[str, int]]:
        """The names and sizes of axes in which q, k and v are packed: 3·C."""
        return [(f"3·{name}", 3 * self.sizes[name]) for name in sorted(self.packed)]

    @property
    def joined_axes(self) -> list[tuple[str, int]]:
        """The names and sizes of axes that a view may join: B·T, B·nh, nh·hd, T·hd.

        They are adjacent in some tensor of the call, or after the split into heads.
        """
        pairs = {*self.neighbours, *pairwise(name for name in _HEADS if name in self.sizes)}
        return [(f"{a}·{b}", self.sizes[a] * self.sizes[b]) for a, b in sorted(pairs)]


_HEADS = ("B", "nh", "T", "hd")  # the axes of a tensor that is split into heads


def name_sizes(calls: Sequence[tuple[Axes, str]]) -> str:
    """Return "Here 13 is T_k, 9 is T_q" for the sizes in the first call's message, or "".

    A number may be equal to a size by chance. So it is named only if, in the same position, each
    comparable message has the size of that axis in its own call. A message is comparable if it has
    as many numbers, and its call has axes of the same names. If all comparable calls have the same
    sizes as the first one, they show nothing: the result is "".

    Args:
        calls: The axes of each call, and the message of its exception. The first call is the one
            whose message is shown.
    """
    (axes, numbers), *other_calls = (
        (call_axes, _numbers_in(message)) for call_axes, message in calls
    )
    comparable_calls = [
        (other_axes, other_numbers)
        for other_axes, other_numbers in other_calls
        if len(other_numbers) == len(numbers) and other_axes.sizes.keys() == axes.sizes.keys()
    ]
    if all(other_axes.sizes == axes.sizes for other_axes, _ in comparable_calls):
        return ""
    equations = []
    for position, size in enumerate(numbers):
        name = axes.name(size)
        if name != str(size) and all(
            other_axes.size(name) == other_numbers[position]
            for other_axes, other_numbers in comparable_calls
        ):
            equations.append(f"{size} is {name}")
    # a message may repeat a size
    return f"Here {', '.join(dict.fromkeys(equations))}" if equations else ""


def _numbers_in(message: str) -> list[int]:
    """Return the numbers in a message of PyTorch that may be sizes, in their order."""
    return [int(number) for number in _NUMBERS.findall(_POSITIONS.sub("", message))]


def axes_of(
    signature: Signature,
    call: Call,
    returned: Sequence[int],
    signatures: Signatures,
    part_shapes: Mapping[PartPath, Sequence[int]] | None = None,
) -> Axes | None:
    """Return the axes of a call with their sizes, or None if its signature does not fit.

    It does not fit if the call builds no module although the signature does, or if the sizes do not
    agree (`_solved`). See `Axes` for the neighbours and the packed axes.

    Args:
        signature: The signature of the function or class.
        call: The call. If it has several steps, the first one counts.
        returned: The shape of the tensor that the call returned.
        signatures: The signatures of all functions and classes.
        part_shapes: The shape of each part, if the call returned several (`signature.form`).
    """
    rows = [*_rows(signature.call, call.args, call.kwargs, signatures)]
    if signature.build is not None:
        if not isinstance(call.subject, Build):
            return None
        rows = [*_rows(signature.build, call.subject.args, call.subject.kwargs, signatures), *rows]
    if signature.form is None:  # the call returns one tensor
        rows.append(_Row(signature.returns, returned))
    rows += [
        _Row(shape, part_shapes[path])
        for path, shape in signature.shapes
        if part_shapes is not None and path in part_shapes
    ]
    sizes = _solve_sizes(rows)
    if sizes is None:
        return None
    axis_names = _names_in_rows(rows)
    neighbours = frozenset(
        (name, next_name)
        for names in axis_names
        for name, next_name in pairwise(names)
        if name != next_name
    )
    # A layer computes along the last axis, and only a layer packs q, k and v.
    has_weights = any(isinstance(value, Build | StandIn) for value in call.inputs)
    last_axes = frozenset(names[-1] for names in axis_names if names)
    return Axes(sizes, neighbours, packed=last_axes if has_weights else frozenset())


def _names_in_rows(rows: Sequence[_Row]) -> list[list[str]]:
    """Return for each tensor the names in its axes, in their order.

    A number that is a product, such as nh·hd, counts as a tensor with adjacent axes. Other numbers
    do not count.
    """
    names = []
    for row in rows:
        factors = [*chain.from_iterable(axis.factors for axis in row.axes)]
        if not row.is_number or len(factors) > 1:
            names.append([factor for factor in factors if isinstance(factor, str)])
    return names


@dataclass(frozen=True)
class _Row:
    """The axes of one tensor, or of one number, with their sizes: an equation for each axis.

    The sizes are None if the value is missing or has an unexpected type.
    """

    axes: Sequence[Axis]
    sizes: Sequence[int] | None
    is_number: bool = False


def _rows(
    parameters: Sequence[Parameter],
    args: Sequence[object],
    by_name: Mapping[str, object],
    signatures: Signatures,
) -> Iterator[_Row]:
    """Yield the equations between the axes of these parameters and the sizes of their arguments.

    1. A parameter that may be missing has no equation if its argument is missing or None. Any other
       parameter with a missing argument has an equation that cannot be solved.
    2. A parameter with the axes of a tensor, or the axis of a number, has one equation.
    3. A module has several: a stand-in one for each attribute, and a module that the call builds
       those of its constructor.

    Args:
        parameters: The parameters of a function, a constructor or a method.
        args: The arguments that are passed by position.
        by_name: The arguments that are passed by name.
        signatures: The signatures of all functions and classes. They are needed if an argument is
            a module that the call builds.
    """
    names = (parameter.name for parameter in parameters)
    arguments = {**by_name, **dict(zip(names, args, strict=False))}
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if value is None and parameter.may_lack:
            continue
        if parameter.name not in arguments:
            yield _Row((), None)
        elif parameter.shape is not None:
            yield _Row(parameter.shape, value.shape if isinstance(value, Tensor) else ())
        elif parameter.attributes:
            attributes = value.attributes if isinstance(value, StandIn) else {}
            for name, axis in parameter.attributes:
                yield _row_of_number(axis, attributes.get(name))
        elif isinstance(value, Build):
            # in place of an axis, the signature has the name of the class
            class_name = str(parameter.axis.factors[0]) if parameter.axis else ""
            signature = next(iter(signatures.get(class_name, ())), None)
            if signature is not None and signature.build is not None:
                yield from _rows(signature.build, value.args, value.kwargs, signatures)
        elif parameter.axis is not None:
            yield _row_of_number(parameter.axis, value)


def _row_of_number(axis: Axis, value: object) -> _Row:
    """Return the equation of an argument or attribute that is a number, such as n_head."""
    return _Row((axis,), (value,) if isinstance(value, int) else None, is_number=True)


def _solve_sizes(rows: Sequence[_Row]) -> dict[str, int] | None:
    """Return the size of each name in the axes, solving for one unknown at a time.

    An equation such as 20 = nh·hd is solved when all but one of its names are known. Returns None
    if a row has no sizes or another number of axes, if an equation does not hold, or if some sizes
    stay unknown.
    """
    if any(row.sizes is None or len(row.sizes) != len(row.axes) for row in rows):
        return None
    equations = [pair for row in rows for pair in zip(row.axes, row.sizes or (), strict=True)]
    sizes: dict[str, int] = {}
    waiting = equations
    while waiting:
        later = []
        for axis, size in waiting:
            unknown = [f for f in axis.factors if isinstance(f, str) and f not in sizes]
            if len(unknown) > 1:
                later.append((axis, size))
            elif unknown:
                # The unknown name counts as 1.
                product_of_known = max(_product(axis, sizes), 1)
                sizes[unknown[0]] = size // product_of_known
        if len(later) == len(waiting):
            return None
        waiting = later
    return sizes if all(_product(axis, sizes) == size for axis, size in equations) else None


def _product(axis: Axis, sizes: Mapping[str, int]) -> int:
    """Return the product of an axis's factors. Unknown sizes count as 1."""
    return math.prod(
        sizes.get(factor, 1) if isinstance(factor, str) else factor for factor in axis.factors
    )


def redact(evidence: Evidence, exchanges: Sequence[Exchange], expected: Sequence[int] = ()) -> str:
    """Return the evidence of a failed check without sizes and numbers that may be a message.

    A student's own machine has no hidden inputs: `course check` shows every number.

    Args:
        evidence: The evidence.
        exchanges: The calls of this check, with their replies.
        expected: Sizes that the evidence states as right.
    """
    return evidence.render(_Policy(exchanges, expected).show)


class _Policy:
    """Decides which numbers the evidence of a check may show.

    An attempt knows its hidden inputs, and chooses the shape of its answer. A report that repeats
    "(3, 7, 12345)" carries digits of those inputs out. The known sizes are those of the calls and
    of the expected shape. A returned size is withheld if it is larger than all known sizes. But a
    product of two known sizes, or of a known size and 2, 3 or 4, is not withheld. A withheld size
    is "another size".

    If any size is withheld, numbers may be derived from it. Then any other number that is larger
    than the known sizes, and no such product, is "…". If no size is withheld, all are shown.

    A shape with too many axes is cut. If the attempt returned one, lists of numbers are cut, too. A
    factor (1.253e+45) is shown if mistakes make such factors: powers of ten or two, quotients of
    small numbers, the call's sizes, roots of their quotients, and the scales of its dropout. Any
    other is "some number". A percentage is shown unless it is so large that it may be a message.

    A text with digits is shown only if the attempt cannot have chosen them: if it is a `SafeText`,
    if it is written out in a program, or if it is a name in the call or in the reply, where
    `with_known_names` has left only known ones.
    """

    def __init__(self, exchanges: Sequence[Exchange], expected: Sequence[int]) -> None:
        calls = [exchange.call for exchange in exchanges]
        shapes = [tuple(expected), *shapes_in_calls(calls)]
        returned = [shape for exchange in exchanges for shape in shapes_in_reply(exchange.reply)]
        self._largest = max(chain.from_iterable(shapes), default=0)
        self._max_axes = max(map(len, shapes)) + _MORE_AXES
        self._has_many_axes = any(len(shape) > self._max_axes for shape in returned)
        known_sizes = {*chain.from_iterable(shapes)}
        sizes = sorted(size for size in known_sizes if 1 < size < _MAX_SIZE_IN_PRODUCT)
        self._products = {a * b for a in sizes for b in (*sizes, *_PACKED_LAYERS)}
        larger_sizes = {size for size in chain.from_iterable(returned) if size > self._largest}
        # sizes that the attempt returned and that do not follow from the known sizes
        self._redacted_sizes = larger_sizes - self._products
        self._factors = _factors(sizes, calls)
        self._names = frozenset(map(target_of, calls)).union(
            *(names_given(call) for call in calls),
            *(names_in(exchange.reply) for exchange in exchanges),
        )

    def show(self, value: Shown) -> str:
        """Return a value of the evidence as the report shows it."""
        match value:
            case bool() | None:
                return str(value)
            case Number():
                return self._factor(value)
            case float():
                return self._factor(Number(value))
            case Percent():
                return str(value) if value.value < _LARGEST_SHARE else REDACTED_NUMBER
            case int():
                return self._size(value)
            case tuple():
                return shape_text(value, self._size, self._max_axes)
            case list():
                return self._list(value)
        return value if self._is_safe(value) else REDACTED_TEXT

    def _size(self, size: int) -> str:
        """Return a size, count or position as the report shows it, perhaps ANOTHER_SIZE or CUT."""
        if abs(size) in self._redacted_sizes:
            return ANOTHER_SIZE
        is_known = abs(size) <= self._largest or size in self._products
        return str(size) if is_known or not self._redacted_sizes else CUT

    def _factor(self, number: Number) -> str:
        """Return the typical factor of a mistake (`_factors`) nearest to a number, with its sign.

        Return REDACTED_NUMBER if none is near. A number that is printed with more digits must be
        nearer. The number itself is never shown, because its last digits could be a message.
        """
        factor = abs(number.value)
        nearest = min(self._factors, key=lambda candidate: abs(candidate - factor))
        # each further digit makes the tolerance ten times smaller
        tolerance = NEAR * 10.0 ** (3 - number.digits)
        if not math.isclose(nearest, factor, rel_tol=tolerance):
            return REDACTED_NUMBER
        return f"{math.copysign(nearest, number.value):.4g}"

    def _list(self, numbers: Sequence[int]) -> str:
        """Return a list of positions or counts. It is cut if the attempt returned too many axes."""
        shown_numbers = numbers[: self._max_axes] if self._has_many_axes else numbers
        texts = [*map(self._size, shown_numbers)]
        if len(texts) < len(numbers):
            texts.append(CUT)
        return f"[{', '.join(texts)}]"

    def _is_safe(self, text: str) -> bool:
        """Return whether the attempt cannot have chosen the digits in a text."""
        if not any(character.isdigit() for character in text):
            return True
        return isinstance(text, SafeText) or text in self._names or _is_written_out(text)


def _is_written_out(text: str) -> bool:
    """Return whether a text is written out in a module of the engine or in a file of checks."""
    files = (getattr(module, "__file__", None) or "" for module in [*sys.modules.values()])
    return any(text in _texts_in(file) for file in files if _is_of_engine_or_checks(file))


@cache
def _is_of_engine_or_checks(file: str) -> bool:
    path = Path(file)
    return is_check_file(path) or _ENGINE in path.parents


@cache
def _texts_in(file: str) -> frozenset[str]:
    """Return the texts that are written out in a Python file."""
    text = Path(file).read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(text))  # noqa: TID251  (no attempt's text)
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))


def _factors(sizes: Sequence[int], calls: Sequence[Call]) -> set[float]:
    """Return the typical factors of mistakes with these sizes and the calls' dropout rates.

    Such factors are 2 or 1/√d. They are few, so that a chosen one carries a few bits at most.
    """
    sizes = [1, *sizes][:MOST_SIZES]
    small_numbers = range(1, 7)
    rates = {value for value in values_in(calls) if isinstance(value, float) and 0 < value < 1}
    return {
        0.0,
        *rates,
        *sizes,
        *(1 / size for size in sizes),
        *(math.sqrt(a / b) for a in sizes for b in sizes),
        *(a / b for a in small_numbers for b in small_numbers),
        *(base**power for base in (2, 10) for power in range(-9, 10)),
        *((1 - rate) ** power for rate in rates for power in range(-3, 4)),
    }


def shapes_in_calls(calls: Sequence[Call]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes in these calls. A whole number counts as the shape of one axis."""
    for value in values_in(calls):
        if isinstance(value, Tensor):
            yield tuple(value.shape)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield (value,)


def values_in(container: object) -> Iterator[object]:
    """Yield the tensors, numbers and other single values in calls, lists, mappings and dataclasses.

    The values of a call are its inputs and cotangents, and not its settings. Tuples count as lists.
    Keys of mappings are not yielded.
    """
    match container:
        case Call():
            yield from values_in((*container.inputs, *container.cotangents))
        case Mapping():
            yield from values_in((*container.values(),))
        case list() | tuple():
            for element in container:
                yield from values_in(element)
        case _ if is_dataclass(container):
            yield from values_in([getattr(container, field.name) for field in fields(container)])
        case _:
            yield container


def shapes_in_reply(reply: Reply) -> Iterator[tuple[int, ...]]:
    """Yield the shapes and sizes in a reply, all of which the attempt chose.

    They are of outputs, gradients and modules, and of the operations and the peak of memory if
    these were observed. A single size, or a whole number in an attribute, counts as the shape of
    one axis.
    """
    yield from (output.shape for output in reply.outputs if output.shape is not None)
    yield from (
        tuple(gradient.shape) for gradient in reply.gradients.values() if gradient is not None
    )
    for facts in reply.modules:
        for entries in (facts.parameters, facts.buffers, facts.plain):
            yield from (entry.shape for entry in entries.values())
        yield from ((value,) for value in facts.attributes.values() if isinstance(value, int))
    if reply.operations is not None:
        yield from ((size,) for size in reply.operations.made)
        yield from reply.operations.shapes
    if reply.peak is not None:
        yield (reply.peak,)
