"""What an attempt answered: to a call, to one step of it, or one part of what a step returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..box.worker.form import Form, PartPath, read_misfit
from ..box.worker.messages import Call, ModuleFacts, Output, Raised, Reply
from .explain import form_name, kind_name
from .hidden_check import AttemptRaised, CheckFailed

# kinds that hold numbers, and are no tensor
TABLES = frozenset({"ndarray", "list", "tuple", "str"})
HUGE = 1e6  # from here on a number is as good as infinite


@dataclass(frozen=True)
class Answer:
    """A call and its reply, with accessors for checks.

    `answer["lse"]` and `answer[1]` are the answer's parts, where the call returns several;
    `mean, count = answer` works.
    step: whose answer this is, of a call with several steps. path: which part of it.
    """

    call: Call
    reply: Reply
    step: int = 0
    path: PartPath = ()

    @property
    def form(self) -> Form:
        """The form that it should have."""
        return self.call.form.at(self.path)

    @property
    def label(self) -> str:
        """What a student calls it: "the output", "lse", "mean of call 2"."""
        name = self.call.form.label(self.path)
        return f"{name} of call {self.step + 1}" if self.call.then else name

    def __getitem__(self, key: int | str) -> Answer:
        """Return a part of the answer. Raises IndexError or KeyError where none is called so."""
        return replace(self, path=(*self.path, self.form.index_of(key)))

    def leaves(self) -> Iterator[Answer]:
        """Its parts that have no parts themselves, without those that are opaque."""
        for path, form in self.form.leaves(self.path):
            if form.kind != "opaque":
                yield replace(self, path=path)

    @property
    def output(self) -> Tensor:
        """The output of the first run, in float64 unless it is bool or integer. Raises
        CheckFailed.
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
    def dtype(self) -> str:
        """The dtype of the output as the attempt returned it, for example "float32". Raises
        CheckFailed if it has none.
        """
        output = self._raw_outputs()[0]
        if output.dtype is None:
            raise self._no_tensor(output)
        return output.dtype

    @property
    def device(self) -> str:
        """The device of the output as the attempt returned it."""
        return self._raw_outputs()[0].device or ""

    @property
    def kind(self) -> str:
        """What was returned: "tensor", or the type's name."""
        return self._raw_outputs()[0].kind

    def wrong_type(self, expected: str, came: str) -> CheckFailed:
        """Return the failure of an answer that is not of the kind that is due, or holds no numbers
        where it has to.
        """
        expected_type, yours = (
            "None" if expected == "NoneType" else kind_name(expected),
            kind_name(came),
        )
        if expected == came:
            expected_type, yours = (
                f"{expected_type} of numbers",
                f"{yours} of other things, or of rows of different lengths",
            )
        return CheckFailed(f"{expected_type} was expected{self._where()}; yours returned {yours}")

    @property
    def returned(self) -> str:
        """`kind` in words that may be shown: "a tensor", "None", "an object of another type"."""
        return kind_name(self.kind)

    @property
    def module(self) -> ModuleFacts:
        """The facts of the first module that the call built. Raises CheckFailed if it built
        none.
        """
        if not self.reply.modules:
            self.must_return()
            raise CheckFailed("no module was built")
        return self.reply.modules[0]

    @property
    def raised(self) -> Raised | None:
        """The attempt's exception."""
        return self.reply.raised

    @property
    def message(self) -> str:
        """The message of the attempt's exception, for matching only; empty if there is none."""
        return "" if self.reply.raised is None else self.reply.raised.message

    def gradient(self, name: str) -> Tensor | None:
        """Return the gradient of "args.0" or of a parameter; None if it has none."""
        self.must_return()
        gradient = self.reply.gradients.get(name)
        return None if gradient is None else wide(gradient)

    def must_return(self) -> None:
        """Raise AttemptRaised if the attempt raised, CheckFailed if it returned another structure
        than is asked.
        """
        if self.reply.raised is not None:
            raise AttemptRaised(self.reply.raised)
        for out, leaf in zip(self.reply.outputs, answers_of(self.call, self.reply), strict=False):
            if misfit := read_misfit(out.kind):
                depth, came = misfit
                structure = replace(leaf, path=leaf.path[:depth])
                expected_form = form_name(structure.form)
                alone = " alone" if came == "tensor" else ""
                raise CheckFailed(
                    f"{expected_form} was expected{structure._where()}; yours returned"
                    f" {kind_name(came)}{alone}"
                )

    def _raw_outputs(self) -> list[Output]:
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
            got = "one on the meta device, without numbers"
            return CheckFailed(f"a tensor was expected{self._where()}; yours returned {got}")
        return self.wrong_type(out.kind if out.kind in TABLES else "tensor", out.kind)

    @property
    def output_index(self) -> int:
        """The place of its output in a run."""
        leaves = [path for path, _ in self.call.form.leaves()]
        return self.step * len(leaves) + leaves.index(self.path)

    def _where(self) -> str:
        """Return where it stands, if it is not the whole answer to the only step: " as lse", " as
        mean of call 2".
        """
        return (
            f" as {self.label}"
            if self.path
            else f" of call {self.step + 1}"
            if self.call.then
            else ""
        )


def answers_of(call: Call, reply: Reply) -> Iterator[Answer]:
    """Yield the answer that each output of the reply is: for each run, for each step, for each
    leaf.
    """
    for _ in range(call.runs):
        for step in range(len(call.steps)):
            for path, _ in call.form.leaves():
                yield Answer(call, reply, step, path)


def wide(tensor: Tensor) -> Tensor:
    """Return the tensor in float64, unless it is bool or integer."""
    return tensor.double() if tensor.is_floating_point() else tensor


def has_numbers(reply: Reply) -> bool:
    """Return whether a finite number came: on the meta device there is none."""
    tensors = [out.tensor for out in reply.outputs if out.tensor is not None]
    return reply.raised is None and any(bool(tensor.isfinite().any()) for tensor in tensors)


def numbers_of(reply: Reply, infinite: float = 0.0) -> Tensor:
    """Return all numbers of an answer in one row. infinite: what stands for each that is infinite
    or NaN.
    """
    rows = [
        out.tensor.detach().double().flatten() for out in reply.outputs if out.tensor is not None
    ]
    row = torch.cat(rows) + 0.0  # no number is −0
    return torch.where(row.abs() < HUGE, row, infinite) if row.numel() > 1 else row
