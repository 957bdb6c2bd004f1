"""Choose example calls from the fault dictionary, and describe them with names for their sizes.

`examples` chooses for each function the call that is easiest to understand. `weights_by_call` finds
the attention weights of each head among the operations of a traced call. `origins` finds for each
number of an output its position in the input, which makes a wrong view visible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ..box.worker.messages import (
    Build,
    Call,
    PlantedDifference,
    Reply,
    Returned,
    Step,
    Traced,
)
from ..checks.answer import answers_of
from ..checks.hidden_check import Layer
from ..checks.runner import cast, target_of
from ..course import Exercise
from ..course.course_yaml_schema import Axis, Signature
from ..diagnosis.fault_dictionary import FaultDictionary, StepWeights
from ..diagnosis.observed_reply import Expected
from ..files import CourseFault
from ..judge.redact_hidden_inputs import Axes, axes_of

SHOWN = 3  # how many steps of a call a title names


class Twin(NamedTuple):
    """Another call of the same function, with other sizes.

    A name that fits a size in both calls is no coincidence.

    Attributes:
        axes: The named sizes of that call.
        steps: The attempt's steps in that call.
    """

    axes: Axes
    steps: Sequence[Step]


class TwinStep(NamedTuple):
    """The counterpart of a step in the twin.

    Attributes:
        axes: The named sizes of the twin.
        step: The same step of the twin, or None if the twin has no such step.
    """

    axes: Axes
    step: Step | None


@dataclass(frozen=True)
class Example:
    """A recorded call, the reference's output, and the names of its sizes.

    Attributes:
        call: The call.
        expected: The output of the reference.
        compares_values: Whether an attempt must have these values; otherwise only the shape is
            compared.
        signature: The parameters and outputs of the function in course.yaml, or None without them.
        axes: The named sizes of the call.
        further_outputs: If the call returns several outputs, the examples of all but the first.
        output_index: The index of the output in the reply.
        label: The name of the output in texts, or "" if it is the only one.
        instead: Examples of other calls of the same function and setting, the easiest first.
        uncut: The example with all sequences of its batch, or None if none were left out.
        twin: The twin of the call, or None if no other call is known.
        tokens: A label for each token of the input, "" for some; empty if tokens are not words.
        description: A title that replaces the call, or "".
        index: The index of the call in the fault dictionary, or −1 if it is not recorded there.
        shares: For each step of the call, the attention weights of each head of the reference,
            (nh, new queries, keys so far), or None. Empty if they are not known.
        heads: The number of heads to draw, or 0 for the first few.
    """

    call: Call
    expected: Tensor
    compares_values: bool
    signature: Signature | None
    axes: Axes
    further_outputs: tuple[Example, ...] = field(default=(), kw_only=True)
    output_index: int = field(default=0, kw_only=True)
    label: str = field(default="", kw_only=True)
    instead: tuple[Example, ...] = field(default=(), kw_only=True)
    uncut: Example | None = field(default=None, kw_only=True)
    twin: Twin | None = field(default=None, kw_only=True)
    tokens: tuple[str, ...] = field(default=(), kw_only=True)
    description: str = field(default="", kw_only=True)
    index: int = field(default=-1, kw_only=True)
    shares: StepWeights = field(default=(), kw_only=True)
    heads: int = field(default=0, kw_only=True)

    @property
    def all_outputs(self) -> tuple[Example, ...]:
        """This example, and the examples of the other outputs of its call."""
        return (self, *self.further_outputs)

    @property
    def returns(self) -> tuple[Axis, ...]:
        """The named axes of this output; empty if they are not known."""
        if self.signature is None:
            return ()
        paths = [path for path, _ in self.call.form.leaves()]
        return self.signature.shape_at(paths[self.output_index % len(paths)]) or ()

    @property
    def names(self) -> list[str]:
        """The names of the parameters of the function, in order; empty without a signature."""
        return [p.name for p in self.signature.call] if self.signature else []

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments of the call's first step, by name."""
        return by_name(self.names, self.call.args, self.call.kwargs)

    @property
    def target(self) -> str:
        """The name of the function or class."""
        return target_of(self.call)

    def twin_steps(self, steps: Sequence[Step]) -> list[TwinStep]:
        """Return for each step of the attempt the same step of the twin.

        It has the same operation and location, and if possible the same number of tensors: `cat`
        after a loop may take another number. A step without counterpart is paired with None.
        Without a twin, each step is paired with itself.
        """
        if self.twin is None:
            return [TwinStep(self.axes, step) for step in steps]
        axes, twin_trace = self.twin
        twins = dict(zip(_keys(twin_trace), twin_trace, strict=True))
        near = dict(zip(_keys(twin_trace, counts_tensors=False), twin_trace, strict=True))
        keys = zip(_keys(steps), _keys(steps, counts_tensors=False), strict=True)
        return [TwinStep(axes, twins.get(key) or near.get(near_key)) for key, near_key in keys]

    @property
    def title(self) -> str:
        """The call as a student would write it.

        Example: CausalAttention(d_in=8, d_out=4, context_length=9)(x).
        """
        if self.description:
            return self.description
        build = self.call.subject if isinstance(self.call.subject, Build) else None
        called = [_arguments(step.args, step.kwargs, self.names) for step in self.call.steps]
        callee = self.target
        if build is not None:
            names = [p.name for p in self.signature.build or ()] if self.signature else []
            callee += f"({_arguments(build.args, {**build.kwargs, **build.attributes}, names)})"
        later = [f"then ({call})" for call in called[1:SHOWN]]
        if len(called) > SHOWN:
            later.append("…")
        return ", ".join([f"{callee}({called[0]})", *later])


def _keys(steps: Sequence[Step], *, counts_tensors: bool = True) -> Iterator[Hashable]:
    """Yield for each step its operation and location, and how many earlier steps have the same.

    With `counts_tensors`, the number of tensors and plain numbers must be the same, too.
    """
    occurrences = Counter[Hashable]()
    for step in steps:
        counts = (len(step.numbers), len(step.inputs), len(step.outputs)) if counts_tensors else ()
        site = (step.name, step.lines, step.sites, *counts)
        yield site, occurrences[site]
        occurrences[site] += 1


def by_name(
    names: Sequence[str], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments of a call by the names of its parameters.

    Positional arguments beyond the last name are left out.
    """
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def _arguments(args: tuple[object, ...], kwargs: Mapping[str, object], names: list[str]) -> str:
    """Return the arguments as in a call, in the order of the names: "x, n=3".

    A tensor is shown as the name of its parameter. Arguments beyond the last name come first,
    because they have no keyword.
    """
    by_parameter = by_name(names, args, kwargs)
    ordered = sorted(
        by_parameter.items(),
        key=lambda item: names.index(item[0]) if item[0] in names else len(names),
    )
    unnamed = [_argument("", value) for value in args[len(names) :]]
    return ", ".join([*unnamed, *(_argument(name, value) for name, value in ordered)])


def _argument(name: str, value: object) -> str:
    if isinstance(value, bool | int | float | str):
        return f"{name}={value!r}" if name else repr(value)
    return name or "…"


_ROUNDING = 1e-3  # the sum of a row of attention weights may differ from 1 by this much
_TOKENS = Axis(("T",))


def weights_by_call(example: Example, traced: Traced) -> StepWeights:
    """Return the attention weights that each step of a call computed, for the first sequence.

    Each tensor is (nh, new queries, keys so far), or None if no weights were found. It has fewer
    heads if the trace kept fewer.
    """
    sides = sides_of(example)
    return tuple([_of_call(example, traced, sides, number) for number in range(len(sides))])


class Sides(NamedTuple):
    """The sizes of the attention weights in one step of a call.

    Attributes:
        queries: The number of new queries.
        keys: The number of all keys so far.
    """

    queries: int
    keys: int


def sides_of(example: Example) -> list[Sides]:
    """Return the sizes of the attention weights for each step of a call.

    A call of one step has T_q queries and T_k keys, or T of both. In a call of several steps, the
    keys are the step's own tokens and those of an earlier step whose output it gets, as with a
    cache. The list is then empty if the signature does not say which argument holds the tokens.
    """
    tokens = example.axes.sizes.get("T", 0)
    if not example.call.then:
        sizes = example.axes.sizes
        return [Sides(sizes.get("T_q", tokens), sizes.get("T_k", tokens))]
    parameters = example.signature.call if example.signature else ()
    shapes = {p.name: p.shape for p in parameters if p.shape and _TOKENS in p.shape}
    sides: list[Sides] = []
    for step in example.call.steps:
        new, past = 0, 0
        for name, value in by_name(example.names, step.args, step.kwargs).items():
            if isinstance(value, Returned):
                past = max(past, sides[value.step].keys)
            elif name in shapes and isinstance(value, Tensor):
                new = new or value.shape[shapes[name].index(_TOKENS)]
        if not new:
            return []
        sides.append(Sides(new, past + new))
    return sides


def shows_a_triangle(example: Example) -> bool:
    """Return whether a step that continues an earlier one has several new tokens.

    Such a step needs a mask, because the first of these tokens must not see the last one.
    """
    return any(1 < new < keys for new, keys in sides_of(example))


def _of_call(
    example: Example, traced: Traced, sides: Sequence[Sides], number: int
) -> Tensor | None:
    """Return the weights of one step of a call, or None.

    An attempt that keeps the tokens instead of keys may compute all rows again. The last rows are
    then the new ones.

    Args:
        example: The example.
        traced: The trace of its call.
        sides: The numbers of queries and keys of each step.
        number: The index of the step.
    """
    step, earlier = sides[number], sides[:number]
    # With hd keys, the weights cannot be told apart from other tables. A single key has weight 1.
    if step.keys < 2 or step.keys == example.axes.sizes.get("hd"):
        return None
    weights = _weights_at(traced, example.axes, step, earlier.count(step))
    all_rows = Sides(step.keys, step.keys)
    if weights is not None or all_rows in sides:
        return weights
    same_keys = sum(earlier_step.keys == step.keys for earlier_step in earlier)
    full_weights = _weights_at(traced, example.axes, all_rows, same_keys)
    return None if full_weights is None else full_weights[:, -step.queries :]


def _weights_at(traced: Traced, axes: Axes, sides: Sides, earlier: int) -> Tensor | None:
    """Return the attention weights of this size, or None.

    They are the first tables whose rows are shares of 1, or the first output of a softmax. If later
    tables have the same shape, the last of these is returned, so that operations after the softmax
    count.

    Args:
        traced: The trace.
        axes: The axes of the example.
        sides: The numbers of queries and keys.
        earlier: The number of earlier steps of the call with tables of this size.
    """
    tables = list(_tables(traced, axes, sides, earlier))
    weights = next(
        (t for _, t in tables if (t >= 0).all() and ((t.sum(-1) - 1).abs() < _ROUNDING).all()), None
    )
    if weights is None:
        weights = next((table for step, table in tables if step.name.lower() == "softmax"), None)
    if weights is None:
        return None
    return next(table for _, table in reversed(tables) if table.shape == weights.shape)


def _tables(
    traced: Traced, axes: Axes, sides: Sides, earlier: int
) -> Iterator[tuple[Step, Tensor]]:
    """Yield the operations whose output ends in these two axes, with the output's first sequence.

    Outputs that are no floating-point numbers, or of which only a part was kept, are left out.
    """
    for index in dict.fromkeys(traced.order):
        step = traced.steps[index]
        shape = step.outputs[0].shape if step.outputs else ()
        if shape[-2:] != sides or not step.crops or not step.crops[0].is_floating_point():
            continue
        if any(tuple(crop.shape[-2:]) != sides for crop in step.crops):
            continue
        table = _of_first_sequence(step, shape, axes, earlier)
        if table is not None:
            yield step, table


def _of_first_sequence(
    step: Step, shape: tuple[int, ...], axes: Axes, earlier: int
) -> Tensor | None:
    """Return the tables of all heads of the first sequence, (nh, queries, keys), or None.

    The output may have the axes (B, nh, ., .), (nh, ., .), (B·nh, ., .), or (B, ., .) and (., .)
    in the rounds of a loop.
    """
    batch, heads = axes.sizes.get("B", 1), axes.sizes.get("nh", 1)
    if len(shape) == 4:
        return step.crops[earlier] if shape[1] == heads and earlier < len(step.crops) else None
    if earlier:  # too few runs of a loop are kept to tell one call from the next
        return None
    if len(shape) == 3 and shape[0] in (heads, batch * heads) and (shape[0] != batch or heads == 1):
        return step.crops[0][:heads]
    if len(shape) == 3 and shape[0] == batch:  # a loop over heads
        return torch.stack([crop[0] for crop in step.crops[:heads]])
    # a loop over sequences and heads
    return torch.stack(step.crops[:heads]) if len(shape) == 2 else None


BLOCKS, ROWS, COLUMNS = 2, 12, 16  # the largest numbers of heads, rows and columns shown
_WORDS = {"T": "token", "nh": "head"}


@dataclass(frozen=True)
class Addresses:
    """The origin of each number of a tensor.

    Attributes:
        argument: The name of the argument that the numbers come from.
        positions: The address of each number in the argument, 10000·sequence + 100·token + channel,
            or −1 if the number is not there. Without a token axis, the first axis after the batch
            takes its place.
        heads: The head to which each number belongs in the argument, or −1.
    """

    argument: str
    positions: Tensor
    heads: Tensor

    def table_at(self, table: int) -> Addresses:
        """Return the addresses of one table. Tables are the last two axes, counted from 0."""
        grids = (self.positions, self.heads)
        return Addresses(self.argument, *(g.reshape(-1, *g.shape[-2:])[table] for g in grids))


def addresses(example: Example, values: Tensor) -> Addresses | None:
    """Return the address of each number of an output, in tensors of the output's shape.

    Return None if the reference does more than move numbers, that is, if its output does not have
    exactly the numbers of the only tensor among the arguments. Also return None without a
    signature, if two numbers of the argument are the same, if the output has fewer than two axes,
    or if the argument has no axis but B.

    Args:
        example: The example.
        values: The output of an attempt, or of the reference.
    """
    tensors = [
        (name, value) for name, value in example.arguments.items() if isinstance(value, Tensor)
    ]
    if len(tensors) != 1 or example.signature is None or values.dim() < 2:
        return None
    argument, tensor = tensors[0]
    ordered = tensor.flatten().float().sort()
    moves = torch.equal(example.expected.flatten().float().sort().values, ordered.values)
    if not moves or len(ordered.values.unique()) != tensor.numel():
        return None
    shape = next(p.shape for p in example.signature.call if p.name == argument) or ()
    names = [str(axis.factors[0]) for axis in shape]
    row = "T" if "T" in names else next((name for name in names if name != "B"), "")
    if not row:  # there is nothing but a batch
        return None
    positions, channels = (torch.zeros(tensor.shape, dtype=torch.long) for _ in range(2))
    of_others = of_heads = 1
    for axis, (name, size) in reversed([*enumerate(zip(names, tensor.shape, strict=True))]):
        at = torch.arange(size).reshape(-1, *[1] * (tensor.dim() - axis - 1))
        positions = positions + at * {"B": 10_000, row: 100}.get(name, of_others)
        of_others *= 1 if name in ("B", row) else size
        if name not in ("B", "T"):
            channels, of_heads = channels + at * of_heads, of_heads * size
    heads = channels // (of_heads // example.axes.sizes.get("nh", 1))
    flat_values = values.flatten().float()
    at = torch.searchsorted(ordered.values, flat_values).clamp(max=tensor.numel() - 1)
    is_there = ordered.values[at] == flat_values
    matched = (
        torch.where(is_there, grid.flatten()[ordered.indices[at]], -1)
        for grid in (positions, heads)
    )
    return Addresses(argument, *(grid.reshape(values.shape) for grid in matched))


class OriginRow(NamedTuple):
    """A row of addresses. −1 is a number that is not in the argument.

    Attributes:
        name: The name of the row, for example "token 0".
        actual: The addresses of the student's numbers.
        expected: The expected addresses.
    """

    name: str
    actual: list[int]
    expected: list[int]


@dataclass(frozen=True)
class OriginTable:
    """The rows of a head, or of a whole sequence.

    Attributes:
        title: The name of the head, or "" for a whole sequence.
        rows: The rows.
        legend: The text above the table, or "" for all tables but the first.
        hidden_heads: In the last table, how many heads are not shown; otherwise 0.
    """

    title: str
    rows: tuple[OriginRow, ...]
    legend: str = ""
    hidden_heads: int = 0

    @property
    def wrong_rows(self) -> tuple[OriginRow, ...]:
        """The rows whose addresses are not the expected ones."""
        return tuple(row for row in self.rows if row.actual != row.expected)


def origins(example: Example, values: Tensor) -> tuple[OriginTable, ...]:
    """Return the origins of the numbers in the first sequence of an output, a table for each head.

    There are at most BLOCKS tables with at most ROWS rows and COLUMNS columns. There are none if
    `addresses` returns None, or if the output has neither three axes nor four.

    Args:
        example: The example.
        values: The attempt's output, of the expected shape.
    """
    actual, expected = addresses(example, values), addresses(example, example.expected)
    if (
        actual is None
        or expected is None
        or example.signature is None
        or values.dim() not in (3, 4)
    ):
        return ()
    both = [
        side.positions[0].reshape(-1, *values.shape[-2:])[:BLOCKS, :ROWS, :COLUMNS].tolist()
        for side in (actual, expected)
    ]
    names = [
        _WORDS.get(str(axis.factors[0]), str(axis.factors[0])) for axis in example.signature.returns
    ]
    heads = example.expected.shape[1] if len(names) == 4 else 1
    legend = f"each number of sequence 0 by its address in {actual.argument}, 100·token + channel"
    hidden_heads = heads - len(both[0])
    origin_tables = []
    for head, tables in enumerate(zip(*both, strict=True)):
        title = f"{names[1]} {head}" if len(names) == 4 else ""
        rows = enumerate(zip(*tables, strict=True))
        named_rows = tuple(OriginRow(f"{names[-2]} {i}", *row) for i, row in rows)
        is_last = head == len(both[0]) - 1
        hidden = hidden_heads if is_last else 0
        origin_tables.append(OriginTable(title, named_rows, legend, hidden))
        legend = ""
    return tuple(origin_tables)


INSTEAD = 8  # how many substitutes an example has
SAME = 100  # the ambiguity of two axes with the same size, or of an axis of size 1


def returns_several(call: Call) -> bool:
    """Return whether a reply to this call has several outputs in one run."""
    return bool(call.then) or not call.form.is_leaf


def ambiguity_of(axes: Axes) -> int:
    """Return a measure of how easily a reader confuses two axes: 0 if all sizes differ.

    Each axis of size 1, and each axis with the size of another one, counts SAME. Each product of
    axes that equals another size counts 1. A call with less ambiguity is a better example.
    """
    sizes = list(axes.sizes.values())
    # nh·hd is left out because it is C itself
    several = [size for name, size in axes.packings + axes.joined_axes if name != "nh·hd"]
    several += [*sizes, *((3,) if axes.packed else ())]  # the size of an axis over q, k and v
    return SAME * (sizes.count(1) + len(sizes) - len(set(sizes))) + len(several) - len(set(several))


def examples(exercise: Exercise, recording: FaultDictionary) -> list[Example]:
    """Return an example for each function and each setting of a module.

    The example has the easiest call, and the next INSTEAD calls as its substitutes. The functions
    are in the order of course.yaml. A function is left out if none of its recorded calls can be
    shown or fits a signature.
    """
    by_setting = defaultdict[tuple[str, str], list[Example]](list)
    for example in _examples_by_call(exercise, recording):
        by_setting[example.target, _settings_of_call(example.call)].append(example)
    order = list(exercise.shapes) or [target for target, _ in by_setting]
    chosen = []
    for target, settings in sorted(by_setting, key=lambda key: (order.index(key[0]), key[1])):
        candidates = by_setting[target, settings]
        candidates.sort(key=lambda example: _rank(example, recording))
        by_call: dict[int, Example] = {}  # the easiest signature that fits a call counts
        for example in candidates:
            by_call.setdefault(example.index, example)
        easiest, *alternatives = by_call.values()
        chosen.append(replace(easiest, instead=tuple(alternatives[:INSTEAD])))
    return chosen


def examples_named(
    exercise: Exercise, recording: FaultDictionary, function: str | None, command: str
) -> list[Example]:
    """Return the examples of this function, or of all functions if it is None.

    Args:
        exercise: The exercise.
        recording: Its fault dictionary.
        function: The name of the function, or None.
        command: The command that needs the examples, such as "course trace".

    Raises:
        CourseFault: There are no examples.
    """
    all_examples = examples(exercise, recording)
    chosen = [example for example in all_examples if function in (None, example.target)]
    if not all_examples:
        next_step = f"tell your instructor, whose next command is: course verify {exercise.id}"
        raise CourseFault(
            f"no recorded call of {exercise.id} fits its shapes in course.yaml. Next: {next_step}"
        )
    if not chosen:
        verb = command.removeprefix("course ")
        targets = ", ".join(dict.fromkeys(e.target for e in all_examples))
        raise CourseFault(
            f"{exercise.id} has no {function!r} to {verb}; it has: {targets}. Next: {command} "
            f"{exercise.id}"
        )
    return chosen


def with_twin(
    example: Example, candidates: Sequence[Example], trace: Callable[[Call], Traced | None]
) -> Example:
    """Return the example with its twin: a candidate with the same size names, traced in float32.

    The candidate with the largest number of different sizes is chosen. The example is returned
    without a twin if no size differs, or if the trace is None.

    Args:
        example: The example.
        candidates: The examples that may be the twin. An uncut example counts as well.
        trace: Makes a call of the attempt and returns its trace, or None.
    """
    sizes = example.axes.sizes
    variants = [v for candidate in candidates for v in (candidate, candidate.uncut) if v]
    comparable = [variant for variant in variants if variant.axes.sizes.keys() == sizes.keys()]
    differing = [_count_differences(variant.axes.sizes, sizes) for variant in comparable]
    twin = comparable[differing.index(max(differing))] if any(differing) else None
    traced = trace(cast(twin.call, "float32")) if twin else None
    return replace(example, twin=Twin(twin.axes, traced.steps)) if twin and traced else example


def _count_differences(sizes: Mapping[str, int], other_sizes: Mapping[str, int]) -> int:
    return sum(size != other_sizes[name] for name, size in sizes.items())


def _rank(example: Example, recording: FaultDictionary) -> tuple[int, ...]:
    """Return the rank of an example: criteria that are compared in order. Lower is better.

    Calls with zeros and similar inputs suit checks, but show little.
    """
    layers = {check.layer for check in recording.checks if example.index in check.calls}
    tensors = [value for value in example.call.inputs if isinstance(value, Tensor)]
    longest = max((size for tensor in tensors for size in tensor.shape), default=0)
    is_dull = bool(example.call.then) and not shows_a_triangle(example)
    # A number above every size, such as a block size, puts all tokens in one block.
    is_dull |= any(type(value) is int and value > longest > 0 for value in example.call.inputs)
    tensor_parameters = (
        [p.name for p in example.signature.call if p.shape is not None] if example.signature else []
    )
    # the effect of an argument that is left out cannot be seen
    left_out = sum(example.arguments.get(name) is None for name in tensor_parameters)
    return (
        not example.compares_values,
        _is_made_up(example.call),
        is_dull,
        ambiguity_of(example.axes),
        Layer.VALUES not in layers,
        left_out,
        sum(tensor.numel() for tensor in tensors),
    )


def _is_made_up(call: Call) -> bool:
    """Return whether half of a tensor's numbers are 0, or a channel of an input is constant.

    The tensors are floating-point arguments and the module's parameters. Such a call shows little.
    """
    state = call.subject.state if isinstance(call.subject, Build) else None
    inputs = [
        value for value in call.inputs if isinstance(value, Tensor) and value.is_floating_point()
    ]
    tensors = [
        *inputs,
        *(tensor for tensor in (state or {}).values() if isinstance(tensor, Tensor)),
    ]
    is_empty = any(2 * int((tensor == 0).sum()) >= tensor.numel() > 0 for tensor in tensors)
    tables = (
        tensor.reshape(-1, tensor.shape[-1])
        for tensor in inputs
        if tensor.dim() > 1 and tensor.shape[-2] > 1
    )
    return is_empty or any(bool((table == table[0]).all(0).any()) for table in tables)


def _can_be_shown(call: Call) -> bool:
    """Return whether a call only asks for an output, of one run in eval mode.

    Later steps are allowed if an output of an earlier step is among their arguments.
    """
    is_training = isinstance(call.subject, Build) and call.subject.training
    if call.runs != 1 or call.cotangent is not None or call.only_build or is_training:
        return False
    if not call.then:
        return True
    inputs = (value for step in call.then for value in (*step.args, *step.kwargs.values()))
    # Without such an output, a check calls the same instance again only to compare the replies.
    return any(isinstance(value, Returned) for value in inputs)


def _examples_by_call(exercise: Exercise, recording: FaultDictionary) -> Iterator[Example]:
    """Yield the recorded calls that can be shown as examples.

    A call is yielded once for each signature that fits it, and once without a signature if
    course.yaml has none for the exercise. A call that the reference refuses is left out.
    """
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    for index, (call, expected) in enumerate(zip(recording.calls, recording.expected, strict=True)):
        output = next((tensor for tensor in expected if tensor is not None), None)
        is_refusal = recording.expected_reply(index).raised is not None
        if not _can_be_shown(call) or output is None or is_refusal:
            continue
        # A scalar that the check's own code computes counts: planted differences exceed rounding.
        is_planted = isinstance(call.around, PlantedDifference) and not output.dim()
        is_compared = any(index in check.calls for check in recording.checks)
        compares_values = is_planted or (is_compared and not call.random)
        shares = recording.weights.get(index, ())
        if not signatures:
            example = _example(call, expected, compares_values, None, Axes({}))
            yield replace(example, index=index, shares=shares)
        of_first_step = zip((path for path, _ in call.form.leaves()), expected, strict=False)
        output_shapes = {path: tensor.shape for path, tensor in of_first_step if tensor is not None}
        for signature in signatures.get(target_of(call), ()):
            axes = axes_of(signature, call, output.shape, signatures, output_shapes)
            if axes is not None:
                example = _example(call, expected, compares_values, signature, axes)
                example = example if returns_several(call) else _smaller(example)
                yield replace(example, index=index, shares=shares)


def _example(
    call: Call, expected: Expected, compares_values: bool, signature: Signature | None, axes: Axes
) -> Example:
    """Return the example of the first recorded output, with those of the other outputs in it."""
    several = returns_several(call)
    output_examples = [
        Example(
            call,
            tensor,
            compares_values,
            signature,
            axes,
            output_index=answer.output_index,
            label=answer.label if several else "",
        )
        for tensor, answer in zip(expected, answers_of(call, Reply()), strict=False)
        if tensor is not None
    ]
    return replace(output_examples[0], further_outputs=tuple(output_examples[1:]))


def _smaller(example: Example) -> Example:
    """Return the example with fewer sequences in its batch, and with itself as `uncut`.

    There remain at least two sequences: the number that gives the least ambiguity, and among these
    the smallest. The example is returned unchanged if it has fewer than three sequences, or if its
    output has no batch axis.
    """
    signature, batch = example.signature, Axis(("B",))
    if signature is None or batch not in signature.returns or example.axes.sizes["B"] < 3:
        return example  # an output without a batch axis may depend on all sequences
    shapes = {p.name: p.shape for p in signature.call if p.shape and batch in p.shape}
    sizes = dict(example.axes.sizes)
    axes_by_count = {
        n: replace(example.axes, sizes=sizes | {"B": n}) for n in range(2, sizes["B"] + 1)
    }
    count = min(axes_by_count, key=lambda n: (ambiguity_of(axes_by_count[n]), n))

    def cut(name: str, value: object) -> object:
        if name not in shapes or not isinstance(value, Tensor):  # an optional argument may be None
            return value
        return value.narrow(shapes[name].index(batch), 0, count)

    args = tuple(
        cut(p.name, value) for p, value in zip(signature.call, example.call.args, strict=False)
    )
    call = replace(
        example.call,
        args=args,
        kwargs={name: cut(name, v) for name, v in example.call.kwargs.items()},
    )
    expected = example.expected.narrow(signature.returns.index(batch), 0, count)
    return replace(example, call=call, expected=expected, axes=axes_by_count[count], uncut=example)


def _settings_of_call(call: Call) -> str:
    """Return the attributes that the call sets on its module, for example "flash=True".

    "then" is added if the call uses one instance several times.
    """
    attributes = call.subject.attributes.items() if isinstance(call.subject, Build) else ()
    return ", ".join([*(f"{k}={v}" for k, v in attributes), *(["then"] if call.then else [])])
