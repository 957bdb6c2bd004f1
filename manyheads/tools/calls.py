"""Which of the recorded calls to look at: for each function the one that explains itself best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from torch import Tensor

from ..box.worker.messages import Build, Call
from ..checks.marks import Layer
from ..course import Exercise
from ..course.shapes import Axis, Signature
from ..public.file import Fingerprints
from ..public.heads import Heads, key_of
from .axes import SAME, Axes, axes_of

_LARGE = 6.0
AnyLook = TypeVar("AnyLook", bound="Look")


@dataclass(frozen=True)
class Look:
    """A recorded call, what the reference answered, and what its sizes are called. `judged`: only that is right.

    heads: what the reference's heads attend to, where that is recorded.
    """

    call: Call
    expected: Tensor
    judged: bool
    signature: Signature | None
    axes: Axes
    heads: Heads | None = field(default=None, kw_only=True)

    @property
    def target(self) -> str:
        """The function or class."""
        return target_of(self.call)

    @property
    def has_heads(self) -> bool:
        """Whether a module attends here, so that there may be heads to see."""
        return bool(self.axes.packed) and self.expected.dim() > 0

    @property
    def title(self) -> str:
        """As a student would write the call: CausalAttention(d_in=8, d_out=4, context_length=9)(x)."""
        build = self.call.subject if isinstance(self.call.subject, Build) else None
        names = [p.name for p in self.signature.call] if self.signature else []
        called = _arguments(self.call.args, self.call.kwargs, names)
        if build is None:
            return f"{self.target}({called})"
        names = [p.name for p in self.signature.build or ()] if self.signature else []
        return f"{self.target}({_arguments(build.args, {**build.kwargs, **build.attributes}, names)})({called})"


def looks(exercise: Exercise, fingerprints: Fingerprints, *, by_head: bool = False) -> list[Look]:
    """A call for each function and each setting of a module, in the order of course.yaml.

    by_head: for the eye, prefer calls in which heads are an axis; else those whose sizes are easiest to tell apart.
    """
    best: dict[tuple[str, str], tuple[tuple[int, ...], Look]] = {}
    for index, look in _all(exercise, fingerprints):
        key = (look.target, _setting(look.call))
        rank = _rank(look, {check.layer for check in fingerprints.content.checks if index in check.calls}, by_head)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, look)
    order = list(exercise.shapes) or [target for target, _ in best]
    return sorted((look for _, look in best.values()), key=lambda look: (order.index(look.target), _setting(look.call)))


def with_heads(chosen: Sequence[AnyLook], recorded: Mapping[str, Heads]) -> list[AnyLook]:
    """The same calls, each with the reference's heads where they are recorded."""
    return [replace(look, heads=recorded.get(key_of(look.expected))) for look in chosen]


def _rank(look: Look, layers: set[int], by_head: bool) -> tuple[int, ...]:
    """The lower, the better it shows. Zeros, extremes and the like are for checks, not for the eye."""
    doubt, unusual = look.axes.doubt, Layer.VALUES not in layers
    heads = look.signature is not None and Axis(("nh",)) in look.signature.returns
    names = (doubt >= SAME, unusual or _is_extreme(look.call), doubt) if by_head else (doubt, unusual)
    return (not look.judged, by_head and not heads, Layer.FINITE in layers, *names, _elements(look.call))


def _is_extreme(call: Call) -> bool:
    """Whether it holds numbers that no normal distribution would give."""
    state = call.subject.state if isinstance(call.subject, Build) else None
    given = (*call.args, *call.kwargs.values(), *(state or {}).values())
    return any(bool((value.double().abs() > _LARGE).any()) for value in given if isinstance(value, Tensor))


def target_of(call: Call) -> str:
    """The name of what is called or built."""
    return call.subject if isinstance(call.subject, str) else call.subject.target


def _all(exercise: Exercise, fingerprints: Fingerprints) -> Iterator[tuple[int, Look]]:
    signatures = {name: exercise.signatures(name) for name in exercise.shapes}
    content = fingerprints.content
    for index, (call, expected) in enumerate(zip(fingerprints.calls, fingerprints.expected, strict=True)):
        build = call.subject if isinstance(call.subject, Build) else None
        plain = call.runs == 1 and call.cotangent is None and not call.only_build and not (build and build.training)
        if not plain or expected is None or content.right(index).raised is not None:
            continue
        judged = not call.random and any(index in check.calls for check in content.checks)
        if not signatures:
            yield index, Look(call, expected, judged, None, Axes({}))
        for signature in signatures.get(target_of(call), ()):
            axes = axes_of(signature, call, expected.shape, signatures)
            if axes is not None:
                look = Look(_bare(call), expected, judged, signature, axes)
                yield from ((index, smaller) for smaller in _smaller(look))


def _smaller(look: Look) -> Iterator[Look]:
    """The look with 2, 3, … sequences of its batch: another size may be easier to tell from the others."""
    signature, batch = look.signature, Axis(("B",))
    if signature is None or "B" not in look.axes.sizes:
        yield look
        return
    shapes = {p.name: p.shape for p in signature.call if p.shape and batch in p.shape}
    names = [p.name for p in signature.call]
    for count in range(2, look.axes.sizes["B"] + 1):

        def cut(name: str, value: object, count: int = count) -> object:
            shape = shapes.get(name)
            return value if shape is None else cast(Tensor, value).narrow(shape.index(batch), 0, count)

        args = tuple(cut(name, value) for name, value in zip(names, look.call.args, strict=False))
        kwargs = {name: cut(name, value) for name, value in look.call.kwargs.items()}
        expected = look.expected
        if batch in signature.returns:
            expected = expected.narrow(signature.returns.index(batch), 0, count)
        axes = replace(look.axes, sizes={**look.axes.sizes, "B": count})
        yield replace(look, call=replace(look.call, args=args, kwargs=kwargs), expected=expected, axes=axes)


def _bare(call: Call) -> Call:
    """Without what a check adds to a module's output."""
    subject, *args = (replace(v, added={}) if isinstance(v, Build) else v for v in (call.subject, *call.args))
    kwargs = {k: replace(v, added={}) if isinstance(v, Build) else v for k, v in call.kwargs.items()}
    return replace(call, subject=cast(str | Build, subject), args=tuple(args), kwargs=kwargs)


def _setting(call: Call) -> str:
    """The attributes that the call sets on its module, such as flash=True: each setting is looked at."""
    return ", ".join(f"{k}={v}" for k, v in call.subject.attributes.items()) if isinstance(call.subject, Build) else ""


def _elements(call: Call) -> int:
    return sum(value.numel() for value in (*call.args, *call.kwargs.values()) if isinstance(value, Tensor))


def _arguments(args: tuple[object, ...], kwargs: Mapping[str, object], names: list[str]) -> str:
    named = dict(zip(names, args, strict=False)) | dict(kwargs)
    ordered = sorted(named.items(), key=lambda item: names.index(item[0]) if item[0] in names else len(names))
    unnamed = [_argument("", value) for value in args[len(names) :]]
    return ", ".join([*unnamed, *(_argument(name, value) for name, value in ordered)])


def _argument(name: str, value: object) -> str:
    if isinstance(value, bool | int | float | str):
        return f"{name}={value!r}" if name else repr(value)
    return name or "…"
