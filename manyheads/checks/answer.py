"""The answer of an attempt: to a call, to one step of the call, or one part of a step's result.

`Answer` joins a call and its reply. Checks use it like a tensor, and it raises CheckFailed or
AttemptRaised if there is no such tensor. The other functions convert the outputs of replies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..box.worker.messages import Call, ModuleFacts, Output, Raised, Reply
from ..box.worker.result_form import Form, PartPath, read_misfit
from .explain_exceptions import SafeText, form_name, kind_name
from .hidden_check import AttemptRaised, CheckFailed, Evidence, Text

# the kinds of answers that hold numbers but are not tensors
TABLES = frozenset({"ndarray", "list", "tuple", "str"})
HUGE = 1e6  # numbers from here on are treated as infinite


@dataclass(frozen=True, eq=False)
class Answer:
    """A call and its reply, with accessors for checks.

    An answer that is one tensor can be used like that tensor, which is its `output`:
    `answer[:, -1]`, `2 * answer`, `(answer > 0).all()`, `answer.shape`, `answer.sum(-1)`,
    `torch.softmax(answer, -1)`. If the attempt raised, or returned another type, the check fails at
    that point, and the student reads why.

    If the call returns several parts, they are `answer["lse"]` or `answer[1]`, and
    `mean, count = answer` works.
    """

    call: Call
    reply: Reply
    step: int = 0  # the step of the call that this is the answer to
    path: PartPath = ()  # to this part in the step's result

    @property
    def form(self) -> Form:
        """The form that the answer must have."""
        return self.call.form.part_at(self.path)

    @property
    def label(self) -> SafeText:
        """The name of the answer for students: "the output", "lse", "mean of call 2"."""
        name = self.call.form.label(self.path)
        return SafeText(f"{name} of call {self.step + 1}" if self.call.then else name)

    def __getitem__(self, key: Any) -> Any:
        """Return a part of the answer, or numbers of the tensor if the answer is one tensor.

        Raises IndexError or KeyError if the answer has no such part.
        """
        if self.form.is_leaf:
            return self.output[key]
        return replace(self, path=(*self.path, self.form.index_of(key)))

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch with the outputs of the answers among its arguments."""
        return function(*map(plain, args), **{k: plain(v) for k, v in (kwargs or {}).items()})

    def leaves(self) -> Iterator[Answer]:
        """Yield each leaf of the answer that is not opaque, as an answer."""
        for path, form in self.form.leaves(self.path):
            if form.kind != "opaque":
                yield replace(self, path=path)

    @property
    def output(self) -> Tensor:
        """The output of the first run, in float64 unless it is bool or integer.

        Raises CheckFailed.
        """
        return self.outputs[0]

    @property
    def outputs(self) -> list[Tensor]:
        """The outputs of all runs, as tensors. Raises CheckFailed if one holds no plain numbers."""
        raw_outputs = self._raw_outputs()
        for out in raw_outputs:
            if out.tensor is None:
                raise self._no_tensor(out)
        return [wide(out.tensor) for out in raw_outputs if out.tensor is not None]

    @property
    def shape(self) -> torch.Size:
        """The shape of the output. Raises CheckFailed."""
        return self.output.shape

    @property
    def dtype(self) -> SafeText:
        """The dtype of the output as the attempt returned it, for example "float32".

        Raises CheckFailed if the output has no dtype.
        """
        output = self._raw_outputs()[0]
        if output.dtype is None:
            raise self._no_tensor(output)
        return SafeText(output.dtype)

    @property
    def device(self) -> SafeText:
        """The device of the output as the attempt returned it, such as "cpu", or "" without one.

        Raises CheckFailed if the attempt raised.
        """
        return SafeText(self._raw_outputs()[0].device or "")

    @property
    def kind(self) -> str:
        """The kind of the output: "tensor", or the name of the type.

        Raises CheckFailed if the attempt raised.
        """
        return self._raw_outputs()[0].kind

    def wrong_type(self, expected: str, came: str) -> CheckFailed:
        """Return the failure for an answer of another type than expected.

        If both types are the same, the answer holds something else than numbers.
        """
        expected_type = "None" if expected == "NoneType" else kind_name(expected)
        yours: Text = kind_name(came)
        if expected == came:
            expected_type = f"{expected_type} of numbers"
            yours = Evidence("{} of other things, or of rows of different lengths", yours)
        evidence = Evidence(
            "{} was expected{}; yours returned {}", expected_type, self._suffix(), yours
        )
        return CheckFailed(evidence)

    @property
    def kind_in_words(self) -> SafeText:
        """`kind` in words that may be shown: "a tensor", "None", "an object of another type"."""
        return kind_name(self.kind)

    @property
    def module(self) -> ModuleFacts:
        """The facts of the first module that the call built.

        Examples: `answer.module.parameters["weight"].shape`, and in the same way `.buffers`.
        `.training` says whether it is in training mode.

        Raises CheckFailed if the call built none.
        """
        if not self.reply.modules:
            self.must_return()
            raise CheckFailed("no module was built")
        return self.reply.modules[0]

    @property
    def raised(self) -> Raised | None:
        """The attempt's exception, or None if it raised none."""
        return self.reply.raised

    @property
    def message(self) -> str:
        """The message of the attempt's exception, or "". Use it only to match it."""
        return "" if self.reply.raised is None else self.reply.raised.message

    def gradient(self, name: str) -> Tensor | None:
        """Return the gradient of "args.0" or of a parameter, or None if it has no gradient.

        Raises CheckFailed if the attempt raised, or if the result has another structure.
        """
        self.must_return()
        gradient = self.reply.gradients.get(name)
        return None if gradient is None else wide(gradient)

    def must_return(self) -> None:
        """Raise AttemptRaised if the attempt raised, CheckFailed if the structure is wrong.

        A student reads which structure was expected, and which type was returned.
        """
        if self.reply.raised is not None:
            raise AttemptRaised(self.reply.raised)
        for out, leaf in zip(self.reply.outputs, answers_of(self.call, self.reply), strict=False):
            if misfit := read_misfit(out.kind):
                depth, came = misfit
                structure = replace(leaf, path=leaf.path[:depth])
                expected_form = form_name(structure.form)
                alone = " alone" if came == "tensor" else ""
                evidence = Evidence(
                    "{} was expected{}; yours returned {}{}",
                    SafeText(expected_form),
                    structure._suffix(),
                    kind_name(came),
                    alone,
                )
                raise CheckFailed(evidence)

    def _raw_outputs(self) -> list[Output]:
        """Return the output of each run. Raises TypeError if the answer is not one tensor."""
        self.must_return()
        if not self.form.is_leaf or self.form.kind == "opaque":
            raise TypeError(
                f"{self.label} is {form_name(self.form)}, not one tensor: ask for one of its parts"
            )
        return list(
            self.reply.outputs[self.output_index :: len(self.call.steps) * self.call.form.count]
        )

    def _no_tensor(self, out: Output) -> CheckFailed:
        if out.device == "meta":
            evidence = Evidence(
                "a tensor was expected{}; yours returned one on the meta device, without numbers",
                self._suffix(),
            )
            return CheckFailed(evidence)
        return self.wrong_type(out.kind if out.kind in TABLES else "tensor", out.kind)

    @property
    def output_index(self) -> int:
        """The index of this answer's output among the outputs of one run."""
        leaves = [path for path, _ in self.call.form.leaves()]
        return self.step * len(leaves) + leaves.index(self.path)

    if not TYPE_CHECKING:  # so that mypy still finds misspelt names in the engine

        def __getattr__(self, name: str) -> Any:
            """Return this attribute of the output, such as `shape` or `sum`. Raises CheckFailed."""
            if name.startswith("_") or not hasattr(Tensor, name):
                raise AttributeError(f"an answer has no {name}")
            return getattr(self.output, name)

    def _suffix(self) -> SafeText:
        """Return the part and the step for a message: " as lse", " as mean of call 2".

        It is "" for the whole answer to the only step.
        """
        if self.path:
            return SafeText(f" as {self.label}")
        return SafeText(f" of call {self.step + 1}" if self.call.then else "")


def plain(value: Any) -> Any:
    """Return the output of an answer, and any other value unchanged.

    Answers in lists and tuples are replaced by their outputs, too. Raises CheckFailed if an answer
    has no output.
    """
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value.output if isinstance(value, Answer) else value


def _operator(name: str) -> Callable[..., Any]:
    """Return a method that applies this operator of tensors to the output of an answer."""

    def method(answer: Answer, *operands: Any) -> Any:
        return getattr(answer.output, name)(*map(plain, operands))

    return method


# Python looks these methods up in the class, so `__getattr__` is not asked for them.
BINARY_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor".split()
OPERATORS = [
    *("eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "invert"),
    *BINARY_OPERATORS,
    *(f"r{name}" for name in BINARY_OPERATORS),
]
for _name in OPERATORS:
    setattr(Answer, f"__{_name}__", _operator(f"__{_name}__"))
Answer.__hash__ = object.__hash__  # type: ignore[method-assign]


def answers_of(call: Call, reply: Reply) -> Iterator[Answer]:
    """Yield an answer for each output of the reply, in the order of runs, steps and leaves."""
    for _ in range(call.runs):
        for step in range(len(call.steps)):
            for path, _ in call.form.leaves():
                yield Answer(call, reply, step, path)


def wide(tensor: Tensor) -> Tensor:
    """Return the tensor in float64, unless it is bool or integer."""
    return tensor.double() if tensor.is_floating_point() else tensor


def has_numbers(reply: Reply) -> bool:
    """Return whether the reply has a finite number and no exception.

    Tensors on the meta device have no numbers.
    """
    tensors = [out.tensor for out in reply.outputs if out.tensor is not None]
    return reply.raised is None and any(bool(tensor.isfinite().any()) for tensor in tensors)


def numbers_of(reply: Reply, infinite: float = 0.0) -> Tensor:
    """Return (N,), all numbers of a reply in float64. Raises RuntimeError if it has no tensor.

    Args:
        reply: the reply.
        infinite: replaces each number that is NaN, infinite or at least `HUGE`, if there are
            several numbers.
    """
    rows = [
        out.tensor.detach().double().flatten() for out in reply.outputs if out.tensor is not None
    ]
    row = torch.cat(rows) + 0.0  # turns −0 into 0
    return torch.where(row.abs() < HUGE, row, infinite) if row.numel() > 1 else row
