"""Show a recorded call as an example: what it asks, what the reference answers, and what its sizes
are called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from ..box.worker.answers import Step
from ..box.worker.messages import Build, Call
from ..checks.transcript import target_of
from ..course.shapes import Axis, Signature
from ..judge.axes import Axes

SHOWN = 3  # how many calls of a sequence a title names


@dataclass(frozen=True)
class Example:
    """A recorded call, the reference's answer, and the names of its sizes.

    compares_values: whether an attempt must have these values; otherwise only the shape is
        compared.
    others: of a call that returns several outputs, what is expected of all but the first.
    place: which output of the reply it is. label: what a student calls it; "" for the only one.
    instead: other calls of the same function and setting, the next easiest first.
    uncut: the call with all sequences of its batch, where some were left out.
    twin: the axes of such a call of other sizes, and the attempt's steps in it: a name that holds
        in both is no chance.
    tokens: what the tokens of the input are called, if they are words. of: what the call is about,
        if it has a name.
    shares: the attention weights of each head of the reference, (nh, T_q, T_k), if they are known.
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
    twin: tuple[Axes, tuple[Step, ...]] | None = field(default=None, kw_only=True)
    tokens: tuple[str, ...] = field(default=(), kw_only=True)
    description: str = field(default="", kw_only=True)
    shares: Tensor | None = field(default=None, kw_only=True)

    @property
    def all_outputs(self) -> tuple[Example, ...]:
        """This example, and those of the other outputs of its call."""
        return (self, *self.further_outputs)

    @property
    def returns(self) -> tuple[Axis, ...]:
        """The named axes of this output; empty where none are known."""
        paths = [path for path, _ in self.call.form.leaves()]
        return (
            ()
            if self.signature is None
            else self.signature.shape_at(paths[self.output_index % len(paths)]) or ()
        )

    @property
    def names(self) -> list[str]:
        """What the signature calls the arguments, in their order; empty if there is none."""
        return [p.name for p in self.signature.call] if self.signature else []

    @property
    def arguments(self) -> dict[str, object]:
        """What the first call is given, by name."""
        return by_name(self.names, self.call.args, self.call.kwargs)

    @property
    def target(self) -> str:
        """The name of the function or class."""
        return target_of(self.call)

    def twin_steps(self, steps: Sequence[Step]) -> list[tuple[Axes, Step | None]]:
        """Return for each step of the attempt the same step of the twin, and its axes; itself where
        there is no twin.

        A step may take another number of tensors in the twin, as `cat` does after a loop. None
        where the twin has no such step.
        """
        if self.twin is None:
            return [(self.axes, step) for step in steps]
        axes, twin_trace = self.twin
        twins = dict(zip(_keys(twin_trace), twin_trace, strict=True))
        near = dict(zip(_keys(twin_trace, counts_tensors=False), twin_trace, strict=True))
        keys = zip(_keys(steps), _keys(steps, counts_tensors=False), strict=True)
        return [(axes, twins.get(key) or near.get(near_key)) for key, near_key in keys]

    @property
    def title(self) -> str:
        """The call as a student would write it: CausalAttention(d_in=8, d_out=4,
        context_length=9)(x).
        """
        if self.description:
            return self.description
        build = self.call.subject if isinstance(self.call.subject, Build) else None
        called = [_arguments(step.args, step.kwargs, self.names) for step in self.call.steps]
        callee = self.target
        if build is not None:
            names = [p.name for p in self.signature.build or ()] if self.signature else []
            callee += f"({_arguments(build.args, {**build.kwargs, **build.attributes}, names)})"
        then = [f"then ({call})" for call in called[1:SHOWN]] + ["…"] * (len(called) > SHOWN)
        return ", ".join([f"{callee}({called[0]})", *then])


def _keys(steps: Sequence[Step], *, counts_tensors: bool = True) -> Iterator[Hashable]:
    """Yield for each step its operation, where it stands, and which time it is done there."""
    occurrences = Counter[Hashable]()
    for step in steps:
        counts = (len(step.numbers), len(step.inputs), len(step.outputs)) if counts_tensors else ()
        site = (step.name, step.lines, step.sites, *counts)
        yield site, occurrences[site]
        occurrences[site] += 1


def by_name(
    names: Sequence[str], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments of a call by the names of its parameters; those that have none are left
    out.
    """
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def _arguments(args: tuple[object, ...], kwargs: Mapping[str, object], names: list[str]) -> str:
    named = by_name(names, args, kwargs)
    ordered = sorted(
        named.items(), key=lambda item: names.index(item[0]) if item[0] in names else len(names)
    )
    unnamed = [_argument("", value) for value in args[len(names) :]]
    return ", ".join([*unnamed, *(_argument(name, value) for name, value in ordered)])


def _argument(name: str, value: object) -> str:
    if isinstance(value, bool | int | float | str):
        return f"{name}={value!r}" if name else repr(value)
    return name or "…"
