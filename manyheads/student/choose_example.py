"""Choose examples among the recorded calls: for each function the call that is easiest to
understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from ..box.worker.answers import Reply, Traced
from ..box.worker.messages import Build, Call, Returned
from ..checks.answer import answers_of
from ..checks.cast import cast
from ..checks.marks import Layer
from ..checks.transcript import target_of
from ..course import Exercise
from ..course.shapes import Axis, Signature
from ..diagnosis.observe import Expected
from ..diagnosis.recording import FaultDictionary
from ..errors import CourseFault
from ..judge.axes import Axes, axes_of
from .example import Example
from .heads import shows_a_triangle

INSTEAD = 8  # how many substitutes an example has
SAME = 100  # the ambiguity of two axes with the same size


def returns_several(call: Call) -> bool:
    """Return whether a reply to this call has several outputs in one run."""
    return bool(call.then) or not call.form.is_leaf


def ambiguity_of(axes: Axes) -> int:
    """Return how many sizes could be two different axes.

    The fewer, the better a call serves as an example.
    """
    sizes = list(axes.sizes.values())
    # this is C itself
    several = [size for name, size in axes.packings + axes.joined if name != "nh·hd"]
    several += [*sizes, *((3,) if axes.packed else ())]  # the size of an axis over q, k and v
    return SAME * (sizes.count(1) + len(sizes) - len(set(sizes))) + len(several) - len(set(several))


def examples(exercise: Exercise, recording: FaultDictionary) -> list[Example]:
    """Return an example for each function and each setting of a module, in the order of
    course.yaml.
    """
    candidates: dict[tuple[str, str], dict[int, tuple[tuple[int, ...], Example]]] = {}
    for index, example in _all(exercise, recording):
        layers = {check.layer for check in recording.checks if index in check.calls}
        rank, best = (
            _rank(example, layers),
            candidates.setdefault((example.target, _setting(example.call)), {}),
        )
        if index not in best or rank < best[index][0]:
            best[index] = (rank, example)
    order = list(exercise.shapes) or [target for target, _ in candidates]
    chosen = []
    for _, best in sorted(
        candidates.items(), key=lambda entry: (order.index(entry[0][0]), entry[0][1])
    ):
        easiest, *alternatives = (
            example for _, example in sorted(best.values(), key=lambda ranked: ranked[0])
        )
        chosen.append(replace(easiest, instead=tuple(alternatives[:INSTEAD])))
    return chosen


def examples_named(
    exercise: Exercise, recording: FaultDictionary, function: str | None, command: str
) -> list[Example]:
    """Return the examples of this function, or of all if it is None.

    Raises CourseFault if there are none.

    command: what needs them, such as "course trace".
    """
    all_examples = examples(exercise, recording)
    chosen = [example for example in all_examples if function in (None, example.target)]
    if not all_examples:
        next_step = f"tell your instructor, whose next command is: course verify {exercise.id}"
        raise CourseFault(
            f"no recorded call of {exercise.id} fits its shapes in course.yaml. Next: {next_step}"
        )
    if not chosen:
        verb, targets = (
            command.removeprefix("course "),
            ", ".join(dict.fromkeys(e.target for e in all_examples)),
        )
        raise CourseFault(
            f"{exercise.id} has no {function!r} to {verb}; it has: {targets}. Next: {command} "
            f"{exercise.id}"
        )
    return chosen


def with_twin(
    example: Example, candidates: Sequence[Example], trace: Callable[[Call], Traced | None]
) -> Example:
    """Return the example with its twin: of these calls the one of the same names whose sizes differ
    most, in float32.
    """
    sizes, comparable = (
        example.axes.sizes,
        [
            variant
            for candidate in candidates
            for variant in (candidate, candidate.uncut)
            if variant is not None
        ],
    )
    comparable = [variant for variant in comparable if variant.axes.sizes.keys() == sizes.keys()]
    apart = [
        sum(size != sizes[name] for name, size in variant.axes.sizes.items())
        for variant in comparable
    ]
    twin = comparable[apart.index(max(apart))] if any(apart) else None
    traced = trace(cast(twin.call, "float32")) if twin else None
    return replace(example, twin=(twin.axes, traced.steps)) if twin and traced else example


def _rank(example: Example, layers: set[int]) -> tuple[int, ...]:
    """Return the rank of an example: lower is better.

    Calls with zeros and the like are for checks, not for display.
    """
    tensors = [value for value in example.call.inputs if isinstance(value, Tensor)]
    longest = max((size for tensor in tensors for size in tensor.shape), default=0)
    is_dull = bool(example.call.then) and not shows_a_triangle(example)
    # all in one block
    is_dull |= any(type(value) is int and value > longest > 0 for value in example.call.inputs)
    named = (
        [p.name for p in example.signature.call if p.shape is not None] if example.signature else []
    )
    # what is done with those cannot be seen
    left_out = sum(example.arguments.get(name) is None for name in named)
    criteria = (
        not example.compares_values,
        _is_made_up(example.call),
        is_dull,
        ambiguity_of(example.axes),
    )
    return (
        *criteria,
        Layer.VALUES not in layers,
        left_out,
        sum(tensor.numel() for tensor in tensors),
    )


def _is_made_up(call: Call) -> bool:
    """Return whether half of a tensor's numbers are 0, or a channel of an input is one number:
    nothing is seen in such a call.
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


def _all(exercise: Exercise, recording: FaultDictionary) -> Iterator[tuple[int, Example]]:
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    for index, (call, expected) in enumerate(zip(recording.calls, recording.expected, strict=True)):
        build = call.subject if isinstance(call.subject, Build) else None
        plain = (
            call.runs == 1
            and call.cotangent is None
            and not call.only_build
            and not (build and build.training)
        )
        later = (value for step in call.then for value in (*step.args, *step.kwargs.values()))
        # else the same instance is asked to compare
        goes_on = any(isinstance(value, Returned) for value in later)
        plain = plain and (goes_on or not call.then)
        output = next((tensor for tensor in expected if tensor is not None), None)
        if not plain or output is None or recording.expected_reply(index).raised is not None:
            continue
        compares_values = not call.random and any(
            index in check.calls for check in recording.checks
        )
        # a planted difference is more than rounding
        compares_values |= bool(call.around) and not output.dim()
        if not signatures:
            yield index, _example(call, expected, compares_values, None, Axes({}))
        of_first_step = zip((path for path, _ in call.form.leaves()), expected, strict=False)
        output_shapes = {path: tensor.shape for path, tensor in of_first_step if tensor is not None}
        for signature in signatures.get(target_of(call), ()):
            axes = axes_of(signature, call, output.shape, signatures, output_shapes)
            if axes is not None:
                example = _example(call, expected, compares_values, signature, axes)
                yield index, example if returns_several(call) else _smaller(example)


def _example(
    call: Call, expected: Expected, compares_values: bool, signature: Signature | None, axes: Axes
) -> Example:
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
    """Return the example with the fewest sequences of its batch, two at least, that are easy to
    tell from its other sizes.
    """
    signature, batch = example.signature, Axis(("B",))
    if signature is None or batch not in signature.returns or example.axes.sizes["B"] < 3:
        return example  # what has no batch may be of all sequences
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


def _setting(call: Call) -> str:
    """Return the attributes that the call sets on its module, for example flash=True, and whether
    it asks one instance again.
    """
    attributes = call.subject.attributes.items() if isinstance(call.subject, Build) else ()
    return ", ".join([*(f"{k}={v}" for k, v in attributes), *(["then"] if call.then else [])])
